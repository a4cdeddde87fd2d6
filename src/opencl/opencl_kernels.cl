/* The kernels, compiled by the driver for each plan. In front of this text stand opencl_real.cl (on
 * devices without double) and kernel.h. Defined for the compilation, see opencl_plan.c:
 *
 *   DAS_FP64               1: the device has double
 *   DAS_DATA_TYPE          das_type of the data
 *   DAS_IMAGE_DOUBLE       1: an image of 64-bit parts
 *   DAS_FRAMES             frames summed side by side
 *   DAS_INTERPOLATION, DAS_CLAMP, DAS_NORMALIZATION, DAS_GRID, DAS_APERTURE, DAS_WINDOW, DAS_PHASE
 *   DAS_LISTED             1: pairs from a list; 0: all of them, weight 1
 *   DAS_KEEP_TRANSMIT, DAS_KEEP_RECEIVE
 *   DAS_TRANSMIT_TIMES, DAS_RECEIVE_TIMES, DAS_TRANSMIT_WEIGHTS, DAS_RECEIVE_WEIGHTS: tables per point */

/* ---------------------------------------------------------------------------
 * Numbers of the plan; the enumerations of opencl_plan.c
 * ------------------------------------------------------------------------- */

enum { REAL_SAMPLES_PER_M, REAL_TOLERANCE_M, REAL_INVERSE_2F, REAL_LAST, REAL_TURNS_PER_SAMPLE, REAL_OFFSET, REAL_WINDOW,
       REAL_ORIGIN, REAL_STEPS = REAL_ORIGIN + 3, REAL_COUNT = REAL_STEPS + 9 };

enum { LONG_COUNT_0, LONG_COUNT_1, LONG_COUNT_2, LONG_RECEIVES, LONG_TRANSMITS, LONG_LAST, LONG_FIRST, LONG_FRAME, LONG_TRANSMIT,
       LONG_RECEIVE, LONG_SAMPLE, LONG_IMAGE_FIRST, LONG_IMAGE_FRAME, LONG_IMAGE_TRANSMIT, LONG_IMAGE_RECEIVE, LONG_IMAGE_2,
       LONG_IMAGE_1, LONG_IMAGE_0, LONG_WINDOW_COUNT, LONG_COUNT };

enum { ELEMENT_POSITION = 0, ELEMENT_NORMAL = 3, ELEMENT_CONSTANT = 6, ELEMENT_REALS = 8 };
enum { WAVE_POINT = 0, WAVE_DIRECTION = 3, WAVE_CONSTANT = 6, WAVE_PHASE = 7, WAVE_REALS = 8 };

/* ---------------------------------------------------------------------------
 * Types of data and image
 * ------------------------------------------------------------------------- */

#define DAS_COMPLEX (DAS_DATA_TYPE >= 8)
#define DAS_PARTS (DAS_COMPLEX ? 2 : 1)

/* das_part is one part of an element as it lies in memory. */
#if DAS_DATA_TYPE == 1
typedef char das_part;
#elif DAS_DATA_TYPE == 2
typedef uchar das_part;
#elif DAS_DATA_TYPE == 3 || DAS_DATA_TYPE == 8
typedef short das_part;
#elif DAS_DATA_TYPE == 4
typedef ushort das_part;
#elif DAS_DATA_TYPE == 5 || DAS_DATA_TYPE == 9
typedef half das_part;
#elif DAS_DATA_TYPE == 7
typedef ulong das_part;
#else
typedef float das_part;
#endif

/* Without double: the nearest float of a binary64, ties to even; and the binary64 of a float. */
inline float das_float_of_bits(ulong bits)
{
    uint sign = (uint)(bits >> 32) & 0x80000000u;
    int exponent = (int)((bits >> 52) & 0x7FFul) - 1023;
    ulong mantissa = bits & 0xFFFFFFFFFFFFFul;
    uint result;
    if (exponent == 1024)
        return as_float(sign | (mantissa != 0 ? 0x7FC00000u : 0x7F800000u));
    if (exponent < -126) {
        /* Subnormal: shift the mantissa, its leading one included, to units of 2^-149. */
        int shift = 29 - 126 - exponent;
        ulong whole, rest, tie;
        if (exponent == -1023 || shift > 63)
            return as_float(sign);
        mantissa |= 0x10000000000000ul;
        whole = mantissa >> shift;
        rest = mantissa & ((1ul << shift) - 1ul);
        tie = 1ul << (shift - 1);
        whole += rest > tie || (rest == tie && (whole & 1ul) != 0) ? 1ul : 0ul;
        return as_float(sign | (uint)whole);
    }
    if (exponent > 127)
        return as_float(sign | 0x7F800000u);
    result = ((uint)(exponent + 127) << 23) | (uint)(mantissa >> 29);
    mantissa &= 0x1FFFFFFFul;
    /* A carry runs into the exponent and on to infinity, as it should. */
    result += mantissa > 0x10000000ul || (mantissa == 0x10000000ul && (result & 1u) != 0) ? 1u : 0u;
    return as_float(sign | result);
}

