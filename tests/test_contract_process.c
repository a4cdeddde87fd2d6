/* What the library does to the process: nothing that is not asked for. And what a forked child may do. */
#include "backend.h"
#include "contract.h"

#include <fcntl.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define NO_FORK 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define NO_FORK 1
#endif
#endif

extern char **environ;

static contract_scene scene;
static float expected[SCENE_PIXELS];

/* Uses most of the library on the device, with failures among the calls. */
static bool use_device(das_device *device)
{
    das_plan *plan = NULL;
    das_queue *queue = NULL;
    das_event *event = NULL;
    das_run *run = NULL;
    das_buffer *data = NULL, *image = NULL;
    float pixels[SCENE_PIXELS];
    das_plan_info info = {.struct_size = sizeof info};
    memset(pixels, 0xFF, sizeof pixels);
    bool ok = das_plan_query(device, scene.acquisition, scene.grid, scene.options, &info, E) == DAS_OK &&
              das_plan_create(device, scene.acquisition, scene.grid, scene.options, &plan, E) == DAS_OK &&
              das_queue_create(device, &queue, E) == DAS_OK && das_event_create(device, &event, E) == DAS_OK &&
              das_run_create(device, &run, E) == DAS_OK && das_run_enable_timing(run, 1, E) == DAS_OK &&
              das_buffer_create(device, sizeof scene.data, DAS_MEMORY_DEVICE, &data, E) == DAS_OK &&
              das_buffer_create(device, sizeof pixels, DAS_MEMORY_HOST, &image, E) == DAS_OK &&
              das_buffer_upload(queue, data, 0, scene.data, sizeof scene.data, E) == DAS_OK &&
              das_reconstruct(plan, queue, data, image, run, E) == DAS_OK && das_event_record(event, queue, E) == DAS_OK &&
              das_buffer_download(queue, image, 0, pixels, sizeof pixels, E) == DAS_OK && das_queue_wait(queue, E) == DAS_OK &&
              contract_close(pixels, expected, SCENE_PIXELS) &&
              das_reconstruct_host(plan, scene.data, sizeof scene.data, pixels, sizeof pixels, NULL, E) == DAS_OK &&
              contract_close(pixels, expected, SCENE_PIXELS) &&
              das_reconstruct(plan, queue, data, data, run, E) == DAS_ERROR_ARGUMENT &&
              das_buffer_upload(queue, data, 1, scene.data, sizeof scene.data, NULL) == DAS_ERROR_ARGUMENT &&
              das_acquisition_set_sound_speed(scene.acquisition, -1, E) == DAS_ERROR_ARGUMENT;
    das_plan_destroy(&plan);
    das_event_destroy(&event);
    das_run_destroy(&run);
    das_buffer_destroy(&data);
    das_buffer_destroy(&image);
    das_queue_destroy(&queue);
    return ok;
}

/* ---- output ---- */

static void silence(const char *name)
{
    test_begin("%s: nothing is printed, whatever happens", name);
    fflush(stdout);
    fflush(stderr);
    char path[] = "/tmp/das-test-output-XXXXXX";
    int file = mkstemp(path), out = dup(1), err = dup(2);
    unlink(path);
    dup2(file, 1);
    dup2(file, 2);
    das_device *device = NULL;
    int64_t count;
    das_device_count(&count, NULL);
    das_device_open("nothing", NULL, &device, NULL);
    das_device_open("cpu:9", NULL, &device, NULL);
    das_device_open("auto", NULL, &device, NULL);
    das_device_destroy(&device);
    bool ok = das_device_open(name, NULL, &device, NULL) == DAS_OK && use_device(device);
    if (strncmp(name, "mock", 4) == 0) {
        das_mock_fail_command(1, DAS_ERROR_DEVICE_LOST);
        use_device(device);
        das_mock_reset();
    }
    das_device_destroy(&device);
    fflush(stdout);
    fflush(stderr);
    struct stat status;
    int got = fstat(file, &status);
    dup2(out, 1);
    dup2(err, 2);
    close(out);
    close(err);
    close(file);
    EXPECT(ok && got == 0);
    EXPECT_MSG(status.st_size == 0, "%lld bytes were printed", (long long)status.st_size);
    test_end();
}

