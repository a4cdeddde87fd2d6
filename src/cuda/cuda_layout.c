#include "cuda_plan.h"

#include <math.h>
#include <string.h>

static uint64_t align_up(uint64_t value, uint64_t to)
{
    return (value + to - 1) / to * to;
}

int64_t das_cuda_packed_rows(const das_cuda_tile *shape, int64_t receive_count, int64_t first, int64_t end)
{
    if (!shape->folded)
        return (end - first) * receive_count;
    int64_t rows = 0;
    for (int64_t n = first; n < end; n++)
        rows += receive_count - n / DAS_CUDA_TILE_GROUP * DAS_CUDA_TILE_GROUP;
    return rows;
}

/* Distance from the middle of a tile of the Cartesian grid to its corners, in metres, and its two axes: those along
 * which the grid is longest. */
static double tile_radius(const das_grid *grid, int axes[3])
{
    int thin = 0;
    for (int k = 1; k < 3; k++)
        if (grid->counts[k] < grid->counts[thin])
            thin = k;
    axes[0] = thin == 0 ? 1 : 0;
    axes[1] = thin == 2 ? 1 : 2;
    axes[2] = thin;
    double sum = 0.0, difference = 0.0;
    for (int c = 0; c < 3; c++) {
        double a = grid->steps[axes[0]][c] * (DAS_CUDA_TILE - 1) / 2, b = grid->steps[axes[1]][c] * (DAS_CUDA_TILE - 1) / 2;
        sum += (a + b) * (a + b);
        difference += (a - b) * (a - b);
    }
    return sqrt(fmax(sum, difference));
}

static bool tile_allowed(const das_problem *problem)
{
    if (!problem->fast_paths || !problem->dense || problem->precision == DAS_PRECISION_DOUBLE ||
        problem->grid.kind != DAS_GRID_CARTESIAN || problem->keep_transmit || problem->keep_receive ||
        problem->normalization != DAS_NORMALIZATION_NONE || problem->outside != DAS_OUTSIDE_ZERO ||
        problem->transmit_times_s != NULL || problem->receive_times_s != NULL || problem->transmit_weights != NULL ||
        problem->receive_weights != NULL || problem->interpolation == DAS_INTERPOLATION_QUADRATIC ||
        problem->interpolation == DAS_INTERPOLATION_LANCZOS)
        return false;
    if (problem->transmit_count < 4 || problem->transmit_count > DAS_CUDA_TILE_ELEMENTS ||
        problem->receive_count > DAS_CUDA_TILE_ELEMENTS || problem->pair_count < 32 || problem->sample_count > 1 << 22 ||
        problem->frame_count > 1 << 30)
        return false;
    if (problem->grid.point_count < 1024 || problem->grid.counts[0] * problem->grid.counts[1] > 1 << 30 ||
        problem->grid.point_count > (int64_t)1 << 40)
        return false;
    for (int64_t t = 0; t < problem->transmit_count; t++)
        if (problem->transmit[t].kind == DAS_TRANSMIT_FOCUSED)
            return false;
    return true;
}

