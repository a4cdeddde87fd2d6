/* The fast paths of a device against its general path, on problems large enough for them: grids of several tiles,
 * records that end inside the image, pairs left out, apertures, small memory budgets. Random data are smooth, so that
 * nearest's ties matter little.
 *
 *     test_fast_paths [--device NAME] [--cases N] [--seed N]
 */
#include "das/das.h"
#include "testing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ELEMENTS = 80, MOST_TRANSMITS = 80, MOST_RECEIVES = 300 };

typedef struct scenario {
    int64_t receives, transmits, samples, frames, counts[3];
    das_type type;
    das_interpolation interpolation;
    bool complex_data, full_matrix, coarse; /* coarse: neighbouring points are many samples apart */
    double f_number;
    das_window window;
    int64_t budget_part; /* 0: the default budget; else the input's size divided by this, and 256 KiB */
    int64_t spoilt;      /* element whose records are NaN, which must not reach points that do not look at it; or -1 */
    char text[200];
} scenario;

static bool ok(das_status status, const das_error *error)
{
    if (status != DAS_OK)
        test_note("%s: %s", das_status_name(status), error->message);
    return status == DAS_OK;
}

static void fill(test_rng *rng, const scenario *s, void *data, int64_t channel, bool nan)
{
    /* Frames differ in size, as float16 scales each by its own. */
    const int64_t frame = channel / (s->transmits * s->receives);
    const double size = 1.0 / (double)(INT64_C(1) << 2 * (frame % 3));
    double step = test_rng_uniform(rng, 0.02, 0.15), phase = test_rng_uniform(rng, 0.0, 6.28);
    for (int64_t n = 0; n < s->samples; n++) {
        double re = nan ? (double)NAN : size * sin(step * (double)n + phase),
               im = nan ? (double)NAN : size * cos(1.3 * step * (double)n + phase);
        int64_t at = channel * s->samples + n;
        if (s->type == DAS_TYPE_F32) {
            ((float *)data)[at] = (float)re;
        } else if (s->type == DAS_TYPE_I16) {
            ((int16_t *)data)[at] = nan ? 0 : (int16_t)(30000.0 * re);
        } else if (s->type == DAS_TYPE_CF32) {
            ((float *)data)[2 * at] = (float)re;
            ((float *)data)[2 * at + 1] = (float)im;
        } else {
            ((int16_t *)data)[2 * at] = nan ? 0 : (int16_t)(30000.0 * re);
            ((int16_t *)data)[2 * at + 1] = nan ? 0 : (int16_t)(30000.0 * im);
        }
    }
}

