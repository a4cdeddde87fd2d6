/* Queues, events, slots, errors that come later, timing, progress: mostly on the mock, whose queues can be held. */
#include "contract.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One device with everything a call needs, and the image that it should give. */
typedef struct rig {
    das_device *device;
    contract_scene scene;
    das_plan *plan;
    das_queue *queue, *other;
    das_event *event;
    das_run *run;
    das_buffer *data, *image;
    float expected[SCENE_PIXELS], pixels[SCENE_PIXELS];
} rig;

static void rig_destroy(rig *r)
{
    das_buffer_destroy(&r->data);
    das_buffer_destroy(&r->image);
    das_run_destroy(&r->run);
    das_event_destroy(&r->event);
    das_queue_destroy(&r->queue);
    das_queue_destroy(&r->other);
    das_plan_destroy(&r->plan);
    contract_scene_destroy(&r->scene);
    das_device_destroy(&r->device);
    das_mock_reset();
    EXPECT_NO_BREACH();
    EXPECT_INT(das_mock_live(), 0);
}

static bool rig_create(rig *r, const char *name, int64_t max_in_flight)
{
    memset(r, 0, sizeof *r);
    das_mock_reset();
    r->device = contract_open(name);
    bool ok = r->device != NULL && contract_scene_create(&r->scene) &&
              OK(das_options_set_max_in_flight(r->scene.options, max_in_flight, E)) &&
              contract_scene_image(&r->scene, r->device, r->expected) &&
              OK(das_plan_create(r->device, r->scene.acquisition, r->scene.grid, r->scene.options, &r->plan, E)) &&
              OK(das_queue_create(r->device, &r->queue, E)) && OK(das_queue_create(r->device, &r->other, E)) &&
              OK(das_event_create(r->device, &r->event, E)) && OK(das_run_create(r->device, &r->run, E)) &&
              OK(das_buffer_create(r->device, sizeof r->scene.data, DAS_MEMORY_DEVICE, &r->data, E)) &&
              OK(das_buffer_create(r->device, sizeof r->pixels, DAS_MEMORY_DEVICE, &r->image, E)) &&
              OK(das_buffer_upload(NULL, r->data, 0, r->scene.data, sizeof r->scene.data, E));
    if (!ok)
        rig_destroy(r);
    das_mock_reset();
    return ok;
}

static bool rig_has_image(rig *r)
{
    return contract_same(r->pixels, r->expected, sizeof r->pixels);
}

/* ---- calls return before the work is done, and host memory stays as it is until then ---- */

static void host_memory(void)
{
    rig r;
    test_begin("mock: host memory is untouched until the queue has passed the copy");
    if (!rig_create(&r, "mock", 1)) {
        test_end();
        return;
    }
    float *late = malloc(sizeof r.scene.data);
    memset(late, 0, sizeof r.scene.data);
    memset(r.pixels, 0x55, sizeof r.pixels);
    float marks[SCENE_PIXELS];
    memcpy(marks, r.pixels, sizeof marks);

    das_mock_hold(r.queue);
    OK(das_buffer_upload(r.queue, r.data, 0, late, sizeof r.scene.data, E));
    memcpy(late, r.scene.data, sizeof r.scene.data); /* read only now, if the promise is kept */
    OK(das_reconstruct(r.plan, r.queue, r.data, r.image, NULL, E));
    OK(das_buffer_download(r.queue, r.image, 0, r.pixels, sizeof r.pixels, E));
    OK(das_event_record(r.event, r.queue, E));
    REFUSED(das_event_query(r.event, E), DAS_ERROR_NOT_READY, NULL, NULL);
    EXPECT(contract_same(r.pixels, marks, sizeof marks));
    EXPECT(das_mock_pending(r.queue) > 0);
    das_mock_release(r.queue);
    OK(das_queue_wait(r.queue, E));
    EXPECT_INT(das_mock_pending(r.queue), 0);
    EXPECT(rig_has_image(&r));
    OK(das_event_query(r.event, E));
    EXPECT(das_buffer_host_pointer(r.data) == NULL);
    free(late);
    rig_destroy(&r);
    test_end();
}

/* Whether a host address can be read, without reading it here. */
static bool readable(const void *address)
{
    /* The kernel looks, and says so. */
    int ends[2];
    bool ok = false;
    if (pipe(ends) == 0) {
        ok = write(ends[1], address, 1) == 1;
        close(ends[0]);
        close(ends[1]);
    }
    return ok;
}

