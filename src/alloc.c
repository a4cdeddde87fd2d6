#include "frontend.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { DAS_ALIGNMENT = 64 };

void *das_calloc(int64_t count, size_t size)
{
    if (count < 0 || (uint64_t)count > SIZE_MAX / size)
        return NULL;
    return calloc(count > 0 ? (size_t)count : 1, size);
}

das_status das_duplicate(const void *values, int64_t count, size_t size, void **copy, das_error *error)
{
    *copy = NULL;
    if (count == 0)
        return DAS_OK;
    void *memory = count > 0 && (uint64_t)count <= SIZE_MAX / 2 / size ? malloc((size_t)count * size) : NULL;
    if (memory == NULL)
        return das_fail(error, DAS_ERROR_OUT_OF_MEMORY, "out of memory for %" PRId64 " elements of %zu bytes", count, size);
    memcpy(memory, values, (size_t)count * size);
    *copy = memory;
    return DAS_OK;
}

das_status das_fail_memory(das_error *error, const char *what, uint64_t bytes)
{
    return das_fail(error, DAS_ERROR_OUT_OF_MEMORY, "out of memory for %s (%" PRIu64 " bytes)", what, bytes);
}

void *das_device_allocate(das_device *device, uint64_t bytes)
{
    /* aligned_alloc wants a multiple of the alignment. */
    if (bytes > SIZE_MAX / 2)
        return NULL;
    size_t rounded = ((size_t)bytes + DAS_ALIGNMENT - 1) / DAS_ALIGNMENT * DAS_ALIGNMENT;
    if (rounded == 0)
        rounded = DAS_ALIGNMENT;
    if (device->host.allocate != NULL)
        return device->host.allocate(device->host.allocator_context, rounded, DAS_ALIGNMENT);
    return aligned_alloc(DAS_ALIGNMENT, rounded);
}

void das_device_release(das_device *device, void *pointer)
{
    if (pointer == NULL)
        return;
    if (device->host.release != NULL)
        device->host.release(device->host.allocator_context, pointer);
    else
        free(pointer);
}
