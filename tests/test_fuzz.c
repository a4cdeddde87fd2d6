/*
 * Random calls with garbage values: nothing may crash, every failure must say what it is.
 *
 *     test_fuzz [--cases N] [--seed N] [FILE]...     random cases, or the inputs in the files
 *     clang -DDAS_LIBFUZZER -fsanitize=fuzzer,address,undefined ...     the same under libFuzzer
 *
 * An input is a string of bytes that choose calls and values. Arrays are always as long as the count that goes
 * with them says; everything else may be anything.
 */
#include <das/das.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "testing.h"

enum { OBJECTS = 3, LONGEST = 512, STEPS = 80, MOST_BYTES = 1 << 16 };

typedef struct {
    const uint8_t *data;
    size_t left;
} stream;

typedef struct {
    stream in;
    das_acquisition *acquisition[OBJECTS];
    das_grid *grid[OBJECTS];
    das_options *options[OBJECTS];
    das_device_options *device_options[OBJECTS];
    das_device *device[OBJECTS];
    das_plan *plan[OBJECTS];
    das_run *run[OBJECTS];
    das_queue *queue[OBJECTS];
    das_event *event[OBJECTS];
    das_buffer *buffer[OBJECTS];
    das_error error;
    bool error_in_use; /* the last call got &error, initialised */
} fuzz;

static unsigned char host[MOST_BYTES];

static uint32_t bits(fuzz *f, int bytes)
{
    uint32_t value = 0;
    for (int i = 0; i < bytes && f->in.left > 0; i++) {
        value = value << 8 | *f->in.data++;
        f->in.left--;
    }
    return value;
}

static int pick(fuzz *f, int count)
{
    return (int)(bits(f, 1) % (uint32_t)count);
}

/* Mostly sensible, else anything. */
static double real(fuzz *f)
{
    static const double sensible[] = {0, 1, -1, 0.5, 1e-3, -2e-3, 20e-3, 1540, 20e6, 5e6, 1e-6, 1.5, 3e-7};
    static const double wild[] = {(double)NAN, (double)INFINITY, -(double)INFINITY, DBL_MAX, -DBL_MAX, DBL_MIN, 5e-324,
                                  -0.0, 1e300, 1e-300, 1e18, -1e18, 1e9, 4294967296.0, 1e155};
    int kind = pick(f, 16);
    if (kind < 12)
        return sensible[pick(f, 13)];
    if (kind < 14)
        return wild[pick(f, 15)];
    return ((double)bits(f, 4) - 2147483648.0) * (kind == 14 ? 1e-9 : 1e3);
}

static int64_t whole(fuzz *f)
{
    static const int64_t wild[] = {-1, INT64_MIN, INT64_MAX, INT64_C(1) << 31, (INT64_C(1) << 31) - 1, INT64_C(1) << 32,
                                   INT64_C(1) << 40, INT64_C(1) << 61, INT64_C(1) << 62, -(INT64_C(1) << 62), INT64_MAX / 2,
                                   INT64_MAX / 24, INT64_C(4000000000000000000), 65536, 46341};
    int kind = pick(f, 16);
    if (kind < 11)
        return pick(f, 9);
    if (kind < 14)
        return wild[pick(f, 15)];
    return (int64_t)((uint64_t)bits(f, 4) << 32 | bits(f, 4)) >> pick(f, 64);
}

static int32_t small(fuzz *f)
{
    return pick(f, 4) != 0 ? pick(f, 12) : (int32_t)whole(f);
}

/* A count, and an array that has so many; counts that no array can have come with NULL. */
static int64_t count_of(fuzz *f, bool *fits)
{
    int64_t count = whole(f);
    *fits = count <= LONGEST;
    return count;
}

