/* Every argument of every function that can be wrong: its status, its message, and that nothing was changed. */
#include "contract.h"

#include <math.h>
#include <string.h>

#define ARGUMENT DAS_ERROR_ARGUMENT

static const double zeros[9] = {0};

/* ---- acquisition ---- */

static void elements_of(das_acquisition *a)
{
    double bad[6] = {0, 0, 0, 0, NAN, 0};
    const double infinite[3] = {0, 0, -INFINITY};
    REFUSED(das_acquisition_set_receive_elements(NULL, 1, zeros, E), ARGUMENT, "acquisition", "NULL");
    REFUSED(das_acquisition_set_receive_elements(a, 1, NULL, E), ARGUMENT, "positions_m", "NULL");
    REFUSED(das_acquisition_set_receive_elements(a, 0, zeros, E), ARGUMENT, "count", "0");
    REFUSED(das_acquisition_set_receive_elements(a, -3, zeros, E), ARGUMENT, "count", "-3");
    REFUSED(das_acquisition_set_receive_elements(a, 2, bad, E), ARGUMENT, "positions_m", "nan");
    REFUSED(das_acquisition_set_receive_elements(a, 1, infinite, E), ARGUMENT, "positions_m", "-inf");
    REFUSED(das_acquisition_set_receive_normals(NULL, 1, zeros, E), ARGUMENT, "acquisition", "NULL");
    REFUSED(das_acquisition_set_receive_normals(a, 0, zeros, E), ARGUMENT, "count", "0");
    REFUSED(das_acquisition_set_receive_normals(a, -1, zeros, E), ARGUMENT, "count", "-1");
    REFUSED(das_acquisition_set_receive_normals(a, 1, zeros, E), ARGUMENT, "normals", "0");
    REFUSED(das_acquisition_set_receive_normals(a, 2, bad, E), ARGUMENT, "normals", NULL);
    REFUSED(das_acquisition_set_receive_normals(a, 1, infinite, E), ARGUMENT, "normals", "-inf");
}

typedef das_status list_setter(das_acquisition *, int64_t, const double *, das_error *);

/* The setters that take one number per element or transmit. */
static void list_of(das_acquisition *a, list_setter *set, const char *name)
{
    const double bad[2] = {1, NAN}, infinite[1] = {INFINITY};
    REFUSED(set(NULL, 1, zeros, E), ARGUMENT, "acquisition", "NULL");
    REFUSED(set(a, 1, NULL, E), ARGUMENT, name, "NULL");
    REFUSED(set(a, 0, zeros, E), ARGUMENT, "count", "0");
    REFUSED(set(a, -7, zeros, E), ARGUMENT, "count", "-7");
    REFUSED(set(a, 2, bad, E), ARGUMENT, name, "nan");
    REFUSED(set(a, 1, infinite, E), ARGUMENT, name, "inf");
}

static void transmits_of(das_acquisition *a)
{
    const double bad[3] = {0, NAN, 1}, infinite[3] = {INFINITY, 0, 0}, z[3] = {0, 0, 1}, huge[3] = {0, -INFINITY, 0};
    REFUSED(das_acquisition_add_element_transmit(NULL, z, E), ARGUMENT, "acquisition", "NULL");
    REFUSED(das_acquisition_add_element_transmit(a, NULL, E), ARGUMENT, "position_m", "NULL");
    REFUSED(das_acquisition_add_element_transmit(a, bad, E), ARGUMENT, "position_m", "nan");
    REFUSED(das_acquisition_add_element_transmit(a, infinite, E), ARGUMENT, "position_m", "inf");
    REFUSED(das_acquisition_add_element_transmits(NULL, E), ARGUMENT, "acquisition", "NULL");
    REFUSED(das_acquisition_add_plane_transmit(NULL, 0, E), ARGUMENT, "acquisition", "NULL");
    REFUSED(das_acquisition_add_plane_transmit(a, NAN, E), ARGUMENT, "angle_rad", "nan");
    REFUSED(das_acquisition_add_plane_transmit(a, INFINITY, E), ARGUMENT, "angle_rad", "inf");
    REFUSED(das_acquisition_add_plane_transmit(a, 3.25, E), ARGUMENT, "angle_rad", "3.25");
    REFUSED(das_acquisition_add_plane_transmit(a, -3.25, E), ARGUMENT, "angle_rad", "-3.25");
    REFUSED(das_acquisition_add_plane_direction_transmit(NULL, z, NULL, E), ARGUMENT, "acquisition", "NULL");
    REFUSED(das_acquisition_add_plane_direction_transmit(a, NULL, NULL, E), ARGUMENT, "direction", "NULL");
    REFUSED(das_acquisition_add_plane_direction_transmit(a, bad, NULL, E), ARGUMENT, "direction", "nan");
    REFUSED(das_acquisition_add_plane_direction_transmit(a, zeros, NULL, E), ARGUMENT, "direction", "0");
    REFUSED(das_acquisition_add_plane_direction_transmit(a, z, bad, E), ARGUMENT, "origin_m", "nan");
    REFUSED(das_acquisition_add_diverging_transmit(NULL, z, NULL, E), ARGUMENT, "acquisition", "NULL");
    REFUSED(das_acquisition_add_diverging_transmit(a, NULL, NULL, E), ARGUMENT, "source_m", "NULL");
    REFUSED(das_acquisition_add_diverging_transmit(a, infinite, NULL, E), ARGUMENT, "source_m", "inf");
    REFUSED(das_acquisition_add_diverging_transmit(a, z, huge, E), ARGUMENT, "origin_m", "-inf");
    REFUSED(das_acquisition_add_focused_transmit(NULL, z, NULL, E), ARGUMENT, "acquisition", "NULL");
    REFUSED(das_acquisition_add_focused_transmit(a, NULL, NULL, E), ARGUMENT, "focus_m", "NULL");
    REFUSED(das_acquisition_add_focused_transmit(a, bad, NULL, E), ARGUMENT, "focus_m", "nan");
    REFUSED(das_acquisition_add_focused_transmit(a, z, infinite, E), ARGUMENT, "origin_m", "inf");
    REFUSED(das_acquisition_add_focused_transmit(a, zeros, NULL, E), ARGUMENT, "focus_m", "0");
    REFUSED(das_acquisition_add_focused_transmit(a, z, z, E), ARGUMENT, "focus_m", "1");
    REFUSED(das_acquisition_add_oneway_transmit(NULL, E), ARGUMENT, "acquisition", "NULL");
    REFUSED(das_acquisition_clear_transmits(NULL, E), ARGUMENT, "acquisition", "NULL");
}

static void sampling_of(das_acquisition *a)
{
    REFUSED(das_acquisition_set_sampling_frequency(NULL, 1, E), ARGUMENT, "acquisition", "NULL");
    REFUSED(das_acquisition_set_sampling_frequency(a, 0, E), ARGUMENT, "sampling_frequency_hz", "0");
    REFUSED(das_acquisition_set_sampling_frequency(a, -1.5, E), ARGUMENT, "sampling_frequency_hz", "-1.5");
    REFUSED(das_acquisition_set_sampling_frequency(a, NAN, E), ARGUMENT, "sampling_frequency_hz", "nan");
    REFUSED(das_acquisition_set_sampling_frequency(a, INFINITY, E), ARGUMENT, "sampling_frequency_hz", "inf");
    REFUSED(das_acquisition_set_sound_speed(NULL, 1, E), ARGUMENT, "acquisition", "NULL");
    REFUSED(das_acquisition_set_sound_speed(a, 0, E), ARGUMENT, "sound_speed_m_s", "0");
    REFUSED(das_acquisition_set_sound_speed(a, -2, E), ARGUMENT, "sound_speed_m_s", "-2");
    REFUSED(das_acquisition_set_sound_speed(a, NAN, E), ARGUMENT, "sound_speed_m_s", "nan");
    REFUSED(das_acquisition_set_sound_speed(a, INFINITY, E), ARGUMENT, "sound_speed_m_s", "inf");
    REFUSED(das_acquisition_set_demodulation_frequency(NULL, 1, E), ARGUMENT, "acquisition", "NULL");
    REFUSED(das_acquisition_set_demodulation_frequency(a, NAN, E), ARGUMENT, "demodulation_frequency_hz", "nan");
    REFUSED(das_acquisition_set_demodulation_frequency(a, -INFINITY, E), ARGUMENT, "demodulation_frequency_hz", "-inf");
    REFUSED(das_acquisition_set_data(NULL, DAS_TYPE_F32, 1, E), ARGUMENT, "acquisition", "NULL");
    REFUSED(das_acquisition_set_data(a, 0, 1, E), ARGUMENT, "type", "0");
    REFUSED(das_acquisition_set_data(a, -1, 1, E), ARGUMENT, "type", "-1");
    REFUSED(das_acquisition_set_data(a, DAS_TYPE_CF64, 1, E), ARGUMENT, "type", "11");
    REFUSED(das_acquisition_set_data(a, 12, 1, E), ARGUMENT, "type", "12");
    REFUSED(das_acquisition_set_data(a, DAS_TYPE_F32, 0, E), ARGUMENT, "sample_count", "0");
    REFUSED(das_acquisition_set_data(a, DAS_TYPE_F32, -5, E), ARGUMENT, "sample_count", "-5");
    REFUSED(das_acquisition_set_frame_count(NULL, 1, E), ARGUMENT, "acquisition", "NULL");
    REFUSED(das_acquisition_set_frame_count(a, 0, E), ARGUMENT, "frame_count", "0");
    REFUSED(das_acquisition_set_frame_count(a, -9, E), ARGUMENT, "frame_count", "-9");
    REFUSED(das_acquisition_set_sample_offset(NULL, 1, E), ARGUMENT, "acquisition", "NULL");
    REFUSED(das_acquisition_set_sample_offset(a, NAN, E), ARGUMENT, "offset", "nan");
    REFUSED(das_acquisition_set_sample_offset(a, INFINITY, E), ARGUMENT, "offset", "inf");
    REFUSED(das_acquisition_set_data_strides(NULL, 0, 0, 0, 0, 1, E), ARGUMENT, "acquisition", "NULL");
    REFUSED(das_acquisition_set_data_strides(a, -1, 0, 0, 0, 1, E), ARGUMENT, "first", "-1");
    REFUSED(das_acquisition_set_trace_strides(NULL, 0, 0, 0, 1, E), ARGUMENT, "acquisition", "NULL");
    REFUSED(das_acquisition_set_trace_strides(a, -6, 0, 0, 1, E), ARGUMENT, "first", "-6");
}

