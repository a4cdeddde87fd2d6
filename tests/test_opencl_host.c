/* The host part of the OpenCL backend against a driver that is made up here: what a real one rarely
 * does, it does on demand, and it counts what is still alive. */
#include "backend.h"
#include "opencl/opencl_api.h"
#include "testing.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Absent from a library built with OPENCL=0. */
__attribute__((weak)) void das_opencl_use_api(const das_opencl_api *api);
__attribute__((weak)) das_status das_opencl_resolve(das_opencl_api *api, das_opencl_lookup *lookup, void *library, das_error *error);

/* ---------------------------------------------------------------------------
 * The driver
 * ------------------------------------------------------------------------- */

typedef struct fake_object {
    int references;
    cl_bitfield flags;
    size_t bytes;
    char *memory, *given;
    int maps;
    struct fake_object *context;
} fake_object;

static struct {
    /* what it is */
    cl_uint platforms, devices;
    const char *platform_name, *version, *profile;
    cl_bitfield type, queue_properties;
    cl_bool available, compiler;
    bool fp64;
    size_t max_group;
    cl_ulong max_alloc, local_bytes;
    /* how it misbehaves */
    int fail_at; /* the call that fails, counted from 1; 0: none */
    bool moving_maps, bad_source, handlers;
    cl_int work_ends, finish;
    /* what it saw */
    int calls, live, host_live;
    size_t last_local, launches;
    char options[2048];
    cl_ulong clock;
} fake;

static int platform_here, device_here;
#define PLATFORM ((cl_platform_id)(void *)&platform_here)
#define DEVICE ((cl_device_id)(void *)&device_here)

static void fake_reset(void)
{
    memset(&fake, 0, sizeof fake);
    fake.platforms = fake.devices = 1;
    fake.platform_name = "Made up";
    fake.version = "OpenCL 1.2 made up";
    fake.profile = "FULL_PROFILE";
    fake.type = CL_DEVICE_TYPE_GPU;
    fake.queue_properties = CL_QUEUE_PROFILING_ENABLE;
    fake.available = fake.compiler = 1;
    fake.fp64 = true;
    fake.max_group = 256;
    fake.max_alloc = 1 << 26;
    fake.local_bytes = 49152;
}

static bool fails(void)
{
    return ++fake.calls == fake.fail_at;
}

static void handler(int number)
{
    (void)number;
}

/* As LLVM does. */
static void install_handlers(void)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGUSR1, SIGSEGV, SIGFPE};
    for (size_t i = 0; fake.handlers && i < sizeof signals / sizeof signals[0]; i++)
        signal(signals[i], handler);
}

static fake_object *object_new(void)
{
    fake_object *object = calloc(1, sizeof *object);
    object->references = 1;
    fake.live++;
    return object;
}

static cl_int object_retain(void *pointer)
{
    fake_object *object = pointer;
    if (fails())
        return CL_OUT_OF_RESOURCES;
    object->references++;
    return CL_SUCCESS;
}

static cl_int object_release(void *pointer)
{
    fake_object *object = pointer;
    if (--object->references == 0) {
        free(object->memory);
        free(object);
        fake.live--;
    }
    return CL_SUCCESS;
}

static cl_int answer(const void *value, size_t bytes, size_t room, void *to, size_t *used)
{
    if (used != NULL)
        *used = bytes;
    if (to == NULL)
        return CL_SUCCESS;
    if (room < bytes)
        return CL_INVALID_VALUE;
    memcpy(to, value, bytes);
    return CL_SUCCESS;
}

static cl_int answer_text(const char *text, size_t room, void *to, size_t *used)
{
    return answer(text, strlen(text) + 1, room, to, used);
}

static cl_int fake_GetPlatformIDs(cl_uint room, cl_platform_id *ids, cl_uint *count)
{
    install_handlers();
    if (fails())
        return CL_OUT_OF_HOST_MEMORY;
    if (fake.platforms == 0)
        return CL_PLATFORM_NOT_FOUND_KHR;
    if (count != NULL)
        *count = 1;
    if (room > 0)
        ids[0] = PLATFORM;
    return CL_SUCCESS;
}

static cl_int fake_GetPlatformInfo(cl_platform_id id, cl_uint what, size_t room, void *to, size_t *used)
{
    (void)id;
    if (fails())
        return CL_OUT_OF_HOST_MEMORY;
    return answer_text(what == CL_PLATFORM_NAME ? fake.platform_name : fake.version, room, to, used);
}

static cl_int fake_GetDeviceIDs(cl_platform_id platform, cl_bitfield type, cl_uint room, cl_device_id *ids, cl_uint *count)
{
    (void)platform;
    (void)type;
    if (fails())
        return CL_OUT_OF_HOST_MEMORY;
    if (fake.devices == 0)
        return CL_DEVICE_NOT_FOUND;
    if (count != NULL)
        *count = 1;
    if (room > 0)
        ids[0] = DEVICE;
    return CL_SUCCESS;
}

