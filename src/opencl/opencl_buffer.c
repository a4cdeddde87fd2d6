#include "opencl_backend.h"

#include <inttypes.h>
#include <stdint.h>
#include <string.h>

static das_opencl_buffer *buffer_of(const das_buffer *buffer)
{
    return buffer->impl;
}

/* ---------------------------------------------------------------------------
 * Memory of plans and slots
 * ------------------------------------------------------------------------- */

das_status das_opencl_memory_create(das_device *device, uint64_t bytes, const void *values, const char *what, cl_mem *memory,
                                    das_error *error)
{
    das_opencl_device *own = das_opencl_of(device);
    cl_bitfield flags = CL_MEM_READ_WRITE | (values != NULL ? (cl_bitfield)CL_MEM_COPY_HOST_PTR : 0);
    cl_int code = CL_SUCCESS;
    union {
        const void *in;
        void *out;
    } pointer = {values}; /* copied from, in spite of the type in the API */
    *memory = NULL;
    if (bytes > own->max_buffer_bytes)
        return das_fail(error, DAS_ERROR_TOO_LARGE, "%s needs %" PRIu64 " bytes; the device's largest buffer is %" PRIu64, what,
                        bytes, own->max_buffer_bytes);
    *memory = own->cl->CreateBuffer(own->context, flags, (size_t)bytes, pointer.out, &code);
    return *memory != NULL ? DAS_OK : das_opencl_fail(device, error, code, what);
}

void das_opencl_memory_destroy(das_device *device, cl_mem *memory)
{
    if (*memory != NULL)
        das_opencl_of(device)->cl->ReleaseMemObject(*memory);
    *memory = NULL;
}

/* ---------------------------------------------------------------------------
 * Host memory: mapped but while the device uses it
 * ------------------------------------------------------------------------- */

static das_status map(das_device *device, cl_command_queue queue, cl_bool blocking, das_buffer *buffer, void **mapped,
                      das_error *error)
{
    cl_int code = CL_SUCCESS;
    *mapped = das_opencl_of(device)->cl->EnqueueMapBuffer(
        queue, buffer_of(buffer)->memory, blocking, CL_MAP_READ | CL_MAP_WRITE, 0, (size_t)buffer->bytes, 0, NULL, NULL, &code);
    if (*mapped == NULL && code == CL_SUCCESS)
        code = CL_OUT_OF_HOST_MEMORY;
    return code == CL_SUCCESS ? DAS_OK : das_opencl_fail(device, error, code, "clEnqueueMapBuffer");
}

static das_status unmap(das_device *device, cl_command_queue queue, das_buffer *buffer, das_error *error)
{
    das_opencl_buffer *own = buffer_of(buffer);
    cl_int code = das_opencl_of(device)->cl->EnqueueUnmapMemObject(queue, own->memory, own->mapped, 0, NULL, NULL);
    if (code != CL_SUCCESS)
        return das_opencl_fail(device, error, code, "clEnqueueUnmapMemObject");
    own->mapped = NULL;
    return DAS_OK;
}

static das_status acquire_one(das_queue *queue, das_buffer *buffer, das_error *error)
{
    das_opencl_buffer *own = buffer_of(buffer);
    if (buffer->host_pointer == NULL)
        return DAS_OK;
    pthread_mutex_lock(&own->mutex);
    das_status status = DAS_OK;
    if (own->mapped != NULL)
        status = unmap(queue->device, das_opencl_queue_of(queue)->queue, buffer, error);
    if (status != DAS_OK)
        pthread_mutex_unlock(&own->mutex);
    return status;
}

static das_status release_one(das_queue *queue, das_buffer *buffer, das_error *error)
{
    das_opencl_buffer *own = buffer_of(buffer);
    if (buffer->host_pointer == NULL)
        return DAS_OK;
    das_status status = map(queue->device, das_opencl_queue_of(queue)->queue, 0, buffer, &own->mapped, error);
    if (status == DAS_OK && own->mapped != buffer->host_pointer)
        status = das_fail(error, DAS_ERROR_INTERNAL, "the OpenCL driver moved host memory while it was mapped");
    pthread_mutex_unlock(&own->mutex);
    return status;
}

das_status das_opencl_acquire(das_queue *queue, das_buffer *first, das_buffer *second, das_error *error)
{
    /* Locked in the order of addresses: two calls never wait for each other. */
    bool swap = second != NULL && (uintptr_t)second < (uintptr_t)first;
    das_buffer *a = swap ? second : first, *b = swap ? first : second;
    das_status status = acquire_one(queue, a, error);
    if (status != DAS_OK || b == NULL)
        return status;
    status = acquire_one(queue, b, error);
    if (status != DAS_OK)
        release_one(queue, a, NULL);
    return status;
}

