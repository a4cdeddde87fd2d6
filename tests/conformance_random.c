/* Random scenarios over the cross product of all features, for every data type and interpolation. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance.h"

/* The geometry is drawn in sample lengths c / fs, so that every sound speed and frequency gets records of use. */
typedef struct {
    scenario *s;
    test_rng *rng;
    double unit_m, unit_s; /* one sample as a length and as a time */
    double depth;          /* what the record spans, in samples of one-way path */
} draw;

static bool chance(draw *d, double probability)
{
    return test_rng_chance(d->rng, probability);
}

static double uniform(draw *d, double low, double high)
{
    return test_rng_uniform(d->rng, low, high);
}

static int integer(draw *d, int low, int high)
{
    return test_rng_int(d->rng, low, high);
}

static double positive_or_signed_weight(draw *d, bool positive)
{
    double size = uniform(d, 0.3, 1.5);
    return positive || chance(d, 0.6) ? size : -size;
}

/* General: anything. Full matrix: one array fires and receives. Ensemble: few waves, an array, many frames. The latter
 * two are often plain, as fast paths want it. */
typedef enum { GENERAL, FULL_MATRIX, ENSEMBLE } profile;

static void draw_elements(draw *d, bool linear)
{
    scenario *s = d->s;
    bool matrix = linear && chance(d, 0.15);
    int side = integer(d, 2, 5), count = matrix ? side * side : linear ? integer(d, 4, 24) : integer(d, 1, 9);
    double pitch = uniform(d, 2, 12), jitter = linear ? 0 : 4;
    oracle_element *element = scenario_elements(s, count);
    bool normals = !linear && chance(d, 0.3), weights = chance(d, 0.3), delays = chance(d, 0.3);
    bool plane_y = !linear && chance(d, 0.4);
    bool positive = s->o.normalization == ORACLE_BY_WEIGHTS;
    for (int i = 0; i < count; i++) {
        element[i].position[0] = d->unit_m * ((i - (count - 1) / 2.0) * pitch + uniform(d, -jitter, jitter));
        element[i].position[1] = plane_y ? d->unit_m * uniform(d, -40, 40) : 0;
        element[i].position[2] = linear ? 0 : d->unit_m * uniform(d, -5, 5);
        if (matrix) {
            element[i].position[0] = d->unit_m * pitch * (i % side - (side - 1) / 2.0);
            element[i].position[1] = d->unit_m * pitch * (i / side - (side - 1) / 2.0);
        }
        if (normals) {
            element[i].normal[0] = uniform(d, -0.6, 0.6);
            element[i].normal[1] = uniform(d, -0.6, 0.6);
            element[i].normal[2] = uniform(d, 0.4, 3);
        }
        if (weights)
            element[i].weight = chance(d, 0.2) ? 0 : positive_or_signed_weight(d, positive);
        if (delays)
            element[i].delay_s = d->unit_s * uniform(d, -8, 8);
    }
}

