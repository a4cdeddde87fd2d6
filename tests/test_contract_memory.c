/* Memory: das_reconstruct() allocates none, the query tells what a plan takes, budgets hold, and host memory running out
 * in a setter changes nothing. malloc and its relatives are replaced here, to be counted and to fail. */
#include "contract.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif

/* ---- malloc, counted ---- */

static atomic_llong allocations, blocks, left_to_fail;
static atomic_bool malloc_failed;

#if defined(__GLIBC__) && !defined(SANITIZED)
enum { COUNTED = 1 };

/* For this program and the library in it; a driver's allocations are its own. */
#define OURS __attribute__((visibility("hidden")))

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *pointer, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void *pointer);

static bool fails(void)
{
    atomic_fetch_add(&allocations, 1);
    if (atomic_load(&left_to_fail) > 0 && atomic_fetch_sub(&left_to_fail, 1) == 1) {
        atomic_store(&malloc_failed, true);
        errno = ENOMEM;
        return true;
    }
    return false;
}

static void *counted(void *pointer)
{
    if (pointer != NULL)
        atomic_fetch_add(&blocks, 1);
    return pointer;
}

OURS void *malloc(size_t bytes)
{
    return fails() ? NULL : counted(__libc_malloc(bytes));
}

OURS void *calloc(size_t count, size_t size)
{
    return fails() ? NULL : counted(__libc_calloc(count, size));
}

OURS void *realloc(void *pointer, size_t bytes)
{
    if (fails())
        return NULL;
    void *grown = __libc_realloc(pointer, bytes);
    return pointer == NULL ? counted(grown) : grown;
}

OURS void *aligned_alloc(size_t alignment, size_t bytes)
{
    return fails() ? NULL : counted(__libc_memalign(alignment, bytes));
}

void *memalign(size_t alignment, size_t bytes);
OURS void *memalign(size_t alignment, size_t bytes)
{
    return fails() ? NULL : counted(__libc_memalign(alignment, bytes));
}

OURS int posix_memalign(void **pointer, size_t alignment, size_t bytes)
{
    void *memory = fails() ? NULL : counted(__libc_memalign(alignment, bytes));
    if (memory != NULL)
        *pointer = memory;
    return memory != NULL ? 0 : ENOMEM;
}

OURS void free(void *pointer)
{
    if (pointer != NULL)
        atomic_fetch_sub(&blocks, 1);
    __libc_free(pointer);
}
#else
enum { COUNTED = 0 };
#endif

/* ---- das_reconstruct() allocates nothing ---- */

static int32_t go_on(void *context, double fraction)
{
    (void)context;
    (void)fraction;
    return 0;
}

static void run_serially(void *context, das_task_function *task, void *argument, int64_t count)
{
    (void)context;
    for (int64_t i = 0; i < count; i++)
        task(argument, i);
}

typedef struct variant {
    const char *name;
    int64_t threads;
    bool runner, timed, progress, accumulate, double_precision, partial, without_queue, all_options;
} variant;

