/* libdas: ultrasound images from raw channel data by delay-and-sum.
 *
 * SPDX-License-Identifier: MIT
 *
 * ---------------------------------------------------------------------------
 * A whole program
 * ---------------------------------------------------------------------------
 * Link with -ldas. One plane wave, 128 elements, 1000 samples a record:
 *
 *     #include <das/das.h>
 *     #include <stdio.h>
 *
 *     int main(void)
 *     {
 *         static float rf[128][1000];          // [receive element][sample]
 *         static float image[200][128];        // [z][x]
 *         double elements[128][3] = {{0}};     // x, y, z in metres
 *         for (int r = 0; r < 128; r++)
 *             elements[r][0] = (r - 63.5) * 0.3e-3;
 *
 *         das_error e = DAS_ERROR_INIT;
 *         das_device *device = NULL;
 *         das_acquisition *acq = NULL;
 *         das_grid *grid = NULL;
 *         das_plan *plan = NULL;
 *         const double origin[3] = {-19e-3, 0, 5e-3};
 *         const double steps[9] = {0.3e-3, 0, 0,  0, 0, 0.2e-3,  0, 0, 0};
 *         const int64_t counts[3] = {128, 200, 1};
 *
 *         if (das_device_open("auto", NULL, &device, &e) ||
 *             das_acquisition_create(&acq, &e) ||
 *             das_acquisition_set_receive_elements(acq, 128, &elements[0][0], &e) ||
 *             das_acquisition_add_plane_transmit(acq, 0.0, &e) ||
 *             das_acquisition_set_sampling_frequency(acq, 20e6, &e) ||
 *             das_acquisition_set_sound_speed(acq, 1540.0, &e) ||
 *             das_acquisition_set_data(acq, DAS_TYPE_F32, 1000, &e) ||
 *             das_grid_create_cartesian(origin, steps, counts, &grid, &e) ||
 *             das_plan_create(device, acq, grid, NULL, &plan, &e) ||
 *             das_reconstruct_host(plan, rf, sizeof rf, image, sizeof image, NULL, &e))
 *             printf("%s: %s\n", das_status_name(e.status), e.message);
 *
 *         das_plan_destroy(&plan);
 *         das_grid_destroy(&grid);
 *         das_acquisition_destroy(&acq);
 *         das_device_destroy(&device);
 *         return e.status != DAS_OK;
 *     }
 *
 * The header is in the order of that program: version, status, device; then
 * what was measured (acquisition), where to form the image (grid), how
 * (options), and the plan; then das_reconstruct_host(). Those who keep data on
 * a GPU, overlap transfers with computation or time the phases go on to
 * buffers, queues, events and das_reconstruct() at the end.
 *
 * ---------------------------------------------------------------------------
 * What is computed
 * ---------------------------------------------------------------------------
 * For every frame f and image point p
 *
 *     y[f,p] = sum over pairs (t,r)  w_tr a_t(p) a_r(p) v[f,t,r](p)
 *     v      = interpolate(data[f,t,r,:], s) * phase
 *     s      = (tau_t(p) + tau_r(p) + d_t + d_r - t0_t) * fs
 *     phase  = exp(+j 2 pi f_d (tau_t + tau_r + d_t + d_r))   complex data with f_d; else 1
 *
 * tau_t is the time at which the transmitted wave reaches p, tau_r = |p - x_r|/c
 * the time back to receive element r, d_t and d_r extra delays, t0_t the time
 * of sample 0 of the record, fs the sampling frequency, f_d the demodulation
 * frequency. docs/conventions.md has every detail, with the edge rules.
 *
 * No envelope is formed: from real (RF) data the image oscillates like the data.
 * For a picture give complex data (IQ, or the analytic signal) and take |y|, as
 * the program das_image does.
 *
 * ---------------------------------------------------------------------------
 * Conventions
 * ---------------------------------------------------------------------------
 * Units   SI: metres, seconds, hertz, radians. Positions are x, y, z in double,
 *         right-handed, z into the medium; an array usually lies at z = 0.
 *         A positive plane-wave angle tilts the direction towards +x.
 * Arrays  C order, the last index fastest. Positions are [count][3].
 *         Data are [frame][transmit][receive][sample] unless strides are set,
 *         images [frame][transmit][receive][axis 2][axis 1][axis 0] where an
 *         axis that was summed has length 1 and grid axis 0 is fastest.
 *         Strides are signed and count elements of the type (a complex sample
 *         is one element).
 * Errors  Calls that can fail return a das_status: DAS_OK is 0, errors are
 *         negative. Every such call takes a das_error last; it may be NULL.
 *         The message names the argument, its value and what was expected.
 *         A failing create call sets its output handle to NULL and leaks
 *         nothing. A failing setter leaves the object as it was.
 *         A NULL, or otherwise unusable, argument gives DAS_ERROR_ARGUMENT;
 *         memory running out DAS_ERROR_OUT_OF_MEMORY (host) or
 *         DAS_ERROR_OUT_OF_DEVICE_MEMORY. Both hold everywhere and are not
 *         repeated below. Further statuses are listed at each call.
 * Owners  What you create, you destroy: das_x_destroy(das_x **) accepts a
 *         handle that is NULL, waits for queued work that uses the object,
 *         releases it and sets the handle to NULL. The order of destruction is
 *         free: plans, buffers, queues, events and runs keep their device
 *         alive. Input arrays are copied unless a call says "borrowed".
 * Threads Devices and plans may be used from any number of threads at once.
 *         A queue, event, acquisition, grid, options or run object by one thread
 *         at a time. Ordering the concurrent use of a buffer is up to the caller.
 *         Callbacks may come from any thread and must not call das_*.
 * Fork    In a forked child the CPU device works, also when other threads of the
 *         parent were at work with it; other devices give DAS_ERROR_FORKED.
 * Since   Every function here is since 0.1 unless it says otherwise.
 */
