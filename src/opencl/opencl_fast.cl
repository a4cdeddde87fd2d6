/* The fast paths for real data, dense pairs and Cartesian grids, nearest and linear. Stands behind opencl_kernels.cl, and
 * opencl_block.cl where there is an aperture, when DAS_FAST is defined: 1 for GPUs, 2 for CPUs. Defined as well:
 *
 *   DAS_FOLDED       1: reciprocal pairs are added up first, tau(n,k) = tau(k,n), and only k >= n remains
 *   DAS_WEIGHTED     1: the records are weighted when they are packed
 *   DAS_WINDOW_LEAD  samples of zero in front of a packed record and behind it
 *   DAS_TILE_...     DAS_FAST 1: threads of a group, points a thread, transmits a block, samples a window, constant
 *                    memory for the elements
 *   DAS_PATCH_...    DAS_FAST 2: points of a patch along each axis (16 together), patches along axis 0 of a work
 *                    item, shared records */

#define DAS_MAGIC 12582912.0f /* 1.5 2^23: adding it rounds to a whole number, which its low bits then hold */
#define DAS_MAGIC_BITS 0x4B400000

/* Folded into the reciprocal pair. */
inline bool das_before_pair(long n, long k)
{
    return DAS_FOLDED ? k < n : false;
}

/* Has no row: the rows of a group of transmits start with the same element, the group's first; those before a pair of its
 * own hold zeros. */
#define DAS_PACK_GROUP (DAS_FAST == 1 ? 8 : 1)
inline bool das_skipped(long n, long k)
{
    return das_before_pair(n / DAS_PACK_GROUP * DAS_PACK_GROUP, k);
}

/* Row of transmit n, element k in the packed data that start with transmit `first`, which then starts a group. */
inline long das_packed_row(long n, long k, long first, long receives)
{
#if DAS_FOLDED
    const long group = n / DAS_PACK_GROUP * DAS_PACK_GROUP, groups = (group - first) / DAS_PACK_GROUP;
    return DAS_PACK_GROUP * (groups * (receives - first) - DAS_PACK_GROUP * (groups * (groups - 1) / 2)) +
           (n - group) * (receives - group) + (k - group);
#else
    return (n - first) * receives + k;
#endif
}

inline float das_pack_sample(__global const das_part *data, __global const float *weights, __global const long *longs, long at,
                             long n, long k, long sample, float offset)
{
#if DAS_WEIGHTED
    float w = weights[n * longs[LONG_RECEIVES] + k];
    if (w == 0.0f)
        return 0.0f; /* not read */
#else
    float w = 1.0f;
#endif
    return w * ((float)das_load(data, at + longs[LONG_FIRST] + n * longs[LONG_TRANSMIT] + k * longs[LONG_RECEIVE] +
                                          sample * longs[LONG_SAMPLE]) -
                offset);
}

/* Sample, element and transmit along the three axes; a work item packs DAS_PACK_EACH samples, a group apart. `at` is where
 * the frame starts. */
#define DAS_PACK_EACH 4
inline long das_pack_column(int i)
{
    return ((long)get_group_id(0) * DAS_PACK_EACH + i) * (long)get_local_size(0) + (long)get_local_id(0);
}

#if !DAS_PATCH_SHARED
__kernel void das_pack(__global const das_part *restrict data, __global float *restrict packed,
                       __global const float *restrict weights, __global const long *restrict longs,
                       __global const das_real *restrict reals, long at, long first, long stride)
{
    const long k = (long)get_global_id(1), n = first + (long)get_global_id(2), last = longs[LONG_LAST];
    const float offset = (float)das_real_value(reals[REAL_OFFSET]);
    float v[DAS_PACK_EACH];
    int i;
    if (das_skipped(n, k))
        return;
#pragma unroll
    for (i = 0; i < DAS_PACK_EACH; i++) {
        const long column = das_pack_column(i), sample = column - DAS_WINDOW_LEAD;
        const bool inside = column < stride && sample >= 0 && sample <= last && !das_before_pair(n, k);
        v[i] = inside ? das_pack_sample(data, weights, longs, at, n, k, sample, offset) : 0.0f;
        if (DAS_FOLDED != 0 && inside && k > n)
            v[i] += das_pack_sample(data, weights, longs, at, k, n, sample, offset);
    }
    packed += das_packed_row(n, k, first, longs[LONG_RECEIVES]) * stride;
#pragma unroll
    for (i = 0; i < DAS_PACK_EACH; i++)
        if (das_pack_column(i) < stride)
            packed[das_pack_column(i)] = v[i];
}
#else
/* The same for records that all transmits share: one row an element. */
__kernel void das_pack_shared(__global const das_part *restrict data, __global float *restrict packed,
                              __global const long *restrict longs, __global const das_real *restrict reals, long at,
                              long stride)
{
    const long k = (long)get_global_id(1);
    int i;
    for (i = 0; i < DAS_PACK_EACH; i++) {
        const long column = das_pack_column(i), sample = column - DAS_WINDOW_LEAD;
        if (column < stride)
            packed[k * stride + column] =
                sample >= 0 && sample <= longs[LONG_LAST]
                    ? (float)das_load(data, at + longs[LONG_FIRST] + k * longs[LONG_RECEIVE] + sample * longs[LONG_SAMPLE]) -
                          (float)das_real_value(reals[REAL_OFFSET])
                    : 0.0f;
    }
}
#endif

/* das_receive_delay() and das_transmit_delay() with that root, without focused waves. */
inline das_real das_fast_delay(int wave, das_vector p, __global const das_real *of, das_real samples_per_m)
{
    das_vector d = das_vector_sub(p, das_vector_load(of + WAVE_POINT));
    das_real path = DAS_REAL(0.0);
    if (wave == DAS_WAVE_POINT)
        path = das_root(das_real_add(das_vector_dot(d, d), DAS_REAL(1e-30)));
    else if (wave == DAS_WAVE_PLANE)
        path = das_vector_dot(d, das_vector_load(of + WAVE_DIRECTION));
    return das_real_add(das_real_mul(path, samples_per_m), of[WAVE_CONSTANT]);
}