/* The tile path, if the problem allows it and its windows are narrow enough. Memory is for choose_memory(). */
static void choose_tile(const das_cuda_device *device, const das_problem *problem, das_cuda_layout *layout)
{
    static const das_cuda_kernel kernels[2][3] = {{DAS_CUDA_TILE_NEAREST, DAS_CUDA_TILE_LINEAR, DAS_CUDA_TILE_CUBIC},
                                                  {DAS_CUDA_TILE_NEAREST_IQ, DAS_CUDA_TILE_LINEAR_IQ, DAS_CUDA_TILE_CUBIC_IQ}};
    if (!tile_allowed(problem))
        return;
    das_cuda_tile *shape = &layout->shape;
    int axes[3];
    double samples_per_m = problem->sampling_frequency_hz / problem->sound_speed_m_s;
    double radius = tile_radius(&problem->grid, axes) * samples_per_m;
    const int64_t *counts = problem->grid.counts;
    if (counts[axes[0]] < 8 || counts[axes[1]] < 8)
        return;
    /* |s(p) - s(centre)| <= 2 radius; references are rounded to multiples of 4, 2 off at most each; a tap more. */
    double half = 2.0 * radius + 4.0 + 2.0;
    if (!(half <= DAS_CUDA_TILE_WINDOW / 2 - 4))
        return;
    shape->half_window = (int32_t)align_up((uint64_t)ceil(half), 4);
    shape->window = (int32_t)align_up((uint64_t)ceil(half) + (uint64_t)shape->half_window + 4, 4);
    if (shape->window > DAS_CUDA_TILE_WINDOW)
        return;
    int kind = problem->interpolation == DAS_INTERPOLATION_NEAREST  ? 0
               : problem->interpolation == DAS_INTERPOLATION_LINEAR ? 1
                                                                    : 2;
    int rows = kind == 2 || problem->data_complex ? DAS_CUDA_TILE_ROWS_IQ : DAS_CUDA_TILE_ROWS_REAL;
    int words = (problem->data_complex ? 2 : 1) * (kind == 0 ? 1 : 2 * kind);
    /* Stages, copies for the next, and what the tables of cuda_tile.cuh take per transmit and per element, rounded up. */
    int copies = kind == 0 ? 0 : problem->data_complex ? 16 * 36 * 16 : kind == 1 ? 32 * 512 : 16 * 20 * 16;
    layout->shared_bytes = (uint32_t)((kind == 0 ? 4 : 3) * rows * DAS_CUDA_TILE_WINDOW * words * 4 + copies +
                                      64 * (int)(problem->transmit_count + 32) + 64 * (int)(problem->receive_count + 8));
    if ((int64_t)layout->shared_bytes + 4096 > device->shared_bytes)
        return;
    layout->kernel = kernels[problem->data_complex][kind];
    shape->axis_a = axes[0];
    shape->axis_b = axes[1];
    shape->axis_c = axes[2];
    shape->tiles_a = (int32_t)((counts[axes[0]] + DAS_CUDA_TILE - 1) / DAS_CUDA_TILE);
    shape->tiles_b = (int32_t)((counts[axes[1]] + DAS_CUDA_TILE - 1) / DAS_CUDA_TILE);
    /* Deep tiles last: they have the least to do where records end before the image does. */
    shape->slow_a = fabs(problem->grid.steps[axes[0]][2]) > fabs(problem->grid.steps[axes[1]][2]);
    shape->reversed = problem->f_number > 0.0; /* but then deep ones have the most elements */
    shape->lead = DAS_CUDA_TILE_WINDOW + 4;
    shape->sample_count = problem->sample_count;
    shape->stride = (int32_t)align_up((uint64_t)problem->sample_count, 4) + 2 * shape->lead;
    for (int c = 0; c < 3; c++)
        shape->second[c] = 4.0 * problem->grid.steps[axes[1]][c] * samples_per_m;
    shape->folded = problem->reciprocal && !problem->incremental;
    shape->radius = (float)(radius * 1.0001);
    shape->magic = DAS_CUDA_MAGIC_BITS;
    const double *at = problem->receive[0].position;
    shape->line = !(problem->f_number > 0.0);
    for (int64_t r = 0; r < problem->receive_count; r++)
        if (problem->receive[r].position[1] != at[1] || problem->receive[r].position[2] != at[2])
            shape->line = 0;
    for (int64_t t = 0; t < problem->transmit_count; t++) {
        const das_transmit *transmit = &problem->transmit[t];
        bool point = transmit->kind == DAS_TRANSMIT_ELEMENT || transmit->kind == DAS_TRANSMIT_DIVERGING;
        if (!point || transmit->point[1] != at[1] || transmit->point[2] != at[2])
            shape->line = 0;
    }
    if (shape->line && !problem->data_complex)
        layout->kernel = (das_cuda_kernel)(DAS_CUDA_TILE_NEAREST_LINE + kind);
    bool planes = problem->data_complex;
    for (int64_t t = 0; t < problem->transmit_count; t++)
        planes = planes && (problem->transmit[t].kind == DAS_TRANSMIT_PLANE || problem->transmit[t].kind == DAS_TRANSMIT_NONE);
    if (planes)
        layout->kernel = (das_cuda_kernel)(DAS_CUDA_TILE_NEAREST_PLANES + kind);
    layout->chunk_transmits = rows;
    layout->path = DAS_CUDA_PATH_TILE;
}

