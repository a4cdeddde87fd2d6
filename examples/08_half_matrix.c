/* Half-matrix capture: each pair of elements was recorded once, not twice. A trace list says which record is of which
 * transmit and receive element; a pair that stands for two has weight 2. */
#include "example.h"

enum { ARRAY = 32, TRACES = ARRAY * (ARRAY + 1) / 2 };

int main(void)
{
    static float rf[TRACES][SAMPLES], image[NZ][NX];
    static int64_t transmit[TRACES], receive[TRACES];
    static double weight[TRACES];
    das_error error = DAS_ERROR_INIT;
    das_device *device = NULL;
    das_acquisition *acquisition = make_acquisition();
    das_grid *grid = make_grid();
    das_plan *plan = NULL;

    /* every second element, so that 528 records are enough */
    double positions[ARRAY][3];
    for (int k = 0; k < ARRAY; k++)
        element_position(2 * k, positions[k]);
    int traces = 0;
    for (int t = 0; t < ARRAY; t++)
        for (int r = t; r < ARRAY; r++, traces++) {
            transmit[traces] = t;
            receive[traces] = r;
            weight[traces] = t == r ? 1 : 2;
            add_echo(rf[traces], (distance(positions[t], point_m) + distance(point_m, positions[r])) / sound_speed);
        }

    must(das_acquisition_set_receive_elements(acquisition, ARRAY, &positions[0][0], &error), &error);
    must(das_acquisition_add_element_transmits(acquisition, &error), &error);
    must(das_acquisition_set_traces(acquisition, TRACES, transmit, receive, weight, &error), &error);
    must(das_device_open("auto", NULL, &device, &error), &error);
    must(das_plan_create(device, acquisition, grid, NULL, &plan, &error), &error);
    must(das_reconstruct_host(plan, rf, sizeof rf, image, sizeof image, NULL, &error), &error);
    int wrong = report_brightest("half matrix", &image[0][0]);

    das_plan_destroy(&plan);
    das_grid_destroy(&grid);
    das_acquisition_destroy(&acquisition);
    das_device_destroy(&device);
    return wrong;
}
