/* The arithmetic of delay-and-sum: pure functions of values, the one definition of
 * it for all backends, in the common subset of C99, CUDA C and OpenCL C 1.2.
 * Formulas are those of docs/conventions.md.
 *
 * Before including:
 *   DAS_KERNEL_DOUBLE       das_value, the type of weights and sums, is double; else float
 *   DAS_REAL_SQRT           the square root of a double, if not sqrt
 *   DAS_KERNEL_FLOAT_FLOAT  das_real, the type of positions and delays, is a pair of floats, for
 *                           devices without double; its type and operations (those listed under
 *                           "Real numbers") are then defined before this file is included
 *
 * Delays are in samples throughout: seconds times the sampling frequency. A delay
 * of a transmit contains (d_t - t0_t) fs, one of a receive element d_r fs, so
 * that their sum is the sample position s. Compile with fp contraction off. */
#ifndef DAS_KERNEL_H
#define DAS_KERNEL_H

/* ---------------------------------------------------------------------------
 * Languages
 * ------------------------------------------------------------------------- */

#if defined(__OPENCL_VERSION__) || defined(__OPENCL_C_VERSION__)
#define DAS_KERNEL_FUNCTION static inline
#define DAS_KERNEL_GLOBAL __global
typedef long das_index;
#elif defined(__CUDACC__)
#define DAS_KERNEL_FUNCTION static __device__ __forceinline__
#define DAS_KERNEL_GLOBAL
typedef long long das_index;
#else
#include <math.h>
#include <stdint.h>
#define DAS_KERNEL_FUNCTION static inline
#define DAS_KERNEL_GLOBAL
typedef int64_t das_index;
#endif

#ifdef DAS_KERNEL_DOUBLE
typedef double das_value;
#define DAS_VALUE(literal) literal
#else
typedef float das_value;
#define DAS_VALUE(literal) literal##f
#endif

/* sin and cos of a das_value, without a double in sight when it is a float. */
#if defined(__OPENCL_VERSION__) || defined(__OPENCL_C_VERSION__) || defined(DAS_KERNEL_DOUBLE)
#define DAS_VALUE_SIN(x) sin(x)
#define DAS_VALUE_COS(x) cos(x)
#else
#define DAS_VALUE_SIN(x) sinf(x)
#define DAS_VALUE_COS(x) cosf(x)
#endif

#define DAS_VALUE_PI DAS_VALUE(3.14159265358979323846)

/* ---------------------------------------------------------------------------
 * Real numbers: positions and delays
 * ------------------------------------------------------------------------- */

#ifndef DAS_KERNEL_FLOAT_FLOAT
typedef double das_real;
#ifndef DAS_REAL_SQRT
#define DAS_REAL_SQRT sqrt
#endif
/* A literal that float holds well enough: a tolerance or a small integer. */
#define DAS_REAL(literal) literal
DAS_KERNEL_FUNCTION das_real das_real_add(das_real a, das_real b) { return a + b; }
DAS_KERNEL_FUNCTION das_real das_real_sub(das_real a, das_real b) { return a - b; }
DAS_KERNEL_FUNCTION das_real das_real_mul(das_real a, das_real b) { return a * b; }
DAS_KERNEL_FUNCTION das_real das_real_negate(das_real a) { return -a; }
DAS_KERNEL_FUNCTION das_real das_real_sqrt(das_real a) { return DAS_REAL_SQRT(a); }
#if defined(__x86_64__) && !defined(__SSE4_1__) && !defined(__CUDACC__) && !defined(__OPENCL_VERSION__)
/* Without SSE4.1 rint() and floor() are calls: this is in the inner loop of plain C. 1.5 2^52 leaves no fraction. */
DAS_KERNEL_FUNCTION das_real das_real_rint(das_real a)
{
    return a > -4503599627370496.0 && a < 4503599627370496.0 ? (a + 6755399441055744.0) - 6755399441055744.0 : a;
}
DAS_KERNEL_FUNCTION das_real das_real_floor(das_real a)
{
    das_real whole = das_real_rint(a);
    return whole > a ? whole - 1.0 : whole;
}
#else
DAS_KERNEL_FUNCTION das_real das_real_floor(das_real a) { return floor(a); }
DAS_KERNEL_FUNCTION das_real das_real_rint(das_real a) { return rint(a); } /* half to even */
#endif
/* False when an operand is NaN. */
DAS_KERNEL_FUNCTION int das_real_less(das_real a, das_real b) { return a < b; }
DAS_KERNEL_FUNCTION int das_real_less_equal(das_real a, das_real b) { return a <= b; }
DAS_KERNEL_FUNCTION das_value das_real_value(das_real a) { return (das_value)a; }
DAS_KERNEL_FUNCTION das_index das_real_index(das_real a) { return (das_index)a; } /* of a whole number */
#endif

