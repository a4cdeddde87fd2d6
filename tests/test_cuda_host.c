/* The host side of the CUDA backend on a driver made up here: symbols missing one at a time, a failure at every call in
 * turn, memory running out, contexts and streams of the caller. No kernel runs, and no GPU is needed. */
#include "cuda/cuda_driver.h"
#include "das/das.h"
#include "testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Not there in a build without the backend. */
extern das_status das_cu_driver_fill(das_cu_driver *driver, das_cu_lookup *lookup, void *library, das_error *error)
    __attribute__((weak));
extern void das_cu_driver_replace(const das_cu_driver *driver) __attribute__((weak));

/* ---------------------------------------------------------------------------
 * The made-up driver: memory is malloc's, work is done at once, launches do nothing.
 * ------------------------------------------------------------------------- */

static struct {
    int calls, fail_at; /* the call that fails, from 1; 0: none */
    das_cu_result fail_with;
    const char *failed; /* its name */
    int live;           /* memory, streams, events, modules, contexts not given back */
    int contexts[64];   /* stack of current contexts */
    int depth, retained;
    das_cu_stream last_stream;
    int launches;
    uint64_t frames_launched;
    bool bad_grid;
    das_cu_result init_result, module_result;
    int version;
} fake;

/* Memory that is handed out. What a lost context holds goes with it: at the next reset. */
static void *held[64];

static void *hold(size_t bytes)
{
    for (size_t i = 0; i < sizeof held / sizeof held[0]; i++)
        if (held[i] == NULL)
            return held[i] = malloc(bytes);
    return NULL;
}

static void let_go(void *memory)
{
    for (size_t i = 0; i < sizeof held / sizeof held[0]; i++)
        if (held[i] == memory)
            held[i] = NULL;
    free(memory);
}

static das_cu_result called(const char *name)
{
    if (++fake.calls == fake.fail_at) {
        fake.failed = name;
        return fake.fail_with;
    }
    return DAS_CU_SUCCESS;
}

#define CALL(name)                                                                                                             \
    do {                                                                                                                       \
        das_cu_result called_with = called(name);                                                                              \
        if (called_with != DAS_CU_SUCCESS)                                                                                     \
            return called_with;                                                                                                \
    } while (0)

/* Gives something back, even when it says that it failed. */
static das_cu_result released(const char *name)
{
    fake.live--;
    return called(name);
}

static int context_object, stream_object, event_object, module_object, function_object;

