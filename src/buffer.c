#include "dlpack.h"
#include "frontend.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct das_type_facts {
    const char *name;
    uint8_t bytes;
    uint8_t alignment; /* of a part */
    bool is_complex;
} das_type_facts;

static const das_type_facts facts[] = {
    [DAS_TYPE_I8] = {"DAS_TYPE_I8", 1, 1, false},     [DAS_TYPE_U8] = {"DAS_TYPE_U8", 1, 1, false},
    [DAS_TYPE_I16] = {"DAS_TYPE_I16", 2, 2, false},   [DAS_TYPE_U16] = {"DAS_TYPE_U16", 2, 2, false},
    [DAS_TYPE_F16] = {"DAS_TYPE_F16", 2, 2, false},   [DAS_TYPE_F32] = {"DAS_TYPE_F32", 4, 4, false},
    [DAS_TYPE_F64] = {"DAS_TYPE_F64", 8, 8, false},   [DAS_TYPE_CI16] = {"DAS_TYPE_CI16", 4, 2, true},
    [DAS_TYPE_CF16] = {"DAS_TYPE_CF16", 4, 2, true},  [DAS_TYPE_CF32] = {"DAS_TYPE_CF32", 8, 4, true},
    [DAS_TYPE_CF64] = {"DAS_TYPE_CF64", 16, 8, true},
};

static const das_type_facts *type_facts(das_type type)
{
    static const das_type_facts unknown = {"unknown type", 0, 1, false};
    return type >= DAS_TYPE_I8 && type <= DAS_TYPE_CF64 ? &facts[type] : &unknown;
}

size_t das_type_bytes(das_type type)
{
    return type_facts(type)->bytes;
}

const char *das_type_name(das_type type)
{
    return type_facts(type)->name;
}

bool das_type_is_complex(das_type type)
{
    return type_facts(type)->is_complex;
}

size_t das_type_alignment(das_type type)
{
    return type_facts(type)->alignment;
}

static das_status check_bytes(const das_device *device, uint64_t bytes, das_error *error)
{
    DAS_REQUIRE(bytes >= 1, error, "bytes is 0; expected 1 or more");
    if (device->info.max_buffer_bytes != 0 && bytes > device->info.max_buffer_bytes)
        return das_fail(error, DAS_ERROR_TOO_LARGE, "bytes is %" PRIu64 "; expected at most %" PRIu64 ", the largest buffer of \"%s\"",
                        bytes, device->info.max_buffer_bytes, device->info.name);
    return DAS_OK;
}

static das_status buffer_new(das_device *device, uint64_t bytes, das_memory memory, das_buffer **out, das_error *error)
{
    das_buffer *buffer = das_device_allocate(device, sizeof *buffer);
    if (buffer == NULL)
        return das_fail_memory(error, "a buffer handle", sizeof *buffer);
    memset(buffer, 0, sizeof *buffer);
    buffer->device = device;
    buffer->bytes = bytes;
    buffer->memory = memory;
    *out = buffer;
    return DAS_OK;
}

das_status das_buffer_create(das_device *device, uint64_t bytes, das_memory memory, das_buffer **buffer, das_error *error)
{
    DAS_REQUIRE_POINTER(buffer, error);
    *buffer = NULL;
    DAS_REQUIRE_POINTER(device, error);
    DAS_REQUIRE(memory == DAS_MEMORY_DEVICE || memory == DAS_MEMORY_HOST, error,
                "memory is %" PRId32 "; expected DAS_MEMORY_DEVICE or DAS_MEMORY_HOST", memory);
    das_buffer *made = NULL;
    das_status status = das_device_check(device, error);
    if (status == DAS_OK)
        status = check_bytes(device, bytes, error);
    if (status == DAS_OK)
        status = buffer_new(device, bytes, memory, &made, error);
    if (status != DAS_OK)
        return status;
    status = device->backend->buffer_create(made, error);
    if (status != DAS_OK) {
        das_device_release(device, made);
        return status;
    }
    das_device_retain(device);
    *buffer = made;
    return DAS_OK;
}

/* CUDA devices import device addresses, OpenCL devices cl_mem; all others reach host memory. */
static const char *import_kind(const das_device *device)
{
    const char *name = device->backend->name;
    return strcmp(name, "cuda") == 0 || strcmp(name, "opencl") == 0 ? name : "cpu";
}