static void unreadable(void)
{
    rig r;
    test_begin("mock: device memory is not for the host, pinned memory is");
    if (rig_create(&r, "mock", 1)) {
        das_buffer *pinned = NULL;
        char word[8] = "", *there;
        EXPECT(das_buffer_host_pointer(r.data) == NULL);
        EXPECT(!readable(das_mock_device_pointer(r.data)));
        OK(das_buffer_create(r.device, 8, DAS_MEMORY_HOST, &pinned, E));
        OK(das_buffer_upload(NULL, pinned, 0, "letters", 8, E));
        there = das_buffer_host_pointer(pinned);
        EXPECT(there != NULL && (uintptr_t)there % 64 == 0 && strcmp(there, "letters") == 0);
        OK(das_buffer_download(NULL, pinned, 3, word, 5, E));
        EXPECT(strcmp(word, "ters") == 0);
        das_buffer_destroy(&pinned);
        rig_destroy(&r);
    }
    test_end();
}

/* A NULL queue is ordered after nothing, and done on return. */
static void private_queue(const char *name)
{
    rig r;
    test_begin("%s: without a queue the call is done when it returns", name);
    if (rig_create(&r, name, 2)) {
        bool mock = strncmp(name, "mock", 4) == 0;
        if (mock) {
            das_mock_hold(r.queue);
            OK(das_reconstruct(r.plan, r.queue, r.data, r.image, NULL, E));
        }
        das_buffer *second = NULL;
        OK(das_buffer_create(r.device, sizeof r.pixels, DAS_MEMORY_DEVICE, &second, E));
        OK(das_reconstruct(r.plan, NULL, r.data, second, NULL, E));
        OK(das_buffer_download(NULL, second, 0, r.pixels, sizeof r.pixels, E));
        EXPECT(rig_has_image(&r));
        if (mock) {
            EXPECT(das_mock_pending(r.queue) > 0);
            das_mock_release(r.queue);
        }
        das_buffer_destroy(&second);
        rig_destroy(&r);
    }
    test_end();
}

/* ---- events ---- */

static void events(const char *name)
{
    rig r;
    double ms = -1;
    test_begin("%s: events that were never recorded hold nothing up", name);
    if (!rig_create(&r, name, 1)) {
        test_end();
        return;
    }
    OK(das_event_query(r.event, E));
    OK(das_event_wait(r.event, E));
    OK(das_queue_wait_event(r.queue, r.event, E));
    OK(das_queue_wait(r.queue, E));
    REFUSED(das_event_elapsed(r.event, r.event, &ms, E), DAS_ERROR_ARGUMENT, "start", NULL);
    OK(das_event_record(r.event, r.queue, E));
    OK(das_event_wait(r.event, E));
    OK(das_event_query(r.event, E));
    OK(das_event_elapsed(r.event, r.event, &ms, E));
    EXPECT(ms == 0);
    das_event *later = NULL;
    OK(das_event_create(r.device, &later, E));
    REFUSED(das_event_elapsed(r.event, later, &ms, E), DAS_ERROR_ARGUMENT, "stop", NULL);
    OK(das_reconstruct(r.plan, r.queue, r.data, r.image, NULL, E));
    OK(das_event_record(later, r.queue, E));
    OK(das_queue_wait(r.queue, E));
    OK(das_event_elapsed(r.event, later, &ms, E));
    EXPECT_MSG(ms >= 0 && isfinite(ms), "%g ms", ms);
    das_event_destroy(&later);
    rig_destroy(&r);
    test_end();
}

