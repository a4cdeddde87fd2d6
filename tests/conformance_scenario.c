#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance.h"

#define TRY(call)                     \
    do {                              \
        das_status status_ = (call);  \
        if (status_ != DAS_OK)        \
            return status_;           \
    } while (0)

static const das_type type_of[] = {
    [ORACLE_I8] = DAS_TYPE_I8,   [ORACLE_U8] = DAS_TYPE_U8,     [ORACLE_I16] = DAS_TYPE_I16,   [ORACLE_U16] = DAS_TYPE_U16,
    [ORACLE_F16] = DAS_TYPE_F16, [ORACLE_F32] = DAS_TYPE_F32,   [ORACLE_F64] = DAS_TYPE_F64,   [ORACLE_CI16] = DAS_TYPE_CI16,
    [ORACLE_CF16] = DAS_TYPE_CF16, [ORACLE_CF32] = DAS_TYPE_CF32,
};
static const char *const type_name[] = {"i8", "u8", "i16", "u16", "f16", "f32", "f64", "ci16", "cf16", "cf32"};
static const das_interpolation interpolation_of[] = {
    [ORACLE_NEAREST] = DAS_INTERPOLATION_NEAREST,     [ORACLE_LINEAR] = DAS_INTERPOLATION_LINEAR,
    [ORACLE_QUADRATIC] = DAS_INTERPOLATION_QUADRATIC, [ORACLE_CUBIC] = DAS_INTERPOLATION_CUBIC,
    [ORACLE_LANCZOS3] = DAS_INTERPOLATION_LANCZOS,
};
static const char *const interpolation_name[] = {"nearest", "linear", "quadratic", "cubic", "lanczos"};
static const das_window window_of[] = {
    [ORACLE_RECT] = DAS_WINDOW_RECT,   [ORACLE_HANN] = DAS_WINDOW_HANN,          [ORACLE_HAMMING] = DAS_WINDOW_HAMMING,
    [ORACLE_TUKEY] = DAS_WINDOW_TUKEY, [ORACLE_WINDOW_TABLE] = DAS_WINDOW_TABLE,
};
static const char *const window_name[] = {"rect", "hann", "hamming", "tukey", "table"};
static const das_normalization normalization_of[] = {
    [ORACLE_NO_DIVISION] = DAS_NORMALIZATION_NONE,
    [ORACLE_BY_COUNT] = DAS_NORMALIZATION_COUNT,
    [ORACLE_BY_WEIGHTS] = DAS_NORMALIZATION_WEIGHTS,
};

/* ---- making ---- */

void *scenario_alloc(scenario *s, int64_t count, size_t bytes)
{
    void *memory = calloc((size_t)(count > 0 ? count : 1), bytes);
    if (memory == NULL || s->owned_count == (int)(sizeof s->owned / sizeof s->owned[0])) {
        fprintf(stderr, "the test is out of memory\n");
        exit(1);
    }
    s->owned[s->owned_count++] = memory;
    return memory;
}

void scenario_free(scenario *s)
{
    for (int i = 0; i < s->owned_count; i++)
        free(s->owned[i]);
    s->owned_count = 0;
    if (s->data != NULL)
        test_paged_free(s->data, s->data_bytes);
    s->data = NULL;
}

oracle_element *scenario_elements(scenario *s, int64_t count)
{
    oracle_element *element = scenario_alloc(s, count, sizeof *element);
    for (int64_t i = 0; i < count; i++) {
        element[i].normal[2] = 1;
        element[i].weight = 1;
    }
    s->o.element = element;
    s->o.receives = count;
    return element;
}

oracle_transmit *scenario_transmits(scenario *s, int64_t count)
{
    oracle_transmit *transmit = scenario_alloc(s, count, sizeof *transmit);
    for (int64_t i = 0; i < count; i++) {
        transmit[i].wave = ORACLE_PLANE;
        transmit[i].vector[2] = 1;
        transmit[i].weight = 1;
    }
    s->o.transmit = transmit;
    s->o.transmits = count;
    return transmit;
}

void scenario_init(scenario *s)
{
    memset(s, 0, sizeof *s);
    s->o.type = ORACLE_F32;
    s->o.samples = 1000;
    s->o.sound_speed_m_s = 1500;
    s->o.sampling_frequency_hz = 20e6;
    s->o.interpolation = ORACLE_LINEAR;
    s->o.grid.kind = ORACLE_CARTESIAN;
    for (int i = 0; i < 3; i++)
        s->o.grid.count[i] = 1;
    s->frames = s->data_frames = 1;
    s->data_at_end = true;
    s->in_flight = 1;
    s->parts = 1;
    scenario_elements(s, 1);
    scenario_transmits(s, 1);
    scenario_point(s, 0, 0, 15e-3);
}

