#include "cuda_plan.h"

/* A call on its way: what the launches of either path need. */
typedef struct launcher {
    das_plan *plan;
    das_cuda_plan *self;
    das_device *device;
    das_queue *queue;
    const das_work *work;
    das_error *error;
} launcher;

static das_status launch(const launcher *l, das_cuda_kernel kernel, uint64_t x, uint64_t y, uint64_t z, unsigned threads,
                         unsigned shared_bytes, void *params)
{
    const das_cuda_device *device = das_cuda_of(l->device);
    void *arguments[] = {params};
    return das_cuda_check(l->device,
                          device->driver->launch(device->kernel[kernel], (unsigned)x, (unsigned)y, (unsigned)z, threads, 1, 1,
                                                 shared_bytes, das_cuda_stream(l->queue), arguments, NULL),
                          "cuLaunchKernel", l->error);
}

static das_status record(const launcher *l, das_event *event)
{
    if (event == NULL)
        return DAS_OK;
    return das_cuda_check(l->device, das_cuda_of(l->device)->driver->event_record(event->impl, das_cuda_stream(l->queue)),
                          "cuEventRecord", l->error);
}

/* Tells the caller how far the device has come; waits for it to get there. */
static das_status progress(const launcher *l, double fraction)
{
    if (l->work->progress == NULL)
        return DAS_OK;
    das_status status = das_cuda_check(l->device, das_cuda_of(l->device)->driver->stream_wait(das_cuda_stream(l->queue)),
                                       "cuStreamSynchronize", l->error);
    if (status != DAS_OK)
        return status;
    if (l->work->progress(l->work->progress_context, fraction) != 0)
        return das_fail(l->error, DAS_ERROR_CANCELLED, "the progress callback asked to stop");
    return DAS_OK;
}

/* Writes what a call fixes. */
static void set_work(const launcher *l, das_cuda_params *params)
{
    params->data = das_cuda_pointer(l->work->data);
    params->image = das_cuda_pointer(l->work->image);
    params->accumulate = l->work->accumulate;
    params->aligned = params->data % (uint64_t)params->value_bytes == 0;
}

static int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---------------------------------------------------------------------------
 * The generic path and that for few frames: launches over points, outputs and frames
 * ------------------------------------------------------------------------- */

/* Terms of a launch: a fraction of a second on cards with fast double arithmetic, and on others. */
static int64_t terms_per_launch(const das_cuda_device *device)
{
    bool fast_double = device->capability % 10 == 0 && device->capability < 120;
    return (int64_t)device->multiprocessors << (fast_double ? 26 : 22);
}

