#!/bin/bash
# das.h by itself, in the languages and with the warnings of those who include it.
. "$(dirname "$0")/reporting.sh"
warnings="-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wundef -Werror"
echo '#include <das/das.h>' >"$scratch/alone.c"
printf '#include <das/das.h>\n#include <das/das.h>\nint main(void) { return das_version_number() == 0; }\n' >"$scratch/twice.c"
cp "$scratch/twice.c" "$scratch/twice.cpp"
for compiler in gcc clang; do
    command -v $compiler >/dev/null || { skip "das.h with $compiler" "not installed"; continue; }
    for standard in c99 c11 c17; do
        expect "das.h alone, $compiler -std=$standard" \
            $compiler -std=$standard $warnings -Wstrict-prototypes -Wmissing-prototypes -Iinclude -fsyntax-only "$scratch/alone.c"
        expect "das.h twice, $compiler -std=$standard" \
            $compiler -std=$standard $warnings -Wstrict-prototypes -Iinclude -fsyntax-only "$scratch/twice.c"
    done
done
for compiler in g++ clang++; do
    command -v $compiler >/dev/null || { skip "das.h with $compiler" "not installed"; continue; }
    for standard in c++11 c++17 c++20; do
        # clang++ finds the C++ headers of gcc only where g++ is installed; das.h needs none.
        expect "das.h twice, $compiler -std=$standard" \
            $compiler -std=$standard $warnings -Wold-style-cast -Iinclude -fsyntax-only "$scratch/twice.cpp"
    done
done

# The whole program in the header's preface.
awk '/^#ifndef DAS_DAS_H/ {exit} /^ \*     #include <das/ {on = 1} on {if ($0 ~ /^ \*     / || $0 == " *") {sub(/^ \*( {5})?/, ""); print} else exit}' \
    include/das/das.h >"$scratch/preface.c"
expect "the program of das.h's preface compiles" $CC -std=c99 $warnings -Iinclude -o "$scratch/preface" "$scratch/preface.c" \
    -L"$DAS_LIB" -ldas "-Wl,-rpath,$DAS_LIB"
expect "the program of das.h's preface runs" "$scratch/preface"
totals
