/* One image per transmit instead of their sum, for coherence factors or motion estimates: a kept axis appears in the
 * image, here [transmit][z][x]. */
#include "example.h"

enum { WAVES = 3 };

int main(void)
{
    static float rf[WAVES][ELEMENTS][SAMPLES], images[WAVES][NZ][NX], sum[NZ][NX];
    const double angles[WAVES] = {-0.1, 0, 0.1};
    das_error error = DAS_ERROR_INIT;
    das_device *device = NULL;
    das_options *options = NULL;
    das_plan *plan = NULL;
    das_plan_info info = {.struct_size = sizeof info};
    das_acquisition *acquisition = make_acquisition();
    das_grid *grid = make_grid();
    for (int t = 0; t < WAVES; t++) {
        must(das_acquisition_add_plane_transmit(acquisition, angles[t], &error), &error);
        for (int r = 0; r < ELEMENTS; r++) {
            double element[3], out = point_m[0] * sin(angles[t]) + point_m[2] * cos(angles[t]);
            element_position(r, element);
            add_echo(rf[t][r], (out + distance(point_m, element)) / sound_speed);
        }
    }
    must(das_device_open("auto", NULL, &device, &error), &error);
    must(das_options_create(&options, &error), &error);
    must(das_options_set_keep_transmit(options, 1, &error), &error);
    must(das_plan_create(device, acquisition, grid, options, &plan, &error), &error);
    must(das_plan_get_info(plan, &info, &error), &error);
    printf("image shape");
    for (int k = 0; k < 6; k++)
        printf(" %d", (int)info.image_shape[k]);
    printf("\n");
    must(das_reconstruct_host(plan, rf, sizeof rf, images, sizeof images, NULL, &error), &error);

    int wrong = info.image_shape[1] != WAVES;
    for (int t = 0; t < WAVES; t++)
        for (int k = 0; k < NX * NZ; k++)
            (&sum[0][0])[k] += (&images[t][0][0])[k];
    wrong += report_brightest("one wave", &images[0][0][0]);
    wrong += report_brightest("sum", &sum[0][0]);

    das_plan_destroy(&plan);
    das_options_destroy(&options);
    das_grid_destroy(&grid);
    das_acquisition_destroy(&acquisition);
    das_device_destroy(&device);
    return wrong;
}