typedef struct das_vector {
    das_real x, y, z;
} das_vector;

DAS_KERNEL_FUNCTION das_vector das_vector_sub(das_vector a, das_vector b)
{
    das_vector d;
    d.x = das_real_sub(a.x, b.x);
    d.y = das_real_sub(a.y, b.y);
    d.z = das_real_sub(a.z, b.z);
    return d;
}

DAS_KERNEL_FUNCTION das_real das_vector_dot(das_vector a, das_vector b)
{
    return das_real_add(das_real_add(das_real_mul(a.x, b.x), das_real_mul(a.y, b.y)), das_real_mul(a.z, b.z));
}

DAS_KERNEL_FUNCTION das_real das_vector_length(das_vector a) { return das_real_sqrt(das_vector_dot(a, a)); }

/* ---------------------------------------------------------------------------
 * Delays
 * ------------------------------------------------------------------------- */

/* Shapes of a transmitted wave. A diverging wave is a point, its |o - q| being part
 * of the transmit's constant. */
#define DAS_WAVE_POINT 0   /* |p - q| */
#define DAS_WAVE_PLANE 1   /* (p - o).n */
#define DAS_WAVE_FOCUSED 2 /* sgn |p - F| */
#define DAS_WAVE_NONE 3    /* 0 */

/* The part of a transmit's path that depends on the point, in metres. `point` is the
 * source, origin or focus; `direction` n or (F - o) / |F - o|; `tolerance_m` 1e-3 c / fs,
 * by which the focal plane counts as beyond the focus. */
DAS_KERNEL_FUNCTION das_real das_transmit_path(int wave, das_vector p, das_vector point, das_vector direction,
                                               das_real tolerance_m)
{
    das_vector d = das_vector_sub(p, point);
    if (wave == DAS_WAVE_POINT)
        return das_vector_length(d);
    if (wave == DAS_WAVE_PLANE)
        return das_vector_dot(d, direction);
    if (wave == DAS_WAVE_FOCUSED) {
        das_real distance = das_vector_length(d);
        return das_real_less_equal(das_real_negate(tolerance_m), das_vector_dot(d, direction)) ? distance
                                                                                               : das_real_negate(distance);
    }
    return DAS_REAL(0.0);
}

/* Samples from the transmit's time zero, shifted by its delay and start time:
 * shift = (constant_s + delay_s - start_time_s) fs. */
DAS_KERNEL_FUNCTION das_real das_transmit_delay(int wave, das_vector p, das_vector point, das_vector direction,
                                                das_real tolerance_m, das_real samples_per_m, das_real shift)
{
    return das_real_add(das_real_mul(das_transmit_path(wave, p, point, direction, tolerance_m), samples_per_m), shift);
}

/* Samples from the point back to the element; shift = delay_s fs. */
DAS_KERNEL_FUNCTION das_real das_receive_delay(das_vector p, das_vector element, das_real samples_per_m, das_real shift)
{
    return das_real_add(das_real_mul(das_vector_length(das_vector_sub(p, element)), samples_per_m), shift);
}

/* ---------------------------------------------------------------------------
 * Aperture and apodization
 * ------------------------------------------------------------------------- */

/* 1 - q for the window argument q in 0..1, or -1 where the element takes no part. inverse_2f = 1 / (2 F),
 * tolerance_m = 1e-3 c / fs. F > 0: without an f-number do not ask. 1 - q rather than q, so that weights near the
 * edge of the aperture, where windows go to 0, keep their relative accuracy in float. */
