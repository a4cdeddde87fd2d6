#include "frontend.h"

#include <inttypes.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct das_device_options {
    das_host host;
};

das_status das_device_options_create(das_device_options **options, das_error *error)
{
    DAS_REQUIRE_POINTER(options, error);
    *options = das_calloc(1, sizeof **options);
    return *options != NULL ? DAS_OK : das_fail_memory(error, "device options", sizeof **options);
}

void das_device_options_destroy(das_device_options **options)
{
    if (options == NULL)
        return;
    free(*options);
    *options = NULL;
}

das_status das_device_options_set_log(das_device_options *options, das_log_function *log, void *context, das_error *error)
{
    DAS_REQUIRE_POINTER(options, error);
    options->host.log = log;
    options->host.log_context = context;
    return DAS_OK;
}

das_status das_device_options_set_allocator(das_device_options *options, das_allocate_function *allocate,
                                            das_release_function *release, void *context, das_error *error)
{
    DAS_REQUIRE_POINTER(options, error);
    DAS_REQUIRE((allocate == NULL) == (release == NULL), error, "%s is NULL; expected allocate and release both set or both NULL",
                allocate == NULL ? "allocate" : "release");
    options->host.allocate = allocate;
    options->host.release = release;
    options->host.allocator_context = context;
    return DAS_OK;
}

das_status das_device_options_set_runner(das_device_options *options, das_runner_function *run, void *context, das_error *error)
{
    DAS_REQUIRE_POINTER(options, error);
    options->host.run = run;
    options->host.run_context = context;
    return DAS_OK;
}

das_status das_device_options_set_thread_count(das_device_options *options, int64_t count, das_error *error)
{
    DAS_REQUIRE_POINTER(options, error);
    DAS_REQUIRE(count >= 0 && count <= 1024, error, "count is %" PRId64 "; expected 0 (automatic) to 1024 threads", count);
    options->host.thread_count = count;
    return DAS_OK;
}

das_status das_device_options_set_isa(das_device_options *options, const char *isa, das_error *error)
{
    static const char *const known[] = {"scalar", "avx2", "avx512", "neon"};
    DAS_REQUIRE_POINTER(options, error);
    bool ok = isa == NULL;
    for (size_t i = 0; !ok && i < sizeof known / sizeof known[0]; i++)
        ok = strcmp(isa, known[i]) == 0;
    DAS_REQUIRE(ok, error, "isa is \"%.40s\"; expected \"scalar\", \"avx2\", \"avx512\" or \"neon\", or NULL", isa);
    if (isa == NULL)
        isa = "";
    memcpy(options->host.isa, isa, strlen(isa) + 1);
    return DAS_OK;
}

/* Backends, the extra one last. */
static const das_backend *backend_at(int32_t index)
{
    if (index < das_backend_count)
        return das_backends[index];
    return index == das_backend_count ? das_backend_extra : NULL;
}

static int32_t count_devices(const das_backend *backend)
{
    int32_t count = 0;
    if (backend->device_count(&count, NULL) != DAS_OK || count < 0)
        return 0;
    return count;
}

das_status das_device_count(int64_t *count, das_error *error)
{
    DAS_REQUIRE_POINTER(count, error);
    *count = 0;
    const das_backend *backend;
    for (int32_t i = 0; (backend = backend_at(i)) != NULL; i++)
        *count += count_devices(backend);
    return DAS_OK;
}

das_status das_device_list(int64_t index, das_device_info *info, das_error *error)
{
    DAS_REQUIRE_POINTER(info, error);
    DAS_REQUIRE(index >= 0, error, "index is %" PRId64 "; expected 0 or more", index);
    int64_t left = index;
    const das_backend *backend;
    for (int32_t i = 0; (backend = backend_at(i)) != NULL; i++) {
        int32_t count = count_devices(backend);
        if (left < count) {
            das_device_info found;
            memset(&found, 0, sizeof found);
            das_status status = backend->device_list((int32_t)left, &found, error);
            return status != DAS_OK ? status : das_copy_out(info, &found, sizeof found, "info", error);
        }
        left -= count;
    }
    return das_fail(error, DAS_ERROR_NO_DEVICE, "index is %" PRId64 "; expected less than %" PRId64 ", the number of devices", index, index - left);
}

