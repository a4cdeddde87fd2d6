/* The CPU backend: work is done within the call, buffers are host memory. */
#include "cpu_backend.h"
#include "frontend.h" /* das_available_threads() */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* ---- device ---- */

static void describe(das_device_info *info, das_cpu_isa isa, const das_cpu_features *features, int64_t threads)
{
    uint32_t struct_size = info->struct_size;
    memset(info, 0, sizeof *info);
    info->struct_size = struct_size;
    info->has_double = 1;
    info->compute_units = (int32_t)threads;
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    info->memory_bytes = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
    info->max_buffer_bytes = SIZE_MAX / 2;
    snprintf(info->name, sizeof info->name, "cpu");
    snprintf(info->description, sizeof info->description, "%s, %s, %lld threads", features->model, das_cpu_isa_name(isa),
             (long long)threads);
}

static das_status cpu_device_count(int32_t *count, das_error *error)
{
    (void)error;
    *count = 1;
    return DAS_OK;
}

static const char isa_variable[] = "DAS_CPU_ISA";

/* The instruction set asked for by name, which must be one this processor has. */
static das_status choose_isa(const char *argument, const char *name, const das_cpu_features *features, das_cpu_isa *isa,
                             das_error *error)
{
    *isa = das_cpu_best(features);
    if (name == NULL || name[0] == '\0')
        return DAS_OK;
    for (int k = 0; k < DAS_CPU_ISA_COUNT; k++) {
        if (strcmp(name, das_cpu_isa_name((das_cpu_isa)k)) != 0)
            continue;
        if (!features->has[k])
            return das_fail(error, DAS_ERROR_UNSUPPORTED, "%s is \"%s\"; this processor (%s) lacks it", argument, name,
                            features->model);
        *isa = (das_cpu_isa)k;
        return DAS_OK;
    }
    return das_fail(error, DAS_ERROR_UNSUPPORTED, "%s is \"%.40s\"; expected \"scalar\", \"avx2\", \"avx512\" or \"neon\"",
                    argument, name);
}

static das_status cpu_device_list(int32_t index, das_device_info *info, das_error *error)
{
    (void)index;
    (void)error;
    das_cpu_features features;
    das_cpu_isa isa;
    das_cpu_detect(&features);
    if (choose_isa(isa_variable, getenv(isa_variable), &features, &isa, NULL) != DAS_OK)
        isa = das_cpu_best(&features);
    describe(info, isa, &features, das_available_threads());
    return DAS_OK;
}

static das_status cpu_device_open(das_device *device, int32_t index, const das_native *native, das_error *error)
{
    (void)index;
    (void)native;
    das_cpu_features features;
    das_cpu_detect(&features);
    bool by_option = device->host.isa[0] != '\0';
    das_cpu_isa isa;
    das_status status = choose_isa(by_option ? "isa" : isa_variable, by_option ? device->host.isa : getenv(isa_variable),
                                   &features, &isa, error);
    if (status != DAS_OK)
        return status;
    das_cpu_device *cpu = das_device_allocate(device, sizeof *cpu);
    if (cpu == NULL)
        return das_fail(error, DAS_ERROR_OUT_OF_MEMORY, "out of memory for a device (%zu bytes)", sizeof *cpu);
    cpu->isa = isa;
    device->impl = cpu;
    describe(&device->info, isa, &features, das_parallel_width(device));
    return DAS_OK;
}

static void cpu_device_close(das_device *device)
{
    das_device_release(device, device->impl);
    device->impl = NULL;
}

static int32_t cpu_device_auto(void)
{
    return 0;
}

/* ---- buffer ---- */

void *das_cpu_allocate(das_device *device, uint64_t bytes)
{
    const uint64_t page = 4096, worth = (uint64_t)1 << 23;
    char *memory = das_device_allocate(device, bytes);
    if (memory != NULL && bytes >= worth && device->host.allocate == NULL) {
        const uint64_t skip = (page - (uintptr_t)memory % page) % page;
        (void)madvise(memory + skip, (size_t)((bytes - skip) / page * page), MADV_HUGEPAGE);
    }
    return memory;
}

static das_status cpu_buffer_create(das_buffer *buffer, das_error *error)
{
    void *memory = das_cpu_allocate(buffer->device, buffer->bytes);
    if (memory == NULL)
        return das_fail(error, DAS_ERROR_OUT_OF_MEMORY, "out of memory for a buffer of %llu bytes",
                        (unsigned long long)buffer->bytes);
    buffer->impl = memory;
    buffer->host_pointer = memory;
    return DAS_OK;
}

