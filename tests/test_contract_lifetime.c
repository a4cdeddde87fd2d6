/* Destroying in any order, with work on its way; imports and when they are released. */
#include "contract.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* ---- handles ---- */

enum { HANDLES = 12 };

typedef struct world {
    das_device *device;
    das_device_options *device_options;
    contract_scene scene;
    das_plan *plan;
    das_queue *queue, *other;
    das_event *event;
    das_run *run;
    das_buffer *data, *image, *second;
    float pixels[SCENE_PIXELS];
} world;

static void destroy_one(world *w, int which)
{
    switch (which) {
    case 0: das_device_destroy(&w->device); break;
    case 1: das_plan_destroy(&w->plan); break;
    case 2: das_queue_destroy(&w->queue); break;
    case 3: das_queue_destroy(&w->other); break;
    case 4: das_event_destroy(&w->event); break;
    case 5: das_run_destroy(&w->run); break;
    case 6: das_buffer_destroy(&w->data); break;
    case 7: das_buffer_destroy(&w->image); break;
    case 8: das_acquisition_destroy(&w->scene.acquisition); break;
    case 9: das_grid_destroy(&w->scene.grid); break;
    case 10: das_buffer_destroy(&w->second); break;
    default:
        das_options_destroy(&w->scene.options);
        das_device_options_destroy(&w->device_options);
    }
}

/* Work on two queues that nobody has waited for. */
static bool create_world(world *w, const char *name)
{
    memset(w, 0, sizeof *w);
    w->device_options = contract_heap_options();
    bool ok = OK(das_device_open(name, w->device_options, &w->device, E)) && contract_scene_create(&w->scene) &&
              OK(das_options_set_max_in_flight(w->scene.options, 2, E)) &&
              OK(das_plan_create(w->device, w->scene.acquisition, w->scene.grid, w->scene.options, &w->plan, E)) &&
              OK(das_queue_create(w->device, &w->queue, E)) && OK(das_queue_create(w->device, &w->other, E)) &&
              OK(das_event_create(w->device, &w->event, E)) && OK(das_run_create(w->device, &w->run, E)) &&
              OK(das_run_enable_timing(w->run, 1, E)) &&
              OK(das_buffer_create(w->device, sizeof w->scene.data, DAS_MEMORY_DEVICE, &w->data, E)) &&
              OK(das_buffer_create(w->device, sizeof w->pixels, DAS_MEMORY_HOST, &w->image, E)) &&
              OK(das_buffer_create(w->device, sizeof w->pixels, DAS_MEMORY_DEVICE, &w->second, E)) &&
              OK(das_buffer_upload(w->queue, w->data, 0, w->scene.data, sizeof w->scene.data, E)) &&
              OK(das_event_record(w->event, w->queue, E)) && OK(das_queue_wait_event(w->other, w->event, E)) &&
              OK(das_reconstruct(w->plan, w->other, w->data, w->second, w->run, E)) &&
              OK(das_reconstruct(w->plan, w->queue, w->data, w->image, NULL, E)) &&
              OK(das_buffer_download(w->queue, w->image, 0, w->pixels, sizeof w->pixels, E));
    return ok;
}

static bool all_null(const world *w)
{
    return !w->device && !w->device_options && !w->plan && !w->queue && !w->other && !w->event && !w->run && !w->data && !w->image && !w->second &&
           !w->scene.acquisition && !w->scene.grid && !w->scene.options;
}

static void any_order(const char *name)
{
    test_rng rng = test_rng_seeded(3);
    int rounds = getenv("DAS_TEST_SMALL") != NULL ? 60 : 400;
    test_begin("%s: objects are destroyed in any order, with work on its way", name);
    for (int round = 0; round < rounds && !test_has_failed(); round++) {
        world w;
        int order[HANDLES];
        for (int i = 0; i < HANDLES; i++)
            order[i] = i;
        /* Rotations first, so that each handle is once the first and once the last; then shuffles. */
        for (int i = 0; i < HANDLES; i++)
            order[i] = (i + round) % HANDLES;
        for (int i = HANDLES - 1; round >= HANDLES && i > 0; i--) {
            int j = test_rng_int(&rng, 0, i), swap = order[i];
            order[i] = order[j];
            order[j] = swap;
        }
        create_world(&w, name);
        for (int i = 0; i < HANDLES; i++)
            destroy_one(&w, order[i]);
        for (int i = 0; i < HANDLES; i++)
            destroy_one(&w, order[i]);
        contract_heap heap = contract_heap_now();
        EXPECT(all_null(&w));
        EXPECT_MSG(heap.blocks == 0, "round %d leaves %lld blocks, %lld bytes", round, (long long)heap.blocks, (long long)heap.bytes);
        EXPECT_INT(das_mock_live(), 0);
        EXPECT_NO_BREACH();
    }
    test_end();
}

