/* From samples in memory to an image in memory: describe what was measured and where to look, make a plan, run it. */
#include "example.h"

int main(void)
{
    static float rf[ELEMENTS][SAMPLES], image[NZ][NX];
    das_error error = DAS_ERROR_INIT;
    das_device *device = NULL;
    das_acquisition *acquisition = NULL;
    das_grid *grid = NULL;
    das_plan *plan = NULL;
    simulate(rf);

    /* what was measured: 64 elements on the x axis, one plane wave straight down */
    double positions[ELEMENTS][3] = {{0}};
    for (int r = 0; r < ELEMENTS; r++)
        positions[r][0] = (r - (ELEMENTS - 1) / 2.0) * pitch_m;
    must(das_acquisition_create(&acquisition, &error), &error);
    must(das_acquisition_set_receive_elements(acquisition, ELEMENTS, &positions[0][0], &error), &error);
    must(das_acquisition_add_plane_transmit(acquisition, 0.0, &error), &error);
    must(das_acquisition_set_sampling_frequency(acquisition, 25e6, &error), &error);
    must(das_acquisition_set_sound_speed(acquisition, 1540, &error), &error);
    must(das_acquisition_set_data(acquisition, DAS_TYPE_F32, SAMPLES, &error), &error);

    /* where to look: x from -8 mm, z from 10 mm, in steps of 0.2 mm; the first axis is the fastest in the image */
    const double origin[3] = {-8e-3, 0, 10e-3};
    const double steps[9] = {0.2e-3, 0, 0, 0, 0, 0.2e-3};
    const int64_t counts[3] = {NX, NZ, 1};
    must(das_grid_create_cartesian(origin, steps, counts, &grid, &error), &error);

    must(das_device_open("auto", NULL, &device, &error), &error);
    must(das_plan_create(device, acquisition, grid, NULL, &plan, &error), &error);
    must(das_reconstruct_host(plan, rf, sizeof rf, image, sizeof image, NULL, &error), &error);
    int wrong = report_brightest("one shot", &image[0][0]);

    das_plan_destroy(&plan);
    das_grid_destroy(&grid);
    das_acquisition_destroy(&acquisition);
    das_device_destroy(&device);
    return wrong;
}