static das_cu_result fake_init(unsigned flags)
{
    return flags == 0 ? fake.init_result : DAS_CU_INVALID_VALUE;
}
static das_cu_result fake_driver_version(int *version)
{
    *version = fake.version;
    return DAS_CU_SUCCESS;
}
static das_cu_result fake_error_name(das_cu_result result, const char **name)
{
    *name = result == DAS_CU_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_OTHER";
    return DAS_CU_SUCCESS;
}
static das_cu_result fake_error_string(das_cu_result result, const char **text)
{
    *text = result == DAS_CU_OUT_OF_MEMORY ? "out of memory" : NULL;
    return result == DAS_CU_OUT_OF_MEMORY ? DAS_CU_SUCCESS : DAS_CU_INVALID_VALUE;
}
static das_cu_result fake_device_count(int *count)
{
    CALL("device_count");
    *count = 1;
    return DAS_CU_SUCCESS;
}
static das_cu_result fake_device_get(das_cu_device *device, int ordinal)
{
    CALL("device_get");
    *device = ordinal;
    return DAS_CU_SUCCESS;
}
static das_cu_result fake_device_name(char *name, int length, das_cu_device device)
{
    CALL("device_name");
    snprintf(name, (size_t)length, "Made-up %d", device);
    return DAS_CU_SUCCESS;
}
static das_cu_result fake_device_memory(size_t *bytes, das_cu_device device)
{
    (void)device;
    CALL("device_memory");
    *bytes = (size_t)1 << 34;
    return DAS_CU_SUCCESS;
}
static das_cu_result fake_device_attribute(int *value, int attribute, das_cu_device device)
{
    (void)device;
    CALL("device_attribute");
    *value = attribute == DAS_CU_CAPABILITY_MAJOR   ? 9
             : attribute == DAS_CU_CAPABILITY_MINOR ? 0
             : attribute == DAS_CU_MAX_SHARED_OPTIN ? 227 << 10
                                                    : 4;
    return DAS_CU_SUCCESS;
}
static das_cu_result fake_primary_retain(das_cu_context *context, das_cu_device device)
{
    (void)device;
    CALL("primary_retain");
    fake.live++;
    fake.retained++;
    *context = (das_cu_context)(void *)&context_object;
    return DAS_CU_SUCCESS;
}
static das_cu_result fake_primary_release(das_cu_device device)
{
    (void)device;
    return released("primary_release");
}
static das_cu_result fake_context_push(das_cu_context context)
{
    CALL("context_push");
    fake.contexts[fake.depth++] = context == (das_cu_context)(void *)&context_object ? 1 : 2;
    return DAS_CU_SUCCESS;
}
static das_cu_result fake_context_pop(das_cu_context *context)
{
    *context = NULL;
    fake.depth--;
    return DAS_CU_SUCCESS; /* nothing could be done about a failure */
}
static das_cu_result fake_context_device(das_cu_device *device)
{
    CALL("context_device");
    *device = 0;
    return DAS_CU_SUCCESS;
}
static das_cu_result fake_module_load(das_cu_module *module, const void *image)
{
    CALL("module_load");
    if (fake.module_result != DAS_CU_SUCCESS || image == NULL)
        return fake.module_result;
    fake.live++;
    *module = (das_cu_module)(void *)&module_object;
    return DAS_CU_SUCCESS;
}
static das_cu_result fake_module_unload(das_cu_module module)
{
    (void)module;
    return released("module_unload");
}
static das_cu_result fake_module_function(das_cu_function *function, das_cu_module module, const char *name)
{
    (void)module;
    CALL(name);
    *function = (das_cu_function)(void *)&function_object;
    return DAS_CU_SUCCESS;
}
static das_cu_result fake_function_set(das_cu_function function, int attribute, int value)
{
    (void)function;
    (void)attribute;
    CALL("function_set");
    return value <= 227 << 10 ? DAS_CU_SUCCESS : DAS_CU_INVALID_VALUE;
}
static das_cu_result fake_memory_allocate(das_cu_pointer *pointer, size_t bytes)
{
    CALL("memory_allocate");
    void *memory = hold(bytes);
    if (memory == NULL)
        return DAS_CU_OUT_OF_MEMORY;
    fake.live++;
    *pointer = (das_cu_pointer)(uintptr_t)memory;
    return DAS_CU_SUCCESS;
}
static das_cu_result fake_memory_free(das_cu_pointer pointer)
{
    let_go((void *)(uintptr_t)pointer);
    return released("memory_free");
}
static das_cu_result fake_host_allocate(void **pointer, size_t bytes, unsigned flags)
{
    (void)flags;
    CALL("host_allocate");
    *pointer = hold(bytes);
    if (*pointer == NULL)
        return DAS_CU_OUT_OF_MEMORY;
    fake.live++;
    return DAS_CU_SUCCESS;
}
static das_cu_result fake_host_free(void *pointer)
{
    let_go(pointer);
    return released("host_free");
}
static das_cu_result fake_host_device_pointer(das_cu_pointer *device, void *pointer, unsigned flags)
{
    (void)flags;
    CALL("host_device_pointer");
    *device = (das_cu_pointer)(uintptr_t)pointer;
    return DAS_CU_SUCCESS;
}
static das_cu_result fake_copy(das_cu_pointer to, das_cu_pointer from, size_t bytes, das_cu_stream stream)
{
    (void)stream;
    CALL("copy");
    memmove((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes);
    return DAS_CU_SUCCESS;
}
static das_cu_result fake_copy_to_device(das_cu_pointer to, const void *from, size_t bytes, das_cu_stream stream)
{
    (void)stream;
    CALL("copy_to_device");
    memcpy((void *)(uintptr_t)to, from, bytes);
    return DAS_CU_SUCCESS;
}
static das_cu_result fake_copy_to_host(void *to, das_cu_pointer from, size_t bytes, das_cu_stream stream)
{
    (void)stream;
    CALL("copy_to_host");
    memcpy(to, (const void *)(uintptr_t)from, bytes);
    return DAS_CU_SUCCESS;
}
static das_cu_result fake_stream_create(das_cu_stream *stream, unsigned flags)
{
    (void)flags;
    CALL("stream_create");
    fake.live++;
    *stream = (das_cu_stream)(void *)&stream_object;
    return DAS_CU_SUCCESS;
}
static das_cu_result fake_stream_destroy(das_cu_stream stream)
{
    (void)stream;
    return released("stream_destroy");
}
static das_cu_result fake_stream_wait(das_cu_stream stream)
{
    (void)stream;
    CALL("stream_wait");
    return DAS_CU_SUCCESS;
}
static das_cu_result fake_stream_wait_event(das_cu_stream stream, das_cu_event event, unsigned flags)
{
    (void)stream;
    (void)event;
    (void)flags;
    CALL("stream_wait_event");
    return DAS_CU_SUCCESS;
}
static das_cu_result fake_event_create(das_cu_event *event, unsigned flags)
{
    (void)flags;
    CALL("event_create");
    fake.live++;
    *event = (das_cu_event)(void *)&event_object;
    return DAS_CU_SUCCESS;
}
static das_cu_result fake_event_destroy(das_cu_event event)
{
    (void)event;
    return released("event_destroy");
}
static das_cu_result fake_event_record(das_cu_event event, das_cu_stream stream)
{
    (void)event;
    (void)stream;
    CALL("event_record");
    return DAS_CU_SUCCESS;
}
static das_cu_result fake_event_query(das_cu_event event)
{
    (void)event;
    CALL("event_query");
    return DAS_CU_SUCCESS;
}
static das_cu_result fake_event_wait(das_cu_event event)
{
    (void)event;
    CALL("event_wait");
    return DAS_CU_SUCCESS;
}
static das_cu_result fake_event_elapsed(float *milliseconds, das_cu_event start, das_cu_event stop)
{
    (void)start;
    (void)stop;
    CALL("event_elapsed");
    *milliseconds = 1.5f;
    return DAS_CU_SUCCESS;
}
static das_cu_result fake_launch(das_cu_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                                 unsigned block_y, unsigned block_z, unsigned shared_bytes, das_cu_stream stream,
                                 void **parameters, void **extra)
{
    (void)function;
    (void)parameters;
    (void)extra;
    CALL("launch");
    fake.launches++;
    fake.last_stream = stream;
    fake.frames_launched += (uint64_t)grid_z * 8;
    if (grid_x == 0 || grid_y == 0 || grid_z == 0 || grid_x > 0x7fffffffu || grid_y > 65535 || grid_z > 65535 ||
        block_x * block_y * block_z > 1024 || shared_bytes > 227u << 10)
        fake.bad_grid = true;
    return DAS_CU_SUCCESS;
}

typedef void any_function(void);
static const struct {
    const char *symbol;
    any_function *function;
} symbols[] = {
#define SYMBOL(member, symbol, parameters) {symbol, (any_function *)fake_##member},
    DAS_CU_FUNCTIONS(SYMBOL)
#undef SYMBOL
};
enum { SYMBOLS = sizeof symbols / sizeof symbols[0] };

/* `library` is the number of the symbol that is missing. */
static void *lookup(void *library, const char *name)
{
    for (int i = 0; i < SYMBOLS; i++)
        if (strcmp(symbols[i].symbol, name) == 0 && i != *(int *)library) {
            void *pointer;
            memcpy(&pointer, &symbols[i].function, sizeof pointer);
            return pointer;
        }
    return NULL;
}

static das_cu_driver driver;

static void reset(void)
{
    for (size_t i = 0; i < sizeof held / sizeof held[0]; i++)
        if (held[i] != NULL)
            let_go(held[i]);
    memset(&fake, 0, sizeof fake);
    fake.version = 13000;
}

static das_status load(int missing, das_error *error)
{
    return das_cu_driver_fill(&driver, lookup, &missing, error);
}

/* ---------------------------------------------------------------------------
 * Cases
 * ------------------------------------------------------------------------- */

static void test_loading(void)
{
    test_begin("a driver that lacks a symbol is too old, for each symbol");
    for (int i = 0; i < SYMBOLS; i++) {
        das_error e = DAS_ERROR_INIT;
        reset();
        EXPECT_INT(load(i, &e), DAS_ERROR_DRIVER_TOO_OLD);
        EXPECT(strstr(e.message, symbols[i].symbol) != NULL);
        EXPECT_INT(load(i, NULL), DAS_ERROR_DRIVER_TOO_OLD);
    }
    test_end();

    static const struct {
        das_cu_result init;
        int version;
        das_status status;
    } cases[] = {{DAS_CU_NO_DEVICE, 13000, DAS_ERROR_NO_DEVICE},
                 {DAS_CU_STUB_LIBRARY, 13000, DAS_ERROR_NO_DRIVER},
                 {DAS_CU_SYSTEM_DRIVER_MISMATCH, 13000, DAS_ERROR_NO_DRIVER},
                 {999, 13000, DAS_ERROR_NO_DRIVER},
                 {DAS_CU_SUCCESS, 10020, DAS_ERROR_DRIVER_TOO_OLD},
                 {DAS_CU_SUCCESS, 12040, DAS_OK}};
    test_begin("statuses of a driver that does not initialise or is old");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        das_error e = DAS_ERROR_INIT;
        reset();
        fake.init_result = cases[i].init;
        fake.version = cases[i].version;
        EXPECT_INT(load(-1, &e), cases[i].status);
        EXPECT(e.status == cases[i].status);
    }
    test_end();
}

