/* What the front end's own files share. Backends include backend.h only. */
#ifndef DAS_FRONTEND_H
#define DAS_FRONTEND_H

#include "backend.h"

/* ---- status.c ---- */

/* Returns DAS_ERROR_ARGUMENT from the calling function unless the condition holds. */
#define DAS_REQUIRE(condition, error, ...)                            \
    do {                                                              \
        if (!(condition))                                             \
            return das_fail((error), DAS_ERROR_ARGUMENT, __VA_ARGS__); \
    } while (0)

#define DAS_REQUIRE_POINTER(pointer, error) \
    DAS_REQUIRE((pointer) != NULL, error, "%s is NULL; expected a valid pointer", #pointer)

das_status das_fail_v(das_error *error, das_status status, const char *format, va_list arguments)
    __attribute__((format(printf, 3, 0)));

/* 1 or more, and together with `width` few enough that an array of them can exist: what is behind an absurd count is
 * not read. */
das_status das_check_count(int64_t count, int64_t width, const char *name, das_error *error);

/* Every value finite, or the error names the first that is not. name[i] for count > 1. */
das_status das_check_finite(const double *values, int64_t count, const char *name, das_error *error);

/* Copies a library structure to the caller's: at most the caller's struct_size bytes, zeroes what is beyond
 * `size`, keeps struct_size. */
das_status das_copy_out(void *out, const void *in, uint32_t size, const char *name, das_error *error);

/* ---- alloc.c: memory without a device ---- */

/* count * size bytes, zeroed; NULL when out of memory or the product wraps. */
void *das_calloc(int64_t count, size_t size);
/* A copy of count * size bytes; *copy is NULL when count is 0. */
das_status das_duplicate(const void *values, int64_t count, size_t size, void **copy, das_error *error);
das_status das_fail_memory(das_error *error, const char *what, uint64_t bytes);

/* ---- device.c ---- */

/* Fails for a device that is lost or was opened before fork(). */
das_status das_device_check(das_device *device, das_error *error);
/* Whether the backend may still be called to free things. In a forked child the locks are fit for use from here on: every
 * function that takes one has come through here, or through das_device_check(), before. */
bool das_device_reachable(das_device *device);
/* das_locks_inherited() where getpid() is known: it costs as much as a lock or more. */
bool das_locks_inherited_by(das_lock_owner *owner, int64_t here);
void das_device_retain(das_device *device);
void das_device_unretain(das_device *device);

void das_users_add(das_users *users, das_queue *queue);
/* Waits for the work of all queues that used the object. */
void das_users_wait(das_device *device, const das_users *users);

/* ---- queue.c ---- */

/* The queue has no failure pending; the device has been checked. */
das_status das_queue_pending(das_queue *queue, das_error *error);
/* The device is usable and the queue has no failure pending. */
das_status das_queue_check(das_queue *queue, das_error *error);
void das_queue_unretain(das_queue *queue);
/* Keeps what a backend call returned as the queue's failure, if it failed. */
das_status das_queue_keep(das_queue *queue, das_status status, const das_error *error);

/* ---- buffer.c ---- */

/* Refuses a described buffer whose axes (those of length 1 or stride 0 aside) are not these. */
das_status das_buffer_match(const das_buffer *buffer, const char *name, das_type type, int32_t ndim, const int64_t *shape,
                            const int64_t *strides, das_error *error);
const char *das_type_name(das_type type);
bool das_type_is_complex(das_type type);
size_t das_type_alignment(das_type type);

/* ---- acquisition.c, grid.c, options.c: contents of the opaque objects ---- */

struct das_acquisition {
    int64_t receive_count;
    double *positions; /* [receive_count][3] */
    int64_t normal_count, receive_weight_count, receive_delay_count; /* 0: not set */
    double *normals, *receive_weights, *receive_delays;
    int64_t transmit_count, transmit_capacity;
    das_transmit *transmits; /* geometry only; constant_s is still a distance in metres */
    int64_t transmit_weight_count, transmit_delay_count, start_time_count;
    double *transmit_weights, *transmit_delays, *start_times;
    double sampling_frequency_hz, sound_speed_m_s, demodulation_frequency_hz;
    das_type type; /* 0: not set */
    int64_t sample_count, frame_count;
    double sample_offset;
    bool strides_set, trace_strides_set;
    int64_t first, frame_stride, transmit_stride, receive_stride, trace_stride, sample_stride;
    int64_t pair_weight_transmits, pair_weight_receives;
    double *pair_weights;
    int64_t trace_count;
    int64_t *trace_transmit, *trace_receive;
    double *trace_weight;
};

/* Borrowed values [count][points]; count 0: none. */
typedef struct das_table {
    int64_t count, points;
    const void *values;
    double most; /* the largest magnitude */
} das_table;

struct das_options {
    das_interpolation interpolation;
    double f_number;
    das_window window;
    double window_parameter;
    int64_t window_count;
    double *window_values;
    das_normalization normalization;
    bool keep_transmit, keep_receive;
    das_outside outside;
    das_precision precision;
    das_type image_type;
    bool image_strides_set;
    int64_t image_first, image_strides[6];
    das_phase_reference phase_reference;
    int64_t max_in_flight;
    bool incremental;
    uint64_t memory_budget;
    bool fast_paths;
    das_table transmit_times, receive_times;     /* double */
    das_table transmit_weights, receive_weights; /* float */
};

void das_options_defaults(das_options *options);
/* No coordinate of a point is larger than this. */
double das_grid_reach(const das_grid *grid);
das_status das_grid_copy(const das_grid *grid, das_grid *copy, das_error *error);
void das_grid_free(das_grid *grid);

/* ---- problem.c ---- */

/* Checks everything and fills the problem; das_problem_free() releases its arrays. options may be NULL. */
das_status das_problem_create(const das_acquisition *acquisition, const das_grid *grid, const das_options *options,
                              das_problem *problem, das_error *error);
void das_problem_free(das_problem *problem);

/* First and one-past-last element that `count` axes reach from `first`; false when it wraps int64. */
bool das_extent(int64_t first, int32_t count, const int64_t *shape, const int64_t *strides, int64_t *low, int64_t *high);

/* ---- plan.c ---- */

/* In a forked child: the plan's locks are fit for use. The device has been checked. */
void das_plan_renew_locks(das_plan *plan);

/* ---- reconstruct.c ---- */

struct das_run {
    das_device *device;
    int64_t first_frame, frame_count, image_first_frame;
    int64_t first_transmit, transmit_count;
    bool accumulate;
    das_progress_function *progress;
    void *progress_context;
    bool timed;      /* events exist */
    bool used;       /* a timed call has recorded them */
    bool transfers;  /* that call was das_reconstruct_host() */
    das_event *uploading, *begun, *packed, *computed, *downloaded;
};

/* ---- parallel.c ---- */

int64_t das_available_threads(void);
/* CPUs that cgroup quotas allow, 0 if unlimited: by the groups listed in one file, in the hierarchies under root. */
int64_t das_quota_threads(const char *groups, const char *root);
void das_pool_destroy(das_device *device);

/* Default rounding and denormals for the calling thread, until restored. */
#include <fenv.h>
static inline void das_float_environment_enter(fenv_t *saved)
{
    fegetenv(saved);
    fesetenv(FE_DFL_ENV);
}
static inline void das_float_environment_leave(const fenv_t *saved)
{
    fesetenv(saved);
}

#endif
