/* das_bench: times the workloads of docs/performance.md on one device and checks the result against the oracle.
 * Random data; medians after a warm-up; device work is timed by the device's own events. */
#define _POSIX_C_SOURCE 200809L
#include "empty_launch.h"
#include "oracle.h"

#include <das/das.h>
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char usage[] =
    "usage: das_bench --workload article|fmc|disk|volume|volume_rf|plane75|tiny [--device D] [--frames N]\n"
    "                 [--dtype i8|u8|i16|u16|f16|f32|f64|ci16|cf16|cf32] [--interp nearest|linear|quadratic|cubic|lanczos]\n"
    "                 [--repeat N] [--json]\n"
    "                 [--f-number F] [--window rect|hann|hamming] [--transmits N] [--precision exact|reduced|double]\n"
    "                 [--threads N] [--isa NAME] [--general] [--budget BYTES] [--seed N] [--literal COLUMNS]\n"
    "                 [--calls N]\n"
    "--general      no fast paths\n"
    "--budget       memory the plan may take\n"
    "--literal      article only: also times its double loop, written literally in C on one thread, over so many columns,\n"
    "               scaled to the image, and compares these columns\n"
    "--calls        also times so many calls on the host, median of 9 rounds: queued one behind the other, and with a wait\n"
    "               after each; on cuda:0 beside launches of an empty kernel\n"
    "Exit status 1 when the result is beyond the error bound, or plan and scratch beyond the input's size + 64 MiB.\n";

/* One workload, in the terms both the library and the oracle understand. */
struct workload {
    const char *name;
    const char *dtype;
    das_interpolation interpolation;
    double f_number;
    int64_t columns, rows; /* of the array, 0 pitch apart in y for one row */
    double pitch_m, first_m;
    int64_t transmits; /* 0: plane waves */
    int64_t planes;
    double last_angle_rad;
    bool shared; /* all transmits share one data set */
    int64_t samples, frames;
    double sampling_frequency_hz, start_time_s, demodulation_frequency_hz, sound_speed_m_s;
    double origin_m[3], last_m[3]; /* of the grid, ends included */
    int64_t counts[3];
};

static const struct workload workloads[] = {
    {"article", "f32", DAS_INTERPOLATION_NEAREST, 0, 128, 1, 0.3e-3, 0, 128, 0, 0, true, 2000, 1, 30e6, 0, 0, 1540,
     {0, 0, 0}, {38.05e-3, 0, 59.95e-3}, {762, 1, 1200}},
    {"fmc", "f32", DAS_INTERPOLATION_LINEAR, 0, 128, 1, 0.3e-3, 0, 128, 0, 0, false, 2000, 1, 30e6, 0, 0, 1540,
     {0, 0, 0}, {38.05e-3, 0, 59.95e-3}, {762, 1, 1200}},
    {"disk", "cf32", DAS_INTERPOLATION_LINEAR, 1, 128, 1, 0.298e-3, -18.923e-3, 0, 1, 0, false, 334, 32, 20e6 / 3, 9.95e-6,
     5e6, 1480, {-12.5e-3, 0, 10e-3}, {12.5e-3, 0, 35e-3}, {251, 1, 251}},
    {"volume", "cf32", DAS_INTERPOLATION_LINEAR, 0, 32, 32, 0.5e-3, -7.75e-3, 0, 1, 0, false, 512, 128, 3.08e6, 0, 3.08e6,
     1540, {-8e-3, -8e-3, 10e-3}, {8e-3, 8e-3, 26e-3}, {64, 64, 64}},
    {"volume_rf", "f32", DAS_INTERPOLATION_LINEAR, 0, 32, 32, 0.5e-3, -7.75e-3, 0, 1, 0, false, 2048, 32, 12.32e6, 0, 0,
     1540, {-8e-3, -8e-3, 10e-3}, {8e-3, 8e-3, 26e-3}, {64, 64, 64}},
    {"plane75", "cf32", DAS_INTERPOLATION_LINEAR, 1.5, 128, 1, 0.3e-3, -19.05e-3, 0, 75, 0.28, false, 1024, 1, 10.416e6, 0,
     5.208e6, 1540, {-19.05e-3, 0, 5e-3}, {19.05e-3, 0, 45e-3}, {512, 1, 512}},
    {"tiny", "f32", DAS_INTERPOLATION_LINEAR, 0, 8, 1, 0.3e-3, -1.05e-3, 0, 1, 0, false, 256, 1, 20e6, 0, 0, 1540,
     {-1e-3, 0, 2e-3}, {1e-3, 0, 5e-3}, {16, 1, 16}},
};

static const struct {
    const char *name;
    das_type type;
    oracle_type oracle;
} types[] = {
    {"i8", DAS_TYPE_I8, ORACLE_I8},      {"u8", DAS_TYPE_U8, ORACLE_U8},       {"i16", DAS_TYPE_I16, ORACLE_I16},
    {"u16", DAS_TYPE_U16, ORACLE_U16},   {"f16", DAS_TYPE_F16, ORACLE_F16},    {"f32", DAS_TYPE_F32, ORACLE_F32},
    {"f64", DAS_TYPE_F64, ORACLE_F64},   {"ci16", DAS_TYPE_CI16, ORACLE_CI16}, {"cf16", DAS_TYPE_CF16, ORACLE_CF16},
    {"cf32", DAS_TYPE_CF32, ORACLE_CF32},
};