static void event_order(void)
{
    rig r;
    double ms = 0;
    test_begin("mock: a queue waits for an event of another queue");
    if (!rig_create(&r, "mock", 1)) {
        test_end();
        return;
    }
    float zeros[SCENE_PIXELS] = {0};
    das_event *again = NULL;
    OK(das_event_create(r.device, &again, E));
    das_mock_hold(r.queue);
    OK(das_reconstruct(r.plan, r.queue, r.data, r.image, NULL, E));
    OK(das_event_record(r.event, r.queue, E));
    OK(das_queue_wait_event(r.other, r.event, E));
    OK(das_buffer_download(r.other, r.image, 0, r.pixels, sizeof r.pixels, E));
    OK(das_event_record(again, r.other, E));
    EXPECT_MSG(!das_mock_settle(r.other), "the queue did not wait for the event");
    REFUSED(das_event_query(again, E), DAS_ERROR_NOT_READY, NULL, NULL);
    REFUSED(das_event_elapsed(r.event, again, &ms, E), DAS_ERROR_NOT_READY, NULL, NULL);
    EXPECT_INT(das_mock_pending(r.other), 3);
    das_mock_release(r.queue);
    OK(das_event_wait(again, E));
    EXPECT(rig_has_image(&r));
    OK(das_event_elapsed(r.event, again, &ms, E));
    EXPECT_NEAR(ms, DAS_MOCK_DOWNLOAD_MS, 1e-12);

    test_begin("mock: an event recorded again stands for the later point");
    das_mock_hold(r.queue);
    OK(das_buffer_upload(r.queue, r.image, 0, zeros, sizeof zeros, E));
    OK(das_event_record(r.event, r.queue, E));
    REFUSED(das_event_query(r.event, E), DAS_ERROR_NOT_READY, NULL, NULL);
    das_mock_release(r.queue);
    OK(das_event_wait(r.event, E));
    OK(das_event_query(r.event, E));
    das_event_destroy(&again);
    rig_destroy(&r);
    test_end();
}

/* ---- slots ---- */

typedef struct call {
    rig *r;
    das_buffer *image;
    das_queue *queue;
    das_status status;
} call;

static void *call_later(void *argument)
{
    call *c = argument;
    c->status = das_reconstruct(c->r->plan, c->queue, c->r->data, c->image, NULL, NULL);
    return NULL;
}

static void slots(void)
{
    rig r;
    test_begin("mock: a call without a free slot returns, and its queue waits for one");
    if (!rig_create(&r, "mock", 1)) {
        test_end();
        return;
    }
    das_buffer *second = NULL;
    float got[SCENE_PIXELS];
    OK(das_buffer_create(r.device, sizeof r.pixels, DAS_MEMORY_DEVICE, &second, E));
    das_mock_hold(r.queue);
    OK(das_reconstruct(r.plan, r.queue, r.data, r.image, NULL, E));
    OK(das_reconstruct(r.plan, r.other, r.data, second, NULL, E));
    OK(das_event_record(r.event, r.other, E));
    EXPECT_MSG(!das_mock_settle(r.other), "the queue did not wait for the slot");
    REFUSED(das_event_query(r.event, E), DAS_ERROR_NOT_READY, NULL, NULL);
    EXPECT(das_mock_pending(r.other) > 0);
    das_mock_release(r.queue);
    OK(das_queue_wait(r.other, E));
    OK(das_queue_wait(r.queue, E));
    OK(das_buffer_download(NULL, r.image, 0, r.pixels, sizeof r.pixels, E));
    OK(das_buffer_download(NULL, second, 0, got, sizeof got, E));
    EXPECT(rig_has_image(&r) && contract_same(got, r.expected, sizeof got));

    test_begin("mock: so does a call without a queue, which returns when its work is done");
    das_mock_hold(r.queue);
    OK(das_reconstruct(r.plan, r.queue, r.data, r.image, NULL, E));
    call late = {.r = &r, .image = second};
    pthread_t thread;
    int64_t before = das_mock_count(DAS_MOCK_RECONSTRUCT);
    EXPECT_INT(pthread_create(&thread, NULL, call_later, &late), 0);
    while (das_mock_count(DAS_MOCK_RECONSTRUCT) == before)
        sched_yield();
    das_mock_release(r.queue);
    pthread_join(thread, NULL);
    EXPECT_INT(late.status, DAS_OK);
    OK(das_queue_wait(r.queue, E));
    das_buffer_destroy(&second);
    rig_destroy(&r);

    test_begin("mock: as many calls as max_in_flight run at once");
    if (rig_create(&r, "mock", 3)) {
        das_queue *third = NULL;
        OK(das_queue_create(r.device, &third, E));
        OK(das_buffer_create(r.device, sizeof r.pixels, DAS_MEMORY_DEVICE, &second, E));
        das_mock_hold(r.queue);
        OK(das_reconstruct(r.plan, r.queue, r.data, r.image, NULL, E));
        /* Two slots are left, and stay usable however often, while the first is held. */
        for (int i = 0; i < 7; i++) {
            OK(das_reconstruct(r.plan, i % 2 ? r.other : third, r.data, second, NULL, E));
            EXPECT_MSG(das_mock_settle(i % 2 ? r.other : third), "call %d waits though a slot is free", i + 2);
        }
        EXPECT(das_mock_pending(r.queue) > 0);
        das_mock_release(r.queue);
        OK(das_queue_wait(r.queue, E));
        das_queue_destroy(&third);
        das_buffer_destroy(&second);
        rig_destroy(&r);
    }
    test_end();
}