static cl_int fake_GetDeviceInfo(cl_device_id id, cl_uint what, size_t room, void *to, size_t *used)
{
    const cl_uint units = 4;
    const cl_ulong memory = (cl_ulong)1 << 30;
    const cl_bitfield config = fake.fp64 ? 63 : 0;
    const cl_bool yes = 1;
    const size_t items[3] = {fake.max_group, fake.max_group, fake.max_group};
    const cl_platform_id platform = PLATFORM;
    (void)id;
    if (fails())
        return CL_OUT_OF_HOST_MEMORY;
    switch (what) {
    case CL_DEVICE_TYPE: return answer(&fake.type, 8, room, to, used);
    case CL_DEVICE_MAX_COMPUTE_UNITS: return answer(&units, 4, room, to, used);
    case CL_DEVICE_MAX_WORK_GROUP_SIZE: return answer(&fake.max_group, sizeof(size_t), room, to, used);
    case CL_DEVICE_MAX_WORK_ITEM_SIZES: return answer(items, sizeof items, room, to, used);
    case CL_DEVICE_MAX_MEM_ALLOC_SIZE: return answer(&fake.max_alloc, 8, room, to, used);
    case CL_DEVICE_GLOBAL_MEM_SIZE: return answer(&memory, 8, room, to, used);
    case CL_DEVICE_LOCAL_MEM_SIZE: return answer(&fake.local_bytes, 8, room, to, used);
    case CL_DEVICE_ENDIAN_LITTLE: return answer(&yes, 4, room, to, used);
    case CL_DEVICE_AVAILABLE: return answer(&fake.available, 4, room, to, used);
    case CL_DEVICE_COMPILER_AVAILABLE: return answer(&fake.compiler, 4, room, to, used);
    case CL_DEVICE_QUEUE_PROPERTIES: return answer(&fake.queue_properties, 8, room, to, used);
    case CL_DEVICE_PROFILE: return answer_text(fake.profile, room, to, used);
    case CL_DEVICE_VERSION: return answer_text(fake.version, room, to, used);
    case CL_DEVICE_PLATFORM: return answer(&platform, sizeof platform, room, to, used);
    case CL_DEVICE_DOUBLE_FP_CONFIG: return answer(&config, 8, room, to, used);
    default: return answer_text("made up", room, to, used);
    }
}

static cl_context fake_CreateContext(const intptr_t *properties, cl_uint count, const cl_device_id *ids, cl_context_notify *notify,
                                     void *context, cl_int *code)
{
    (void)properties;
    (void)count;
    (void)ids;
    (void)notify;
    (void)context;
    install_handlers();
    if (fails()) {
        *code = CL_OUT_OF_HOST_MEMORY;
        return NULL;
    }
    *code = CL_SUCCESS;
    return (cl_context)(void *)object_new();
}

static cl_int fake_RetainContext(cl_context c) { return object_retain(c); }
static cl_int fake_ReleaseContext(cl_context c) { return object_release(c); }

static cl_int fake_GetContextInfo(cl_context c, cl_uint what, size_t room, void *to, size_t *used)
{
    const cl_device_id id = DEVICE;
    (void)c;
    (void)what;
    return fails() ? CL_OUT_OF_HOST_MEMORY : answer(&id, sizeof id, room, to, used);
}

static cl_int fake_RetainDevice(cl_device_id id)
{
    (void)id;
    if (fails())
        return CL_OUT_OF_RESOURCES;
    fake.live++;
    return CL_SUCCESS;
}

static cl_int fake_ReleaseDevice(cl_device_id id)
{
    (void)id;
    fake.live--;
    return CL_SUCCESS;
}

static cl_command_queue fake_CreateCommandQueue(cl_context context, cl_device_id id, cl_bitfield properties, cl_int *code)
{
    fake_object *queue;
    (void)id;
    if (fails()) {
        *code = CL_OUT_OF_RESOURCES;
        return NULL;
    }
    *code = CL_SUCCESS;
    queue = object_new();
    queue->flags = properties;
    queue->context = (fake_object *)(void *)context;
    return (cl_command_queue)(void *)queue;
}

static cl_int fake_RetainCommandQueue(cl_command_queue q) { return object_retain(q); }
static cl_int fake_ReleaseCommandQueue(cl_command_queue q) { return object_release(q); }

static cl_int fake_GetCommandQueueInfo(cl_command_queue q, cl_uint what, size_t room, void *to, size_t *used)
{
    const fake_object *queue = (const void *)q;
    const cl_device_id id = DEVICE;
    if (fails())
        return CL_OUT_OF_HOST_MEMORY;
    if (what == CL_QUEUE_CONTEXT)
        return answer(&queue->context, sizeof queue->context, room, to, used);
    return what == CL_QUEUE_DEVICE ? answer(&id, sizeof id, room, to, used) : answer(&queue->flags, 8, room, to, used);
}

static cl_mem fake_CreateBuffer(cl_context context, cl_bitfield flags, size_t bytes, void *from, cl_int *code)
{
    fake_object *buffer;
    if (fails() || bytes == 0 || bytes > fake.max_alloc) {
        *code = bytes == 0 || bytes > fake.max_alloc ? CL_INVALID_BUFFER_SIZE : CL_MEM_OBJECT_ALLOCATION_FAILURE;
        return NULL;
    }
    *code = CL_SUCCESS;
    buffer = object_new();
    buffer->flags = flags;
    buffer->bytes = bytes;
    buffer->context = (fake_object *)(void *)context;
    buffer->memory = aligned_alloc(64, (2 * bytes + 191) / 64 * 64);
    if ((flags & CL_MEM_USE_HOST_PTR) != 0)
        buffer->given = from;
    else if (from != NULL)
        memcpy(buffer->memory, from, bytes);
    return (cl_mem)(void *)buffer;
}