static const double *reals(fuzz *f, double *array, int64_t count, bool fits)
{
    double first = real(f), step = real(f);
    int odd = pick(f, 4) == 0 ? pick(f, 256) : -1;
    if (!fits || pick(f, 24) == 0)
        return NULL;
    for (int64_t i = 0; i < 3 * LONGEST && i < 3 * (count > 0 ? count : 0); i++)
        array[i] = first + (double)(i % 7) * step;
    if (odd >= 0)
        array[odd] = real(f);
    return array;
}

static const int64_t *wholes(fuzz *f, int64_t *array, int64_t count, bool fits)
{
    int64_t modulus = 1 + pick(f, 9);
    if (!fits || pick(f, 24) == 0)
        return NULL;
    for (int64_t i = 0; i < LONGEST; i++)
        array[i] = i % modulus;
    if (count > 0 && pick(f, 3) == 0)
        array[pick(f, 256)] = whole(f);
    return array;
}

/* Where the error goes: to a fresh one, nowhere, or to one of a wrong size. */
static das_error *err(fuzz *f)
{
    int kind = pick(f, 12);
    memset(&f->error, 0x5A, sizeof f->error);
    f->error.struct_size = kind == 1 ? (uint32_t)small(f) : (uint32_t)sizeof f->error;
    f->error.status = DAS_OK;
    f->error.message[0] = '\0';
    f->error_in_use = kind > 1;
    return kind == 0 ? NULL : &f->error;
}

/* Every result: a known status, with a message of one line when it failed, untouched when not. */
static void judge(fuzz *f, das_status status, const void *created, bool creates, const char *call)
{
    bool terminated = memchr(f->error.message, '\0', sizeof f->error.message) != NULL;
    EXPECT_MSG(status <= 0 && status >= DAS_ERROR_INTERNAL && status != DAS_ERROR_INTERNAL, "%s gave status %d", call,
               (int)status);
    EXPECT_MSG(!creates || (status == DAS_OK) == (created != NULL), "%s: status %d and handle %p", call, (int)status,
               created);
    if (!f->error_in_use)
        return;
    EXPECT_MSG(terminated && strchr(f->error.message, '\n') == NULL, "%s: message is not one line", call);
    EXPECT_MSG(f->error.status == status, "%s: status %d, error says %d", call, (int)status, (int)f->error.status);
    EXPECT_MSG((f->error.message[0] != '\0') == (status != DAS_OK), "%s: status %d, message '%.60s'", call, (int)status,
               terminated ? f->error.message : "?");
}

