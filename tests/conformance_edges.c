/* Adversarial cases: edges, things that must not be looked at, extremes. Values worked out by hand. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "conformance.h"

static const conformance_target *edge_targets;
static int edge_count;

static const double sample_m = 75e-6; /* of the fixture, as a length of path */

static void put(scenario *s, int64_t at, double re, double im)
{
    switch (s->o.type) {
    case ORACLE_I8:
        ((int8_t *)s->data)[at] = (int8_t)re;
        break;
    case ORACLE_U8:
        ((uint8_t *)s->data)[at] = (uint8_t)re;
        break;
    case ORACLE_I16:
        ((int16_t *)s->data)[at] = (int16_t)re;
        break;
    case ORACLE_U16:
        ((uint16_t *)s->data)[at] = (uint16_t)re;
        break;
    case ORACLE_F16:
        ((uint16_t *)s->data)[at] = oracle_double_to_half(re);
        break;
    case ORACLE_F32:
        ((float *)s->data)[at] = (float)re;
        break;
    case ORACLE_F64:
        ((double *)s->data)[at] = re;
        break;
    case ORACLE_CI16:
        ((int16_t *)s->data)[2 * at] = (int16_t)re;
        ((int16_t *)s->data)[2 * at + 1] = (int16_t)im;
        break;
    case ORACLE_CF16:
        ((uint16_t *)s->data)[2 * at] = oracle_double_to_half(re);
        ((uint16_t *)s->data)[2 * at + 1] = oracle_double_to_half(im);
        break;
    case ORACLE_CF32:
        ((float *)s->data)[2 * at] = (float)re;
        ((float *)s->data)[2 * at + 1] = (float)im;
        break;
    }
}

static void fill(scenario *s, double value)
{
    scenario_compact(s);
    scenario_data(s);
    for (int64_t i = 0; i < s->data_elements; i++)
        put(s, i, value, 0);
}

/* s[n] = n + 1, so that sample 0 shows. */
static void ramp_from_1(scenario *s)
{
    scenario_compact(s);
    scenario_data(s);
    for (int64_t i = 0; i < s->data_elements; i++)
        put(s, i, (double)(i % s->o.samples + 1), 0);
}

static void spoil_record(scenario *s, int64_t transmit, int64_t receive)
{
    for (int64_t n = 0; n < s->o.samples; n++)
        put(s, scenario_index(s, 0, transmit, receive, n), (double)NAN, (double)NAN);
}

/* The one point alone, as a lattice of points closer than a picometre, and as a list, since fast paths take
 * only some of these; all values must be the same. */
static void expect(const char *name, scenario *s, double re, double im)
{
    static const char *const shape_name[] = {"one point", "lattice", "list"};
    double size = hypot(re, im), allowed = 1e-6 * (size > 0 ? size : 1), points[70][3];
    oracle_grid one = s->o.grid;
    bool tables = s->o.transmit_arrival_s != NULL || s->o.receive_arrival_s != NULL || s->o.transmit_weight != NULL ||
                  s->o.receive_weight != NULL;
    for (int i = 0; i < edge_count; i++) {
        test_begin("%s on %s", name, edge_targets[i].name);
        for (int shape = 0; shape < (tables ? 1 : 3) && !test_has_failed(); shape++) {
            char why[600];
            s->o.grid = one;
            if (shape == 1) {
                s->o.grid.count[0] = 33;
                s->o.grid.count[2] = 35;
                s->o.grid.step[0][0] = s->o.grid.step[2][2] = 1e-14;
            } else if (shape == 2) {
                for (int k = 0; k < 70; k++)
                    memcpy(points[k], one.origin, sizeof points[k]);
                s->o.grid.kind = ORACLE_POINTS;
                s->o.grid.count[0] = 70;
                s->o.grid.point = (const double(*)[3])points;
            }
            scenario_expect(&edge_targets[i], s, re, im, allowed);
            if (test_has_failed()) {
                snprintf(why, sizeof why, "%s", test_failure());
                test_discard();
                test_begin("%s on %s", name, edge_targets[i].name);
                test_note("%s: %s", shape_name[shape], why);
            }
        }
        test_end();
    }
    s->o.grid = one;
}