static void slot_memory(void)
{
    test_begin("the plan's info counts its slots");
    for (int64_t slots = 1; slots <= 64; slots += 21) {
        rig r;
        if (!rig_create(&r, "mock", slots))
            break;
        das_plan_info info = {.struct_size = sizeof info};
        OK(das_plan_get_info(r.plan, &info, E));
        EXPECT_INT(info.slots, slots);
        EXPECT_INT(das_mock_memory(r.device), info.plan_bytes + (uint64_t)slots * info.slot_bytes);
        rig_destroy(&r);
    }
    test_end();
}

/* ---- failures that come later ---- */

/* Every call that takes the queue tells of the failure, and does nothing. */
static void expect_failed_queue(rig *r, das_queue *queue, das_status status)
{
    das_mock_reset();
    REFUSED(das_buffer_upload(queue, r->data, 0, r->scene.data, 4, E), status, NULL, NULL);
    REFUSED(das_buffer_download(queue, r->image, 0, r->pixels, 4, E), status, NULL, NULL);
    REFUSED(das_reconstruct(r->plan, queue, r->data, r->image, NULL, E), status, NULL, NULL);
    REFUSED(das_event_record(r->event, queue, E), status, NULL, NULL);
    REFUSED(das_queue_wait_event(queue, r->event, E), status, NULL, NULL);
    EXPECT_INT(das_mock_count(DAS_MOCK_UPLOAD) + das_mock_count(DAS_MOCK_DOWNLOAD) + das_mock_count(DAS_MOCK_RECONSTRUCT), 0);
}