inline ulong das_bits_of_float(float value)
{
    uint bits = as_uint(value);
    ulong sign = (ulong)(bits & 0x80000000u) << 32;
    uint exponent = (bits >> 23) & 0xFFu, mantissa = bits & 0x7FFFFFu;
    if (exponent == 0xFFu)
        return sign | 0x7FF0000000000000ul | ((ulong)mantissa << 29);
    if (exponent == 0) {
        uint shift;
        if (mantissa == 0)
            return sign;
        shift = clz(mantissa) - 8u;
        return sign | ((ulong)(897u - shift) << 52) | ((((ulong)mantissa << shift) & 0x7FFFFFul) << 29);
    }
    return sign | ((ulong)(exponent + 896u) << 52) | ((ulong)mantissa << 29);
}

inline das_value das_load(__global const das_part *data, long at)
{
#if DAS_DATA_TYPE == 5 || DAS_DATA_TYPE == 9
    return vload_half((size_t)at, data);
#elif DAS_DATA_TYPE == 7 && DAS_FP64
    return (das_value)as_double(data[at]);
#elif DAS_DATA_TYPE == 7
    return das_float_of_bits(data[at]);
#else
    return (das_value)data[at];
#endif
}

#if DAS_IMAGE_DOUBLE
typedef ulong das_pixel;
#else
typedef float das_pixel;
#endif

inline das_value das_pixel_load(__global const das_pixel *at)
{
#if DAS_IMAGE_DOUBLE && DAS_FP64
    return (das_value)as_double(*at);
#elif DAS_IMAGE_DOUBLE
    return das_float_of_bits(*at);
#else
    return *at;
#endif
}

inline void das_pixel_store(__global das_pixel *at, das_value value)
{
#if DAS_IMAGE_DOUBLE && DAS_FP64
    *at = as_ulong((double)value);
#elif DAS_IMAGE_DOUBLE
    *at = das_bits_of_float(value);
#else
    *at = (float)value;
#endif
}

/* ---------------------------------------------------------------------------
 * Geometry
 * ------------------------------------------------------------------------- */

inline das_vector das_vector_load(__global const das_real *from)
{
    das_vector v;
    v.x = from[0];
    v.y = from[1];
    v.z = from[2];
    return v;
}

/* A pair of floats holds an index exactly up to 2^48: its low 20 bits, the next 20, the rest. */
inline das_real das_index_real(long i)
{
#if DAS_FP64
    return (das_real)i;
#else
    long high = i >> 20;
    return das_real_add(das_real_mul(das_real_pair((float)(high >> 20), 0.0f), das_real_pair(1099511627776.0f, 0.0f)),
                        das_real_add(das_real_pair((float)((high & 0xFFFFFl)) * 1048576.0f, 0.0f),
                                     das_real_pair((float)(i & 0xFFFFFl), 0.0f)));
#endif
}