#ifndef DAS_DAS_H
#define DAS_DAS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__) || defined(__clang__)
#define DAS_API __attribute__((visibility("default")))
#else
#define DAS_API
#endif

/* ---------------------------------------------------------------------------
 * Version
 * ---------------------------------------------------------------------------
 * These calls never fail and load nothing. */

#define DAS_VERSION_MAJOR 0
#define DAS_VERSION_MINOR 1
#define DAS_VERSION_PATCH 0

/* The version of the library that runs, for example "0.1.0". Static string. */
DAS_API const char *das_version_string(void);

/* The same as major * 10000 + minor * 100 + patch. */
DAS_API uint32_t das_version_number(void);

/* 1 if the backend ("cpu", "cuda" or "opencl") was compiled into this library,
 * else 0. Says nothing about drivers or devices. NULL gives 0. */
DAS_API int32_t das_backend_is_built(const char *backend);

/* ---------------------------------------------------------------------------
 * Status and errors
 * ------------------------------------------------------------------------- */

typedef int32_t das_status;
enum {
    DAS_OK = 0,
    DAS_ERROR_ARGUMENT = -1,             /* an argument is out of its range */
    DAS_ERROR_OUT_OF_MEMORY = -2,        /* host memory */
    DAS_ERROR_OUT_OF_DEVICE_MEMORY = -3, /* device memory, or the memory budget */
    DAS_ERROR_TOO_LARGE = -4,            /* a count or product exceeds a limit, which is named */
    DAS_ERROR_UNSUPPORTED = -5,          /* this device cannot do it */
    DAS_ERROR_NOT_BUILT = -6,            /* the backend is not compiled into this library */
    DAS_ERROR_NO_DRIVER = -7,            /* the driver library is not installed */
    DAS_ERROR_DRIVER_TOO_OLD = -8,
    DAS_ERROR_NO_DEVICE = -9,            /* there is no such device */
    DAS_ERROR_NO_KERNEL_IMAGE = -10,     /* no kernel runs on this card */
    DAS_ERROR_WRONG_DEVICE = -11,        /* the object belongs to another das_device */
    DAS_ERROR_NOT_READY = -12,           /* queued work has not finished; ask later */
    DAS_ERROR_BUSY = -13,                /* the object is in use */
    DAS_ERROR_CANCELLED = -14,           /* the progress callback asked to stop */
    DAS_ERROR_FORKED = -15,              /* the device was opened before fork() */
    DAS_ERROR_DEVICE_LOST = -16,         /* the device failed; open it again */
    DAS_ERROR_FILE = -17,                /* used by programs, never by the library */
    DAS_ERROR_INTERNAL = -18             /* a fault in libdas: please report it */
};

/* "DAS_OK", "DAS_ERROR_ARGUMENT", ...; "unknown status" for any other number. */
DAS_API const char *das_status_name(das_status status);

/* Filled in by a call that fails; left alone by a call that succeeds.
 * Initialise with DAS_ERROR_INIT. One whose struct_size is not sizeof(das_error),
 * {0} for instance, is ignored: status and message then stay as they were. */
typedef struct das_error {
    uint32_t struct_size; /* set by the caller: sizeof(das_error) */
    das_status status;
    char message[512]; /* always terminated; one line without a newline */
} das_error;

#define DAS_ERROR_INIT {(uint32_t)sizeof(das_error), DAS_OK, ""}

/* ---------------------------------------------------------------------------
 * Device: where the work is done
 * ------------------------------------------------------------------------- */

typedef struct das_device das_device;
typedef struct das_device_options das_device_options;

/* What a device is. The caller sets struct_size to sizeof(das_device_info); the
 * library writes at most that many bytes and sets to zero those it does not
 * know. The same holds for the other output structures of this header. */
typedef struct das_device_info {
    uint32_t struct_size;
    int32_t is_gpu;          /* 1 for a GPU */
    int32_t has_double;      /* 1 if DAS_PRECISION_DOUBLE is supported */
    int32_t compute_units;   /* threads used (CPU), multiprocessors, compute units */
    uint64_t memory_bytes;   /* of the device; of the host for the CPU */
    uint64_t max_buffer_bytes; /* largest single buffer */
    char name[64];           /* what das_device_open() takes: "cpu", "cuda:0" */
    char description[256];   /* for people: model, driver or instruction set */
} das_device_info;

/* How many devices das_device_open() could open now: the CPU, CUDA and OpenCL
 * devices, PoCL included. Drivers are loaded and initialised if they are
 * installed; no context is made. A missing or broken driver counts as no
 * device. Any thread. */
DAS_API das_status das_device_count(int64_t *count, das_error *error);

/* Describes device `index` of that list, 0 <= index < count.
 * DAS_ERROR_NO_DEVICE beyond the end. */
DAS_API das_status das_device_list(int64_t index, das_device_info *info, das_error *error);

/* Opens a device.
 * name     "auto": the first CUDA device, else the first OpenCL GPU, else the
 *          CPU. "cpu", "cuda", "cuda:N", "opencl", "opencl:N" with N from 0;
 *          without ":N" the first one.
 *          NULL means "auto".
 * options  NULL for defaults; may be destroyed afterwards.
 * Any thread. DAS_ERROR_NOT_BUILT, NO_DRIVER, DRIVER_TOO_OLD, NO_DEVICE,
 * NO_KERNEL_IMAGE, UNSUPPORTED. */
DAS_API das_status das_device_open(const char *name, const das_device_options *options, das_device **device, das_error *error);

/* Opens a device on the caller's CUDA context (a CUcontext), which must outlive
 * it. Statuses of das_device_open(). */
