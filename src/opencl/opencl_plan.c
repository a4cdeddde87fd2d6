#include "opencl_backend.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------------------
 * Choice of path and tiling
 * ------------------------------------------------------------------------- */

static const void *table_of(const das_problem *problem, int table)
{
    switch (table) {
    case DAS_OPENCL_TRANSMIT_TIMES:
        return problem->transmit_times_s;
    case DAS_OPENCL_RECEIVE_TIMES:
        return problem->receive_times_s;
    case DAS_OPENCL_TRANSMIT_WEIGHTS:
        return problem->transmit_weights;
    default:
        return problem->receive_weights;
    }
}

static int64_t value_count(const das_grid *grid)
{
    if (grid->kind == DAS_GRID_POLAR)
        return 2 * grid->counts[0] + 2 * grid->counts[1] + grid->counts[2];
    return grid->kind == DAS_GRID_POINTS ? 3 * grid->point_count : 0;
}

static uint64_t value_bytes(const das_problem *problem)
{
    return problem->precision == DAS_PRECISION_DOUBLE ? 8 : 4;
}

/* Largest table entry per point and the bytes a point takes in all tables. */
static void table_bytes(const das_problem *problem, uint64_t *largest, uint64_t *all)
{
    *largest = *all = 0;
    for (int table = 0; table < DAS_OPENCL_TABLES; table++) {
        uint64_t bytes = (uint64_t)das_opencl_table_rows(problem, table) * das_opencl_table_entry(table);
        if (table_of(problem, table) == NULL)
            continue;
        *all += bytes;
        *largest = bytes > *largest ? bytes : *largest;
    }
}

static int64_t at_most(uint64_t value, int64_t limit)
{
    return value < (uint64_t)limit ? (int64_t)value : limit;
}

/* Whether opencl_block.cl can do it, and how. */
static void choose_block(const das_opencl_device *own, const das_problem *problem, das_opencl_choice *choice)
{
    if (!problem->fast_paths || choice->listed || problem->precision == DAS_PRECISION_DOUBLE || problem->keep_transmit ||
        problem->keep_receive || problem->normalization != DAS_NORMALIZATION_NONE || problem->outside != DAS_OUTSIDE_ZERO ||
        problem->interpolation == DAS_INTERPOLATION_LANCZOS || problem->window == DAS_WINDOW_TABLE ||
        problem->transmit_times_s != NULL || problem->receive_times_s != NULL || problem->transmit_weights != NULL ||
        problem->receive_weights != NULL || problem->sample_count > 1 << 22)
        return;
    choice->lanes = !own->gpu && own->fp64 ? 16 : 1;
    choice->block_rows = (int32_t)at_most((uint64_t)problem->transmit_count, choice->lanes > 1 ? 4 : 8);
}

static das_status choose(das_device *device, const das_problem *problem, bool fast, das_opencl_choice *choice, das_error *error)
{
    const das_opencl_device *own = das_opencl_of(device);
    const int64_t points = problem->grid.point_count;
    uint64_t fixed, largest, per_point;
    memset(choice, 0, sizeof *choice);
    choice->listed = !(problem->complete && problem->unit_weight);
    choice->frames = problem->frame_count >= 4 ? 4 : problem->frame_count >= 2 ? 2 : 1;
    choice->planes =
        (problem->keep_transmit ? problem->transmit_count : 1) * (problem->keep_receive ? problem->receive_count : 1);

    fixed = 8 * (DAS_OPENCL_REALS + DAS_OPENCL_LONGS) + 8 * (uint64_t)problem->receive_count * DAS_OPENCL_ELEMENT_REALS +
            (uint64_t)problem->transmit_count * (8 * DAS_OPENCL_WAVE_REALS + 4) + 8 * (uint64_t)value_count(&problem->grid) +
            value_bytes(problem) * (uint64_t)problem->window_count;
    choice->chunk_points = points;
    choice->chunks = 1;
    if (fast) {
        das_opencl_fast_choose(own, problem, fixed, &choice->fast, &fixed, &choice->slot_bytes);
        if (choice->fast.path != DAS_OPENCL_GENERAL) {
            choice->listed = false;
            choice->plan_bytes = fixed;
            return DAS_OK;
        }
    }
    choose_block(own, problem, choice);
    if (choice->listed)
        fixed += (uint64_t)problem->pair_count * (16 + value_bytes(problem)) + 8 * ((uint64_t)choice->planes + 1);
    if (fixed > problem->memory_budget)
        return das_fail(error, DAS_ERROR_OUT_OF_DEVICE_MEMORY,
                        "the plan's elements, pairs and grid take %" PRIu64 " bytes; the memory budget is %" PRIu64, fixed,
                        problem->memory_budget);

    table_bytes(problem, &largest, &per_point);
    choice->chunk_points = points;
    choice->plan_bytes = fixed;
    if (per_point > 0) {
        uint64_t spare = problem->memory_budget - fixed;
        choice->streamed = (uint64_t)points > spare / per_point;
        if (choice->streamed)
            choice->chunk_points = at_most(spare / per_point / (uint64_t)problem->slots, choice->chunk_points);
        choice->chunk_points = at_most(own->max_buffer_bytes / largest, choice->chunk_points);
        if (choice->chunk_points == 0)
            return das_fail(error, DAS_ERROR_OUT_OF_DEVICE_MEMORY,
                            "the tables of one point take %" PRIu64
                            " bytes for each of %d calls; the memory budget leaves %" PRIu64,
                            per_point, (int)problem->slots, spare);
        if (choice->streamed)
            choice->slot_bytes = (uint64_t)choice->chunk_points * per_point;
        else
            choice->plan_bytes += (uint64_t)points * per_point;
    }
    choice->chunks = (points - 1) / choice->chunk_points + 1;
    return DAS_OK;
}