enum { ELEMENTS = 8, SAMPLES = 64, MOST_FRAMES = 16 };

/* Problems for which the backend chooses each of its paths. */
typedef enum path { GENERIC, TABLES, TILES, FEW, FRAMES, TENSOR, PATHS } path;
static const char *const path_names[PATHS] = {
    "generic", "generic with tables in host memory", "tiles", "few frames", "frames together", "tensor cores"};
static const char *const path_words[PATHS] = {"generic",    "in host memory",  "tiles",
                                              "few frames", "frames together", "tensor cores"};

static das_status make_plan(das_device *device, int64_t frames, path path, das_plan **plan, das_error *e)
{
    static double elements[ELEMENTS][3], times[ELEMENTS * 40 * 40];
    das_acquisition *a = NULL;
    das_grid *grid = NULL;
    das_options *options = NULL;
    const double origin[3] = {0.0, 0.0, 1e-3}, steps[9] = {2e-5, 0, 0, 0, 0, 2e-5, 0, 0, 0};
    const bool line = path == FEW || path == TENSOR; /* which has no tiles */
    const int64_t counts[3] = {line ? 1600 : 40, line ? 1 : 40, 1};
    for (int i = 0; i < ELEMENTS; i++)
        elements[i][0] = 1e-4 * i;
    das_status status = das_acquisition_create(&a, e);
    if (status == DAS_OK)
        status = das_acquisition_set_receive_elements(a, ELEMENTS, &elements[0][0], e);
    if (status == DAS_OK)
        status = das_acquisition_add_element_transmits(a, e);
    if (status == DAS_OK)
        status = das_acquisition_set_sampling_frequency(a, 20e6, e);
    if (status == DAS_OK)
        status = das_acquisition_set_sound_speed(a, 1500.0, e);
    if (status == DAS_OK)
        status = das_acquisition_set_data(a,
                                          path == TENSOR ? DAS_TYPE_F32
                                          : path == FEW  ? DAS_TYPE_I16
                                                         : DAS_TYPE_I8,
                                          SAMPLES, e);
    if (status == DAS_OK)
        status = das_acquisition_set_frame_count(a, frames, e);
    if (status == DAS_OK)
        status = das_grid_create_cartesian(origin, steps, counts, &grid, e);
    if (status == DAS_OK)
        status = das_options_create(&options, e);
    if (status == DAS_OK)
        status = das_options_set_fast_paths(options, path >= TILES, e);
    if (status == DAS_OK && path == FRAMES) /* tiles do not serve that */
        status = das_options_set_interpolation(options, DAS_INTERPOLATION_LANCZOS, e);
    if (status == DAS_OK && path == TENSOR)
        status = das_options_set_precision(options, DAS_PRECISION_REDUCED, e);
    if (status == DAS_OK && path == TABLES)
        status = das_options_set_receive_times(options, ELEMENTS, 1600, times, e);
    if (status == DAS_OK && path == TABLES) /* the table stays in host memory */
        status = das_options_set_memory_budget(options, 16384, e);
    if (status == DAS_OK)
        status = das_plan_create(device, a, grid, options, plan, e);
    das_options_destroy(&options);
    das_grid_destroy(&grid);
    das_acquisition_destroy(&a);
    return status;
}

