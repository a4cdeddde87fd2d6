#include "frontend.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

das_status das_acquisition_create(das_acquisition **acquisition, das_error *error)
{
    DAS_REQUIRE_POINTER(acquisition, error);
    *acquisition = das_calloc(1, sizeof **acquisition);
    if (*acquisition == NULL)
        return das_fail_memory(error, "an acquisition", sizeof **acquisition);
    (*acquisition)->frame_count = 1;
    return DAS_OK;
}

void das_acquisition_destroy(das_acquisition **acquisition)
{
    if (acquisition == NULL || *acquisition == NULL)
        return;
    das_acquisition *a = *acquisition;
    void *const arrays[] = {a->positions,    a->normals,       a->receive_weights, a->receive_delays,
                            a->transmits,    a->transmit_weights, a->transmit_delays, a->start_times,
                            a->pair_weights, a->trace_transmit, a->trace_receive,  a->trace_weight};
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++)
        free(arrays[i]);
    free(a);
    *acquisition = NULL;
}

/* Replaces an array of the acquisition by a checked copy of `values`. */
static das_status set_array(double **array, int64_t *array_count, const double *values, int64_t count, int64_t width,
                            const char *name, das_error *error)
{
    das_status status = das_check_count(count, width, "count", error);
    if (status != DAS_OK)
        return status;
    DAS_REQUIRE(values != NULL, error, "%s is NULL; expected %" PRId64 " values", name, count * width);
    status = das_check_finite(values, count * width, name, error);
    void *copy = NULL;
    if (status == DAS_OK)
        status = das_duplicate(values, count * width, sizeof(double), &copy, error);
    if (status != DAS_OK)
        return status;
    free(*array);
    *array = copy;
    *array_count = count;
    return DAS_OK;
}

das_status das_acquisition_set_receive_elements(das_acquisition *acquisition, int64_t count, const double *positions_m,
                                                das_error *error)
{
    DAS_REQUIRE_POINTER(acquisition, error);
    return set_array(&acquisition->positions, &acquisition->receive_count, positions_m, count, 3, "positions_m", error);
}

/* Geometry is computed with default rounding, whatever the caller's. */

/* Unit vector along v; false if v is zero. Scaled first, so that neither tiny nor huge vectors are lost. */
static bool normalise(const double v[3], double unit[3])
{
    fenv_t saved;
    das_float_environment_enter(&saved);
    double scale = fmax(fabs(v[0]), fmax(fabs(v[1]), fabs(v[2])));
    double by = scale > 0 ? scale : 1.0;
    double x = v[0] / by, y = v[1] / by, z = v[2] / by;
    double length = sqrt(x * x + y * y + z * z);
    unit[0] = x / length;
    unit[1] = y / length;
    unit[2] = z / length;
    das_float_environment_leave(&saved);
    return scale > 0;
}

/* The same for an array that NULL with a count of 0 takes away again. */
static das_status set_optional(double **array, int64_t *array_count, const double *values, int64_t count, const char *name,
                               das_error *error)
{
    if (values != NULL || count != 0)
        return set_array(array, array_count, values, count, 1, name, error);
    free(*array);
    *array = NULL;
    *array_count = 0;
    return DAS_OK;
}

das_status das_acquisition_set_receive_normals(das_acquisition *acquisition, int64_t count, const double *normals,
                                               das_error *error)
{
    DAS_REQUIRE_POINTER(acquisition, error);
    if (normals == NULL)
        return set_optional(&acquisition->normals, &acquisition->normal_count, NULL, count, "normals", error);
    double *unit = NULL;
    int64_t unit_count = 0;
    das_status status = set_array(&unit, &unit_count, normals, count, 3, "normals", error);
    if (status != DAS_OK)
        return status;
    for (int64_t i = 0; i < count; i++)
        if (!normalise(normals + 3 * i, unit + 3 * i)) {
            free(unit);
            return das_fail(error, DAS_ERROR_ARGUMENT, "normals[%" PRId64 "] is (0, 0, 0); expected a direction", i);
        }
    free(acquisition->normals);
    acquisition->normals = unit;
    acquisition->normal_count = count;
    return DAS_OK;
}