static void draw_transmits(draw *d, profile kind, bool plain)
{
    scenario *s = d->s;
    bool full_matrix = kind == FULL_MATRIX;
    int count = full_matrix ? (int)s->o.receives : kind == ENSEMBLE ? integer(d, 1, 3) : integer(d, 1, 6);
    oracle_transmit *transmit = scenario_transmits(s, count);
    bool mixed = kind == GENERAL && chance(d, 0.4), weights = kind == GENERAL && chance(d, 0.3);
    bool delays = !plain && chance(d, 0.3), starts = !plain && chance(d, 0.4), origins = chance(d, 0.4);
    bool positive = s->o.normalization == ORACLE_BY_WEIGHTS;
    int wave = kind == ENSEMBLE && chance(d, 0.7) ? ORACLE_PLANE : integer(d, 0, 4);
    /* A huge time of sample 0 that a delay takes back again: lost in single precision. */
    double huge = chance(d, 0.1) && s->precision != DAS_PRECISION_DOUBLE ? 0.1 : 0, start = chance(d, 0.5) ? d->unit_s * uniform(d, -0.2, 0.3) * d->depth : 0;
    s->all_elements = full_matrix;
    for (int i = 0; i < count; i++) {
        double *v = transmit[i].vector;
        if (mixed)
            wave = integer(d, 0, 4);
        transmit[i].wave = full_matrix ? ORACLE_ELEMENT : (oracle_wave)wave;
        if (origins && !full_matrix)
            for (int k = 0; k < 3; k++)
                transmit[i].origin[k] = d->unit_m * uniform(d, -6, 6);
        switch (transmit[i].wave) {
        case ORACLE_ELEMENT:
            for (int k = 0; k < 3; k++)
                v[k] = full_matrix ? s->o.element[i].position[k] : d->unit_m * uniform(d, -30, 30);
            break;
        case ORACLE_PLANE:
            v[0] = uniform(d, -0.6, 0.6);
            v[1] = chance(d, 0.5) ? uniform(d, -0.4, 0.4) : 0;
            v[2] = uniform(d, 0.5, 2);
            break;
        case ORACLE_DIVERGING:
            v[0] = d->unit_m * uniform(d, -30, 30);
            v[1] = d->unit_m * uniform(d, -5, 5);
            v[2] = d->unit_m * uniform(d, -60, -8);
            break;
        case ORACLE_FOCUSED:
            v[0] = d->unit_m * uniform(d, -30, 30);
            v[1] = d->unit_m * uniform(d, -5, 5);
            v[2] = d->unit_m * uniform(d, 0.1, 0.6) * d->depth;
            break;
        case ORACLE_ONE_WAY:
            v[2] = 0;
            break;
        }
        transmit[i].start_time_s = huge + (starts ? d->unit_s * uniform(d, -0.2, 0.3) * d->depth : start);
        transmit[i].delay_s = huge + (delays ? d->unit_s * uniform(d, -8, 8) : 0);
        if (weights)
            transmit[i].weight = chance(d, 0.2) ? 0 : positive_or_signed_weight(d, positive);
    }
    /* The same both ways keeps the pairs symmetric. */
    for (int i = 0; full_matrix && plain && i < count; i++) {
        transmit[i].weight = s->o.element[i].weight;
        transmit[i].delay_s = huge + s->o.element[i].delay_s;
    }
}

/* Takes away one thing that folding reciprocal pairs needs. */
static void spoil_symmetry(draw *d)
{
    scenario *s = d->s;
    int64_t count = s->o.transmits, one = integer(d, 0, (int)count - 1), other = (one + 1) % count;
    oracle_transmit *transmit = scenario_alloc(s, count, sizeof *transmit);
    memcpy(transmit, s->o.transmit, (size_t)count * sizeof *transmit);
    s->o.transmit = transmit;
    switch (integer(d, 0, 5)) {
    case 0:
        transmit[one].start_time_s += d->unit_s * uniform(d, -5, 5);
        break;
    case 1:
        transmit[one].delay_s += d->unit_s * uniform(d, -5, 5);
        break;
    case 2:
        transmit[one].weight *= -0.5;
        break;
    case 3:
        transmit[one].vector[0] += d->unit_m;
        s->all_elements = false;
        break;
    case 4: {
        oracle_transmit swap = transmit[one];
        transmit[one] = transmit[other];
        transmit[other] = swap;
        s->all_elements = false;
        break;
    }
    default: {
        double *weight = scenario_alloc(s, count * count, sizeof *weight);
        for (int64_t i = 0; i < count * count; i++)
            weight[i] = 1;
        weight[one * count + other] = chance(d, 0.5) ? 0 : 2;
        s->o.pair_weight = weight;
        break;
    }
    }
}