static void later_failures(void)
{
    static const das_status statuses[] = {DAS_ERROR_INTERNAL, DAS_ERROR_OUT_OF_DEVICE_MEMORY};
    rig r;
    test_begin("mock: a failure while running stays with its queue until the queue was waited for");
    for (int which = 1; which <= 3; which++) {
        das_status status = statuses[which % 2];
        if (!rig_create(&r, "mock", 1))
            break;
        das_mock_hold(r.queue);
        das_mock_fail_command(which, status);
        OK(das_buffer_upload(r.queue, r.data, 0, r.scene.data, sizeof r.scene.data, E));
        OK(das_reconstruct(r.plan, r.queue, r.data, r.image, NULL, E));
        OK(das_buffer_download(r.queue, r.image, 0, r.pixels, sizeof r.pixels, E));
        das_mock_release(r.queue);
        das_mock_await_pending(r.queue, 0);
        EXPECT(das_mock_has_failed());
        expect_failed_queue(&r, r.queue, status);
        /* Another queue is not concerned, nor is the plan. */
        OK(das_buffer_upload(r.other, r.data, 0, r.scene.data, sizeof r.scene.data, E));
        OK(das_reconstruct(r.plan, r.other, r.data, r.image, NULL, E));
        OK(das_queue_wait(r.other, E));
        REFUSED(das_queue_wait(r.queue, E), status, "told to fail", NULL);
        OK(das_queue_wait(r.queue, E));
        OK(das_reconstruct(r.plan, r.queue, r.data, r.image, NULL, E));
        OK(das_buffer_download(r.queue, r.image, 0, r.pixels, sizeof r.pixels, E));
        OK(das_queue_wait(r.queue, E));
        EXPECT(rig_has_image(&r));
        rig_destroy(&r);
    }

    test_begin("mock: of several failures the first is told");
    if (rig_create(&r, "mock", 1)) {
        das_mock_hold(r.queue);
        das_mock_fail_command(1, DAS_ERROR_OUT_OF_DEVICE_MEMORY);
        OK(das_buffer_upload(r.queue, r.data, 0, r.scene.data, 4, E));
        OK(das_buffer_upload(r.queue, r.data, 0, r.scene.data, 4, E));
        das_mock_allow(r.queue, 1);
        das_mock_await_pending(r.queue, 1);
        das_mock_fail_command(1, DAS_ERROR_INTERNAL);
        das_mock_release(r.queue);
        das_mock_await_pending(r.queue, 0);
        REFUSED(das_queue_wait(r.queue, E), DAS_ERROR_OUT_OF_DEVICE_MEMORY, NULL, NULL);
        OK(das_queue_wait(r.queue, E));
        rig_destroy(&r);
    }

    test_begin("mock: without a queue the failing call tells, and only it");
    if (rig_create(&r, "mock", 1)) {
        das_mock_fail_command(1, DAS_ERROR_INTERNAL);
        REFUSED(das_buffer_upload(NULL, r.data, 0, r.scene.data, 4, E), DAS_ERROR_INTERNAL, NULL, NULL);
        OK(das_buffer_upload(NULL, r.data, 0, r.scene.data, 4, E));
        das_mock_fail_command(1, DAS_ERROR_INTERNAL);
        REFUSED(das_reconstruct(r.plan, NULL, r.data, r.image, NULL, E), DAS_ERROR_INTERNAL, NULL, NULL);
        OK(das_reconstruct(r.plan, NULL, r.data, r.image, NULL, E));
        das_mock_fail_command(1, DAS_ERROR_INTERNAL);
        REFUSED(das_buffer_download(NULL, r.image, 0, r.pixels, 4, E), DAS_ERROR_INTERNAL, NULL, NULL);
        OK(das_buffer_download(NULL, r.image, 0, r.pixels, sizeof r.pixels, E));
        EXPECT(rig_has_image(&r));
        for (int which = 1; which <= 3; which++) {
            das_mock_fail_command(which, DAS_ERROR_OUT_OF_DEVICE_MEMORY);
            REFUSED(das_reconstruct_host(r.plan, r.scene.data, sizeof r.scene.data, r.pixels, sizeof r.pixels, NULL, E),
                    DAS_ERROR_OUT_OF_DEVICE_MEMORY, NULL, NULL);
            OK(das_reconstruct_host(r.plan, r.scene.data, sizeof r.scene.data, r.pixels, sizeof r.pixels, NULL, E));
            EXPECT(rig_has_image(&r));
        }
        rig_destroy(&r);
    }

    test_begin("mock: a call that fails at once leaves the image alone and its slot free");
    if (rig_create(&r, "mock", 1)) {
        for (int i = 0; i < 3; i++) {
            das_mock_fail(DAS_MOCK_RECONSTRUCT, 1, DAS_ERROR_INTERNAL);
            REFUSED(das_reconstruct(r.plan, NULL, r.data, r.image, NULL, E), DAS_ERROR_INTERNAL, NULL, NULL);
            EXPECT(das_mock_has_failed());
        }
        OK(das_reconstruct(r.plan, NULL, r.data, r.image, NULL, E));
        rig_destroy(&r);
    }
    test_end();
}