void scenario_point(scenario *s, double x, double y, double z)
{
    s->o.grid.origin[0] = x;
    s->o.grid.origin[1] = y;
    s->o.grid.origin[2] = z;
}

void scenario_compact(scenario *s)
{
    s->o.first = 0;
    s->o.sample_stride = 1;
    s->o.receive_stride = s->o.samples;
    s->o.transmit_stride = s->o.receives * s->o.receive_stride;
    s->o.trace_stride = s->o.samples;
    s->o.frame_stride = s->o.trace != NULL ? s->o.traces * s->o.trace_stride : s->o.transmits * s->o.transmit_stride;
}

int64_t scenario_index(const scenario *s, int64_t frame, int64_t transmit, int64_t receive, int64_t sample)
{
    return s->o.first + frame * s->o.frame_stride + transmit * s->o.transmit_stride + receive * s->o.receive_stride +
           sample * s->o.sample_stride;
}

static void span(int64_t count, int64_t stride, int64_t *low, int64_t *high)
{
    if (stride < 0)
        *low += (count - 1) * stride;
    else
        *high += (count - 1) * stride;
}

void *scenario_data(scenario *s)
{
    int64_t low = 0, high = 0;
    span(s->data_frames, s->o.frame_stride, &low, &high);
    span(s->o.samples, s->o.sample_stride, &low, &high);
    if (s->o.trace != NULL) {
        span(s->o.traces, s->o.trace_stride, &low, &high);
    } else {
        span(s->o.transmits, s->o.transmit_stride, &low, &high);
        span(s->o.receives, s->o.receive_stride, &low, &high);
    }
    s->o.first -= low;
    s->data_elements = s->o.first + high + 1;
    s->data_bytes = (size_t)(s->data_elements * oracle_type_bytes(s->o.type));
    s->data = test_paged_alloc(s->data_bytes, s->data_at_end);
    if (s->data == NULL) {
        fprintf(stderr, "the test is out of memory\n");
        exit(1);
    }
    s->o.data = s->data;
    return s->data;
}

void scenario_describe(const scenario *s, char *text, size_t size)
{
    static const char *const grid_name[] = {"cartesian", "polar", "points"};
    static const char *const way_name[] = {"host", "queue", "no queue", "import"};
    const oracle_problem *o = &s->o;
    snprintf(text, size,
             "%s %s, %lld tx (%d%s) x %lld rx x %lld samples, %lld frames, %s %lldx%lldx%lld%s%s%s%s, F %.3g %s, "
             "f_d %.3g, norm %d%s%s%s%s%s%s, precision %d, parts %lld%s, budget %llu, %s",
             type_name[o->type], interpolation_name[o->interpolation], (long long)o->transmits,
             (int)o->transmit[0].wave, s->all_elements ? " all" : "", (long long)o->receives, (long long)o->samples,
             (long long)scenario_image_frames(s), grid_name[o->grid.kind], (long long)o->grid.count[0],
             (long long)o->grid.count[1], (long long)o->grid.count[2], o->transmit_arrival_s ? " tx times" : "",
             o->receive_arrival_s ? " rx times" : "", o->transmit_weight ? " tx weights" : "",
             o->receive_weight ? " rx weights" : "", o->f_number, window_name[o->window],
             o->demodulation_frequency_hz, (int)o->normalization, o->trace ? " traces" : "",
             o->pair_weight ? " pairs" : "", o->keep_transmit ? " keep tx" : "", o->keep_receive ? " keep rx" : "",
             o->clamp ? " clamp" : "", s->no_fast_paths ? " no fast" : "", (int)s->precision, (long long)s->parts,
             s->accumulate ? " accumulate" : "", (unsigned long long)s->budget, way_name[s->way]);
}

/* ---- telling the library ---- */

static const double *origin_or_null(const double origin[3])
{
    return origin[0] == 0 && origin[1] == 0 && origin[2] == 0 ? NULL : origin;
}

