#include "frontend.h"

#include <inttypes.h>
#include <string.h>

/* ---- run ---- */

das_status das_run_create(das_device *device, das_run **run, das_error *error)
{
    DAS_REQUIRE_POINTER(run, error);
    *run = NULL;
    DAS_REQUIRE_POINTER(device, error);
    das_status status = das_device_check(device, error);
    if (status != DAS_OK)
        return status;
    das_run *made = das_device_allocate(device, sizeof *made);
    if (made == NULL)
        return das_fail_memory(error, "a run", sizeof *made);
    memset(made, 0, sizeof *made);
    made->device = device;
    das_device_retain(device);
    *run = made;
    return DAS_OK;
}

static void destroy_events(das_run *run)
{
    das_event **const events[] = {&run->uploading, &run->begun, &run->packed, &run->computed, &run->downloaded};
    for (size_t i = 0; i < sizeof events / sizeof events[0]; i++)
        das_event_destroy(events[i]);
    run->timed = false;
    run->used = false;
}

void das_run_destroy(das_run **run)
{
    if (run == NULL || *run == NULL)
        return;
    das_device *device = (*run)->device;
    destroy_events(*run);
    das_device_release(device, *run);
    das_device_unretain(device);
    *run = NULL;
}

das_status das_run_set_frames(das_run *run, int64_t first, int64_t count, int64_t image_first, das_error *error)
{
    DAS_REQUIRE_POINTER(run, error);
    DAS_REQUIRE(first >= 0, error, "first is %" PRId64 "; expected 0 or more", first);
    DAS_REQUIRE(count >= 0, error, "count is %" PRId64 "; expected 0 (all) or more", count);
    DAS_REQUIRE(image_first >= 0, error, "image_first is %" PRId64 "; expected 0 or more", image_first);
    run->first_frame = first;
    run->frame_count = count;
    run->image_first_frame = image_first;
    return DAS_OK;
}

das_status das_run_set_transmits(das_run *run, int64_t first, int64_t count, das_error *error)
{
    DAS_REQUIRE_POINTER(run, error);
    DAS_REQUIRE(first >= 0, error, "first is %" PRId64 "; expected 0 or more", first);
    DAS_REQUIRE(count >= 0, error, "count is %" PRId64 "; expected 0 (all) or more", count);
    run->first_transmit = first;
    run->transmit_count = count;
    return DAS_OK;
}

das_status das_run_set_accumulate(das_run *run, int32_t accumulate, das_error *error)
{
    DAS_REQUIRE_POINTER(run, error);
    run->accumulate = accumulate != 0;
    return DAS_OK;
}

das_status das_run_set_progress(das_run *run, das_progress_function *progress, void *context, das_error *error)
{
    DAS_REQUIRE_POINTER(run, error);
    run->progress = progress;
    run->progress_context = context;
    return DAS_OK;
}

das_status das_run_enable_timing(das_run *run, int32_t enable, das_error *error)
{
    DAS_REQUIRE_POINTER(run, error);
    if (enable == 0) {
        destroy_events(run);
        return DAS_OK;
    }
    if (run->timed)
        return DAS_OK;
    das_event **const events[] = {&run->uploading, &run->begun, &run->packed, &run->computed, &run->downloaded};
    for (size_t i = 0; i < sizeof events / sizeof events[0]; i++) {
        das_status status = das_event_create(run->device, events[i], error);
        if (status != DAS_OK) {
            destroy_events(run);
            return status;
        }
    }
    run->timed = true;
    return DAS_OK;
}

das_status das_run_get_timing(const das_run *run, das_timing *timing, das_error *error)
{
    DAS_REQUIRE_POINTER(timing, error);
    DAS_REQUIRE_POINTER(run, error);
    DAS_REQUIRE(run->timed, error, "run has no timing; expected das_run_enable_timing() before");
    DAS_REQUIRE(run->used, error, "run has timed no call yet; expected das_reconstruct() before");
    das_timing found = {.struct_size = sizeof found};
    das_event *last = run->transfers ? run->downloaded : run->computed;
    das_status status = das_event_query(last, error);
    if (status == DAS_OK)
        status = das_event_elapsed(run->begun, run->packed, &found.pack_ms, error);
    if (status == DAS_OK)
        status = das_event_elapsed(run->begun, run->computed, &found.compute_ms, error);
    if (status == DAS_OK && run->transfers)
        status = das_event_elapsed(run->uploading, run->begun, &found.upload_ms, error);
    if (status == DAS_OK && run->transfers)
        status = das_event_elapsed(run->computed, run->downloaded, &found.download_ms, error);
    return status != DAS_OK ? status : das_copy_out(timing, &found, sizeof found, "timing", error);
}

