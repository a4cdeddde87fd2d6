/* Choice of the fast path and shape of its tiles. */
#include "cpu_fast.h"

#include <math.h>

enum {
    TILE_POINTS = 4096,
    ROW_BYTES = 1 << 22, /* of hoisted delays, which should stay in the second cache */
    FRAMES_TILE_POINTS = 1024,
    FRAMES_SUM_BYTES = 1 << 18,
    FEWEST_FRAMES = 4,   /* for the frames path */
    MOST_FRAMES = 64,    /* of sums that a lane holds */
    MOST_REPEATS = 16    /* of one pair: they are added in float */
};

static const das_cpu_kernels *kernels_of(das_cpu_isa isa)
{
    switch (isa) {
#if defined(__x86_64__)
    case DAS_CPU_AVX2: return &das_cpu_kernels_avx2;
    case DAS_CPU_AVX512: return &das_cpu_kernels_avx512;
#elif defined(__aarch64__)
    case DAS_CPU_NEON: return &das_cpu_kernels_neon;
#endif
    default: return &das_cpu_kernels_scalar;
    }
}

/* About how far apart neighbours along an axis are, in metres. */
static double spacing(const das_grid *grid, int axis)
{
    const int64_t n = grid->counts[axis];
    if (n == 1)
        return 0.0;
    if (grid->kind == DAS_GRID_CARTESIAN) {
        const double *step = grid->steps[axis];
        return sqrt(step[0] * step[0] + step[1] * step[1] + step[2] * step[2]);
    }
    if (grid->kind == DAS_GRID_POINTS)
        return 1.0;
    double step = fabs(grid->values[axis][n - 1] - grid->values[axis][0]) / (double)(n - 1);
    if (axis == 2)
        return step;
    const double *radii = grid->values[2];
    return step * fmax(fabs(radii[0]), fabs(radii[grid->counts[2] - 1]));
}

/* Doubles the axis along which the patch is shortest, until it has `target` points or covers the grid. Axes are doubled
 * in a fixed order of preference when equal. */
static void grow(int64_t patch[3], const das_grid *grid, int64_t target)
{
    double length[3];
    for (int k = 0; k < 3; k++)
        length[k] = spacing(grid, k);
    while (patch[0] * patch[1] * patch[2] < target) {
        int axis = -1;
        for (int k = 0; k < 3; k++)
            if (patch[k] < grid->counts[k] &&
                (axis < 0 || (double)patch[k] * length[k] < (double)patch[axis] * length[axis]))
                axis = k;
        if (axis < 0)
            return;
        patch[axis] *= 2;
    }
}

static bool repeats(const das_problem *problem)
{
    int64_t run = 1;
    for (int64_t k = 1; k < problem->pair_count; k++) {
        const das_pair *a = &problem->pair[k - 1], *b = &problem->pair[k];
        run = a->transmit == b->transmit && a->receive == b->receive ? run + 1 : 1;
        if (run > MOST_REPEATS)
            return true;
    }
    return false;
}

/* Whether the points of a group lie so far apart, everywhere, that no tile would take the fast path. */
static bool coarse(const das_cpu_plan *plan, const das_grid *grid, const int64_t group[3])
{
    double square = 0.0;
    if (grid->kind == DAS_GRID_POINTS)
        return false;
    for (int k = 0; k < 3; k++) {
        const int64_t n = group[k] < grid->counts[k] ? group[k] : grid->counts[k];
        const double half = grid->kind == DAS_GRID_POLAR && k < 2 ? 0.0 : 0.5 * (double)(n - 1) * spacing(grid, k);
        square += half * half;
    }
    return sqrt(square) * plan->samples_per_m > (double)DAS_CPU_COARSEST;
}

static bool serves(const das_problem *problem)
{
    return problem->fast_paths && problem->precision != DAS_PRECISION_DOUBLE &&
           problem->interpolation != DAS_INTERPOLATION_LANCZOS && !problem->keep_receive &&
           problem->normalization == DAS_NORMALIZATION_NONE && problem->transmit_times_s == NULL &&
           problem->receive_times_s == NULL &&
           problem->sample_count < INT32_MAX / 2 &&
           (problem->complete && problem->unit_weight
                ? true
                : !repeats(problem) && problem->pair_count < INT32_MAX && problem->transmit_count <= (1 << 20) / problem->receive_count);
}

