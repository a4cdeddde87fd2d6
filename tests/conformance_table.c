/* The cases that must come out within 1e-6, each with its value worked out by hand, not by the oracle. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "conformance.h"

static const conformance_target *table_targets;
static int table_count;

/* Runs on all targets and compares the first output; then asks the oracle too, to keep both honest. */
static void expect(const char *name, scenario *s, double re, double im)
{
    double size = hypot(re, im), allowed = 1e-6 * (size > 0 ? size : 1);
    oracle_value *reference;
    if (!conformance_in_share()) {
        scenario_free(s);
        return;
    }
    for (int i = 0; i < table_count; i++) {
        test_begin("%s on %s", name, table_targets[i].name);
        scenario_expect(&table_targets[i], s, re, im, allowed);
        test_end();
    }
    test_begin("%s by the oracle", name);
    reference = scenario_reference(s);
    EXPECT_MSG(hypot(reference[0].re - re, reference[0].im - im) <= allowed, "%.9g %+.9gi, expected %.9g %+.9gi",
               reference[0].re, reference[0].im, re, im);
    EXPECT(reference[0].edges == 0);
    test_end();
    scenario_free(s);
}

static void ramp(scenario *s)
{
    scenario_compact(s);
    scenario_data(s);
    for (int64_t t = 0; t < s->o.transmits; t++)
        for (int64_t r = 0; r < s->o.receives; r++)
            for (int64_t n = 0; n < s->o.samples; n++)
                ((float *)s->data)[scenario_index(s, 0, t, r, n)] = (float)n;
}

static void constant(scenario *s, float value)
{
    scenario_compact(s);
    scenario_data(s);
    for (int64_t i = 0; i < s->data_elements; i++)
        ((float *)s->data)[i] = value;
}

static void plane_wave_and_times(void)
{
    scenario s;
    oracle_transmit *transmit;

    scenario_init(&s);
    ramp(&s);
    expect("pixel at 15 mm, plane wave: 400", &s, 400, 0);

    scenario_init(&s);
    scenario_transmits(&s, 1)->wave = ORACLE_ONE_WAY;
    ramp(&s);
    expect("one-way: 200", &s, 200, 0);

    scenario_init(&s);
    scenario_transmits(&s, 1)->start_time_s = 5e-6;
    ramp(&s);
    expect("start time +5 us: 300", &s, 300, 0);

    scenario_init(&s);
    scenario_transmits(&s, 1)->start_time_s = -5e-6;
    ramp(&s);
    expect("start time -5 us: 500", &s, 500, 0);

    scenario_init(&s);
    transmit = scenario_transmits(&s, 2);
    transmit[1].start_time_s = 5e-6;
    ramp(&s);
    expect("transmits starting at 0 and 5 us: 700", &s, 700, 0);

    scenario_init(&s);
    s.o.sampling_frequency_hz = 10e6;
    scenario_transmits(&s, 1)->start_time_s = 5e-6;
    ramp(&s);
    expect("10 MHz, start time 5 us: 150", &s, 150, 0);
}

static void record_end(void)
{
    static const struct {
        int samples;
        double value;
        const char *name;
    } cases[] = {{401, 400, "N = 401: 400"}, {400, 0, "N = 400: 0"}, {399, 0, "N = 399: 0"}};
    scenario s;
    for (int k = 0; k < 3; k++) {
        oracle_element *element;
        scenario_init(&s);
        s.o.samples = cases[k].samples;
        element = scenario_elements(&s, 2);
        element[1].weight = 0;
        ramp(&s);
        for (int64_t n = 0; n < s.o.samples; n++)
            ((float *)s.data)[scenario_index(&s, 0, 0, 1, n)] = 1e6f;
        expect(cases[k].name, &s, cases[k].value, 0);
    }

    scenario_init(&s);
    s.o.samples = 426;
    scenario_point(&s, 0, 0, 15.9375e-3);
    ramp(&s);
    expect("z = 15.9375 mm, N = 426: 425", &s, 425, 0);

    scenario_init(&s);
    s.o.interpolation = ORACLE_NEAREST;
    ramp(&s);
    expect("nearest at 15 mm: 400", &s, 400, 0);

    scenario_init(&s);
    scenario_point(&s, 0, 0, 15.009375e-3);
    constant(&s, 0);
    ((float *)s.data)[400] = 10;
    ((float *)s.data)[401] = 20;
    expect("between samples of 10 and 20: 12.5", &s, 12.5, 0);
}