static das_status add_transmits(const scenario *s, das_acquisition *acquisition, das_error *error)
{
    if (s->all_elements)
        return das_acquisition_add_element_transmits(acquisition, error);
    for (int64_t t = 0; t < s->o.transmits; t++) {
        const oracle_transmit *transmit = &s->o.transmit[t];
        const double *v = transmit->vector, *origin = origin_or_null(transmit->origin);
        switch (transmit->wave) {
        case ORACLE_ELEMENT:
            TRY(das_acquisition_add_element_transmit(acquisition, v, error));
            break;
        case ORACLE_PLANE:
            if (s->use_angle)
                TRY(das_acquisition_add_plane_transmit(acquisition, atan2(v[0], v[2]), error));
            else
                TRY(das_acquisition_add_plane_direction_transmit(acquisition, v, origin, error));
            break;
        case ORACLE_DIVERGING:
            TRY(das_acquisition_add_diverging_transmit(acquisition, v, origin, error));
            break;
        case ORACLE_FOCUSED:
            TRY(das_acquisition_add_focused_transmit(acquisition, v, origin, error));
            break;
        case ORACLE_ONE_WAY:
            TRY(das_acquisition_add_oneway_transmit(acquisition, error));
            break;
        }
    }
    return DAS_OK;
}

/* Column `what` of the transmits or elements as an array of its own. */
static double *column(const void *rows, int64_t count, size_t row_bytes, size_t offset, int width)
{
    double *values = malloc((size_t)(count * width) * sizeof *values);
    for (int64_t i = 0; values != NULL && i < count; i++)
        memcpy(values + i * width, (const unsigned char *)rows + (size_t)i * row_bytes + offset,
               (size_t)width * sizeof *values);
    return values;
}

static das_status set_element_column(const scenario *s, das_acquisition *acquisition, size_t offset, int width,
                                     das_status (*set)(das_acquisition *, int64_t, const double *, das_error *),
                                     das_error *error)
{
    double *values = column(s->o.element, s->o.receives, sizeof *s->o.element, offset, width);
    das_status status = set(acquisition, s->o.receives, values, error);
    free(values);
    return status;
}

static das_status set_transmit_column(const scenario *s, das_acquisition *acquisition, size_t offset,
                                      das_status (*set)(das_acquisition *, int64_t, const double *, das_error *),
                                      das_error *error)
{
    double *values = column(s->o.transmit, s->o.transmits, sizeof *s->o.transmit, offset, 1);
    das_status status = set(acquisition, s->o.transmits, values, error);
    free(values);
    return status;
}

static das_status set_traces(const scenario *s, das_acquisition *acquisition, das_error *error)
{
    int64_t count = s->o.traces;
    int64_t *ends = malloc((size_t)(2 * count) * sizeof *ends);
    double *weight = malloc((size_t)count * sizeof *weight);
    bool ones = true;
    das_status status;
    for (int64_t k = 0; k < count; k++) {
        ends[k] = s->o.trace[k].transmit;
        ends[count + k] = s->o.trace[k].receive;
        weight[k] = s->o.trace[k].weight;
        ones = ones && weight[k] == 1;
    }
    status = das_acquisition_set_traces(acquisition, count, ends, ends + count, ones ? NULL : weight, error);
    free(weight);
    free(ends);
    return status;
}