/* ---- reconstruct ---- */

/* What the run, or its absence, asks of this plan. */
static das_status make_work(const das_plan *plan, const das_run *run, das_work *work, das_error *error)
{
    const das_problem *p = &plan->problem;
    memset(work, 0, sizeof *work);
    work->frame_count = p->frame_count;
    work->transmit_count = p->transmit_count;
    if (run == NULL)
        return DAS_OK;
    if (run->device != plan->device)
        return das_fail(error, DAS_ERROR_WRONG_DEVICE, "run belongs to another device than plan");
    DAS_REQUIRE(run->frame_count <= p->frame_count, error, "the run's frame count is %" PRId64 "; expected at most %" PRId64
                ", the acquisition's",
                run->frame_count, p->frame_count);
    work->first_frame = run->first_frame;
    work->image_first_frame = run->image_first_frame;
    if (run->frame_count > 0)
        work->frame_count = run->frame_count;
    if (run->transmit_count > 0) {
        DAS_REQUIRE(run->first_transmit < p->transmit_count && run->transmit_count <= p->transmit_count - run->first_transmit,
                    error, "the run's transmits are %" PRId64 " from %" PRId64 "; expected a range in 0 to %" PRId64,
                    run->transmit_count, run->first_transmit, p->transmit_count - 1);
        work->first_transmit = run->first_transmit;
        work->transmit_count = run->transmit_count;
        if (work->transmit_count < p->transmit_count && !p->incremental)
            return das_fail(error, DAS_ERROR_UNSUPPORTED,
                            "the run asks for %" PRId64 " of %" PRId64 " transmits; expected a plan made with "
                            "das_options_set_incremental()",
                            work->transmit_count, p->transmit_count);
    }
    if (run->accumulate && p->normalization != DAS_NORMALIZATION_NONE)
        return das_fail(error, DAS_ERROR_UNSUPPORTED, "the run accumulates and the plan normalises; expected only one of them");
    work->accumulate = run->accumulate;
    work->progress = run->progress;
    work->progress_context = run->progress_context;
    if (run->timed) {
        work->begun = run->begun;
        work->packed = run->packed;
        work->computed = run->computed;
    }
    return DAS_OK;
}

/* Bytes that an array of frames first_frame .. first_frame + shape[0] - 1 reaches to. */
static das_status reach(int64_t first, int32_t axes, const int64_t *shape, const int64_t *strides, int64_t first_frame,
                        size_t element, const char *name, uint64_t *bytes, das_error *error)
{
    int64_t shift, low, high;
    if (__builtin_mul_overflow(first_frame, strides[0], &shift) || __builtin_add_overflow(first, shift, &first) ||
        !das_extent(first, axes, shape, strides, &low, &high) || __builtin_mul_overflow(high, (int64_t)element, &high))
        return das_fail(error, DAS_ERROR_TOO_LARGE, "%s frames from %" PRId64 " lie beyond 2^63 bytes", name, first_frame);
    DAS_REQUIRE(low >= 0, error, "%s frames are %" PRId64 " from %" PRId64 ", which reach element %" PRId64 "; expected 0 or more",
                name, shape[0], first_frame, low);
    *bytes = (uint64_t)high;
    return DAS_OK;
}

/* Bytes that this call needs of the data and the image. */
static das_status call_bytes(const das_plan *plan, const das_work *work, uint64_t *data_bytes, uint64_t *image_bytes,
                             das_error *error)
{
    const das_problem *p = &plan->problem;
    const bool dense = p->trace_count == 0;
    const int64_t dense_shape[4] = {work->frame_count, p->transmit_count, p->receive_count, p->sample_count};
    const int64_t dense_strides[4] = {p->frame_stride, p->transmit_stride, p->receive_stride, p->sample_stride};
    const int64_t trace_shape[3] = {work->frame_count, p->trace_count, p->sample_count};
    const int64_t trace_strides[3] = {p->frame_stride, p->trace_stride, p->sample_stride};
    int64_t image_shape[6];
    memcpy(image_shape, p->image_shape, sizeof image_shape);
    image_shape[0] = work->frame_count;
    das_status status = reach(p->first, dense ? 4 : 3, dense ? dense_shape : trace_shape, dense ? dense_strides : trace_strides,
                              work->first_frame, das_type_bytes(p->data_type), "data", data_bytes, error);
    if (status != DAS_OK)
        return status;
    return reach(p->image_first, 6, image_shape, p->image_strides, work->image_first_frame, das_type_bytes(p->image_type),
                 "image", image_bytes, error);
}