static void expect_and_free(const char *name, scenario *s, double re, double im)
{
    oracle_value *reference;
    double size = hypot(re, im);
    if (!conformance_in_share()) {
        scenario_free(s);
        return;
    }
    reference = scenario_reference(s);
    expect(name, s, re, im);
    if (!(hypot(reference->re - re, reference->im - im) <= 1e-6 * (size > 0 ? size : 1))) {
        test_begin("%s by the oracle", name);
        test_note("%.9g %+.9gi, expected %.9g %+.9gi", reference->re, reference->im, re, im);
        test_end();
    }
    scenario_free(s);
}

static const char *const interpolation_names[] = {"nearest", "linear", "quadratic", "cubic", "lanczos"};

/* ---- edges of tolerance ---- */

static void aperture_edges(void)
{
    /* e is 1e-3 sample of path, 75 nm; z = 15 mm and F = 1.5 give an aperture of 5 mm. */
    static const struct {
        double beyond_e, value;
    } rim[] = {{0, 1}, {0.5, 1}, {0.75, 1}, {1.25, 0}, {1.5, 0}, {-0.5, 1}},
      front[] = {{0, 0}, {0.5, 0}, {0.75, 0}, {1.25, 1}, {1.5, 1}, {-3, 0}};
    const double e = 1e-3 * sample_m;
    char name[128];
    for (int k = 0; k < 6; k++) {
        scenario s;
        scenario_init(&s);
        scenario_elements(&s, 1)->position[0] = 5e-3 + rim[k].beyond_e * e;
        s.o.f_number = 1.5;
        fill(&s, 1);
        snprintf(name, sizeof name, "aperture rim %+g e", rim[k].beyond_e);
        expect_and_free(name, &s, rim[k].value, 0);
    }
    for (int k = 0; k < 6; k++) {
        scenario s;
        scenario_init(&s);
        scenario_transmits(&s, 1)->wave = ORACLE_ONE_WAY;
        scenario_point(&s, 0, 0, front[k].beyond_e * e);
        s.o.f_number = 1.5;
        fill(&s, 1);
        snprintf(name, sizeof name, "pixel %+g e in front of the element", front[k].beyond_e);
        expect_and_free(name, &s, front[k].value, 0);
    }
    /* A regular grid under a regular array puts one element in five exactly on the rim: all of these take part. */
    {
        scenario s;
        oracle_element *element;
        scenario_init(&s);
        element = scenario_elements(&s, 101);
        for (int r = 0; r < 101; r++)
            element[r].position[0] = (r - 50) * 0.3e-3;
        s.o.f_number = 1;
        fill(&s, 1);
        scenario_point(&s, 0.3e-3, 0, 18e-3); /* 9 mm to each side: 30 pitches */
        expect_and_free("rim of a regular array, both ends: 61 elements", &s, 61, 0);
    }
    for (int window = ORACLE_HANN; window <= ORACLE_WINDOW_TABLE; window++) {
        /* q is held at 1 between the rim and e beyond it. */
        static const double value[] = {1, 0, 0.08, 0, 0.25}, table[] = {1, 0.25};
        scenario s;
        scenario_init(&s);
        scenario_elements(&s, 1)->position[0] = 5e-3 + 0.5 * e;
        s.o.f_number = 1.5;
        s.o.window = (oracle_window)window;
        s.o.tukey = 0.5;
        s.o.window_value = table;
        s.o.window_values = 2;
        fill(&s, 1);
        snprintf(name, sizeof name, "window %d at the rim", window);
        expect_and_free(name, &s, value[window], 0);
    }
}

