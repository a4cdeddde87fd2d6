#include "frontend.h"

#include <string.h>

static das_status queue_new(das_device *device, das_queue **out, das_error *error)
{
    das_queue *queue = das_device_allocate(device, sizeof *queue);
    if (queue == NULL)
        return das_fail_memory(error, "a queue", sizeof *queue);
    memset(queue, 0, sizeof *queue);
    queue->device = device;
    queue->references = 1;
    queue->failure = (das_error)DAS_ERROR_INIT;
    pthread_mutex_init(&queue->mutex, NULL);
    *out = queue;
    return DAS_OK;
}

static void queue_free(das_queue *queue)
{
    das_device *device = queue->device;
    pthread_mutex_destroy(&queue->mutex);
    das_device_release(device, queue);
}

/* Puts the queue on the device's list; from here on it keeps the device alive. */
static void queue_enlist(das_queue *queue)
{
    das_device *device = queue->device;
    das_device_retain(device);
    pthread_mutex_lock(&device->mutex);
    queue->serial = ++device->next_queue;
    queue->next = device->queues;
    device->queues = queue;
    pthread_mutex_unlock(&device->mutex);
}

das_status das_queue_create(das_device *device, das_queue **queue, das_error *error)
{
    DAS_REQUIRE_POINTER(queue, error);
    *queue = NULL;
    DAS_REQUIRE_POINTER(device, error);
    das_status status = das_device_check(device, error);
    das_queue *made = NULL;
    if (status == DAS_OK)
        status = queue_new(device, &made, error);
    if (status != DAS_OK)
        return status;
    status = device->backend->queue_create(made, error);
    if (status != DAS_OK) {
        queue_free(made);
        return status;
    }
    queue_enlist(made);
    *queue = made;
    return DAS_OK;
}

static das_status queue_import(das_device *device, const char *backend, void *native, das_queue **queue, das_error *error)
{
    DAS_REQUIRE_POINTER(queue, error);
    *queue = NULL;
    DAS_REQUIRE_POINTER(device, error);
    das_status status = das_device_check(device, error);
    if (status != DAS_OK)
        return status;
    if (strcmp(device->backend->name, backend) != 0 || device->backend->queue_import == NULL)
        return das_fail(error, DAS_ERROR_UNSUPPORTED, "device is \"%s\"; expected a %s device", device->info.name, backend);
    das_queue *made = NULL;
    status = queue_new(device, &made, error);
    if (status != DAS_OK)
        return status;
    status = device->backend->queue_import(made, native, error);
    if (status != DAS_OK) {
        queue_free(made);
        return status;
    }
    queue_enlist(made);
    *queue = made;
    return DAS_OK;
}

das_status das_queue_import_cuda(das_device *device, void *cu_stream, das_queue **queue, das_error *error)
{
    return queue_import(device, "cuda", cu_stream, queue, error);
}

das_status das_queue_import_opencl(das_device *device, void *cl_command_queue, das_queue **queue, das_error *error)
{
    return queue_import(device, "opencl", cl_command_queue, queue, error);
}

void das_queue_fail(das_queue *queue, das_status status, const char *format, ...)
{
    pthread_mutex_lock(&queue->mutex);
    if (queue->failure.status == DAS_OK) {
        va_list arguments;
        va_start(arguments, format);
        das_fail_v(&queue->failure, status, format, arguments);
        va_end(arguments);
    }
    pthread_mutex_unlock(&queue->mutex);
}

das_status das_queue_keep(das_queue *queue, das_status status, const das_error *error)
{
    if (status != DAS_OK)
        das_queue_fail(queue, status, "%s", error->message);
    return status;
}

das_status das_queue_pending(das_queue *queue, das_error *error)
{
    pthread_mutex_lock(&queue->mutex);
    das_status status = queue->failure.status;
    if (status != DAS_OK)
        das_fail(error, status, "an earlier call on this queue failed: %s", queue->failure.message);
    pthread_mutex_unlock(&queue->mutex);
    return status;
}

das_status das_queue_check(das_queue *queue, das_error *error)
{
    das_status status = das_device_check(queue->device, error);
    return status != DAS_OK ? status : das_queue_pending(queue, error);
}

das_status das_queue_wait(das_queue *queue, das_error *error)
{
    DAS_REQUIRE_POINTER(queue, error);
    if (!das_device_reachable(queue->device))
        return das_device_check(queue->device, error);
    /* On a lost device too: until then the caller's memory may be in use. */
    das_status status = queue->device->backend->queue_wait(queue, error);
    pthread_mutex_lock(&queue->mutex);
    if (queue->failure.status != DAS_OK) {
        status = das_fail(error, queue->failure.status, "%s", queue->failure.message);
        queue->failure = (das_error)DAS_ERROR_INIT;
    }
    pthread_mutex_unlock(&queue->mutex);
    return status != DAS_OK ? status : das_device_check(queue->device, error);
}