static das_status check_buffer(const das_plan *plan, const das_buffer *buffer, uint64_t needed, das_type type, const char *name,
                               das_error *error)
{
    if (buffer->device != plan->device)
        return das_fail(error, DAS_ERROR_WRONG_DEVICE, "%s belongs to another device than plan", name);
    DAS_REQUIRE(buffer->bytes >= needed, error, "%s has %" PRIu64 " bytes; expected at least %" PRIu64 ", for %" PRIu64 " elements of %s",
                name, buffer->bytes, needed, needed / das_type_bytes(type), das_type_name(type));
    size_t alignment = das_type_alignment(type);
    DAS_REQUIRE((uintptr_t)buffer->host_pointer % alignment == 0, error, "%s is at %p; expected an alignment of %zu bytes", name,
                buffer->host_pointer, alignment);
    return DAS_OK;
}

/* A description speaks of the whole buffer, which may hold another number of frames than the plan: at least `end`. */
static das_status match_frames(const das_buffer *buffer, const char *name, das_type type, int32_t ndim, const int64_t *shape,
                               const int64_t *strides, int64_t end, das_error *error)
{
    if (!buffer->described || das_buffer_match(buffer, name, type, ndim, shape, strides, NULL) == DAS_OK)
        return DAS_OK;
    bool pairs = das_type_is_complex(type) && !das_type_is_complex(buffer->type);
    int32_t k = 0;
    while (k < buffer->ndim && buffer->shape[k] == 1)
        k++;
    int64_t described[6];
    memcpy(described, shape, (size_t)ndim * sizeof *shape);
    if (k < buffer->ndim && buffer->strides[k] == strides[0] * (pairs ? 2 : 1) && buffer->shape[k] >= end)
        described[0] = buffer->shape[k];
    else if (end == 1)
        described[0] = 1;
    return das_buffer_match(buffer, name, type, ndim, described, strides, error);
}

static das_status check_buffers(const das_plan *plan, das_buffer *data, das_buffer *image, const das_work *work,
                                das_error *error)
{
    const das_problem *p = &plan->problem;
    uint64_t data_bytes, image_bytes;
    das_status status = call_bytes(plan, work, &data_bytes, &image_bytes, error);
    if (status == DAS_OK)
        status = check_buffer(plan, data, data_bytes, p->data_type, "data", error);
    if (status == DAS_OK)
        status = check_buffer(plan, image, image_bytes, p->image_type, "image", error);
    if (status != DAS_OK)
        return status;
    uintptr_t a = (uintptr_t)data->host_pointer, b = (uintptr_t)image->host_pointer;
    DAS_REQUIRE(data != image && (a == 0 || b == 0 || a + data_bytes <= b || b + image_bytes <= a), error,
                "image shares memory with data; expected distinct buffers");
    if (p->dense) {
        const int64_t shape[4] = {p->frame_count, p->transmit_count, p->receive_count, p->sample_count};
        const int64_t strides[4] = {p->frame_stride, p->transmit_stride, p->receive_stride, p->sample_stride};
        status = match_frames(data, "data", p->data_type, 4, shape, strides, work->first_frame + work->frame_count, error);
    } else {
        const int64_t shape[3] = {p->frame_count, p->trace_count, p->sample_count};
        const int64_t strides[3] = {p->frame_stride, p->trace_stride, p->sample_stride};
        status = match_frames(data, "data", p->data_type, 3, shape, strides, work->first_frame + work->frame_count, error);
    }
    if (status != DAS_OK)
        return status;
    return match_frames(image, "image", p->image_type, 6, p->image_shape, p->image_strides,
                        work->image_first_frame + work->frame_count, error);
}

static bool is_done(const das_slot *slot)
{
    das_event *done = slot->done;
    return !done->recorded || done->device->backend->event_query(done, NULL) == DAS_OK;
}

/* A slot for one call: one whose work is done, else the one used longest ago; waits while other threads are queueing
 * with all of them. */