#define CALL(call) judge(f, (call), NULL, false, #call)
#define CREATE(slot, destroy, call)            \
    do {                                       \
        das_status status_;                    \
        destroy(&(slot));                      \
        status_ = (call);                      \
        judge(f, status_, (slot), true, #call); \
    } while (0)
#define ANY(kind) f->kind[pick(f, OBJECTS)]

static void fuzz_acquisition(fuzz *f)
{
    static double array[3 * LONGEST];
    static int64_t from[LONGEST], to[LONGEST];
    das_acquisition *a = ANY(acquisition);
    das_acquisition **slot = &ANY(acquisition);
    double v[3] = {real(f), real(f), real(f)}, o[3] = {real(f), real(f), real(f)};
    const double *vector = pick(f, 20) == 0 ? NULL : v, *origin = pick(f, 2) == 0 ? NULL : o;
    bool fits;
    int64_t n = count_of(f, &fits), m;
    switch (pick(f, 26)) {
    case 0:
        CREATE(*slot, das_acquisition_destroy, das_acquisition_create(slot, err(f)));
        break;
    case 1:
    case 2:
        CALL(das_acquisition_set_receive_elements(a, n, reals(f, array, n, fits), err(f)));
        break;
    case 3:
        CALL(das_acquisition_set_receive_normals(a, n, reals(f, array, n, fits), err(f)));
        break;
    case 4:
        CALL(das_acquisition_set_receive_weights(a, n, reals(f, array, n, fits), err(f)));
        break;
    case 5:
        CALL(das_acquisition_set_receive_delays(a, n, reals(f, array, n, fits), err(f)));
        break;
    case 6:
        CALL(das_acquisition_add_element_transmit(a, vector, err(f)));
        break;
    case 7:
        CALL(das_acquisition_add_element_transmits(a, err(f)));
        break;
    case 8:
        CALL(das_acquisition_add_plane_transmit(a, real(f), err(f)));
        break;
    case 9:
        CALL(das_acquisition_add_plane_direction_transmit(a, vector, origin, err(f)));
        break;
    case 10:
        CALL(das_acquisition_add_diverging_transmit(a, vector, origin, err(f)));
        break;
    case 11:
        CALL(das_acquisition_add_focused_transmit(a, vector, origin, err(f)));
        break;
    case 12:
        CALL(das_acquisition_add_oneway_transmit(a, err(f)));
        break;
    case 13:
        CALL(das_acquisition_clear_transmits(a, err(f)));
        break;
    case 14:
        CALL(das_acquisition_set_transmit_weights(a, n, reals(f, array, n, fits), err(f)));
        break;
    case 15:
        CALL(das_acquisition_set_transmit_delays(a, n, reals(f, array, n, fits), err(f)));
        break;
    case 16:
        CALL(das_acquisition_set_start_times(a, n, reals(f, array, n, fits), err(f)));
        break;
    case 17:
        CALL(das_acquisition_set_sampling_frequency(a, pick(f, 3) ? 20e6 : real(f), err(f)));
        break;
    case 18:
        CALL(das_acquisition_set_sound_speed(a, pick(f, 3) ? 1500 : real(f), err(f)));
        break;
    case 19:
        CALL(das_acquisition_set_demodulation_frequency(a, real(f), err(f)));
        break;
    case 20:
        CALL(das_acquisition_set_data(a, small(f), whole(f), err(f)));
        break;
    case 21:
        CALL(das_acquisition_set_frame_count(a, n, err(f)));
        break;
    case 22:
        CALL(das_acquisition_set_sample_offset(a, real(f), err(f)));
        break;
    case 23:
        CALL(das_acquisition_set_data_strides(a, whole(f), whole(f), whole(f), whole(f), whole(f), err(f)));
        break;
    case 24:
        CALL(das_acquisition_set_traces(a, n, wholes(f, from, n, fits), wholes(f, to, n, fits), reals(f, array, n, fits),
                                        err(f)));
        break;
    default:
        m = pick(f, 16);
        if (pick(f, 2) == 0)
            CALL(das_acquisition_set_trace_strides(a, whole(f), whole(f), whole(f), whole(f), err(f)));
        else if (n >= 0 && n <= 16)
            CALL(das_acquisition_set_pair_weights(a, n, m, reals(f, array, n * m, true), err(f)));
        else
            CALL(das_acquisition_set_pair_weights(a, n, whole(f), NULL, err(f)));
        break;
    }
}

static void fuzz_grid(fuzz *f)
{
    static double axis[3][3 * LONGEST];
    das_grid **slot = &ANY(grid);
    double origin[3] = {real(f), real(f), real(f)}, steps[9], point[3];
    int64_t counts[3], shape[3];
    bool fits[3];
    for (int i = 0; i < 9; i++)
        steps[i] = i % 4 == 0 ? 1e-3 : 0;
    steps[pick(f, 9)] = real(f);
    for (int i = 0; i < 3; i++)
        counts[i] = count_of(f, &fits[i]);
    switch (pick(f, 5)) {
    case 0:
    case 1:
        CREATE(*slot, das_grid_destroy,
               das_grid_create_cartesian(pick(f, 20) ? origin : NULL, pick(f, 20) ? steps : NULL,
                                         pick(f, 20) ? counts : NULL, slot, err(f)));
        break;
    case 2:
        CREATE(*slot, das_grid_destroy,
               das_grid_create_polar(origin, counts[0], reals(f, axis[0], counts[0], fits[0]), counts[1],
                                     reals(f, axis[1], counts[1], fits[1]), counts[2],
                                     reals(f, axis[2], counts[2], fits[2]), slot, err(f)));
        break;
    case 3:
        CREATE(*slot, das_grid_destroy,
               das_grid_create_points(counts[0], reals(f, axis[0], counts[0], fits[0]), slot, err(f)));
        break;
    default:
        CALL(das_grid_get_shape(*slot, pick(f, 10) ? shape : NULL, err(f)));
        CALL(das_grid_get_point(*slot, counts[0], counts[1], counts[2], pick(f, 10) ? point : NULL, err(f)));
        break;
    }
}

static void fuzz_options(fuzz *f)
{
    static double array[3 * LONGEST];
    static float floats[LONGEST];
    das_options **slot = &ANY(options);
    das_options *o = *slot;
    int64_t strides[6], rows = pick(f, 10), points = pick(f, 50), n;
    bool fits;
    n = count_of(f, &fits);
    for (int i = 0; i < 6; i++)
        strides[i] = whole(f);
    for (int i = 0; i < LONGEST; i++)
        floats[i] = 1;
    floats[pick(f, 256)] = (float)real(f);
    switch (pick(f, 23)) {
    case 0:
        CREATE(*slot, das_options_destroy, das_options_create(slot, err(f)));
        break;
    case 1:
        CALL(das_options_set_interpolation(o, small(f), err(f)));
        break;
    case 2:
        CALL(das_options_set_f_number(o, real(f), err(f)));
        break;
    case 3:
        CALL(das_options_set_window(o, small(f), real(f), err(f)));
        break;
    case 4:
        CALL(das_options_set_window_table(o, n, reals(f, array, n, fits), err(f)));
        break;
    case 5:
        CALL(das_options_set_normalization(o, small(f), err(f)));
        break;
    case 6:
        CALL(das_options_set_keep_transmit(o, small(f), err(f)));
        break;
    case 7:
        CALL(das_options_set_keep_receive(o, small(f), err(f)));
        break;
    case 8:
        CALL(das_options_set_outside(o, small(f), err(f)));
        break;
    case 9:
        CALL(das_options_set_precision(o, small(f), err(f)));
        break;
    case 10:
        CALL(das_options_set_image_type(o, small(f), err(f)));
        break;
    case 11:
        CALL(das_options_set_image_strides(o, whole(f), pick(f, 4) ? strides : NULL, err(f)));
        break;
    case 12:
        CALL(das_options_set_phase_reference(o, small(f), err(f)));
        break;
    case 13:
        CALL(das_options_set_max_in_flight(o, whole(f), err(f)));
        break;
    case 14:
        CALL(das_options_set_incremental(o, small(f), err(f)));
        break;
    case 15:
        CALL(das_options_set_memory_budget(o, (uint64_t)whole(f), err(f)));
        break;
    case 16:
        CALL(das_options_set_fast_paths(o, small(f), err(f)));
        break;
    /* Tables are borrowed: take them away again before their memory changes. */
    case 17:
        CALL(das_options_set_transmit_times(o, rows, points, reals(f, array, rows * points, true), err(f)));
        break;
    case 18:
        CALL(das_options_set_receive_times(o, rows, points, reals(f, array, rows * points, true), err(f)));
        break;
    case 19:
        CALL(das_options_set_transmit_weights(o, rows, points, pick(f, 10) ? floats : NULL, err(f)));
        break;
    case 20:
        CALL(das_options_set_receive_weights(o, rows, points, pick(f, 10) ? floats : NULL, err(f)));
        break;
    case 21:
        CALL(das_options_set_transmit_times(o, n, whole(f), NULL, err(f)));
        break;
    default:
        CALL(das_options_set_receive_weights(o, n, whole(f), NULL, err(f)));
        break;
    }
}

static void fuzz_device(fuzz *f)
{
    static const char *const names[] = {"cpu", "cpu", "cpu", "auto", "cuda:99", "opencl:-1", "", "cpu:1", "CPU", "\xff\xfe",
                                        "cuda:99999999999999999999", "none", "cpu "};
    static const char *const isas[] = {"scalar", "avx2", "avx512", "neon", "", "sse", NULL};
    das_device_options **options = &ANY(device_options);
    das_device **slot = &ANY(device);
    union {
        das_device_info info;
        unsigned char bytes[sizeof(das_device_info) + 64];
    } out;
    int64_t count;
    switch (pick(f, 9)) {
    case 0:
        CREATE(*options, das_device_options_destroy, das_device_options_create(options, err(f)));
        break;
    case 1:
        CALL(das_device_options_set_thread_count(*options, pick(f, 2) ? pick(f, 5) : whole(f), err(f)));
        break;
    case 2:
        CALL(das_device_options_set_isa(*options, isas[pick(f, 7)], err(f)));
        break;
    case 3:
        memset(&out, 0xC3, sizeof out);
        out.info.struct_size = (uint32_t)pick(f, (int)sizeof out.info + 1);
        count = out.info.struct_size;
        if (pick(f, 2) == 0)
            CALL(das_device_get_info(*slot, &out.info, err(f)));
        else
            CALL(das_device_list(whole(f), &out.info, err(f)));
        for (size_t i = (size_t)(count > 4 ? count : 4); i < sizeof out; i++)
            EXPECT_MSG(out.bytes[i] == 0xC3, "byte %d written beyond struct_size %d", (int)i, (int)count);
        break;
    case 4:
        CALL(das_device_count(pick(f, 5) ? &count : NULL, err(f)));
        break;
    default:
        CREATE(*slot, das_device_destroy,
               das_device_open(names[pick(f, 13)], pick(f, 2) ? *options : NULL, slot, err(f)));
        break;
    }
}

static void fuzz_plan(fuzz *f)
{
    das_plan **slot = &ANY(plan);
    das_device *device = ANY(device);
    das_acquisition *acquisition = ANY(acquisition);
    das_grid *grid = ANY(grid);
    das_options *options = pick(f, 2) ? ANY(options) : NULL;
    union {
        das_plan_info info;
        unsigned char bytes[sizeof(das_plan_info) + 64];
    } out;
    uint32_t size = (uint32_t)(pick(f, 2) ? sizeof out.info : (size_t)pick(f, (int)sizeof out.info + 1));
    memset(&out, 0xC3, sizeof out);
    out.info.struct_size = size;
    switch (pick(f, 4)) {
    case 0:
        CALL(das_plan_query(device, acquisition, grid, options, pick(f, 10) ? &out.info : NULL, err(f)));
        break;
    case 1:
        CALL(das_plan_get_info(*slot, pick(f, 10) ? &out.info : NULL, err(f)));
        break;
    default:
        CREATE(*slot, das_plan_destroy, das_plan_create(device, acquisition, grid, options, slot, err(f)));
        EXPECT(das_plan_description(*slot) != NULL);
        break;
    }
    for (size_t i = size > 4 ? size : 4; i < sizeof out; i++)
        EXPECT_MSG(out.bytes[i] == 0xC3, "byte %d written beyond struct_size %d", (int)i, (int)size);
}

/* Work worth more than an instant is left out, but only what the plan says it is. */
static bool quick(const das_plan *plan)
{
    das_plan_info info;
    double frames;
    memset(&info, 0, sizeof info);
    info.struct_size = sizeof info;
    if (plan == NULL || das_plan_get_info(plan, &info, NULL) != DAS_OK)
        return true;
    frames = (double)info.image_shape[0];
    return (double)info.points * (double)info.pairs * frames < 3e5 && (double)info.points * frames * 64 < 3e6 &&
           info.image_shape[1] * info.image_shape[2] < 4096;
}

static int32_t stop_sometimes(void *context, double fraction)
{
    return fraction >= 0 && *(const int *)context == 0;
}

static void fuzz_run(fuzz *f)
{
    static int go_on;
    das_run **slot = &ANY(run);
    das_timing timing;
    memset(&timing, 0, sizeof timing);
    timing.struct_size = (uint32_t)(pick(f, 2) ? sizeof timing : (size_t)pick(f, (int)sizeof timing));
    go_on = pick(f, 4);
    switch (pick(f, 7)) {
    case 0:
        CREATE(*slot, das_run_destroy, das_run_create(ANY(device), slot, err(f)));
        break;
    case 1:
        CALL(das_run_set_frames(*slot, whole(f), whole(f), whole(f), err(f)));
        break;
    case 2:
        CALL(das_run_set_transmits(*slot, whole(f), whole(f), err(f)));
        break;
    case 3:
        CALL(das_run_set_accumulate(*slot, small(f), err(f)));
        break;
    case 4:
        CALL(das_run_set_progress(*slot, pick(f, 2) ? stop_sometimes : NULL, &go_on, err(f)));
        break;
    case 5:
        CALL(das_run_enable_timing(*slot, small(f), err(f)));
        break;
    default:
        CALL(das_run_get_timing(*slot, &timing, err(f)));
        break;
    }
}

static void fuzz_buffer(fuzz *f)
{
    das_buffer **slot = &ANY(buffer);
    das_queue **queue = &ANY(queue);
    das_event **event = &ANY(event);
    das_device *device = ANY(device);
    int64_t shape[8], strides[8];
    uint64_t offset = (uint64_t)whole(f), bytes = (uint64_t)whole(f);
    double milliseconds;
    for (int i = 0; i < 8; i++) {
        shape[i] = whole(f);
        strides[i] = whole(f);
    }
    switch (pick(f, 15)) {
    case 0:
    case 1:
        if (pick(f, 4) != 0)
            bytes = bits(f, 2);
        if (bytes > 1u << 20) /* what nobody has, or a little; not what takes the machine's memory */
            bytes |= UINT64_C(1) << 60;
        CREATE(*slot, das_buffer_destroy,
               das_buffer_create(device, bytes, pick(f, 3) ? pick(f, 2) : small(f), slot, err(f)));
        break;
    case 2:
        CREATE(*slot, das_buffer_destroy,
               das_buffer_import_pointer(device, pick(f, 10) ? host : NULL, bytes % MOST_BYTES, NULL, NULL, slot, err(f)));
        break;
    case 3:
        CALL(das_buffer_describe(*slot, small(f), small(f), pick(f, 5) ? shape : NULL, pick(f, 2) ? strides : NULL, err(f)));
        break;
    case 4:
        if (bytes > MOST_BYTES)
            CALL(das_buffer_upload(*queue, *slot, offset, NULL, bytes, err(f)));
        else
            CALL(das_buffer_upload(*queue, *slot, offset, host, bytes, err(f)));
        break;
    case 5:
        if (bytes > MOST_BYTES)
            CALL(das_buffer_download(*queue, *slot, offset, NULL, bytes, err(f)));
        else
            CALL(das_buffer_download(*queue, *slot, offset, host, bytes, err(f)));
        break;
    case 6:
    case 7:
        CREATE(*queue, das_queue_destroy, das_queue_create(device, queue, err(f)));
        break;
    case 8:
        CALL(das_queue_wait(*queue, err(f)));
        break;
    case 9:
        CREATE(*event, das_event_destroy, das_event_create(device, event, err(f)));
        break;
    case 10:
        CALL(das_event_record(*event, *queue, err(f)));
        break;
    case 11:
        CALL(das_queue_wait_event(*queue, *event, err(f)));
        break;
    case 12:
        CALL(das_event_query(*event, err(f)));
        break;
    case 13:
        CALL(das_event_elapsed(*event, ANY(event), pick(f, 10) ? &milliseconds : NULL, err(f)));
        break;
    default:
        CALL(das_event_wait(*event, err(f)));
        EXPECT(*slot != NULL || das_buffer_bytes(*slot) == 0);
        EXPECT(*slot != NULL || das_buffer_host_pointer(*slot) == NULL);
        break;
    }
}

static void fuzz_reconstruct(fuzz *f)
{
    static unsigned char image[MOST_BYTES];
    das_plan *plan = ANY(plan);
    das_run *run = pick(f, 2) ? ANY(run) : NULL;
    size_t data_bytes = pick(f, 2) ? sizeof host : bits(f, 2), image_bytes = pick(f, 2) ? sizeof image : bits(f, 2);
    if (!quick(plan))
        return;
    if (pick(f, 2) == 0)
        CALL(das_reconstruct_host(plan, pick(f, 16) ? host : NULL, data_bytes, pick(f, 16) ? image : NULL, image_bytes, run,
                                  err(f)));
    else
        CALL(das_reconstruct(plan, pick(f, 2) ? ANY(queue) : NULL, ANY(buffer), ANY(buffer), run, err(f)));
}

/* A setting that works, so that the calls above have something to break. */
static void begin_sensibly(fuzz *f)
{
    static const double elements[4][3] = {{0}, {1e-3, 0, 0}, {2e-3, 0, 0}, {3e-3, 0, 0}}, origin[3] = {0, 0, 5e-3};
    static const double steps[9] = {1e-3, 0, 0, 0, 0, 1e-3, 0, 0, 0};
    static const int64_t counts[3] = {5, 7, 1};
    das_device_options *one = NULL;
    das_device_options_create(&one, NULL);
    das_device_options_set_thread_count(one, 1, NULL);
    das_device_open("cpu", one, &f->device[0], NULL);
    das_device_options_destroy(&one);
    das_acquisition_create(&f->acquisition[0], NULL);
    das_acquisition_set_receive_elements(f->acquisition[0], 4, &elements[0][0], NULL);
    das_acquisition_add_element_transmits(f->acquisition[0], NULL);
    das_acquisition_set_sampling_frequency(f->acquisition[0], 20e6, NULL);
    das_acquisition_set_sound_speed(f->acquisition[0], 1500, NULL);
    das_acquisition_set_data(f->acquisition[0], DAS_TYPE_I16, 200, NULL);
    das_grid_create_cartesian(origin, steps, counts, &f->grid[0], NULL);
    das_options_create(&f->options[0], NULL);
    das_run_create(f->device[0], &f->run[0], NULL);
    das_queue_create(f->device[0], &f->queue[0], NULL);
    das_buffer_create(f->device[0], MOST_BYTES, DAS_MEMORY_DEVICE, &f->buffer[0], NULL);
    das_buffer_upload(f->queue[0], f->buffer[0], 0, host, MOST_BYTES, NULL);
    das_buffer_create(f->device[0], MOST_BYTES, DAS_MEMORY_HOST, &f->buffer[1], NULL);
    das_plan_create(f->device[0], f->acquisition[0], f->grid[0], f->options[0], &f->plan[0], NULL);
    EXPECT_MSG(f->plan[0] != NULL && f->buffer[1] != NULL, "the sensible setting does not work");
}

static void destroy_all(fuzz *f)
{
    int first = pick(f, 10);
    for (int k = 0; k < 10; k++)
        for (int i = 0; i < OBJECTS; i++)
            switch ((first + k * 3) % 10) { /* 3 and 10 have no common divisor: each kind once */
            case 0:
                das_acquisition_destroy(&f->acquisition[i]);
                break;
            case 1:
                das_grid_destroy(&f->grid[i]);
                break;
            case 2:
                das_options_destroy(&f->options[i]);
                break;
            case 3:
                das_device_options_destroy(&f->device_options[i]);
                break;
            case 4:
                das_device_destroy(&f->device[i]);
                break;
            case 5:
                das_plan_destroy(&f->plan[i]);
                break;
            case 6:
                das_run_destroy(&f->run[i]);
                break;
            case 7:
                das_queue_destroy(&f->queue[i]);
                break;
            case 8:
                das_event_destroy(&f->event[i]);
                break;
            default:
                das_buffer_destroy(&f->buffer[i]);
                break;
            }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static fuzz state;
    fuzz *f = &state;
    memset(f, 0, sizeof *f);
    f->in.data = data;
    f->in.left = size;
    memset(host, 0x3C, sizeof host);
    if (pick(f, 8) != 0)
        begin_sensibly(f);
    for (int step = 0; step < STEPS && f->in.left > 0; step++) {
        switch (pick(f, 16)) {
        case 0:
        case 1:
        case 2:
        case 3:
            fuzz_acquisition(f);
            break;
        case 4:
        case 5:
            fuzz_grid(f);
            break;
        case 6:
        case 7:
        case 8:
            fuzz_options(f);
            break;
        case 9:
            fuzz_device(f);
            break;
        case 10:
        case 11:
            fuzz_plan(f);
            break;
        case 12:
            fuzz_run(f);
            break;
        case 13:
            fuzz_buffer(f);
            break;
        default:
            fuzz_reconstruct(f);
            break;
        }
    }
    destroy_all(f);
#ifdef DAS_LIBFUZZER
    if (test_has_failed()) {
        fprintf(stderr, "%s\n", test_failure());
        abort();
    }
#endif
    return 0;
}

/* Allocations that nobody can satisfy are part of the game; the sanitizers look these names up. */
#define VISIBLE __attribute__((visibility("default")))
VISIBLE const char *__asan_default_options(void);
VISIBLE const char *__tsan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}
const char *__tsan_default_options(void)
{
    return "allocator_may_return_null=1";
}