das_status das_opencl_plan_query(das_device *device, const das_problem *problem, das_plan_layout *layout, das_error *error)
{
    das_opencl_choice choice;
    das_status status = choose(device, problem, true, &choice, error);
    if (status != DAS_OK)
        return status;
    layout->plan_bytes = choice.plan_bytes;
    layout->slot_bytes = choice.slot_bytes;
    layout->tiles = (int32_t)at_most((uint64_t)choice.chunks, INT32_MAX);
    if (choice.fast.path != DAS_OPENCL_GENERAL)
        layout->tiles = (int32_t)((problem->transmit_count - 1) / choice.fast.transmits + 1);
    return DAS_OK;
}

/* ---------------------------------------------------------------------------
 * The program
 * ------------------------------------------------------------------------- */

/* The compiler's log, for the caller to free; NULL without one. */
static char *build_log(const das_opencl_device *own, cl_program program)
{
    size_t bytes = 0;
    char *text;
    if (own->cl->GetProgramBuildInfo(program, own->id, CL_PROGRAM_BUILD_LOG, 0, NULL, &bytes) != CL_SUCCESS)
        return NULL;
    text = calloc(1, bytes + 1);
    if (text != NULL && own->cl->GetProgramBuildInfo(program, own->id, CL_PROGRAM_BUILD_LOG, bytes, text, NULL) != CL_SUCCESS)
        text[0] = '\0';
    return text;
}

/* The build log in the error message, as much of it as fits, and all of it in the device's log. */
static das_status build_failed(das_device *device, cl_int code, const char *text, das_error *error)
{
    das_log(device, DAS_LOG_ERROR, "clBuildProgram failed with %s (%d): %s", das_opencl_error_name(code), (int)code, text);
    if (code == CL_BUILD_PROGRAM_FAILURE)
        return das_fail(error, DAS_ERROR_INTERNAL, "the OpenCL compiler refused the kernels: %s", text);
    return das_opencl_fail(device, error, code, "clBuildProgram");
}

typedef struct build_options {
    char text[2048];
    size_t used;
} build_options;

static void define(build_options *options, const char *name, int64_t value)
{
    int written =
        snprintf(options->text + options->used, sizeof options->text - options->used, "-D%s=%" PRId64 " ", name, value);
    options->used += (size_t)written;
}

static void define_fast(const das_opencl_fast *fast, build_options *options)
{
    define(options, "DAS_FAST", fast->path);
    define(options, "DAS_FOLDED", fast->folded);
    define(options, "DAS_WEIGHTED", fast->weighted);
    define(options, "DAS_WINDOW_LEAD", fast->lead);
    if (fast->path == DAS_OPENCL_TILE) {
        define(options, "DAS_TILE_THREADS", fast->threads);
        define(options, "DAS_TILE_POINTS", fast->points);
        define(options, "DAS_TILE_ROWS", fast->rows);
        define(options, "DAS_TILE_CONSTANT", fast->constant);
        define(options, "DAS_TILE_LINE", fast->line);
        define(options, "DAS_TILE_WINDOW", fast->window);
    } else {
        define(options, "DAS_PATCH_SHARED", fast->shared);
        define(options, "DAS_PATCH_COUNT", fast->patches);
        define(options, "DAS_PATCH_0", fast->patch[0]);
        define(options, "DAS_PATCH_1", fast->patch[1]);
        define(options, "DAS_PATCH_2", fast->patch[2]);
    }
}

