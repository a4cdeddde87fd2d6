/* The path for few frames: dense data as they are, nearest and linear, any grid, no tables. A block forms a patch of 32
 * points; its warps share the elements, and their sums are then added up in order. Where the points lie close together
 * their delays are worked out relative to those of their middle, in float. */

namespace das_few {

const int SHARES = DAS_CUDA_FEW_THREADS / 32;

/* How samples are stored: float, complex float that may be read at once, or short. */
enum { FLOATS, WHOLE, SHORTS };

template <int PARTS> __device__ static __forceinline__ void load(int storage, const char *at, float offset, float (&v)[PARTS])
{
    if (PARTS == 2 && storage == WHOLE) {
        const float2 a = __ldg((const float2 *)at);
        v[0] = a.x - offset;
        v[PARTS - 1] = a.y - offset;
        return;
    }
#pragma unroll
    for (int c = 0; c < PARTS; c++)
        v[c] = (storage == SHORTS ? (float)__ldg((const short *)at + c) : __ldg((const float *)at + c)) - offset;
}

/* part += the sample times weight and phase, for each frame. */
template <int PARTS, int FRAMES, bool LINEAR>
__device__ static __forceinline__ void add(const das_cuda_params &q, int storage, const char *record, long long frame_bytes,
                                           int frames, const das_float::term &t, float (&part)[FRAMES][PARTS])
{
    const float offset = (float)q.sample_offset;
    const char *at = record + (unsigned long long)(unsigned)t.at.sample * (unsigned)q.sample_bytes;
    const int next = (int)t.at.sample < (int)q.sample_count - 1 ? q.sample_bytes : 0; /* the last has none, and weight 1 */
    const float fraction = t.at.fraction, re = t.turn.re, im = t.turn.im;
#pragma unroll
    for (int f = 0; f < FRAMES; f++) {
        if (f >= frames)
            continue;
        float v[PARTS], u[PARTS];
        load<PARTS>(storage, at + f * frame_bytes, offset, v);
        if (LINEAR) {
            load<PARTS>(storage, at + next + f * frame_bytes, offset, u);
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

template <int PARTS, int FRAMES, bool LINEAR>
__device__ static __forceinline__ void add_any(const das_cuda_params &q, const char *record, long long frame_bytes, int frames,
                                               const das_float::term &t, float (&part)[FRAMES][PARTS])
{
    if (q.data_type == DAS_TYPE_I16 || q.data_type == DAS_TYPE_CI16)
        add<PARTS, FRAMES, LINEAR>(q, SHORTS, record, frame_bytes, frames, t, part);
    else if (PARTS == 2 && q.aligned)
        add<PARTS, FRAMES, LINEAR>(q, WHOLE, record, frame_bytes, frames, t, part);
    else
        add<PARTS, FRAMES, LINEAR>(q, FLOATS, record, frame_bytes, frames, t, part);
}

template <int PARTS, int FRAMES, bool LINEAR> __device__ static __forceinline__ void sum_few(const das_cuda_params &q)
{
    const int LIST = DAS_CUDA_FEW_THREADS, INTERPOLATION = LINEAR ? DAS_KERNEL_LINEAR : DAS_KERNEL_NEAREST;
    __shared__ union {
        das_float::reference references[LIST];
        float sums[SHARES][FRAMES * PARTS][32];
    } shared;
    const int lane = threadIdx.x % 32, share = threadIdx.x / 32;
    /* Points of the patch: patch_a along axis 0, the others along what rows the other two axes make. */
    const long long patch = q.first_point / 32 + blockIdx.x;
    const long long patch_row = q.point_count <= 0x7fffffff ? (unsigned)patch / (unsigned)q.patches_a : patch / q.patches_a;
    const long long a = (patch - patch_row * q.patches_a) * q.patch_a + lane % q.patch_a;
    const long long b = patch_row * (32 / q.patch_a) + lane / q.patch_a, rows = q.counts[1] * q.counts[2];
    const bool wanted = a < q.counts[0] && b < rows;
    const long long row = min(b, rows - 1), index0 = min(a, (long long)q.counts[0] - 1);
    const long long index2 = q.point_count <= 0x7fffffff ? (unsigned)row / (unsigned)q.counts[1] : row / q.counts[1];
    const long long index1 = row - index2 * q.counts[1];
    const das_float::das_vector p = das_float::term_point(q, das_float::grid_point(q, index0, index1, index2));
    das_float::das_vector middle = {0.5 * (__shfl_sync(~0u, p.x, 0) + __shfl_sync(~0u, p.x, 31)),
                                    0.5 * (__shfl_sync(~0u, p.y, 0) + __shfl_sync(~0u, p.y, 31)),
                                    0.5 * (__shfl_sync(~0u, p.z, 0) + __shfl_sync(~0u, p.z, 31))};
    const float3 d = make_float3((float)(p.x - middle.x), (float)(p.y - middle.y), (float)(p.z - middle.z));
    const float reach = das_float::NEAR / fmaxf(1.0f, fabsf((float)q.turns_per_sample));
    const bool near = __all_sync(~0u, (q.z_normals || !q.aperture) && d.x * d.x + d.y * d.y + d.z * d.z <= reach * reach);

    const das_cuda_transmit *transmits = (const das_cuda_transmit *)q.transmit;
    const int frame0 = (int)blockIdx.z * FRAMES, frames = (int)min((long long)FRAMES, (long long)q.frame_count - frame0);
    const int receives = (int)q.receive_count;
    const long long frame_bytes = q.frame_stride * q.value_bytes;
    const long long record_bytes = q.receive_stride * q.value_bytes;

    double total[FRAMES][PARTS];
#pragma unroll
    for (int f = 0; f < FRAMES; f++)
#pragma unroll
        for (int c = 0; c < PARTS; c++)
            total[f][c] = 0.0;
    for (int t = (int)q.first_transmit; t < (int)q.end_transmit; t++) {
        const das_cuda_transmit &wave = transmits[t];
        const das_float::das_vector source = das_float::vector_of(wave.scaled), along = das_float::vector_of(wave.direction);
        const double delay = das_float::das_transmit_path(wave.wave, p, source, along, 1e-3) + wave.constant;
        const double delay_middle = das_float::das_transmit_path(wave.wave, middle, source, along, 1e-3) + wave.constant;
        const float later = (float)(delay - delay_middle);
        /* A focus between the points makes the delays jump. */
        const bool near_now = near && __all_sync(~0u, fabsf(later) <= 2.0f * das_float::NEAR);
        const float *weights = q.pair_weight ? (const float *)q.pair_weight + (long long)t * receives : nullptr;
        const char *records =
            (const char *)q.data +
            (q.data_first + (q.first_frame + frame0) * q.frame_stride + t * q.transmit_stride) * q.value_bytes;
        float part[FRAMES][PARTS];
#pragma unroll
        for (int f = 0; f < FRAMES; f++)
#pragma unroll
            for (int c = 0; c < PARTS; c++)
                part[f][c] = 0.0f;
        if (near_now) { /* the same for all warps: they have the same points */
            for (int first = 0; first < receives; first += LIST) {
                __syncthreads(); /* the last references have been read */
                if (first + (int)threadIdx.x < receives)
                    shared.references[threadIdx.x] =
                        das_float::reference_of(q, middle, first + (int)threadIdx.x, t, delay_middle);
                __syncthreads();
                const int end = min(LIST, receives - first);
                const char *record = records + (long long)(first + share) * record_bytes;
                for (int i = share; i < end; i += SHARES, record += SHARES * record_bytes) {
                    das_float::term found;
                    if (das_float::find_near<(PARTS == 2)>(q, INTERPOLATION, shared.references[i], d, later,
                                                           weights ? weights[first + i] : 1.0f, found))
                        add_any<PARTS, FRAMES, LINEAR>(q, record, frame_bytes, frames, found, part);
                }
            }
        } else {
            das_float::wave w = {t, 1.0f, delay};
            const char *record = records + share * record_bytes;
            for (int r = share; r < receives; r += SHARES, record += SHARES * record_bytes) {
                const das_cuda_pair pair = {0, weights ? weights[r] : 1.0f, r, t};
                das_float::term found;
                if (das_float::find_simple<(PARTS == 2)>(q, INTERPOLATION, pair, p, 0, w, found))
                    add_any<PARTS, FRAMES, LINEAR>(q, record, frame_bytes, frames, found, part);
            }
        }
#pragma unroll
        for (int f = 0; f < FRAMES; f++)
#pragma unroll
            for (int c = 0; c < PARTS; c++)
                total[f][c] += (double)part[f][c];
    }
    __syncthreads(); /* the references have been read */
#pragma unroll
    for (int f = 0; f < FRAMES; f++)
#pragma unroll
        for (int c = 0; c < PARTS; c++)
            shared.sums[share][f * PARTS + c][lane] = (float)total[f][c];
    __syncthreads();
    /* Frames are shared as well. */
    for (int f = share; f < frames; f += SHARES) {
        float sum[PARTS];
#pragma unroll
        for (int c = 0; c < PARTS; c++) {
            sum[c] = 0.0f;
            for (int other = 0; other < SHARES; other++)
                sum[c] += shared.sums[other][f * PARTS + c][lane];
        }
        const long long out = q.image_first + index0 * q.image_strides[5] + index1 * q.image_strides[4] +
                              index2 * q.image_strides[3] + (q.image_first_frame + frame0 + f) * q.image_strides[0];
        if (wanted)
            das_float::store(q, out, sum[0], sum[PARTS - 1]);
    }
}

} // namespace das_few
