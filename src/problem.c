/* From an acquisition, a grid and options to a checked das_problem. */
#include "frontend.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Elements and transmits are indexed by int32 in a das_pair. */
static const int64_t index_limit = INT32_MAX;
/* Sample positions are doubles, which must resolve 1e-6 of a sample. */
static const int64_t sample_limit = (int64_t)1 << 32;
/* Samples beyond which the phase of a clamped sample means nothing, and might not even be a number. */
static const double phase_limit = 0x1p50;
/* Turns of phase a sample beyond which double cannot tell the phase. */
static const double turns_limit = 1e3;

bool das_extent(int64_t first, int32_t count, const int64_t *shape, const int64_t *strides, int64_t *low, int64_t *high)
{
    *low = *high = first;
    for (int32_t k = 0; k < count; k++) {
        int64_t reach;
        if (__builtin_mul_overflow(shape[k] - 1, strides[k], &reach))
            return false;
        int64_t *end = reach < 0 ? low : high;
        if (__builtin_add_overflow(*end, reach, end))
            return false;
    }
    return !__builtin_add_overflow(*high, 1, high);
}

static das_status check_count(int64_t count, int64_t expected, const char *what, const char *of, das_error *error)
{
    if (count == 0 || count == expected)
        return DAS_OK;
    return das_fail(error, DAS_ERROR_ARGUMENT, "the number of %s is %" PRId64 "; expected %" PRId64 ", the number of %s", what, count,
                    expected, of);
}

static das_status check_acquisition(const das_acquisition *a, das_error *error)
{
    int64_t receives = a->receive_count, transmits = a->transmit_count;
    DAS_REQUIRE(receives >= 1, error, "acquisition has no receive elements; expected das_acquisition_set_receive_elements()");
    DAS_REQUIRE(transmits >= 1, error, "acquisition has no transmits; expected at least one das_acquisition_add_..._transmit()");
    DAS_REQUIRE(a->sampling_frequency_hz > 0, error,
                "acquisition has no sampling frequency; expected das_acquisition_set_sampling_frequency()");
    DAS_REQUIRE(a->sound_speed_m_s > 0, error, "acquisition has no sound speed; expected das_acquisition_set_sound_speed()");
    DAS_REQUIRE(a->type != 0, error, "acquisition has no data; expected das_acquisition_set_data()");
    if (receives > index_limit || transmits > index_limit)
        return das_fail(error, DAS_ERROR_TOO_LARGE, "%s is %" PRId64 "; expected at most %" PRId64,
                        receives > index_limit ? "the number of receive elements" : "the number of transmits",
                        receives > index_limit ? receives : transmits, index_limit);
    if (a->sample_count > sample_limit)
        return das_fail(error, DAS_ERROR_TOO_LARGE, "sample_count is %" PRId64 "; expected at most %" PRId64, a->sample_count,
                        sample_limit);
    das_status status = check_count(a->normal_count, receives, "receive normals", "receive elements", error);
    if (status == DAS_OK)
        status = check_count(a->receive_weight_count, receives, "receive weights", "receive elements", error);
    if (status == DAS_OK)
        status = check_count(a->receive_delay_count, receives, "receive delays", "receive elements", error);
    if (status == DAS_OK)
        status = check_count(a->transmit_weight_count, transmits, "transmit weights", "transmits", error);
    if (status == DAS_OK)
        status = check_count(a->transmit_delay_count, transmits, "transmit delays", "transmits", error);
    if (status == DAS_OK && a->start_time_count != 1)
        status = check_count(a->start_time_count, transmits, "start times", "transmits (or 1)", error);
    if (status == DAS_OK)
        status = check_count(a->pair_weight_transmits, transmits, "pair weights, axis 0,", "transmits", error);
    if (status == DAS_OK)
        status = check_count(a->pair_weight_receives, receives, "pair weights, axis 1,", "receive elements", error);
    if (status != DAS_OK)
        return status;
    DAS_REQUIRE(a->demodulation_frequency_hz == 0 || das_type_is_complex(a->type), error,
                "demodulation_frequency_hz is %g with real data (%s); expected 0, or complex data", a->demodulation_frequency_hz,
                das_type_name(a->type));
    DAS_REQUIRE(fabs(a->demodulation_frequency_hz) <= turns_limit * a->sampling_frequency_hz, error,
                "demodulation_frequency_hz is %g with a sampling frequency of %g Hz; expected at most %g times that",
                a->demodulation_frequency_hz, a->sampling_frequency_hz, turns_limit);
    DAS_REQUIRE(isfinite(a->sampling_frequency_hz / a->sound_speed_m_s), error,
                "sampling_frequency_hz is %g with a sound speed of %g m/s; expected a finite number of samples a metre",
                a->sampling_frequency_hz, a->sound_speed_m_s);
    DAS_REQUIRE(a->trace_count == 0 || a->pair_weights == NULL, error,
                "pair weights are set with a trace list; expected the traces' own weights");
    DAS_REQUIRE(a->trace_count == 0 || !a->strides_set, error,
                "das_acquisition_set_data_strides() was called with a trace list; expected das_acquisition_set_trace_strides()");
    DAS_REQUIRE(a->trace_count > 0 || !a->trace_strides_set, error,
                "das_acquisition_set_trace_strides() was called without a trace list; expected das_acquisition_set_data_strides()");
    for (int64_t k = 0; k < a->trace_count; k++) {
        DAS_REQUIRE(a->trace_transmit[k] < transmits, error,
                    "transmit[%" PRId64 "] of the trace list is %" PRId64 "; expected 0 to %" PRId64, k, a->trace_transmit[k],
                    transmits - 1);
        DAS_REQUIRE(a->trace_receive[k] < receives, error,
                    "receive[%" PRId64 "] of the trace list is %" PRId64 "; expected 0 to %" PRId64, k, a->trace_receive[k],
                    receives - 1);
    }
    return DAS_OK;
}