static void draw_grid(draw *d, bool regular)
{
    scenario *s = d->s;
    oracle_grid *g = &s->o.grid;
    double deep = d->depth * 1.15, wide = d->depth * 0.5;
    /* Few enough points for the oracle, enough for blocks of any vector width. */
    int widest = (int)fmin(60, fmax(20, sqrt(2.5e5 / (double)(s->o.transmits * s->o.receives))));
    int kind = regular ? 0 : integer(d, 0, 2);
    g->kind = (oracle_grid_kind)kind;
    for (int i = 0; i < 3; i++)
        g->count[i] = 1;
    if (g->kind == ORACLE_POINTS) {
        int count = integer(d, 1, 150);
        double(*point)[3] = scenario_alloc(s, count, sizeof *point);
        for (int i = 0; i < count; i++) {
            point[i][0] = d->unit_m * uniform(d, -wide, wide);
            point[i][1] = d->unit_m * uniform(d, -5, 5);
            point[i][2] = d->unit_m * uniform(d, 1, deep);
        }
        g->point = (const double(*)[3])point;
        g->count[0] = count;
    } else if (g->kind == ORACLE_POLAR) {
        g->count[0] = integer(d, 1, 14);
        g->count[1] = chance(d, 0.4) ? integer(d, 2, 4) : 1;
        g->count[2] = integer(d, 1, 30);
        for (int axis = 0; axis < 3; axis++) {
            double *value = scenario_alloc(s, g->count[axis], sizeof *value);
            for (int64_t i = 0; i < g->count[axis]; i++)
                value[i] = axis == 2           ? d->unit_m * uniform(d, 1, deep)
                           : g->count[axis] == 1 ? 0
                                                 : uniform(d, -0.7, 0.7);
            g->axis[axis] = value;
        }
        for (int i = 0; i < 3; i++)
            g->origin[i] = d->unit_m * uniform(d, -5, 5);
    } else {
        /* Which space axis each grid axis runs along; sometimes slanted. */
        int order[3] = {0, 1, 2};
        bool slanted = !regular && chance(d, 0.3);
        int dimensions = regular ? 2 : integer(d, 1, 3);
        for (int i = 2; i > 0; i--) {
            int j = integer(d, 0, i), t = order[i];
            order[i] = order[j];
            order[j] = t;
        }
        g->origin[0] = d->unit_m * uniform(d, -wide, -wide / 4);
        g->origin[1] = d->unit_m * (dimensions == 3 ? -4 : 0);
        g->origin[2] = d->unit_m * uniform(d, 1, d->depth / 3);
        for (int axis = 0; axis < 3; axis++) {
            int along = order[axis], most = regular ? widest : dimensions == 3 ? 9 : 24;
            if (regular)
                along = axis == 0 ? order[0] % 2 * 2 : axis == 1 ? 2 - order[0] % 2 * 2 : 1; /* x, z or z, x */
            if (along == 1 ? dimensions == 3 : along == 2 || dimensions > 1)
                g->count[axis] = integer(d, regular ? 17 : 1, most);
            g->step[axis][along] = d->unit_m * (along == 1   ? 3
                                                : along == 0 ? 1.5 * wide / (double)g->count[axis]
                                                             : deep / (double)g->count[axis]);
            if (regular && chance(d, 0.5)) /* fine enough that neighbours read neighbouring samples */
                g->step[axis][along] = d->unit_m * uniform(d, 0.2, 0.9);
            if (slanted)
                for (int i = 0; i < 3; i++)
                    g->step[axis][i] += d->unit_m * uniform(d, -0.6, 0.6);
            if (g->count[axis] == 1 && chance(d, 0.5)) /* not used */
                g->step[axis][0] = 1e3;
        }
    }
}

static void draw_aperture(draw *d)
{
    scenario *s = d->s;
    if (!chance(d, 0.5))
        return;
    s->o.f_number = uniform(d, 0.4, 2.5);
    s->o.window = (oracle_window)integer(d, 0, 4);
    if (s->o.window == ORACLE_TUKEY)
        s->o.tukey = chance(d, 0.2) ? (double)integer(d, 0, 1) : uniform(d, 0, 1);
    if (s->o.window == ORACLE_WINDOW_TABLE) {
        int count = integer(d, 2, 40);
        double *value = scenario_alloc(s, count, sizeof *value);
        for (int i = 0; i < count; i++)
            value[i] = uniform(d, 0.1, 1.2);
        s->o.window_value = value;
        s->o.window_values = count;
    }
}

static double *draw_times(draw *d, int64_t rows, double low, double high)
{
    int64_t points = oracle_points(&d->s->o);
    double *time = scenario_alloc(d->s, rows * points, sizeof *time);
    for (int64_t i = 0; i < rows * points; i++)
        time[i] = chance(d, 0.1) ? (double)NAN : d->unit_s * uniform(d, low, high);
    return time;
}