static das_status generic(const launcher *l)
{
    enum { BLOCKS_Y = 32768 };
    const das_cuda_device *device = das_cuda_of(l->device);
    const das_problem *problem = &l->plan->problem;
    const das_work *work = l->work;
    das_cuda_params params = l->self->params;
    const bool few = l->self->layout.path == DAS_CUDA_PATH_FEW, several = work->frame_count > 1;
    const bool linear = problem->interpolation <= DAS_INTERPOLATION_LINEAR;
    das_cuda_kernel kernel = several ? (linear ? DAS_CUDA_GENERIC_FRAMES_LINEAR : DAS_CUDA_GENERIC_FRAMES)
                                     : (linear ? DAS_CUDA_GENERIC_LINEAR : DAS_CUDA_GENERIC);
    int64_t frames_each = several ? 8 : 1;
    unsigned threads = DAS_CUDA_GENERIC_THREADS;
    if (few) {
        kernel = problem->data_complex ? (several ? DAS_CUDA_FEW_FRAMES_IQ : DAS_CUDA_FEW_IQ)
                                       : (several ? DAS_CUDA_FEW_FRAMES : DAS_CUDA_FEW);
        frames_each = several ? 4 : 1;
        threads = DAS_CUDA_FEW_THREADS;
    } else if (problem->precision == DAS_PRECISION_DOUBLE) {
        kernel = DAS_CUDA_GENERIC_DOUBLE;
        frames_each = 1;
    }

    set_work(l, &params);
    params.first_transmit = work->first_transmit;
    params.end_transmit = work->first_transmit + work->transmit_count;
    bool by_receive = problem->keep_receive && !problem->keep_transmit;
    params.first_pair = by_receive ? 0 : l->self->pair_first[params.first_transmit];
    params.end_pair = by_receive ? problem->pair_count : l->self->pair_first[params.end_transmit];

    int64_t outputs_each_transmit = problem->keep_receive ? problem->receive_count : 1;
    int64_t first_output = problem->keep_transmit ? work->first_transmit * outputs_each_transmit : 0;
    int64_t end_output = first_output + (problem->keep_transmit ? work->transmit_count : 1) * outputs_each_transmit;
    int64_t pairs_each = (problem->pair_count + end_output - first_output) / (end_output - first_output);

    /* Where points are too few to keep the device busy, threads share the pairs of each. */
    int64_t points = problem->grid.point_count;
    if (few) /* 32 a patch, some of which may lie beyond the grid */
        points = 32 * params.patches_a * ((problem->grid.counts[1] * problem->grid.counts[2] - 1) / (32 / params.patch_a) + 1);
    params.split = 1;
    while (params.split < DAS_CUDA_GENERIC_THREADS && pairs_each >= 8 * params.split &&
           points * (end_output - first_output) * params.split < (int64_t)device->multiprocessors * 2048)
        params.split *= 2;

    /* Slices: first of outputs, then of frames, then of points. */
    int64_t points_block = few ? 32 : DAS_CUDA_GENERIC_THREADS / params.split,
            left = terms_per_launch(device) / (pairs_each > 0 ? pairs_each : 1);
    int64_t points_each = min64(points, left > 16384 ? left : 16384);
    points_each = min64(points_each, (int64_t)1 << 37);
    left /= points_each;
    int64_t outputs_slice = min64(end_output - first_output, min64(left > 1 ? left : 1, BLOCKS_Y));
    left /= outputs_slice;
    int64_t frames_slice = min64(work->frame_count, min64(left > frames_each ? left / frames_each : 1, BLOCKS_Y) * frames_each);
    if (work->progress != NULL && points_each > 4096)
        points_each = min64(points_each, points / 8 > 4096 ? points / 8 : 4096);
    points_each = (points_each + 31) / 32 * 32;

    double launches = (double)((points + points_each - 1) / points_each) *
                      (double)((end_output - first_output + outputs_slice - 1) / outputs_slice) *
                      (double)((work->frame_count + frames_slice - 1) / frames_slice);
    double done = 0.0;
    for (int64_t frame = 0; frame < work->frame_count; frame += frames_slice) {
        params.first_frame = work->first_frame + frame;
        params.image_first_frame = work->image_first_frame + frame;
        params.frame_count = min64(frames_slice, work->frame_count - frame);
        for (int64_t output = first_output; output < end_output; output += outputs_slice) {
            params.first_output = output;
            uint64_t outputs = (uint64_t)min64(outputs_slice, end_output - output);
            for (int64_t point = 0; point < points; point += points_each) {
                params.first_point = point;
                params.end_point = min64(points, point + points_each);
                uint64_t blocks = (uint64_t)((params.end_point - point - 1) / points_block + 1);
                uint64_t frame_blocks = (uint64_t)((params.frame_count + frames_each - 1) / frames_each);
                das_status status = launch(l, kernel, blocks, outputs, frame_blocks, threads, 0, &params);
                if (status == DAS_OK)
                    status = progress(l, ++done / launches);
                if (status != DAS_OK)
                    return status;
            }
        }
    }
    return DAS_OK;
}

/* ---------------------------------------------------------------------------
 * The tile path: packs a piece of the transmits, sums over it
 * ------------------------------------------------------------------------- */

