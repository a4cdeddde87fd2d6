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
__device__ static void row_pair(const das_cuda_tile &q, int row, int &n, int &k)
{
    const int receives = (int)q.common.receive_count;
    if (!q.folded) {
        n = row / receives;
        k = row - n * receives;
        n += q.first_row_transmit;
        return;
    }
    int group = q.first_row_transmit / DAS_CUDA_TILE_GROUP * DAS_CUDA_TILE_GROUP;
    for (;; group += DAS_CUDA_TILE_GROUP) {
        const int here = (receives - group) * DAS_CUDA_TILE_GROUP;
        if (row < here)
            break;
        row -= here;
    }
    n = group + row / (receives - group);
    k = group + row % (receives - group);
}

/* The row's inverse. */
__device__ static int packed_row(const das_cuda_tile &q, int n, int k)
{
    const int receives = (int)q.common.receive_count, first = q.first_row_transmit;
    if (!q.folded)
        return (n - first) * receives + k;
    /* Chunks start at multiples of GROUP. Rows before group g: the sum over those groups of GROUP (receives - group). */
    const int group = n / DAS_CUDA_TILE_GROUP * DAS_CUDA_TILE_GROUP;
    const int groups = (group - first) / DAS_CUDA_TILE_GROUP;
    const int before = groups * DAS_CUDA_TILE_GROUP * receives -
                       DAS_CUDA_TILE_GROUP * (groups * first + DAS_CUDA_TILE_GROUP * (groups * (groups - 1) / 2));
    return before + (n - group) * (receives - group) + (k - group);
}

__device__ static float number(float v)
{
    return v;
}
__device__ static float number(double v)
{
    return (float)v;
}
__device__ static float number(short v)
{
    return v;
}
__device__ static float number(unsigned short v)
{
    return v;
}
__device__ static float number(signed char v)
{
    return v;
}
__device__ static float number(unsigned char v)
{
    return v;
}
struct half_bits {
    unsigned short bits;
};
__device__ static float number(half_bits v)
{
    return half_to_float(v.bits);
}

/* Adds weight times four samples, 256 apart, of the record that starts at `first`; no sample is read for weight 0. */
template <typename T, int PARTS>
__device__ static __forceinline__ void add_samples(const das_cuda_tile &q, long long first, float weight, int sample,
                                                   float sum[4][PARTS])
{
    if (weight == 0.0f)
        return;
    const T *data = (const T *)q.common.data;
    const long long stride = q.common.sample_stride;
    const float offset = (float)q.common.sample_offset;
    T v[4][PARTS];
    bool inside[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        inside[i] = (unsigned)(sample + 256 * i) < (unsigned)q.sample_count;
        const T *at = data + (first + (inside[i] ? sample + 256 * i : 0) * stride) * PARTS;
#pragma unroll
        for (int c = 0; c < PARTS; c++)
            v[i][c] = at[c];
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int c = 0; c < PARTS; c++)
            sum[i][c] += inside[i] ? weight * (number(v[i][c]) - offset) : 0.0f;
}

/* One byte per packed row, after the records: whether it holds something that is not finite. */
__device__ static unsigned char *row_flags(const das_cuda_tile &q)
{
    return (unsigned char *)q.packed + q.flags_offset;
}

/* A block packs a row: pair (n, k), and if it is folded (k, n) as well. */
template <typename T, int PARTS> __device__ static __forceinline__ void pack_as(const das_cuda_tile &q)
{
    const das_cuda_params &c = q.common;
    int n, k;
    row_pair(q, blockIdx.x, n, k);
    const long long first = c.data_first + q.frame * c.frame_stride;
    const long long one = first + n * c.transmit_stride + k * c.receive_stride;
    const long long other = first + k * c.transmit_stride + n * c.receive_stride;
    float weight = q.folded && k < n ? 0.0f : 1.0f, other_weight = q.folded && k > n ? 1.0f : 0.0f;
    if (c.pair_weight) {
        weight *= ((const float *)c.pair_weight)[n * c.receive_count + k];
        if (other_weight != 0.0f)
            other_weight = ((const float *)c.pair_weight)[k * c.receive_count + n];
    }
    float *out = (float *)q.packed + (long long)blockIdx.x * q.stride * PARTS;
    bool odd = false;
    for (int at = threadIdx.x; at < q.stride; at += 1024) {
        float sum[4][PARTS];
#pragma unroll
        for (int i = 0; i < 4; i++)
            for (int part = 0; part < PARTS; part++)
                sum[i][part] = 0.0f;
        add_samples<T, PARTS>(q, one, weight, at - q.lead, sum);
        add_samples<T, PARTS>(q, other, other_weight, at - q.lead, sum);
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (at + 256 * i < q.stride)
                for (int part = 0; part < PARTS; part++) {
                    out[(at + 256 * i) * PARTS + part] = sum[i][part];
                    odd = odd || !(fabsf(sum[i][part]) <= 3.402823466e38f);
                }
    }
    odd = __syncthreads_or(odd);
    if (threadIdx.x == 0)
        row_flags(q)[blockIdx.x] = odd;
}

__device__ static void pack(const das_cuda_tile &q)
{
    switch (q.common.data_type) {
    case DAS_TYPE_I8:
        return pack_as<signed char, 1>(q);
    case DAS_TYPE_U8:
        return pack_as<unsigned char, 1>(q);
    case DAS_TYPE_I16:
        return pack_as<short, 1>(q);
    case DAS_TYPE_U16:
        return pack_as<unsigned short, 1>(q);
    case DAS_TYPE_F16:
        return pack_as<half_bits, 1>(q);
    case DAS_TYPE_F32:
        return pack_as<float, 1>(q);
    case DAS_TYPE_F64:
        return pack_as<double, 1>(q);
    case DAS_TYPE_CI16:
        return pack_as<short, 2>(q);
    case DAS_TYPE_CF16:
        return pack_as<half_bits, 2>(q);
    default:
        return pack_as<float, 2>(q);
    }
}