static das_status fill_elements(const das_acquisition *a, das_problem *p, das_error *error)
{
    das_element *receive = das_calloc(a->receive_count, sizeof *receive);
    p->receive = receive;
    das_transmit *transmit = das_calloc(a->transmit_count, sizeof *transmit);
    p->transmit = transmit;
    if (receive == NULL || transmit == NULL)
        return das_fail_memory(error, "elements and transmits",
                               (uint64_t)a->receive_count * sizeof *receive + (uint64_t)a->transmit_count * sizeof *transmit);
    for (int64_t r = 0; r < a->receive_count; r++) {
        memcpy(receive[r].position, a->positions + 3 * r, sizeof receive[r].position);
        receive[r].normal[2] = 1.0;
        if (a->normals != NULL)
            memcpy(receive[r].normal, a->normals + 3 * r, sizeof receive[r].normal);
        receive[r].delay_s = a->receive_delays != NULL ? a->receive_delays[r] : 0.0;
        receive[r].weight = a->receive_weights != NULL ? a->receive_weights[r] : 1.0;
    }
    for (int64_t t = 0; t < a->transmit_count; t++) {
        transmit[t] = a->transmits[t];
        transmit[t].constant_s /= a->sound_speed_m_s; /* was a distance */
        transmit[t].delay_s = a->transmit_delays != NULL ? a->transmit_delays[t] : 0.0;
        transmit[t].weight = a->transmit_weights != NULL ? a->transmit_weights[t] : 1.0;
        if (a->start_times != NULL)
            transmit[t].start_time_s = a->start_times[a->start_time_count == 1 ? 0 : t];
    }
    p->receive_count = a->receive_count;
    p->transmit_count = a->transmit_count;
    p->sampling_frequency_hz = a->sampling_frequency_hz;
    p->sound_speed_m_s = a->sound_speed_m_s;
    p->demodulation_frequency_hz = a->demodulation_frequency_hz;
    return DAS_OK;
}

