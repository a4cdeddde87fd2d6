/* The binary interface that compiled callers rely on: sizes, offsets and values that never change.
 * A field may be added at the end of a structure; its line is then added here. */
#include <das/das.h>

#include "testing.h"

#include <stdio.h>
#include <string.h>

#define SIZE(type, bytes) EXPECT_INT(sizeof(type), bytes)
#define FIELD(type, field, offset, bytes)              \
    EXPECT_INT(offsetof(type, field), offset);         \
    EXPECT_INT(sizeof(((type *)0)->field), bytes)
#define VALUE(name, value) EXPECT_INT(name, value)

static void structures(void)
{
    test_begin("layout: das_error");
    SIZE(das_error, 520);
    FIELD(das_error, struct_size, 0, 4);
    FIELD(das_error, status, 4, 4);
    FIELD(das_error, message, 8, 512);
    const das_error fresh = DAS_ERROR_INIT;
    EXPECT_INT(fresh.struct_size, 520);
    EXPECT_INT(fresh.status, 0);
    EXPECT_INT(strlen(fresh.message), 0);
    test_end();

    test_begin("layout: das_device_info");
    SIZE(das_device_info, 352);
    FIELD(das_device_info, struct_size, 0, 4);
    FIELD(das_device_info, is_gpu, 4, 4);
    FIELD(das_device_info, has_double, 8, 4);
    FIELD(das_device_info, compute_units, 12, 4);
    FIELD(das_device_info, memory_bytes, 16, 8);
    FIELD(das_device_info, max_buffer_bytes, 24, 8);
    FIELD(das_device_info, name, 32, 64);
    FIELD(das_device_info, description, 96, 256);
    test_end();

    test_begin("layout: das_plan_info");
    SIZE(das_plan_info, 160);
    FIELD(das_plan_info, struct_size, 0, 4);
    FIELD(das_plan_info, image_type, 4, 4);
    FIELD(das_plan_info, image_shape, 8, 48);
    FIELD(das_plan_info, image_strides, 56, 48);
    FIELD(das_plan_info, points, 104, 8);
    FIELD(das_plan_info, pairs, 112, 8);
    FIELD(das_plan_info, input_bytes, 120, 8);
    FIELD(das_plan_info, output_bytes, 128, 8);
    FIELD(das_plan_info, plan_bytes, 136, 8);
    FIELD(das_plan_info, slot_bytes, 144, 8);
    FIELD(das_plan_info, slots, 152, 4);
    FIELD(das_plan_info, tiles, 156, 4);
    test_end();

    test_begin("layout: das_timing");
    SIZE(das_timing, 40);
    FIELD(das_timing, struct_size, 0, 4);
    FIELD(das_timing, reserved, 4, 4);
    FIELD(das_timing, upload_ms, 8, 8);
    FIELD(das_timing, pack_ms, 16, 8);
    FIELD(das_timing, compute_ms, 24, 8);
    FIELD(das_timing, download_ms, 32, 8);
    test_end();
}