static void waves(void)
{
    static const double focus_z[] = {10e-3, 20e-3, 30e-3};
    scenario s;
    oracle_transmit *transmit;

    for (int sign = 1; sign >= -1; sign -= 2) {
        scenario_init(&s);
        scenario_elements(&s, 1)->position[0] = 10e-3;
        transmit = scenario_transmits(&s, 1);
        transmit->vector[0] = 0.6 * sign;
        transmit->vector[2] = 0.8;
        s.use_angle = true;
        scenario_point(&s, 10e-3, 0, 20e-3);
        ramp(&s);
        expect(sign > 0 ? "plane wave sin a = 0.6: 560" : "plane wave sin a = -0.6: 400", &s, sign > 0 ? 560 : 400, 0);
    }

    /* The one-way part is z / c, so that the sum of both is 2 z. */
    for (int k = 0; k < 3; k++) {
        char name[64];
        scenario_init(&s);
        transmit = scenario_transmits(&s, 1);
        transmit->wave = ORACLE_FOCUSED;
        transmit->vector[2] = 20e-3;
        scenario_point(&s, 0, 0, focus_z[k]);
        ramp(&s);
        snprintf(name, sizeof name, "focus at 20 mm, pixel at %g mm", focus_z[k] * 1e3);
        expect(name, &s, 2 * focus_z[k] / 75e-6, 0);
    }

    scenario_init(&s);
    scenario_elements(&s, 1)->position[0] = 9e-3;
    scenario_transmits(&s, 1)->wave = ORACLE_ONE_WAY;
    scenario_point(&s, 0, 0, 12e-3);
    ramp(&s);
    expect("element at 9 mm, pixel at 12 mm, one-way: 200", &s, 200, 0);

    /* A virtual source 5 mm behind the origin, pixel at 15 mm on the axis: (20 - 5 + 15) mm. */
    scenario_init(&s);
    transmit = scenario_transmits(&s, 1);
    transmit->wave = ORACLE_DIVERGING;
    transmit->vector[2] = -5e-3;
    ramp(&s);
    expect("diverging wave, source at -5 mm: 400", &s, 400, 0);

    /* The element at x = 9 mm fires, the one at the origin receives: (15 + 12) mm. */
    scenario_init(&s);
    transmit = scenario_transmits(&s, 1);
    transmit->wave = ORACLE_ELEMENT;
    transmit->vector[0] = 9e-3;
    transmit->vector[2] = 0;
    scenario_point(&s, 0, 0, 12e-3);
    ramp(&s);
    expect("element transmit at 9 mm: 360", &s, 360, 0);

    /* Origin at z = 3 mm: the front is 12 mm past it. */
    scenario_init(&s);
    scenario_transmits(&s, 1)->origin[2] = 3e-3;
    ramp(&s);
    expect("plane wave with origin at 3 mm: 360", &s, 360, 0);

    /* 4 samples at the transmit and 7 at the element. */
    scenario_init(&s);
    scenario_transmits(&s, 1)->delay_s = 0.2e-6;
    scenario_elements(&s, 1)->delay_s = 0.35e-6;
    ramp(&s);
    expect("delays of 0.2 us and 0.35 us: 411", &s, 411, 0);
}

static void aperture(void)
{
    static const double x_mm[] = {0, 2.5, 4.9, 5.1, 10};
    scenario s;
    oracle_element *element;

    scenario_init(&s);
    element = scenario_elements(&s, 5);
    for (int r = 0; r < 5; r++)
        element[r].position[0] = x_mm[r] * 1e-3;
    s.o.f_number = 1.5;
    constant(&s, 1);
    expect("f-number 1.5, three of five elements: 3", &s, 3, 0);

    scenario_init(&s);
    scenario_point(&s, 0, 0, 0);
    s.o.f_number = 1;
    s.o.window = ORACLE_HANN;
    constant(&s, 1);
    expect("pixel on an element, hann, f-number 1: 0", &s, 0, 0);

    /* The aperture at z = 15 mm and F = 1.5 is 5 mm to each side; the element at 2.5 mm has q = 1/2. */
    for (int k = 0; k < 5; k++) {
        static const struct {
            oracle_window window;
            double parameter, value;
            const char *name;
        } windows[] = {
            {ORACLE_RECT, 0, 1, "rect at q = 1/2"},
            {ORACLE_HANN, 0, 0.5, "hann at q = 1/2"},
            {ORACLE_HAMMING, 0, 0.54, "hamming at q = 1/2"},
            {ORACLE_TUKEY, 0.75, 0.75, "tukey 0.75 at q = 1/2"}, /* cos(pi/3) = 1/2 */
            {ORACLE_WINDOW_TABLE, 0, 0.65, "table at q = 1/2"},  /* halfway from 1 to 0.3 */
        };
        static const double table[] = {0.2, 1, 0.3, 0.1};
        scenario_init(&s);
        scenario_elements(&s, 1)->position[0] = 2.5e-3;
        s.o.f_number = 1.5;
        s.o.window = windows[k].window;
        s.o.tukey = windows[k].parameter;
        s.o.window_value = table;
        s.o.window_values = 4;
        constant(&s, 1);
        expect(windows[k].name, &s, windows[k].value, 0);
    }

    /* The element looks along +x from 10 mm to the left: h = 10 mm, l = 15 mm; wide for F = 0.3, outside for F = 0.4. */
    for (int k = 0; k < 2; k++) {
        scenario_init(&s);
        element = scenario_elements(&s, 1);
        element->position[0] = -10e-3;
        element->normal[0] = 2; /* need not be of length 1 */
        element->normal[2] = 0;
        s.o.f_number = k == 0 ? 0.3 : 0.4;
        constant(&s, 1);
        expect(k == 0 ? "element looking along x, F 0.3: 1" : "element looking along x, F 0.4: 0", &s, k == 0, 0);
    }
}

