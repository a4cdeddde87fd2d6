/* The general path's faster form, for all pairs of a dense problem: blocks of DAS_BLOCK_ROWS transmits, so that what depends
 * on point and element only is formed once for a block. A work item forms DAS_LANES points: 1, or on CPUs 16 in vectors.
 * Stands behind opencl_kernels.cl; with DAS_BLOCK_ROWS 0 it is for what opencl_fast.cl takes from it. Not for lists, tables,
 * kept images, clamping, normalisation, precision double, table windows, Lanczos. */

#if DAS_LANES == 16
typedef double16 das_reals;
typedef float16 das_floats;
typedef int16 das_ints;
inline das_reals das_reals_of(das_real a)
{
    return (double16)a;
}
inline das_reals das_reals_add(das_reals a, das_reals b)
{
    return a + b;
}
inline das_reals das_reals_sub(das_reals a, das_reals b)
{
    return a - b;
}
inline das_reals das_reals_mul(das_reals a, das_reals b)
{
    return a * b;
}
inline das_reals das_reals_sqrt(das_reals a)
{
    return sqrt(a);
}
inline das_reals das_reals_rint(das_reals a)
{
    return rint(a);
}
inline das_ints das_reals_less(das_reals a, das_reals b)
{
    return convert_int16(a < b);
}
inline das_ints das_reals_int(das_reals a)
{
    return convert_int16(a);
}
inline das_floats das_reals_value(das_reals a)
{
    return convert_float16(a);
}
inline das_ints das_floats_int(das_floats a)
{
    return convert_int16(a);
}
inline das_floats das_ints_float(das_ints a)
{
    return convert_float16(a);
}
inline das_reals das_reals_load(const das_real *from)
{
    return vload16(0, from);
}
inline void das_floats_store(das_floats a, float *to)
{
    vstore16(a, 0, to);
}
inline das_reals das_signs(das_ints minus)
{
    return convert_double16(minus ? (int16)-1 : (int16)1);
}
#define DAS_ANY(mask) any(mask)
#else
typedef das_real das_reals;
typedef float das_floats;
typedef int das_ints;
inline das_reals das_reals_of(das_real a)
{
    return a;
}
inline das_reals das_reals_add(das_reals a, das_reals b)
{
    return das_real_add(a, b);
}
inline das_reals das_reals_sub(das_reals a, das_reals b)
{
    return das_real_sub(a, b);
}
inline das_reals das_reals_mul(das_reals a, das_reals b)
{
    return das_real_mul(a, b);
}
inline das_reals das_reals_sqrt(das_reals a)
{
    return das_root(das_real_add(a, DAS_REAL(1e-30)));
}
inline das_reals das_reals_rint(das_reals a)
{
    return das_real_rint(a);
}
inline das_ints das_reals_less(das_reals a, das_reals b)
{
    return das_real_less(a, b);
}
inline das_ints das_reals_int(das_reals a)
{
    return (int)das_real_index(a);
}
inline das_floats das_reals_value(das_reals a)
{
    return das_real_value(a);
}
inline das_ints das_floats_int(das_floats a)
{
    return (int)a;
}
inline das_floats das_ints_float(das_ints a)
{
    return (float)a;
}
inline das_reals das_reals_load(const das_real *from)
{
    return *from;
}
inline void das_floats_store(das_floats a, float *to)
{
    *to = a;
}
inline das_reals das_signs(das_ints minus)
{
    return minus ? DAS_REAL(-1.0) : DAS_REAL(1.0);
}
#define DAS_ANY(mask) (mask)
#endif

/* Whole numbers within 2^22, half to even. */
inline das_floats das_whole(das_floats a)
{
    return (a + 12582912.0f) - 12582912.0f;
}

typedef struct das_points {
    das_reals x, y, z;
} das_points;

inline das_points das_points_from(das_points p, __global const das_real *place)
{
    p.x = das_reals_sub(p.x, das_reals_of(place[0]));
    p.y = das_reals_sub(p.y, das_reals_of(place[1]));
    p.z = das_reals_sub(p.z, das_reals_of(place[2]));
    return p;
}