static void lost_device(void)
{
    rig r;
    test_begin("mock: a lost device stays lost, its objects can be destroyed, and it can be opened again");
    if (!rig_create(&r, "mock", 1)) {
        test_end();
        return;
    }
    das_plan_info info = {.struct_size = sizeof info};
    das_buffer *buffer = NULL;
    das_queue *queue = NULL;
    das_event *event = NULL;
    das_plan *plan = NULL;
    das_run *run = NULL;
    das_mock_fail_command(2, DAS_ERROR_DEVICE_LOST);
    OK(das_buffer_upload(r.queue, r.data, 0, r.scene.data, sizeof r.scene.data, E));
    das_mock_await_pending(r.queue, 0);
    EXPECT(das_reconstruct(r.plan, r.queue, r.data, r.image, NULL, E) == DAS_OK);
    das_mock_await_pending(r.queue, 0);
    for (int i = 0; i < 2; i++) {
        das_status lost = DAS_ERROR_DEVICE_LOST;
        REFUSED(das_queue_wait(r.queue, E), lost, NULL, NULL);
        REFUSED(das_queue_wait(r.other, E), lost, NULL, NULL);
        expect_failed_queue(&r, r.other, lost);
        REFUSED(das_reconstruct(r.plan, NULL, r.data, r.image, NULL, E), lost, NULL, NULL);
        REFUSED(das_reconstruct_host(r.plan, r.scene.data, sizeof r.scene.data, r.pixels, sizeof r.pixels, NULL, E), lost, NULL,
                NULL);
        REFUSED(das_buffer_upload(NULL, r.data, 0, r.scene.data, 4, E), lost, NULL, NULL);
        REFUSED(das_buffer_create(r.device, 4, DAS_MEMORY_DEVICE, &buffer, E), lost, NULL, NULL);
        REFUSED(das_queue_create(r.device, &queue, E), lost, NULL, NULL);
        REFUSED(das_event_create(r.device, &event, E), lost, NULL, NULL);
        REFUSED(das_event_wait(r.event, E), lost, NULL, NULL);
        REFUSED(das_event_query(r.event, E), lost, NULL, NULL);
        REFUSED(das_run_create(r.device, &run, E), lost, NULL, NULL);
        REFUSED(das_plan_create(r.device, r.scene.acquisition, r.scene.grid, NULL, &plan, E), lost, NULL, NULL);
        REFUSED(das_plan_query(r.device, r.scene.acquisition, r.scene.grid, NULL, &info, E), lost, NULL, NULL);
        EXPECT(buffer == NULL && queue == NULL && event == NULL && plan == NULL && run == NULL);
    }
    das_device *fresh = contract_open("mock");
    EXPECT(contract_scene_image(&r.scene, fresh, r.pixels) && rig_has_image(&r));
    das_device_destroy(&fresh);
    rig_destroy(&r);
    test_end();
}

typedef struct waiter {
    das_queue *queue;
    das_status status;
    atomic_int done;
} waiter;

static void *wait_later(void *argument)
{
    waiter *w = argument;
    w->status = das_queue_wait(w->queue, NULL);
    atomic_store(&w->done, 1);
    return NULL;
}

/* Memory of the caller may be in use until the wait returns, also when the device is lost meanwhile. */
static void wait_on_lost_device(void)
{
    rig r;
    test_begin("mock: waiting for a queue of a lost device still waits");
    if (rig_create(&r, "mock", 1)) {
        das_mock_hold(r.other);
        OK(das_buffer_download(r.other, r.image, 0, r.pixels, sizeof r.pixels, E));
        das_mock_fail_command(1, DAS_ERROR_DEVICE_LOST);
        OK(das_buffer_upload(r.queue, r.data, 0, r.scene.data, 4, E));
        das_mock_await_pending(r.queue, 0);
        waiter w = {.queue = r.other};
        pthread_t thread;
        EXPECT_INT(pthread_create(&thread, NULL, wait_later, &w), 0);
        while (!das_mock_is_awaited(r.other) && !atomic_load(&w.done))
            sched_yield();
        EXPECT_MSG(!atomic_load(&w.done), "the wait returned while the copy was pending");
        das_mock_release(r.other);
        pthread_join(thread, NULL);
        EXPECT_INT(w.status, DAS_ERROR_DEVICE_LOST);
        rig_destroy(&r);
    }
    test_end();
}

/* ---- timing ---- */