/* ---------------------------------------------------------------------------
 * Arithmetic
 * ------------------------------------------------------------------------- */

struct point3 {
    double x, y, z; /* in samples: metres times samples_per_m */
};

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
    /* Staging: each warp takes ROWS * SPLIT / 16 strips of WINDOW / SPLIT samples. */
    static const int SPLIT = ROWS >= 16 ? 1 : 16 / ROWS;
    static const int STRIPS = ROWS * SPLIT / 16;
    /* A stage is written while those of the last step and of the one before may still be read. */
    static const int STAGES = KIND == 0 ? 4 : 3;
};

__device__ static __forceinline__ void copy_async(unsigned to, const void *from)
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
#else
    const float4 v = __ldg((const float4 *)from);
    asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(to), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w) : "memory");
#endif
}

__device__ static __forceinline__ void copies_done()
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

/* What a warp brings from the packed records to shared memory for one step: strips, each a row or part of one. Nearest's
 * samples are copied straight to the stage; others to a place of the warp's own first, from which entries are made. */
template <int KIND, bool IQ> struct strip {
    typedef layout<KIND, IQ> L;
    static const int LENGTH = WINDOW / L::SPLIT; /* samples of a strip */
    static const bool OVERLAP = KIND == 1 && IQ; /* the second strip of a row starts CHUNK earlier, to have the neighbour */
    static const int CHUNK = 4 / L::PARTS;       /* samples in 16 bytes */
    static const int BEFORE = KIND == 2 ? CHUNK : 0, AFTER = KIND < 2 || L::SPLIT == 1 ? 0 : CHUNK; /* neighbours, rounded up */
    static const int CHUNKS = (BEFORE + LENGTH + AFTER) / CHUNK;
    static const int RAW = CHUNKS * 16; /* bytes of a strip before entries are made */
    unsigned from[L::STRIPS]; /* this thread's first chunk of a window starting at sample 0 of the row's first record */
    int reference[L::STRIPS]; /* of the row, less half_window */
    unsigned place;           /* of that chunk: in a stage (nearest), or in shared memory */

    /* Read anew each time: what is derived from them would take registers through the sum. */
    static __device__ __forceinline__ int lane_now()
    {
        int lane;
        asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
        return lane;
    }
    static __device__ __forceinline__ int warp_now()
    {
        int thread;
        asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
        return thread >> 5;
    }
    static __device__ __forceinline__ int row(int warp, int i)
    {
        return (warp + 16 * i) / L::SPLIT;
    }
    static __device__ __forceinline__ int start(int warp, int i) /* first sample */
    {
        return (unsigned)(warp + 16 * i) % L::SPLIT * (OVERLAP ? LENGTH - CHUNK : LENGTH);
    }

    /* offset(row) is where the row's records start, in samples; a row beyond `rows` takes zeros from before a record. */
    template <typename Offset>
    __device__ __forceinline__ void begin(const das_cuda_tile &q, int rows, const int *references, unsigned raw, Offset offset)
    {
        const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
        place = KIND == 0 ? threadIdx.x * 16 : raw + warp * L::STRIPS * RAW + lane * 16;
#pragma unroll
        for (int i = 0; i < L::STRIPS; i++) {
            const int j = min(row(warp, i), rows - 1);
            reference[i] = j < row(warp, i) ? -(1 << 29) : references[j] - q.half_window;
            from[i] = offset(j) + q.lead + start(warp, i) - BEFORE + lane * CHUNK;
        }
    }

    /* To `stage` (nearest) or to the place for copies. Of a folded matrix, elements below a row's group give other records,
     * which are not used. */
    __device__ __forceinline__ void fetch(const das_cuda_tile &q, unsigned stage, unsigned offset, int other_reference) const
    {
        const int lane = lane_now();
#pragma unroll
        for (int i = 0; i < L::STRIPS; i++) {
            const int base = min(max(reference[i] + other_reference, -WINDOW), ((int)q.sample_count + 3) & ~3);
            const float *at = (const float *)q.packed + (unsigned long long)((from[i] + offset + base) * L::PARTS);
            const unsigned to = KIND == 0 ? stage + place + i * (16 / L::SPLIT) * WINDOW * 4 * L::PARTS : place + i * RAW;
#pragma unroll
            for (int chunk = 0; chunk < CHUNKS; chunk += 32) /* once or twice */
                if ((CHUNKS - chunk >= 32 || chunk + lane < CHUNKS) &&
                    (L::SPLIT == 1 ? 0 : start(warp_now(), i)) - BEFORE + (chunk + lane) * CHUNK <
                        q.window + BEFORE + AFTER + (KIND > 0))
                    copy_async(to + chunk * 16, at + chunk * 4);
        }
    }

    /* Makes the entries of the stage from what was copied; not for nearest. */
    __device__ __forceinline__ void stage(const das_cuda_tile &q, char *to, const char *raw) const
    {
        const int lane = lane_now(), warp = warp_now();
#pragma unroll
        for (int i = 0; i < L::STRIPS; i++) {
            const float *in = (const float *)(raw + (warp * L::STRIPS + i) * RAW);
            float *out = (float *)to + (row(warp, i) * WINDOW + start(warp, i)) * L::WORDS;
            if (KIND == 1 && !IQ) {
                /* Samples 2 lane and 2 lane + 1, and those 64 further: 16 bytes a lane without bank conflicts. */
                const float2 u[2] = {*(const float2 *)(in + 2 * lane), *(const float2 *)(in + 64 + 2 * lane)};
                /* The next lane's; after the last comes the other half's first. */
                const float after[2] = {__shfl_sync(~0u, lane == 0 ? u[1].x : u[0].x, lane + 1),
                                        __shfl_sync(~0u, u[1].x, lane + 1)};
#pragma unroll
                for (int h = 0; h < 2; h++) {
                    const int at = 64 * h + 2 * lane;
                    const float2 v = u[h];
                    const float next = after[h], d0 = v.y - v.x, d1 = next - v.y;
                    const float position = (float)(at - q.half_window);
                    *(float4 *)(out + 2 * at) =
                        make_float4(__fmaf_rn(-position, d0, v.x), d0, __fmaf_rn(-position - 1.0f, d1, v.y), d1);
                }
            }
#pragma unroll
            for (int e = 0; e < LENGTH / 32 && (KIND > 1 || IQ); e++) {
                const int at = 32 * e + lane;
                float entry[L::WORDS];
                if (KIND == 1) {
                    /* The last sample has no neighbour here, and is the second of the other strip. */
                    if (e == 1 ? lane == 31 : lane == 0 && start(warp, i) > 0)
                        continue;
                    const float2 v = ((const float2 *)in)[at], next = ((const float2 *)in)[at + 1];
                    const float position = (float)(start(warp, i) + at - q.half_window), dx = next.x - v.x, dy = next.y - v.y;
                    entry[0] = __fmaf_rn(-position, dx, v.x);
                    entry[1] = __fmaf_rn(-position, dy, v.y);
                    entry[2 % L::WORDS] = dx;
                    entry[3 % L::WORDS] = dy;
                } else {
#pragma unroll
                    for (int c = 0; c < L::PARTS; c++) {
                        const float *x = in + (BEFORE + at) * L::PARTS + c;
                        const float p = x[-L::PARTS], v = x[0], n = x[L::PARTS], o = x[2 * L::PARTS];
                        entry[c] = v;
                        entry[(L::PARTS + c) % L::WORDS] = 0.5f * (n - p);
                        entry[(2 * L::PARTS + c) % L::WORDS] = p - 2.5f * v + 2.0f * n - 0.5f * o;
                        entry[(3 * L::PARTS + c) % L::WORDS] = 0.5f * (o - p) + 1.5f * (v - n);
                    }
                }
#pragma unroll
                for (int w = 0; w + 3 < L::WORDS; w += 4)
                    *(float4 *)(out + at * L::WORDS + w) = make_float4(entry[w], entry[w + 1], entry[w + 2], entry[w + 3]);
            }
        }
    }
};