/* Layout of the data and its extent. */
static das_status fill_data(const das_acquisition *a, das_problem *p, das_error *error)
{
    p->data_type = a->type;
    p->data_complex = das_type_is_complex(a->type);
    p->sample_count = a->sample_count;
    p->frame_count = a->frame_count;
    p->sample_offset = a->sample_offset;
    p->trace_count = a->trace_count;
    p->dense = a->trace_count == 0;
    bool set = a->strides_set || a->trace_strides_set;
    bool fits = true;
    if (set) {
        p->first = a->first;
        p->frame_stride = a->frame_stride;
        p->sample_stride = a->sample_stride;
        p->transmit_stride = p->dense ? a->transmit_stride : 0;
        p->receive_stride = p->dense ? a->receive_stride : 0;
        p->trace_stride = p->dense ? 0 : a->trace_stride;
    } else {
        p->sample_stride = 1;
        p->receive_stride = p->dense ? a->sample_count : 0;
        p->trace_stride = p->dense ? 0 : a->sample_count;
        if (p->dense) {
            fits = !__builtin_mul_overflow(a->receive_count, a->sample_count, &p->transmit_stride);
            fits = fits && !__builtin_mul_overflow(a->transmit_count, p->transmit_stride, &p->frame_stride);
        } else {
            fits = !__builtin_mul_overflow(a->trace_count, a->sample_count, &p->frame_stride);
        }
    }
    const int64_t dense_shape[4] = {a->frame_count, a->transmit_count, a->receive_count, a->sample_count};
    const int64_t dense_strides[4] = {p->frame_stride, p->transmit_stride, p->receive_stride, p->sample_stride};
    const int64_t trace_shape[3] = {a->frame_count, a->trace_count, a->sample_count};
    const int64_t trace_strides[3] = {p->frame_stride, p->trace_stride, p->sample_stride};
    int64_t low = 0, high = 0, bytes = 0;
    if (fits)
        fits = p->dense ? das_extent(p->first, 4, dense_shape, dense_strides, &low, &high)
                        : das_extent(p->first, 3, trace_shape, trace_strides, &low, &high);
    if (!fits || __builtin_mul_overflow(high, (int64_t)das_type_bytes(a->type), &bytes))
        return das_fail(error, DAS_ERROR_TOO_LARGE,
                        "the data of %" PRId64 " frames, %" PRId64 " transmits, %" PRId64 " receive elements, %" PRId64
                        " samples with these strides exceed 2^63 bytes",
                        a->frame_count, a->transmit_count, a->receive_count, a->sample_count);
    DAS_REQUIRE(low >= 0, error, "the data strides reach element %" PRId64 "; expected first and strides that stay at 0 or above",
                low);
    p->input_bytes = (uint64_t)bytes;
    return DAS_OK;
}

/* A pair's weight must survive the arithmetic: one that float cannot hold would turn into infinity, or into the 0 that
 * means "do not look". */
static das_status pair_weight(const das_problem *p, double product, bool zero_factor, int64_t t, int64_t r, das_error *error)
{
    bool wide = p->precision == DAS_PRECISION_DOUBLE;
    double least = wide ? DBL_MIN : (double)FLT_MIN, most = wide ? DBL_MAX : (double)FLT_MAX;
    DAS_REQUIRE(zero_factor || (fabs(product) >= least && fabs(product) <= most), error,
                "the weight of transmit %" PRId64 ", receive %" PRId64 " is %g, the product of theirs and the pair's; expected 0, or "
                "%g to %g in magnitude",
                t, r, product, least, most);
    return DAS_OK;
}

static das_status fill_dense_pairs(const das_acquisition *a, das_problem *p, das_pair *pair, int64_t *first, das_error *error)
{
    int64_t count = 0;
    for (int64_t t = 0; t < p->transmit_count; t++) {
        first[t] = count;
        for (int64_t r = 0; r < p->receive_count; r++) {
            double own = a->pair_weights != NULL ? a->pair_weights[t * p->receive_count + r] : 1.0;
            double weight = p->transmit[t].weight * p->receive[r].weight * own;
            bool zero = p->transmit[t].weight == 0 || p->receive[r].weight == 0 || own == 0;
            das_status status = pair_weight(p, weight, zero, t, r, error);
            if (status != DAS_OK)
                return status;
            if (weight == 0)
                continue;
            pair[count].offset = p->first + t * p->transmit_stride + r * p->receive_stride;
            pair[count].weight = weight;
            pair[count].transmit = (int32_t)t;
            pair[count].receive = (int32_t)r;
            count++;
        }
    }
    first[p->transmit_count] = p->pair_count = count;
    return DAS_OK;
}