static void enumerations(void)
{
    test_begin("layout: statuses");
    SIZE(das_status, 4);
    VALUE(DAS_OK, 0);
    VALUE(DAS_ERROR_ARGUMENT, -1);
    VALUE(DAS_ERROR_OUT_OF_MEMORY, -2);
    VALUE(DAS_ERROR_OUT_OF_DEVICE_MEMORY, -3);
    VALUE(DAS_ERROR_TOO_LARGE, -4);
    VALUE(DAS_ERROR_UNSUPPORTED, -5);
    VALUE(DAS_ERROR_NOT_BUILT, -6);
    VALUE(DAS_ERROR_NO_DRIVER, -7);
    VALUE(DAS_ERROR_DRIVER_TOO_OLD, -8);
    VALUE(DAS_ERROR_NO_DEVICE, -9);
    VALUE(DAS_ERROR_NO_KERNEL_IMAGE, -10);
    VALUE(DAS_ERROR_WRONG_DEVICE, -11);
    VALUE(DAS_ERROR_NOT_READY, -12);
    VALUE(DAS_ERROR_BUSY, -13);
    VALUE(DAS_ERROR_CANCELLED, -14);
    VALUE(DAS_ERROR_FORKED, -15);
    VALUE(DAS_ERROR_DEVICE_LOST, -16);
    VALUE(DAS_ERROR_FILE, -17);
    VALUE(DAS_ERROR_INTERNAL, -18);
    test_end();

    test_begin("layout: element types");
    SIZE(das_type, 4);
    VALUE(DAS_TYPE_I8, 1);
    VALUE(DAS_TYPE_U8, 2);
    VALUE(DAS_TYPE_I16, 3);
    VALUE(DAS_TYPE_U16, 4);
    VALUE(DAS_TYPE_F16, 5);
    VALUE(DAS_TYPE_F32, 6);
    VALUE(DAS_TYPE_F64, 7);
    VALUE(DAS_TYPE_CI16, 8);
    VALUE(DAS_TYPE_CF16, 9);
    VALUE(DAS_TYPE_CF32, 10);
    VALUE(DAS_TYPE_CF64, 11);
    const size_t bytes[] = {0, 1, 1, 2, 2, 2, 4, 8, 4, 4, 8, 16, 0};
    for (das_type type = 0; type < (das_type)(sizeof bytes / sizeof bytes[0]); type++)
        EXPECT_INT(das_type_bytes(type), bytes[type]);
    EXPECT_INT(das_type_bytes(-1), 0);
    test_end();

    test_begin("layout: options");
    SIZE(das_interpolation, 4);
    SIZE(das_window, 4);
    SIZE(das_normalization, 4);
    SIZE(das_outside, 4);
    SIZE(das_precision, 4);
    SIZE(das_phase_reference, 4);
    SIZE(das_memory, 4);
    VALUE(DAS_INTERPOLATION_NEAREST, 0);
    VALUE(DAS_INTERPOLATION_LINEAR, 1);
    VALUE(DAS_INTERPOLATION_QUADRATIC, 2);
    VALUE(DAS_INTERPOLATION_CUBIC, 3);
    VALUE(DAS_INTERPOLATION_LANCZOS, 4);
    VALUE(DAS_WINDOW_RECT, 0);
    VALUE(DAS_WINDOW_HANN, 1);
    VALUE(DAS_WINDOW_HAMMING, 2);
    VALUE(DAS_WINDOW_TUKEY, 3);
    VALUE(DAS_WINDOW_TABLE, 4);
    VALUE(DAS_NORMALIZATION_NONE, 0);
    VALUE(DAS_NORMALIZATION_COUNT, 1);
    VALUE(DAS_NORMALIZATION_WEIGHTS, 2);
    VALUE(DAS_OUTSIDE_ZERO, 0);
    VALUE(DAS_OUTSIDE_CLAMP, 1);
    VALUE(DAS_PRECISION_EXACT, 0);
    VALUE(DAS_PRECISION_REDUCED, 1);
    VALUE(DAS_PRECISION_DOUBLE, 2);
    VALUE(DAS_PHASE_REFERENCE_TIME_ZERO, 0);
    VALUE(DAS_PHASE_REFERENCE_SAMPLE_ZERO, 1);
    VALUE(DAS_MEMORY_DEVICE, 0);
    VALUE(DAS_MEMORY_HOST, 1);
    VALUE(DAS_LOG_ERROR, 0);
    VALUE(DAS_LOG_WARNING, 1);
    VALUE(DAS_LOG_INFO, 2);
    VALUE(DAS_LOG_DEBUG, 3);
    test_end();
}

static void version(void)
{
    test_begin("layout: the library is of the header's version");
    char text[32];
    snprintf(text, sizeof text, "%d.%d.%d", DAS_VERSION_MAJOR, DAS_VERSION_MINOR, DAS_VERSION_PATCH);
    EXPECT_MSG(strcmp(das_version_string(), text) == 0, "library %s, header %s", das_version_string(), text);
    EXPECT_INT(das_version_number(), DAS_VERSION_MAJOR * 10000 + DAS_VERSION_MINOR * 100 + DAS_VERSION_PATCH);
    test_end();
}

int main(void)
{
    structures();
    enumerations();
    version();
    return test_finish();
}