/* ---- the state of the process ---- */

typedef struct state {
    char environment[8192], directory[512], locale[512];
    mode_t mask;
    struct sigaction actions[65];
} state;

static int open_files(void)
{
    int count = 0;
    for (int i = 0; i < 1024; i++)
        count += fcntl(i, F_GETFD) != -1;
    return count;
}

static void look(state *s)
{
    size_t used = 0;
    memset(s, 0, sizeof *s);
    for (char **e = environ; *e != NULL && used + strlen(*e) + 2 < sizeof s->environment; e++)
        used += (size_t)snprintf(s->environment + used, sizeof s->environment - used, "%s\n", *e);
    if (getcwd(s->directory, sizeof s->directory) == NULL)
        test_note("getcwd failed");
    snprintf(s->locale, sizeof s->locale, "%s", setlocale(LC_ALL, NULL));
    s->mask = umask(0);
    umask(s->mask);
    for (int signal = 1; signal <= 64; signal++)
        sigaction(signal, NULL, &s->actions[signal]);
}

static state before; /* the first call of the library */

static bool drivers; /* were loaded */

static void leaves_no_trace(const char *name)
{
    state after;
    das_device *device = NULL;
    test_begin("%s: environment, locale, directory, signal handlers and files are as before", name);
    int files = open_files();
    EXPECT(das_device_open(name, NULL, &device, NULL) == DAS_OK && use_device(device));
    das_device_destroy(&device);
    look(&after);
    /* A driver may add variables of its own; none of the old ones changes. (But one is the OpenCL loader's own: Khronos's
     * cuts that list of files in place while it reads it.) */
    if (drivers)
        for (const char *e = before.environment; *e != '\0'; e = strchr(e, '\n') + 1) {
            if (strncmp(e, "OCL_ICD_FILENAMES=", 18) == 0)
                continue;
            size_t length = strcspn(e, "\n") + 1;
            const char *found = after.environment;
            while (*found != '\0' && strncmp(found, e, length) != 0)
                found = strchr(found, '\n') + 1;
            EXPECT_MSG(*found != '\0', "the environment lacks %.*s", (int)length - 1, e);
        }
    else
        EXPECT(strcmp(before.environment, after.environment) == 0);
    EXPECT(strcmp(before.directory, after.directory) == 0);
    EXPECT(strcmp(before.locale, after.locale) == 0);
    EXPECT_INT(after.mask, before.mask);
    for (int signal = 1; signal <= 64; signal++)
        EXPECT_MSG(before.actions[signal].sa_handler == after.actions[signal].sa_handler, "signal %d has another handler", signal);
    /* A driver keeps files open; the library does not. */
    if (strcmp(name, "cpu") == 0 || strncmp(name, "mock", 4) == 0)
        EXPECT_INT(open_files(), files);
    test_end();
}

/* ---- instruction sets by name and by environment ---- */

static void described_as(const char *isa, const char *by_environment, const char *expected_name)
{
    das_device_options *options = NULL;
    das_device *device = NULL;
    das_device_info info = {.struct_size = sizeof info};
    if (by_environment != NULL)
        setenv("DAS_CPU_ISA", by_environment, 1);
    else
        unsetenv("DAS_CPU_ISA");
    OK(das_device_options_create(&options, E));
    OK(das_device_options_set_isa(options, isa, E));
    if (expected_name == NULL) {
        REFUSED(das_device_open("cpu", options, &device, E), DAS_ERROR_UNSUPPORTED, isa != NULL ? "isa" : "DAS_CPU_ISA",
                isa != NULL ? isa : by_environment);
        EXPECT(device == NULL);
    } else if (OK(das_device_open("cpu", options, &device, E)) && OK(das_device_get_info(device, &info, E))) {
        EXPECT_MSG(strstr(info.description, expected_name) != NULL, "described as %s", info.description);
        das_plan *plan = NULL;
        OK(das_plan_create(device, scene.acquisition, scene.grid, scene.options, &plan, E));
        EXPECT_MSG(strstr(das_plan_description(plan), expected_name) != NULL, "the plan is described as %s", das_plan_description(plan));
        das_plan_destroy(&plan);
    }
    das_device_destroy(&device);
    das_device_options_destroy(&options);
    unsetenv("DAS_CPU_ISA");
}