/* A whole number of samples near s, far from overflow. */
inline int das_reference(das_real s)
{
    return (int)rint(fmin(fmax((float)das_real_value(s), -1e8f), 1e8f));
}

/* s - reference, of which float keeps 1e-6. */
inline float das_relative(das_real s, int reference)
{
    return (float)das_real_value(das_real_sub(s, das_index_real((long)reference)));
}

/* Adds to the image, or writes it. */
inline void das_pixel_put(__global das_pixel *to, float value, int accumulate)
{
    das_value y = (das_value)value;
    if (accumulate)
        y += das_pixel_load(to);
    das_pixel_store(to, y);
}

#if DAS_FAST == 1
/* ---------------------------------------------------------------------------
 * GPUs. A group forms a tile of points, 32 along one axis, DAS_TILE_POINTS a thread. The delays of DAS_TILE_ROWS
 * transmits, relative to the tile's middle, stay in registers; for each element in turn (a step) the windows
 * of those traces that the tile can reach are staged in local memory, the next elements' being loaded meanwhile.
 * References are multiples of 4, so that windows start at multiples of 16 bytes.
 *
 * DAS_TILE_LINE: sources and elements share y and z, and axis b is across the line, so that x is the same for all points of
 * a thread and of y and z squares are all that is needed.
 * ------------------------------------------------------------------------- */

#define DAS_TILE_LANES 32 /* stage one row together */
#define DAS_TILE_TEAMS (DAS_TILE_THREADS / DAS_TILE_LANES)
#define DAS_TILE_B (DAS_TILE_TEAMS * DAS_TILE_POINTS)    /* points along axis b; 32 along axis a */
#define DAS_TILE_STRIPS (DAS_TILE_ROWS / DAS_TILE_TEAMS) /* rows a team stages */
#define DAS_TILE_EACH ((DAS_TILE_WINDOW + DAS_TILE_LANES - 1) / DAS_TILE_LANES)
#define DAS_TILE_WORDS (DAS_INTERPOLATION == 0 ? 1 : 2)
#define DAS_TILE_GROUP DAS_PACK_GROUP /* rows skipped together */
#define DAS_TILE_GROUPS (DAS_TILE_ROWS / DAS_TILE_GROUP)
#define DAS_TILE_STAGE (DAS_TILE_ROWS * DAS_TILE_WINDOW) /* entries */

/* In PTX: one instruction for the address of an entry and one for the load, and from compute capability 8.0 on copies to
 * local memory that need no registers. */
#define DAS_TILE_ASYNC (DAS_ASM != 0 && DAS_NVIDIA >= 8)
#define DAS_TILE_SPLIT (DAS_TILE_ASYNC != 0 && DAS_INTERPOLATION == 0) /* the barrier of a step has two parts */
#define DAS_TILE_RAW (DAS_TILE_ASYNC != 0 && DAS_INTERPOLATION == 1)   /* copies from which entries are made */
#define DAS_TILE_STAGES (DAS_TILE_SPLIT ? 4 : 2)
#define DAS_TILE_COPIED (DAS_TILE_RAW ? DAS_TILE_WINDOW + 4 : DAS_TILE_WINDOW) /* pitch of their rows */

#if DAS_INTERPOLATION == 0
typedef float das_entry; /* the sample */
#define DAS_TILE_VALUE(entry, t) (entry)
#else
typedef float2 das_entry; /* c and d with v = c + t d for a position t relative to the references, less 1/2 */
#define DAS_TILE_VALUE(entry, t) fma(t, (entry).s1, (entry).s0)
#endif

/* Elements are read by all threads at once: constant memory serves that best, where they fit. */
#if DAS_TILE_CONSTANT
#define DAS_TILE_ELEMENTS __constant
#else
#define DAS_TILE_ELEMENTS __global
#endif

#if DAS_ASM
inline das_entry das_entry_at(uint address)
{
#if DAS_INTERPOLATION == 0
    float v;
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(v) : "r"(address));
    return v;
#else
    float a, b;
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(a), "=f"(b) : "r"(address));
    return (float2)(a, b);
#endif
}
#endif

#if DAS_TILE_ASYNC
inline void das_copy(uint to, __global const float *from)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}

/* Those of this team. */
inline void das_copies_done(void)
{
    asm volatile("cp.async.wait_all;" ::: "memory");
    if (DAS_TILE_RAW)
        asm volatile("bar.warp.sync -1;" ::: "memory");
}
#endif

/* A barrier in two parts: between arriving and waiting a team goes on with its sum. */
#if DAS_TILE_SPLIT
inline void das_gate_arrive(uint gate, int lane)
{
    asm volatile("bar.warp.sync -1;" ::: "memory");
    if (lane == 0)
        asm volatile("{\n\t.reg .b64 state;\n\tmbarrier.arrive.shared.b64 state, [%0];\n\t}" ::"r"(gate) : "memory");
}

inline void das_gate_wait(uint gate, uint phase)
{
    uint done;
    do
        asm volatile("{\n\t.reg .pred p;\n\t"
#if DAS_NVIDIA >= 9
                     "mbarrier.try_wait.parity.shared.b64 p, [%1], %2;\n\t"
#else
                     "mbarrier.test_wait.parity.shared.b64 p, [%1], %2;\n\t"
#endif
                     "selp.u32 %0, 1, 0, p;\n\t}"
                     : "=r"(done)
                     : "r"(gate), "r"(phase)
                     : "memory");
    while (!done);
}
#endif

/* Delay in samples from a place to p, plus `shift`. */
inline das_real das_tile_delay(das_vector p, das_real x, das_real y, das_real z, das_real samples_per_m, das_real shift)
{
#if DAS_FP64
    const double dx = p.x - x, dy = p.y - y, dz = p.z - z;
    return fma(das_root(fma(dx, dx, fma(dy, dy, fma(dz, dz, 1e-30)))), samples_per_m, shift);
#else
    das_vector d;
    d.x = das_real_sub(p.x, x);
    d.y = das_real_sub(p.y, y);
    d.z = das_real_sub(p.z, z);
    return das_real_add(das_real_mul(das_root(das_vector_dot(d, d)), samples_per_m), shift);
#endif
}