static void measure_sections(const das_problem *problem, das_cuda_layout *layout)
{
    uint64_t transmits = (uint64_t)problem->transmit_count, receives = (uint64_t)problem->receive_count;
    uint64_t points = (uint64_t)problem->grid.point_count;
    const das_grid *grid = &problem->grid;
    uint64_t bytes[DAS_CUDA_SECTION_COUNT] = {0};
    bytes[DAS_CUDA_TRANSMITS] = transmits * sizeof(das_cuda_transmit);
    bytes[DAS_CUDA_ELEMENTS] = receives * sizeof(das_cuda_element);
    if (layout->path == DAS_CUDA_PATH_TILE || layout->path == DAS_CUDA_PATH_FEW) {
        if (!problem->complete || !problem->unit_weight)
            bytes[DAS_CUDA_PAIR_WEIGHTS] = transmits * receives * sizeof(float);
    } else {
        bytes[DAS_CUDA_PAIRS] = (uint64_t)problem->pair_count * sizeof(das_cuda_pair);
        bytes[DAS_CUDA_OUTPUT_FIRST] = ((uint64_t)layout->output_count + 1) * sizeof(int64_t);
    }
    if (grid->kind == DAS_GRID_POLAR)
        for (int k = 0; k < 3; k++)
            bytes[DAS_CUDA_AXIS_0 + k] = (uint64_t)grid->counts[k] * sizeof(double);
    else if (grid->kind == DAS_GRID_POINTS)
        bytes[DAS_CUDA_AXIS_0] = points * 3 * sizeof(double);
    if (problem->window == DAS_WINDOW_TABLE)
        bytes[DAS_CUDA_WINDOW] = (uint64_t)problem->window_count * sizeof(double);
    if (problem->transmit_times_s != NULL)
        bytes[DAS_CUDA_TRANSMIT_TIMES] = transmits * points * sizeof(double);
    if (problem->receive_times_s != NULL)
        bytes[DAS_CUDA_RECEIVE_TIMES] = receives * points * sizeof(double);
    if (problem->transmit_weights != NULL)
        bytes[DAS_CUDA_TRANSMIT_WEIGHTS] = transmits * points * sizeof(float);
    if (problem->receive_weights != NULL)
        bytes[DAS_CUDA_RECEIVE_WEIGHTS] = receives * points * sizeof(float);
    for (int i = 0; i < DAS_CUDA_SECTION_COUNT; i++) {
        layout->section[i].bytes = bytes[i];
        layout->section[i].on_host = false;
    }
}

static void place_sections(das_cuda_layout *layout)
{
    layout->device_bytes = layout->host_bytes = 0;
    for (int i = 0; i < DAS_CUDA_SECTION_COUNT; i++) {
        uint64_t *end = layout->section[i].on_host ? &layout->host_bytes : &layout->device_bytes;
        layout->section[i].offset = *end;
        *end += align_up(layout->section[i].bytes, 256);
    }
}

/* Whether the path for few frames serves. */
static bool choose_few(const das_problem *problem)
{
    return problem->fast_paths && problem->dense && problem->precision != DAS_PRECISION_DOUBLE && !problem->keep_transmit &&
           !problem->keep_receive && problem->normalization == DAS_NORMALIZATION_NONE && problem->outside == DAS_OUTSIDE_ZERO &&
           problem->transmit_times_s == NULL && problem->receive_times_s == NULL && problem->transmit_weights == NULL &&
           problem->receive_weights == NULL && problem->interpolation <= DAS_INTERPOLATION_LINEAR &&
           (problem->data_type == DAS_TYPE_F32 || problem->data_type == DAS_TYPE_I16 || problem->data_type == DAS_TYPE_CF32 ||
            problem->data_type == DAS_TYPE_CI16) &&
           problem->sample_count < INT32_MAX && problem->sample_stride >= 0 && problem->sample_stride < 1 << 28 &&
           problem->pair_count > 0;
}