/* Everything a program does, once; the first failure ends it. All objects are destroyed. */
static das_status use_everything(path path, das_error *e)
{
    static float data[ELEMENTS * ELEMENTS * SAMPLES * MOST_FRAMES]; /* enough for every type */
    static float image[1600 * MOST_FRAMES];
    das_device *device = NULL;
    das_plan *plan = NULL;
    das_queue *queue = NULL, *other = NULL;
    das_event *begun = NULL, *ended = NULL;
    das_buffer *input = NULL, *output = NULL, *pinned = NULL;
    double elapsed = 0.0;
    das_status status = das_device_open("cuda", NULL, &device, e);
    if (status == DAS_OK)
        status = make_plan(device, path >= FRAMES ? MOST_FRAMES : 1, path, &plan, e);
    EXPECT_MSG(status != DAS_OK || strstr(das_plan_description(plan), path_words[path]) != NULL, "%s",
               das_plan_description(plan));
    if (status == DAS_OK)
        status = das_queue_create(device, &queue, e);
    if (status == DAS_OK)
        status = das_queue_import_cuda(device, NULL, &other, e);
    if (status == DAS_OK)
        status = das_event_create(device, &begun, e);
    if (status == DAS_OK)
        status = das_event_create(device, &ended, e);
    if (status == DAS_OK)
        status = das_buffer_create(device, sizeof data, DAS_MEMORY_DEVICE, &input, e);
    if (status == DAS_OK)
        status = das_buffer_create(device, sizeof image, DAS_MEMORY_DEVICE, &output, e);
    if (status == DAS_OK)
        status = das_buffer_create(device, sizeof image, DAS_MEMORY_HOST, &pinned, e);
    if (status == DAS_OK)
        status = das_event_record(begun, queue, e);
    if (status == DAS_OK)
        status = das_buffer_upload(queue, input, 0, data, sizeof data, e);
    if (status == DAS_OK)
        status = das_buffer_upload(queue, pinned, 0, image, sizeof image, e);
    if (status == DAS_OK)
        status = das_reconstruct(plan, queue, input, output, NULL, e);
    if (status == DAS_OK)
        status = das_buffer_download(queue, output, 0, image, sizeof image, e);
    if (status == DAS_OK)
        status = das_event_record(ended, queue, e);
    if (status == DAS_OK)
        status = das_queue_wait_event(other, ended, e);
    if (status == DAS_OK)
        status = das_queue_wait(queue, e);
    if (status == DAS_OK)
        status = das_event_wait(ended, e);
    if (status == DAS_OK)
        status = das_event_query(ended, e);
    if (status == DAS_OK)
        status = das_event_elapsed(begun, ended, &elapsed, e);
    if (status == DAS_OK)
        status = das_reconstruct_host(plan, data, sizeof data, image, sizeof image, NULL, e);
    das_device_destroy(&device);
    das_buffer_destroy(&pinned);
    das_buffer_destroy(&output);
    das_buffer_destroy(&input);
    das_event_destroy(&ended);
    das_event_destroy(&begun);
    das_queue_destroy(&other);
    das_queue_destroy(&queue);
    das_plan_destroy(&plan);
    return status;
}

