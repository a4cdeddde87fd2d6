#!/bin/bash
# What the libraries offer and what they need: exactly the functions of das.h, libc
# and libm, and none of the calls that a library may not make.
. "$(dirname "$0")/reporting.sh"
so=$DAS_LIB/libdas.so
archive=$DAS_LIB/libdas.a

declared=$(tests/public_names.sh)
mapped=$(sed -n 's/^ *\(das_[a-z0-9_]*\);$/\1/p' src/libdas.map)
exported=$(nm -D --defined-only "$so" | awk '$2 != "A" {sub(/@.*/, "", $3); print $3}' | LC_ALL=C sort)
archived=$(nm -g --defined-only "$archive" 2>/dev/null | awk 'NF == 3 {print $3}' | LC_ALL=C sort)
same "libdas.map lists the functions of das.h" "$declared" "$(LC_ALL=C sort <<<"$mapped")"
same "libdas.so exports the functions of das.h" "$declared" "$exported"
same "libdas.a exports the functions of das.h" "$declared" "$archived"
same "every exported symbol has a version node" "" \
    "$(nm -D --defined-only "$so" | awk '$2 != "A" && $3 !~ /@@DAS_0\.[0-9]+$/ {print $3}')"

dynamic=$(readelf -dW "$so")
same "libdas.so needs libc and libm only" "" \
    "$(sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' <<<"$dynamic" | grep -vE '^(libc|libm)\.so\.6$')"
same "soname" "libdas.so.0" "$(sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p' <<<"$dynamic")"
for flag in NODELETE NOW; do
    expect "libdas.so is linked with $flag" grep -qE "(FLAGS_1|FLAGS).*$flag" <<<"$dynamic"
done
expect "libdas.so has no text relocations" bash -c '! grep -q TEXTREL' <<<"$dynamic"
expect "libdas.so has no executable stack" bash -c \
    'readelf -lW "$1" | grep GNU_STACK | grep -qv "RWE"' _ "$so"
same "libdas.so has no static TLS" "" "$(grep -o STATIC_TLS <<<"$dynamic")"
same "libdas.so is smaller than 20 MB" "yes" "$([ "$(stat -Lc %s "$so")" -lt 20000000 ] && echo yes)"

# The C runtime has one entry of its own in each (8 bytes).
section_size() { readelf -SW "$so" | sed 's/^ *\[ *[0-9]*\]//' | awk -v name="$1" '$1 == name {sub(/^0*/, "", $5); print $5}'; }
same "no constructors" "8" "$(section_size .init_array)"
same "no destructors" "8" "$(section_size .fini_array)"

# A build with sanitizers or coverage has imports of its own. sigaction() is allowed: the OpenCL backend puts back the
# handlers that a driver has changed.
imported=$(nm -D --undefined-only "$so" | awk '{sub(/@.*/, "", $NF); print $NF}')
if grep -qE '^__(asan|tsan|ubsan|gcov)' <<<"$imported"; then
    skip "no forbidden calls" "the library is instrumented"
else
    same "no forbidden calls" "" "$(grep -xE 'printf|__printf_chk|vprintf|puts|putchar|fputs|fputc|fwrite|fprintf|__fprintf_chk|vfprintf|perror|stdout|stderr|abort|exit|_exit|_Exit|quick_exit|__assert_fail|atexit|at_quick_exit|signal|setlocale|putenv|rand|srand|system|fork' <<<"$imported")"
fi
totals
