/* Inside a larger program: its own memory, its own log, and buffers on memory that it already has. */
#include "example.h"

#include <stdatomic.h>

static atomic_int living;

static void *allocate(void *context, size_t bytes, size_t alignment)
{
    (void)context;
    living++;
    return aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

static void release(void *context, void *pointer)
{
    (void)context;
    living--;
    free(pointer);
}

static void log_message(void *context, int32_t level, const char *message)
{
    fprintf(context, "log %d: %s\n", level, message);
}

static void released(void *context)
{
    ++*(int *)context;
}

int main(void)
{
    static float rf[ELEMENTS][SAMPLES], image[NZ][NX];
    int given_back = 0;
    das_error error = DAS_ERROR_INIT;
    das_device_options *options = NULL;
    das_device *device = NULL;
    das_plan *plan = NULL;
    das_buffer *data = NULL, *result = NULL;
    das_acquisition *acquisition = make_acquisition();
    das_grid *grid = make_grid();
    simulate(rf);
    must(das_acquisition_add_plane_transmit(acquisition, 0.0, &error), &error);
    must(das_device_options_create(&options, &error), &error);
    must(das_device_options_set_allocator(options, allocate, release, NULL, &error), &error);
    must(das_device_options_set_log(options, log_message, stdout, &error), &error);
    must(das_device_options_set_thread_count(options, 2, &error), &error);
    must(das_device_open("cpu", options, &device, &error), &error);
    das_device_options_destroy(&options);
    must(das_plan_create(device, acquisition, grid, NULL, &plan, &error), &error);

    /* no copies: the image is formed where it is wanted */
    must(das_buffer_import_pointer(device, rf, sizeof rf, released, &given_back, &data, &error), &error);
    must(das_buffer_import_pointer(device, image, sizeof image, released, &given_back, &result, &error), &error);
    must(das_reconstruct(plan, NULL, data, result, NULL, &error), &error); /* no queue: done when it returns */
    int wrong = report_brightest("imported memory", &image[0][0]);

    das_buffer_destroy(&data);
    das_buffer_destroy(&result);
    das_plan_destroy(&plan);
    das_device_destroy(&device);
    das_grid_destroy(&grid);
    das_acquisition_destroy(&acquisition);
    printf("buffers given back %d, allocations left %d\n", given_back, living);
    return wrong || given_back != 2 || living != 0;
}
