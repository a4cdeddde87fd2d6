#include "contract.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local das_error last_error;

das_error *contract_error(void)
{
    last_error = (das_error)DAS_ERROR_INIT;
    return &last_error;
}

const char *contract_message(void)
{
    return last_error.message;
}

bool contract_ok(das_status status, const char *call, const char *file, int line)
{
    if (status == DAS_OK && last_error.status == DAS_OK && last_error.message[0] == '\0')
        return true;
    test_note("%s:%d: %.120s gives %s, message \"%.300s\"", file, line, call, das_status_name(status), last_error.message);
    return false;
}

bool contract_refused(das_status status, das_status wanted, const char *argument, const char *value, const char *call,
                      const char *file, int line)
{
    const char *message = last_error.message;
    const char *wrong = NULL;
    if (status != wanted)
        wrong = "another status";
    else if (last_error.status != wanted)
        wrong = "another status in the error";
    else if (message[0] == '\0' || memchr(message, '\0', sizeof last_error.message) == NULL)
        wrong = "no message";
    else if (strpbrk(message, "\n\r") != NULL)
        wrong = "a message of several lines";
    else if (argument != NULL && strstr(message, argument) == NULL)
        wrong = "a message without the argument";
    else if (value != NULL && strstr(message, value) == NULL)
        wrong = "a message without the value";
    else if (wanted == DAS_ERROR_ARGUMENT && strstr(message, "expected") == NULL)
        wrong = "a message that does not say what was expected";
    if (wrong == NULL)
        return true;
    test_note("%s:%d: %.120s: %s (wanted %s, %s, %s); it gave %s, \"%.200s\"", file, line, call, wrong, das_status_name(wanted),
              argument != NULL ? argument : "-", value != NULL ? value : "-", das_status_name(status), message);
    return false;
}

void contract_each_device(void (*test)(const char *device))
{
    int64_t count = 0;
    das_mock_install();
    if (das_device_count(&count, NULL) != DAS_OK)
        count = 0;
    for (int64_t i = 0; i < count; i++) {
        das_device_info info = {.struct_size = sizeof info};
        if (das_device_list(i, &info, NULL) == DAS_OK && strcmp(info.name, "mock:1") != 0)
            test(info.name);
    }
}

bool contract_scene_create(contract_scene *scene)
{
    static const double elements[SCENE_ELEMENTS][3] = {{-0.45e-3, 0, 0}, {-0.15e-3, 0, 0}, {0.15e-3, 0, 0}, {0.45e-3, 0, 0}};
    static const double origin[3] = {-0.4e-3, 0, 0.4e-3};
    static const double steps[9] = {0.2e-3, 0, 0, 0, 0, 0, 0, 0, 0.15e-3};
    static const int64_t counts[3] = {5, 1, 7};
    test_rng rng = test_rng_seeded(7);
    memset(scene, 0, sizeof *scene);
    for (int i = 0; i < SCENE_VALUES; i++)
        scene->data[i] = (float)test_rng_uniform(&rng, -1, 1);
    bool ok = OK(das_acquisition_create(&scene->acquisition, E)) &&
              OK(das_acquisition_set_receive_elements(scene->acquisition, SCENE_ELEMENTS, &elements[0][0], E));
    for (int t = 0; ok && t < SCENE_TRANSMITS; t++)
        ok = OK(das_acquisition_add_plane_transmit(scene->acquisition, 0.1 * (t - 1), E));
    ok = ok && OK(das_acquisition_set_sampling_frequency(scene->acquisition, 20e6, E)) &&
         OK(das_acquisition_set_sound_speed(scene->acquisition, 1540, E)) &&
         OK(das_acquisition_set_data(scene->acquisition, DAS_TYPE_F32, SCENE_SAMPLES, E)) &&
         OK(das_acquisition_set_frame_count(scene->acquisition, SCENE_FRAMES, E)) &&
         OK(das_grid_create_cartesian(origin, steps, counts, &scene->grid, E)) && OK(das_options_create(&scene->options, E));
    if (!ok)
        contract_scene_destroy(scene);
    return ok;
}

void contract_scene_destroy(contract_scene *scene)
{
    das_acquisition_destroy(&scene->acquisition);
    das_grid_destroy(&scene->grid);
    das_options_destroy(&scene->options);
}

