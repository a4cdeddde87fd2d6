/* Two queues, two slots: while one frame is computed the next is uploaded. Events tell a queue, or the host, when
 * something in another queue is done. */
#include "example.h"

enum { FRAMES = 6 };

int main(void)
{
    static float rf[FRAMES][ELEMENTS][SAMPLES], image[FRAMES][NZ][NX];
    das_error error = DAS_ERROR_INIT;
    das_device *device = NULL;
    das_options *options = NULL;
    das_plan *plan = NULL;
    das_queue *queue[2] = {NULL};
    das_buffer *data[2] = {NULL}, *result[2] = {NULL};
    das_event *done = NULL;
    das_acquisition *acquisition = make_acquisition();
    das_grid *grid = make_grid();
    must(das_acquisition_add_plane_transmit(acquisition, 0.0, &error), &error);
    must(das_device_open("auto", NULL, &device, &error), &error);
    must(das_options_create(&options, &error), &error);
    must(das_options_set_max_in_flight(options, 2, &error), &error);
    must(das_plan_create(device, acquisition, grid, options, &plan, &error), &error);
    for (int k = 0; k < 2; k++) {
        must(das_queue_create(device, &queue[k], &error), &error);
        must(das_buffer_create(device, sizeof rf[0], DAS_MEMORY_DEVICE, &data[k], &error), &error);
        must(das_buffer_create(device, sizeof image[0], DAS_MEMORY_DEVICE, &result[k], &error), &error);
    }
    must(das_event_create(device, &done, &error), &error);

    for (int f = 0; f < FRAMES; f++) {
        int k = f % 2; /* a queue keeps its own order, so its buffers may be used again at once */
        simulate(rf[f]);
        must(das_buffer_upload(queue[k], data[k], 0, rf[f], sizeof rf[f], &error), &error);
        must(das_reconstruct(plan, queue[k], data[k], result[k], NULL, &error), &error);
        must(das_buffer_download(queue[k], result[k], 0, image[f], sizeof image[f], &error), &error);
    }
    /* queue 0 waits for all of queue 1; then one wait is enough for both */
    must(das_event_record(done, queue[1], &error), &error);
    must(das_queue_wait_event(queue[0], done, &error), &error);
    must(das_queue_wait(queue[0], &error), &error);
    int wrong = das_event_query(done, &error) != DAS_OK;
    wrong += report_brightest("last frame", &image[FRAMES - 1][0][0]);
    wrong += memcmp(image[0], image[FRAMES - 1], sizeof image[0]) != 0; /* the same data give the same bits */

    das_event_destroy(&done);
    for (int k = 0; k < 2; k++) {
        das_buffer_destroy(&result[k]);
        das_buffer_destroy(&data[k]);
        das_queue_destroy(&queue[k]);
    }
    das_plan_destroy(&plan);
    das_options_destroy(&options);
    das_grid_destroy(&grid);
    das_acquisition_destroy(&acquisition);
    das_device_destroy(&device);
    return wrong;
}
