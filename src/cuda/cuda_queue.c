#include "cuda_internal.h"

static das_cuda_queue *queue_new(das_queue *queue, das_error *error)
{
    das_cuda_queue *self = das_device_allocate(queue->device, sizeof *self);
    if (self == NULL)
        das_fail(error, DAS_ERROR_OUT_OF_MEMORY, "out of memory for a queue");
    else
        *self = (das_cuda_queue){NULL, false};
    return self;
}

das_status das_cuda_queue_create(das_queue *queue, das_error *error)
{
    das_device *device = queue->device;
    das_cuda_queue *self = queue_new(queue, error);
    if (self == NULL)
        return DAS_ERROR_OUT_OF_MEMORY;
    das_status status = das_cuda_enter(device, error);
    if (status == DAS_OK) {
        status = das_cuda_check(device, das_cuda_of(device)->driver->stream_create(&self->stream, DAS_CU_STREAM_NON_BLOCKING),
                                "cuStreamCreate", error);
        das_cuda_leave(device);
    }
    if (status != DAS_OK)
        das_device_release(device, self);
    else
        queue->impl = self;
    return status;
}

das_status das_cuda_queue_import(das_queue *queue, void *native, das_error *error)
{
    das_cuda_queue *self = queue_new(queue, error);
    if (self == NULL)
        return DAS_ERROR_OUT_OF_MEMORY;
    self->stream = native; /* 0, 1 and 2 mean to the driver what they mean to the caller */
    self->imported = true;
    queue->impl = self;
    return DAS_OK;
}

void das_cuda_queue_destroy(das_queue *queue)
{
    das_device *device = queue->device;
    das_cuda_queue *self = queue->impl;
    if (!self->imported && das_cuda_enter(device, NULL) == DAS_OK) {
        das_cuda_of(device)->driver->stream_destroy(self->stream);
        das_cuda_leave(device);
    }
    das_device_release(device, self);
    queue->impl = NULL;
}

das_status das_cuda_queue_wait(das_queue *queue, das_error *error)
{
    das_device *device = queue->device;
    das_status status = das_cuda_enter(device, error);
    if (status != DAS_OK)
        return status;
    das_error why = DAS_ERROR_INIT;
    status =
        das_cuda_check(device, das_cuda_of(device)->driver->stream_wait(das_cuda_stream(queue)), "cuStreamSynchronize", &why);
    das_cuda_leave(device);
    if (status != DAS_OK)
        das_queue_fail(queue, status, "%s", why.message);
    return DAS_OK;
}

das_status das_cuda_queue_wait_event(das_queue *queue, das_event *event, das_error *error)
{
    das_device *device = queue->device;
    das_status status = das_cuda_enter(device, error);
    if (status != DAS_OK)
        return status;
    status = das_cuda_check(device, das_cuda_of(device)->driver->stream_wait_event(das_cuda_stream(queue), event->impl, 0),
                            "cuStreamWaitEvent", error);
    das_cuda_leave(device);
    return status;
}

das_status das_cuda_event_create(das_event *event, das_error *error)
{
    das_device *device = event->device;
    das_cu_event made = NULL;
    das_status status = das_cuda_enter(device, error);
    if (status != DAS_OK)
        return status;
    status = das_cuda_check(device, das_cuda_of(device)->driver->event_create(&made, 0), "cuEventCreate", error);
    das_cuda_leave(device);
    event->impl = made;
    return status;
}

void das_cuda_event_destroy(das_event *event)
{
    if (das_cuda_enter(event->device, NULL) == DAS_OK) {
        das_cuda_of(event->device)->driver->event_destroy(event->impl);
        das_cuda_leave(event->device);
    }
    event->impl = NULL;
}

das_status das_cuda_event_record(das_event *event, das_queue *queue, das_error *error)
{
    das_device *device = event->device;
    das_status status = das_cuda_enter(device, error);
    if (status != DAS_OK)
        return status;
    status = das_cuda_check(device, das_cuda_of(device)->driver->event_record(event->impl, das_cuda_stream(queue)),
                            "cuEventRecord", error);
    das_cuda_leave(device);
    return status;
}

das_status das_cuda_event_query(das_event *event, das_error *error)
{
    das_device *device = event->device;
    das_status status = das_cuda_enter(device, error);
    if (status != DAS_OK)
        return status;
    das_cu_result result = das_cuda_of(device)->driver->event_query(event->impl);
    status = result == DAS_CU_NOT_READY ? DAS_ERROR_NOT_READY : das_cuda_check(device, result, "cuEventQuery", error);
    das_cuda_leave(device);
    return status;
}

das_status das_cuda_event_wait(das_event *event, das_error *error)
{
    das_device *device = event->device;
    das_status status = das_cuda_enter(device, error);
    if (status != DAS_OK)
        return status;
    status = das_cuda_check(device, das_cuda_of(device)->driver->event_wait(event->impl), "cuEventSynchronize", error);
    das_cuda_leave(device);
    return status;
}

das_status das_cuda_event_elapsed(das_event *start, das_event *stop, double *milliseconds, das_error *error)
{
    das_device *device = start->device;
    float elapsed = 0.0f;
    das_status status = das_cuda_enter(device, error);
    if (status != DAS_OK)
        return status;
    das_cu_result result = das_cuda_of(device)->driver->event_elapsed(&elapsed, start->impl, stop->impl);
    if (result == DAS_CU_NOT_READY)
        status = das_fail(error, DAS_ERROR_NOT_READY, "the work between the events has not finished");
    else
        status = das_cuda_check(device, result, "cuEventElapsedTime", error);
    das_cuda_leave(device);
    *milliseconds = (double)elapsed;
    return status;
}