static das_status cpu_buffer_import(das_buffer *buffer, uint64_t native, das_error *error)
{
    (void)error;
    buffer->impl = NULL;
    buffer->host_pointer = (void *)(uintptr_t)native;
    return DAS_OK;
}

static void cpu_buffer_destroy(das_buffer *buffer)
{
    das_device_release(buffer->device, buffer->impl);
    buffer->impl = NULL;
    buffer->host_pointer = NULL;
}

/* ---- queue: nothing is ever on its way ---- */

static das_status cpu_queue_create(das_queue *queue, das_error *error)
{
    (void)error;
    queue->impl = NULL;
    return DAS_OK;
}

static void cpu_queue_destroy(das_queue *queue)
{
    (void)queue;
}

static das_status cpu_queue_wait(das_queue *queue, das_error *error)
{
    (void)queue;
    (void)error;
    return DAS_OK;
}

static das_status cpu_queue_wait_event(das_queue *queue, das_event *event, das_error *error)
{
    (void)queue;
    (void)event;
    (void)error;
    return DAS_OK;
}

/* ---- event: a time of the monotonic clock ---- */

static das_status cpu_event_create(das_event *event, das_error *error)
{
    struct timespec *time = das_device_allocate(event->device, sizeof *time);
    if (time == NULL)
        return das_fail(error, DAS_ERROR_OUT_OF_MEMORY, "out of memory for an event (%zu bytes)", sizeof *time);
    memset(time, 0, sizeof *time);
    event->impl = time;
    return DAS_OK;
}

static void cpu_event_destroy(das_event *event)
{
    das_device_release(event->device, event->impl);
    event->impl = NULL;
}

static das_status cpu_event_record(das_event *event, das_queue *queue, das_error *error)
{
    (void)queue;
    (void)error;
    clock_gettime(CLOCK_MONOTONIC, event->impl);
    return DAS_OK;
}

static das_status cpu_event_passed(das_event *event, das_error *error)
{
    (void)event;
    (void)error;
    return DAS_OK;
}

static das_status cpu_event_elapsed(das_event *start, das_event *stop, double *milliseconds, das_error *error)
{
    (void)error;
    const struct timespec *from = start->impl, *to = stop->impl;
    *milliseconds = (double)(to->tv_sec - from->tv_sec) * 1e3 + (double)(to->tv_nsec - from->tv_nsec) * 1e-6;
    return DAS_OK;
}

/* ---- copies ---- */

static das_status cpu_upload(das_queue *queue, das_buffer *buffer, uint64_t offset, const void *pointer, uint64_t bytes,
                             das_error *error)
{
    (void)queue;
    (void)error;
    memmove((char *)buffer->host_pointer + offset, pointer, (size_t)bytes);
    return DAS_OK;
}

static das_status cpu_download(das_queue *queue, das_buffer *buffer, uint64_t offset, void *pointer, uint64_t bytes,
                               das_error *error)
{
    (void)queue;
    (void)error;
    memmove(pointer, (const char *)buffer->host_pointer + offset, (size_t)bytes);
    return DAS_OK;
}

const das_backend das_backend_cpu = {
    .size = sizeof(das_backend),
    .version = DAS_BACKEND_VERSION,
    .name = "cpu",
    .built = true,
    .fork_safe = true,
    .host_memory = true,
    .device_count = cpu_device_count,
    .device_list = cpu_device_list,
    .device_open = cpu_device_open,
    .device_close = cpu_device_close,
    .device_auto = cpu_device_auto,
    .buffer_create = cpu_buffer_create,
    .buffer_import = cpu_buffer_import,
    .buffer_destroy = cpu_buffer_destroy,
    .queue_create = cpu_queue_create,
    .queue_import = NULL,
    .queue_destroy = cpu_queue_destroy,
    .queue_wait = cpu_queue_wait,
    .queue_wait_event = cpu_queue_wait_event,
    .event_create = cpu_event_create,
    .event_destroy = cpu_event_destroy,
    .event_record = cpu_event_record,
    .event_query = cpu_event_passed,
    .event_wait = cpu_event_passed,
    .event_elapsed = cpu_event_elapsed,
    .upload = cpu_upload,
    .download = cpu_download,
    .plan_query = das_cpu_plan_query,
    .plan_create = das_cpu_plan_create,
    .plan_destroy = das_cpu_plan_destroy,
    .slot_create = das_cpu_slot_create,
    .slot_destroy = das_cpu_slot_destroy,
    .reconstruct = das_cpu_reconstruct,
};