DAS_API das_status das_device_open_cuda(void *cu_context, const das_device_options *options, das_device **device,
                                        das_error *error);

/* Opens a device on the caller's cl_context and one cl_device_id of it; both are
 * retained. Statuses of das_device_open(). */
DAS_API das_status das_device_open_opencl(void *cl_context, void *cl_device_id, const das_device_options *options,
                                          das_device **device, das_error *error);

/* What das_device_list() says of it. */
DAS_API das_status das_device_get_info(const das_device *device, das_device_info *info, das_error *error);
DAS_API void das_device_destroy(das_device **device);

/* Options of a device, all optional. Setters copy; NULL functions restore the
 * default. */
DAS_API das_status das_device_options_create(das_device_options **options, das_error *error);
DAS_API void das_device_options_destroy(das_device_options **options);

/* Messages for people, such as why a driver was passed over. Default: none. */
enum { DAS_LOG_ERROR = 0, DAS_LOG_WARNING = 1, DAS_LOG_INFO = 2, DAS_LOG_DEBUG = 3 };
typedef void das_log_function(void *context, int32_t level, const char *message);
DAS_API das_status das_device_options_set_log(das_device_options *options, das_log_function *log, void *context,
                                              das_error *error);

/* Host memory of the device's objects. allocate returns `bytes` bytes (never 0)
 * aligned to `alignment` (a power of two, at least 64) or NULL; release takes a
 * pointer that allocate returned. Both are set or both NULL; both may be called
 * from several threads at once. Default: aligned_alloc and free. */
typedef void *das_allocate_function(void *context, size_t bytes, size_t alignment);
typedef void das_release_function(void *context, void *pointer);
DAS_API das_status das_device_options_set_allocator(das_device_options *options, das_allocate_function *allocate,
                                                    das_release_function *release, void *context, das_error *error);

/* CPU: run the library's tasks on the caller's threads. `run` must call
 * task(argument, i) once for every i of 0..count-1, in any order, on any
 * threads or one after the other, and return when all have returned. The image
 * does not depend on how. Default: the library's own threads, started at first
 * use with all signals blocked, joined by das_device_destroy(). */
typedef void das_task_function(void *argument, int64_t index);
typedef void das_runner_function(void *context, das_task_function *task, void *argument, int64_t count);
DAS_API das_status das_device_options_set_runner(das_device_options *options, das_runner_function *run, void *context,
                                                 das_error *error);

/* CPU: number of threads, the caller's included, 1 to 1024; 0 (default) is as
 * many as the process may use (affinity mask and cgroup quota). */
DAS_API das_status das_device_options_set_thread_count(das_device_options *options, int64_t count, das_error *error);

/* CPU: instruction set "scalar", "avx2", "avx512", "neon"; NULL (default) is the
 * best one. The environment variable DAS_CPU_ISA does the same where this is not
 * set. das_device_open() gives DAS_ERROR_UNSUPPORTED if the processor lacks it. */
DAS_API das_status das_device_options_set_isa(das_device_options *options, const char *isa, das_error *error);

/* ---------------------------------------------------------------------------
 * Element types
 * ------------------------------------------------------------------------- */

typedef int32_t das_type;
enum {
    DAS_TYPE_I8 = 1,
    DAS_TYPE_U8 = 2,
    DAS_TYPE_I16 = 3,
    DAS_TYPE_U16 = 4,
    DAS_TYPE_F16 = 5, /* IEEE 754 binary16 */
    DAS_TYPE_F32 = 6,
    DAS_TYPE_F64 = 7,
    DAS_TYPE_CI16 = 8, /* complex: real part, then imaginary part */
    DAS_TYPE_CF16 = 9,
    DAS_TYPE_CF32 = 10,
    DAS_TYPE_CF64 = 11 /* images only */
};

/* Bytes of one element: 1, 2, 4, 8 or 16; 0 for an unknown type. */
DAS_API size_t das_type_bytes(das_type type);

/* ---------------------------------------------------------------------------
 * Acquisition: what was measured
 * ------------------------------------------------------------------------- */

typedef struct das_acquisition das_acquisition;

/* An empty acquisition. To be set before a plan is made: receive elements, at
 * least one transmit, sampling frequency, sound speed, data. */
DAS_API das_status das_acquisition_create(das_acquisition **acquisition, das_error *error);
DAS_API void das_acquisition_destroy(das_acquisition **acquisition);

/* Positions of the receive elements, positions_m[count][3], count >= 1. A plan takes
 * at most 2^31 - 1 elements, as many transmits, and as many pairs of them. */
DAS_API das_status das_acquisition_set_receive_elements(das_acquisition *acquisition, int64_t count, const double *positions_m,
                                                        das_error *error);

/* Directions the elements look, normals[count][3], normalised by the library;
 * used by the f-number aperture. Default +z. `count` must equal the number of
 * elements when the plan is made. Here and in the setters of weights, delays and
 * start times below, NULL with count 0 restores the default. */
DAS_API das_status das_acquisition_set_receive_normals(das_acquisition *acquisition, int64_t count, const double *normals,
                                                       das_error *error);

/* Weight of each element (default 1), finite. An element of weight 0 is never read. */
DAS_API das_status das_acquisition_set_receive_weights(das_acquisition *acquisition, int64_t count, const double *weights,
                                                       das_error *error);

/* Delay d_r of each element (default 0), finite, of any sign; for cables and lenses. */
DAS_API das_status das_acquisition_set_receive_delays(das_acquisition *acquisition, int64_t count, const double *delays_s,
                                                      das_error *error);