DAS_KERNEL_FUNCTION das_value das_aperture(das_vector p, das_vector element, das_vector normal, das_real inverse_2f,
                                           das_real tolerance_m)
{
    das_vector d = das_vector_sub(p, element), across;
    das_real h = das_vector_dot(d, normal), l, half_width;
    das_value margin;
    across.x = das_real_sub(d.x, das_real_mul(h, normal.x));
    across.y = das_real_sub(d.y, das_real_mul(h, normal.y));
    across.z = das_real_sub(d.z, das_real_mul(h, normal.z));
    l = das_vector_length(across);
    half_width = das_real_mul(h, inverse_2f);
    if (!das_real_less(tolerance_m, h) || !das_real_less_equal(l, das_real_add(half_width, tolerance_m)))
        return DAS_VALUE(-1.0);
    margin = das_real_value(das_real_sub(half_width, l)) / das_real_value(half_width);
    return margin > DAS_VALUE(0.0) ? margin : DAS_VALUE(0.0);
}

/* The values of das_window. */
#define DAS_KERNEL_WINDOW_RECT 0
#define DAS_KERNEL_WINDOW_HANN 1
#define DAS_KERNEL_WINDOW_HAMMING 2
#define DAS_KERNEL_WINDOW_TUKEY 3
#define DAS_KERNEL_WINDOW_TABLE 4

/* (1 + cos(pi q)) / 2 at 1 - q = x. */
DAS_KERNEL_FUNCTION das_value das_raised_cosine(das_value x)
{
    das_value s = DAS_VALUE_SIN(DAS_VALUE(0.5) * DAS_VALUE_PI * x);
    return s * s;
}

/* Weight for what das_aperture() gave, if not -1. `table` has table_count >= 2 values over q in 0..1; only for the
 * table window. */
DAS_KERNEL_FUNCTION das_value das_window_weight(int window, das_value margin, das_value parameter,
                                                DAS_KERNEL_GLOBAL const das_value *table, das_index table_count)
{
    if (window == DAS_KERNEL_WINDOW_HANN)
        return das_raised_cosine(margin);
    if (window == DAS_KERNEL_WINDOW_HAMMING)
        return DAS_VALUE(0.08) + DAS_VALUE(0.92) * das_raised_cosine(margin);
    if (window == DAS_KERNEL_WINDOW_TUKEY)
        return margin >= parameter ? DAS_VALUE(1.0) : das_raised_cosine(margin / parameter);
    if (window == DAS_KERNEL_WINDOW_TABLE) {
        das_value at = (DAS_VALUE(1.0) - margin) * (das_value)(table_count - 1), t;
        das_index i = (das_index)at;
        if (i > table_count - 2)
            i = table_count - 2;
        t = at - (das_value)i;
        return table[i] + t * (table[i + 1] - table[i]);
    }
    return DAS_VALUE(1.0);
}

/* ---------------------------------------------------------------------------
 * Sample position and interpolation
 * ------------------------------------------------------------------------- */

/* The values of das_interpolation. */
#define DAS_KERNEL_NEAREST 0
#define DAS_KERNEL_LINEAR 1
#define DAS_KERNEL_QUADRATIC 2
#define DAS_KERNEL_CUBIC 3
#define DAS_KERNEL_LANCZOS 4

#define DAS_KERNEL_TAPS 6 /* the most there are */

/* Positions up to this far outside 0..N-1 count as the edge. */
#define DAS_EDGE_TOLERANCE DAS_REAL(1e-3)

typedef struct das_position {
    das_index sample;   /* floor(s); nearest and quadratic: round half to even */
    das_value fraction; /* s - sample; 0 for nearest */
    int inside;         /* 0: outside the record or no path; contributes nothing */
} das_position;

/* Where to read a record of samples 0..last at position s. clamp: das_outside. `last` is N - 1. */
DAS_KERNEL_FUNCTION das_position das_sample_position(int interpolation, das_real s, das_real last, int clamp)
{
    das_position at;
    das_real whole;
    at.sample = 0;
    at.fraction = DAS_VALUE(0.0);
    at.inside = 0;
    if (!das_real_less_equal(s, s)) /* NaN: no path */
        return at;
    if (interpolation == DAS_KERNEL_NEAREST && !clamp) {
        whole = das_real_rint(s);
        if (!das_real_less_equal(DAS_REAL(0.0), whole) || !das_real_less_equal(whole, last))
            return at;
    } else {
        if (!clamp && (!das_real_less_equal(das_real_negate(DAS_EDGE_TOLERANCE), s) ||
                       !das_real_less_equal(s, das_real_add(last, DAS_EDGE_TOLERANCE))))
            return at;
        if (das_real_less(s, DAS_REAL(0.0)))
            s = DAS_REAL(0.0);
        if (das_real_less(last, s))
            s = last;
        if (interpolation == DAS_KERNEL_NEAREST || interpolation == DAS_KERNEL_QUADRATIC)
            whole = das_real_rint(s);
        else
            whole = das_real_floor(s);
        if (interpolation != DAS_KERNEL_NEAREST)
            at.fraction = das_real_value(das_real_sub(s, whole));
    }
    at.sample = das_real_index(whole);
    at.inside = 1;
    return at;
}