static float *draw_weights(draw *d, int64_t rows)
{
    int64_t points = oracle_points(&d->s->o);
    float *weight = scenario_alloc(d->s, rows * points, sizeof *weight);
    bool positive = d->s->o.normalization == ORACLE_BY_WEIGHTS;
    for (int64_t i = 0; i < rows * points; i++)
        weight[i] = chance(d, 0.15) ? 0 : (float)positive_or_signed_weight(d, positive);
    return weight;
}

static void draw_tables(draw *d)
{
    scenario *s = d->s;
    if (chance(d, 0.15))
        s->o.transmit_arrival_s = draw_times(d, s->o.transmits, -5, d->depth * 1.1);
    if (chance(d, 0.15))
        s->o.receive_arrival_s = draw_times(d, s->o.receives, -5, d->depth * 1.1);
    if (chance(d, 0.15))
        s->o.transmit_weight = draw_weights(d, s->o.transmits);
    if (chance(d, 0.15))
        s->o.receive_weight = draw_weights(d, s->o.receives);
}

static void draw_pairs(draw *d)
{
    scenario *s = d->s;
    bool positive = s->o.normalization == ORACLE_BY_WEIGHTS;
    if (chance(d, 0.2)) {
        int count = integer(d, 1, 30);
        bool ones = chance(d, 0.3);
        oracle_trace *trace = scenario_alloc(s, count, sizeof *trace);
        for (int k = 0; k < count; k++) {
            trace[k].transmit = integer(d, 0, (int)s->o.transmits - 1);
            trace[k].receive = integer(d, 0, (int)s->o.receives - 1);
            trace[k].weight = ones ? 1 : chance(d, 0.15) ? 0 : positive_or_signed_weight(d, positive);
            if (k > 0 && chance(d, 0.2)) { /* repeated pairs add */
                trace[k].transmit = trace[k - 1].transmit;
                trace[k].receive = trace[k - 1].receive;
            }
        }
        s->o.trace = trace;
        s->o.traces = count;
    } else if (chance(d, 0.15)) {
        int64_t count = s->o.transmits * s->o.receives;
        double *weight = scenario_alloc(s, count, sizeof *weight);
        bool symmetric = s->all_elements && chance(d, 0.6);
        for (int64_t i = 0; i < count; i++)
            weight[i] = chance(d, 0.2) ? 0 : positive_or_signed_weight(d, positive);
        for (int64_t t = 0; symmetric && t < s->o.transmits; t++)
            for (int64_t r = 0; r < t; r++)
                weight[t * s->o.receives + r] = weight[r * s->o.receives + t];
        s->o.pair_weight = weight;
    }
}

/* A permutation of axes with gaps and signs. Extents of `shared` axes (bits) may get stride 0. */
static void draw_strides(draw *d, int axes, const int64_t *extent, int64_t *stride, unsigned shared)
{
    int order[6];
    int64_t step = chance(d, 0.25) ? 2 : 1;
    for (int i = 0; i < axes; i++)
        order[i] = i;
    for (int i = axes - 1; i > 0 && chance(d, 0.7); i--) {
        int j = integer(d, 0, i), t = order[i];
        order[i] = order[j];
        order[j] = t;
    }
    for (int i = axes - 1; i >= 0; i--) {
        int axis = order[i];
        if ((shared >> axis & 1) != 0 && chance(d, 0.35)) {
            stride[axis] = 0;
            continue;
        }
        stride[axis] = chance(d, 0.2) ? -step : step;
        step *= extent[axis];
        if (chance(d, 0.3))
            step += integer(d, 1, 7);
    }
}

static void draw_data_layout(draw *d, bool plain)
{
    scenario *s = d->s;
    if (plain || chance(d, 0.4)) {
        scenario_compact(s);
        s->data_strided = chance(d, 0.3);
        return;
    }
    s->data_strided = true;
    s->o.first = chance(d, 0.3) ? integer(d, 1, 9) : 0;
    if (s->o.trace != NULL) {
        int64_t extent[3] = {s->data_frames, s->o.traces, s->o.samples}, stride[3];
        draw_strides(d, 3, extent, stride, 1 | 2);
        s->o.frame_stride = stride[0];
        s->o.trace_stride = stride[1];
        s->o.sample_stride = stride[2];
    } else {
        int64_t extent[4] = {s->data_frames, s->o.transmits, s->o.receives, s->o.samples}, stride[4];
        draw_strides(d, 4, extent, stride, 1 | 2 | 4);
        s->o.frame_stride = stride[0];
        s->o.transmit_stride = stride[1];
        s->o.receive_stride = stride[2];
        s->o.sample_stride = stride[3];
    }
}