/* Transmit events, in the order of the data's transmit axis. Each call adds one.
 * Time zero is when the wave passes "origin"; NULL is (0,0,0). c is the sound speed.
 *
 * Many systems start their clock when the first element fires. A wave steered by a
 * passes the centre of an aperture of width A later than that, by A |sin a| / (2 c):
 * give the position of that first element as the origin, or say when sample 0 was
 * taken with das_acquisition_set_start_times(). A pulse that peaks after its start
 * shifts all depths: das_acquisition_set_transmit_delays(). */

/* One element (or point) at position_m fires: tau_t = |p - x| / c. */
DAS_API das_status das_acquisition_add_element_transmit(das_acquisition *acquisition, const double position_m[3],
                                                        das_error *error);

/* Full-matrix capture: adds one element transmit for every receive element, in
 * order. The receive elements must have been set. */
DAS_API das_status das_acquisition_add_element_transmits(das_acquisition *acquisition, das_error *error);

/* A plane wave in the x-z plane, |angle_rad| <= pi: direction (sin a, 0, cos a),
 * through the origin at time zero: tau_t = p.n / c. */
DAS_API das_status das_acquisition_add_plane_transmit(das_acquisition *acquisition, double angle_rad, das_error *error);

/* A plane wave along direction[3] (normalised by the library), through origin_m
 * at time zero: tau_t = (p - o).n / c. */
DAS_API das_status das_acquisition_add_plane_direction_transmit(das_acquisition *acquisition, const double direction[3],
                                                                const double *origin_m, das_error *error);

/* A diverging wave from a virtual source behind the array:
 * tau_t = (|p - q| - |o - q|) / c. */
DAS_API das_status das_acquisition_add_diverging_transmit(das_acquisition *acquisition, const double source_m[3],
                                                          const double *origin_m, das_error *error);

/* A wave focused at F != o: tau_t = (|o - F| + sgn |p - F|) / c, sgn = +1 at and
 * beyond the plane through F normal to F - o (to 1e-3 of a sample), else -1. */
DAS_API das_status das_acquisition_add_focused_transmit(das_acquisition *acquisition, const double focus_m[3],
                                                        const double *origin_m, das_error *error);

/* No transmitted wave (photoacoustics, passive imaging): tau_t = 0. */
DAS_API das_status das_acquisition_add_oneway_transmit(das_acquisition *acquisition, das_error *error);

/* Removes all transmits. */
DAS_API das_status das_acquisition_clear_transmits(das_acquisition *acquisition, das_error *error);

/* Weight of each transmit (default 1) and its delay d_t (default 0). */
DAS_API das_status das_acquisition_set_transmit_weights(das_acquisition *acquisition, int64_t count, const double *weights,
                                                        das_error *error);
DAS_API das_status das_acquisition_set_transmit_delays(das_acquisition *acquisition, int64_t count, const double *delays_s,
                                                       das_error *error);

/* Time of sample 0 after the transmit's time zero (default 0): one per transmit,
 * or count = 1 for all. May be negative. */
DAS_API das_status das_acquisition_set_start_times(das_acquisition *acquisition, int64_t count, const double *start_times_s,
                                                   das_error *error);

/* Both finite and above 0. c is in metres a second: 1540, not 1.54. */
DAS_API das_status das_acquisition_set_sampling_frequency(das_acquisition *acquisition, double sampling_frequency_hz,
                                                          das_error *error);
DAS_API das_status das_acquisition_set_sound_speed(das_acquisition *acquisition, double sound_speed_m_s, das_error *error);

/* Demodulation frequency f_d of complex (IQ) data; finite. 0 (default): no phase
 * rotation. With real data anything but 0 is an error of the plan, and so is more
 * than 1000 times the sampling frequency. */
DAS_API das_status das_acquisition_set_demodulation_frequency(das_acquisition *acquisition, double demodulation_frequency_hz,
                                                              das_error *error);

/* Element type (DAS_TYPE_I8 to DAS_TYPE_CF32) and samples a record, >= 1 (a plan
 * takes at most 2^32). DAS_TYPE_F64 is rounded to float unless the precision is
 * double. */
DAS_API das_status das_acquisition_set_data(das_acquisition *acquisition, das_type type, int64_t sample_count,
                                            das_error *error);

/* Frames in the data, >= 1 (default 1); also the most one call reconstructs. */
DAS_API das_status das_acquisition_set_frame_count(das_acquisition *acquisition, int64_t frame_count, das_error *error);

/* Value subtracted from every sample first (default 0); 32768 or 2048 for
 * unsigned converters. Finite. From both parts of a complex sample. */
DAS_API das_status das_acquisition_set_sample_offset(das_acquisition *acquisition, double offset, das_error *error);

/* Where sample n of record (f, t, r) is, in elements from the start of the data:
 * first + f frame + t transmit + r receive + n sample. Any sign; 0 repeats: with
 * transmit 0 all transmits share one data set. Default: compact
 * [frame][transmit][receive][sample]. The last of this call and
 * set_trace_strides() holds. */
DAS_API das_status das_acquisition_set_data_strides(das_acquisition *acquisition, int64_t first, int64_t frame,
                                                    int64_t transmit, int64_t receive, int64_t sample, das_error *error);

/* Weight of every pair, weights[transmit_count][receive_count] (default 1). A
 * pair of weight 0 is never read. The product of a pair's weights (its own, its
 * transmit's and its element's) must be 0 or lie in the range of float, 1.2e-38 to
 * 3.4e38 (of double with precision double). NULL with counts 0 restores the default.
 * Not with traces. */
DAS_API das_status das_acquisition_set_pair_weights(das_acquisition *acquisition, int64_t transmit_count,
                                                    int64_t receive_count, const double *weights, das_error *error);

/* Half matrices and sparse pairs: the data hold `count` traces instead of all
 * pairs, trace k being of transmit[k] and receive[k] (0-based) with weight[k]
 * (NULL: 1). Repeated pairs add, absent ones are 0. count = 0 removes the list.
 * Default layout [frame][trace][sample]. */
