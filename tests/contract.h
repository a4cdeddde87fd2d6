/* What the contract tests share: calls whose status and message are checked, and a small scene. */
#ifndef DAS_TESTS_CONTRACT_H
#define DAS_TESTS_CONTRACT_H

#include "mock_backend.h"
#include "testing.h"

/* The error to give to the call inside OK() and REFUSED(): emptied first. One per thread. */
#define E contract_error()
das_error *contract_error(void);
const char *contract_message(void); /* what the last call wrote into it */

/* The call succeeds and leaves the error alone. Usable as a condition. */
#define OK(call) contract_ok((call), #call, __FILE__, __LINE__)
/* The call fails with this status, and its message names the argument and shows the value (NULL: any). */
#define REFUSED(call, status, argument, value) contract_refused((call), (status), (argument), (value), #call, __FILE__, __LINE__)

bool contract_ok(das_status status, const char *call, const char *file, int line);
bool contract_refused(das_status status, das_status wanted, const char *argument, const char *value, const char *call,
                      const char *file, int line);

/* Runs the test on every device there is, the CPU first, the mock last. */
void contract_each_device(void (*test)(const char *device));

/* A small acquisition: 4 elements, 3 plane waves, 64 samples, 2 frames, float; a grid of 5 x 1 x 7 points. */
enum {
    SCENE_ELEMENTS = 4,
    SCENE_TRANSMITS = 3,
    SCENE_SAMPLES = 64,
    SCENE_FRAMES = 2,
    SCENE_RECORDS = SCENE_FRAMES * SCENE_TRANSMITS * SCENE_ELEMENTS,
    SCENE_VALUES = SCENE_RECORDS * SCENE_SAMPLES,
    SCENE_POINTS = 35,
    SCENE_PIXELS = SCENE_FRAMES * SCENE_POINTS
};

typedef struct contract_scene {
    das_acquisition *acquisition;
    das_grid *grid;
    das_options *options;
    float data[SCENE_VALUES];
} contract_scene;

bool contract_scene_create(contract_scene *scene);
void contract_scene_destroy(contract_scene *scene);

/* The scene's image on the device, by das_reconstruct_host(). */
bool contract_scene_image(const contract_scene *scene, das_device *device, float image[SCENE_PIXELS]);

das_device *contract_open(const char *name);
/* With an allocator that counts, and fails when told to. */
das_device *contract_open_counted(const char *name, das_status *status);

/* Blocks of the counting allocator: alive, bytes of them, and calls so far. */
typedef struct contract_heap {
    int64_t blocks, bytes, calls, peak_bytes;
} contract_heap;
contract_heap contract_heap_now(void);
void contract_heap_reset(void);              /* calls and peak */
void contract_heap_fail(int64_t nth);        /* the nth allocation from now on gives NULL; 0: none */
bool contract_heap_has_failed(void);
das_device_options *contract_heap_options(void); /* device options with that allocator */

/* Images of two devices, or of two plans, agree: every element within 1e-5 of the data's range, which is 1. */
bool contract_close(const float *a, const float *b, size_t count);
/* Bits of two images agree. */
bool contract_same(const void *a, const void *b, size_t bytes);

#endif