static void expect_no_allocation(const char *name, const variant *v)
{
    contract_scene scene;
    das_device_options *options = contract_heap_options();
    das_device *device = NULL;
    das_plan *plan = NULL;
    das_queue *queue = NULL;
    das_run *run = NULL;
    das_buffer *data = NULL, *image = NULL;
    das_mock_install();
    test_begin("%s, %s: das_reconstruct allocates nothing", name, v->name);
    OK(das_device_options_set_thread_count(options, v->threads, E));
    if (v->runner)
        OK(das_device_options_set_runner(options, run_serially, NULL, E));
    if (!contract_scene_create(&scene)) {
        test_end();
        return;
    }
    if (v->double_precision)
        OK(das_options_set_precision(scene.options, DAS_PRECISION_DOUBLE, E));
    if (v->partial)
        OK(das_options_set_incremental(scene.options, 1, E));
    if (v->all_options) {
        const double window[3] = {1, 0.7, 0.2};
        OK(das_options_set_interpolation(scene.options, DAS_INTERPOLATION_LANCZOS, E));
        OK(das_options_set_f_number(scene.options, 0.5, E));
        OK(das_options_set_window_table(scene.options, 3, window, E));
        OK(das_options_set_normalization(scene.options, DAS_NORMALIZATION_WEIGHTS, E));
        OK(das_options_set_keep_receive(scene.options, 1, E));
        OK(das_options_set_memory_budget(scene.options, 64 << 10, E));
    }
    das_plan_info info = {.struct_size = sizeof info};
    if (OK(das_device_open(name, options, &device, E)) &&
        OK(das_plan_create(device, scene.acquisition, scene.grid, scene.options, &plan, E)) &&
        OK(das_plan_get_info(plan, &info, E)) && OK(das_queue_create(device, &queue, E)) && OK(das_run_create(device, &run, E)) &&
        OK(das_buffer_create(device, sizeof scene.data, DAS_MEMORY_DEVICE, &data, E)) &&
        OK(das_buffer_create(device, info.output_bytes, DAS_MEMORY_DEVICE, &image, E)) &&
        OK(das_buffer_upload(queue, data, 0, scene.data, sizeof scene.data, E)) && OK(das_queue_wait(queue, E))) {
        if (v->timed)
            OK(das_run_enable_timing(run, 1, E));
        if (v->progress)
            OK(das_run_set_progress(run, go_on, NULL, E));
        if (v->partial)
            OK(das_run_set_transmits(run, 1, 2, E));
        if (v->accumulate)
            OK(das_run_set_accumulate(run, 1, E));
        /* The first call too. */
        for (int i = 0; i < 3; i++) {
            das_queue *used = v->without_queue ? NULL : queue;
            contract_heap_reset();
            long long before = atomic_load(&allocations);
            das_status status = das_reconstruct(plan, used, data, image, i == 2 ? NULL : run, E);
            das_status waited = das_queue_wait(queue, NULL);
            long long after = atomic_load(&allocations);
            contract_heap heap = contract_heap_now();
            EXPECT_INT(status, DAS_OK);
            EXPECT_INT(waited, DAS_OK);
            EXPECT_MSG(after == before, "call %d allocates %lld times", i + 1, after - before);
            EXPECT_MSG(heap.calls == 0, "call %d asks the device's allocator %lld times", i + 1, (long long)heap.calls);
        }
    }
    das_buffer_destroy(&data);
    das_buffer_destroy(&image);
    das_run_destroy(&run);
    das_queue_destroy(&queue);
    das_plan_destroy(&plan);
    das_device_destroy(&device);
    das_device_options_destroy(&options);
    contract_scene_destroy(&scene);
    EXPECT_INT(contract_heap_now().blocks, 0);
    test_end();
}

static void no_allocation(const char *name)
{
    static const variant variants[] = {
        {.name = "one thread", .threads = 1},
        {.name = "three threads", .threads = 3},
        {.name = "the host's runner", .threads = 2, .runner = true},
        {.name = "timed", .threads = 2, .timed = true},
        {.name = "with progress", .threads = 2, .progress = true},
        {.name = "double, accumulated", .threads = 2, .double_precision = true, .accumulate = true},
        {.name = "part of the transmits", .threads = 2, .partial = true},
        {.name = "without a queue", .threads = 2, .without_queue = true},
        {.name = "many options, tiled", .threads = 2, .all_options = true},
    };
    for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++) {
        /* A driver may allocate for itself; only the library's own allocator is judged there. */
        if (COUNTED || strcmp(name, "cpu") != 0)
            expect_no_allocation(name, &variants[i]);
        else
            test_skip("das_reconstruct allocates nothing", "malloc cannot be replaced under a sanitizer");
    }
}

/* ---- the query is what is taken ---- */