static const char *const interpolation_names[] = {"nearest", "linear", "quadratic", "cubic", "lanczos", NULL};
static const char *const window_names[] = {"rect", "hann", "hamming", NULL};
static const char *const precision_names[] = {"exact", "reduced", "double", NULL};

struct settings {
    struct workload work;
    const char *device, *isa;
    int64_t threads, repeat, literal_columns, calls;
    uint64_t budget, seed;
    unsigned type; /* index into types */
    das_window window;
    das_precision precision;
    bool json, general;
};

/* Everything that is measured or made for one workload. */
struct bench {
    das_device *device;
    das_queue *queue;
    das_buffer *data, *image, *host_data, *host_image;
    das_plan *plan;
    das_run *run;
    das_plan_info info;
    das_device_info device_info;
    double plan_ms, upload_ms, pack_ms, compute_ms, download_ms, max_error;
    int64_t resident_growth; /* bytes, -1 unknown */
    int64_t points, points_inside;
    double literal_ms;
    int64_t literal_mismatches, literal_unexplained;
    double call_us[2], empty_us[2]; /* queued, with a wait after each; 0: not measured */
};

#if defined(__GNUC__)
__attribute__((format(printf, 1, 2)))
#endif
static _Noreturn void fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("das_bench: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(EXIT_FAILURE);
}

static void expect(das_status status, const das_error *error, const char *what)
{
    if (status)
        fail("%s: %s: %s", what, das_status_name(status), error->message);
}

static void *allocate(int64_t count, size_t size)
{
    void *memory = calloc((size_t)count, size);
    if (!memory)
        fail("no memory for %" PRId64 " times %zu bytes", count, size);
    return memory;
}

static int64_t parse_integer(const char *option, const char *text, int64_t lowest)
{
    char *end;
    long long value = strtoll(text, &end, 10);
    if (end == text || *end || value < lowest || value == INT64_MAX)
        fail("%s is '%s', expected an integer of at least %" PRId64, option, text, lowest);
    return value;
}

static int32_t choose(const char *option, const char *text, const char *const *names)
{
    for (int32_t k = 0; names[k]; k++)
        if (!strcmp(names[k], text))
            return k;
    fail("%s is '%s', expected one of those --help lists", option, text);
}

static unsigned find_type(const char *name)
{
    for (unsigned k = 0; k < sizeof types / sizeof *types; k++)
        if (!strcmp(types[k].name, name))
            return k;
    fail("--dtype is '%s', expected one of those --help lists", name);
}

static const struct workload *find_workload(const char *name)
{
    for (size_t k = 0; k < sizeof workloads / sizeof *workloads; k++)
        if (!strcmp(workloads[k].name, name))
            return &workloads[k];
    fail("--workload is '%s', expected one of those --help lists", name);
}

static void set_transmits(struct workload *work, int64_t count)
{
    if (work->transmits) {
        if (count > work->columns * work->rows)
            fail("--transmits is %" PRId64 ", expected at most the %" PRId64 " elements", count, work->columns * work->rows);
        work->transmits = count;
    } else {
        work->planes = count;
    }
}

static void parse_command_line(int argc, char **argv, struct settings *settings)
{
    const char *dtype = NULL;
    *settings = (struct settings){.device = "auto", .repeat = 5, .seed = 1};
    for (int k = 1; k < argc; k++)
        if (!strcmp(argv[k], "--workload") && k + 1 < argc)
            settings->work = *find_workload(argv[k + 1]);
        else if (!strcmp(argv[k], "--help")) {
            fputs(usage, stdout);
            exit(EXIT_SUCCESS);
        }
    struct workload *work = &settings->work;
    if (!work->name)
        fail("--workload is missing (--help tells more)");
    for (int k = 1; k < argc; k++) {
        const char *option = argv[k];
        if (!strcmp(option, "--json")) {
            settings->json = true;
            continue;
        }
        if (!strcmp(option, "--general")) {
            settings->general = true;
            continue;
        }
        if (k + 1 == argc)
            fail("%s is no option, or its value is missing (--help tells more)", option);
        const char *value = argv[++k];
        if (!strcmp(option, "--device"))
            settings->device = value;
        else if (!strcmp(option, "--frames"))
            work->frames = parse_integer(option, value, 1);
        else if (!strcmp(option, "--dtype"))
            dtype = value;
        else if (!strcmp(option, "--interp"))
            work->interpolation = choose(option, value, interpolation_names);
        else if (!strcmp(option, "--repeat"))
            settings->repeat = parse_integer(option, value, 1);
        else if (!strcmp(option, "--f-number")) {
            char *end;
            work->f_number = strtod(value, &end);
            if (end == value || *end || !isfinite(work->f_number) || work->f_number < 0)
                fail("--f-number is '%s', expected a number of at least 0", value);
        } else if (!strcmp(option, "--window"))
            settings->window = choose(option, value, window_names);
        else if (!strcmp(option, "--transmits"))
            set_transmits(work, parse_integer(option, value, 1));
        else if (!strcmp(option, "--precision"))
            settings->precision = choose(option, value, precision_names);
        else if (!strcmp(option, "--threads"))
            settings->threads = parse_integer(option, value, 0);
        else if (!strcmp(option, "--isa"))
            settings->isa = value;
        else if (!strcmp(option, "--budget"))
            settings->budget = (uint64_t)parse_integer(option, value, 0);
        else if (!strcmp(option, "--seed"))
            settings->seed = (uint64_t)parse_integer(option, value, 0);
        else if (!strcmp(option, "--literal"))
            settings->literal_columns = parse_integer(option, value, 1);
        else if (!strcmp(option, "--calls"))
            settings->calls = parse_integer(option, value, 1);
        else if (strcmp(option, "--workload") != 0)
            fail("%s is no option, expected one of those --help lists", option);
    }
    settings->type = find_type(dtype ? dtype : work->dtype);
    if (oracle_is_complex(types[settings->type].oracle) != (work->dtype[0] == 'c'))
        fail("--dtype is '%s', expected %s samples for the %s workload", types[settings->type].name,
             work->dtype[0] == 'c' ? "complex" : "real", work->name);
    if (settings->literal_columns && (!work->shared || settings->literal_columns > work->counts[0]))
        fail("--literal is %" PRId64 ", expected the article workload and at most %" PRId64 " columns",
             settings->literal_columns, work->counts[0]);
}