static das_acquisition *acquire(test_rng *rng, scenario *s, double weights[], das_error *e)
{
    static double elements[MOST_RECEIVES][3], delays[MOST_RECEIVES], starts[MOST_TRANSMITS];
    const double fs = 20e6, pitch = test_rng_uniform(rng, 0.2e-3, 0.5e-3) *
                                    (s->receives > MOST_ELEMENTS ? 0.2 : 1.0); /* all within reach of the records */
    das_acquisition *a = NULL;
    if (!ok(das_acquisition_create(&a, e), e))
        return NULL;
    for (int64_t r = 0; r < s->receives; r++) {
        elements[r][0] = ((double)r - 0.5 * (double)(s->receives - 1)) * pitch;
        elements[r][1] = test_rng_uniform(rng, -1e-4, 1e-4);
        elements[r][2] = test_rng_uniform(rng, -1e-4, 0.0);
        delays[r] = test_rng_uniform(rng, 0.0, 2e-7);
    }
    bool fine =
        ok(das_acquisition_set_receive_elements(a, s->receives, &elements[0][0], e), e) &&
        ok(das_acquisition_set_receive_delays(a, s->receives, delays, e), e) &&
        ok(das_acquisition_set_sampling_frequency(a, fs, e), e) && ok(das_acquisition_set_sound_speed(a, 1500.0, e), e) &&
        ok(das_acquisition_set_data(a, s->type, s->samples, e), e) && ok(das_acquisition_set_frame_count(a, s->frames, e), e);
    if (s->full_matrix) {
        fine = fine && ok(das_acquisition_add_element_transmits(a, e), e);
        if (test_rng_chance(rng, 0.7)) /* symmetric, so that pairs may be folded */
            fine = fine && ok(das_acquisition_set_transmit_delays(a, s->transmits, delays, e), e);
    } else {
        for (int64_t t = 0; fine && t < s->transmits; t++) {
            const double source[3] = {test_rng_uniform(rng, -5e-3, 5e-3), 0.0, -test_rng_uniform(rng, 5e-3, 20e-3)};
            const double focus[3] = {source[0], 0.0, -source[2]};
            int kind = test_rng_int(rng, 0, s->transmits < 4 ? 10 : 9); /* some paths want no focus */
            fine = ok(kind < 7    ? das_acquisition_add_plane_transmit(a, test_rng_uniform(rng, -0.4, 0.4), e)
                      : kind < 9  ? das_acquisition_add_diverging_transmit(a, source, NULL, e)
                      : kind < 10 ? das_acquisition_add_oneway_transmit(a, e)
                                  : das_acquisition_add_focused_transmit(a, focus, NULL, e),
                      e);
        }
        for (int64_t t = 0; t < s->transmits; t++)
            starts[t] = test_rng_uniform(rng, -1e-6, 3e-6);
        fine = fine && ok(das_acquisition_set_start_times(a, s->transmits, starts, e), e);
    }
    for (int64_t i = 0; i < s->transmits * s->receives; i++)
        weights[i] = 1.0;
    if (test_rng_chance(rng, s->receives > MOST_ELEMENTS ? 0.8 : 0.3)) {
        const bool whole = test_rng_chance(rng, 0.4); /* pairs are left out, the others weigh 1 */
        for (int64_t t = 0; t < s->transmits; t++)
            for (int64_t r = 0; r < s->receives; r++)
                weights[t * s->receives + r] = test_rng_chance(rng, 0.1) ? 0.0 : whole ? 1.0 : test_rng_uniform(rng, -1.0, 2.0);
        if (s->full_matrix && test_rng_chance(rng, 0.5))
            for (int64_t t = 0; t < s->transmits; t++)
                for (int64_t r = 0; r < t; r++)
                    weights[t * s->receives + r] = weights[r * s->receives + t];
        fine = fine && ok(das_acquisition_set_pair_weights(a, s->transmits, s->receives, weights, e), e);
    }
    if (s->complex_data && test_rng_chance(rng, 0.8))
        fine = fine && ok(das_acquisition_set_demodulation_frequency(a, test_rng_uniform(rng, 1e6, 6e6), e), e);
    if (!fine)
        das_acquisition_destroy(&a);
    return a;
}

static das_grid *make_grid(test_rng *rng, scenario *s, das_error *e)
{
    /* Parts of a sample, or several. */
    const double step = test_rng_uniform(rng, 0.1, 0.7) * (s->coarse ? 12.0 : 1.0) * 1500.0 / 20e6;
    double origin[3] = {-0.5 * step * (double)s->counts[0], 0.0, test_rng_uniform(rng, 0.2e-3, 8e-3)}, steps[9] = {0};
    int depth = test_rng_int(rng, 0, 1); /* which axis runs into the medium */
    steps[depth == 0 ? 2 : 0] = step;
    steps[3 + (depth == 0 ? 0 : 2)] = step * test_rng_uniform(rng, 0.8, 1.2);
    steps[6 + 1] = 1e-3;
    steps[1] = test_rng_chance(rng, 0.2) ? 0.1 * step : 0.0;
    das_grid *grid = NULL;
    if (!ok(das_grid_create_cartesian(origin, steps, s->counts, &grid, e), e))
        return NULL;
    return grid;
}