/* What the frames and tensor paths share: as many frames and pairs at a time as the budget allows, with rows of
 * zeros beside them; a row has `parts` numbers of 4 bytes for each frame. False if it allows too little. */
static bool fit_frames(const das_problem *problem, int64_t zeros, uint64_t parts, das_cuda_layout *layout)
{
    das_cuda_frames *shape = &layout->frames;
    uint64_t available = (problem->memory_budget - layout->device_bytes) / (uint64_t)problem->slots;
    uint64_t around = (uint64_t)zeros, pair_rows = (uint64_t)shape->pair_rows, pairs = (uint64_t)problem->pair_count;
    if (pairs > (INT32_MAX - around) / pair_rows) /* rows are 31-bit numbers */
        pairs = (INT32_MAX - around) / pair_rows;
    /* What does not fit is done in pieces: of the pairs, whose images are added up, or of the frames. */
    uint64_t each = (uint64_t)shape->frames_each, block_bytes = each * parts * 4;
    uint64_t frame_blocks = (uint64_t)(problem->frame_count - 1) / each + 1;
    if (frame_blocks > 65535 * DAS_CUDA_PACK_TILE / 128)
        frame_blocks = 65535 * DAS_CUDA_PACK_TILE / 128;
    bool by_pairs = problem->normalization == DAS_NORMALIZATION_NONE;
    while (frame_blocks > 1 &&
           (around + pair_rows * (by_pairs && pairs > 32 ? 32 : pairs)) * frame_blocks * block_bytes > available)
        frame_blocks = (frame_blocks + 1) / 2;
    uint64_t rows = available / (frame_blocks * block_bytes);
    if (rows < around + pair_rows * (by_pairs && pairs > 8 ? 8 : pairs))
        return false;
    if (pairs > (rows - around) / pair_rows)
        pairs = (rows - around) / pair_rows;
    if (pairs < (uint64_t)problem->pair_count && !by_pairs)
        return false;
    layout->chunk_pairs = (int64_t)pairs;
    layout->chunk_frames = (int64_t)(frame_blocks * each);
    layout->chunks = (int32_t)(((problem->frame_count - 1) / layout->chunk_frames + 1) *
                               ((problem->pair_count - 1) / layout->chunk_pairs + 1));
    shape->rows = (int64_t)(around + pairs * pair_rows);
    shape->row_floats = layout->chunk_frames * (int64_t)parts;
    layout->slot_bytes = align_up((uint64_t)shape->rows * (uint64_t)shape->row_floats * 4, 256);
    return true;
}

/* How much delays differ from a point of the grid to the next along axis k. Angles and points of a list are as they come. */
static double step_length(const das_grid *grid, int k)
{
    const double *step = grid->steps[k];
    if (grid->kind != DAS_GRID_CARTESIAN)
        return k == 2 ? 3.0 : 1.0;
    return fabs(step[0]) + fabs(step[1]) + 3.0 * fabs(step[2]);
}

/* Arranges the warps of a block, each with a by b points along axis[0] and the longer of the others: side by side. False
 * for too many blocks. */
static bool place_warps(const das_problem *problem, das_cuda_frames *shape, int a, int b, int most_across)
{
    const int64_t *counts = problem->grid.counts;
    const int32_t all = DAS_CUDA_FRAMES_THREADS / 32;
    int32_t across = 1;
    while (across < most_across && across * b < counts[shape->axis[1]])
        across *= 2;
    shape->warps = all / across;
    shape->blocks[0] = (int32_t)((counts[shape->axis[0]] - 1) / (shape->warps * a) + 1);
    shape->blocks[1] = (int32_t)((counts[shape->axis[1]] - 1) / (across * b) + 1);
    shape->reversed = problem->f_number > 0.0; /* deep points have the most elements */
    return (int64_t)shape->blocks[0] * shape->blocks[1] <= 1 << 30;
}

