/* Choice of the fast paths and the memory they need; their kernels are in opencl_fast.cl. */
#include "opencl_backend.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PATCH = 16, PATCH_LEAD = 32, PATCH_BEFORE = 7, PATCH_ROWS = 4, MOST_ELEMENTS = 1024, MOST_PATCHES = 4 };

static bool serves(const das_problem *problem)
{
    const das_grid *grid = &problem->grid;
    if (!problem->fast_paths || !problem->dense || problem->precision == DAS_PRECISION_DOUBLE || problem->data_complex ||
        grid->kind != DAS_GRID_CARTESIAN || problem->keep_transmit || problem->keep_receive ||
        problem->normalization != DAS_NORMALIZATION_NONE || problem->outside != DAS_OUTSIDE_ZERO ||
        problem->window == DAS_WINDOW_TABLE || problem->transmit_times_s != NULL || problem->receive_times_s != NULL ||
        problem->transmit_weights != NULL || problem->receive_weights != NULL ||
        problem->interpolation > DAS_INTERPOLATION_LINEAR)
        return false;
    if (problem->transmit_count > MOST_ELEMENTS || problem->receive_count > MOST_ELEMENTS || problem->sample_count > 1 << 22 ||
        grid->point_count < 64)
        return false;
    for (int64_t t = 0; t < problem->transmit_count; t++)
        if (problem->transmit[t].kind == DAS_TRANSMIT_FOCUSED)
            return false;
    return true;
}

/* Distance from the middle of a box of points to its farthest corner, in samples of one-way path. */
static double radius(const das_problem *problem, const int64_t points[3])
{
    double most = 0;
    for (int corner = 0; corner < 4; corner++) {
        double square = 0;
        for (int c = 0; c < 3; c++) {
            double d = 0;
            for (int k = 0; k < 3; k++) {
                double half = problem->grid.steps[k][c] * (double)(points[k] - 1) / 2;
                d += k < 2 && (corner >> k & 1) != 0 ? -half : half;
            }
            square += d * d;
        }
        most = fmax(most, square);
    }
    return sqrt(most) * problem->sampling_frequency_hz / problem->sound_speed_m_s;
}

/* Whether sources and elements share y and z and the grid's axis `across` is across the line that they form. */
static bool on_line(const das_problem *problem, int across)
{
    const double *at = problem->receive[0].position;
    if (problem->grid.steps[across][0] != 0)
        return false;
    for (int64_t r = 0; r < problem->receive_count; r++)
        if (problem->receive[r].position[1] != at[1] || problem->receive[r].position[2] != at[2])
            return false;
    for (int64_t t = 0; t < problem->transmit_count; t++) {
        const das_transmit *transmit = &problem->transmit[t];
        if ((transmit->kind != DAS_TRANSMIT_ELEMENT && transmit->kind != DAS_TRANSMIT_DIVERGING) ||
            transmit->point[1] != at[1] || transmit->point[2] != at[2])
            return false;
    }
    return true;
}