static cl_int fake_RetainMemObject(cl_mem m) { return object_retain(m); }
static cl_int fake_ReleaseMemObject(cl_mem m) { return object_release(m); }

static cl_int fake_GetMemObjectInfo(cl_mem m, cl_uint what, size_t room, void *to, size_t *used)
{
    const fake_object *buffer = (const void *)m;
    const cl_uint type = CL_MEM_OBJECT_BUFFER;
    if (fails())
        return CL_OUT_OF_HOST_MEMORY;
    switch (what) {
    case CL_MEM_TYPE: return answer(&type, 4, room, to, used);
    case CL_MEM_SIZE: return answer(&buffer->bytes, sizeof(size_t), room, to, used);
    case CL_MEM_CONTEXT: return answer(&buffer->context, sizeof buffer->context, room, to, used);
    default: return answer(&buffer->flags, 8, room, to, used);
    }
}

static void make_event(cl_event *event)
{
    if (event != NULL) {
        fake_object *made = object_new();
        made->bytes = (size_t)++fake.clock;
        *event = (cl_event)(void *)made;
    }
}

static cl_int fake_EnqueueReadBuffer(cl_command_queue q, cl_mem m, cl_bool wait, size_t at, size_t bytes, void *to, cl_uint count,
                                     const cl_event *events, cl_event *event)
{
    const fake_object *buffer = (const void *)m;
    (void)q;
    (void)wait;
    (void)count;
    (void)events;
    if (fails())
        return CL_OUT_OF_RESOURCES;
    EXPECT(at + bytes <= buffer->bytes && buffer->maps == 0);
    memcpy(to, (buffer->given != NULL ? buffer->given : buffer->memory) + at, bytes);
    make_event(event);
    return CL_SUCCESS;
}

static cl_int fake_EnqueueWriteBuffer(cl_command_queue q, cl_mem m, cl_bool wait, size_t at, size_t bytes, const void *from,
                                      cl_uint count, const cl_event *events, cl_event *event)
{
    const fake_object *buffer = (const void *)m;
    (void)q;
    (void)wait;
    (void)count;
    (void)events;
    if (fails())
        return CL_OUT_OF_RESOURCES;
    EXPECT(at + bytes <= buffer->bytes && buffer->maps == 0);
    memcpy((buffer->given != NULL ? buffer->given : buffer->memory) + at, from, bytes);
    make_event(event);
    return CL_SUCCESS;
}

static void *fake_EnqueueMapBuffer(cl_command_queue q, cl_mem m, cl_bool wait, cl_bitfield flags, size_t at, size_t bytes,
                                   cl_uint count, const cl_event *events, cl_event *event, cl_int *code)
{
    fake_object *buffer = (void *)m;
    (void)q;
    (void)wait;
    (void)flags;
    (void)count;
    (void)events;
    if (fails()) {
        *code = CL_OUT_OF_RESOURCES;
        return NULL;
    }
    *code = CL_SUCCESS;
    EXPECT(at == 0 && bytes <= buffer->bytes && buffer->maps == 0);
    buffer->maps++;
    make_event(event);
    if (buffer->given != NULL)
        return buffer->given;
    return buffer->memory + (fake.moving_maps && fake.clock++ % 2 == 0 ? (buffer->bytes + 63) / 64 * 64 : 0);
}

static cl_int fake_EnqueueUnmapMemObject(cl_command_queue q, cl_mem m, void *pointer, cl_uint count, const cl_event *events,
                                         cl_event *event)
{
    fake_object *buffer = (void *)m;
    (void)q;
    (void)pointer;
    (void)count;
    (void)events;
    if (fails())
        return CL_OUT_OF_RESOURCES;
    EXPECT_INT(buffer->maps, 1);
    buffer->maps--;
    make_event(event);
    return CL_SUCCESS;
}

static cl_program fake_CreateProgramWithSource(cl_context c, cl_uint count, const char **texts, const size_t *bytes, cl_int *code)
{
    (void)c;
    for (cl_uint i = 0; i < count; i++)
        EXPECT(bytes[i] > 0 && texts[i][bytes[i] - 1] == '\n');
    *code = fails() ? CL_OUT_OF_HOST_MEMORY : CL_SUCCESS;
    return *code == CL_SUCCESS ? (cl_program)(void *)object_new() : NULL;
}

static cl_int fake_BuildProgram(cl_program p, cl_uint count, const cl_device_id *ids, const char *options, cl_program_notify *notify,
                                void *context)
{
    (void)p;
    (void)count;
    (void)ids;
    (void)notify;
    (void)context;
    install_handlers();
    snprintf(fake.options, sizeof fake.options, "%s", options);
    if (fake.bad_source)
        return CL_BUILD_PROGRAM_FAILURE;
    return fails() ? CL_OUT_OF_HOST_MEMORY : CL_SUCCESS;
}

static cl_int fake_GetProgramBuildInfo(cl_program p, cl_device_id id, cl_uint what, size_t room, void *to, size_t *used)
{
    (void)p;
    (void)id;
    (void)what;
    return fails() ? CL_OUT_OF_HOST_MEMORY : answer_text("line 7: the compiler\ndoes not like it", room, to, used);
}