/* Stable counting sort of traces by key[order[i]], of `keys` values. */
static void sort_by(const int64_t *key, int64_t keys, const int64_t *order, int64_t *sorted, int64_t count, int64_t *start)
{
    memset(start, 0, (size_t)(keys + 1) * sizeof *start);
    for (int64_t i = 0; i < count; i++)
        start[key[i] + 1]++;
    for (int64_t k = 0; k < keys; k++)
        start[k + 1] += start[k];
    for (int64_t i = 0; i < count; i++)
        sorted[start[key[order[i]]]++] = order[i];
}

static das_status fill_trace_pairs(const das_acquisition *a, das_problem *p, das_pair *pair, int64_t *first, das_error *error)
{
    int64_t count = a->trace_count;
    int64_t keys = p->receive_count > p->transmit_count ? p->receive_count : p->transmit_count;
    int64_t *work = das_calloc(2 * count + keys + 1, sizeof *work);
    if (work == NULL)
        return das_fail_memory(error, "the trace list", (uint64_t)count * 2 * sizeof *work);
    int64_t *order = work, *sorted = work + count, *start = work + 2 * count;
    for (int64_t k = 0; k < count; k++)
        order[k] = k;
    sort_by(a->trace_receive, p->receive_count, order, sorted, count, start);
    sort_by(a->trace_transmit, p->transmit_count, sorted, order, count, start);

    int64_t kept = 0, t = 0;
    das_status status = DAS_OK;
    for (int64_t i = 0; status == DAS_OK && i < count; i++) {
        int64_t k = order[i], r = a->trace_receive[k];
        while (t <= a->trace_transmit[k])
            first[t++] = kept;
        double own = a->trace_weight != NULL ? a->trace_weight[k] : 1.0;
        double weight = p->transmit[t - 1].weight * p->receive[r].weight * own;
        bool zero = p->transmit[t - 1].weight == 0 || p->receive[r].weight == 0 || own == 0;
        status = pair_weight(p, weight, zero, t - 1, r, error);
        if (weight == 0)
            continue;
        pair[kept].offset = p->first + k * p->trace_stride;
        pair[kept].weight = weight;
        pair[kept].transmit = (int32_t)(t - 1);
        pair[kept].receive = (int32_t)r;
        kept++;
    }
    while (t <= p->transmit_count)
        first[t++] = kept;
    p->pair_count = kept;
    free(work);
    return status;
}

static das_status fill_pairs(const das_acquisition *a, das_problem *p, das_error *error)
{
    int64_t capacity = a->trace_count;
    if (p->dense && __builtin_mul_overflow(a->transmit_count, a->receive_count, &capacity))
        capacity = INT64_MAX;
    if (capacity > index_limit)
        return das_fail(error, DAS_ERROR_TOO_LARGE, "the number of (transmit, receive) pairs is %" PRId64 "; expected at most %" PRId64,
                        capacity, index_limit);
    das_pair *pair = das_calloc(capacity, sizeof *pair);
    p->pair = pair;
    int64_t *first = das_calloc(a->transmit_count + 1, sizeof *first);
    p->pair_first = first;
    if (pair == NULL || first == NULL)
        return das_fail_memory(error, "the pairs", (uint64_t)capacity * sizeof *pair);
    das_status status =
        p->dense ? fill_dense_pairs(a, p, pair, first, error) : fill_trace_pairs(a, p, pair, first, error);
    p->complete = p->dense && p->pair_count == p->transmit_count * p->receive_count;
    p->unit_weight = true;
    for (int64_t i = 0; i < p->pair_count; i++)
        p->unit_weight = p->unit_weight && pair[i].weight == 1.0;
    return status;
}

static const das_pair *find_pair(const das_problem *p, int64_t transmit, int64_t receive)
{
    int64_t low = p->pair_first[transmit], high = p->pair_first[transmit + 1];
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (p->pair[middle].receive < receive)
            low = middle + 1;
        else
            high = middle;
    }
    return low < p->pair_first[transmit + 1] && p->pair[low].receive == receive ? &p->pair[low] : NULL;
}