das_status das_acquisition_set_receive_weights(das_acquisition *acquisition, int64_t count, const double *weights,
                                               das_error *error)
{
    DAS_REQUIRE_POINTER(acquisition, error);
    return set_optional(&acquisition->receive_weights, &acquisition->receive_weight_count, weights, count, "weights", error);
}

das_status das_acquisition_set_receive_delays(das_acquisition *acquisition, int64_t count, const double *delays_s,
                                              das_error *error)
{
    DAS_REQUIRE_POINTER(acquisition, error);
    return set_optional(&acquisition->receive_delays, &acquisition->receive_delay_count, delays_s, count, "delays_s", error);
}

/* Room for `count` more transmits. */
static das_status reserve(das_acquisition *a, int64_t count, das_error *error)
{
    if (a->transmit_capacity - a->transmit_count >= count)
        return DAS_OK;
    int64_t capacity = a->transmit_capacity + a->transmit_capacity / 2 + 16;
    if (capacity < a->transmit_count + count)
        capacity = a->transmit_count + count;
    das_transmit *grown = realloc(a->transmits, (size_t)capacity * sizeof *grown);
    if (grown == NULL)
        return das_fail_memory(error, "transmits", (uint64_t)capacity * sizeof *grown);
    a->transmits = grown;
    a->transmit_capacity = capacity;
    return DAS_OK;
}

static das_status add(das_acquisition *acquisition, das_transmit_kind kind, const double *point, const double *direction,
                      const double *origin, double constant_m, das_error *error)
{
    das_status status = reserve(acquisition, 1, error);
    if (status != DAS_OK)
        return status;
    das_transmit *t = &acquisition->transmits[acquisition->transmit_count++];
    memset(t, 0, sizeof *t);
    t->kind = kind;
    t->constant_s = constant_m;
    t->weight = 1.0;
    if (point != NULL)
        memcpy(t->point, point, sizeof t->point);
    if (direction != NULL)
        memcpy(t->direction, direction, sizeof t->direction);
    if (origin != NULL)
        memcpy(t->origin, origin, sizeof t->origin);
    return DAS_OK;
}

das_status das_acquisition_add_element_transmit(das_acquisition *acquisition, const double position_m[3], das_error *error)
{
    DAS_REQUIRE_POINTER(acquisition, error);
    DAS_REQUIRE_POINTER(position_m, error);
    das_status status = das_check_finite(position_m, 3, "position_m", error);
    return status != DAS_OK ? status : add(acquisition, DAS_TRANSMIT_ELEMENT, position_m, NULL, NULL, 0.0, error);
}

das_status das_acquisition_add_element_transmits(das_acquisition *acquisition, das_error *error)
{
    DAS_REQUIRE_POINTER(acquisition, error);
    int64_t count = acquisition->receive_count;
    DAS_REQUIRE(count >= 1, error, "acquisition has no receive elements; expected das_acquisition_set_receive_elements() before");
    das_status status = reserve(acquisition, count, error);
    for (int64_t i = 0; status == DAS_OK && i < count; i++)
        status = add(acquisition, DAS_TRANSMIT_ELEMENT, acquisition->positions + 3 * i, NULL, NULL, 0.0, error);
    return status;
}

das_status das_acquisition_add_plane_transmit(das_acquisition *acquisition, double angle_rad, das_error *error)
{
    static const double pi = 3.14159265358979323846;
    DAS_REQUIRE_POINTER(acquisition, error);
    DAS_REQUIRE(fabs(angle_rad) <= pi, error, "angle_rad is %g; expected -pi to pi", angle_rad);
    fenv_t saved;
    das_float_environment_enter(&saved);
    const double direction[3] = {sin(angle_rad), 0.0, cos(angle_rad)};
    das_float_environment_leave(&saved);
    return add(acquisition, DAS_TRANSMIT_PLANE, NULL, direction, NULL, 0.0, error);
}