DAS_API das_status das_acquisition_set_traces(das_acquisition *acquisition, int64_t count, const int64_t *transmit,
                                              const int64_t *receive, const double *weight, das_error *error);

/* As das_acquisition_set_data_strides(), for data with a trace list:
 * first + f frame + k trace + n sample. */
DAS_API das_status das_acquisition_set_trace_strides(das_acquisition *acquisition, int64_t first, int64_t frame, int64_t trace,
                                                     int64_t sample, das_error *error);

/* ---------------------------------------------------------------------------
 * Grid: where to form the image
 * ------------------------------------------------------------------------- */

typedef struct das_grid das_grid;

/* p = origin + i0 step0 + i1 step1 + i2 step2, 0 <= ik < counts[k], counts >= 1.
 * steps_m[9] holds step0, step1, step2, x y z each; the step of an axis of
 * length 1 is not used. An x-z image has step0 along x, step1 along z and counts
 * {nx, nz, 1}. DAS_ERROR_TOO_LARGE above 2^62 points. */
DAS_API das_status das_grid_create_cartesian(const double origin_m[3], const double steps_m[9], const int64_t counts[3],
                                             das_grid **grid, das_error *error);

/* A sector: p = apex + r (sin th cos ph, sin ph, cos th cos ph). Axis 0 is th, 1
 * is ph, 2 is r. elevations_rad may be NULL with elevation_count 1, meaning 0. */
DAS_API das_status das_grid_create_polar(const double apex_m[3], int64_t angle_count, const double *angles_rad,
                                         int64_t elevation_count, const double *elevations_rad, int64_t radius_count,
                                         const double *radii_m, das_grid **grid, das_error *error);

/* Any points, points_m[count][3]; axis 0 has length count. */
DAS_API das_status das_grid_create_points(int64_t count, const double *points_m, das_grid **grid, das_error *error);

/* Lengths of axes 0, 1, 2, and the position of point (i0, i1, i2). */
DAS_API das_status das_grid_get_shape(const das_grid *grid, int64_t shape[3], das_error *error);
DAS_API das_status das_grid_get_point(const das_grid *grid, int64_t i0, int64_t i1, int64_t i2, double point_m[3],
                                      das_error *error);

DAS_API void das_grid_destroy(das_grid **grid);

/* ---------------------------------------------------------------------------
 * Options: how to form the image
 * ---------------------------------------------------------------------------
 * All optional; a plan takes NULL for defaults. Enumerators out of range are
 * errors of the setter. */

typedef struct das_options das_options;

DAS_API das_status das_options_create(das_options **options, das_error *error);
DAS_API void das_options_destroy(das_options **options);

/* Between samples; default linear. Cubic is Catmull-Rom, Lanczos has 6 taps and
 * weights divided by their sum, quadratic uses the 3 nearest samples. */
typedef int32_t das_interpolation;
enum {
    DAS_INTERPOLATION_NEAREST = 0, /* round half to even */
    DAS_INTERPOLATION_LINEAR = 1,
    DAS_INTERPOLATION_QUADRATIC = 2,
    DAS_INTERPOLATION_CUBIC = 3,
    DAS_INTERPOLATION_LANCZOS = 4
};
DAS_API das_status das_options_set_interpolation(das_options *options, das_interpolation interpolation, das_error *error);

/* Receive aperture: with f_number F > 0 an element takes part where its distance
 * h along its normal and l across it satisfy l <= h / (2 F). 0 (default): no
 * limit. 0 to 1e9. */
DAS_API das_status das_options_set_f_number(das_options *options, double f_number, das_error *error);

/* Apodization over that aperture, q = l / (h / (2 F)) in 0..1; default rect.
 * Tukey's parameter A in 0..1 is the tapered part (0 is rect, 1 hann); the others
 * ignore it. Anything but rect needs an f-number. */
typedef int32_t das_window;
enum {
    DAS_WINDOW_RECT = 0,
    DAS_WINDOW_HANN = 1,    /* (1 + cos(pi q)) / 2 */
    DAS_WINDOW_HAMMING = 2, /* 0.54 + 0.46 cos(pi q) */
    DAS_WINDOW_TUKEY = 3,
    DAS_WINDOW_TABLE = 4 /* only through das_options_set_window_table() */
};
DAS_API das_status das_options_set_window(das_options *options, das_window window, double parameter, das_error *error);

/* Any window: 2 to 65536 finite values evenly over q = 0..1, linear in between. */
DAS_API das_status das_options_set_window_table(das_options *options, int64_t count, const double *values, das_error *error);

/* What each output value is divided by; default nothing. Count: the number of
 * pairs of non-zero weight whose sample lies in the record; weights: the signed
 * sum of their weights w_tr a_t a_r. A divisor of 0 gives 0. */
typedef int32_t das_normalization;
enum { DAS_NORMALIZATION_NONE = 0, DAS_NORMALIZATION_COUNT = 1, DAS_NORMALIZATION_WEIGHTS = 2 };
DAS_API das_status das_options_set_normalization(das_options *options, das_normalization normalization, das_error *error);

/* Non-zero keeps one image per transmit, or per receive element, instead of their
 * sum. Default 0. */
DAS_API das_status das_options_set_keep_transmit(das_options *options, int32_t keep, das_error *error);
DAS_API das_status das_options_set_keep_receive(das_options *options, int32_t keep, das_error *error);

/* Sample positions outside 0..N-1: contribute 0 (default; 1e-3 of a sample beyond
 * counts as the edge), or are clamped to the record. With a demodulation frequency
 * a clamped sample turns with its true time: times, delays and ways must then be
 * below 2^50 samples, or the plan gives DAS_ERROR_ARGUMENT. */