/* See das_problem.reciprocal. */
static bool is_reciprocal(const das_problem *p)
{
    if (p->receive_count != p->transmit_count || p->f_number > 0 || p->keep_transmit || p->keep_receive ||
        p->transmit_times_s != NULL || p->receive_times_s != NULL || p->transmit_weights != NULL || p->receive_weights != NULL)
        return false;
    for (int64_t i = 0; i < p->receive_count; i++) {
        const das_transmit *t = &p->transmit[i];
        if (t->kind != DAS_TRANSMIT_ELEMENT || memcmp(t->point, p->receive[i].position, sizeof t->point) != 0 ||
            t->start_time_s != p->transmit[0].start_time_s ||
            t->delay_s - p->receive[i].delay_s != p->transmit[0].delay_s - p->receive[0].delay_s)
            return false;
    }
    for (int64_t i = 0; i < p->pair_count; i++) {
        const das_pair *pair = &p->pair[i];
        bool repeated = i + 1 < p->pair_count && pair[1].transmit == pair->transmit && pair[1].receive == pair->receive;
        const das_pair *mirror = find_pair(p, pair->receive, pair->transmit);
        if (repeated || mirror == NULL || mirror->weight != pair->weight)
            return false;
    }
    return true;
}

static das_status check_table(const das_table *table, int64_t expected, int64_t expected_points, const char *name, const char *of,
                              das_error *error)
{
    das_status status = check_count(table->count, expected, name, of, error);
    return status != DAS_OK ? status : check_count(table->points, expected_points, name, "points of the grid", error);
}

static das_status fill_options(const das_options *o, das_problem *p, das_error *error)
{
    DAS_REQUIRE(o->window == DAS_WINDOW_RECT || o->f_number > 0, error,
                "window is set with f_number 0; expected an f_number above 0, or DAS_WINDOW_RECT");
    int64_t points = p->grid.point_count;
    das_status status = check_table(&o->transmit_times, p->transmit_count, points, "transmit_times_s", "transmits", error);
    if (status == DAS_OK)
        status = check_table(&o->receive_times, p->receive_count, points, "receive_times_s", "receive elements", error);
    if (status == DAS_OK)
        status = check_table(&o->transmit_weights, p->transmit_count, points, "transmit_weights", "transmits", error);
    if (status == DAS_OK)
        status = check_table(&o->receive_weights, p->receive_count, points, "receive_weights", "receive elements", error);
    if (status != DAS_OK)
        return status;
    p->interpolation = o->interpolation;
    p->transmit_times_s = o->transmit_times.values;
    p->receive_times_s = o->receive_times.values;
    p->transmit_weights = o->transmit_weights.values;
    p->receive_weights = o->receive_weights.values;
    if (p->receive_weights == NULL && o->f_number > 0) {
        p->f_number = o->f_number;
        p->window = o->window;
        p->window_parameter = o->window_parameter;
        p->window_count = o->window_count;
        void *values = NULL;
        status = das_duplicate(o->window_values, o->window_count, sizeof(double), &values, error);
        p->window_values = values;
        /* A Tukey window without a taper is a rectangle. */
        if (p->window == DAS_WINDOW_TUKEY && p->window_parameter == 0)
            p->window = DAS_WINDOW_RECT;
    }
    p->normalization = o->normalization;
    p->keep_transmit = o->keep_transmit;
    p->keep_receive = o->keep_receive;
    p->outside = o->outside;
    p->precision = o->precision;
    DAS_REQUIRE(o->precision == DAS_PRECISION_DOUBLE || fabs(p->sample_offset) <= (double)FLT_MAX, error,
                "the sample offset is %g; expected at most %g in magnitude, or precision double", p->sample_offset, (double)FLT_MAX);
    p->phase_reference = o->phase_reference;
    p->incremental = o->incremental;
    p->fast_paths = o->fast_paths;
    p->slots = (int32_t)o->max_in_flight;
    return status;
}

