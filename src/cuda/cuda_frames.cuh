/* The frames path, for many frames at once: where a sample is read, its weight and its phase
 * are the same for all of them. A kernel before it packs the records with the frames of a
 * sample side by side, converted to float, with zeros around each record.
 *
 * A warp forms POINTS neighbouring points. For PAIRS pairs at a time its lanes first work out,
 * one each, what the pairs do to the points (an entry); then lanes are frames and walk through
 * the entries, in SPLIT teams that have some of the points each. Neighbours mostly read the
 * same two samples of a pair, which then stay in registers. Warps share nothing, so that there
 * is no barrier; those of a block are neighbours and meet in the cache. */

namespace das_frames {

const int WARPS = DAS_CUDA_FRAMES_THREADS / 32, POINTS = DAS_CUDA_FRAMES_POINTS, PAIRS = 32 / POINTS;

/* ---------------------------------------------------------------------------
 * Packing: a block moves PACK_TILE samples of as many frames of a pair
 * ------------------------------------------------------------------------- */

/* A tile of a pair, tile[frame][sample], with zeros around the record and the frames. */
template <bool COMPLEX>
__device__ static __forceinline__ void load_tile(const das_cuda_frames &q, long long pair, long long row0, long long frame0,
                                                 float (*tile)[(DAS_CUDA_PACK_TILE + 1) * (COMPLEX ? 2 : 1)])
{
    const int TILE = DAS_CUDA_PACK_TILE, PARTS = COMPLEX ? 2 : 1;
    const das_cuda_params &c = q.common;
    const int x = threadIdx.x % TILE;
    const long long from = ((const das_cuda_pair *)c.pair)[pair].offset;
    /* Neighbouring threads read what lies closest together. */
    const bool by_frame = llabs(c.frame_stride) < llabs(c.sample_stride);
    for (int i = threadIdx.x / TILE; i < TILE; i += DAS_CUDA_FRAMES_THREADS / TILE) {
        const int f = by_frame ? x : i, n = by_frame ? i : x;
        const long long sample = row0 + n - q.lead, frame = frame0 + f;
        float re = 0.0f, im = 0.0f;
        if (sample >= 0 && sample < c.sample_count && frame < c.frame_count)
            das_float::load_sample<COMPLEX>(c, from + (c.first_frame + frame) * c.frame_stride + sample * c.sample_stride, re,
                                            im);
        tile[f][n * PARTS] = re;
        tile[f][n * PARTS + PARTS - 1] = COMPLEX ? im : re;
    }
}

template <bool COMPLEX> __device__ static __forceinline__ void pack_as(const das_cuda_frames &q)
{
    const int TILE = DAS_CUDA_PACK_TILE, PARTS = COMPLEX ? 2 : 1;
    __shared__ float tile[TILE][(TILE + 1) * PARTS];
    const int x = threadIdx.x % TILE, y = threadIdx.x / TILE, step = DAS_CUDA_FRAMES_THREADS / TILE;
    const long long row0 = (long long)blockIdx.x * TILE, frame0 = (long long)blockIdx.y * TILE;
    const long long pair = q.common.first_pair + blockIdx.z;
    load_tile<COMPLEX>(q, pair, row0, frame0, tile);
    __syncthreads();
    float *out = (float *)q.packed;
    const long long at = (frame0 + x) * PARTS;
    for (int i = y; i < TILE && at < q.row_floats; i += step) {
        const long long row = row0 + i;
        if (row < q.pair_rows) {
            float *to = out + (DAS_CUDA_FRAMES_ZEROS + (pair - q.packed_pair) * q.pair_rows + row) * q.row_floats + at;
            if (COMPLEX)
                *(float2 *)to = make_float2(tile[x][i * PARTS], tile[x][i * PARTS + PARTS - 1]);
            else
                *to = tile[x][i];
        }
        if (row < DAS_CUDA_FRAMES_ZEROS && blockIdx.z == 0)
            for (int part = 0; part < PARTS; part++)
                out[row * q.row_floats + at + part] = 0.0f;
    }
}

__device__ static void pack(const das_cuda_frames &q)
{
    if (q.common.data_complex)
        pack_as<true>(q);
    else
        pack_as<false>(q);
}

/* ---------------------------------------------------------------------------
 * Sums. KIND 0 nearest, 1 linear, 2 any. FLOATS: numbers of a packed row that a lane takes.
 * ------------------------------------------------------------------------- */

const unsigned FRESH = 1u << 31;

struct __align__(16) entry
{
    float re, im;   /* weight and phase */
    float fraction; /* of linear interpolation */
    unsigned row;   /* of the first tap; FRESH if it is not that of the team's point before */
};

/* Not before it is needed: all at once would take too many registers. */
__device__ static __forceinline__ entry load_entry(unsigned at)
{
    entry e;
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(e.re), "=f"(e.im), "=f"(e.fraction), "=r"(e.row)
                 : "r"(at)
                 : "memory");
    return e;
}