static void draw_image_layout(draw *d)
{
    scenario *s = d->s;
    int64_t extent[6], low = 0;
    s->image_strided = chance(d, 0.4);
    if (!s->image_strided)
        return;
    extent[0] = scenario_image_frames(s);
    if (extent[0] < s->frames) /* the strides must hold for all frames of the acquisition */
        extent[0] = s->frames;
    extent[1] = s->o.keep_transmit ? s->o.transmits : 1;
    extent[2] = s->o.keep_receive ? s->o.receives : 1;
    for (int i = 0; i < 3; i++)
        extent[3 + i] = s->o.grid.count[2 - i];
    draw_strides(d, 6, extent, s->image_stride, 0);
    for (int i = 0; i < 6; i++)
        if (s->image_stride[i] < 0)
            low += (extent[i] - 1) * s->image_stride[i];
    s->image_first = -low + (chance(d, 0.3) ? integer(d, 1, 9) : 0);
}

static void draw_frames(draw *d, double many)
{
    scenario *s = d->s;
    double terms = (double)oracle_points(&s->o) * (double)(s->o.trace ? s->o.traces : s->o.transmits * s->o.receives);
    s->frames = chance(d, many) ? integer(d, 7, 35) : chance(d, 0.5) ? 1 : integer(d, 2, 5);
    if ((double)s->frames * terms > 6e5)
        s->frames = (int64_t)fmax(1, 6e5 / terms);
    s->data_frames = s->frames;
    if (chance(d, 0.3)) {
        s->run_range = true;
        s->data_frames = s->frames + (chance(d, 0.5) ? integer(d, 0, 3) : 0);
        s->run_frames = integer(d, 1, (int)s->frames);
        s->run_first = integer(d, 0, (int)(s->data_frames - s->run_frames));
        s->run_image_first = integer(d, 0, 2);
    }
}

/* One value of full scale for the type, and some of its extremes. */
static void put(draw *d, oracle_type type, void *data, int64_t i)
{
    double g = test_rng_normal(d->rng);
    bool extreme = chance(d, 0.02);
    switch (type) {
    case ORACLE_I8:
        ((int8_t *)data)[i] = (int8_t)(extreme ? integer(d, 0, 1) * 255 - 128 : integer(d, -100, 100));
        break;
    case ORACLE_U8:
        ((uint8_t *)data)[i] = (uint8_t)(extreme ? integer(d, 0, 1) * 255 : integer(d, 20, 230));
        break;
    case ORACLE_I16:
    case ORACLE_CI16:
        ((int16_t *)data)[i] = (int16_t)(extreme ? integer(d, 0, 1) * 65535 - 32768 : integer(d, -20000, 20000));
        break;
    case ORACLE_U16:
        ((uint16_t *)data)[i] = (uint16_t)(extreme ? integer(d, 0, 1) * 65535 : integer(d, 3000, 60000));
        break;
    case ORACLE_F16:
    case ORACLE_CF16:
        ((uint16_t *)data)[i] = extreme ? (uint16_t)integer(d, 0, 1023) /* subnormal */ : oracle_double_to_half(g);
        break;
    case ORACLE_F32:
    case ORACLE_CF32:
        ((float *)data)[i] = (float)(extreme ? g * 1e-3 : g);
        break;
    case ORACLE_F64:
        ((double *)data)[i] = extreme ? g * 1e-3 : g;
        break;
    }
}

static void fill_data(draw *d)
{
    scenario *s = d->s;
    int64_t parts = oracle_is_complex(s->o.type) ? 2 : 1;
    for (int64_t i = 0; i < s->data_elements * parts; i++)
        put(d, s->o.type, s->data, i);
}

