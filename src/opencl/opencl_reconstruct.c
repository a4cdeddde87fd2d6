#include "opencl_backend.h"

#include <math.h>
#include <string.h>

/* ---------------------------------------------------------------------------
 * Slots
 * ------------------------------------------------------------------------- */

das_status das_opencl_slot_create(das_plan *plan, das_slot *slot, das_error *error)
{
    const das_opencl_device *own = das_opencl_of(plan->device);
    const das_opencl_plan *made = plan->impl;
    das_opencl_slot *fresh = das_device_allocate(plan->device, sizeof *fresh);
    cl_int code = CL_SUCCESS;
    das_status status = DAS_OK;
    if (fresh == NULL)
        return das_fail(error, DAS_ERROR_OUT_OF_MEMORY, "no memory for an OpenCL slot");
    memset(fresh, 0, sizeof *fresh);
    slot->impl = fresh;
    const das_opencl_fast *fast = &made->choice.fast;
    fresh->sum = own->cl->CreateKernel(made->program, made->sum_name, &code);
    if (fresh->sum != NULL && fast->path != DAS_OPENCL_GENERAL)
        fresh->pack = own->cl->CreateKernel(made->program, made->pack_name, &code);
    if (code != CL_SUCCESS || fresh->sum == NULL)
        status = das_opencl_fail(plan->device, error, code, "clCreateKernel");
    if (status == DAS_OK && fast->path != DAS_OPENCL_GENERAL)
        status = das_opencl_memory_create(plan->device, fast->packed_bytes, NULL, "scratch memory for packed records",
                                          &fresh->packed, error);
    for (int table = 0; table < DAS_OPENCL_TABLES && status == DAS_OK; table++)
        if (made->streamed[table] != NULL)
            status = das_opencl_memory_create(plan->device,
                                              das_opencl_table_entry(table) * (uint64_t)made->choice.chunk_points *
                                                  (uint64_t)das_opencl_table_rows(&plan->problem, table),
                                              NULL, "scratch memory for tables", &fresh->tables[table], error);
    if (status == DAS_OK && slot == plan->slots)
        status = das_opencl_warm_up(plan, slot, error);
    if (status != DAS_OK)
        das_opencl_slot_destroy(plan, slot);
    return status;
}

void das_opencl_slot_destroy(das_plan *plan, das_slot *slot)
{
    das_opencl_slot *old = slot->impl;
    for (int table = 0; table < DAS_OPENCL_TABLES; table++)
        das_opencl_memory_destroy(plan->device, &old->tables[table]);
    das_opencl_memory_destroy(plan->device, &old->packed);
    if (old->sum != NULL)
        das_opencl_of(plan->device)->cl->ReleaseKernel(old->sum);
    if (old->pack != NULL)
        das_opencl_of(plan->device)->cl->ReleaseKernel(old->pack);
    das_device_release(plan->device, old);
    slot->impl = NULL;
}

/* ---------------------------------------------------------------------------
 * A call in progress
 * ------------------------------------------------------------------------- */

typedef struct call {
    das_plan *plan;
    const das_opencl_plan *made;
    das_opencl_slot *slot;
    das_queue *queue; /* NULL: kernels get nothing to do, see das_opencl_warm_up() */
    cl_command_queue commands;
    const das_opencl_api *cl;
    const das_work *work;
    cl_mem data, image;
    int64_t data_at, image_at; /* where they start in there, in parts of an element */
    das_error *error;
    cl_event before; /* of the last launch but one, to wait for when there is a progress callback */
    int64_t done, steps;
} call;

/* Arguments 0.. in order; the first failure stays. */
typedef struct arguments {
    call *call;
    cl_kernel kernel;
    cl_uint next;
    cl_int code;
} arguments;

static void pass(arguments *a, size_t bytes, const void *value)
{
    if (a->code == CL_SUCCESS)
        a->code = a->call->cl->SetKernelArg(a->kernel, a->next++, bytes, value);
}

/* What the plan does not have is replaced by memory that it has: such arguments are never read. */
static void pass_memory(arguments *a, cl_mem memory)
{
    cl_mem given = memory != NULL ? memory : a->call->made->reals;
    pass(a, sizeof given, &given);
}