/* The same where only x and the square of the rest are known. */
inline das_real das_tile_line_delay(das_real px, das_real square, das_real x, das_real samples_per_m, das_real shift)
{
#if DAS_FP64
    const double d = px - x;
    return fma(das_root(fma(d, d, square)), samples_per_m, shift);
#else
    const das_real d = das_real_sub(px, x);
    return das_real_add(das_real_mul(das_root(das_real_add(das_real_mul(d, d), square)), samples_per_m), shift);
#endif
}

/* s rounded to a multiple of 4, far from overflow. */
inline int das_tile_reference(das_real s)
{
    return 4 * (int)rint(0.25f * fmin(fmax((float)das_real_value(s), -1e8f), 1e8f));
}

inline das_real das_tile_shift(das_real delay, int reference)
{
    return das_real_sub(delay, das_index_real((long)reference));
}

#if DAS_APERTURE
/* Whether some point of the tile may lie in the element's aperture. */
inline bool das_tile_meets(das_vector middle, __global const das_real *of, __global const das_real *reals, int half_window)
{
    const float x = das_real_value(das_real_sub(middle.x, of[0])), y = das_real_value(das_real_sub(middle.y, of[1]));
    const float z = das_real_value(das_real_sub(middle.z, of[2]));
    const float h = x * (float)das_real_value(of[ELEMENT_NORMAL]) + y * (float)das_real_value(of[ELEMENT_NORMAL + 1]) +
                    z * (float)das_real_value(of[ELEMENT_NORMAL + 2]);
    const float l = sqrt(fmax(x * x + y * y + z * z - h * h, 0.0f));
    /* The tile's radius is three samples less than half the half window. */
    const float reach = 0.5f * (float)half_window / (float)das_real_value(reals[REAL_SAMPLES_PER_M]);
    return h + reach > 0.0f && l - reach <= (h + reach) * (float)das_real_value(reals[REAL_INVERSE_2F]);
}
#endif

/* What element k is to transmits n0 ..: bit g, group g of them meets the record; bit 8 + g, it lies within it. */
inline int das_tile_flags(int n0, int k, int rows, int reference, int half_window, int last, __local const int *reference_t)
{
    int flags = 0, g, j;
    for (g = 0; g < DAS_TILE_GROUPS; g++) {
        int least = 1 << 30, most = -(1 << 30);
        for (j = g * DAS_TILE_GROUP; j < min((g + 1) * DAS_TILE_GROUP, rows); j++) {
            least = min(least, reference_t[j]);
            most = max(most, reference_t[j]);
        }
        least += reference - half_window;
        most += reference + half_window;
        if (most >= 0 && least <= last && !das_skipped(n0 + g * DAS_TILE_GROUP, k))
            flags |= (DAS_INTERPOLATION == 0 || (least >= 0 && most < last) ? 257 : 1) << g;
    }
    return flags;
}

/* The rows that a team stages: where the window of element 0 and reference 0 would start in `packed`, and by how much the
 * row's reference moves it; what is on the way in registers. */
typedef struct das_strips {
    int from[DAS_TILE_STRIPS], base[DAS_TILE_STRIPS];
    float tap[DAS_TILE_STRIPS][DAS_TILE_EACH][DAS_TILE_WORDS];
} das_strips;

/* Starts to bring the windows of a step: to `to` if they are copied (a stage, or where entries are made from them), else
 * to registers. */
inline void das_tile_fetch(das_strips *strips, __global const float *packed, int2 step, int words, int last, int lane, int team,
                           uint to)
{
    const int offset = (step.s1 & 0xFFF) * words;
    int i, j;
    (void)to;
#pragma unroll
    for (j = 0; j < DAS_TILE_EACH; j++) {
        const int column = (DAS_TILE_ASYNC ? 4 : 1) * (DAS_TILE_LANES * j + lane);
        if (column >= DAS_TILE_WINDOW)
            continue;
#pragma unroll
        for (i = 0; i < DAS_TILE_STRIPS; i++) {
            /* A window beyond the record and the zeros around it is moved to where they are. */
            const int base = min(max(strips->base[i] + step.s0, -DAS_TILE_WINDOW), (last + 4) & ~3);
            __global const float *from = packed + (uint)(strips->from[i] + offset + base + column);
#if DAS_TILE_ASYNC
            das_copy(to + (uint)((team + i * DAS_TILE_TEAMS) * DAS_TILE_COPIED + column) * 4u, from);
#else
            strips->tap[i][j][0] = from[0];
            if (DAS_TILE_WORDS == 2)
                strips->tap[i][j][DAS_TILE_WORDS - 1] = from[1];
#endif
        }
    }
}

/* Ends that: afterwards what this team brought is in `stage`. */
inline void das_tile_deliver(const das_strips *strips, __local das_entry *stage, __local const float *raw, int half_window,
                             int lane, int team)
{
#if DAS_TILE_ASYNC
    das_copies_done();
#endif
#if !DAS_TILE_ASYNC || DAS_TILE_RAW
    int i, j;
#pragma unroll
    for (i = 0; i < DAS_TILE_STRIPS; i++)
#pragma unroll
        for (j = 0; j < DAS_TILE_EACH; j++) {
            const int row = team + i * DAS_TILE_TEAMS, column = 32 * j + lane;
            if (DAS_TILE_WINDOW % 32 != 0 && column >= DAS_TILE_WINDOW)
                continue;
#if DAS_INTERPOLATION == 0
            stage[row * DAS_TILE_WINDOW + column] = strips->tap[i][j][0];
#else
            {
#if DAS_TILE_RAW
                const float v = raw[row * DAS_TILE_COPIED + column], d = raw[row * DAS_TILE_COPIED + column + 1] - v;
#else
                const float v = strips->tap[i][j][0], d = strips->tap[i][j][1] - v;
#endif
                stage[row * DAS_TILE_WINDOW + column] = (float2)(fma((float)(half_window - column) + 0.5f, d, v), d);
            }
#endif
        }
#endif
}