static void define_all(const das_opencl_device *own, const das_problem *problem, const das_opencl_choice *choice,
                       build_options *options)
{
    options->used = (size_t)snprintf(options->text, sizeof options->text, "-cl-std=CL1.2 ");
    define(options, "DAS_NVIDIA", own->nvidia);
    define(options, "DAS_FP64", own->fp64);
    if (!own->fp64)
        define(options, "DAS_KERNEL_FLOAT_FLOAT", 1);
    if (problem->precision == DAS_PRECISION_DOUBLE)
        define(options, "DAS_KERNEL_DOUBLE", 1);
    define(options, "DAS_DATA_TYPE", problem->data_type);
    define(options, "DAS_IMAGE_DOUBLE", problem->image_type == DAS_TYPE_F64 || problem->image_type == DAS_TYPE_CF64);
    define(options, "DAS_FRAMES", choice->frames);
    define(options, "DAS_INTERPOLATION", problem->interpolation);
    define(options, "DAS_CLAMP", problem->outside == DAS_OUTSIDE_CLAMP);
    define(options, "DAS_NORMALIZATION", problem->normalization);
    define(options, "DAS_GRID", problem->grid.kind);
    define(options, "DAS_APERTURE", problem->f_number > 0);
    define(options, "DAS_WINDOW", problem->window);
    define(options, "DAS_PHASE", problem->demodulation_frequency_hz != 0);
    define(options, "DAS_LISTED", choice->listed);
    define(options, "DAS_KEEP_TRANSMIT", problem->keep_transmit);
    define(options, "DAS_KEEP_RECEIVE", problem->keep_receive);
    define(options, "DAS_TRANSMIT_TIMES", problem->transmit_times_s != NULL);
    define(options, "DAS_RECEIVE_TIMES", problem->receive_times_s != NULL);
    define(options, "DAS_TRANSMIT_WEIGHTS", problem->transmit_weights != NULL);
    define(options, "DAS_RECEIVE_WEIGHTS", problem->receive_weights != NULL);
    define(options, "DAS_BLOCK_ROWS", choice->block_rows);
    define(options, "DAS_LANES",
           choice->fast.path == DAS_OPENCL_PATCH  ? 16
           : choice->fast.path == DAS_OPENCL_TILE ? 1
                                                  : choice->lanes);
    if (choice->fast.path != DAS_OPENCL_GENERAL)
        define_fast(&choice->fast, options);
}

static das_status build(das_plan *plan, const das_problem *problem, das_error *error)
{
    const das_opencl_device *own = das_opencl_of(plan->device);
    das_opencl_plan *made = plan->impl;
    static const char prelude[] = "#if DAS_FP64\n#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n#endif\n"
                                  "#pragma OPENCL FP_CONTRACT OFF\n";
    das_opencl_text parts[] = {{prelude, sizeof prelude - 1}, das_opencl_source_real(),  das_opencl_source_kernel(),
                               das_opencl_source_kernels(),   das_opencl_source_block(), das_opencl_source_fast()};
    const char *texts[6];
    size_t bytes[6];
    cl_uint count = 0;
    cl_int code = CL_SUCCESS;
    build_options options;
    das_opencl_signals signals;
    char *log;
    das_status status = DAS_OK;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        const bool fast = made->choice.fast.path != DAS_OPENCL_GENERAL;
        if ((i == 1 && own->fp64) || (i == 4 && (fast ? !(problem->f_number > 0) : made->choice.block_rows == 0)) ||
            (i == 5 && !fast))
            continue;
        texts[count] = parts[i].text;
        bytes[count++] = parts[i].bytes;
    }
    define_all(own, problem, &made->choice, &options);
    made->program = own->cl->CreateProgramWithSource(own->context, count, texts, bytes, &code);
    if (made->program == NULL)
        return das_opencl_fail(plan->device, error, code, "clCreateProgramWithSource");
    das_opencl_signals_save(&signals);
    code = own->cl->BuildProgram(made->program, 1, &own->id, options.text, NULL, NULL);
    das_opencl_signals_restore(&signals);
    log = build_log(own, made->program);
    if (code != CL_SUCCESS)
        status = build_failed(plan->device, code, log != NULL ? log : "", error);
    else
        das_log(plan->device, DAS_LOG_DEBUG, "compiled kernels with %s%s", options.text, log != NULL ? log : "");
    free(log);
    return status;
}

/* ---------------------------------------------------------------------------
 * Memory of the plan
 * ------------------------------------------------------------------------- */

/* A das_real as the device lays it out: a double, or two floats. */
static void put_real(const das_opencl_device *own, void *array, int64_t at, double value)
{
    char *to = (char *)array + 8 * at;
    if (own->fp64) {
        memcpy(to, &value, 8);
    } else {
        float pair[2] = {(float)value, 0};
        if (isfinite(pair[0]))
            pair[1] = (float)(value - (double)pair[0]);
        memcpy(to, pair, 8);
    }
}

