#include "cuda_internal.h"

static das_cuda_buffer *buffer_new(das_buffer *buffer, das_error *error)
{
    das_cuda_buffer *self = das_device_allocate(buffer->device, sizeof *self);
    if (self == NULL)
        das_fail(error, DAS_ERROR_OUT_OF_MEMORY, "out of memory for a buffer");
    else
        *self = (das_cuda_buffer){0, false};
    return self;
}

das_status das_cuda_buffer_create(das_buffer *buffer, das_error *error)
{
    das_device *device = buffer->device;
    const das_cu_driver *driver = das_cuda_of(device)->driver;
    das_cuda_buffer *self = buffer_new(buffer, error);
    if (self == NULL)
        return DAS_ERROR_OUT_OF_MEMORY;
    das_status status = das_cuda_enter(device, error);
    if (status != DAS_OK) {
        das_device_release(device, self);
        return status;
    }
    void *host = NULL;
    if (buffer->memory == DAS_MEMORY_HOST) {
        self->on_host = true;
        das_cu_result result = driver->host_allocate(&host, buffer->bytes, DAS_CU_HOST_PORTABLE | DAS_CU_HOST_MAPPED);
        if (result == DAS_CU_OUT_OF_MEMORY)
            status = das_fail(error, DAS_ERROR_OUT_OF_MEMORY, "out of pinned host memory for a buffer of %llu bytes",
                              (unsigned long long)buffer->bytes);
        else
            status = das_cuda_check(device, result, "cuMemHostAlloc", error);
        if (status == DAS_OK) {
            status = das_cuda_check(device, driver->host_device_pointer(&self->pointer, host, 0), "cuMemHostGetDevicePointer",
                                    error);
            if (status != DAS_OK)
                driver->host_free(host);
        }
    } else {
        status = das_cuda_check(device, driver->memory_allocate(&self->pointer, buffer->bytes), "cuMemAlloc", error);
    }
    das_cuda_leave(device);
    if (status != DAS_OK) {
        das_device_release(device, self);
        return status;
    }
    buffer->impl = self;
    buffer->host_pointer = host;
    return DAS_OK;
}

das_status das_cuda_buffer_import(das_buffer *buffer, uint64_t native, das_error *error)
{
    das_cuda_buffer *self = buffer_new(buffer, error);
    if (self == NULL)
        return DAS_ERROR_OUT_OF_MEMORY;
    self->pointer = native;
    buffer->impl = self;
    return DAS_OK;
}

void das_cuda_buffer_destroy(das_buffer *buffer)
{
    das_cuda_buffer *self = buffer->impl;
    das_device *device = buffer->device;
    const das_cu_driver *driver = das_cuda_of(device)->driver;
    if (!buffer->imported && das_cuda_enter(device, NULL) == DAS_OK) {
        if (self->on_host)
            driver->host_free(buffer->host_pointer);
        else
            driver->memory_free(self->pointer);
        das_cuda_leave(device);
    }
    das_device_release(device, self);
    buffer->impl = NULL;
}

/* Addresses are unified: a host pointer is a device pointer, whatever the kind of host memory. */
das_status das_cuda_upload(das_queue *queue, das_buffer *buffer, uint64_t offset, const void *pointer, uint64_t bytes,
                           das_error *error)
{
    das_device *device = queue->device;
    const das_cu_driver *driver = das_cuda_of(device)->driver;
    const das_cuda_buffer *self = buffer->impl;
    das_status status = das_cuda_enter(device, error);
    if (status != DAS_OK)
        return status;
    das_cu_result result =
        self->on_host ? driver->copy(self->pointer + offset, (das_cu_pointer)(uintptr_t)pointer, bytes, das_cuda_stream(queue))
                      : driver->copy_to_device(self->pointer + offset, pointer, bytes, das_cuda_stream(queue));
    status = das_cuda_check(device, result, "copying to the device", error);
    das_cuda_leave(device);
    return status;
}

das_status das_cuda_download(das_queue *queue, das_buffer *buffer, uint64_t offset, void *pointer, uint64_t bytes,
                             das_error *error)
{
    das_device *device = queue->device;
    const das_cu_driver *driver = das_cuda_of(device)->driver;
    const das_cuda_buffer *self = buffer->impl;
    das_status status = das_cuda_enter(device, error);
    if (status != DAS_OK)
        return status;
    das_cu_result result =
        self->on_host ? driver->copy((das_cu_pointer)(uintptr_t)pointer, self->pointer + offset, bytes, das_cuda_stream(queue))
                      : driver->copy_to_host(pointer, self->pointer + offset, bytes, das_cuda_stream(queue));
    status = das_cuda_check(device, result, "copying from the device", error);
    das_cuda_leave(device);
    return status;
}
