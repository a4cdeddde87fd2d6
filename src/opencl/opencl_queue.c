#include "opencl_backend.h"

#include <string.h>

static const das_opencl_api *api_of(const das_device *device)
{
    return das_opencl_of(device)->cl;
}

/* ---------------------------------------------------------------------------
 * Queues
 * ------------------------------------------------------------------------- */

static das_status queue_new(das_queue *queue, cl_command_queue native, bool profiling, das_error *error)
{
    das_opencl_queue *made = das_device_allocate(queue->device, sizeof *made);
    if (made == NULL)
        return das_fail(error, DAS_ERROR_OUT_OF_MEMORY, "no memory for an OpenCL queue");
    memset(made, 0, sizeof *made);
    pthread_mutex_init(&made->mutex, NULL);
    made->queue = native;
    made->profiling = profiling;
    queue->impl = made;
    return DAS_OK;
}

das_status das_opencl_queue_create(das_queue *queue, das_error *error)
{
    das_opencl_device *device = das_opencl_of(queue->device);
    cl_int code = CL_SUCCESS;
    cl_command_queue native =
        device->cl->CreateCommandQueue(device->context, device->id, device->profiling ? CL_QUEUE_PROFILING_ENABLE : 0, &code);
    das_status status;
    if (native == NULL)
        return das_opencl_fail(queue->device, error, code, "clCreateCommandQueue");
    status = queue_new(queue, native, device->profiling, error);
    if (status != DAS_OK)
        device->cl->ReleaseCommandQueue(native);
    return status;
}

das_status das_opencl_queue_import(das_queue *queue, void *native, das_error *error)
{
    das_opencl_device *device = das_opencl_of(queue->device);
    cl_context context = NULL;
    cl_device_id id = NULL;
    cl_bitfield properties = 0;
    das_status status;
    cl_int code = device->cl->GetCommandQueueInfo(native, CL_QUEUE_CONTEXT, sizeof context, &context, NULL);
    if (code == CL_SUCCESS)
        code = device->cl->GetCommandQueueInfo(native, CL_QUEUE_DEVICE, sizeof id, &id, NULL);
    if (code == CL_SUCCESS)
        code = device->cl->GetCommandQueueInfo(native, CL_QUEUE_PROPERTIES, sizeof properties, &properties, NULL);
    if (code == CL_INVALID_COMMAND_QUEUE)
        return das_fail(error, DAS_ERROR_ARGUMENT, "cl_command_queue is no valid queue; expected an in-order cl_command_queue");
    if (code != CL_SUCCESS)
        return das_opencl_fail(queue->device, error, code, "clGetCommandQueueInfo");
    if (context != device->context || id != device->id)
        return das_fail(error, DAS_ERROR_WRONG_DEVICE, "cl_command_queue belongs to another %s than device",
                        context != device->context ? "cl_context" : "cl_device_id");
    if ((properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) != 0)
        return das_fail(error, DAS_ERROR_UNSUPPORTED, "cl_command_queue is out of order; expected an in-order queue");
    code = device->cl->RetainCommandQueue(native);
    if (code != CL_SUCCESS)
        return das_opencl_fail(queue->device, error, code, "clRetainCommandQueue");
    status = queue_new(queue, native, (properties & CL_QUEUE_PROFILING_ENABLE) != 0, error);
    if (status != DAS_OK)
        device->cl->ReleaseCommandQueue(native);
    return status;
}

void das_opencl_queue_destroy(das_queue *queue)
{
    das_opencl_queue *old = das_opencl_queue_of(queue);
    const das_opencl_api *cl = api_of(queue->device);
    if (old->last != NULL)
        cl->ReleaseEvent(old->last);
    cl->ReleaseCommandQueue(old->queue);
    pthread_mutex_destroy(&old->mutex);
    das_device_release(queue->device, old);
    queue->impl = NULL;
}

das_status das_opencl_queue_submit(das_queue *queue, cl_event event, das_error *error)
{
    das_opencl_queue *own = das_opencl_queue_of(queue);
    const das_opencl_api *cl = api_of(queue->device);
    cl_event before;
    cl_int code;
    pthread_mutex_lock(&own->mutex);
    before = own->last;
    own->last = event;
    pthread_mutex_unlock(&own->mutex);
    if (before != NULL)
        cl->ReleaseEvent(before);
    code = cl->Flush(own->queue);
    return code == CL_SUCCESS ? DAS_OK : das_opencl_fail(queue->device, error, code, "clFlush");
}

das_status das_opencl_queue_wait(das_queue *queue, das_error *error)
{
    das_opencl_queue *own = das_opencl_queue_of(queue);
    const das_opencl_api *cl = api_of(queue->device);
    cl_event last;
    cl_int ended = CL_COMPLETE;
    cl_int code = cl->Finish(own->queue);
    pthread_mutex_lock(&own->mutex);
    last = own->last;
    own->last = NULL;
    pthread_mutex_unlock(&own->mutex);
    if (last != NULL) {
        if (cl->GetEventInfo(last, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof ended, &ended, NULL) == CL_SUCCESS && ended < 0) {
            das_error why = DAS_ERROR_INIT;
            das_opencl_fail(queue->device, &why, ended, "queued OpenCL work");
            das_queue_fail(queue, why.status, "%s", why.message);
        }
        cl->ReleaseEvent(last);
    }
    return code == CL_SUCCESS ? DAS_OK : das_opencl_fail(queue->device, error, code, "clFinish");
}