static das_status import(das_device *device, const char *kind, uint64_t native, const char *native_name, uint64_t bytes,
                         uint64_t offset, das_buffer_release_function *release, void *context, das_buffer **buffer,
                         das_error *error)
{
    DAS_REQUIRE_POINTER(buffer, error);
    *buffer = NULL;
    DAS_REQUIRE_POINTER(device, error);
    das_status status = das_device_check(device, error);
    if (status != DAS_OK)
        return status;
    if (strcmp(import_kind(device), kind) != 0 || device->backend->buffer_import == NULL)
        return das_fail(error, DAS_ERROR_UNSUPPORTED, "device is \"%s\", which cannot import %s", device->info.name, native_name);
    DAS_REQUIRE(native != 0, error, "%s is NULL; expected memory of the device", native_name);
    DAS_REQUIRE(bytes >= 1, error, "bytes is 0; expected 1 or more");
    if (bytes > UINT64_MAX - native)
        return das_fail(error, DAS_ERROR_TOO_LARGE, "bytes is %" PRIu64 "; expected memory that ends below 2^64", bytes);
    das_buffer *made = NULL;
    status = buffer_new(device, bytes, strcmp(kind, "cpu") == 0 ? DAS_MEMORY_HOST : DAS_MEMORY_DEVICE, &made, error);
    if (status != DAS_OK)
        return status;
    made->imported = true;
    made->import_offset = offset;
    status = device->backend->buffer_import(made, native, error);
    if (status != DAS_OK) {
        das_device_release(device, made);
        return status;
    }
    made->release = release;
    made->release_context = context;
    das_device_retain(device);
    *buffer = made;
    return DAS_OK;
}

das_status das_buffer_import_pointer(das_device *device, void *pointer, uint64_t bytes, das_buffer_release_function *release,
                                     void *context, das_buffer **buffer, das_error *error)
{
    return import(device, "cpu", (uintptr_t)pointer, "pointer", bytes, 0, release, context, buffer, error);
}

das_status das_buffer_import_cuda(das_device *device, uint64_t cu_deviceptr, uint64_t bytes, das_buffer_release_function *release,
                                  void *context, das_buffer **buffer, das_error *error)
{
    return import(device, "cuda", cu_deviceptr, "cu_deviceptr", bytes, 0, release, context, buffer, error);
}

das_status das_buffer_import_opencl(das_device *device, void *cl_mem, uint64_t bytes, das_buffer_release_function *release,
                                    void *context, das_buffer **buffer, das_error *error)
{
    return import(device, "opencl", (uintptr_t)cl_mem, "cl_mem", bytes, 0, release, context, buffer, error);
}

static das_type type_of_dlpack(uint8_t code, uint8_t bits)
{
    static const struct {
        uint8_t code, bits;
        das_type type;
    } known[] = {
        {DAS_DL_INT, 8, DAS_TYPE_I8},       {DAS_DL_UINT, 8, DAS_TYPE_U8},      {DAS_DL_INT, 16, DAS_TYPE_I16},
        {DAS_DL_UINT, 16, DAS_TYPE_U16},    {DAS_DL_FLOAT, 16, DAS_TYPE_F16},   {DAS_DL_FLOAT, 32, DAS_TYPE_F32},
        {DAS_DL_FLOAT, 64, DAS_TYPE_F64},   {DAS_DL_COMPLEX, 32, DAS_TYPE_CF16}, {DAS_DL_COMPLEX, 64, DAS_TYPE_CF32},
        {DAS_DL_COMPLEX, 128, DAS_TYPE_CF64},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i].code == code && known[i].bits == bits)
            return known[i].type;
    return 0;
}

static das_status compact_strides(int32_t ndim, const int64_t *shape, int64_t *strides, das_error *error)
{
    int64_t stride = 1;
    for (int32_t k = ndim - 1; k >= 0; k--) {
        strides[k] = stride;
        if (__builtin_mul_overflow(stride, shape[k], &stride))
            return das_fail(error, DAS_ERROR_TOO_LARGE, "shape[%" PRId32 "] is %" PRId64 ", by which the tensor exceeds 2^63 elements",
                            k, shape[k]);
    }
    return DAS_OK;
}