/* Refuses strides by which two elements could share a place: ordered by size, each must step over all that the smaller
 * ones reach. */
static das_status check_overlap(const int64_t *shape, const int64_t *strides, das_error *error)
{
    int axes[6], count = 0;
    for (int k = 0; k < 6; k++)
        if (shape[k] > 1)
            axes[count++] = k;
    for (int i = 1; i < count; i++)
        for (int j = i; j > 0 && llabs(strides[axes[j]]) < llabs(strides[axes[j - 1]]); j--) {
            int swap = axes[j];
            axes[j] = axes[j - 1];
            axes[j - 1] = swap;
        }
    int64_t reach = 0;
    for (int i = 0; i < count; i++) {
        int64_t stride = llabs(strides[axes[i]]);
        DAS_REQUIRE(stride > reach, error,
                    "image strides[%d] is %" PRId64 ", by which image elements overlap; expected more than %" PRId64 ", the reach of the smaller ones", axes[i],
                    strides[axes[i]], reach);
        reach += stride * (shape[axes[i]] - 1); /* das_extent() has seen that this fits */
    }
    return DAS_OK;
}

static das_status fill_image(const das_options *o, das_problem *p, das_error *error)
{
    bool wide = p->precision == DAS_PRECISION_DOUBLE;
    p->image_type = p->data_complex ? (wide ? DAS_TYPE_CF64 : DAS_TYPE_CF32) : (wide ? DAS_TYPE_F64 : DAS_TYPE_F32);
    if (o->image_type != 0) {
        DAS_REQUIRE(das_type_is_complex(o->image_type) == p->data_complex, error, "image type is %s with %s data; expected a %s type",
                    das_type_name(o->image_type), das_type_name(p->data_type), p->data_complex ? "complex" : "real");
        p->image_type = o->image_type;
    }
    p->image_shape[0] = p->frame_count;
    p->image_shape[1] = p->keep_transmit ? p->transmit_count : 1;
    p->image_shape[2] = p->keep_receive ? p->receive_count : 1;
    for (int k = 0; k < 3; k++)
        p->image_shape[5 - k] = p->grid.counts[k];
    bool fits = true;
    p->image_first = o->image_first;
    if (o->image_strides_set) {
        memcpy(p->image_strides, o->image_strides, sizeof p->image_strides);
        for (int k = 0; k < 6; k++)
            fits = fits && p->image_strides[k] != INT64_MIN;
    } else {
        int64_t stride = 1;
        for (int k = 5; k >= 0; k--) {
            p->image_strides[k] = stride;
            fits = fits && !__builtin_mul_overflow(stride, p->image_shape[k], &stride);
        }
    }
    int64_t low = 0, high = 0, bytes = 0;
    fits = fits && das_extent(p->image_first, 6, p->image_shape, p->image_strides, &low, &high);
    if (!fits || __builtin_mul_overflow(high, (int64_t)das_type_bytes(p->image_type), &bytes))
        return das_fail(error, DAS_ERROR_TOO_LARGE,
                        "the image of %" PRId64 " x %" PRId64 " x %" PRId64 " x %" PRId64 " x %" PRId64 " x %" PRId64
                        " elements exceeds 2^63 bytes",
                        p->image_shape[0], p->image_shape[1], p->image_shape[2], p->image_shape[3], p->image_shape[4],
                        p->image_shape[5]);
    DAS_REQUIRE(low >= 0, error, "the image strides reach element %" PRId64 "; expected first and strides that stay at 0 or above",
                low);
    p->output_bytes = (uint64_t)bytes;
    return check_overlap(p->image_shape, p->image_strides, error);
}

/* The first time beyond a limit, and what it is. */
typedef struct late {
    double limit, time;
    const char *what;
} late;

static void look(late *found, const char *what, double time)
{
    if (found->what == NULL && !(fabs(time) <= found->limit))
        *found = (late){found->limit, time, what};
}

/* With phases and clamped samples every time matters, however far outside the record: all must be in a range where sums of
 * them have a phase. */
