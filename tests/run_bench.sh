#!/bin/bash
# make bench: the workloads of docs/performance.md on the CPU and on the first CUDA or OpenCL GPU.
#
#     tests/run_bench.sh DAS_BENCH [WORKLOAD...]
#
# DEVICES   devices to use instead, separated by blanks
set -u
bench=$1
shift
workloads=("$@")
[ ${#workloads[@]} -gt 0 ] || workloads=(article fmc disk volume)
# das_bench refuses a device that is not there; "auto" is a GPU or the CPU again.
read -r -a devices <<<"${DEVICES:-cpu auto}"
status=0
for device in "${devices[@]}"; do
    if [ "$device" = auto ]; then
        line=$("$bench" --workload tiny --device auto --repeat 1 --json 2>/dev/null)
        case $line in *'"device": "cpu'* | *'"device":"cpu'* | '') continue ;; esac
    fi
    for workload in "${workloads[@]}"; do
        "$bench" --workload "$workload" --device "$device" || status=1
    done
done
exit $status