/* A das_value: double with that precision, else float. */
static void put_value(const das_problem *problem, void *array, int64_t at, double value)
{
    float single = (float)value;
    if (problem->precision == DAS_PRECISION_DOUBLE)
        memcpy((char *)array + 8 * at, &value, 8);
    else
        memcpy((char *)array + 4 * at, &single, 4);
}

static void *allocate(int64_t count, uint64_t bytes, das_error *error)
{
    bool fits = count >= 0 && (uint64_t)count < (uint64_t)PTRDIFF_MAX / bytes;
    void *memory = fits ? calloc((size_t)count + 1, (size_t)bytes) : NULL;
    if (memory == NULL)
        das_fail(error, DAS_ERROR_OUT_OF_MEMORY, "no memory for a plan's array of %" PRId64 " entries", count);
    return memory;
}

/* Makes *memory of `count` entries of `bytes` bytes (at least one) from host memory, which it frees. */
static das_status hand_over(das_plan *plan, void *array, int64_t count, uint64_t bytes, cl_mem *memory, das_error *error)
{
    das_status status = das_opencl_memory_create(plan->device, bytes * (uint64_t)(count > 0 ? count : 1), array,
                                                 "memory of the plan", memory, error);
    free(array);
    return status;
}

static das_status make_numbers(das_plan *plan, const das_problem *problem, das_error *error)
{
    const das_opencl_device *own = das_opencl_of(plan->device);
    das_opencl_plan *made = plan->impl;
    const das_grid *grid = &problem->grid;
    const double fs = problem->sampling_frequency_hz, c = problem->sound_speed_m_s;
    const int64_t longs[DAS_OPENCL_LONGS] = {grid->counts[0],
                                             grid->counts[1],
                                             grid->counts[2],
                                             problem->receive_count,
                                             problem->transmit_count,
                                             problem->sample_count - 1,
                                             problem->first,
                                             problem->frame_stride,
                                             problem->transmit_stride,
                                             problem->receive_stride,
                                             problem->sample_stride,
                                             problem->image_first,
                                             problem->image_strides[0],
                                             problem->image_strides[1],
                                             problem->image_strides[2],
                                             problem->image_strides[3],
                                             problem->image_strides[4],
                                             problem->image_strides[5],
                                             problem->window_count};
    void *reals = allocate(DAS_OPENCL_REALS, 8, error), *copy;
    das_status status;
    if (reals == NULL)
        return DAS_ERROR_OUT_OF_MEMORY;
    put_real(own, reals, DAS_OPENCL_SAMPLES_PER_M, fs / c);
    put_real(own, reals, DAS_OPENCL_TOLERANCE_M, 1e-3 * c / fs);
    put_real(own, reals, DAS_OPENCL_INVERSE_2F, problem->f_number > 0 ? 1 / (2 * problem->f_number) : 0);
    put_real(own, reals, DAS_OPENCL_LAST, (double)(problem->sample_count - 1));
    put_real(own, reals, DAS_OPENCL_TURNS_PER_SAMPLE, problem->demodulation_frequency_hz / fs);
    put_real(own, reals, DAS_OPENCL_OFFSET, problem->sample_offset);
    put_real(own, reals, DAS_OPENCL_WINDOW, problem->window_parameter);
    for (int k = 0; k < 3; k++)
        put_real(own, reals, DAS_OPENCL_ORIGIN + k, grid->kind == DAS_GRID_POINTS ? 0 : grid->origin[k]);
    for (int k = 0; k < 9; k++)
        put_real(own, reals, DAS_OPENCL_STEPS + k, grid->kind == DAS_GRID_CARTESIAN ? grid->steps[k / 3][k % 3] : 0);
    status = hand_over(plan, reals, DAS_OPENCL_REALS, 8, &made->reals, error);
    if (status != DAS_OK)
        return status;
    copy = allocate(DAS_OPENCL_LONGS, 8, error);
    if (copy == NULL)
        return DAS_ERROR_OUT_OF_MEMORY;
    memcpy(copy, longs, sizeof longs);
    return hand_over(plan, copy, DAS_OPENCL_LONGS, 8, &made->longs, error);
}