typedef int32_t das_outside;
enum { DAS_OUTSIDE_ZERO = 0, DAS_OUTSIDE_CLAMP = 1 };
DAS_API das_status das_options_set_outside(das_options *options, das_outside outside, das_error *error);

/* Arithmetic; docs/accuracy.md has the bounds. Exact (default): float sums, 1e-5 of
 * the image's norm, positions to 2e-6 of a sample. Reduced allows float16 weights and
 * tensor cores where they are faster, 5e-4 of the norm, and asks for finite data.
 * Double: 1e-12 of the norm, image in double; DAS_ERROR_UNSUPPORTED on devices
 * without it. */
typedef int32_t das_precision;
enum { DAS_PRECISION_EXACT = 0, DAS_PRECISION_REDUCED = 1, DAS_PRECISION_DOUBLE = 2 };
DAS_API das_status das_options_set_precision(das_options *options, das_precision precision, das_error *error);

/* DAS_TYPE_F32 or F64 for real data, CF32 or CF64 for complex. 0 (default): 64-bit
 * parts with precision double, else 32-bit. */
DAS_API das_status das_options_set_image_type(das_options *options, das_type type, das_error *error);

/* Where image element (f, t, r, i2, i1, i0) is, in elements from the start of the
 * image: first + the dot product with strides[6], in that order. Strides may be
 * negative, but must nest: each larger than all that the smaller ones reach, so that
 * no elements overlap. NULL: compact (default), from first on. */
DAS_API das_status das_options_set_image_strides(das_options *options, int64_t first, const int64_t strides[6],
                                                 das_error *error);

/* What the phase of IQ data refers to: the transmit's time zero (default: the
 * oscillator started then), or sample 0 of each record. */
typedef int32_t das_phase_reference;
enum { DAS_PHASE_REFERENCE_TIME_ZERO = 0, DAS_PHASE_REFERENCE_SAMPLE_ZERO = 1 };
DAS_API das_status das_options_set_phase_reference(das_options *options, das_phase_reference reference, das_error *error);

/* How many calls of the plan may be on their way at once, 1 (default) to 64: each
 * has its own scratch memory. One more waits for the first. */
DAS_API das_status das_options_set_max_in_flight(das_options *options, int64_t count, das_error *error);

/* Non-zero: the plan can reconstruct a part of the transmits at a time, see
 * das_run_set_transmits(). Default 0. */
DAS_API das_status das_options_set_incremental(das_options *options, int32_t incremental, das_error *error);

/* Most bytes of device memory the plan and its scratch may take; larger work is
 * tiled. 0 (default): the size of the input + 64 MiB, tables and point lists on top.
 * What cannot fit even so is refused by the plan with
 * DAS_ERROR_OUT_OF_DEVICE_MEMORY. */
DAS_API das_status das_options_set_memory_budget(das_options *options, uint64_t bytes, das_error *error);

/* Zero: only the general path, no folding or other rearrangement of the sum.
 * For comparison and for tests. Default 1. */
DAS_API das_status das_options_set_fast_paths(das_options *options, int32_t allowed, das_error *error);

/* Tables per point, in the order of the image's points (axis 0 fastest), replacing
 * the computed values. Arrays are borrowed until the plan has been created; NULL
 * with counts 0 removes the table. The counts must match the acquisition and grid.
 * transmit_times_s[transmit_count][point_count]: tau_t, NaN for no path (adds 0);
 * the transmits must still have been added to the acquisition, of any kind.
 * receive_times_s[receive_count][point_count]: tau_r, likewise.
 * Weights multiply: a_t instead of 1, a_r instead of the aperture and window. */
DAS_API das_status das_options_set_transmit_times(das_options *options, int64_t transmit_count, int64_t point_count,
                                                  const double *transmit_times_s, das_error *error);
DAS_API das_status das_options_set_receive_times(das_options *options, int64_t receive_count, int64_t point_count,
                                                 const double *receive_times_s, das_error *error);
DAS_API das_status das_options_set_transmit_weights(das_options *options, int64_t transmit_count, int64_t point_count,
                                                    const float *transmit_weights, das_error *error);
DAS_API das_status das_options_set_receive_weights(das_options *options, int64_t receive_count, int64_t point_count,
                                                   const float *receive_weights, das_error *error);

/* ---------------------------------------------------------------------------
 * Plan: acquisition + grid + options, compiled for a device
 * ------------------------------------------------------------------------- */

typedef struct das_plan das_plan;

typedef struct das_plan_info {
    uint32_t struct_size;    /* see das_device_info */
    das_type image_type;
    int64_t image_shape[6];  /* frame, transmit, receive, axis 2, axis 1, axis 0 */
    int64_t image_strides[6];
    int64_t points;          /* of the grid */
    int64_t pairs;           /* (transmit, receive) pairs or traces of non-zero weight */
    uint64_t input_bytes;    /* a data buffer of frame_count frames: at least this */
    uint64_t output_bytes;   /* an image buffer: at least this */
    uint64_t plan_bytes;     /* memory the plan holds, on the device (CPU: on the host) */
    uint64_t slot_bytes;     /* scratch of each call in flight, allocated with the plan */
    int32_t slots;           /* max_in_flight */
    int32_t tiles;           /* pieces the work is cut into to meet the memory budget */
} das_plan_info;

/* What das_plan_create() would give, without allocating device memory. Statuses
 * of das_plan_create(). Both take, until they return, host memory beyond that of
 * the info: 24 bytes a (transmit, receive) pair and a copy of a list of points. */
DAS_API das_status das_plan_query(das_device *device, const das_acquisition *acquisition, const das_grid *grid,
                                  const das_options *options, das_plan_info *info, das_error *error);

