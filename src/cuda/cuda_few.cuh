/* The path for few frames: dense data as they are, nearest and linear, any grid, no tables. A block forms 32 points; its
 * warps share the elements, and their sums are then added up in order. */

namespace das_few {

const int SHARES = DAS_CUDA_FEW_THREADS / 32;

template <int PARTS> __device__ static __forceinline__ void load(const das_cuda_params &q, const char *at, float (&v)[PARTS])
{
    const float offset = (float)q.sample_offset;
    if (q.data_type == DAS_TYPE_F32 || q.data_type == DAS_TYPE_CF32) {
        if (PARTS == 2 && q.aligned) {
            const float2 a = __ldg((const float2 *)at);
            v[0] = a.x - offset;
            v[PARTS - 1] = a.y - offset;
        } else {
            v[0] = __ldg((const float *)at) - offset;
            if (PARTS == 2)
                v[PARTS - 1] = __ldg((const float *)at + 1) - offset;
        }
    } else {
        v[0] = (float)__ldg((const short *)at) - offset;
        if (PARTS == 2)
            v[PARTS - 1] = (float)__ldg((const short *)at + 1) - offset;
    }
}

template <int PARTS, int FRAMES, bool LINEAR> __device__ static __forceinline__ void sum_few(const das_cuda_params &q)
{
    __shared__ float sums[SHARES][FRAMES * PARTS][32];
    const int lane = threadIdx.x % 32, share = threadIdx.x / 32;
    const long long wanted = q.first_point + (long long)blockIdx.x * 32 + lane, point = min(wanted, (long long)q.end_point - 1);
    long long index[3];
    if (q.point_count <= 0x7fffffff) { /* 64-bit divisions take as long as some terms */
        const unsigned at = (unsigned)point, count0 = (unsigned)q.counts[0], count1 = (unsigned)q.counts[1];
        index[0] = at % count0;
        index[1] = at / count0 % count1;
        index[2] = at / count0 / count1;
    } else {
        index[0] = point % q.counts[0];
        index[1] = point / q.counts[0] % q.counts[1];
        index[2] = point / q.counts[0] / q.counts[1];
    }
    const das_float::das_vector p = das_float::term_point(q, das_float::grid_point(q, index[0], index[1], index[2]));
    const das_cuda_transmit *transmits = (const das_cuda_transmit *)q.transmit;
    const das_cuda_element *elements = (const das_cuda_element *)q.element;
    const int frame0 = (int)blockIdx.z * FRAMES, frames = (int)min((long long)FRAMES, (long long)q.frame_count - frame0);
    const int receives = (int)q.receive_count, sample_bytes = q.sample_bytes;
    const long long frame_bytes = q.frame_stride * q.value_bytes;

    double total[FRAMES][PARTS];
#pragma unroll
    for (int f = 0; f < FRAMES; f++)
#pragma unroll
        for (int c = 0; c < PARTS; c++)
            total[f][c] = 0.0;
    for (int t = (int)q.first_transmit; t < (int)q.end_transmit; t++) {
        const das_cuda_transmit &wave = transmits[t];
        const double delay = das_float::das_transmit_path(wave.wave, p, das_float::vector_of(wave.scaled),
                                                          das_float::vector_of(wave.direction), 1e-3) +
                             wave.constant;
        const float *weights = q.pair_weight ? (const float *)q.pair_weight + (long long)t * receives : nullptr;
        const char *record = (const char *)q.data + (q.data_first + (q.first_frame + frame0) * q.frame_stride +
                                                     t * q.transmit_stride + share * q.receive_stride) *
                                                        q.value_bytes;
        const long long next_record = SHARES * q.receive_stride * q.value_bytes;
        float part[FRAMES][PARTS];
#pragma unroll
        for (int f = 0; f < FRAMES; f++)
#pragma unroll
            for (int c = 0; c < PARTS; c++)
                part[f][c] = 0.0f;
        for (int r = share; r < receives; r += SHARES, record += next_record) {
            const double2 xy = *(const double2 *)&elements[r], z_constant = *((const double2 *)&elements[r] + 1);
            const double dx = p.x - xy.x, dy = p.y - xy.y, dz = p.z - z_constant.x, square = square_distance(dx, dy, dz);
            float weight = 1.0f;
            if (q.aperture) {
                const double *normal = elements[r].normal;
                const double h = q.z_normals ? dz : __fma_rn(dx, normal[0], __fma_rn(dy, normal[1], dz * normal[2]));
                weight = aperture_weight(q, h, square);
            }
            if (weights)
                weight *= weights[r];
            if (weight == 0.0f)
                continue;
            const double s = root_of_any(square) + (z_constant.y + delay);
            int sample;
            float fraction;
            if (!das_float::find_sample(q, LINEAR ? DAS_KERNEL_LINEAR : DAS_KERNEL_NEAREST, s, sample, fraction))
                continue;
            float re = weight, im = 0.0f;
            if (PARTS == 2 && q.rotate) {
                const das_float::das_rotation phase = das_float::fast_rotation(s, q.turns_per_sample, wave.phase);
                re = weight * phase.re;
                im = weight * phase.im;
            }
            const char *at = record + (long long)sample * sample_bytes;
            const int next = (double)sample < q.last ? sample_bytes : 0; /* the last sample has none, and weight 1 */
#pragma unroll
            for (int f = 0; f < FRAMES; f++) {
                if (f >= frames)
                    continue;
                float v[PARTS];
                load<PARTS>(q, at + f * frame_bytes, v);
                if (LINEAR) {
                    float u[PARTS];
                    load<PARTS>(q, at + next + f * frame_bytes, u);
#pragma unroll
                    for (int c = 0; c < PARTS; c++)
                        v[c] = __fmaf_rn(fraction, u[c] - v[c], v[c]);
                }
                if (PARTS == 1) {
                    part[f][0] = __fmaf_rn(v[0], re, part[f][0]);
                } else {
                    part[f][0] = __fmaf_rn(v[0], re, __fmaf_rn(-v[PARTS - 1], im, part[f][0]));
                    part[f][PARTS - 1] = __fmaf_rn(v[0], im, __fmaf_rn(v[PARTS - 1], re, part[f][PARTS - 1]));
                }
            }
        }
#pragma unroll
        for (int f = 0; f < FRAMES; f++)
#pragma unroll
            for (int c = 0; c < PARTS; c++)
                total[f][c] += (double)part[f][c];
    }
#pragma unroll
    for (int f = 0; f < FRAMES; f++)
#pragma unroll
        for (int c = 0; c < PARTS; c++)
            sums[share][f * PARTS + c][lane] = (float)total[f][c];
    __syncthreads();
    /* Frames are shared as well. */
    for (int f = share; f < frames; f += SHARES) {
        float sum[PARTS];
#pragma unroll
        for (int c = 0; c < PARTS; c++) {
            sum[c] = 0.0f;
            for (int other = 0; other < SHARES; other++)
                sum[c] += sums[other][f * PARTS + c][lane];
        }
        const long long out = q.image_first + index[0] * q.image_strides[5] + index[1] * q.image_strides[4] +
                              index[2] * q.image_strides[3] + (q.image_first_frame + frame0 + f) * q.image_strides[0];
        if (wanted < q.end_point)
            das_float::store(q, out, sum[0], sum[PARTS - 1]);
    }
}

} // namespace das_few