static das_status make_elements(das_plan *plan, const das_problem *problem, das_error *error)
{
    const das_opencl_device *own = das_opencl_of(plan->device);
    das_opencl_plan *made = plan->impl;
    void *reals = allocate(problem->receive_count * DAS_OPENCL_ELEMENT_REALS, 8, error);
    if (reals == NULL)
        return DAS_ERROR_OUT_OF_MEMORY;
    for (int64_t r = 0; r < problem->receive_count; r++) {
        const das_element *element = &problem->receive[r];
        int64_t at = r * DAS_OPENCL_ELEMENT_REALS;
        for (int k = 0; k < 3; k++) {
            put_real(own, reals, at + k, element->position[k]);
            put_real(own, reals, at + 3 + k, element->normal[k]);
        }
        put_real(own, reals, at + 6, element->delay_s * problem->sampling_frequency_hz);
    }
    return hand_over(plan, reals, problem->receive_count * DAS_OPENCL_ELEMENT_REALS, 8, &made->elements, error);
}

/* DAS_WAVE_POINT and so on of kernel.h. */
static int32_t wave_of(das_transmit_kind kind)
{
    switch (kind) {
    case DAS_TRANSMIT_ELEMENT:
    case DAS_TRANSMIT_DIVERGING:
        return 0;
    case DAS_TRANSMIT_PLANE:
        return 1;
    case DAS_TRANSMIT_FOCUSED:
        return 2;
    default:
        return 3;
    }
}

static das_status make_waves(das_plan *plan, const das_problem *problem, das_error *error)
{
    const das_opencl_device *own = das_opencl_of(plan->device);
    das_opencl_plan *made = plan->impl;
    const double fs = problem->sampling_frequency_hz;
    void *reals = allocate(problem->transmit_count * DAS_OPENCL_WAVE_REALS, 8, error);
    int32_t *kinds = allocate(problem->transmit_count, 4, error);
    das_status status;
    if (reals == NULL || kinds == NULL) {
        free(reals);
        free(kinds);
        return DAS_ERROR_OUT_OF_MEMORY;
    }
    for (int64_t t = 0; t < problem->transmit_count; t++) {
        const das_transmit *wave = &problem->transmit[t];
        int64_t at = t * DAS_OPENCL_WAVE_REALS;
        double constant = wave->delay_s - wave->start_time_s, turns = 0;
        bool computed = problem->transmit_times_s == NULL;
        bool plane = wave->kind == DAS_TRANSMIT_PLANE, focused = wave->kind == DAS_TRANSMIT_FOCUSED;
        if (computed && (wave->kind == DAS_TRANSMIT_DIVERGING || focused))
            constant += wave->constant_s;
        if (problem->phase_reference == DAS_PHASE_REFERENCE_TIME_ZERO)
            turns = problem->demodulation_frequency_hz * wave->start_time_s;
        kinds[t] = computed ? wave_of(wave->kind) : 3;
        for (int k = 0; k < 3; k++) {
            put_real(own, reals, at + k, plane ? wave->origin[k] : wave->kind == DAS_TRANSMIT_NONE ? 0 : wave->point[k]);
            put_real(own, reals, at + 3 + k, plane || focused ? wave->direction[k] : 0);
        }
        put_real(own, reals, at + 6, constant * fs);
        put_real(own, reals, at + 7, turns - rint(turns));
    }
    status = hand_over(plan, reals, problem->transmit_count * DAS_OPENCL_WAVE_REALS, 8, &made->waves, error);
    if (status != DAS_OK) {
        free(kinds);
        return status;
    }
    return hand_over(plan, kinds, problem->transmit_count, 4, &made->kinds, error);
}

/* Sorts pairs by the plane they belong to. They come ordered by transmit, then receive. */
static void plane_ranges(const das_problem *problem, int64_t planes, int64_t *first, int64_t *order)
{
    int64_t receives = problem->keep_receive ? problem->receive_count : 1;
    memset(first, 0, (size_t)(planes + 1) * sizeof *first);
    for (int pass = 0; pass < 2; pass++) {
        for (int64_t i = 0; i < problem->pair_count; i++) {
            const das_pair *pair = &problem->pair[i];
            int64_t plane =
                (problem->keep_transmit ? pair->transmit : 0) * receives + (problem->keep_receive ? pair->receive : 0);
            if (pass == 0)
                first[plane + 1]++;
            else
                order[first[plane]++] = i;
        }
        if (pass == 0)
            for (int64_t k = 0; k < planes; k++)
                first[k + 1] += first[k];
    }
    /* The second pass moved each start to the next. */
    memmove(first + 1, first, (size_t)planes * sizeof *first);
    first[0] = 0;
}