static void pass_long(arguments *a, int64_t value)
{
    pass(a, sizeof value, &value);
}

/* Hands a launch to the device; with a progress callback waits for the one before it, so that the
 * fraction means work done while the device never idles. */
static das_status submit(call *c, cl_event event)
{
    cl_int code = CL_SUCCESS;
    das_status status;
    if (c->queue == NULL) {
        c->cl->ReleaseEvent(event);
        return DAS_OK;
    }
    if (c->work->progress != NULL) {
        code = c->cl->RetainEvent(event);
        if (code != CL_SUCCESS) {
            c->cl->ReleaseEvent(event);
            return das_opencl_fail(c->plan->device, c->error, code, "clRetainEvent");
        }
    }
    status = das_opencl_queue_submit(c->queue, event, c->error);
    if (c->work->progress == NULL)
        return status;
    if (c->before != NULL) {
        if (status == DAS_OK) {
            code = c->cl->WaitForEvents(1, &c->before);
            if (code != CL_SUCCESS)
                status = das_opencl_fail(c->plan->device, c->error, code, "clWaitForEvents");
        }
        c->cl->ReleaseEvent(c->before);
    }
    c->before = event;
    if (status == DAS_OK && c->work->progress(c->work->progress_context, (double)c->done / (double)c->steps) != 0)
        status = das_fail(c->error, DAS_ERROR_CANCELLED, "the progress callback asked to stop");
    c->done++;
    return status;
}

static das_status launch(call *c, cl_kernel kernel, cl_uint dimensions, const size_t *global, const size_t *local)
{
    cl_event event = NULL;
    cl_int code = c->cl->EnqueueNDRangeKernel(c->commands, kernel, dimensions, NULL, global, local, 0, NULL, &event);
    if (code != CL_SUCCESS)
        return das_opencl_fail(c->plan->device, c->error, code, "clEnqueueNDRangeKernel");
    return submit(c, event);
}

