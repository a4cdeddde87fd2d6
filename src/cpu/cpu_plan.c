/* What a CPU plan keeps, how it fits into the memory budget, and its scratch slots. */
#include "cpu_fast.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SMALLEST_TILE = 16, CHUNK_FRAMES = 16 };

void *das_cpu_take(das_cpu_arena *arena, int64_t count, size_t size)
{
    const uint64_t absurd = (uint64_t)1 << 62;
    uint64_t bytes = (uint64_t)count > absurd / size ? absurd : ((uint64_t)count * size + 63) / 64 * 64;
    void *piece = arena->base != NULL ? arena->base + arena->used : NULL;
    arena->used = arena->used > absurd - bytes ? absurd : arena->used + bytes;
    return piece;
}

static das_vector vector_of(const double v[3])
{
    return (das_vector){v[0], v[1], v[2]};
}

static void fill_geometry(das_cpu_plan *plan, const das_problem *problem)
{
    const double fs = problem->sampling_frequency_hz;
    for (int64_t r = 0; r < problem->receive_count; r++) {
        const das_element *from = &problem->receive[r];
        plan->receive[r] =
            (das_cpu_element){vector_of(from->position), vector_of(from->normal), from->delay_s * fs, from->weight};
    }
    for (int64_t t = 0; t < problem->transmit_count; t++) {
        const das_transmit *from = &problem->transmit[t];
        das_cpu_transmit *to = &plan->transmit[t];
        to->point = vector_of(from->kind == DAS_TRANSMIT_PLANE ? from->origin : from->point);
        to->direction = vector_of(from->direction);
        to->wave = from->kind == DAS_TRANSMIT_PLANE     ? DAS_WAVE_PLANE
                   : from->kind == DAS_TRANSMIT_FOCUSED ? DAS_WAVE_FOCUSED
                   : from->kind == DAS_TRANSMIT_NONE    ? DAS_WAVE_NONE
                                                        : DAS_WAVE_POINT;
        /* A table has the arrival time whole, and its delay and start time already. */
        const bool table = problem->transmit_times_s != NULL;
        to->constant = table ? 0.0 : (from->constant_s + (from->delay_s - from->start_time_s)) * fs;
        const double start_s = problem->phase_reference == DAS_PHASE_REFERENCE_TIME_ZERO ? 0.0 : from->start_time_s;
        double turns = problem->demodulation_frequency_hz *
                       (table ? from->start_time_s - start_s : from->constant_s + (from->delay_s - start_s));
        to->turns = turns - rint(turns);
    }
}

static void fill_tables(das_cpu_plan *plan, const das_problem *problem)
{
    const double fs = problem->sampling_frequency_hz;
    const int64_t points = problem->grid.point_count;
    if (plan->transmit_delay != NULL)
        for (int64_t t = 0; t < problem->transmit_count; t++) {
            const double shift = problem->transmit[t].delay_s - problem->transmit[t].start_time_s;
            for (int64_t p = 0; p < points; p++)
                plan->transmit_delay[t * points + p] = (problem->transmit_times_s[t * points + p] + shift) * fs;
        }
    if (plan->receive_delay != NULL)
        for (int64_t r = 0; r < problem->receive_count; r++)
            for (int64_t p = 0; p < points; p++)
                plan->receive_delay[r * points + p] =
                    (problem->receive_times_s[r * points + p] + problem->receive[r].delay_s) * fs;
    if (plan->transmit_weight != NULL)
        memcpy(plan->transmit_weight, problem->transmit_weights,
               (size_t)(problem->transmit_count * points) * sizeof(float));
    if (plan->receive_weight != NULL)
        memcpy(plan->receive_weight, problem->receive_weights, (size_t)(problem->receive_count * points) * sizeof(float));
    if (plan->window != NULL)
        for (int64_t i = 0; i < problem->window_count; i++) {
            if (problem->precision == DAS_PRECISION_DOUBLE)
                ((double *)plan->window)[i] = problem->window_values[i];
            else
                ((float *)plan->window)[i] = (float)problem->window_values[i];
        }
}