static void timing(void)
{
    rig r;
    das_timing t = {.struct_size = sizeof t};
    test_begin("mock: timing is not ready before the work is done, and exact after it");
    if (!rig_create(&r, "mock", 1)) {
        test_end();
        return;
    }
    OK(das_run_enable_timing(r.run, 1, E));
    OK(das_run_enable_timing(r.run, 1, E));
    REFUSED(das_run_get_timing(r.run, &t, E), DAS_ERROR_ARGUMENT, "run", NULL);
    das_mock_hold(r.queue);
    OK(das_reconstruct(r.plan, r.queue, r.data, r.image, r.run, E));
    REFUSED(das_run_get_timing(r.run, &t, E), DAS_ERROR_NOT_READY, NULL, NULL);
    int64_t pending = das_mock_pending(r.queue);
    das_mock_allow(r.queue, 3); /* the first event, packing, the second event */
    das_mock_await_pending(r.queue, pending - 3);
    REFUSED(das_run_get_timing(r.run, &t, E), DAS_ERROR_NOT_READY, NULL, NULL);
    das_mock_release(r.queue);
    OK(das_queue_wait(r.queue, E));
    OK(das_run_get_timing(r.run, &t, E));
    EXPECT_NEAR(t.pack_ms, DAS_MOCK_PACK_MS, 1e-12);
    EXPECT_NEAR(t.compute_ms, DAS_MOCK_PACK_MS + DAS_MOCK_SUM_MS, 1e-12);
    EXPECT(t.upload_ms == 0 && t.download_ms == 0 && t.reserved == 0);

    OK(das_reconstruct_host(r.plan, r.scene.data, sizeof r.scene.data, r.pixels, sizeof r.pixels, r.run, E));
    OK(das_run_get_timing(r.run, &t, E));
    EXPECT_NEAR(t.upload_ms, DAS_MOCK_UPLOAD_MS, 1e-12);
    EXPECT_NEAR(t.pack_ms, DAS_MOCK_PACK_MS, 1e-12);
    EXPECT_NEAR(t.compute_ms, DAS_MOCK_PACK_MS + DAS_MOCK_SUM_MS, 1e-12);
    EXPECT_NEAR(t.download_ms, DAS_MOCK_DOWNLOAD_MS, 1e-12);

    OK(das_reconstruct(r.plan, NULL, r.data, r.image, r.run, E));
    OK(das_run_get_timing(r.run, &t, E));
    EXPECT(t.upload_ms == 0 && t.download_ms == 0);
    OK(das_run_enable_timing(r.run, 0, E));
    REFUSED(das_run_get_timing(r.run, &t, E), DAS_ERROR_ARGUMENT, "run", NULL);
    OK(das_reconstruct(r.plan, NULL, r.data, r.image, r.run, E));
    OK(das_run_enable_timing(r.run, 1, E));
    REFUSED(das_run_get_timing(r.run, &t, E), DAS_ERROR_ARGUMENT, "run", NULL);
    OK(das_reconstruct(r.plan, NULL, r.data, r.image, r.run, E));
    OK(das_run_get_timing(r.run, &t, E));
    EXPECT_NEAR(t.compute_ms, DAS_MOCK_PACK_MS + DAS_MOCK_SUM_MS, 1e-12);
    rig_destroy(&r);
    test_end();
}

static void any_timing(const char *name)
{
    rig r;
    das_timing t = {.struct_size = sizeof t};
    test_begin("%s: every phase has a time", name);
    if (rig_create(&r, name, 1)) {
        OK(das_run_enable_timing(r.run, 1, E));
        OK(das_reconstruct_host(r.plan, r.scene.data, sizeof r.scene.data, r.pixels, sizeof r.pixels, r.run, E));
        OK(das_run_get_timing(r.run, &t, E));
        EXPECT_MSG(t.compute_ms > 0 && t.pack_ms >= 0 && t.compute_ms >= t.pack_ms, "compute %g ms, pack %g ms", t.compute_ms,
                   t.pack_ms);
        EXPECT_MSG(t.upload_ms >= 0 && t.download_ms >= 0, "upload %g ms, download %g ms", t.upload_ms, t.download_ms);
        rig_destroy(&r);
    }
    test_end();
}

/* ---- progress and cancelling ---- */

typedef struct progress_log {
    int calls, cancel_at;
    double last;
    bool wrong;
} progress_log;

static int32_t note_progress(void *context, double fraction)
{
    progress_log *log = context;
    log->wrong = log->wrong || !(fraction >= 0 && fraction <= 1 && fraction >= log->last);
    log->last = fraction;
    return ++log->calls == log->cancel_at;
}

