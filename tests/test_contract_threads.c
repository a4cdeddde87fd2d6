/* Threads: one plan from many, the image at any thread count and with any runner, the state of the caller's threads. */
#include "contract.h"

#include <dirent.h>
#include <fenv.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#if defined(__SANITIZE_THREAD__)
#define OTHER_THREADS 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define OTHER_THREADS 1
#endif
#endif

static contract_scene scene;
static float expected[SCENE_PIXELS];

static bool small(void)
{
    return getenv("DAS_TEST_SMALL") != NULL;
}

/* ---- one plan, many threads ---- */

typedef struct shared {
    das_device *device;
    das_plan *plan;
    const void *data;
    const float *expected; /* the image of one thread alone */
    size_t data_bytes, bytes;
    int rounds;
    atomic_int wrong;
} shared;

/* Each thread mixes the ways of calling: own queue, no queue, host to host; with its own buffers and run. */
static void *use_plan(void *argument)
{
    shared *s = argument;
    das_queue *queue = NULL;
    das_buffer *data = NULL, *image = NULL;
    das_run *run = NULL;
    float *pixels = malloc(s->bytes);
    bool ok = das_queue_create(s->device, &queue, NULL) == DAS_OK && das_run_create(s->device, &run, NULL) == DAS_OK &&
              das_buffer_create(s->device, s->data_bytes, DAS_MEMORY_DEVICE, &data, NULL) == DAS_OK &&
              das_buffer_create(s->device, s->bytes, DAS_MEMORY_DEVICE, &image, NULL) == DAS_OK &&
              das_buffer_upload(queue, data, 0, s->data, s->data_bytes, NULL) == DAS_OK &&
              das_queue_wait(queue, NULL) == DAS_OK && das_run_enable_timing(run, 1, NULL) == DAS_OK;
    for (int i = 0; ok && i < s->rounds; i++) {
        memset(pixels, 0xFF, s->bytes);
        if (i % 3 == 0)
            ok = das_reconstruct(s->plan, queue, data, image, run, NULL) == DAS_OK &&
                 das_buffer_download(queue, image, 0, pixels, s->bytes, NULL) == DAS_OK && das_queue_wait(queue, NULL) == DAS_OK;
        else if (i % 3 == 1)
            ok = das_reconstruct(s->plan, NULL, data, image, NULL, NULL) == DAS_OK &&
                 das_buffer_download(NULL, image, 0, pixels, s->bytes, NULL) == DAS_OK;
        else
            ok = das_reconstruct_host(s->plan, s->data, s->data_bytes, pixels, s->bytes, run, NULL) == DAS_OK;
        ok = ok && memcmp(pixels, s->expected, s->bytes) == 0;
    }
    if (!ok)
        atomic_fetch_add(&s->wrong, 1);
    das_run_destroy(&run);
    das_buffer_destroy(&data);
    das_buffer_destroy(&image);
    das_queue_destroy(&queue);
    free(pixels);
    return NULL;
}

/* Many threads with queues of their own on one plan, against the image that one thread alone made. */
static void share_plan(const char *name, const contract_scene *of, size_t bytes, const char *what)
{
    for (int64_t slots = 1; slots <= 4; slots += 3) {
        enum { THREADS = 8 };
        pthread_t threads[THREADS];
        float *alone = malloc(bytes);
        shared s = {.data = of->data, .data_bytes = sizeof of->data, .bytes = bytes, .expected = alone, .rounds = small() ? 6 : 30};
        test_begin("%s: %d threads use one plan of %d slots%s", name, (int)THREADS, (int)slots, what);
        s.device = contract_open(name);
        OK(das_options_set_max_in_flight(of->options, slots, E));
        memset(alone, 0xFF, bytes);
        if (s.device != NULL && OK(das_plan_create(s.device, of->acquisition, of->grid, of->options, &s.plan, E)) &&
            OK(das_reconstruct_host(s.plan, of->data, sizeof of->data, alone, bytes, NULL, E))) {
            for (int i = 0; i < THREADS; i++)
                EXPECT_INT(pthread_create(&threads[i], NULL, use_plan, &s), 0);
            for (int i = 0; i < THREADS; i++)
                pthread_join(threads[i], NULL);
            EXPECT_INT(atomic_load(&s.wrong), 0);
        }
        das_plan_destroy(&s.plan);
        das_device_destroy(&s.device);
        free(alone);
        EXPECT_NO_BREACH();
        EXPECT_INT(das_mock_live(), 0);
        test_end();
    }
    OK(das_options_set_max_in_flight(of->options, 1, E));
}

