/* The generic kernel: forms any output of any plan, up to FRAMES frames at a time. Included once for
 * each type of das_value, inside a namespace with kernel.h; PHASE_ROTATION is das_phase_rotation() or a faster one. */

__device__ static das_vector grid_point(const das_cuda_params &q, long long i0, long long i1, long long i2)
{
    das_vector p;
    if (q.grid_kind == 0) {
        double x[3];
        for (int c = 0; c < 3; c++)
            x[c] = q.origin[c] + (double)i0 * q.steps[0][c] + (double)i1 * q.steps[1][c] + (double)i2 * q.steps[2][c];
        p.x = x[0];
        p.y = x[1];
        p.z = x[2];
    } else if (q.grid_kind == 1) {
        double theta = ((const double *)q.axis[0])[i0], phi = ((const double *)q.axis[1])[i1];
        double r = ((const double *)q.axis[2])[i2];
        double st, ct, sp, cp;
        sincos(theta, &st, &ct);
        sincos(phi, &sp, &cp);
        p.x = q.origin[0] + r * st * cp;
        p.y = q.origin[1] + r * sp;
        p.z = q.origin[2] + r * ct * cp;
    } else {
        const double *x = (const double *)q.axis[0] + 3 * i0;
        p.x = x[0];
        p.y = x[1];
        p.z = x[2];
    }
    return p;
}

/* A stored sample; `im` is 0 for real data. */
template <bool COMPLEX>
__device__ static __forceinline__ void load_sample(const das_cuda_params &q, long long index, das_value &re, das_value &im)
{
    const void *data = (const void *)q.data;
    const das_value offset = (das_value)q.sample_offset;
    im = 0;
    if (COMPLEX) {
        const long long at = 2 * index;
        if (q.data_type == DAS_TYPE_CF32 && q.aligned) {
            const float2 v = ((const float2 *)data)[index];
            re = v.x;
            im = v.y;
        } else if (q.data_type == DAS_TYPE_CF32) {
            re = ((const float *)data)[at];
            im = ((const float *)data)[at + 1];
        } else if (q.data_type == DAS_TYPE_CI16) {
            re = ((const short *)data)[at];
            im = ((const short *)data)[at + 1];
        } else {
            re = half_to_float(((const unsigned short *)data)[at]);
            im = half_to_float(((const unsigned short *)data)[at + 1]);
        }
        re -= offset;
        im -= offset;
        return;
    }
    if (q.data_type == DAS_TYPE_F32) {
        re = ((const float *)data)[index] - offset;
        return;
    }
    switch (q.data_type) {
    case DAS_TYPE_I8:
        re = ((const signed char *)data)[index];
        break;
    case DAS_TYPE_U8:
        re = ((const unsigned char *)data)[index];
        break;
    case DAS_TYPE_I16:
        re = ((const short *)data)[index];
        break;
    case DAS_TYPE_U16:
        re = ((const unsigned short *)data)[index];
        break;
    case DAS_TYPE_F16:
        re = half_to_float(((const unsigned short *)data)[index]);
        break;
    default:
        re = (das_value)((const double *)data)[index];
        break;
    }
    re -= offset;
}

__device__ static void store(const das_cuda_params &q, long long index, das_value re, das_value im)
{
    void *image = (void *)q.image;
    if (q.image_type == DAS_TYPE_F32) {
        float *out = (float *)image + index;
        *out = (float)re + (q.accumulate ? *out : 0.0f);
    } else if (q.image_type == DAS_TYPE_F64) {
        double *out = (double *)image + index;
        *out = (double)re + (q.accumulate ? *out : 0.0);
    } else if (q.image_type == DAS_TYPE_CF32) {
        float *out = (float *)image + 2 * index;
        out[0] = (float)re + (q.accumulate ? out[0] : 0.0f);
        out[1] = (float)im + (q.accumulate ? out[1] : 0.0f);
    } else {
        double *out = (double *)image + 2 * index;
        out[0] = (double)re + (q.accumulate ? out[0] : 0.0);
        out[1] = (double)im + (q.accumulate ? out[1] : 0.0);
    }
}

/* What a sum of so many pairs, with weights that add up to this, is multiplied by; a divisor of 0 gives 0. */
__device__ static das_value scale_of(const das_cuda_params &q, double number, double weights)
{
    if (!q.normalization)
        return 1;
    const das_value divisor = (das_value)(q.normalization == DAS_NORMALIZATION_COUNT ? number : weights);
    return divisor != 0 ? 1 / divisor : 0;
}