static das_status open_on(const das_backend *backend, int32_t index, const das_native *native, const das_device_options *options,
                          das_device **out, das_error *error)
{
    das_host host;
    memset(&host, 0, sizeof host);
    if (options != NULL)
        host = options->host;
    if (host.thread_count == 0)
        host.thread_count = das_available_threads();

    /* Through the caller's allocator, like all that belongs to the device. */
    das_device proto = {.host = host};
    das_device *device = das_device_allocate(&proto, sizeof *device);
    if (device == NULL)
        return das_fail_memory(error, "a device", sizeof *device);
    memset(device, 0, sizeof *device);
    device->backend = backend;
    device->host = host;
    device->process = getpid();
    atomic_init(&device->locks_of, device->process);
    atomic_init(&device->references, 1);
    atomic_init(&device->lost, false);
    pthread_mutex_init(&device->mutex, NULL);
    pthread_mutex_init(&device->private_mutex, NULL);
    das_status status = backend->device_open(device, index, native, error);
    if (status != DAS_OK) {
        pthread_mutex_destroy(&device->mutex);
        pthread_mutex_destroy(&device->private_mutex);
        das_device_release(&proto, device);
        return status;
    }
    device->info.struct_size = sizeof device->info;
    *out = device;
    return DAS_OK;
}

static void log_passed_over(const das_device_options *options, const das_backend *backend, const das_error *why)
{
    das_device proto;
    memset(&proto, 0, sizeof proto);
    if (options != NULL)
        proto.host = options->host;
    das_log(&proto, DAS_LOG_INFO, "auto: passing over %s: %s", backend->name,
            !backend->built                ? "not built into this library"
            : why->status != DAS_OK        ? why->message
            : backend == &das_backend_cuda ? "no device"
                                           : "no GPU; CPU devices are left to those who name them");
}

/* CUDA, then an OpenCL GPU, then the CPU. */
static das_status open_auto(const das_device_options *options, das_device **device, das_error *error)
{
    const das_backend *const order[] = {&das_backend_cuda, &das_backend_opencl};
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        das_error why = DAS_ERROR_INIT;
        int32_t index = order[i]->built ? order[i]->device_auto() : -1;
        if (index >= 0 && open_on(order[i], index, NULL, options, device, &why) == DAS_OK)
            return DAS_OK;
        log_passed_over(options, order[i], &why);
    }
    return open_on(&das_backend_cpu, 0, NULL, options, device, error);
}

das_status das_device_open(const char *name, const das_device_options *options, das_device **device, das_error *error)
{
    DAS_REQUIRE_POINTER(device, error);
    *device = NULL;
    if (name == NULL || strcmp(name, "auto") == 0)
        return open_auto(options, device, error);

    size_t length = strcspn(name, ":");
    const das_backend *backend = NULL;
    for (int32_t i = 0; (backend = backend_at(i)) != NULL; i++)
        if (strlen(backend->name) == length && strncmp(name, backend->name, length) == 0)
            break;
    const char *digits = name + length;
    uint32_t index = 0;
    bool ok = backend != NULL;
    if (*digits == ':') {
        size_t count = strspn(++digits, "0123456789");
        ok = ok && count >= 1 && count <= 6 && digits[count] == '\0';
        for (size_t i = 0; ok && i < count; i++)
            index = index * 10 + (uint32_t)(digits[i] - '0');
    }
    DAS_REQUIRE(ok, error, "name is \"%.80s\"; expected \"auto\", \"cpu\", \"cuda\", \"cuda:N\", \"opencl\" or \"opencl:N\"", name);
    if (backend->built) {
        int32_t count = 0;
        das_error why = DAS_ERROR_INIT;
        das_status status = backend->device_count(&count, &why);
        if (status == DAS_OK)
            status = why.status;
        if (status != DAS_OK)
            return das_fail(error, status, "name is \"%s\": %s", name, why.message);
        if ((int64_t)index >= count)
            return das_fail(error, DAS_ERROR_NO_DEVICE, "name is \"%s\"; the number of %s devices is %" PRId32, name,
                            backend->name, count);
    }
    return open_on(backend, (int32_t)index, NULL, options, device, error);
}

das_status das_device_open_cuda(void *cu_context, const das_device_options *options, das_device **device, das_error *error)
{
    DAS_REQUIRE_POINTER(device, error);
    *device = NULL;
    DAS_REQUIRE_POINTER(cu_context, error);
    das_native native = {.cu_context = cu_context};
    return open_on(&das_backend_cuda, 0, &native, options, device, error);
}

das_status das_device_open_opencl(void *cl_context, void *cl_device_id, const das_device_options *options, das_device **device,
                                  das_error *error)
{
    DAS_REQUIRE_POINTER(device, error);
    *device = NULL;
    DAS_REQUIRE_POINTER(cl_context, error);
    DAS_REQUIRE_POINTER(cl_device_id, error);
    das_native native = {.cl_context = cl_context, .cl_device = cl_device_id};
    return open_on(&das_backend_opencl, 0, &native, options, device, error);
}