static void one_plan(const char *name)
{
    share_plan(name, &scene, sizeof expected, "");
}

/* Devices and everything on them, made and destroyed by many threads at once. */
static void *make_everything(void *argument)
{
    shared *s = argument;
    for (int i = 0; i < s->rounds; i++) {
        das_plan *plan = NULL;
        das_event *event = NULL;
        das_device *own = NULL;
        das_plan_info info = {.struct_size = sizeof info};
        float pixels[SCENE_PIXELS];
        bool ok = das_plan_create(s->device, scene.acquisition, scene.grid, scene.options, &plan, NULL) == DAS_OK &&
                  das_event_create(s->device, &event, NULL) == DAS_OK && das_plan_get_info(plan, &info, NULL) == DAS_OK &&
                  das_device_open("cpu", NULL, &own, NULL) == DAS_OK &&
                  das_reconstruct_host(plan, scene.data, sizeof scene.data, pixels, sizeof pixels, NULL, NULL) == DAS_OK &&
                  memcmp(pixels, expected, sizeof pixels) == 0;
        das_device_destroy(&own);
        das_event_destroy(&event);
        das_plan_destroy(&plan);
        if (!ok)
            atomic_fetch_add(&s->wrong, 1);
    }
    return NULL;
}

static void one_device(const char *name)
{
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    shared s = {.rounds = small() ? 3 : 15};
    float first[SCENE_PIXELS];
    test_begin("%s: threads make and destroy plans on one device", name);
    s.device = contract_open(name);
    if (s.device != NULL && contract_scene_image(&scene, s.device, first)) {
        memcpy(expected, first, sizeof expected);
        for (int i = 0; i < THREADS; i++)
            EXPECT_INT(pthread_create(&threads[i], NULL, make_everything, &s), 0);
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
        EXPECT_INT(atomic_load(&s.wrong), 0);
    }
    das_device_destroy(&s.device);
    EXPECT_NO_BREACH();
    test_end();
}

/* ---- the same bits ---- */

typedef struct runner_state {
    int order; /* 0 forwards, 1 backwards, 2 on new threads, 3 the even ones first */
    int64_t tasks;
    atomic_int calls;
} runner_state;

typedef struct runner_call {
    das_task_function *task;
    void *argument;
    int64_t index;
} runner_call;

static void *run_one(void *argument)
{
    runner_call *call = argument;
    call->task(call->argument, call->index);
    return NULL;
}

static void host_runner(void *context, das_task_function *task, void *argument, int64_t count)
{
    runner_state *state = context;
    atomic_fetch_add(&state->calls, 1);
    if (state->order == 2) {
        pthread_t threads[64];
        runner_call calls[64];
        for (int64_t first = 0; first < count; first += 64) {
            int64_t n = count - first < 64 ? count - first : 64;
            for (int64_t i = 0; i < n; i++) {
                calls[i] = (runner_call){task, argument, first + i};
                pthread_create(&threads[i], NULL, run_one, &calls[i]);
            }
            for (int64_t i = 0; i < n; i++)
                pthread_join(threads[i], NULL);
        }
        return;
    }
    for (int64_t i = 0; i < count; i++)
        if (state->order == 0)
            task(argument, i);
        else if (state->order == 1)
            task(argument, count - 1 - i);
        else if (i % 2 == 0)
            task(argument, i);
    for (int64_t i = 1; state->order == 3 && i < count; i += 2)
        task(argument, i);
}

/* A scene large enough for many tiles, with everything that sums. */
enum { LARGE_BYTES = SCENE_FRAMES * 67 * 71 * 4 };

static bool large_scene(contract_scene *large, bool double_precision)
{
    const double origin[3] = {-2e-3, 0, 0.2e-3}, steps[9] = {5e-5, 0, 0, 0, 0, 0, 0, 0, 3e-5};
    const int64_t counts[3] = {67, 1, 71};
    if (!contract_scene_create(large))
        return false;
    das_grid_destroy(&large->grid);
    return OK(das_grid_create_cartesian(origin, steps, counts, &large->grid, E)) &&
           OK(das_options_set_precision(large->options, double_precision ? DAS_PRECISION_DOUBLE : DAS_PRECISION_EXACT, E)) &&
           OK(das_options_set_image_type(large->options, DAS_TYPE_F32, E)) &&
           OK(das_options_set_interpolation(large->options, DAS_INTERPOLATION_CUBIC, E)) &&
           OK(das_options_set_f_number(large->options, 0.7, E)) &&
           OK(das_options_set_window(large->options, DAS_WINDOW_HANN, 0, E));
}