static void null_handles(void)
{
    test_begin("destroying nothing is allowed");
    world w;
    memset(&w, 0, sizeof w);
    for (int i = 0; i < HANDLES; i++)
        destroy_one(&w, i);
    das_device_destroy(NULL);
    das_device_options_destroy(NULL);
    das_plan_destroy(NULL);
    das_queue_destroy(NULL);
    das_event_destroy(NULL);
    das_run_destroy(NULL);
    das_buffer_destroy(NULL);
    das_acquisition_destroy(NULL);
    das_grid_destroy(NULL);
    das_options_destroy(NULL);
    test_end();
}

/* ---- destroying waits ---- */

typedef struct destroyer {
    world *w;
    int which;
    atomic_int done;
} destroyer;

static void *destroy_later(void *argument)
{
    destroyer *d = argument;
    destroy_one(d->w, d->which);
    atomic_store(&d->done, 1);
    return NULL;
}

/* The object is destroyed while its queue is held: that must wait, or else the mock sees its work lose the object. Each
 * object is used in one way at a time. */
static void waits(void)
{
    enum { SUM = 1, UPLOAD = 2, DOWNLOAD = 4, RECORD = 8, WAIT = 16 };
    static const struct {
        const char *name;
        int which, work;
    } cases[] = {
        {"plan of a sum", 1, SUM},
        {"run of a sum", 5, SUM},
        {"data buffer of a sum", 6, SUM},
        {"image buffer of a sum", 7, SUM},
        {"buffer of an upload", 6, UPLOAD},
        {"buffer of a download", 7, DOWNLOAD},
        {"event that is recorded", 4, RECORD},
        {"event that is waited for", 4, WAIT},
        {"queue of a sum", 2, SUM},
        {"queue of an upload", 2, UPLOAD},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        world w;
        int work = cases[i].work;
        test_begin("mock: destroying the %s waits for queued work", cases[i].name);
        memset(&w, 0, sizeof w);
        if (OK(das_device_open("mock", NULL, &w.device, E)) && contract_scene_create(&w.scene) &&
            OK(das_plan_create(w.device, w.scene.acquisition, w.scene.grid, NULL, &w.plan, E)) &&
            OK(das_queue_create(w.device, &w.queue, E)) && OK(das_queue_create(w.device, &w.other, E)) &&
            OK(das_event_create(w.device, &w.event, E)) && OK(das_run_create(w.device, &w.run, E)) &&
            OK(das_run_enable_timing(w.run, 1, E)) &&
            OK(das_buffer_create(w.device, sizeof w.scene.data, DAS_MEMORY_DEVICE, &w.data, E)) &&
            OK(das_buffer_create(w.device, sizeof w.pixels, DAS_MEMORY_DEVICE, &w.image, E))) {
            das_queue *held = w.queue;
            if (work & WAIT)
                OK(das_event_record(w.event, w.other, E));
            OK(das_queue_wait(w.other, E));
            das_mock_hold(held);
            if (work & SUM)
                OK(das_reconstruct(w.plan, w.queue, w.data, w.image, w.run, E));
            if (work & UPLOAD)
                OK(das_buffer_upload(w.queue, w.data, 0, w.scene.data, 4, E));
            if (work & DOWNLOAD)
                OK(das_buffer_download(w.queue, w.image, 0, w.pixels, 4, E));
            if (work & RECORD)
                OK(das_event_record(w.event, w.queue, E));
            if (work & WAIT)
                OK(das_queue_wait_event(w.queue, w.event, E));
            das_mock_reset();
            destroyer d = {.w = &w, .which = cases[i].which};
            pthread_t thread;
            int64_t breaches = das_mock_breaches();
            EXPECT_INT(pthread_create(&thread, NULL, destroy_later, &d), 0);
            /* Wait until it waits for the held queue, or until it has failed to. */
            while (!das_mock_is_awaited(held) && das_mock_breaches() == breaches && !atomic_load(&d.done))
                sched_yield();
            EXPECT_MSG(!atomic_load(&d.done), "it did not wait");
            das_mock_release(held);
            pthread_join(thread, NULL);
        }
        for (int k = 0; k < HANDLES; k++)
            destroy_one(&w, k);
        EXPECT_INT(das_mock_live(), 0);
        EXPECT_NO_BREACH();
        test_end();
    }
}

