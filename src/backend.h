/* The contract between the front end (the .c files of src) and a backend (src/cpu, src/cuda,
 * src/opencl). Private to the library.
 *
 * The front end checks every argument; a backend assumes. Handles are never NULL,
 * belong to the backend's device, ranges lie inside their buffers, counts are at
 * least 1, the device is neither lost nor inherited through fork().
 *
 * Threads: device_* and plan members may be called from several threads at once.
 * A queue or event is used by one thread at a time, but queue_wait may be called
 * from another one meanwhile. The front end holds no lock
 * while it calls a backend, except that device_open is called with none and
 * device_close with no other user left, that event_query may be called under a
 * plan's lock, and transfers without a queue under one of their own.
 *
 * Errors: a member that fails fills `error` through das_fail(), returns the status
 * and leaves nothing behind. Failures that show up later, while queued work runs,
 * go to das_queue_fail(); a device that is gone to das_device_set_lost(). */
#ifndef DAS_BACKEND_H
#define DAS_BACKEND_H

#include "problem.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>

typedef struct das_backend das_backend;

/* ---------------------------------------------------------------------------
 * Objects. `impl` is the backend's; fields under "front end" are not for it.
 * ------------------------------------------------------------------------- */

/* Host services of a device, from das_device_options. */
typedef struct das_host {
    das_log_function *log;
    void *log_context;
    das_allocate_function *allocate;
    das_release_function *release;
    void *allocator_context;
    das_runner_function *run; /* NULL: the library's threads */
    void *run_context;
    int64_t thread_count; /* 0: as many as the process may use */
    char isa[16];         /* "": the best one */
} das_host;

/* Objects of the caller on which a device is opened; all NULL for an index. */
typedef struct das_native {
    void *cu_context;
    void *cl_context;
    void *cl_device;
} das_native;

/* The process whose threads may hold some locks; see das_locks_inherited(). */
typedef atomic_llong das_lock_owner;

#define DAS_USERS 16

/* Which queues have used an object, so that destroying it waits for those only. */
typedef struct das_users {
    uint64_t queue[DAS_USERS]; /* serial numbers */
    int32_t count;             /* above DAS_USERS: any queue of the device */
} das_users;

struct das_device {
    const das_backend *backend;
    void *impl;
    das_host host;
    das_device_info info; /* filled in by device_open */
    /* front end */
    atomic_int references;
    atomic_bool lost;
    int64_t process;         /* getpid() at open */
    das_lock_owner locks_of; /* of the locks here and in the queues */
    pthread_mutex_t mutex;
    struct das_queue *queues; /* all that live */
    uint64_t next_queue;
    pthread_mutex_t private_mutex;
    struct das_queue *private_queue; /* for transfers without a queue */
    struct das_pool *pool;           /* CPU threads; see parallel.h */
};

struct das_queue {
    das_device *device;
    void *impl;
    /* front end */
    uint64_t serial;
    struct das_queue *next;
    int32_t references; /* guarded by device->mutex */
    pthread_mutex_t mutex; /* guards failure */
    das_error failure;     /* DAS_OK: none */
};

struct das_event {
    das_device *device;
    void *impl;
    /* front end */
    bool recorded;
    das_users users;
};

struct das_buffer {
    das_device *device;
    void *impl;
    uint64_t bytes;
    das_memory memory;
    void *host_pointer; /* set by the backend if the host can reach it */
    bool imported;
    uint64_t import_offset; /* bytes to skip at the start of an imported cl_mem; addresses have it added already */
    /* front end */
    das_buffer_release_function *release;
    void *release_context;
    das_users users;
    bool described;
    das_type type;
    int32_t ndim;
    int64_t shape[8];
    int64_t strides[8];
};

/* A call in flight: the plan's scratch memory for it. */
typedef struct das_slot {
    void *impl;
    /* front end */
    bool busy;        /* a thread is queueing with it */
    uint64_t used;    /* plan->calls at its last use */
    das_event *done;  /* after its last use */
    das_queue *queue; /* for calls without a queue */
} das_slot;

