/* das_real of kernel.h as an unevaluated sum of two floats, hi + lo with |lo| <= ulp(hi) / 2: some
 * 44 bits, for devices without double. Common subset of C99 and OpenCL C 1.2; fp contraction off.
 * Algorithms: Dekker, "A floating-point technique for extending the available precision", 1971;
 * Knuth, TAOCP vol. 2, 4.2.2. */
#ifndef DAS_OPENCL_REAL
#define DAS_OPENCL_REAL

#if defined(__OPENCL_VERSION__) || defined(__OPENCL_C_VERSION__)
#define DAS_FLOAT_FMA(a, b, c) fma(a, b, c)
#define DAS_FLOAT_SQRT(a) sqrt(a)
#define DAS_FLOAT_FLOOR(a) floor(a)
#define DAS_FLOAT_RINT(a) rint(a)
typedef long das_float_index;
#else
#include <math.h>
#include <stdint.h>
#define DAS_FLOAT_FMA(a, b, c) fmaf(a, b, c)
#define DAS_FLOAT_SQRT(a) sqrtf(a)
#define DAS_FLOAT_FLOOR(a) floorf(a)
#define DAS_FLOAT_RINT(a) rintf(a)
typedef int64_t das_float_index;
#endif

typedef struct das_real {
    float hi, lo;
} das_real;

#define DAS_REAL(literal) das_real_pair(literal##f, 0.0f)

static inline das_real das_real_pair(float hi, float lo)
{
    das_real r;
    r.hi = hi;
    r.lo = lo;
    return r;
}

/* hi + lo made a pair, exactly; |hi| >= |lo| or hi = 0. */
static inline das_real das_real_renormalize(float hi, float lo)
{
    float s = hi + lo;
    return das_real_pair(s, lo - (s - hi));
}

/* a + b exactly. */
static inline das_real das_real_two_sum(float a, float b)
{
    float s = a + b, t = s - a;
    return das_real_pair(s, (a - (s - t)) + (b - t));
}

static inline das_real das_real_add(das_real a, das_real b)
{
    das_real s = das_real_two_sum(a.hi, b.hi), t = das_real_two_sum(a.lo, b.lo);
    s = das_real_renormalize(s.hi, s.lo + t.hi);
    return das_real_renormalize(s.hi, s.lo + t.lo);
}

static inline das_real das_real_negate(das_real a) { return das_real_pair(-a.hi, -a.lo); }

static inline das_real das_real_sub(das_real a, das_real b) { return das_real_add(a, das_real_negate(b)); }

static inline das_real das_real_mul(das_real a, das_real b)
{
    float p = a.hi * b.hi, e = DAS_FLOAT_FMA(a.hi, b.hi, -p);
    return das_real_renormalize(p, DAS_FLOAT_FMA(a.hi, b.lo, DAS_FLOAT_FMA(a.lo, b.hi, e)));
}

/* One Newton step from the root of hi: twice its digits. */
static inline das_real das_real_sqrt(das_real a)
{
    float x, p;
    das_real d;
    if (!(a.hi > 0.0f))
        return das_real_pair(a.hi < 0.0f ? 0.0f : a.hi, 0.0f);
    x = DAS_FLOAT_SQRT(a.hi);
    p = x * x;
    d = das_real_sub(a, das_real_pair(p, DAS_FLOAT_FMA(x, x, -p)));
    return das_real_renormalize(x, d.hi / (2.0f * x));
}

static inline das_real das_real_floor(das_real a)
{
    float whole = DAS_FLOAT_FLOOR(a.hi);
    if (whole == a.hi)
        return das_real_renormalize(whole, DAS_FLOAT_FLOOR(a.lo));
    return das_real_pair(whole, 0.0f);
}

/* Half to even. */
static inline das_real das_real_rint(das_real a)
{
    float whole = DAS_FLOAT_FLOOR(a.hi), part = a.hi - whole;
    if (part == 0.0f) {
        /* hi is whole: lo decides. A tie of lo is between hi + floor(lo) and the next: take the even one. */
        float low = DAS_FLOAT_FLOOR(a.lo), rest = a.lo - low;
        float half_sum = 0.5f * (whole - 2.0f * DAS_FLOAT_FLOOR(0.5f * whole) + low);
        float odd = half_sum == DAS_FLOAT_FLOOR(half_sum) ? 0.0f : 1.0f;
        return das_real_renormalize(whole, rest > 0.5f ? low + 1.0f : rest < 0.5f ? low : low + odd);
    }
    if (part == 0.5f)
        return das_real_pair(a.lo > 0.0f ? whole + 1.0f : a.lo < 0.0f ? whole : DAS_FLOAT_RINT(a.hi), 0.0f);
    return das_real_pair(DAS_FLOAT_RINT(a.hi), 0.0f);
}

static inline int das_real_less(das_real a, das_real b) { return a.hi < b.hi || (a.hi == b.hi && a.lo < b.lo); }

static inline int das_real_less_equal(das_real a, das_real b) { return a.hi < b.hi || (a.hi == b.hi && a.lo <= b.lo); }

static inline float das_real_value(das_real a) { return a.hi + a.lo; }

/* Of a whole number. */
static inline das_float_index das_real_index(das_real a) { return (das_float_index)a.hi + (das_float_index)a.lo; }

#endif
