/* The tile path, for dense data on Cartesian grids. A block of 512 threads forms a tile of
 * 32 x 32 points, two points a thread.
 *
 * A kernel before it packs the records: weighted, converted to float, with zeros around
 * them so that no sum needs bounds, and with the two records of a reciprocal pair added up
 * (tau(n,k) = tau(k,n)), which halves the work.
 *
 * Delays are kept relative to a whole number of samples at the tile's middle, a multiple
 * of 4 per transmit and per element, so that float holds them to 1e-6 samples. The delays
 * of ROWS transmits stay in registers; for each element in turn the windows of the ROWS
 * traces that the tile can reach are staged in shared memory, the next element's being
 * loaded meanwhile. Adding 1.5 2^23 to a position turns it into an index. */

namespace das_tiles {

const int THREADS = DAS_CUDA_TILE_THREADS, POINTS = 2, WINDOW = DAS_CUDA_TILE_WINDOW;

/* ---------------------------------------------------------------------------
 * Packing
 * ------------------------------------------------------------------------- */

/* Transmit and element of a packed row; a folded matrix holds elements k >= n rounded down to GROUP. */
__device__ static void row_pair(const das_cuda_tile &q, long long row, int &n, int &k)
{
    const int receives = (int)q.common.receive_count;
    if (!q.folded) {
        n = (int)(row / receives);
        k = (int)(row - (long long)n * receives);
        n += q.first_row_transmit;
        return;
    }
    int group = q.first_row_transmit / DAS_CUDA_TILE_GROUP * DAS_CUDA_TILE_GROUP;
    for (;; group += DAS_CUDA_TILE_GROUP) {
        const long long here = (long long)(receives - group) * DAS_CUDA_TILE_GROUP;
        if (row < here)
            break;
        row -= here;
    }
    n = group + (int)(row / (receives - group));
    k = group + (int)(row % (receives - group));
}

/* The row's inverse. */
__device__ static long long packed_row(const das_cuda_tile &q, int n, int k)
{
    const long long receives = q.common.receive_count, first = q.first_row_transmit;
    if (!q.folded)
        return (n - first) * receives + k;
    /* Chunks start at multiples of GROUP. Rows before group g: the sum over those groups of GROUP (receives - group). */
    const long long group = n / DAS_CUDA_TILE_GROUP * DAS_CUDA_TILE_GROUP;
    const long long groups = (group - first) / DAS_CUDA_TILE_GROUP;
    const long long before = groups * DAS_CUDA_TILE_GROUP * receives -
                             DAS_CUDA_TILE_GROUP * (groups * first + DAS_CUDA_TILE_GROUP * (groups * (groups - 1) / 2));
    return before + (n - group) * (receives - group) + (k - group);
}

__device__ static float2 load_sample(const das_cuda_tile &q, int n, int k, long long sample)
{
    const das_cuda_params &c = q.common;
    const long long at = q.offset + q.frame * c.frame_stride + n * q.transmit_stride + k * q.receive_stride + sample * c.sample_stride;
    float2 v;
    if (c.data_complex) {
        v.x = das_float::load_number(c, 2 * at);
        v.y = das_float::load_number(c, 2 * at + 1);
    } else {
        v.x = das_float::load_number(c, at);
        v.y = 0.0f;
    }
    return v;
}

/* Adds w times the sample; a pair of weight 0 is not read. */
__device__ static void add_sample(const das_cuda_tile &q, int n, int k, long long sample, float2 &sum)
{
    float w = 1.0f;
    if (q.pair_weight)
        w = ((const float *)q.pair_weight)[n * q.common.receive_count + k];
    if (w == 0.0f)
        return;
    const float2 v = load_sample(q, n, k, sample);
    sum.x += w * v.x;
    sum.y += w * v.y;
}

__device__ static void pack(const das_cuda_tile &q)
{
    int n, k;
    row_pair(q, blockIdx.x, n, k);
    for (int i = 0; i < 4; i++) {
        const int at = blockIdx.y * 1024 + i * 256 + threadIdx.x;
        if (at >= q.stride)
            return;
        const int sample = at - q.lead;
        float2 v = {0.0f, 0.0f};
        if (sample >= 0 && sample < q.sample_count && !(q.folded && k < n)) {
            add_sample(q, n, k, sample, v);
            if (q.folded && k > n)
                add_sample(q, k, n, sample, v);
        }
        const long long out = (long long)blockIdx.x * q.stride + at;
        if (q.common.data_complex)
            ((float2 *)q.packed)[out] = v;
        else
            ((float *)q.packed)[out] = v.x;
    }
}

/* ---------------------------------------------------------------------------
 * Arithmetic
 * ------------------------------------------------------------------------- */

/* Square root of x in 1e-30 .. 1e30 to 1e-13: a float estimate and one Newton step. Exponents are
 * moved by hand, because conversions between double and float are slow. */
__device__ static double root(double x)
{
    const unsigned hi = (unsigned)__double2hiint(x) - 0x38000000u, lo = (unsigned)__double2loint(x);
    float y;
    asm("rsqrt.approx.f32 %0, %1;" : "=f"(y) : "f"(__uint_as_float(__funnelshift_l(lo, hi, 3))));
    const unsigned bits = __float_as_uint(y);
    const double r = __hiloint2double((int)((bits >> 3) + 0x38000000u), (int)(bits << 29));
    const double g = x * r;
    return __fma_rn(__fma_rn(-g, g, x), 0.5 * r, g);
}

struct point3 {
    double x, y, z; /* in samples: metres times samples_per_m */
};

/* Squared distance, never quite 0 (root() needs that), and the part of it across z. */
__device__ static double square_distance(double dx, double dy, double dz)
{
    return __fma_rn(dx, dx, __fma_rn(dy, dy, __fma_rn(dz, dz, 1e-24)));
}

__device__ static float2 turn_by(double turns)
{
    const float t = (float)(turns - rint(turns)) * 6.28318530717958647692f;
    float2 r;
    asm("cos.approx.f32 %0, %1;" : "=f"(r.x) : "f"(t));
    asm("sin.approx.f32 %0, %1;" : "=f"(r.y) : "f"(t));
    return r;
}

/* das_window_weight() without the slow path of cosf, which costs registers; its argument is within 0..pi. */
__device__ static float half_cosine(float a, float q)
{
    float cosine;
    asm("cos.approx.f32 %0, %1;" : "=f"(cosine) : "f"(3.14159265358979323846f * q));
    return __fmaf_rn(1.0f - a, cosine, a);
}

__device__ static float window_weight(const das_cuda_params &c, float q)
{
    if (c.window == DAS_KERNEL_WINDOW_HANN)
        return half_cosine(0.5f, q);
    if (c.window == DAS_KERNEL_WINDOW_HAMMING)
        return half_cosine(0.54f, q);
    if (c.window == DAS_KERNEL_WINDOW_TUKEY) {
        const float flat = 1.0f - (float)c.window_parameter;
        return q <= flat ? 1.0f : half_cosine(0.5f, (q - flat) / (float)c.window_parameter);
    }
    const float *table = (const float *)c.window_table;
    const float at = q * (float)(c.window_count - 1);
    const int i = min((int)at, (int)c.window_count - 2);
    return __fmaf_rn(at - (float)i, table[i + 1] - table[i], table[i]);
}

__device__ static float shared_float(unsigned at)
{
    float v;
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(v) : "r"(at));
    return v;
}