static void big_problem(contract_scene *scene, int64_t nx, int64_t nz, bool tables, double **times, float **weights)
{
    const double origin[3] = {-5e-3, 0, 1e-3}, steps[9] = {1e-4, 0, 0, 0, 0, 0, 0, 0, 1e-4};
    const int64_t counts[3] = {nx, 1, nz};
    das_grid_destroy(&scene->grid);
    OK(das_grid_create_cartesian(origin, steps, counts, &scene->grid, E));
    *times = NULL;
    *weights = NULL;
    if (!tables)
        return;
    size_t points = (size_t)(nx * nz);
    *times = calloc(points * SCENE_TRANSMITS, sizeof **times);
    *weights = calloc(points * SCENE_ELEMENTS, sizeof **weights);
    OK(das_options_set_transmit_times(scene->options, SCENE_TRANSMITS, (int64_t)points, *times, E));
    OK(das_options_set_receive_weights(scene->options, SCENE_ELEMENTS, (int64_t)points, *weights, E));
}

static void query_is_exact(void)
{
    contract_scene scene;
    test_begin("the query tells what the allocator is asked for, before anything is allocated");
    for (int kind = 0; kind < 6 && !test_has_failed(); kind++) {
        static const int64_t slots[] = {1, 2, 5, 64, 1, 3};
        static const int64_t threads[] = {1, 2, 7, 3, 5, 4};
        das_device_options *options = contract_heap_options();
        das_device *cpu = NULL, *mock = NULL;
        das_plan *plan = NULL;
        double *times = NULL;
        float *weights = NULL;
        OK(das_device_options_set_thread_count(options, threads[kind], E));
        if (!contract_scene_create(&scene))
            break;
        big_problem(&scene, 50 + 300 * (kind % 3), 100, kind >= 2, &times, &weights);
        OK(das_options_set_max_in_flight(scene.options, slots[kind], E));
        OK(das_options_set_keep_transmit(scene.options, kind == 4, E));
        das_plan_info info = {.struct_size = sizeof info}, after = {.struct_size = sizeof after};
        if (OK(das_device_open("cpu", options, &cpu, E)) && OK(das_device_open("mock", NULL, &mock, E))) {
            contract_heap_reset();
            int64_t before = contract_heap_now().bytes;
            OK(das_plan_query(cpu, scene.acquisition, scene.grid, scene.options, &info, E));
            EXPECT_INT(contract_heap_now().calls, 0);
            OK(das_plan_create(cpu, scene.acquisition, scene.grid, scene.options, &plan, E));
            OK(das_plan_get_info(plan, &after, E));
            EXPECT_MSG(memcmp(&info, &after, sizeof info) == 0, "kind %d: plan and query differ", kind);
            int64_t taken = contract_heap_now().bytes - before;
            int64_t told = (int64_t)(info.plan_bytes + (uint64_t)slots[kind] * info.slot_bytes);
            /* On top come the plan's own objects: a few hundred bytes for each slot, threads apart. */
            EXPECT_MSG(taken >= told && taken <= told + 4096 + 1024 * slots[kind] + 64 * threads[kind],
                       "kind %d: %lld bytes taken, %lld told", kind, (long long)taken, (long long)told);
            das_plan_destroy(&plan);

            OK(das_plan_query(mock, scene.acquisition, scene.grid, scene.options, &info, E));
            EXPECT_INT(das_mock_memory(mock), 0);
            OK(das_plan_create(mock, scene.acquisition, scene.grid, scene.options, &plan, E));
            EXPECT_INT(das_mock_memory(mock), info.plan_bytes + (uint64_t)slots[kind] * info.slot_bytes);
            das_plan_destroy(&plan);
        }
        das_device_destroy(&cpu);
        das_device_destroy(&mock);
        das_device_options_destroy(&options);
        contract_scene_destroy(&scene);
        free(times);
        free(weights);
    }
    test_end();
}

#ifndef SANITIZED
static long long resident_bytes(void)
{
    long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%*d %lld", &pages) != 1)
        pages = 0;
    if (file != NULL)
        fclose(file);
    return pages * sysconf(_SC_PAGESIZE);
}