static void focal_plane(void)
{
    /* F along (3,0,4)/5 at 20 mm; along (4,0,-3)/5 the plane itself. On it, and up to e before it, the sign is +. */
    static const double along_mm[] = {0, 1, -2.5, 4}, beyond_e[] = {0, -0.75, -1.25, 2};
    const double e = 1e-3 * sample_m;
    for (int k = 0; k < 16; k++) {
        double across = along_mm[k % 4] * 1e-3, beyond = beyond_e[k / 4] * e, x, z, to_focus, tau;
        scenario s;
        oracle_transmit *transmit;
        char name[128];
        scenario_init(&s);
        transmit = scenario_transmits(&s, 1);
        transmit->wave = ORACLE_FOCUSED;
        transmit->vector[0] = 12e-3;
        transmit->vector[2] = 16e-3;
        x = 12e-3 + 0.8 * across + 0.6 * beyond;
        z = 16e-3 - 0.6 * across + 0.8 * beyond;
        scenario_point(&s, x, 0, z);
        to_focus = hypot(across, beyond);
        tau = (20e-3 + (beyond_e[k / 4] >= -1 ? to_focus : -to_focus) + hypot(x, z)) / sample_m;
        ramp_from_1(&s);
        snprintf(name, sizeof name, "focal plane %+g e, %+g mm off axis", beyond_e[k / 4], along_mm[k % 4]);
        expect_and_free(name, &s, tau + 1, 0);
    }
}

static void record_edges(void)
{
    /* Where in the record of 100 samples s[n] = n + 1; data outside count as 0 to wide interpolations, which at a
     * whole sample read just that sample. */
    static const struct {
        double s, value, nearest;
    } cases[] = {
        {0, 1, 1},         {-0.00075, 1, 1}, {-0.00125, 0, 1},   {-0.4, 0, 1},     {-0.6, 0, 0},   {-3, 0, 0},
        {99, 100, 100},    {99.00075, 100, 100}, {99.00125, 0, 100}, {99.4, 0, 100}, {99.6, 0, 0},  {100, 0, 0},
        {1e9, 0, 0},       {-1e9, 0, 0},     {5e9, 0, 0},      {-5e9, 0, 0},     {1e15, 0, 0},
    };
    for (int clamp = 0; clamp <= 1; clamp++)
        for (int interpolation = 0; interpolation < 5; interpolation++)
            for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
                scenario s;
                char name[128];
                double value = interpolation == ORACLE_NEAREST ? cases[k].nearest : cases[k].value;
                scenario_init(&s);
                scenario_transmits(&s, 1)->wave = ORACLE_ONE_WAY;
                scenario_point(&s, 0, 0, 0);
                s.o.samples = 100;
                s.o.interpolation = (oracle_interpolation)interpolation;
                s.o.clamp = clamp != 0;
                scenario_transmits(&s, 1)->start_time_s = -cases[k].s / 20e6;
                if (clamp)
                    value = cases[k].s < 50 ? 1 : 100;
                ramp_from_1(&s);
                snprintf(name, sizeof name, "%s, s = %.10g, %s", interpolation_names[interpolation], cases[k].s,
                         clamp ? "clamp" : "zero");
                expect_and_free(name, &s, value, 0);
            }
    /* Taps outside are 0: 0.25 sample into a record of ones. Cubic: 1 less the first weight; likewise at the end. */
    for (int end = 0; end <= 1; end++) {
        static const double value[] = {1, 1, 1 - (0.25 * (0.25 - 1) / 2), 1 + 0.0703125, 0};
        for (int interpolation = ORACLE_LINEAR; interpolation <= ORACLE_CUBIC; interpolation++) {
            scenario s;
            char name[128];
            scenario_init(&s);
            scenario_point(&s, 0, 0, 0);
            s.o.samples = 100;
            s.o.interpolation = (oracle_interpolation)interpolation;
            scenario_transmits(&s, 1)->start_time_s = -(end ? 98.75 : 0.25) / 20e6;
            fill(&s, 1);
            snprintf(name, sizeof name, "%s, a quarter sample from the %s", interpolation_names[interpolation],
                     end ? "end" : "start");
            expect_and_free(name, &s, value[interpolation], 0);
        }
    }
    {
        /* One sample is a record, too. */
        scenario s;
        scenario_init(&s);
        s.o.samples = 1;
        scenario_transmits(&s, 1)->start_time_s = 20e-6;
        ramp_from_1(&s);
        expect_and_free("a record of one sample", &s, 1, 0);
    }
}

/* ---- what must not be looked at ---- */

