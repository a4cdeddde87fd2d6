#include "mock_backend.h"

#include "../src/backend.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { RING = 1024, DEVICES = 2, CANARY = 0xC7, POISON = 0xFF };

typedef struct mock_device {
    das_device *outer;
    das_device *inner;
    uint64_t memory, memory_limit; /* of plans and slots */
    double clock_ms;
    bool held;
    int64_t objects;
} mock_device;

typedef struct mock_buffer {
    unsigned char *storage; /* known to nobody else, but for DAS_MEMORY_HOST */
    size_t mapped, usable;  /* bytes: with and without the last page, which faults; 0 for imports */
    void *address;          /* of the device: faults */
    das_buffer inner;
    int64_t pending;
} mock_buffer;

typedef struct mock_event {
    int64_t recorded, passed; /* generations */
    double time_ms;
    int64_t pending;
} mock_event;

typedef struct mock_slot {
    das_slot inner;
    bool running;
} mock_slot;

typedef struct mock_plan {
    das_plan inner;
    int64_t slots, pending;
} mock_plan;

typedef enum command_kind { COMMAND_UPLOAD, COMMAND_DOWNLOAD, COMMAND_PACK, COMMAND_SUM, COMMAND_RECORD, COMMAND_WAIT } command_kind;

typedef struct command {
    command_kind kind;
    mock_buffer *buffer, *image;
    uint64_t offset, bytes;
    const void *source;
    void *target;
    mock_event *event;
    int64_t generation;
    mock_plan *plan;
    mock_slot *slot;
    das_work work;
} command;

typedef struct mock_queue {
    das_queue *outer;
    das_queue *inner;
    mock_device *device;
    pthread_t worker;
    command ring[RING];
    int64_t given, done; /* commands since the start */
    bool held, quit, blocked; /* blocked: by an event */
    int64_t allowed; /* commands that may start in spite of being held */
    int64_t waiters; /* threads in queue_wait with work left */
    atomic_int users;
} mock_queue;

/* One lock for everything, and one condition for every change: simple, and fast enough for tests. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int64_t live;
static int64_t calls[DAS_MOCK_CALLS];
static struct {
    das_mock_call call;
    int64_t left; /* 0: not armed */
    das_status status;
    int64_t command_left;
    das_status command_status;
    bool happened;
} plot;
static bool without_double;
static int64_t breaches;
static char first_breach[256];

static const char *const call_names[DAS_MOCK_CALLS] = {
    "any",          "device_count", "device_list",      "device_open",  "buffer_create", "buffer_import", "queue_create",
    "queue_import", "queue_wait",   "queue_wait_event", "event_create", "event_record",  "event_query",   "event_wait",
    "event_elapsed", "upload",      "download",         "plan_query",   "plan_create",   "slot_create",   "reconstruct"};

const char *das_mock_call_name(das_mock_call call)
{
    return call_names[call];
}

/* ---- breaches ---- */

static void breach_locked(const char *call, const char *what)
{
    if (breaches++ == 0)
        snprintf(first_breach, sizeof first_breach, "%s: %s", call, what);
}

static bool require(bool condition, const char *call, const char *what)
{
    if (!condition) {
        pthread_mutex_lock(&lock);
        breach_locked(call, what);
        pthread_mutex_unlock(&lock);
    }
    return condition;
}

int64_t das_mock_breaches(void)
{
    pthread_mutex_lock(&lock);
    int64_t n = breaches;
    pthread_mutex_unlock(&lock);
    return n;
}

const char *das_mock_first_breach(void)
{
    return first_breach;
}

/* ---- failing ---- */

static das_status enter(das_mock_call call, das_error *error)
{
    das_status status = DAS_OK;
    pthread_mutex_lock(&lock);
    calls[DAS_MOCK_ANY]++;
    calls[call]++;
    if (plot.left > 0 && (plot.call == DAS_MOCK_ANY || plot.call == call) && --plot.left == 0) {
        status = plot.status;
        plot.happened = true;
    }
    pthread_mutex_unlock(&lock);
    return status == DAS_OK ? DAS_OK : das_fail(error, status, "mock: %s was told to fail", call_names[call]);
}

void das_mock_fail(das_mock_call call, int64_t nth, das_status status)
{
    pthread_mutex_lock(&lock);
    plot.call = call;
    plot.left = nth;
    plot.status = status;
    plot.happened = false;
    pthread_mutex_unlock(&lock);
}

void das_mock_fail_command(int64_t nth, das_status status)
{
    pthread_mutex_lock(&lock);
    plot.command_left = nth;
    plot.command_status = status;
    plot.happened = false;
    pthread_mutex_unlock(&lock);
}

void das_mock_reset(void)
{
    pthread_mutex_lock(&lock);
    memset(&plot, 0, sizeof plot);
    memset(calls, 0, sizeof calls);
    pthread_mutex_unlock(&lock);
}