void conformance_draw(scenario *s, test_rng *rng, oracle_type type, oracle_interpolation interpolation)
{
    static const double speeds[] = {1500, 1540, 343, 5900};
    static const double frequencies[] = {20e6, 3.08e6, 100e6, 40e3};
    draw d = {s, rng, 0, 0, 0};
    bool complex_data = oracle_is_complex(type), linear, plain;
    profile kind;

    scenario_init(s);
    kind = chance(&d, 0.6) ? GENERAL : chance(&d, 0.5) ? FULL_MATRIX : ENSEMBLE;
    plain = kind != GENERAL && chance(&d, 0.6);
    s->o.type = type;
    s->o.interpolation = interpolation;
    s->o.sound_speed_m_s = speeds[integer(&d, 0, 3)];
    s->o.sampling_frequency_hz = frequencies[integer(&d, 0, 3)] * uniform(&d, 0.9, 1.1);
    s->o.samples = chance(&d, 0.05) ? integer(&d, 1, 8) : chance(&d, 0.05) ? 4096 : integer(&d, 20, 300);
    d.unit_s = 1 / s->o.sampling_frequency_hz;
    d.unit_m = s->o.sound_speed_m_s * d.unit_s;
    d.depth = fmax((double)s->o.samples / 2, 12);
    if (!plain || chance(&d, 0.2)) {
        if (chance(&d, 0.2))
            s->precision = chance(&d, 0.4) ? DAS_PRECISION_REDUCED : DAS_PRECISION_DOUBLE;
        s->o.double_precision = s->precision == DAS_PRECISION_DOUBLE;
        s->o.normalization = chance(&d, 0.5) ? ORACLE_NO_DIVISION : (oracle_normalization)integer(&d, 1, 2);
        s->o.keep_transmit = chance(&d, 0.25);
        s->o.keep_receive = chance(&d, 0.25);
        s->o.clamp = chance(&d, 0.3);
        s->no_fast_paths = chance(&d, 0.2);
    }

    linear = kind != GENERAL || chance(&d, 0.4);
    draw_elements(&d, linear);
    draw_transmits(&d, kind, plain);
    draw_grid(&d, linear && chance(&d, 0.75));
    if (!(kind == FULL_MATRIX && plain))
        draw_aperture(&d);
    if (kind == FULL_MATRIX && plain && chance(&d, 0.5))
        spoil_symmetry(&d);
    if (plain && kind == ENSEMBLE && chance(&d, 0.3))
        s->o.transmit_weight = draw_weights(&d, s->o.transmits);
    if (plain && kind == ENSEMBLE && chance(&d, 0.2))
        s->o.receive_weight = draw_weights(&d, s->o.receives);
    if (!plain) {
        draw_tables(&d);
        draw_pairs(&d);
    }
    if (complex_data && chance(&d, 0.75)) {
        s->o.demodulation_frequency_hz = s->o.sampling_frequency_hz * uniform(&d, 0.1, 1.3);
        if (chance(&d, 0.2))
            s->o.demodulation_frequency_hz *= -1;
        s->o.phase_at_sample_0 = chance(&d, 0.4);
    }
    if (chance(&d, 0.2))
        s->o.offset = type == ORACLE_U16 ? 32768 : type == ORACLE_U8 ? 127.5 : 2;
    if (chance(&d, 0.2))
        s->image_type = complex_data ? (chance(&d, 0.5) ? DAS_TYPE_CF32 : DAS_TYPE_CF64)
                                     : (chance(&d, 0.5) ? DAS_TYPE_F32 : DAS_TYPE_F64);
    draw_frames(&d, kind == ENSEMBLE ? 0.5 : 0.1);
    if (chance(&d, 0.2) && (s->o.normalization == ORACLE_NO_DIVISION || s->o.keep_transmit))
        s->parts = integer(&d, 2, 3);
    if (s->o.normalization == ORACLE_NO_DIVISION && chance(&d, 0.15)) {
        s->accumulate = true;
        s->base = type == ORACLE_I16 || type == ORACLE_U16 || type == ORACLE_CI16 ? 10000 : 2.5;
    }
    s->in_flight = chance(&d, 0.1) ? 3 : 1;
    s->way = (scenario_way)integer(&d, WAY_HOST, WAY_IMPORT);
    draw_image_layout(&d);
    draw_data_layout(&d, plain && chance(&d, 0.7));
    s->data_at_end = chance(&d, 0.7);
    scenario_data(s);
    fill_data(&d);
}

