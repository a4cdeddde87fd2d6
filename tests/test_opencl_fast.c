/* The fast paths of the OpenCL backend against its general path, on random full matrices of smooth data
 * (so that nearest at a tie makes little difference), with records that end inside the image. */
#include "backend.h"
#include "testing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct setting {
    int elements, samples, frames, nx, nz, parts;
    bool linear, shared, weighted, delayed, incremental, small_budget, planes, integers, complex, aperture;
    das_window window;
    double pitch, dx, dz, x0, z0, start;
} setting;

static setting draw(test_rng *rng, int number)
{
    const double wavelength = 1540 / 20e6;
    setting s;
    memset(&s, 0, sizeof s);
    s.elements = test_rng_int(rng, 6, 21);
    s.samples = test_rng_int(rng, 60, 250);
    s.frames = test_rng_int(rng, 1, 2);
    s.nx = test_rng_int(rng, 33, 70);
    s.nz = test_rng_int(rng, 33, 70);
    s.linear = number % 2 == 1;
    s.shared = number % 4 == 2 || number % 4 == 3;
    s.weighted = test_rng_chance(rng, 0.4);
    s.delayed = test_rng_chance(rng, 0.4);
    s.incremental = test_rng_chance(rng, 0.3);
    s.parts = s.incremental ? 2 : 1;
    s.small_budget = test_rng_chance(rng, 0.5);
    s.planes = test_rng_chance(rng, 0.3);
    s.integers = test_rng_chance(rng, 0.3);
    s.complex = !s.integers && test_rng_chance(rng, 0.2);
    s.aperture = test_rng_chance(rng, 0.4);
    s.window = s.aperture ? (das_window)test_rng_int(rng, DAS_WINDOW_RECT, DAS_WINDOW_HAMMING) : DAS_WINDOW_RECT;
    s.pitch = wavelength * test_rng_uniform(rng, 1, 4);
    s.dx = wavelength * test_rng_uniform(rng, 0.3, 0.9);
    s.dz = wavelength * test_rng_uniform(rng, 0.3, 0.9);
    s.x0 = -0.5 * s.dx * s.nx;
    s.z0 = wavelength * test_rng_uniform(rng, 0, 40);
    s.start = test_rng_uniform(rng, -1e-6, 2e-6);
    return s;
}

/* Sums of slow waves, different in each record. */
static void *make_data(const setting *s, test_rng *rng, size_t *bytes)
{
    const int records = s->frames * (s->shared ? 1 : s->elements) * s->elements;
    const size_t count = (size_t)records * (size_t)s->samples * (s->complex ? 2 : 1);
    float *data = malloc(count * sizeof *data);
    int16_t *integers = malloc(count * sizeof *integers);
    for (int r = 0; r < records && data != NULL && integers != NULL; r++) {
        const double a = test_rng_uniform(rng, 0.5, 2), b = test_rng_uniform(rng, 0, 6),
                     slow = test_rng_uniform(rng, 0.005, 0.02);
        for (int n = 0; n < s->samples; n++) {
            const double value = a * sin(slow * n + b);
            const size_t at = (size_t)r * (size_t)s->samples + (size_t)n;
            if (s->complex) {
                data[2 * at] = (float)value;
                data[2 * at + 1] = (float)(a * cos(slow * n));
                continue;
            }
            data[at] = (float)value;
            integers[at] = (int16_t)lrint(10000 * value);
        }
    }
    *bytes = count * (s->integers ? sizeof *integers : sizeof *data);
    free(s->integers ? (void *)data : (void *)integers);
    return s->integers ? (void *)integers : (void *)data;
}