static cl_int fake_ReleaseProgram(cl_program p) { return object_release(p); }

static cl_kernel fake_CreateKernel(cl_program p, const char *name, cl_int *code)
{
    (void)p;
    (void)name;
    *code = fails() ? CL_OUT_OF_HOST_MEMORY : CL_SUCCESS;
    return *code == CL_SUCCESS ? (cl_kernel)(void *)object_new() : NULL;
}

static cl_int fake_SetKernelArg(cl_kernel k, cl_uint index, size_t bytes, const void *value)
{
    (void)k;
    (void)index;
    (void)bytes;
    (void)value;
    return fails() ? CL_OUT_OF_RESOURCES : CL_SUCCESS;
}

static cl_int fake_ReleaseKernel(cl_kernel k) { return object_release(k); }

static cl_int fake_GetKernelWorkGroupInfo(cl_kernel k, cl_device_id id, cl_uint what, size_t room, void *to, size_t *used)
{
    (void)k;
    (void)id;
    (void)what;
    return fails() ? CL_OUT_OF_RESOURCES : answer(&fake.max_group, sizeof(size_t), room, to, used);
}

static cl_int fake_EnqueueNDRangeKernel(cl_command_queue q, cl_kernel k, cl_uint axes, const size_t *offset, const size_t *global,
                                        const size_t *local, cl_uint count, const cl_event *events, cl_event *event)
{
    (void)q;
    (void)k;
    (void)offset;
    (void)count;
    (void)events;
    if (fails())
        return CL_OUT_OF_RESOURCES;
    for (cl_uint i = 0; i < axes; i++)
        EXPECT(global[i] > 0 && (local == NULL || (local[i] > 0 && global[i] % local[i] == 0 && local[i] <= fake.max_group)));
    if (local != NULL)
        fake.last_local = local[0];
    fake.launches++;
    make_event(event);
    return CL_SUCCESS;
}

static cl_int fake_EnqueueMarkerWithWaitList(cl_command_queue q, cl_uint count, const cl_event *events, cl_event *event)
{
    (void)q;
    (void)count;
    (void)events;
    if (fails())
        return CL_OUT_OF_RESOURCES;
    make_event(event);
    return CL_SUCCESS;
}

static cl_int fake_EnqueueBarrierWithWaitList(cl_command_queue q, cl_uint count, const cl_event *events, cl_event *event)
{
    return fake_EnqueueMarkerWithWaitList(q, count, events, event);
}

static cl_int fake_WaitForEvents(cl_uint count, const cl_event *events)
{
    (void)count;
    (void)events;
    return fails() ? CL_OUT_OF_RESOURCES : CL_SUCCESS;
}

static cl_int fake_GetEventInfo(cl_event e, cl_uint what, size_t room, void *to, size_t *used)
{
    (void)e;
    (void)what;
    return fails() ? CL_OUT_OF_RESOURCES : answer(&fake.work_ends, 4, room, to, used);
}

static cl_int fake_GetEventProfilingInfo(cl_event e, cl_uint what, size_t room, void *to, size_t *used)
{
    const cl_ulong time = ((const fake_object *)(const void *)e)->bytes * 1000000;
    (void)what;
    return fails() ? CL_OUT_OF_RESOURCES : answer(&time, 8, room, to, used);
}

static cl_int fake_RetainEvent(cl_event e) { return object_retain(e); }
static cl_int fake_ReleaseEvent(cl_event e) { return object_release(e); }

static cl_int fake_Flush(cl_command_queue q)
{
    (void)q;
    return fails() ? CL_OUT_OF_RESOURCES : CL_SUCCESS;
}

static cl_int fake_Finish(cl_command_queue q)
{
    (void)q;
    return fails() ? CL_OUT_OF_RESOURCES : fake.finish;
}

#define FAKE_MEMBER(result, name, parameters) .name = fake_##name,
static const das_opencl_api fake_api = {DAS_OPENCL_FUNCTIONS(FAKE_MEMBER)};

/* ---------------------------------------------------------------------------
 * A session with it
 * ------------------------------------------------------------------------- */