das_status das_opencl_release(das_queue *queue, das_buffer *first, das_buffer *second, das_error *error)
{
    das_status status = release_one(queue, first, error);
    if (second != NULL) {
        das_status later = release_one(queue, second, status == DAS_OK ? error : NULL);
        if (status == DAS_OK)
            status = later;
    }
    return status;
}

/* Host memory whose mapping stays at one address: the driver's own, which copies fastest, or else the
 * library's, where the address is given. */
static das_status map_first(das_device *device, das_buffer *buffer, das_error *error)
{
    das_opencl_device *own = das_opencl_of(device);
    das_opencl_buffer *made = buffer_of(buffer);
    void *again = NULL;
    das_status status;
    pthread_mutex_lock(&own->service_mutex);
    status = map(device, own->service, 1, buffer, &made->mapped, error);
    if (status == DAS_OK) {
        void *first = made->mapped;
        status = unmap(device, own->service, buffer, error);
        if (status == DAS_OK)
            status = map(device, own->service, 1, buffer, &again, error);
        if (status == DAS_OK) {
            made->mapped = again;
            buffer->host_pointer = again == first ? first : NULL;
        }
    }
    pthread_mutex_unlock(&own->service_mutex);
    return status;
}

static void free_buffer(das_buffer *buffer)
{
    das_opencl_device *device = das_opencl_of(buffer->device);
    das_opencl_buffer *old = buffer_of(buffer);
    if (old->memory != NULL && old->mapped != NULL) {
        pthread_mutex_lock(&device->service_mutex);
        unmap(buffer->device, device->service, buffer, NULL);
        device->cl->Finish(device->service);
        pthread_mutex_unlock(&device->service_mutex);
    }
    if (old->memory != NULL)
        device->cl->ReleaseMemObject(old->memory);
    old->memory = NULL;
    old->mapped = NULL;
    if (old->storage != NULL)
        das_device_release(buffer->device, old->storage);
    old->storage = NULL;
}

static das_status create_host(das_buffer *buffer, das_error *error)
{
    das_opencl_device *device = das_opencl_of(buffer->device);
    das_opencl_buffer *made = buffer_of(buffer);
    cl_int code = CL_SUCCESS;
    das_status status;
    made->memory = device->cl->CreateBuffer(device->context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, (size_t)buffer->bytes,
                                            NULL, &code);
    if (made->memory == NULL)
        return das_opencl_fail(buffer->device, error, code, "clCreateBuffer");
    status = map_first(buffer->device, buffer, error);
    if (status != DAS_OK || (buffer->host_pointer != NULL && (uintptr_t)buffer->host_pointer % 64 == 0))
        return status;
    free_buffer(buffer);
    buffer->host_pointer = NULL;
    made->storage = das_device_allocate(buffer->device, buffer->bytes);
    if (made->storage == NULL)
        return das_fail(error, DAS_ERROR_OUT_OF_MEMORY, "no memory for a host buffer of %" PRIu64 " bytes", buffer->bytes);
    made->memory = device->cl->CreateBuffer(device->context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, (size_t)buffer->bytes,
                                            made->storage, &code);
    if (made->memory == NULL)
        return das_opencl_fail(buffer->device, error, code, "clCreateBuffer");
    status = map_first(buffer->device, buffer, error);
    if (status == DAS_OK && buffer->host_pointer == NULL)
        status = das_fail(error, DAS_ERROR_UNSUPPORTED, "the OpenCL driver maps host memory at changing addresses");
    return status;
}

das_status das_opencl_buffer_create(das_buffer *buffer, das_error *error)
{
    das_opencl_device *device = das_opencl_of(buffer->device);
    das_opencl_buffer *made;
    das_status status;
    cl_int code = CL_SUCCESS;
    if (buffer->bytes > device->max_buffer_bytes)
        return das_fail(error, DAS_ERROR_TOO_LARGE, "bytes is %" PRIu64 "; the device's largest buffer is %" PRIu64,
                        buffer->bytes, device->max_buffer_bytes);
    made = das_device_allocate(buffer->device, sizeof *made);
    if (made == NULL)
        return das_fail(error, DAS_ERROR_OUT_OF_MEMORY, "no memory for an OpenCL buffer object");
    memset(made, 0, sizeof *made);
    pthread_mutex_init(&made->mutex, NULL);
    buffer->impl = made;
    made->flags = CL_MEM_READ_WRITE;
    if (buffer->memory == DAS_MEMORY_HOST) {
        status = create_host(buffer, error);
    } else {
        made->memory = device->cl->CreateBuffer(device->context, CL_MEM_READ_WRITE, (size_t)buffer->bytes, NULL, &code);
        status = made->memory != NULL ? DAS_OK : das_opencl_fail(buffer->device, error, code, "clCreateBuffer");
    }
    if (status != DAS_OK) {
        buffer->host_pointer = NULL;
        das_opencl_buffer_destroy(buffer);
    }
    return status;
}

