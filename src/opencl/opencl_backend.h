/* What the files of the OpenCL backend share. */
#ifndef DAS_OPENCL_BACKEND_H
#define DAS_OPENCL_BACKEND_H

#include "backend.h"
#include "opencl_api.h"

#include <signal.h>

/* ---- opencl_device.c ---- */

typedef struct das_opencl_device {
    const das_opencl_api *cl;
    cl_device_id id;
    cl_context context;
    bool gpu;
    bool fp64;
    uint32_t nvidia; /* major compute capability, 0 elsewhere */
    bool profiling;
    uint64_t memory_bytes;
    uint64_t local_bytes;
    uint64_t max_buffer_bytes;
    size_t max_group;
    size_t max_items; /* along the first axis of a group */
    uint32_t units;
    cl_command_queue service; /* for mapping and for launching ahead */
    pthread_mutex_t service_mutex;
} das_opencl_device;

static inline das_opencl_device *das_opencl_of(const das_device *device)
{
    return device->impl;
}

/* Drivers with a compiler inside (PoCL's LLVM) install signal handlers and start threads. Between
 * these two calls the thread blocks all signals, so that such threads inherit the mask, and
 * afterwards handlers and mask are what they were. */
#define DAS_OPENCL_SIGNALS 65
typedef struct das_opencl_signals {
    struct sigaction action[DAS_OPENCL_SIGNALS];
    bool known[DAS_OPENCL_SIGNALS];
    sigset_t mask;
} das_opencl_signals;
void das_opencl_signals_save(das_opencl_signals *signals);
void das_opencl_signals_restore(const das_opencl_signals *signals);

/* Fills error with what failed, the code and its name; maps the code to a status, and marks the
 * device (which may be NULL) lost where it says so. */
das_status das_opencl_fail(das_device *device, das_error *error, cl_int code, const char *what);

das_status das_opencl_device_count(int32_t *count, das_error *error);
das_status das_opencl_device_list(int32_t index, das_device_info *info, das_error *error);
das_status das_opencl_device_open(das_device *device, int32_t index, const das_native *native, das_error *error);
void das_opencl_device_close(das_device *device);
int32_t das_opencl_device_auto(void);

/* ---- opencl_buffer.c ---- */

typedef struct das_opencl_buffer {
    cl_mem memory;
    cl_bitfield flags;
    /* Memory of the host is mapped all the time, but for the commands that use it: the mapping is taken
     * away and made again around them, in queue order. */
    void *mapped;
    void *storage;         /* CL_MEM_USE_HOST_PTR, or NULL */
    pthread_mutex_t mutex; /* unmap, use and map again are enqueued as one */
} das_opencl_buffer;

das_status das_opencl_buffer_create(das_buffer *buffer, das_error *error);
das_status das_opencl_buffer_import(das_buffer *buffer, uint64_t native, das_error *error);
void das_opencl_buffer_destroy(das_buffer *buffer);
das_status das_opencl_upload(das_queue *queue, das_buffer *buffer, uint64_t offset, const void *pointer, uint64_t bytes,
                             das_error *error);
das_status das_opencl_download(das_queue *queue, das_buffer *buffer, uint64_t offset, void *pointer, uint64_t bytes,
                               das_error *error);
/* Around commands that use one or two buffers (second may be NULL) on the device. After a successful
 * acquire, release must be called, whatever became of the commands. */
das_status das_opencl_acquire(das_queue *queue, das_buffer *first, das_buffer *second, das_error *error);
das_status das_opencl_release(das_queue *queue, das_buffer *first, das_buffer *second, das_error *error);

/* Device memory of a plan or slot, at least one byte, filled from `values` unless NULL. */
das_status das_opencl_memory_create(das_device *device, uint64_t bytes, const void *values, const char *what, cl_mem *memory,
                                    das_error *error);
void das_opencl_memory_destroy(das_device *device, cl_mem *memory);

/* ---- opencl_queue.c ---- */