static void *count_allocation(void *context, size_t bytes, size_t alignment)
{
    (void)context;
    fake.host_live++;
    return aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

static void count_release(void *context, void *pointer)
{
    (void)context;
    fake.host_live -= pointer != NULL;
    free(pointer);
}

static int32_t go_on(void *context, double fraction)
{
    (void)context;
    return fraction < 0 || fraction > 1;
}

typedef struct session {
    das_device *device;
    das_acquisition *acquisition;
    das_grid *grid;
    das_options *options;
    das_plan *plan;
} session;

static das_status session_open(session *s, das_error *error)
{
    das_device_options *options = NULL;
    das_status status = das_device_options_create(&options, error);
    if (status == DAS_OK)
        status = das_device_options_set_allocator(options, count_allocation, count_release, NULL, error);
    if (status == DAS_OK)
        status = das_device_open("opencl", options, &s->device, error);
    das_device_options_destroy(&options);
    return status;
}

static void session_close(session *s)
{
    das_plan_destroy(&s->plan);
    das_options_destroy(&s->options);
    das_grid_destroy(&s->grid);
    das_acquisition_destroy(&s->acquisition);
    das_device_destroy(&s->device);
}

enum { ELEMENTS = 8, SAMPLES = 64, SIDE = 40 };

/* A full matrix of 8 elements on 40 x 40 points. */
static das_status session_describe(session *s, das_error *error)
{
    static double positions[ELEMENTS][3];
    const double origin[3] = {0, 0, 1e-3}, steps[9] = {1e-4, 0, 0, 0, 0, 1e-4, 0, 0, 0};
    const int64_t counts[3] = {SIDE, SIDE, 1};
    das_status status = das_acquisition_create(&s->acquisition, error);
    for (int i = 0; i < ELEMENTS; i++)
        positions[i][0] = 3e-4 * i;
    if (status == DAS_OK)
        status = das_acquisition_set_receive_elements(s->acquisition, ELEMENTS, &positions[0][0], error);
    if (status == DAS_OK)
        status = das_acquisition_add_element_transmits(s->acquisition, error);
    if (status == DAS_OK)
        status = das_acquisition_set_sampling_frequency(s->acquisition, 5e6, error);
    if (status == DAS_OK)
        status = das_acquisition_set_sound_speed(s->acquisition, 1500, error);
    if (status == DAS_OK)
        status = das_acquisition_set_data(s->acquisition, DAS_TYPE_F32, SAMPLES, error);
    if (status == DAS_OK)
        status = das_grid_create_cartesian(origin, steps, counts, &s->grid, error);
    return status;
}

/* Receive times for all points, with a budget that does not hold them. */
static das_status session_tables(session *s, uint64_t budget, das_error *error)
{
    static double times[ELEMENTS * SIDE * SIDE];
    static const double weights[ELEMENTS] = {1, 1, 0, 1, 1, 1, 1, 1};
    das_status status = das_options_create(&s->options, error);
    if (status == DAS_OK)
        status = das_options_set_receive_times(s->options, ELEMENTS, SIDE * SIDE, times, error);
    if (status == DAS_OK)
        status = das_options_set_memory_budget(s->options, budget, error);
    if (status == DAS_OK)
        status = das_acquisition_set_receive_weights(s->acquisition, ELEMENTS, weights, error);
    return status;
}

static das_status session_plan(session *s, das_error *error)
{
    das_plan_destroy(&s->plan);
    return das_plan_create(s->device, s->acquisition, s->grid, s->options, &s->plan, error);
}

/* One reconstruction in all its phases, on buffers of both kinds. */
static das_status session_run(session *s, das_error *error)
{
    static float data[ELEMENTS * ELEMENTS * SAMPLES], image[SIDE * SIDE];
    das_queue *queue = NULL;
    das_event *start = NULL, *stop = NULL;
    das_buffer *in = NULL, *out = NULL;
    das_run *run = NULL;
    das_timing timing = {.struct_size = sizeof timing};
    double milliseconds = 0;
    das_status waited, status = das_queue_create(s->device, &queue, error);
    if (status == DAS_OK)
        status = das_event_create(s->device, &start, error);
    if (status == DAS_OK)
        status = das_event_create(s->device, &stop, error);
    if (status == DAS_OK)
        status = das_buffer_create(s->device, sizeof data, DAS_MEMORY_DEVICE, &in, error);
    if (status == DAS_OK)
        status = das_buffer_create(s->device, sizeof image, DAS_MEMORY_HOST, &out, error);
    if (status == DAS_OK)
        status = das_run_create(s->device, &run, error);
    if (status == DAS_OK)
        status = das_run_enable_timing(run, 1, error);
    if (status == DAS_OK)
        status = das_run_set_progress(run, go_on, NULL, error);
    if (status == DAS_OK)
        status = das_event_record(start, queue, error);
    if (status == DAS_OK)
        status = das_buffer_upload(queue, in, 0, data, sizeof data, error);
    if (status == DAS_OK)
        status = das_queue_wait_event(queue, start, error);
    if (status == DAS_OK)
        status = das_reconstruct(s->plan, queue, in, out, run, error);
    if (status == DAS_OK)
        status = das_event_record(stop, queue, error);
    if (status == DAS_OK)
        status = das_buffer_download(queue, out, 0, image, sizeof image, error);
    if (status == DAS_OK)
        status = das_event_wait(stop, error);
    waited = queue != NULL ? das_queue_wait(queue, status == DAS_OK ? error : NULL) : DAS_OK;
    status = status == DAS_OK ? waited : status;
    if (status == DAS_OK)
        status = das_event_elapsed(start, stop, &milliseconds, error);
    if (status == DAS_OK)
        status = das_run_get_timing(run, &timing, error);
    if (status == DAS_OK)
        EXPECT(milliseconds > 0 && timing.compute_ms > 0);
    das_run_destroy(&run);
    das_buffer_destroy(&in);
    das_buffer_destroy(&out);
    das_event_destroy(&start);
    das_event_destroy(&stop);
    das_queue_destroy(&queue);
    return status;
}

static das_status everything(das_error *error)
{
    session s = {NULL, NULL, NULL, NULL, NULL};
    das_status status = session_open(&s, error);
    if (status == DAS_OK)
        status = session_describe(&s, error);
    if (status == DAS_OK)
        status = session_plan(&s, error); /* a fast path */
    if (status == DAS_OK)
        status = session_run(&s, error);
    if (status == DAS_OK)
        status = session_tables(&s, 24000, error);
    if (status == DAS_OK)
        status = session_plan(&s, error);
    if (status == DAS_OK)
        status = session_run(&s, error);
    session_close(&s);
    return status;
}

/* ---------------------------------------------------------------------------
 * Cases
 * ------------------------------------------------------------------------- */

static const char *missing;

static void *lookup(void *library, const char *name)
{
    return strcmp(name, missing) == 0 ? NULL : library;
}

static void missing_functions(void)
{
#define FUNCTION_NAME(result, name, parameters) "cl" #name,
    static const char *const names[] = {DAS_OPENCL_FUNCTIONS(FUNCTION_NAME)};
    static int here;
    test_begin("OpenCL: each function that the library may lack is named");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        das_opencl_api api;
        das_error error = DAS_ERROR_INIT;
        missing = names[i];
        EXPECT_INT(das_opencl_resolve(&api, lookup, &here, &error), DAS_ERROR_DRIVER_TOO_OLD);
        EXPECT_MSG(strstr(error.message, names[i]) != NULL, "%s is not named: %s", names[i], error.message);
    }
    test_end();
}