static void process_memory(void)
{
    contract_scene scene;
    double *times = NULL;
    float *weights = NULL;
    das_plan *plan = NULL;
    das_device *device = contract_open("cpu");
    test_begin("the process takes what the query told");
    if (device != NULL && contract_scene_create(&scene)) {
        das_plan_info info = {.struct_size = sizeof info};
        big_problem(&scene, 1000, 1000, true, &times, &weights);
        memset(times, 0, sizeof *times * 1000000 * SCENE_TRANSMITS);
        memset(weights, 0, sizeof *weights * 1000000 * SCENE_ELEMENTS);
        OK(das_plan_query(device, scene.acquisition, scene.grid, scene.options, &info, E));
        float *image = malloc(info.output_bytes);
        memset(image, 1, info.output_bytes); /* not 0, which compilers turn into a calloc that touches nothing */
        long long before = resident_bytes();
        if (OK(das_plan_create(device, scene.acquisition, scene.grid, scene.options, &plan, E))) {
            OK(das_reconstruct_host(plan, scene.data, sizeof scene.data, image, info.output_bytes, NULL, E));
            long long taken = resident_bytes() - before, told = (long long)(info.plan_bytes + info.slot_bytes);
            const long long slack = 4 << 20;
            EXPECT_MSG(told > 30LL << 20, "the plan is too small to be seen: %lld bytes", told);
            EXPECT_MSG(llabs(taken - told) < slack, "%lld bytes taken, %lld told", taken, told);
            das_plan_destroy(&plan);
            EXPECT_MSG(llabs(resident_bytes() - before) < slack, "%lld bytes are kept", resident_bytes() - before);
        }
        free(image);
        contract_scene_destroy(&scene);
    }
    free(times);
    free(weights);
    das_device_destroy(&device);
    test_end();
}
#endif

/* ---- budgets ---- */

static void budgets(const char *name)
{
    contract_scene scene;
    double *times = NULL;
    float *weights = NULL;
    das_device *device = contract_open(name);
    test_begin("%s: plan and slots stay within the input's size and 64 MiB, or within the budget", name);
    if (device == NULL || !contract_scene_create(&scene)) {
        das_device_destroy(&device);
        test_end();
        return;
    }
    das_plan_info info = {.struct_size = sizeof info};
    for (int kind = 0; kind < 8; kind++) {
        big_problem(&scene, kind % 2 ? 4000 : 300, kind % 2 ? 4000 : 200, false, &times, &weights);
        OK(das_options_set_keep_transmit(scene.options, kind / 2 % 2, E));
        OK(das_options_set_keep_receive(scene.options, kind / 4, E));
        if (OK(das_plan_query(device, scene.acquisition, scene.grid, scene.options, &info, E)))
            EXPECT_MSG(info.plan_bytes + info.slot_bytes <= info.input_bytes + (64 << 20), "kind %d takes %llu bytes", kind,
                       (unsigned long long)(info.plan_bytes + info.slot_bytes));
    }
    OK(das_options_set_keep_transmit(scene.options, 0, E));
    OK(das_options_set_keep_receive(scene.options, 0, E));
    big_problem(&scene, 30, 20, false, &times, &weights);
    OK(das_plan_query(device, scene.acquisition, scene.grid, scene.options, &info, E));
    size_t bytes = info.output_bytes;
    float *whole = malloc(bytes), *tiled = malloc(bytes);
    uint64_t least = 0;
    for (uint64_t budget = info.plan_bytes + info.slot_bytes; budget > 0; budget -= budget / 7 + 1) {
        das_plan *plan = NULL;
        OK(das_options_set_memory_budget(scene.options, budget, E));
        das_status status = das_plan_create(device, scene.acquisition, scene.grid, scene.options, &plan, E);
        if (status != DAS_OK) {
            contract_refused(status, DAS_ERROR_OUT_OF_DEVICE_MEMORY, "budget", NULL, "das_plan_create()", __FILE__, __LINE__);
            EXPECT(plan == NULL);
            break;
        }
        OK(das_plan_get_info(plan, &info, E));
        EXPECT_MSG(info.plan_bytes + info.slot_bytes <= budget && info.tiles >= 1, "budget %llu, taken %llu, %d tiles",
                   (unsigned long long)budget, (unsigned long long)(info.plan_bytes + info.slot_bytes), (int)info.tiles);
        float *image = least == 0 ? whole : tiled;
        memset(image, 0xFF, bytes);
        OK(das_reconstruct_host(plan, scene.data, sizeof scene.data, image, bytes, NULL, E));
        for (size_t i = 0; i < bytes / 4; i++)
            if (!(fabs(image[i] - whole[i]) <= 1e-5)) {
                test_note("budget %llu gives another image", (unsigned long long)budget);
                break;
            }
        least = budget;
        das_plan_destroy(&plan);
    }
    EXPECT_MSG(least > 0, "no budget was enough");
    free(whole);
    free(tiled);
    contract_scene_destroy(&scene);
    das_device_destroy(&device);
    test_end();
}

