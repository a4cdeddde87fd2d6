/* Arrival times of your own: where sound does not travel straight at one speed, give the time from every element to
 * every point. Here the medium turns out to be faster than the acquisition says. */
#include "example.h"

int main(void)
{
    static float rf[ELEMENTS][SAMPLES], image[NZ][NX];
    static double transmit_times[1][NZ][NX], receive_times[ELEMENTS][NZ][NX];
    static float receive_weights[ELEMENTS][NZ][NX];
    const double true_speed = 1600;
    das_error error = DAS_ERROR_INIT;
    das_device *device = NULL;
    das_options *options = NULL;
    das_plan *plan = NULL;
    das_acquisition *acquisition = make_acquisition();
    das_grid *grid = make_grid();

    for (int r = 0; r < ELEMENTS; r++) {
        double element[3], p[3] = {0};
        element_position(r, element);
        add_echo(rf[r], (point_m[2] + distance(point_m, element)) / true_speed);
        for (int iz = 0; iz < NZ; iz++)
            for (int ix = 0; ix < NX; ix++) {
                must(das_grid_get_point(grid, ix, iz, 0, p, &error), &error);
                transmit_times[0][iz][ix] = p[2] / true_speed;
                receive_times[r][iz][ix] = distance(p, element) / true_speed;
                receive_weights[r][iz][ix] = (float)(p[2] / distance(p, element)); /* an element's own directivity */
            }
    }

    must(das_acquisition_add_plane_transmit(acquisition, 0.0, &error), &error); /* its time comes from the table */
    must(das_options_create(&options, &error), &error);
    must(das_options_set_transmit_times(options, 1, NX * NZ, &transmit_times[0][0][0], &error), &error);
    must(das_options_set_receive_times(options, ELEMENTS, NX * NZ, &receive_times[0][0][0], &error), &error);
    must(das_options_set_receive_weights(options, ELEMENTS, NX * NZ, &receive_weights[0][0][0], &error), &error);
    must(das_device_open("auto", NULL, &device, &error), &error);
    must(das_plan_create(device, acquisition, grid, options, &plan, &error), &error);
    must(das_reconstruct_host(plan, rf, sizeof rf, image, sizeof image, NULL, &error), &error);
    int wrong = report_brightest("tables", &image[0][0]);

    das_plan_destroy(&plan);
    das_options_destroy(&options);
    das_grid_destroy(&grid);
    das_acquisition_destroy(&acquisition);
    das_device_destroy(&device);
    return wrong;
}
