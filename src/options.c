#include "frontend.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void das_options_defaults(das_options *options)
{
    memset(options, 0, sizeof *options);
    options->interpolation = DAS_INTERPOLATION_LINEAR;
    options->max_in_flight = 1;
    options->fast_paths = true;
}

das_status das_options_create(das_options **options, das_error *error)
{
    DAS_REQUIRE_POINTER(options, error);
    *options = das_calloc(1, sizeof **options);
    if (*options == NULL)
        return das_fail_memory(error, "options", sizeof **options);
    das_options_defaults(*options);
    return DAS_OK;
}

void das_options_destroy(das_options **options)
{
    if (options == NULL || *options == NULL)
        return;
    free((*options)->window_values);
    free(*options);
    *options = NULL;
}

/* Sets an enumeration whose values are 0..last. */
static das_status set_enum(int32_t *field, int32_t value, int32_t last, const char *name, const char *expected, das_error *error)
{
    DAS_REQUIRE(value >= 0 && value <= last, error, "%s is %" PRId32 "; expected %s", name, value, expected);
    *field = value;
    return DAS_OK;
}

das_status das_options_set_interpolation(das_options *options, das_interpolation interpolation, das_error *error)
{
    DAS_REQUIRE_POINTER(options, error);
    return set_enum(&options->interpolation, interpolation, DAS_INTERPOLATION_LANCZOS, "interpolation",
                    "DAS_INTERPOLATION_NEAREST to DAS_INTERPOLATION_LANCZOS", error);
}

das_status das_options_set_f_number(das_options *options, double f_number, das_error *error)
{
    DAS_REQUIRE_POINTER(options, error);
    DAS_REQUIRE(f_number >= 0 && f_number <= 1e9, error, "f_number is %g; expected 0 (no limit) to 1e9", f_number);
    options->f_number = f_number;
    return DAS_OK;
}

das_status das_options_set_window(das_options *options, das_window window, double parameter, das_error *error)
{
    DAS_REQUIRE_POINTER(options, error);
    if (window == DAS_WINDOW_TUKEY)
        DAS_REQUIRE(parameter >= 0 && parameter <= 1, error, "parameter is %g; expected 0 to 1 for DAS_WINDOW_TUKEY", parameter);
    das_status status = set_enum(&options->window, window, DAS_WINDOW_TUKEY, "window",
                                 "DAS_WINDOW_RECT to DAS_WINDOW_TUKEY, or das_options_set_window_table()", error);
    if (status != DAS_OK)
        return status;
    options->window_parameter = window == DAS_WINDOW_TUKEY ? parameter : 0.0;
    free(options->window_values);
    options->window_values = NULL;
    options->window_count = 0;
    return DAS_OK;
}

das_status das_options_set_window_table(das_options *options, int64_t count, const double *values, das_error *error)
{
    DAS_REQUIRE_POINTER(options, error);
    DAS_REQUIRE(count >= 2 && count <= 65536, error, "count is %" PRId64 "; expected 2 to 65536 values", count);
    DAS_REQUIRE_POINTER(values, error);
    das_status status = das_check_finite(values, count, "values", error);
    void *copy = NULL;
    if (status == DAS_OK)
        status = das_duplicate(values, count, sizeof *values, &copy, error);
    if (status != DAS_OK)
        return status;
    free(options->window_values);
    options->window = DAS_WINDOW_TABLE;
    options->window_parameter = 0.0;
    options->window_values = copy;
    options->window_count = count;
    return DAS_OK;
}

das_status das_options_set_normalization(das_options *options, das_normalization normalization, das_error *error)
{
    DAS_REQUIRE_POINTER(options, error);
    return set_enum(&options->normalization, normalization, DAS_NORMALIZATION_WEIGHTS, "normalization",
                    "DAS_NORMALIZATION_NONE, COUNT or WEIGHTS", error);
}

das_status das_options_set_keep_transmit(das_options *options, int32_t keep, das_error *error)
{
    DAS_REQUIRE_POINTER(options, error);
    options->keep_transmit = keep != 0;
    return DAS_OK;
}

das_status das_options_set_keep_receive(das_options *options, int32_t keep, das_error *error)
{
    DAS_REQUIRE_POINTER(options, error);
    options->keep_receive = keep != 0;
    return DAS_OK;
}

das_status das_options_set_outside(das_options *options, das_outside outside, das_error *error)
{
    DAS_REQUIRE_POINTER(options, error);
    return set_enum(&options->outside, outside, DAS_OUTSIDE_CLAMP, "outside", "DAS_OUTSIDE_ZERO or DAS_OUTSIDE_CLAMP", error);
}

das_status das_options_set_precision(das_options *options, das_precision precision, das_error *error)
{
    DAS_REQUIRE_POINTER(options, error);
    return set_enum(&options->precision, precision, DAS_PRECISION_DOUBLE, "precision",
                    "DAS_PRECISION_EXACT, REDUCED or DOUBLE", error);
}

