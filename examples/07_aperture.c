/* An f-number keeps elements out that see a point at too flat an angle; a window fades them out. Normalisation takes
 * the depth dependence of the number of elements out of the image again. */
#include "example.h"

int main(void)
{
    static float rf[ELEMENTS][SAMPLES], image[NZ][NX];
    das_error error = DAS_ERROR_INIT;
    das_device *device = NULL;
    das_options *options = NULL;
    das_acquisition *acquisition = make_acquisition();
    das_grid *grid = make_grid();
    int wrong = 0;
    simulate(rf);
    must(das_acquisition_add_plane_transmit(acquisition, 0.0, &error), &error);
    must(das_device_open("auto", NULL, &device, &error), &error);
    must(das_options_create(&options, &error), &error);

    static const struct {
        const char *name;
        double f_number, parameter;
        das_window window;
    } apertures[] = {{"all elements", 0, 0, DAS_WINDOW_RECT},
                     {"f-number 1.5", 1.5, 0, DAS_WINDOW_RECT},
                     {"f-number 1.5, hann", 1.5, 0, DAS_WINDOW_HANN},
                     {"f-number 1.5, tukey 0.5", 1.5, 0.5, DAS_WINDOW_TUKEY}};
    must(das_options_set_normalization(options, DAS_NORMALIZATION_WEIGHTS, &error), &error);
    for (int k = 0; k < 4; k++) {
        das_plan *plan = NULL;
        must(das_options_set_f_number(options, apertures[k].f_number, &error), &error);
        must(das_options_set_window(options, apertures[k].window, apertures[k].parameter, &error), &error);
        must(das_plan_create(device, acquisition, grid, options, &plan, &error), &error);
        must(das_reconstruct_host(plan, rf, sizeof rf, image, sizeof image, NULL, &error), &error);
        wrong += report_brightest(apertures[k].name, &image[0][0]);
        das_plan_destroy(&plan);
    }

    das_options_destroy(&options);
    das_grid_destroy(&grid);
    das_acquisition_destroy(&acquisition);
    das_device_destroy(&device);
    return wrong;
}
