/* All device code. The host finds the kernels by name. */
#include "cuda_params.h"
#include "das/das.h"

__device__ static float half_to_float(unsigned short bits)
{
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
}

namespace das_float {
#include "kernel.h"

#include "cuda_generic.cuh"
} // namespace das_float

#undef DAS_KERNEL_H
#undef DAS_VALUE
#undef DAS_VALUE_SIN
#undef DAS_VALUE_COS
#define DAS_KERNEL_DOUBLE

namespace das_double {
#include "kernel.h"

#include "cuda_generic.cuh"
} // namespace das_double

#define KERNEL(threads) extern "C" __global__ void __launch_bounds__(threads)

KERNEL(128) das_generic_float(const __grid_constant__ das_cuda_params q) { das_float::generic_any<1>(q); }
KERNEL(128) das_generic_float_frames(const __grid_constant__ das_cuda_params q) { das_float::generic_any<8>(q); }
KERNEL(128) das_generic_double(const __grid_constant__ das_cuda_params q) { das_double::generic_any<1>(q); }

#include "cuda_tile.cuh"

KERNEL(256) das_pack(const __grid_constant__ das_cuda_tile q) { das_tiles::pack(q); }

#define TILE_KERNEL(name, ...)                                                  \
    KERNEL(DAS_CUDA_TILE_THREADS) name(const __grid_constant__ das_cuda_tile q) \
    {                                                                           \
        extern __shared__ __align__(16) char shared[];                          \
        das_tiles::__VA_ARGS__(q, shared);                                      \
    }
TILE_KERNEL(das_tile_nearest, tile_real<0, false>)
TILE_KERNEL(das_tile_linear, tile_real<1, false>)
TILE_KERNEL(das_tile_cubic, tile_real<2, false>)
TILE_KERNEL(das_tile_nearest_line, tile_real<0, true>)
TILE_KERNEL(das_tile_linear_line, tile_real<1, true>)
TILE_KERNEL(das_tile_cubic_line, tile_real<2, true>)
TILE_KERNEL(das_tile_nearest_iq, tile_iq<0, false>)
TILE_KERNEL(das_tile_nearest_planes, tile_iq<0, true>)
TILE_KERNEL(das_tile_linear_iq, tile_iq<1, false>)
TILE_KERNEL(das_tile_linear_planes, tile_iq<1, true>)
TILE_KERNEL(das_tile_cubic_iq, tile_iq<2, false>)
TILE_KERNEL(das_tile_cubic_planes, tile_iq<2, true>)
TILE_KERNEL(das_frames_nearest, tile_frames<0, false>)
TILE_KERNEL(das_frames_linear, tile_frames<1, false>)
TILE_KERNEL(das_frames_cubic, tile_frames<2, false>)
TILE_KERNEL(das_frames_nearest_iq, tile_frames<0, true>)
TILE_KERNEL(das_frames_linear_iq, tile_frames<1, true>)
TILE_KERNEL(das_frames_cubic_iq, tile_frames<2, true>)