static void not_looked_at(void)
{
    static const oracle_type types[] = {ORACLE_F32, ORACLE_F16, ORACLE_F64, ORACLE_CF32, ORACLE_CF16};
    static const char *const type_names[] = {"f32", "f16", "f64", "cf32", "cf16"};
    static const char *const what[] = {"transmit", "element", "pair", "trace", "transmit table", "receive table",
                                       "aperture", "window's end", "transmit times", "receive times",
                                       "aperture of four transmits", "window's end of four transmits"};
    for (int w = 0; w < 12; w++)
        for (int t = 0; t < 5; t++)
            for (int interpolation = 0; interpolation < 5; interpolation++) {
                /* Two transmits and two elements, one pair, transmit or element of which is spoiled; the last two with four
                 * transmits, which fast paths want. */
                static const double pairs[] = {1, 1, 1, 0};
                static const oracle_trace traces[] = {{0, 0, 1}, {0, 1, 1}, {1, 0, 1}, {1, 1, 0}};
                static const float row_0[] = {1, 0}, row_0_double[] = {1, 0};
                static const double no_path[] = {0, (double)NAN};
                scenario s;
                oracle_transmit *transmit;
                oracle_element *element;
                char name[128];
                const int transmits = w < 10 ? 2 : 4;
                double value = transmits;
                scenario_init(&s);
                s.o.type = types[t];
                s.o.interpolation = (oracle_interpolation)interpolation;
                s.o.normalization = ORACLE_NO_DIVISION;
                s.o.samples = 600;
                transmit = scenario_transmits(&s, transmits);
                element = scenario_elements(&s, 2);
                if (w == 0)
                    transmit[1].weight = 0;
                if (w == 1)
                    element[1].weight = 0;
                if (w == 2)
                    s.o.pair_weight = pairs;
                if (w == 3) {
                    s.o.trace = traces;
                    s.o.traces = 4;
                }
                if (w == 4)
                    s.o.transmit_weight = row_0;
                if (w == 5)
                    s.o.receive_weight = row_0_double;
                if (w == 6 || w == 7 || w >= 10) {
                    element[1].position[0] = w % 4 == 2 ? 8e-3 : 5e-3 + 0.4e-3 * sample_m;
                    s.o.f_number = 1.5;
                    s.o.window = ORACLE_HANN;
                }
                s.o.clamp = interpolation % 2 != 0; /* must not turn "no path" into an end of the record */
                if (w == 8)
                    s.o.transmit_arrival_s = no_path;
                if (w == 9)
                    s.o.receive_arrival_s = no_path;
                fill(&s, 1);
                if (w == 2 || w == 3) {
                    value = 3;
                    if (w == 3) /* the fourth trace */
                        for (int64_t n = 0; n < s.o.samples; n++)
                            put(&s, 3 * s.o.samples + n, (double)NAN, (double)NAN);
                    else
                        spoil_record(&s, 1, 1);
                } else if (w == 0 || w == 4 || w == 8) {
                    spoil_record(&s, 1, 0);
                    spoil_record(&s, 1, 1);
                } else {
                    for (int k = 0; k < transmits; k++)
                        spoil_record(&s, k, 1);
                }
                snprintf(name, sizeof name, "NaN behind weight 0: %s, %s %s", what[w], type_names[t],
                         interpolation_names[interpolation]);
                expect_and_free(name, &s, value, 0);
            }
    /* The divisor must not count them either. */
    for (int by = ORACLE_BY_COUNT; by <= ORACLE_BY_WEIGHTS; by++) {
        scenario s;
        oracle_element *element;
        scenario_init(&s);
        element = scenario_elements(&s, 4);
        element[1].weight = 0;
        element[2].weight = 3;
        element[3].position[0] = 200e-3; /* its sample is not in the record */
        s.o.normalization = (oracle_normalization)by;
        fill(&s, 10);
        spoil_record(&s, 0, 1);
        expect_and_free(by == ORACLE_BY_COUNT ? "count: (10 + 30) / 2" : "weights: (10 + 30) / 4", &s,
                        by == ORACLE_BY_COUNT ? 20 : 10, 0);
    }
}

/* ---- divisors, traces, layout ---- */