/* Tiles of a GPU; the third axis, along which they are one point thick, is the shortest. */
static bool choose_tile(const das_opencl_device *device, const das_problem *problem, das_opencl_fast *fast)
{
    const int64_t *counts = problem->grid.counts;
    /* Threads, points a thread, transmits a block: the first that fits; those with `nvidia` measured on an H200. */
    static const struct {
        int32_t threads, points, rows;
        bool nvidia, nearest; /* there only; for nearest only */
    } shapes[] = {{256, 4, 16, true, true}, {128, 4, 16, true, false}, {256, 2, 16, false, false}, {256, 2, 8, false, false}};
    const bool nearest = problem->interpolation == DAS_INTERPOLATION_NEAREST;
    int64_t points[3] = {1, 1, 1};
    uint64_t local;
    int thin = 0;
    double half;
    for (int k = 1; k < 3; k++)
        if (counts[k] < counts[thin])
            thin = k;
    fast->axis[0] = thin == 0 ? 1 : 0;
    fast->axis[1] = thin == 2 ? 1 : 2;
    fast->axis[2] = thin;
    /* A tile is 32 points wide and takes a block of transmits at once. */
    if (problem->transmit_count < 4 || counts[fast->axis[0]] < 8 || counts[fast->axis[1]] < 8)
        return false;
    if (!on_line(problem, fast->axis[1]) && on_line(problem, fast->axis[0])) {
        fast->axis[0] = fast->axis[1];
        fast->axis[1] = thin == 0 ? 1 : 0;
    }
    fast->line = !(problem->f_number > 0) && on_line(problem, fast->axis[1]);
    for (size_t shape = 0;; shape++) {
        const bool copied = device->nvidia >= 8;
        if (shape == sizeof shapes / sizeof shapes[0])
            return false;
        if ((shapes[shape].nvidia && device->nvidia == 0) || (shapes[shape].nearest && !nearest))
            continue;
        fast->threads = shapes[shape].threads;
        fast->points = shapes[shape].points;
        fast->rows = shapes[shape].rows;
        if (device->max_group < (size_t)fast->threads || device->max_items < (size_t)fast->threads)
            continue;
        points[fast->axis[0]] = 32;
        points[fast->axis[1]] = fast->threads / 32 * fast->points;
        /* |s(p) - s(middle)| is at most two radii; references are multiples of 4, 2 off at most each; a tap more. */
        half = 2 * radius(problem, points) + 4 + 2;
        if (!(half <= 250))
            continue;
        fast->half_window = ((int32_t)ceil(half) + 3) / 4 * 4;
        fast->window = (fast->half_window + (int32_t)ceil(half) + 4 + 3) / 4 * 4;
        /* Stages, what is copied for the next, and the tables of opencl_fast.cl. */
        local = (uint64_t)fast->rows * (uint64_t)fast->window *
                    (nearest  ? copied ? 16 : 8
                     : copied ? 20
                              : 16) +
                20 * (uint64_t)fast->rows + (fast->line ? 32 : 16) * (uint64_t)problem->receive_count + 512;
        if (local <= device->local_bytes)
            break;
    }
    for (int k = 0; k < 2; k++) {
        int64_t tiles = (counts[fast->axis[k]] - 1) / points[fast->axis[k]] + 1;
        if (tiles >= 1 << 15)
            return false;
        fast->tiles[k] = (int32_t)tiles;
    }
    fast->constant = problem->receive_count * 64 <= 32768 && !(problem->f_number > 0);
    /* Deep tiles last: they have the least to do where records end before the image does. */
    fast->slow_a = fabs(problem->grid.steps[fast->axis[0]][2]) > fabs(problem->grid.steps[fast->axis[1]][2]);
    fast->lead = fast->window + 4;
    fast->path = DAS_OPENCL_TILE;
    return true;
}

/* Patches of a CPU: doubled along the axis where they are shortest until they have 16 points. */
static bool choose_patch(const das_opencl_device *device, const das_problem *problem, das_opencl_fast *fast)
{
    const das_grid *grid = &problem->grid;
    uint64_t local;
    for (int k = 0; k < 3; k++)
        fast->patch[k] = 1;
    while (fast->patch[0] * fast->patch[1] * fast->patch[2] < PATCH) {
        int axis = -1;
        double least = 0;
        for (int k = 0; k < 3; k++) {
            const double *step = grid->steps[k];
            double length = sqrt(step[0] * step[0] + step[1] * step[1] + step[2] * step[2]) * (double)fast->patch[k];
            if (fast->patch[k] < grid->counts[k] && (axis < 0 || length < least)) {
                axis = k;
                least = length;
            }
        }
        if (axis < 0)
            return false;
        fast->patch[axis] *= 2;
    }
    /* The window reaches 7 samples before the sum of the references, which are off by half a sample each. */
    if (!(2 * radius(problem, fast->patch) + 1 <= PATCH_BEFORE))
        return false;
    /* Records that transmits do not share overflow the caches; several patches then go through them together. */
    fast->patches = problem->transmit_stride == 0 || problem->grid.counts[0] < fast->patch[0] * MOST_PATCHES ? 1 : MOST_PATCHES;
    local = (uint64_t)problem->receive_count * (problem->f_number > 0 ? 132 : 68);
    if (local * (uint64_t)fast->patches > device->local_bytes / 2)
        fast->patches = 1;
    if (local > device->local_bytes / 2 || (problem->f_number > 0 && !device->fp64))
        return false;
    fast->rows = PATCH_ROWS;
    fast->lead = PATCH_LEAD;
    fast->path = DAS_OPENCL_PATCH;
    return true;
}