static void iq(void)
{
    scenario s;
    for (int k = 0; k < 2; k++) {
        oracle_transmit *transmit;
        scenario_init(&s);
        s.o.type = ORACLE_CF32;
        s.o.demodulation_frequency_hz = 5e6;
        s.o.phase_at_sample_0 = k == 1;
        transmit = scenario_transmits(&s, 1);
        transmit->wave = ORACLE_ONE_WAY;
        transmit->start_time_s = 5.05e-6;
        scenario_point(&s, 0, 0, 20.05e-6 * 1500);
        scenario_compact(&s);
        scenario_data(&s);
        for (int64_t n = 0; n < s.o.samples; n++) {
            ((float *)s.data)[2 * n] = 1;
            ((float *)s.data)[2 * n + 1] = 0;
        }
        expect(k == 0 ? "IQ, tau = 20.05 us, start 5.05 us: j" : "IQ, phase referenced to sample 0: 1", &s, k == 1,
               k == 0);
    }
}

static void sums(void)
{
    scenario s;
    oracle_element *element;
    oracle_transmit *transmit;

    scenario_init(&s);
    scenario_transmits(&s, 2);
    scenario_elements(&s, 3);
    scenario_compact(&s);
    scenario_data(&s);
    for (int64_t t = 0; t < 2; t++)
        for (int64_t r = 0; r < 3; r++)
            for (int64_t n = 0; n < s.o.samples; n++)
                ((float *)s.data)[scenario_index(&s, 0, t, r, n)] = (float)(10000 * t + 1000 * r + n);
    expect("2 transmits and 3 elements told apart: 38400", &s, 38400, 0);

    scenario_init(&s);
    s.o.type = ORACLE_I16;
    scenario_elements(&s, 128);
    scenario_compact(&s);
    scenario_data(&s);
    memset(s.data, 0, s.data_bytes);
    for (int64_t r = 0; r < 128; r++)
        ((int16_t *)s.data)[scenario_index(&s, 0, 0, r, 400)] = 32767;
    expect("128 elements of 32767: 4194176", &s, 4194176, 0);

    scenario_init(&s);
    element = scenario_elements(&s, 3);
    element[1].weight = 0;
    ramp(&s);
    for (int64_t n = 0; n < s.o.samples; n++)
        ((float *)s.data)[scenario_index(&s, 0, 0, 1, n)] = NAN;
    expect("weight 0 on a channel full of NaN: 800", &s, 800, 0);

    scenario_init(&s);
    s.o.sampling_frequency_hz = 100e6;
    s.o.samples = 2500;
    transmit = scenario_transmits(&s, 1);
    transmit->start_time_s = transmit->delay_s = 0.1;
    ramp(&s);
    expect("start time and delay of 0.1 s at 100 MHz: 2000", &s, 2000, 0);
}

/* A call must overwrite whatever the image held, and do so again. */
static void overwrites(void)
{
    scenario s;
    oracle_value *reference;
    scenario_init(&s);
    s.o.grid.count[0] = 5;
    s.o.grid.step[0][0] = 1e-3;
    s.o.grid.count[2] = 4;
    s.o.grid.step[2][2] = 2e-3;
    ramp(&s);
    reference = scenario_reference(&s);
    for (int i = 0, mine = conformance_in_share(); mine && i < table_count; i++)
        for (scenario_way way = WAY_HOST; way <= WAY_NO_QUEUE; way++) {
            s.way = way;
            test_begin("image full of NaN, called twice, way %d on %s", (int)way, table_targets[i].name);
            scenario_check(&table_targets[i], &s, reference, 2);
            test_end();
        }
    scenario_free(&s);
}

void conformance_table(const conformance_target *targets, int count)
{
    table_targets = targets;
    table_count = count;
    plane_wave_and_times();
    record_end();
    waves();
    aperture();
    iq();
    sums();
    overwrites();
}