/* Into the first cache. */
__device__ static __forceinline__ void prefetch(const void *at)
{
    asm volatile("prefetch.global.L1 [%0];" ::"l"(at));
}

/* A lane's numbers of a row: vectors of four, LANES lanes side by side. */
template <int FLOATS, int LANES> __device__ static __forceinline__ void load_row(float (&v)[FLOATS], const char *at)
{
#pragma unroll
    for (int i = 0; i < FLOATS; i += 4) {
        const float4 a = __ldg((const float4 *)at + i / 4 * LANES);
        v[i] = a.x;
        v[i + 1] = a.y;
        v[i + 2] = a.z;
        v[i + 3] = a.w;
    }
}

/* sum += v times the entry's weight */
template <int PARTS, int FLOATS>
__device__ static __forceinline__ void add(float (&sum)[FLOATS], const float (&v)[FLOATS], const entry &e)
{
#pragma unroll
    for (int i = 0; i < FLOATS; i += PARTS) {
        if (PARTS == 1) {
            sum[i] = __fmaf_rn(v[i], e.re, sum[i]);
        } else {
            const float re = v[i], im = v[i + PARTS - 1];
            sum[i] = __fmaf_rn(re, e.re, __fmaf_rn(-im, e.im, sum[i]));
            sum[i + PARTS - 1] = __fmaf_rn(re, e.im, __fmaf_rn(im, e.re, sum[i + PARTS - 1]));
        }
    }
    /* Now: the compiler would rather keep the samples of all points until the end of the loop. */
#pragma unroll
    for (int i = 0; i < FLOATS; i++)
        asm volatile("" : "+f"(sum[i]));
}

template <int COUNT, int FLOATS>
__device__ static __forceinline__ void flush(volatile float (&total)[COUNT][FLOATS], float (&sum)[COUNT][FLOATS])
{
#pragma unroll
    for (int i = 0; i < COUNT; i++)
#pragma unroll
        for (int k = 0; k < FLOATS; k++) {
            total[i][k] = total[i][k] + sum[i][k];
            sum[i][k] = 0.0f;
        }
}

/* Indices along the grid's axes of what is a, b and slice along those of the warps. */
struct place {
    long long index[3];
    __device__ __forceinline__ place(const das_cuda_frames &q, int a, int b, int slice)
    {
#pragma unroll
        for (int k = 0; k < 3; k++)
            index[k] = q.axis[0] == k ? a : q.axis[1] == k ? b : slice;
    }
};