static das_status make_pairs(das_plan *plan, const das_problem *problem, das_error *error)
{
    das_opencl_plan *made = plan->impl;
    const int64_t count = problem->pair_count, planes = made->choice.planes;
    int64_t *offset, *first, *order;
    void *weight;
    int32_t(*of)[2];
    das_status status = DAS_ERROR_OUT_OF_MEMORY;
    if (!made->choice.listed)
        return DAS_OK;
    offset = allocate(count, sizeof *offset, error);
    first = allocate(planes + 1, sizeof *first, error);
    order = allocate(count, sizeof *order, error);
    weight = allocate(count, 8, error);
    of = allocate(count, sizeof *of, error);
    if (offset == NULL || first == NULL || order == NULL || weight == NULL || of == NULL)
        goto done;
    plane_ranges(problem, planes, first, order);
    for (int64_t i = 0; i < count; i++) {
        const das_pair *pair = &problem->pair[order[i]];
        offset[i] = pair->offset;
        put_value(problem, weight, i, pair->weight);
        of[i][0] = pair->transmit;
        of[i][1] = pair->receive;
    }
    status = hand_over(plan, offset, count, 8, &made->pair_offset, error);
    offset = NULL;
    if (status == DAS_OK) {
        status = hand_over(plan, weight, count, value_bytes(problem), &made->pair_weight, error);
        weight = NULL;
    }
    if (status == DAS_OK) {
        status = hand_over(plan, of, count, 8, &made->pair_of, error);
        of = NULL;
    }
    if (status == DAS_OK) {
        status = hand_over(plan, first, planes + 1, 8, &made->pair_first, error);
        first = NULL;
    }
done:
    free(offset);
    free(first);
    free(order);
    free(weight);
    free(of);
    return status;
}

static das_status make_grid(das_plan *plan, const das_problem *problem, das_error *error)
{
    const das_opencl_device *own = das_opencl_of(plan->device);
    das_opencl_plan *made = plan->impl;
    const das_grid *grid = &problem->grid;
    int64_t count = value_count(grid), at = 0;
    void *values, *window;
    das_status status;
    if (count > 0) {
        values = allocate(count, 8, error);
        if (values == NULL)
            return DAS_ERROR_OUT_OF_MEMORY;
        if (grid->kind == DAS_GRID_POLAR) {
            for (int axis = 0; axis < 2; axis++)
                for (int64_t i = 0; i < grid->counts[axis]; i++) {
                    put_real(own, values, at++, sin(grid->values[axis][i]));
                    put_real(own, values, at++, cos(grid->values[axis][i]));
                }
            for (int64_t i = 0; i < grid->counts[2]; i++)
                put_real(own, values, at++, grid->values[2][i]);
        } else {
            for (; at < count; at++)
                put_real(own, values, at, grid->values[0][at]);
        }
        status = hand_over(plan, values, count, 8, &made->values, error);
        if (status != DAS_OK)
            return status;
    }
    if (problem->window_count == 0)
        return DAS_OK;
    window = allocate(problem->window_count, 8, error);
    if (window == NULL)
        return DAS_ERROR_OUT_OF_MEMORY;
    for (int64_t i = 0; i < problem->window_count; i++)
        put_value(problem, window, i, problem->window_values[i]);
    return hand_over(plan, window, problem->window_count, value_bytes(problem), &made->window, error);
}

/* Rows `rows` of `points` points from `begin` on, as the device reads them. */
static void fill_table(const das_device *device, const das_problem *problem, int table, int64_t begin, int64_t points, void *to)
{
    const das_opencl_device *own = das_opencl_of(device);
    const double *times = table == DAS_OPENCL_TRANSMIT_TIMES ? problem->transmit_times_s : problem->receive_times_s;
    const float *weights = table == DAS_OPENCL_TRANSMIT_WEIGHTS ? problem->transmit_weights : problem->receive_weights;
    const int64_t rows = das_opencl_table_rows(problem, table), all = problem->grid.point_count;
    for (int64_t row = 0; row < rows; row++) {
        if (table <= DAS_OPENCL_RECEIVE_TIMES)
            for (int64_t i = 0; i < points; i++)
                put_real(own, to, row * points + i, times[row * all + begin + i] * problem->sampling_frequency_hz);
        else
            memcpy((char *)to + 4 * row * points, weights + row * all + begin, 4 * (size_t)points);
    }
}

static das_status make_table(das_plan *plan, const das_problem *problem, int table, das_error *error)
{
    das_opencl_plan *made = plan->impl;
    const das_opencl_choice *choice = &made->choice;
    const int64_t rows = das_opencl_table_rows(problem, table), points = problem->grid.point_count;
    const uint64_t entry = das_opencl_table_entry(table);
    if (choice->streamed) {
        made->streamed[table] = das_device_allocate(plan->device, (uint64_t)rows * (uint64_t)points * entry);
        if (made->streamed[table] == NULL)
            return das_fail(error, DAS_ERROR_OUT_OF_MEMORY, "no memory for a table of %" PRId64 " rows and %" PRId64 " points",
                            rows, points);
    }
    for (int64_t chunk = 0; chunk < choice->chunks; chunk++) {
        int64_t begin = chunk * choice->chunk_points;
        int64_t count = points - begin < choice->chunk_points ? points - begin : choice->chunk_points;
        if (choice->streamed) {
            fill_table(plan->device, problem, table, begin, count, made->streamed[table] + entry * (uint64_t)(rows * begin));
        } else {
            void *values = allocate(rows * count, entry, error);
            das_status status;
            if (values == NULL)
                return DAS_ERROR_OUT_OF_MEMORY;
            fill_table(plan->device, problem, table, begin, count, values);
            status = hand_over(plan, values, rows * count, entry, &made->tables[chunk * DAS_OPENCL_TABLES + table], error);
            if (status != DAS_OK)
                return status;
        }
    }
    return DAS_OK;
}