__device__ static das_vector vector_of(const double *x)
{
    das_vector v;
    v.x = x[0];
    v.y = x[1];
    v.z = x[2];
    return v;
}

/* What one pair adds to one point, the same for all frames. */
struct term {
    das_position at;
    das_value weight;  /* of the sum, not 0 */
    das_rotation turn; /* the weight, and the phase if the data are complex */
};

/* The transmit of the last term, which mostly is that of the next one too. */
struct wave {
    int transmit;
    das_value weight;
    double delay;
};

__device__ static wave no_wave()
{
    wave w;
    w.transmit = -1;
    w.weight = 1;
    w.delay = 0;
    return w;
}

#ifndef DAS_KERNEL_DOUBLE
/* das_sample_position() without clamping, for records of less than 2^31 samples. */
__device__ static __forceinline__ bool find_sample(const das_cuda_params &q, int interpolation, double s, int &sample,
                                                   float &fraction)
{
    /* Adding 1.5 2^52 leaves a whole number in the low bits. */
    const bool nearest = interpolation == DAS_KERNEL_NEAREST;
    const double shifted =
        nearest || interpolation == DAS_KERNEL_QUADRATIC ? s + 6755399441055744.0 : __dadd_rd(s, 6755399441055744.0);
    const double whole = shifted - 6755399441055744.0, place = nearest ? whole : s, edge = nearest ? 0.0 : 1e-3;
    if (!(place >= -edge && place <= q.last + edge))
        return false;
    sample = __double2loint(shifted);
    fraction = nearest ? 0.0f : (float)(s - whole);
    if (!nearest && (s < 0.0 || s > q.last)) {
        sample = s < 0.0 ? 0 : (int)q.last;
        fraction = 0.0f;
    }
    return true;
}

/* An element as seen from the middle of points that lie close together, for one transmit: what lets their positions be
 * worked out in float, relative to a whole number of samples. */
struct __align__(16) reference
{
    float x, y, z, distance; /* from the element to the middle, in samples */
    int base;                /* even; the position at the middle is base + rest */
    float rest, turns;       /* turns of the phase there */
    int transmit;
};

/* Farthest from their middle that points may be, in samples, and in turns of the phase. */
const float NEAR = 12.0f;

/* `delay` is the transmit's at the middle. */
__device__ static __forceinline__ reference reference_of(const das_cuda_params &q, const das_vector &middle, int receive,
                                                         int transmit, double delay)
{
    const double2 *e = (const double2 *)((const das_cuda_element *)q.element + receive), xy = e[0], z_constant = e[1];
    const double dx = middle.x - xy.x, dy = middle.y - xy.y, dz = middle.z - z_constant.x;
    const double distance = root_of_any(square_distance(dx, dy, dz));
    const double s = fmin(fmax(distance + (z_constant.y + delay), -1e9), 1e9), base = 2.0 * floor(0.5 * s);
    const double turns = s * q.turns_per_sample + ((const das_cuda_transmit *)q.transmit)[transmit].phase;
    reference r;
    r.x = (float)dx;
    r.y = (float)dy;
    r.z = (float)dz;
    r.distance = (float)distance;
    r.base = (int)base;
    r.rest = (float)(s - base);
    r.turns = (float)(turns - rint(turns));
    r.transmit = transmit;
    return r;
}

/* find_term() for a point at d from the middle, which the transmit's wave reaches `later` than that. Elements look along
 * z, or there is no aperture. `weight` is what the term has beside the aperture. */
