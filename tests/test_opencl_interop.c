/* The caller's own OpenCL objects, and one plan in two threads, on the first OpenCL device there is. */
#include "backend.h"
#include "opencl/opencl_api.h"
#include "testing.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Absent from a library built with OPENCL=0. */
__attribute__((weak)) const das_opencl_api *das_opencl_load(das_error *error);

enum { ELEMENTS = 16, SAMPLES = 200, NX = 40, NZ = 40, DATA = ELEMENTS * ELEMENTS * SAMPLES, IMAGE = NX * NZ };

static das_plan *make_plan(das_device *device, int64_t slots, das_error *error)
{
    static double positions[ELEMENTS][3];
    const double origin[3] = {-2e-3, 0, 1e-3}, steps[9] = {1e-4, 0, 0, 0, 0, 1e-4, 0, 0, 0};
    const int64_t counts[3] = {NX, NZ, 1};
    das_acquisition *acquisition = NULL;
    das_grid *grid = NULL;
    das_options *options = NULL;
    das_plan *plan = NULL;
    for (int i = 0; i < ELEMENTS; i++)
        positions[i][0] = 3e-4 * (i - 7.5);
    if (das_acquisition_create(&acquisition, error) == DAS_OK &&
        das_acquisition_set_receive_elements(acquisition, ELEMENTS, &positions[0][0], error) == DAS_OK &&
        das_acquisition_add_element_transmits(acquisition, error) == DAS_OK &&
        das_acquisition_set_sampling_frequency(acquisition, 20e6, error) == DAS_OK &&
        das_acquisition_set_sound_speed(acquisition, 1540, error) == DAS_OK &&
        das_acquisition_set_data(acquisition, DAS_TYPE_F32, SAMPLES, error) == DAS_OK &&
        das_grid_create_cartesian(origin, steps, counts, &grid, error) == DAS_OK &&
        das_options_create(&options, error) == DAS_OK && das_options_set_max_in_flight(options, slots, error) == DAS_OK)
        das_plan_create(device, acquisition, grid, options, &plan, error);
    das_options_destroy(&options);
    das_grid_destroy(&grid);
    das_acquisition_destroy(&acquisition);
    return plan;
}

static float *random_data(uint64_t seed)
{
    test_rng rng = test_rng_seeded(seed);
    float *data = malloc(DATA * sizeof *data);
    for (int i = 0; data != NULL && i < DATA; i++)
        data[i] = (float)test_rng_uniform(&rng, -1, 1);
    return data;
}

/* A usable device of the driver's, as the caller would find it. */
static cl_device_id find_device(const das_opencl_api *cl)
{
    cl_platform_id platforms[16];
    cl_uint count = 0, devices = 0;
    cl_device_id id = NULL;
    if (cl->GetPlatformIDs(16, platforms, &count) != CL_SUCCESS)
        return NULL;
    for (cl_uint i = 0; i < count && i < 16; i++)
        if (cl->GetDeviceIDs(platforms[i], CL_DEVICE_TYPE_ALL, 1, &id, &devices) == CL_SUCCESS && devices > 0)
            return id;
    return NULL;
}