static das_status make_tables(das_plan *plan, const das_problem *problem, das_error *error)
{
    das_opencl_plan *made = plan->impl;
    das_status status = DAS_OK;
    made->tables = allocate(made->choice.chunks * DAS_OPENCL_TABLES, sizeof *made->tables, error);
    if (made->tables == NULL)
        return DAS_ERROR_OUT_OF_MEMORY;
    for (int table = 0; table < DAS_OPENCL_TABLES && status == DAS_OK; table++)
        if (table_of(problem, table) != NULL)
            status = make_table(plan, problem, table, error);
    return status;
}

/* ---------------------------------------------------------------------------
 * Plans
 * ------------------------------------------------------------------------- */

static void describe(das_plan *plan, const das_problem *problem)
{
    const das_opencl_device *own = das_opencl_of(plan->device);
    const das_opencl_plan *made = plan->impl;
    const das_opencl_fast *fast = &made->choice.fast;
    const char *delays = own->fp64 ? "double" : "pairs of floats";
    if (fast->path == DAS_OPENCL_GENERAL)
        snprintf(plan->description, sizeof plan->description,
                 "%s: general path, %s, delays in %s, %s, groups of %zu points%s%s", plan->device->info.name,
                 made->choice.block_rows > 0 ? made->choice.lanes > 1 ? "16 points a vector" : "blocks of transmits"
                                             : "pair by pair",
                 delays, problem->precision == DAS_PRECISION_DOUBLE ? "double sums" : "float sums",
                 made->local * (size_t)(made->choice.lanes > 1 ? made->choice.lanes : 1),
                 made->choice.streamed ? ", tables streamed" : "", made->choice.chunks > 1 ? ", tiled" : "");
    else if (fast->path == DAS_OPENCL_TILE)
        snprintf(plan->description, sizeof plan->description,
                 "%s: tiles, 32 x %d points on %d threads, windows of %d samples of %d transmits, delays in %s%s%s",
                 plan->device->info.name, (int)(fast->threads / 32 * fast->points), (int)fast->threads, (int)fast->window,
                 (int)fast->rows, delays, fast->folded ? ", folded" : "",
                 fast->transmits < problem->transmit_count ? ", tiled" : "");
    else
        snprintf(plan->description, sizeof plan->description,
                 "%s: patches of 16, %d of %d x %d x %d points, windows of 16 samples, delays in %s%s%s%s",
                 plan->device->info.name, (int)fast->patches, (int)fast->patch[0], (int)fast->patch[1], (int)fast->patch[2],
                 delays, fast->folded ? ", folded" : "", fast->shared ? ", shared records" : "",
                 fast->transmits < problem->transmit_count ? ", tiled" : "");
}

/* Most work items of a group that a kernel allows. */
static das_status kernel_limit(das_plan *plan, const char *name, size_t *most, das_error *error)
{
    const das_opencl_device *own = das_opencl_of(plan->device);
    const das_opencl_plan *made = plan->impl;
    cl_int code = CL_SUCCESS;
    cl_kernel kernel = own->cl->CreateKernel(made->program, name, &code);
    if (kernel == NULL)
        return das_opencl_fail(plan->device, error, code, "clCreateKernel");
    code = own->cl->GetKernelWorkGroupInfo(kernel, own->id, CL_KERNEL_WORK_GROUP_SIZE, sizeof *most, most, NULL);
    own->cl->ReleaseKernel(kernel);
    return code == CL_SUCCESS ? DAS_OK : das_opencl_fail(plan->device, error, code, "clGetKernelWorkGroupInfo");
}

/* 64, or a smaller power of two within the limits of device and kernel. */
static size_t local_size(const das_opencl_device *own, size_t most)
{
    size_t local = 64;
    most = most < own->max_group ? most : own->max_group;
    most = most < own->max_items ? most : own->max_items;
    while (local > most && local > 1)
        local /= 2;
    return local;
}

/* Builds the program and chooses the local size within the limits of device and kernel. A fast path whose
 * kernel does not get the group it needs, or does not compile, gives way to the general path. */