/* ---------------------------------------------------------------------------
 * Events
 * ------------------------------------------------------------------------- */

das_status das_opencl_event_create(das_event *event, das_error *error)
{
    das_opencl_event *made = das_device_allocate(event->device, sizeof *made);
    if (made == NULL)
        return das_fail(error, DAS_ERROR_OUT_OF_MEMORY, "no memory for an OpenCL event");
    memset(made, 0, sizeof *made);
    event->impl = made;
    return DAS_OK;
}

void das_opencl_event_destroy(das_event *event)
{
    das_opencl_event *old = event->impl;
    if (old->event != NULL)
        api_of(event->device)->ReleaseEvent(old->event);
    das_device_release(event->device, old);
    event->impl = NULL;
}

das_status das_opencl_event_record(das_event *event, das_queue *queue, das_error *error)
{
    das_opencl_event *own = event->impl;
    das_opencl_queue *on = das_opencl_queue_of(queue);
    const das_opencl_api *cl = api_of(event->device);
    cl_event marker = NULL;
    cl_int code = cl->EnqueueMarkerWithWaitList(on->queue, 0, NULL, &marker);
    if (code != CL_SUCCESS)
        return das_opencl_fail(event->device, error, code, "clEnqueueMarkerWithWaitList");
    code = cl->RetainEvent(marker);
    if (code != CL_SUCCESS) {
        cl->ReleaseEvent(marker);
        return das_opencl_fail(event->device, error, code, "clRetainEvent");
    }
    if (own->event != NULL)
        cl->ReleaseEvent(own->event);
    own->event = marker;
    own->profiling = on->profiling;
    return das_opencl_queue_submit(queue, marker, error);
}

das_status das_opencl_queue_wait_event(das_queue *queue, das_event *event, das_error *error)
{
    das_opencl_event *own = event->impl;
    cl_int code;
    if (own->event == NULL)
        return DAS_OK;
    code = api_of(queue->device)->EnqueueBarrierWithWaitList(das_opencl_queue_of(queue)->queue, 1, &own->event, NULL);
    return code == CL_SUCCESS ? DAS_OK : das_opencl_fail(queue->device, error, code, "clEnqueueBarrierWithWaitList");
}

das_status das_opencl_event_query(das_event *event, das_error *error)
{
    das_opencl_event *own = event->impl;
    cl_int ended = CL_COMPLETE, code;
    if (own->event == NULL)
        return DAS_OK;
    code = api_of(event->device)->GetEventInfo(own->event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof ended, &ended, NULL);
    if (code != CL_SUCCESS)
        return das_opencl_fail(event->device, error, code, "clGetEventInfo");
    if (ended < 0)
        return das_opencl_fail(event->device, error, ended, "the work before the event");
    return ended == CL_COMPLETE ? DAS_OK : DAS_ERROR_NOT_READY;
}

das_status das_opencl_event_wait(das_event *event, das_error *error)
{
    das_opencl_event *own = event->impl;
    cl_int code;
    if (own->event == NULL)
        return DAS_OK;
    code = api_of(event->device)->WaitForEvents(1, &own->event);
    if (code == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST)
        return das_opencl_event_query(event, error); /* says what the failure was */
    return code == CL_SUCCESS ? DAS_OK : das_opencl_fail(event->device, error, code, "clWaitForEvents");
}

static das_status event_time(das_event *event, cl_ulong *nanoseconds, das_error *error)
{
    das_opencl_event *own = event->impl;
    cl_int code;
    if (!own->profiling)
        return das_fail(error, DAS_ERROR_UNSUPPORTED,
                        "the event was recorded in a queue without profiling, which has no times");
    code = api_of(event->device)
               ->GetEventProfilingInfo(own->event, CL_PROFILING_COMMAND_END, sizeof *nanoseconds, nanoseconds, NULL);
    if (code == CL_PROFILING_INFO_NOT_AVAILABLE)
        return das_fail(error, DAS_ERROR_UNSUPPORTED, "the OpenCL driver has no time for the event");
    return code == CL_SUCCESS ? DAS_OK : das_opencl_fail(event->device, error, code, "clGetEventProfilingInfo");
}

das_status das_opencl_event_elapsed(das_event *start, das_event *stop, double *milliseconds, das_error *error)
{
    cl_ulong from = 0, to = 0;
    das_status status = event_time(start, &from, error);
    if (status == DAS_OK)
        status = event_time(stop, &to, error);
    if (status == DAS_OK)
        *milliseconds = to >= from ? (double)(to - from) * 1e-6 : -(double)(from - to) * 1e-6;
    return status;
}