int64_t das_mock_count(das_mock_call call)
{
    pthread_mutex_lock(&lock);
    int64_t n = calls[call];
    pthread_mutex_unlock(&lock);
    return n;
}

bool das_mock_has_failed(void)
{
    pthread_mutex_lock(&lock);
    bool happened = plot.happened;
    pthread_mutex_unlock(&lock);
    return happened;
}

int64_t das_mock_live(void)
{
    pthread_mutex_lock(&lock);
    int64_t n = live;
    pthread_mutex_unlock(&lock);
    return n;
}

static void count_object(mock_device *device, int64_t change)
{
    pthread_mutex_lock(&lock);
    live += change;
    device->objects += change;
    pthread_mutex_unlock(&lock);
}

/* ---- device ---- */

/* The workers of the parent are not in a forked child, and what they waited for is no use to it. */
static void forget_parent(void)
{
    static pid_t process;
    if (process != getpid()) {
        pthread_mutex_init(&lock, NULL);
        pthread_cond_init(&changed, NULL);
        process = getpid();
    }
}

static das_status mock_device_count(int32_t *count, das_error *error)
{
    das_status status = enter(DAS_MOCK_DEVICE_COUNT, error);
    *count = status == DAS_OK ? DEVICES : 0;
    return status;
}

static void describe_device(int32_t index, das_device_info *info)
{
    info->is_gpu = 0;
    info->has_double = !without_double;
    info->compute_units = 1;
    info->memory_bytes = UINT64_C(1) << 34;
    info->max_buffer_bytes = UINT64_C(1) << 32;
    snprintf(info->name, sizeof info->name, "mock:%d", (int)index);
    snprintf(info->description, sizeof info->description, "device of the tests, number %d", (int)index);
}

static das_status mock_device_list(int32_t index, das_device_info *info, das_error *error)
{
    das_status status = enter(DAS_MOCK_DEVICE_LIST, error);
    require(index >= 0 && index < DEVICES, "device_list", "index out of range");
    if (status == DAS_OK)
        describe_device(index, info);
    return status;
}

/* What the CPU backend takes while a plan or a slot is made is device memory; the inner device's own objects are
 * not. Each block remembers in front of it what it counts for. */
static _Thread_local bool making_plan;

static void *device_memory_allocate(void *context, size_t bytes, size_t alignment)
{
    mock_device *device = context;
    size_t total = (bytes + alignment - 1) / alignment * alignment + alignment;
    size_t counted = making_plan ? bytes : 0;
    pthread_mutex_lock(&lock);
    bool fits = device->memory_limit == 0 || device->memory + counted <= device->memory_limit;
    pthread_mutex_unlock(&lock);
    unsigned char *start = fits && total > bytes ? aligned_alloc(alignment, total) : NULL;
    if (start == NULL)
        return NULL;
    unsigned char *pointer = start + alignment;
    size_t head[2] = {counted, alignment};
    memcpy(pointer - sizeof head, head, sizeof head);
    pthread_mutex_lock(&lock);
    device->memory += counted;
    pthread_mutex_unlock(&lock);
    return pointer;
}

static void device_memory_release(void *context, void *pointer)
{
    mock_device *device = context;
    size_t head[2];
    memcpy(head, (unsigned char *)pointer - sizeof head, sizeof head);
    pthread_mutex_lock(&lock);
    device->memory -= head[0];
    pthread_mutex_unlock(&lock);
    free((unsigned char *)pointer - head[1]);
}

static das_status mock_device_open(das_device *device, int32_t index, const das_native *native, das_error *error)
{
    forget_parent();
    das_status status = enter(DAS_MOCK_DEVICE_OPEN, error);
    if (status != DAS_OK)
        return status;
    if (index < 0 || index >= DEVICES)
        return das_fail(error, DAS_ERROR_NO_DEVICE, "name is \"mock:%d\": expected an index below %d", (int)index, (int)DEVICES);
    if (native != NULL && (native->cu_context || native->cl_context || native->cl_device))
        return das_fail(error, DAS_ERROR_UNSUPPORTED, "the mock device has no native objects");
    mock_device *mock = calloc(1, sizeof *mock);
    das_device_options *options = NULL;
    if (mock == NULL)
        return das_fail(error, DAS_ERROR_OUT_OF_MEMORY, "no memory for the mock device");
    mock->outer = device;
    status = das_device_options_create(&options, error);
    if (status == DAS_OK)
        status = das_device_options_set_allocator(options, device_memory_allocate, device_memory_release, mock, error);
    if (status == DAS_OK)
        status = das_device_options_set_thread_count(options, 1, error);
    if (status == DAS_OK)
        status = das_device_open("cpu", options, &mock->inner, error);
    das_device_options_destroy(&options);
    if (status != DAS_OK) {
        free(mock);
        return status;
    }
    pthread_mutex_lock(&lock);
    live++;
    pthread_mutex_unlock(&lock);
    device->impl = mock;
    describe_device(index, &device->info);
    return DAS_OK;
}