inline das_reals das_points_along(das_points d, __global const das_real *direction)
{
    return das_reals_add(
        das_reals_add(das_reals_mul(d.x, das_reals_of(direction[0])), das_reals_mul(d.y, das_reals_of(direction[1]))),
        das_reals_mul(d.z, das_reals_of(direction[2])));
}

inline das_reals das_points_distance(das_points d)
{
    return das_reals_sqrt(
        das_reals_add(das_reals_add(das_reals_mul(d.x, d.x), das_reals_mul(d.y, d.y)), das_reals_mul(d.z, d.z)));
}

/* exp(j 2 pi t) for t in -1/2..1/2, by the series. sin() and cos() serve all angles, which takes several times as long. */
inline void das_turn(das_floats t, das_floats *re, das_floats *im)
{
    const das_floats quarters = das_whole(4.0f * t), x = 6.28318530717958647693f * (t - 0.25f * quarters), y = x * x;
    const das_floats sine =
        x * (1.0f + y * (-1.66666667e-1f + y * (8.33333333e-3f + y * (-1.98412698e-4f + y * 2.75573192e-6f))));
    const das_floats cosine = 1.0f + y * (-0.5f + y * (4.16666667e-2f + y * (-1.38888889e-3f + y * 2.48015873e-5f)));
    const das_ints q = das_floats_int(quarters) & 3, odd = (q & 1) != 0;
    const das_floats a = odd ? sine : cosine, b = odd ? cosine : sine;
    *re = ((q == 1) | (q == 2)) ? -a : a;
    *im = q >= 2 ? -b : b;
}

/* A delay taken apart: an even number of samples, so that ties of sums round to even as they should, and the rest, which
 * float holds to 1e-7; and the weight, turned by the phase. */
typedef struct das_delay {
    das_ints whole;
    das_floats rest, re, im;
} das_delay;

inline das_delay das_delay_of(das_reals s, das_floats weight, das_reals turns_per_sample, das_reals turns)
{
    const das_reals halves = das_reals_rint(das_reals_mul(das_reals_of(DAS_REAL(0.5)), s));
    const das_floats rough = das_reals_value(halves);
    const das_ints far = (rough > 5e8f) | (rough < -5e8f);
    das_delay d;
    d.whole = far ? (rough > 0.0f ? (das_ints)1000000000 : (das_ints)-1000000000) : 2 * das_reals_int(halves);
    d.rest = far ? (das_floats)0.0f : das_reals_value(das_reals_sub(s, das_reals_add(halves, halves)));
    d.re = weight;
    d.im = (das_floats)0.0f;
#if DAS_PHASE
    {
        /* Whole turns go while there are digits enough. */
        const das_reals all = das_reals_add(das_reals_mul(s, turns_per_sample), turns);
        const das_reals t = das_reals_sub(all, das_reals_rint(all));
        das_turn(das_reals_value(t), &d.re, &d.im);
        d.re *= weight;
        d.im *= weight;
    }
#endif
    return d;
}

/* das_sample_position() of the sum of two delays; whether it is in the record. */
inline das_ints das_place(das_delay a, das_delay b, int last, das_ints *sample, das_floats *fraction)
{
    const das_ints whole = a.whole + b.whole;
    das_floats s = a.rest + b.rest;
#if DAS_INTERPOLATION == 0
    *sample = whole + das_floats_int(das_whole(s));
    *fraction = (das_floats)0.0f;
    return (*sample >= 0) & (*sample <= last);
#else
    const das_floats first = das_ints_float(-whole), end = das_ints_float(last - whole);
    const das_ints inside = (s >= first - 1e-3f) & (s <= end + 1e-3f);
    das_floats below;
    s = s < first ? first : s;
    s = s > end ? end : s;
    below = das_whole(s);
    if (DAS_INTERPOLATION != 2)
        below = below > s ? below - 1.0f : below;
    *sample = whole + das_floats_int(below);
    *fraction = s - below;
    return inside;
#endif
}