static void test_failures(path path)
{
    static const struct {
        das_cu_result result;
        bool lost;
    } failures[] = {{DAS_CU_OUT_OF_MEMORY, false}, {DAS_CU_INVALID_VALUE, false}, {DAS_CU_LAUNCH_FAILED, true}};
    das_error e = DAS_ERROR_INIT;
    test_begin("a whole program, %s", path_names[path]);
    reset();
    EXPECT_MSG(use_everything(path, &e) == DAS_OK, "%s", e.message);
    EXPECT_INT(fake.live, 0);
    EXPECT_INT(fake.depth, 0);
    EXPECT(fake.launches > 0 && !fake.bad_grid);
    int calls = fake.calls;
    test_end();
    for (size_t f = 0; f < sizeof failures / sizeof failures[0]; f++) {
        test_begin("failure %d at each of %d calls, %s", failures[f].result, calls, path_names[path]);
        for (int at = 1; at <= calls && !test_has_failed(); at++) {
            e = (das_error)DAS_ERROR_INIT;
            reset();
            fake.fail_at = at;
            fake.fail_with = failures[f].result;
            das_status status = use_everything(path, &e);
            bool freeing =
                fake.failed != NULL && (strstr(fake.failed, "free") != NULL || strstr(fake.failed, "destroy") != NULL ||
                                        strstr(fake.failed, "release") != NULL || strstr(fake.failed, "unload") != NULL);
            /* What fails within a destroy call, or while a free slot is looked for, is not told. */
            bool unheard =
                fake.failed != NULL && (strcmp(fake.failed, "context_push") == 0 || strcmp(fake.failed, "stream_wait") == 0 ||
                                        strcmp(fake.failed, "event_query") == 0 || strcmp(fake.failed, "event_wait") == 0);
            EXPECT_MSG(status != DAS_OK || freeing || unheard || fake.failed == NULL, "call %d (%s): no error", at,
                       fake.failed);
            EXPECT_MSG(status == DAS_OK || e.status == status, "call %d (%s): %d, but the error has %d", at, fake.failed,
                       status, e.status);
            EXPECT_MSG(fake.depth == 0, "call %d (%s): %d contexts left pushed", at, fake.failed, fake.depth);
            EXPECT_MSG(fake.live == 0 || unheard || failures[f].lost, "call %d (%s): %d objects leak", at, fake.failed,
                       fake.live);
        }
        test_end();
    }
}