template <bool COMPLEX>
__device__ static __forceinline__ bool find_near(const das_cuda_params &q, int interpolation, const reference &r, float3 d,
                                                 float later, float weight, term &found)
{
    const float x = r.x + d.x, y = r.y + d.y, z = r.z + d.z;
    if (q.aperture) {
        const float l2 = __fmaf_rn(x, x, y * y), half = z * q.inverse_2f_float, limit = half + 1e-3f;
        if (!(z > 1e-3f && l2 <= limit * limit))
            return false;
        if (q.window != DAS_KERNEL_WINDOW_RECT)
            weight *= window_weight(q, fminf(sqrtf(l2) / half, 1.0f));
    }
    if (weight == 0.0f)
        return false;
    /* |x| - |c| = (x - c)(x + c) / (|x| + |c|) keeps its digits. */
    const float square = __fmaf_rn(x, x, __fmaf_rn(y, y, __fmaf_rn(z, z, 1e-20f)));
    float inverse;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(square));
    const float difference = __fmaf_rn(d.x, r.x + x, __fmaf_rn(d.y, r.y + y, d.z * (r.z + z)));
    const float more = __fdividef(difference, __fmaf_rn(square, inverse, r.distance)) + later, s = r.rest + more;
    const bool round = interpolation == DAS_KERNEL_NEAREST || interpolation == DAS_KERNEL_QUADRATIC;
    const float shifted = round ? s + DAS_CUDA_MAGIC : __fadd_rd(s, DAS_CUDA_MAGIC);
    float fraction = s - (shifted - DAS_CUDA_MAGIC);
    int sample = r.base + (int)(__float_as_uint(shifted) - DAS_CUDA_MAGIC_BITS);
    const int last = (int)q.sample_count - 1;
    if (interpolation == DAS_KERNEL_NEAREST) {
        fraction = 0.0f;
        if ((unsigned)sample > (unsigned)last)
            return false;
    } else if (round) { /* 1e-3 outside the record counts as its edge */
        if ((unsigned)sample > (unsigned)last || (sample == 0 && fraction < -1e-3f) || (sample == last && fraction > 1e-3f))
            return false;
        fraction = sample == 0 ? fmaxf(fraction, 0.0f) : fraction;
        fraction = sample == last ? fminf(fraction, 0.0f) : fraction;
    } else if ((unsigned)sample >= (unsigned)last) {
        const bool before = sample == -1 && fraction >= 1.0f - 1e-3f;
        if (!before && !(sample == last && fraction <= 1e-3f))
            return false;
        sample = before ? 0 : last;
        fraction = 0.0f;
    }
    found.at.sample = sample;
    found.at.fraction = fraction;
    found.at.inside = 1;
    found.weight = weight;
    found.turn.re = weight;
    found.turn.im = 0.0f;
    if (COMPLEX && q.rotate) {
        const float2 turn = turn_by(__fmaf_rn(q.turns_float, more, r.turns));
        found.turn.re = weight * turn.x;
        found.turn.im = weight * turn.y;
    }
    return true;
}

/* find_term() for plans without clamping. Lengths are in samples, p too. */
template <bool COMPLEX>
__device__ static __forceinline__ bool find_simple(const das_cuda_params &q, int interpolation, const das_cuda_pair &pair,
                                                   const das_vector &p, long long point, wave &w, term &found)
{
    const das_cuda_transmit *t = (const das_cuda_transmit *)q.transmit + pair.transmit;
    const das_cuda_element *e = (const das_cuda_element *)q.element + pair.receive;
    const double2 xy = *(const double2 *)e, z_constant = *((const double2 *)e + 1);
    if (pair.transmit != w.transmit) {
        w.transmit = pair.transmit;
        if (q.transmit_times)
            w.delay = ((const double *)q.transmit_times)[pair.transmit * q.point_count + point] + t->constant;
        else
            w.delay = das_transmit_path(t->wave, p, vector_of(t->scaled), vector_of(t->direction), 1e-3) + t->constant;
        if (q.transmit_weights)
            w.weight = ((const float *)q.transmit_weights)[pair.transmit * q.point_count + point];
    }
    const double dx = p.x - xy.x, dy = p.y - xy.y, dz = p.z - z_constant.x, square = square_distance(dx, dy, dz);
    float weight = w.weight;
    if (q.receive_weights) {
        weight *= ((const float *)q.receive_weights)[pair.receive * q.point_count + point];
    } else if (q.aperture) {
        const double h = q.z_normals ? dz : __fma_rn(dx, e->normal[0], __fma_rn(dy, e->normal[1], dz * e->normal[2]));
        weight *= aperture_weight(q, h, square);
    }
    if (!q.unit_weight)
        weight *= (float)pair.weight;
    if (weight == 0.0f)
        return false;
    const double path =
        q.receive_times ? ((const double *)q.receive_times)[pair.receive * q.point_count + point] : root_of_any(square);
    const double s = path + (z_constant.y + w.delay); /* NaN: no path */
    int sample;
    float fraction;
    if (!find_sample(q, interpolation, s, sample, fraction))
        return false;
    found.at.sample = sample;
    found.at.fraction = fraction;
    found.at.inside = 1;
    found.weight = weight;
    found.turn.re = weight;
    found.turn.im = 0.0f;
    if (COMPLEX && q.rotate) {
        const das_rotation phase = fast_rotation(s, q.turns_per_sample, t->phase);
        found.turn.re = weight * phase.re;
        found.turn.im = weight * phase.im;
    }
    return true;
}
#endif

/* Where find_term() wants the point, given in metres. */
__device__ static __forceinline__ das_vector term_point(const das_cuda_params &q, das_vector p)
{
    if (q.simple) {
        p.x *= q.samples_per_m;
        p.y *= q.samples_per_m;
        p.z *= q.samples_per_m;
    }
    return p;
}