/* The value of the entry at an address in shared memory, for position t (relative to the references) and fraction f. */
template <int KIND, bool IQ> __device__ static __forceinline__ float2 entry_value(float t, float f, unsigned from)
{
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
    } else if (!IQ) {
        const float4 e = shared_float4(from);
        v.x = __fmaf_rn(f, __fmaf_rn(f, __fmaf_rn(f, e.w, e.z), e.y), e.x);
    } else {
        const float4 e = shared_float4(from), g = shared_float4(from + 16);
        v.x = __fmaf_rn(f, __fmaf_rn(f, __fmaf_rn(f, g.z, g.x), e.z), e.x);
        v.y = __fmaf_rn(f, __fmaf_rn(f, __fmaf_rn(f, g.w, g.y), e.w), e.y);
    }
    return v;
}

/* The value at position t (relative to the references) of the row whose entries start, less the magic number's bits, at `at`. */
template <int KIND, bool IQ> __device__ static __forceinline__ float2 sample_at(float t, unsigned at)
{
    const float u = KIND == 0 ? __fadd_rn(t, DAS_CUDA_MAGIC) : __fadd_rd(t, DAS_CUDA_MAGIC);
    return entry_value<KIND, IQ>(t, KIND == 2 ? t - (u - DAS_CUDA_MAGIC) : 0.0f,
                                 (__float_as_uint(u) << layout<KIND, IQ>::SHIFT) + at);
}

/* ---------------------------------------------------------------------------
 * A barrier in two parts: between arriving and waiting a warp goes on with its sum.
 * ------------------------------------------------------------------------- */

/* One thread arrives for its warp. compute-sanitizer's racecheck follows threads only: with DAS_CUDA_RACECHECK all arrive. */
#ifdef DAS_CUDA_RACECHECK
const int ARRIVING = 1;
#else
const int ARRIVING = 32;
#endif

struct split_barrier {
    unsigned address, phase;
    __device__ __forceinline__ void begin(unsigned long long *place)
    {
        address = (unsigned)__cvta_generic_to_shared(place);
        asm volatile("mov.u32 %0, %0;" : "+r"(address)); /* kept, not computed again each time */
        phase = 0;
#if __CUDA_ARCH__ >= 800
        if (threadIdx.x == 0)
            asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(address), "r"(THREADS / ARRIVING) : "memory");
#endif
    }
    __device__ __forceinline__ void arrive()
    {
#if __CUDA_ARCH__ >= 800
        __syncwarp();
        if (threadIdx.x % ARRIVING == 0)
            asm volatile("{\n\t.reg .b64 state;\n\tmbarrier.arrive.shared.b64 state, [%0];\n\t}" ::"r"(address) : "memory");
#endif
    }
    __device__ __forceinline__ void wait()
    {
#if __CUDA_ARCH__ >= 800
        unsigned done;
        do
            asm volatile("{\n\t.reg .pred p;\n\t"
#if __CUDA_ARCH__ >= 900
                         "mbarrier.try_wait.parity.shared.b64 p, [%1], %2;\n\t"
#else
                         "mbarrier.test_wait.parity.shared.b64 p, [%1], %2;\n\t"
#endif
                         "selp.u32 %0, 1, 0, p;\n\t}"
                         : "=r"(done)
                         : "r"(address), "r"(phase)
                         : "memory");
        while (!done);
        phase ^= 1;
#else
        __syncthreads();
#endif
    }
};

/* ---------------------------------------------------------------------------
 * The tile
 * ------------------------------------------------------------------------- */

struct tile_points {
    int a0, b0; /* of the first point; the other is 4 further along b. Beyond the grid's end points are formed, not stored. */
    int slice;
    point3 p, middle;

    __device__ __forceinline__ point3 position(const das_cuda_tile &q, double a, double b) const
    {
        const das_cuda_params &c = q.common;
        const double *step_a = c.steps[q.axis_a], *step_b = c.steps[q.axis_b], *step_c = c.steps[q.axis_c];
        point3 r;
        r.x = (c.origin[0] + a * step_a[0] + b * step_b[0] + slice * step_c[0]) * c.samples_per_m;
        r.y = (c.origin[1] + a * step_a[1] + b * step_b[1] + slice * step_c[1]) * c.samples_per_m;
        r.z = (c.origin[2] + a * step_a[2] + b * step_b[2] + slice * step_c[2]) * c.samples_per_m;
        return r;
    }

