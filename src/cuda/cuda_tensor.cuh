/* The tensor path, for many frames of plans that allow reduced precision. Interpolation is a product of matrices: a row of
 * the first holds what the samples of a window add to a point (weight, phase and interpolation), a column of the second
 * the samples of a frame. Both are float16, scaled by powers of two; the sums are float.
 *
 * A warp forms a patch of POINTS points. Its lanes work out, one each, what pairs do to the points (an entry). Then each
 * lane makes its part of the weights' matrix from the entries, reads its part of the samples as they were packed, and the
 * warp multiplies. A pair whose positions do not fit one window takes several. */

namespace das_tensor {

const int WARPS = DAS_CUDA_FRAMES_THREADS / 32;

/* Two numbers as float16, the first in the low half. */
__device__ static __forceinline__ unsigned halves(float first, float second)
{
    unsigned both = 0;
#if __CUDA_ARCH__ >= 800
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(second), "f"(first));
#endif
    return both;
}

/* ---------------------------------------------------------------------------
 * Packing: [pair][two rows][two frames][row][frame], a row being two complex samples (both real parts, both imaginary
 * parts) or four real ones. So neighbouring lanes of a product read close to each other.
 * ------------------------------------------------------------------------- */

/* What frame f, of those packed, is multiplied by: a power of two, so that no number reaches 2^16. */
__device__ static __forceinline__ float scale_of_frame(const das_cuda_frames &q, long long f)
{
    if (!q.peaks)
        return q.scale;
    const int exponent = (int)(((const unsigned *)q.peaks)[f] >> 23) - 127;
    return __uint_as_float((unsigned)(127 + min(max(14 - exponent, -126), 126)) << 23);
}

/* The largest magnitude of each frame, as bits; all 0 before. A block looks at 32 frames of a pair. */
template <bool COMPLEX> __device__ static __forceinline__ void peaks_of(const das_cuda_frames &q)
{
    __shared__ unsigned highest[32];
    const das_cuda_params &c = q.common;
    const int x = threadIdx.x % 32, y = threadIdx.x / 32;
    const long long frame0 = (long long)blockIdx.x * 32;
    const long long from = ((const das_cuda_pair *)c.pair)[c.first_pair + blockIdx.y].offset;
    const bool by_frame = llabs(c.frame_stride) < llabs(c.sample_stride);
    if (y == 0)
        highest[x] = 0;
    __syncthreads();
    for (int f = by_frame ? x : y; f < 32; f += by_frame ? 32 : WARPS) {
        float most = 0.0f;
        for (long long n = by_frame ? y : x; frame0 + f < c.frame_count && n < c.sample_count; n += by_frame ? WARPS : 32) {
            float re, im;
            das_float::load_sample<COMPLEX>(c, from + (c.first_frame + frame0 + f) * c.frame_stride + n * c.sample_stride, re,
                                            im);
            most = fmaxf(most, fmaxf(fabsf(re), fabsf(im)));
        }
        atomicMax(&highest[f], __float_as_uint(most));
    }
    __syncthreads();
    if (y == 0 && frame0 + x < c.frame_count)
        atomicMax((unsigned *)q.peaks + frame0 + x, highest[x]);
}

__device__ static void peaks(const das_cuda_frames &q)
{
    if (q.common.data_complex)
        peaks_of<true>(q);
    else
        peaks_of<false>(q);
}

__device__ static void clear_peaks(const das_cuda_frames &q)
{
    for (long long f = threadIdx.x; f < q.common.frame_count; f += DAS_CUDA_FRAMES_THREADS)
        ((unsigned *)q.peaks)[f] = 0;
}