static void pairs_of(das_acquisition *a)
{
    const double bad[4] = {1, 1, 1, NAN};
    const int64_t index[2] = {0, 1}, negative[2] = {0, -4};
    REFUSED(das_acquisition_set_pair_weights(NULL, 1, 1, zeros, E), ARGUMENT, "acquisition", "NULL");
    REFUSED(das_acquisition_set_pair_weights(a, 1, 1, NULL, E), ARGUMENT, "weights", "NULL");
    REFUSED(das_acquisition_set_receive_normals(a, 3, NULL, E), ARGUMENT, "normals", "NULL");
    REFUSED(das_acquisition_set_pair_weights(a, 0, 1, zeros, E), ARGUMENT, "transmit_count", "0");
    REFUSED(das_acquisition_set_pair_weights(a, 1, -2, zeros, E), ARGUMENT, "receive_count", "-2");
    REFUSED(das_acquisition_set_pair_weights(a, 2, 2, bad, E), ARGUMENT, "weights", "nan");
    REFUSED(das_acquisition_set_traces(NULL, 2, index, index, NULL, E), ARGUMENT, "acquisition", "NULL");
    REFUSED(das_acquisition_set_traces(a, -1, index, index, NULL, E), ARGUMENT, "count", "-1");
    REFUSED(das_acquisition_set_traces(a, 2, NULL, index, NULL, E), ARGUMENT, "transmit", "NULL");
    REFUSED(das_acquisition_set_traces(a, 2, index, NULL, NULL, E), ARGUMENT, "receive", "NULL");
    REFUSED(das_acquisition_set_traces(a, 2, negative, index, NULL, E), ARGUMENT, "transmit", "-4");
    REFUSED(das_acquisition_set_traces(a, 2, index, negative, NULL, E), ARGUMENT, "receive", "-4");
    REFUSED(das_acquisition_set_traces(a, 2, index, index, bad + 2, E), ARGUMENT, "weight", "nan");
}

static void acquisition_setters(das_acquisition *a)
{
    elements_of(a);
    list_of(a, das_acquisition_set_receive_weights, "weights");
    list_of(a, das_acquisition_set_receive_delays, "delays_s");
    list_of(a, das_acquisition_set_transmit_weights, "weights");
    list_of(a, das_acquisition_set_transmit_delays, "delays_s");
    list_of(a, das_acquisition_set_start_times, "start_times_s");
    transmits_of(a);
    sampling_of(a);
    pairs_of(a);
}

/* ---- options ---- */

static void options_setters(das_options *o)
{
    const double bad[2] = {1, INFINITY}, good[2] = {1, 0}, infinite[1] = {-INFINITY};
    const float weight_bad[1] = {NAN}, weight[1] = {1};
    REFUSED(das_options_set_interpolation(NULL, 0, E), ARGUMENT, "options", "NULL");
    REFUSED(das_options_set_interpolation(o, -1, E), ARGUMENT, "interpolation", "-1");
    REFUSED(das_options_set_interpolation(o, 5, E), ARGUMENT, "interpolation", "5");
    REFUSED(das_options_set_f_number(NULL, 1, E), ARGUMENT, "options", "NULL");
    REFUSED(das_options_set_f_number(o, -0.5, E), ARGUMENT, "f_number", "-0.5");
    REFUSED(das_options_set_f_number(o, NAN, E), ARGUMENT, "f_number", "nan");
    REFUSED(das_options_set_f_number(o, INFINITY, E), ARGUMENT, "f_number", "inf");
    REFUSED(das_options_set_window(NULL, 0, 0, E), ARGUMENT, "options", "NULL");
    REFUSED(das_options_set_window(o, -1, 0, E), ARGUMENT, "window", "-1");
    REFUSED(das_options_set_window(o, DAS_WINDOW_TABLE, 0, E), ARGUMENT, "window", "4");
    REFUSED(das_options_set_window(o, 5, 0, E), ARGUMENT, "window", "5");
    REFUSED(das_options_set_window(o, DAS_WINDOW_TUKEY, 1.25, E), ARGUMENT, "parameter", "1.25");
    REFUSED(das_options_set_window(o, DAS_WINDOW_TUKEY, -0.25, E), ARGUMENT, "parameter", "-0.25");
    REFUSED(das_options_set_window(o, DAS_WINDOW_TUKEY, NAN, E), ARGUMENT, "parameter", "nan");
    REFUSED(das_options_set_window_table(NULL, 2, good, E), ARGUMENT, "options", "NULL");
    REFUSED(das_options_set_window_table(o, 2, NULL, E), ARGUMENT, "values", "NULL");
    REFUSED(das_options_set_window_table(o, 1, good, E), ARGUMENT, "count", "1");
    REFUSED(das_options_set_window_table(o, -2, good, E), ARGUMENT, "count", "-2");
    REFUSED(das_options_set_window_table(o, 2, bad, E), ARGUMENT, "values", "inf");
    REFUSED(das_options_set_normalization(NULL, 0, E), ARGUMENT, "options", "NULL");
    REFUSED(das_options_set_normalization(o, 3, E), ARGUMENT, "normalization", "3");
    REFUSED(das_options_set_normalization(o, -1, E), ARGUMENT, "normalization", "-1");
    REFUSED(das_options_set_keep_transmit(NULL, 1, E), ARGUMENT, "options", "NULL");
    REFUSED(das_options_set_keep_receive(NULL, 1, E), ARGUMENT, "options", "NULL");
    REFUSED(das_options_set_outside(NULL, 0, E), ARGUMENT, "options", "NULL");
    REFUSED(das_options_set_outside(o, 2, E), ARGUMENT, "outside", "2");
    REFUSED(das_options_set_outside(o, -1, E), ARGUMENT, "outside", "-1");
    REFUSED(das_options_set_precision(NULL, 0, E), ARGUMENT, "options", "NULL");
    REFUSED(das_options_set_precision(o, 3, E), ARGUMENT, "precision", "3");
    REFUSED(das_options_set_precision(o, -1, E), ARGUMENT, "precision", "-1");
    REFUSED(das_options_set_image_type(NULL, DAS_TYPE_F32, E), ARGUMENT, "options", "NULL");
    REFUSED(das_options_set_image_type(o, DAS_TYPE_I16, E), ARGUMENT, "type", "3");
    REFUSED(das_options_set_image_type(o, 12, E), ARGUMENT, "type", "12");
    REFUSED(das_options_set_image_type(o, -1, E), ARGUMENT, "type", "-1");
    REFUSED(das_options_set_image_strides(NULL, 0, NULL, E), ARGUMENT, "options", "NULL");
    REFUSED(das_options_set_image_strides(o, -2, (const int64_t[6]){1, 1, 1, 1, 1, 1}, E), ARGUMENT, "first", "-2");
    REFUSED(das_options_set_phase_reference(NULL, 0, E), ARGUMENT, "options", "NULL");
    REFUSED(das_options_set_phase_reference(o, 2, E), ARGUMENT, "reference", "2");
    REFUSED(das_options_set_phase_reference(o, -1, E), ARGUMENT, "reference", "-1");
    REFUSED(das_options_set_max_in_flight(NULL, 1, E), ARGUMENT, "options", "NULL");
    REFUSED(das_options_set_max_in_flight(o, 0, E), ARGUMENT, "count", "0");
    REFUSED(das_options_set_max_in_flight(o, 65, E), ARGUMENT, "count", "65");
    REFUSED(das_options_set_incremental(NULL, 1, E), ARGUMENT, "options", "NULL");
    REFUSED(das_options_set_memory_budget(NULL, 1, E), ARGUMENT, "options", "NULL");
    REFUSED(das_options_set_fast_paths(NULL, 1, E), ARGUMENT, "options", "NULL");

    REFUSED(das_options_set_transmit_times(NULL, 1, 1, good, E), ARGUMENT, "options", "NULL");
    REFUSED(das_options_set_transmit_times(o, 0, 1, good, E), ARGUMENT, "transmit_count", "0");
    REFUSED(das_options_set_transmit_times(o, 1, 0, good, E), ARGUMENT, "point_count", "0");
    REFUSED(das_options_set_transmit_times(o, 1, -1, good, E), ARGUMENT, "point_count", "-1");
    REFUSED(das_options_set_transmit_times(o, 1, 1, NULL, E), ARGUMENT, "transmit_times_s", "NULL");
    REFUSED(das_options_set_transmit_times(o, 1, 1, infinite, E), ARGUMENT, "transmit_times_s", "-inf");
    REFUSED(das_options_set_receive_times(NULL, 1, 1, good, E), ARGUMENT, "options", "NULL");
    REFUSED(das_options_set_receive_times(o, -1, 1, good, E), ARGUMENT, "receive_count", "-1");
    REFUSED(das_options_set_receive_times(o, 1, 0, good, E), ARGUMENT, "point_count", "0");
    REFUSED(das_options_set_receive_times(o, 1, 1, NULL, E), ARGUMENT, "receive_times_s", "NULL");
    REFUSED(das_options_set_receive_times(o, 1, 1, infinite, E), ARGUMENT, "receive_times_s", "-inf");
    REFUSED(das_options_set_transmit_weights(NULL, 1, 1, weight, E), ARGUMENT, "options", "NULL");
    REFUSED(das_options_set_transmit_weights(o, 0, 1, weight, E), ARGUMENT, "transmit_count", "0");
    REFUSED(das_options_set_transmit_weights(o, 1, 0, weight, E), ARGUMENT, "point_count", "0");
    REFUSED(das_options_set_transmit_weights(o, 1, 1, NULL, E), ARGUMENT, "transmit_weights", "NULL");
    REFUSED(das_options_set_transmit_weights(o, 1, 1, weight_bad, E), ARGUMENT, "transmit_weights", "nan");
    REFUSED(das_options_set_receive_weights(NULL, 1, 1, weight, E), ARGUMENT, "options", "NULL");
    REFUSED(das_options_set_receive_weights(o, 0, 1, weight, E), ARGUMENT, "receive_count", "0");
    REFUSED(das_options_set_receive_weights(o, 1, -8, weight, E), ARGUMENT, "point_count", "-8");
    REFUSED(das_options_set_receive_weights(o, 1, 1, NULL, E), ARGUMENT, "receive_weights", "NULL");
    REFUSED(das_options_set_receive_weights(o, 1, 1, weight_bad, E), ARGUMENT, "receive_weights", "nan");
    REFUSED(das_options_create(NULL, E), ARGUMENT, "options", "NULL");
}