das_status das_device_get_info(const das_device *device, das_device_info *info, das_error *error)
{
    DAS_REQUIRE_POINTER(device, error);
    return das_copy_out(info, &device->info, sizeof device->info, "info", error);
}

void das_device_destroy(das_device **device)
{
    if (device == NULL || *device == NULL)
        return;
    das_device_unretain(*device);
    *device = NULL;
}

void das_device_retain(das_device *device)
{
    atomic_fetch_add(&device->references, 1);
}

void das_device_unretain(das_device *device)
{
    if (atomic_fetch_sub(&device->references, 1) != 1)
        return;
    if (device->private_queue != NULL) {
        /* Not das_queue_destroy(): the private queue holds no reference. */
        das_queue *queue = device->private_queue;
        if (das_device_reachable(device))
            device->backend->queue_destroy(queue);
        pthread_mutex_destroy(&queue->mutex);
        das_device_release(device, queue);
    }
    das_pool_destroy(device);
    if (das_device_reachable(device))
        device->backend->device_close(device);
    pthread_mutex_destroy(&device->mutex);
    pthread_mutex_destroy(&device->private_mutex);
    das_device proto = {.host = device->host};
    das_device_release(&proto, device);
}

bool das_locks_inherited(das_lock_owner *owner)
{
    return das_locks_inherited_by(owner, getpid());
}

bool das_locks_inherited_by(das_lock_owner *owner, int64_t here)
{
    long long found = atomic_load(owner);
    while (found != here) { /* -here: another thread is at it */
        if (found != -here && atomic_compare_exchange_strong(owner, &found, -here))
            return true;
        sched_yield();
        found = atomic_load(owner);
    }
    return false;
}

void das_locks_renewed(das_lock_owner *owner)
{
    atomic_store(owner, -atomic_load(owner));
}

bool das_device_reachable(das_device *device)
{
    const int64_t here = getpid();
    if (das_locks_inherited_by(&device->locks_of, here)) {
        pthread_mutex_init(&device->mutex, NULL);
        pthread_mutex_init(&device->private_mutex, NULL);
        for (das_queue *queue = device->queues; queue != NULL; queue = queue->next)
            pthread_mutex_init(&queue->mutex, NULL);
        das_locks_renewed(&device->locks_of);
    }
    return device->backend->fork_safe || device->process == here;
}

das_status das_device_check(das_device *device, das_error *error)
{
    if (!das_device_reachable(device))
        return das_fail(error, DAS_ERROR_FORKED, "device \"%s\" was opened before fork(); open it again in the child",
                        device->info.name);
    if (atomic_load(&device->lost))
        return das_fail(error, DAS_ERROR_DEVICE_LOST, "device \"%s\" has failed; destroy its objects and open it again",
                        device->info.name);
    return DAS_OK;
}

void das_device_set_lost(das_device *device)
{
    atomic_store(&device->lost, true);
}

void das_users_add(das_users *users, das_queue *queue)
{
    pthread_mutex_lock(&queue->device->mutex);
    int32_t known = users->count <= DAS_USERS ? users->count : 0;
    bool found = users->count > DAS_USERS;
    for (int32_t i = 0; i < known; i++)
        found = found || users->queue[i] == queue->serial;
    if (!found) {
        if (users->count < DAS_USERS)
            users->queue[users->count] = queue->serial;
        users->count++;
    }
    pthread_mutex_unlock(&queue->device->mutex);
}

static bool is_user(const das_users *users, const das_queue *queue)
{
    if (users->count > DAS_USERS)
        return true;
    for (int32_t i = 0; i < users->count; i++)
        if (users->queue[i] == queue->serial)
            return true;
    return false;
}

void das_users_wait(das_device *device, const das_users *users)
{
    if (users->count == 0 || !das_device_reachable(device))
        return;
    /* Queues are few; one is waited for without the lock, kept alive by a reference, and the search resumes behind its
     * serial number. */
    uint64_t above = 0;
    for (;;) {
        pthread_mutex_lock(&device->mutex);
        das_queue *next = NULL;
        for (das_queue *queue = device->queues; queue != NULL; queue = queue->next)
            if (queue->serial > above && is_user(users, queue) && (next == NULL || queue->serial < next->serial))
                next = queue;
        if (next != NULL)
            next->references++;
        pthread_mutex_unlock(&device->mutex);
        if (next == NULL)
            return;
        above = next->serial;
        device->backend->queue_wait(next, NULL);
        das_queue_unretain(next);
    }
}