static void callers_objects(const das_opencl_api *cl, cl_device_id id)
{
    das_error error = DAS_ERROR_INIT;
    das_device *device = NULL;
    das_plan *plan = NULL;
    das_queue *queue = NULL;
    das_buffer *in = NULL, *out = NULL;
    das_run *run = NULL;
    das_timing timing = {.struct_size = sizeof timing};
    cl_int code = CL_SUCCESS;
    float *data = random_data(1), *want = malloc(IMAGE * sizeof *want), *got = malloc((IMAGE + 8) * sizeof *got);
    const size_t image_bytes = (IMAGE + 8) * sizeof *got;

    test_begin("OpenCL: the caller's context, queue and buffers");
    cl_context context = cl->CreateContext(NULL, 1, &id, NULL, NULL, &code);
    cl_command_queue plain = cl->CreateCommandQueue(context, id, 0, &code);
    cl_command_queue unordered = cl->CreateCommandQueue(context, id, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, &code);
    cl_mem data_memory = cl->CreateBuffer(context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, DATA * sizeof *data, data, &code);
    cl_mem image_memory = cl->CreateBuffer(context, CL_MEM_READ_WRITE, image_bytes, NULL, &code);
    EXPECT(context != NULL && plain != NULL && data_memory != NULL && image_memory != NULL);
    EXPECT_INT(das_device_open_opencl(context, id, NULL, &device, &error), DAS_OK);
    plan = make_plan(device, 1, &error);
    EXPECT_MSG(plan != NULL, "%s", error.message);
    if (!test_has_failed()) {
        if (unordered != NULL)
            EXPECT_INT(das_queue_import_opencl(device, unordered, &queue, &error), DAS_ERROR_UNSUPPORTED);
        EXPECT_INT(das_queue_import_opencl(device, plain, &queue, &error), DAS_OK);
        EXPECT_INT(das_buffer_import_opencl(device, data_memory, DATA * sizeof *data, NULL, NULL, &in, &error), DAS_OK);
        EXPECT_INT(das_buffer_import_opencl(device, image_memory, image_bytes, NULL, NULL, &out, &error), DAS_OK);
        EXPECT_INT(das_run_create(device, &run, &error), DAS_OK);
        EXPECT_INT(das_run_enable_timing(run, 1, &error), DAS_OK);
        memset(got, 0xFF, image_bytes);
        EXPECT_INT(cl->EnqueueWriteBuffer(plain, image_memory, 1, 0, image_bytes, got, 0, NULL, NULL), CL_SUCCESS);
        EXPECT_INT(das_reconstruct(plan, queue, in, out, run, &error), DAS_OK);
        /* The caller's next command in the same queue sees the image. */
        EXPECT_INT(cl->EnqueueReadBuffer(plain, image_memory, 1, 0, image_bytes, got, 0, NULL, NULL), CL_SUCCESS);
        EXPECT_INT(das_run_get_timing(run, &timing, &error), DAS_ERROR_UNSUPPORTED);
        EXPECT_INT(das_reconstruct_host(plan, data, DATA * sizeof *data, want, IMAGE * sizeof *want, NULL, &error), DAS_OK);
        EXPECT(memcmp(got, want, IMAGE * sizeof *want) == 0);
        for (int i = IMAGE; i < IMAGE + 8; i++)
            EXPECT(got[i] != got[i]);                                                        /* beyond the image: untouched */
        EXPECT_INT(das_reconstruct(plan, queue, out, in, NULL, &error), DAS_ERROR_ARGUMENT); /* too small, and read-only */
    }
    das_run_destroy(&run);
    das_buffer_destroy(&in);
    das_buffer_destroy(&out);
    das_queue_destroy(&queue);
    das_plan_destroy(&plan);
    das_device_destroy(&device);
    /* They are still the caller's. */
    EXPECT_INT(cl->Finish(plain), CL_SUCCESS);
    EXPECT_INT(cl->ReleaseMemObject(data_memory) | cl->ReleaseMemObject(image_memory), CL_SUCCESS);
    EXPECT_INT(cl->ReleaseCommandQueue(plain), CL_SUCCESS);
    if (unordered != NULL)
        cl->ReleaseCommandQueue(unordered);
    EXPECT_INT(cl->ReleaseContext(context), CL_SUCCESS);
    free(data);
    free(want);
    free(got);
    test_end();
}

typedef struct worker {
    das_plan *plan;
    float *data, *want, *got;
    int differing;
    das_error error;
} worker;

static void *work(void *argument)
{
    worker *w = argument;
    for (int i = 0; i < 20; i++) {
        memset(w->got, 0xFF, IMAGE * sizeof *w->got);
        if (das_reconstruct_host(w->plan, w->data, DATA * sizeof *w->data, w->got, IMAGE * sizeof *w->got, NULL, &w->error) !=
                DAS_OK ||
            memcmp(w->got, w->want, IMAGE * sizeof *w->got) != 0)
            w->differing++;
    }
    return NULL;
}

static void two_threads(int64_t slots)
{
    das_error error = DAS_ERROR_INIT;
    das_device *device = NULL;
    das_plan *plan = NULL;
    worker workers[2];
    pthread_t threads[2];
    test_begin("OpenCL: a plan of %d slots in two threads", (int)slots);
    EXPECT_INT(das_device_open("opencl", NULL, &device, &error), DAS_OK);
    if (device != NULL)
        plan = make_plan(device, slots, &error);
    EXPECT_MSG(plan != NULL, "%s", error.message);
    for (int i = 0; i < 2 && plan != NULL; i++) {
        worker *w = &workers[i];
        memset(w, 0, sizeof *w);
        w->error = (das_error)DAS_ERROR_INIT;
        w->plan = plan;
        w->data = random_data(100 + (uint64_t)i);
        w->want = malloc(IMAGE * sizeof *w->want);
        w->got = malloc(IMAGE * sizeof *w->got);
        EXPECT_INT(das_reconstruct_host(plan, w->data, DATA * sizeof *w->data, w->want, IMAGE * sizeof *w->want, NULL, &error),
                   DAS_OK);
    }
    for (int i = 0; i < 2 && plan != NULL; i++)
        pthread_create(&threads[i], NULL, work, &workers[i]);
    for (int i = 0; i < 2 && plan != NULL; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 2 && plan != NULL; i++) {
        EXPECT_MSG(workers[i].differing == 0, "%d of 20 images of thread %d differ: %s", workers[i].differing, i,
                   workers[i].error.message);
        free(workers[i].data);
        free(workers[i].want);
        free(workers[i].got);
    }
    das_plan_destroy(&plan);
    das_device_destroy(&device);
    test_end();
}

int main(void)
{
    int32_t count = 0;
    const das_opencl_api *cl;
    cl_device_id id;
    if (das_opencl_load == NULL) {
        test_skip("OpenCL objects of the caller", "built with OPENCL=0");
        return test_finish();
    }
    if (das_backend_opencl.device_count(&count, NULL) != DAS_OK || count == 0) {
        test_skip("OpenCL objects of the caller", "NOT TESTED, no OpenCL device");
        return test_finish();
    }
    cl = das_opencl_load(NULL);
    id = find_device(cl);
    if (id != NULL)
        callers_objects(cl, id);
    two_threads(1);
    two_threads(2);
    return test_finish();
}
