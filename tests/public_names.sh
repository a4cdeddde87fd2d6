#!/bin/bash
# Prints the names of the functions that das.h marks DAS_API, sorted.
sed -e 's|//.*||' "${1:-include/das/das.h}" | tr '\n' ' ' | sed -e 's|/\*|\x01|g' -e 's|\*/|\x02|g' -e 's|\x01[^\x02]*\x02||g' |
    grep -oE 'DAS_API [^;(]*\(' | grep -oE 'das_[a-z0-9_]*\($' | tr -d '(' | LC_ALL=C sort -u