/* Shape and strides of an array with axes of length >= 1; strides may be NULL. */
static das_status check_axes(int32_t ndim, const int64_t *shape, const int64_t *strides, int64_t out_shape[8],
                             int64_t out_strides[8], das_error *error)
{
    DAS_REQUIRE(ndim >= 0 && ndim <= 8, error, "ndim is %" PRId32 "; expected 0 to 8", ndim);
    DAS_REQUIRE(ndim == 0 || shape != NULL, error, "shape is NULL; expected %" PRId32 " lengths", ndim);
    for (int32_t k = 0; k < ndim; k++) {
        DAS_REQUIRE(shape[k] >= 1, error, "shape[%" PRId32 "] is %" PRId64 "; expected 1 or more", k, shape[k]);
        out_shape[k] = shape[k];
    }
    if (strides == NULL)
        return compact_strides(ndim, out_shape, out_strides, error);
    if (ndim > 0)
        memcpy(out_strides, strides, (size_t)ndim * sizeof *strides);
    return DAS_OK;
}

static void release_tensor(void *context)
{
    das_dl_managed_tensor *tensor = context;
    if (tensor->deleter != NULL)
        tensor->deleter(tensor);
}

/* Whether the tensor lies in memory that the device reaches. */
static das_status check_dlpack_device(const das_device *device, const das_dl_managed_tensor *tensor, das_error *error)
{
    const char *kind = import_kind(device);
    int32_t type = tensor->device_type;
    bool ok = strcmp(kind, "cpu") == 0 ? type == DAS_DL_CPU || type == DAS_DL_CUDA_HOST
              : strcmp(kind, "cuda") == 0 ? type == DAS_DL_CUDA || type == DAS_DL_CUDA_MANAGED
                                          : type == DAS_DL_OPENCL;
    const char *index = strchr(device->info.name, ':');
    if (strcmp(kind, "cpu") != 0 && index != NULL)
        ok = ok && tensor->device_id == atoi(index + 1);
    if (!ok)
        return das_fail(error, DAS_ERROR_WRONG_DEVICE,
                        "managed_tensor lies on DLPack device type %" PRId32 ", id %" PRId32 "; expected memory of \"%s\"", type,
                        tensor->device_id, device->info.name);
    return DAS_OK;
}

das_status das_buffer_import_dlpack(das_device *device, void *managed_tensor, das_buffer **buffer, das_error *error)
{
    DAS_REQUIRE_POINTER(buffer, error);
    *buffer = NULL;
    DAS_REQUIRE_POINTER(device, error);
    DAS_REQUIRE_POINTER(managed_tensor, error);
    das_dl_managed_tensor *tensor = managed_tensor;
    das_status status = das_device_check(device, error);
    if (status == DAS_OK)
        status = check_dlpack_device(device, tensor, error);
    if (status != DAS_OK)
        return status;
    das_type type = type_of_dlpack(tensor->type_code, tensor->type_bits);
    DAS_REQUIRE(type != 0 && tensor->type_lanes == 1, error,
                "managed_tensor has DLPack type code %d, %d bits, %d lanes; expected a type of DAS_TYPE_... with one lane",
                tensor->type_code, tensor->type_bits, tensor->type_lanes);
    int64_t shape[8], strides[8], low, high, bytes;
    status = check_axes(tensor->ndim, tensor->shape, tensor->strides, shape, strides, error);
    if (status != DAS_OK)
        return status;
    for (int32_t k = 0; k < tensor->ndim; k++)
        if (shape[k] > 1 && strides[k] < 0)
            return das_fail(error, DAS_ERROR_UNSUPPORTED, "managed_tensor strides[%" PRId32 "] is %" PRId64 "; expected 0 or more", k,
                            strides[k]);
    if (!das_extent(0, tensor->ndim, shape, strides, &low, &high) ||
        __builtin_mul_overflow(high, (int64_t)das_type_bytes(type), &bytes))
        return das_fail(error, DAS_ERROR_TOO_LARGE, "managed_tensor exceeds 2^63 bytes");
    DAS_REQUIRE(tensor->data != NULL, error, "managed_tensor has data NULL; expected memory of the device");

    const char *kind = import_kind(device);
    bool address = strcmp(kind, "opencl") != 0;
    if (address && tensor->byte_offset > UINT64_MAX - (uintptr_t)tensor->data)
        return das_fail(error, DAS_ERROR_TOO_LARGE, "managed_tensor has byte_offset %" PRIu64 ", beyond the address space",
                        tensor->byte_offset);
    uint64_t native = (uintptr_t)tensor->data + (address ? tensor->byte_offset : 0);
    status = import(device, kind, native, "managed_tensor", (uint64_t)bytes, address ? 0 : tensor->byte_offset, release_tensor,
                    tensor, buffer, error);
    if (status != DAS_OK)
        return status;
    das_buffer *made = *buffer;
    made->described = true;
    made->type = type;
    made->ndim = tensor->ndim;
    memcpy(made->shape, shape, (size_t)tensor->ndim * sizeof *shape);
    memcpy(made->strides, strides, (size_t)tensor->ndim * sizeof *strides);
    return DAS_OK;
}