static das_status tile(const launcher *l, const das_cuda_slot *slot)
{
    const das_problem *problem = &l->plan->problem;
    const das_cuda_layout *layout = &l->self->layout;
    const das_work *work = l->work;
    das_cuda_tile shape = layout->shape;
    shape.common = l->self->params;
    set_work(l, &shape.common);
    shape.packed = slot->packed;
    int64_t end_transmit = work->first_transmit + work->transmit_count;
    int64_t slices = problem->grid.counts[shape.axis_c];
    /* Launches of about 2^30 terms a multiprocessor: a fraction of a second. */
    int64_t pairs = problem->transmit_count * problem->receive_count;
    int64_t most = ((int64_t)das_cuda_of(l->device)->multiprocessors << 30) / (pairs * DAS_CUDA_TILE * DAS_CUDA_TILE) + 1;
    int64_t tiles_each = min64(most, (int64_t)shape.tiles_a * shape.tiles_b);
    int64_t slices_each = min64(min64(most / tiles_each, slices), 32768);
    int64_t tiles = (int64_t)shape.tiles_a * shape.tiles_b;
    int64_t chunks = (work->transmit_count - 1) / layout->chunk_transmits + 1;
    double steps = (double)(work->frame_count * chunks) *
                   (double)(((slices - 1) / slices_each + 1) * ((tiles - 1) / tiles_each + 1)),
           done = 0.0;
    bool first = true;
    for (int64_t frame = 0; frame < work->frame_count; frame++) {
        shape.frame = work->first_frame + frame;
        shape.common.image_first_frame = work->image_first_frame + frame;
        shape.common.accumulate = work->accumulate;
        for (int64_t transmit = work->first_transmit; transmit < end_transmit; transmit += layout->chunk_transmits) {
            shape.first_row_transmit = (int32_t)transmit;
            shape.end_row_transmit = (int32_t)min64(transmit + layout->chunk_transmits, end_transmit);
            shape.rows = das_cuda_packed_rows(&shape, problem->receive_count, transmit, shape.end_row_transmit);
            das_status status = launch(l, DAS_CUDA_PACK, (uint64_t)shape.rows, 1, 1, 256, 0, &shape);
            if (status == DAS_OK && first)
                status = record(l, work->packed);
            first = false;
            for (int64_t slice = 0; slice < slices; slice += slices_each)
                for (int64_t at = 0; status == DAS_OK && at < tiles; at += tiles_each) {
                    shape.first_slice = (int32_t)slice;
                    shape.first_tile = (int32_t)at;
                    status = launch(l, layout->kernel, (uint64_t)min64(tiles_each, tiles - at),
                                    (uint64_t)min64(slices_each, slices - slice), 1, DAS_CUDA_TILE_THREADS,
                                    layout->shared_bytes, &shape);
                    if (status == DAS_OK)
                        status = progress(l, ++done / steps);
                }
            if (status != DAS_OK)
                return status;
            shape.common.accumulate = 1;
        }
    }
    return DAS_OK;
}

/* ---------------------------------------------------------------------------
 * The frames and tensor paths: pack a number of frames, then form their images together
 * ------------------------------------------------------------------------- */

/* Packs pairs first .. end - 1. */
static das_status pack_frames(const launcher *l, das_cuda_frames *shape, int64_t first, int64_t end)
{
    const das_cuda_layout *layout = &l->self->layout;
    const bool tensor = layout->path == DAS_CUDA_PATH_TENSOR;
    const int64_t samples_row = l->plan->problem.data_complex ? 2 : 4; /* of the tensor path */
    uint64_t samples = (uint64_t)(tensor ? samples_row * (shape->pair_rows + DAS_CUDA_TENSOR_AFTER) : shape->pair_rows);
    uint64_t tiles = (samples - 1) / DAS_CUDA_PACK_TILE + 1;
    uint64_t frame_blocks = (uint64_t)((shape->common.frame_count - 1) / shape->frames_each + 1);
    uint64_t columns = frame_blocks * (uint64_t)shape->frames_each / DAS_CUDA_PACK_TILE;
    das_status status = DAS_OK;
    shape->packed_pair = first;
    shape->common.end_pair = end;
    if (layout->peaks_offset > 0)
        status = launch(l, DAS_CUDA_CLEAR_PEAKS, 1, 1, 1, DAS_CUDA_FRAMES_THREADS, 0, shape);
    for (int pass = layout->peaks_offset > 0 ? 0 : 1; pass < 2; pass++)
        for (int64_t pair = first; status == DAS_OK && pair < end; pair += 32768) {
            uint64_t pairs = (uint64_t)min64(32768, end - pair);
            shape->common.first_pair = pair;
            status = pass == 0 ? launch(l, DAS_CUDA_PEAKS, columns, pairs, 1, DAS_CUDA_FRAMES_THREADS, 0, shape)
                               : launch(l, tensor ? DAS_CUDA_PACK_TENSOR : DAS_CUDA_PACK_FRAMES, tiles, columns, pairs,
                                        DAS_CUDA_FRAMES_THREADS, 0, shape);
        }
    shape->common.first_pair = first;
    return status;
}

