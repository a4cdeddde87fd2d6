/* Fast paths for single precision.
 *
 * The table path. The points of a vector are neighbours, so for one pair of transmit and receive element they read
 * neighbouring samples. What a tile can read of a trace is copied into a window, as the coefficients of a polynomial
 * per sample (nearest 1, linear 2, quadratic 3, cubic 4 of them); padding settles the ends of the record. A vector of
 * positions is the sum of two stored vectors, its whole part picks coefficients by a permute of one or two registers,
 * its fraction evaluates the polynomial. Delays are held relative to a whole sample per group of points, so that
 * float keeps them to 1e-6 of a sample.
 *
 * Windows also fold: with one array transmitting and receiving, the pairs (t,r) and (r,t) have one position, and their
 * windows are added first.
 *
 * The frames path, for many frames. Positions and weights belong to a point and a pair, never to a frame: they are
 * noted once, in a list per point, and applied to all frames, which the data are rearranged to hold innermost. */
#ifndef DAS_CPU_FAST_H
#define DAS_CPU_FAST_H

#include "cpu_backend.h"

typedef struct das_cpu_kernels {
    das_cpu_isa isa;
    int32_t lanes; /* points of a group */
    uint64_t (*lane_bytes)(const das_cpu_plan *plan); /* without the general path's */
    void (*pack)(das_cpu_job *job, int64_t lane);     /* for the frames path */
    void (*run)(das_cpu_job *job, int64_t lane);
} das_cpu_kernels;

extern const das_cpu_kernels das_cpu_kernels_scalar;
extern const das_cpu_kernels das_cpu_kernels_avx2;
extern const das_cpu_kernels das_cpu_kernels_avx512;
extern const das_cpu_kernels das_cpu_kernels_neon;

enum {
    DAS_CPU_BLOCK = 16,          /* the most receive elements of a block */
    DAS_CPU_BEFORE = 2, DAS_CPU_AFTER = 4, /* zeros around a packed record */
    DAS_CPU_STAGE_FLOATS = 32768, /* room for a block's windows */
    DAS_CPU_COARSEST = 8         /* samples from the centre of a group to its points: beyond, float loses digits */
};

/* Where the sum of records (t,r) and (r,t), t >= r, lies among the packed ones. frame counts from the first of the call. */
static inline int64_t das_cpu_packed_at(const das_cpu_plan *plan, int64_t t, int64_t r, int64_t frame)
{
    const int64_t pairs = plan->problem.receive_count * (plan->problem.receive_count + 1) / 2;
    return (frame * pairs + t * (t + 1) / 2 + r) * plan->problem.sample_count;
}

/* ---- cpu_pack.c ---- */

/* Adds up the records of reciprocal pairs. */
void das_cpu_fold(das_cpu_job *job);

/* ---- cpu_fast.c ---- */

/* Chooses path and tile for the problem; leaves kernels NULL if only the general path serves. */
void das_cpu_fast_choose(das_cpu_plan *plan, const das_problem *problem);
/* Sizes of the frames path when so many frames are packed at a time. */
void das_cpu_fast_frames(das_cpu_plan *plan, int64_t frames);
/* What the plan keeps for it. */
void das_cpu_fast_keep(das_cpu_plan *plan, const das_problem *problem, das_cpu_arena *arena);

#endif