/* Destroying waits for the queues that used the object, and for no others. */
static void waits_for_users_only(void)
{
    world w;
    test_begin("mock: destroying does not wait for queues that never used the object");
    memset(&w, 0, sizeof w);
    if (OK(das_device_open("mock", NULL, &w.device, E)) && OK(das_queue_create(w.device, &w.queue, E)) &&
        OK(das_queue_create(w.device, &w.other, E)) && OK(das_event_create(w.device, &w.event, E)) &&
        OK(das_buffer_create(w.device, 4, DAS_MEMORY_DEVICE, &w.data, E)) &&
        OK(das_buffer_create(w.device, 4, DAS_MEMORY_DEVICE, &w.image, E))) {
        das_queue *held = w.queue;
        das_mock_hold(held);
        OK(das_buffer_upload(w.queue, w.data, 0, "abc", 4, E));
        OK(das_buffer_upload(w.other, w.image, 0, "abc", 4, E));
        OK(das_event_record(w.event, w.other, E));
        das_mock_reset();
        destroyer d[3] = {{.w = &w, .which = 7}, {.w = &w, .which = 4}, {.w = &w, .which = 3}};
        for (int i = 0; i < 3; i++) {
            pthread_t thread;
            EXPECT_INT(pthread_create(&thread, NULL, destroy_later, &d[i]), 0);
            pthread_join(thread, NULL); /* hangs if the contract is broken */
        }
        EXPECT_INT(das_mock_pending(held), 1);
        das_mock_release(held);
    }
    for (int i = 0; i < HANDLES; i++)
        destroy_one(&w, i);
    EXPECT_NO_BREACH();
    test_end();
}

/* ---- a plan copies what it needs ---- */

static void copies(const char *name)
{
    world w;
    float expected[SCENE_PIXELS];
    test_begin("%s: a plan copies acquisition, grid, options and tables", name);
    memset(&w, 0, sizeof w);
    if (!OK(das_device_open(name, NULL, &w.device, E)) || !contract_scene_create(&w.scene)) {
        das_device_destroy(&w.device);
        test_end();
        return;
    }
    size_t transmit_values = SCENE_TRANSMITS * SCENE_POINTS, receive_values = SCENE_ELEMENTS * SCENE_POINTS;
    double *times = malloc((transmit_values + receive_values) * sizeof *times);
    float *weights = malloc((transmit_values + receive_values) * sizeof *weights);
    double *values = malloc(4 * sizeof *values);
    test_rng rng = test_rng_seeded(11);
    for (size_t i = 0; i < transmit_values + receive_values; i++) {
        times[i] = test_rng_uniform(&rng, 0, 1.2e-6);
        weights[i] = (float)test_rng_uniform(&rng, 0, 1);
    }
    for (int i = 0; i < 4; i++)
        values[i] = 1 - 0.2 * i;
    OK(das_options_set_transmit_times(w.scene.options, SCENE_TRANSMITS, SCENE_POINTS, times, E));
    OK(das_options_set_receive_times(w.scene.options, SCENE_ELEMENTS, SCENE_POINTS, times + transmit_values, E));
    OK(das_options_set_transmit_weights(w.scene.options, SCENE_TRANSMITS, SCENE_POINTS, weights, E));
    OK(das_options_set_receive_weights(w.scene.options, SCENE_ELEMENTS, SCENE_POINTS, weights + transmit_values, E));
    OK(das_options_set_f_number(w.scene.options, 0.5, E));
    OK(das_options_set_window_table(w.scene.options, 4, values, E));
    memset(values, 0xFF, 4 * sizeof *values); /* setters copy all but tables per point */
    free(values);
    if (contract_scene_image(&w.scene, w.device, expected) &&
        OK(das_plan_create(w.device, w.scene.acquisition, w.scene.grid, w.scene.options, &w.plan, E))) {
        const char *description = das_plan_description(w.plan);
        EXPECT_MSG(description[0] != '\0' && strpbrk(description, "\r\n") == NULL, "described as \"%s\"", description);
        memset(times, 0xFF, (transmit_values + receive_values) * sizeof *times);
        memset(weights, 0xFF, (transmit_values + receive_values) * sizeof *weights);
        OK(das_acquisition_set_sound_speed(w.scene.acquisition, 1, E));
        OK(das_acquisition_clear_transmits(w.scene.acquisition, E));
        destroy_one(&w, 8);
        destroy_one(&w, 9);
        destroy_one(&w, HANDLES - 1);
        free(times);
        free(weights);
        times = NULL;
        weights = NULL;
        OK(das_reconstruct_host(w.plan, w.scene.data, sizeof w.scene.data, w.pixels, sizeof w.pixels, NULL, E));
        EXPECT(contract_same(w.pixels, expected, sizeof expected));
        bool some = false;
        for (int i = 0; i < SCENE_PIXELS; i++)
            some = some || w.pixels[i] != 0;
        EXPECT_MSG(some, "the image is empty");
    }
    free(times);
    free(weights);
    for (int i = 0; i < HANDLES; i++)
        destroy_one(&w, i);
    test_end();
}