static das_slot *acquire_slot(das_plan *plan)
{
    das_slot *chosen = NULL;
    das_plan_renew_locks(plan);
    pthread_mutex_lock(&plan->mutex);
    while (chosen == NULL) {
        for (int32_t i = 0; i < plan->problem.slots; i++) {
            das_slot *slot = &plan->slots[i];
            if (slot->busy)
                continue;
            if (is_done(slot)) {
                chosen = slot;
                break;
            }
            if (chosen == NULL || slot->used < chosen->used)
                chosen = slot;
        }
        if (chosen == NULL)
            pthread_cond_wait(&plan->slot_free, &plan->mutex);
    }
    chosen->busy = true;
    chosen->used = ++plan->calls;
    pthread_mutex_unlock(&plan->mutex);
    return chosen;
}

static void release_slot(das_plan *plan, das_slot *slot)
{
    pthread_mutex_lock(&plan->mutex);
    slot->busy = false;
    pthread_cond_signal(&plan->slot_free);
    pthread_mutex_unlock(&plan->mutex);
}

/* Queues the work on the slot: after the slot's last call, and marked by its event. */
static das_status enqueue(das_plan *plan, das_slot *slot, das_queue *queue, const das_work *work, das_error *failure)
{
    const das_backend *backend = plan->device->backend;
    das_status status = DAS_OK;
    if (slot->done->recorded)
        status = backend->queue_wait_event(queue, slot->done, failure);
    if (status == DAS_OK)
        status = backend->reconstruct(plan, slot, queue, work, failure);
    /* Also after a failure: some of the work may have been queued. */
    das_error ignored = DAS_ERROR_INIT;
    das_users_add(&slot->done->users, queue);
    das_status recorded = backend->event_record(slot->done, queue, status == DAS_OK ? failure : &ignored);
    slot->done->recorded = slot->done->recorded || recorded == DAS_OK;
    return status != DAS_OK ? status : recorded;
}

das_status das_reconstruct(das_plan *plan, das_queue *queue, das_buffer *data, das_buffer *image, das_run *run,
                           das_error *error)
{
    DAS_REQUIRE_POINTER(plan, error);
    DAS_REQUIRE_POINTER(data, error);
    DAS_REQUIRE_POINTER(image, error);
    if (queue != NULL && queue->device != plan->device)
        return das_fail(error, DAS_ERROR_WRONG_DEVICE, "queue belongs to another device than plan");
    das_status status = das_device_check(plan->device, error);
    das_work work;
    if (status == DAS_OK)
        status = make_work(plan, run, &work, error);
    if (status == DAS_OK)
        status = check_buffers(plan, data, image, &work, error);
    if (status == DAS_OK && queue != NULL)
        status = das_queue_pending(queue, error);
    if (status != DAS_OK)
        return status;
    work.data = data;
    work.image = image;

    das_slot *slot = acquire_slot(plan);
    bool private = queue == NULL;
    if (private)
        queue = slot->queue;
    das_users_add(&plan->users, queue);
    das_users_add(&data->users, queue);
    das_users_add(&image->users, queue);
    das_event *const events[] = {work.begun, work.packed, work.computed};
    for (size_t i = 0; i < 3; i++)
        if (events[i] != NULL)
            das_users_add(&events[i]->users, queue);

    das_error failure = DAS_ERROR_INIT;
    status = enqueue(plan, slot, queue, &work, &failure);
    if (run != NULL && run->timed) {
        run->used = status == DAS_OK;
        run->transfers = false;
        for (size_t i = 0; i < 3; i++)
            events[i]->recorded = status == DAS_OK;
    }
    if (status != DAS_OK)
        das_fail(error, status, "%s", failure.message);
    if (private) {
        das_status waited = das_queue_wait(queue, status == DAS_OK ? error : NULL);
        if (status == DAS_OK)
            status = waited;
    } else {
        das_queue_keep(queue, status, &failure);
    }
    release_slot(plan, slot);
    return status;
}

/* ---- one-shot ---- */

/* Whether every byte of the image is written, so that what was there before does not matter. */
static bool writes_all(const das_plan *plan, const das_work *work, uint64_t image_bytes)
{
    const das_problem *p = &plan->problem;
    uint64_t elements = 1;
    for (int k = 0; k < 6; k++)
        elements *= (uint64_t)(k == 0 ? work->frame_count : p->image_shape[k]);
    bool all_transmits = !p->keep_transmit || work->transmit_count == p->transmit_count;
    return !work->accumulate && all_transmits && elements * das_type_bytes(p->image_type) == image_bytes;
}