static void no_device(const char *name, das_status want)
{
    int32_t count = -1;
    das_device *device = NULL;
    das_error error = DAS_ERROR_INIT;
    test_begin("OpenCL: %s", name);
    EXPECT_INT(das_backend_opencl.device_count(&count, &error), DAS_OK);
    EXPECT_INT(count, 0);
    EXPECT_INT(das_backend_opencl.device_auto(), -1);
    EXPECT_INT(das_device_open("opencl", NULL, &device, &error), want);
    EXPECT(device == NULL && error.message[0] != '\0');
    EXPECT_INT(fake.live, 0);
    test_end();
}

static void enumeration(void)
{
    fake_reset();
    fake.platforms = 0;
    no_device("no platform", DAS_ERROR_NO_DEVICE);
    fake_reset();
    fake.devices = 0;
    no_device("a platform without devices", DAS_ERROR_NO_DEVICE);
    fake_reset();
    fake.available = 0;
    no_device("a device that is not available", DAS_ERROR_NO_DEVICE);
    fake_reset();
    fake.compiler = 0;
    no_device("a device without a compiler", DAS_ERROR_NO_DEVICE);
    fake_reset();
    fake.profile = "EMBEDDED_PROFILE";
    no_device("a device of the embedded profile", DAS_ERROR_NO_DEVICE);
    fake_reset();
    fake.version = "OpenCL 1.1 made up";
    no_device("a device of OpenCL 1.1", DAS_ERROR_NO_DEVICE);

    test_begin("OpenCL: auto takes GPUs, but no CPU and no PoCL");
    fake_reset();
    EXPECT_INT(das_backend_opencl.device_auto(), 0);
    fake.type = CL_DEVICE_TYPE_CPU;
    EXPECT_INT(das_backend_opencl.device_auto(), -1);
    fake.type = CL_DEVICE_TYPE_GPU;
    fake.platform_name = "Portable Computing Language";
    EXPECT_INT(das_backend_opencl.device_auto(), -1);
    fake.platform_name = "Made up";
    fake.version = "OpenCL 3.0 PoCL 5.0";
    EXPECT_INT(das_backend_opencl.device_auto(), -1);
    test_end();

    test_begin("OpenCL: what a device is");
    fake_reset();
    fake.fp64 = false;
    das_device_info info;
    memset(&info, 0xFF, sizeof info);
    EXPECT_INT(das_backend_opencl.device_list(0, &info, NULL), DAS_OK);
    EXPECT_INT(info.is_gpu, 1);
    EXPECT_INT(info.has_double, 0);
    EXPECT_INT(info.compute_units, 4);
    EXPECT_INT(info.max_buffer_bytes, fake.max_alloc);
    EXPECT(strcmp(info.name, "opencl:0") == 0);
    test_end();
}

static void signals(void)
{
    struct sigaction before[32], after;
    sigset_t mask, mask_after;
    test_begin("OpenCL: handlers and mask as they were, though the driver changes them");
    fake_reset();
    fake.handlers = true;
    signal(SIGUSR1, SIG_IGN);
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    for (int i = 1; i < 32; i++)
        sigaction(i, NULL, &before[i]);
    EXPECT_INT(everything(NULL), DAS_OK);
    for (int i = 1; i < 32; i++) {
        sigaction(i, NULL, &after);
        EXPECT_MSG(after.sa_handler == before[i].sa_handler && after.sa_flags == before[i].sa_flags, "signal %d has another action", i);
    }
    pthread_sigmask(SIG_SETMASK, NULL, &mask_after);
    for (int i = 1; i < 32; i++)
        EXPECT_INT(sigismember(&mask_after, i), sigismember(&mask, i));
    signal(SIGUSR1, SIG_DFL);
    test_end();
}