/* NaN wherever no interpolation of a pair of non-zero weight reads; extremes for integers. */
static void spoil(scenario *s)
{
    int64_t bytes = oracle_type_bytes(s->o.type);
    for (int64_t i = 0; i < s->data_elements; i++)
        if (s->o.touched[i] == 0)
            memset((unsigned char *)s->data + i * bytes, 0xFF, (size_t)bytes);
}

/* The smallest budget that the plan takes, found by asking; 0 when there is none to ask for. */
static uint64_t small_budget(const conformance_target *target, scenario *s, test_rng *rng)
{
    das_plan *plan = NULL;
    das_plan_info info;
    das_error error = DAS_ERROR_INIT;
    uint64_t budget = 0, take;
    memset(&info, 0, sizeof info);
    info.struct_size = sizeof info;
    if (scenario_plan(target, s, &plan, &error) == DAS_OK && das_plan_get_info(plan, &info, &error) == DAS_OK) {
        take = info.plan_bytes + (uint64_t)info.slots * info.slot_bytes;
        for (int i = 0; i < 4 && take > 1; i++) {
            das_plan_destroy(&plan);
            take = take / 4 * (uint64_t)test_rng_int(rng, 1, 3) + 1;
            s->budget = take;
            if (scenario_plan(target, s, &plan, &error) != DAS_OK)
                break;
            budget = take;
        }
    }
    das_plan_destroy(&plan);
    s->budget = 0;
    return budget;
}

static const char *const type_names[] = {"i8", "u8", "i16", "u16", "f16", "f32", "f64", "ci16", "cf16", "cf32"};
static const char *const interpolation_names[] = {"nearest", "linear", "quadratic", "cubic", "lanczos"};

enum { TYPES = 10, INTERPOLATIONS = 5, MOST_TARGETS = 32, MOST_PATHS = 64 };

/* Which paths the plans took, by their descriptions up to the first comma. */
static struct {
    char name[96];
    int cases;
} paths[MOST_PATHS];

static void count_path(const char *description)
{
    size_t length = strcspn(description, ",");
    int i = 0;
    if (length >= sizeof paths[0].name)
        length = sizeof paths[0].name - 1;
    while (i < MOST_PATHS && paths[i].cases > 0 &&
           !(strlen(paths[i].name) == length && strncmp(paths[i].name, description, length) == 0))
        i++;
    if (i == MOST_PATHS)
        return;
    memcpy(paths[i].name, description, length);
    paths[i].name[length] = '\0';
    paths[i].cases++;
}

static void print_paths(void)
{
    for (int i = 0; i < MOST_PATHS && paths[i].cases > 0; i++) {
        printf("%d random cases took \"%s\"\n", paths[i].cases, paths[i].name);
        paths[i].cases = 0;
    }
}

void conformance_random(const conformance_target *targets, int count, conformance_amount amount)
{
    for (int type = 0; type < TYPES; type++)
        for (int interpolation = 0; interpolation < INTERPOLATIONS; interpolation++) {
            char why[MOST_TARGETS][1024];
            int failures[MOST_TARGETS] = {0};
            if (!conformance_in_share())
                continue;
            for (int k = 0; k < amount.cases; k++) {
                /* Each case has a seed of its own, so that it can be repeated alone. */
                uint64_t seed = amount.seed * 1000003 + (uint64_t)((type * INTERPOLATIONS + interpolation) * 100000 + k);
                test_rng rng = test_rng_seeded(seed), copy;
                scenario s;
                oracle_value *reference;
                bool finite, budget;
                conformance_draw(&s, &rng, (oracle_type)type, (oracle_interpolation)interpolation);
                s.o.touched = scenario_alloc(&s, s.data_elements, 1);
                reference = scenario_reference(&s);
                finite = s.precision == DAS_PRECISION_REDUCED || test_rng_chance(&rng, 0.3);
                if (!finite)
                    spoil(&s);
                s.o.touched = NULL;
                budget = test_rng_chance(&rng, 0.25);
                for (int i = 0; i < count && i < MOST_TARGETS; i++) {
                    scenario_way way = s.way;
                    test_rng again;
                    if (k % targets[i].one_in != 0)
                        continue;
                    copy = rng;
                    again = copy;
                    test_begin("random %s %s, case %d on %s", type_names[type], interpolation_names[interpolation], k,
                               targets[i].name);
                    if (s.way == WAY_IMPORT && !targets[i].is_cpu)
                        s.way = WAY_QUEUE;
                    if (!(s.precision == DAS_PRECISION_DOUBLE && !targets[i].has_double)) {
                        s.budget = budget ? small_budget(&targets[i], &s, &again) : 0;
                        if (!scenario_check(&targets[i], &s, reference, 1 + test_rng_chance(&copy, 0.2)) &&
                            failures[i]++ == 0)
                            snprintf(why[i], sizeof why[i], "case %d: %s", k, test_failure());
                    }
                    s.way = way;
                    count_path(scenario_path());
                    test_discard();
                }
                scenario_free(&s);
            }
            for (int i = 0; i < count && i < MOST_TARGETS; i++) {
                test_begin("random %s %s, %d cases from seed %llu on %s", type_names[type],
                           interpolation_names[interpolation], (amount.cases - 1) / targets[i].one_in + 1,
                           (unsigned long long)amount.seed,
                           targets[i].name);
                if (failures[i] > 0)
                    test_note("%d of them fail; %s", failures[i], why[i]);
                test_end();
            }
        }
    print_paths();
}