typedef struct das_opencl_queue {
    cl_command_queue queue;
    bool profiling;
    cl_event last; /* of the last batch: what it ended with */
    pthread_mutex_t mutex; /* guards last */
} das_opencl_queue;

typedef struct das_opencl_event {
    cl_event event;
    bool profiling;
} das_opencl_event;

static inline das_opencl_queue *das_opencl_queue_of(const das_queue *queue)
{
    return queue->impl;
}

das_status das_opencl_queue_create(das_queue *queue, das_error *error);
das_status das_opencl_queue_import(das_queue *queue, void *native, das_error *error);
void das_opencl_queue_destroy(das_queue *queue);
das_status das_opencl_queue_wait(das_queue *queue, das_error *error);
das_status das_opencl_queue_wait_event(das_queue *queue, das_event *event, das_error *error);
/* Ends a batch of commands: hands them to the device and keeps `event` (owned from here on) to learn
 * how they ended. */
das_status das_opencl_queue_submit(das_queue *queue, cl_event event, das_error *error);

das_status das_opencl_event_create(das_event *event, das_error *error);
void das_opencl_event_destroy(das_event *event);
das_status das_opencl_event_record(das_event *event, das_queue *queue, das_error *error);
das_status das_opencl_event_query(das_event *event, das_error *error);
das_status das_opencl_event_wait(das_event *event, das_error *error);
das_status das_opencl_event_elapsed(das_event *start, das_event *stop, double *milliseconds, das_error *error);

/* ---- opencl_plan.c, opencl_reconstruct.c ---- */

/* Numbers the kernels read, in the order of the enumerations of opencl_kernels.cl. */
enum {
    DAS_OPENCL_SAMPLES_PER_M,
    DAS_OPENCL_TOLERANCE_M,
    DAS_OPENCL_INVERSE_2F,
    DAS_OPENCL_LAST,
    DAS_OPENCL_TURNS_PER_SAMPLE,
    DAS_OPENCL_OFFSET,
    DAS_OPENCL_WINDOW,
    DAS_OPENCL_ORIGIN,
    DAS_OPENCL_STEPS = DAS_OPENCL_ORIGIN + 3,
    DAS_OPENCL_REALS = DAS_OPENCL_STEPS + 9
};
enum { DAS_OPENCL_LONGS = 19, DAS_OPENCL_ELEMENT_REALS = 8, DAS_OPENCL_WAVE_REALS = 8 };

/* Tables per point. */
enum {
    DAS_OPENCL_TRANSMIT_TIMES,
    DAS_OPENCL_RECEIVE_TIMES,
    DAS_OPENCL_TRANSMIT_WEIGHTS,
    DAS_OPENCL_RECEIVE_WEIGHTS,
    DAS_OPENCL_TABLES
};

/* A fast path of opencl_fast.cl; the values are those of DAS_FAST there. */
typedef enum das_opencl_path { DAS_OPENCL_GENERAL = 0, DAS_OPENCL_TILE = 1, DAS_OPENCL_PATCH = 2 } das_opencl_path;

typedef struct das_opencl_fast {
    das_opencl_path path;
    bool folded;   /* reciprocal pairs are added up first */
    bool weighted; /* records are weighted when packed */
    bool shared;   /* all transmits have one data set, packed once */
    int32_t lead;  /* zeros in front of a packed record, and behind it */
    int64_t stride;
    int64_t transmits; /* packed at a time, a multiple of rows */
    int32_t rows;      /* transmits a block of the kernel */
    uint64_t packed_bytes;
    /* tiles */
    int32_t threads, points, window, half_window;
    bool constant; /* elements in constant memory */
    bool line;     /* sources and elements share y and z, and axis[1] is across */
    int32_t axis[3], tiles[2], slow_a;
    /* patches */
    int64_t patch[3];
    int32_t patches; /* along axis 0, of a work item */
} das_opencl_fast;

/* DAS_MAGIC_BITS of opencl_fast.cl. An argument of the kernel, because compilers take constants apart. */
#define DAS_OPENCL_MAGIC_BITS 0x4B400000