static void plans(void)
{
    session s = {NULL, NULL, NULL, NULL, NULL};
    das_error error = DAS_ERROR_INIT;
    das_plan_info info = {.struct_size = sizeof info};

    test_begin("OpenCL: the compiler's log is in the message, on one line");
    fake_reset();
    fake.bad_source = true;
    EXPECT_INT(session_open(&s, &error), DAS_OK);
    EXPECT_INT(session_describe(&s, &error), DAS_OK);
    EXPECT_INT(session_plan(&s, &error), DAS_ERROR_INTERNAL);
    EXPECT(s.plan == NULL && strstr(error.message, "does not like it") != NULL && strchr(error.message, '\n') == NULL);
    session_close(&s);
    EXPECT_INT(fake.live + fake.host_live, 0);
    test_end();

    test_begin("OpenCL: groups of 1 where the device allows no more");
    fake_reset();
    fake.max_group = 1;
    EXPECT_INT(everything(&error), DAS_OK);
    EXPECT_INT(fake.last_local, 1);
    test_end();

    test_begin("OpenCL: settings are passed to the compiler");
    fake_reset();
    fake.fp64 = false;
    EXPECT_INT(everything(&error), DAS_OK);
    EXPECT(strstr(fake.options, "-DDAS_FP64=0 ") != NULL && strstr(fake.options, "-DDAS_KERNEL_FLOAT_FLOAT=1 ") != NULL);
    EXPECT(strstr(fake.options, "-DDAS_RECEIVE_TIMES=1 ") != NULL && strstr(fake.options, "-DDAS_LISTED=1 ") != NULL);
    test_end();

    test_begin("OpenCL: tables larger than the largest allocation are tiled");
    fake_reset();
    fake.max_alloc = 40000;
    EXPECT_INT(session_open(&s, &error), DAS_OK);
    EXPECT_INT(session_describe(&s, &error), DAS_OK);
    EXPECT_INT(session_tables(&s, 1 << 20, &error), DAS_OK);
    EXPECT_INT(session_plan(&s, &error), DAS_OK);
    EXPECT_INT(das_plan_get_info(s.plan, &info, &error), DAS_OK);
    EXPECT_INT(info.tiles, (ELEMENTS * SIDE * SIDE * 8 + 39999) / 40000);
    EXPECT_INT(session_run(&s, &error), DAS_OK);
    das_buffer *large = NULL;
    EXPECT_INT(das_buffer_create(s.device, 40001, DAS_MEMORY_DEVICE, &large, &error), DAS_ERROR_TOO_LARGE);
    session_close(&s);
    EXPECT_INT(fake.live + fake.host_live, 0);
    test_end();

    test_begin("OpenCL: tables beyond the memory budget are streamed, and the budget kept");
    fake_reset();
    EXPECT_INT(session_open(&s, &error), DAS_OK);
    EXPECT_INT(session_describe(&s, &error), DAS_OK);
    EXPECT_INT(session_tables(&s, 24000, &error), DAS_OK);
    EXPECT_INT(session_plan(&s, &error), DAS_OK);
    EXPECT_INT(das_plan_get_info(s.plan, &info, &error), DAS_OK);
    EXPECT(info.tiles > 1 && info.plan_bytes + info.slot_bytes <= 24000);
    session_close(&s);
    EXPECT_INT(session_open(&s, &error), DAS_OK);
    EXPECT_INT(session_describe(&s, &error), DAS_OK);
    EXPECT_INT(session_tables(&s, 1000, &error), DAS_OK);
    EXPECT_INT(session_plan(&s, &error), DAS_ERROR_OUT_OF_DEVICE_MEMORY);
    session_close(&s);
    test_end();
}