/* ---- the same bits whatever the threads ---- */

/* A runner that goes backwards on one thread. */
static void backwards(void *context, das_task_function *task, void *argument, int64_t count)
{
    (void)context;
    for (int64_t i = count; i-- > 0;)
        task(argument, i);
}

static bool open_with(const conformance_target *like, int64_t threads, conformance_target *target)
{
    das_device_options *options = NULL;
    das_error error = DAS_ERROR_INIT;
    bool ok = das_device_options_create(&options, &error) == DAS_OK &&
              das_device_options_set_isa(options, like->isa, &error) == DAS_OK;
    if (ok && threads > 0)
        ok = das_device_options_set_thread_count(options, threads, &error) == DAS_OK;
    else if (ok)
        ok = das_device_options_set_runner(options, backwards, NULL, &error) == DAS_OK;
    *target = *like;
    target->device = NULL;
    ok = ok && das_device_open("cpu", options, &target->device, &error) == DAS_OK;
    if (!ok)
        test_note("opening %s with %lld threads: %s", like->name, (long long)threads, error.message);
    das_device_options_destroy(&options);
    return ok;
}

void conformance_repeat(const conformance_target *targets, int count, conformance_amount amount)
{
    static const int64_t threads[] = {1, 2, 7, 64, 0};
    for (int i = 0; i < count; i++) {
        conformance_target with[5];
        bool ok = true;
        if (!targets[i].is_cpu)
            continue;
        test_begin("the same bits from 1, 2, 7 and 64 threads and a backward runner on %s", targets[i].name);
        memset(with, 0, sizeof with);
        for (int j = 0; j < 5 && ok; j++)
            ok = open_with(&targets[i], threads[j], &with[j]);
        for (int k = 0; ok && k < 10 * amount.cases; k++) {
            test_rng rng = test_rng_seeded(amount.seed * 77003 + (uint64_t)k);
            scenario s;
            size_t bytes;
            unsigned char *first = NULL, *image;
            conformance_draw(&s, &rng, (oracle_type)(k % TYPES), (oracle_interpolation)(k / TYPES % INTERPOLATIONS));
            bytes = (size_t)scenario_image_elements(&s) * das_type_bytes(scenario_image_type(&s));
            image = test_guarded_alloc(bytes, 64);
            for (int j = 0; ok && j < 5; j++) {
                das_error error = DAS_ERROR_INIT;
                memset(image, 0x3F, bytes); /* finite, where calls accumulate */
                if (scenario_run(&with[j], &s, image, &error) != DAS_OK) {
                    test_note("case %d: %s", k, error.message);
                    ok = false;
                } else if (first == NULL) {
                    first = malloc(bytes);
                    if (first != NULL)
                        memcpy(first, image, bytes);
                } else if (memcmp(first, image, bytes) != 0) {
                    char text[512];
                    scenario_describe(&s, text, sizeof text);
                    test_note("case %d: other bits with %lld threads than with 1 [%s]", k, (long long)threads[j], text);
                    ok = false;
                }
            }
            free(first);
            test_guarded_free(image);
            scenario_free(&s);
        }
        for (int j = 0; j < 5; j++)
            das_device_destroy(&with[j].device);
        test_end();
    }
}
