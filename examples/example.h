/* What the numbered examples share: stop at the first error, and one simulated recording to play with: the echoes of a
 * point, seen by 64 elements after a plane wave. 03_one_shot.c shows the calls that are made here. */
#ifndef EXAMPLE_H
#define EXAMPLE_H

#include <das/das.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ELEMENTS = 64, SAMPLES = 1024, NX = 81, NZ = 101 };

static const double pitch_m = 0.3e-3, fs_hz = 25e6, centre_hz = 5e6, sound_speed = 1540;
static const double point_m[3] = {2e-3, 0, 20e-3};                                     /* the reflector */
static const double grid_origin_m[3] = {-8e-3, 0, 10e-3}, grid_step_m = 0.2e-3;        /* NX x NZ points of x and z */

static inline void must(das_status status, const das_error *error)
{
    if (status) {
        fprintf(stderr, "%s: %s\n", das_status_name(status), error->message);
        exit(EXIT_FAILURE);
    }
}

static inline void element_position(int element, double position[3])
{
    position[0] = (element - (ELEMENTS - 1) / 2.0) * pitch_m;
    position[1] = position[2] = 0;
}

static inline double distance(const double a[3], const double b[3])
{
    return hypot(a[0] - b[0], hypot(a[1] - b[1], a[2] - b[2]));
}

/* Adds an echo that arrives after tau seconds: a pulse of 5 MHz, as a sampled record. */
static inline void add_echo(float record[SAMPLES], double tau)
{
    for (int n = 0; n < SAMPLES; n++) {
        double cycles = (n / fs_hz - tau) * centre_hz;
        record[n] += (float)(exp(-1.5 * cycles * cycles) * cos(2 * 3.14159265358979 * cycles));
    }
}

/* The point's echoes after a plane wave straight down. */
static inline void simulate(float rf[ELEMENTS][SAMPLES])
{
    memset(rf, 0, sizeof(float) * ELEMENTS * SAMPLES);
    for (int r = 0; r < ELEMENTS; r++) {
        double element[3];
        element_position(r, element);
        add_echo(rf[r], (point_m[2] + distance(point_m, element)) / sound_speed);
    }
}

/* Elements, sampling, sound speed and data type; the transmits are left to the caller. */
static inline das_acquisition *make_acquisition(void)
{
    das_error error = DAS_ERROR_INIT;
    das_acquisition *acquisition = NULL;
    double positions[ELEMENTS][3];
    for (int r = 0; r < ELEMENTS; r++)
        element_position(r, positions[r]);
    must(das_acquisition_create(&acquisition, &error), &error);
    must(das_acquisition_set_receive_elements(acquisition, ELEMENTS, &positions[0][0], &error), &error);
    must(das_acquisition_set_sampling_frequency(acquisition, fs_hz, &error), &error);
    must(das_acquisition_set_sound_speed(acquisition, sound_speed, &error), &error);
    must(das_acquisition_set_data(acquisition, DAS_TYPE_F32, SAMPLES, &error), &error);
    return acquisition;
}

static inline das_grid *make_grid(void)
{
    das_error error = DAS_ERROR_INIT;
    das_grid *grid = NULL;
    const double steps[9] = {grid_step_m, 0, 0, 0, 0, grid_step_m};
    const int64_t counts[3] = {NX, NZ, 1};
    must(das_grid_create_cartesian(grid_origin_m, steps, counts, &grid, &error), &error);
    return grid;
}

/* Prints where the largest magnitude of a [NZ][NX] image is; 0 if that is at the point (to a step), else 1. */
static inline int report_brightest(const char *what, const float *image)
{
    int best = 0;
    for (int k = 1; k < NX * NZ; k++)
        if (fabsf(image[k]) > fabsf(image[best]))
            best = k;
    double x = grid_origin_m[0] + best % NX * grid_step_m, z = grid_origin_m[2] + best / NX * grid_step_m;
    printf("%s: brightest at x %.1f mm, z %.1f mm, value %.3f\n", what, x * 1e3, z * 1e3, (double)image[best]);
    return fabs(x - point_m[0]) > 1.01 * grid_step_m || fabs(z - point_m[2]) > 1.01 * grid_step_m;
}

#endif
