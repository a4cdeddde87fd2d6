#!/bin/bash
# libdas.so loaded and unloaded by dlopen, with and without drivers, and how it is linked against tampering.
. "$(dirname "$0")/../reporting.sh"
so=$DAS_LIB/libdas.so

if nm -D --undefined-only "$so" | grep -qE '__(asan|tsan|ubsan)'; then
    skip "loading libdas.so" "the library is instrumented"
    totals
fi
expect "the loading program builds" $CC -std=c11 -D_GNU_SOURCE -Wall -Wextra -Wpedantic -Werror -Iinclude \
    -o "$scratch/loading" tests/abi/loading.c -ldl
expect "dlopen and dlclose in a loop" "$scratch/loading" "$so"

# Files that are no libraries, found before any real driver.
mkdir "$scratch/broken"
for driver in libcuda.so.1 libcuda.so libOpenCL.so.1 libOpenCL.so; do
    echo "not a library" >"$scratch/broken/$driver"
done
expect "with broken drivers the CPU works and the others say so" \
    env LD_LIBRARY_PATH="$scratch/broken" "$scratch/loading" "$so" without-drivers

# The link map of the library, not only its flags: the pages that hold addresses are read-only after loading.
segments=$(readelf -lW "$so")
expect "libdas.so has a RELRO segment" grep -q GNU_RELRO <<<"$segments"
same "no segment is writable and executable" "" "$(grep -E '^ *(LOAD|GNU_STACK|GNU_RELRO)' <<<"$segments" | grep -E 'RWE|WE')"
same "no data objects are exported" "" "$(nm -D --defined-only "$so" | awk '$2 !~ /^[TA]$/ {print $3}')"
same "no undefined symbols but those of libc and libm" "" \
    "$(nm -D --undefined-only "$so" | awk '{print $NF}' | grep -vE '@(GLIBC|GCC)_' | grep -vE '^(_ITM_|__gmon_start__|__cxa_finalize)')"
same "libdas.a needs no names of its own" "" "$(nm -g --undefined-only "$DAS_LIB/libdas.a" 2>/dev/null | awk 'NF == 2 {print $2}' | grep '^das_')"

# Every archive member's global names begin with das_, and a program may define the names that libdas uses inside.
cat >"$scratch/clash.c" <<'END'
#include <das/das.h>
int lock, changed, facts, worker, release, import, distance, normalise, das_fail, das_backends, das_parallel, das_log;
int main(void) { return das_version_number() == 0; }
END
expect "a program with the library's inner names links the archive" \
    $CC -std=c11 -Iinclude -o "$scratch/clash" "$scratch/clash.c" "$DAS_LIB/libdas.a" -lm -pthread
expect "and runs" "$scratch/clash"
totals