#ifndef DAS_LIBFUZZER
static void run_file(const char *path)
{
    static uint8_t bytes[1 << 16];
    FILE *file = fopen(path, "rb");
    size_t size;
    test_begin("input %s", path);
    if (file == NULL) {
        test_note("cannot be read");
    } else {
        size = fread(bytes, 1, sizeof bytes, file);
        fclose(file);
        LLVMFuzzerTestOneInput(bytes, size);
    }
    test_end();
}

int main(int argc, char **argv)
{
    const char *text = test_option(argc, argv, "--cases"), *small_run = getenv("DAS_TEST_SMALL");
    int cases = text != NULL ? atoi(text) : small_run != NULL ? 2000 : 20000, files = 0;
    uint64_t seed;
    static uint8_t bytes[1500];

    for (int i = 1; i < argc; i++) {
        if (argv[i][0] == '-') {
            i++;
            continue;
        }
        run_file(argv[i]);
        files++;
    }
    if (files > 0)
        return test_finish();
    seed = test_seed(argc, argv, 7);
#if !defined(__SANITIZE_ADDRESS__)
    test_report_crashes();
#endif
    for (int group = 0; group < 10; group++) {
        char why[1300] = "";
        int failures = 0;
        for (int k = group * cases / 10; k < (group + 1) * cases / 10; k++) {
            test_rng rng = test_rng_seeded(seed * 1000003 + (uint64_t)k);
            size_t size = (size_t)test_rng_int(&rng, 1, (int)sizeof bytes);
            for (size_t i = 0; i < size; i++)
                bytes[i] = (uint8_t)test_rng_next(&rng);
            test_begin("random calls, case %d", k);
            LLVMFuzzerTestOneInput(bytes, size);
            if (test_has_failed() && failures++ == 0)
                snprintf(why, sizeof why, "case %d: %s", k, test_failure());
            test_discard();
        }
        test_begin("random calls, cases %d to %d from seed %llu", group * cases / 10, (group + 1) * cases / 10 - 1,
                   (unsigned long long)seed);
        if (failures > 0)
            test_note("%d of them fail; %s", failures, why);
        test_end();
    }
    return test_finish();
}
#endif