/* False if the pair adds nothing to the point p, whose number is `point`. `interpolation` is q's. */
template <bool COMPLEX>
__device__ static __forceinline__ bool find_term(const das_cuda_params &q, int interpolation, const das_cuda_pair &pair,
                                                 const das_vector &p, long long point, wave &w, term &found)
{
#ifndef DAS_KERNEL_DOUBLE
    if (q.simple)
        return find_simple<COMPLEX>(q, interpolation, pair, p, point, w, found);
#endif
    const das_cuda_transmit *t = (const das_cuda_transmit *)q.transmit + pair.transmit;
    const das_cuda_element *e = (const das_cuda_element *)q.element + pair.receive;
    if (pair.transmit != w.transmit) {
        w.transmit = pair.transmit;
        if (q.transmit_times)
            w.delay = ((const double *)q.transmit_times)[pair.transmit * q.point_count + point] + t->constant;
        else
            w.delay = das_transmit_delay(t->wave, p, vector_of(t->point), vector_of(t->direction), q.tolerance_m,
                                         q.samples_per_m, t->constant);
        if (q.transmit_weights)
            w.weight = ((const float *)q.transmit_weights)[pair.transmit * q.point_count + point];
    }
    const das_vector x = vector_of(e->position);
    das_value weight = (das_value)pair.weight * w.weight;
    if (q.receive_weights) {
        weight *= ((const float *)q.receive_weights)[pair.receive * q.point_count + point];
    } else if (q.aperture) {
        const das_value margin = das_aperture(p, x, vector_of(e->normal), q.inverse_2f, q.tolerance_m);
        if (margin < 0)
            return false;
        if (q.window != DAS_KERNEL_WINDOW_RECT)
            weight *= das_window_weight(q.window, margin, (das_value)q.window_parameter, (const das_value *)q.window_table,
                                        q.window_count);
    }
    if (weight == 0)
        return false;
    double s;
    if (q.receive_times)
        s = ((const double *)q.receive_times)[pair.receive * q.point_count + point] + e->constant;
    else
        s = das_receive_delay(p, x, q.samples_per_m, e->constant);
    s += w.delay;
    found.at = das_sample_position(interpolation, s, q.last, q.clamp);
    if (!found.at.inside)
        return false;
    found.weight = weight;
    found.turn.re = weight;
    found.turn.im = 0;
    if (COMPLEX && q.rotate) {
        const das_rotation phase = PHASE_ROTATION(s, q.turns_per_sample, t->phase);
        found.turn.re = weight * phase.re;
        found.turn.im = weight * phase.im;
    }
    return true;
}

/* A block forms THREADS / q.split points; q.split threads share the pairs of each, whose sums are then added up in order.
 * TAPS: 2 for nearest and linear, or all there can be. */