/* ---- host memory running out outside of a device ---- */

/* Builds an acquisition, a grid and options with every array there is; the first failure ends it. */
static das_status build(contract_scene *scene, das_device *device, das_plan **plan)
{
    double numbers[64];
    float weights[SCENE_ELEMENTS * SCENE_POINTS];
    const int64_t index[3] = {0, 1, 2};
    const double window[3] = {1, 0.5, 0};
    for (int i = 0; i < 64; i++)
        numbers[i] = i % 3 == 2 ? 1 : 0.1;
    for (size_t i = 0; i < sizeof weights / sizeof weights[0]; i++)
        weights[i] = 1;
    memset(scene, 0, sizeof *scene);
    das_status s = das_acquisition_create(&scene->acquisition, E);
    das_acquisition *a = scene->acquisition;
    s = s ? s : das_acquisition_set_receive_elements(a, SCENE_ELEMENTS, numbers, E);
    s = s ? s : das_acquisition_set_receive_normals(a, SCENE_ELEMENTS, numbers, E);
    s = s ? s : das_acquisition_set_receive_weights(a, SCENE_ELEMENTS, numbers, E);
    s = s ? s : das_acquisition_set_receive_delays(a, SCENE_ELEMENTS, numbers, E);
    s = s ? s : das_acquisition_add_plane_transmit(a, 0, E);
    s = s ? s : das_acquisition_add_diverging_transmit(a, numbers, NULL, E);
    s = s ? s : das_acquisition_add_focused_transmit(a, numbers, NULL, E);
    s = s ? s : das_acquisition_set_transmit_weights(a, 3, numbers, E);
    s = s ? s : das_acquisition_set_transmit_delays(a, 3, numbers, E);
    s = s ? s : das_acquisition_set_start_times(a, 3, numbers, E);
    s = s ? s : das_acquisition_set_sampling_frequency(a, 1e6, E);
    s = s ? s : das_acquisition_set_sound_speed(a, 1500, E);
    s = s ? s : das_acquisition_set_data(a, DAS_TYPE_F32, 8, E);
    s = s ? s : das_acquisition_set_pair_weights(a, 3, SCENE_ELEMENTS, numbers, E);
    s = s ? s : das_acquisition_set_pair_weights(a, 0, 0, NULL, E);
    s = s ? s : das_acquisition_set_traces(a, 3, index, index, numbers, E);
    s = s ? s : das_grid_create_polar(numbers, 5, numbers, 1, NULL, 7, numbers, &scene->grid, E);
    s = s ? s : das_options_create(&scene->options, E);
    s = s ? s : das_options_set_f_number(scene->options, 1, E);
    s = s ? s : das_options_set_window_table(scene->options, 3, window, E);
    s = s ? s : das_plan_query(device, a, scene->grid, scene->options, &(das_plan_info){.struct_size = sizeof(das_plan_info)}, E);
    s = s ? s : das_plan_create(device, a, scene->grid, scene->options, plan, E);
    return s;
}