/* Sizes no machine has: refused, and the small arrays behind them never read. */
static void impossible_sizes(das_acquisition *a, das_options *o)
{
    const int64_t huge[] = {INT64_MAX, INT64_C(4000000000000000000), INT64_C(1) << 60, (INT64_C(1) << 48) + 1};
    const int64_t index[1] = {0};
    const float weight[1] = {1};
    das_grid *grid = NULL;
    for (size_t i = 0; i < sizeof huge / sizeof huge[0]; i++) {
        int64_t n = huge[i];
        das_status large = DAS_ERROR_TOO_LARGE;
        REFUSED(das_acquisition_set_receive_elements(a, n, zeros, E), large, "count", NULL);
        REFUSED(das_acquisition_set_receive_normals(a, n, zeros, E), large, "count", NULL);
        REFUSED(das_acquisition_set_receive_weights(a, n, zeros, E), large, "count", NULL);
        REFUSED(das_acquisition_set_receive_delays(a, n, zeros, E), large, "count", NULL);
        REFUSED(das_acquisition_set_start_times(a, n, zeros, E), large, "count", NULL);
        REFUSED(das_acquisition_set_pair_weights(a, n, n, zeros, E), large, "transmit_count", NULL);
        REFUSED(das_acquisition_set_pair_weights(a, 1, n, zeros, E), large, "receive_count", NULL);
        REFUSED(das_acquisition_set_pair_weights(a, INT64_C(1) << 30, INT64_C(1) << 30, zeros, E), large, "receive_count", NULL);
        REFUSED(das_acquisition_set_traces(a, n, index, index, NULL, E), large, "count", NULL);
        REFUSED(das_options_set_transmit_times(o, n, n, zeros, E), large, "transmit_count", NULL);
        REFUSED(das_options_set_receive_times(o, 1, n, zeros, E), large, "point_count", NULL);
        REFUSED(das_options_set_transmit_weights(o, 1, n, weight, E), large, "point_count", NULL);
        REFUSED(das_options_set_receive_weights(o, n, 1, weight, E), large, "receive_count", NULL);
        EXPECT(das_options_set_window_table(o, n, zeros, E) != DAS_OK);
        REFUSED(das_grid_create_points(n, zeros, &grid, E), large, "count", NULL);
        REFUSED(das_grid_create_polar(zeros, n, zeros, 1, NULL, 1, zeros, &grid, E), large, "angle_count", NULL);
        REFUSED(das_grid_create_polar(zeros, 1, zeros, n, zeros, 1, zeros, &grid, E), large, "elevation_count", NULL);
        REFUSED(das_grid_create_polar(zeros, 1, zeros, 1, NULL, n, zeros, &grid, E), large, "radius_count", NULL);
    }
    EXPECT(grid == NULL);
}

/* Sets everything that can be taken back, and takes it back. */
static void set_and_restore(das_acquisition *a, das_options *o)
{
    static double many[SCENE_TRANSMITS * SCENE_POINTS + SCENE_ELEMENTS * SCENE_POINTS];
    static float weights[SCENE_ELEMENTS * SCENE_POINTS];
    const int64_t index[2] = {0, 2}, strides[6] = {70, 1, 1, 10, 1, 2};
    for (size_t i = 0; i < sizeof many / sizeof many[0]; i++)
        many[i] = 0.25;
    for (size_t i = 0; i < sizeof weights / sizeof weights[0]; i++)
        weights[i] = 0.5f;
    OK(das_acquisition_set_receive_normals(a, SCENE_ELEMENTS, many, E));
    OK(das_acquisition_set_receive_normals(a, 0, NULL, E));
    OK(das_acquisition_set_pair_weights(a, SCENE_TRANSMITS, SCENE_ELEMENTS, many, E));
    OK(das_acquisition_set_pair_weights(a, 0, 0, NULL, E));
    OK(das_acquisition_set_traces(a, 2, index, index, many, E));
    OK(das_acquisition_set_traces(a, 0, NULL, NULL, NULL, E));
    OK(das_acquisition_set_trace_strides(a, 3, 1, 2, 3, E));
    OK(das_acquisition_set_data_strides(a, 0, 768, 256, 64, 1, E));
    OK(das_options_set_transmit_times(o, SCENE_TRANSMITS, SCENE_POINTS, many, E));
    OK(das_options_set_transmit_times(o, 0, 0, NULL, E));
    OK(das_options_set_receive_times(o, SCENE_ELEMENTS, SCENE_POINTS, many, E));
    OK(das_options_set_receive_times(o, 0, 0, NULL, E));
    OK(das_options_set_transmit_weights(o, SCENE_TRANSMITS, SCENE_POINTS, weights, E));
    OK(das_options_set_transmit_weights(o, 0, 0, NULL, E));
    OK(das_options_set_receive_weights(o, SCENE_ELEMENTS, SCENE_POINTS, weights, E));
    OK(das_options_set_receive_weights(o, 0, 0, NULL, E));
    OK(das_options_set_f_number(o, 1.5, E));
    OK(das_options_set_window_table(o, 3, many, E));
    OK(das_options_set_window(o, DAS_WINDOW_RECT, 0, E));
    OK(das_options_set_f_number(o, 0, E));
    OK(das_options_set_image_strides(o, 5, strides, E));
    OK(das_options_set_image_strides(o, 0, NULL, E));
    OK(das_options_set_image_type(o, DAS_TYPE_F64, E));
    OK(das_options_set_image_type(o, 0, E));
    OK(das_options_set_memory_budget(o, 1, E));
    OK(das_options_set_memory_budget(o, 0, E));
}

static void setters(void)
{
    contract_scene scene;
    float before[SCENE_PIXELS], after[SCENE_PIXELS];
    das_device *device = contract_open("cpu");
    if (device == NULL || !contract_scene_create(&scene)) {
        das_device_destroy(&device);
        return;
    }
    bool ok = contract_scene_image(&scene, device, before);
    test_begin("setters of the acquisition name argument, value and expectation");
    acquisition_setters(scene.acquisition);
    das_acquisition *empty = NULL;
    REFUSED(das_acquisition_create(NULL, E), ARGUMENT, "acquisition", "NULL");
    if (OK(das_acquisition_create(&empty, E)))
        REFUSED(das_acquisition_add_element_transmits(empty, E), ARGUMENT, "receive", NULL);
    das_acquisition_destroy(&empty);
    test_begin("setters of the options name argument, value and expectation");
    options_setters(scene.options);
    test_begin("impossible counts are refused without reading the arrays");
    impossible_sizes(scene.acquisition, scene.options);
    test_begin("a failing setter leaves the object as it was");
    EXPECT(ok && contract_scene_image(&scene, device, after) && contract_same(before, after, sizeof before));
    test_begin("NULL, 0 and the last strides set restore the defaults");
    set_and_restore(scene.acquisition, scene.options);
    EXPECT(contract_scene_image(&scene, device, after) && contract_same(before, after, sizeof before));
    test_end();
    contract_scene_destroy(&scene);
    das_device_destroy(&device);
}

