/* All device code. The host finds the kernels by name. */
#include "cuda_params.h"
#include "das/das.h"

#include "cuda_common.cuh"

#define DAS_REAL_SQRT root_of_any
#define PHASE_ROTATION fast_rotation

namespace das_float {
#include "kernel.h"

__device__ static __forceinline__ das_rotation fast_rotation(double s, double turns_per_sample, double shift)
{
    const double turns = s * turns_per_sample + shift;
    const float2 turn = turn_by((float)(turns - rint(turns)));
    das_rotation r;
    r.re = turn.x;
    r.im = turn.y;
    return r;
}

#include "cuda_generic.cuh"
} // namespace das_float

#undef DAS_KERNEL_H
#undef DAS_VALUE
#undef DAS_VALUE_SIN
#undef DAS_VALUE_COS
#undef DAS_REAL_SQRT
#undef PHASE_ROTATION
#define DAS_KERNEL_DOUBLE
#define PHASE_ROTATION das_phase_rotation

namespace das_double {
#include "kernel.h"

#include "cuda_generic.cuh"
} // namespace das_double

#define KERNEL(threads) extern "C" __global__ void __launch_bounds__(threads)

#define GENERIC_KERNEL(name, ...)                                                                                              \
    KERNEL(DAS_CUDA_GENERIC_THREADS) name(const __grid_constant__ das_cuda_params q)                                           \
    {                                                                                                                          \
        __VA_ARGS__(q);                                                                                                        \
    }
GENERIC_KERNEL(das_generic, das_float::generic_any<1, DAS_KERNEL_TAPS>)
GENERIC_KERNEL(das_generic_linear, das_float::generic_any<1, 2>)
GENERIC_KERNEL(das_generic_frames, das_float::generic_any<8, DAS_KERNEL_TAPS>)
GENERIC_KERNEL(das_generic_frames_linear, das_float::generic_any<8, 2>)
GENERIC_KERNEL(das_generic_double, das_double::generic_any<1, DAS_KERNEL_TAPS>)

#include "cuda_few.cuh"

#define FEW_KERNEL(name, ...)                                                                                                  \
    KERNEL(DAS_CUDA_FEW_THREADS) name(const __grid_constant__ das_cuda_params q)                                               \
    {                                                                                                                          \
        if (q.interpolation == DAS_KERNEL_LINEAR)                                                                              \
            das_few::sum_few<__VA_ARGS__, true>(q);                                                                            \
        else                                                                                                                   \
            das_few::sum_few<__VA_ARGS__, false>(q);                                                                           \
    }
FEW_KERNEL(das_few_real, 1, 1)
FEW_KERNEL(das_few_iq, 2, 1)
FEW_KERNEL(das_few_frames, 1, 4)
FEW_KERNEL(das_few_frames_iq, 2, 4)

#include "cuda_tile.cuh"

KERNEL(256) das_pack(const __grid_constant__ das_cuda_tile q)
{
    das_tiles::pack(q);
}

#define TILE_KERNEL(name, ...)                                                                                                 \
    KERNEL(DAS_CUDA_TILE_THREADS) name(const __grid_constant__ das_cuda_tile q)                                                \
    {                                                                                                                          \
        extern __shared__ __align__(16) char shared[];                                                                         \
        das_tiles::__VA_ARGS__(q, shared);                                                                                     \
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

#include "cuda_frames.cuh"

/* At least so many blocks a multiprocessor: what registers there are. */
#define FRAMES_KERNEL(name, blocks, ...)                                                                                       \
    extern "C" __global__ void __launch_bounds__(DAS_CUDA_FRAMES_THREADS, blocks)                                              \
        name(const __grid_constant__ das_cuda_frames q)                                                                        \
    {                                                                                                                          \
        __VA_ARGS__(q);                                                                                                        \
    }
FRAMES_KERNEL(das_pack_frames, 4, das_frames::pack)
FRAMES_KERNEL(das_frames_nearest, 4, das_frames::sum_frames<0, 1, 4, 4>)
FRAMES_KERNEL(das_frames_linear, 4, das_frames::sum_frames<1, 1, 4, 4>)
FRAMES_KERNEL(das_frames_any, 4, das_frames::sum_frames<2, 1, 4, 4>)
FRAMES_KERNEL(das_frames_nearest_wide, 2, das_frames::sum_frames<0, 1, 4, 1>)
FRAMES_KERNEL(das_frames_linear_wide, 2, das_frames::sum_frames<1, 1, 4, 1>)
FRAMES_KERNEL(das_frames_any_wide, 2, das_frames::sum_frames<2, 1, 4, 1>)
FRAMES_KERNEL(das_frames_nearest_iq, 3, das_frames::sum_frames<0, 2, 4, 2>)
FRAMES_KERNEL(das_frames_linear_iq, 3, das_frames::sum_frames<1, 2, 4, 2>)
FRAMES_KERNEL(das_frames_any_iq, 3, das_frames::sum_frames<2, 2, 4, 2>)
FRAMES_KERNEL(das_frames_nearest_iq_wide, 2, das_frames::sum_frames<0, 2, 8, 1>)
FRAMES_KERNEL(das_frames_linear_iq_wide, 2, das_frames::sum_frames<1, 2, 8, 1>)
FRAMES_KERNEL(das_frames_any_iq_wide, 2, das_frames::sum_frames<2, 2, 8, 1>)

#include "cuda_tensor.cuh"

FRAMES_KERNEL(das_clear_peaks, 1, das_tensor::clear_peaks)
FRAMES_KERNEL(das_peaks, 4, das_tensor::peaks)
FRAMES_KERNEL(das_pack_tensor, 4, das_tensor::pack)
FRAMES_KERNEL(das_tensor_nearest, 2, das_tensor::sum_tensor<false, 1, 2, 4>)
FRAMES_KERNEL(das_tensor_linear, 2, das_tensor::sum_tensor<true, 1, 2, 4>)
FRAMES_KERNEL(das_tensor_nearest_wide, 2, das_tensor::sum_tensor<false, 1, 1, 16>)
FRAMES_KERNEL(das_tensor_linear_wide, 2, das_tensor::sum_tensor<true, 1, 1, 16>)
FRAMES_KERNEL(das_tensor_nearest_iq, 2, das_tensor::sum_tensor<false, 2, 2, 4>)
FRAMES_KERNEL(das_tensor_linear_iq, 2, das_tensor::sum_tensor<true, 2, 2, 4>)
FRAMES_KERNEL(das_tensor_nearest_iq_wide, 2, das_tensor::sum_tensor<false, 2, 1, 8>)
FRAMES_KERNEL(das_tensor_linear_iq_wide, 2, das_tensor::sum_tensor<true, 2, 1, 8>)