/* Each array is replaced, and one that is refused on the way is not kept. */
static void set_all_twice(das_acquisition *a, das_options *o)
{
    double numbers[36], bad[SCENE_ELEMENTS * 3] = {0};
    const int64_t index[3] = {0, 1, 2};
    for (int i = 0; i < 36; i++)
        numbers[i] = 1 + i;
    for (int repeat = 0; repeat < 2; repeat++) {
        OK(das_acquisition_set_receive_elements(a, SCENE_ELEMENTS, numbers, E));
        OK(das_acquisition_set_receive_normals(a, SCENE_ELEMENTS, numbers, E));
        REFUSED(das_acquisition_set_receive_normals(a, SCENE_ELEMENTS, bad, E), DAS_ERROR_ARGUMENT, "normals", NULL);
        OK(das_acquisition_set_receive_weights(a, SCENE_ELEMENTS, numbers, E));
        OK(das_acquisition_set_receive_delays(a, SCENE_ELEMENTS, numbers, E));
        OK(das_acquisition_set_transmit_weights(a, SCENE_TRANSMITS, numbers, E));
        OK(das_acquisition_set_transmit_delays(a, SCENE_TRANSMITS, numbers, E));
        OK(das_acquisition_set_start_times(a, SCENE_TRANSMITS, numbers, E));
        OK(das_acquisition_set_pair_weights(a, SCENE_TRANSMITS, SCENE_ELEMENTS, numbers, E));
        OK(das_acquisition_set_traces(a, 3, index, index, numbers, E));
        OK(das_options_set_window_table(o, 3, numbers, E));
        for (int i = 0; i < 100; i++)
            OK(das_acquisition_add_plane_transmit(a, 0, E));
    }
    OK(das_acquisition_set_receive_normals(a, 0, NULL, E));
    OK(das_acquisition_set_pair_weights(a, 0, 0, NULL, E));
}