bool contract_scene_image(const contract_scene *scene, das_device *device, float image[SCENE_PIXELS])
{
    das_plan *plan = NULL;
    memset(image, 0xFF, SCENE_PIXELS * sizeof *image);
    bool ok = OK(das_plan_create(device, scene->acquisition, scene->grid, scene->options, &plan, E)) &&
              OK(das_reconstruct_host(plan, scene->data, sizeof scene->data, image, SCENE_PIXELS * sizeof *image, NULL, E));
    das_plan_destroy(&plan);
    return ok;
}

das_device *contract_open(const char *name)
{
    das_device *device = NULL;
    das_mock_install();
    OK(das_device_open(name, NULL, &device, E));
    return device;
}

/* ---- the counting allocator ---- */

static pthread_mutex_t heap_lock = PTHREAD_MUTEX_INITIALIZER;
static contract_heap heap;
static int64_t heap_left;
static bool heap_failed;

typedef struct heap_head {
    size_t bytes;
    void *start;
} heap_head;

static void *heap_allocate(void *context, size_t bytes, size_t alignment)
{
    bool fail;
    pthread_mutex_lock(&heap_lock);
    heap.calls++;
    fail = heap_left > 0 && --heap_left == 0;
    heap_failed = heap_failed || fail;
    pthread_mutex_unlock(&heap_lock);
    if (context != &heap || bytes == 0 || alignment < 64 || (alignment & (alignment - 1)) != 0) {
        test_note("allocate called with context %p, %zu bytes, alignment %zu", context, bytes, alignment);
        fail = true;
    }
    if (fail || bytes > SIZE_MAX / 2)
        return NULL;
    unsigned char *start = malloc(bytes + 2 * alignment);
    if (start == NULL)
        return NULL;
    /* Just aligned, never more, so that nobody relies on more. */
    unsigned char *pointer = start + sizeof(heap_head);
    pointer += (alignment - (uintptr_t)pointer % alignment) % alignment;
    if ((uintptr_t)pointer % (2 * alignment) == 0)
        pointer += alignment;
    heap_head head = {bytes, start};
    memcpy(pointer - sizeof head, &head, sizeof head);
    memset(pointer, 0xFF, bytes);
    pthread_mutex_lock(&heap_lock);
    heap.blocks++;
    heap.bytes += (int64_t)bytes;
    if (heap.bytes > heap.peak_bytes)
        heap.peak_bytes = heap.bytes;
    pthread_mutex_unlock(&heap_lock);
    return pointer;
}

static void heap_release(void *context, void *pointer)
{
    if (context != &heap || pointer == NULL) {
        test_note("release called with context %p, pointer %p", context, pointer);
        return;
    }
    heap_head head;
    memcpy(&head, (unsigned char *)pointer - sizeof head, sizeof head);
    pthread_mutex_lock(&heap_lock);
    heap.blocks--;
    heap.bytes -= (int64_t)head.bytes;
    pthread_mutex_unlock(&heap_lock);
    memset(pointer, 0xFE, head.bytes);
    free(head.start);
}

contract_heap contract_heap_now(void)
{
    pthread_mutex_lock(&heap_lock);
    contract_heap now = heap;
    pthread_mutex_unlock(&heap_lock);
    return now;
}

void contract_heap_reset(void)
{
    pthread_mutex_lock(&heap_lock);
    heap.calls = 0;
    heap.peak_bytes = heap.bytes;
    pthread_mutex_unlock(&heap_lock);
}

void contract_heap_fail(int64_t nth)
{
    pthread_mutex_lock(&heap_lock);
    heap_left = nth;
    heap_failed = false;
    pthread_mutex_unlock(&heap_lock);
}

bool contract_heap_has_failed(void)
{
    pthread_mutex_lock(&heap_lock);
    bool failed = heap_failed;
    pthread_mutex_unlock(&heap_lock);
    return failed;
}

das_device_options *contract_heap_options(void)
{
    das_device_options *options = NULL;
    if (das_device_options_create(&options, NULL) == DAS_OK)
        das_device_options_set_allocator(options, heap_allocate, heap_release, &heap, NULL);
    return options;
}

das_device *contract_open_counted(const char *name, das_status *status)
{
    das_device *device = NULL;
    das_device_options *options = contract_heap_options();
    das_mock_install();
    das_status got = das_device_open(name, options, &device, E);
    das_device_options_destroy(&options);
    if (status != NULL)
        *status = got;
    return device;
}

bool contract_same(const void *a, const void *b, size_t bytes)
{
    return memcmp(a, b, bytes) == 0;
}

bool contract_close(const float *a, const float *b, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!(fabsf(a[i] - b[i]) <= 1e-5f * (SCENE_TRANSMITS * SCENE_ELEMENTS)))
            return false;
    return true;
}