das_status das_options_set_image_type(das_options *options, das_type type, das_error *error)
{
    DAS_REQUIRE_POINTER(options, error);
    DAS_REQUIRE(type == 0 || type == DAS_TYPE_F32 || type == DAS_TYPE_F64 || type == DAS_TYPE_CF32 || type == DAS_TYPE_CF64, error,
                "type is %" PRId32 " (%s); expected 0, DAS_TYPE_F32, F64, CF32 or CF64", type, das_type_name(type));
    options->image_type = type;
    return DAS_OK;
}

das_status das_options_set_image_strides(das_options *options, int64_t first, const int64_t strides[6], das_error *error)
{
    DAS_REQUIRE_POINTER(options, error);
    DAS_REQUIRE(first >= 0, error, "first is %" PRId64 "; expected 0 or more", first);
    options->image_strides_set = strides != NULL;
    options->image_first = first;
    memset(options->image_strides, 0, sizeof options->image_strides);
    if (strides != NULL)
        memcpy(options->image_strides, strides, sizeof options->image_strides);
    return DAS_OK;
}

das_status das_options_set_phase_reference(das_options *options, das_phase_reference reference, das_error *error)
{
    DAS_REQUIRE_POINTER(options, error);
    return set_enum(&options->phase_reference, reference, DAS_PHASE_REFERENCE_SAMPLE_ZERO, "reference",
                    "DAS_PHASE_REFERENCE_TIME_ZERO or DAS_PHASE_REFERENCE_SAMPLE_ZERO", error);
}

das_status das_options_set_max_in_flight(das_options *options, int64_t count, das_error *error)
{
    DAS_REQUIRE_POINTER(options, error);
    DAS_REQUIRE(count >= 1 && count <= 64, error, "count is %" PRId64 "; expected 1 to 64", count);
    options->max_in_flight = count;
    return DAS_OK;
}

das_status das_options_set_incremental(das_options *options, int32_t incremental, das_error *error)
{
    DAS_REQUIRE_POINTER(options, error);
    options->incremental = incremental != 0;
    return DAS_OK;
}

das_status das_options_set_memory_budget(das_options *options, uint64_t bytes, das_error *error)
{
    DAS_REQUIRE_POINTER(options, error);
    options->memory_budget = bytes;
    return DAS_OK;
}

das_status das_options_set_fast_paths(das_options *options, int32_t allowed, das_error *error)
{
    DAS_REQUIRE_POINTER(options, error);
    options->fast_paths = allowed != 0;
    return DAS_OK;
}

/* A table [count][point_count] of times (double) or weights (float), or none with NULL and counts 0. */
static das_status set_table(das_table *table, bool times, int64_t count, int64_t point_count, const void *values,
                            const char *count_name, const char *name, das_error *error)
{
    double most = 0.0;
    if (values == NULL) {
        DAS_REQUIRE(count == 0 && point_count == 0, error, "%s is NULL with counts %" PRId64 " and %" PRId64 "; expected a table, or 0 and 0",
                    name, count, point_count);
    } else {
        das_status status = das_check_count(count, 1, count_name, error);
        if (status == DAS_OK)
            status = das_check_count(point_count, count, "point_count", error);
        if (status != DAS_OK)
            return status;
    }
    for (int64_t i = 0; i < count * point_count; i++) {
        double value = times ? ((const double *)values)[i] : (double)((const float *)values)[i];
        DAS_REQUIRE(times ? !isinf(value) : isfinite(value), error, "%s[%" PRId64 "][%" PRId64 "] is %g; expected %s", name, i / point_count,
                    i % point_count, value, times ? "seconds, or NaN for no path" : "a finite number");
        if (fabs(value) > most)
            most = fabs(value);
    }
    *table = (das_table){count, point_count, values, most};
    return DAS_OK;
}

das_status das_options_set_transmit_times(das_options *options, int64_t transmit_count, int64_t point_count,
                                          const double *transmit_times_s, das_error *error)
{
    DAS_REQUIRE_POINTER(options, error);
    return set_table(&options->transmit_times, true, transmit_count, point_count, transmit_times_s, "transmit_count",
                     "transmit_times_s", error);
}

das_status das_options_set_receive_times(das_options *options, int64_t receive_count, int64_t point_count,
                                         const double *receive_times_s, das_error *error)
{
    DAS_REQUIRE_POINTER(options, error);
    return set_table(&options->receive_times, true, receive_count, point_count, receive_times_s, "receive_count",
                     "receive_times_s", error);
}

das_status das_options_set_transmit_weights(das_options *options, int64_t transmit_count, int64_t point_count,
                                            const float *transmit_weights, das_error *error)
{
    DAS_REQUIRE_POINTER(options, error);
    return set_table(&options->transmit_weights, false, transmit_count, point_count, transmit_weights, "transmit_count",
                     "transmit_weights", error);
}

das_status das_options_set_receive_weights(das_options *options, int64_t receive_count, int64_t point_count,
                                           const float *receive_weights, das_error *error)
{
    DAS_REQUIRE_POINTER(options, error);
    return set_table(&options->receive_weights, false, receive_count, point_count, receive_weights, "receive_count",
                     "receive_weights", error);
}