/* Compiles a plan. It copies what it needs: acquisition, grid, options and tables
 * may be changed or destroyed afterwards. A plan is immutable.
 * DAS_ERROR_TOO_LARGE, UNSUPPORTED, FORKED, DEVICE_LOST. */
DAS_API das_status das_plan_create(das_device *device, const das_acquisition *acquisition, const das_grid *grid,
                                   const das_options *options, das_plan **plan, das_error *error);

DAS_API das_status das_plan_get_info(const das_plan *plan, das_plan_info *info, das_error *error);

/* One line for people: device, path taken, tiling. Lives as long as the plan. ""
 * for NULL. */
DAS_API const char *das_plan_description(const das_plan *plan);

DAS_API void das_plan_destroy(das_plan **plan);

/* ---------------------------------------------------------------------------
 * Run: optional settings of one call, and its timing
 * ------------------------------------------------------------------------- */

typedef struct das_run das_run;

DAS_API das_status das_run_create(das_device *device, das_run **run, das_error *error);
DAS_API void das_run_destroy(das_run **run);

/* Reconstructs data frames first .. first + count - 1 into image frames
 * image_first ... Default: frames 0 .. frame_count - 1 of the acquisition into
 * image frame 0 on; count = 0 restores it. count is at most frame_count; first and
 * image_first are limited by the buffers only. */
DAS_API das_status das_run_set_frames(das_run *run, int64_t first, int64_t count, int64_t image_first, das_error *error);

/* Only transmits first .. first + count - 1; unless those are all, the plan must be
 * incremental. count = 0 restores the default, all. With kept transmits only their images are written. */
DAS_API das_status das_run_set_transmits(das_run *run, int64_t first, int64_t count, das_error *error);

/* Non-zero adds to the image instead of overwriting it (default 0). Not with
 * normalisation: das_reconstruct() then gives DAS_ERROR_UNSUPPORTED. */
DAS_API das_status das_run_set_accumulate(das_run *run, int32_t accumulate, das_error *error);

/* Called now and then with the fraction done, 0 to 1; a non-zero result cancels:
 * the work ends with DAS_ERROR_CANCELLED and the image is undefined. With it,
 * das_reconstruct() may block until most of the work is done. */
typedef int32_t das_progress_function(void *context, double fraction);
DAS_API das_status das_run_set_progress(das_run *run, das_progress_function *progress, void *context, das_error *error);

/* Milliseconds of the last call that used the run, from events on the device.
 * upload_ms and download_ms are 0 but for das_reconstruct_host() (for explicit
 * transfers record events around them). compute_ms includes pack_ms, the time for
 * rearranging data before the sum. */
typedef struct das_timing {
    uint32_t struct_size; /* see das_device_info */
    uint32_t reserved;    /* 0 */
    double upload_ms;
    double pack_ms;
    double compute_ms;
    double download_ms;
} das_timing;

/* Asks for timing (non-zero) or not (0, default). DAS_ERROR_UNSUPPORTED if the
 * device cannot time. */
DAS_API das_status das_run_enable_timing(das_run *run, int32_t enable, das_error *error);

/* DAS_ERROR_NOT_READY while the call has not finished; DAS_ERROR_ARGUMENT if
 * timing was not enabled or no call was made; DAS_ERROR_UNSUPPORTED on a caller's
 * OpenCL queue without profiling. */
DAS_API das_status das_run_get_timing(const das_run *run, das_timing *timing, das_error *error);

/* ---------------------------------------------------------------------------
 * One-shot
 * ------------------------------------------------------------------------- */

/* From data in host memory to an image in host memory, in one call that returns
 * when it is done. data and image are laid out as the plan says; data_bytes and
 * image_bytes are the sizes of the arrays, at least what the plan's info says for
 * the frames in question (more is no error). The CPU works in place; on a GPU
 * buffers are made for the call: for many calls use the explicit way below. run may
 * be NULL. Image elements that the strides skip are left alone. Any thread. DAS_ERROR_CANCELLED, FORKED, DEVICE_LOST. */
DAS_API das_status das_reconstruct_host(das_plan *plan, const void *data, size_t data_bytes, void *image, size_t image_bytes,
                                        das_run *run, das_error *error);

/* ---------------------------------------------------------------------------
 * Queue and event: work in order, points in time
 * ------------------------------------------------------------------------- */

typedef struct das_queue das_queue;
typedef struct das_event das_event;

/* An in-order stream of work on a device. Calls that take a queue return before
 * the work is done (the CPU does it within the call). Where a NULL queue is
 * allowed it means a private one, ordered after nothing; the call then returns
 * when its work is done.
 *
 * A failure while running stays with its queue: later calls on it return that
 * status until das_queue_wait() has returned it once; on the CPU the failing call
 * returns it as well. DAS_ERROR_DEVICE_LOST stays with the device. */
DAS_API das_status das_queue_create(das_device *device, das_queue **queue, das_error *error);

/* Work goes into the caller's CUstream (0 legacy default stream, 1 legacy, 2 per
 * thread) or in-order cl_command_queue, which must outlive the das_queue.
 * DAS_ERROR_UNSUPPORTED on another backend's device. */
DAS_API das_status das_queue_import_cuda(das_device *device, void *cu_stream, das_queue **queue, das_error *error);
DAS_API das_status das_queue_import_opencl(das_device *device, void *cl_command_queue, das_queue **queue, das_error *error);

/* Returns when all work given to the queue so far is done. */
DAS_API das_status das_queue_wait(das_queue *queue, das_error *error);

/* Work given to the queue from now on starts after the event; an event never
 * recorded holds nothing up. The event may be of another queue of the device. */
DAS_API das_status das_queue_wait_event(das_queue *queue, das_event *event, das_error *error);