static void queues(void)
{
    session s = {NULL, NULL, NULL, NULL, NULL};
    das_error error = DAS_ERROR_INIT;
    das_queue *queue = NULL;
    das_event *start = NULL, *stop = NULL;
    das_buffer *buffer = NULL;
    cl_int code;
    double milliseconds = -1;
    char byte = 0;

    test_begin("OpenCL: queues of the caller");
    fake_reset();
    cl_context context = fake_CreateContext(NULL, 1, NULL, NULL, NULL, &code), other = fake_CreateContext(NULL, 1, NULL, NULL, NULL, &code);
    cl_command_queue plain = fake_CreateCommandQueue(context, DEVICE, 0, &code);
    cl_command_queue unordered = fake_CreateCommandQueue(context, DEVICE, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, &code);
    cl_command_queue elsewhere = fake_CreateCommandQueue(other, DEVICE, 0, &code);
    const int mine = fake.live;
    EXPECT_INT(das_device_open_opencl(context, DEVICE, NULL, &s.device, &error), DAS_OK);
    EXPECT_INT(das_queue_import_opencl(s.device, unordered, &queue, &error), DAS_ERROR_UNSUPPORTED);
    EXPECT_INT(das_queue_import_opencl(s.device, elsewhere, &queue, &error), DAS_ERROR_WRONG_DEVICE);
    EXPECT_INT(das_queue_import_opencl(s.device, plain, &queue, &error), DAS_OK);
    EXPECT_INT(das_event_create(s.device, &start, &error), DAS_OK);
    EXPECT_INT(das_event_create(s.device, &stop, &error), DAS_OK);
    EXPECT_INT(das_event_record(start, queue, &error), DAS_OK);
    EXPECT_INT(das_event_record(stop, queue, &error), DAS_OK);
    EXPECT_INT(das_event_elapsed(start, stop, &milliseconds, &error), DAS_ERROR_UNSUPPORTED);
    das_event_destroy(&start);
    das_event_destroy(&stop);
    das_queue_destroy(&queue);

    cl_mem memory = fake_CreateBuffer(context, CL_MEM_READ_WRITE, 100, NULL, &code);
    cl_mem foreign = fake_CreateBuffer(other, CL_MEM_READ_WRITE, 100, NULL, &code);
    EXPECT_INT(das_buffer_import_opencl(s.device, foreign, 100, NULL, NULL, &buffer, &error), DAS_ERROR_WRONG_DEVICE);
    EXPECT_INT(das_buffer_import_opencl(s.device, memory, 101, NULL, NULL, &buffer, &error), DAS_ERROR_ARGUMENT);
    EXPECT_INT(das_buffer_import_opencl(s.device, memory, 100, NULL, NULL, &buffer, &error), DAS_OK);
    das_buffer_destroy(&buffer);
    session_close(&s);
    EXPECT_INT(fake.live, mine + 2);
    object_release(memory);
    object_release(foreign);
    object_release(plain);
    object_release(unordered);
    object_release(elsewhere);
    object_release(context);
    object_release(other);
    EXPECT_INT(fake.live, 0);
    test_end();

    test_begin("OpenCL: host memory keeps its address where the driver's mappings move");
    fake_reset();
    fake.moving_maps = true;
    EXPECT_INT(session_open(&s, &error), DAS_OK);
    EXPECT_INT(das_buffer_create(s.device, 1000, DAS_MEMORY_HOST, &buffer, &error), DAS_OK);
    char *pointer = das_buffer_host_pointer(buffer);
    EXPECT(pointer != NULL);
    if (pointer != NULL)
        pointer[17] = 42;
    EXPECT_INT(das_buffer_download(NULL, buffer, 17, &byte, 1, &error), DAS_OK);
    EXPECT_INT(byte, 42);
    byte = 43;
    EXPECT_INT(das_buffer_upload(NULL, buffer, 18, &byte, 1, &error), DAS_OK);
    EXPECT(pointer != NULL && pointer[18] == 43 && das_buffer_host_pointer(buffer) == pointer);
    das_buffer_destroy(&buffer);
    session_close(&s);
    EXPECT_INT(fake.live + fake.host_live, 0);
    test_end();

    test_begin("OpenCL: work that fails later is told once by its queue");
    fake_reset();
    EXPECT_INT(session_open(&s, &error), DAS_OK);
    EXPECT_INT(das_queue_create(s.device, &queue, &error), DAS_OK);
    EXPECT_INT(das_buffer_create(s.device, 1000, DAS_MEMORY_DEVICE, &buffer, &error), DAS_OK);
    fake.work_ends = CL_MEM_OBJECT_ALLOCATION_FAILURE;
    EXPECT_INT(das_buffer_upload(queue, buffer, 0, &byte, 1, &error), DAS_OK);
    EXPECT_INT(das_queue_wait(queue, &error), DAS_ERROR_OUT_OF_DEVICE_MEMORY);
    fake.work_ends = CL_COMPLETE;
    EXPECT_INT(das_queue_wait(queue, &error), DAS_OK);
    test_end();

    test_begin("OpenCL: a driver that gives its objects up is a lost device");
    fake.finish = CL_INVALID_COMMAND_QUEUE;
    EXPECT_INT(das_queue_wait(queue, &error), DAS_ERROR_DEVICE_LOST);
    fake.finish = CL_SUCCESS;
    EXPECT_INT(das_buffer_upload(queue, buffer, 0, &byte, 1, &error), DAS_ERROR_DEVICE_LOST);
    das_buffer_destroy(&buffer);
    das_queue_destroy(&queue);
    session_close(&s);
    EXPECT_INT(fake.live + fake.host_live, 0);
    test_end();
}

/* Each call to the driver fails in turn. */
static void injected_failures(void)
{
    int calls;
    test_begin("OpenCL: a session in which nothing fails");
    fake_reset();
    EXPECT_INT(everything(NULL), DAS_OK);
    EXPECT_INT(fake.live, 0);
    EXPECT_INT(fake.host_live, 0);
    EXPECT(fake.launches >= 4);
    calls = fake.calls;
    test_end();

    test_begin("OpenCL: each of %d calls to the driver fails in turn, and nothing leaks", calls);
    for (int i = 1; i <= calls; i++) {
        das_error error = DAS_ERROR_INIT;
        fake_reset();
        fake.fail_at = i;
        const das_status status = everything(&error);
        EXPECT_MSG(fake.live == 0 && fake.host_live == 0, "call %d: %d objects and %d allocations left", i, fake.live, fake.host_live);
        EXPECT_MSG(status == DAS_OK || (error.status == status && error.message[0] != '\0'), "call %d: status %d without a message", i,
                   (int)status);
    }
    test_end();
}

int main(void)
{
    if (das_opencl_use_api == NULL || das_opencl_resolve == NULL) {
        test_skip("OpenCL: host part", "built with OPENCL=0");
        return test_finish();
    }
    missing_functions();
    das_opencl_use_api(&fake_api);
    enumeration();
    signals();
    plans();
    queues();
    injected_failures();
    das_opencl_use_api(NULL);
    return test_finish();
}