static das_status make_program(das_plan *plan, const das_problem *problem, das_error *error)
{
    const das_opencl_device *own = das_opencl_of(plan->device);
    das_opencl_plan *made = plan->impl;
    static const char *const sums[] = {"das_general", "das_tile", "das_patch"};
    size_t most = 0;
    das_status status = build(plan, problem, error);
    made->sum_name = made->choice.block_rows > 0 ? "das_block" : sums[made->choice.fast.path];
    made->pack_name = made->choice.fast.shared ? "das_pack_shared" : "das_pack";
    if (status == DAS_OK)
        status = kernel_limit(plan, made->sum_name, &most, error);
    if (made->choice.fast.path != DAS_OPENCL_GENERAL &&
        (status == DAS_ERROR_INTERNAL || most < (size_t)made->choice.fast.threads)) {
        das_log(plan->device, DAS_LOG_WARNING, "%s serves groups of %zu only or does not compile: the general path is taken",
                made->sum_name, most);
        if (made->program != NULL)
            own->cl->ReleaseProgram(made->program);
        made->program = NULL;
        status = choose(plan->device, problem, false, &made->choice, error);
        if (status == DAS_OK)
            status = build(plan, problem, error);
        made->sum_name = made->choice.block_rows > 0 ? "das_block" : sums[DAS_OPENCL_GENERAL];
        if (status == DAS_OK)
            status = kernel_limit(plan, made->sum_name, &most, error);
    }
    if (status != DAS_OK)
        return status;
    if (made->choice.fast.path == DAS_OPENCL_GENERAL) {
        made->local = made->choice.lanes > 1 ? 1 : local_size(own, most);
        return DAS_OK;
    }
    made->local = made->choice.fast.path == DAS_OPENCL_TILE ? (size_t)made->choice.fast.threads : 1;
    status = kernel_limit(plan, made->pack_name, &most, error);
    made->local_pack = local_size(own, most);
    return status;
}

das_status das_opencl_plan_create(das_plan *plan, const das_problem *problem, das_error *error)
{
    const das_opencl_device *own = das_opencl_of(plan->device);
    das_opencl_plan *made = das_device_allocate(plan->device, sizeof *made);
    das_status status;
    if (made == NULL)
        return das_fail(error, DAS_ERROR_OUT_OF_MEMORY, "no memory for an OpenCL plan");
    memset(made, 0, sizeof *made);
    plan->impl = made;
    status = choose(plan->device, problem, true, &made->choice, error);
    if (status == DAS_OK)
        status = make_program(plan, problem, error);
    if (status == DAS_OK && made->choice.fast.path != DAS_OPENCL_GENERAL)
        status = das_opencl_fast_create(plan, problem, error);
    if (status == DAS_OK)
        status = make_numbers(plan, problem, error);
    if (status == DAS_OK)
        status = make_elements(plan, problem, error);
    if (status == DAS_OK)
        status = make_waves(plan, problem, error);
    if (status == DAS_OK)
        status = make_pairs(plan, problem, error);
    if (status == DAS_OK)
        status = make_grid(plan, problem, error);
    if (status == DAS_OK)
        status = make_tables(plan, problem, error);
    if (status != DAS_OK) {
        das_opencl_plan_destroy(plan);
        return status;
    }
    /* A launch should end well within the second after which some drivers give a GPU up. */
    made->launch_terms = (uint64_t)own->units * (made->choice.fast.path == DAS_OPENCL_GENERAL ? 30000000u : 1000000000u);
    describe(plan, problem);
    return DAS_OK;
}

void das_opencl_plan_destroy(das_plan *plan)
{
    das_opencl_plan *old = plan->impl;
    cl_mem *const memories[] = {&old->reals,       &old->longs,       &old->elements, &old->waves,      &old->kinds,
                                &old->pair_offset, &old->pair_weight, &old->pair_of,  &old->pair_first, &old->values,
                                &old->window,      &old->weights,     &old->offsets};
    for (size_t i = 0; i < sizeof memories / sizeof memories[0]; i++)
        das_opencl_memory_destroy(plan->device, memories[i]);
    for (int64_t i = 0; old->tables != NULL && i < old->choice.chunks * DAS_OPENCL_TABLES; i++)
        das_opencl_memory_destroy(plan->device, &old->tables[i]);
    free(old->tables);
    for (int table = 0; table < DAS_OPENCL_TABLES; table++)
        if (old->streamed[table] != NULL)
            das_device_release(plan->device, old->streamed[table]);
    if (old->program != NULL)
        das_opencl_of(plan->device)->cl->ReleaseProgram(old->program);
    das_device_release(plan->device, old);
    plan->impl = NULL;
}