__device__ static float2 shared_float2(unsigned at)
{
    float2 v;
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(v.x), "=f"(v.y) : "r"(at));
    return v;
}

__device__ static float4 shared_float4(unsigned at)
{
    float4 v;
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "r"(at));
    return v;
}

#define MAGIC 12582912.0f /* 1.5 2^23 */

/* ---------------------------------------------------------------------------
 * The kernel. KIND 0 nearest, 1 linear, 2 cubic.
 *
 * Staged entries: nearest the sample; linear c and d with v = c + t d for the position t
 * relative to the references; cubic the coefficients of a polynomial in the fraction.
 * ------------------------------------------------------------------------- */

template <int KIND, bool IQ> struct layout {
    static const int ROWS = KIND == 2 || IQ ? DAS_CUDA_TILE_ROWS_IQ : DAS_CUDA_TILE_ROWS_REAL;
    static const int GROUP = IQ ? 4 : DAS_CUDA_TILE_GROUP; /* rows that are skipped together */
    static const int PARTS = IQ ? 2 : 1;
    static const int WORDS = PARTS * (KIND == 0 ? 1 : 2 * KIND);
    static const int SHIFT = WORDS == 1 ? 2 : WORDS == 2 ? 3 : WORDS == 4 ? 4 : 5;
    static const int BYTES = ROWS * WINDOW * WORDS * 4; /* of a stage */
    /* Staging: each warp takes ROWS * SPLIT / 16 strips of WINDOW / SPLIT samples, each lane every 32nd sample. */
    static const int SPLIT = ROWS >= 16 ? 1 : 16 / ROWS;
    static const int STRIPS = ROWS * SPLIT / 16;
    static const int EACH = WINDOW / SPLIT / 32;
};