static void test_images(void)
{
    das_error e = DAS_ERROR_INIT;
    das_device *device = NULL;
    test_begin("no kernel image names the card and the versions");
    reset();
    fake.module_result = DAS_CU_NO_BINARY_FOR_GPU;
    EXPECT_INT(das_device_open("cuda", NULL, &device, &e), DAS_ERROR_NO_KERNEL_IMAGE);
    EXPECT(strstr(e.message, "9.0") != NULL && strstr(e.message, "13.0") != NULL);
    EXPECT(device == NULL && fake.live == 0 && fake.depth == 0);
    test_end();
    test_begin("PTX that the driver cannot read: too old");
    reset();
    fake.module_result = DAS_CU_UNSUPPORTED_PTX_VERSION;
    fake.version = 12020;
    EXPECT_INT(load(-1, &e), DAS_OK);
    EXPECT_INT(das_device_open("cuda", NULL, &device, &e), DAS_ERROR_DRIVER_TOO_OLD);
    EXPECT(strstr(e.message, "12.2") != NULL);
    EXPECT(fake.live == 0 && fake.depth == 0);
    test_end();
    reset();
    EXPECT_INT(load(-1, &e), DAS_OK);
}

static void test_callers_objects(void)
{
    static int their_context, their_stream;
    das_error e = DAS_ERROR_INIT;
    das_device *device = NULL;
    das_plan *plan = NULL;
    test_begin("the caller's context and streams");
    reset();
    EXPECT_INT(das_device_open_cuda(&their_context, NULL, &device, &e), DAS_OK);
    EXPECT_INT(fake.retained, 0);
    EXPECT_INT(make_plan(device, 1, GENERIC, &plan, &e), DAS_OK);
    void *streams[] = {NULL, (void *)1, (void *)2, &their_stream};
    for (size_t i = 0; i < sizeof streams / sizeof streams[0]; i++) {
        das_queue *queue = NULL;
        das_buffer *input = NULL, *output = NULL;
        static char data[ELEMENTS * ELEMENTS * SAMPLES];
        static float image[1600];
        EXPECT_INT(das_queue_import_cuda(device, streams[i], &queue, &e), DAS_OK);
        EXPECT_INT(das_buffer_import_cuda(device, (uint64_t)(uintptr_t)data, sizeof data, NULL, NULL, &input, &e), DAS_OK);
        EXPECT_INT(das_buffer_import_cuda(device, (uint64_t)(uintptr_t)image, sizeof image, NULL, NULL, &output, &e), DAS_OK);
        EXPECT_INT(das_reconstruct(plan, queue, input, output, NULL, &e), DAS_OK);
        EXPECT((void *)fake.last_stream == streams[i]);
        das_buffer_destroy(&input);
        das_buffer_destroy(&output);
        das_queue_destroy(&queue);
    }
    das_plan_destroy(&plan);
    das_device_destroy(&device);
    EXPECT_INT(fake.live, 0);
    EXPECT_INT(fake.depth, 0);
    test_end();
}