__kernel __attribute__((reqd_work_group_size(DAS_TILE_THREADS, 1, 1))) void
das_tile(__global const float *restrict packed, __global das_pixel *restrict image, __global const das_real *restrict reals,
         __global const long *restrict longs, DAS_TILE_ELEMENTS const das_real *restrict elements,
         __global const das_real *restrict waves, __global const int *restrict kinds, __local das_real *restrict step_line,
         __local int2 *restrict steps, __local int *restrict reference_r, __local int *restrict flags_r, long image_at,
         long stride, int first_tile, int tiles_a, int tiles_b, int slow_a, int axis_a, int axis_b, int axis_c, int first_slice,
         int half_window, int origin, int n_begin, int n_end, int accumulate)
{
    __local float4 stage4[DAS_TILE_STAGES * DAS_TILE_STAGE * DAS_TILE_WORDS / 4];
    __local das_entry *const stage = (__local das_entry *)stage4;
#if DAS_TILE_RAW
    __local float4 raw4[DAS_TILE_ROWS * DAS_TILE_COPIED / 4];
    __local float *const raw = (__local float *)raw4;
#else
    __local float *const raw = (__local float *)stage4;
#endif
    __local int reference_t[DAS_TILE_ROWS];
    const int tid = (int)get_local_id(0), lane = tid & 31, team = tid >> 5;
    const int receives = (int)longs[LONG_RECEIVES], last = (int)longs[LONG_LAST];
    const int tile = first_tile + (int)get_group_id(0), slice = first_slice + (int)get_group_id(1);
    const int tile_a = slow_a ? tile / tiles_b : tile % tiles_a, tile_b = slow_a ? tile % tiles_b : tile / tiles_a;
    const das_real samples_per_m = reals[REAL_SAMPLES_PER_M];
    const int a0 = tile_a * 32 + (lane & 7) + 8 * (team & 3), b0 = tile_b * DAS_TILE_B + (lane >> 3) + 4 * (team >> 2);
    const int most_a = (int)longs[LONG_COUNT_0 + axis_a] - 1, most_b = (int)longs[LONG_COUNT_0 + axis_b] - 1;
    const int words = (int)stride;
    __global const das_real *grid = reals + REAL_ORIGIN;
    __global const das_real *step_a = reals + REAL_STEPS + 3 * axis_a, *step_b = reals + REAL_STEPS + 3 * axis_b;
    __global const das_real *step_c = reals + REAL_STEPS + 3 * axis_c;
    das_vector middle;
#if DAS_TILE_LINE
    das_real p_x, p_square[DAS_TILE_POINTS];
#else
    das_vector p[DAS_TILE_POINTS];
#endif
    float sum[DAS_TILE_POINTS];
    int i, j, k, n0;
    /* Place of the entry in the middle of a window, less the magic number's bits. */
#if DAS_ASM
    uint from = (uint)(size_t)stage + (uint)origin * (uint)sizeof(das_entry);
#else
    const int from = origin;
#endif
#if DAS_TILE_SPLIT
    __local ulong gate_place;
    const uint gate = (uint)(size_t)&gate_place;
    uint phase = 0;
    if (tid == 0)
        asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(gate), "r"(DAS_TILE_TEAMS) : "memory");