struct das_plan {
    das_device *device;
    void *impl;
    char description[256]; /* the path taken, written by plan_create */
    /* front end */
    das_problem problem; /* without pairs, grid values and tables: see plan.c */
    das_plan_info info;
    das_lock_owner locks_of; /* and of the slots in use */
    pthread_mutex_t mutex;
    pthread_cond_t slot_free;
    das_slot *slots;
    uint64_t calls;
    das_users users;
};

/* What plan_query answers: memory before anything is allocated. */
typedef struct das_plan_layout {
    uint64_t plan_bytes; /* device memory (CPU: host memory) that plan_create takes */
    uint64_t slot_bytes; /* that each slot_create takes */
    int32_t tiles;
} das_plan_layout;

/* One call of das_reconstruct(). */
typedef struct das_work {
    das_buffer *data;
    das_buffer *image;
    int64_t first_frame; /* of the data */
    int64_t frame_count;
    int64_t image_first_frame;
    int64_t first_transmit;
    int64_t transmit_count; /* all, unless the problem is incremental */
    bool accumulate;
    das_progress_function *progress; /* may be NULL */
    void *progress_context;
    das_event *begun, *packed, *computed; /* to record before packing, after it, and at the end; all NULL or none */
} das_work;

/* ---------------------------------------------------------------------------
 * The vtable. All members are required, except where "optional" is said; a NULL
 * optional member makes the front end answer DAS_ERROR_UNSUPPORTED.
 * ------------------------------------------------------------------------- */

#define DAS_BACKEND_VERSION 1u

struct das_backend {
    uint32_t size;    /* sizeof(das_backend) */
    uint32_t version; /* DAS_BACKEND_VERSION */
    const char *name; /* "cpu", "cuda", "opencl": prefix of device names */
    bool built;       /* false: a stub, device_open answers DAS_ERROR_NOT_BUILT */
    bool fork_safe;   /* its devices work in a forked child (the CPU) */
    bool host_memory; /* its devices compute in host memory, imported pointers included (the CPU) */

    /* Number of devices. Loads and initialises the driver, makes no context, leaves
     * signal handlers as they were. No driver or a broken one: 0 devices, with the
     * reason in error (status set, DAS_OK returned is not required). */
    das_status (*device_count)(int32_t *count, das_error *error);

    /* Describes device `index` < count without making a context. Fills all of info
     * but struct_size. */
    das_status (*device_list)(int32_t index, das_device_info *info, das_error *error);

    /* Opens device `index`, or the caller's objects in `native` (index is then 0).
     * device->host is set. Sets device->impl and fills device->info but struct_size. */
    das_status (*device_open)(das_device *device, int32_t index, const das_native *native, das_error *error);
    void (*device_close)(das_device *device);

    /* Index of the first device that "auto" may take, or -1. */
    int32_t (*device_auto)(void);

    /* buffer->bytes and memory are set; sets impl, and host_pointer where the host can
     * reach the memory. */
    das_status (*buffer_create)(das_buffer *buffer, das_error *error);
    /* Wraps memory of the caller: a host pointer, CUdeviceptr or cl_mem, as `native` means to
     * this backend. Optional. */
    das_status (*buffer_import)(das_buffer *buffer, uint64_t native, das_error *error);
    /* No queued work uses it any more. Never frees imported memory. */
    void (*buffer_destroy)(das_buffer *buffer);

    das_status (*queue_create)(das_queue *queue, das_error *error);
    /* Wraps a CUstream or cl_command_queue. Optional. */
    das_status (*queue_import)(das_queue *queue, void *native, das_error *error);
    /* The queue has been waited for. */
    void (*queue_destroy)(das_queue *queue);
    /* Blocks until all work is done. Reports what failed through das_queue_fail(); returns an
     * error only if the wait itself failed. */
    das_status (*queue_wait)(das_queue *queue, das_error *error);
    /* Called only for recorded events. */
    das_status (*queue_wait_event)(das_queue *queue, das_event *event, das_error *error);