/* One image; NULL if the case failed. `description` gets the plan's. */
static float *image_of(das_device *device, const das_acquisition *a, const das_grid *grid, const scenario *s, bool fast,
                       das_precision precision, const void *data, size_t data_bytes, size_t *values, char description[256],
                       das_error *e)
{
    das_options *options = NULL;
    das_plan *plan = NULL;
    float *image = NULL;
    das_plan_info info;
    memset(&info, 0, sizeof info);
    info.struct_size = sizeof info;
    bool fine = ok(das_options_create(&options, e), e) && ok(das_options_set_interpolation(options, s->interpolation, e), e) &&
                ok(das_options_set_fast_paths(options, fast, e), e) && ok(das_options_set_precision(options, precision, e), e);
    if (s->f_number > 0.0)
        fine = fine && ok(das_options_set_f_number(options, s->f_number, e), e) &&
               ok(das_options_set_window(options, s->window, 0.4, e), e);
    if (fast && s->budget_part > 0)
        fine = fine && ok(das_options_set_memory_budget(options, data_bytes / (uint64_t)s->budget_part + (256 << 10), e), e);
    fine = fine && ok(das_plan_create(device, a, grid, options, &plan, e), e) && ok(das_plan_get_info(plan, &info, e), e);
    if (fine && (image = malloc(info.output_bytes)) != NULL) {
        memset(image, 0xFF, info.output_bytes); /* NaN */
        fine = ok(das_reconstruct_host(plan, data, data_bytes, image, info.output_bytes, NULL, e), e);
        *values = info.output_bytes / sizeof(float);
        snprintf(description, 256, "%s", das_plan_description(plan));
    }
    das_plan_destroy(&plan);
    das_options_destroy(&options);
    if (!fine) {
        free(image);
        image = NULL;
    }
    return image;
}

static void compare(const float *fast, const float *slow, size_t values, const scenario *s, das_precision precision,
                    const char *path)
{
    double difference = 0.0, norm = 0.0;
    size_t torn = 0;
    for (size_t i = 0; i < values; i++) {
        if (isnan(fast[i]) || isnan(slow[i])) {
            torn += isnan(fast[i]) != isnan(slow[i]);
            continue;
        }
        difference += ((double)fast[i] - (double)slow[i]) * ((double)fast[i] - (double)slow[i]);
        norm += (double)slow[i] * (double)slow[i];
    }
    double bound = s->interpolation == DAS_INTERPOLATION_NEAREST ? 1e-3 : precision == DAS_PRECISION_REDUCED ? 5e-4 : 1e-5;
    /* Those at the very rim of an aperture may or may not have read the spoilt element. */
    if (torn > (s->spoilt >= 0 ? values / 2000 + 8 : 0))
        test_note("%d of %d values are NaN in one image only: %s [%s]", (int)torn, (int)values, s->text, path);
    if (!(sqrt(difference) <= bound * sqrt(norm)))
        test_note("differs by %.2e, bound %.0e: %s [%s]", sqrt(difference / norm), bound, s->text, path);
}