static das_status fill_acquisition(const scenario *s, das_acquisition *acquisition, das_error *error)
{
    const oracle_problem *o = &s->o;
    bool normals = false, rx_weights = false, rx_delays = false, tx_weights = false, tx_delays = false, starts = false;
    for (int64_t r = 0; r < o->receives; r++) {
        const oracle_element *e = &o->element[r];
        normals = normals || e->normal[0] != 0 || e->normal[1] != 0 || e->normal[2] != 1;
        rx_weights = rx_weights || e->weight != 1;
        rx_delays = rx_delays || e->delay_s != 0;
    }
    for (int64_t t = 0; t < o->transmits; t++) {
        const oracle_transmit *e = &o->transmit[t];
        tx_weights = tx_weights || e->weight != 1;
        tx_delays = tx_delays || e->delay_s != 0;
        starts = starts || e->start_time_s != o->transmit[0].start_time_s;
    }
    TRY(set_element_column(s, acquisition, offsetof(oracle_element, position), 3, das_acquisition_set_receive_elements,
                           error));
    if (normals)
        TRY(set_element_column(s, acquisition, offsetof(oracle_element, normal), 3,
                               das_acquisition_set_receive_normals, error));
    if (rx_weights)
        TRY(set_element_column(s, acquisition, offsetof(oracle_element, weight), 1,
                               das_acquisition_set_receive_weights, error));
    if (rx_delays)
        TRY(set_element_column(s, acquisition, offsetof(oracle_element, delay_s), 1,
                               das_acquisition_set_receive_delays, error));
    TRY(add_transmits(s, acquisition, error));
    if (tx_weights)
        TRY(set_transmit_column(s, acquisition, offsetof(oracle_transmit, weight),
                                das_acquisition_set_transmit_weights, error));
    if (tx_delays)
        TRY(set_transmit_column(s, acquisition, offsetof(oracle_transmit, delay_s),
                                das_acquisition_set_transmit_delays, error));
    if (starts)
        TRY(set_transmit_column(s, acquisition, offsetof(oracle_transmit, start_time_s),
                                das_acquisition_set_start_times, error));
    else if (o->transmit[0].start_time_s != 0)
        TRY(das_acquisition_set_start_times(acquisition, 1, &o->transmit[0].start_time_s, error));
    TRY(das_acquisition_set_sampling_frequency(acquisition, o->sampling_frequency_hz, error));
    TRY(das_acquisition_set_sound_speed(acquisition, o->sound_speed_m_s, error));
    if (o->demodulation_frequency_hz != 0)
        TRY(das_acquisition_set_demodulation_frequency(acquisition, o->demodulation_frequency_hz, error));
    TRY(das_acquisition_set_data(acquisition, type_of[o->type], o->samples, error));
    if (s->frames != 1)
        TRY(das_acquisition_set_frame_count(acquisition, s->frames, error));
    if (o->offset != 0)
        TRY(das_acquisition_set_sample_offset(acquisition, o->offset, error));
    if (o->trace != NULL)
        TRY(set_traces(s, acquisition, error));
    if (o->pair_weight != NULL)
        TRY(das_acquisition_set_pair_weights(acquisition, o->transmits, o->receives, o->pair_weight, error));
    if (s->data_strided && o->trace != NULL)
        TRY(das_acquisition_set_trace_strides(acquisition, o->first, o->frame_stride, o->trace_stride,
                                              o->sample_stride, error));
    if (s->data_strided && o->trace == NULL)
        TRY(das_acquisition_set_data_strides(acquisition, o->first, o->frame_stride, o->transmit_stride,
                                             o->receive_stride, o->sample_stride, error));
    return DAS_OK;
}

static das_status make_grid(const scenario *s, das_grid **grid, das_error *error)
{
    const oracle_grid *g = &s->o.grid;
    double steps[9];
    switch (g->kind) {
    case ORACLE_CARTESIAN:
        memcpy(steps, g->step, sizeof steps);
        return das_grid_create_cartesian(g->origin, steps, g->count, grid, error);
    case ORACLE_POLAR:
        return das_grid_create_polar(g->origin, g->count[0], g->axis[0], g->count[1],
                                     g->count[1] == 1 && g->axis[1][0] == 0 ? NULL : g->axis[1], g->count[2],
                                     g->axis[2], grid, error);
    case ORACLE_POINTS:
        return das_grid_create_points(g->count[0], &g->point[0][0], grid, error);
    }
    return DAS_ERROR_ARGUMENT;
}