static bool many_frames(const das_problem *problem, const das_cuda_layout *layout)
{
    enum { LEAST = 12 }; /* frames for which it is faster */
    for (int k = 0; k < 3; k++)
        if (problem->grid.counts[k] > 1 << 30)
            return false;
    return problem->fast_paths && problem->precision != DAS_PRECISION_DOUBLE && !problem->keep_transmit &&
           !problem->keep_receive && problem->frame_count >= LEAST && layout->device_bytes <= problem->memory_budget &&
           problem->pair_count > 0 && problem->sample_count <= INT32_MAX / 2;
}

/* The frames path; false if it does not serve. */
static bool choose_frames(const das_problem *problem, das_cuda_layout *layout)
{
    static const das_cuda_kernel kernels[2][2] = {{DAS_CUDA_FRAMES_NEAREST, DAS_CUDA_FRAMES_NEAREST_WIDE},
                                                  {DAS_CUDA_FRAMES_NEAREST_IQ, DAS_CUDA_FRAMES_NEAREST_IQ_WIDE}};
    das_cuda_frames *shape = &layout->frames;
    const int64_t *counts = problem->grid.counts;
    if (!many_frames(problem, layout))
        return false;
    int kind = problem->interpolation == DAS_INTERPOLATION_NEAREST  ? 0
               : problem->interpolation == DAS_INTERPOLATION_LINEAR ? 1
                                                                    : 2;
    shape->lead = kind == 2 ? 2 : 0;
    shape->pair_rows = problem->sample_count + (kind == 0 ? 0 : kind == 1 ? 1 : 5);
    shape->frames_each = problem->frame_count > 96 ? 128 : 32;
    if (!fit_frames(problem, DAS_CUDA_FRAMES_ZEROS, problem->data_complex ? 2 : 1, layout))
        return false;
    layout->path = DAS_CUDA_PATH_FRAMES;
    layout->kernel = (das_cuda_kernel)((int)kernels[problem->data_complex][shape->frames_each > 32] + kind);
    /* Points side by side in a warp are those whose delays differ least. */
    shape->axis[0] = 0;
    double least = 0.0;
    for (int k = 0; k < 3 && problem->grid.kind == DAS_GRID_CARTESIAN; k++) {
        const double length = step_length(&problem->grid, k);
        if (counts[k] >= DAS_CUDA_FRAMES_POINTS && (least == 0.0 || length < least)) {
            least = length;
            shape->axis[0] = k;
        }
    }
    shape->axis[1] = shape->axis[0] == 0 ? 1 : 0;
    shape->axis[2] = shape->axis[0] == 2 ? 1 : 2;
    if (counts[shape->axis[2]] > counts[shape->axis[1]]) {
        int32_t other = shape->axis[1];
        shape->axis[1] = shape->axis[2];
        shape->axis[2] = other;
    }
    return place_warps(problem, shape, DAS_CUDA_FRAMES_POINTS, 1, DAS_CUDA_FRAMES_THREADS / 32);
}

/* The largest magnitude of a sample of this type, or 0 if that has to be looked for. */
static double largest_sample(const das_problem *problem)
{
    double largest = 0.0;
    switch (problem->data_type) {
    case DAS_TYPE_I8:
        largest = 0x1p7;
        break;
    case DAS_TYPE_U8:
        largest = 0x1p8;
        break;
    case DAS_TYPE_I16:
    case DAS_TYPE_CI16:
        largest = 0x1p15;
        break;
    case DAS_TYPE_U16:
        largest = 0x1p16;
        break;
    case DAS_TYPE_F16:
    case DAS_TYPE_CF16:
        largest = 65504.0;
        break;
    default:
        return 0.0;
    }
    return largest + fabs(problem->sample_offset);
}

