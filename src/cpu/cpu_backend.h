/* What the files of the CPU backend share. */
#ifndef DAS_CPU_BACKEND_H
#define DAS_CPU_BACKEND_H

#include "backend.h"
#include "kernel.h"

#include <string.h>

/* ---- cpu_features.c ---- */

typedef enum das_cpu_isa { DAS_CPU_SCALAR, DAS_CPU_AVX2, DAS_CPU_AVX512, DAS_CPU_NEON, DAS_CPU_ISA_COUNT } das_cpu_isa;

typedef struct das_cpu_features {
    bool has[DAS_CPU_ISA_COUNT];
    bool narrow_512; /* 512-bit vectors run at half rate or lower the clock: AVX2 is as fast */
    char model[64];
} das_cpu_features;

void das_cpu_detect(das_cpu_features *features);
/* What is known of a model, by what CPUID says of it. */
bool das_cpu_narrow_512(const char *vendor, uint32_t family, uint32_t model);
das_cpu_isa das_cpu_best(const das_cpu_features *features);
const char *das_cpu_isa_name(das_cpu_isa isa);

typedef struct das_cpu_device {
    das_cpu_isa isa;
} das_cpu_device;

/* Memory of the device's allocator. A tile reads a little of very many records: large blocks ask for large pages, as each
 * window would otherwise miss the translation of its page. */
void *das_cpu_allocate(das_device *device, uint64_t bytes);

/* ---- cpu_plan.c ---- */

typedef struct das_cpu_element {
    das_vector position, normal;
    double constant; /* d_r fs */
    double weight;
} das_cpu_element;

typedef struct das_cpu_transmit {
    int wave; /* DAS_WAVE_... */
    das_vector point, direction;
    double constant; /* samples to add to what depends on the point: (constant_s + d_t - t0_t) fs; 0 with a table */
    double turns;    /* likewise for the phase, which t0_t does not shift unless it refers to sample 0 */
} das_cpu_transmit;

typedef struct das_cpu_pair {
    int64_t offset;
    double weight;
    int32_t inner, outer;
} das_cpu_pair;

enum { DAS_CPU_GENERAL_TILE = 128 }; /* the most points of a tile of the general path */

/* How the general path works: for each tile of points and each `outer`, the pairs of it. The outer is the transmit, or
 * the receive element if only those are kept apart. */
typedef struct das_cpu_general {
    const struct das_cpu_general_kernels *kernels;
    bool outer_receive;
    int64_t outer_count, inner_count;
    int64_t tile_points, tile_count;
    int64_t chunk_frames; /* frames that share one evaluation of positions and weights */
    bool cached;          /* delays of all inner rows of a tile are kept */
    uint64_t lane_bytes;
} das_cpu_general;

/* A fast path: tiles that are compact patches of the grid, divided into groups of as many points as a vector has
 * lanes, themselves compact. See cpu_fast.h. */
typedef struct das_cpu_fast {
    const struct das_cpu_kernels *kernels; /* NULL: no fast path */
    int64_t tile[3], tile_grid[3]; /* points of a tile, tiles of the grid, along its axes */
    int64_t tile_count;
    int32_t points, groups; /* of a tile */
    int16_t (*local)[3];    /* [points]: where in the tile, group by group */
    bool folded;            /* a pair and its reciprocal share one position */
    bool hoisted;           /* delays of all receive elements of a tile are kept */
    bool shared;            /* transmit and receive delays are the same rows */
    bool weighted, transmit_weighted, rotated;
    bool packed;            /* records of reciprocal pairs are added once, before the tiles */
    bool frames;            /* the frames path: data packed with frames innermost */
    int64_t chunk_frames;   /* frames packed at a time */
    int64_t frame_floats;   /* of one sample of them, padded to whole vectors */
    int64_t packed_floats;
    int32_t *pair_of; /* [transmit_count][receive_count]: first of its pairs in the list, or -1; NULL without a list */
    uint64_t lane_bytes;    /* with the general path's, for tiles that the fast one leaves to it */
} das_cpu_fast;