/* Aperture and window, and without them, where a device has a fast path. */
static void one_large_plan(const char *name)
{
    contract_scene large;
    for (int plain = 0; plain < 2; plain++) {
        bool ok = large_scene(&large, false);
        if (ok && plain)
            ok = OK(das_options_set_window(large.options, DAS_WINDOW_RECT, 0, E)) && OK(das_options_set_f_number(large.options, 0, E)) &&
                 OK(das_options_set_interpolation(large.options, DAS_INTERPOLATION_LINEAR, E));
        if (ok)
            share_plan(name, &large, LARGE_BYTES, plain ? ", a larger image" : ", a larger image with an aperture");
        contract_scene_destroy(&large);
    }
}

static bool large_image(das_device *device, const contract_scene *large, float *image)
{
    das_plan *plan = NULL;
    memset(image, 0xFF, LARGE_BYTES);
    bool ok = OK(das_plan_create(device, large->acquisition, large->grid, large->options, &plan, E)) &&
              OK(das_reconstruct_host(plan, large->data, sizeof large->data, image, LARGE_BYTES, NULL, E));
    das_plan_destroy(&plan);
    return ok;
}

static void same_bits(void)
{
    const size_t bytes = LARGE_BYTES;
    float *first = malloc(bytes), *other = malloc(bytes);
    contract_scene large;
    for (int precision = 0; precision < 2; precision++) {
        test_begin("the same bits at any thread count%s", precision ? ", in double" : "");
        if (!large_scene(&large, precision))
            break;
        static const int64_t threads[] = {1, 2, 3, 5, 16, 64};
        for (int i = 0; i < 6; i++) {
            das_device_options *options = NULL;
            das_device *device = NULL;
            OK(das_device_options_create(&options, E));
            OK(das_device_options_set_thread_count(options, threads[i], E));
            if (OK(das_device_open("cpu", options, &device, E)))
                for (int repeat = 0; repeat < 2; repeat++) {
                    large_image(device, &large, i == 0 && repeat == 0 ? first : other);
                    EXPECT_MSG((i == 0 && repeat == 0) || contract_same(first, other, bytes), "%d threads give other bits",
                               (int)threads[i]);
                }
            das_device_destroy(&device);
            das_device_options_destroy(&options);
        }
        test_begin("the same bits with the host's runner in any order%s", precision ? ", in double" : "");
        for (int order = 0; order < 4; order++)
            for (int64_t count = 1; count <= 7; count += 3) {
                runner_state state = {.order = order};
                das_device_options *options = NULL;
                das_device *device = NULL;
                OK(das_device_options_create(&options, E));
                OK(das_device_options_set_thread_count(options, count, E));
                OK(das_device_options_set_runner(options, host_runner, &state, E));
                if (OK(das_device_open("cpu", options, &device, E))) {
                    large_image(device, &large, other);
                    EXPECT_MSG(contract_same(first, other, bytes), "order %d, %d tasks: other bits", order, (int)count);
                    EXPECT_MSG(count == 1 || atomic_load(&state.calls) > 0, "the runner was not called");
                }
                das_device_destroy(&device);
                das_device_options_destroy(&options);
            }
        contract_scene_destroy(&large);
    }
    free(first);
    free(other);
    test_end();
}

/* ---- threads of the process, and their signals ---- */