    template <bool LINE> __device__ __forceinline__ void begin(const das_cuda_tile &q)
    {
        const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
        const int order = q.first_tile + blockIdx.x, tile = q.reversed ? q.tiles_a * q.tiles_b - 1 - order : order;
        const int tile_a = q.slow_a ? tile / q.tiles_b : tile % q.tiles_a;
        const int tile_b = q.slow_a ? tile % q.tiles_b : tile / q.tiles_a;
        slice = q.first_slice + blockIdx.y;
        a0 = tile_a * DAS_CUDA_TILE + (lane & 7) + 8 * (warp & 3);
        b0 = tile_b * DAS_CUDA_TILE + (lane >> 3) + 8 * (warp >> 2);
        middle =
            position(q, tile_a * DAS_CUDA_TILE + 0.5 * (DAS_CUDA_TILE - 1), tile_b * DAS_CUDA_TILE + 0.5 * (DAS_CUDA_TILE - 1));
        p = position(q, a0, b0);
        if (LINE) { /* all sources and elements at one y and z: of these, squares are all that is needed */
            const das_cuda_element &e = *(const das_cuda_element *)q.common.element;
            const point3 d0 = offset(q, 0, 0.0, e.scaled[1], e.scaled[2]), d1 = offset(q, 1, 0.0, e.scaled[1], e.scaled[2]);
            p.y = square_distance(0.0, d0.y, d0.z);
            p.z = square_distance(0.0, d1.y, d1.z);
        }
    }

    /* From a place x to point i. */
    __device__ __forceinline__ point3 offset(const das_cuda_tile &q, int i, double x, double y, double z) const
    {
        point3 d = {p.x - x, p.y - y, p.z - z};
        if (i == 1) {
            d.x += q.second[0];
            d.y += q.second[1];
            d.z += q.second[2];
        }
        return d;
    }

    /* Squared distance of point i from (x, y, z), which with LINE is on the line. */
    template <bool LINE>
    __device__ __forceinline__ double square(const das_cuda_tile &q, int i, double x, double y, double z) const
    {
        if (LINE) {
            double dx = p.x - x;
            if (i == 1)
                dx += q.second[0];
            return __fma_rn(dx, dx, i == 0 ? p.y : p.z);
        }
        const point3 d = offset(q, i, x, y, z);
        return square_distance(d.x, d.y, d.z);
    }

    __device__ __forceinline__ void store(const das_cuda_tile &q, const float2 *sum) const
    {
        const das_cuda_params &c = q.common;
        const int most_a = (int)c.counts[q.axis_a] - 1, most_b = (int)c.counts[q.axis_b] - 1;
#pragma unroll
        for (int i = 0; i < POINTS; i++) {
            const int b = b0 + 4 * i;
            if (a0 > most_a || b > most_b)
                continue;
            const long long out = c.image_first + c.image_first_frame * c.image_strides[0] +
                                  a0 * c.image_strides[5 - q.axis_a] + b * c.image_strides[5 - q.axis_b] +
                                  slice * c.image_strides[5 - q.axis_c];
            das_float::store(c, out, sum[i].x, sum[i].y);
        }
    }
};

/* Delay of a transmit in samples, less its constant, at d from its point. */
__device__ static __forceinline__ double transmit_delay(const das_cuda_transmit &t, const point3 &d)
{
    if (t.wave == DAS_WAVE_POINT)
        return root(square_distance(d.x, d.y, d.z));
    if (t.wave == DAS_WAVE_PLANE)
        return __fma_rn(d.x, t.direction[0], __fma_rn(d.y, t.direction[1], d.z * t.direction[2]));
    return 0.0;
}

__device__ static double transmit_delay_middle(const das_cuda_transmit &t, const point3 &middle)
{
    const point3 d = {middle.x - t.scaled[0], middle.y - t.scaled[1], middle.z - t.scaled[2]};
    return transmit_delay(t, d);
}

/* A position rounded to a multiple of 4. */
__device__ static int reference_of(double s)
{
    return 4 * (int)rint(fmin(fmax(s * 0.25, -1e8), 1e8));
}

/* Whether some point of the tile may lie in the element's aperture. */
__device__ static bool tile_meets_aperture(const das_cuda_tile &q, const das_cuda_element &e, const point3 &middle)
{
    const double dx = middle.x - e.scaled[0], dy = middle.y - e.scaled[1], dz = middle.z - e.scaled[2];
    const double h = dx * e.normal[0] + dy * e.normal[1] + dz * e.normal[2];
    const double l = sqrt(fmax(dx * dx + dy * dy + dz * dz - h * h, 0.0)), reach = q.radius + 0.01;
    return h + reach > 0.0 && l - reach <= (h + reach) * q.common.inverse_2f;
}

/* Writes the entries of those numbers 0 .. count - 1 for which take(number, entry) is true, in order. By one warp. */
template <typename T, typename Take> __device__ static __forceinline__ int make_list(T *list, int count, Take take)
{
    const int lane = threadIdx.x & 31;
    int taken_count = 0;
    for (int first = 0; first < count; first += 32) {
        T entry;
        const bool take_it = first + lane < count && take(first + lane, entry);
        const unsigned taken = __ballot_sync(~0u, take_it);
        if (take_it)
            list[taken_count + __popc(taken & ((1u << lane) - 1))] = entry;
        taken_count += __popc(taken);
    }
    return taken_count;
}

/* A step: an element (complex data: a transmit) and what is to be done with it. */
struct __align__(16) step
{
    unsigned offset; /* of its records */
    int reference;
    int number;
    int flags; /* bits g and 8 + g: group g of the rows meets the record, lies within it */
};
const int FULL = 1 << 31; /* all rows, all within the record: flags < 0 */