static int64_t element_count(const struct workload *work)
{
    return work->columns * work->rows;
}

static int64_t transmit_count(const struct workload *work)
{
    return work->transmits ? work->transmits : work->planes;
}

static void element_position(const struct workload *work, int64_t index, double position[3])
{
    position[0] = work->first_m + (double)(index % work->columns) * work->pitch_m;
    position[1] = work->rows > 1 ? work->first_m + (double)(index / work->columns) * work->pitch_m : 0;
    position[2] = 0;
}

static double plane_angle(const struct workload *work, int64_t index)
{
    return work->planes > 1 ? work->last_angle_rad * (2.0 * (double)index / (double)(work->planes - 1) - 1) : 0;
}

static double step(const struct workload *work, int axis)
{
    return work->counts[axis] > 1 ? (work->last_m[axis] - work->origin_m[axis]) / (double)(work->counts[axis] - 1) : 0;
}

static int64_t data_stride_frame(const struct workload *work)
{
    return (work->shared ? 1 : transmit_count(work)) * element_count(work) * work->samples;
}

/* splitmix64. */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* Random samples: the whole range of the integers, -1..1 for floats; whole numbers of at most 999 for the article, so
 * that its sums are exact in float. */
static void fill(const struct settings *settings, void *data, uint64_t bytes)
{
    uint64_t state = settings->seed;
    das_type type = types[settings->type].type;
    bool whole = settings->work.shared;
    if (type == DAS_TYPE_F32 || type == DAS_TYPE_CF32) {
        float *out = data;
        for (uint64_t k = 0; k < bytes / 4; k++) {
            uint64_t z = next_random(&state);
            out[k] = whole ? (float)(int)(z % 1999) - 999 : (float)(int32_t)(z >> 32) * 0x1p-31F;
        }
    } else if (type == DAS_TYPE_F64) {
        double *out = data;
        for (uint64_t k = 0; k < bytes / 8; k++) {
            uint64_t z = next_random(&state);
            out[k] = whole ? (double)(int)(z % 1999) - 999 : (double)(int64_t)z * 0x1p-63;
        }
    } else if (type == DAS_TYPE_F16 || type == DAS_TYPE_CF16) {
        uint16_t *out = data;
        for (uint64_t k = 0; k < bytes / 2; k++) {
            uint64_t z = next_random(&state);
            out[k] = oracle_double_to_half(whole ? (double)(int)(z % 1999) - 999 : (double)(int32_t)(z >> 32) * 0x1p-31);
        }
    } else if (whole && type == DAS_TYPE_I16) {
        int16_t *out = data;
        for (uint64_t k = 0; k < bytes / 2; k++)
            out[k] = (int16_t)((int)(next_random(&state) % 1999) - 999);
    } else {
        unsigned char *out = data;
        for (uint64_t k = 0; k < bytes; k++)
            out[k] = (unsigned char)(next_random(&state) >> 56);
    }
}

/* (point, element) pairs inside the aperture, by the definition of docs/conventions.md. */
static int64_t count_inside(const struct workload *work)
{
    int64_t elements = element_count(work), inside = 0;
    if (!(work->f_number > 0))
        return work->counts[0] * work->counts[1] * work->counts[2] * elements;
    double edge = 1e-3 * work->sound_speed_m_s / work->sampling_frequency_hz;
    for (int64_t k = 0; k < elements; k++) {
        double e[3];
        element_position(work, k, e);
        for (int64_t iz = 0; iz < work->counts[2]; iz++) {
            double h = work->origin_m[2] + (double)iz * step(work, 2) - e[2];
            double reach = h / (2 * work->f_number) + edge;
            for (int64_t iy = 0; iy < work->counts[1] && h > edge; iy++) {
                double dy = work->origin_m[1] + (double)iy * step(work, 1) - e[1];
                for (int64_t ix = 0; ix < work->counts[0]; ix++) {
                    double dx = work->origin_m[0] + (double)ix * step(work, 0) - e[0];
                    inside += dx * dx + dy * dy <= reach * reach;
                }
            }
        }
    }
    return inside;
}