/* Rows that transmits first .. end - 1 pack to; see das_packed_row() in opencl_fast.cl. */
static uint64_t packed_rows(const das_opencl_fast *fast, int64_t receives, int64_t first, int64_t end)
{
    const int64_t group = fast->path == DAS_OPENCL_TILE ? 8 : 1;
    int64_t rows = 0;
    if (fast->shared)
        return (uint64_t)receives;
    if (!fast->folded)
        return (uint64_t)(end - first) * (uint64_t)receives;
    for (int64_t n = first; n < end; n++)
        rows += receives - n / group * group;
    return (uint64_t)rows;
}

void das_opencl_fast_choose(const das_opencl_device *device, const das_problem *problem, uint64_t bytes, das_opencl_fast *fast,
                            uint64_t *plan_bytes, uint64_t *slot_bytes)
{
    const int64_t transmits = problem->transmit_count;
    uint64_t available, own;
    memset(fast, 0, sizeof *fast);
    if (!serves(problem) || !(device->gpu ? choose_tile(device, problem, fast) : choose_patch(device, problem, fast)))
        return;
    fast->folded = problem->reciprocal && !problem->incremental;
    fast->weighted = !(problem->complete && problem->unit_weight);
    fast->shared = fast->path == DAS_OPENCL_PATCH && problem->transmit_stride == 0 && !fast->weighted;
    fast->stride = (problem->sample_count + 2 * fast->lead + 15) / 16 * 16;
    own = (fast->weighted ? 4 * (uint64_t)transmits * (uint64_t)problem->receive_count : 0) +
          (fast->path == DAS_OPENCL_PATCH ? 4 * 3 * PATCH : 0);
    available = bytes + own < problem->memory_budget ? (problem->memory_budget - bytes - own) / (uint64_t)problem->slots : 0;
    available = available < device->max_buffer_bytes ? available : device->max_buffer_bytes;
    if (fast->path == DAS_OPENCL_TILE) /* places in it are 32-bit numbers */
        available = available < (uint64_t)INT32_MAX * 4 ? available : (uint64_t)INT32_MAX * 4;
    for (int64_t chunks = 1;; chunks++) {
        int64_t blocks = (transmits - 1) / fast->rows + 1;
        fast->transmits = (blocks - 1) / chunks * fast->rows + fast->rows;
        fast->packed_bytes =
            4 * (uint64_t)fast->stride *
            packed_rows(fast, problem->receive_count, 0, fast->transmits < transmits ? fast->transmits : transmits);
        if (fast->packed_bytes <= available)
            break;
        if (fast->transmits == fast->rows) {
            fast->path = DAS_OPENCL_GENERAL;
            return;
        }
    }
    *plan_bytes += own;
    *slot_bytes += fast->packed_bytes;
}

static das_status make_weights(das_plan *plan, const das_problem *problem, das_error *error)
{
    das_opencl_plan *made = plan->impl;
    const size_t count = (size_t)problem->transmit_count * (size_t)problem->receive_count;
    float *weights = calloc(count, sizeof *weights);
    das_status status;
    if (weights == NULL)
        return das_fail(error, DAS_ERROR_OUT_OF_MEMORY, "no memory for the weights of %zu pairs", count);
    for (int64_t i = 0; i < problem->pair_count; i++)
        weights[problem->pair[i].transmit * problem->receive_count + problem->pair[i].receive] = (float)problem->pair[i].weight;
    status =
        das_opencl_memory_create(plan->device, count * sizeof *weights, weights, "memory of the plan", &made->weights, error);
    free(weights);
    return status;
}

das_status das_opencl_fast_create(das_plan *plan, const das_problem *problem, das_error *error)
{
    das_opencl_plan *made = plan->impl;
    const das_opencl_fast *fast = &made->choice.fast;
    float offsets[3][PATCH];
    int64_t at[3];
    if (fast->weighted) {
        das_status status = make_weights(plan, problem, error);
        if (status != DAS_OK)
            return status;
    }
    if (fast->path != DAS_OPENCL_PATCH)
        return DAS_OK;
    for (int64_t i = 0; i < PATCH; i++) {
        at[0] = i % fast->patch[0];
        at[1] = i / fast->patch[0] % fast->patch[1];
        at[2] = i / fast->patch[0] / fast->patch[1];
        for (int c = 0; c < 3; c++) {
            double sum = 0;
            for (int k = 0; k < 3; k++)
                sum += problem->grid.steps[k][c] * ((double)at[k] - (double)(fast->patch[k] - 1) / 2);
            offsets[c][i] = (float)sum;
        }
    }
    return das_opencl_memory_create(plan->device, sizeof offsets, offsets, "memory of the plan", &made->offsets, error);
}