static das_status fill_options(const scenario *s, das_options *options, das_error *error)
{
    const oracle_problem *o = &s->o;
    int64_t points = oracle_points(o);
    TRY(das_options_set_interpolation(options, interpolation_of[o->interpolation], error));
    if (o->f_number != 0)
        TRY(das_options_set_f_number(options, o->f_number, error));
    if (o->window == ORACLE_WINDOW_TABLE)
        TRY(das_options_set_window_table(options, o->window_values, o->window_value, error));
    else if (o->window != ORACLE_RECT)
        TRY(das_options_set_window(options, window_of[o->window], o->tukey, error));
    if (o->normalization != ORACLE_NO_DIVISION)
        TRY(das_options_set_normalization(options, normalization_of[o->normalization], error));
    if (o->keep_transmit)
        TRY(das_options_set_keep_transmit(options, 1, error));
    if (o->keep_receive)
        TRY(das_options_set_keep_receive(options, 1, error));
    if (o->clamp)
        TRY(das_options_set_outside(options, DAS_OUTSIDE_CLAMP, error));
    if (s->precision != DAS_PRECISION_EXACT)
        TRY(das_options_set_precision(options, s->precision, error));
    if (s->image_type != 0)
        TRY(das_options_set_image_type(options, s->image_type, error));
    if (s->image_strided)
        TRY(das_options_set_image_strides(options, s->image_first, s->image_stride, error));
    if (o->phase_at_sample_0)
        TRY(das_options_set_phase_reference(options, DAS_PHASE_REFERENCE_SAMPLE_ZERO, error));
    if (s->in_flight != 1)
        TRY(das_options_set_max_in_flight(options, s->in_flight, error));
    if (s->parts > 1)
        TRY(das_options_set_incremental(options, 1, error));
    if (s->budget != 0)
        TRY(das_options_set_memory_budget(options, s->budget, error));
    if (s->no_fast_paths)
        TRY(das_options_set_fast_paths(options, 0, error));
    if (o->transmit_arrival_s != NULL)
        TRY(das_options_set_transmit_times(options, o->transmits, points, o->transmit_arrival_s, error));
    if (o->receive_arrival_s != NULL)
        TRY(das_options_set_receive_times(options, o->receives, points, o->receive_arrival_s, error));
    if (o->transmit_weight != NULL)
        TRY(das_options_set_transmit_weights(options, o->transmits, points, o->transmit_weight, error));
    if (o->receive_weight != NULL)
        TRY(das_options_set_receive_weights(options, o->receives, points, o->receive_weight, error));
    return DAS_OK;
}

das_status scenario_plan(const conformance_target *target, const scenario *s, das_plan **plan, das_error *error)
{
    das_acquisition *acquisition = NULL;
    das_grid *grid = NULL;
    das_options *options = NULL;
    das_status status = das_acquisition_create(&acquisition, error);
    *plan = NULL;
    if (status == DAS_OK)
        status = fill_acquisition(s, acquisition, error);
    if (status == DAS_OK)
        status = make_grid(s, &grid, error);
    if (status == DAS_OK)
        status = das_options_create(&options, error);
    if (status == DAS_OK)
        status = fill_options(s, options, error);
    if (status == DAS_OK)
        status = das_plan_create(target->device, acquisition, grid, options, plan, error);
    das_options_destroy(&options);
    das_grid_destroy(&grid);
    das_acquisition_destroy(&acquisition);
    return status;
}

/* ---- the image ---- */

das_type scenario_image_type(const scenario *s)
{
    if (s->image_type != 0)
        return s->image_type;
    if (oracle_is_complex(s->o.type))
        return s->precision == DAS_PRECISION_DOUBLE ? DAS_TYPE_CF64 : DAS_TYPE_CF32;
    return s->precision == DAS_PRECISION_DOUBLE ? DAS_TYPE_F64 : DAS_TYPE_F32;
}

static int64_t run_frames(const scenario *s)
{
    return s->run_range ? s->run_frames : s->frames;
}

static int64_t run_image_first(const scenario *s)
{
    return s->run_range ? s->run_image_first : 0;
}

int64_t scenario_image_frames(const scenario *s)
{
    return run_image_first(s) + run_frames(s);
}

static void image_extents(const scenario *s, int64_t extent[6])
{
    extent[0] = scenario_image_frames(s);
    extent[1] = s->o.keep_transmit ? s->o.transmits : 1;
    extent[2] = s->o.keep_receive ? s->o.receives : 1;
    for (int i = 0; i < 3; i++)
        extent[3 + i] = s->o.grid.count[2 - i];
}

static void image_layout(const scenario *s, int64_t *first, int64_t stride[6])
{
    int64_t extent[6];
    image_extents(s, extent);
    *first = 0;
    stride[5] = 1;
    for (int i = 4; i >= 0; i--)
        stride[i] = stride[i + 1] * extent[i + 1];
    if (s->image_strided) {
        *first = s->image_first;
        memcpy(stride, s->image_stride, 6 * sizeof *stride);
    }
}

int64_t scenario_image_index(const scenario *s, int64_t frame, int64_t transmit, int64_t receive, int64_t point)
{
    int64_t first, stride[6];
    const int64_t *count = s->o.grid.count;
    image_layout(s, &first, stride);
    return first + frame * stride[0] + transmit * stride[1] + receive * stride[2] +
           point / count[0] / count[1] * stride[3] + point / count[0] % count[1] * stride[4] +
           point % count[0] * stride[5];
}

int64_t scenario_image_elements(const scenario *s)
{
    int64_t first, stride[6], extent[6];
    image_layout(s, &first, stride);
    image_extents(s, extent);
    for (int i = 0; i < 6; i++)
        if (stride[i] > 0)
            first += (extent[i] - 1) * stride[i];
    return first + 1;
}