/* The tensor path, where reduced precision is allowed. Weights of very different sizes would not all be kept by float16. */
static bool choose_tensor(const das_cuda_device *device, const das_problem *problem, das_cuda_layout *layout)
{
    static const das_cuda_kernel kernels[2][2] = {{DAS_CUDA_TENSOR_NEAREST, DAS_CUDA_TENSOR_NEAREST_WIDE},
                                                  {DAS_CUDA_TENSOR_NEAREST_IQ, DAS_CUDA_TENSOR_NEAREST_IQ_WIDE}};
    das_cuda_frames *shape = &layout->frames;
    const das_grid *grid = &problem->grid;
    if (problem->precision != DAS_PRECISION_REDUCED || device->capability < 80 || !many_frames(problem, layout) ||
        problem->normalization != DAS_NORMALIZATION_NONE || problem->transmit_weights != NULL ||
        problem->receive_weights != NULL || problem->window == DAS_WINDOW_TABLE ||
        problem->interpolation > DAS_INTERPOLATION_LINEAR)
        return false;
    double least = HUGE_VAL, most = 0.0;
    if (problem->unit_weight)
        least = most = 1.0;
    for (int64_t i = 0; !problem->unit_weight && i < problem->pair_count; i++) {
        const double weight = fabs(problem->pair[i].weight);
        most = fmax(most, weight);
        if (weight > 0.0)
            least = fmin(least, weight);
    }
    if (!(most <= 1024.0 * least) || most > 0x1p100 || most < 0x1p-100)
        return false;
    shape->weight_scale = (float)exp2(-ceil(log2(most)));
    shape->lead = 0;
    const int64_t samples = problem->data_complex ? 2 : 4; /* of a row */
    shape->pair_rows = ((problem->sample_count - 1) / (2 * samples) + 1) * 2;
    const bool wide = problem->frame_count > (problem->data_complex ? 32 : 96);
    shape->frames_each = !wide ? 32 : problem->data_complex ? 64 : 128;
    if (!fit_frames(problem, DAS_CUDA_TENSOR_AFTER, 2, layout))
        return false;
    const double largest = largest_sample(problem);
    layout->peaks_offset = 0;
    if (largest > 0.0) {
        shape->scale = (float)exp2(fmin(0.0, 15.0 - ceil(log2(largest))));
        if (largest <= 65504.0)
            shape->scale = 1.0f;
    } else {
        layout->peaks_offset = layout->slot_bytes;
        layout->slot_bytes += align_up((uint64_t)layout->chunk_frames * 4, 256);
        if (layout->slot_bytes > (problem->memory_budget - layout->device_bytes) / (uint64_t)problem->slots)
            return false;
    }
    layout->path = DAS_CUDA_PATH_TENSOR;
    layout->kernel =
        (das_cuda_kernel)((int)kernels[problem->data_complex][wide] + (problem->interpolation == DAS_INTERPOLATION_LINEAR));
    /* A patch along two axes, as compact as can be. */
    const int points = wide ? 16 : 32;
    int64_t side[3] = {1, 1, 1};
    while (side[0] * side[1] * side[2] < points) {
        int grow = -1;
        for (int k = 0; k < 3; k++) {
            const bool third = side[k] == 1 && (side[0] > 1) + (side[1] > 1) + (side[2] > 1) == 2;
            if (!third && side[k] < grid->counts[k] &&
                (grow < 0 || (double)side[k] * step_length(grid, k) < (double)side[grow] * step_length(grid, grow)))
                grow = k;
        }
        side[grow < 0 ? 0 : grow] *= 2;
    }
    for (int k = 0; k < 3; k++)
        shape->axis[k] = k;
    for (int i = 0; i < 3; i++) /* the axes of the patch, then the other; of equals, the longest */
        for (int k = 0; k < 2; k++) {
            const int32_t x = shape->axis[k], y = shape->axis[k + 1];
            if (side[x] < side[y] || (side[x] == side[y] && grid->counts[x] < grid->counts[y])) {
                shape->axis[k] = y;
                shape->axis[k + 1] = x;
            }
        }
    shape->patch_a = (int32_t)side[shape->axis[0]];
    return place_warps(problem, shape, shape->patch_a, points / shape->patch_a, 4);
}