static void host_memory(void)
{
    contract_scene scene;
    das_plan *plan = NULL;
    if (!COUNTED) {
        test_skip("host memory running out", "malloc cannot be replaced under a sanitizer");
        return;
    }
    das_device *device = contract_open("cpu");
    test_begin("host memory running out is told by each call, and nothing leaks");
    long long n = 1;
    /* The first plan starts the device's threads, which stay. */
    EXPECT_INT(build(&scene, device, &plan), DAS_OK);
    das_plan_destroy(&plan);
    contract_scene_destroy(&scene);
    for (; !test_has_failed(); n++) {
        long long before = atomic_load(&blocks);
        atomic_store(&malloc_failed, false);
        atomic_store(&left_to_fail, n);
        das_status status = build(&scene, device, &plan);
        atomic_store(&left_to_fail, 0);
        bool failed = atomic_load(&malloc_failed);
        char message[512];
        memcpy(message, contract_message(), sizeof message);
        das_plan_destroy(&plan);
        contract_scene_destroy(&scene);
        EXPECT_MSG(atomic_load(&blocks) == before, "allocation %lld: %lld blocks are left", n, atomic_load(&blocks) - before);
        if (!failed) {
            EXPECT_INT(status, DAS_OK);
            break;
        }
        EXPECT_MSG(status == DAS_ERROR_OUT_OF_MEMORY, "allocation %lld gives %s", n, das_status_name(status));
        EXPECT_MSG(strstr(message, "memory") != NULL, "allocation %lld: the message is \"%s\"", n, message);
    }
    EXPECT_MSG(n > 25, "%lld allocations only", n - 1);

    test_begin("a plan that the device refuses leaks nothing");
    das_mock_set_double(false);
    das_device *mock = contract_open("mock");
    if (contract_scene_create(&scene)) {
        das_plan_info info = {.struct_size = sizeof info};
        for (int kind = 0; kind < 2; kind++) {
            das_device *refusing = kind == 0 ? device : mock;
            das_status wanted = kind == 0 ? DAS_ERROR_OUT_OF_DEVICE_MEMORY : DAS_ERROR_UNSUPPORTED;
            OK(das_options_set_memory_budget(scene.options, kind == 0, E));
            OK(das_options_set_precision(scene.options, kind == 0 ? DAS_PRECISION_EXACT : DAS_PRECISION_DOUBLE, E));
            long long before = atomic_load(&blocks);
            REFUSED(das_plan_query(refusing, scene.acquisition, scene.grid, scene.options, &info, E), wanted, NULL, NULL);
            REFUSED(das_plan_create(refusing, scene.acquisition, scene.grid, scene.options, &plan, E), wanted, NULL, NULL);
            EXPECT_MSG(atomic_load(&blocks) == before, "kind %d: %lld blocks are left", kind, atomic_load(&blocks) - before);
        }
        contract_scene_destroy(&scene);
    }
    das_device_destroy(&mock);
    das_mock_set_double(true);

    test_begin("options and other objects without a device leak nothing");
    long long at_first = atomic_load(&blocks);
    das_device_options *options = NULL;
    OK(das_device_options_create(&options, E));
    das_device_options_destroy(&options);
    if (contract_scene_create(&scene)) {
        set_all_twice(scene.acquisition, scene.options);
        contract_scene_destroy(&scene);
    }
    EXPECT_MSG(atomic_load(&blocks) == at_first, "%lld blocks are left", atomic_load(&blocks) - at_first);

    test_begin("a setter without memory leaves the object as it was");
    float before[SCENE_PIXELS], after[SCENE_PIXELS];
    const double window[3] = {1, 0.5, 0};
    if (contract_scene_create(&scene)) {
        double other[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3};
        const int64_t index[1] = {0};
        OK(das_options_set_f_number(scene.options, 0.5, E));
        OK(das_options_set_window_table(scene.options, 3, other, E));
        contract_scene_image(&scene, device, before);
        das_acquisition *a = scene.acquisition;
#define WITHOUT_MEMORY(call)                                                                          \
    for (int nth = 1; nth <= 3; nth++) {                                                              \
        atomic_store(&malloc_failed, false);                                                          \
        atomic_store(&left_to_fail, nth);                                                             \
        das_status got = (call);                                                                      \
        atomic_store(&left_to_fail, 0);                                                               \
        if (!atomic_load(&malloc_failed))                                                             \
            break;                                                                                    \
        contract_refused(got, DAS_ERROR_OUT_OF_MEMORY, "memory", NULL, #call, __FILE__, __LINE__);    \
    }
        WITHOUT_MEMORY(nth == 1 ? das_acquisition_set_receive_elements(a, SCENE_ELEMENTS, other, E) : DAS_OK)
        WITHOUT_MEMORY(nth == 1 ? das_acquisition_set_receive_normals(a, SCENE_ELEMENTS, other, E) : DAS_OK)
        WITHOUT_MEMORY(nth == 1 ? das_acquisition_set_receive_weights(a, SCENE_ELEMENTS, other, E) : DAS_OK)
        WITHOUT_MEMORY(nth == 1 ? das_acquisition_set_receive_delays(a, SCENE_ELEMENTS, other, E) : DAS_OK)
        WITHOUT_MEMORY(nth == 1 ? das_acquisition_set_transmit_weights(a, SCENE_TRANSMITS, other, E) : DAS_OK)
        WITHOUT_MEMORY(nth == 1 ? das_acquisition_set_transmit_delays(a, SCENE_TRANSMITS, other, E) : DAS_OK)
        WITHOUT_MEMORY(nth == 1 ? das_acquisition_set_start_times(a, SCENE_TRANSMITS, other, E) : DAS_OK)
        WITHOUT_MEMORY(nth == 1 ? das_acquisition_set_pair_weights(a, SCENE_TRANSMITS, SCENE_ELEMENTS, other, E) : DAS_OK)
        WITHOUT_MEMORY(nth <= 2 ? das_acquisition_set_traces(a, 1, index, index, NULL, E) : DAS_OK)
        WITHOUT_MEMORY(nth == 1 ? das_options_set_window_table(scene.options, 3, window, E) : DAS_OK)
        contract_scene_image(&scene, device, after);
        EXPECT(contract_same(before, after, sizeof before));
        contract_scene_destroy(&scene);
    }
    das_device_destroy(&device);
    test_end();
}

int main(void)
{
    contract_each_device(no_allocation);
    query_is_exact();
#ifdef SANITIZED
    test_skip("the process takes what the query told", "a sanitizer takes more");
#else
    process_memory();
#endif
    contract_each_device(budgets);
    host_memory();
    return test_finish();
}
