/* Upload, compute and copy back as three separate calls, each with its own time: keep data on the device, repeat only
 * what has changed. The times come from the device, not from a clock around calls that return early. */
#include "example.h"

int main(void)
{
    static float rf[ELEMENTS][SAMPLES], image[NZ][NX];
    das_error error = DAS_ERROR_INIT;
    das_device *device = NULL;
    das_plan *plan = NULL;
    das_queue *queue = NULL;
    das_buffer *data = NULL, *result = NULL;
    das_run *run = NULL;
    das_event *events[4] = {NULL};
    das_acquisition *acquisition = make_acquisition();
    das_grid *grid = make_grid();
    simulate(rf);
    must(das_acquisition_add_plane_transmit(acquisition, 0.0, &error), &error);
    must(das_device_open("auto", NULL, &device, &error), &error);
    must(das_plan_create(device, acquisition, grid, NULL, &plan, &error), &error);

    must(das_queue_create(device, &queue, &error), &error);
    must(das_buffer_create(device, sizeof rf, DAS_MEMORY_DEVICE, &data, &error), &error);
    must(das_buffer_create(device, sizeof image, DAS_MEMORY_DEVICE, &result, &error), &error);
    must(das_run_create(device, &run, &error), &error);
    must(das_run_enable_timing(run, 1, &error), &error);
    for (int k = 0; k < 4; k++)
        must(das_event_create(device, &events[k], &error), &error);

    must(das_event_record(events[0], queue, &error), &error);
    must(das_buffer_upload(queue, data, 0, rf, sizeof rf, &error), &error);
    must(das_event_record(events[1], queue, &error), &error);
    must(das_reconstruct(plan, queue, data, result, run, &error), &error);
    must(das_event_record(events[2], queue, &error), &error);
    must(das_buffer_download(queue, result, 0, image, sizeof image, &error), &error);
    must(das_event_record(events[3], queue, &error), &error);
    must(das_queue_wait(queue, &error), &error); /* rf and image are ours again */

    double upload, download;
    das_timing timing = {.struct_size = sizeof timing};
    must(das_event_elapsed(events[0], events[1], &upload, &error), &error);
    must(das_run_get_timing(run, &timing, &error), &error);
    must(das_event_elapsed(events[2], events[3], &download, &error), &error);
    printf("upload %.3f ms, compute %.3f ms, copy back %.3f ms\n", upload, timing.compute_ms, download);
    int wrong = report_brightest("buffers", &image[0][0]);

    for (int k = 0; k < 4; k++)
        das_event_destroy(&events[k]);
    das_run_destroy(&run);
    das_buffer_destroy(&result);
    das_buffer_destroy(&data);
    das_queue_destroy(&queue);
    das_plan_destroy(&plan);
    das_grid_destroy(&grid);
    das_acquisition_destroy(&acquisition);
    das_device_destroy(&device);
    return wrong;
}