template <bool COMPLEX> __device__ static __forceinline__ void pack_as(const das_cuda_frames &q)
{
    const int TILE = DAS_CUDA_PACK_TILE, PARTS = COMPLEX ? 2 : 1, EACH = 4 / PARTS; /* samples of a row */
    __shared__ float tile[TILE][(TILE + 1) * PARTS];
    const long long sample0 = (long long)blockIdx.x * TILE, frame0 = (long long)blockIdx.y * TILE;
    const long long pair = q.common.first_pair + blockIdx.z;
    das_frames::load_tile<COMPLEX>(q, pair, sample0, frame0, tile);
    __syncthreads();
    const long long frame = frame0 + threadIdx.x % TILE;
    if (2 * frame >= q.row_floats)
        return;
    const float scale = frame < q.common.frame_count ? scale_of_frame(q, frame) : 0.0f;
    const long long row0 = sample0 / EACH, rows = q.pair_rows + (pair + 1 == q.common.end_pair ? DAS_CUDA_TENSOR_AFTER : 0);
    uint2 *out =
        (uint2 *)((float *)q.packed + ((pair - q.packed_pair) * q.pair_rows + row0) * q.row_floats) + frame / 2 * 4 + frame % 2;
    for (int i = threadIdx.x / TILE; i < TILE / EACH && row0 + i < rows; i += DAS_CUDA_FRAMES_THREADS / TILE) {
        const float *v = &tile[threadIdx.x % TILE][4 * i];
        out[i / 2 * q.row_floats + i % 2 * 2] =
            COMPLEX ? make_uint2(halves(v[0] * scale, v[2] * scale), halves(v[1] * scale, v[3] * scale))
                    : make_uint2(halves(v[0] * scale, v[1] * scale), halves(v[2] * scale, v[3] * scale));
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
 * Sums
 * ------------------------------------------------------------------------- */

/* Two weights of interpolation side by side, moved by `bits`: what is moved out is lost. */
__device__ static __forceinline__ unsigned moved(unsigned weights, int bits)
{
    unsigned up, down;
    asm("shl.b32 %0, %1, %2;" : "=r"(up) : "r"(weights), "r"(bits)); /* 0 from 32 bits on; negative ones are many */
    asm("shr.u32 %0, %1, %2;" : "=r"(down) : "r"(weights), "r"(-bits));
    return up | down;
}

/* sum += a b: 16 points, 16 samples or parts of samples, 8 frames. */
__device__ static __forceinline__ void multiply(float (&sum)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
#if __CUDA_ARCH__ >= 800
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#endif
}

__device__ static __forceinline__ uint4 load_entry(unsigned at)
{
    uint4 e;
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];" : "=r"(e.x), "=r"(e.y), "=r"(e.z), "=r"(e.w) : "r"(at) : "memory");
    return e;
}

/* Of a number for each lane, the least and the greatest among the lanes of `mask`, which has this one. */
__device__ static __forceinline__ void range_of(unsigned mask, int low, int high, int &least, int &greatest)
{
#if __CUDA_ARCH__ >= 800
    least = __reduce_min_sync(mask, low);
    greatest = __reduce_max_sync(mask, high);
#else
    least = low;
    greatest = high;
#endif
}

/* TILES of 16 points, COLUMNS of 8 frames. */
template <bool LINEAR, int PARTS, int TILES, int COLUMNS>
__device__ static __forceinline__ void sum_tensor(const das_cuda_frames &q)
{
    const int POINTS = 16 * TILES, PAIRS = 32 / POINTS, EACH = 4 / PARTS, FRAMES = 8 * COLUMNS;
    const int INTERPOLATION = LINEAR ? DAS_KERNEL_LINEAR : DAS_KERNEL_NEAREST;
    __shared__ double points[WARPS][3][32];
    __shared__ uint4 entries[WARPS][2][32]; /* both weights' real and imaginary parts, and where they belong: bits */
    __shared__ das_float::reference references[WARPS][32];
    const das_cuda_params &c = q.common;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int order = q.first_block + blockIdx.x, block = q.reversed ? q.blocks[0] * q.blocks[1] - 1 - order : order;
    const int slice = q.first_slice + blockIdx.y;
    const int counts_a = (int)c.counts[q.axis[0]], counts_b = (int)c.counts[q.axis[1]];
    const int a0 = (block % q.blocks[0] * q.warps + warp % q.warps) * q.patch_a;
    const int b0 = (block / q.blocks[0] * (WARPS / q.warps) + warp / q.warps) * (POINTS / q.patch_a);
    if (a0 >= counts_a || b0 >= counts_b)
        return;

    /* The point whose entries this lane makes, and where it lies from the middle of all, if they are close together. */
    const int own = lane % POINTS;
    const das_frames::place at(q, min(a0 + own % q.patch_a, counts_a - 1), min(b0 + own / q.patch_a, counts_b - 1), slice);
    const long long point = (at.index[2] * c.counts[1] + at.index[1]) * c.counts[0] + at.index[0];
    {
        const das_float::das_vector p =
            das_float::term_point(c, das_float::grid_point(c, at.index[0], at.index[1], at.index[2]));
        points[warp][0][lane] = p.x;
        points[warp][1][lane] = p.y;
        points[warp][2][lane] = p.z;
    }
    __syncwarp();
    auto place_of = [&](int of) { /* kept out of registers */
                                  const das_float::das_vector p = {((volatile double *)points[warp][0])[of],
                                                                   ((volatile double *)points[warp][1])[of],
                                                                   ((volatile double *)points[warp][2])[of]};
                                  return p;
    };
    auto middle_of_all = [&]() {
        const das_float::das_vector p = place_of(0), o = place_of(POINTS - 1);
        const das_float::das_vector m = {0.5 * (p.x + o.x), 0.5 * (p.y + o.y), 0.5 * (p.z + o.z)};
        return m;
    };
    float3 d;
    {
        const das_float::das_vector p = place_of(lane), middle = middle_of_all();
        d = make_float3((float)(p.x - middle.x), (float)(p.y - middle.y), (float)(p.z - middle.z));
    }
    asm volatile("" : "+f"(d.x), "+f"(d.y), "+f"(d.z)); /* kept, not worked out again each time */
    const float reach = das_float::NEAR / fmaxf(1.0f, fabsf((float)c.turns_per_sample));
    bool near = c.simple && (c.z_normals || !c.aperture) && !c.transmit_times && !c.receive_times;
    near = __all_sync(~0u, near && d.x * d.x + d.y * d.y + d.z * d.z <= reach * reach);
    float later = 0.0f; /* the transmit's wave reaches this point than the middle */
    int transmit = -1;  /* which that is */

    const das_cuda_pair *pairs = (const das_cuda_pair *)c.pair;
    const char *column = (const char *)q.packed + 16 * (long long)blockIdx.z * FRAMES;
    const unsigned two_rows = (unsigned)(8 * q.row_floats);                  /* bytes */
    const unsigned of_pair = POINTS == 32 ? ~0u : 0xffffu << lane / 16 * 16; /* the lanes of this lane's pair */

    /* References of the next 32 pairs, one a lane. */
    auto refer = [&](long long first) {
        const long long of = max(min(first + lane, (long long)c.end_pair - 1), (long long)0);
        const das_cuda_pair &pair = pairs[of];
        const das_cuda_transmit &t = ((const das_cuda_transmit *)c.transmit)[pair.transmit];
        const das_float::das_vector middle = middle_of_all();
        const double delay = das_float::das_transmit_path(t.wave, middle, das_float::vector_of(t.scaled),
                                                          das_float::vector_of(t.direction), 1e-3) +
                             t.constant;
        references[warp][lane] = das_float::reference_of(c, middle, pair.receive, pair.transmit, delay);
    };

    /* Makes the entries of PAIRS pairs, and finds which samples of its pair they need. */
    int low = 0, high = -1;
    auto make =
        [&](int first,
            int to) { /* from c.first_pair */
                      const int of = first + lane / POINTS;
                      const bool listed = of < (int)(c.end_pair - c.first_pair);
                      das_float::term t;
                      bool counts = false;
                      das_float::reference r;
                      r.transmit = -1;
                      if (near) {
                          if (first % 32 == 0) {
                              __syncwarp();
                              refer(c.first_pair + first);
                              __syncwarp();
                          }
                          r = references[warp][first % 32 + lane / POINTS];
                          if (__any_sync(~0u, r.transmit != transmit)) {
                              const das_cuda_transmit &s = ((const das_cuda_transmit *)c.transmit)[r.transmit];
                              const das_float::das_vector from = das_float::vector_of(s.scaled),
                                                          along = das_float::vector_of(s.direction);
                              transmit = r.transmit;
                              later = (float)(das_float::das_transmit_path(s.wave, place_of(lane), from, along, 1e-3) -
                                              das_float::das_transmit_path(s.wave, middle_of_all(), from, along, 1e-3));
                          }
                      }
                      /* A focus between the points makes the delays jump. */
                      if (near && __all_sync(~0u, fabsf(later) <= 2.0f * das_float::NEAR)) {
                          float weight = q.weight_scale;
                          if (!c.unit_weight && listed)
                              weight *= (float)pairs[c.first_pair + of].weight;
                          counts = listed && das_float::find_near<(PARTS == 2)>(c, INTERPOLATION, r, d, later, weight, t);
                      } else if (listed) {
                          das_float::wave wave = das_float::no_wave();
                          counts = das_float::find_term<(PARTS == 2)>(c, INTERPOLATION, pairs[c.first_pair + of],
                                                                      place_of(lane), point, wave, t);
                          if (counts) {
                              t.turn.re *= q.weight_scale;
                              t.turn.im *= q.weight_scale;
                          }
                      }
                      const int sample = counts ? (int)t.at.sample : 0;
                      range_of(of_pair, counts ? sample : 0x7fffffff, counts ? sample + LINEAR : -1, low, high);
                      low &= -2 * EACH;
                      uint4 e = make_uint4(0, 0, 0, 0);
                      if (counts) {
                          const float f = LINEAR ? t.at.fraction : 0.0f;
                          e.x = halves(t.turn.re - t.turn.re * f, t.turn.re * f);
                          e.y = halves(t.turn.im - t.turn.im * f, t.turn.im * f);
                          e.z = 16 * (unsigned)(sample - low);
                      }
                      entries[warp][to][lane] = e;
                      /* Into the first cache: all of the window. */
                      const int lines = FRAMES / 8; /* of two rows */
                      const unsigned row = ((unsigned)((int)(c.first_pair - q.packed_pair) + of) * (unsigned)q.pair_rows +
                                            (unsigned)(low / EACH)) /
                                           2;
                      if (TILES == 1 && high >= 0) /* (narrow rows come soon enough) */
#pragma unroll
                          for (int i = 0; i < 2 * lines; i += POINTS)
                              if (POINTS <= 2 * lines || own < 2 * lines)
                                  das_frames::prefetch(column +
                                                       (unsigned long long)(row + (unsigned)((i + own) / lines)) * two_rows +
                                                       (i + own) % lines * 128);
        };

    float sum[TILES][PARTS][COLUMNS][4];
    volatile float total[TILES][PARTS][COLUMNS][4]; /* seldom needed, so kept out of registers */
    auto flush = [&](bool again) {
#pragma unroll
        for (int m = 0; m < TILES; m++)
#pragma unroll
            for (int part = 0; part < PARTS; part++)
#pragma unroll
                for (int i = 0; i < COLUMNS; i++)
#pragma unroll
                    for (int k = 0; k < 4; k++) {
                        total[m][part][i][k] = again ? total[m][part][i][k] + sum[m][part][i][k] : 0.0f;
                        sum[m][part][i][k] = 0.0f;
                    }
    };
    flush(false);

    /* This lane's part of the matrices: of the weights points `group` and group + 8 and what row `quad` of the window
     * holds; of the samples that row of frames 2 group and 2 group + 1 of every 16. */
    const int quad = lane % 4, group = lane / 4, count = (int)(c.end_pair - c.first_pair);
    const char *samples = column + 32 * group + 16 * (quad % 2);
    unsigned own_entries = (unsigned)__cvta_generic_to_shared(entries[warp][0]) + 16 * group;
    asm volatile("mov.u32 %0, %0;" : "+r"(own_entries));
    asm volatile("mov.u64 %0, %0;" : "+l"(samples));
    for (int first = 0, now = 1; first < count + PAIRS; first += PAIRS, now ^= 1) {
        const int low_now = low, high_now = high;
        make(first, now ^ 1); /* and multiplies what was made before */
        __syncwarp();
#pragma unroll 1
        for (int j = 0; j < PAIRS; j++) {
            const int begin = __shfl_sync(~0u, low_now, j * POINTS), end = __shfl_sync(~0u, high_now, j * POINTS);
            unsigned row = ((unsigned)((int)(c.first_pair - q.packed_pair) + first - PAIRS + j) * (unsigned)q.pair_rows +
                            (unsigned)(begin / EACH + quad)) /
                           2;
            int shift = -64 / PARTS * quad;
#pragma unroll 1
            for (int from = begin; from <= end; from += 4 * EACH, row += 2, shift -= 64 * EACH) {
                const char *of_row = samples + (unsigned long long)row * two_rows;
                uint4 x[COLUMNS / 2];
#pragma unroll
                for (int i = 0; i < COLUMNS / 2; i++)
                    x[i] = __ldg((const uint4 *)of_row + i * 16);
#pragma unroll
                for (int m = 0; m < TILES; m++) {
                    unsigned a[PARTS][4];
#pragma unroll
                    for (int g = 0; g < 2; g++) {
                        const uint4 e = load_entry(own_entries + 512 * now + 16 * (j * POINTS + m * 16 + g * 8));
                        const int bits = (int)e.z + shift;
                        if (PARTS == 2) {
                            a[0][g] = a[1 % PARTS][2 + g] = moved(e.x, bits);
                            a[1 % PARTS][g] = moved(e.y, bits);
                            a[0][2 + g] = a[1 % PARTS][g] ^ 0x80008000u;
                        } else {
                            a[0][g] = moved(e.x, bits);
                            a[0][2 + g] = moved(e.x, bits - 32);
                        }
                    }
#pragma unroll
                    for (int i = 0; i < COLUMNS; i++)
#pragma unroll
                        for (int part = 0; part < PARTS; part++)
                            multiply(sum[m][part][i], a[part], i % 2 ? x[i / 2].z : x[i / 2].x,
                                     i % 2 ? x[i / 2].w : x[i / 2].y);
                }
            }
        }
        if ((first + PAIRS) % 512 == 0) /* rounding grows with the length of a sum */
            flush(true);
        __syncwarp();
    }
    flush(true);

#pragma unroll 1
    for (int k = 0; k < TILES * COLUMNS * 4; k++) {
        const int m = k / (COLUMNS * 4), i = k / 4 % COLUMNS, n = k % 4; /* see the layout of mma's results */
        const int of = m * 16 + group + n / 2 * 8, a = a0 + of % q.patch_a, b = b0 + of / q.patch_a;
        const long long frame = (long long)blockIdx.z * FRAMES + i / 2 * 16 + (2 * quad + n % 2) * 2 + i % 2;
        if (a >= counts_a || b >= counts_b || frame >= c.frame_count)
            continue;
        const das_frames::place here(q, a, b, slice);
        const float scale = 1.0f / scale_of_frame(q, frame), weight = 1.0f / q.weight_scale;
        das_float::store(c,
                         c.image_first + here.index[0] * c.image_strides[5] + here.index[1] * c.image_strides[4] +
                             here.index[2] * c.image_strides[3] + (c.image_first_frame + frame) * c.image_strides[0],
                         total[m][0][i][n] * scale * weight, total[m][PARTS - 1][i][n] * scale * weight);
    }
}

} // namespace das_tensor