__device__ static __forceinline__ double along_normal(const das_cuda_tile &q, const das_cuda_element &e, double dx, double dy,
                                                      double dz)
{
    return q.common.z_normals ? dz : __fma_rn(dx, e.normal[0], __fma_rn(dy, e.normal[1], dz * e.normal[2]));
}

/* What a step needs of a transmit or element: a point (or a plane's direction), and its constant less the reference (for
 * a plane with the distance to its origin). */
struct source {
    double2 xy, z_shift;
};

__device__ static __forceinline__ source source_of(const das_cuda_transmit &t, int reference)
{
    const bool plane = t.wave == DAS_WAVE_PLANE;
    const double *v = plane ? t.direction : t.scaled;
    const double origin = t.scaled[0] * t.direction[0] + t.scaled[1] * t.direction[1] + t.scaled[2] * t.direction[2];
    return {{v[0], v[1]}, {v[2], t.constant - reference - (plane ? origin : 0.0)}};
}

template <bool LINE>
__device__ static __forceinline__ double source_delay(const das_cuda_tile &q, const tile_points &points, int i, const source &v,
                                                      int wave)
{
    if (LINE || wave == DAS_WAVE_POINT)
        return root(points.square<LINE>(q, i, v.xy.x, v.xy.y, v.z_shift.x)) + v.z_shift.y;
    if (wave != DAS_WAVE_PLANE)
        return v.z_shift.y;
    const point3 d = points.offset(q, i, 0.0, 0.0, 0.0);
    return __fma_rn(d.x, v.xy.x, __fma_rn(d.y, v.xy.y, __fma_rn(d.z, v.z_shift.x, v.z_shift.y)));
}

/* Real data. Rows are transmits, and elements are taken one after the other. LINE: sources and elements share y and z, and
 * there is no aperture. */