static void image_get(das_type type, const void *image, int64_t index, double value[2])
{
    value[1] = 0;
    switch (type) {
    case DAS_TYPE_F32:
        value[0] = (double)((const float *)image)[index];
        break;
    case DAS_TYPE_F64:
        value[0] = ((const double *)image)[index];
        break;
    case DAS_TYPE_CF32:
        value[0] = (double)((const float *)image)[2 * index];
        value[1] = (double)((const float *)image)[2 * index + 1];
        break;
    default:
        value[0] = ((const double *)image)[2 * index];
        value[1] = ((const double *)image)[2 * index + 1];
        break;
    }
}

static void image_set(das_type type, void *image, int64_t index, double value)
{
    switch (type) {
    case DAS_TYPE_F32:
        ((float *)image)[index] = (float)value;
        break;
    case DAS_TYPE_F64:
        ((double *)image)[index] = value;
        break;
    case DAS_TYPE_CF32:
        ((float *)image)[2 * index] = (float)value;
        ((float *)image)[2 * index + 1] = 0;
        break;
    default:
        ((double *)image)[2 * index] = value;
        ((double *)image)[2 * index + 1] = 0;
        break;
    }
}

/* Values per frame, transmit, receive and point of the reference. */
static int64_t reference_count(const scenario *s)
{
    return run_frames(s) * oracle_values(&s->o) * oracle_points(&s->o);
}

/* Image index of reference value i. */
static int64_t reference_index(const scenario *s, int64_t i)
{
    int64_t points = oracle_points(&s->o), receives = s->o.keep_receive ? s->o.receives : 1;
    int64_t point = i % points, receive = i / points % receives, rest = i / points / receives;
    int64_t transmits = s->o.keep_transmit ? s->o.transmits : 1;
    return scenario_image_index(s, run_image_first(s) + rest / transmits, rest % transmits, receive, point);
}

/* ---- running ---- */

static das_status run_calls(const scenario *s, das_plan *plan, das_queue *queue, das_buffer *data, das_buffer *image,
                            void *host_image, size_t image_bytes, das_run *run, das_error *error)
{
    bool begun = false;
    if (s->run_range)
        TRY(das_run_set_frames(run, s->run_first, s->run_frames, s->run_image_first, error));
    for (int64_t part = 0; part < s->parts; part++) {
        if (s->parts > 1) {
            int64_t from = s->o.transmits * part / s->parts, to = s->o.transmits * (part + 1) / s->parts;
            if (from == to)
                continue;
            TRY(das_run_set_transmits(run, from, to - from, error));
        }
        TRY(das_run_set_accumulate(run, s->accumulate || (begun && !s->o.keep_transmit), error));
        begun = true;
        if (s->way == WAY_HOST)
            TRY(das_reconstruct_host(plan, s->data, s->data_bytes, host_image, image_bytes, run, error));
        else
            TRY(das_reconstruct(plan, queue, data, image, run, error));
    }
    return DAS_OK;
}

static das_status run_explicit(const conformance_target *target, const scenario *s, das_plan *plan, das_run *run,
                               void *host_image, size_t image_bytes, das_error *error)
{
    das_queue *queue = NULL;
    das_buffer *data = NULL, *image = NULL;
    das_status status = DAS_OK;
    if (s->way != WAY_NO_QUEUE)
        status = das_queue_create(target->device, &queue, error);
    if (status == DAS_OK && s->way == WAY_IMPORT) {
        status = das_buffer_import_pointer(target->device, s->data, s->data_bytes, NULL, NULL, &data, error);
        if (status == DAS_OK)
            status = das_buffer_import_pointer(target->device, host_image, image_bytes, NULL, NULL, &image, error);
    } else if (status == DAS_OK) {
        status = das_buffer_create(target->device, s->data_bytes, DAS_MEMORY_DEVICE, &data, error);
        if (status == DAS_OK)
            status = das_buffer_create(target->device, image_bytes, DAS_MEMORY_DEVICE, &image, error);
        if (status == DAS_OK)
            status = das_buffer_upload(queue, data, 0, s->data, s->data_bytes, error);
        if (status == DAS_OK)
            status = das_buffer_upload(queue, image, 0, host_image, image_bytes, error);
    }
    if (status == DAS_OK)
        status = run_calls(s, plan, queue, data, image, NULL, 0, run, error);
    if (status == DAS_OK && s->way != WAY_IMPORT)
        status = das_buffer_download(queue, image, 0, host_image, image_bytes, error);
    if (status == DAS_OK && queue != NULL)
        status = das_queue_wait(queue, error);
    das_buffer_destroy(&image);
    das_buffer_destroy(&data);
    das_queue_destroy(&queue);
    return status;
}