static void describe(const struct settings *settings, das_acquisition **acquisition, das_grid **grid, das_options **options)
{
    const struct workload *work = &settings->work;
    das_error error = DAS_ERROR_INIT;
    int64_t elements = element_count(work);
    double *positions = allocate(elements, 3 * sizeof *positions);
    for (int64_t k = 0; k < elements; k++)
        element_position(work, k, positions + 3 * k);
    expect(das_acquisition_create(acquisition, &error), &error, "acquisition");
    expect(das_acquisition_set_receive_elements(*acquisition, elements, positions, &error), &error, "elements");
    for (int64_t k = 0; k < work->transmits; k++)
        expect(das_acquisition_add_element_transmit(*acquisition, positions + 3 * k, &error), &error, "transmits");
    for (int64_t k = 0; k < work->planes; k++)
        expect(das_acquisition_add_plane_transmit(*acquisition, plane_angle(work, k), &error), &error, "transmits");
    free(positions);
    expect(das_acquisition_set_start_times(*acquisition, 1, &work->start_time_s, &error), &error, "start time");
    expect(das_acquisition_set_sampling_frequency(*acquisition, work->sampling_frequency_hz, &error), &error, "fs");
    expect(das_acquisition_set_sound_speed(*acquisition, work->sound_speed_m_s, &error), &error, "sound speed");
    expect(das_acquisition_set_demodulation_frequency(*acquisition, work->demodulation_frequency_hz, &error), &error, "f_d");
    expect(das_acquisition_set_data(*acquisition, types[settings->type].type, work->samples, &error), &error, "data");
    expect(das_acquisition_set_frame_count(*acquisition, work->frames, &error), &error, "frames");
    expect(das_acquisition_set_data_strides(*acquisition, 0, data_stride_frame(work),
                                            work->shared ? 0 : elements * work->samples, work->samples, 1, &error),
           &error, "strides");

    double steps[9] = {0};
    for (int axis = 0; axis < 3; axis++)
        steps[3 * axis + axis] = step(work, axis);
    expect(das_grid_create_cartesian(work->origin_m, steps, work->counts, grid, &error), &error, "grid");

    expect(das_options_create(options, &error), &error, "options");
    expect(das_options_set_interpolation(*options, work->interpolation, &error), &error, "--interp");
    expect(das_options_set_f_number(*options, work->f_number, &error), &error, "--f-number");
    expect(das_options_set_window(*options, settings->window, 0, &error), &error, "--window");
    expect(das_options_set_precision(*options, settings->precision, &error), &error, "--precision");
    expect(das_options_set_fast_paths(*options, !settings->general, &error), &error, "--general");
    expect(das_options_set_memory_budget(*options, settings->budget, &error), &error, "--budget");
}

/* Bytes of memory the process has in RAM now; -1 where that cannot be told. */
static int64_t resident_bytes(void)
{
    long long pages = -1, total;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file)
        return -1;
    if (fscanf(file, "%lld %lld", &total, &pages) != 2)
        pages = -1;
    fclose(file);
    return pages < 0 ? -1 : pages * sysconf(_SC_PAGESIZE);
}