typedef struct das_cpu_plan {
    das_problem problem; /* arrays that the plan does not keep are NULL */
    das_device *device;
    das_cpu_isa isa;
    void *memory; /* everything below */

    das_cpu_element *receive;
    das_cpu_transmit *transmit;
    das_cpu_pair *pair;   /* sorted by outer, inner; NULL: every pair has weight 1 and lies where the strides say */
    int64_t *pair_first;  /* [outer_count + 1] */
    double *transmit_delay, *receive_delay; /* tables in samples, or NULL */
    float *transmit_weight, *receive_weight;
    void *window; /* table in das_value, or NULL */

    double samples_per_m, tolerance_m, inverse_2f, turns_per_sample;

    das_cpu_general general;
    das_cpu_fast fast;
    int64_t lanes;
    uint64_t plan_bytes, slot_bytes;
    int32_t tiles;
} das_cpu_plan;

das_status das_cpu_plan_query(das_device *device, const das_problem *problem, das_plan_layout *layout, das_error *error);
das_status das_cpu_plan_create(das_plan *plan, const das_problem *problem, das_error *error);
void das_cpu_plan_destroy(das_plan *plan);
das_status das_cpu_slot_create(das_plan *plan, das_slot *slot, das_error *error);
void das_cpu_slot_destroy(das_plan *plan, das_slot *slot);

/* Hands out pieces of one block; with base NULL it only counts. */
typedef struct das_cpu_arena {
    char *base;
    uint64_t used;
} das_cpu_arena;

/* count * size bytes, aligned to 64; NULL while counting. */
void *das_cpu_take(das_cpu_arena *arena, int64_t count, size_t size);

/* ---- cpu_reconstruct.c ---- */

das_status das_cpu_reconstruct(das_plan *plan, das_slot *slot, das_queue *queue, const das_work *work, das_error *error);

/* One call on its way. */
typedef struct das_cpu_job {
    const das_cpu_plan *plan;
    const das_work *work;
    const char *data;
    char *image;
    char *scratch; /* of the slot */
    void *packed;  /* folded records, or records with frames innermost, in it; or NULL */
    int64_t unit_count, units_before, units_total; /* units_before: of earlier frames */
    atomic_llong next_unit, units_done, next_pack;
    atomic_bool cancelled;
    atomic_flag reporting;
} das_cpu_job;

/* The next unit of work for a lane, or -1. Reports progress on the way. */
int64_t das_cpu_next(das_cpu_job *job);

/* Stores (or adds) one value; `im` is ignored by real images. */
static inline void das_cpu_store(das_type type, char *where, bool accumulate, double re, double im)
{
    float *f = (float *)(void *)where;
    double *d = (double *)(void *)where;
    const bool complex_image = type == DAS_TYPE_CF32 || type == DAS_TYPE_CF64;
    if (type == DAS_TYPE_F32 || type == DAS_TYPE_CF32) {
        f[0] = (float)(accumulate ? (double)f[0] + re : re);
        if (complex_image)
            f[1] = (float)(accumulate ? (double)f[1] + im : im);
    } else {
        d[0] = accumulate ? d[0] + re : re;
        if (complex_image)
            d[1] = accumulate ? d[1] + im : im;
    }
}

/* ---- the general path: cpu_general.inc, sums in float and in double, for each instruction set ---- */

typedef struct das_cpu_general_kernels {
    uint64_t (*lane_bytes)(const das_cpu_plan *plan);
    /* Any points, by their index in the grid. */
    void (*points)(const das_cpu_job *job, char *scratch, const int64_t *index, int64_t count);
    void (*run)(das_cpu_job *job, int64_t lane);
} das_cpu_general_kernels;

extern const das_cpu_general_kernels das_cpu_general_f32, das_cpu_general_f64;
extern const das_cpu_general_kernels das_cpu_general_f32_avx2, das_cpu_general_f64_avx2;
extern const das_cpu_general_kernels das_cpu_general_f32_avx512, das_cpu_general_f64_avx512;

/* IEEE binary16. The exponent is put right by a multiplication, which handles numbers below the normal ones too. */
static inline float das_cpu_half(uint16_t bits)
{
    const uint32_t size = (uint32_t)(bits & 0x7fffu) << 13;
    uint32_t word;
    float value;
    memcpy(&value, &size, sizeof value);
    value *= 0x1p112f;
    memcpy(&word, &value, sizeof word);
    word = (size >= 0x0f800000u ? size | 0x7f800000u : word) | (uint32_t)(bits & 0x8000u) << 16; /* infinite, NaN */
    memcpy(&value, &word, sizeof value);
    return value;
}

#endif