static das_status run_plan(const conformance_target *target, const scenario *s, das_plan *plan, void *image,
                           das_error *error)
{
    size_t image_bytes = (size_t)scenario_image_elements(s) * das_type_bytes(scenario_image_type(s));
    das_run *run = NULL;
    das_status status = das_run_create(target->device, &run, error);
    if (status == DAS_OK && s->way == WAY_HOST)
        status = run_calls(s, plan, NULL, NULL, NULL, image, image_bytes, run, error);
    else if (status == DAS_OK)
        status = run_explicit(target, s, plan, run, image, image_bytes, error);
    das_run_destroy(&run);
    return status;
}

das_status scenario_run(const conformance_target *target, const scenario *s, void *image, das_error *error)
{
    das_plan *plan = NULL;
    das_status status = scenario_plan(target, s, &plan, error);
    if (status == DAS_OK)
        status = run_plan(target, s, plan, image, error);
    das_plan_destroy(&plan);
    return status;
}

static int share_first, share_step = 1, share_next;

void conformance_set_share(int share, int of)
{
    share_first = share;
    share_step = of;
}

bool conformance_in_share(void)
{
    return share_next++ % share_step == share_first;
}

void scenario_expect(const conformance_target *target, const scenario *s, double re, double im, double allowed)
{
    das_type type = scenario_image_type(s);
    void *image = test_guarded_alloc((size_t)scenario_image_elements(s) * das_type_bytes(type), 64);
    das_error error = DAS_ERROR_INIT;
    double value[2];
    if (scenario_run(target, s, image, &error) != DAS_OK) {
        test_note("%s: %s", das_status_name(error.status), error.message);
    } else {
        for (int64_t i = 0; i < reference_count(s); i++) {
            image_get(type, image, reference_index(s, i), value);
            EXPECT_MSG(hypot(value[0] - re, value[1] - im) <= allowed, "value %lld is %.9g %+.9gi, expected %.9g %+.9gi",
                       (long long)i, value[0], value[1], re, im);
        }
        EXPECT_MSG(test_guarded_intact(image), "memory around the image was written");
    }
    test_guarded_free(image);
}

oracle_value *scenario_reference(scenario *s)
{
    oracle_value *reference = scenario_alloc(s, reference_count(s), sizeof *reference);
    oracle_problem shifted = s->o;
    if (s->run_range)
        shifted.first += s->run_first * shifted.frame_stride;
    if (!oracle_image(&shifted, run_frames(s), reference)) {
        fprintf(stderr, "the test is out of memory\n");
        exit(1);
    }
    return reference;
}

static double bound_of(const scenario *s)
{
    das_type type = scenario_image_type(s);
    if (s->precision == DAS_PRECISION_REDUCED)
        return 5e-4;
    if (s->precision == DAS_PRECISION_DOUBLE) {
        /* Roundings of the position, and of the phase in turns, grow with the depth: 1e-12 up to 500 of them. */
        double turns = fabs(s->o.demodulation_frequency_hz) / s->o.sampling_frequency_hz * 6.283;
        double deep = fmax(1, (double)s->o.samples * (1 + turns) / 500);
        return type == DAS_TYPE_F64 || type == DAS_TYPE_CF64 ? 1e-12 * deep : 1.2e-7;
    }
    return 1e-5;
}