das_status das_buffer_describe(das_buffer *buffer, das_type type, int32_t ndim, const int64_t *shape, const int64_t *strides,
                               das_error *error)
{
    DAS_REQUIRE_POINTER(buffer, error);
    if (type == 0 && ndim == 0) {
        buffer->described = false;
        return DAS_OK;
    }
    DAS_REQUIRE(das_type_bytes(type) != 0, error, "type is %" PRId32 "; expected DAS_TYPE_I8 to DAS_TYPE_CF64", type);
    int64_t checked_shape[8], checked_strides[8];
    das_status status = check_axes(ndim, shape, strides, checked_shape, checked_strides, error);
    if (status != DAS_OK)
        return status;
    buffer->described = true;
    buffer->type = type;
    buffer->ndim = ndim;
    memcpy(buffer->shape, checked_shape, (size_t)ndim * sizeof *shape);
    memcpy(buffer->strides, checked_strides, (size_t)ndim * sizeof *shape);
    return DAS_OK;
}

/* Keeps the axes that matter; returns how many. */
static int32_t essential_axes(int32_t ndim, const int64_t *shape, const int64_t *strides, int64_t *out_shape,
                              int64_t *out_strides)
{
    int32_t count = 0;
    for (int32_t k = 0; k < ndim; k++)
        if (shape[k] > 1 && strides[k] != 0) {
            out_shape[count] = shape[k];
            out_strides[count++] = strides[k];
        }
    return count;
}

static void print_axes(char *text, size_t size, das_type type, int32_t ndim, const int64_t *shape, const int64_t *strides)
{
    int used = snprintf(text, size, "%s", das_type_name(type));
    for (int32_t k = 0; k < ndim && used > 0 && (size_t)used < size; k++)
        used += snprintf(text + used, size - (size_t)used, " %" PRId64 "(stride %" PRId64 ")", shape[k], strides[k]);
}

das_status das_buffer_match(const das_buffer *buffer, const char *name, das_type type, int32_t ndim, const int64_t *shape,
                            const int64_t *strides, das_error *error)
{
    if (!buffer->described)
        return DAS_OK;
    int64_t have_shape[8], have_strides[8], want_shape[8], want_strides[8];
    das_type have_type = buffer->type;
    int32_t have_ndim = buffer->ndim;
    memcpy(have_strides, buffer->strides, sizeof have_strides);
    /* Pairs of reals for a complex element: [..., 2] with every other stride even. */
    das_type pair = type == DAS_TYPE_CI16   ? DAS_TYPE_I16
                    : type == DAS_TYPE_CF16 ? DAS_TYPE_F16
                    : type == DAS_TYPE_CF32 ? DAS_TYPE_F32
                    : type == DAS_TYPE_CF64 ? DAS_TYPE_F64
                                            : 0;
    if (have_type == pair && have_ndim > 0 && buffer->shape[have_ndim - 1] == 2 && have_strides[have_ndim - 1] == 1) {
        bool even = true;
        for (int32_t k = 0; k < have_ndim - 1; k++)
            even = even && have_strides[k] % 2 == 0;
        if (even) {
            have_ndim--;
            have_type = type;
            for (int32_t k = 0; k < have_ndim; k++)
                have_strides[k] /= 2;
        }
    }
    int32_t have = essential_axes(have_ndim, buffer->shape, have_strides, have_shape, have_strides);
    int32_t want = essential_axes(ndim, shape, strides, want_shape, want_strides);
    bool same = have_type == type && have == want;
    for (int32_t k = 0; same && k < want; k++)
        same = have_shape[k] == want_shape[k] && have_strides[k] == want_strides[k];
    if (same)
        return DAS_OK;
    char have_text[220], want_text[220];
    print_axes(have_text, sizeof have_text, have_type, have, have_shape, have_strides);
    print_axes(want_text, sizeof want_text, type, want, want_shape, want_strides);
    return das_fail(error, DAS_ERROR_ARGUMENT, "%s is described as %s; expected %s", name, have_text, want_text);
}

