/* The generic kernel: a thread forms one point of one output for up to FRAMES frames.
 * Included once for each type of das_value, inside a namespace with kernel.h. */

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

/* One part of a stored sample; `index` counts numbers, two to a complex sample. */
__device__ static das_value load_number(const das_cuda_params &q, long long index)
{
    const void *data = (const void *)q.data;
    das_value v;
    switch (q.data_type) {
    case DAS_TYPE_I8:
        v = ((const signed char *)data)[index];
        break;
    case DAS_TYPE_U8:
        v = ((const unsigned char *)data)[index];
        break;
    case DAS_TYPE_I16:
    case DAS_TYPE_CI16:
        v = ((const short *)data)[index];
        break;
    case DAS_TYPE_U16:
        v = ((const unsigned short *)data)[index];
        break;
    case DAS_TYPE_F16:
    case DAS_TYPE_CF16:
        v = half_to_float(((const unsigned short *)data)[index]);
        break;
    case DAS_TYPE_F64:
        v = (das_value)((const double *)data)[index];
        break;
    default:
        v = ((const float *)data)[index];
        break;
    }
    return v - (das_value)q.sample_offset;
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

__device__ static das_vector vector_of(const double *x)
{
    das_vector v;
    v.x = x[0];
    v.y = x[1];
    v.z = x[2];
    return v;
}

template <int FRAMES, bool COMPLEX> __device__ static void generic(const das_cuda_params &q)
{
    const int parts = COMPLEX ? 2 : 1;
    const long long point = q.first_point + (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (point >= q.end_point)
        return;
    const long long output = q.first_output + blockIdx.y;
    const long long frame0 = (long long)blockIdx.z * FRAMES;
    const int frames = (int)min((long long)FRAMES, q.frame_count - frame0);

    const long long i0 = point % q.counts[0], i12 = point / q.counts[0];
    const long long i1 = i12 % q.counts[1], i2 = i12 / q.counts[1];
    const das_vector p = grid_point(q, i0, i1, i2);

    const das_cuda_transmit *transmits = (const das_cuda_transmit *)q.transmit;
    const das_cuda_element *elements = (const das_cuda_element *)q.element;
    const das_cuda_pair *pairs = (const das_cuda_pair *)q.pair;
    const long long *output_first = (const long long *)q.output_first;
    const long long begin = max(output_first[output], (long long)q.first_pair);
    const long long end = min(output_first[output + 1], (long long)q.end_pair);

    /* Sums of blocks of terms, then sums of those: rounding grows with the block, not with the number of terms. */
    double total[FRAMES][2];
    das_value part[FRAMES][2];
    for (int f = 0; f < FRAMES; f++)
        total[f][0] = total[f][1] = 0, part[f][0] = part[f][1] = 0;
    long long count = 0;
    double weights = 0;
    int in_part = 0;

    const int tap_count = das_tap_count(q.interpolation), tap_first = das_tap_first(q.interpolation);
    int current = -1;
    double transmit_delay = 0;
    das_value transmit_weight = 1;
    for (long long i = begin; i < end; i++) {
        const das_cuda_pair pair = pairs[i];
        if (pair.transmit < q.first_transmit || pair.transmit >= q.end_transmit)
            continue;
        if (pair.transmit != current) {
            current = pair.transmit;
            const das_cuda_transmit *t = transmits + current;
            if (q.transmit_times)
                transmit_delay = ((const double *)q.transmit_times)[current * q.point_count + point] + t->constant;
            else
                transmit_delay = das_transmit_delay(t->wave, p, vector_of(t->point), vector_of(t->direction), q.tolerance_m,
                                                    q.samples_per_m, t->constant);
            if (q.transmit_weights)
                transmit_weight = ((const float *)q.transmit_weights)[current * q.point_count + point];
        }
        const das_cuda_element *e = elements + pair.receive;
        const das_vector x = vector_of(e->position);
        das_value weight = (das_value)pair.weight * transmit_weight;
        if (q.receive_weights) {
            weight *= ((const float *)q.receive_weights)[pair.receive * q.point_count + point];
        } else if (q.aperture) {
            das_value at = das_aperture(p, x, vector_of(e->normal), q.inverse_2f, q.tolerance_m);
            if (at < 0)
                continue;
            weight *= das_window_weight(q.window, at, (das_value)q.window_parameter, (const das_value *)q.window_table,
                                        q.window_count);
        }
        if (weight == 0)
            continue;
        double receive_delay;
        if (q.receive_times)
            receive_delay = ((const double *)q.receive_times)[pair.receive * q.point_count + point] + e->constant;
        else
            receive_delay = das_receive_delay(p, x, q.samples_per_m, e->constant);
        const double s = transmit_delay + receive_delay;
        const das_position at = das_sample_position(q.interpolation, s, q.last, q.clamp);
        if (!at.inside)
            continue;
        if (q.normalization) {
            count++;
            weights += (double)weight;
        }
        das_value tap[DAS_KERNEL_TAPS];
        das_tap_weights(q.interpolation, at.fraction, tap);
        das_rotation turn = {weight, 0};
        if (COMPLEX && q.rotate) {
            turn = das_phase_rotation(s, q.turns_per_sample, transmits[current].phase);
            turn.re *= weight;
            turn.im *= weight;
        }
        das_value v[FRAMES][2];
#pragma unroll
        for (int f = 0; f < FRAMES; f++)
            v[f][0] = v[f][1] = 0;
#pragma unroll
        for (int k = 0; k < DAS_KERNEL_TAPS; k++) {
            const long long n = at.sample + tap_first + k;
            if (k < tap_count && n >= 0 && (double)n <= q.last) {
                const long long base = pair.offset + n * q.sample_stride + (q.first_frame + frame0) * q.frame_stride;
#pragma unroll
                for (int f = 0; f < FRAMES; f++)
                    if (f < frames)
                        for (int c = 0; c < parts; c++)
                            v[f][c] += tap[k] * load_number(q, (base + f * q.frame_stride) * parts + c);
            }
        }
#pragma unroll
        for (int f = 0; f < FRAMES; f++) {
            if (COMPLEX) {
                part[f][0] += v[f][0] * turn.re - v[f][1] * turn.im;
                part[f][1] += v[f][0] * turn.im + v[f][1] * turn.re;
            } else {
                part[f][0] += v[f][0] * turn.re;
            }
        }
        if (++in_part == 64) {
            in_part = 0;
#pragma unroll
            for (int f = 0; f < FRAMES; f++)
                for (int c = 0; c < parts; c++) {
                    total[f][c] += part[f][c];
                    part[f][c] = 0;
                }
        }
    }

    long long out = q.image_first + i0 * q.image_strides[5] + i1 * q.image_strides[4] + i2 * q.image_strides[3] +
                    (q.image_first_frame + frame0) * q.image_strides[0];
    if (q.keep_transmit)
        out += (q.keep_receive ? output / q.receive_count : output) * q.image_strides[1];
    if (q.keep_receive)
        out += (q.keep_transmit ? output % q.receive_count : output) * q.image_strides[2];
    das_value divisor = 1;
    if (q.normalization == DAS_NORMALIZATION_COUNT)
        divisor = (das_value)count;
    else if (q.normalization == DAS_NORMALIZATION_WEIGHTS)
        divisor = (das_value)weights;
#pragma unroll
    for (int f = 0; f < FRAMES; f++) {
        if (f >= frames)
            continue;
        das_value re = (das_value)(total[f][0] + part[f][0]), im = (das_value)(total[f][1] + part[f][1]);
        if (q.normalization) {
            re = divisor != 0 ? re / divisor : 0;
            im = divisor != 0 ? im / divisor : 0;
        }
        store(q, out + f * q.image_strides[0], re, im);
    }
}

template <int FRAMES> __device__ static void generic_any(const das_cuda_params &q)
{
    if (q.data_complex)
        generic<FRAMES, true>(q);
    else
        generic<FRAMES, false>(q);
}