#ifndef OTHER_THREADS
/* Threads of this process; whether all but the caller's block every signal that can be blocked. */
static int count_threads(bool *all_blocked)
{
    DIR *directory = opendir("/proc/self/task");
    struct dirent *entry;
    int count = 0;
    *all_blocked = true;
    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        if (entry->d_name[0] == '.')
            continue;
        count++;
        char path[300], line[256];
        unsigned long long blocked = 0;
        snprintf(path, sizeof path, "/proc/self/task/%s/status", entry->d_name);
        FILE *file = fopen(path, "r");
        while (file != NULL && fgets(line, sizeof line, file) != NULL)
            if (sscanf(line, "SigBlk: %llx", &blocked) == 1)
                break;
        if (file != NULL)
            fclose(file);
        if (atoi(entry->d_name) == (int)getpid())
            continue;
        for (int signal = 1; signal < 32; signal++)
            if (signal != SIGKILL && signal != SIGSTOP && !(blocked >> (signal - 1) & 1))
                *all_blocked = false;
    }
    if (directory != NULL)
        closedir(directory);
    return count;
}

static void worker_threads(void)
{
    bool blocked;
    float image[SCENE_PIXELS];
    sigset_t before, after;
    test_begin("the library's threads start with work, block all signals, and end with the device");
    int none = count_threads(&blocked);
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    das_device_options *options = NULL;
    das_device *device = NULL;
    OK(das_device_options_create(&options, E));
    OK(das_device_options_set_thread_count(options, 4, E));
    if (OK(das_device_open("cpu", options, &device, E))) {
        EXPECT_INT(count_threads(&blocked), none);
        contract_scene_image(&scene, device, image);
        EXPECT_INT(count_threads(&blocked), none + 3);
        EXPECT_MSG(none > 1 || blocked, "a thread of the library takes signals");
        pthread_sigmask(SIG_SETMASK, NULL, &after);
        for (int signal = 1; signal < 32; signal++)
            EXPECT_MSG(sigismember(&before, signal) == sigismember(&after, signal), "signal %d of the caller", signal);
        das_device_destroy(&device);
        EXPECT_INT(count_threads(&blocked), none);
    }
    test_begin("with the host's runner, or one thread, the library has no threads");
    for (int kind = 0; kind < 2; kind++) {
        runner_state state = {.order = 0};
        OK(das_device_options_set_thread_count(options, kind == 0 ? 1 : 4, E));
        OK(das_device_options_set_runner(options, kind == 0 ? NULL : host_runner, &state, E));
        if (OK(das_device_open("cpu", options, &device, E))) {
            contract_scene_image(&scene, device, image);
            EXPECT_INT(count_threads(&blocked), none);
        }
        das_device_destroy(&device);
    }
    das_device_options_destroy(&options);
    test_end();
}

#endif

static void thread_counts(void)
{
    test_begin("the number of threads is the one asked for, else what the process may use");
    cpu_set_t all, one;
    das_device_options *options = NULL;
    das_device *device = NULL;
    das_device_info info = {.struct_size = sizeof info};
    OK(das_device_options_create(&options, E));
    for (int64_t count = 1; count <= 1024; count *= 4) {
        OK(das_device_options_set_thread_count(options, count, E));
        if (OK(das_device_open("cpu", options, &device, E)))
            OK(das_device_get_info(device, &info, E));
        EXPECT_INT(info.compute_units, count);
        das_device_destroy(&device);
    }
    OK(das_device_options_set_thread_count(options, 0, E));
    if (sched_getaffinity(0, sizeof all, &all) == 0) {
        size_t cpu = 0;
        while (!CPU_ISSET(cpu, &all))
            cpu++;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        OK(das_device_open("cpu", options, &device, E));
        OK(das_device_get_info(device, &info, E));
        EXPECT(info.compute_units >= 1 && info.compute_units <= CPU_COUNT(&all));
        das_device_destroy(&device);
        EXPECT_INT(sched_setaffinity(0, sizeof one, &one), 0);
        OK(das_device_open("cpu", options, &device, E));
        OK(das_device_get_info(device, &info, E));
        EXPECT_INT(info.compute_units, 1);
        das_device_destroy(&device);
        EXPECT_INT(sched_setaffinity(0, sizeof all, &all), 0);
    }
    das_device_options_destroy(&options);
    test_end();
}

/* ---- floating point ---- */

static unsigned control_word(void)
{
#if defined(__x86_64__)
    return _mm_getcsr() & ~0x3Fu; /* without the exception flags */
#elif defined(__aarch64__)
    uint64_t word;
    __asm__ volatile("mrs %0, fpcr" : "=r"(word));
    return (unsigned)word;
#else
    return 0;
#endif
}

