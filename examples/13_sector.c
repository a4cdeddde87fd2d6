/* A sector image after diverging waves, as phased arrays make them: virtual sources behind the array, a grid of angles
 * and radii. */
#include "example.h"

enum { WAVES = 3, ANGLES = 61, RADII = 121 };

int main(void)
{
    static float rf[WAVES][ELEMENTS][SAMPLES], image[RADII][ANGLES];
    const double sources[WAVES][3] = {{-5e-3, 0, -10e-3}, {0, 0, -10e-3}, {5e-3, 0, -10e-3}}, zero[3] = {0};
    double angles[ANGLES], radii[RADII];
    das_error error = DAS_ERROR_INIT;
    das_device *device = NULL;
    das_grid *grid = NULL;
    das_plan *plan = NULL;
    das_acquisition *acquisition = make_acquisition();

    for (int t = 0; t < WAVES; t++) {
        must(das_acquisition_add_diverging_transmit(acquisition, sources[t], NULL, &error), &error);
        for (int r = 0; r < ELEMENTS; r++) {
            double element[3];
            element_position(r, element);
            double out = distance(point_m, sources[t]) - distance(zero, sources[t]);
            add_echo(rf[t][r], (out + distance(point_m, element)) / sound_speed);
        }
    }
    for (int k = 0; k < ANGLES; k++)
        angles[k] = (k - ANGLES / 2) * 0.01;
    for (int k = 0; k < RADII; k++)
        radii[k] = 10e-3 + k * 0.15e-3;
    must(das_grid_create_polar(zero, ANGLES, angles, 1, NULL, RADII, radii, &grid, &error), &error);
    must(das_device_open("auto", NULL, &device, &error), &error);
    must(das_plan_create(device, acquisition, grid, NULL, &plan, &error), &error);
    must(das_reconstruct_host(plan, rf, sizeof rf, image, sizeof image, NULL, &error), &error);

    int best = 0;
    for (int k = 1; k < ANGLES * RADII; k++)
        if (fabsf((&image[0][0])[k]) > fabsf((&image[0][0])[best]))
            best = k;
    double angle = angles[best % ANGLES], radius = radii[best / ANGLES];
    printf("brightest at %.2f rad, %.2f mm; true %.2f rad, %.2f mm\n", angle, radius * 1e3, atan2(point_m[0], point_m[2]),
           distance(point_m, zero) * 1e3);

    das_plan_destroy(&plan);
    das_grid_destroy(&grid);
    das_acquisition_destroy(&acquisition);
    das_device_destroy(&device);
    return fabs(angle - atan2(point_m[0], point_m[2])) > 0.011 || fabs(radius - distance(point_m, zero)) > 0.2e-3;
}