/* On a device with memory of its own: buffers for the call, copies in and out. */
static das_status reconstruct_copied(das_plan *plan, das_queue *queue, const void *data, uint64_t data_bytes, void *image,
                                     uint64_t image_bytes, bool fill, das_run *run, das_error *error)
{
    das_buffer *in = NULL, *out = NULL;
    bool timed = run != NULL && run->timed;
    das_status status = das_buffer_create(plan->device, data_bytes, DAS_MEMORY_DEVICE, &in, error);
    if (status == DAS_OK)
        status = das_buffer_create(plan->device, image_bytes, DAS_MEMORY_DEVICE, &out, error);
    if (status == DAS_OK && timed)
        status = das_event_record(run->uploading, queue, error);
    if (status == DAS_OK)
        status = das_buffer_upload(queue, in, 0, data, data_bytes, error);
    if (status == DAS_OK && fill)
        status = das_buffer_upload(queue, out, 0, image, image_bytes, error);
    if (status == DAS_OK)
        status = das_reconstruct(plan, queue, in, out, run, error);
    if (status == DAS_OK)
        status = das_buffer_download(queue, out, 0, image, image_bytes, error);
    if (status == DAS_OK && timed)
        status = das_event_record(run->downloaded, queue, error);
    /* The host's memory must not be in use any more when this returns, whatever happened. */
    das_status waited = das_queue_wait(queue, status == DAS_OK ? error : NULL);
    das_buffer_destroy(&in);
    das_buffer_destroy(&out);
    return status != DAS_OK ? status : waited;
}

/* On a device that reaches host memory: in place. */
static das_status reconstruct_in_place(das_plan *plan, das_queue *queue, const void *data, uint64_t data_bytes, void *image,
                                       uint64_t image_bytes, das_run *run, das_error *error)
{
    das_buffer *in = NULL, *out = NULL;
    bool timed = run != NULL && run->timed;
    das_status status = das_buffer_import_pointer(plan->device, (void *)(uintptr_t)data, data_bytes, NULL, NULL, &in, error);
    if (status == DAS_OK)
        status = das_buffer_import_pointer(plan->device, image, image_bytes, NULL, NULL, &out, error);
    if (status == DAS_OK && timed)
        status = das_event_record(run->uploading, queue, error);
    if (status == DAS_OK)
        status = das_reconstruct(plan, queue, in, out, run, error);
    if (status == DAS_OK && timed)
        status = das_event_record(run->downloaded, queue, error);
    das_status waited = das_queue_wait(queue, status == DAS_OK ? error : NULL);
    das_buffer_destroy(&in);
    das_buffer_destroy(&out);
    return status != DAS_OK ? status : waited;
}

das_status das_reconstruct_host(das_plan *plan, const void *data, size_t data_bytes, void *image, size_t image_bytes,
                                das_run *run, das_error *error)
{
    DAS_REQUIRE_POINTER(plan, error);
    DAS_REQUIRE_POINTER(data, error);
    DAS_REQUIRE_POINTER(image, error);
    das_status status = das_device_check(plan->device, error);
    das_work work;
    uint64_t data_needed = 0, image_needed = 0;
    if (status == DAS_OK)
        status = make_work(plan, run, &work, error);
    if (status == DAS_OK)
        status = call_bytes(plan, &work, &data_needed, &image_needed, error);
    if (status != DAS_OK)
        return status;
    const das_problem *p = &plan->problem;
    DAS_REQUIRE(data_bytes >= data_needed, error, "data_bytes is %zu; expected at least %" PRIu64 ", for %" PRIu64 " elements of %s",
                data_bytes, data_needed, data_needed / das_type_bytes(p->data_type), das_type_name(p->data_type));
    DAS_REQUIRE(image_bytes >= image_needed, error, "image_bytes is %zu; expected at least %" PRIu64 ", for %" PRIu64 " elements of %s",
                image_bytes, image_needed, image_needed / das_type_bytes(p->image_type), das_type_name(p->image_type));
    uintptr_t a = (uintptr_t)data, b = (uintptr_t)image;
    DAS_REQUIRE(a + data_needed <= b || b + image_needed <= a, error, "image shares memory with data; expected distinct arrays");

    das_queue *queue = NULL;
    status = das_queue_create(plan->device, &queue, error);
    if (status != DAS_OK)
        return status;
    if (plan->device->backend->host_memory)
        status = reconstruct_in_place(plan, queue, data, data_needed, image, image_needed, run, error);
    else
        status = reconstruct_copied(plan, queue, data, data_needed, image, image_needed, !writes_all(plan, &work, image_needed),
                                    run, error);
    das_queue_destroy(&queue);
    if (run != NULL && run->timed && status == DAS_OK)
        run->transfers = true;
    return status;
}