static void instruction_sets(void)
{
    const char *found = getenv("DAS_CPU_ISA");
    char *kept = found != NULL ? strdup(found) : NULL;
    test_begin("the instruction set is what the options say, else DAS_CPU_ISA, else the best");
    described_as("scalar", NULL, "scalar");
    described_as(NULL, "scalar", "scalar");
    described_as("scalar", "no such thing", "scalar");
    described_as(NULL, "no such thing", NULL);
    described_as(NULL, "", "");
#if defined(__x86_64__)
    described_as("neon", NULL, NULL);
    described_as(NULL, "neon", NULL);
#else
    described_as("avx2", NULL, NULL);
    described_as(NULL, "avx512", NULL);
#endif
    if (kept != NULL)
        setenv("DAS_CPU_ISA", kept, 1);
    free(kept);
    test_end();
}

/* ---- fork ---- */

#ifdef NO_FORK
static void forks(void)
{
    /* The address sanitizer's allocator stays locked in a child forked while a driver's thread allocates. */
    test_skip("forked children", "the sanitizers cannot go on in children of a process with threads");
}
#else
/* Runs the function in a child; its result is 0 for success, else a line number. A child that hangs is ended. */
static void in_child(int (*what)(das_device *), das_device *device)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        alarm(120);
        _exit(what(device));
    }
    int status = -1;
    EXPECT(child > 0 && waitpid(child, &status, 0) == child);
    EXPECT_MSG(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child ended with %s %d",
               WIFEXITED(status) ? "the failure of check" : "signal", WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
}

#define CHECK(number, condition) \
    if (!(condition))            \
    return (number)

static das_plan *plan;
static das_queue *queue;
static das_event *event;
static das_run *run;
static das_buffer *data, *image;

static int cpu_child(das_device *device)
{
    float pixels[SCENE_PIXELS];
    das_device *own = NULL;
    CHECK(1, das_reconstruct(plan, queue, data, image, run, NULL) == DAS_OK);
    CHECK(2, das_buffer_download(queue, image, 0, pixels, sizeof pixels, NULL) == DAS_OK);
    CHECK(3, das_queue_wait(queue, NULL) == DAS_OK);
    CHECK(4, memcmp(pixels, expected, sizeof pixels) == 0);
    CHECK(5, use_device(device));
    CHECK(6, das_device_open("cpu", NULL, &own, NULL) == DAS_OK && use_device(own));
    das_device_destroy(&own);
    das_plan_destroy(&plan);
    das_run_destroy(&run);
    das_event_destroy(&event);
    das_queue_destroy(&queue);
    das_buffer_destroy(&data);
    das_buffer_destroy(&image);
    das_device_destroy(&device);
    return 0;
}