static das_status frames(const launcher *l, const das_cuda_slot *slot)
{
    const das_problem *problem = &l->plan->problem;
    const das_cuda_layout *layout = &l->self->layout;
    const das_work *work = l->work;
    das_cuda_frames shape = layout->frames;
    shape.common = l->self->params;
    set_work(l, &shape.common);
    shape.packed = slot->packed;
    shape.peaks = layout->peaks_offset > 0 ? slot->packed + layout->peaks_offset : 0;
    int64_t first_pair = l->self->pair_first[work->first_transmit];
    int64_t end_pair = l->self->pair_first[work->first_transmit + work->transmit_count];
    int64_t slices = problem->grid.counts[shape.axis[2]], blocks = (int64_t)shape.blocks[0] * shape.blocks[1];
    double terms = (double)work->frame_count * (double)(end_pair - first_pair) * (double)(slices * blocks), done = 0.0;
    bool first = true;
    for (int64_t frame = 0; frame < work->frame_count; frame += layout->chunk_frames) {
        int64_t count = min64(layout->chunk_frames, work->frame_count - frame);
        int64_t frame_blocks = (count - 1) / shape.frames_each + 1;
        shape.common.first_frame = work->first_frame + frame;
        shape.common.image_first_frame = work->image_first_frame + frame;
        shape.common.frame_count = count;
        shape.common.accumulate = work->accumulate;
        /* Without pairs the image is still to be written. */
        for (int64_t chunk = first_pair; chunk < end_pair || chunk == first_pair; chunk += layout->chunk_pairs) {
            int64_t end = min64(chunk + layout->chunk_pairs, end_pair);
            das_status status = pack_frames(l, &shape, chunk, end);
            if (status == DAS_OK && first)
                status = record(l, work->packed);
            first = false;
            /* Launches of about 2^30 terms a multiprocessor. */
            int64_t points = DAS_CUDA_FRAMES_POINTS * DAS_CUDA_FRAMES_THREADS / 32;
            int64_t most = ((int64_t)das_cuda_of(l->device)->multiprocessors << 30) /
                               ((end - chunk + 1) * frame_blocks * shape.frames_each * points) +
                           1;
            int64_t blocks_each = min64(most, blocks), slices_each = min64(min64(most / blocks_each, slices), 32768);
            for (int64_t slice = 0; slice < slices; slice += slices_each)
                for (int64_t at = 0; status == DAS_OK && at < blocks; at += blocks_each) {
                    int64_t here = min64(blocks_each, blocks - at), deep = min64(slices_each, slices - slice);
                    shape.first_slice = (int32_t)slice;
                    shape.first_block = (int32_t)at;
                    status = launch(l, layout->kernel, (uint64_t)here, (uint64_t)deep, (uint64_t)frame_blocks,
                                    DAS_CUDA_FRAMES_THREADS, 0, &shape);
                    done += (double)count * (double)(end - chunk) * (double)(here * deep);
                    if (status == DAS_OK)
                        status = progress(l, terms > 0.0 ? done / terms : 1.0);
                }
            if (status != DAS_OK)
                return status;
            shape.common.accumulate = 1;
        }
    }
    return DAS_OK;
}

das_status das_cuda_reconstruct(das_plan *plan, das_slot *slot, das_queue *queue, const das_work *work, das_error *error)
{
    launcher l = {plan, plan->impl, plan->device, queue, work, error};
    das_status status = das_cuda_enter(l.device, error);
    if (status != DAS_OK)
        return status;
    status = record(&l, work->begun);
    das_cuda_path path = l.self->layout.path;
    if (status == DAS_OK && path <= DAS_CUDA_PATH_FEW) /* nothing to pack */
        status = record(&l, work->packed);
    if (status == DAS_OK)
        status = path >= DAS_CUDA_PATH_FRAMES ? frames(&l, slot->impl)
                 : path == DAS_CUDA_PATH_TILE ? tile(&l, slot->impl)
                                              : generic(&l);
    if (status == DAS_OK)
        status = record(&l, work->computed);
    das_cuda_leave(l.device);
    return status;
}