template <int KIND, bool LINE> __device__ static __forceinline__ void tile_real(const das_cuda_tile &q, char *shared)
{
    typedef layout<KIND, false> L;
    const int GROUPS = L::ROWS / L::GROUP;
    const das_cuda_params &c = q.common;
    const bool with_aperture = !LINE && c.aperture;
    const int tid = threadIdx.x, lane = tid & 31, warp = tid >> 5;
    const int receives = (int)c.receive_count, transmits = q.end_row_transmit - q.first_row_transmit;

    /* Shared memory: the stages; what is copied for the next; elements; steps; references of elements, of transmits
     * (whole blocks); elements of the aperture. */
    char *raw = shared + L::STAGES * L::BYTES;
    source *elements = (source *)(raw + (KIND == 0 ? 0 : 16 * L::STRIPS * strip<KIND, false>::RAW));
    step *steps = (step *)(elements + receives);
    int *reference_r = (int *)(steps + receives), *reference_t = reference_r + ((receives + 3) & ~3);
    unsigned short *aperture = (unsigned short *)(reference_t + (transmits + L::ROWS - 1) / L::ROWS * L::ROWS);
    __shared__ int step_count;
    __shared__ unsigned long long barrier_place;
    /* Ranges of an element's reference for which a group of rows meets the record, and lies within it. */
    __shared__ int4 group_range[GROUPS];

    tile_points points;
    points.begin<LINE>(q);
    split_barrier barrier;
    barrier.begin(&barrier_place);
    const das_cuda_transmit *transmit = (const das_cuda_transmit *)c.transmit;
    const das_cuda_element *element = (const das_cuda_element *)c.element;
    for (int i = tid; i < (transmits + L::ROWS - 1) / L::ROWS * L::ROWS; i += THREADS) {
        const das_cuda_transmit &t = transmit[q.first_row_transmit + min(i, transmits - 1)];
        reference_t[i] = reference_of(transmit_delay_middle(t, points.middle) + t.constant);
    }
    for (int i = tid; i < receives; i += THREADS) {
        const das_cuda_element &e = element[i];
        const double s =
            root(square_distance(points.middle.x - e.scaled[0], points.middle.y - e.scaled[1], points.middle.z - e.scaled[2]));
        const int reference = reference_of(s + e.constant);
        reference_r[i] = reference;
        elements[i] = {{e.scaled[0], e.scaled[1]}, {e.scaled[2], e.constant - reference}};
    }
    int aperture_count = receives;
    if (warp == 0)
        aperture_count = make_list(aperture, receives, [&](int k, unsigned short &entry) {
            entry = (unsigned short)k;
            return !with_aperture || tile_meets_aperture(q, element[k], points.middle);
        });

    const unsigned stage_base = (unsigned)__cvta_generic_to_shared(shared), raw_base = (unsigned)__cvta_generic_to_shared(raw);
    const int last = (int)q.sample_count - 1;
    float total[POINTS];
#pragma unroll
    for (int i = 0; i < POINTS; i++)
        total[i] = 0.0f;

    for (int n0 = 0; n0 < transmits; n0 += L::ROWS) {
        const int *reference = reference_t + n0;
        const int first_n = q.first_row_transmit + n0;
        const int rows = min(L::ROWS, transmits - n0);
        __syncthreads(); /* references are written; the last block's stages have been read */
        if (warp == 0) {
            if (lane < GROUPS) {
                int least = 1 << 30, most = -(1 << 30);
                for (int i = lane * L::GROUP; i < min((lane + 1) * L::GROUP, rows); i++) {
                    least = min(least, reference[i] - q.half_window);
                    most = max(most, reference[i] + q.half_window);
                }
                group_range[lane] =
                    least > most ? make_int4(1, 0, 1, 0) : make_int4(-most, last - least, -least, last - 1 - most);
            }
            __syncwarp();
            const int count = make_list(steps, aperture_count, [&](int at, step &entry) {
                const int k = aperture[at], r = reference_r[k];
                entry.offset = (unsigned)(k * q.stride);
                entry.reference = r;
                entry.number = k;
                entry.flags = 0;
                bool all = true;
                for (int g = 0; g < GROUPS; g++) {
                    const int4 range = group_range[g];
                    const bool below = q.folded && k < first_n + g * L::GROUP; /* the diagonal: nothing there */
                    const bool meets = !below && r >= range.x && r <= range.y;
                    const bool within = meets && (KIND == 0 || (r >= range.z && r <= range.w));
                    entry.flags |= (meets ? 1 << g : 0) | (within ? 256 << g : 0);
                    all = all && within;
                }
                const bool any = entry.flags != 0;
                entry.flags |= all ? FULL : 0;
                return any;
            });
            if (lane == 0)
                step_count = count;
        }

        /* Delays of the points from these transmits, relative to the references. */
        float delay[POINTS][L::ROWS];
#pragma unroll
        for (int j = 0; j < L::ROWS; j++) {
            const das_cuda_transmit &t = transmit[first_n + min(j, rows - 1)];
            const source v = LINE ? source{{t.scaled[0], 0.0}, {0.0, t.constant - reference[j]}} : source_of(t, reference[j]);
#pragma unroll
            for (int i = 0; i < POINTS; i++)
                delay[i][j] = (float)source_delay<LINE>(q, points, i, v, t.wave);
        }
        strip<KIND, false> next;
        next.begin(q, rows, reference, raw_base, [&](int j) { return (unsigned)(packed_row(q, first_n + j, 0) * q.stride); });
        __syncthreads();

        const int count = step_count;
        auto fetch = [&](int at) {
            const int2 entry = *(const int2 *)&steps[at];
            next.fetch(q, stage_base + (unsigned)at % L::STAGES * L::BYTES, entry.x, entry.y);
        };
        if (count > 0) {
            fetch(0);
            copies_done();
            __syncwarp();
            if (KIND > 0)
                next.stage(q, shared, raw);
        }
        __syncthreads();
        if (count > 1)
            fetch(1);
        int at = 0;
        while (at < count) {
            const int end = min(count, at + 64); /* rounding grows with the length of a sum */
            float sum[POINTS];
#pragma unroll
            for (int i = 0; i < POINTS; i++)
                sum[i] = 0.0f;
            for (; at < end; at++) {
                const step now = steps[at];
                copies_done();
                if (KIND > 0 && at + 1 < count) {
                    __syncwarp();
                    next.stage(q, shared + (unsigned)(at + 1) % L::STAGES * L::BYTES, raw);
                }
                barrier.arrive();
                if (at + 2 < count)
                    fetch(at + 2);

                const source v = elements[now.number];
                float receive[POINTS], part[POINTS];
#pragma unroll
                for (int i = 0; i < POINTS; i++) {
                    receive[i] = (float)(root(points.square<LINE>(q, i, v.xy.x, v.xy.y, v.z_shift.x)) + v.z_shift.y);
                    part[i] = 0.0f;
                }
                float weight[POINTS];
                bool any = true;
                if (with_aperture) {
#pragma unroll
                    for (int i = 0; i < POINTS; i++) {
                        const point3 d = points.offset(q, i, v.xy.x, v.xy.y, v.z_shift.x);
                        weight[i] = aperture_weight(c, along_normal(q, element[now.number], d.x, d.y, d.z),
                                                    square_distance(d.x, d.y, d.z));
                    }
                    any = __any_sync(~0u, weight[0] != 0.0f || weight[1] != 0.0f);
                }

                /* Address of the entry of position 0 in row 0, less that of the magic number's bits. */
                const unsigned origin =
                    stage_base + (unsigned)at % L::STAGES * L::BYTES + ((q.half_window - q.magic) << L::SHIFT);
                if (any && now.flags < 0) {
#pragma unroll
                    for (int j = 0; j < L::ROWS; j++)
#pragma unroll
                        for (int i = 0; i < POINTS; i++)
                            part[i] += sample_at<KIND, false>(delay[i][j] + receive[i], origin + j * (WINDOW << L::SHIFT)).x;
                } else if (any) {
#pragma unroll
                    for (int g = 0; g < GROUPS; g++) {
                        if (KIND == 0 ? (now.flags >> g) & 1 : (now.flags >> g) & 256) {
#pragma unroll
                            for (int j = g * L::GROUP; j < (g + 1) * L::GROUP; j++)
#pragma unroll
                                for (int i = 0; i < POINTS; i++)
                                    part[i] +=
                                        sample_at<KIND, false>(delay[i][j] + receive[i], origin + j * (WINDOW << L::SHIFT)).x;
                        } else if (KIND > 0 && ((now.flags >> g) & 1)) {
#pragma unroll
                            for (int j = g * L::GROUP; j < (g + 1) * L::GROUP; j++) {
                                const float first = -(float)(reference[j] + now.reference), final = first + (float)last;
#pragma unroll
                                for (int i = 0; i < POINTS; i++) {
                                    /* 1e-3 outside the record counts as its edge, more as nothing. */
                                    const float t = delay[i][j] + receive[i];
                                    const bool inside = t >= first - 1e-3f && t <= final + 1e-3f;
                                    const float value = sample_at<KIND, false>(inside ? fminf(fmaxf(t, first), final) : t,
                                                                               origin + j * (WINDOW << L::SHIFT))
                                                            .x;
                                    if (inside)
                                        part[i] += value;
                                }
                            }
                        }
                    }
                }
                if (with_aperture) {
#pragma unroll
                    for (int i = 0; i < POINTS; i++)
                        if (weight[i] != 0.0f)
                            sum[i] = __fmaf_rn(weight[i], part[i], sum[i]);
                } else {
#pragma unroll
                    for (int i = 0; i < POINTS; i++)
                        sum[i] += part[i];
                }
                barrier.wait();
            }
#pragma unroll
            for (int i = 0; i < POINTS; i++)
                total[i] += sum[i];
        }
    }
    const float2 result[POINTS] = {{total[0], 0.0f}, {total[1], 0.0f}};
    points.store(q, result);
}