static int mock_child(das_device *device)
{
    float pixels[SCENE_PIXELS];
    das_device *own = NULL;
    das_buffer *buffer = NULL;
    das_queue *other = NULL;
    das_event *another = NULL;
    das_plan *made = NULL;
    das_run *fresh = NULL;
    das_plan_info info = {.struct_size = sizeof info};
    das_status forked = DAS_ERROR_FORKED;
    CHECK(1, das_reconstruct(plan, queue, data, image, run, E) == forked && strstr(contract_message(), "fork") != NULL);
    CHECK(2, das_reconstruct(plan, NULL, data, image, NULL, NULL) == forked);
    CHECK(3, das_reconstruct_host(plan, scene.data, sizeof scene.data, pixels, sizeof pixels, NULL, NULL) == forked);
    CHECK(4, das_buffer_upload(queue, data, 0, pixels, 4, NULL) == forked);
    CHECK(5, das_buffer_download(NULL, data, 0, pixels, 4, NULL) == forked);
    CHECK(6, das_queue_wait(queue, NULL) == forked && das_queue_wait_event(queue, event, NULL) == forked);
    CHECK(7, das_event_record(event, queue, NULL) == forked && das_event_query(event, NULL) == forked);
    CHECK(8, das_event_wait(event, NULL) == forked);
    CHECK(9, das_buffer_create(device, 4, DAS_MEMORY_DEVICE, &buffer, NULL) == forked && buffer == NULL);
    CHECK(10, das_queue_create(device, &other, NULL) == forked && das_event_create(device, &another, NULL) == forked);
    CHECK(11, das_plan_create(device, scene.acquisition, scene.grid, NULL, &made, NULL) == forked && made == NULL);
    CHECK(12, das_plan_query(device, scene.acquisition, scene.grid, NULL, &info, NULL) == forked);
    CHECK(13, das_run_create(device, &fresh, NULL) == forked && das_run_enable_timing(run, 0, NULL) == DAS_OK);
    das_plan_destroy(&plan);
    das_run_destroy(&run);
    das_event_destroy(&event);
    das_queue_destroy(&queue);
    das_buffer_destroy(&data);
    das_buffer_destroy(&image);
    das_device_destroy(&device);
    CHECK(14, das_mock_breaches() == 0);
    /* Opened again, it works. */
    CHECK(15, das_device_open("mock", NULL, &own, NULL) == DAS_OK && use_device(own));
    das_device_destroy(&own);
    return 0;
}

/* What a thread of the parent might hold when another one forks. */
static void hold(das_device *device, bool held)
{
    int (*const change)(pthread_mutex_t *) = held ? pthread_mutex_lock : pthread_mutex_unlock;
    change(&device->mutex);
    change(&device->private_mutex);
    change(&queue->mutex);
    change(&plan->slots[0].queue->mutex);
    plan->slots[0].busy = held;
    change(&plan->mutex);
}

static void *wait_for_slot(void *argument)
{
    float pixels[SCENE_PIXELS];
    *(bool *)argument = das_reconstruct_host(plan, scene.data, sizeof scene.data, pixels, sizeof pixels, NULL, NULL) == DAS_OK &&
                        memcmp(pixels, expected, sizeof pixels) == 0;
    return NULL;
}

/* The child is forked while locks are held, the plan's only slot is taken and a thread waits for it. */
static void fork_locked(int (*child)(das_device *), das_device *device)
{
    pthread_t waiting;
    bool ok = false;
    plan->slots[0].busy = true;
    if (pthread_create(&waiting, NULL, wait_for_slot, &ok) != 0) {
        test_note("no thread");
        return;
    }
    usleep(50000); /* for it to wait; if it does not yet, the test shows less */
    hold(device, true);
    in_child(child, device);
    hold(device, false);
    pthread_mutex_lock(&plan->mutex);
    pthread_cond_signal(&plan->slot_free);
    pthread_mutex_unlock(&plan->mutex);
    pthread_join(waiting, NULL);
    EXPECT_MSG(ok, "the thread that waited has another image");
}

/* The parent has used everything before, its threads run, and it goes on afterwards. */
static void fork_on(const char *name, int (*child)(das_device *), void (*fork_how)(int (*child)(das_device *), das_device *))
{
    das_device_options *options = NULL;
    das_device *device = NULL;
    OK(das_device_options_create(&options, E));
    OK(das_device_options_set_thread_count(options, 3, E));
    if (OK(das_device_open(name, options, &device, E)) && use_device(device) &&
        OK(das_plan_create(device, scene.acquisition, scene.grid, scene.options, &plan, E)) && OK(das_queue_create(device, &queue, E)) &&
        OK(das_event_create(device, &event, E)) && OK(das_run_create(device, &run, E)) && OK(das_run_enable_timing(run, 1, E)) &&
        OK(das_buffer_create(device, sizeof scene.data, DAS_MEMORY_DEVICE, &data, E)) &&
        OK(das_buffer_create(device, sizeof expected, DAS_MEMORY_DEVICE, &image, E)) &&
        OK(das_buffer_upload(queue, data, 0, scene.data, sizeof scene.data, E)) &&
        OK(das_reconstruct(plan, queue, data, image, run, E)) && OK(das_event_record(event, queue, E)) && OK(das_queue_wait(queue, E))) {
        fork_how(child, device);
        fork_how(child, device);
        EXPECT(use_device(device));
    } else {
        test_note("the parent failed");
    }
    das_plan_destroy(&plan);
    das_run_destroy(&run);
    das_event_destroy(&event);
    das_queue_destroy(&queue);
    das_buffer_destroy(&data);
    das_buffer_destroy(&image);
    das_device_destroy(&device);
    das_device_options_destroy(&options);
}