DAS_API void das_queue_destroy(das_queue **queue);

DAS_API das_status das_event_create(das_device *device, das_event **event, das_error *error);

/* Marks the point after all work given to the queue so far. */
DAS_API das_status das_event_record(das_event *event, das_queue *queue, das_error *error);

/* DAS_OK if that point is passed (or was never set), else DAS_ERROR_NOT_READY. */
DAS_API das_status das_event_query(das_event *event, das_error *error);

/* Returns when that point is passed. */
DAS_API das_status das_event_wait(das_event *event, das_error *error);

/* Milliseconds of device time from start to stop, both recorded and passed
 * (DAS_ERROR_ARGUMENT, DAS_ERROR_NOT_READY otherwise). DAS_ERROR_UNSUPPORTED on a
 * caller's OpenCL queue without profiling. */
DAS_API das_status das_event_elapsed(das_event *start, das_event *stop, double *milliseconds, das_error *error);

DAS_API void das_event_destroy(das_event **event);

/* ---------------------------------------------------------------------------
 * Buffer: bytes on a device
 * ------------------------------------------------------------------------- */

typedef struct das_buffer das_buffer;

typedef int32_t das_memory;
enum {
    DAS_MEMORY_DEVICE = 0, /* the device's own memory; not for the host to read */
    DAS_MEMORY_HOST = 1    /* host memory that the device reaches and copies fast (pinned) */
};

/* bytes >= 1, contents undefined, aligned to 64 bytes. DAS_ERROR_TOO_LARGE beyond
 * the device's largest buffer. */
DAS_API das_status das_buffer_create(das_device *device, uint64_t bytes, das_memory memory, das_buffer **buffer,
                                     das_error *error);

/* A buffer on memory of the caller, which must stay valid until the buffer is
 * destroyed; release (may be NULL) is then called once with the context. Alignment
 * to the element type is enough. When importing fails release is not called.
 * pointer: host memory, CPU devices only. cu_deviceptr: CUdeviceptr of the
 * device's context. cl_mem: a buffer of its context. DAS_ERROR_UNSUPPORTED on
 * another backend's device. */
typedef void das_buffer_release_function(void *context);
DAS_API das_status das_buffer_import_pointer(das_device *device, void *pointer, uint64_t bytes,
                                             das_buffer_release_function *release, void *context, das_buffer **buffer,
                                             das_error *error);
DAS_API das_status das_buffer_import_cuda(das_device *device, uint64_t cu_deviceptr, uint64_t bytes,
                                          das_buffer_release_function *release, void *context, das_buffer **buffer,
                                          das_error *error);
DAS_API das_status das_buffer_import_opencl(das_device *device, void *cl_mem, uint64_t bytes,
                                            das_buffer_release_function *release, void *context, das_buffer **buffer,
                                            das_error *error);

/* A DLPack tensor (a DLManagedTensor *) in memory of the device: NULL strides mean
 * compact, byte_offset is honoured, a trailing axis of 2 makes int16 and float16
 * complex where the plan wants it. On success the buffer owns the tensor and calls
 * its deleter once when destroyed; on failure the caller still owns it. The
 * buffer is described by the tensor. DAS_ERROR_WRONG_DEVICE if it lies elsewhere. */
DAS_API das_status das_buffer_import_dlpack(das_device *device, void *managed_tensor, das_buffer **buffer, das_error *error);

/* Says what a buffer holds: element type, and shape[ndim] with strides[ndim] in
 * elements (NULL: compact), 0 <= ndim <= 8. das_reconstruct() refuses a described
 * buffer that differs from the plan's data or image, axes of length 1 aside.
 * ndim = 0 with type 0 removes the description. */
DAS_API das_status das_buffer_describe(das_buffer *buffer, das_type type, int32_t ndim, const int64_t *shape,
                                       const int64_t *strides, das_error *error);

DAS_API uint64_t das_buffer_bytes(const das_buffer *buffer); /* 0 for NULL */

/* The address where the host reaches the buffer: every CPU buffer and those of
 * DAS_MEMORY_HOST; NULL for others. Read it only after the queue has been waited
 * for. */
DAS_API void *das_buffer_host_pointer(const das_buffer *buffer);

/* Copies host memory to the buffer, or back, at byte `offset`, in queue order. The
 * host memory must stay valid, and unchanged or unread, until the queue has passed
 * the copy, on every backend alike. queue may be NULL. */
DAS_API das_status das_buffer_upload(das_queue *queue, das_buffer *buffer, uint64_t offset, const void *pointer,
                                     uint64_t bytes, das_error *error);
DAS_API das_status das_buffer_download(das_queue *queue, das_buffer *buffer, uint64_t offset, void *pointer, uint64_t bytes,
                                       das_error *error);

DAS_API void das_buffer_destroy(das_buffer **buffer);

/* ---------------------------------------------------------------------------
 * Reconstruct
 * ------------------------------------------------------------------------- */

/* Forms the image in buffer `image` from the channel data in buffer `data`, in
 * queue order. Allocates nothing. Plan, queue, buffers and run must be of one
 * device (DAS_ERROR_WRONG_DEVICE), the buffers large enough and distinct. queue
 * and run may be NULL. The plan may be used from several threads at once; a call
 * that finds no free scratch slot makes its queue wait for one. Same plan, data
 * and device: the same bits. DAS_ERROR_UNSUPPORTED (a run setting that the plan
 * excludes), CANCELLED, FORKED, DEVICE_LOST, or the queue's earlier failure. */
DAS_API das_status das_reconstruct(das_plan *plan, das_queue *queue, das_buffer *data, das_buffer *image, das_run *run,
                                   das_error *error);

#ifdef __cplusplus
}
#endif

#endif