/* a + v w */
__device__ static __forceinline__ float2 add_product(float2 a, float2 v, float2 w)
{
    a.x = __fmaf_rn(v.x, w.x, __fmaf_rn(-v.y, w.y, a.x));
    a.y = __fmaf_rn(v.x, w.y, __fmaf_rn(v.y, w.x, a.y));
    return a;
}

/* Complex data. Rows are elements, whose phases and weights stay in registers, and transmits are taken one after the
 * other. PLANES: they are all plane waves (or none), whose delay is linear in the point's indices within the tile. */
template <int KIND, bool PLANES> __device__ static __forceinline__ void tile_iq(const das_cuda_tile &q, char *shared)
{
    typedef layout<KIND, true> L;
    const das_cuda_params &c = q.common;
    const int tid = threadIdx.x, lane = tid & 31, warp = tid >> 5;
    const int receives = (int)c.receive_count, transmits = q.end_row_transmit - q.first_row_transmit;

    /* Shared memory: the stages; what is copied for the next; transmits; steps; turns at the reference and wave of each
     * transmit; references; elements of the aperture. */
    char *raw = shared + L::STAGES * L::BYTES;
    source *sources = (source *)(raw + (KIND == 0 ? 0 : 16 * L::STRIPS * strip<KIND, true>::RAW));
    step *steps = (step *)(sources + transmits);
    float2 *turns_t = (float2 *)(steps + transmits);
    int *reference_t = (int *)(turns_t + ((transmits + 1) & ~1));
    unsigned short *aperture = (unsigned short *)(reference_t + ((transmits + 3) & ~3));
    __shared__ int step_count, aperture_count, block_reference[L::ROWS];
    __shared__ unsigned long long barrier_place;

    tile_points points;
    points.begin<false>(q);
    split_barrier barrier;
    barrier.begin(&barrier_place);
    const das_cuda_transmit *transmit = (const das_cuda_transmit *)c.transmit;
    const das_cuda_element *element = (const das_cuda_element *)c.element;
    for (int i = tid; i < transmits; i += THREADS) {
        const das_cuda_transmit &t = transmit[q.first_row_transmit + i];
        const int reference = reference_of(transmit_delay_middle(t, points.middle) + t.constant);
        const double turns = __fma_rn(reference, c.turns_per_sample, t.phase);
        if (PLANES) {
            const double *a = c.steps[q.axis_a], *b = c.steps[q.axis_b], *v = t.direction;
            const double plane = t.wave == DAS_WAVE_PLANE ? c.samples_per_m : 0.0;
            const double rest = transmit_delay_middle(t, points.middle) + t.constant - reference;
            *(float4 *)&sources[i] = make_float4((float)((a[0] * v[0] + a[1] * v[1] + a[2] * v[2]) * plane),
                                                 (float)((b[0] * v[0] + b[1] * v[1] + b[2] * v[2]) * plane), (float)rest, 0.0f);
        } else {
            sources[i] = source_of(t, reference);
        }
        turns_t[i] = make_float2((float)(turns - rint(turns)), __int_as_float(t.wave));
        reference_t[i] = reference;
    }
    if (warp == 0) {
        const int count = make_list(aperture, receives, [&](int k, unsigned short &entry) {
            entry = (unsigned short)k;
            return !c.aperture || tile_meets_aperture(q, element[k], points.middle);
        });
        if (lane == 0)
            aperture_count = count;
    }
    const unsigned stage_base = (unsigned)__cvta_generic_to_shared(shared), raw_base = (unsigned)__cvta_generic_to_shared(raw);
    const int last = (int)q.sample_count - 1;
    const float turns_per_sample = (float)c.turns_per_sample;
    /* From the tile's middle to the first point, in steps. */
    const float from_a = (lane & 7) + 8 * (warp & 3) - 0.5f * (DAS_CUDA_TILE - 1);
    const float from_b = (lane >> 3) + 8 * (warp >> 2) - 0.5f * (DAS_CUDA_TILE - 1);
    /* A weight of 0 takes care of finite samples that do not count. */
    bool odd = false;
    for (int i = tid; i < q.rows; i += THREADS)
        odd = odd || row_flags(q)[i];
    const bool finite = !__syncthreads_or(odd);
    float2 total[POINTS];
#pragma unroll
    for (int i = 0; i < POINTS; i++)
        total[i] = make_float2(0.0f, 0.0f);
    __syncthreads();

    const int elements = aperture_count;
    for (int k0 = 0; k0 < elements; k0 += L::ROWS) {
        const int rows = min(L::ROWS, elements - k0);
        /* Delays, phases and weights of the points from these elements; which of them count. */
        float delay[POINTS][L::ROWS];
        float2 turn[POINTS][L::ROWS];
        unsigned inside[POINTS];
        int least = 1 << 30, most = -(1 << 30);
#pragma unroll
        for (int i = 0; i < POINTS; i++)
            inside[i] = 0;
#pragma unroll
        for (int j = 0; j < L::ROWS; j++) {
            const das_cuda_element &e = element[aperture[k0 + min(j, rows - 1)]];
            const double s = root(
                square_distance(points.middle.x - e.scaled[0], points.middle.y - e.scaled[1], points.middle.z - e.scaled[2]));
            const int reference = reference_of(s + e.constant);
            const double shift = e.constant - reference, turns = reference * c.turns_per_sample;
            const float turns0 = (float)(turns - rint(turns));
            least = min(least, reference - q.half_window);
            most = max(most, reference + q.half_window);
            if (tid == j)
                block_reference[j] = reference;
#pragma unroll
            for (int i = 0; i < POINTS; i++) {
                const double square = points.square<false>(q, i, e.scaled[0], e.scaled[1], e.scaled[2]);
                float weight = j < rows ? 1.0f : 0.0f;
                const point3 d = points.offset(q, i, e.scaled[0], e.scaled[1], e.scaled[2]);
                if (c.aperture && j < rows)
                    weight = aperture_weight(c, along_normal(q, e, d.x, d.y, d.z), square);
                inside[i] |= weight != 0.0f ? 1u << j : 0u;
                delay[i][j] = (float)(root(square) + shift);
                turn[i][j] = c.rotate ? turn_by(__fmaf_rn(delay[i][j], turns_per_sample, turns0)) : make_float2(1.0f, 0.0f);
                turn[i][j].x *= weight;
                turn[i][j].y *= weight;
            }
        }
        unsigned any_row = 0; /* rows that count for some point of the warp */
#pragma unroll
        for (int j = 0; j < L::ROWS; j++)
            any_row |= __any_sync(~0u, ((inside[0] | inside[1]) >> j) & 1) ? 1u << j : 0u;
        const unsigned every = (1u << L::ROWS) - 1;
        const bool all_rows = __all_sync(~0u, (inside[0] & inside[1]) == every);

        if (warp == 0) {
            const int most_k = aperture[k0 + rows - 1];
            const int count = make_list(steps, transmits, [&](int i, step &entry) {
                const int r = reference_t[i];
                entry.offset = (unsigned)(packed_row(q, q.first_row_transmit + i, 0) * q.stride);
                entry.reference = r;
                entry.number = i;
                entry.flags = KIND == 0 || (least + r >= 0 && most + r < last) ? FULL : 0;
                return !(q.folded && q.first_row_transmit + i > most_k) && most + r >= 0 && least + r <= last;
            });
            if (lane == 0)
                step_count = count;
        }
        __syncthreads(); /* block_reference and the list are written; the last block's stages have been read */
        strip<KIND, true> next;
        next.begin(q, rows, block_reference, raw_base, [&](int j) { return (unsigned)(aperture[k0 + j] * q.stride); });
        const int count = step_count;
        auto fetch = [&](int at) {
            const int2 entry = *(const int2 *)&steps[at];
            next.fetch(q, stage_base + (unsigned)at % L::STAGES * L::BYTES, entry.x, entry.y);
        };
        if (count > 0) {
            fetch(0);
            copies_done();
            __syncwarp();
            if (KIND > 0)
                next.stage(q, shared, raw);
        }
        __syncthreads();
        if (count > 1)
            fetch(1);
        int at = 0;
        while (at < count) {
            const int end = min(count, at + 64); /* rounding grows with the length of a sum */
            float2 sum[POINTS];
#pragma unroll
            for (int i = 0; i < POINTS; i++)
                sum[i] = make_float2(0.0f, 0.0f);
            for (; at < end; at++) {
                const step now = steps[at];
                copies_done();
                if (KIND > 0 && at + 1 < count) {
                    __syncwarp();
                    next.stage(q, shared + (unsigned)(at + 1) % L::STAGES * L::BYTES, raw);
                }
                barrier.arrive();
                if (at + 2 < count)
                    fetch(at + 2);
                if (any_row) {
                    const float2 turns = turns_t[now.number];
                    float transmit[POINTS];
                    float2 part[POINTS];
                    if (PLANES) {
                        const float4 v = *(const float4 *)&sources[now.number];
                        const float s = __fmaf_rn(v.x, from_a, v.z);
                        transmit[0] = __fmaf_rn(v.y, from_b, s);
                        transmit[1] = __fmaf_rn(v.y, from_b + 4.0f, s);
                    } else {
                        const source v = sources[now.number];
#pragma unroll
                        for (int i = 0; i < POINTS; i++)
                            transmit[i] = (float)source_delay<false>(q, points, i, v, __float_as_int(turns.y));
                    }
#pragma unroll
                    for (int i = 0; i < POINTS; i++)
                        part[i] = make_float2(0.0f, 0.0f);
                    const unsigned origin =
                        stage_base + (unsigned)at % L::STAGES * L::BYTES + ((q.half_window - q.magic) << L::SHIFT);
                    if (now.flags < 0 && all_rows) {
#pragma unroll
                        for (int j = 0; j < L::ROWS; j++)
#pragma unroll
                            for (int i = 0; i < POINTS; i++)
                                part[i] = add_product(
                                    part[i],
                                    sample_at<KIND, true>(delay[i][j] + transmit[i], origin + j * (WINDOW << L::SHIFT)),
                                    turn[i][j]);
                    } else if (now.flags < 0 && finite) {
#pragma unroll
                        for (int j = 0; j < L::ROWS; j++)
                            if ((any_row >> j) & 1)
#pragma unroll
                                for (int i = 0; i < POINTS; i++)
                                    part[i] = add_product(
                                        part[i],
                                        sample_at<KIND, true>(delay[i][j] + transmit[i], origin + j * (WINDOW << L::SHIFT)),
                                        turn[i][j]);
                    } else {
                        const int reference_n = now.reference;
#pragma unroll
                        for (int j = 0; j < L::ROWS; j++) {
                            if (!((any_row >> j) & 1))
                                continue;
                            const float first = -(float)(block_reference[j] + reference_n), end = first + (float)last;
#pragma unroll
                            for (int i = 0; i < POINTS; i++) {
                                const float t = delay[i][j] + transmit[i];
                                const bool counts =
                                    ((inside[i] >> j) & 1) && (KIND == 0 || (t >= first - 1e-3f && t <= end + 1e-3f));
                                const float2 v = sample_at<KIND, true>(counts && KIND > 0 ? fminf(fmaxf(t, first), end) : t,
                                                                       origin + j * (WINDOW << L::SHIFT));
                                if (counts)
                                    part[i] = add_product(part[i], v, turn[i][j]);
                            }
                        }
                    }
#pragma unroll
                    for (int i = 0; i < POINTS; i++) {
                        if (c.rotate) {
                            sum[i] = add_product(sum[i], part[i], turn_by(__fmaf_rn(transmit[i], turns_per_sample, turns.x)));
                        } else {
                            sum[i].x += part[i].x;
                            sum[i].y += part[i].y;
                        }
                    }
                }
                barrier.wait();
            }
#pragma unroll
            for (int i = 0; i < POINTS; i++) {
                total[i].x += sum[i].x;
                total[i].y += sum[i].y;
            }
        }
        __syncthreads(); /* before block_reference and the list are written again */
    }
    points.store(q, total);
}

} // namespace das_tiles