/* The origin given, or (0,0,0). */
static das_status check_origin(const double *origin_m, double origin[3], das_error *error)
{
    memset(origin, 0, 3 * sizeof *origin);
    if (origin_m == NULL)
        return DAS_OK;
    memcpy(origin, origin_m, 3 * sizeof *origin);
    return das_check_finite(origin, 3, "origin_m", error);
}

das_status das_acquisition_add_plane_direction_transmit(das_acquisition *acquisition, const double direction[3],
                                                        const double *origin_m, das_error *error)
{
    double origin[3], unit[3];
    DAS_REQUIRE_POINTER(acquisition, error);
    DAS_REQUIRE_POINTER(direction, error);
    das_status status = das_check_finite(direction, 3, "direction", error);
    if (status == DAS_OK)
        status = check_origin(origin_m, origin, error);
    if (status != DAS_OK)
        return status;
    DAS_REQUIRE(normalise(direction, unit), error, "direction is (0, 0, 0); expected a direction");
    return add(acquisition, DAS_TRANSMIT_PLANE, NULL, unit, origin, 0.0, error);
}

static double distance(const double a[3], const double b[3])
{
    fenv_t saved;
    das_float_environment_enter(&saved);
    double x = a[0] - b[0], y = a[1] - b[1], z = a[2] - b[2];
    double length = sqrt(x * x + y * y + z * z);
    das_float_environment_leave(&saved);
    return length;
}

das_status das_acquisition_add_diverging_transmit(das_acquisition *acquisition, const double source_m[3], const double *origin_m,
                                                  das_error *error)
{
    double origin[3];
    DAS_REQUIRE_POINTER(acquisition, error);
    DAS_REQUIRE_POINTER(source_m, error);
    das_status status = das_check_finite(source_m, 3, "source_m", error);
    if (status == DAS_OK)
        status = check_origin(origin_m, origin, error);
    if (status != DAS_OK)
        return status;
    return add(acquisition, DAS_TRANSMIT_DIVERGING, source_m, NULL, origin, -distance(origin, source_m), error);
}

das_status das_acquisition_add_focused_transmit(das_acquisition *acquisition, const double focus_m[3], const double *origin_m,
                                                das_error *error)
{
    double origin[3], unit[3];
    DAS_REQUIRE_POINTER(acquisition, error);
    DAS_REQUIRE_POINTER(focus_m, error);
    das_status status = das_check_finite(focus_m, 3, "focus_m", error);
    if (status == DAS_OK)
        status = check_origin(origin_m, origin, error);
    if (status != DAS_OK)
        return status;
    const double towards[3] = {focus_m[0] - origin[0], focus_m[1] - origin[1], focus_m[2] - origin[2]};
    DAS_REQUIRE(normalise(towards, unit), error, "focus_m is (%g, %g, %g), the origin; expected another point", focus_m[0],
                focus_m[1], focus_m[2]);
    return add(acquisition, DAS_TRANSMIT_FOCUSED, focus_m, unit, origin, distance(origin, focus_m), error);
}

das_status das_acquisition_add_oneway_transmit(das_acquisition *acquisition, das_error *error)
{
    DAS_REQUIRE_POINTER(acquisition, error);
    return add(acquisition, DAS_TRANSMIT_NONE, NULL, NULL, NULL, 0.0, error);
}

das_status das_acquisition_clear_transmits(das_acquisition *acquisition, das_error *error)
{
    DAS_REQUIRE_POINTER(acquisition, error);
    acquisition->transmit_count = 0;
    return DAS_OK;
}

das_status das_acquisition_set_transmit_weights(das_acquisition *acquisition, int64_t count, const double *weights,
                                                das_error *error)
{
    DAS_REQUIRE_POINTER(acquisition, error);
    return set_optional(&acquisition->transmit_weights, &acquisition->transmit_weight_count, weights, count, "weights", error);
}