/* das_tap_weights(). */
inline void das_taps(das_floats t, das_floats *weight)
{
#if DAS_INTERPOLATION == 0
    weight[0] = (das_floats)1.0f;
#elif DAS_INTERPOLATION == 1
    weight[0] = 1.0f - t;
    weight[1] = t;
#elif DAS_INTERPOLATION == 2
    weight[0] = 0.5f * t * (t - 1.0f);
    weight[1] = 1.0f - t * t;
    weight[2] = 0.5f * t * (t + 1.0f);
#else
    weight[0] = t * (-0.5f + t * (1.0f - 0.5f * t));
    weight[1] = 1.0f + t * t * (1.5f * t - 2.5f);
    weight[2] = t * (0.5f + t * (2.0f - 1.5f * t));
    weight[3] = t * t * (0.5f * t - 0.5f);
#endif
}

/* Samples n of a record that starts at `from`; 0 where they are not wanted or outside 0..last. */
inline das_floats das_samples(__global const das_part *data, long from, long stride, das_ints n, das_ints wanted, int last,
                              float offset)
{
    const das_ints there = wanted & (n >= 0) & (n <= last);
#if DAS_LANES == 16
    int at[16], lane;
    float v[16];
    vstore16(there ? n : (das_ints)0, 0, at);
    for (lane = 0; lane < 16; lane++)
        v[lane] = (float)das_load(data, from + at[lane] * stride);
    return there ? vload16(0, v) - offset : (das_floats)0.0f;
#else
    return there ? (float)das_load(data, from + n * stride) - offset : 0.0f;
#endif
}

#if DAS_APERTURE
/* das_aperture() and das_window_weight(); 0 for elements that take no part. */
inline das_floats das_apodize(das_points p, __global const das_real *of, __global const das_real *reals)
{
    das_points d = das_points_from(p, of + ELEMENT_POSITION), across;
    const das_reals h = das_points_along(d, of + ELEMENT_NORMAL), tolerance = das_reals_of(reals[REAL_TOLERANCE_M]);
    const das_reals half_width = das_reals_mul(h, das_reals_of(reals[REAL_INVERSE_2F]));
    das_reals l;
    das_ints outside;
    das_floats margin, weight = (das_floats)1.0f;
    across.x = das_reals_sub(d.x, das_reals_mul(h, das_reals_of(of[ELEMENT_NORMAL])));
    across.y = das_reals_sub(d.y, das_reals_mul(h, das_reals_of(of[ELEMENT_NORMAL + 1])));
    across.z = das_reals_sub(d.z, das_reals_mul(h, das_reals_of(of[ELEMENT_NORMAL + 2])));
    l = das_points_distance(across);
    outside = (das_reals_less(tolerance, h) == 0) | das_reals_less(das_reals_add(half_width, tolerance), l);
    margin = das_reals_value(das_reals_sub(half_width, l)) / das_reals_value(half_width);
    margin = margin > 0.0f ? margin : (das_floats)0.0f;
#if DAS_WINDOW != 0
    {
        const float parameter = (float)das_real_value(reals[REAL_WINDOW]);
        const das_floats x = DAS_WINDOW == 3 && parameter > 0.0f ? margin / parameter : margin;
        das_floats cosine, sine;
        das_turn(0.25f * (x < 1.0f ? x : (das_floats)1.0f), &cosine, &sine);
        weight = sine * sine;
        if (DAS_WINDOW == 2)
            weight = 0.08f + 0.92f * weight;
        if (DAS_WINDOW == 3)
            weight = margin >= parameter ? (das_floats)1.0f : weight;
    }
#endif
    return outside ? (das_floats)0.0f : weight;
}
#endif

inline void das_add_product(das_floats *sum, das_floats re, das_floats im, das_floats by_re, das_floats by_im)
{
    sum[0] += re * by_re - im * by_im;
    sum[1] += re * by_im + im * by_re;
}