template <int FRAMES, bool COMPLEX, int TAPS> __device__ static __forceinline__ void generic(const das_cuda_params &q)
{
    const int THREADS = DAS_CUDA_GENERIC_THREADS, PARTS = COMPLEX ? 2 : 1;
    __shared__ double sums[FRAMES * PARTS + 2][THREADS];
    const int each = THREADS / q.split, share = threadIdx.x / each;
    const long long wanted = q.first_point + (long long)blockIdx.x * each + threadIdx.x % each;
    const long long point = min(wanted, (long long)q.end_point - 1);
    const long long output = q.first_output + blockIdx.y;
    const long long frame0 = (long long)blockIdx.z * FRAMES;
    const int frames = (int)min((long long)FRAMES, q.frame_count - frame0);

    const long long i0 = point % q.counts[0], i12 = point / q.counts[0];
    const long long i1 = i12 % q.counts[1], i2 = i12 / q.counts[1];
    const das_vector p = term_point(q, grid_point(q, i0, i1, i2));

    const das_cuda_pair *pairs = (const das_cuda_pair *)q.pair;
    const long long *output_first = (const long long *)q.output_first;
    const long long first = max(output_first[output], (long long)q.first_pair);
    const long long count = max(min(output_first[output + 1], (long long)q.end_pair) - first, (long long)0);
    const long long begin = first + count * share / q.split, end = first + count * (share + 1) / q.split;

    /* Sums of blocks of terms, then sums of those: rounding grows with the block, not with the number of terms. */
    double total[FRAMES][PARTS];
    das_value part[FRAMES][PARTS];
#pragma unroll
    for (int f = 0; f < FRAMES; f++)
#pragma unroll
        for (int c = 0; c < PARTS; c++)
            total[f][c] = 0, part[f][c] = 0;
    double number = 0, weights = 0;
    int in_part = 0;

    const int tap_count = das_tap_count(q.interpolation), tap_first = das_tap_first(q.interpolation);
    const long long frame_offset = (q.first_frame + frame0) * q.frame_stride;
    wave w = no_wave();
    for (long long i = begin; i < end; i++) {
        const das_cuda_pair pair = pairs[i];
        term t;
        if (pair.transmit < q.first_transmit || pair.transmit >= q.end_transmit ||
            !find_term<COMPLEX>(q, q.interpolation, pair, p, point, w, t))
            continue;
        if (q.normalization) {
            number++;
            weights += (double)t.weight;
        }
        das_value tap[DAS_KERNEL_TAPS];
        if (TAPS == 2) {
            tap[0] = 1 - t.at.fraction;
            tap[1] = t.at.fraction;
        } else {
            das_tap_weights(q.interpolation, t.at.fraction, tap);
        }
        das_value v[FRAMES][2];
#pragma unroll
        for (int f = 0; f < FRAMES; f++)
            v[f][0] = v[f][1] = 0;
        const long long first_tap = t.at.sample + tap_first;
        long long base = pair.offset + frame_offset + first_tap * q.sample_stride;
#pragma unroll
        for (int k = 0; k < TAPS; k++, base += q.sample_stride) {
            if (k < tap_count && (unsigned long long)(first_tap + k) < (unsigned long long)q.sample_count) {
#pragma unroll
                for (int f = 0; f < FRAMES; f++)
                    if (f < frames) {
                        das_value re, im;
                        load_sample<COMPLEX>(q, base + f * q.frame_stride, re, im);
                        v[f][0] += tap[k] * re;
                        v[f][1] += tap[k] * im;
                    }
            }
        }
#pragma unroll
        for (int f = 0; f < FRAMES; f++) {
            if (COMPLEX) {
                part[f][0] += v[f][0] * t.turn.re - v[f][1] * t.turn.im;
                part[f][PARTS - 1] += v[f][0] * t.turn.im + v[f][1] * t.turn.re;
            } else {
                part[f][0] += v[f][0] * t.turn.re;
            }
        }
        if (++in_part == 64) {
            in_part = 0;
#pragma unroll
            for (int f = 0; f < FRAMES; f++)
#pragma unroll
                for (int c = 0; c < PARTS; c++) {
                    total[f][c] += part[f][c];
                    part[f][c] = 0;
                }
        }
    }
#pragma unroll
    for (int f = 0; f < FRAMES; f++)
#pragma unroll
        for (int c = 0; c < PARTS; c++)
            total[f][c] += part[f][c];

    if (q.split > 1) {
#pragma unroll
        for (int f = 0; f < FRAMES; f++)
#pragma unroll
            for (int c = 0; c < PARTS; c++)
                sums[f * PARTS + c][threadIdx.x] = total[f][c];
        sums[FRAMES * PARTS][threadIdx.x] = number;
        sums[FRAMES * PARTS + 1][threadIdx.x] = weights;
        __syncthreads();
        for (int other = threadIdx.x + each; share == 0 && other < THREADS; other += each) {
#pragma unroll
            for (int f = 0; f < FRAMES; f++)
#pragma unroll
                for (int c = 0; c < PARTS; c++)
                    total[f][c] += sums[f * PARTS + c][other];
            number += sums[FRAMES * PARTS][other];
            weights += sums[FRAMES * PARTS + 1][other];
        }
    }
    if (share > 0 || wanted >= q.end_point)
        return;

    long long out = q.image_first + i0 * q.image_strides[5] + i1 * q.image_strides[4] + i2 * q.image_strides[3] +
                    (q.image_first_frame + frame0) * q.image_strides[0];
    if (q.keep_transmit)
        out += (q.keep_receive ? output / q.receive_count : output) * q.image_strides[1];
    if (q.keep_receive)
        out += (q.keep_transmit ? output % q.receive_count : output) * q.image_strides[2];
    const das_value scale = scale_of(q, number, weights);
#pragma unroll
    for (int f = 0; f < FRAMES; f++)
        if (f < frames)
            store(q, out + f * q.image_strides[0], (das_value)total[f][0] * scale,
                  COMPLEX ? (das_value)total[f][PARTS - 1] * scale : 0);
}

template <int FRAMES, int TAPS> __device__ static void generic_any(const das_cuda_params &q)
{
    if (q.data_complex)
        generic<FRAMES, true, TAPS>(q);
    else
        generic<FRAMES, false, TAPS>(q);
}
