/*
 * The article's workload: columns of its image at full height, all 128 x 128 pairs, against its literal loop.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "conformance.h"

enum { ROWS = 1200, ELEMENTS = 128, SAMPLES = 2000, MOST_COLUMNS = 8 };

/* Columns over the whole width, and neighbouring ones. */
static const struct {
    int first, step, count;
} columns_of[] = {{0, 190, 4}, {377, 1, MOST_COLUMNS}};

/* The loop itself for column j, in its own arithmetic; only the square roots are taken out of the inner loops.
 * Where a sum of distances lies within 1e-5 sample of a tie, the jump there is added to slack. */
static void literal_column(const int16_t *data, int j, double *out, double *slack)
{
    for (int i = 0; i < ROWS; i++) {
        double distance[ELEMENTS], sum = 0, jumps = 0;
        for (int k = 0; k < ELEMENTS; k++)
            distance[k] = sqrt((double)i * i + ((double)j - 6.0 * k) * ((double)j - 6.0 * k));
        for (int k = 0; k < ELEMENTS; k++)
            for (int n = 0; n < ELEMENTS; n++) {
                double s = (distance[k] + distance[n]) * 0.05 / 1.54 * 30, below = floor(s);
                int order = (int)nearbyint(s);
                if (order < SAMPLES)
                    sum += data[k * SAMPLES + order];
                if (fabs(s - below - 0.5) < 1e-5) {
                    int low = (int)below;
                    jumps += fabs((low < SAMPLES ? data[k * SAMPLES + low] : 0.0) -
                                  (low + 1 < SAMPLES ? data[k * SAMPLES + low + 1] : 0.0));
                }
            }
        out[i] = sum;
        slack[i] = jumps;
    }
}

static void article_scenario(scenario *s, oracle_type type, const int16_t *values, int first, int step, int columns)
{
    scenario_init(s);
    oracle_element *element = scenario_elements(s, ELEMENTS);
    oracle_transmit *transmit = scenario_transmits(s, ELEMENTS);
    for (int k = 0; k < ELEMENTS; k++) {
        element[k].position[0] = 0.3e-3 * k;
        transmit[k].wave = ORACLE_ELEMENT;
        transmit[k].vector[0] = 0.3e-3 * k;
        transmit[k].vector[2] = 0;
    }
    s->all_elements = true;
    s->o.type = type;
    s->o.samples = SAMPLES;
    s->o.sampling_frequency_hz = 30e6;
    s->o.sound_speed_m_s = 1540;
    s->o.interpolation = ORACLE_NEAREST;
    s->o.grid.count[0] = columns;
    s->o.grid.step[0][0] = step * 0.05e-3;
    s->o.grid.origin[0] = first * 0.05e-3;
    s->o.grid.origin[2] = 0;
    s->o.grid.count[1] = ROWS;
    s->o.grid.step[1][2] = 0.05e-3;
    s->o.grid.count[2] = 1;
    scenario_compact(s);
    s->o.transmit_stride = 0;
    s->o.frame_stride = 0;
    s->data_strided = true;
    scenario_data(s);
    for (int64_t i = 0; i < s->data_elements; i++) {
        if (type == ORACLE_F32)
            ((float *)s->data)[i] = values[i];
        else
            ((int16_t *)s->data)[i] = values[i];
    }
}

void conformance_article(const conformance_target *targets, int count)
{
    static const char *const name[] = {"int16", "float32"};
    static const oracle_type types[] = {ORACLE_I16, ORACLE_F32};
    test_rng rng = test_rng_seeded(2019);
    int16_t *values = malloc(sizeof *values * ELEMENTS * SAMPLES);
    double *want = malloc(sizeof *want * MOST_COLUMNS * ROWS), *slack = malloc(sizeof *slack * MOST_COLUMNS * ROWS);
    float *image = malloc(sizeof *image * MOST_COLUMNS * ROWS);
    bool ok = values != NULL && want != NULL && slack != NULL && image != NULL;
    if (!ok) {
        test_begin("article");
        test_note("out of memory");
        test_end();
    }
    for (int i = 0; ok && i < ELEMENTS * SAMPLES; i++)
        values[i] = (int16_t)test_rng_int(&rng, -900, 900); /* sums of 16384 stay exact in float */
    for (int g = 0; ok && g < 2; g++) {
        int first = columns_of[g].first, step = columns_of[g].step, columns = columns_of[g].count;
        for (int c = 0; c < columns; c++)
            literal_column(values, first + c * step, want + c * ROWS, slack + c * ROWS);
        for (int i = 0; i < 2 * count; i++) {
            const conformance_target *target = &targets[i / 2];
            scenario s;
            das_error error = DAS_ERROR_INIT;
            test_begin("the article's loop, %d columns every %d, %s on %s", columns, step, name[i % 2], target->name);
            article_scenario(&s, types[i % 2], values, first, step, columns);
            memset(image, 0xFF, sizeof *image * MOST_COLUMNS * ROWS);
            if (scenario_run(target, &s, image, &error) != DAS_OK)
                test_note("%s: %s", das_status_name(error.status), error.message);
            for (int k = 0; k < columns * ROWS && !test_has_failed(); k++) {
                int row = k / columns, c = k % columns;
                double w = want[c * ROWS + row], got = (double)image[k];
                double allowed = slack[c * ROWS + row] + 1e-6 * fabs(w);
                EXPECT_MSG(fabs(got - w) <= allowed, "column %d, row %d: %.9g, expected %.9g within %g",
                           first + c * step, row, got, w, allowed);
            }
            scenario_free(&s);
            test_end();
        }
    }
    free(image);
    free(slack);
    free(want);
    free(values);
}