/* Samples of this thread on their way from the packed records to shared memory: those of a strip and their
 * neighbours. */
template <int KIND, bool IQ> struct strip {
    static const int TAPS = KIND == 0 ? 1 : KIND == 1 ? 2 : 4;
    float tap[layout<KIND, IQ>::STRIPS][layout<KIND, IQ>::EACH][TAPS][layout<KIND, IQ>::PARTS];
};

template <int KIND, bool IQ>
__device__ static __forceinline__ void fetch(const das_cuda_tile &q, const int *reference, int n0, int k, int reference_k,
                                             strip<KIND, IQ> &s)
{
    typedef layout<KIND, IQ> L;
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
#pragma unroll
    for (int i = 0; i < L::STRIPS; i++) {
        const int row = (warp + 16 * i) / L::SPLIT, part = (warp + 16 * i) % L::SPLIT;
        const int n = n0 + row;
        const bool real = n < q.end_row_transmit && !(q.folded && k < (n & -DAS_CUDA_TILE_GROUP));
        int base = reference[row] + reference_k - q.half_window;
        base = min(max(base, -q.window), (int)q.sample_count + 3 & ~3) + q.lead;
        const float *from = (const float *)q.packed +
                            (real ? packed_row(q, n, k) * q.stride + base + part * (WINDOW / L::SPLIT) + lane : 0) * L::PARTS;
#pragma unroll
        for (int e = 0; e < L::EACH; e++) {
            const bool wanted = real && part * (WINDOW / L::SPLIT) + 32 * e + lane < q.window;
#pragma unroll
            for (int t = 0; t < strip<KIND, IQ>::TAPS; t++) {
                const int at = 32 * e + t - (KIND == 2 ? 1 : 0);
                if (IQ) {
                    float2 v = {0.0f, 0.0f};
                    if (wanted)
                        v = __ldg((const float2 *)from + at);
                    s.tap[i][e][t][0] = v.x;
                    s.tap[i][e][t][L::PARTS - 1] = v.y;
                } else {
                    s.tap[i][e][t][0] = wanted ? __ldg(from + at) : 0.0f;
                }
            }
        }
    }
}

template <int KIND, bool IQ> __device__ static __forceinline__ void stage(const das_cuda_tile &q, char *to, const strip<KIND, IQ> &s)
{
    typedef layout<KIND, IQ> L;
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
#pragma unroll
    for (int i = 0; i < L::STRIPS; i++) {
        const int row = (warp + 16 * i) / L::SPLIT, part = (warp + 16 * i) % L::SPLIT;
#pragma unroll
        for (int e = 0; e < L::EACH; e++) {
            const int index = part * (WINDOW / L::SPLIT) + 32 * e + lane;
            float *out = (float *)to + (row * WINDOW + index) * L::WORDS;
            float entry[L::WORDS];
#pragma unroll
            for (int c = 0; c < L::PARTS; c++) {
                if (KIND == 0) {
                    entry[c] = s.tap[i][e][0][c];
                } else if (KIND == 1) {
                    const float d = s.tap[i][e][1][c] - s.tap[i][e][0][c];
                    entry[c] = __fmaf_rn(-(float)(index - q.half_window), d, s.tap[i][e][0][c]);
                    entry[L::PARTS + c] = d;
                } else {
                    const float a = s.tap[i][e][0][c], b = s.tap[i][e][1][c];
                    const float g = s.tap[i][e][strip<KIND, IQ>::TAPS - 2][c], h = s.tap[i][e][strip<KIND, IQ>::TAPS - 1][c];
                    entry[c] = b;
                    entry[L::PARTS * (L::WORDS > 1) + c] = 0.5f * (g - a);
                    entry[L::WORDS - 2 * L::PARTS + c] = a - 2.5f * b + 2.0f * g - 0.5f * h;
                    entry[L::WORDS - L::PARTS + c] = 0.5f * (h - a) + 1.5f * (b - g);
                }
            }
            if (L::WORDS == 1)
                out[0] = entry[0];
            else if (L::WORDS == 2)
                *(float2 *)out = make_float2(entry[0], entry[L::WORDS > 1]);
            else
#pragma unroll
                for (int w = 0; w + 3 < L::WORDS; w += 4)
                    *(float4 *)(out + w) = make_float4(entry[w], entry[w + 1], entry[w + 2], entry[w + 3]);
        }
    }
}

