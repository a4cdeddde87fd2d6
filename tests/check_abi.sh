#!/bin/bash
# make check-abi: compares the binary interface with the one recorded in tests/abi, with libabigail.
#
#     tests/check_abi.sh            compares
#     tests/check_abi.sh --record   records the present interface (with a CHANGELOG line, and while the release is 0.x)
. "$(dirname "$0")/reporting.sh"
machine=$($CC -dumpmachine | cut -d- -f1)
recorded=tests/abi/libdas-$machine.abi

if ! command -v abidw >/dev/null || ! command -v abidiff >/dev/null; then
    skip "ABI" "abidw and abidiff (libabigail) are not installed"
    totals
fi
# Debug information tells abidw the types; optimisation, kernels and backends do not matter to it.
if ! "$MAKE" --no-print-directory O="$DAS_BUILD/abi" CUDA=0 OPENCL=0 CFLAGS="-g -gdwarf-4 -O0" CC="$CC" lib >"$scratch/log" 2>&1; then
    fail "ABI: build with debug information" "$(tail -n 3 "$scratch/log" | tr '\n' ' ')"
    totals
fi
describe=(abidw --headers-dir include --drop-private-types --no-comp-dir-path --no-corpus-path --no-show-locs --short-locs)
"${describe[@]}" "$DAS_BUILD/abi/lib/libdas.so" --out-file "$scratch/now.abi" || { fail "ABI: abidw" "exit status $?"; totals; }

if [ "${1:-}" = --record ]; then
    mkdir -p tests/abi
    cp "$scratch/now.abi" "$recorded"
    echo "recorded in $recorded"
    exit
fi
if [ ! -f "$recorded" ]; then
    skip "ABI of $machine" "no record in $recorded"
    totals
fi
report=$(abidiff "$recorded" "$scratch/now.abi")
status=$?
# Bits 1 and 2: errors of abidiff; 4: a change, in types of arguments too; 8: a removal.
if [ $((status & 3)) -ne 0 ]; then
    fail "ABI: abidiff" "exit status $status"
elif [ $status -ne 0 ]; then
    echo "$report"
    fail "ABI is the recorded one" "if the changes above are meant: tests/check_abi.sh --record, and an ABI line in CHANGELOG.md"
else
    pass "ABI is the recorded one"
fi
totals