/* NVIDIA's compiler takes PTX. */
#if defined(__NV_CL_C_VERSION) && !defined(DAS_PLAIN)
#define DAS_ASM 1
inline float das_root_estimate(float x)
{
    float y;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
#define DAS_ROOT_ESTIMATE(x) das_root_estimate(x)
#else
#define DAS_ASM 0
#define DAS_ROOT_ESTIMATE(x) rsqrt(x)
#endif

/* A square root good to 1e-12, of x in 1e-30 .. 1e30 with double: one Newton step from a float's. */
inline das_real das_root(das_real x)
{
#if DAS_FP64
    /* Exponents are moved by hand: conversions between double and float are slow. */
    const float f = DAS_ROOT_ESTIMATE(as_float((as_uint2(x).s1 << 3) + 0x40000000u));
    const double r = as_double(((ulong)as_uint(f) << 29) + 0x3800000000000000ul), g = x * r;
    return fma(fma(-g, g, x), 0.5 * r, g);
#else
    return das_real_sqrt(x);
#endif
}

/* values: polar: sine and cosine of each angle, then of each elevation, then radii; points: x, y, z. */
inline das_vector das_point(__global const das_real *reals, __global const das_real *values, long n0, long n1, long i0, long i1,
                            long i2)
{
    das_vector p;
#if DAS_GRID == 0
    das_real a = das_index_real(i0), b = das_index_real(i1), c = das_index_real(i2);
    __global const das_real *origin = reals + REAL_ORIGIN, *step = reals + REAL_STEPS;
    p.x = das_real_add(origin[0], das_real_add(das_real_add(das_real_mul(a, step[0]), das_real_mul(b, step[3])), das_real_mul(c, step[6])));
    p.y = das_real_add(origin[1], das_real_add(das_real_add(das_real_mul(a, step[1]), das_real_mul(b, step[4])), das_real_mul(c, step[7])));
    p.z = das_real_add(origin[2], das_real_add(das_real_add(das_real_mul(a, step[2]), das_real_mul(b, step[5])), das_real_mul(c, step[8])));
#elif DAS_GRID == 1
    __global const das_real *origin = reals + REAL_ORIGIN, *elevation = values + 2 * n0;
    das_real sine = values[2 * i0], cosine = values[2 * i0 + 1];
    das_real radius = elevation[2 * n1 + i2], across = das_real_mul(radius, elevation[2 * i1 + 1]);
    p.x = das_real_add(origin[0], das_real_mul(across, sine));
    p.y = das_real_add(origin[1], das_real_mul(radius, elevation[2 * i1]));
    p.z = das_real_add(origin[2], das_real_mul(across, cosine));
#else
    p = das_vector_load(values + 3 * i0);
#endif
    return p;
}

/* Sums are kept in blocks of so many terms, and blocks are added with a correction (Kahan, 1965), so
 * that long sums keep their digits. */
#define DAS_BLOCK 128u

#if !defined(DAS_FAST) && !DAS_BLOCK_ROWS
/* ---------------------------------------------------------------------------
 * The general kernel: one point, one output plane and DAS_FRAMES frames a work item
 * ------------------------------------------------------------------------- */

#define DAS_SUMS (DAS_FRAMES * DAS_PARTS + 1) /* the last: of the weights */

typedef struct das_sum {
    das_value block[DAS_SUMS], total[DAS_SUMS], rest[DAS_SUMS];
    uint count;
} das_sum;

inline void das_sum_close_block(das_sum *sum)
{
    int f;
    for (f = 0; f < DAS_SUMS; f++) {
        das_value y = sum->block[f] - sum->rest[f], t = sum->total[f] + y;
        sum->rest[f] = (t - sum->total[f]) - y;
        sum->total[f] = t;
        sum->block[f] = DAS_VALUE(0.0);
    }
}

__kernel void das_general(
    __global const das_part *restrict data, __global das_pixel *restrict image, __global const das_real *restrict reals,
    __global const long *restrict longs, __global const das_real *restrict elements, __global const das_real *restrict waves,
    __global const int *restrict kinds, __global const long *restrict pair_offset, __global const das_value *restrict pair_weight,
    __global const int2 *restrict pair_of, __global const long *restrict pair_first, __global const das_real *restrict values,
    __global const das_value *restrict window, __global const das_real *restrict transmit_times,
    __global const das_real *restrict receive_times, __global const float *restrict transmit_weights,
    __global const float *restrict receive_weights, long data_at, long image_at, long point_begin, long point_count,
    long table_begin, long table_count, long plane_begin, long frame_begin, long frame_count, long image_frame,
    long transmit_begin, long transmit_end, int accumulate)
{
    long at = (long)get_global_id(0);
    long n0 = longs[LONG_COUNT_0], n1 = longs[LONG_COUNT_1];
    long point, plane, row, frame0, i0, i1, i2, t, r, pixel, sample_stride, table, plane_t, plane_r;
    das_vector p;
    das_sum sum;
    int f, tap;
    if (at >= point_count)
        return;
    point = point_begin + at;
    table = point - table_begin;
    (void)table;
    (void)p;
    row = point / n0;
    i0 = point - row * n0;
    i2 = row / n1;
    i1 = row - i2 * n1;
    plane = plane_begin + (long)get_global_id(1);
    frame0 = frame_begin + (long)get_global_id(2) * DAS_FRAMES;
    p = das_point(reals, values, n0, n1, i0, i1, i2);
    sample_stride = longs[LONG_SAMPLE] * DAS_PARTS;
#if DAS_KEEP_TRANSMIT && DAS_KEEP_RECEIVE
    plane_t = plane / longs[LONG_RECEIVES];
    plane_r = plane - plane_t * longs[LONG_RECEIVES];
#elif DAS_KEEP_TRANSMIT
    plane_t = plane;
    plane_r = 0;
#else
    plane_t = 0;
    plane_r = plane;
#endif

    for (f = 0; f < DAS_SUMS; f++)
        sum.block[f] = sum.total[f] = sum.rest[f] = DAS_VALUE(0.0);
    sum.count = 0u;

    {
        das_real transmit_delay = DAS_REAL(0.0);
        das_value transmit_weight = DAS_VALUE(0.0);
        long before = -1;
#if DAS_LISTED
        long k, end = pair_first[plane + 1];
        for (k = pair_first[plane]; k < end; k++) {
            int2 of = pair_of[k];
            t = of.s0;
            r = of.s1;
            if (t < transmit_begin || t >= transmit_end)
                continue;
#else
        long t0 = DAS_KEEP_TRANSMIT ? plane_t : transmit_begin, t1 = DAS_KEEP_TRANSMIT ? plane_t + 1 : transmit_end;
        long r0 = DAS_KEEP_RECEIVE ? plane_r : 0, r1 = DAS_KEEP_RECEIVE ? plane_r + 1 : longs[LONG_RECEIVES], k, end;
        r = r0 - 1;
        t = t0;
        for (k = 0, end = (t1 - t0) * (r1 - r0); k < end; k++) {
            if (++r == r1) {
                r = r0;
                t++;
            }
#endif
            das_value weight;
            das_real s;
            das_position position;
            das_value taps[DAS_KERNEL_TAPS];
            long base, first_tap;
            if (t != before) {
                before = t;
#if DAS_TRANSMIT_TIMES
                transmit_delay = das_real_add(transmit_times[t * table_count + table], waves[t * WAVE_REALS + WAVE_CONSTANT]);
#else
                transmit_delay = das_transmit_delay(kinds[t], p, das_vector_load(waves + t * WAVE_REALS + WAVE_POINT),
                                                    das_vector_load(waves + t * WAVE_REALS + WAVE_DIRECTION),
                                                    reals[REAL_TOLERANCE_M], reals[REAL_SAMPLES_PER_M],
                                                    waves[t * WAVE_REALS + WAVE_CONSTANT]);
#endif
#if DAS_TRANSMIT_WEIGHTS
                transmit_weight = (das_value)transmit_weights[t * table_count + table];
#else
                transmit_weight = DAS_VALUE(1.0);
#endif
            }
            if (transmit_weight == DAS_VALUE(0.0))
                continue;
            weight = transmit_weight;
#if DAS_LISTED
            weight *= pair_weight[k];
#endif
#if DAS_RECEIVE_WEIGHTS
            {
                das_value w = (das_value)receive_weights[r * table_count + table];
                if (w == DAS_VALUE(0.0))
                    continue;
                weight *= w;
            }
#elif DAS_APERTURE
            {
                das_value w, margin = das_aperture(p, das_vector_load(elements + r * ELEMENT_REALS + ELEMENT_POSITION),
                                              das_vector_load(elements + r * ELEMENT_REALS + ELEMENT_NORMAL),
                                              reals[REAL_INVERSE_2F], reals[REAL_TOLERANCE_M]);
                if (margin < DAS_VALUE(0.0))
                    continue;
                w = das_window_weight(DAS_WINDOW, margin, das_real_value(reals[REAL_WINDOW]), window, longs[LONG_WINDOW_COUNT]);
                if (w == DAS_VALUE(0.0))
                    continue;
                weight *= w;
            }
#endif
#if DAS_RECEIVE_TIMES
            s = das_real_add(receive_times[r * table_count + table], elements[r * ELEMENT_REALS + ELEMENT_CONSTANT]);
#else
            s = das_receive_delay(p, das_vector_load(elements + r * ELEMENT_REALS + ELEMENT_POSITION), reals[REAL_SAMPLES_PER_M],
                                  elements[r * ELEMENT_REALS + ELEMENT_CONSTANT]);
#endif
            s = das_real_add(transmit_delay, s);
            position = das_sample_position(DAS_INTERPOLATION, s, reals[REAL_LAST], DAS_CLAMP);
            if (!position.inside)
                continue;
            das_tap_weights(DAS_INTERPOLATION, position.fraction, taps);
#if DAS_LISTED
            base = pair_offset[k];
#else
            base = longs[LONG_FIRST] + t * longs[LONG_TRANSMIT] + r * longs[LONG_RECEIVE];
#endif
            base = base * DAS_PARTS + data_at;
            first_tap = position.sample + das_tap_first(DAS_INTERPOLATION);
            {
#if DAS_COMPLEX
                das_value re = weight, im = DAS_VALUE(0.0);
#if DAS_PHASE
                das_rotation rotation =
                    das_phase_rotation(s, reals[REAL_TURNS_PER_SAMPLE], waves[t * WAVE_REALS + WAVE_PHASE]);
                re = weight * rotation.re;
                im = weight * rotation.im;
#endif
#endif
                for (f = 0; f < DAS_FRAMES; f++) {
                    /* A frame beyond the last reads the last again. */
                    long frame = frame0 + f < frame_begin + frame_count ? frame0 + f : frame_begin + frame_count - 1;
                    long from = base + frame * longs[LONG_FRAME] * DAS_PARTS;
                    das_value a = DAS_VALUE(0.0);
#if DAS_COMPLEX
                    das_value b = DAS_VALUE(0.0);
#endif
                    for (tap = 0; tap < das_tap_count(DAS_INTERPOLATION); tap++) {
                        long n = first_tap + tap;
                        if (n < 0 || n > longs[LONG_LAST])
                            continue;
                        a += taps[tap] * (das_load(data, from + n * sample_stride) - das_real_value(reals[REAL_OFFSET]));
#if DAS_COMPLEX
                        b += taps[tap] * (das_load(data, from + n * sample_stride + 1) - das_real_value(reals[REAL_OFFSET]));
#endif
                    }
#if DAS_COMPLEX
                    sum.block[2 * f] += re * a - im * b;
                    sum.block[2 * f + 1] += re * b + im * a;
#else
                    sum.block[f] += weight * a;
#endif
                }
            }
            sum.block[DAS_SUMS - 1] += weight;
            sum.count++;
            if (sum.count % DAS_BLOCK == 0u)
                das_sum_close_block(&sum);
        }
    }
    das_sum_close_block(&sum);

    pixel = longs[LONG_IMAGE_FIRST] + plane_t * longs[LONG_IMAGE_TRANSMIT] + plane_r * longs[LONG_IMAGE_RECEIVE] +
            i2 * longs[LONG_IMAGE_2] + i1 * longs[LONG_IMAGE_1] + i0 * longs[LONG_IMAGE_0];
    for (f = 0; f < DAS_FRAMES; f++) {
        if (frame0 + f >= frame_begin + frame_count)
            break;
        for (tap = 0; tap < DAS_PARTS; tap++) {
            das_value y = sum.total[f * DAS_PARTS + tap];
            __global das_pixel *to =
                image + image_at + (pixel + (frame0 + f + image_frame) * longs[LONG_IMAGE_FRAME]) * DAS_PARTS + tap;
#if DAS_NORMALIZATION == 1
            y = sum.count == 0u ? DAS_VALUE(0.0) : y / (das_value)sum.count;
#elif DAS_NORMALIZATION == 2
            y = sum.total[DAS_SUMS - 1] == DAS_VALUE(0.0) ? DAS_VALUE(0.0) : y / sum.total[DAS_SUMS - 1];
#endif
            if (accumulate)
                y += das_pixel_load(to);
            das_pixel_store(to, y);
        }
    }
}
#endif