/* The value at position t (relative to the references) of the row whose entries start, less the index of MAGIC, at `at`. */
template <int KIND, bool IQ> __device__ static __forceinline__ float2 sample_at(float t, unsigned at)
{
    typedef layout<KIND, IQ> L;
    const float u = KIND == 0 ? __fadd_rn(t, MAGIC) : __fadd_rd(t, MAGIC);
    const unsigned from = (__float_as_uint(u) << L::SHIFT) + at;
    float2 v = {0.0f, 0.0f};
    if (KIND == 0 && !IQ) {
        v.x = shared_float(from);
    } else if (KIND == 0) {
        v = shared_float2(from);
    } else if (KIND == 1 && !IQ) {
        const float2 e = shared_float2(from);
        v.x = __fmaf_rn(t, e.y, e.x);
    } else if (KIND == 1) {
        const float4 e = shared_float4(from);
        v.x = __fmaf_rn(t, e.z, e.x);
        v.y = __fmaf_rn(t, e.w, e.y);
    } else {
        const float f = t - (u - MAGIC);
        if (!IQ) {
            const float4 e = shared_float4(from);
            v.x = __fmaf_rn(f, __fmaf_rn(f, __fmaf_rn(f, e.w, e.z), e.y), e.x);
        } else {
            const float4 e = shared_float4(from), g = shared_float4(from + 16);
            v.x = __fmaf_rn(f, __fmaf_rn(f, __fmaf_rn(f, g.z, g.x), e.z), e.x);
            v.y = __fmaf_rn(f, __fmaf_rn(f, __fmaf_rn(f, g.w, g.y), e.w), e.y);
        }
    }
    return v;
}