static das_status check_phases(const das_options *o, const das_problem *p, das_error *error)
{
    if (p->demodulation_frequency_hz == 0 || p->outside != DAS_OUTSIDE_CLAMP)
        return DAS_OK;
    late found = {.limit = phase_limit / p->sampling_frequency_hz};
    look(&found, "the largest of transmit_times_s", o->transmit_times.most);
    look(&found, "the largest of receive_times_s", o->receive_times.most);
    look(&found, "the way to the grid", das_grid_reach(&p->grid) / p->sound_speed_m_s);
    for (int64_t r = 0; r < p->receive_count; r++) {
        look(&found, "a receive delay", p->receive[r].delay_s);
        for (int k = 0; k < 3; k++)
            look(&found, "the way to a receive element", p->receive[r].position[k] / p->sound_speed_m_s);
    }
    for (int64_t t = 0; t < p->transmit_count; t++) {
        look(&found, "a transmit delay", p->transmit[t].delay_s);
        look(&found, "a start time", p->transmit[t].start_time_s);
        look(&found, "the way from a transmit's origin", p->transmit[t].constant_s);
        for (int k = 0; k < 3; k++) {
            look(&found, "the way to a transmit's position", p->transmit[t].point[k] / p->sound_speed_m_s);
            look(&found, "the way to a transmit's origin", p->transmit[t].origin[k] / p->sound_speed_m_s);
        }
    }
    DAS_REQUIRE(found.what == NULL, error,
                "%s is %g s; expected at most 2^50 samples, %g s, with a demodulation frequency and DAS_OUTSIDE_CLAMP", found.what,
                found.time, found.limit);
    return DAS_OK;
}

/* The input and 64 MiB; tables and point lists, which the caller chose, come on top. */
static uint64_t default_budget(const das_problem *p)
{
    uint64_t points = (uint64_t)p->grid.point_count, bytes = p->input_bytes + ((uint64_t)64 << 20);
    uint64_t transmits = (uint64_t)p->transmit_count, receives = (uint64_t)p->receive_count;
    if (p->transmit_times_s != NULL)
        bytes += transmits * points * sizeof(double);
    if (p->receive_times_s != NULL)
        bytes += receives * points * sizeof(double);
    if (p->transmit_weights != NULL)
        bytes += transmits * points * sizeof(float);
    if (p->receive_weights != NULL)
        bytes += receives * points * sizeof(float);
    if (p->grid.kind == DAS_GRID_POINTS)
        bytes += points * 3 * sizeof(double);
    return bytes;
}

das_status das_problem_create(const das_acquisition *acquisition, const das_grid *grid, const das_options *options,
                              das_problem *problem, das_error *error)
{
    das_options defaults;
    das_options_defaults(&defaults);
    if (options == NULL)
        options = &defaults;
    memset(problem, 0, sizeof *problem);
    das_status status = check_acquisition(acquisition, error);
    if (status == DAS_OK)
        status = das_grid_copy(grid, &problem->grid, error);
    if (status == DAS_OK)
        status = fill_data(acquisition, problem, error);
    if (status == DAS_OK)
        status = fill_elements(acquisition, problem, error);
    if (status == DAS_OK)
        status = fill_options(options, problem, error);
    if (status == DAS_OK)
        status = check_phases(options, problem, error);
    if (status == DAS_OK)
        status = fill_image(options, problem, error);
    if (status == DAS_OK)
        status = fill_pairs(acquisition, problem, error);
    if (status != DAS_OK) {
        das_problem_free(problem);
        return status;
    }
    problem->reciprocal = is_reciprocal(problem);
    problem->memory_budget = options->memory_budget != 0 ? options->memory_budget : default_budget(problem);
    return DAS_OK;
}

void das_problem_free(das_problem *problem)
{
    free((void *)problem->receive);
    free((void *)problem->transmit);
    free((void *)problem->pair);
    free((void *)problem->pair_first);
    free((void *)problem->window_values);
    das_grid_free(&problem->grid);
    problem->receive = NULL;
    problem->transmit = NULL;
    problem->pair = NULL;
    problem->pair_first = NULL;
    problem->window_values = NULL;
    problem->transmit_times_s = problem->receive_times_s = NULL;
    problem->transmit_weights = problem->receive_weights = NULL;
}