#endif

    {
        das_real c = das_index_real(slice), mid = DAS_REAL(0.5);
        das_real a = das_real_add(das_index_real(tile_a * 32 + 15), mid);
        das_real b = das_real_add(das_index_real(tile_b * DAS_TILE_B + DAS_TILE_B / 2 - 1), mid);
#define DAS_TILE_AXIS(axis)                                                                                                    \
    das_real_add(grid[axis], das_real_add(das_real_add(das_real_mul(a, step_a[axis]), das_real_mul(b, step_b[axis])),          \
                                          das_real_mul(c, step_c[axis])))
        middle.x = DAS_TILE_AXIS(0);
        middle.y = DAS_TILE_AXIS(1);
        middle.z = DAS_TILE_AXIS(2);
        a = das_index_real(a0);
#pragma unroll
        for (i = 0; i < DAS_TILE_POINTS; i++) {
            /* Beyond the grid's end points are formed, not stored. */
            b = das_index_real(b0 + i * DAS_TILE_TEAMS);
#if DAS_TILE_LINE
            {
                const das_real y = das_real_sub(DAS_TILE_AXIS(1), elements[1]), z = das_real_sub(DAS_TILE_AXIS(2), elements[2]);
                p_x = DAS_TILE_AXIS(0);
                p_square[i] = das_real_add(das_real_add(das_real_mul(y, y), das_real_mul(z, z)), DAS_REAL(1e-30));
            }
#else
            p[i].x = DAS_TILE_AXIS(0);
            p[i].y = DAS_TILE_AXIS(1);
            p[i].z = DAS_TILE_AXIS(2);
#endif
            sum[i] = 0.0f;
        }
    }
    for (k = tid; k < receives; k += DAS_TILE_THREADS) {
        DAS_TILE_ELEMENTS const das_real *of = elements + k * ELEMENT_REALS;
        reference_r[k] = das_tile_reference(das_tile_delay(middle, of[0], of[1], of[2], samples_per_m, of[ELEMENT_CONSTANT]));
    }

    for (n0 = n_begin; n0 < n_end; n0 += DAS_TILE_ROWS) {
        const int rows = min(DAS_TILE_ROWS, n_end - n0);
        float delay[DAS_TILE_POINTS][DAS_TILE_ROWS];
        das_strips strips;
        int at, count = 0;
        barrier(CLK_LOCAL_MEM_FENCE); /* the block before has been read */
        if (tid < DAS_TILE_ROWS) {
            const int n = n0 + min(tid, rows - 1);
            reference_t[tid] = das_tile_reference(das_fast_delay(kinds[n], middle, waves + n * WAVE_REALS, samples_per_m));
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (k = tid; k < receives; k += DAS_TILE_THREADS)
#if DAS_APERTURE
            if (!das_tile_meets(middle, elements + k * ELEMENT_REALS, reals, half_window))
                flags_r[k] = 0;
            else
#endif
                flags_r[k] = das_tile_flags(n0, k, rows, reference_r[k], half_window, last, reference_t);
        barrier(CLK_LOCAL_MEM_FENCE);
        /* The steps: elements with a flag, in order. */
        for (k = tid; k < receives; k += DAS_TILE_THREADS) {
            int place = 0;
            for (i = 0; i < k; i++)
                place += flags_r[i] != 0 ? 1 : 0;
            if (flags_r[k] != 0) {
                steps[place] = (int2)(reference_r[k], k | flags_r[k] << 12);
#if DAS_TILE_LINE
                step_line[2 * place] = elements[k * ELEMENT_REALS];
                step_line[2 * place + 1] = das_tile_shift(elements[k * ELEMENT_REALS + ELEMENT_CONSTANT], reference_r[k]);
#endif
            }
        }
        for (i = 0; i < receives; i++)
            count += flags_r[i] != 0 ? 1 : 0;
#pragma unroll
        for (i = 0; i < DAS_TILE_STRIPS; i++) {
            const int row = team + i * DAS_TILE_TEAMS, n = n0 + min(row, rows - 1);
            strips.from[i] = (int)das_packed_row(n, 0, n_begin, receives) * words + DAS_WINDOW_LEAD;
            /* A row beyond the last takes zeros from before a record. */
            strips.base[i] = row < rows ? reference_t[row] - half_window : -(1 << 29);
        }
#pragma unroll
        for (j = 0; j < DAS_TILE_ROWS; j++) {
            const int n = n0 + min(j, rows - 1);
#if DAS_TILE_LINE
            const das_real shift = das_tile_shift(waves[n * WAVE_REALS + WAVE_CONSTANT], reference_t[j]);
#endif
#pragma unroll
            for (i = 0; i < DAS_TILE_POINTS; i++) {
#if DAS_TILE_LINE
                delay[i][j] = (float)das_real_value(
                    das_tile_line_delay(p_x, p_square[i], waves[n * WAVE_REALS + WAVE_POINT], samples_per_m, shift));
#else
                delay[i][j] =
                    das_relative(das_fast_delay(kinds[n], p[i], waves + n * WAVE_REALS, samples_per_m), reference_t[j]);
#endif
#if DAS_ASM
                asm volatile("" : "+f"(delay[i][j])); /* computed one after the other, here */
#endif
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);

        /* Step `at` sums; entries of the next are made, and the windows of the one after it are on their way. */
#define DAS_TILE_STAGE_OF(step) ((uint)(step) % DAS_TILE_STAGES * DAS_TILE_STAGE)
#if DAS_TILE_RAW
#define DAS_TILE_FETCH(step) das_tile_fetch(&strips, packed, steps[step], words, last, lane, team, (uint)(size_t)raw)
#elif DAS_TILE_ASYNC
#define DAS_TILE_FETCH(step)                                                                                                   \
    das_tile_fetch(&strips, packed, steps[step], words, last, lane, team, (uint)(size_t)stage + 4u * DAS_TILE_STAGE_OF(step))
#else
#define DAS_TILE_FETCH(step) das_tile_fetch(&strips, packed, steps[step], words, last, lane, team, 0u)
#endif
        if (count > 0) {
            DAS_TILE_FETCH(0);
            das_tile_deliver(&strips, stage, raw, half_window, lane, team);
            if (count > 1)
                DAS_TILE_FETCH(1);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (at = 0; at < count; at++) {
            const int2 step = steps[at];
            const int reference = step.s0;
            int flags = step.s1 >> 12;
            float receive[DAS_TILE_POINTS], part[DAS_TILE_POINTS];
#if DAS_APERTURE
            float weight[DAS_TILE_POINTS];
            bool wanted;
#endif
            int g;
            /* Adding it to a position relative to the references gives the entry's place among all stages. */
            const float magic = DAS_MAGIC + (float)(int)DAS_TILE_STAGE_OF(at);
            if (at + 1 < count)
                das_tile_deliver(&strips, stage + DAS_TILE_STAGE_OF(at + 1), raw, half_window, lane, team);
#if DAS_TILE_SPLIT
            das_gate_arrive(gate, lane);
#endif
            if (at + 2 < count)
                DAS_TILE_FETCH(at + 2);
#pragma unroll
            for (i = 0; i < DAS_TILE_POINTS; i++) {
#if DAS_TILE_LINE
                receive[i] = (float)das_real_value(
                    das_tile_line_delay(p_x, p_square[i], step_line[2 * at], samples_per_m, step_line[2 * at + 1]));
#else
                DAS_TILE_ELEMENTS const das_real *of = elements + (step.s1 & 0xFFF) * ELEMENT_REALS;
                receive[i] = (float)das_real_value(
                    das_tile_delay(p[i], of[0], of[1], of[2], samples_per_m, das_tile_shift(of[ELEMENT_CONSTANT], reference)));
#endif
                if (DAS_INTERPOLATION == 1)
                    receive[i] -= 0.5f;
                part[i] = 0.0f;
            }
#if DAS_APERTURE
            wanted = false;
#pragma unroll
            for (i = 0; i < DAS_TILE_POINTS; i++) {
                const das_points at_i = {p[i].x, p[i].y, p[i].z};
                weight[i] = das_apodize(at_i, elements + (step.s1 & 0xFFF) * ELEMENT_REALS, reals);
                wanted = wanted || weight[i] != 0.0f;
            }
            flags = wanted ? flags : 0;
#endif
#if DAS_ASM
#define DAS_TILE_ENTRY(t)                                                                                                      \
    das_entry_at(as_uint((t) + magic) * (uint)sizeof(das_entry) + from + (uint)(j * DAS_TILE_WINDOW * sizeof(das_entry)))
#else
#define DAS_TILE_ENTRY(t) stage[as_int((t) + magic) + from + j * DAS_TILE_WINDOW]
#endif
#if DAS_ASM
            asm volatile("" : "+r"(from)); /* a number of its own, not the sum of its parts */
#endif
#pragma unroll
            for (g = 0; g < DAS_TILE_GROUPS; g++) {
                if ((flags & 256 << g) != 0) {
#pragma unroll
                    for (j = g * DAS_TILE_GROUP; j < (g + 1) * DAS_TILE_GROUP; j++)
#pragma unroll
                        for (i = 0; i < DAS_TILE_POINTS; i++) {
                            const float t = delay[i][j] + receive[i];
                            const das_entry e = DAS_TILE_ENTRY(t);
                            part[i] += DAS_TILE_VALUE(e, t);
                        }
                } else if (DAS_INTERPOLATION != 0 && (flags & 1 << g) != 0) {
                    /* Windows over an end of the record: 1e-3 outside counts as the edge, more as nothing. */
#pragma unroll
                    for (j = g * DAS_TILE_GROUP; j < (g + 1) * DAS_TILE_GROUP; j++) {
                        const float first = -(float)(reference_t[j] + reference) - 0.5f, end = first + (float)last;
#pragma unroll
                        for (i = 0; i < DAS_TILE_POINTS; i++) {
                            float t = delay[i][j] + receive[i];
                            const bool inside = t >= first - 1e-3f && t <= end + 1e-3f;
                            t = inside ? fmin(fmax(t, first), end) : 0.0f;
                            const das_entry e = DAS_TILE_ENTRY(t);
                            part[i] += inside ? DAS_TILE_VALUE(e, t) : 0.0f;
                        }
                    }
                }
            }
#pragma unroll
            for (i = 0; i < DAS_TILE_POINTS; i++)
#if DAS_APERTURE
                sum[i] = weight[i] != 0.0f ? fma(weight[i], part[i], sum[i]) : sum[i];
#else
                sum[i] += part[i];
#endif
#if DAS_TILE_SPLIT
            das_gate_wait(gate, phase);
            phase ^= 1;
#else
            barrier(CLK_LOCAL_MEM_FENCE);
#endif
        }
    }

#pragma unroll
    for (i = 0; i < DAS_TILE_POINTS; i++) {
        const int a = a0, b = b0 + i * DAS_TILE_TEAMS;
        if (a <= most_a && b <= most_b)
            das_pixel_put(image + image_at + longs[LONG_IMAGE_FIRST] + a * longs[LONG_IMAGE_0 - axis_a] +
                              b * longs[LONG_IMAGE_0 - axis_b] + slice * longs[LONG_IMAGE_0 - axis_c],
                          sum[i], accumulate);
    }
}
#endif

#if DAS_FAST == 2
/* ---------------------------------------------------------------------------
 * CPUs. A work item, alone in its group, forms DAS_PATCH_COUNT patches of 16 points, each as one vector. All the samples of
 * a trace that the patch can reach lie in a window of 16, from which a permutation picks one for each
 * point: no gathers.
 * ------------------------------------------------------------------------- */

#define DAS_PATCH_BEFORE 7                            /* samples of the window in front of the reference */
#define DAS_PATCH_ROWS (DAS_PATCH_COUNT == 1 ? 4 : 2) /* transmits side by side */

#ifndef __has_builtin
#define __has_builtin(x) 0
#endif

/* window[i & 15] in each lane. The builtins' vectors are of another kind than OpenCL's. */
#if defined(__AVX512F__) && __has_builtin(__builtin_ia32_permvarsf512)
typedef float das_lane_floats __attribute__((vector_size(64)));
typedef int das_lane_ints __attribute__((vector_size(64)));
#define DAS_PICK(window, i)                                                                                                    \
    __builtin_astype(                                                                                                          \
        __builtin_ia32_permvarsf512(__builtin_astype(window, das_lane_floats), __builtin_astype(i, das_lane_ints)), float16)
#elif defined(__AVX2__) && __has_builtin(__builtin_ia32_permvarsf256)
typedef float das_lane_floats __attribute__((vector_size(32)));
typedef int das_lane_ints __attribute__((vector_size(32)));
inline float8 das_pick_half(float16 window, int8 i)
{
    const das_lane_ints at = __builtin_astype(i, das_lane_ints);
    const float8 low = __builtin_astype(__builtin_ia32_permvarsf256(__builtin_astype(window.lo, das_lane_floats), at), float8);
    const float8 high = __builtin_astype(__builtin_ia32_permvarsf256(__builtin_astype(window.hi, das_lane_floats), at), float8);
    return select(low, high, i << 28);
}
#define DAS_PICK(window, i) ((float16)(das_pick_half(window, (i).lo), das_pick_half(window, (i).hi)))
#else
inline float16 das_pick(float16 window, int16 i)
{
    float from[16];
    vstore16(window, 0, from);
    i &= 15;
    return (float16)(from[i.s0], from[i.s1], from[i.s2], from[i.s3], from[i.s4], from[i.s5], from[i.s6], from[i.s7], from[i.s8],
                     from[i.s9], from[i.sa], from[i.sb], from[i.sc], from[i.sd], from[i.se], from[i.sf]);
}
#define DAS_PICK(window, i) das_pick(window, i)
#endif

/* 16 samples from any address. vload16() may take them apart into pairs. */
#if defined(__clang__)
typedef float16 das_floats16 __attribute__((aligned(4)));
#define DAS_LOAD_16(from) ((float16) * (__global const das_floats16 *)(from))
#else
#define DAS_LOAD_16(from) vload16(0, from)
#endif

typedef struct das_patch_delay {
    float16 relative; /* of the points, to base */
    int base;
} das_patch_delay;

/* Delays of the patch around `middle`: exact there, and elsewhere by the difference of the distances,
 * |v + o| - |v| = (2 v + o).o / (|v + o| + |v|). */
inline das_patch_delay das_patch_delays(int wave, das_vector middle, float16 ox, float16 oy, float16 oz,
                                        __global const das_real *of, das_real samples_per_m)
{
    das_vector v = das_vector_sub(middle, das_vector_load(of + WAVE_POINT));
    const float scale = (float)das_real_value(samples_per_m);
    das_real path = DAS_REAL(0.0), s;
    float16 more = 0.0f;
    das_patch_delay d;
    if (wave == DAS_WAVE_POINT) {
        const float x = (float)das_real_value(v.x), y = (float)das_real_value(v.y), z = (float)das_real_value(v.z);
        path = das_real_sqrt(das_vector_dot(v, v));
        {
            const float at = (float)das_real_value(path);
            const float16 top = ox * (2.0f * x + ox) + oy * (2.0f * y + oy) + oz * (2.0f * z + oz);
            more = top / (sqrt(fmax(at * at + top, 0.0f)) + at + 1e-20f);
        }
    } else if (wave == DAS_WAVE_PLANE) {
        das_vector n = das_vector_load(of + WAVE_DIRECTION);
        path = das_vector_dot(v, n);
        more = ox * (float)das_real_value(n.x) + oy * (float)das_real_value(n.y) + oz * (float)das_real_value(n.z);
    }
    s = das_real_add(das_real_mul(path, samples_per_m), of[WAVE_CONSTANT]);
    d.base = das_reference(s);
    d.relative = more * scale + das_relative(s, d.base);
    return d;
}

/* The values at positions base + t of a record that starts at `row`, added to sum. row2, if folding is
 * left to this place, is the record of the reciprocal pair. */
inline float16 das_patch_add(float16 sum, float16 t, int base, __global const float *row, __global const float *row2, int last)
{
    const int from = base - DAS_PATCH_BEFORE;
    if (from < -15 || from > last)
        return sum;
    row += from;
    row2 += from;
#if DAS_INTERPOLATION == 0
    {
        const int16 i = as_int16(t + (DAS_MAGIC + (float)DAS_PATCH_BEFORE));
        float16 window = DAS_LOAD_16(row);
#if DAS_PATCH_SHARED && DAS_FOLDED
        window += DAS_LOAD_16(row2);
#endif
        return sum + DAS_PICK(window, i);
    }
#else
    {
        float16 whole = floor(t), part, low, high;
        int16 i;
        float16 window = DAS_LOAD_16(row), after = DAS_LOAD_16(row + 1);
#if DAS_PATCH_SHARED && DAS_FOLDED
        window += DAS_LOAD_16(row2);
        after += DAS_LOAD_16(row2 + 1);
#endif
        if (from < 0 || from + 15 >= last) {
            /* 1e-3 outside counts as the edge, more as nothing. */
            const float first = (float)-base, end = (float)(last - base);
            const int16 inside = t >= first - 1e-3f && t <= end + 1e-3f;
            t = fmin(fmax(t, first), end);
            whole = floor(t);
            part = t - whole;
            i = convert_int16(whole) + DAS_PATCH_BEFORE;
            low = DAS_PICK(window, i);
            high = DAS_PICK(after, i);
            return sum + select((float16)0.0f, low + part * (high - low), inside);
        }
        part = t - whole;
        i = as_int16(whole + (DAS_MAGIC + (float)DAS_PATCH_BEFORE));
        low = DAS_PICK(window, i);
        high = DAS_PICK(after, i);
        return sum + (low + part * (high - low));
    }
#endif
}

/* Adds the pair of the transmit whose delay and records are d and row, and of element k. */
inline float16 das_patch_pair(float16 sum, das_patch_delay d, __global const float *row, __global const float *packed,
                              long stride, int k, float16 delay, int base, int last)
{
#if DAS_PATCH_SHARED
    return das_patch_add(sum, d.relative + delay, d.base + base, packed + k * stride + DAS_WINDOW_LEAD, row, last);
#else
    return das_patch_add(sum, d.relative + delay, d.base + base, row + k * stride, row, last);
#endif
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
das_patch(__global const float *restrict packed, __global das_pixel *restrict image, __global const das_real *restrict reals,
          __global const long *restrict longs, __global const das_real *restrict elements,
          __global const das_real *restrict waves, __global const int *restrict kinds, __global const float *restrict offsets,
          __local float16 *restrict delay_r, __local int *restrict base_r, __local float16 *restrict weight_r, long image_at,
          long stride, long first_patch, int n_begin, int n_end, int accumulate)
{
    const int receives = (int)longs[LONG_RECEIVES], last = (int)longs[LONG_LAST];
    const long along_0 = DAS_PATCH_0 * DAS_PATCH_COUNT;
    const long blocks_0 = (longs[LONG_COUNT_0] - 1) / along_0 + 1, blocks_1 = (longs[LONG_COUNT_1] - 1) / DAS_PATCH_1 + 1;
    const long block = first_patch + (long)get_global_id(0);
    const long i0 = block % blocks_0 * along_0, i1 = block / blocks_0 % blocks_1 * DAS_PATCH_1;
    const long i2 = block / blocks_0 / blocks_1 * DAS_PATCH_2;
    const float16 ox = vload16(0, offsets), oy = vload16(1, offsets), oz = vload16(2, offsets);
    const das_real samples_per_m = reals[REAL_SAMPLES_PER_M];
    __global const das_real *origin = reals + REAL_ORIGIN, *step = reals + REAL_STEPS;
    float16 sum[DAS_PATCH_COUNT];
    das_vector middle[DAS_PATCH_COUNT];
    int n, k, j, q;
    if (i2 >= longs[LONG_COUNT_2])
        return;

    for (q = 0; q < DAS_PATCH_COUNT; q++) {
        const das_real a =
            das_real_add(das_index_real(i0 + q * DAS_PATCH_0), das_real_mul(DAS_REAL(0.5), das_index_real(DAS_PATCH_0 - 1)));
        const das_real b = das_real_add(das_index_real(i1), das_real_mul(DAS_REAL(0.5), das_index_real(DAS_PATCH_1 - 1)));
        const das_real c = das_real_add(das_index_real(i2), das_real_mul(DAS_REAL(0.5), das_index_real(DAS_PATCH_2 - 1)));
#define DAS_PATCH_AXIS(axis)                                                                                                   \
    das_real_add(origin[axis], das_real_add(das_real_add(das_real_mul(a, step[axis]), das_real_mul(b, step[3 + axis])),        \
                                            das_real_mul(c, step[6 + axis])))
        middle[q].x = DAS_PATCH_AXIS(0);
        middle[q].y = DAS_PATCH_AXIS(1);
        middle[q].z = DAS_PATCH_AXIS(2);
        sum[q] = 0.0f;
        for (k = 0; k < receives; k++) {
            const das_patch_delay d =
                das_patch_delays(DAS_WAVE_POINT, middle[q], ox, oy, oz, elements + k * ELEMENT_REALS, samples_per_m);
            delay_r[k * DAS_PATCH_COUNT + q] = d.relative;
            base_r[k * DAS_PATCH_COUNT + q] = d.base;
#if DAS_APERTURE
            {
                const das_points p = {middle[q].x + convert_double16(ox), middle[q].y + convert_double16(oy),
                                      middle[q].z + convert_double16(oz)};
                const float16 weight = das_apodize(p, elements + k * ELEMENT_REALS, reals);
                weight_r[k * DAS_PATCH_COUNT + q] = weight;
                /* An element that no point takes lies before all records. */
                if (!DAS_ANY(weight != 0.0f))
                    base_r[k * DAS_PATCH_COUNT + q] = -(1 << 29);
            }
#endif
        }
    }
    for (n = n_begin; n < n_end; n += DAS_PATCH_ROWS) {
        das_patch_delay d[DAS_PATCH_ROWS][DAS_PATCH_COUNT];
        float16 part[DAS_PATCH_ROWS][DAS_PATCH_COUNT];
        __global const float *row[DAS_PATCH_ROWS];
#pragma unroll
        for (j = 0; j < DAS_PATCH_ROWS; j++) {
            const int of = min(n + j, n_end - 1);
#pragma unroll
            for (q = 0; q < DAS_PATCH_COUNT; q++) {
#if DAS_FOLDED
                /* Element `of` transmits where it receives: only the constants differ. */
                const das_real more =
                    das_real_sub(waves[of * WAVE_REALS + WAVE_CONSTANT], elements[of * ELEMENT_REALS + ELEMENT_CONSTANT]);
                const int whole = das_reference(more);
                d[j][q].relative = delay_r[of * DAS_PATCH_COUNT + q] + das_relative(more, whole);
                d[j][q].base = base_r[of * DAS_PATCH_COUNT + q] + whole;
#else
                d[j][q] = das_patch_delays(kinds[of], middle[q], ox, oy, oz, waves + of * WAVE_REALS, samples_per_m);
#endif
                /* A row beyond the last lies before all records. */
                if (of < n + j)
                    d[j][q].base = -(1 << 29);
                part[j][q] = 0.0f;
            }
            /* Shared records: those of element n, for the reciprocal pair. Else where those of element 0 are or would be. */
#if DAS_PATCH_SHARED
            row[j] = packed + of * stride + DAS_WINDOW_LEAD;
#else
            row[j] = packed + das_packed_row(of, 0, n_begin, receives) * stride + DAS_WINDOW_LEAD;
#endif
        }
        k = 0;
#if DAS_FOLDED
        /* The triangle on the diagonal; shared, a pair of an element with itself is found twice. */
        for (k = n; k < min(n + DAS_PATCH_ROWS, receives); k++)
            for (j = 0; j <= k - n; j++)
                for (q = 0; q < DAS_PATCH_COUNT; q++) {
                    const float16 pair =
                        das_patch_pair((float16)0.0f, d[j][q], row[j], packed, stride, k, delay_r[k * DAS_PATCH_COUNT + q],
                                       base_r[k * DAS_PATCH_COUNT + q], last);
                    part[j][q] += DAS_PATCH_SHARED && k == n + j ? 0.5f * pair : pair;
                }
#endif
        for (; k < receives; k++) {
#pragma unroll
            for (q = 0; q < DAS_PATCH_COUNT; q++) {
                const float16 delay = delay_r[k * DAS_PATCH_COUNT + q];
                const int base = base_r[k * DAS_PATCH_COUNT + q];
#pragma unroll
                for (j = 0; j < DAS_PATCH_ROWS; j++) {
#if DAS_APERTURE
                    const float16 weight = weight_r[k * DAS_PATCH_COUNT + q];
                    const float16 pair = das_patch_pair((float16)0.0f, d[j][q], row[j], packed, stride, k, delay, base, last);
                    part[j][q] += select((float16)0.0f, weight * pair, weight != 0.0f);
#else
                    part[j][q] = das_patch_pair(part[j][q], d[j][q], row[j], packed, stride, k, delay, base, last);
#endif
                }
            }
        }
#pragma unroll
        for (j = 0; j < DAS_PATCH_ROWS; j++)
#pragma unroll
            for (q = 0; q < DAS_PATCH_COUNT; q++)
                sum[q] += part[j][q];
    }
    for (q = 0; q < DAS_PATCH_COUNT; q++) {
        float value[16];
        int a, b, c;
        vstore16(sum[q], 0, value);
        for (c = 0; c < DAS_PATCH_2; c++)
            for (b = 0; b < DAS_PATCH_1; b++)
                for (a = 0; a < DAS_PATCH_0; a++) {
                    const long at = i0 + q * DAS_PATCH_0 + a;
                    if (at < longs[LONG_COUNT_0] && i1 + b < longs[LONG_COUNT_1] && i2 + c < longs[LONG_COUNT_2])
                        das_pixel_put(image + image_at + longs[LONG_IMAGE_FIRST] + at * longs[LONG_IMAGE_0] +
                                          (i1 + b) * longs[LONG_IMAGE_1] + (i2 + c) * longs[LONG_IMAGE_2],
                                      value[(c * DAS_PATCH_1 + b) * DAS_PATCH_0 + a], accumulate);
                }
    }
}
#endif