static double clock_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int64_t count)
{
    qsort(values, (size_t)count, sizeof *values, compare_doubles);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

static void open_device(const struct settings *settings, struct bench *bench)
{
    das_error error = DAS_ERROR_INIT;
    das_device_options *options = NULL;
    expect(das_device_options_create(&options, &error), &error, "device options");
    expect(das_device_options_set_thread_count(options, settings->threads, &error), &error, "--threads");
    expect(das_device_options_set_isa(options, settings->isa, &error), &error, "--isa");
    expect(das_device_open(settings->device, options, &bench->device, &error), &error, "--device");
    das_device_options_destroy(&options);
    bench->device_info.struct_size = sizeof bench->device_info;
    expect(das_device_get_info(bench->device, &bench->device_info, &error), &error, "--device");
    expect(das_queue_create(bench->device, &bench->queue, &error), &error, "queue");
    expect(das_run_create(bench->device, &bench->run, &error), &error, "run");
    expect(das_run_enable_timing(bench->run, 1, &error), &error, "timing");
}

static void make_buffers(const struct settings *settings, struct bench *bench)
{
    das_error error = DAS_ERROR_INIT;
    uint64_t in = bench->info.input_bytes, out = bench->info.output_bytes;
    expect(das_buffer_create(bench->device, in, DAS_MEMORY_DEVICE, &bench->data, &error), &error, "data buffer");
    expect(das_buffer_create(bench->device, out, DAS_MEMORY_DEVICE, &bench->image, &error), &error, "image buffer");
    expect(das_buffer_create(bench->device, in, DAS_MEMORY_HOST, &bench->host_data, &error), &error, "host data");
    expect(das_buffer_create(bench->device, out, DAS_MEMORY_HOST, &bench->host_image, &error), &error, "host image");
    fill(settings, das_buffer_host_pointer(bench->host_data), in);
    memset(das_buffer_host_pointer(bench->host_image), 0xff, (size_t)out);
    /* so that the memory of the buffers is not taken for the plan's */
    expect(das_buffer_upload(NULL, bench->image, 0, das_buffer_host_pointer(bench->host_image), out, &error), &error,
           "upload");
    expect(das_buffer_upload(NULL, bench->data, 0, das_buffer_host_pointer(bench->host_data), in, &error), &error, "upload");
}

/* Upload, reconstruct, download once; the times of each. */
static void run_once(struct bench *bench, das_event *events[4], double times[4])
{
    das_error error = DAS_ERROR_INIT;
    das_timing timing = {.struct_size = sizeof timing};
    expect(das_event_record(events[0], bench->queue, &error), &error, "event");
    expect(das_buffer_upload(bench->queue, bench->data, 0, das_buffer_host_pointer(bench->host_data),
                             bench->info.input_bytes, &error), &error, "upload");
    expect(das_event_record(events[1], bench->queue, &error), &error, "event");
    expect(das_reconstruct(bench->plan, bench->queue, bench->data, bench->image, bench->run, &error), &error, "reconstruct");
    expect(das_event_record(events[2], bench->queue, &error), &error, "event");
    expect(das_buffer_download(bench->queue, bench->image, 0, das_buffer_host_pointer(bench->host_image),
                               bench->info.output_bytes, &error), &error, "download");
    expect(das_event_record(events[3], bench->queue, &error), &error, "event");
    expect(das_queue_wait(bench->queue, &error), &error, "wait");
    expect(das_event_elapsed(events[0], events[1], &times[0], &error), &error, "upload time");
    expect(das_event_elapsed(events[2], events[3], &times[3], &error), &error, "download time");
    expect(das_run_get_timing(bench->run, &timing, &error), &error, "timing");
    times[1] = timing.pack_ms;
    times[2] = timing.compute_ms;
}

static void measure(const struct settings *settings, struct bench *bench)
{
    das_error error = DAS_ERROR_INIT;
    das_event *events[4] = {NULL};
    double times[4], *all[4], *medians[4] = {&bench->upload_ms, &bench->pack_ms, &bench->compute_ms, &bench->download_ms};
    for (int k = 0; k < 4; k++) {
        expect(das_event_create(bench->device, &events[k], &error), &error, "event");
        all[k] = allocate(settings->repeat, sizeof(double));
    }
    run_once(bench, events, times);
    for (int64_t n = 0; n < settings->repeat; n++) {
        run_once(bench, events, times);
        for (int k = 0; k < 4; k++)
            all[k][n] = times[k];
    }
    for (int k = 0; k < 4; k++) {
        *medians[k] = median(all[k], settings->repeat);
        free(all[k]);
        das_event_destroy(&events[k]);
    }
}

/* What calls take on the host, and launches of an empty kernel where the device is CUDA's first. */
static void measure_calls(const struct settings *settings, struct bench *bench)
{
    enum { ROUNDS = 9 };
    das_error error = DAS_ERROR_INIT;
    const char *why = NULL;
    const bool empty = !strcmp(bench->device_info.name, "cuda:0");
    if (empty && !empty_launch_open(&why))
        fail("--calls: %s", why);
    for (int wait = 0; wait < 2; wait++) {
        double times[2][ROUNDS];
        /* The first round warms up. */
        for (int round = -1; round < ROUNDS; round++) {
            double start = clock_ms();
            for (int64_t n = 0; n < settings->calls; n++) {
                expect(das_reconstruct(bench->plan, bench->queue, bench->data, bench->image, NULL, &error), &error, "--calls");
                if (wait)
                    expect(das_queue_wait(bench->queue, &error), &error, "--calls");
            }
            expect(das_queue_wait(bench->queue, &error), &error, "--calls");
            double middle = clock_ms();
            if (empty && !empty_launch_run(settings->calls, wait != 0))
                fail("--calls: launching an empty kernel failed");
            if (round >= 0) {
                times[0][round] = middle - start;
                times[1][round] = clock_ms() - middle;
            }
        }
        bench->call_us[wait] = median(times[0], ROUNDS) * 1e3 / (double)settings->calls;
        bench->empty_us[wait] = empty ? median(times[1], ROUNDS) * 1e3 / (double)settings->calls : 0;
    }
}

static void describe_for_oracle(const struct settings *settings, const void *data, oracle_problem *problem)
{
    const struct workload *work = &settings->work;
    int64_t elements = element_count(work), transmits = transmit_count(work);
    oracle_element *element = allocate(elements, sizeof *element);
    oracle_transmit *transmit = allocate(transmits, sizeof *transmit);
    for (int64_t k = 0; k < elements; k++) {
        element_position(work, k, element[k].position);
        element[k].normal[2] = 1;
        element[k].weight = 1;
    }
    for (int64_t k = 0; k < transmits; k++) {
        transmit[k] = (oracle_transmit){.wave = work->transmits ? ORACLE_ELEMENT : ORACLE_PLANE,
                                        .start_time_s = work->start_time_s,
                                        .weight = 1};
        if (work->transmits) {
            element_position(work, k, transmit[k].vector);
        } else {
            transmit[k].vector[0] = sin(plane_angle(work, k));
            transmit[k].vector[2] = cos(plane_angle(work, k));
        }
    }
    static const oracle_interpolation interpolations[] = {ORACLE_NEAREST, ORACLE_LINEAR, ORACLE_QUADRATIC, ORACLE_CUBIC,
                                                          ORACLE_LANCZOS3};
    static const oracle_window windows[] = {ORACLE_RECT, ORACLE_HANN, ORACLE_HAMMING};
    *problem = (oracle_problem){
        .data = data,
        .type = types[settings->type].oracle,
        .samples = work->samples,
        .frame_stride = data_stride_frame(work),
        .transmit_stride = work->shared ? 0 : elements * work->samples,
        .receive_stride = work->samples,
        .sample_stride = 1,
        .sampling_frequency_hz = work->sampling_frequency_hz,
        .demodulation_frequency_hz = work->demodulation_frequency_hz,
        .sound_speed_m_s = work->sound_speed_m_s,
        .transmits = transmits,
        .receives = elements,
        .transmit = transmit,
        .element = element,
        .grid = {.kind = ORACLE_CARTESIAN},
        .interpolation = interpolations[work->interpolation],
        .f_number = work->f_number,
        .window = windows[settings->window],
        .double_precision = settings->precision == DAS_PRECISION_DOUBLE,
    };
    for (int axis = 0; axis < 3; axis++) {
        problem->grid.count[axis] = work->counts[axis];
        problem->grid.origin[axis] = work->origin_m[axis];
        problem->grid.step[axis][axis] = step(work, axis);
    }
}

static double image_value(const struct bench *bench, int64_t index, int part)
{
    const void *image = das_buffer_host_pointer(bench->host_image);
    switch (bench->info.image_type) {
    case DAS_TYPE_F32: return part ? 0 : (double)((const float *)image)[index];
    case DAS_TYPE_CF32: return (double)((const float *)image)[2 * index + part];
    case DAS_TYPE_F64: return part ? 0 : ((const double *)image)[index];
    default: return ((const double *)image)[2 * index + part];
    }
}

/* Relative L2 error over 1000 random points, beyond the jumps that nearest and quadratic are allowed at ties. */
static double oracle_error(const struct settings *settings, const struct bench *bench)
{
    enum { POINTS = 1000 };
    oracle_problem problem;
    uint64_t state = settings->seed + 12345;
    double error = 0, norm = 0;
    describe_for_oracle(settings, das_buffer_host_pointer(bench->host_data), &problem);
    for (int compared = 0, tried = 0; compared < POINTS; tried++) {
        if (tried == 100 * POINTS)
            fail("too many of the random points lie on an edge");
        int64_t point = (int64_t)(next_random(&state) % (uint64_t)bench->info.points);
        int64_t frame = (int64_t)(next_random(&state) % (uint64_t)settings->work.frames);
        oracle_value value;
        if (!oracle_point(&problem, point, frame, 1, &value))
            fail("no memory for the oracle");
        if (value.edges)
            continue;
        int64_t index = frame * bench->info.points + point;
        double d = hypot(image_value(bench, index, 0) - value.re, image_value(bench, index, 1) - value.im);
        /* not fmax, which would lose a NaN */
        d = d <= value.slack ? 0 : d - value.slack;
        error += d * d;
        norm += value.re * value.re + value.im * value.im;
        compared++;
    }
    free((void *)(uintptr_t)problem.element);
    free((void *)(uintptr_t)problem.transmit);
    return norm > 0 ? sqrt(error / norm) : (double)INFINITY;
}

/* The article's loop as it stands, over `columns` evenly spread columns: its time for the whole image, and the pixels of
 * these columns where the library's image differs, by more than sample positions close to a tie explain. */
static void literal_loop(const struct settings *settings, struct bench *bench)
{
    const struct workload *work = &settings->work;
    int64_t channels = element_count(work), width = work->counts[0], height = work->counts[2];
    int64_t fires = work->transmits, columns = settings->literal_columns;
    oracle_problem problem;
    describe_for_oracle(settings, das_buffer_host_pointer(bench->host_data), &problem);
    int *data = allocate(channels * work->samples, sizeof *data);
    double *out = allocate(columns * height, sizeof *out);
    for (int64_t k = 0; k < channels * work->samples; k++) {
        double value[2];
        oracle_sample(&problem, k, value);
        data[k] = (int)value[0];
    }
    double start = clock_ms();
    for (int64_t c = 0; c < columns; c++) {
        double j = (double)(c * width / columns);
        for (int64_t i = 0; i < height; i++)
            for (int64_t k = 0; k < channels; k++)
                for (int64_t n = 0; n < fires; n++) {
                    double di = (double)i, dk = j - 6 * (double)k, dn = j - 6 * (double)n;
                    double order = nearbyint((sqrt(di * di + dk * dk) + sqrt(di * di + dn * dn)) * 0.05 / 1.54 * 30);
                    if (order < (double)work->samples)
                        out[c * height + i] += data[k * work->samples + (int64_t)order];
                }
    }
    bench->literal_ms = (clock_ms() - start) * (double)width / (double)columns;
    for (int64_t c = 0; c < columns; c++)
        for (int64_t i = 0; i < height; i++) {
            int64_t point = i * width + c * width / columns;
            oracle_value value;
            if (fabs(out[c * height + i] - image_value(bench, point, 0)) < 0.5)
                continue;
            bench->literal_mismatches++;
            if (!oracle_point(&problem, point, 0, 1, &value))
                fail("no memory for the oracle");
            bench->literal_unexplained += !(fabs(value.re - image_value(bench, point, 0)) < value.slack + 0.5);
        }
    free(data);
    free(out);
    free((void *)(uintptr_t)problem.element);
    free((void *)(uintptr_t)problem.transmit);
}

static double error_bound(const struct settings *settings)
{
    static const double bounds[] = {1e-5, 5e-4, 1e-12};
    return bounds[settings->precision];
}

static void print_quoted(const char *text)
{
    putchar('"');
    for (; *text; text++)
        if (*text == '"' || *text == '\\')
            printf("\\%c", *text);
        else
            putchar(iscntrl((unsigned char)*text) ? ' ' : *text);
    putchar('"');
}

static void print_json(const struct settings *settings, const struct bench *bench)
{
    const struct workload *work = &settings->work;
    double rate = (double)bench->points / (bench->compute_ms * 1e-3);
    printf("{\"workload\": \"%s\", \"device\": \"%s\", \"kernel\": ", work->name, bench->device_info.name);
    print_quoted(das_plan_description(bench->plan));
    printf(", \"dtype\": \"%s\", \"frames\": %" PRId64 ", \"points\": %" PRId64 ", \"points_inside\": %" PRId64,
           types[settings->type].name, work->frames, bench->points, bench->points_inside);
    printf(", \"upload_ms\": %.6g, \"pack_ms\": %.6g, \"compute_ms\": %.6g, \"download_ms\": %.6g", bench->upload_ms,
           bench->pack_ms, bench->compute_ms, bench->download_ms);
    printf(", \"points_per_s\": %.6g, \"repeat\": %" PRId64 ", \"max_error\": %.3g", rate, settings->repeat,
           isfinite(bench->max_error) ? bench->max_error : 1e308);
    printf(", \"interp\": \"%s\", \"f_number\": %.6g, \"transmits\": %" PRId64 ", \"precision\": \"%s\", \"device_description\": ",
           interpolation_names[work->interpolation], work->f_number, transmit_count(work), precision_names[settings->precision]);
    print_quoted(bench->device_info.description);
    printf(", \"compute_units\": %" PRId32 ", \"points_inside_per_s\": %.6g, \"sample_gb_per_s\": %.6g, \"error_bound\": %.3g",
           bench->device_info.compute_units, (double)bench->points_inside / (bench->compute_ms * 1e-3),
           rate * (double)das_type_bytes(types[settings->type].type) * 1e-9, error_bound(settings));
    printf(", \"plan_ms\": %.6g, \"plan_bytes\": %" PRIu64 ", \"slot_bytes\": %" PRIu64 ", \"slots\": %" PRId32
           ", \"tiles\": %" PRId32 ", \"input_bytes\": %" PRIu64 ", \"output_bytes\": %" PRIu64 ", \"resident_growth_bytes\": %" PRId64,
           bench->plan_ms, bench->info.plan_bytes, bench->info.slot_bytes, bench->info.slots, bench->info.tiles,
           bench->info.input_bytes, bench->info.output_bytes, bench->resident_growth);
    if (settings->literal_columns)
        printf(", \"literal_columns\": %" PRId64 ", \"literal_scaled_ms\": %.6g, \"literal_ratio\": %.4g, \"literal_mismatches\": %" PRId64
               ", \"literal_unexplained\": %" PRId64, settings->literal_columns, bench->literal_ms,
               bench->literal_ms / bench->compute_ms, bench->literal_mismatches, bench->literal_unexplained);
    if (settings->calls)
        printf(", \"call_us\": %.4g, \"call_wait_us\": %.4g", bench->call_us[0], bench->call_us[1]);
    if (bench->empty_us[0] > 0)
        printf(", \"empty_launch_us\": %.4g, \"empty_launch_wait_us\": %.4g", bench->empty_us[0], bench->empty_us[1]);
    puts("}");
}

static void print_table(const struct settings *settings, const struct bench *bench)
{
    const struct workload *work = &settings->work;
    double seconds = bench->compute_ms * 1e-3;
    printf("workload   %s, %s, %s, %" PRId64 " frames, %" PRId64 " transmits, f-number %g\n", work->name,
           types[settings->type].name, interpolation_names[work->interpolation], work->frames, transmit_count(work),
           work->f_number);
    printf("device     %s: %s\n", bench->device_info.name, bench->device_info.description);
    printf("kernel     %s\n", das_plan_description(bench->plan));
    printf("terms      %.4g, %.4g (%.1f %%) inside the aperture\n", (double)bench->points, (double)bench->points_inside,
           100 * (double)bench->points_inside / (double)bench->points);
    printf("plan       %.3f ms; %.1f MiB + %d x %.1f MiB scratch, for %.1f MiB of input\n", bench->plan_ms,
           (double)bench->info.plan_bytes / 0x1p20, bench->info.slots, (double)bench->info.slot_bytes / 0x1p20,
           (double)bench->info.input_bytes / 0x1p20);
    printf("upload     %10.3f ms\n", bench->upload_ms);
    printf("compute    %10.3f ms, %.3f ms of it packing: %.4g terms/s, %.4g inside\n", bench->compute_ms, bench->pack_ms,
           (double)bench->points / seconds, (double)bench->points_inside / seconds);
    printf("copy-back  %10.3f ms\n", bench->download_ms);
    printf("error      %.3g, bound %.3g\n", bench->max_error, error_bound(settings));
    if (settings->literal_columns)
        printf("literal    %10.3f ms (%" PRId64 " columns, scaled): %.1f times compute; %" PRId64
               " pixels differ at ties, %" PRId64 " otherwise\n", bench->literal_ms, settings->literal_columns,
               bench->literal_ms / bench->compute_ms, bench->literal_mismatches - bench->literal_unexplained,
               bench->literal_unexplained);
    if (settings->calls)
        printf("call       %10.2f us queued, %.2f us with a wait\n", bench->call_us[0], bench->call_us[1]);
    if (bench->empty_us[0] > 0)
        printf("empty      %10.2f us queued, %.2f us with a wait: launches of a kernel that does nothing\n", bench->empty_us[0],
               bench->empty_us[1]);
}

/* Plan and one slot against the input, and on the CPU what the process took against what the query said. */
static bool memory_is_kept(const struct bench *bench)
{
    uint64_t limit = bench->info.input_bytes + (UINT64_C(64) << 20);
    uint64_t said = bench->info.plan_bytes + bench->info.slot_bytes;
    bool kept = true;
    if (said > limit) {
        fprintf(stderr, "das_bench: plan and slot take %" PRIu64 " bytes, expected at most %" PRIu64 "\n", said, limit);
        kept = false;
    }
    /* stacks of the threads and the allocator's own use are not the plan's: 8 MiB for them */
    if (!strcmp(bench->device_info.name, "cpu") && bench->resident_growth > (int64_t)said + (8 << 20)) {
        fprintf(stderr, "das_bench: the process grew by %" PRId64 " bytes, expected at most the %" PRIu64
                        " of plan and slot\n", bench->resident_growth, said);
        kept = false;
    }
    return kept;
}

int main(int argc, char **argv)
{
    struct settings settings;
    struct bench bench = {.info = {.struct_size = sizeof bench.info}};
    das_error error = DAS_ERROR_INIT;
    das_acquisition *acquisition = NULL;
    das_grid *grid = NULL;
    das_options *options = NULL;
    parse_command_line(argc, argv, &settings);
    open_device(&settings, &bench);
    describe(&settings, &acquisition, &grid, &options);
    expect(das_plan_query(bench.device, acquisition, grid, options, &bench.info, &error), &error, "plan query");
    das_plan_info query = bench.info;
    make_buffers(&settings, &bench);

    int64_t before = resident_bytes();
    double start = clock_ms();
    expect(das_plan_create(bench.device, acquisition, grid, options, &bench.plan, &error), &error, "plan");
    bench.plan_ms = clock_ms() - start;
    expect(das_plan_get_info(bench.plan, &bench.info, &error), &error, "plan info");
    measure(&settings, &bench);
    int64_t after = resident_bytes();
    bench.resident_growth = before < 0 || after < 0 ? -1 : after - before;

    bench.points = bench.info.points * element_count(&settings.work) * transmit_count(&settings.work) * settings.work.frames;
    bench.points_inside = count_inside(&settings.work) * transmit_count(&settings.work) * settings.work.frames;
    bench.max_error = oracle_error(&settings, &bench);
    if (settings.calls)
        measure_calls(&settings, &bench);
    if (settings.literal_columns)
        literal_loop(&settings, &bench);
    if (settings.json)
        print_json(&settings, &bench);
    else
        print_table(&settings, &bench);

    bool good = memory_is_kept(&bench);
    if (query.plan_bytes != bench.info.plan_bytes || query.slot_bytes != bench.info.slot_bytes) {
        fprintf(stderr, "das_bench: the plan takes %" PRIu64 " + %" PRIu64 " bytes, the query said %" PRIu64 " + %" PRIu64 "\n",
                bench.info.plan_bytes, bench.info.slot_bytes, query.plan_bytes, query.slot_bytes);
        good = false;
    }
    if (!(bench.max_error <= error_bound(&settings))) {
        fprintf(stderr, "das_bench: error %.3g, expected at most %.3g\n", bench.max_error, error_bound(&settings));
        good = false;
    }
    if (bench.literal_unexplained) {
        fprintf(stderr, "das_bench: %" PRId64 " pixels differ from the literal loop\n", bench.literal_unexplained);
        good = false;
    }
    if (fflush(stdout) || ferror(stdout)) {
        fprintf(stderr, "das_bench: standard output: writing failed\n");
        good = false;
    }
    das_buffer_destroy(&bench.data);
    das_buffer_destroy(&bench.image);
    das_buffer_destroy(&bench.host_data);
    das_buffer_destroy(&bench.host_image);
    das_run_destroy(&bench.run);
    das_queue_destroy(&bench.queue);
    das_plan_destroy(&bench.plan);
    das_options_destroy(&options);
    das_grid_destroy(&grid);
    das_acquisition_destroy(&acquisition);
    das_device_destroy(&bench.device);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