/* The problem's pairs come sorted by transmit; a counting sort by receive element keeps that order within. */
static void fill_pairs(das_cpu_plan *plan, const das_problem *problem)
{
    const bool by_receive = plan->general.outer_receive;
    int64_t *first = plan->pair_first;
    memset(first, 0, (size_t)(plan->general.outer_count + 1) * sizeof *first);
    for (int64_t k = 0; k < problem->pair_count; k++)
        first[(by_receive ? problem->pair[k].receive : problem->pair[k].transmit) + 1]++;
    for (int64_t o = 0; o < plan->general.outer_count; o++)
        first[o + 1] += first[o];
    /* first[o] walks to the start of o + 1 while o is filled, and is moved back after. */
    for (int64_t k = 0; k < problem->pair_count; k++) {
        const das_pair *from = &problem->pair[k];
        int32_t outer = by_receive ? from->receive : from->transmit;
        plan->pair[first[outer]++] =
            (das_cpu_pair){from->offset, from->weight, by_receive ? from->transmit : from->receive, outer};
    }
    for (int64_t o = plan->general.outer_count; o > 0; o--)
        first[o] = first[o - 1];
    first[0] = 0;
}

/* Everything the plan keeps. Counts when the arena has no memory yet, fills it otherwise. */
static void keep(das_cpu_plan *plan, const das_problem *problem, das_cpu_arena *arena)
{
    const int64_t points = problem->grid.point_count;
    das_problem *own = &plan->problem;
    *own = *problem;
    own->receive = NULL;
    own->transmit = NULL;
    own->pair = NULL;
    own->pair_first = NULL;
    own->window_values = NULL;
    own->transmit_times_s = own->receive_times_s = NULL;
    own->transmit_weights = own->receive_weights = NULL;

    const int64_t value_count[3] = {problem->grid.kind == DAS_GRID_POINTS ? 3 * problem->grid.counts[0] : problem->grid.counts[0],
                                    problem->grid.counts[1], problem->grid.counts[2]};
    for (int k = 0; k < 3; k++) {
        if (problem->grid.values[k] == NULL)
            continue;
        own->grid.values[k] = das_cpu_take(arena, value_count[k], sizeof(double));
        if (arena->base != NULL)
            memcpy(own->grid.values[k], problem->grid.values[k], (size_t)value_count[k] * sizeof(double));
    }

    plan->samples_per_m = problem->sampling_frequency_hz / problem->sound_speed_m_s;
    plan->tolerance_m = 1e-3 * problem->sound_speed_m_s / problem->sampling_frequency_hz;
    plan->inverse_2f = problem->f_number > 0.0 ? 0.5 / problem->f_number : 0.0;
    plan->turns_per_sample = problem->demodulation_frequency_hz / problem->sampling_frequency_hz;

    plan->receive = das_cpu_take(arena, problem->receive_count, sizeof *plan->receive);
    plan->transmit = das_cpu_take(arena, problem->transmit_count, sizeof *plan->transmit);
    if (problem->transmit_times_s != NULL)
        plan->transmit_delay = das_cpu_take(arena, problem->transmit_count * points, sizeof(double));
    if (problem->receive_times_s != NULL)
        plan->receive_delay = das_cpu_take(arena, problem->receive_count * points, sizeof(double));
    if (problem->transmit_weights != NULL)
        plan->transmit_weight = das_cpu_take(arena, problem->transmit_count * points, sizeof(float));
    if (problem->receive_weights != NULL)
        plan->receive_weight = das_cpu_take(arena, problem->receive_count * points, sizeof(float));
    if (problem->window == DAS_WINDOW_TABLE)
        plan->window = das_cpu_take(arena, problem->window_count, sizeof(double));

    plan->general.outer_receive = problem->keep_receive && !problem->keep_transmit;
    plan->general.outer_count = plan->general.outer_receive ? problem->receive_count : problem->transmit_count;
    plan->general.inner_count = plan->general.outer_receive ? problem->transmit_count : problem->receive_count;
    const bool listed = !(problem->complete && problem->unit_weight);
    if (listed) {
        plan->pair = das_cpu_take(arena, problem->pair_count, sizeof *plan->pair);
        plan->pair_first = das_cpu_take(arena, plan->general.outer_count + 1, sizeof *plan->pair_first);
    }
    if (arena->base != NULL) {
        fill_geometry(plan, problem);
        fill_tables(plan, problem);
        if (listed)
            fill_pairs(plan, problem);
    }
    das_cpu_fast_keep(plan, problem, arena);
}