das_status das_acquisition_set_transmit_delays(das_acquisition *acquisition, int64_t count, const double *delays_s,
                                               das_error *error)
{
    DAS_REQUIRE_POINTER(acquisition, error);
    return set_optional(&acquisition->transmit_delays, &acquisition->transmit_delay_count, delays_s, count, "delays_s", error);
}

das_status das_acquisition_set_start_times(das_acquisition *acquisition, int64_t count, const double *start_times_s,
                                           das_error *error)
{
    DAS_REQUIRE_POINTER(acquisition, error);
    return set_optional(&acquisition->start_times, &acquisition->start_time_count, start_times_s, count, "start_times_s", error);
}

das_status das_acquisition_set_sampling_frequency(das_acquisition *acquisition, double sampling_frequency_hz, das_error *error)
{
    DAS_REQUIRE_POINTER(acquisition, error);
    DAS_REQUIRE(isfinite(sampling_frequency_hz) && sampling_frequency_hz > 0, error,
                "sampling_frequency_hz is %g; expected a finite number above 0", sampling_frequency_hz);
    acquisition->sampling_frequency_hz = sampling_frequency_hz;
    return DAS_OK;
}

das_status das_acquisition_set_sound_speed(das_acquisition *acquisition, double sound_speed_m_s, das_error *error)
{
    DAS_REQUIRE_POINTER(acquisition, error);
    DAS_REQUIRE(isfinite(sound_speed_m_s) && sound_speed_m_s > 0, error,
                "sound_speed_m_s is %g; expected a finite number above 0", sound_speed_m_s);
    acquisition->sound_speed_m_s = sound_speed_m_s;
    return DAS_OK;
}

das_status das_acquisition_set_demodulation_frequency(das_acquisition *acquisition, double demodulation_frequency_hz,
                                                      das_error *error)
{
    DAS_REQUIRE_POINTER(acquisition, error);
    das_status status = das_check_finite(&demodulation_frequency_hz, 1, "demodulation_frequency_hz", error);
    if (status == DAS_OK)
        acquisition->demodulation_frequency_hz = demodulation_frequency_hz;
    return status;
}

das_status das_acquisition_set_data(das_acquisition *acquisition, das_type type, int64_t sample_count, das_error *error)
{
    DAS_REQUIRE_POINTER(acquisition, error);
    DAS_REQUIRE(type >= DAS_TYPE_I8 && type <= DAS_TYPE_CF32, error, "type is %" PRId32 " (%s); expected DAS_TYPE_I8 to DAS_TYPE_CF32",
                type, das_type_name(type));
    DAS_REQUIRE(sample_count >= 1, error, "sample_count is %" PRId64 "; expected 1 or more", sample_count);
    acquisition->type = type;
    acquisition->sample_count = sample_count;
    return DAS_OK;
}

das_status das_acquisition_set_frame_count(das_acquisition *acquisition, int64_t frame_count, das_error *error)
{
    DAS_REQUIRE_POINTER(acquisition, error);
    DAS_REQUIRE(frame_count >= 1, error, "frame_count is %" PRId64 "; expected 1 or more", frame_count);
    acquisition->frame_count = frame_count;
    return DAS_OK;
}

das_status das_acquisition_set_sample_offset(das_acquisition *acquisition, double offset, das_error *error)
{
    DAS_REQUIRE_POINTER(acquisition, error);
    das_status status = das_check_finite(&offset, 1, "offset", error);
    if (status == DAS_OK)
        acquisition->sample_offset = offset;
    return status;
}

das_status das_acquisition_set_data_strides(das_acquisition *acquisition, int64_t first, int64_t frame, int64_t transmit,
                                            int64_t receive, int64_t sample, das_error *error)
{
    DAS_REQUIRE_POINTER(acquisition, error);
    DAS_REQUIRE(first >= 0, error, "first is %" PRId64 "; expected 0 or more", first);
    acquisition->strides_set = true;
    acquisition->trace_strides_set = false;
    acquisition->first = first;
    acquisition->frame_stride = frame;
    acquisition->transmit_stride = transmit;
    acquisition->receive_stride = receive;
    acquisition->sample_stride = sample;
    return DAS_OK;
}