static bool run_case(das_device *device, test_rng *rng, int number)
{
    static const das_type types[] = {DAS_TYPE_F32, DAS_TYPE_I16, DAS_TYPE_CF32, DAS_TYPE_CI16};
    static const das_interpolation kinds[] = {DAS_INTERPOLATION_NEAREST, DAS_INTERPOLATION_LINEAR, DAS_INTERPOLATION_CUBIC};
    static double weights[MOST_TRANSMITS * MOST_RECEIVES];
    das_error e = DAS_ERROR_INIT;
    scenario s;
    memset(&s, 0, sizeof s);
    s.type = types[number % 4];
    s.interpolation = kinds[number / 4 % 3];
    s.complex_data = s.type == DAS_TYPE_CF32 || s.type == DAS_TYPE_CI16;
    bool few = number / 12 % 2 == 1; /* transmits, but many frames: every type and interpolation */
    const bool rim = !few && number / 24 % 2 == 1 && s.type == DAS_TYPE_CF32; /* an aperture, and an element of NaN */
    s.full_matrix = !few && !rim && test_rng_chance(rng, 0.5);
    s.receives = test_rng_int(rng, 3, MOST_ELEMENTS);
    const bool wide = few && number % 5 == 3; /* more elements than are worked on at once */
    s.receives = wide ? test_rng_int(rng, 257, MOST_RECEIVES) : few ? test_rng_int(rng, 32, MOST_ELEMENTS) : s.receives;
    s.transmits = s.full_matrix ? s.receives : few ? test_rng_int(rng, 1, 3) : test_rng_int(rng, 4, 40);
    s.samples = test_rng_int(rng, 150, 600);
    const bool many = few && !wide && test_rng_chance(rng, 0.6);
    s.frames = many ? test_rng_int(rng, 12, 40) : few ? test_rng_int(rng, 1, 11) : test_rng_int(rng, 1, 2);
    s.coarse = few && !wide && test_rng_chance(rng, 0.3);
    s.counts[0] = test_rng_int(rng, 33, 70);
    s.counts[1] = test_rng_int(rng, 33, 70);
    s.counts[2] = test_rng_chance(rng, 0.2) ? 2 : 1;
    s.budget_part = test_rng_chance(rng, 0.3) ? test_rng_int(rng, 1, 4) : 0;
    if (rim || (!s.full_matrix && test_rng_chance(rng, 0.6))) {
        s.f_number = test_rng_uniform(rng, 0.5, 2.0);
        s.window = (das_window)test_rng_int(rng, DAS_WINDOW_RECT, DAS_WINDOW_TUKEY);
    }
    s.spoilt = s.f_number > 0.0 && (s.type == DAS_TYPE_F32 || s.type == DAS_TYPE_CF32) && (rim || test_rng_chance(rng, 0.6))
                   ? test_rng_int(rng, 0, (int)s.receives - 1)
                   : -1;
    snprintf(s.text, sizeof s.text,
             "case %d: type %d, interpolation %d, %s, %d tx, %d rx, %d samples, %dx%dx%d, F %.2f window %d", number, s.type,
             s.interpolation, s.full_matrix ? "full matrix" : "waves", (int)s.transmits, (int)s.receives, (int)s.samples,
             (int)s.counts[0], (int)s.counts[1], (int)s.counts[2], s.f_number, s.window);

    size_t data_bytes = (size_t)(s.frames * s.transmits * s.receives * s.samples) * das_type_bytes(s.type), values = 0;
    void *data = malloc(data_bytes);
    das_acquisition *a = acquire(rng, &s, weights, &e);
    das_grid *grid = make_grid(rng, &s, &e);
    bool fast_path = false;
    if (data != NULL && a != NULL && grid != NULL) {
        for (int64_t c = 0; c < s.frames * s.transmits * s.receives; c++)
            fill(rng, &s, data, c, weights[c % (s.transmits * s.receives)] == 0.0 || c % s.receives == s.spoilt);
        char fast_text[256] = "", slow_text[256] = "";
        float *slow = image_of(device, a, grid, &s, false, DAS_PRECISION_EXACT, data, data_bytes, &values, slow_text, &e);
        /* Reduced precision has paths of its own for many frames only. */
        for (das_precision p = DAS_PRECISION_EXACT; p <= (few && s.spoilt < 0 ? DAS_PRECISION_REDUCED : DAS_PRECISION_EXACT);
             p++) {
            float *fast = image_of(device, a, grid, &s, true, p, data, data_bytes, &values, fast_text, &e);
            if (fast != NULL && slow != NULL)
                compare(fast, slow, values, &s, p, fast_text);
            fast_path = fast_path || strcmp(fast_text, slow_text) != 0;
            free(fast);
        }
        free(slow);
    }
    free(data);
    das_grid_destroy(&grid);
    das_acquisition_destroy(&a);
    return fast_path;
}

int main(int argc, char **argv)
{
    static const char *const all[] = {"cpu", "cuda", "opencl"};
    const char *only = test_option(argc, argv, "--device"), *cases = test_option(argc, argv, "--cases");
    uint64_t seed = test_seed(argc, argv, 20240601);
    int count = cases != NULL ? atoi(cases) : getenv("DAS_TEST_SMALL") != NULL ? 12 : 48;
    for (size_t i = 0; i < (only != NULL ? 1 : sizeof all / sizeof all[0]); i++) {
        const char *name = only != NULL ? only : all[i];
        das_error e = DAS_ERROR_INIT;
        das_device *device = NULL;
        if (das_device_open(name, NULL, &device, &e) != DAS_OK) {
            test_skip("fast paths", "%s: NOT TESTED, no device: %s", name, e.message);
            continue;
        }
        test_rng rng = test_rng_seeded(seed);
        int fast = 0;
        test_begin("fast paths against the general path on %s", name);
        for (int number = 0; number < count && !test_has_failed(); number++)
            fast += run_case(device, &rng, number);
        test_end();
        printf("%d of %d cases took another path than the general one on %s\n", fast, count, name);
        das_device_destroy(&device);
    }
    return test_finish();
}