static void divisors(void)
{
    for (int by = ORACLE_NO_DIVISION; by <= ORACLE_BY_WEIGHTS; by++) {
        static const double cancelled[] = {-2, -1, 0}, signed_sum[] = {3.5, 1.75, 3.5 / 1.5};
        scenario s;
        oracle_element *element;
        char name[64];
        for (int k = 0; k < 2; k++) {
            scenario_init(&s);
            element = scenario_elements(&s, 2);
            element[0].weight = k == 0 ? 1 : 2;
            element[1].weight = k == 0 ? -1 : -0.5;
            s.o.normalization = (oracle_normalization)by;
            fill(&s, 3);
            for (int64_t n = 0; n < s.o.samples; n++)
                put(&s, scenario_index(&s, 0, 0, 1, n), 5, 0);
            snprintf(name, sizeof name, "divisor %d, weights %g and %g", by, element[0].weight, element[1].weight);
            expect_and_free(name, &s, k == 0 ? cancelled[by] : signed_sum[by], 0);
        }
        scenario_init(&s);
        s.o.samples = 50; /* s = 400 */
        s.o.normalization = (oracle_normalization)by;
        fill(&s, 3);
        snprintf(name, sizeof name, "divisor %d, nothing in the record", by);
        expect_and_free(name, &s, 0, 0);
    }
}

static void traces(void)
{
    /* Pair (0,1) twice, (1,0) once with weight -2, the others absent. */
    static const oracle_trace list[] = {{0, 1, 1}, {1, 0, -2}, {0, 1, 0.5}};
    static const double kept[2][2] = {{0, 401 + 0.5 * 2001}, {-2 * 1001, 0}};
    for (int keep = 0; keep <= 1; keep++) {
        scenario s;
        oracle_value *reference;
        scenario_init(&s);
        scenario_transmits(&s, 2);
        scenario_elements(&s, 2);
        s.o.trace = list;
        s.o.traces = 3;
        s.o.keep_transmit = s.o.keep_receive = keep != 0;
        scenario_compact(&s);
        scenario_data(&s);
        for (int64_t k = 0; k < 3; k++)
            for (int64_t n = 0; n < s.o.samples; n++)
                put(&s, k * s.o.samples + n, (double)(n + 1) + (k == 1 ? 600 : k == 2 ? 1600 : 0), 0);
        if (!keep) {
            expect_and_free("traces, repeated and absent", &s, 401 + 0.5 * 2001 - 2 * 1001, 0);
            continue;
        }
        reference = scenario_reference(&s);
        for (int i = 0, mine = conformance_in_share(); mine && i < edge_count; i++) {
            test_begin("traces, kept apart, on %s", edge_targets[i].name);
            for (int j = 0; j < 4; j++)
                EXPECT_NEAR(reference[j].re, kept[j / 2][j % 2], 1e-9);
            scenario_check(&edge_targets[i], &s, reference, 2);
            test_end();
        }
        scenario_free(&s);
    }
}

static void layout(void)
{
    scenario s;
    /* The record backwards. */
    scenario_init(&s);
    scenario_compact(&s);
    s.o.sample_stride = -1;
    s.data_strided = true;
    scenario_data(&s);
    for (int64_t n = 0; n < s.o.samples; n++)
        put(&s, scenario_index(&s, 0, 0, 0, n), (double)n, 0);
    expect_and_free("sample stride -1", &s, 400, 0);

    /* One number is a record of 4.2e9 samples, read at s = 4e9. */
    scenario_init(&s);
    s.o.samples = INT64_C(4200000000);
    scenario_transmits(&s, 1)->start_time_s = -200 + 20e-6;
    scenario_compact(&s);
    s.o.sample_stride = s.o.receive_stride = s.o.transmit_stride = s.o.frame_stride = 0;
    s.data_strided = true;
    scenario_data(&s);
    put(&s, 0, 7, 0);
    expect_and_free("4.2e9 samples of stride 0, read at 4e9", &s, 7, 0);

    /* All strides 0: every pair reads the same number. */
    scenario_init(&s);
    scenario_transmits(&s, 3);
    scenario_elements(&s, 5);
    s.o.first = s.o.sample_stride = s.o.receive_stride = s.o.transmit_stride = s.o.frame_stride = 0;
    s.data_strided = true;
    scenario_data(&s);
    put(&s, 0, 7, 0);
    expect_and_free("all strides 0: 105", &s, 105, 0);
}

/* ---- sizes and extremes ---- */

