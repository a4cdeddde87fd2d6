/* The CUDA backend on a real card: which cards a process sees, several devices and contexts at once, the caller's state,
 * and how long the work of one launch is. Skipped, and said so, where there is none.
 *
 *     test_cuda_device [--launches]
 *
 * --launches: only the work cut into launches, with the milliseconds of the longest ones.
 */
#include "contract.h"
#include "cuda/cuda_driver.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const das_cu_driver *driver; /* the real one */
static contract_scene scene;
static float expected[SCENE_PIXELS];

/* ---- which cards are seen ---- */

static int cuda_devices(void)
{
    int64_t count = 0;
    int found = 0;
    if (das_device_count(&count, NULL) != DAS_OK)
        return -1;
    for (int64_t i = 0; i < count; i++) {
        das_device_info info = {.struct_size = sizeof info};
        if (das_device_list(i, &info, NULL) == DAS_OK && strncmp(info.name, "cuda:", 5) == 0)
            found++;
    }
    return found;
}

/* What a process that was told to see `count` cards finds. 0, or the number of the failed check. */
static int see(int count)
{
    das_error error = DAS_ERROR_INIT;
    das_device *device = NULL;
    float image[SCENE_PIXELS];
    char beyond[32];
    if (das_version_number() == 0 || das_backend_is_built("cuda") != 1)
        return 1;
    if (cuda_devices() != count)
        return 2;
    snprintf(beyond, sizeof beyond, "cuda:%d", count);
    if (das_device_open(beyond, NULL, &device, &error) != DAS_ERROR_NO_DEVICE || device != NULL || error.message[0] == '\0')
        return 3;
    fprintf(stderr, "%s: %s\n", das_status_name(error.status), error.message);
    if (das_device_open("cuda", NULL, &device, &error) != (count > 0 ? DAS_OK : DAS_ERROR_NO_DEVICE))
        return 4;
    if (count > 0 && (!contract_scene_create(&scene) || !contract_scene_image(&scene, device, image)))
        return 5;
    das_device_destroy(&device);
    if (das_device_open("auto", NULL, &device, &error) != DAS_OK)
        return 6;
    das_device_destroy(&device);
    if (das_device_open("cpu", NULL, &device, &error) != DAS_OK)
        return 7;
    das_device_destroy(&device);
    return 0;
}

/* In a process of its own: the driver reads the variable once. */
static void visible(const char *setting, int count)
{
    test_begin("CUDA_VISIBLE_DEVICES=\"%s\": %d devices", setting, count);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        char number[16];
        snprintf(number, sizeof number, "%d", count);
        setenv("CUDA_VISIBLE_DEVICES", setting, 1);
        execl("/proc/self/exe", "test_cuda_device", "--see", number, (char *)NULL);
        _exit(127);
    }
    int status = -1;
    EXPECT(child > 0 && waitpid(child, &status, 0) == child);
    EXPECT_MSG(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the process ended with %s %d", WIFEXITED(status) ? "check" : "signal",
               WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
    test_end();
}

static void all_visible(void *library)
{
    das_cu_result (*device_uuid)(unsigned char *uuid, das_cu_device device);
    void *symbol = dlsym(library, "cuDeviceGetUuid");
    visible("", 0);
    visible("-1", 0);
    visible("0", 1);
    visible("0,99", 1);
    visible("99", 0);
    visible("GPU-00000000-0000-0000-0000-000000000000", 0);
    if (symbol != NULL) {
        unsigned char u[16];
        char text[64];
        das_cu_device device = 0;
        memcpy(&device_uuid, &symbol, sizeof symbol);
        if (driver->device_get(&device, 0) == DAS_CU_SUCCESS && device_uuid(u, device) == DAS_CU_SUCCESS) {
            snprintf(text, sizeof text, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0], u[1], u[2],
                     u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14], u[15]);
            visible(text, 1);
        }
    }
}

/* ---- several devices and contexts ---- */

