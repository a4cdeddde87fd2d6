/* All device code. The host finds the kernels by name. */
#include "cuda_params.h"
#include "das/das.h"

__device__ static float half_to_float(unsigned short bits)
{
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
}

/* Square root of x in 1e-30 .. 1e30 to 1e-12: an estimate in float from the upper half, and one Newton step. Exponents
 * are moved by hand, because conversions between double and float are slow. */
__device__ static __forceinline__ double root(double x)
{
    float y;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(__int_as_float((__double2hiint(x) << 3) + 0x40000000)));
    const unsigned bits = __float_as_uint(y);
    const double r = __hiloint2double((int)((bits >> 3) + 0x38000000u), (int)(bits << 29));
    const double g = x * r;
    return __fma_rn(__fma_rn(-g, g, x), 0.5 * r, g);
}

/* The same for x from 0; beyond 1e30 what is beyond every record. */
__device__ static __forceinline__ double root_of_any(double x)
{
    return x < 1e30 ? root(x + 1e-30) : 1e15;
}

/* exp(j 2 pi turns) for turns up to some tens. */
__device__ static __forceinline__ float2 turn_by(float turns)
{
    const float t = (turns - ((turns + DAS_CUDA_MAGIC) - DAS_CUDA_MAGIC)) * 6.28318530717958647692f;
    float2 r;
    asm("cos.approx.ftz.f32 %0, %1;" : "=f"(r.x) : "f"(t));
    asm("sin.approx.ftz.f32 %0, %1;" : "=f"(r.y) : "f"(t));
    return r;
}

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

#define GENERIC_KERNEL(name, ...) \
    KERNEL(DAS_CUDA_GENERIC_THREADS) name(const __grid_constant__ das_cuda_params q) { __VA_ARGS__(q); }
GENERIC_KERNEL(das_generic, das_float::generic_any<1, DAS_KERNEL_TAPS>)
GENERIC_KERNEL(das_generic_linear, das_float::generic_any<1, 2>)
GENERIC_KERNEL(das_generic_frames, das_float::generic_any<8, DAS_KERNEL_TAPS>)
GENERIC_KERNEL(das_generic_frames_linear, das_float::generic_any<8, 2>)
GENERIC_KERNEL(das_generic_double, das_double::generic_any<1, DAS_KERNEL_TAPS>)

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

#include "cuda_frames.cuh"

/* At least so many blocks a multiprocessor: what registers there are. */
#define FRAMES_KERNEL(name, blocks, ...)                                            \
    extern "C" __global__ void __launch_bounds__(DAS_CUDA_FRAMES_THREADS, blocks)   \
        name(const __grid_constant__ das_cuda_frames q)                             \
    {                                                                               \
        das_frames::__VA_ARGS__(q);                                                 \
    }
FRAMES_KERNEL(das_pack_frames, 4, pack)
FRAMES_KERNEL(das_frames_nearest, 3, sum_frames<0, 1, 1>)
FRAMES_KERNEL(das_frames_linear, 3, sum_frames<1, 1, 1>)
FRAMES_KERNEL(das_frames_any, 3, sum_frames<2, 1, 1>)
FRAMES_KERNEL(das_frames_nearest_wide, 2, sum_frames<0, 1, 4>)
FRAMES_KERNEL(das_frames_linear_wide, 2, sum_frames<1, 1, 4>)
FRAMES_KERNEL(das_frames_any_wide, 2, sum_frames<2, 1, 4>)
FRAMES_KERNEL(das_frames_nearest_iq, 3, sum_frames<0, 2, 2>)
FRAMES_KERNEL(das_frames_linear_iq, 3, sum_frames<1, 2, 2>)
FRAMES_KERNEL(das_frames_any_iq, 3, sum_frames<2, 2, 2>)
FRAMES_KERNEL(das_frames_nearest_iq_wide, 2, sum_frames<0, 2, 8>)
FRAMES_KERNEL(das_frames_linear_iq_wide, 2, sum_frames<1, 2, 8>)
FRAMES_KERNEL(das_frames_any_iq_wide, 2, sum_frames<2, 2, 8>)