static void many_terms(void)
{
    static const int counts[] = {4095, 4096, 4097, 20000};
    scenario s;
    for (int k = 0; k < 4; k++) {
        char name[64];
        scenario_init(&s);
        s.o.samples = 4; /* a small record, repeated for all */
        scenario_elements(&s, counts[k]);
        scenario_point(&s, 0, 0, 0);
        s.o.first = s.o.transmit_stride = s.o.receive_stride = s.o.frame_stride = 0;
        s.o.sample_stride = 1;
        s.data_strided = true;
        scenario_data(&s);
        for (int64_t n = 0; n < 4; n++)
            put(&s, n, 1, 0);
        snprintf(name, sizeof name, "%d terms of 1", counts[k]);
        expect_and_free(name, &s, counts[k], 0);
    }
    /* 0.1f added a million times to a float gives 100958. */
    scenario_init(&s);
    s.o.samples = 4;
    scenario_elements(&s, 1000);
    scenario_transmits(&s, 1000);
    scenario_point(&s, 0, 0, 0);
    s.o.first = s.o.transmit_stride = s.o.receive_stride = s.o.frame_stride = 0;
    s.o.sample_stride = 1;
    s.data_strided = true;
    scenario_data(&s);
    for (int64_t n = 0; n < 4; n++)
        put(&s, n, (double)0.1f, 0);
    for (int i = 0, mine = conformance_in_share(); mine && i < edge_count; i++) {
        test_begin("a million terms of 0.1 on %s", edge_targets[i].name);
        scenario_expect(&edge_targets[i], &s, 1e6 * (double)0.1f, 0, 2); /* blocks: 2e-5 */
        test_end();
    }
    scenario_free(&s);
}

static void phases(void)
{
    scenario s;
    oracle_transmit *transmit;
    /* 400 us of depth at 15 MHz, and a quarter turn. */
    scenario_init(&s);
    s.o.type = ORACLE_CF32;
    s.o.demodulation_frequency_hz = 15e6;
    transmit = scenario_transmits(&s, 1);
    transmit->wave = ORACLE_ONE_WAY;
    transmit->start_time_s = 390e-6;
    scenario_point(&s, 0, 0, 1500 * 6000.25 / 15e6);
    fill(&s, 1);
    expect_and_free("6000.25 turns of phase: j", &s, 0, 1);

    /* Time zero 0.1 s ago: 1.5e6 turns more. */
    scenario_init(&s);
    s.o.type = ORACLE_CF32;
    s.o.demodulation_frequency_hz = 15e6;
    transmit = scenario_transmits(&s, 1);
    transmit->wave = ORACLE_ONE_WAY;
    transmit->start_time_s = transmit->delay_s = 0.1;
    scenario_point(&s, 0, 0, 1500 * 300.75 / 15e6);
    fill(&s, 1);
    expect_and_free("1500300.75 turns of phase: -j", &s, 0, -1);

    /* The phase of a clamped sample is that of the true time. */
    scenario_init(&s);
    s.o.type = ORACLE_CI16;
    s.o.clamp = true;
    s.o.samples = 10;
    s.o.demodulation_frequency_hz = 5e6;
    scenario_transmits(&s, 1)->wave = ORACLE_ONE_WAY;
    scenario_point(&s, 0, 0, 20.05e-6 * 1500);
    fill(&s, 100);
    expect_and_free("phase of a clamped sample: 100 j", &s, 0, 100);

    /* Nearest takes sample 301 at s = 300.6, the phase stays that of 300.6 (0.15 turn at 5 MHz). */
    scenario_init(&s);
    s.o.type = ORACLE_CF32;
    s.o.interpolation = ORACLE_NEAREST;
    s.o.demodulation_frequency_hz = 5e6;
    scenario_transmits(&s, 1)->wave = ORACLE_ONE_WAY;
    scenario_point(&s, 0, 0, 300.6 * sample_m);
    ramp_from_1(&s);
    expect_and_free("nearest, phase of the true time", &s, 302 * cos(0.3 * 3.14159265358979),
                    302 * sin(0.3 * 3.14159265358979));
}

