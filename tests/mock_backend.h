/* A device made of threads, for proving the front end: its memory cannot be read by the host, its queues
 * run later on threads of their own and can be held, every call of the vtable can be made to fail, and so
 * can the work that was queued. The arithmetic is the CPU backend's, on an inner device.
 *
 * It watches the front end: whatever backend.h promises to a backend is checked, and what is broken is
 * counted as a breach. A test that used the mock ends with EXPECT_NO_BREACH().
 *
 * das_mock_install() adds "mock", "mock:0" and "mock:1" to what das_device_open() knows. */
#ifndef DAS_TESTS_MOCK_BACKEND_H
#define DAS_TESTS_MOCK_BACKEND_H

#include "das/das.h"

#include <stdbool.h>

void das_mock_install(void);
void das_mock_uninstall(void);

/* ---- failing ---- */

typedef enum das_mock_call {
    DAS_MOCK_ANY, /* any of the following */
    DAS_MOCK_DEVICE_COUNT,
    DAS_MOCK_DEVICE_LIST,
    DAS_MOCK_DEVICE_OPEN,
    DAS_MOCK_BUFFER_CREATE,
    DAS_MOCK_BUFFER_IMPORT,
    DAS_MOCK_QUEUE_CREATE,
    DAS_MOCK_QUEUE_IMPORT,
    DAS_MOCK_QUEUE_WAIT,
    DAS_MOCK_QUEUE_WAIT_EVENT,
    DAS_MOCK_EVENT_CREATE,
    DAS_MOCK_EVENT_RECORD,
    DAS_MOCK_EVENT_QUERY,
    DAS_MOCK_EVENT_WAIT,
    DAS_MOCK_EVENT_ELAPSED,
    DAS_MOCK_UPLOAD,
    DAS_MOCK_DOWNLOAD,
    DAS_MOCK_PLAN_QUERY,
    DAS_MOCK_PLAN_CREATE,
    DAS_MOCK_SLOT_CREATE,
    DAS_MOCK_RECONSTRUCT,
    DAS_MOCK_CALLS
} das_mock_call;

const char *das_mock_call_name(das_mock_call call);

/* The nth call (from 1) of `call` from now on fails with status, once. */
void das_mock_fail(das_mock_call call, int64_t nth, das_status status);

/* The nth queued command (upload, download, sum) that starts from now on is not done but fails with status,
 * once; DAS_ERROR_DEVICE_LOST loses the device. */
void das_mock_fail_command(int64_t nth, das_status status);

/* Nothing fails any more, and the counts start again. */
void das_mock_reset(void);

/* Calls since das_mock_reset(). */
int64_t das_mock_count(das_mock_call call);

/* Whether the failure that was asked for has happened. */
bool das_mock_has_failed(void);

/* ---- holding ---- */

/* A held queue starts no command until it is released. das_mock_allow() lets it start that many. */
void das_mock_hold(das_queue *queue);
void das_mock_allow(das_queue *queue, int64_t commands);
void das_mock_release(das_queue *queue);

/* The same for every queue of the device, private ones and later ones included. */
void das_mock_hold_device(das_device *device);
void das_mock_release_device(das_device *device);

/* Commands given to the queue that are not done: uploads, downloads, sums, records and waits. */
int64_t das_mock_pending(das_queue *queue);

/* Blocks until that many commands at most are pending. */
void das_mock_await_pending(das_queue *queue, int64_t commands);

/* Whether a thread is in queue_wait for work of the queue that is not done. */
bool das_mock_is_awaited(das_queue *queue);

/* Blocks until the queue has done everything (true) or waits for an event of another queue (false). */
bool das_mock_settle(das_queue *queue);

/* ---- memory, objects, time ---- */

/* Bytes that plans and slots hold on the device now. */
uint64_t das_mock_memory(const das_device *device);
/* Plans and slots beyond this give DAS_ERROR_OUT_OF_DEVICE_MEMORY; 0: no limit. */
void das_mock_limit_memory(das_device *device, uint64_t bytes);

/* Mock devices have double arithmetic (default) or not. */
void das_mock_set_double(bool has_double);

/* What the device's address of a buffer is: a pointer that faults when read. */
void *das_mock_device_pointer(const das_buffer *buffer);

/* Devices, buffers, queues, events, plans and slots that exist. */
int64_t das_mock_live(void);

/* Device time passes only with commands, in milliseconds each. */
enum { DAS_MOCK_UPLOAD_MS = 2, DAS_MOCK_PACK_MS = 3, DAS_MOCK_SUM_MS = 5, DAS_MOCK_DOWNLOAD_MS = 7 };

/* ---- breaches of backend.h by the front end ---- */

int64_t das_mock_breaches(void); /* since the start of the program */
const char *das_mock_first_breach(void);

#define EXPECT_NO_BREACH() \
    EXPECT_MSG(das_mock_breaches() == 0, "backend.h was broken %lld times, first: %s", (long long)das_mock_breaches(), \
               das_mock_first_breach())

#endif