template <int KIND, int PARTS, int FLOATS, int SPLIT>
__device__ static __forceinline__ void sum_frames(const das_cuda_frames &q)
{
    const int TAPS = KIND == 2 ? DAS_KERNEL_TAPS : 1, LANES = 32 / SPLIT, OWN = POINTS / SPLIT;
    __shared__ entry entries[WARPS][2][32];
    __shared__ float taps[WARPS][2][TAPS][32];
    __shared__ das_float::reference references[WARPS][32];
    const das_cuda_params &c = q.common;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, team = lane / LANES;
    const int order = q.first_block + blockIdx.x, block = q.reversed ? q.blocks[0] * q.blocks[1] - 1 - order : order;
    const int slice = q.first_slice + blockIdx.y;
    const int counts_a = (int)c.counts[q.axis[0]], counts_b = (int)c.counts[q.axis[1]];
    const int a0 = (block % q.blocks[0] * q.warps + warp % q.warps) * POINTS;
    const int b = block / q.blocks[0] * (WARPS / q.warps) + warp / q.warps;
    if (a0 >= counts_a || b >= counts_b)
        return;

    /* The point whose entries this lane makes. */
    const place at(q, min(a0 + lane % POINTS, counts_a - 1), b, slice);
    const das_float::das_vector p = das_float::term_point(c, das_float::grid_point(c, at.index[0], at.index[1], at.index[2]));
    const long long point = (at.index[2] * c.counts[1] + at.index[1]) * c.counts[0] + at.index[0];
    das_float::wave wave = das_float::no_wave();
    volatile double number_here = 0.0, weights_here = 0.0;

    /* Where it lies from the middle of all, if they are close together. */
    const das_float::das_vector middle = {0.5 * (__shfl_sync(~0u, p.x, 0) + __shfl_sync(~0u, p.x, POINTS - 1)),
                                          0.5 * (__shfl_sync(~0u, p.y, 0) + __shfl_sync(~0u, p.y, POINTS - 1)),
                                          0.5 * (__shfl_sync(~0u, p.z, 0) + __shfl_sync(~0u, p.z, POINTS - 1))};
    const float3 d = make_float3((float)(p.x - middle.x), (float)(p.y - middle.y), (float)(p.z - middle.z));
    const float reach = das_float::NEAR / fmaxf(1.0f, fabsf((float)c.turns_per_sample));
    bool near = c.simple && (c.z_normals || !c.aperture) && !c.transmit_times && !c.receive_times && !c.transmit_weights &&
                !c.receive_weights;
    near = __all_sync(~0u, near && d.x * d.x + d.y * d.y + d.z * d.z <= reach * reach);
    float later = 0.0f; /* the transmit's wave reaches this point than the middle */

    /* The numbers of a row that this lane takes. */
    const int first_float = (int)blockIdx.z * LANES * FLOATS + lane % LANES * 4;
    const char *column = (const char *)q.packed + 4 * (long long)first_float;
    unsigned row_bytes = (unsigned)(4 * q.row_floats);

    const das_cuda_pair *pairs = (const das_cuda_pair *)c.pair;
    const int interpolation = KIND == 0 ? DAS_KERNEL_NEAREST : KIND == 1 ? DAS_KERNEL_LINEAR : c.interpolation;
    const int tap_count = das_float::das_tap_count(interpolation), tap_first = das_float::das_tap_first(interpolation);

    /* References of the next 32 pairs, one a lane. */
    auto refer = [&](long long first) {
        const long long of = max(min(first + lane, (long long)c.end_pair - 1), (long long)0);
        const das_cuda_pair &pair = pairs[of];
        const das_cuda_transmit &t = ((const das_cuda_transmit *)c.transmit)[pair.transmit];
        const double delay = das_float::das_transmit_path(t.wave, middle, das_float::vector_of(t.scaled),
                                                          das_float::vector_of(t.direction), 1e-3) +
                             t.constant;
        references[warp][lane] = das_float::reference_of(c, middle, pair.receive, pair.transmit, delay);
    };

    /* Makes the entries of PAIRS pairs; one bit for each that counts. */
    auto make = [&](long long first, int to) {
        const long long of = first + lane / POINTS;
        entry e = {0.0f, 0.0f, 0.0f, 0}; /* reads zeros */
        das_float::term t;
        bool counts = false;
        das_float::reference r = {};
        if (near) {
            const int in_list = (int)(first - c.first_pair) % 32;
            if (in_list == 0) {
                __syncwarp();
                refer(first);
                __syncwarp();
            }
            r = references[warp][in_list + lane / POINTS];
            if (r.transmit != wave.transmit) {
                const das_cuda_transmit &s = ((const das_cuda_transmit *)c.transmit)[r.transmit];
                const das_float::das_vector from = das_float::vector_of(s.scaled), along = das_float::vector_of(s.direction);
                wave.transmit = r.transmit;
                later = (float)(das_float::das_transmit_path(s.wave, p, from, along, 1e-3) -
                                das_float::das_transmit_path(s.wave, middle, from, along, 1e-3));
            }
        }
        /* A focus between the points makes the delays jump. */
        if (near && __all_sync(~0u, fabsf(later) <= 2.0f * das_float::NEAR)) {
            if (of < c.end_pair) {
                const float weight = c.unit_weight ? 1.0f : (float)pairs[of].weight;
                counts = das_float::find_near<(PARTS == 2)>(c, interpolation, r, d, later, weight, t);
            }
        } else if (of < c.end_pair) {
            if (near)
                wave.transmit = -1;
            counts = das_float::find_term<(PARTS == 2)>(c, interpolation, pairs[of], p, point, wave, t);
            if (near)
                wave.transmit = -1;
        }
        if (counts) {
            e.re = t.turn.re;
            e.im = t.turn.im;
            e.fraction = t.at.fraction;
            e.row = (unsigned)(DAS_CUDA_FRAMES_ZEROS + (of - q.packed_pair) * q.pair_rows + q.lead + t.at.sample + tap_first);
            if (c.normalization) {
                number_here = number_here + 1.0;
                weights_here = weights_here + (double)t.weight;
            }
        }
        const unsigned active = __ballot_sync(~0u, counts), before = __shfl_up_sync(~0u, e.row, 1);
        if (active == 0)
            return active;
        /* Each warp has a pair of which it calls a piece into the cache: 32 lines from where the first point reads. */
        const unsigned from = __shfl_sync(~0u, e.row, warp % PAIRS * POINTS);
        const int lines = LANES * FLOATS / 32; /* of a row */
        const unsigned row = min(from + lane / lines, (unsigned)q.rows - 1);
        prefetch((const char *)q.packed + 4 * (long long)((int)blockIdx.z * LANES * FLOATS) +
                 (unsigned long long)row * row_bytes + lane % lines * 128);
        if (lane % OWN == 0 || before != e.row)
            e.row |= FRESH;
        entries[warp][to][lane] = e;
        if (KIND == 2) {
            float tap[DAS_KERNEL_TAPS];
            das_float::das_tap_weights(interpolation, e.fraction, tap);
#pragma unroll
            for (int k = 0; k < TAPS; k++)
                taps[warp][to][k][lane] = counts && k < tap_count ? tap[k] : 0.0f;
        }
        return active;
    };

    float sum[OWN][FLOATS];
    volatile float total[OWN][FLOATS]; /* seldom needed, so kept out of registers */
#pragma unroll
    for (int i = 0; i < OWN; i++)
#pragma unroll
        for (int k = 0; k < FLOATS; k++) {
            sum[i][k] = 0.0f;
            total[i][k] = 0.0f;
        }

    unsigned own = (unsigned)__cvta_generic_to_shared(entries[warp]) + team * OWN * sizeof(entry);
    asm volatile("mov.u32 %0, %0;" : "+r"(own)); /* kept, not worked out again each time; so is the column */
    asm volatile("mov.u64 %0, %0;" : "+l"(column));
    asm volatile("mov.u32 %0, %0;" : "+r"(row_bytes));
    int in_sum = 0, now = 1;
    unsigned active = 0;
    for (long long first = c.first_pair; first < c.end_pair + PAIRS; first += PAIRS) {
        unsigned active_now = active;
        active = make(first, now ^ 1); /* and sums what was made before */
        __syncwarp();
#pragma unroll 1
        for (unsigned from_j = own + now * 32 * sizeof(entry), j = 0; j < PAIRS; j++, from_j += POINTS * sizeof(entry)) {
            const bool none = (active_now & ((1u << POINTS) - 1)) == 0;
            active_now >>= POINTS;
            if (none)
                continue;
            float v[FLOATS], d[FLOATS];
#pragma unroll
            for (int i = 0; i < OWN; i++) {
                const entry e = load_entry(from_j + i * sizeof(entry));
                const char *from = column + (unsigned long long)(e.row & ~FRESH) * row_bytes;
                if (KIND == 0) {
                    if (e.row & FRESH)
                        load_row<FLOATS, LANES>(v, from);
                    add<PARTS, FLOATS>(sum[i], v, e);
                } else if (KIND == 1) {
                    if (e.row & FRESH) {
                        load_row<FLOATS, LANES>(v, from);
                        load_row<FLOATS, LANES>(d, from + row_bytes);
#pragma unroll
                        for (int k = 0; k < FLOATS; k++)
                            d[k] -= v[k];
                    }
                    float between[FLOATS];
#pragma unroll
                    for (int k = 0; k < FLOATS; k++)
                        between[k] = __fmaf_rn(e.fraction, d[k], v[k]);
                    add<PARTS, FLOATS>(sum[i], between, e);
                } else {
#pragma unroll
                    for (int k = 0; k < FLOATS; k++)
                        d[k] = 0.0f;
                    for (int tap = 0; tap < tap_count; tap++) {
                        const float weight = taps[warp][now][tap][j * POINTS + team * OWN + i];
                        load_row<FLOATS, LANES>(v, from + (unsigned long long)tap * row_bytes);
#pragma unroll
                        for (int k = 0; k < FLOATS; k++)
                            d[k] = __fmaf_rn(weight, v[k], d[k]);
                    }
                    add<PARTS, FLOATS>(sum[i], d, e);
                }
            }
        }
        now ^= 1;
        in_sum += PAIRS;
        if (in_sum == 64) { /* rounding grows with the length of a sum */
            in_sum = 0;
            flush(total, sum);
        }
        __syncwarp();
    }
    flush(total, sum);

    /* What the lanes counted for a point, in order. */
    double number = number_here, weights = weights_here;
    if (c.normalization)
#pragma unroll
        for (int i = POINTS; i < 32; i *= 2) {
            number += __shfl_xor_sync(~0u, number, i);
            weights += __shfl_xor_sync(~0u, weights, i);
        }
    const float scale_of_lane = das_float::scale_of(c, number, weights);
#pragma unroll 1
    for (int i = 0; i < OWN; i++) {
        const int a = a0 + team * OWN + i;
        const float scale = __shfl_sync(~0u, scale_of_lane, team * OWN + i);
        const place here(q, a, b, slice);
        const long long out = c.image_first + here.index[0] * c.image_strides[5] + here.index[1] * c.image_strides[4] +
                              here.index[2] * c.image_strides[3];
#pragma unroll 1
        for (int k = 0; k < FLOATS; k += PARTS) {
            const long long frame = (first_float + k / 4 * 4 * LANES + k % 4) / PARTS;
            if (a < counts_a && frame < c.frame_count)
                das_float::store(c, out + (c.image_first_frame + frame) * c.image_strides[0], total[i][k] * scale,
                                 total[i][k + PARTS - 1] * scale);
        }
    }
}

} // namespace das_frames