static int64_t minimum(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Sizes of the general path's tiles such that `room` bytes hold the lanes. The image does not depend on them. */
static bool fit_general(das_cpu_plan *plan, int64_t width, uint64_t room)
{
    const int64_t points = plan->problem.grid.point_count, frames = plan->problem.frame_count;
    das_cpu_general *general = &plan->general;
    int64_t largest = DAS_CPU_GENERAL_TILE;
    while (largest > SMALLEST_TILE && points / largest < 4 * width)
        largest /= 2;
    for (int pass = 0; pass < 2; pass++) /* first with all lanes, then with as many as fit */
        for (int64_t chunk = minimum(frames, CHUNK_FRAMES);; chunk = 1) {
            for (int cached = general->outer_count > 1; cached >= 0; cached--)
                for (int64_t tile = largest; tile >= SMALLEST_TILE; tile /= 2) {
                    general->tile_points = tile;
                    general->tile_count = (points - 1) / tile + 1;
                    general->chunk_frames = chunk;
                    general->cached = cached != 0;
                    general->lane_bytes = general->kernels->lane_bytes(plan);
                    plan->lanes = minimum(width, general->tile_count);
                    const uint64_t fitting = room / general->lane_bytes;
                    if (fitting < (uint64_t)plan->lanes && pass > 0)
                        plan->lanes = (int64_t)fitting;
                    if (fitting >= (uint64_t)plan->lanes && plan->lanes > 0) {
                        plan->slot_bytes = (uint64_t)plan->lanes * general->lane_bytes;
                        const bool first = tile == largest && pass == 0 && chunk == minimum(frames, CHUNK_FRAMES);
                        plan->tiles = first ? 1 : (int32_t)minimum(general->tile_count, INT32_MAX);
                        return true;
                    }
                }
            if (chunk == 1)
                break;
        }
    return false;
}

/* Lanes of the fast path within `room`, with `packed` bytes set aside. */
static bool fit_lanes(das_cpu_plan *plan, int64_t width, uint64_t room, uint64_t packed, bool all)
{
    plan->fast.lane_bytes = plan->fast.kernels->lane_bytes(plan) + plan->general.lane_bytes;
    const uint64_t fitting = room > packed ? (room - packed) / plan->fast.lane_bytes : 0;
    plan->lanes = minimum(width, plan->fast.tile_count);
    if (fitting < (uint64_t)plan->lanes) {
        if (all)
            return false;
        plan->lanes = (int64_t)fitting;
    }
    plan->slot_bytes = (uint64_t)plan->lanes * plan->fast.lane_bytes + packed;
    plan->tiles = 1;
    return plan->lanes > 0;
}

/* The fast path with as many lanes as fit. Its tiles never change, as they decide how delays are rounded; whether data
 * are packed, and how many frames at a time, changes no sum. */
static bool fit_fast(das_cpu_plan *plan, int64_t width, uint64_t room)
{
    das_cpu_general *general = &plan->general;
    das_cpu_fast *fast = &plan->fast;
    general->tile_points = 2 * SMALLEST_TILE;
    general->tile_count = 0;
    general->chunk_frames = minimum(plan->problem.frame_count, CHUNK_FRAMES);
    general->cached = general->outer_count > 1;
    general->lane_bytes = general->kernels->lane_bytes(plan);
    if (fast->frames) {
        for (int all = 1; all >= 0; all--)
            for (int64_t frames = plan->problem.frame_count; frames > 0; frames /= 2) {
                das_cpu_fast_frames(plan, frames);
                /* Places in a record are counted in 32 bits. */
                if (fast->frame_floats <= INT32_MAX / (plan->problem.sample_count + DAS_CPU_BEFORE + DAS_CPU_AFTER) &&
                    fit_lanes(plan, width, room, (uint64_t)fast->packed_floats * sizeof(float), all != 0)) {
                    plan->tiles = (int32_t)minimum((plan->problem.frame_count - 1) / frames + 1, INT32_MAX);
                    return true;
                }
            }
        return false;
    }
    if (fast->packed && fit_lanes(plan, width, room, (uint64_t)fast->packed_floats * sizeof(float), true))
        return true;
    fast->packed = false;
    return fit_lanes(plan, width, room, 0, false);
}

static uint64_t room_of(const das_cpu_plan *plan, const das_problem *problem)
{
    return problem->memory_budget > plan->plan_bytes ? (problem->memory_budget - plan->plan_bytes) / (uint64_t)problem->slots : 0;
}

static void count(das_cpu_plan *plan, const das_problem *problem)
{
    das_cpu_arena counting = {NULL, 0};
    das_cpu_take(&counting, 1, sizeof *plan);
    keep(plan, problem, &counting);
    plan->plan_bytes = counting.used;
}

static const das_cpu_general_kernels *general_kernels(das_cpu_isa isa, bool in_double)
{
#if defined(__x86_64__)
    if (isa == DAS_CPU_AVX2)
        return in_double ? &das_cpu_general_f64_avx2 : &das_cpu_general_f32_avx2;
    if (isa == DAS_CPU_AVX512)
        return in_double ? &das_cpu_general_f64_avx512 : &das_cpu_general_f32_avx512;
#endif
    (void)isa; /* what all have */
    return in_double ? &das_cpu_general_f64 : &das_cpu_general_f32;
}

static das_status choose(das_device *device, const das_problem *problem, das_cpu_plan *plan, das_error *error)
{
    const int64_t width = das_parallel_width(device);
    memset(plan, 0, sizeof *plan);
    plan->device = device;
    plan->isa = ((const das_cpu_device *)device->impl)->isa;
    plan->general.kernels = general_kernels(plan->isa, problem->precision == DAS_PRECISION_DOUBLE);
    plan->samples_per_m = problem->sampling_frequency_hz / problem->sound_speed_m_s;
    das_cpu_fast_choose(plan, problem);
    count(plan, problem);
    if (plan->fast.kernels != NULL && fit_fast(plan, width, room_of(plan, problem)))
        return DAS_OK;
    plan->fast.kernels = NULL;
    count(plan, problem);
    if (!fit_general(plan, width, room_of(plan, problem)))
        return das_fail(error, DAS_ERROR_OUT_OF_DEVICE_MEMORY,
                        "memory_budget is %llu bytes; the plan takes %llu and each of its %lld slots at least %llu more",
                        (unsigned long long)problem->memory_budget, (unsigned long long)plan->plan_bytes,
                        (long long)problem->slots, (unsigned long long)plan->general.lane_bytes);
    return DAS_OK;
}

/* One line about the path. */
static void describe(const das_cpu_plan *plan, char *text, size_t size)
{
    const das_problem *problem = &plan->problem;
    static const char *const interpolations[] = {"nearest", "linear", "quadratic", "cubic", "lanczos"};
    const char *isa = das_cpu_isa_name(plan->isa), *interpolation = interpolations[problem->interpolation];
    if (plan->fast.kernels == NULL)
        snprintf(text, size, "cpu %s: general %s, %s sums, tiles of %lld points, %lld threads", isa, interpolation,
                 problem->precision == DAS_PRECISION_DOUBLE ? "double" : "float", (long long)plan->general.tile_points,
                 (long long)plan->lanes);
    else
        snprintf(text, size, "cpu %s: %s%s %s, tiles of %lld x %lld x %lld points, %lld threads", isa,
                 plan->fast.packed ? "packed, folded " : plan->fast.folded ? "folded " : "", interpolation,
                 plan->fast.frames ? "over frames" : "tables", (long long)plan->fast.tile[0],
                 (long long)plan->fast.tile[1], (long long)plan->fast.tile[2], (long long)plan->lanes);
}

das_status das_cpu_plan_query(das_device *device, const das_problem *problem, das_plan_layout *layout, das_error *error)
{
    das_cpu_plan plan;
    das_status status = choose(device, problem, &plan, error);
    if (status != DAS_OK)
        return status;
    layout->plan_bytes = plan.plan_bytes;
    layout->slot_bytes = plan.slot_bytes;
    layout->tiles = plan.tiles;
    return DAS_OK;
}

das_status das_cpu_plan_create(das_plan *plan, const das_problem *problem, das_error *error)
{
    das_cpu_plan chosen;
    das_status status = choose(plan->device, problem, &chosen, error);
    if (status == DAS_OK)
        status = das_parallel_start(plan->device, error);
    if (status != DAS_OK)
        return status;
    das_cpu_arena arena = {das_device_allocate(plan->device, chosen.plan_bytes), 0};
    if (arena.base == NULL)
        return das_fail(error, DAS_ERROR_OUT_OF_MEMORY, "out of memory for a plan of %llu bytes",
                        (unsigned long long)chosen.plan_bytes);
    das_cpu_plan *own = das_cpu_take(&arena, 1, sizeof *own);
    *own = chosen;
    keep(own, problem, &arena);
    plan->impl = own;
    describe(own, plan->description, sizeof plan->description);
    return DAS_OK;
}

void das_cpu_plan_destroy(das_plan *plan)
{
    das_device_release(plan->device, plan->impl);
    plan->impl = NULL;
}

das_status das_cpu_slot_create(das_plan *plan, das_slot *slot, das_error *error)
{
    const das_cpu_plan *own = plan->impl;
    slot->impl = das_cpu_allocate(plan->device, own->slot_bytes);
    if (slot->impl == NULL)
        return das_fail(error, DAS_ERROR_OUT_OF_MEMORY, "out of memory for a slot of %llu bytes",
                        (unsigned long long)own->slot_bytes);
    return DAS_OK;
}

void das_cpu_slot_destroy(das_plan *plan, das_slot *slot)
{
    das_device_release(plan->device, slot->impl);
    slot->impl = NULL;
}