static void mock_device_close(das_device *device)
{
    mock_device *mock = device->impl;
    pthread_mutex_lock(&lock);
    if (mock->objects != 0)
        breach_locked("device_close", "objects of the device still exist");
    live--;
    pthread_mutex_unlock(&lock);
    das_device_destroy(&mock->inner);
    free(mock);
}

static int32_t mock_device_auto(void)
{
    return -1;
}

uint64_t das_mock_memory(const das_device *device)
{
    const mock_device *mock = device->impl;
    pthread_mutex_lock(&lock);
    uint64_t bytes = mock->memory;
    pthread_mutex_unlock(&lock);
    return bytes;
}

void das_mock_set_double(bool has_double)
{
    without_double = !has_double;
}

void das_mock_limit_memory(das_device *device, uint64_t bytes)
{
    mock_device *mock = device->impl;
    pthread_mutex_lock(&lock);
    mock->memory_limit = bytes;
    pthread_mutex_unlock(&lock);
}

/* ---- buffers ---- */

static das_status mock_buffer_create(das_buffer *buffer, das_error *error)
{
    das_status status = enter(DAS_MOCK_BUFFER_CREATE, error);
    if (status != DAS_OK)
        return status;
    mock_device *device = buffer->device->impl;
    require(buffer->bytes >= 1 && buffer->bytes <= buffer->device->info.max_buffer_bytes, "buffer_create", "bytes out of range");
    require(buffer->memory == DAS_MEMORY_DEVICE || buffer->memory == DAS_MEMORY_HOST, "buffer_create", "no such memory");

    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    mock_buffer *mock = calloc(1, sizeof *mock);
    if (mock == NULL)
        return das_fail(error, DAS_ERROR_OUT_OF_MEMORY, "no memory for the buffer object");
    mock->usable = ((size_t)buffer->bytes + page - 1) / page * page;
    mock->mapped = mock->usable + page;
    void *storage = mmap(NULL, mock->mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    void *address = mmap(NULL, mock->mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (storage != MAP_FAILED && address != MAP_FAILED && mprotect(storage, mock->usable, PROT_READ | PROT_WRITE) == 0) {
        mock->storage = storage;
        mock->address = address;
        /* Contents are undefined: make them harmful. Large buffers only at their ends. */
        size_t bytes = (size_t)buffer->bytes, part = bytes < (size_t)1 << 24 ? bytes : (size_t)1 << 20;
        memset(mock->storage, POISON, part);
        memset(mock->storage + bytes - part, POISON, part);
        memset(mock->storage + bytes, CANARY, mock->usable - bytes);
        mock->inner.device = device->inner;
        mock->inner.bytes = buffer->bytes;
        mock->inner.memory = DAS_MEMORY_DEVICE;
        mock->inner.imported = true;
        status = das_backend_cpu.buffer_import(&mock->inner, (uint64_t)(uintptr_t)storage, error);
    } else {
        status = das_fail(error, DAS_ERROR_OUT_OF_DEVICE_MEMORY, "the mock device has no %llu bytes",
                          (unsigned long long)buffer->bytes);
    }
    if (status != DAS_OK) {
        if (storage != MAP_FAILED)
            munmap(storage, mock->mapped);
        if (address != MAP_FAILED)
            munmap(address, mock->mapped);
        free(mock);
        return status;
    }
    if (buffer->memory == DAS_MEMORY_HOST)
        buffer->host_pointer = mock->storage;
    buffer->impl = mock;
    count_object(device, 1);
    return DAS_OK;
}

/* Memory of the caller, which the queues use later like any other. */
static das_status mock_buffer_import(das_buffer *buffer, uint64_t native, das_error *error)
{
    das_status status = enter(DAS_MOCK_BUFFER_IMPORT, error);
    mock_device *device = buffer->device->impl;
    require(native != 0 && buffer->bytes >= 1 && buffer->imported, "buffer_import", "not an import of any memory");
    if (status != DAS_OK)
        return status;
    mock_buffer *mock = calloc(1, sizeof *mock);
    if (mock == NULL)
        return das_fail(error, DAS_ERROR_OUT_OF_MEMORY, "no memory for the buffer object");
    mock->storage = mock->address = (void *)(uintptr_t)native;
    mock->inner.device = device->inner;
    mock->inner.bytes = buffer->bytes;
    mock->inner.imported = true;
    status = das_backend_cpu.buffer_import(&mock->inner, native, error);
    if (status != DAS_OK) {
        free(mock);
        return status;
    }
    buffer->impl = mock;
    count_object(device, 1);
    return DAS_OK;
}

static void mock_buffer_destroy(das_buffer *buffer)
{
    mock_buffer *mock = buffer->impl;
    pthread_mutex_lock(&lock);
    if (mock->pending != 0)
        breach_locked("buffer_destroy", "queued work still uses the buffer");
    while (mock->pending != 0)
        pthread_cond_wait(&changed, &lock);
    for (size_t i = (size_t)buffer->bytes; i < mock->usable; i++)
        if (mock->storage[i] != CANARY) {
            breach_locked("buffer_destroy", "bytes after the buffer were written");
            break;
        }
    pthread_mutex_unlock(&lock);
    das_backend_cpu.buffer_destroy(&mock->inner);
    if (mock->mapped != 0) {
        munmap(mock->storage, mock->mapped);
        munmap(mock->address, mock->mapped);
    }
    free(mock);
    count_object(buffer->device->impl, -1);
}

void *das_mock_device_pointer(const das_buffer *buffer)
{
    return ((mock_buffer *)buffer->impl)->address;
}

/* ---- queues: commands, and the thread that does them ---- */

/* Whether this command, about to start, is the one that was told to fail. Under the lock. */
static das_status command_failure(const command *c)
{
    if (c->kind == COMMAND_RECORD || c->kind == COMMAND_WAIT || c->kind == COMMAND_PACK)
        return DAS_OK;
    if (plot.command_left > 0 && --plot.command_left == 0) {
        plot.happened = true;
        return plot.command_status;
    }
    return DAS_OK;
}

static void sum(mock_queue *queue, command *c)
{
    das_error error = DAS_ERROR_INIT;
    das_work work = c->work;
    pthread_mutex_lock(&lock);
    if (c->slot->running)
        breach_locked("reconstruct", "two calls use one slot at the same time");
    c->slot->running = true;
    pthread_mutex_unlock(&lock);
    work.data = &c->buffer->inner;
    work.image = &c->image->inner;
    das_status status = das_backend_cpu.reconstruct(&c->plan->inner, &c->slot->inner, queue->inner, &work, &error);
    pthread_mutex_lock(&lock);
    c->slot->running = false;
    pthread_mutex_unlock(&lock);
    if (status == DAS_OK)
        status = das_queue_wait(queue->inner, &error);
    if (status != DAS_OK)
        das_queue_fail(queue->outer, status, "%s", error.message);
}

/* Called without the lock. */
static void perform(mock_queue *queue, command *c)
{
    switch (c->kind) {
    case COMMAND_UPLOAD:
        memcpy(c->buffer->storage + c->offset, c->source, (size_t)c->bytes);
        break;
    case COMMAND_DOWNLOAD:
        memcpy(c->target, c->buffer->storage + c->offset, (size_t)c->bytes);
        break;
    case COMMAND_SUM:
        sum(queue, c);
        break;
    case COMMAND_PACK:
    case COMMAND_RECORD:
    case COMMAND_WAIT:
        break;
    }
}

static void count_pending(const command *c, int64_t change)
{
    if (c->buffer != NULL)
        c->buffer->pending += change;
    if (c->image != NULL)
        c->image->pending += change;
    if (c->event != NULL)
        c->event->pending += change;
    if (c->plan != NULL)
        c->plan->pending += change;
}

static void *work_on_queue(void *argument)
{
    static const double milliseconds[] = {DAS_MOCK_UPLOAD_MS, DAS_MOCK_DOWNLOAD_MS, DAS_MOCK_PACK_MS, DAS_MOCK_SUM_MS, 0, 0};
    mock_queue *queue = argument;
    pthread_mutex_lock(&lock);
    for (;;) {
        while (queue->done == queue->given ? !queue->quit
                                           : (queue->held || queue->device->held) && queue->allowed == 0)
            pthread_cond_wait(&changed, &lock);
        if (queue->done == queue->given)
            break;
        if (queue->allowed > 0)
            queue->allowed--;
        command *c = &queue->ring[queue->done % RING];
        if (c->kind == COMMAND_WAIT && c->event->passed < c->generation) {
            queue->blocked = true;
            pthread_cond_broadcast(&changed);
            while (c->event->passed < c->generation)
                pthread_cond_wait(&changed, &lock);
            queue->blocked = false;
        }
        das_status failure = command_failure(c);
        pthread_mutex_unlock(&lock);

        if (failure == DAS_OK) {
            perform(queue, c);
        } else {
            if (failure == DAS_ERROR_DEVICE_LOST)
                das_device_set_lost(queue->outer->device);
            das_queue_fail(queue->outer, failure, "mock: a queued command was told to fail");
        }

        pthread_mutex_lock(&lock);
        queue->device->clock_ms += milliseconds[c->kind];
        if (c->kind == COMMAND_RECORD && c->event->passed < c->generation) {
            c->event->passed = c->generation;
            c->event->time_ms = queue->device->clock_ms;
        }
        count_pending(c, -1);
        queue->done++;
        pthread_cond_broadcast(&changed);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

static das_status mock_queue_create(das_queue *queue, das_error *error)
{
    das_status status = enter(DAS_MOCK_QUEUE_CREATE, error);
    if (status != DAS_OK)
        return status;
    mock_queue *mock = calloc(1, sizeof *mock);
    if (mock == NULL)
        return das_fail(error, DAS_ERROR_OUT_OF_MEMORY, "no memory for the queue");
    mock->outer = queue;
    mock->device = queue->device->impl;
    status = das_queue_create(mock->device->inner, &mock->inner, error);
    if (status == DAS_OK) {
        sigset_t all, before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        if (pthread_create(&mock->worker, NULL, work_on_queue, mock) != 0)
            status = das_fail(error, DAS_ERROR_OUT_OF_MEMORY, "no thread for the queue");
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    if (status != DAS_OK) {
        das_queue_destroy(&mock->inner);
        free(mock);
        return status;
    }
    queue->impl = mock;
    count_object(mock->device, 1);
    return DAS_OK;
}

static void mock_queue_destroy(das_queue *queue)
{
    mock_queue *mock = queue->impl;
    pthread_mutex_lock(&lock);
    if (mock->done != mock->given)
        breach_locked("queue_destroy", "the queue was not waited for");
    mock->quit = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    pthread_join(mock->worker, NULL);
    das_queue_destroy(&mock->inner);
    count_object(mock->device, -1);
    free(mock);
}

/* A queue is used by one thread at a time. */
static void use_queue(mock_queue *queue, const char *call)
{
    require(atomic_fetch_add(&queue->users, 1) == 0, call, "two threads use one queue at the same time");
}

static void leave_queue(mock_queue *queue)
{
    atomic_fetch_sub(&queue->users, 1);
}

/* All or none of the commands go into the queue. */
static das_status give(das_queue *queue, const command *commands, int64_t count, das_error *error)
{
    mock_queue *mock = queue->impl;
    pthread_mutex_lock(&lock);
    bool room = mock->given - mock->done + count <= RING;
    for (int64_t i = 0; room && i < count; i++) {
        command *c = &mock->ring[mock->given++ % RING];
        *c = commands[i];
        if (c->kind == COMMAND_RECORD)
            c->generation = ++c->event->recorded;
        else if (c->kind == COMMAND_WAIT)
            c->generation = c->event->recorded;
        count_pending(c, 1);
    }
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return room ? DAS_OK : das_fail(error, DAS_ERROR_INTERNAL, "the mock queue holds %d commands at most", (int)RING);
}

static das_status mock_queue_wait(das_queue *queue, das_error *error)
{
    mock_queue *mock = queue->impl;
    das_status status = enter(DAS_MOCK_QUEUE_WAIT, error);
    pthread_mutex_lock(&lock);
    mock->waiters++;
    for (int64_t target = mock->given; mock->done < target;)
        pthread_cond_wait(&changed, &lock);
    mock->waiters--;
    pthread_mutex_unlock(&lock);
    return status;
}

static bool was_recorded(das_event *event, const char *call)
{
    mock_event *mock = event->impl;
    pthread_mutex_lock(&lock);
    bool recorded = mock->recorded > 0;
    if (!recorded)
        breach_locked(call, "the event was never recorded");
    pthread_mutex_unlock(&lock);
    return recorded;
}

static das_status mock_queue_wait_event(das_queue *queue, das_event *event, das_error *error)
{
    das_status status = enter(DAS_MOCK_QUEUE_WAIT_EVENT, error);
    require(event->device == queue->device, "queue_wait_event", "event and queue are of different devices");
    was_recorded(event, "queue_wait_event");
    if (status == DAS_OK) {
        command c = {.kind = COMMAND_WAIT, .event = event->impl};
        use_queue(queue->impl, "queue_wait_event");
        status = give(queue, &c, 1, error);
        leave_queue(queue->impl);
    }
    return status;
}

void das_mock_hold(das_queue *queue)
{
    pthread_mutex_lock(&lock);
    ((mock_queue *)queue->impl)->held = true;
    pthread_mutex_unlock(&lock);
}

void das_mock_allow(das_queue *queue, int64_t commands)
{
    pthread_mutex_lock(&lock);
    ((mock_queue *)queue->impl)->allowed += commands;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

void das_mock_release(das_queue *queue)
{
    pthread_mutex_lock(&lock);
    ((mock_queue *)queue->impl)->held = false;
    ((mock_queue *)queue->impl)->allowed = 0;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

void das_mock_hold_device(das_device *device)
{
    pthread_mutex_lock(&lock);
    ((mock_device *)device->impl)->held = true;
    pthread_mutex_unlock(&lock);
}

void das_mock_release_device(das_device *device)
{
    pthread_mutex_lock(&lock);
    ((mock_device *)device->impl)->held = false;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

int64_t das_mock_pending(das_queue *queue)
{
    mock_queue *mock = queue->impl;
    pthread_mutex_lock(&lock);
    int64_t n = mock->given - mock->done;
    pthread_mutex_unlock(&lock);
    return n;
}

void das_mock_await_pending(das_queue *queue, int64_t commands)
{
    mock_queue *mock = queue->impl;
    pthread_mutex_lock(&lock);
    while (mock->given - mock->done > commands)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

bool das_mock_is_awaited(das_queue *queue)
{
    mock_queue *mock = queue->impl;
    pthread_mutex_lock(&lock);
    bool awaited = mock->waiters > 0 && mock->done < mock->given;
    pthread_mutex_unlock(&lock);
    return awaited;
}

bool das_mock_settle(das_queue *queue)
{
    mock_queue *mock = queue->impl;
    pthread_mutex_lock(&lock);
    while (mock->done < mock->given && !mock->blocked)
        pthread_cond_wait(&changed, &lock);
    bool drained = mock->done == mock->given;
    pthread_mutex_unlock(&lock);
    return drained;
}

/* ---- events ---- */

static das_status mock_event_create(das_event *event, das_error *error)
{
    das_status status = enter(DAS_MOCK_EVENT_CREATE, error);
    if (status != DAS_OK)
        return status;
    event->impl = calloc(1, sizeof(mock_event));
    if (event->impl == NULL)
        return das_fail(error, DAS_ERROR_OUT_OF_MEMORY, "no memory for the event");
    count_object(event->device->impl, 1);
    return DAS_OK;
}

static void mock_event_destroy(das_event *event)
{
    mock_event *mock = event->impl;
    pthread_mutex_lock(&lock);
    if (mock->pending != 0)
        breach_locked("event_destroy", "queued work still uses the event");
    while (mock->pending != 0)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    free(mock);
    count_object(event->device->impl, -1);
}

static das_status mock_event_record(das_event *event, das_queue *queue, das_error *error)
{
    das_status status = enter(DAS_MOCK_EVENT_RECORD, error);
    require(event->device == queue->device, "event_record", "event and queue are of different devices");
    if (status == DAS_OK) {
        command c = {.kind = COMMAND_RECORD, .event = event->impl};
        use_queue(queue->impl, "event_record");
        status = give(queue, &c, 1, error);
        leave_queue(queue->impl);
    }
    return status;
}

static das_status mock_event_query(das_event *event, das_error *error)
{
    das_status status = enter(DAS_MOCK_EVENT_QUERY, error);
    mock_event *mock = event->impl;
    if (status != DAS_OK || !was_recorded(event, "event_query"))
        return status;
    pthread_mutex_lock(&lock);
    status = mock->passed >= mock->recorded ? DAS_OK : DAS_ERROR_NOT_READY;
    pthread_mutex_unlock(&lock);
    return status;
}

static das_status mock_event_wait(das_event *event, das_error *error)
{
    das_status status = enter(DAS_MOCK_EVENT_WAIT, error);
    mock_event *mock = event->impl;
    was_recorded(event, "event_wait");
    pthread_mutex_lock(&lock);
    for (int64_t target = mock->recorded; mock->passed < target;)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    return status;
}

static das_status mock_event_elapsed(das_event *start, das_event *stop, double *milliseconds, das_error *error)
{
    das_status status = enter(DAS_MOCK_EVENT_ELAPSED, error);
    mock_event *from = start->impl, *to = stop->impl;
    if (status != DAS_OK || !was_recorded(start, "event_elapsed") || !was_recorded(stop, "event_elapsed"))
        return status;
    pthread_mutex_lock(&lock);
    if (from->passed < from->recorded || to->passed < to->recorded)
        status = DAS_ERROR_NOT_READY;
    else
        *milliseconds = to->time_ms - from->time_ms;
    pthread_mutex_unlock(&lock);
    return status == DAS_OK ? DAS_OK : das_fail(error, status, "the event has not been passed");
}

/* ---- transfers ---- */

static das_status transfer(das_mock_call call, das_queue *queue, das_buffer *buffer, command c, das_error *error)
{
    das_status status = enter(call, error);
    const char *name = call_names[call];
    require(buffer->device == queue->device, name, "buffer and queue are of different devices");
    bool inside = require(c.bytes >= 1 && c.offset <= buffer->bytes && c.bytes <= buffer->bytes - c.offset, name,
                          "the range is outside the buffer");
    require(c.source != NULL || c.target != NULL, name, "the pointer is NULL");
    if (status != DAS_OK || !inside)
        return status;
    c.buffer = buffer->impl;
    use_queue(queue->impl, name);
    status = give(queue, &c, 1, error);
    leave_queue(queue->impl);
    return status;
}

static das_status mock_upload(das_queue *queue, das_buffer *buffer, uint64_t offset, const void *pointer, uint64_t bytes,
                              das_error *error)
{
    command c = {.kind = COMMAND_UPLOAD, .offset = offset, .bytes = bytes, .source = pointer};
    return transfer(DAS_MOCK_UPLOAD, queue, buffer, c, error);
}

static das_status mock_download(das_queue *queue, das_buffer *buffer, uint64_t offset, void *pointer, uint64_t bytes,
                                das_error *error)
{
    command c = {.kind = COMMAND_DOWNLOAD, .offset = offset, .bytes = bytes, .target = pointer};
    return transfer(DAS_MOCK_DOWNLOAD, queue, buffer, c, error);
}

/* ---- plans ---- */

/* What the CPU calls host memory is device memory here. */
static das_status translate(das_status status, das_error *error)
{
    if (status != DAS_ERROR_OUT_OF_MEMORY)
        return status;
    return das_fail(error, DAS_ERROR_OUT_OF_DEVICE_MEMORY, "the mock device is out of memory");
}

static das_status mock_plan_query(das_device *device, const das_problem *problem, das_plan_layout *layout, das_error *error)
{
    das_status status = enter(DAS_MOCK_PLAN_QUERY, error);
    if (status == DAS_OK)
        status = das_backend_cpu.plan_query(((mock_device *)device->impl)->inner, problem, layout, error);
    return status;
}

static das_status mock_plan_create(das_plan *plan, const das_problem *problem, das_error *error)
{
    das_status status = enter(DAS_MOCK_PLAN_CREATE, error);
    mock_device *device = plan->device->impl;
    const das_problem *kept = &plan->problem;
    require(kept->receive == NULL && kept->transmit == NULL && kept->pair == NULL && kept->pair_first == NULL &&
                kept->window_values == NULL && kept->transmit_times_s == NULL && kept->receive_times_s == NULL &&
                kept->transmit_weights == NULL && kept->receive_weights == NULL && kept->grid.values[0] == NULL,
            "plan_create", "plan->problem has arrays that will not outlive the call");
    if (status != DAS_OK)
        return status;
    mock_plan *mock = calloc(1, sizeof *mock);
    if (mock == NULL)
        return das_fail(error, DAS_ERROR_OUT_OF_MEMORY, "no memory for the plan");
    mock->inner.device = device->inner;
    mock->inner.problem = plan->problem;
    mock->inner.info = plan->info;
    making_plan = true;
    status = translate(das_backend_cpu.plan_create(&mock->inner, problem, error), error);
    making_plan = false;
    if (status != DAS_OK) {
        free(mock);
        return status;
    }
    snprintf(plan->description, sizeof plan->description, "mock: %.200s", mock->inner.description);
    plan->impl = mock;
    count_object(device, 1);
    return DAS_OK;
}

static void mock_plan_destroy(das_plan *plan)
{
    mock_plan *mock = plan->impl;
    pthread_mutex_lock(&lock);
    if (mock->pending != 0)
        breach_locked("plan_destroy", "queued work still uses the plan");
    if (mock->slots != 0)
        breach_locked("plan_destroy", "slots of the plan still exist");
    while (mock->pending != 0)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    das_backend_cpu.plan_destroy(&mock->inner);
    free(mock);
    count_object(plan->device->impl, -1);
}

static das_status mock_slot_create(das_plan *plan, das_slot *slot, das_error *error)
{
    das_status status = enter(DAS_MOCK_SLOT_CREATE, error);
    mock_plan *mock = plan->impl;
    if (status != DAS_OK)
        return status;
    mock_slot *made = calloc(1, sizeof *made);
    if (made == NULL)
        return das_fail(error, DAS_ERROR_OUT_OF_MEMORY, "no memory for the slot");
    making_plan = true;
    status = translate(das_backend_cpu.slot_create(&mock->inner, &made->inner, error), error);
    making_plan = false;
    if (status != DAS_OK) {
        free(made);
        return status;
    }
    slot->impl = made;
    count_object(plan->device->impl, 1);
    pthread_mutex_lock(&lock);
    mock->slots++;
    pthread_mutex_unlock(&lock);
    return DAS_OK;
}

static void mock_slot_destroy(das_plan *plan, das_slot *slot)
{
    mock_plan *mock = plan->impl;
    mock_slot *made = slot->impl;
    pthread_mutex_lock(&lock);
    mock->slots--;
    if (mock->pending != 0)
        breach_locked("slot_destroy", "queued work still uses the plan");
    pthread_mutex_unlock(&lock);
    das_backend_cpu.slot_destroy(&mock->inner, &made->inner);
    free(made);
    count_object(plan->device->impl, -1);
}

static int64_t record_into(command *commands, int64_t count, das_event *event)
{
    if (event != NULL)
        commands[count++] = (command){.kind = COMMAND_RECORD, .event = event->impl};
    return count;
}

static void check_work(das_plan *plan, const das_work *work)
{
    static const char call[] = "reconstruct";
    const das_problem *problem = &plan->problem;
    require(work->data != work->image, call, "data and image are one buffer");
    require(work->data->device == plan->device && work->image->device == plan->device, call, "buffer of another device");
    require(work->frame_count >= 1 && work->frame_count <= problem->frame_count, call, "frame_count out of range");
    require(work->first_frame >= 0 && work->image_first_frame >= 0, call, "a first frame is negative");
    require(work->transmit_count >= 1 && work->first_transmit >= 0 &&
                work->first_transmit + work->transmit_count <= problem->transmit_count,
            call, "transmits out of range");
    require(problem->incremental || (work->first_transmit == 0 && work->transmit_count == problem->transmit_count), call,
            "a part of the transmits without an incremental plan");
    require(!(work->accumulate && problem->normalization != DAS_NORMALIZATION_NONE), call, "accumulate with normalisation");
    require((work->begun == NULL) == (work->packed == NULL) && (work->packed == NULL) == (work->computed == NULL), call,
            "some of the three events are missing");
    require(work->data->bytes >= 1 && work->image->bytes >= 1, call, "empty buffer");
}

/* With a progress callback, frame by frame, asking before each: the mock's launches. */
static das_status mock_reconstruct(das_plan *plan, das_slot *slot, das_queue *queue, const das_work *work, das_error *error)
{
    das_status status = enter(DAS_MOCK_RECONSTRUCT, error);
    require(queue->device == plan->device, "reconstruct", "queue of another device");
    check_work(plan, work);
    if (status != DAS_OK)
        return status;

    command whole = {.kind = COMMAND_SUM,
                     .plan = plan->impl,
                     .slot = slot->impl,
                     .buffer = work->data->impl,
                     .image = work->image->impl,
                     .work = *work};
    whole.work.progress = NULL;
    whole.work.begun = whole.work.packed = whole.work.computed = NULL;
    command commands[5];
    int64_t count = record_into(commands, 0, work->begun);
    commands[count++] = (command){.kind = COMMAND_PACK, .plan = plan->impl, .buffer = work->data->impl};
    count = record_into(commands, count, work->packed);

    use_queue(queue->impl, "reconstruct");
    if (work->progress == NULL) {
        commands[count++] = whole;
        count = record_into(commands, count, work->computed);
        status = give(queue, commands, count, error);
    } else {
        status = give(queue, commands, count, error);
        for (int64_t i = 0; status == DAS_OK && i < work->frame_count; i++) {
            if (work->progress(work->progress_context, (double)i / (double)work->frame_count) != 0) {
                status = das_fail(error, DAS_ERROR_CANCELLED, "progress asked to stop at frame %lld of %lld", (long long)i,
                                  (long long)work->frame_count);
                break;
            }
            whole.work.first_frame = work->first_frame + i;
            whole.work.image_first_frame = work->image_first_frame + i;
            whole.work.frame_count = 1;
            status = give(queue, &whole, 1, error);
        }
        if (status == DAS_OK && work->computed != NULL) {
            commands[0] = (command){.kind = COMMAND_RECORD, .event = work->computed->impl};
            status = give(queue, commands, 1, error);
        }
        if (status == DAS_OK)
            work->progress(work->progress_context, 1.0);
    }
    leave_queue(queue->impl);
    return status;
}

static const das_backend mock_backend = {
    .size = sizeof(das_backend),
    .version = DAS_BACKEND_VERSION,
    .name = "mock",
    .built = true,
    .fork_safe = false,
    .device_count = mock_device_count,
    .device_list = mock_device_list,
    .device_open = mock_device_open,
    .device_close = mock_device_close,
    .device_auto = mock_device_auto,
    .buffer_create = mock_buffer_create,
    .buffer_import = mock_buffer_import,
    .buffer_destroy = mock_buffer_destroy,
    .queue_create = mock_queue_create,
    .queue_import = NULL,
    .queue_destroy = mock_queue_destroy,
    .queue_wait = mock_queue_wait,
    .queue_wait_event = mock_queue_wait_event,
    .event_create = mock_event_create,
    .event_destroy = mock_event_destroy,
    .event_record = mock_event_record,
    .event_query = mock_event_query,
    .event_wait = mock_event_wait,
    .event_elapsed = mock_event_elapsed,
    .upload = mock_upload,
    .download = mock_download,
    .plan_query = mock_plan_query,
    .plan_create = mock_plan_create,
    .plan_destroy = mock_plan_destroy,
    .slot_create = mock_slot_create,
    .slot_destroy = mock_slot_destroy,
    .reconstruct = mock_reconstruct,
};

void das_mock_install(void)
{
    das_backend_extra = &mock_backend;
}

void das_mock_uninstall(void)
{
    das_backend_extra = NULL;
}