static das_status image_of(const setting *s, das_device *device, bool fast, const void *data, size_t bytes, float *image,
                           char *path, size_t path_bytes, das_error *error)
{
    static double positions[32][3], weights[32 * 32], delays[32], transmit_delays[32];
    const double origin[3] = {s->x0, 0, s->z0}, steps[9] = {s->dx, 0, 0, 0, 0, s->dz, 0, 0, 0};
    const int64_t counts[3] = {s->nx, s->nz, 1};
    das_acquisition *acquisition = NULL;
    das_grid *grid = NULL;
    das_options *options = NULL;
    das_plan *plan = NULL;
    das_run *run = NULL;
    const size_t image_bytes = (size_t)s->frames * (size_t)s->nx * (size_t)s->nz * sizeof *image * (s->complex ? 2 : 1);
    das_status status = das_acquisition_create(&acquisition, error);
    for (int i = 0; i < s->elements; i++) {
        positions[i][0] = s->pitch * (i - 0.5 * (s->elements - 1));
        delays[i] = 1e-7 * (i % 3);
        transmit_delays[i] = delays[i] + 3e-7;
        for (int k = 0; k < s->elements; k++)
            weights[i * s->elements + k] = (i + k) % 5 == 0 ? 0 : 0.25 * (1 + (i * k) % 7);
    }
    if (status == DAS_OK)
        status = das_acquisition_set_receive_elements(acquisition, s->elements, &positions[0][0], error);
    for (int i = 0; i < s->elements && status == DAS_OK; i++)
        status = s->planes ? das_acquisition_add_plane_transmit(acquisition, 0.02 * (i - 0.5 * s->elements), error)
                           : das_acquisition_add_element_transmit(acquisition, positions[i], error);
    if (status == DAS_OK)
        status = das_acquisition_set_sampling_frequency(acquisition, 20e6, error);
    if (status == DAS_OK)
        status = das_acquisition_set_sound_speed(acquisition, 1540, error);
    if (status == DAS_OK)
        status = das_acquisition_set_start_times(acquisition, 1, &s->start, error);
    if (status == DAS_OK)
        status = das_acquisition_set_data(acquisition,
                                          s->integers  ? DAS_TYPE_I16
                                          : s->complex ? DAS_TYPE_CF32
                                                       : DAS_TYPE_F32,
                                          s->samples, error);
    if (status == DAS_OK && s->complex)
        status = das_acquisition_set_demodulation_frequency(acquisition, 3e6, error);
    if (status == DAS_OK)
        status = das_acquisition_set_frame_count(acquisition, s->frames, error);
    if (status == DAS_OK && s->shared)
        status = das_acquisition_set_data_strides(acquisition, 0, (int64_t)s->elements * s->samples, 0, s->samples, 1, error);
    if (status == DAS_OK && s->weighted)
        status = das_acquisition_set_pair_weights(acquisition, s->elements, s->elements, weights, error);
    if (status == DAS_OK && s->delayed) {
        status = das_acquisition_set_receive_delays(acquisition, s->elements, delays, error);
        if (status == DAS_OK)
            status = das_acquisition_set_transmit_delays(acquisition, s->elements, transmit_delays, error);
    }
    if (status == DAS_OK)
        status = das_grid_create_cartesian(origin, steps, counts, &grid, error);
    if (status == DAS_OK)
        status = das_options_create(&options, error);
    if (status == DAS_OK)
        status =
            das_options_set_interpolation(options, s->linear ? DAS_INTERPOLATION_LINEAR : DAS_INTERPOLATION_NEAREST, error);
    if (status == DAS_OK && s->aperture)
        status = das_options_set_f_number(options, 1.0, error);
    if (status == DAS_OK && s->aperture)
        status = das_options_set_window(options, s->window, 0, error);
    if (status == DAS_OK)
        status = das_options_set_fast_paths(options, fast, error);
    if (status == DAS_OK)
        status = das_options_set_incremental(options, s->incremental, error);
    if (status == DAS_OK && s->small_budget) /* not all records at once */
        status = das_options_set_memory_budget(
            options, 20000 + (uint64_t)s->elements * (uint64_t)s->elements * (uint64_t)s->samples * 3, error);
    if (status == DAS_OK)
        status = das_plan_create(device, acquisition, grid, options, &plan, error);
    if (status == DAS_OK) {
        snprintf(path, path_bytes, "%s", das_plan_description(plan));
        status = das_run_create(device, &run, error);
    }
    for (int part = 0; part < s->parts && status == DAS_OK; part++) {
        const int first = part * s->elements / s->parts, end = (part + 1) * s->elements / s->parts;
        status = das_run_set_transmits(run, first, end - first, error);
        if (status == DAS_OK)
            status = das_run_set_accumulate(run, part > 0, error);
        if (status == DAS_OK)
            status = das_reconstruct_host(plan, data, bytes, image, image_bytes, run, error);
    }
    das_run_destroy(&run);
    das_plan_destroy(&plan);
    das_options_destroy(&options);
    das_grid_destroy(&grid);
    das_acquisition_destroy(&acquisition);
    return status;
}

