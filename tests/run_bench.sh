#!/bin/bash
# make bench: the workloads of docs/performance.md on the CPU and on the first CUDA or OpenCL GPU; on the CPU also by
# instruction set and threads. tests/peers_cpu.py and peers_gpu.py time other software beside das_bench.
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
    [ "$device" = cpu ] || continue
    # One thread and all, each instruction set this processor has, both types of data.
    printf '\n%-8s %-4s %-7s %8s %12s %12s %10s\n' workload type isa threads ms terms/s GB/s
    for isa in scalar avx2 avx512 neon; do
        "$bench" --workload tiny --device cpu --isa $isa --repeat 1 --json >/dev/null 2>&1 || continue
        for case in article/f32 fmc/f32 fmc/i16; do
            for threads in 1 0; do
                line=$("$bench" --workload "${case%/*}" --dtype "${case#*/}" --device cpu --isa $isa --threads $threads --repeat 3 --json) ||
                    { status=1; continue; }
                field() { sed "s/.*\"$1\": \([^,}]*\).*/\1/" <<<"$line"; }
                printf '%-8s %-4s %-7s %8s %12s %12s %10s\n' "${case%/*}" "${case#*/}" $isa "$(field compute_units)" \
                    "$(field compute_ms)" "$(field points_per_s)" "$(field sample_gb_per_s)"
            done
        done
    done
done
exit $status