static void test_many_frames(void)
{
    enum { MANY = 70000 };
    das_error e = DAS_ERROR_INIT;
    das_device *device = NULL;
    das_plan *plan = NULL;
    das_buffer *input = NULL, *output = NULL;
    test_begin("70000 frames in launches of legal size");
    reset();
    EXPECT_INT(das_device_open("cuda", NULL, &device, &e), DAS_OK);
    EXPECT_INT(make_plan(device, MANY, GENERIC, &plan, &e), DAS_OK);
    /* Only their sizes matter: nothing reads them. */
    EXPECT_INT(das_buffer_import_cuda(device, 4096, (uint64_t)MANY * ELEMENTS * ELEMENTS * SAMPLES, NULL, NULL, &input, &e),
               DAS_OK);
    EXPECT_INT(das_buffer_import_cuda(device, 8192, (uint64_t)MANY * 1600 * 4, NULL, NULL, &output, &e), DAS_OK);
    if (!test_has_failed()) {
        EXPECT_INT(das_reconstruct(plan, NULL, input, output, NULL, &e), DAS_OK);
        EXPECT(!fake.bad_grid && fake.frames_launched >= MANY);
    }
    das_buffer_destroy(&input);
    das_buffer_destroy(&output);
    das_plan_destroy(&plan);
    das_device_destroy(&device);
    EXPECT_INT(fake.live, 0);
    test_end();
}

int main(void)
{
    if (das_cu_driver_fill == NULL || das_cu_driver_replace == NULL) {
        test_skip("host side of the CUDA backend", "NOT TESTED: built without CUDA");
        test_begin("a build without CUDA says so");
        EXPECT_INT(das_backend_is_built("cuda"), 0);
        test_end();
        return test_finish();
    }
    das_error e = DAS_ERROR_INIT;
    test_loading();
    reset();
    if (load(-1, &e) != DAS_OK)
        return 1;
    das_cu_driver_replace(&driver);
    for (path path = GENERIC; path < PATHS; path++)
        test_failures(path);
    test_images();
    test_callers_objects();
    test_many_frames();
    das_cu_driver_replace(NULL);
    reset();
    return test_finish();
}