uint64_t das_buffer_bytes(const das_buffer *buffer)
{
    return buffer != NULL ? buffer->bytes : 0;
}

void *das_buffer_host_pointer(const das_buffer *buffer)
{
    return buffer != NULL ? buffer->host_pointer : NULL;
}

/* Checks a transfer; on DAS_OK *queue is the queue to use, with device->private_mutex held if it was NULL. */
static das_status begin_transfer(das_queue **queue, das_buffer *buffer, uint64_t offset, const void *pointer, uint64_t bytes,
                                 das_error *error)
{
    DAS_REQUIRE_POINTER(buffer, error);
    DAS_REQUIRE_POINTER(pointer, error);
    das_device *device = buffer->device;
    if (*queue != NULL && (*queue)->device != device)
        return das_fail(error, DAS_ERROR_WRONG_DEVICE, "buffer belongs to another device than queue");
    DAS_REQUIRE(offset <= buffer->bytes, error, "offset is %" PRIu64 "; expected 0 to %" PRIu64 ", the buffer's size", offset,
                buffer->bytes);
    DAS_REQUIRE(bytes <= buffer->bytes - offset, error, "bytes is %" PRIu64 " at offset %" PRIu64 "; expected at most %" PRIu64, bytes,
                offset, buffer->bytes - offset);
    das_status status = das_device_check(device, error);
    if (status != DAS_OK)
        return status;
    if (*queue != NULL)
        return das_queue_pending(*queue, error);

    pthread_mutex_lock(&device->private_mutex);
    if (device->private_queue == NULL) {
        das_queue *made = NULL;
        status = das_queue_create(device, &made, error);
        if (status != DAS_OK) {
            pthread_mutex_unlock(&device->private_mutex);
            return status;
        }
        /* It belongs to the device and must not keep it alive. */
        das_device_unretain(device);
        device->private_queue = made;
    }
    *queue = device->private_queue;
    return DAS_OK;
}

static das_status end_transfer(das_queue *queue, bool private, das_status status, const das_error *failure, das_error *error)
{
    if (!private) {
        if (status != DAS_OK)
            das_fail(error, status, "%s", failure->message);
        return das_queue_keep(queue, status, failure);
    }
    if (status == DAS_OK)
        status = das_queue_wait(queue, error);
    else
        das_fail(error, status, "%s", failure->message);
    pthread_mutex_unlock(&queue->device->private_mutex);
    return status;
}

das_status das_buffer_upload(das_queue *queue, das_buffer *buffer, uint64_t offset, const void *pointer, uint64_t bytes,
                             das_error *error)
{
    das_error failure = DAS_ERROR_INIT;
    bool private = queue == NULL;
    das_status status = begin_transfer(&queue, buffer, offset, pointer, bytes, error);
    if (status != DAS_OK)
        return status;
    das_users_add(&buffer->users, queue);
    if (bytes > 0)
        status = buffer->device->backend->upload(queue, buffer, offset, pointer, bytes, &failure);
    return end_transfer(queue, private, status, &failure, error);
}

das_status das_buffer_download(das_queue *queue, das_buffer *buffer, uint64_t offset, void *pointer, uint64_t bytes,
                               das_error *error)
{
    das_error failure = DAS_ERROR_INIT;
    bool private = queue == NULL;
    das_status status = begin_transfer(&queue, buffer, offset, pointer, bytes, error);
    if (status != DAS_OK)
        return status;
    das_users_add(&buffer->users, queue);
    if (bytes > 0)
        status = buffer->device->backend->download(queue, buffer, offset, pointer, bytes, &failure);
    return end_transfer(queue, private, status, &failure, error);
}

void das_buffer_destroy(das_buffer **buffer)
{
    if (buffer == NULL || *buffer == NULL)
        return;
    das_buffer *old = *buffer;
    das_device *device = old->device;
    *buffer = NULL;
    das_users_wait(device, &old->users);
    if (das_device_reachable(device))
        device->backend->buffer_destroy(old);
    if (old->release != NULL)
        old->release(old->release_context);
    das_device_release(device, old);
    das_device_unretain(device);
}
