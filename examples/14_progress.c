/* Long work can be watched and stopped, and a scan of many transmits can be summed as its records come in. */
#include "example.h"

static int32_t watch(void *context, double fraction)
{
    double *seen = context;
    seen[0] = fraction;
    seen[1]++;
    return 0;
}

static int32_t stop(void *context, double fraction)
{
    (void)context;
    (void)fraction;
    return 1;
}

int main(void)
{
    static float rf[ELEMENTS][ELEMENTS][SAMPLES], whole[NZ][NX], image[NZ][NX];
    double seen[2] = {0};
    das_error error = DAS_ERROR_INIT;
    das_device *device = NULL;
    das_options *options = NULL;
    das_plan *plan = NULL;
    das_run *run = NULL;
    das_acquisition *acquisition = make_acquisition();
    das_grid *grid = make_grid();
    for (int t = 0; t < ELEMENTS; t++)
        for (int r = 0; r < ELEMENTS; r++) {
            double a[3], b[3];
            element_position(t, a);
            element_position(r, b);
            add_echo(rf[t][r], (distance(a, point_m) + distance(point_m, b)) / sound_speed);
        }
    must(das_acquisition_add_element_transmits(acquisition, &error), &error);
    must(das_device_open("auto", NULL, &device, &error), &error);
    must(das_options_create(&options, &error), &error);
    must(das_options_set_incremental(options, 1, &error), &error);
    must(das_plan_create(device, acquisition, grid, options, &plan, &error), &error);
    must(das_run_create(device, &run, &error), &error);

    must(das_run_set_progress(run, watch, seen, &error), &error);
    must(das_reconstruct_host(plan, rf, sizeof rf, whole, sizeof whole, run, &error), &error);
    printf("progress was told %.0f times, at last %.0f %%\n", seen[1], seen[0] * 100);
    must(das_run_set_progress(run, stop, NULL, &error), &error);
    das_status stopped = das_reconstruct_host(plan, rf, sizeof rf, image, sizeof image, run, &error);
    printf("stopped: %s\n", das_status_name(stopped));

    must(das_run_set_progress(run, NULL, NULL, &error), &error);
    for (int t = 0; t < ELEMENTS; t += 16) { /* 16 transmits at a time, added to the image so far */
        must(das_run_set_transmits(run, t, 16, &error), &error);
        must(das_run_set_accumulate(run, t > 0, &error), &error);
        must(das_reconstruct_host(plan, rf, sizeof rf, image, sizeof image, run, &error), &error);
    }
    int wrong = report_brightest("summed in parts", &image[0][0]) + report_brightest("at once", &whole[0][0]);
    for (int k = 0; k < NX * NZ; k++)
        wrong += fabsf((&image[0][0])[k] - (&whole[0][0])[k]) > 1e-5F * ELEMENTS * ELEMENTS;

    das_run_destroy(&run);
    das_plan_destroy(&plan);
    das_options_destroy(&options);
    das_grid_destroy(&grid);
    das_acquisition_destroy(&acquisition);
    das_device_destroy(&device);
    return wrong || stopped != DAS_ERROR_CANCELLED;
}
