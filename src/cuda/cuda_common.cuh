/* Arithmetic that the paths share: fast, and exact enough for sums in float. Lengths in samples are metres times
 * samples_per_m. */

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

/* Squared distance, never quite 0 (root() needs that), and the part of it across z. */
__device__ static double square_distance(double dx, double dy, double dz)
{
    return __fma_rn(dx, dx, __fma_rn(dy, dy, __fma_rn(dz, dz, 1e-24)));
}

/* das_window_weight() without the slow path of cosf, which costs registers; its argument is within 0..pi. */
__device__ static float half_cosine(float a, float q)
{
    float cosine;
    asm("cos.approx.f32 %0, %1;" : "=f"(cosine) : "f"(3.14159265358979323846f * q));
    return __fmaf_rn(1.0f - a, cosine, a);
}

__device__ static float window_weight(const das_cuda_params &c, float q)
{
    if (c.window == DAS_WINDOW_HANN)
        return half_cosine(0.5f, q);
    if (c.window == DAS_WINDOW_HAMMING)
        return half_cosine(0.54f, q);
    if (c.window == DAS_WINDOW_TUKEY) {
        const float flat = 1.0f - (float)c.window_parameter;
        return q <= flat ? 1.0f : half_cosine(0.5f, (q - flat) / (float)c.window_parameter);
    }
    const float *table = (const float *)c.window_table;
    const float at = q * (float)(c.window_count - 1);
    const int i = min((int)at, (int)c.window_count - 2);
    return __fmaf_rn(at - (float)i, table[i + 1] - table[i], table[i]);
}

/* Aperture weight of an element for a point: distances along and across its normal, squared distance. */
__device__ static __forceinline__ float aperture_weight(const das_cuda_params &c, double h, double square)
{
    const double l2 = __fma_rn(-h, h, square), half = h * c.inverse_2f, limit = half + 1e-3;
    if (!(h > 1e-3) || l2 > limit * limit)
        return 0.0f;
    if (c.window == DAS_WINDOW_RECT)
        return 1.0f;
    return window_weight(c, fminf(sqrtf(fmaxf((float)l2, 0.0f)) / (float)half, 1.0f));
}