/* Forks as they come, while threads use the library in every way. */
static atomic_bool enough;

static void *keep_using(void *argument)
{
    das_device *device = argument;
    float pixels[SCENE_PIXELS];
    bool ok = true;
    while (ok && !atomic_load(&enough)) {
        das_queue *own = NULL;
        das_buffer *in = NULL;
        das_device *another = NULL;
        int64_t count;
        ok = das_reconstruct_host(plan, scene.data, sizeof scene.data, pixels, sizeof pixels, NULL, NULL) == DAS_OK &&
             das_buffer_create(device, sizeof scene.data, DAS_MEMORY_DEVICE, &in, NULL) == DAS_OK &&
             das_buffer_upload(NULL, in, 0, scene.data, sizeof scene.data, NULL) == DAS_OK &&
             das_queue_create(device, &own, NULL) == DAS_OK && das_device_count(&count, NULL) == DAS_OK &&
             das_device_open("cpu", NULL, &another, NULL) == DAS_OK && memcmp(pixels, expected, sizeof pixels) == 0;
        das_queue_destroy(&own);
        das_buffer_destroy(&in);
        das_device_destroy(&another);
    }
    return ok ? NULL : device;
}

static void fork_busy(int (*child)(das_device *), das_device *device)
{
    enum { THREADS = 3, FORKS = 20 };
    pthread_t threads[THREADS];
    atomic_store(&enough, false);
    for (int i = 0; i < THREADS; i++)
        EXPECT_INT(pthread_create(&threads[i], NULL, keep_using, device), 0);
    for (int i = 0; i < FORKS && !test_has_failed(); i++)
        in_child(child, device);
    atomic_store(&enough, true);
    for (int i = 0; i < THREADS; i++) {
        void *failed = NULL;
        pthread_join(threads[i], &failed);
        EXPECT_MSG(failed == NULL, "a thread of the parent failed");
    }
}

static void forks(void)
{
    if (getenv("TEST_RUNNER") != NULL) {
        test_skip("forked children", "an emulator cannot start threads in them");
        return;
    }
    test_begin("cpu: a forked child goes on with plan, queue and buffers, and opens devices");
    fork_on("cpu", cpu_child, in_child);
    test_begin("cpu: a child forked while threads hold locks, and the plan's slot");
    fork_on("cpu", cpu_child, fork_locked);
    test_begin("cpu: children forked while threads are at work");
    fork_on("cpu", cpu_child, fork_busy);
    test_begin("mock: in a forked child an inherited device says FORKED, can be destroyed, and opened again");
    fork_on("mock", mock_child, in_child);
    test_begin("mock: a child forked while threads hold locks, and the plan's slot");
    fork_on("mock", mock_child, fork_locked);
    test_end();
}
#endif

int main(void)
{
    look(&before);
    das_device *device = contract_open("cpu");
    if (device != NULL && contract_scene_create(&scene) && contract_scene_image(&scene, device, expected)) {
        das_device_destroy(&device);
        leaves_no_trace("cpu");
        leaves_no_trace("mock");
        drivers = true;
        contract_each_device(silence);
        contract_each_device(leaves_no_trace);
        instruction_sets();
        forks();
    } else {
        test_begin("process");
        test_note("no scene");
        test_end();
    }
    das_device_destroy(&device);
    contract_scene_destroy(&scene);
    return test_finish();
}