/* Packs as many transmits at a time as the budget allows; false if not even the least fits. */
static bool choose_chunks(const das_problem *problem, das_cuda_layout *layout)
{
    das_cuda_tile *shape = &layout->shape;
    if (layout->device_bytes > problem->memory_budget)
        return false;
    uint64_t available = (problem->memory_budget - layout->device_bytes) / (uint64_t)problem->slots;
    uint64_t row_bytes = (uint64_t)shape->stride * (problem->data_complex ? 8 : 4);
    int64_t rows = layout->chunk_transmits, transmits = problem->transmit_count;
    for (int64_t chunks = 1;; chunks++) {
        int64_t each = (transmits + chunks * rows - 1) / (chunks * rows) * rows;
        int64_t most = 0;
        int32_t used = 0;
        for (int64_t first = 0; first < transmits; first += each, used++) {
            int64_t end = first + each < transmits ? first + each : transmits;
            int64_t packed = das_cuda_packed_rows(shape, problem->receive_count, first, end);
            most = packed > most ? packed : most;
        }
        shape->flags_offset = (uint64_t)most * row_bytes;
        uint64_t bytes = align_up((uint64_t)most * (row_bytes + 1), 256);
        if (bytes <= available && bytes / 4 < INT32_MAX) { /* places in it are 32-bit numbers */
            layout->chunk_transmits = (int32_t)each;
            layout->chunks = used;
            layout->slot_bytes = bytes;
            return true;
        }
        if (each == rows)
            return false;
    }
}

das_status das_cuda_choose(const das_device *device, const das_problem *problem, das_cuda_layout *layout, das_error *error)
{
    memset(layout, 0, sizeof *layout);
    layout->output_count =
        (problem->keep_transmit ? problem->transmit_count : 1) * (problem->keep_receive ? problem->receive_count : 1);
    layout->chunks = 1;
    /* Many frames of complex data share more than a tile does. */
    if (!problem->data_complex || problem->frame_count < 32)
        choose_tile(das_cuda_of(device), problem, layout);
    measure_sections(problem, layout);
    place_sections(layout);
    if (layout->path == DAS_CUDA_PATH_TILE) {
        if (choose_chunks(problem, layout))
            return DAS_OK;
        layout->path = DAS_CUDA_PATH_GENERIC;
        measure_sections(problem, layout);
        place_sections(layout);
    }
    if (choose_tensor(das_cuda_of(device), problem, layout) || choose_frames(problem, layout))
        return DAS_OK;
    layout->path = choose_few(problem) ? DAS_CUDA_PATH_FEW : DAS_CUDA_PATH_GENERIC;
    measure_sections(problem, layout);
    place_sections(layout);
    layout->slot_bytes = 0;
    layout->chunks = 1;
    /* What does not fit stays in pinned host memory, the largest first; the kernels read it from there. */
    while (layout->device_bytes > problem->memory_budget) {
        int largest = -1;
        for (int i = 0; i < DAS_CUDA_SECTION_COUNT; i++)
            if (!layout->section[i].on_host && layout->section[i].bytes > 0 &&
                (largest < 0 || layout->section[i].bytes > layout->section[largest].bytes))
                largest = i;
        if (largest < 0 || layout->device_bytes < 4096)
            return das_fail(error, DAS_ERROR_OUT_OF_DEVICE_MEMORY,
                            "memory_budget is %llu bytes; expected at least 4096 for this plan's description",
                            (unsigned long long)problem->memory_budget);
        layout->section[largest].on_host = true;
        place_sections(layout);
    }
    return DAS_OK;
}