static void progress(const char *name)
{
    rig r;
    test_begin("%s: progress goes from 0 towards 1, and does not change the image", name);
    if (!rig_create(&r, name, 1)) {
        test_end();
        return;
    }
    progress_log log = {0};
    OK(das_run_set_progress(r.run, note_progress, &log, E));
    OK(das_reconstruct_host(r.plan, r.scene.data, sizeof r.scene.data, r.pixels, sizeof r.pixels, r.run, E));
    EXPECT(log.calls >= 1 && !log.wrong);
    EXPECT(rig_has_image(&r));

    test_begin("%s: a cancelled call says so, and the next one works", name);
    int calls = log.calls;
    for (int at = 1; at <= calls; at++) {
        log = (progress_log){.cancel_at = at};
        das_status status = das_reconstruct_host(r.plan, r.scene.data, sizeof r.scene.data, r.pixels, sizeof r.pixels, r.run, E);
        /* Asked to stop when all was done, it may be done. */
        if (log.last < 1 || status != DAS_OK)
            contract_refused(status, DAS_ERROR_CANCELLED, NULL, NULL, "das_reconstruct_host()", __FILE__, __LINE__);
        log = (progress_log){.cancel_at = at};
        status = das_reconstruct(r.plan, r.queue, r.data, r.image, r.run, E);
        das_status waited = das_queue_wait(r.queue, NULL);
        if (log.last < 1 || status != DAS_OK)
            EXPECT_MSG((status == DAS_OK || status == DAS_ERROR_CANCELLED) && waited == DAS_ERROR_CANCELLED,
                       "cancelled at call %d: %s, then %s", at, das_status_name(status), das_status_name(waited));
        OK(das_queue_wait(r.queue, E));
        log = (progress_log){.cancel_at = at};
        status = das_reconstruct(r.plan, NULL, r.data, r.image, r.run, E);
        EXPECT(status == DAS_ERROR_CANCELLED || log.last >= 1);
    }
    OK(das_run_set_progress(r.run, NULL, NULL, E));
    OK(das_reconstruct(r.plan, r.queue, r.data, r.image, r.run, E));
    OK(das_buffer_download(r.queue, r.image, 0, r.pixels, sizeof r.pixels, E));
    OK(das_queue_wait(r.queue, E));
    EXPECT(rig_has_image(&r));
    rig_destroy(&r);
    test_end();
}

/* ---- devices do not mix ---- */

static void wrong_device(const char *name)
{
    rig a, b;
    test_begin("%s: objects of another device are refused", name);
    /* The same physical device, opened twice: still two das_devices. */
    if (!rig_create(&a, name, 1)) {
        test_end();
        return;
    }
    if (rig_create(&b, name, 1)) {
        double ms;
        das_status wrong = DAS_ERROR_WRONG_DEVICE;
        REFUSED(das_reconstruct(a.plan, b.queue, a.data, a.image, NULL, E), wrong, "queue", NULL);
        REFUSED(das_reconstruct(a.plan, a.queue, b.data, a.image, NULL, E), wrong, "data", NULL);
        REFUSED(das_reconstruct(a.plan, a.queue, a.data, b.image, NULL, E), wrong, "image", NULL);
        REFUSED(das_reconstruct(a.plan, a.queue, a.data, a.image, b.run, E), wrong, "run", NULL);
        REFUSED(das_reconstruct(a.plan, b.queue, b.data, b.image, b.run, E), wrong, NULL, NULL);
        REFUSED(das_reconstruct_host(a.plan, a.scene.data, sizeof a.scene.data, a.pixels, sizeof a.pixels, b.run, E), wrong, "run",
                NULL);
        REFUSED(das_buffer_upload(a.queue, b.data, 0, a.scene.data, 4, E), wrong, "buffer", NULL);
        REFUSED(das_buffer_download(a.queue, b.image, 0, a.pixels, 4, E), wrong, "buffer", NULL);
        REFUSED(das_event_record(a.event, b.queue, E), wrong, "event", NULL);
        OK(das_event_record(a.event, a.queue, E));
        REFUSED(das_queue_wait_event(b.queue, a.event, E), wrong, "event", NULL);
        OK(das_event_record(b.event, b.queue, E));
        REFUSED(das_event_elapsed(a.event, b.event, &ms, E), wrong, NULL, NULL);
        OK(das_queue_wait(a.queue, E));
        OK(das_queue_wait(b.queue, E));
        das_mock_reset();
        das_buffer_destroy(&b.data);
        das_buffer_destroy(&b.image);
        das_run_destroy(&b.run);
        das_event_destroy(&b.event);
        das_queue_destroy(&b.queue);
        das_queue_destroy(&b.other);
        das_plan_destroy(&b.plan);
        contract_scene_destroy(&b.scene);
        das_device_destroy(&b.device);
    }
    rig_destroy(&a);
    test_end();
}

int main(void)
{
    host_memory();
    unreadable();
    contract_each_device(private_queue);
    contract_each_device(events);
    event_order();
    slots();
    slot_memory();
    later_failures();
    lost_device();
    wait_on_lost_device();
    timing();
    contract_each_device(any_timing);
    contract_each_device(progress);
    contract_each_device(wrong_device);
    return test_finish();
}