static das_status record(call *c, das_event *event)
{
    return event != NULL ? das_opencl_event_record(event, c->queue, c->error) : DAS_OK;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t pieces(int64_t whole, int64_t piece)
{
    return (whole - 1) / piece + 1;
}

/* ---------------------------------------------------------------------------
 * The general path
 * ------------------------------------------------------------------------- */

static size_t part_bytes(das_type type)
{
    switch (type) {
    case DAS_TYPE_CI16:
    case DAS_TYPE_CF16:
    case DAS_TYPE_CF32:
    case DAS_TYPE_CF64:
        return das_type_bytes(type) / 2;
    default:
        return das_type_bytes(type);
    }
}

/* Ranges of one launch. */
typedef struct range {
    int64_t point, points;
    int64_t plane, planes;
    int64_t frame, blocks;
} range;

static das_status launch_general(call *c, const range *r, int64_t table_begin, int64_t table_count, const cl_mem *tables)
{
    const das_opencl_plan *made = c->made;
    const das_work *work = c->work;
    const int64_t frame_end = work->first_frame + work->frame_count;
    const int64_t block_end = r->frame + r->blocks * made->choice.frames;
    const int32_t accumulate = work->accumulate;
    const bool block = made->choice.block_rows > 0;
    const size_t lanes = block ? (size_t)made->choice.lanes : 1;
    const cl_mem memories[] = {made->pair_offset, made->pair_weight, made->pair_of, made->pair_first, made->values,
                               made->window,      tables[0],         tables[1],     tables[2],        tables[3]};
    arguments a = {c, c->slot->sum, 0, CL_SUCCESS};
    size_t local[3] = {made->local, 1, 1}, work_items = ((size_t)r->points + lanes - 1) / lanes;
    size_t global[3] = {(work_items + made->local - 1) / made->local * made->local, (size_t)r->planes, (size_t)r->blocks};
    pass_memory(&a, c->data);
    pass_memory(&a, c->image);
    pass_memory(&a, made->reals);
    pass_memory(&a, made->longs);
    pass_memory(&a, made->elements);
    pass_memory(&a, made->waves);
    pass_memory(&a, made->kinds);
    if (block)
        pass_memory(&a, made->values);
    for (size_t i = 0; i < sizeof memories / sizeof memories[0] && !block; i++)
        pass_memory(&a, memories[i]);
    pass_long(&a, c->data_at);
    pass_long(&a, c->image_at);
    pass_long(&a, r->point);
    pass_long(&a, c->queue != NULL ? r->points : 0);
    if (!block) {
        pass_long(&a, table_begin);
        pass_long(&a, table_count);
        pass_long(&a, r->plane);
    }
    pass_long(&a, r->frame);
    pass_long(&a, (block_end < frame_end ? block_end : frame_end) - r->frame);
    pass_long(&a, work->image_first_frame - work->first_frame);
    pass_long(&a, work->first_transmit);
    pass_long(&a, work->first_transmit + work->transmit_count);
    pass(&a, sizeof accumulate, &accumulate);
    if (a.code != CL_SUCCESS)
        return das_opencl_fail(c->plan->device, c->error, a.code, "clSetKernelArg");
    return launch(c, c->slot->sum, 3, global, local);
}

/* How much of each axis one launch takes. */
typedef struct steps {
    int64_t points, planes, blocks;
} steps;

static steps choose_steps(const call *c, int64_t points, int64_t planes, int64_t blocks)
{
    const das_opencl_plan *made = c->made;
    const das_problem *problem = &c->plan->problem;
    const int64_t limit = 16384; /* of the second and third axis: far below what any driver takes */
    const int64_t group = (int64_t)made->local;
    double terms = (double)problem->pair_count / (double)made->choice.planes * (double)made->choice.frames + 1;
    double most = (double)made->launch_terms;
    steps s = {least(points, (int64_t)1 << 24), least(planes, limit), least(blocks, limit)};
    if (c->work->progress != NULL) {
        /* Some 16 reports. */
        double share = terms * (double)points * (double)planes * (double)blocks / 16;
        most = share < most ? share : most;
    }
    if (terms * (double)group * (double)s.planes * (double)s.blocks > most)
        s.blocks = least(s.blocks, (int64_t)(most / (terms * (double)group * (double)s.planes)) + 1);
    if (terms * (double)group * (double)s.planes * (double)s.blocks > most)
        s.planes = least(s.planes, (int64_t)(most / (terms * (double)group * (double)s.blocks)) + 1);
    if (terms * (double)s.points * (double)s.planes * (double)s.blocks > most) {
        double share = most / (terms * (double)s.planes * (double)s.blocks);
        int64_t whole = (int64_t)share / group * group;
        s.points = least(s.points, whole > group ? whole : group);
    }
    return s;
}

/* Brings a chunk of streamed tables to the slot's scratch memory. */
static das_status stream_tables(call *c, int64_t begin, int64_t count)
{
    for (int table = 0; table < DAS_OPENCL_TABLES; table++) {
        const uint64_t rows = (uint64_t)das_opencl_table_rows(&c->plan->problem, table), entry = das_opencl_table_entry(table);
        cl_int code;
        if (c->made->streamed[table] == NULL)
            continue;
        code = c->cl->EnqueueWriteBuffer(c->commands, c->slot->tables[table], 0, 0, (size_t)(rows * (uint64_t)count * entry),
                                         c->made->streamed[table] + rows * (uint64_t)begin * entry, 0, NULL, NULL);
        if (code != CL_SUCCESS)
            return das_opencl_fail(c->plan->device, c->error, code, "clEnqueueWriteBuffer");
    }
    return DAS_OK;
}

static das_status run_general(call *c)
{
    const das_opencl_choice *choice = &c->made->choice;
    const das_problem *problem = &c->plan->problem;
    const das_work *work = c->work;
    const int64_t receives = problem->keep_receive ? problem->receive_count : 1;
    const int64_t first_plane = problem->keep_transmit ? work->first_transmit * receives : 0;
    const int64_t planes = (problem->keep_transmit ? work->transmit_count : 1) * receives;
    const int64_t blocks = pieces(work->frame_count, choice->frames), all = problem->grid.point_count;
    const int64_t chunk_points = choice->chunk_points;
    const steps s = choose_steps(c, least(all, chunk_points), planes, blocks);
    das_status status = DAS_OK;
    c->steps =
        choice->chunks * pieces(least(all, chunk_points), s.points) * pieces(planes, s.planes) * pieces(blocks, s.blocks);
    for (int64_t chunk = 0; chunk < choice->chunks && status == DAS_OK; chunk++) {
        const int64_t begin = chunk * chunk_points, count = least(chunk_points, all - begin);
        const cl_mem *tables = choice->streamed ? c->slot->tables : c->made->tables + chunk * DAS_OPENCL_TABLES;
        if (choice->streamed)
            status = stream_tables(c, begin, count);
        for (int64_t block = 0; block < blocks && status == DAS_OK; block += s.blocks)
            for (int64_t plane = 0; plane < planes && status == DAS_OK; plane += s.planes)
                for (int64_t point = 0; point < count && status == DAS_OK; point += s.points) {
                    range r;
                    r.point = begin + point;
                    r.points = least(s.points, count - point);
                    r.plane = first_plane + plane;
                    r.planes = least(s.planes, planes - plane);
                    r.frame = work->first_frame + block * choice->frames;
                    r.blocks = least(s.blocks, blocks - block);
                    status = launch_general(c, &r, begin, count, tables);
                }
    }
    return status;
}

/* ---------------------------------------------------------------------------
 * The fast paths
 * ------------------------------------------------------------------------- */

static void pass_int(arguments *a, int32_t value)
{
    pass(a, sizeof value, &value);
}

/* Packs transmits n .. end - 1 of a frame of the data. */
static das_status launch_pack(call *c, int64_t frame, int64_t n, int64_t end)
{
    const das_opencl_plan *made = c->made;
    const das_opencl_fast *fast = &made->choice.fast;
    const das_problem *problem = &c->plan->problem;
    const size_t local[3] = {made->local_pack, 1, 1};
    const size_t global[3] = {(size_t)pieces(fast->stride, 4 * (int64_t)local[0]) * local[0], (size_t)problem->receive_count,
                              fast->shared ? 1 : (size_t)(end - n)};
    arguments a = {c, c->slot->pack, 0, CL_SUCCESS};
    cl_int code;
    pass_memory(&a, c->data);
    pass_memory(&a, c->slot->packed);
    if (!fast->shared)
        pass_memory(&a, made->weights);
    pass_memory(&a, made->longs);
    pass_memory(&a, made->reals);
    pass_long(&a, c->data_at + frame * problem->frame_stride);
    if (!fast->shared)
        pass_long(&a, n);
    pass_long(&a, c->queue != NULL ? fast->stride : 0);
    if (a.code != CL_SUCCESS)
        return das_opencl_fail(c->plan->device, c->error, a.code, "clSetKernelArg");
    code = c->cl->EnqueueNDRangeKernel(c->commands, c->slot->pack, 3, NULL, global, local, 0, NULL, NULL);
    return code == CL_SUCCESS ? DAS_OK : das_opencl_fail(c->plan->device, c->error, code, "clEnqueueNDRangeKernel");
}

/* Tiles or patches `first` .. of transmits n .. end - 1, slices of a tile's third axis. */
static das_status launch_sum(call *c, int64_t image_frame, int64_t n, int64_t end, int64_t first, int64_t count, int64_t slice,
                             int64_t slices, bool add)
{
    const das_opencl_plan *made = c->made;
    const das_opencl_fast *fast = &made->choice.fast;
    const das_problem *problem = &c->plan->problem;
    const int64_t image_at = c->image_at + image_frame * problem->image_strides[0];
    const cl_mem memories[] = {c->slot->packed, c->image, made->reals, made->longs, made->elements, made->waves, made->kinds};
    const size_t receives = (size_t)problem->receive_count;
    arguments a = {c, c->slot->sum, 0, CL_SUCCESS};
    size_t local[2] = {made->local, 1}, global[2] = {(size_t)count * made->local, (size_t)slices};
    for (size_t i = 0; i < sizeof memories / sizeof memories[0]; i++)
        pass_memory(&a, memories[i]);
    if (fast->path == DAS_OPENCL_TILE) {
        pass(&a, fast->line ? 16 * receives : 16, NULL);
        pass(&a, 8 * receives, NULL);
        pass(&a, 4 * receives, NULL);
        pass(&a, 4 * receives, NULL);
        pass_long(&a, image_at);
        pass_long(&a, fast->stride);
        pass_int(&a, (int32_t)first);
        pass_int(&a, fast->tiles[0]);
        pass_int(&a, fast->tiles[1]);
        pass_int(&a, fast->slow_a);
        for (int k = 0; k < 3; k++)
            pass_int(&a, fast->axis[k]);
        pass_int(&a, (int32_t)slice);
        pass_int(&a, fast->half_window);
        pass_int(&a, fast->half_window - DAS_OPENCL_MAGIC_BITS);
    } else {
        pass_memory(&a, made->offsets);
        pass(&a, 64 * receives * (size_t)fast->patches, NULL);
        pass(&a, 4 * receives * (size_t)fast->patches, NULL);
        pass(&a, problem->f_number > 0 ? 64 * receives * (size_t)fast->patches : 64, NULL);
        pass_long(&a, image_at);
        pass_long(&a, fast->stride);
        pass_long(&a, first);
    }
    pass_int(&a, (int32_t)n);
    pass_int(&a, (int32_t)end);
    pass_int(&a, c->work->accumulate || add);
    if (a.code != CL_SUCCESS)
        return das_opencl_fail(c->plan->device, c->error, a.code, "clSetKernelArg");
    return launch(c, c->slot->sum, 2, global, local);
}

/* How many tiles or patches there are, along how many slices, and how many of each one launch takes. */
typedef struct fast_steps {
    int64_t areas, slices, area_step, slice_step;
} fast_steps;

static fast_steps choose_fast_steps(const call *c)
{
    const das_opencl_fast *fast = &c->made->choice.fast;
    const das_problem *problem = &c->plan->problem;
    const bool tile = fast->path == DAS_OPENCL_TILE;
    const int64_t *counts = problem->grid.counts;
    const double points = tile ? (double)fast->threads * (double)fast->points : 16.0 * (double)fast->patches;
    const double terms = points * (double)least(fast->transmits, c->work->transmit_count) * (double)problem->receive_count;
    double most = (double)c->made->launch_terms;
    fast_steps s;
    s.areas = tile ? (int64_t)fast->tiles[0] * fast->tiles[1]
                   : pieces(counts[0], fast->patch[0] * fast->patches) * pieces(counts[1], fast->patch[1]) *
                         pieces(counts[2], fast->patch[2]);
    s.slices = tile ? counts[fast->axis[2]] : 1;
    if (c->work->progress != NULL)
        most = fmin(most, terms * (double)s.areas * (double)s.slices / 16);
    s.area_step = least(s.areas, (int64_t)fmin(most / terms, 1e9) + 1);
    s.slice_step =
        s.area_step < s.areas ? 1 : least(least(s.slices, 32768), (int64_t)fmin(most / terms / (double)s.areas, 1e9) + 1);
    return s;
}

static das_status run_fast(call *c)
{
    const das_opencl_fast *fast = &c->made->choice.fast;
    const das_work *work = c->work;
    const int64_t transmits_end = work->first_transmit + work->transmit_count;
    const fast_steps s = choose_fast_steps(c);
    bool first_pack = true;
    das_status status = DAS_OK;
    c->steps = work->frame_count * pieces(work->transmit_count, fast->transmits) * pieces(s.areas, s.area_step) *
               pieces(s.slices, s.slice_step);
    for (int64_t f = 0; f < work->frame_count && status == DAS_OK; f++)
        for (int64_t n = work->first_transmit; n < transmits_end && status == DAS_OK; n += fast->transmits) {
            const int64_t end = least(n + fast->transmits, transmits_end);
            if (!fast->shared || n == work->first_transmit)
                status = launch_pack(c, work->first_frame + f, n, end);
            if (status == DAS_OK && first_pack)
                status = record(c, work->packed);
            first_pack = false;
            for (int64_t slice = 0; slice < s.slices && status == DAS_OK; slice += s.slice_step)
                for (int64_t at = 0; at < s.areas && status == DAS_OK; at += s.area_step)
                    status = launch_sum(c, work->image_first_frame + f, n, end, at, least(s.area_step, s.areas - at), slice,
                                        least(s.slice_step, s.slices - slice), n > work->first_transmit);
        }
    return status;
}

/* Launches the kernels in the sizes that a reconstruction has, with nothing to do, so that what drivers compile or load at
 * the first launch (PoCL: for the size of a group) does not keep the first reconstruction waiting. */
das_status das_opencl_warm_up(das_plan *plan, das_slot *slot, das_error *error)
{
    das_opencl_device *own = das_opencl_of(plan->device);
    const das_opencl_plan *made = plan->impl;
    const das_problem *problem = &plan->problem;
    das_work work = {.frame_count = problem->frame_count, .transmit_count = problem->transmit_count};
    call c = {.plan = plan,
              .made = made,
              .slot = slot->impl,
              .commands = own->service,
              .cl = own->cl,
              .work = &work,
              .data = made->reals,
              .image = made->reals,
              .error = error,
              .steps = 1};
    das_opencl_signals signals;
    das_status status;
    cl_int code;
    das_opencl_signals_save(&signals);
    pthread_mutex_lock(&own->service_mutex);
    if (made->choice.fast.path != DAS_OPENCL_GENERAL) {
        const fast_steps s = choose_fast_steps(&c);
        status = launch_pack(&c, 0, 0, 1);
        if (status == DAS_OK) /* those beyond the last */
            status = launch_sum(&c, 0, 0, 0, s.areas, s.area_step, 0, s.slice_step, false);
    } else {
        const int64_t all = least(problem->grid.point_count, made->choice.chunk_points);
        const steps s = choose_steps(&c, all, made->choice.planes, pieces(problem->frame_count, made->choice.frames));
        const range r = {0, s.points, 0, s.planes, 0, s.blocks};
        status = launch_general(&c, &r, 0, all, made->choice.streamed ? c.slot->tables : made->tables);
    }
    code = own->cl->Finish(own->service);
    pthread_mutex_unlock(&own->service_mutex);
    das_opencl_signals_restore(&signals);
    return status == DAS_OK && code != CL_SUCCESS ? das_opencl_fail(plan->device, error, code, "clFinish") : status;
}

das_status das_opencl_reconstruct(das_plan *plan, das_slot *slot, das_queue *queue, const das_work *work, das_error *error)
{
    const das_opencl_device *own = das_opencl_of(plan->device);
    const das_opencl_buffer *data = work->data->impl, *image = work->image->impl;
    call c = {.plan = plan,
              .made = plan->impl,
              .slot = slot->impl,
              .queue = queue,
              .cl = own->cl,
              .work = work,
              .error = error,
              .commands = das_opencl_queue_of(queue)->queue,
              .data = data->memory,
              .image = image->memory,
              .steps = 1};
    das_status status, released;
    if ((data->flags & CL_MEM_WRITE_ONLY) != 0)
        return das_fail(error, DAS_ERROR_ARGUMENT, "data is a write-only cl_mem; expected one that kernels may read");
    if ((image->flags & CL_MEM_READ_ONLY) != 0)
        return das_fail(error, DAS_ERROR_ARGUMENT, "image is a read-only cl_mem; expected one that kernels may write");
    c.data_at = (int64_t)(work->data->import_offset / part_bytes(plan->problem.data_type));
    c.image_at = (int64_t)(work->image->import_offset / part_bytes(plan->problem.image_type));
    status = das_opencl_acquire(queue, work->data, work->image, error);
    if (status != DAS_OK)
        return status;
    status = record(&c, work->begun);
    if (c.made->choice.fast.path != DAS_OPENCL_GENERAL) {
        if (status == DAS_OK)
            status = run_fast(&c);
    } else {
        if (status == DAS_OK)
            status = record(&c, work->packed);
        if (status == DAS_OK)
            status = run_general(&c);
    }
    if (status == DAS_OK)
        status = record(&c, work->computed);
    if (c.before != NULL)
        own->cl->ReleaseEvent(c.before);
    /* The slot must be at rest when a failed call gives it back. */
    if (status != DAS_OK)
        own->cl->Finish(c.commands);
    released = das_opencl_release(queue, work->data, work->image, status == DAS_OK ? error : NULL);
    return status != DAS_OK ? status : released;
}