/* ---- imports ---- */

static int releases;
static void *released;

static void release(void *context)
{
    releases++;
    released = context;
}

static void imports(const char *name)
{
    bool host = strcmp(name, "cpu") == 0 || strncmp(name, "mock", 4) == 0;
    das_device *device = contract_open(name);
    das_buffer *buffer = NULL;
    float memory[16] = {0};
    int context, something[8] = {0};
    test_begin("%s: imported memory is released exactly once, and never if importing failed", name);
    if (device == NULL) {
        test_end();
        return;
    }
    releases = 0;
    if (host) {
        if (OK(das_buffer_import_pointer(device, memory, sizeof memory, release, &context, &buffer, E))) {
            EXPECT_INT(das_buffer_bytes(buffer), sizeof memory);
            if (strcmp(name, "cpu") == 0)
                EXPECT(das_buffer_host_pointer(buffer) == (void *)memory);
            float one = 1;
            OK(das_buffer_upload(NULL, buffer, 12, &one, sizeof one, E));
            EXPECT(memory[3] == 1);
            EXPECT_INT(releases, 0);
            das_buffer_destroy(&buffer);
            EXPECT_INT(releases, 1);
            EXPECT(released == &context);
            das_buffer_destroy(&buffer);
            EXPECT_INT(releases, 1);
        }
        releases = 0;
        /* After the device, and without a function. */
        das_device *gone = contract_open(name);
        OK(das_buffer_import_pointer(gone, memory, sizeof memory, release, NULL, &buffer, E));
        das_device_destroy(&gone);
        EXPECT_INT(releases, 0);
        das_buffer_destroy(&buffer);
        EXPECT(releases == 1 && released == NULL);
        OK(das_buffer_import_pointer(device, memory, sizeof memory, NULL, NULL, &buffer, E));
        das_buffer_destroy(&buffer);
        EXPECT_INT(releases, 1);
        releases = 0;
        buffer = (das_buffer *)(void *)memory;
        REFUSED(das_buffer_import_pointer(device, NULL, 4, release, NULL, &buffer, E), DAS_ERROR_ARGUMENT, "pointer", "NULL");
        EXPECT(buffer == NULL);
        REFUSED(das_buffer_import_pointer(device, memory, 0, release, NULL, &buffer, E), DAS_ERROR_ARGUMENT, "bytes", "0");
        EXPECT(das_buffer_import_pointer(device, memory, UINT64_MAX, release, NULL, &buffer, E) != DAS_OK);
        REFUSED(das_buffer_import_pointer(device, memory, 4, release, NULL, NULL, E), DAS_ERROR_ARGUMENT, "buffer", "NULL");
        REFUSED(das_buffer_import_pointer(NULL, memory, 4, release, NULL, &buffer, E), DAS_ERROR_ARGUMENT, "device", "NULL");
    } else {
        REFUSED(das_buffer_import_pointer(device, memory, 4, release, NULL, &buffer, E), DAS_ERROR_UNSUPPORTED, "device", name);
    }
    das_queue *queue = NULL;
    if (strncmp(name, "cuda", 4) != 0) {
        REFUSED(das_buffer_import_cuda(device, 64, 4, release, NULL, &buffer, E), DAS_ERROR_UNSUPPORTED, "device", name);
        REFUSED(das_queue_import_cuda(device, NULL, &queue, E), DAS_ERROR_UNSUPPORTED, "device", name);
    } else {
        REFUSED(das_buffer_import_cuda(device, 0, 4, release, NULL, &buffer, E), DAS_ERROR_ARGUMENT, "cu_deviceptr", NULL);
    }
    if (strncmp(name, "opencl", 6) != 0) {
        REFUSED(das_buffer_import_opencl(device, something, 4, release, NULL, &buffer, E), DAS_ERROR_UNSUPPORTED, "device", name);
        REFUSED(das_queue_import_opencl(device, something, &queue, E), DAS_ERROR_UNSUPPORTED, "device", name);
    } else {
        REFUSED(das_buffer_import_opencl(device, NULL, 4, release, NULL, &buffer, E), DAS_ERROR_ARGUMENT, "cl_mem", NULL);
    }
    REFUSED(das_queue_import_cuda(NULL, NULL, &queue, E), DAS_ERROR_ARGUMENT, "device", "NULL");
    REFUSED(das_queue_import_cuda(device, NULL, NULL, E), DAS_ERROR_ARGUMENT, "queue", "NULL");
    REFUSED(das_queue_import_opencl(NULL, something, &queue, E), DAS_ERROR_ARGUMENT, "device", "NULL");
    REFUSED(das_queue_import_opencl(device, something, NULL, E), DAS_ERROR_ARGUMENT, "queue", "NULL");
    EXPECT(buffer == NULL && queue == NULL);
    EXPECT_INT(releases, 0);
    das_device_destroy(&device);
    test_end();
}