typedef struct caller {
    das_cu_result (*context_create)(das_cu_context *context, unsigned flags, das_cu_device device);
    das_cu_result (*context_destroy)(das_cu_context context);
    das_cu_result (*context_current)(das_cu_context *context);
    das_cu_result (*context_set)(das_cu_context context);
} caller;

static bool find(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

/* Uses a device and checks its image; what is current in this thread stays so. */
static void use(const caller *c, das_device *device, const char *name)
{
    das_cu_context before = NULL, after = NULL;
    float image[SCENE_PIXELS];
    das_plan *plan = NULL;
    das_queue *queue = NULL;
    das_event *event = NULL;
    das_run *run = NULL;
    das_buffer *data = NULL, *pixels = NULL;
    double milliseconds = -1;
    EXPECT_INT(c->context_current(&before), 0);
#define STEP(call)                                                                                                    \
    do {                                                                                                              \
        OK(call);                                                                                                     \
        EXPECT_INT(c->context_current(&after), 0);                                                                    \
        EXPECT_MSG(after == before, "%s: another context is current after " #call, name);                             \
    } while (0)
    STEP(das_plan_create(device, scene.acquisition, scene.grid, scene.options, &plan, E));
    STEP(das_queue_create(device, &queue, E));
    STEP(das_event_create(device, &event, E));
    STEP(das_run_create(device, &run, E));
    STEP(das_run_enable_timing(run, 1, E));
    STEP(das_buffer_create(device, sizeof scene.data, DAS_MEMORY_DEVICE, &data, E));
    STEP(das_buffer_create(device, sizeof image, DAS_MEMORY_HOST, &pixels, E));
    STEP(das_buffer_upload(queue, data, 0, scene.data, sizeof scene.data, E));
    STEP(das_event_record(event, queue, E));
    STEP(das_reconstruct(plan, queue, data, pixels, run, E));
    STEP(das_buffer_download(queue, pixels, 0, image, sizeof image, E));
    STEP(das_queue_wait(queue, E));
    STEP(das_event_wait(event, E));
    STEP(das_event_elapsed(event, event, &milliseconds, E));
    EXPECT_MSG(contract_close(image, expected, SCENE_PIXELS), "%s: another image", name);
    STEP(das_reconstruct_host(plan, scene.data, sizeof scene.data, image, sizeof image, NULL, E));
    EXPECT_MSG(contract_close(image, expected, SCENE_PIXELS), "%s: another image", name);
    /* Failures leave it alone too. */
    EXPECT(das_reconstruct(plan, queue, data, data, run, NULL) == DAS_ERROR_ARGUMENT);
    das_buffer *huge = NULL;
    EXPECT(das_buffer_create(device, UINT64_C(1) << 60, DAS_MEMORY_DEVICE, &huge, NULL) != DAS_OK && huge == NULL);
    das_plan_destroy(&plan);
    das_run_destroy(&run);
    das_event_destroy(&event);
    das_queue_destroy(&queue);
    das_buffer_destroy(&data);
    das_buffer_destroy(&pixels);
    EXPECT_INT(c->context_current(&after), 0);
    EXPECT_MSG(after == before, "%s: another context is current after the destroy calls", name);
#undef STEP
}

static void several(void *library)
{
    enum { MOST = 6 };
    const char *names[MOST] = {"cuda:0", "cuda:0 again", "the caller's context", "cpu", "opencl", NULL};
    das_device *devices[MOST] = {NULL};
    das_cu_context own = NULL, current = NULL;
    das_cu_device card = 0;
    das_error error = DAS_ERROR_INIT;
    caller c;
    if (!find(library, "cuCtxCreate_v2", &c.context_create) || !find(library, "cuCtxDestroy_v2", &c.context_destroy) ||
        !find(library, "cuCtxGetCurrent", &c.context_current) || !find(library, "cuCtxSetCurrent", &c.context_set)) {
        test_skip("several devices in one process", "the driver lacks a function the test wants");
        return;
    }
    for (int kind = 0; kind < 2; kind++) {
        test_begin("cuda:0 twice, the caller's context, cpu and opencl in one process, %s current",
                   kind == 0 ? "no context" : "the caller's context");
        EXPECT_INT(driver->device_get(&card, 0), 0);
        EXPECT_INT(c.context_create(&own, 0, card), 0);
        EXPECT_INT(c.context_set(kind == 0 ? NULL : own), 0);
        OK(das_device_open("cuda:0", NULL, &devices[0], E));
        OK(das_device_open("cuda:0", NULL, &devices[1], E));
        OK(das_device_open_cuda(own, NULL, &devices[2], E));
        OK(das_device_open("cpu", NULL, &devices[3], E));
        if (das_device_open("opencl", NULL, &devices[4], &error) != DAS_OK)
            printf("without OpenCL: %s: %s\n", das_status_name(error.status), error.message);
        for (int round = 0; round < 3; round++)
            for (int i = 0; i < MOST && !test_has_failed(); i++)
                if (devices[i] != NULL)
                    use(&c, devices[i], names[i]);
        /* Objects of one are not the other's, though both are the same card. */
        das_plan *plan = NULL;
        das_buffer *data = NULL, *image = NULL;
        OK(das_plan_create(devices[0], scene.acquisition, scene.grid, scene.options, &plan, E));
        OK(das_buffer_create(devices[1], sizeof scene.data, DAS_MEMORY_DEVICE, &data, E));
        OK(das_buffer_create(devices[0], sizeof expected, DAS_MEMORY_DEVICE, &image, E));
        REFUSED(das_reconstruct(plan, NULL, data, image, NULL, E), DAS_ERROR_WRONG_DEVICE, "data", NULL);
        das_device_destroy(&devices[0]); /* the plan keeps it */
        das_plan_destroy(&plan);
        das_buffer_destroy(&data);
        das_buffer_destroy(&image);
        if (devices[1] != NULL && !test_has_failed())
            use(&c, devices[1], names[1]);
        for (int i = 0; i < MOST; i++)
            das_device_destroy(&devices[i]);
        /* The context is still the caller's. */
        EXPECT_INT(c.context_current(&current), 0);
        EXPECT(current == (kind == 0 ? NULL : own));
        EXPECT_INT(c.context_set(own), 0);
        das_cu_pointer memory = 0;
        EXPECT_INT(driver->memory_allocate(&memory, 4096), 0);
        EXPECT_INT(driver->memory_free(memory), 0);
        EXPECT_INT(c.context_destroy(own), 0);
        EXPECT_INT(c.context_set(NULL), 0);
        test_end();
    }
}

/* The CUDA runtime's last error, where a runtime is installed: neither made nor cleared. */
static void last_error(void)
{
    static const char *const names[] = {"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0", "libcudart.so"};
    void *library = NULL;
    int (*peek)(void), (*get)(void), (*allocate)(void **pointer, size_t bytes), (*set_device)(int device);
    for (size_t i = 0; library == NULL && i < sizeof names / sizeof names[0]; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (library == NULL || !find(library, "cudaPeekAtLastError", &peek) || !find(library, "cudaGetLastError", &get) ||
        !find(library, "cudaMalloc", &allocate) || !find(library, "cudaSetDevice", &set_device)) {
        test_skip("the runtime's last error", "NOT TESTED, no CUDA runtime library is found");
        return;
    }
    test_begin("the CUDA runtime's last error is neither made nor cleared");
    for (int kind = 0; kind < 2; kind++) {
        float image[SCENE_PIXELS];
        das_device *device = NULL;
        das_buffer *huge = NULL;
        void *pointer = NULL;
        EXPECT_INT(set_device(0), 0);
        get();
        int wanted = kind == 0 ? 0 : allocate(&pointer, (size_t)1 << 60);
        EXPECT(kind == 0 || wanted != 0);
        EXPECT_INT(peek(), wanted);
        if (OK(das_device_open("cuda:0", NULL, &device, E)))
            contract_scene_image(&scene, device, image);
        EXPECT(das_buffer_create(device, UINT64_C(1) << 60, DAS_MEMORY_DEVICE, &huge, NULL) != DAS_OK);
        EXPECT_INT(peek(), wanted);
        das_device_destroy(&device);
        EXPECT_INT(peek(), wanted);
        get();
    }
    test_end();
}

/* ---- launches ---- */

static struct {
    das_cu_event start, stop;
    int launches;
    float longest_ms, total_ms;
    bool bad;
} timed;

static das_cu_result timed_launch(das_cu_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                                  unsigned block_y, unsigned block_z, unsigned shared_bytes, das_cu_stream stream,
                                  void **parameters, void **extra)
{
    float milliseconds = 0;
    timed.launches++;
    timed.bad = timed.bad || grid_y > 65535 || grid_z > 65535;
    das_cu_result result = driver->event_record(timed.start, stream);
    if (result == DAS_CU_SUCCESS)
        result = driver->launch(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream, parameters, extra);
    if (result == DAS_CU_SUCCESS)
        result = driver->event_record(timed.stop, stream);
    if (result == DAS_CU_SUCCESS)
        result = driver->event_wait(timed.stop);
    if (result == DAS_CU_SUCCESS)
        result = driver->event_elapsed(&milliseconds, timed.start, timed.stop);
    timed.longest_ms = fmaxf(timed.longest_ms, milliseconds);
    timed.total_ms += milliseconds;
    return result;
}

typedef struct job {
    const char *name;
    int64_t elements, transmits, samples, frames, counts[3]; /* transmits 0: full matrix */
    das_type type;
    das_interpolation interpolation;
    das_precision precision;
    double f_number;
    bool points, general, huge; /* huge: only cancelled, unless small */
} job;

/* Long ones for a card of today: the small variant of each has 1/64 of the points. */
static const job jobs[] = {
    {"full matrix, float", 256, 0, 2000, 1, {4000, 1, 4000}, DAS_TYPE_F32, DAS_INTERPOLATION_LINEAR, DAS_PRECISION_EXACT, 0, false, false, false},
    {"full matrix, cubic, int16", 256, 0, 2000, 1, {2000, 1, 4000}, DAS_TYPE_I16, DAS_INTERPOLATION_CUBIC, DAS_PRECISION_EXACT, 0, false, false, false},
    {"full matrix, general path, Lanczos", 256, 0, 2000, 1, {500, 1, 1000}, DAS_TYPE_F32, DAS_INTERPOLATION_LANCZOS, DAS_PRECISION_EXACT, 0, false, true, false},
    {"full matrix, double, Lanczos", 128, 0, 2000, 1, {1000, 1, 2000}, DAS_TYPE_F64, DAS_INTERPOLATION_LANCZOS, DAS_PRECISION_DOUBLE, 0, false, false, false},
    {"plane waves, f-number, IQ", 256, 75, 2000, 1, {4000, 1, 8000}, DAS_TYPE_CF32, DAS_INTERPOLATION_LINEAR, DAS_PRECISION_EXACT, 1.5, false, false, false},
    {"plane waves, IQ, 256 frames", 128, 8, 1000, 256, {512, 2, 1024}, DAS_TYPE_CF32, DAS_INTERPOLATION_LINEAR, DAS_PRECISION_EXACT, 0, false, false, false},
    {"plane waves, 256 frames, cubic", 128, 8, 1000, 256, {512, 1, 1024}, DAS_TYPE_F32, DAS_INTERPOLATION_CUBIC, DAS_PRECISION_EXACT, 1, false, false, false},
    {"plane waves, 3000 frames of few points", 128, 4, 1000, 3000, {64, 1, 64}, DAS_TYPE_I16, DAS_INTERPOLATION_LINEAR, DAS_PRECISION_EXACT, 0, false, false, false},
    {"a volume", 1024, 16, 1000, 1, {160, 160, 320}, DAS_TYPE_F32, DAS_INTERPOLATION_LINEAR, DAS_PRECISION_EXACT, 0, false, false, false},
    {"a list of points", 256, 64, 2000, 1, {4000000, 1, 1}, DAS_TYPE_CI16, DAS_INTERPOLATION_QUADRATIC, DAS_PRECISION_EXACT, 1, true, false, false},
    {"few points of many pairs", 1024, 4096, 300, 1, {2, 1, 2}, DAS_TYPE_I8, DAS_INTERPOLATION_LINEAR, DAS_PRECISION_EXACT, 0, false, false, false},
    {"a huge one", 256, 0, 2000, 1, {46000, 1, 46000}, DAS_TYPE_F32, DAS_INTERPOLATION_LINEAR, DAS_PRECISION_EXACT, 0, false, false, true},
    {"a huge one of frames", 128, 64, 250, 64, {6000, 1, 5000}, DAS_TYPE_CF32, DAS_INTERPOLATION_LINEAR, DAS_PRECISION_EXACT, 0, false, false, true},
    {"few points of many pairs, double", 1024, 4096, 300, 1, {2, 1, 2}, DAS_TYPE_I8, DAS_INTERPOLATION_LANCZOS, DAS_PRECISION_DOUBLE, 0, false, false, false},
};

typedef struct watch {
    int calls, stop_at; /* 0: never */
    double last, largest_step;
} watch;

static int32_t watching(void *context, double fraction)
{
    watch *w = context;
    w->calls++;
    w->largest_step = fmax(w->largest_step, fraction - w->last);
    w->last = fraction;
    return w->stop_at > 0 && w->calls >= w->stop_at;
}

static bool job_plan(const job *j, das_device *device, bool small, das_plan **plan)
{
    static double elements[1024][3];
    das_acquisition *a = NULL;
    das_grid *grid = NULL;
    das_options *options = NULL;
    int64_t counts[3] = {small && j->counts[0] > 8 ? j->counts[0] / 8 : j->counts[0], j->counts[1],
                         small && j->counts[2] > 8 ? j->counts[2] / 8 : j->counts[2]};
    const double origin[3] = {-10e-3, 0, 1e-3};
    const double steps[9] = {20e-3 / (double)counts[0], 0, 0, 0, 1e-4, 0, 0, 0, 25e-3 / (double)counts[2]};
    double(*points)[3] = NULL;
    for (int64_t i = 0; i < j->elements; i++)
        elements[i][0] = 20e-3 * ((double)i / (double)j->elements - 0.5);
    bool ok = OK(das_acquisition_create(&a, E)) && OK(das_acquisition_set_receive_elements(a, j->elements, &elements[0][0], E)) &&
              OK(das_acquisition_set_sampling_frequency(a, 20e6, E)) && OK(das_acquisition_set_sound_speed(a, 1540, E)) &&
              OK(das_acquisition_set_data(a, j->type, j->samples, E)) && OK(das_acquisition_set_frame_count(a, j->frames, E)) &&
              OK(das_options_create(&options, E)) && OK(das_options_set_interpolation(options, j->interpolation, E)) &&
              OK(das_options_set_precision(options, j->precision, E)) && OK(das_options_set_f_number(options, j->f_number, E)) &&
              OK(das_options_set_fast_paths(options, !j->general, E));
    if (j->transmits == 0)
        ok = ok && OK(das_acquisition_add_element_transmits(a, E));
    for (int64_t t = 0; ok && t < j->transmits; t++)
        ok = OK(das_acquisition_add_plane_transmit(a, 0.3 * ((double)t / (double)j->transmits - 0.5), E));
    if (j->transmits > 1000) /* all transmits share one data set */
        ok = ok && OK(das_acquisition_set_data_strides(a, 0, 0, 0, j->samples, 1, E));
    if (ok && j->points) {
        points = malloc((size_t)counts[0] * sizeof *points);
        for (int64_t i = 0; points != NULL && i < counts[0]; i++) {
            points[i][0] = 20e-3 * ((double)(i * 7919 % counts[0]) / (double)counts[0] - 0.5);
            points[i][1] = 0;
            points[i][2] = 1e-3 + 25e-3 * (double)i / (double)counts[0];
        }
        ok = points != NULL && OK(das_grid_create_points(counts[0], &points[0][0], &grid, E));
    } else {
        ok = ok && OK(das_grid_create_cartesian(origin, steps, counts, &grid, E));
    }
    ok = ok && OK(das_plan_create(device, a, grid, options, plan, E));
    free(points);
    das_grid_destroy(&grid);
    das_options_destroy(&options);
    das_acquisition_destroy(&a);
    return ok;
}

/* Launches of a job, its progress, and cancelling it at the second call. */
static void run_whole(const job *j, const das_plan_info *info, das_plan *plan, das_queue *queue, das_buffer *data, das_buffer *image,
                      das_run *run, bool small)
{
    watch all = {0}, some = {.stop_at = 2};
    timed.launches = 0;
    timed.longest_ms = timed.total_ms = 0;
    OK(das_reconstruct(plan, queue, data, image, NULL, E));
    OK(das_queue_wait(queue, E));
    printf("launches: %s: %d, the longest %.1f ms of %.1f ms, %.3g terms, %s\n", j->name, timed.launches, (double)timed.longest_ms,
           (double)timed.total_ms, (double)info->points * (double)info->pairs * (double)j->frames, das_plan_description(plan));
    EXPECT(timed.launches > 0 && !timed.bad);
    OK(das_run_set_progress(run, watching, &all, E));
    int launched = timed.launches;
    OK(das_reconstruct(plan, queue, data, image, run, E));
    OK(das_queue_wait(queue, E));
    EXPECT_MSG(all.calls > 0 && all.last == 1.0, "%d calls of the progress function, the last at %g", all.calls, all.last);
    EXPECT_MSG(launched < 8 || all.calls > 1, "%d launches, but the progress function is called once", launched);
    if (all.calls > 2) {
        OK(das_run_set_progress(run, watching, &some, E));
        das_status status = das_reconstruct(plan, queue, data, image, run, NULL);
        if (status == DAS_OK)
            status = das_queue_wait(queue, NULL);
        else
            das_queue_wait(queue, NULL);
        EXPECT_INT(status, DAS_ERROR_CANCELLED);
        EXPECT_INT(some.calls, 2);
        OK(das_run_set_progress(run, NULL, NULL, E));
        if (small) {
            OK(das_reconstruct(plan, queue, data, image, run, E));
            OK(das_queue_wait(queue, E));
        }
    }
    printf("progress: %s: %d calls, steps of at most %.3f, cancelled at %.3f\n", j->name, all.calls, all.largest_step, some.last);
}

/* A job of many seconds is cancelled; how soon is printed. */
static void cancel_soon(const job *j, das_plan *plan, das_queue *queue, das_buffer *data, das_buffer *image, das_run *run)
{
    watch some = {.stop_at = 2};
    struct timespec from, to;
    timed.launches = 0;
    timed.longest_ms = timed.total_ms = 0;
    OK(das_run_set_progress(run, watching, &some, E));
    clock_gettime(CLOCK_MONOTONIC, &from);
    EXPECT_INT(das_reconstruct(plan, queue, data, image, run, NULL), DAS_ERROR_CANCELLED);
    EXPECT_INT(das_queue_wait(queue, NULL), DAS_ERROR_CANCELLED);
    clock_gettime(CLOCK_MONOTONIC, &to);
    EXPECT_INT(some.calls, 2);
    printf("cancelled: %s: after %.0f ms, at %.4f, the longest launch %.1f ms, %s\n", j->name,
           1e3 * (double)(to.tv_sec - from.tv_sec) + 1e-6 * (double)(to.tv_nsec - from.tv_nsec), some.last, (double)timed.longest_ms,
           das_plan_description(plan));
}

/* The work of a job is cut into launches; with a progress function it can be cancelled soon, and the plan used again. */
static void cut(const job *j, das_device *device, bool small)
{
    das_plan *plan = NULL;
    das_queue *queue = NULL;
    das_buffer *data = NULL, *image = NULL;
    das_run *run = NULL;
    das_plan_info info = {.struct_size = sizeof info};
    das_device_info card = {.struct_size = sizeof card};
    test_begin("launches of: %s", j->name);
    bool ok = job_plan(j, device, small, &plan) && OK(das_plan_get_info(plan, &info, E)) && OK(das_device_get_info(device, &card, E));
    if (ok && (double)info.input_bytes + (double)info.output_bytes > 0.6 * (double)card.memory_bytes) {
        test_discard();
        test_skip(j->name, "NOT TESTED, the card has %.1f GB", 1e-9 * (double)card.memory_bytes);
        das_plan_destroy(&plan);
        return;
    }
    if (ok && OK(das_queue_create(device, &queue, E)) &&
        OK(das_run_create(device, &run, E)) && OK(das_buffer_create(device, info.input_bytes, DAS_MEMORY_DEVICE, &data, E)) &&
        OK(das_buffer_create(device, info.output_bytes, DAS_MEMORY_DEVICE, &image, E))) {
        void *zeros = calloc(1, (size_t)info.input_bytes);
        if (zeros == NULL)
            test_note("the test is out of memory");
        else
            OK(das_buffer_upload(queue, data, 0, zeros, info.input_bytes, E));
        OK(das_queue_wait(queue, E));
        free(zeros);
        if (j->huge && !small)
            cancel_soon(j, plan, queue, data, image, run);
        else
            run_whole(j, &info, plan, queue, data, image, run, small);
    }
    das_buffer_destroy(&data);
    das_buffer_destroy(&image);
    das_run_destroy(&run);
    das_queue_destroy(&queue);
    das_plan_destroy(&plan);
    test_end();
}

static void launches(bool small)
{
    das_cu_driver wrapped = *driver;
    das_device *device = NULL;
    das_cu_context context = NULL, popped = NULL;
    das_cu_device card = 0;
    wrapped.launch = timed_launch;
    if (driver->device_get(&card, 0) != DAS_CU_SUCCESS || driver->primary_retain(&context, card) != DAS_CU_SUCCESS ||
        driver->context_push(context) != DAS_CU_SUCCESS || driver->event_create(&timed.start, 0) != DAS_CU_SUCCESS ||
        driver->event_create(&timed.stop, 0) != DAS_CU_SUCCESS) {
        test_begin("launches");
        test_note("no context or events");
        test_end();
        return;
    }
    driver->context_pop(&popped);
    das_cu_driver_replace(&wrapped);
    if (OK(das_device_open("cuda:0", NULL, &device, E)))
        for (size_t i = 0; i < sizeof jobs / sizeof jobs[0]; i++)
            cut(&jobs[i], device, small);
    das_device_destroy(&device);
    das_cu_driver_replace(NULL);
    driver->context_push(context);
    driver->event_destroy(timed.start);
    driver->event_destroy(timed.stop);
    driver->context_pop(&popped);
    driver->primary_release(card);
}

int main(int argc, char **argv)
{
    const char *count = test_option(argc, argv, "--see");
    if (count != NULL)
        return see(atoi(count));
    bool only_launches = argc > 1 && strcmp(argv[argc - 1], "--launches") == 0;
    das_error error = DAS_ERROR_INIT;
    int cards = 0;
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    driver = das_cu_driver_get(&error);
    if (library == NULL || driver == NULL || driver->device_count(&cards) != DAS_CU_SUCCESS || cards == 0) {
        test_skip("cuda", "NOT TESTED, no device (%s: %s)", das_status_name(error.status), error.message);
        return test_finish();
    }
    if (!contract_scene_create(&scene)) {
        test_end();
        return test_finish();
    }
    if (!only_launches) {
        das_device *cpu = contract_open("cpu");
        test_begin("the scene on the CPU");
        if (cpu != NULL)
            contract_scene_image(&scene, cpu, expected);
        das_device_destroy(&cpu);
        test_end();
        all_visible(library);
        several(library);
        last_error();
    }
    launches(!only_launches);
    contract_scene_destroy(&scene);
    return test_finish();
}