static bool compare(const conformance_target *target, const scenario *s, const void *image, const oracle_value *reference,
                    const char *path)
{
    das_type type = scenario_image_type(s);
    size_t bytes = das_type_bytes(type);
    int64_t count = reference_count(s), elements = scenario_image_elements(s), open = 0, worst = 0;
    unsigned char *written = calloc((size_t)elements, 1);
    double error2 = 0, image2 = 0, power = 0, worst_excess = -1, got[2], bound = bound_of(s), base;
    char text[512];

    base = s->accumulate ? s->base : 0;
    scenario_describe(s, text, sizeof text);
    for (int64_t i = 0; i < count; i++) {
        const oracle_value *want = &reference[i];
        int64_t index = reference_index(s, i);
        double excess;
        written[index] = 1;
        image_get(type, image, index, got);
        if (want->edges != 0) {
            open++;
            continue;
        }
        excess = hypot(got[0] - base - want->re, got[1] - want->im) - want->slack;
        if (isnan(excess))
            excess = HUGE_VAL;
        if (excess > worst_excess) {
            worst_excess = excess;
            worst = i;
        }
        if (excess > 0)
            error2 += excess * excess;
        image2 += want->re * want->re + want->im * want->im + base * base;
        power += want->power;
    }
    if (!(error2 <= bound * bound * fmax(image2, power))) {
        image_get(type, image, reference_index(s, worst), got);
        test_note("%s: error %.2e, bound %.0e; worst at value %lld (point %lld): %.9g %+.9gi, expected %.9g %+.9gi "
                  "(%lld terms, slack %.2g) [%s] {%s}",
                  target->name, sqrt(error2 / fmax(fmax(image2, power), 1e-300)), bound, (long long)worst,
                  (long long)(worst % oracle_points(&s->o)), got[0], got[1], reference[worst].re + base,
                  reference[worst].im, (long long)reference[worst].terms, reference[worst].slack, text, path);
        free(written);
        return false;
    }
    if (open * 20 > count + 40)
        test_note("the case is badly made: %lld of %lld values lie on an edge [%s]", (long long)open,
                  (long long)count, text);
    for (int64_t i = 0; i < elements; i++) {
        const unsigned char *at = (const unsigned char *)image + (size_t)i * bytes;
        for (size_t k = 0; !written[i] && k < bytes; k++)
            if (at[k] != 0xFF) {
                test_note("%s: image element %lld, which the strides skip, was written [%s] {%s}", target->name,
                          (long long)i, text, path);
                free(written);
                return false;
            }
    }
    free(written);
    return true;
}

static char last_path[200];

const char *scenario_path(void)
{
    return last_path;
}

bool scenario_check(const conformance_target *target, const scenario *s, const oracle_value *reference, int times)
{
    das_type type = scenario_image_type(s);
    size_t bytes = (size_t)scenario_image_elements(s) * das_type_bytes(type);
    unsigned char *image = test_guarded_alloc(bytes, das_type_bytes(type)), *first = NULL;
    das_plan *plan = NULL;
    das_error error = DAS_ERROR_INIT;
    das_plan_info info;
    char text[512], *path = last_path;
    bool ok;

    last_path[0] = '\0';

    scenario_describe(s, text, sizeof text);
    memset(&info, 0, sizeof info);
    info.struct_size = sizeof info;
    ok = scenario_plan(target, s, &plan, &error) == DAS_OK && das_plan_get_info(plan, &info, &error) == DAS_OK;
    if (!ok)
        test_note("%s: plan: %s: %s [%s]", target->name, das_status_name(error.status), error.message, text);
    if (ok)
        snprintf(last_path, sizeof last_path, "%s", das_plan_description(plan));
    if (ok && s->budget != 0 && info.plan_bytes + info.slot_bytes * (uint64_t)info.slots > s->budget) {
        test_note("%s: plan %llu + %d slots of %llu bytes exceed the budget [%s]", target->name,
                  (unsigned long long)info.plan_bytes, (int)info.slots, (unsigned long long)info.slot_bytes, text);
        ok = false;
    }
    for (int time = 0; ok && time < times; time++) {
        memset(image, 0xFF, bytes);
        if (s->accumulate)
            for (int64_t i = 0; i < reference_count(s); i++)
                image_set(type, image, reference_index(s, i), s->base);
        if (run_plan(target, s, plan, image, &error) != DAS_OK) {
            test_note("%s: run: %s: %s [%s] {%s}", target->name, das_status_name(error.status), error.message, text,
                      path);
            ok = false;
        } else if (!test_guarded_intact(image)) {
            test_note("%s: memory around the image was written [%s] {%s}", target->name, text, path);
            ok = false;
        } else if (first != NULL && memcmp(first, image, bytes) != 0) {
            test_note("%s: the second run gave other bits [%s] {%s}", target->name, text, path);
            ok = false;
        }
        if (ok && first == NULL) {
            ok = compare(target, s, image, reference, path);
            first = malloc(bytes);
            if (first != NULL)
                memcpy(first, image, bytes);
        }
    }
    free(first);
    das_plan_destroy(&plan);
    test_guarded_free(image);
    return ok;
}