/* What plan_query decides and plan_create carries out. */
typedef struct das_opencl_choice {
    das_opencl_fast fast;
    bool listed;          /* pairs from a list, else all of them with weight 1 */
    bool streamed;        /* tables stay in host memory and travel chunk by chunk */
    int32_t frames;       /* summed side by side */
    int32_t block_rows;   /* of opencl_block.cl: transmits at a time; 0 where pairs are formed one by one */
    int32_t lanes;        /* points a work item of it */
    int64_t planes;       /* images kept: of transmits times of receive elements */
    int64_t chunk_points; /* points a chunk of the tables, or all */
    int64_t chunks;
    uint64_t plan_bytes;
    uint64_t slot_bytes;
} das_opencl_choice;

typedef struct das_opencl_plan {
    das_opencl_choice choice;
    cl_program program;
    const char *sum_name, *pack_name; /* of its kernels */
    size_t local, local_pack; /* work items of a group */
    uint64_t launch_terms; /* most terms of a launch */
    cl_mem reals, longs, elements, waves, kinds, pair_offset, pair_weight, pair_of, pair_first, values, window;
    cl_mem weights; /* float[transmit][receive], of a weighted fast path */
    cl_mem offsets; /* float[3][16], of the points of a patch */
    cl_mem *tables; /* [chunks][DAS_OPENCL_TABLES] */
    char *streamed[DAS_OPENCL_TABLES]; /* host memory, chunk by chunk */
} das_opencl_plan;

typedef struct das_opencl_slot {
    cl_kernel sum, pack;
    cl_mem packed;
    cl_mem tables[DAS_OPENCL_TABLES]; /* streamed */
} das_opencl_slot;

das_status das_opencl_plan_query(das_device *device, const das_problem *problem, das_plan_layout *layout, das_error *error);
das_status das_opencl_plan_create(das_plan *plan, const das_problem *problem, das_error *error);
void das_opencl_plan_destroy(das_plan *plan);
das_status das_opencl_slot_create(das_plan *plan, das_slot *slot, das_error *error);
void das_opencl_slot_destroy(das_plan *plan, das_slot *slot);
das_status das_opencl_warm_up(das_plan *plan, das_slot *slot, das_error *error);
das_status das_opencl_reconstruct(das_plan *plan, das_slot *slot, das_queue *queue, const das_work *work, das_error *error);

/* ---- opencl_fast.c ---- */

/* A fast path for the problem, or DAS_OPENCL_GENERAL. `bytes` is what the plan takes besides; adds what the
 * path takes. */
void das_opencl_fast_choose(const das_opencl_device *device, const das_problem *problem, uint64_t bytes,
                            das_opencl_fast *fast, uint64_t *plan_bytes, uint64_t *slot_bytes);
das_status das_opencl_fast_create(das_plan *plan, const das_problem *problem, das_error *error);

/* Rows of a table, of the problem behind a plan or to be planned; bytes of one entry. */
static inline int64_t das_opencl_table_rows(const das_problem *problem, int table)
{
    return table == DAS_OPENCL_TRANSMIT_TIMES || table == DAS_OPENCL_TRANSMIT_WEIGHTS ? problem->transmit_count
                                                                                     : problem->receive_count;
}
static inline uint64_t das_opencl_table_entry(int table)
{
    return table <= DAS_OPENCL_RECEIVE_TIMES ? 8 : 4;
}

/* ---- opencl_source.c: the embedded text of the kernels ---- */

typedef struct das_opencl_text {
    const char *text;
    size_t bytes;
} das_opencl_text;
das_opencl_text das_opencl_source_real(void);    /* das_real as a pair of floats */
das_opencl_text das_opencl_source_kernel(void);  /* kernel.h */
das_opencl_text das_opencl_source_kernels(void); /* opencl_kernels.cl */
das_opencl_text das_opencl_source_fast(void);    /* opencl_fast.cl */
das_opencl_text das_opencl_source_block(void);   /* opencl_block.cl */

#endif