template <int KIND, bool IQ> __device__ static __forceinline__ void tile(const das_cuda_tile &q, char *shared)
{
    typedef layout<KIND, IQ> L;
    const das_cuda_params &c = q.common;
    const int tid = threadIdx.x, lane = tid & 31, warp = tid >> 5;
    const int receives = (int)c.receive_count;
    const int transmits = q.end_row_transmit - q.first_row_transmit;

    /* Shared memory: two stages, references of transmits (whole blocks of ROWS) and elements, elements to visit. */
    int *reference_t = (int *)(shared + 2 * L::BYTES);
    int *reference_r = reference_t + (transmits + L::ROWS - 1) / L::ROWS * L::ROWS;
    unsigned short *visit = (unsigned short *)(reference_r + ((receives + 3) & ~3));
    __shared__ int visit_count;
    __shared__ int group_least[L::ROWS / L::GROUP], group_most[L::ROWS / L::GROUP];

    /* The tile and this thread's points. */
    const int tile = q.first_tile + blockIdx.x;
    const int tile_a = q.slow_a ? tile / q.tiles_b : tile % q.tiles_a;
    const int tile_b = q.slow_a ? tile % q.tiles_b : tile / q.tiles_a;
    const int slice = q.first_slice + blockIdx.y;
    const double scale = c.samples_per_m;
    const double *step_a = c.steps[q.axis_a], *step_b = c.steps[q.axis_b], *step_c = c.steps[q.axis_c];
    auto position = [&](double a, double b) {
        point3 p;
        p.x = (c.origin[0] + a * step_a[0] + b * step_b[0] + slice * step_c[0]) * scale;
        p.y = (c.origin[1] + a * step_a[1] + b * step_b[1] + slice * step_c[1]) * scale;
        p.z = (c.origin[2] + a * step_a[2] + b * step_b[2] + slice * step_c[2]) * scale;
        return p;
    };
    const int a0 = tile_a * DAS_CUDA_TILE + (lane & 7) + 8 * (warp & 3);
    const int b0 = tile_b * DAS_CUDA_TILE + (lane >> 3) + 4 * (warp >> 2);
    const int most_a = (int)c.counts[q.axis_a] - 1, most_b = (int)c.counts[q.axis_b] - 1;
    point3 p[POINTS];
#pragma unroll
    for (int i = 0; i < POINTS; i++)
        p[i] = position(min(a0, most_a), min(b0 + 16 * i, most_b));

    const das_cuda_transmit *transmit = (const das_cuda_transmit *)c.transmit;
    const das_cuda_element *element = (const das_cuda_element *)c.element;

    /* References: positions of the tile's middle, rounded to a multiple of 4. */
    const point3 middle = position(tile_a * DAS_CUDA_TILE + 0.5 * (DAS_CUDA_TILE - 1), tile_b * DAS_CUDA_TILE + 0.5 * (DAS_CUDA_TILE - 1));
    for (int i = tid; i < (transmits + L::ROWS - 1) / L::ROWS * L::ROWS; i += THREADS) {
        const das_cuda_transmit &t = transmit[q.first_row_transmit + min(i, transmits - 1)];
        const double dx = middle.x - t.point[0] * scale, dy = middle.y - t.point[1] * scale, dz = middle.z - t.point[2] * scale;
        double s = 0.0;
        if (t.wave == DAS_WAVE_POINT)
            s = sqrt(dx * dx + dy * dy + dz * dz);
        else if (t.wave == DAS_WAVE_PLANE)
            s = dx * t.direction[0] + dy * t.direction[1] + dz * t.direction[2];
        s = fmin(fmax((s + t.constant) * 0.25, -1e8), 1e8);
        reference_t[i] = 4 * (int)rint(s);
    }
    for (int i = tid; i < receives; i += THREADS) {
        const das_cuda_element &e = element[i];
        const double dx = middle.x - e.position[0] * scale, dy = middle.y - e.position[1] * scale;
        const double dz = middle.z - e.position[2] * scale;
        const double s = fmin(fmax((sqrt(dx * dx + dy * dy + dz * dz) + e.constant) * 0.25, -1e8), 1e8);
        reference_r[i] = 4 * (int)rint(s);
    }
    /* Elements whose aperture some point of the tile may lie in, in order. */
    if (warp == 0) {
        int count = 0;
        for (int k0 = 0; k0 < receives; k0 += 32) {
            const int k = k0 + lane;
            bool take = k < receives;
            if (take && c.aperture) {
                const das_cuda_element &e = element[k];
                const double dx = middle.x - e.position[0] * scale, dy = middle.y - e.position[1] * scale;
                const double dz = middle.z - e.position[2] * scale;
                const double h = dx * e.normal[0] + dy * e.normal[1] + dz * e.normal[2];
                const double l = sqrt(fmax(dx * dx + dy * dy + dz * dz - h * h, 0.0));
                const double reach = q.radius + 0.01;
                take = h + reach > 0.0 && l - reach <= (h + reach) * c.inverse_2f;
            }
            const unsigned taken = __ballot_sync(~0u, take);
            if (take)
                visit[count + __popc(taken & ((1u << lane) - 1))] = (unsigned short)k;
            count += __popc(taken);
        }
        if (lane == 0)
            visit_count = count;
    }
    __syncthreads();

    const unsigned stage_base = (unsigned)__cvta_generic_to_shared(shared);
    const int last = (int)q.sample_count - 1;
    float2 sum[POINTS];
#pragma unroll
    for (int i = 0; i < POINTS; i++)
        sum[i] = make_float2(0.0f, 0.0f);

    for (int n0 = 0; n0 < transmits; n0 += L::ROWS) {
        const int *reference = reference_t + n0;
        const int first_n = q.first_row_transmit + n0;
        const int rows = min(L::ROWS, transmits - n0);
        __syncthreads(); /* the last block's stages and groups have been read */
        if (tid < L::ROWS / L::GROUP) {
            int least = 1 << 30, most = -(1 << 30);
            for (int i = tid * L::GROUP; i < min((tid + 1) * L::GROUP, rows); i++) {
                least = min(least, reference[i]);
                most = max(most, reference[i]);
            }
            group_least[tid] = least;
            group_most[tid] = most;
        }

        /* Delays of the points from these transmits, relative to the references; their phases. */
        float delay[POINTS][L::ROWS];
        float2 phase[POINTS][IQ ? L::ROWS : 1];
#pragma unroll
        for (int j = 0; j < L::ROWS; j++) {
            const das_cuda_transmit &t = transmit[first_n + min(j, rows - 1)];
            const double x = t.point[0] * scale, y = t.point[1] * scale, z = t.point[2] * scale;
            const double shift = t.constant - reference[j];
#pragma unroll
            for (int i = 0; i < POINTS; i++) {
                const double dx = p[i].x - x, dy = p[i].y - y, dz = p[i].z - z;
                double s = 0.0;
                if (t.wave == DAS_WAVE_POINT)
                    s = root(square_distance(dx, dy, dz));
                else if (t.wave == DAS_WAVE_PLANE)
                    s = __fma_rn(dx, t.direction[0], __fma_rn(dy, t.direction[1], dz * t.direction[2]));
                delay[i][j] = (float)(s + shift);
                if (IQ)
                    phase[i][IQ ? j : 0] = c.rotate ? turn_by(__fma_rn(s + t.constant, c.turns_per_sample, t.phase)) : make_float2(1.0f, 0.0f);
            }
        }

        /* A folded matrix has nothing below its diagonal. */
        const int visits = visit_count;
        int at = q.folded ? first_n & -DAS_CUDA_TILE_GROUP : 0;
        strip<KIND, IQ> next;
        if (at < visits) {
            const int k = visit[at];
            fetch<KIND, IQ>(q, reference, first_n, k, reference_r[k], next);
            stage<KIND, IQ>(q, shared + (at & 1) * L::BYTES, next);
        }
        __syncthreads();
        for (; at < visits; at++) {
            const int k = visit[at], reference_k = reference_r[k];
            if (at + 1 < visits) {
                const int k1 = visit[at + 1];
                fetch<KIND, IQ>(q, reference, first_n, k1, reference_r[k1], next);
            }

            /* This element's delays, weights and phases. */
            const das_cuda_element &e = element[k];
            const double ex = e.position[0] * scale, ey = e.position[1] * scale, ez = e.position[2] * scale;
            const double shift = e.constant - reference_k;
            float receive[POINTS], weight[POINTS];
            float2 turn[POINTS];
            bool any = false;
#pragma unroll
            for (int i = 0; i < POINTS; i++) {
                const double dx = p[i].x - ex, dy = p[i].y - ey, dz = p[i].z - ez;
                const double square = square_distance(dx, dy, dz);
                const double s = root(square);
                receive[i] = (float)(s + shift);
                weight[i] = 1.0f;
                if (c.aperture) {
                    const double h = __fma_rn(dx, e.normal[0], __fma_rn(dy, e.normal[1], dz * e.normal[2]));
                    const double l2 = __fma_rn(-h, h, square);
                    const double half = h * c.inverse_2f, limit = half + 1e-3;
                    if (!(h > 1e-3) || l2 > limit * limit) {
                        weight[i] = 0.0f;
                    } else if (c.window != DAS_KERNEL_WINDOW_RECT) {
                        const float at_q = fminf(sqrtf(fmaxf((float)l2, 0.0f)) / (float)half, 1.0f);
                        weight[i] = window_weight(c, at_q);
                    }
                }
                any = any || weight[i] != 0.0f;
                if (IQ) {
                    turn[i] = c.rotate ? turn_by((s + e.constant) * c.turns_per_sample) : make_float2(1.0f, 0.0f);
                    turn[i].x *= weight[i];
                    turn[i].y *= weight[i];
                }
            }

            float2 part[POINTS];
#pragma unroll
            for (int i = 0; i < POINTS; i++)
                part[i] = make_float2(0.0f, 0.0f);
            /* Address of the entry of position 0 in row 0, less that of MAGIC's bits. */
            unsigned origin = stage_base + (at & 1) * L::BYTES + ((unsigned)q.half_window << L::SHIFT) - (0x4B400000u << L::SHIFT);
            asm volatile("" : "+r"(origin)); /* one register, lest its terms be added to each index again */
            if (__any_sync(~0u, any)) {
#pragma unroll
                for (int g = 0; g < L::ROWS / L::GROUP; g++) {
                    const int least = group_least[g] + reference_k - q.half_window;
                    const int most = group_most[g] + reference_k + q.half_window;
                    if (most < 0 || least > last || (q.folded && k < first_n + g * L::GROUP))
                        continue;
                    if (KIND == 0 || (least >= 0 && most < last)) {
#pragma unroll
                        for (int j = g * L::GROUP; j < (g + 1) * L::GROUP; j++)
#pragma unroll
                            for (int i = 0; i < POINTS; i++) {
                                const float2 v = sample_at<KIND, IQ>(delay[i][j] + receive[i], origin + j * (WINDOW << L::SHIFT));
                                if (IQ) {
                                    const float2 w = phase[i][IQ ? j : 0];
                                    part[i].x = __fmaf_rn(v.x, w.x, __fmaf_rn(-v.y, w.y, part[i].x));
                                    part[i].y = __fmaf_rn(v.x, w.y, __fmaf_rn(v.y, w.x, part[i].y));
                                } else {
                                    part[i].x += v.x;
                                }
                            }
                    } else {
                        /* The windows reach over an end of the record: 1e-3 outside counts as the edge, more as nothing. */
#pragma unroll
                        for (int j = g * L::GROUP; j < (g + 1) * L::GROUP; j++) {
                            const float first = -(float)(reference[j] + reference_k), end = first + (float)last;
#pragma unroll
                            for (int i = 0; i < POINTS; i++) {
                                const float t = delay[i][j] + receive[i];
                                const bool inside = t >= first - 1e-3f && t <= end + 1e-3f;
                                const float2 v = sample_at<KIND, IQ>(inside ? fminf(fmaxf(t, first), end) : t, origin + j * (WINDOW << L::SHIFT));
                                if (inside && IQ) {
                                    const float2 w = phase[i][IQ ? j : 0];
                                    part[i].x = __fmaf_rn(v.x, w.x, __fmaf_rn(-v.y, w.y, part[i].x));
                                    part[i].y = __fmaf_rn(v.x, w.y, __fmaf_rn(v.y, w.x, part[i].y));
                                } else if (inside) {
                                    part[i].x += v.x;
                                }
                            }
                        }
                    }
                }
            }
#pragma unroll
            for (int i = 0; i < POINTS; i++)
                if (weight[i] != 0.0f) {
                    if (IQ) {
                        sum[i].x += part[i].x * turn[i].x - part[i].y * turn[i].y;
                        sum[i].y += part[i].x * turn[i].y + part[i].y * turn[i].x;
                    } else {
                        sum[i].x = __fmaf_rn(weight[i], part[i].x, sum[i].x);
                    }
                }
            if (at + 1 < visits)
                stage<KIND, IQ>(q, shared + ((at + 1) & 1) * L::BYTES, next);
            __syncthreads();
        }
    }

#pragma unroll
    for (int i = 0; i < POINTS; i++) {
        const int a = a0, b = b0 + 16 * i;
        if (a > most_a || b > most_b)
            continue;
        const long long out = c.image_first + c.image_first_frame * c.image_strides[0] + a * c.image_strides[5 - q.axis_a] +
                              b * c.image_strides[5 - q.axis_b] + slice * c.image_strides[5 - q.axis_c];
        das_float::store(c, out, sum[i].x, sum[i].y);
    }
}

} // namespace das_tiles
