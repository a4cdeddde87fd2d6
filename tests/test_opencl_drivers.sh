#!/bin/bash
# OpenCL drivers that are absent, broken or without a home: no device or a clear status, never a crash.
. "$(dirname "$0")/reporting.sh"
export LD_LIBRARY_PATH="$DAS_LIB${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
devices=$DAS_BIN/02_devices bench=$DAS_BIN/das_bench
[ -x "$devices" ] && [ -x "$bench" ] || { skip "OpenCL drivers" "the programs are not built"; totals; }
if "$bench" --workload tiny --device opencl 2>&1 | grep -q NOT_BUILT; then
    skip "OpenCL drivers" "built with OPENCL=0"
    totals
fi

none()
{
    local name=$1 list status message
    shift
    list=$(env "$@" "$devices" 2>&1)
    status=$?
    same "$name: devices are listed, none of OpenCL" "0 0" "$status $(grep -c '^opencl' <<<"$list")"
    message=$(env "$@" "$bench" --workload tiny --device opencl 2>&1)
    status=$?
    if [ "$status" -gt 0 ] && [ "$status" -lt 126 ] && grep -Eq 'DAS_ERROR_NO_(DEVICE|DRIVER)' <<<"$message"; then
        pass "$name: opening says why"
    else
        fail "$name: opening says why" "status $status, $message"
    fi
}

mkdir "$scratch/none"
# Not every loader lets itself be sent to another folder of vendors; NVIDIA's does not.
if [ "$(OCL_ICD_VENDORS=$scratch/none "$devices" 2>/dev/null | grep -c '^opencl')" != 0 ]; then
    skip "OpenCL drivers absent or broken" "this libOpenCL.so.1 does not read OCL_ICD_VENDORS"
else
    mkdir "$scratch/missing" "$scratch/text" "$scratch/other"
    none "empty folder of vendors" "OCL_ICD_VENDORS=$scratch/none"
    echo "$scratch/libnothing.so" >"$scratch/missing/one.icd"
    none "vendor library missing" "OCL_ICD_VENDORS=$scratch/missing"
    echo "this is no library" >"$scratch/text/libtext.so"
    echo "$scratch/text/libtext.so" >"$scratch/text/one.icd"
    none "vendor library is no library" "OCL_ICD_VENDORS=$scratch/text"
    printf 'int answer(void);\nint answer(void) { return 42; }\n' >"$scratch/other/other.c"
    if $CC -shared -fPIC -o "$scratch/other/libother.so" "$scratch/other/other.c" 2>/dev/null; then
        echo "$scratch/other/libother.so" >"$scratch/other/one.icd"
        none "vendor library without OpenCL" "OCL_ICD_VENDORS=$scratch/other"
    fi
fi

if [ "$("$devices" 2>/dev/null | grep -c '^opencl')" = 0 ]; then
    skip "OpenCL without a home" "no OpenCL device"
    totals
fi
mkdir "$scratch/tmp"
expect "OpenCL with HOME unset" env -u HOME -u XDG_CACHE_HOME "TMPDIR=$scratch/tmp" "$bench" --workload tiny --device opencl --repeat 1
expect "OpenCL with a HOME that cannot be written" env -u XDG_CACHE_HOME HOME=/proc/none "TMPDIR=$scratch/tmp" "$bench" --workload tiny --device opencl --repeat 1
totals
