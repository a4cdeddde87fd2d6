#!/bin/bash
# The OpenCL kernels, checked by clang as OpenCL C 1.2 with warnings as errors: every value of every
# setting at least once, on devices with double and without, with a build like that of opencl_plan.c.
. "$(dirname "$0")/reporting.sh"
command -v clang >/dev/null || { skip "OpenCL kernels" "clang is not installed"; totals; }

# check NAME FP64 DEFINES...: later defines replace the general ones.
check()
{
    local name=$1 fp64=$2
    shift 2
    declare -A value=([DATA_TYPE]=6 [IMAGE_DOUBLE]=0 [FRAMES]=1 [INTERPOLATION]=1 [CLAMP]=0 [NORMALIZATION]=0 [GRID]=0
                      [APERTURE]=0 [WINDOW]=0 [PHASE]=0 [LISTED]=0 [KEEP_TRANSMIT]=0 [KEEP_RECEIVE]=0 [TRANSMIT_TIMES]=0
                      [RECEIVE_TIMES]=0 [TRANSMIT_WEIGHTS]=0 [RECEIVE_WEIGHTS]=0 [NVIDIA]=0)
    local defines=() define key includes=()
    for define in "$@"; do
        value[${define%%=*}]=${define#*=}
    done
    for key in "${!value[@]}"; do
        defines+=("-DDAS_$key=${value[$key]}")
    done
    if [ "$fp64" = 0 ]; then
        defines+=(-DDAS_KERNEL_FLOAT_FLOAT=1)
        includes+=(-include src/opencl/opencl_real.cl)
    fi
    includes+=(-include src/kernel.h)
    local last=src/opencl/opencl_kernels.cl
    if [ -n "${value[LANES]:-}" ]; then
        includes+=(-include "$last")
        last=src/opencl/opencl_block.cl
    fi
    if [ -n "${value[FAST]:-}" ]; then
        includes+=(-include "$last")
        last=src/opencl/opencl_fast.cl
    fi
    if [ -n "${value[TILE_PTX]:-}" ]; then
        defines+=(--target=nvptx64-unknown-unknown -D__NV_CL_C_VERSION=120 -Dasm=__asm__)
    fi
    expect "OpenCL kernels, fp64 $fp64, $name" clang -x cl -cl-std=CL1.2 -Wall -Werror -fsyntax-only \
        -Xclang -finclude-default-header "-DDAS_FP64=$fp64" "${defines[@]}" "${includes[@]}" "$last"
}

for fp64 in 0 1; do
    for type in 1 2 3 4 5 6 7 8 9 10; do
        check "data type $type" $fp64 DATA_TYPE=$type IMAGE_DOUBLE=$((type % 2)) FRAMES=4
    done
    for interpolation in 0 1 2 3 4; do
        check "interpolation $interpolation" $fp64 INTERPOLATION=$interpolation CLAMP=$((interpolation % 2)) DATA_TYPE=10 PHASE=1
    done
    for window in 0 1 2 3 4; do
        check "window $window" $fp64 APERTURE=1 WINDOW=$window LISTED=1
    done
    for grid in 0 1 2; do
        check "grid and normalisation $grid" $fp64 GRID=$grid NORMALIZATION=$grid
    done
    for keep in 00 01 10 11; do
        for listed in 0 1; do
            check "kept $keep, listed $listed" $fp64 KEEP_TRANSMIT=${keep:0:1} KEEP_RECEIVE=${keep:1:1} LISTED=$listed FRAMES=2
        done
    done
    for interpolation in 0 1; do
        check "tile with aperture, interpolation $interpolation" $fp64 FAST=1 INTERPOLATION=$interpolation FOLDED=0 WEIGHTED=0 \
            WINDOW_LEAD=112 TILE_THREADS=256 TILE_ROWS=16 TILE_WINDOW=108 TILE_POINTS=2 TILE_CONSTANT=0 TILE_LINE=0 \
            APERTURE=1 WINDOW=$((3 * interpolation)) BLOCK_ROWS=0 LANES=1
        [ "$fp64" = 0 ] || check "patch with aperture, interpolation $interpolation" $fp64 FAST=2 \
            INTERPOLATION=$interpolation FOLDED=0 WEIGHTED=0 WINDOW_LEAD=32 PATCH_SHARED=$interpolation PATCH_COUNT=4 PATCH_0=4 \
            PATCH_1=1 PATCH_2=4 APERTURE=1 WINDOW=$((1 + interpolation)) BLOCK_ROWS=0 LANES=16
    done
    for lanes in 1 $((1 + 15 * fp64)); do
        for interpolation in 0 1 2 3; do
            check "blocks of $lanes points, interpolation and window $interpolation" $fp64 INTERPOLATION=$interpolation APERTURE=1 \
                WINDOW=$interpolation DATA_TYPE=$((6 + 4 * (interpolation % 2))) PHASE=$((interpolation % 2)) FRAMES=2 BLOCK_ROWS=4 LANES=$lanes
        done
    done
    check "tables" $fp64 TRANSMIT_TIMES=1 RECEIVE_TIMES=1 TRANSMIT_WEIGHTS=1 RECEIVE_WEIGHTS=1 LISTED=1 DATA_TYPE=8
    for interpolation in 0 1; do
        for folded in 0 1; do
            for threads in 256 512; do
                check "tile of $threads, interpolation $interpolation, folded $folded" $fp64 FAST=1 INTERPOLATION=$interpolation \
                    FOLDED=$folded WEIGHTED=$folded WINDOW_LEAD=112 TILE_THREADS=$threads TILE_ROWS=16 TILE_WINDOW=108 TILE_POINTS=2 TILE_CONSTANT=$folded TILE_LINE=$folded
            done
            check "tile with PTX, interpolation $interpolation, folded $folded" $fp64 FAST=1 INTERPOLATION=$interpolation \
                FOLDED=$folded WEIGHTED=$folded WINDOW_LEAD=112 TILE_THREADS=256 TILE_ROWS=32 TILE_WINDOW=84 TILE_POINTS=2 \
                TILE_CONSTANT=$folded TILE_LINE=$folded NVIDIA=$((8 + folded)) TILE_PTX=1
            for shared in 0 1; do
                check "patch, interpolation $interpolation, folded $folded, shared $shared" $fp64 FAST=2 \
                    INTERPOLATION=$interpolation FOLDED=$folded WEIGHTED=0 WINDOW_LEAD=32 PATCH_SHARED=$shared PATCH_COUNT=$((4 - 3 * shared)) PATCH_0=4 \
                    PATCH_1=1 PATCH_2=4 DATA_TYPE=3
            done
        done
    done
done
check "precision double" 1 KERNEL_DOUBLE=1 DATA_TYPE=7 IMAGE_DOUBLE=1 APERTURE=1 WINDOW=3
check "precision double, complex" 1 KERNEL_DOUBLE=1 DATA_TYPE=10 IMAGE_DOUBLE=1 PHASE=1 INTERPOLATION=4
totals