das_status das_queue_wait_event(das_queue *queue, das_event *event, das_error *error)
{
    DAS_REQUIRE_POINTER(queue, error);
    DAS_REQUIRE_POINTER(event, error);
    if (event->device != queue->device)
        return das_fail(error, DAS_ERROR_WRONG_DEVICE, "event belongs to another device than queue");
    das_status status = das_queue_check(queue, error);
    if (status != DAS_OK || !event->recorded)
        return status;
    das_users_add(&event->users, queue);
    return queue->device->backend->queue_wait_event(queue, event, error);
}

void das_queue_unretain(das_queue *queue)
{
    das_device *device = queue->device;
    pthread_mutex_lock(&device->mutex);
    bool last = --queue->references == 0;
    if (last) {
        das_queue **link = &device->queues;
        while (*link != queue)
            link = &(*link)->next;
        *link = queue->next;
    }
    pthread_mutex_unlock(&device->mutex);
    if (!last)
        return;
    if (das_device_reachable(device)) {
        device->backend->queue_wait(queue, NULL);
        device->backend->queue_destroy(queue);
    }
    queue_free(queue);
    das_device_unretain(device);
}

void das_queue_destroy(das_queue **queue)
{
    if (queue == NULL || *queue == NULL)
        return;
    das_queue *old = *queue;
    *queue = NULL;
    if (das_device_reachable(old->device))
        old->device->backend->queue_wait(old, NULL);
    das_queue_unretain(old);
}

das_status das_event_create(das_device *device, das_event **event, das_error *error)
{
    DAS_REQUIRE_POINTER(event, error);
    *event = NULL;
    DAS_REQUIRE_POINTER(device, error);
    das_status status = das_device_check(device, error);
    if (status != DAS_OK)
        return status;
    das_event *made = das_device_allocate(device, sizeof *made);
    if (made == NULL)
        return das_fail_memory(error, "an event", sizeof *made);
    memset(made, 0, sizeof *made);
    made->device = device;
    status = device->backend->event_create(made, error);
    if (status != DAS_OK) {
        das_device_release(device, made);
        return status;
    }
    das_device_retain(device);
    *event = made;
    return DAS_OK;
}

das_status das_event_record(das_event *event, das_queue *queue, das_error *error)
{
    DAS_REQUIRE_POINTER(event, error);
    DAS_REQUIRE_POINTER(queue, error);
    if (event->device != queue->device)
        return das_fail(error, DAS_ERROR_WRONG_DEVICE, "event belongs to another device than queue");
    das_status status = das_queue_check(queue, error);
    if (status != DAS_OK)
        return status;
    das_users_add(&event->users, queue);
    status = queue->device->backend->event_record(event, queue, error);
    if (status == DAS_OK)
        event->recorded = true;
    return status;
}

das_status das_event_query(das_event *event, das_error *error)
{
    DAS_REQUIRE_POINTER(event, error);
    das_status status = das_device_check(event->device, error);
    if (status != DAS_OK || !event->recorded)
        return status;
    status = event->device->backend->event_query(event, error);
    if (status == DAS_ERROR_NOT_READY)
        das_fail(error, status, "the work before the event has not finished");
    return status;
}

das_status das_event_wait(das_event *event, das_error *error)
{
    DAS_REQUIRE_POINTER(event, error);
    das_status status = das_device_check(event->device, error);
    if (status != DAS_OK || !event->recorded)
        return status;
    return event->device->backend->event_wait(event, error);
}

das_status das_event_elapsed(das_event *start, das_event *stop, double *milliseconds, das_error *error)
{
    DAS_REQUIRE_POINTER(milliseconds, error);
    *milliseconds = 0.0;
    DAS_REQUIRE_POINTER(start, error);
    DAS_REQUIRE_POINTER(stop, error);
    if (start->device != stop->device)
        return das_fail(error, DAS_ERROR_WRONG_DEVICE, "start belongs to another device than stop");
    DAS_REQUIRE(start->recorded && stop->recorded, error, "%s was never recorded; expected das_event_record() before",
                start->recorded ? "stop" : "start");
    das_status status = das_event_query(start, error);
    if (status == DAS_OK)
        status = das_event_query(stop, error);
    if (status != DAS_OK)
        return status;
    return start->device->backend->event_elapsed(start, stop, milliseconds, error);
}

void das_event_destroy(das_event **event)
{
    if (event == NULL || *event == NULL)
        return;
    das_event *old = *event;
    das_device *device = old->device;
    *event = NULL;
    das_users_wait(device, &old->users);
    if (das_device_reachable(device))
        device->backend->event_destroy(old);
    das_device_release(device, old);
    das_device_unretain(device);
}