inline das_reals das_wave_path(int kind, das_points p, __global const das_real *wave, das_real tolerance)
{
    const das_points d = das_points_from(p, wave + WAVE_POINT);
    das_reals path = das_reals_of(DAS_REAL(0.0));
    if (kind == DAS_WAVE_POINT || kind == DAS_WAVE_FOCUSED)
        path = das_points_distance(d);
    if (kind == DAS_WAVE_PLANE)
        path = das_points_along(d, wave + WAVE_DIRECTION);
    if (kind == DAS_WAVE_FOCUSED) {
        const das_ints before =
            das_reals_less(das_points_along(d, wave + WAVE_DIRECTION), das_reals_of(das_real_negate(tolerance)));
        path = das_reals_mul(path, das_signs(before));
    }
    return path;
}

#if DAS_BLOCK_ROWS
#define DAS_VALUES (DAS_FRAMES * DAS_PARTS)

__kernel void das_block(__global const das_part *restrict data, __global das_pixel *restrict image,
                        __global const das_real *restrict reals, __global const long *restrict longs,
                        __global const das_real *restrict elements, __global const das_real *restrict waves,
                        __global const int *restrict kinds, __global const das_real *restrict values, long data_at,
                        long image_at, long point_begin, long point_count, long frame_begin, long frame_count, long image_frame,
                        long transmit_begin, long transmit_end, int accumulate)
{
    const long at = (long)get_global_id(0) * DAS_LANES, n0 = longs[LONG_COUNT_0], n1 = longs[LONG_COUNT_1];
    const long frame0 = frame_begin + (long)get_global_id(2) * DAS_FRAMES, sample_stride = longs[LONG_SAMPLE] * DAS_PARTS;
    const int last = (int)longs[LONG_LAST];
    const float offset = (float)das_real_value(reals[REAL_OFFSET]);
    const das_reals samples_per_m = das_reals_of(reals[REAL_SAMPLES_PER_M]);
    const das_reals turns_per_sample = das_reals_of(reals[REAL_TURNS_PER_SAMPLE]);
    das_floats block[DAS_VALUES], total[DAS_VALUES], rest[DAS_VALUES];
    das_points p;
    long pixel[DAS_LANES], t, r;
    int f, j, tap, lane, summed = 0;
    if (at >= point_count)
        return;
    {
        das_real x[DAS_LANES], y[DAS_LANES], z[DAS_LANES];
        for (lane = 0; lane < DAS_LANES; lane++) {
            /* Points beyond the last are formed like it, not stored. */
            const long point = point_begin + min(at + lane, point_count - 1), row = point / n0, i0 = point - row * n0,
                       i2 = row / n1;
            const long i1 = row - i2 * n1;
            const das_vector place = das_point(reals, values, n0, n1, i0, i1, i2);
            x[lane] = place.x;
            y[lane] = place.y;
            z[lane] = place.z;
            pixel[lane] =
                longs[LONG_IMAGE_FIRST] + i2 * longs[LONG_IMAGE_2] + i1 * longs[LONG_IMAGE_1] + i0 * longs[LONG_IMAGE_0];
        }
        p.x = das_reals_load(x);
        p.y = das_reals_load(y);
        p.z = das_reals_load(z);
    }
    for (f = 0; f < DAS_VALUES; f++)
        block[f] = total[f] = rest[f] = (das_floats)0.0f;

    for (t = transmit_begin; t < transmit_end; t += DAS_BLOCK_ROWS) {
        das_delay delay_t[DAS_BLOCK_ROWS];
#pragma unroll
        for (j = 0; j < DAS_BLOCK_ROWS; j++) {
            const long n = min(t + j, transmit_end - 1);
            __global const das_real *wave = waves + n * WAVE_REALS;
            delay_t[j] = das_delay_of(
                das_reals_add(das_reals_mul(das_wave_path(kinds[n], p, wave, reals[REAL_TOLERANCE_M]), samples_per_m),
                              das_reals_of(wave[WAVE_CONSTANT])),
                (das_floats)1.0f, turns_per_sample, das_reals_of(wave[WAVE_PHASE]));
            if (t + j >= transmit_end)
                delay_t[j].whole = (das_ints)-1000000000; /* before all records */
        }
        for (r = 0; r < longs[LONG_RECEIVES]; r++) {
            __global const das_real *of = elements + r * ELEMENT_REALS;
            das_floats weight = (das_floats)1.0f, part[DAS_VALUES];
            das_delay delay_r;
#if DAS_APERTURE
            weight = das_apodize(p, of, reals);
            if (!DAS_ANY(weight != 0.0f))
                continue;
#endif
            delay_r = das_delay_of(
                das_reals_add(das_reals_mul(das_points_distance(das_points_from(p, of + ELEMENT_POSITION)), samples_per_m),
                              das_reals_of(of[ELEMENT_CONSTANT])),
                weight, turns_per_sample, das_reals_of(DAS_REAL(0.0)));
#pragma unroll
            for (f = 0; f < DAS_VALUES; f++)
                part[f] = (das_floats)0.0f;
#pragma unroll
            for (j = 0; j < DAS_BLOCK_ROWS; j++) {
                das_floats fraction, taps[4];
                das_ints sample;
                const das_ints inside = das_place(delay_t[j], delay_r, last, &sample, &fraction) & (weight != 0.0f);
                const long from =
                    data_at + (longs[LONG_FIRST] + (t + j) * longs[LONG_TRANSMIT] + r * longs[LONG_RECEIVE]) * DAS_PARTS;
                if (!DAS_ANY(inside))
                    continue;
                das_taps(fraction, taps);
#pragma unroll
                for (f = 0; f < DAS_FRAMES; f++) {
                    /* A frame beyond the last reads the last again. */
                    const long here = from + min(frame0 + f, frame_begin + frame_count - 1) * longs[LONG_FRAME] * DAS_PARTS;
                    das_floats a = (das_floats)0.0f, b = (das_floats)0.0f;
#pragma unroll
                    for (tap = 0; tap < das_tap_count(DAS_INTERPOLATION); tap++) {
                        const das_ints n = sample + (das_tap_first(DAS_INTERPOLATION) + tap);
                        a += taps[tap] * das_samples(data, here, sample_stride, n, inside, last, offset);
#if DAS_COMPLEX
                        b += taps[tap] * das_samples(data, here + 1, sample_stride, n, inside, last, offset);
#endif
                    }
#if DAS_COMPLEX
                    das_add_product(part + 2 * f, a, b, delay_t[j].re, delay_t[j].im);
#else
                    (void)b;
                    part[f] += a;
#endif
                }
            }
#pragma unroll
            for (f = 0; f < DAS_FRAMES; f++)
#if DAS_COMPLEX
                das_add_product(block + 2 * f, part[2 * f], part[2 * f + 1], delay_r.re, delay_r.im);
#else
                block[f] += weight * part[f];
#endif
            summed += DAS_BLOCK_ROWS;
            if (summed >= (int)DAS_BLOCK || r + 1 == longs[LONG_RECEIVES]) {
                for (f = 0; f < DAS_VALUES; f++) {
                    const das_floats y = block[f] - rest[f], sum = total[f] + y;
                    rest[f] = (sum - total[f]) - y;
                    total[f] = sum;
                    block[f] = (das_floats)0.0f;
                }
                summed = 0;
            }
        }
    }
    for (f = 0; f < DAS_VALUES; f++) {
        const long frame = frame0 + f / DAS_PARTS;
        float value[DAS_LANES];
        if (frame >= frame_begin + frame_count)
            break;
        das_floats_store(total[f] + block[f], value);
        for (lane = 0; lane < DAS_LANES; lane++)
            if (at + lane < point_count) {
                __global das_pixel *to = image + image_at +
                                         (pixel[lane] + (frame + image_frame) * longs[LONG_IMAGE_FRAME]) * DAS_PARTS +
                                         f % DAS_PARTS;
                das_pixel_store(to, accumulate ? value[lane] + das_pixel_load(to) : value[lane]);
            }
    }
}
#endif
