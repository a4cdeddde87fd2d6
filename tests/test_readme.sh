#!/bin/bash
# The C program of README.md compiles without a warning and finds the point it simulates; what the pages link to is there.
. "$(dirname "$0")/reporting.sh"
awk '/^```c$/ {on = 1; next} /^```$/ {if (on) exit} on' README.md >"$scratch/readme.c"
expect "README's program compiles" $CC -std=c11 -Wall -Wextra -Wpedantic -Werror -Iinclude -o "$scratch/readme" "$scratch/readme.c" \
    -L"$DAS_LIB" -ldas -lm "-Wl,-rpath,$DAS_LIB"
wanted=$(awk '/^```text$/ {on = 1; next} /^```$/ {if (on) exit} on' README.md)
same "README's program prints what README says" "$wanted" "$("$scratch/readme" 2>&1)"

broken=$(for page in *.md docs/*.md; do
    grep -oE '\]\([^)#:]+\)' "$page" | sed 's/^](\(.*\))$/\1/' | while read -r target; do
        [ -e "$(dirname "$page")/$target" ] || echo "$page: $target"
    done
done)
same "links of the pages lead to files" "" "$broken"
totals