static void import_in_use(void)
{
    world w;
    test_begin("mock: imported memory is released after the work that uses it");
    memset(&w, 0, sizeof w);
    float memory[4] = {0}, value = 5;
    releases = 0;
    if (OK(das_device_open("mock", NULL, &w.device, E)) && OK(das_queue_create(w.device, &w.queue, E)) &&
        OK(das_buffer_import_pointer(w.device, memory, sizeof memory, release, memory, &w.data, E))) {
        das_queue *held = w.queue;
        das_mock_hold(held);
        OK(das_buffer_upload(w.queue, w.data, 4, &value, sizeof value, E));
        das_mock_reset();
        destroyer d = {.w = &w, .which = 6};
        pthread_t thread;
        EXPECT_INT(pthread_create(&thread, NULL, destroy_later, &d), 0);
        while (!das_mock_is_awaited(held) && das_mock_breaches() == 0 && !atomic_load(&d.done))
            sched_yield();
        EXPECT(memory[1] == 0 && !atomic_load(&d.done));
        das_mock_release(held);
        pthread_join(thread, NULL);
        EXPECT(memory[1] == 5);
        EXPECT(releases == 1 && released == (void *)memory);
    }
    test_begin("mock: a failing import of memory is not released");
    releases = 0;
    das_mock_fail(DAS_MOCK_BUFFER_IMPORT, 1, DAS_ERROR_INTERNAL);
    REFUSED(das_buffer_import_pointer(w.device, memory, sizeof memory, release, memory, &w.image, E), DAS_ERROR_INTERNAL, NULL, NULL);
    EXPECT(releases == 0 && w.image == NULL);
    das_mock_reset();
    for (int i = 0; i < HANDLES; i++)
        destroy_one(&w, i);
    EXPECT_NO_BREACH();
    test_end();
}

int main(void)
{
    null_handles();
    contract_each_device(any_order);
    waits();
    waits_for_users_only();
    contract_each_device(copies);
    contract_each_device(imports);
    import_in_use();
    return test_finish();
}