static void extremes(void)
{
    /* Arrival times that are finite but absurd contribute 0, or the end of the record when clamped. */
    static const double times[] = {1e3, 1e30, -1e30, 1e290, -1e290, 1e-300};
    for (int k = 0; k < 12; k++) {
        double time = times[k % 6];
        scenario s;
        char name[96];
        scenario_init(&s);
        scenario_elements(&s, 1);
        scenario_point(&s, 0, 0, 0);
        s.o.samples = 100;
        s.o.transmit_arrival_s = &time;
        s.o.clamp = k >= 6;
        ramp_from_1(&s);
        snprintf(name, sizeof name, "arrival time %g, %s", time, s.o.clamp ? "clamp" : "zero");
        expect_and_free(name, &s, s.o.clamp ? (time > 1 ? 100 : 1) : fabs(time) < 1 ? 1 : 0, 0);
    }
    {
        /* int16 and its offset at full scale; 12-bit unsigned. */
        static const struct {
            oracle_type type;
            double offset, sample, value;
        } cases[] = {{ORACLE_I16, 0, -32768, -32768}, {ORACLE_U16, 32768, 0, -32768}, {ORACLE_U16, 32768, 65535, 32767},
                     {ORACLE_U16, 2048, 4095, 2047},  {ORACLE_I8, 0, -128, -128},      {ORACLE_U8, 128, 0, -128},
                     {ORACLE_U8, 0, 255, 255},        {ORACLE_F16, 0, 65504, 65504},   {ORACLE_F16, 0, 0x1p-24, 0x1p-24}};
        for (int k = 0; k < 9 * 5; k++) {
            scenario s;
            char name[96];
            scenario_init(&s);
            s.o.type = cases[k / 5].type;
            s.o.offset = cases[k / 5].offset;
            s.o.interpolation = (oracle_interpolation)(k % 5);
            fill(&s, cases[k / 5].sample);
            snprintf(name, sizeof name, "type %d, sample %g less %g, %s", (int)s.o.type, cases[k / 5].sample, s.o.offset,
                     interpolation_names[k % 5]);
            /* Within a millionth of the value even where it is a subnormal half. */
            for (int i = 0, mine = conformance_in_share(); mine && i < edge_count; i++) {
                test_begin("%s on %s", name, edge_targets[i].name);
                scenario_expect(&edge_targets[i], &s, cases[k / 5].value, 0, 1e-6 * fabs(cases[k / 5].value));
                test_end();
            }
            scenario_free(&s);
        }
    }
    /* 1 + 2^-40 is 1 as a float, and itself in double precision. */
    for (int k = 0; k < 2; k++) {
        scenario s;
        scenario_init(&s);
        s.o.type = ORACLE_F64;
        s.precision = k == 0 ? DAS_PRECISION_EXACT : DAS_PRECISION_DOUBLE;
        s.o.double_precision = k == 1;
        s.image_type = DAS_TYPE_F64;
        fill(&s, 1 + 0x1p-40);
        for (int i = 0, mine = conformance_in_share(); mine && i < edge_count; i++) {
            if (k == 1 && !edge_targets[i].has_double)
                continue;
            test_begin("double data, %s precision on %s", k == 0 ? "exact" : "double", edge_targets[i].name);
            scenario_expect(&edge_targets[i], &s, k == 0 ? 1 : 1 + 0x1p-40, 0, 1e-14);
            test_end();
        }
        scenario_free(&s);
    }
}

/* A pixel on an element, and on the element that fires. */
static void on_elements(void)
{
    scenario s;
    oracle_transmit *transmit;
    scenario_init(&s);
    transmit = scenario_transmits(&s, 1);
    transmit->wave = ORACLE_ELEMENT;
    transmit->vector[2] = 0;
    scenario_elements(&s, 2)[1].position[0] = 100 * sample_m;
    scenario_point(&s, 0, 0, 0);
    ramp_from_1(&s);
    expect_and_free("pixel on the element that fires and receives: 1 + 101", &s, 102, 0);
}

void conformance_edges(const conformance_target *targets, int count)
{
    edge_targets = targets;
    edge_count = count;
    aperture_edges();
    focal_plane();
    record_edges();
    not_looked_at();
    divisors();
    traces();
    layout();
    many_terms();
    phases();
    extremes();
    on_elements();
}