das_status das_opencl_buffer_import(das_buffer *buffer, uint64_t native, das_error *error)
{
    das_opencl_device *device = das_opencl_of(buffer->device);
    cl_mem memory = (cl_mem)(uintptr_t)native;
    das_opencl_buffer *made;
    cl_uint type = 0;
    size_t bytes = 0;
    cl_context context = NULL;
    cl_bitfield flags = 0;
    cl_int code = device->cl->GetMemObjectInfo(memory, CL_MEM_TYPE, sizeof type, &type, NULL);
    if (code == CL_SUCCESS)
        code = device->cl->GetMemObjectInfo(memory, CL_MEM_SIZE, sizeof bytes, &bytes, NULL);
    if (code == CL_SUCCESS)
        code = device->cl->GetMemObjectInfo(memory, CL_MEM_CONTEXT, sizeof context, &context, NULL);
    if (code == CL_SUCCESS)
        code = device->cl->GetMemObjectInfo(memory, CL_MEM_FLAGS, sizeof flags, &flags, NULL);
    if (code == CL_INVALID_MEM_OBJECT)
        return das_fail(error, DAS_ERROR_ARGUMENT, "cl_mem is no valid memory object; expected a buffer");
    if (code != CL_SUCCESS)
        return das_opencl_fail(buffer->device, error, code, "clGetMemObjectInfo");
    if (type != CL_MEM_OBJECT_BUFFER)
        return das_fail(error, DAS_ERROR_ARGUMENT, "cl_mem is an image or pipe; expected a buffer");
    if (context != device->context)
        return das_fail(error, DAS_ERROR_WRONG_DEVICE, "cl_mem belongs to another cl_context than device");
    if (buffer->import_offset > bytes || buffer->bytes > bytes - buffer->import_offset)
        return das_fail(error, DAS_ERROR_ARGUMENT, "bytes is %" PRIu64 " from byte %" PRIu64 "; cl_mem has %zu bytes",
                        buffer->bytes, buffer->import_offset, bytes);
    made = das_device_allocate(buffer->device, sizeof *made);
    if (made == NULL)
        return das_fail(error, DAS_ERROR_OUT_OF_MEMORY, "no memory for an OpenCL buffer object");
    memset(made, 0, sizeof *made);
    code = device->cl->RetainMemObject(memory);
    if (code != CL_SUCCESS) {
        das_device_release(buffer->device, made);
        return das_opencl_fail(buffer->device, error, code, "clRetainMemObject");
    }
    pthread_mutex_init(&made->mutex, NULL);
    made->memory = memory;
    made->flags = flags;
    buffer->impl = made;
    return DAS_OK;
}

void das_opencl_buffer_destroy(das_buffer *buffer)
{
    das_opencl_buffer *old = buffer_of(buffer);
    free_buffer(buffer);
    pthread_mutex_destroy(&old->mutex);
    das_device_release(buffer->device, old);
    buffer->impl = NULL;
}

/* ---------------------------------------------------------------------------
 * Transfers
 * ------------------------------------------------------------------------- */

/* To the buffer from host memory, or from it to host memory; the other pointer is NULL. */
static das_status transfer(das_queue *queue, das_buffer *buffer, uint64_t offset, const void *from, void *to, uint64_t bytes,
                           das_error *error)
{
    const das_opencl_api *cl = das_opencl_of(queue->device)->cl;
    const cl_command_queue native = das_opencl_queue_of(queue)->queue;
    const cl_mem memory = buffer_of(buffer)->memory;
    const size_t at = (size_t)(buffer->import_offset + offset);
    cl_event event = NULL;
    cl_int code;
    das_status status = das_opencl_acquire(queue, buffer, NULL, error), mapped;
    if (status != DAS_OK)
        return status;
    if (from != NULL)
        code = cl->EnqueueWriteBuffer(native, memory, 0, at, (size_t)bytes, from, 0, NULL, &event);
    else
        code = cl->EnqueueReadBuffer(native, memory, 0, at, (size_t)bytes, to, 0, NULL, &event);
    if (code != CL_SUCCESS)
        status = das_opencl_fail(queue->device, error, code, from != NULL ? "clEnqueueWriteBuffer" : "clEnqueueReadBuffer");
    mapped = das_opencl_release(queue, buffer, NULL, status == DAS_OK ? error : NULL);
    if (code == CL_SUCCESS) {
        das_status submitted = das_opencl_queue_submit(queue, event, mapped == DAS_OK ? error : NULL);
        status = mapped != DAS_OK ? mapped : submitted;
    }
    return status;
}

das_status das_opencl_upload(das_queue *queue, das_buffer *buffer, uint64_t offset, const void *pointer, uint64_t bytes,
                             das_error *error)
{
    return transfer(queue, buffer, offset, pointer, NULL, bytes, error);
}

das_status das_opencl_download(das_queue *queue, das_buffer *buffer, uint64_t offset, void *pointer, uint64_t bytes,
                               das_error *error)
{
    return transfer(queue, buffer, offset, NULL, pointer, bytes, error);
}