/* Taps are samples sample + first .. sample + first + count - 1; those outside the record are 0. */
DAS_KERNEL_FUNCTION int das_tap_count(int interpolation)
{
    return interpolation == DAS_KERNEL_NEAREST     ? 1
           : interpolation == DAS_KERNEL_LINEAR    ? 2
           : interpolation == DAS_KERNEL_QUADRATIC ? 3
           : interpolation == DAS_KERNEL_CUBIC     ? 4
                                                   : 6;
}

DAS_KERNEL_FUNCTION int das_tap_first(int interpolation)
{
    return interpolation <= DAS_KERNEL_LINEAR ? 0 : interpolation == DAS_KERNEL_LANCZOS ? -2 : -1;
}

DAS_KERNEL_FUNCTION das_value das_sinc(das_value x)
{
    das_value a = DAS_VALUE_PI * x;
    return x == DAS_VALUE(0.0) ? DAS_VALUE(1.0) : DAS_VALUE_SIN(a) / a;
}

/* The weights of the taps for a fraction t in 0..1 (quadratic: -1/2..1/2). */
DAS_KERNEL_FUNCTION void das_tap_weights(int interpolation, das_value t, das_value *weight)
{
    if (interpolation == DAS_KERNEL_NEAREST) {
        weight[0] = DAS_VALUE(1.0);
    } else if (interpolation == DAS_KERNEL_LINEAR) {
        weight[0] = DAS_VALUE(1.0) - t;
        weight[1] = t;
    } else if (interpolation == DAS_KERNEL_QUADRATIC) {
        weight[0] = DAS_VALUE(0.5) * t * (t - DAS_VALUE(1.0));
        weight[1] = DAS_VALUE(1.0) - t * t;
        weight[2] = DAS_VALUE(0.5) * t * (t + DAS_VALUE(1.0));
    } else if (interpolation == DAS_KERNEL_CUBIC) { /* Catmull-Rom */
        weight[0] = t * (DAS_VALUE(-0.5) + t * (DAS_VALUE(1.0) - DAS_VALUE(0.5) * t));
        weight[1] = DAS_VALUE(1.0) + t * t * (DAS_VALUE(1.5) * t - DAS_VALUE(2.5));
        weight[2] = t * (DAS_VALUE(0.5) + t * (DAS_VALUE(2.0) - DAS_VALUE(1.5) * t));
        weight[3] = t * t * (DAS_VALUE(0.5) * t - DAS_VALUE(0.5));
    } else { /* Lanczos, a = 3 */
        das_value sum = DAS_VALUE(0.0);
        int k;
        for (k = 0; k < 6; k++) {
            das_value x = t - (das_value)(k - 2);
            weight[k] = das_sinc(x) * das_sinc(x / DAS_VALUE(3.0));
            sum += weight[k];
        }
        for (k = 0; k < 6; k++)
            weight[k] /= sum;
    }
}

/* ---------------------------------------------------------------------------
 * IQ phase
 * ------------------------------------------------------------------------- */

typedef struct das_rotation {
    das_value re, im;
} das_rotation;

/* exp(+j 2 pi f_d tau) from the unclamped sample position s: f_d tau = s turns_per_sample + shift
 * turns, turns_per_sample = f_d / fs, shift = f_d t0_t (less whole turns), or 0 when the phase refers
 * to sample 0. Whole turns go before the value loses digits. */
DAS_KERNEL_FUNCTION das_rotation das_phase_rotation(das_real s, das_real turns_per_sample, das_real shift)
{
    das_rotation phase;
    das_real turns = das_real_add(das_real_mul(s, turns_per_sample), shift);
    das_value angle = DAS_VALUE(2.0) * DAS_VALUE_PI * das_real_value(das_real_sub(turns, das_real_rint(turns)));
    phase.re = DAS_VALUE_COS(angle);
    phase.im = DAS_VALUE_SIN(angle);
    return phase;
}

#endif
