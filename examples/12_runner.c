/* A program with threads of its own lends them to the library: the runner gets a task and a number of times to call it,
 * in any order, on any threads. This one hands every third call to each of three threads. */
#include "example.h"

#include <pthread.h>

struct share {
    das_task_function *task;
    void *argument;
    int64_t first, count;
};

static void *work(void *context)
{
    struct share *share = context;
    for (int64_t k = share->first; k < share->count; k += 3)
        share->task(share->argument, k);
    return NULL;
}

static void run(void *context, das_task_function *task, void *argument, int64_t count)
{
    int *calls = context;
    pthread_t thread[2];
    struct share share[3];
    int started = 0;
    ++*calls;
    for (int k = 0; k < 3; k++)
        share[k] = (struct share){task, argument, k, count};
    while (started < 2 && !pthread_create(&thread[started], NULL, work, &share[started]))
        started++;
    for (int k = started; k < 3; k++)
        work(&share[k]); /* the caller's share, and that of threads that could not be started */
    for (int k = 0; k < started; k++)
        pthread_join(thread[k], NULL);
}

int main(void)
{
    static float rf[ELEMENTS][SAMPLES], image[2][NZ][NX];
    int calls = 0, wrong = 0;
    das_error error = DAS_ERROR_INIT;
    das_device_options *options = NULL;
    das_acquisition *acquisition = make_acquisition();
    das_grid *grid = make_grid();
    simulate(rf);
    must(das_acquisition_add_plane_transmit(acquisition, 0.0, &error), &error);
    must(das_device_options_create(&options, &error), &error);
    for (int k = 0; k < 2; k++) { /* first with the library's threads, then with ours */
        das_device *device = NULL;
        das_plan *plan = NULL;
        must(das_device_options_set_runner(options, k ? run : NULL, &calls, &error), &error);
        must(das_device_open("cpu", options, &device, &error), &error);
        must(das_plan_create(device, acquisition, grid, NULL, &plan, &error), &error);
        must(das_reconstruct_host(plan, rf, sizeof rf, image[k], sizeof image[k], NULL, &error), &error);
        wrong += report_brightest(k ? "own threads" : "library's threads", &image[k][0][0]);
        das_plan_destroy(&plan);
        das_device_destroy(&device);
    }
    printf("the runner was called %d times\n", calls);
    das_device_options_destroy(&options);
    das_grid_destroy(&grid);
    das_acquisition_destroy(&acquisition);
    return wrong || calls == 0 || memcmp(image[0], image[1], sizeof image[0]) != 0;
}