/* Whether the case took a fast path. */
static bool compare(das_device *device, test_rng *rng, int number)
{
    const setting s = draw(rng, number);
    const size_t points = (size_t)s.frames * (size_t)s.nx * (size_t)s.nz * (s.complex ? 2 : 1);
    size_t bytes = 0;
    void *data = make_data(&s, rng, &bytes);
    float *fast = test_guarded_alloc(points * sizeof *fast, 64), *general = test_guarded_alloc(points * sizeof *general, 64);
    char path[256] = "", other[256] = "";
    das_error error = DAS_ERROR_INIT;
    double difference = 0, norm = 0;
    test_begin("OpenCL fast paths: case %d, %d elements, %d %ssamples, %d x %d points, f-number %d, window %d", number,
               s.elements, s.samples, s.complex ? "complex " : "", s.nx, s.nz, (int)s.aperture, (int)s.window);
    EXPECT_MSG(image_of(&s, device, true, data, bytes, fast, path, sizeof path, &error) == DAS_OK, "%s", error.message);
    EXPECT_MSG(image_of(&s, device, false, data, bytes, general, other, sizeof other, &error) == DAS_OK, "%s", error.message);
    for (size_t i = 0; i < points; i++) {
        difference += ((double)fast[i] - (double)general[i]) * ((double)fast[i] - (double)general[i]);
        norm += (double)general[i] * (double)general[i];
    }
    /* With an aperture no sample may be in reach of the image. */
    EXPECT(norm > 0 || s.aperture);
    difference = norm > 0 ? sqrt(difference / norm) : difference;
    EXPECT_MSG(difference <= (s.linear ? 1e-5 : 1e-4), "off by %.2e: %s", difference, path);
    EXPECT(test_guarded_intact(fast) && test_guarded_intact(general));
    test_end();
    printf("  %.2e, %s\n", difference, path);
    test_guarded_free(fast);
    test_guarded_free(general);
    free(data);
    return strstr(path, "general path") == NULL;
}

int main(int argc, char **argv)
{
    das_device *device = NULL;
    das_error error = DAS_ERROR_INIT;
    test_rng rng;
    const char *cases = test_option(argc, argv, "--cases"), *name = test_option(argc, argv, "--device");
    const int count = cases != NULL ? atoi(cases) : getenv("DAS_TEST_SMALL") != NULL ? 4 : 16;
    int taken = 0;
    if (!das_backend_is_built("opencl") || das_device_open(name != NULL ? name : "opencl", NULL, &device, &error) != DAS_OK) {
        test_skip("OpenCL fast paths", "NOT TESTED, no OpenCL device");
        return test_finish();
    }
    rng = test_rng_seeded(test_seed(argc, argv, 20261130));
    for (int i = 0; i < count; i++)
        taken += compare(device, &rng, i);
    test_begin("OpenCL fast paths: %d of %d cases took one", taken, count);
    EXPECT(taken >= count / 8);
    test_end();
    das_device_destroy(&device);
    return test_finish();
}