das_status das_acquisition_set_trace_strides(das_acquisition *acquisition, int64_t first, int64_t frame, int64_t trace,
                                             int64_t sample, das_error *error)
{
    DAS_REQUIRE_POINTER(acquisition, error);
    DAS_REQUIRE(first >= 0, error, "first is %" PRId64 "; expected 0 or more", first);
    acquisition->strides_set = false;
    acquisition->trace_strides_set = true;
    acquisition->first = first;
    acquisition->frame_stride = frame;
    acquisition->trace_stride = trace;
    acquisition->sample_stride = sample;
    return DAS_OK;
}

das_status das_acquisition_set_pair_weights(das_acquisition *acquisition, int64_t transmit_count, int64_t receive_count,
                                            const double *weights, das_error *error)
{
    DAS_REQUIRE_POINTER(acquisition, error);
    if (weights == NULL) {
        DAS_REQUIRE(transmit_count == 0 && receive_count == 0, error,
                    "weights is NULL with counts %" PRId64 " and %" PRId64 "; expected weights, or 0 and 0", transmit_count, receive_count);
        free(acquisition->pair_weights);
        acquisition->pair_weights = NULL;
        acquisition->pair_weight_transmits = acquisition->pair_weight_receives = 0;
        return DAS_OK;
    }
    int64_t ignored;
    das_status status = das_check_count(transmit_count, 1, "transmit_count", error);
    if (status == DAS_OK)
        status = das_check_count(receive_count, transmit_count, "receive_count", error);
    if (status == DAS_OK)
        status = set_array(&acquisition->pair_weights, &ignored, weights, transmit_count * receive_count, 1, "weights", error);
    if (status != DAS_OK)
        return status;
    acquisition->pair_weight_transmits = transmit_count;
    acquisition->pair_weight_receives = receive_count;
    return DAS_OK;
}

das_status das_acquisition_set_traces(das_acquisition *acquisition, int64_t count, const int64_t *transmit,
                                      const int64_t *receive, const double *weight, das_error *error)
{
    DAS_REQUIRE_POINTER(acquisition, error);
    DAS_REQUIRE(count >= 0, error, "count is %" PRId64 "; expected 0 (no list) or more", count);
    if (count > 0) {
        das_status status = das_check_count(count, 1, "count", error);
        if (status != DAS_OK)
            return status;
        DAS_REQUIRE_POINTER(transmit, error);
        DAS_REQUIRE_POINTER(receive, error);
    }
    for (int64_t k = 0; k < count; k++) {
        DAS_REQUIRE(transmit[k] >= 0, error, "transmit[%" PRId64 "] is %" PRId64 "; expected 0 or more", k, transmit[k]);
        DAS_REQUIRE(receive[k] >= 0, error, "receive[%" PRId64 "] is %" PRId64 "; expected 0 or more", k, receive[k]);
    }
    das_status status = weight != NULL ? das_check_finite(weight, count, "weight", error) : DAS_OK;
    void *copies[3] = {NULL, NULL, NULL};
    if (status == DAS_OK)
        status = das_duplicate(transmit, count, sizeof *transmit, &copies[0], error);
    if (status == DAS_OK)
        status = das_duplicate(receive, count, sizeof *receive, &copies[1], error);
    if (status == DAS_OK && weight != NULL)
        status = das_duplicate(weight, count, sizeof *weight, &copies[2], error);
    if (status != DAS_OK) {
        for (int i = 0; i < 3; i++)
            free(copies[i]);
        return status;
    }
    free(acquisition->trace_transmit);
    free(acquisition->trace_receive);
    free(acquisition->trace_weight);
    acquisition->trace_count = count;
    acquisition->trace_transmit = copies[0];
    acquisition->trace_receive = copies[1];
    acquisition->trace_weight = copies[2];
    return DAS_OK;
}