void das_cpu_fast_choose(das_cpu_plan *plan, const das_problem *problem)
{
    das_cpu_fast *fast = &plan->fast;
    fast->kernels = NULL;
    if (!serves(problem))
        return;
    const das_cpu_kernels *kernels = kernels_of(plan->isa);
    const das_grid *grid = &problem->grid;

    fast->folded = problem->reciprocal && !problem->incremental && problem->transmit_count > 1;
    fast->rotated = problem->data_complex && problem->demodulation_frequency_hz != 0.0;
    fast->weighted = problem->f_number > 0.0 || problem->receive_weights != NULL;
    fast->transmit_weighted = problem->transmit_weights != NULL;
    fast->hoisted = problem->transmit_count > 4 || fast->folded;
    fast->shared = fast->folded;
    for (int64_t t = 0; fast->shared && t < problem->transmit_count; t++)
        fast->shared = problem->transmit[t].start_time_s == 0.0 && problem->transmit[t].delay_s == problem->receive[t].delay_s;

    /* Folding pays more than sharing weights among frames. */
    const int64_t pairs = problem->transmit_stride == 0 ? problem->receive_count
                                                        : problem->receive_count * problem->transmit_count;
    const int64_t sample_floats = pairs * (problem->sample_count + DAS_CPU_BEFORE + DAS_CPU_AFTER);
    fast->frames = problem->frame_count >= FEWEST_FRAMES && !fast->folded && problem->complete && problem->unit_weight &&
                   problem->transmit_count <= (1 << 16) / problem->receive_count &&
                   sample_floats < ((int64_t)1 << 40) / problem->frame_count;
    if (!fast->frames && problem->frame_count > MOST_FRAMES)
        return;

    /* The number of threads must not matter here: tiles decide how delays are rounded. */
    int64_t target = fast->frames ? FRAMES_TILE_POINTS : TILE_POINTS;
    if (fast->frames) {
        fast->hoisted = problem->transmit_count > 1;
        /* Large tiles read less of the data, as long as their sums stay in the second cache. */
        while (target > 64 && target * problem->frame_count * (problem->data_complex ? 16 : 4) > FRAMES_SUM_BYTES)
            target /= 2;
    }
    const int64_t row_point = 4 * (1 + (fast->weighted ? 1 : 0) + (fast->rotated ? 2 : 0));
    while (target > 4 * kernels->lanes && ((fast->hoisted && problem->receive_count * target * row_point > ROW_BYTES) ||
                                           (!fast->frames && target * problem->frame_count > 16 * TILE_POINTS) ||
                                           grid->point_count / target < 4))
        target /= 2;

    /* Shared data are in the cache anyway. */
    fast->packed = fast->folded && fast->shared && problem->complete && problem->unit_weight && problem->sample_stride == 1 &&
                   problem->sample_offset == 0.0 && problem->transmit_stride != 0 &&
                   (problem->data_type == DAS_TYPE_F32 || problem->data_type == DAS_TYPE_I16);
    fast->chunk_frames = problem->frame_count;
    fast->packed_floats = fast->packed ? problem->frame_count * (problem->receive_count * (problem->receive_count + 1) / 2) *
                                             problem->sample_count
                                       : 0;

    int64_t group[3] = {1, 1, 1};
    grow(group, grid, kernels->lanes);
    /* Few points: the rest of a group is padding. */
    if (group[0] * group[1] * group[2] < kernels->lanes)
        group[0] = kernels->lanes / (group[1] * group[2]);
    if (coarse(plan, grid, group))
        return;
    fast->tile_count = 1;
    int64_t tile[3] = {group[0], group[1], group[2]};
    grow(tile, grid, target);
    for (int k = 0; k < 3; k++) {
        fast->tile[k] = tile[k];
        fast->tile_grid[k] = (grid->counts[k] - 1) / tile[k] + 1;
        fast->tile_count *= fast->tile_grid[k];
    }
    fast->points = (int32_t)(tile[0] * tile[1] * tile[2]);
    fast->groups = fast->points / kernels->lanes;
    fast->kernels = kernels;
}

static void fill_local(das_cpu_fast *fast, const das_grid *grid)
{
    int64_t group[3] = {1, 1, 1};
    grow(group, grid, fast->kernels->lanes);
    if (group[0] * group[1] * group[2] < fast->kernels->lanes)
        group[0] = fast->kernels->lanes / (group[1] * group[2]);
    int64_t p = 0;
    for (int64_t g2 = 0; g2 < fast->tile[2]; g2 += group[2])
        for (int64_t g1 = 0; g1 < fast->tile[1]; g1 += group[1])
            for (int64_t g0 = 0; g0 < fast->tile[0]; g0 += group[0])
                for (int64_t l2 = 0; l2 < group[2]; l2++)
                    for (int64_t l1 = 0; l1 < group[1]; l1++)
                        for (int64_t l0 = 0; l0 < group[0]; l0++, p++) {
                            fast->local[p][0] = (int16_t)(g0 + l0);
                            fast->local[p][1] = (int16_t)(g1 + l1);
                            fast->local[p][2] = (int16_t)(g2 + l2);
                        }
}

void das_cpu_fast_frames(das_cpu_plan *plan, int64_t frames)
{
    das_cpu_fast *fast = &plan->fast;
    const das_problem *problem = &plan->problem;
    const int64_t lanes = fast->kernels->lanes, floats = frames * (problem->data_complex ? 2 : 1);
    const int64_t traces = problem->receive_count * (problem->transmit_stride == 0 ? 1 : problem->transmit_count);
    fast->chunk_frames = frames;
    fast->frame_floats = (floats + lanes - 1) / lanes * lanes;
    fast->packed_floats = traces * (problem->sample_count + DAS_CPU_BEFORE + DAS_CPU_AFTER) * fast->frame_floats;
}

void das_cpu_fast_keep(das_cpu_plan *plan, const das_problem *problem, das_cpu_arena *arena)
{
    das_cpu_fast *fast = &plan->fast;
    if (fast->kernels == NULL)
        return;
    fast->local = das_cpu_take(arena, fast->points, sizeof *fast->local);
    const int64_t lookup = plan->pair != NULL || !(problem->complete && problem->unit_weight)
                               ? problem->transmit_count * problem->receive_count
                               : 0;
    fast->pair_of = lookup > 0 ? das_cpu_take(arena, lookup, sizeof *fast->pair_of) : NULL;
    if (arena->base == NULL)
        return;
    fill_local(fast, &problem->grid);
    if (lookup == 0)
        return;
    for (int64_t k = 0; k < lookup; k++)
        fast->pair_of[k] = -1;
    /* Backwards, so that the first of repeated pairs stays. Without keep_receive the list is in transmit order. */
    for (int64_t k = problem->pair_count - 1; k >= 0; k--)
        fast->pair_of[plan->pair[k].outer * problem->receive_count + plan->pair[k].inner] = (int32_t)k;
}
