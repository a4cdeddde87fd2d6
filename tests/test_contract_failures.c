/* Everything that can fail does, one after the other: each allocation, each call of the backend, each queued command.
 * The call concerned says so, its handle is NULL, and nothing is left behind. */
#include "contract.h"

#include <stdlib.h>
#include <string.h>

/* What one pass through the library made of the failure. */
typedef struct outcome {
    das_status status;  /* of the first call that failed */
    const char *call;   /* which */
    char message[512];
    bool handle_left;   /* a failing create left its handle */
    bool image_right;
} outcome;

typedef struct pass {
    das_device_options *device_options;
    das_device *device;
    das_plan *plan;
    das_queue *queue, *other;
    das_event *event, *stop;
    das_run *run;
    das_buffer *data, *image;
    float pixels[SCENE_PIXELS];
} pass;

static contract_scene scene;
static float expected[SCENE_PIXELS];

static bool step(outcome *o, das_status status, const char *call)
{
    if (status == DAS_OK)
        return true;
    if (o->status == DAS_OK) {
        o->status = status;
        o->call = call;
        strncpy(o->message, contract_message(), sizeof o->message - 1);
    }
    return false;
}

#define STEP(call) step(o, (call), #call)
/* The handle holds garbage before, which a failing call replaces by NULL. */
#define MAKE(handle, call)                              \
    ((handle) = (void *)o, step(o, (call), #call) ||    \
                               (o->handle_left = o->handle_left || (handle) != NULL, (handle) = NULL, false))

/* Everything a program does. Ends at the first failure, always cleaning up. */
static outcome run_through(const char *name)
{
    outcome result, *o = &result;
    pass p;
    double ms;
    das_plan_info info = {.struct_size = sizeof info};
    das_timing timing = {.struct_size = sizeof timing};
    memset(o, 0, sizeof *o);
    memset(&p, 0, sizeof p);
    p.device_options = contract_heap_options();
    bool ok = MAKE(p.device, das_device_open(name, p.device_options, &p.device, E)) &&
              STEP(das_plan_query(p.device, scene.acquisition, scene.grid, scene.options, &info, E)) &&
              MAKE(p.plan, das_plan_create(p.device, scene.acquisition, scene.grid, scene.options, &p.plan, E)) &&
              MAKE(p.queue, das_queue_create(p.device, &p.queue, E)) && MAKE(p.other, das_queue_create(p.device, &p.other, E)) &&
              MAKE(p.event, das_event_create(p.device, &p.event, E)) && MAKE(p.stop, das_event_create(p.device, &p.stop, E)) &&
              MAKE(p.run, das_run_create(p.device, &p.run, E)) && STEP(das_run_enable_timing(p.run, 1, E)) &&
              MAKE(p.data, das_buffer_create(p.device, sizeof scene.data, DAS_MEMORY_DEVICE, &p.data, E)) &&
              MAKE(p.image, das_buffer_create(p.device, sizeof p.pixels, DAS_MEMORY_HOST, &p.image, E)) &&
              STEP(das_event_record(p.event, p.queue, E)) &&
              STEP(das_buffer_upload(p.queue, p.data, 0, scene.data, sizeof scene.data, E)) &&
              STEP(das_event_record(p.stop, p.queue, E)) && STEP(das_queue_wait_event(p.other, p.stop, E)) &&
              STEP(das_reconstruct(p.plan, p.other, p.data, p.image, p.run, E)) &&
              STEP(das_buffer_download(p.other, p.image, 0, p.pixels, sizeof p.pixels, E)) && STEP(das_queue_wait(p.queue, E)) &&
              STEP(das_queue_wait(p.other, E)) && STEP(das_run_get_timing(p.run, &timing, E)) &&
              STEP(das_event_wait(p.event, E)) && STEP(das_event_query(p.stop, E)) &&
              STEP(das_event_elapsed(p.event, p.stop, &ms, E));
    o->image_right = ok && contract_close(p.pixels, expected, SCENE_PIXELS);
    ok = ok && STEP(das_reconstruct(p.plan, NULL, p.data, p.image, NULL, E)) &&
         STEP(das_buffer_upload(NULL, p.data, 0, scene.data, sizeof scene.data, E)) &&
         STEP(das_reconstruct_host(p.plan, scene.data, sizeof scene.data, p.pixels, sizeof p.pixels, p.run, E)) &&
         STEP(das_buffer_download(NULL, p.image, 0, p.pixels, sizeof p.pixels, E));
    o->image_right = o->image_right && ok && contract_close(p.pixels, expected, SCENE_PIXELS);
    das_buffer_destroy(&p.image);
    das_run_destroy(&p.run);
    das_queue_destroy(&p.queue);
    das_plan_destroy(&p.plan);
    das_event_destroy(&p.event);
    das_device_destroy(&p.device);
    das_event_destroy(&p.stop);
    das_buffer_destroy(&p.data);
    das_queue_destroy(&p.other);
    das_device_options_destroy(&p.device_options);
    return result;
}

static void nothing_left(const char *what, long long n)
{
    contract_heap heap = contract_heap_now();
    EXPECT_MSG(heap.blocks == 0, "%s %lld: %lld blocks are left, %lld bytes", what, n, (long long)heap.blocks,
               (long long)heap.bytes);
    EXPECT_MSG(das_mock_live() == 0, "%s %lld: %lld objects of the backend are left", what, n, (long long)das_mock_live());
    EXPECT_NO_BREACH();
}

static void allocations(const char *name)
{
    test_begin("%s: each allocation fails once", name);
    contract_heap_fail(0);
    contract_heap_reset();
    outcome clean = run_through(name);
    EXPECT_MSG(clean.status == DAS_OK && clean.image_right, "without failures: %s gives %s", clean.call, clean.message);
    int64_t calls = contract_heap_now().calls;
    EXPECT_MSG(calls >= 10, "the allocator was called %lld times only", (long long)calls);
    nothing_left("without failures", 0);
    for (int64_t n = 1; n <= calls && !test_has_failed(); n++) {
        contract_heap_fail(n);
        outcome o = run_through(name);
        EXPECT_MSG(contract_heap_has_failed(), "allocation %lld did not happen", (long long)n);
        EXPECT_MSG(o.status == DAS_ERROR_OUT_OF_MEMORY || o.status == DAS_ERROR_OUT_OF_DEVICE_MEMORY ||
                       (o.status == DAS_OK && o.image_right),
                   "allocation %lld: %s gives %s", (long long)n, o.call, das_status_name(o.status));
        EXPECT_MSG(o.status == DAS_OK || o.message[0] != '\0', "allocation %lld: %s has no message", (long long)n, o.call);
        EXPECT_MSG(!o.handle_left, "allocation %lld: %s leaves a handle", (long long)n, o.call);
        contract_heap_fail(0);
        nothing_left("allocation", n);
    }
    test_end();
}

static void backend_calls(void)
{
    test_begin("mock: each call of the backend fails once");
    das_mock_reset();
    outcome clean = run_through("mock");
    int64_t calls = das_mock_count(DAS_MOCK_ANY);
    for (das_mock_call call = DAS_MOCK_ANY; call < DAS_MOCK_CALLS; call++) {
        bool reachable = call != DAS_MOCK_DEVICE_LIST && call != DAS_MOCK_BUFFER_IMPORT && call != DAS_MOCK_QUEUE_IMPORT;
        EXPECT_MSG(!reachable || das_mock_count(call) > 0, "the pass never reached %s", das_mock_call_name(call));
    }
    EXPECT_MSG(clean.status == DAS_OK && clean.image_right, "without failures: %s gives %s", clean.call, clean.message);
    static const das_status statuses[] = {DAS_ERROR_INTERNAL, DAS_ERROR_OUT_OF_DEVICE_MEMORY, DAS_ERROR_NO_KERNEL_IMAGE};
    for (int64_t n = 1; n <= calls && !test_has_failed(); n++) {
        das_status status = statuses[n % 3];
        das_mock_reset();
        das_mock_fail(DAS_MOCK_ANY, n, status);
        outcome o = run_through("mock");
        bool happened = das_mock_has_failed();
        das_mock_reset();
        EXPECT_MSG(happened, "call %lld did not happen", (long long)n);
        /* A failure while destroying has nobody to be told to; a query for a free slot is only a hint. */
        EXPECT_MSG(o.status == status || (o.status == DAS_OK && o.image_right), "call %lld: %s gives %s, \"%s\"; expected %s",
                   (long long)n, o.call, das_status_name(o.status), o.message, das_status_name(status));
        EXPECT_MSG(!o.handle_left, "call %lld: %s leaves a handle", (long long)n, o.call);
        nothing_left("call", n);
    }
    test_end();

    test_begin("mock: the first call of each member is told to the caller");
    for (das_mock_call call = DAS_MOCK_DEVICE_COUNT; call < DAS_MOCK_CALLS; call++) {
        if (call == DAS_MOCK_DEVICE_LIST || call == DAS_MOCK_BUFFER_IMPORT || call == DAS_MOCK_QUEUE_IMPORT)
            continue;
        das_mock_reset();
        das_mock_fail(call, 1, DAS_ERROR_NO_KERNEL_IMAGE);
        outcome o = run_through("mock");
        das_mock_reset();
        EXPECT_MSG(o.status == DAS_ERROR_NO_KERNEL_IMAGE || call == DAS_MOCK_EVENT_QUERY, "%s: %s gives %s", das_mock_call_name(call),
                   o.call, das_status_name(o.status));
        EXPECT_MSG(o.status == DAS_OK || strstr(o.message, das_mock_call_name(call)) != NULL, "%s: the message is \"%s\"",
                   das_mock_call_name(call), o.message);
        nothing_left(das_mock_call_name(call), 1);
    }
    test_end();
}

static void commands(void)
{
    static const das_status statuses[] = {DAS_ERROR_INTERNAL, DAS_ERROR_DEVICE_LOST};
    test_begin("mock: each queued command fails once");
    for (int which = 0; which < 2; which++)
        for (int64_t n = 1; !test_has_failed(); n++) {
            das_mock_reset();
            das_mock_fail_command(n, statuses[which]);
            outcome o = run_through("mock");
            bool happened = das_mock_has_failed();
            das_mock_reset();
            nothing_left("command", n);
            if (!happened) {
                EXPECT(o.status == DAS_OK && n > 6);
                break;
            }
            EXPECT_MSG(o.status == statuses[which], "command %lld: %s gives %s", (long long)n, o.call, das_status_name(o.status));
        }
    test_end();
}

/* What failed once works when it is tried again. */
static void again(void)
{
    test_begin("mock: a call that failed works when it is tried again");
    das_device_options *options = contract_heap_options();
    das_device *device = NULL;
    das_run *run = NULL;
    das_buffer *buffer = NULL;
    float value = 1;
    if (OK(das_device_open("mock", options, &device, E)) && OK(das_run_create(device, &run, E)) &&
        OK(das_buffer_create(device, 4, DAS_MEMORY_DEVICE, &buffer, E))) {
        for (int n = 1; n <= 5; n++) {
            das_mock_fail(DAS_MOCK_EVENT_CREATE, n, DAS_ERROR_INTERNAL);
            REFUSED(das_run_enable_timing(run, 1, E), DAS_ERROR_INTERNAL, NULL, NULL);
        }
        OK(das_run_enable_timing(run, 1, E));
        OK(das_run_enable_timing(run, 0, E));
        OK(das_run_enable_timing(run, 1, E));
        /* The device's own queue, made by the first transfer that needs it. */
        das_mock_fail(DAS_MOCK_QUEUE_CREATE, 1, DAS_ERROR_OUT_OF_DEVICE_MEMORY);
        REFUSED(das_buffer_upload(NULL, buffer, 0, &value, 4, E), DAS_ERROR_OUT_OF_DEVICE_MEMORY, "queue_create", NULL);
        das_mock_fail(DAS_MOCK_UPLOAD, 1, DAS_ERROR_INTERNAL);
        REFUSED(das_buffer_upload(NULL, buffer, 0, &value, 4, E), DAS_ERROR_INTERNAL, "upload", NULL);
        das_mock_fail(DAS_MOCK_DOWNLOAD, 1, DAS_ERROR_INTERNAL);
        REFUSED(das_buffer_download(NULL, buffer, 0, &value, 4, E), DAS_ERROR_INTERNAL, "download", NULL);
        OK(das_buffer_upload(NULL, buffer, 0, &value, 4, E));
        value = 0;
        OK(das_buffer_download(NULL, buffer, 0, &value, 4, E));
        EXPECT(value == 1);
        das_buffer_destroy(&buffer);
        das_mock_fail(DAS_MOCK_BUFFER_IMPORT, 1, DAS_ERROR_INTERNAL);
        REFUSED(das_buffer_import_pointer(device, &value, 4, NULL, NULL, &buffer, E), DAS_ERROR_INTERNAL, NULL, NULL);
        OK(das_buffer_import_pointer(device, &value, 4, NULL, NULL, &buffer, E));
    }
    das_mock_reset();
    das_buffer_destroy(&buffer);
    das_run_destroy(&run);
    das_device_destroy(&device);
    das_device_options_destroy(&options);
    nothing_left("again", 0);
    test_end();
}

static void device_memory(void)
{
    test_begin("mock: a device without memory for the plan or its slots says so, and keeps none");
    das_device *device = contract_open("mock");
    das_plan *plan = NULL;
    das_plan_info info = {.struct_size = sizeof info};
    if (device != NULL && OK(das_options_set_max_in_flight(scene.options, 3, E)) &&
        OK(das_plan_query(device, scene.acquisition, scene.grid, scene.options, &info, E))) {
        uint64_t needed = info.plan_bytes + 3 * info.slot_bytes;
        EXPECT_INT(das_mock_memory(device), 0);
        for (int part = 1; part <= 8; part++) {
            das_mock_limit_memory(device, needed * (uint64_t)part / 8 - (part == 8));
            if (needed * (uint64_t)part / 8 <= 1)
                continue;
            REFUSED(das_plan_create(device, scene.acquisition, scene.grid, scene.options, &plan, E), DAS_ERROR_OUT_OF_DEVICE_MEMORY,
                    NULL, NULL);
            EXPECT(plan == NULL);
            EXPECT_INT(das_mock_memory(device), 0);
        }
        das_mock_limit_memory(device, needed);
        OK(das_plan_create(device, scene.acquisition, scene.grid, scene.options, &plan, E));
        EXPECT_INT(das_mock_memory(device), needed);
        das_plan_destroy(&plan);
        EXPECT_INT(das_mock_memory(device), 0);
    }
    OK(das_options_set_max_in_flight(scene.options, 1, E));
    das_device_destroy(&device);
    nothing_left("memory", 0);
    test_end();
}

int main(void)
{
    das_device *device = contract_open("cpu");
    if (device == NULL || !contract_scene_create(&scene) || !contract_scene_image(&scene, device, expected)) {
        test_begin("failures");
        test_note("no scene: %s", contract_message());
        test_end();
    } else {
        das_device_destroy(&device);
        contract_each_device(allocations);
        backend_calls();
        commands();
        again();
        device_memory();
    }
    contract_scene_destroy(&scene);
    das_device_destroy(&device);
    return test_finish();
}