    das_status (*event_create)(das_event *event, das_error *error);
    void (*event_destroy)(das_event *event);
    /* May be called again: the event then stands for the later point. */
    das_status (*event_record)(das_event *event, das_queue *queue, das_error *error);
    /* The following three are called only for recorded events. query returns
     * DAS_ERROR_NOT_READY without filling error. */
    das_status (*event_query)(das_event *event, das_error *error);
    das_status (*event_wait)(das_event *event, das_error *error);
    das_status (*event_elapsed)(das_event *start, das_event *stop, double *milliseconds, das_error *error);

    /* Asynchronous copies. The host memory stays valid until the queue has passed. */
    das_status (*upload)(das_queue *queue, das_buffer *buffer, uint64_t offset, const void *pointer, uint64_t bytes,
                         das_error *error);
    das_status (*download)(das_queue *queue, das_buffer *buffer, uint64_t offset, void *pointer, uint64_t bytes,
                           das_error *error);

    /* Chooses path and tiling within problem->memory_budget (DAS_ERROR_OUT_OF_DEVICE_MEMORY if
     * nothing fits, DAS_ERROR_UNSUPPORTED for a feature the device lacks) and says what it takes.
     * Allocates nothing on the device. */
    das_status (*plan_query)(das_device *device, const das_problem *problem, das_plan_layout *layout, das_error *error);
    /* Makes the same choice. plan->device and plan->problem are set; problem (the argument, the
     * same values with all arrays) is valid only during the call. Sets impl and description. */
    das_status (*plan_create)(das_plan *plan, const das_problem *problem, das_error *error);
    void (*plan_destroy)(das_plan *plan);

    das_status (*slot_create)(das_plan *plan, das_slot *slot, das_error *error);
    void (*slot_destroy)(das_plan *plan, das_slot *slot);

    /* Queues the reconstruction. The slot is this call's alone until the queue has passed it.
     * Allocates nothing. Writes every image element of the frames (and kept transmits) asked for
     * and nothing else. Calls progress between launches or tiles; a non-zero answer:
     * DAS_ERROR_CANCELLED. May block only for progress, or as long as the work takes (CPU). */
    das_status (*reconstruct)(das_plan *plan, das_slot *slot, das_queue *queue, const das_work *work, das_error *error);
};

extern const das_backend das_backend_cpu;
extern const das_backend das_backend_cuda;
extern const das_backend das_backend_opencl;

/* backends.c: the table, in the order of enumeration. */
extern const das_backend *const das_backends[];
extern const int32_t das_backend_count;
/* One more, for a backend from outside the tree (the tests' mock); NULL by default. */
extern const das_backend *das_backend_extra;

/* ---------------------------------------------------------------------------
 * Services of the front end
 * ------------------------------------------------------------------------- */

/* Fills error (if there is one to fill) and returns status. */
das_status das_fail(das_error *error, das_status status, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* To the device's log callback; nothing without one. device may be NULL. */
void das_log(const das_device *device, int32_t level, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Host memory of a device, aligned to 64 bytes; NULL when out of memory or bytes is absurd. */
void *das_device_allocate(das_device *device, uint64_t bytes);
void das_device_release(das_device *device, void *pointer);

/* Keeps the first failure until das_queue_wait() has told it. Any thread. */
void das_queue_fail(das_queue *queue, das_status status, const char *format, ...) __attribute__((format(printf, 3, 4)));
void das_device_set_lost(das_device *device);

/* Runs task(argument, 0..count-1) on the device's threads or the caller's runner, and returns when
 * all are done. Tasks run with default rounding and denormals. Several threads may call at once. */
void das_parallel(das_device *device, das_task_function *task, void *argument, int64_t count);
/* Starts the threads, so that das_parallel() need not allocate. */
das_status das_parallel_start(das_device *device, das_error *error);
/* How many tasks run at once: the number of lanes worth making. */
int64_t das_parallel_width(das_device *device);

/* After fork() nobody gives back what other threads of the parent held. True for the one thread of the child that is to
 * make the locks anew and then to call das_locks_renewed(); others wait here until it has. */
bool das_locks_inherited(das_lock_owner *owner);
void das_locks_renewed(das_lock_owner *owner);

/* dl.c: the only dlopen. Tries each of the NULL-terminated names; NULL if none loads. Never closed. */
void *das_dl_open(const char *const *names, das_error *error);
void *das_dl_symbol(void *library, const char *name);

#endif