static void set_control_word(bool flush_denormals)
{
#if defined(__x86_64__)
    _mm_setcsr(flush_denormals ? _mm_getcsr() | 0x8040u : _mm_getcsr() & ~0x8040u); /* FTZ and DAZ */
#elif defined(__aarch64__)
    uint64_t word;
    __asm__ volatile("mrs %0, fpcr" : "=r"(word));
    word = flush_denormals ? word | (UINT64_C(1) << 24) : word & ~(UINT64_C(1) << 24);
    __asm__ volatile("msr fpcr, %0" : : "r"(word));
#else
    (void)flush_denormals;
#endif
}

/* A runner's own threads have an environment of their own. */
static void upward_runner(void *context, das_task_function *task, void *argument, int64_t count)
{
    (void)context;
    fenv_t before;
    fegetenv(&before);
    fesetround(FE_DOWNWARD);
    set_control_word(true);
    unsigned word = control_word();
    for (int64_t i = 0; i < count; i++) {
        task(argument, i);
        if (fegetround() != FE_DOWNWARD || control_word() != word)
            test_note("a task changes the floating-point environment of the runner");
    }
    fesetenv(&before);
}

static void floating_point(void)
{
    static const int roundings[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    const size_t bytes = LARGE_BYTES;
    float *first = malloc(bytes), *other = malloc(bytes);
    contract_scene large;
    float tiny[SCENE_VALUES];
    test_begin("rounding and denormals of the caller are neither used nor changed");
    /* Denormal data give a denormal image, which a flushing unit would lose. */
    float original[SCENE_VALUES];
    memcpy(original, scene.data, sizeof original);
    for (int i = 0; i < SCENE_VALUES; i++)
        tiny[i] = scene.data[i] * 1e-39f;
    large_scene(&large, false);
    for (int kind = 0; kind < 3; kind++) {
        das_device_options *options = NULL;
        das_device *device = NULL;
        float image[SCENE_PIXELS], reference[SCENE_PIXELS];
        OK(das_device_options_create(&options, E));
        OK(das_device_options_set_thread_count(options, kind == 0 ? 1 : 3, E));
        if (kind == 2)
            OK(das_device_options_set_runner(options, upward_runner, NULL, E));
        if (!OK(das_device_open("cpu", options, &device, E)))
            break;
        large_image(device, &large, first);
        memcpy(scene.data, tiny, sizeof tiny);
        contract_scene_image(&scene, device, reference);
        bool denormal = false;
        for (int i = 0; i < SCENE_PIXELS; i++)
            denormal = denormal || (reference[i] != 0 && reference[i] > -1e-38f && reference[i] < 1e-38f);
        EXPECT_MSG(denormal, "the image has no denormal values");
        for (int r = 0; r < 4; r++)
            for (int flush = 0; flush < 2; flush++) {
                fesetround(roundings[r]);
                set_control_word(flush);
                unsigned word = control_word();
                das_plan_info info = {.struct_size = sizeof info};
                bool ok = das_plan_query(device, large.acquisition, large.grid, large.options, &info, NULL) == DAS_OK &&
                          control_word() == word && fegetround() == roundings[r] && contract_scene_image(&scene, device, image) && large_image(device, &large, other);
                unsigned word_after = control_word();
                int round_after = fegetround();
                set_control_word(false);
                fesetround(FE_TONEAREST);
                EXPECT_MSG(ok && round_after == roundings[r] && word_after == word, "rounding %d, flush %d: 0x%x became 0x%x", r, flush,
                           word, word_after);
                EXPECT_MSG(contract_same(image, reference, sizeof image), "kind %d, rounding %d, flush %d: denormals differ", kind, r,
                           flush);
                EXPECT_MSG(contract_same(first, other, bytes), "kind %d, rounding %d, flush %d: other bits", kind, r, flush);
            }
        memcpy(scene.data, original, sizeof original);
        das_device_destroy(&device);
        das_device_options_destroy(&options);
    }
    contract_scene_destroy(&large);
    free(first);
    free(other);
    test_end();
}

int main(void)
{
    if (contract_scene_create(&scene)) {
#ifdef OTHER_THREADS
        test_skip("the library's threads", "the thread sanitizer has one of its own");
#else
        worker_threads();
#endif
        thread_counts();
        contract_each_device(one_plan);
        contract_each_device(one_large_plan);
        contract_each_device(one_device);
        same_bits();
        floating_point();
        contract_scene_destroy(&scene);
    }
    return test_finish();
}