/* ---- grids ---- */

#define GRID_REFUSED(call, status, argument, value)            \
    do {                                                       \
        grid = (das_grid *)(void *)&grid;                      \
        REFUSED(call, status, argument, value);                \
        EXPECT_MSG(grid == NULL, "%s leaves a handle", #call); \
    } while (0)

static void grids(void)
{
    const double o[3] = {0, 0, 0}, bad[3] = {0, 0, NAN}, two[2] = {1, 2}, steps[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    double bad_steps[9] = {1, 0, 0, 0, 1, 0, 0, 0, INFINITY};
    const int64_t counts[3] = {2, 3, 4}, none[3] = {2, 0, 4}, negative[3] = {2, 3, -4}, one[3] = {2, 3, 1};
    const int64_t large[3] = {INT64_C(1) << 31, INT64_C(1) << 31, 2}, absurd[3] = {INT64_MAX, INT64_MAX, INT64_MAX};
    double point[3];
    int64_t shape[3];
    das_grid *grid = NULL;
    test_begin("grids name argument, value and expectation");
    REFUSED(das_grid_create_cartesian(o, steps, counts, NULL, E), ARGUMENT, "grid", "NULL");
    GRID_REFUSED(das_grid_create_cartesian(NULL, steps, counts, &grid, E), ARGUMENT, "origin_m", "NULL");
    GRID_REFUSED(das_grid_create_cartesian(o, NULL, counts, &grid, E), ARGUMENT, "steps_m", "NULL");
    GRID_REFUSED(das_grid_create_cartesian(o, steps, NULL, &grid, E), ARGUMENT, "counts", "NULL");
    GRID_REFUSED(das_grid_create_cartesian(bad, steps, counts, &grid, E), ARGUMENT, "origin_m", "nan");
    GRID_REFUSED(das_grid_create_cartesian(o, bad_steps, counts, &grid, E), ARGUMENT, "steps_m", "inf");
    bad_steps[8] = 1e308;
    GRID_REFUSED(das_grid_create_cartesian(o, bad_steps, counts, &grid, E), ARGUMENT, "steps_m", "1e+308");
    bad_steps[8] = INFINITY;
    GRID_REFUSED(das_grid_create_cartesian(o, steps, none, &grid, E), ARGUMENT, "counts", "0");
    GRID_REFUSED(das_grid_create_cartesian(o, steps, negative, &grid, E), ARGUMENT, "counts", "-4");
    GRID_REFUSED(das_grid_create_cartesian(o, steps, large, &grid, E), DAS_ERROR_TOO_LARGE, "counts", NULL);
    GRID_REFUSED(das_grid_create_cartesian(o, steps, absurd, &grid, E), DAS_ERROR_TOO_LARGE, "counts", NULL);
    REFUSED(das_grid_create_polar(o, 2, two, 1, NULL, 2, two, NULL, E), ARGUMENT, "grid", "NULL");
    GRID_REFUSED(das_grid_create_polar(NULL, 2, two, 1, NULL, 2, two, &grid, E), ARGUMENT, "apex_m", "NULL");
    GRID_REFUSED(das_grid_create_polar(bad, 2, two, 1, NULL, 2, two, &grid, E), ARGUMENT, "apex_m", "nan");
    GRID_REFUSED(das_grid_create_polar(o, 0, two, 1, NULL, 2, two, &grid, E), ARGUMENT, "angle_count", "0");
    GRID_REFUSED(das_grid_create_polar(o, 2, NULL, 1, NULL, 2, two, &grid, E), ARGUMENT, "angles_rad", "NULL");
    GRID_REFUSED(das_grid_create_polar(o, 3, bad, 1, NULL, 2, two, &grid, E), ARGUMENT, "angles_rad", "nan");
    GRID_REFUSED(das_grid_create_polar(o, 2, two, 0, NULL, 2, two, &grid, E), ARGUMENT, "elevation_count", "0");
    GRID_REFUSED(das_grid_create_polar(o, 2, two, 2, NULL, 2, two, &grid, E), ARGUMENT, "elevation", "2");
    GRID_REFUSED(das_grid_create_polar(o, 2, two, 3, bad, 2, two, &grid, E), ARGUMENT, "elevations_rad", "nan");
    GRID_REFUSED(das_grid_create_polar(o, 2, two, 1, NULL, -2, two, &grid, E), ARGUMENT, "radius_count", "-2");
    GRID_REFUSED(das_grid_create_polar(o, 2, two, 1, NULL, 2, NULL, &grid, E), ARGUMENT, "radii_m", "NULL");
    GRID_REFUSED(das_grid_create_polar(o, 2, two, 1, NULL, 3, bad, &grid, E), ARGUMENT, "radii_m", "nan");
    REFUSED(das_grid_create_points(1, o, NULL, E), ARGUMENT, "grid", "NULL");
    GRID_REFUSED(das_grid_create_points(0, o, &grid, E), ARGUMENT, "count", "0");
    GRID_REFUSED(das_grid_create_points(-1, o, &grid, E), ARGUMENT, "count", "-1");
    GRID_REFUSED(das_grid_create_points(1, NULL, &grid, E), ARGUMENT, "points_m", "NULL");
    GRID_REFUSED(das_grid_create_points(1, bad, &grid, E), ARGUMENT, "points_m", "nan");

    const int64_t largest[3] = {INT64_C(1) << 31, INT64_C(1) << 31, 1};
    if (OK(das_grid_create_cartesian(o, steps, largest, &grid, E)))
        EXPECT(OK(das_grid_get_shape(grid, shape, E)) && shape[0] == largest[0] && shape[1] == largest[1] && shape[2] == 1);
    das_grid_destroy(&grid);

    /* The step of an axis of length 1 is not used, so it may be anything. */
    if (OK(das_grid_create_cartesian(o, bad_steps, one, &grid, E))) {
        REFUSED(das_grid_get_shape(grid, NULL, E), ARGUMENT, "shape", "NULL");
        REFUSED(das_grid_get_shape(NULL, shape, E), ARGUMENT, "grid", "NULL");
        REFUSED(das_grid_get_point(NULL, 0, 0, 0, point, E), ARGUMENT, "grid", "NULL");
        REFUSED(das_grid_get_point(grid, 0, 0, 0, NULL, E), ARGUMENT, "point_m", "NULL");
        REFUSED(das_grid_get_point(grid, 2, 0, 0, point, E), ARGUMENT, "i0", "2");
        REFUSED(das_grid_get_point(grid, 0, 3, 0, point, E), ARGUMENT, "i1", "3");
        REFUSED(das_grid_get_point(grid, 0, 0, -1, point, E), ARGUMENT, "i2", "-1");
        EXPECT(OK(das_grid_get_point(grid, 1, 2, 0, point, E)) && point[0] == 1 && point[1] == 2 && point[2] == 0);
    }
    das_grid_destroy(&grid);
    test_end();
}

/* ---- what only a plan can see ---- */

/* A plan of the scene is refused, by query and by create alike. */
static void plan_refused(const contract_scene *scene, das_device *device, das_status status, const char *argument,
                         const char *value, int line)
{
    das_plan *plan = (das_plan *)(void *)scene;
    das_plan_info info = {.struct_size = sizeof info};
    contract_refused(das_plan_create(device, scene->acquisition, scene->grid, scene->options, &plan, E), status, argument, value,
                     "das_plan_create()", __FILE__, line);
    EXPECT_MSG(plan == NULL, "%s:%d: das_plan_create() leaves a handle", __FILE__, line);
    contract_refused(das_plan_query(device, scene->acquisition, scene->grid, scene->options, &info, E), status, argument, value,
                     "das_plan_query()", __FILE__, line);
}

#define PLAN_REFUSED(status, argument, value) plan_refused(&scene, device, (status), (argument), (value), __LINE__)

/* Each case starts from a fresh scene, changed by `change`. */
#define CASE(change)                        \
    for (bool once = contract_scene_create(&scene); once && ((void)(change), true); contract_scene_destroy(&scene), once = false)

static void incomplete_plans(das_device *device)
{
    contract_scene scene;
    double ones[64];
    for (int i = 0; i < 64; i++)
        ones[i] = 1;
    test_begin("a plan names what is missing");
    for (int missing = 0; missing < 5; missing++) {
        static const char *const names[5] = {"receive elements", "transmit", "sampling", "sound speed", "data"};
        if (!contract_scene_create(&scene))
            break;
        das_acquisition_destroy(&scene.acquisition);
        das_acquisition *a = NULL;
        OK(das_acquisition_create(&a, E));
        if (missing != 0)
            OK(das_acquisition_set_receive_elements(a, 2, ones, E));
        if (missing != 1)
            OK(das_acquisition_add_plane_transmit(a, 0, E));
        if (missing != 2)
            OK(das_acquisition_set_sampling_frequency(a, 1e6, E));
        if (missing != 3)
            OK(das_acquisition_set_sound_speed(a, 1500, E));
        if (missing != 4)
            OK(das_acquisition_set_data(a, DAS_TYPE_F32, 8, E));
        scene.acquisition = a;
        PLAN_REFUSED(ARGUMENT, names[missing], NULL);
        contract_scene_destroy(&scene);
    }
    das_plan *plan = NULL;
    das_plan_info info = {.struct_size = sizeof info};
    if (contract_scene_create(&scene)) {
        REFUSED(das_plan_create(NULL, scene.acquisition, scene.grid, NULL, &plan, E), ARGUMENT, "device", "NULL");
        REFUSED(das_plan_create(device, NULL, scene.grid, NULL, &plan, E), ARGUMENT, "acquisition", "NULL");
        REFUSED(das_plan_create(device, scene.acquisition, NULL, NULL, &plan, E), ARGUMENT, "grid", "NULL");
        REFUSED(das_plan_create(device, scene.acquisition, scene.grid, NULL, NULL, E), ARGUMENT, "plan", "NULL");
        REFUSED(das_plan_query(NULL, scene.acquisition, scene.grid, NULL, &info, E), ARGUMENT, "device", "NULL");
        REFUSED(das_plan_query(device, NULL, scene.grid, NULL, &info, E), ARGUMENT, "acquisition", "NULL");
        REFUSED(das_plan_query(device, scene.acquisition, NULL, NULL, &info, E), ARGUMENT, "grid", "NULL");
        REFUSED(das_plan_query(device, scene.acquisition, scene.grid, NULL, NULL, E), ARGUMENT, "info", "NULL");
        contract_scene_destroy(&scene);
    }
    test_end();
}

static void mismatched_counts(das_device *device)
{
    contract_scene scene;
    static double many[512];
    static float weights[512];
    for (int i = 0; i < 512; i++)
        many[i] = 1, weights[i] = 1;
    const int64_t first[1] = {0}, beyond_transmits[1] = {SCENE_TRANSMITS}, beyond_elements[1] = {SCENE_ELEMENTS};
    test_begin("a plan refuses counts that do not fit together");
    CASE(OK(das_acquisition_set_receive_normals(scene.acquisition, 3, many, E)))
        PLAN_REFUSED(ARGUMENT, "normals", "3");
    CASE(OK(das_acquisition_set_receive_weights(scene.acquisition, 5, many, E)))
        PLAN_REFUSED(ARGUMENT, "receive weights", "5");
    CASE(OK(das_acquisition_set_receive_delays(scene.acquisition, 5, many, E)))
        PLAN_REFUSED(ARGUMENT, "receive delays", "5");
    CASE(OK(das_acquisition_set_transmit_weights(scene.acquisition, 2, many, E)))
        PLAN_REFUSED(ARGUMENT, "transmit weights", "2");
    CASE(OK(das_acquisition_set_transmit_delays(scene.acquisition, 4, many, E)))
        PLAN_REFUSED(ARGUMENT, "transmit delays", "4");
    CASE(OK(das_acquisition_set_start_times(scene.acquisition, 2, many, E)))
        PLAN_REFUSED(ARGUMENT, "start times", "2");
    CASE(OK(das_acquisition_set_pair_weights(scene.acquisition, 2, SCENE_ELEMENTS, many, E)))
        PLAN_REFUSED(ARGUMENT, "pair weights", "2");
    CASE(OK(das_acquisition_set_pair_weights(scene.acquisition, SCENE_TRANSMITS, 6, many, E)))
        PLAN_REFUSED(ARGUMENT, "pair weights", "6");
    CASE(OK(das_acquisition_set_traces(scene.acquisition, 1, beyond_transmits, first, NULL, E)))
        PLAN_REFUSED(ARGUMENT, "transmit", "3");
    CASE(OK(das_acquisition_set_traces(scene.acquisition, 1, first, beyond_elements, NULL, E)))
        PLAN_REFUSED(ARGUMENT, "receive", "4");
    CASE(OK(das_acquisition_set_traces(scene.acquisition, 1, first, first, NULL, E)))
    {
        OK(das_acquisition_set_pair_weights(scene.acquisition, SCENE_TRANSMITS, SCENE_ELEMENTS, many, E));
        PLAN_REFUSED(ARGUMENT, "pair weights", NULL);
    }
    CASE(OK(das_options_set_transmit_times(scene.options, 2, SCENE_POINTS, many, E)))
        PLAN_REFUSED(ARGUMENT, "transmit_times_s", "2");
    CASE(OK(das_options_set_transmit_times(scene.options, SCENE_TRANSMITS, 34, many, E)))
        PLAN_REFUSED(ARGUMENT, "transmit_times_s", "34");
    CASE(OK(das_options_set_receive_times(scene.options, 5, SCENE_POINTS, many, E)))
        PLAN_REFUSED(ARGUMENT, "receive_times_s", "5");
    CASE(OK(das_options_set_receive_times(scene.options, SCENE_ELEMENTS, 36, many, E)))
        PLAN_REFUSED(ARGUMENT, "receive_times_s", "36");
    CASE(OK(das_options_set_transmit_weights(scene.options, 4, SCENE_POINTS, weights, E)))
        PLAN_REFUSED(ARGUMENT, "transmit_weights", "4");
    CASE(OK(das_options_set_transmit_weights(scene.options, SCENE_TRANSMITS, 1, weights, E)))
        PLAN_REFUSED(ARGUMENT, "transmit_weights", "1");
    CASE(OK(das_options_set_receive_weights(scene.options, 3, SCENE_POINTS, weights, E)))
        PLAN_REFUSED(ARGUMENT, "receive_weights", "3");
    CASE(OK(das_options_set_receive_weights(scene.options, SCENE_ELEMENTS, 7, weights, E)))
        PLAN_REFUSED(ARGUMENT, "receive_weights", "7");
    test_end();
}

static void contradictions(das_device *device)
{
    contract_scene scene;
    const double window[3] = {1, 0.5, 0};
    test_begin("a plan refuses settings that contradict each other");
    CASE(OK(das_acquisition_set_demodulation_frequency(scene.acquisition, 5e6, E)))
        PLAN_REFUSED(ARGUMENT, "demodulation", "5e+06");
    CASE(OK(das_options_set_image_type(scene.options, DAS_TYPE_CF32, E)))
        PLAN_REFUSED(ARGUMENT, "image type", NULL);
    CASE(OK(das_acquisition_set_data(scene.acquisition, DAS_TYPE_CI16, SCENE_SAMPLES, E)))
    {
        OK(das_options_set_image_type(scene.options, DAS_TYPE_F64, E));
        PLAN_REFUSED(ARGUMENT, "image type", NULL);
    }
    CASE(OK(das_options_set_window(scene.options, DAS_WINDOW_HANN, 0, E)))
        PLAN_REFUSED(ARGUMENT, "f_number", NULL);
    CASE(OK(das_options_set_window_table(scene.options, 3, window, E)))
        PLAN_REFUSED(ARGUMENT, "f_number", NULL);
    CASE(OK(das_acquisition_set_trace_strides(scene.acquisition, 0, 0, SCENE_SAMPLES, 1, E)))
        PLAN_REFUSED(ARGUMENT, "trace", NULL);
    const int64_t index[1] = {0};
    CASE(OK(das_acquisition_set_traces(scene.acquisition, 1, index, index, NULL, E)))
    {
        OK(das_acquisition_set_data_strides(scene.acquisition, 0, 768, 256, 64, 1, E));
        PLAN_REFUSED(ARGUMENT, "trace", NULL);
    }
    const double huge[SCENE_ELEMENTS] = {1, 1, 1e200, 1};
    CASE(OK(das_acquisition_set_receive_weights(scene.acquisition, SCENE_ELEMENTS, huge, E)))
    {
        OK(das_acquisition_set_transmit_weights(scene.acquisition, SCENE_TRANSMITS, huge, E));
        PLAN_REFUSED(ARGUMENT, "weight", "1e+200");
    }
    /* Float, the type of the sum, holds neither; 0 is fine whatever it is multiplied by. */
    const double beyond[SCENE_ELEMENTS] = {1, 1, 1e39, 1}, below[SCENE_ELEMENTS] = {1, 1e-60, 1, 1}, none[SCENE_ELEMENTS] = {1, 0, 1, 1};
    CASE(OK(das_acquisition_set_receive_weights(scene.acquisition, SCENE_ELEMENTS, beyond, E)))
        PLAN_REFUSED(ARGUMENT, "weight", "1e+39");
    CASE(OK(das_acquisition_set_receive_weights(scene.acquisition, SCENE_ELEMENTS, below, E)))
        PLAN_REFUSED(ARGUMENT, "weight", "1e-60");
    CASE(OK(das_acquisition_set_receive_weights(scene.acquisition, SCENE_ELEMENTS, none, E)))
    {
        das_plan *plan = NULL;
        OK(das_plan_create(device, scene.acquisition, scene.grid, scene.options, &plan, E));
        das_plan_destroy(&plan);
    }
    CASE(OK(das_acquisition_set_sample_offset(scene.acquisition, 1e300, E)))
        PLAN_REFUSED(ARGUMENT, "offset", "1e+300");
    test_end();
}

/* Times so late that a clamped sample of theirs has no phase are refused; a little earlier the image is finite. */
enum { LATE_TIMES = 8 };

static void set_late(contract_scene *scene, int which, double late)
{
    static double times[SCENE_ELEMENTS * SCENE_POINTS]; /* borrowed */
    const double source[3] = {0, 0, -late * 1540}, elements[SCENE_ELEMENTS][3] = {{0}, {late * 1540}};
    const double origin[3] = {0, late * 1540, 0}, steps[9] = {late * 1540 / 4};
    const int64_t counts[3] = {5, 1, 7};
    memset(times, 0, sizeof times);
    times[SCENE_POINTS + 3] = -late;
    switch (which) {
    case 0:
        OK(das_options_set_transmit_times(scene->options, SCENE_TRANSMITS, SCENE_POINTS, times, E));
        break;
    case 1:
        OK(das_options_set_receive_times(scene->options, SCENE_ELEMENTS, SCENE_POINTS, times, E));
        break;
    case 2:
        OK(das_acquisition_set_receive_delays(scene->acquisition, SCENE_ELEMENTS, times + SCENE_POINTS, E));
        break;
    case 3:
        OK(das_acquisition_set_start_times(scene->acquisition, 1, times + SCENE_POINTS + 3, E));
        break;
    case 4:
        OK(das_acquisition_set_receive_elements(scene->acquisition, SCENE_ELEMENTS, &elements[0][0], E));
        break;
    case 5:
        OK(das_acquisition_clear_transmits(scene->acquisition, E));
        for (int t = 0; t < SCENE_TRANSMITS; t++)
            OK(das_acquisition_add_diverging_transmit(scene->acquisition, source, NULL, E));
        break;
    default:
        das_grid_destroy(&scene->grid);
        OK(das_grid_create_cartesian(which == 6 ? origin : (const double[3]){0}, steps, counts, &scene->grid, E));
        break;
    }
}

static void late_times(das_device *device)
{
    static const char *const names[LATE_TIMES] = {"transmit_times_s", "receive_times_s",  "receive delay", "start time",
                                                  "receive element",  "transmit's", "grid",          "grid"};
    contract_scene scene;
    test_begin("times that leave a clamped sample without a phase are refused");
    for (int which = 0; which < LATE_TIMES; which++) {
        float image[2 * SCENE_PIXELS], data[2 * SCENE_VALUES];
        das_plan *plan = NULL;
        for (int i = 0; i < 2 * SCENE_VALUES; i++)
            data[i] = 1;
        for (int kind = 0; kind < 4; kind++) {
            double late = kind == 0 ? 1e300 : 0x1p49 / 20e6; /* kind 1: allowed; 2, 3: without phase, without clamp */
            CASE(OK(das_acquisition_set_data(scene.acquisition, DAS_TYPE_CF32, SCENE_SAMPLES, E)))
            {
                OK(das_acquisition_set_demodulation_frequency(scene.acquisition, kind == 2 ? 0 : 5e6, E));
                OK(das_options_set_outside(scene.options, kind == 3 ? DAS_OUTSIDE_ZERO : DAS_OUTSIDE_CLAMP, E));
                set_late(&scene, which, kind >= 2 ? 1e290 : late);
                if (kind == 0) {
                    PLAN_REFUSED(ARGUMENT, names[which], NULL);
                } else if (OK(das_plan_create(device, scene.acquisition, scene.grid, scene.options, &plan, E))) {
                    memset(image, 0xFF, sizeof image);
                    OK(das_reconstruct_host(plan, data, sizeof data, image, sizeof image, NULL, E));
                    for (int i = 0; i < 2 * SCENE_PIXELS; i++)
                        EXPECT_MSG(image[i] == image[i], "%s, kind %d: value %d is not a number", names[which], kind, i);
                }
                das_plan_destroy(&plan);
            }
        }
    }
    test_end();
}

static void strides(das_device *device)
{
    contract_scene scene;
    const int64_t big = INT64_MAX / 2;
    test_begin("a plan refuses strides that leave the data or wrap");
    CASE(OK(das_acquisition_set_data_strides(scene.acquisition, 0, 768, 256, 64, -1, E)))
        PLAN_REFUSED(ARGUMENT, "stride", NULL);
    CASE(OK(das_acquisition_set_data_strides(scene.acquisition, 62, 768, 256, 64, -1, E)))
        PLAN_REFUSED(ARGUMENT, "stride", NULL);
    CASE(OK(das_acquisition_set_data_strides(scene.acquisition, 63, 768, 256, 64, -1, E)))
    {
        das_plan_info info = {.struct_size = sizeof info};
        OK(das_plan_query(device, scene.acquisition, scene.grid, scene.options, &info, E));
        EXPECT_INT(info.input_bytes, SCENE_VALUES * 4);
    }
    CASE(OK(das_acquisition_set_data_strides(scene.acquisition, 0, big, big, big, 1, E)))
        PLAN_REFUSED(DAS_ERROR_TOO_LARGE, "stride", NULL);
    CASE(OK(das_acquisition_set_data_strides(scene.acquisition, 0, 768, 256, 64, INT64_MAX, E)))
        PLAN_REFUSED(DAS_ERROR_TOO_LARGE, "stride", NULL);
    CASE(OK(das_acquisition_set_data_strides(scene.acquisition, 0, 768, 256, 64, INT64_MIN, E)))
        EXPECT(das_plan_create(device, scene.acquisition, scene.grid, scene.options, &(das_plan *){NULL}, E) != DAS_OK);
    CASE(OK(das_acquisition_set_data_strides(scene.acquisition, INT64_MAX, 768, 256, 64, 1, E)))
        PLAN_REFUSED(DAS_ERROR_TOO_LARGE, "stride", NULL);
    CASE(OK(das_acquisition_set_data(scene.acquisition, DAS_TYPE_F32, INT64_MAX, E)))
        PLAN_REFUSED(DAS_ERROR_TOO_LARGE, NULL, NULL);
    CASE(OK(das_acquisition_set_frame_count(scene.acquisition, INT64_MAX, E)))
        PLAN_REFUSED(DAS_ERROR_TOO_LARGE, NULL, NULL);

    test_begin("a plan refuses image strides that overlap, leave the image or wrap");
    static const int64_t overlapping[][6] = {
        {35, 35, 35, 5, 5, 0},  {0, 35, 35, 5, 5, 1},     {35, 35, 35, 4, 5, 1}, {34, 35, 35, 5, 5, 1},
        {35, 35, 35, 5, 5, -5}, {35, 35, 35, 35, 35, 35}, {2, 1, 1, 4, 1, 1},
    };
    for (size_t i = 0; i < sizeof overlapping / sizeof overlapping[0]; i++)
        CASE(OK(das_options_set_image_strides(scene.options, 40, overlapping[i], E)))
            PLAN_REFUSED(ARGUMENT, "strides", NULL);
    static const int64_t before[6] = {35, 35, 35, 5, 5, -1}, wraps[6] = {INT64_MAX, 1, 1, 5, 1, 1};
    static const int64_t far_apart[6] = {INT64_MIN, 1, 1, 5, 1, 1};
    CASE(OK(das_options_set_image_strides(scene.options, 3, before, E)))
        PLAN_REFUSED(ARGUMENT, "strides", NULL);
    CASE(OK(das_options_set_image_strides(scene.options, 1, wraps, E)))
        PLAN_REFUSED(DAS_ERROR_TOO_LARGE, "image", NULL);
    CASE(OK(das_options_set_image_strides(scene.options, 0, far_apart, E)))
        EXPECT(das_plan_create(device, scene.acquisition, scene.grid, scene.options, &(das_plan *){NULL}, E) != DAS_OK);
    test_end();
}

static void too_large(das_device *device)
{
    contract_scene scene;
    const double o[3] = {0, 0, 1e-3}, steps[9] = {1e-9, 0, 0, 0, 1e-9, 0, 0, 0, 1e-9};
    const int64_t counts[3] = {2000000000, 2000000000, 1};
    test_begin("a grid of 4e18 points is refused by the plan, at once");
    CASE(das_grid_destroy(&scene.grid))
    {
        OK(das_grid_create_cartesian(o, steps, counts, &scene.grid, E));
        PLAN_REFUSED(DAS_ERROR_TOO_LARGE, NULL, NULL);
    }
    test_begin("a budget that cannot hold the plan is refused");
    CASE(OK(das_options_set_memory_budget(scene.options, 1, E)))
        PLAN_REFUSED(DAS_ERROR_OUT_OF_DEVICE_MEMORY, "1", NULL);
    test_end();
}

/* ---- devices, buffers, queues, events, runs ---- */

static void devices(void)
{
    static const char *const names[] = {"",     "gpu",     "CPU",     "cpu:",   "cpu:x",  "cpu:-1",
                                        "cpu:0x", "cuda:", "auto:0", "cpu 0", "cpu:99999999999999999999", "opencl:1 "};
    das_device_options *options = NULL;
    das_device *device = NULL;
    int64_t count;
    int something;
    test_begin("devices name argument, value and expectation");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        device = (das_device *)(void *)&device;
        REFUSED(das_device_open(names[i], NULL, &device, E), ARGUMENT, "name", names[i]);
        EXPECT(device == NULL);
    }
    device = (das_device *)(void *)&device;
    REFUSED(das_device_open("cpu:1", NULL, &device, E), DAS_ERROR_NO_DEVICE, "name", "cpu:1");
    EXPECT(device == NULL);
    REFUSED(das_device_open("cpu", NULL, NULL, E), ARGUMENT, "device", "NULL");
    device = (das_device *)(void *)&device;
    REFUSED(das_device_open_cuda(NULL, NULL, &device, E), ARGUMENT, "cu_context", "NULL");
    REFUSED(das_device_open_cuda(&something, NULL, NULL, E), ARGUMENT, "device", "NULL");
    EXPECT(device == NULL);
    device = (das_device *)(void *)&device;
    REFUSED(das_device_open_opencl(NULL, &something, NULL, &device, E), ARGUMENT, "cl_context", "NULL");
    EXPECT(device == NULL);
    REFUSED(das_device_open_opencl(&something, NULL, NULL, &device, E), ARGUMENT, "cl_device_id", "NULL");
    REFUSED(das_device_open_opencl(&something, &something, NULL, NULL, E), ARGUMENT, "device", "NULL");
    das_device_info info = {.struct_size = sizeof info};
    REFUSED(das_device_count(NULL, E), ARGUMENT, "count", "NULL");
    REFUSED(das_device_list(0, NULL, E), ARGUMENT, "info", "NULL");
    REFUSED(das_device_list(-1, &info, E), ARGUMENT, "index", "-1");
    OK(das_device_count(&count, E));
    REFUSED(das_device_list(count, &info, E), DAS_ERROR_NO_DEVICE, "index", NULL);
    REFUSED(das_device_list(INT64_MAX, &info, E), DAS_ERROR_NO_DEVICE, "index", "9223372036854775807");
    REFUSED(das_device_get_info(NULL, &info, E), ARGUMENT, "device", "NULL");
    REFUSED(das_device_options_create(NULL, E), ARGUMENT, "options", "NULL");
    REFUSED(das_device_options_set_log(NULL, NULL, NULL, E), ARGUMENT, "options", "NULL");
    REFUSED(das_device_options_set_allocator(NULL, NULL, NULL, NULL, E), ARGUMENT, "options", "NULL");
    REFUSED(das_device_options_set_runner(NULL, NULL, NULL, E), ARGUMENT, "options", "NULL");
    REFUSED(das_device_options_set_thread_count(NULL, 1, E), ARGUMENT, "options", "NULL");
    REFUSED(das_device_options_set_isa(NULL, "scalar", E), ARGUMENT, "options", "NULL");
    if (OK(das_device_options_create(&options, E))) {
        das_release_function *release = (das_release_function *)(void (*)(void))das_options_destroy;
        das_allocate_function *allocate = (das_allocate_function *)(void (*)(void))das_options_destroy;
        REFUSED(das_device_options_set_allocator(options, NULL, release, NULL, E), ARGUMENT, "allocate", "NULL");
        REFUSED(das_device_options_set_allocator(options, allocate, NULL, NULL, E), ARGUMENT, "release", "NULL");
        REFUSED(das_device_options_set_thread_count(options, -1, E), ARGUMENT, "count", "-1");
        REFUSED(das_device_options_set_thread_count(options, 1025, E), ARGUMENT, "count", "1025");
        REFUSED(das_device_options_set_isa(options, "mmx", E), ARGUMENT, "isa", "mmx");
        REFUSED(das_device_options_set_isa(options, "", E), ARGUMENT, "isa", NULL);
        REFUSED(das_device_options_set_isa(options, "an instruction set with a long name", E), ARGUMENT, "isa", "an instruction");
        /* None of that stayed. */
        OK(das_device_open("cpu", options, &device, E));
        REFUSED(das_device_get_info(device, NULL, E), ARGUMENT, "info", "NULL");
        das_device_destroy(&device);
    }
    das_device_options_destroy(&options);
    test_end();
}

static void buffers_and_queues(const char *name)
{
    das_device *device = contract_open(name);
    das_queue *queue = NULL, *none = NULL;
    das_event *event = NULL, *no_event = NULL;
    das_buffer *buffer = NULL, *no_buffer = NULL;
    das_device_info info = {.struct_size = sizeof info};
    char bytes[100];
    double ms;
    int64_t shape[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1}, bad_shape[1] = {-2};
    test_begin("%s: buffers, queues and events name argument, value and expectation", name);
    if (device == NULL || !OK(das_queue_create(device, &queue, E)) || !OK(das_event_create(device, &event, E)) ||
        !OK(das_buffer_create(device, 100, DAS_MEMORY_DEVICE, &buffer, E)))
        goto done;
    REFUSED(das_queue_create(NULL, &none, E), ARGUMENT, "device", "NULL");
    REFUSED(das_queue_create(device, NULL, E), ARGUMENT, "queue", "NULL");
    REFUSED(das_queue_wait(NULL, E), ARGUMENT, "queue", "NULL");
    REFUSED(das_queue_wait_event(NULL, event, E), ARGUMENT, "queue", "NULL");
    REFUSED(das_queue_wait_event(queue, NULL, E), ARGUMENT, "event", "NULL");
    REFUSED(das_event_create(NULL, &no_event, E), ARGUMENT, "device", "NULL");
    REFUSED(das_event_create(device, NULL, E), ARGUMENT, "event", "NULL");
    REFUSED(das_event_record(NULL, queue, E), ARGUMENT, "event", "NULL");
    REFUSED(das_event_record(event, NULL, E), ARGUMENT, "queue", "NULL");
    REFUSED(das_event_query(NULL, E), ARGUMENT, "event", "NULL");
    REFUSED(das_event_wait(NULL, E), ARGUMENT, "event", "NULL");
    REFUSED(das_event_elapsed(NULL, event, &ms, E), ARGUMENT, "start", "NULL");
    REFUSED(das_event_elapsed(event, NULL, &ms, E), ARGUMENT, "stop", "NULL");
    REFUSED(das_event_elapsed(event, event, NULL, E), ARGUMENT, "milliseconds", "NULL");
    REFUSED(das_event_elapsed(event, event, &ms, E), ARGUMENT, "start", "record");

    REFUSED(das_buffer_create(NULL, 1, DAS_MEMORY_DEVICE, &no_buffer, E), ARGUMENT, "device", "NULL");
    REFUSED(das_buffer_create(device, 1, DAS_MEMORY_DEVICE, NULL, E), ARGUMENT, "buffer", "NULL");
    no_buffer = (das_buffer *)(void *)&no_buffer;
    REFUSED(das_buffer_create(device, 0, DAS_MEMORY_DEVICE, &no_buffer, E), ARGUMENT, "bytes", "0");
    EXPECT(no_buffer == NULL);
    REFUSED(das_buffer_create(device, 1, 2, &no_buffer, E), ARGUMENT, "memory", "2");
    REFUSED(das_buffer_create(device, 1, -1, &no_buffer, E), ARGUMENT, "memory", "-1");
    OK(das_device_get_info(device, &info, E));
    EXPECT(info.max_buffer_bytes >= 1);
    if (info.max_buffer_bytes < UINT64_MAX)
        REFUSED(das_buffer_create(device, info.max_buffer_bytes + 1, DAS_MEMORY_DEVICE, &no_buffer, E), DAS_ERROR_TOO_LARGE, "bytes",
                NULL);
    REFUSED(das_buffer_create(device, UINT64_MAX, DAS_MEMORY_DEVICE, &no_buffer, E), DAS_ERROR_TOO_LARGE, "bytes",
            "18446744073709551615");
    EXPECT(no_buffer == NULL);

    REFUSED(das_buffer_upload(queue, NULL, 0, bytes, 1, E), ARGUMENT, "buffer", "NULL");
    REFUSED(das_buffer_upload(queue, buffer, 0, NULL, 1, E), ARGUMENT, "pointer", "NULL");
    REFUSED(das_buffer_upload(queue, buffer, 0, bytes, 101, E), ARGUMENT, "bytes", "101");
    REFUSED(das_buffer_upload(queue, buffer, 1, bytes, 100, E), ARGUMENT, "offset", "1");
    REFUSED(das_buffer_upload(queue, buffer, UINT64_MAX, bytes, 2, E), ARGUMENT, "offset", "18446744073709551615");
    REFUSED(das_buffer_upload(queue, buffer, 50, bytes, UINT64_MAX - 10, E), ARGUMENT, "bytes", "18446744073709551605");
    REFUSED(das_buffer_download(queue, NULL, 0, bytes, 1, E), ARGUMENT, "buffer", "NULL");
    REFUSED(das_buffer_download(queue, buffer, 0, NULL, 1, E), ARGUMENT, "pointer", "NULL");
    REFUSED(das_buffer_download(queue, buffer, 0, bytes, 101, E), ARGUMENT, "bytes", "101");
    REFUSED(das_buffer_download(queue, buffer, 100, bytes, 1, E), ARGUMENT, "offset", "100");
    REFUSED(das_buffer_download(NULL, buffer, 101, bytes, 1, E), ARGUMENT, "offset", "101");

    REFUSED(das_buffer_describe(NULL, DAS_TYPE_F32, 1, shape, NULL, E), ARGUMENT, "buffer", "NULL");
    REFUSED(das_buffer_describe(buffer, 12, 1, shape, NULL, E), ARGUMENT, "type", "12");
    REFUSED(das_buffer_describe(buffer, -1, 1, shape, NULL, E), ARGUMENT, "type", "-1");
    REFUSED(das_buffer_describe(buffer, DAS_TYPE_F32, -1, shape, NULL, E), ARGUMENT, "ndim", "-1");
    REFUSED(das_buffer_describe(buffer, DAS_TYPE_F32, 9, shape, NULL, E), ARGUMENT, "ndim", "9");
    REFUSED(das_buffer_describe(buffer, DAS_TYPE_F32, 1, NULL, NULL, E), ARGUMENT, "shape", "NULL");
    REFUSED(das_buffer_describe(buffer, DAS_TYPE_F32, 1, bad_shape, NULL, E), ARGUMENT, "shape", "-2");
    EXPECT(das_buffer_bytes(NULL) == 0);
    EXPECT(das_buffer_host_pointer(NULL) == NULL);
    EXPECT_INT(das_buffer_bytes(buffer), 100);
done:
    das_buffer_destroy(&buffer);
    das_event_destroy(&event);
    das_queue_destroy(&queue);
    das_device_destroy(&device);
    EXPECT_NO_BREACH();
    test_end();
}

static int32_t never(void *context, double fraction)
{
    (void)context;
    (void)fraction;
    return 0;
}

static void runs(const char *name)
{
    das_device *device = contract_open(name);
    contract_scene scene;
    das_run *run = NULL, *no_run = NULL;
    das_plan *plan = NULL;
    das_buffer *data = NULL, *image = NULL;
    das_timing timing = {.struct_size = sizeof timing};
    float pixels[SCENE_PIXELS];
    test_begin("%s: runs and das_reconstruct name argument, value and expectation", name);
    if (device == NULL || !contract_scene_create(&scene)) {
        das_device_destroy(&device);
        return;
    }
    if (!OK(das_plan_create(device, scene.acquisition, scene.grid, NULL, &plan, E)) || !OK(das_run_create(device, &run, E)) ||
        !OK(das_buffer_create(device, sizeof scene.data, DAS_MEMORY_DEVICE, &data, E)) ||
        !OK(das_buffer_create(device, sizeof pixels, DAS_MEMORY_DEVICE, &image, E)))
        goto done;
    REFUSED(das_run_create(NULL, &no_run, E), ARGUMENT, "device", "NULL");
    REFUSED(das_run_create(device, NULL, E), ARGUMENT, "run", "NULL");
    REFUSED(das_run_set_frames(NULL, 0, 1, 0, E), ARGUMENT, "run", "NULL");
    REFUSED(das_run_set_frames(run, -1, 1, 0, E), ARGUMENT, "first", "-1");
    REFUSED(das_run_set_frames(run, 0, -2, 0, E), ARGUMENT, "count", "-2");
    REFUSED(das_run_set_frames(run, 0, 1, -3, E), ARGUMENT, "image_first", "-3");
    REFUSED(das_run_set_transmits(NULL, 0, 1, E), ARGUMENT, "run", "NULL");
    REFUSED(das_run_set_transmits(run, -1, 1, E), ARGUMENT, "first", "-1");
    REFUSED(das_run_set_transmits(run, 0, -1, E), ARGUMENT, "count", "-1");
    REFUSED(das_run_set_accumulate(NULL, 1, E), ARGUMENT, "run", "NULL");
    REFUSED(das_run_set_progress(NULL, never, NULL, E), ARGUMENT, "run", "NULL");
    REFUSED(das_run_enable_timing(NULL, 1, E), ARGUMENT, "run", "NULL");
    REFUSED(das_run_get_timing(NULL, &timing, E), ARGUMENT, "run", "NULL");
    REFUSED(das_run_get_timing(run, NULL, E), ARGUMENT, "timing", "NULL");
    REFUSED(das_run_get_timing(run, &timing, E), ARGUMENT, "timing", NULL);

    REFUSED(das_reconstruct(NULL, NULL, data, image, run, E), ARGUMENT, "plan", "NULL");
    REFUSED(das_reconstruct(plan, NULL, NULL, image, run, E), ARGUMENT, "data", "NULL");
    REFUSED(das_reconstruct(plan, NULL, data, NULL, run, E), ARGUMENT, "image", "NULL");
    REFUSED(das_reconstruct(plan, NULL, data, data, run, E), ARGUMENT, "image", "data");
    REFUSED(das_reconstruct_host(NULL, scene.data, sizeof scene.data, pixels, sizeof pixels, run, E), ARGUMENT, "plan", "NULL");
    REFUSED(das_reconstruct_host(plan, NULL, sizeof scene.data, pixels, sizeof pixels, run, E), ARGUMENT, "data", "NULL");
    REFUSED(das_reconstruct_host(plan, scene.data, sizeof scene.data, NULL, sizeof pixels, run, E), ARGUMENT, "image", "NULL");
    REFUSED(das_reconstruct_host(plan, scene.data, sizeof scene.data - 1, pixels, sizeof pixels, run, E), ARGUMENT, "data", "6143");
    REFUSED(das_reconstruct_host(plan, scene.data, sizeof scene.data, pixels, sizeof pixels - 1, run, E), ARGUMENT, "image", "279");
    REFUSED(das_reconstruct_host(plan, scene.data, 0, pixels, sizeof pixels, run, E), ARGUMENT, "data", "0");
    REFUSED(das_reconstruct_host(plan, scene.data, sizeof scene.data, scene.data + SCENE_VALUES - 1, sizeof pixels, run, E), ARGUMENT,
            "image", "data");

    /* Settings of the run that the plan excludes. */
    OK(das_run_set_frames(run, 0, 3, 0, E));
    REFUSED(das_reconstruct(plan, NULL, data, image, run, E), ARGUMENT, "count", "3");
    OK(das_run_set_frames(run, 1, 2, 0, E));
    REFUSED(das_reconstruct(plan, NULL, data, image, run, E), ARGUMENT, "data", "6144");
    OK(das_run_set_frames(run, 0, 2, 1, E));
    REFUSED(das_reconstruct(plan, NULL, data, image, run, E), ARGUMENT, "image", "280");
    OK(das_run_set_frames(run, INT64_MAX, 1, 0, E));
    EXPECT(das_reconstruct(plan, NULL, data, image, run, E) != DAS_OK);
    OK(das_run_set_frames(run, 0, 1, INT64_MAX, E));
    EXPECT(das_reconstruct(plan, NULL, data, image, run, E) != DAS_OK);
    OK(das_run_set_frames(run, 0, 0, 0, E));
    OK(das_run_set_transmits(run, 0, 1, E));
    REFUSED(das_reconstruct(plan, NULL, data, image, run, E), DAS_ERROR_UNSUPPORTED, "incremental", NULL);
    OK(das_run_set_transmits(run, 0, 0, E));
    das_plan_destroy(&plan);
    OK(das_options_set_normalization(scene.options, DAS_NORMALIZATION_COUNT, E));
    OK(das_options_set_incremental(scene.options, 1, E));
    if (OK(das_plan_create(device, scene.acquisition, scene.grid, scene.options, &plan, E))) {
        OK(das_run_set_transmits(run, 1, 3, E));
        REFUSED(das_reconstruct(plan, NULL, data, image, run, E), ARGUMENT, "transmit", "3");
        OK(das_run_set_transmits(run, INT64_MAX, INT64_MAX, E));
        REFUSED(das_reconstruct(plan, NULL, data, image, run, E), ARGUMENT, "transmit", NULL);
        OK(das_run_set_transmits(run, 0, 0, E));
        OK(das_run_set_accumulate(run, 1, E));
        REFUSED(das_reconstruct(plan, NULL, data, image, run, E), DAS_ERROR_UNSUPPORTED, "normali", NULL);
    }
    das_plan_info info = {.struct_size = sizeof info};
    REFUSED(das_plan_get_info(NULL, &info, E), ARGUMENT, "plan", "NULL");
    REFUSED(das_plan_get_info(plan, NULL, E), ARGUMENT, "info", "NULL");
    EXPECT(strcmp(das_plan_description(NULL), "") == 0);
done:
    das_buffer_destroy(&data);
    das_buffer_destroy(&image);
    das_run_destroy(&run);
    das_plan_destroy(&plan);
    contract_scene_destroy(&scene);
    das_device_destroy(&device);
    EXPECT_NO_BREACH();
    test_end();
}

static void plans(const char *name)
{
    das_device *device = contract_open(name);
    if (device == NULL)
        return;
    incomplete_plans(device);
    mismatched_counts(device);
    contradictions(device);
    late_times(device);
    strides(device);
    too_large(device);
    das_device_destroy(&device);
}

/* Every call works the same without an error to fill. */
static void without_error(void)
{
    contract_scene scene;
    test_begin("a NULL das_error changes nothing");
    if (contract_scene_create(&scene)) {
        EXPECT_INT(das_acquisition_set_sound_speed(scene.acquisition, -1, NULL), DAS_ERROR_ARGUMENT);
        EXPECT_INT(das_acquisition_set_sound_speed(scene.acquisition, 1500, NULL), DAS_OK);
        EXPECT_INT(das_options_set_f_number(scene.options, NAN, NULL), DAS_ERROR_ARGUMENT);
        EXPECT_INT(das_queue_wait(NULL, NULL), DAS_ERROR_ARGUMENT);
        EXPECT_INT(das_device_open("nothing", NULL, &(das_device *){NULL}, NULL), DAS_ERROR_ARGUMENT);
        contract_scene_destroy(&scene);
    }
    test_end();
}

int main(void)
{
    setters();
    grids();
    devices();
    plans("cpu");
    contract_each_device(buffers_and_queues);
    contract_each_device(runs);
    without_error();
    return test_finish();
}
