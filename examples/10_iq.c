/* IQ data: complex samples at a fraction of the rate. The library turns their phase back by the travel time. Two frames
 * of a point that sinks by a twentieth of a wavelength: the phase between them tells. */
#include "example.h"

enum { SHORT = 256, FRAMES = 2 };

int main(void)
{
    static float iq[FRAMES][ELEMENTS][SHORT][2], image[FRAMES][NZ][NX][2];
    const double iq_fs = 6.25e6, two_pi = 6.283185307179586, sink = sound_speed / centre_hz / 20;
    das_error error = DAS_ERROR_INIT;
    das_device *device = NULL;
    das_plan *plan = NULL;
    das_acquisition *acquisition = make_acquisition();
    das_grid *grid = make_grid();

    for (int f = 0; f < FRAMES; f++)
        for (int r = 0; r < ELEMENTS; r++) {
            double element[3], point[3] = {point_m[0], 0, point_m[2] + f * sink};
            element_position(r, element);
            double tau = (point[2] + distance(point, element)) / sound_speed;
            for (int n = 0; n < SHORT; n++) {
                double cycles = (n / iq_fs - tau) * centre_hz, envelope = exp(-0.3 * cycles * cycles);
                iq[f][r][n][0] = (float)(envelope * cos(-two_pi * centre_hz * tau));
                iq[f][r][n][1] = (float)(envelope * sin(-two_pi * centre_hz * tau));
            }
        }

    must(das_acquisition_add_plane_transmit(acquisition, 0.0, &error), &error);
    must(das_acquisition_set_sampling_frequency(acquisition, iq_fs, &error), &error);
    must(das_acquisition_set_demodulation_frequency(acquisition, centre_hz, &error), &error);
    must(das_acquisition_set_data(acquisition, DAS_TYPE_CF32, SHORT, &error), &error);
    must(das_acquisition_set_frame_count(acquisition, FRAMES, &error), &error);
    must(das_device_open("auto", NULL, &device, &error), &error);
    must(das_plan_create(device, acquisition, grid, NULL, &plan, &error), &error);
    must(das_reconstruct_host(plan, iq, sizeof iq, image, sizeof image, NULL, &error), &error);

    int ix = 50, iz = 50; /* the grid point at the reflector */
    const float *a = image[0][iz][ix], *b = image[1][iz][ix];
    double phase = atan2((double)(b[1] * a[0] - b[0] * a[1]), (double)(b[0] * a[0] + b[1] * a[1]));
    double moved = -phase / two_pi * sound_speed / centre_hz / 2;
    printf("moved %.2f um, true %.2f um\n", moved * 1e6, sink * 1e6);

    das_plan_destroy(&plan);
    das_grid_destroy(&grid);
    das_acquisition_destroy(&acquisition);
    das_device_destroy(&device);
    return fabs(moved - sink) > 0.1 * sink;
}
