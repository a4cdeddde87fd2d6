/* Numbers that may never change, output structures of any size, versions and lists. */
#include "contract.h"

#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- pinned values ---- */

static void pinned(void)
{
    static const struct {
        das_status status;
        int value;
        const char *name;
    } statuses[] = {
        {DAS_OK, 0, "DAS_OK"},
        {DAS_ERROR_ARGUMENT, -1, "DAS_ERROR_ARGUMENT"},
        {DAS_ERROR_OUT_OF_MEMORY, -2, "DAS_ERROR_OUT_OF_MEMORY"},
        {DAS_ERROR_OUT_OF_DEVICE_MEMORY, -3, "DAS_ERROR_OUT_OF_DEVICE_MEMORY"},
        {DAS_ERROR_TOO_LARGE, -4, "DAS_ERROR_TOO_LARGE"},
        {DAS_ERROR_UNSUPPORTED, -5, "DAS_ERROR_UNSUPPORTED"},
        {DAS_ERROR_NOT_BUILT, -6, "DAS_ERROR_NOT_BUILT"},
        {DAS_ERROR_NO_DRIVER, -7, "DAS_ERROR_NO_DRIVER"},
        {DAS_ERROR_DRIVER_TOO_OLD, -8, "DAS_ERROR_DRIVER_TOO_OLD"},
        {DAS_ERROR_NO_DEVICE, -9, "DAS_ERROR_NO_DEVICE"},
        {DAS_ERROR_NO_KERNEL_IMAGE, -10, "DAS_ERROR_NO_KERNEL_IMAGE"},
        {DAS_ERROR_WRONG_DEVICE, -11, "DAS_ERROR_WRONG_DEVICE"},
        {DAS_ERROR_NOT_READY, -12, "DAS_ERROR_NOT_READY"},
        {DAS_ERROR_BUSY, -13, "DAS_ERROR_BUSY"},
        {DAS_ERROR_CANCELLED, -14, "DAS_ERROR_CANCELLED"},
        {DAS_ERROR_FORKED, -15, "DAS_ERROR_FORKED"},
        {DAS_ERROR_DEVICE_LOST, -16, "DAS_ERROR_DEVICE_LOST"},
        {DAS_ERROR_FILE, -17, "DAS_ERROR_FILE"},
        {DAS_ERROR_INTERNAL, -18, "DAS_ERROR_INTERNAL"},
    };
    test_begin("statuses are pinned, with their names");
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        EXPECT_MSG(statuses[i].status == statuses[i].value, "%s is %d", statuses[i].name, (int)statuses[i].status);
        EXPECT_MSG(strcmp(das_status_name(statuses[i].status), statuses[i].name) == 0, "das_status_name(%d) is %s",
                   statuses[i].value, das_status_name(statuses[i].status));
    }
    static const das_status unknown[] = {1, -19, INT32_MIN, INT32_MAX};
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++)
        EXPECT_MSG(strcmp(das_status_name(unknown[i]), "unknown status") == 0, "das_status_name(%d)", (int)unknown[i]);

    test_begin("enumerators are pinned");
    static const struct {
        int value, wanted;
        const char *name;
    } enums[] = {
#define PIN(name, value) {name, value, #name}
        PIN(DAS_LOG_ERROR, 0), PIN(DAS_LOG_WARNING, 1), PIN(DAS_LOG_INFO, 2), PIN(DAS_LOG_DEBUG, 3),
        PIN(DAS_TYPE_I8, 1), PIN(DAS_TYPE_U8, 2), PIN(DAS_TYPE_I16, 3), PIN(DAS_TYPE_U16, 4), PIN(DAS_TYPE_F16, 5),
        PIN(DAS_TYPE_F32, 6), PIN(DAS_TYPE_F64, 7), PIN(DAS_TYPE_CI16, 8), PIN(DAS_TYPE_CF16, 9), PIN(DAS_TYPE_CF32, 10),
        PIN(DAS_TYPE_CF64, 11),
        PIN(DAS_INTERPOLATION_NEAREST, 0), PIN(DAS_INTERPOLATION_LINEAR, 1), PIN(DAS_INTERPOLATION_QUADRATIC, 2),
        PIN(DAS_INTERPOLATION_CUBIC, 3), PIN(DAS_INTERPOLATION_LANCZOS, 4),
        PIN(DAS_WINDOW_RECT, 0), PIN(DAS_WINDOW_HANN, 1), PIN(DAS_WINDOW_HAMMING, 2), PIN(DAS_WINDOW_TUKEY, 3),
        PIN(DAS_WINDOW_TABLE, 4),
        PIN(DAS_NORMALIZATION_NONE, 0), PIN(DAS_NORMALIZATION_COUNT, 1), PIN(DAS_NORMALIZATION_WEIGHTS, 2),
        PIN(DAS_OUTSIDE_ZERO, 0), PIN(DAS_OUTSIDE_CLAMP, 1),
        PIN(DAS_PRECISION_EXACT, 0), PIN(DAS_PRECISION_REDUCED, 1), PIN(DAS_PRECISION_DOUBLE, 2),
        PIN(DAS_PHASE_REFERENCE_TIME_ZERO, 0), PIN(DAS_PHASE_REFERENCE_SAMPLE_ZERO, 1),
        PIN(DAS_MEMORY_DEVICE, 0), PIN(DAS_MEMORY_HOST, 1),
#undef PIN
    };
    for (size_t i = 0; i < sizeof enums / sizeof enums[0]; i++)
        EXPECT_MSG(enums[i].value == enums[i].wanted, "%s is %d", enums[i].name, enums[i].value);

    test_begin("bytes of the element types");
    static const size_t bytes[] = {0, 1, 1, 2, 2, 2, 4, 8, 4, 4, 8, 16, 0};
    for (das_type type = 0; type < 13; type++)
        EXPECT_MSG(das_type_bytes(type) == bytes[type], "das_type_bytes(%d) is %zu", (int)type, das_type_bytes(type));
    EXPECT(das_type_bytes(-1) == 0 && das_type_bytes(INT32_MAX) == 0 && das_type_bytes(INT32_MIN) == 0);
    test_end();
}

/* ---- das_error ---- */

static void errors(void)
{
    test_begin("a das_error of a wrong size is ignored");
    static const uint32_t sizes[] = {0, 1, 4, sizeof(das_error) - 1, sizeof(das_error) + 1, UINT32_MAX};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        das_error e, before;
        memset(&e, 0x5A, sizeof e);
        e.struct_size = sizes[i];
        before = e;
        EXPECT_INT(das_queue_wait(NULL, &e), DAS_ERROR_ARGUMENT);
        EXPECT_MSG(memcmp(&e, &before, sizeof e) == 0, "struct_size %u was written to", (unsigned)sizes[i]);
    }
    test_begin("a das_error is left alone by success");
    das_error e = DAS_ERROR_INIT;
    EXPECT(e.struct_size == sizeof e && e.status == DAS_OK && e.message[0] == '\0');
    das_options *options = NULL;
    e.status = DAS_ERROR_BUSY;
    memset(e.message, 'x', sizeof e.message - 1);
    das_error before = e;
    EXPECT_INT(das_options_create(&options, &e), DAS_OK);
    EXPECT_INT(das_options_set_f_number(options, 1, &e), DAS_OK);
    EXPECT(memcmp(&e, &before, sizeof e) == 0);
    test_begin("messages end inside the array and are one line, however long the names");
    char name[2000];
    das_device *device = NULL;
    memset(name, '\n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    memset(&e, 0x5A, sizeof e);
    e.struct_size = sizeof e;
    EXPECT_INT(das_device_open(name, NULL, &device, &e), DAS_ERROR_ARGUMENT);
    EXPECT(memchr(e.message, '\0', sizeof e.message) != NULL && strpbrk(e.message, "\r\n") == NULL);
    das_options_destroy(&options);
    test_end();
}

/* ---- output structures: the caller's struct_size rules ---- */

typedef das_status fill_function(const void *from, void *out, das_error *error);

static das_status fill_device_info(const void *from, void *out, das_error *error)
{
    return das_device_get_info(from, out, error);
}

static das_status fill_listed(const void *from, void *out, das_error *error)
{
    (void)from;
    return das_device_list(0, out, error);
}

static das_status fill_plan_info(const void *from, void *out, das_error *error)
{
    return das_plan_get_info(from, out, error);
}

static contract_scene scene;

static das_status fill_query(const void *from, void *out, das_error *error)
{
    return das_plan_query((das_device *)(uintptr_t)from, scene.acquisition, scene.grid, scene.options, out, error);
}

static das_status fill_timing(const void *from, void *out, das_error *error)
{
    return das_run_get_timing(from, out, error);
}

static void any_size(const char *name, fill_function *fill, const void *from, uint32_t size)
{
    unsigned char full[1024], out[1024];
    test_begin("%s: at most struct_size bytes are written, unknown ones are zero", name);
    memset(full, 0xAA, sizeof full);
    memcpy(full, &size, sizeof size);
    if (!OK(fill(from, full, E))) {
        test_end();
        return;
    }
    for (size_t i = size; i < sizeof full; i++)
        if (full[i] != 0xAA)
            test_note("byte %zu beyond struct_size %u was written", i, (unsigned)size);
    static const uint32_t extra[] = {0, 1, 4, 100};
    for (uint32_t given = 4; given <= size + 100; given++) {
        bool wanted = given <= size;
        for (size_t i = 0; i < sizeof extra / sizeof extra[0]; i++)
            wanted = wanted || given == size + extra[i];
        if (!wanted)
            continue;
        memset(out, 0xAA, sizeof out);
        memcpy(out, &given, sizeof given);
        if (!OK(fill(from, out, E)))
            break;
        uint32_t kept;
        memcpy(&kept, out, sizeof kept);
        EXPECT_INT(kept, given);
        uint32_t known = given < size ? given : size;
        EXPECT_MSG(memcmp(out + 4, full + 4, known - 4) == 0, "struct_size %u gives other contents", (unsigned)given);
        for (uint32_t i = known; i < sizeof out; i++) {
            unsigned char expected = i < given ? 0 : 0xAA;
            if (out[i] != expected) {
                test_note("struct_size %u: byte %u is 0x%02x, expected 0x%02x", (unsigned)given, (unsigned)i, out[i], expected);
                break;
            }
        }
    }
    uint32_t none = 0;
    memset(out, 0xAA, sizeof out);
    memcpy(out, &none, sizeof none);
    REFUSED(fill(from, out, E), DAS_ERROR_ARGUMENT, "struct_size", "0");
    for (uint32_t i = 4; i < sizeof out; i++)
        EXPECT_MSG(out[i] == 0xAA, "struct_size 0: byte %u was written", (unsigned)i);
    test_end();
}

static void structures(void)
{
    das_device *device = contract_open("cpu");
    das_plan *plan = NULL;
    das_run *run = NULL;
    float image[SCENE_PIXELS];
    if (device != NULL && contract_scene_create(&scene) &&
        OK(das_plan_create(device, scene.acquisition, scene.grid, scene.options, &plan, E)) && OK(das_run_create(device, &run, E)) &&
        OK(das_run_enable_timing(run, 1, E)) &&
        OK(das_reconstruct_host(plan, scene.data, sizeof scene.data, image, sizeof image, run, E))) {
        any_size("das_device_get_info", fill_device_info, device, sizeof(das_device_info));
        any_size("das_device_list", fill_listed, NULL, sizeof(das_device_info));
        any_size("das_plan_get_info", fill_plan_info, plan, sizeof(das_plan_info));
        any_size("das_plan_query", fill_query, device, sizeof(das_plan_info));
        any_size("das_run_get_timing", fill_timing, run, sizeof(das_timing));
    } else {
        test_begin("output structures");
        test_note("%s", contract_message());
        test_end();
    }
    das_run_destroy(&run);
    das_plan_destroy(&plan);
    contract_scene_destroy(&scene);
    das_device_destroy(&device);
}

/* ---- versions and lists ---- */

static int count_library(struct dl_phdr_info *info, size_t size, void *count)
{
    (void)info;
    (void)size;
    ++*(int *)count;
    return 0;
}

static int loaded_libraries(void)
{
    int count = 0;
    dl_iterate_phdr(count_library, &count);
    return count;
}

static void versions(void)
{
    char wanted[64];
    test_begin("versions agree with the header and load nothing");
    int before = loaded_libraries();
    snprintf(wanted, sizeof wanted, "%d.%d.%d", DAS_VERSION_MAJOR, DAS_VERSION_MINOR, DAS_VERSION_PATCH);
    EXPECT(strcmp(das_version_string(), wanted) == 0);
    EXPECT_INT(das_version_number(), DAS_VERSION_MAJOR * 10000 + DAS_VERSION_MINOR * 100 + DAS_VERSION_PATCH);
    EXPECT_INT(das_backend_is_built("cpu"), 1);
    EXPECT_INT(das_backend_is_built(NULL), 0);
    EXPECT_INT(das_backend_is_built(""), 0);
    EXPECT_INT(das_backend_is_built("cpu:0"), 0);
    EXPECT_INT(das_backend_is_built("CUDA"), 0);
    EXPECT(das_backend_is_built("cuda") == 0 || das_backend_is_built("cuda") == 1);
    EXPECT(das_backend_is_built("opencl") == 0 || das_backend_is_built("opencl") == 1);
    EXPECT_INT(loaded_libraries(), before);
    test_begin("opening the CPU loads no driver");
    das_device *device = NULL;
    OK(das_device_open("cpu", NULL, &device, E));
    EXPECT_INT(loaded_libraries(), before);
    das_device_destroy(&device);
    test_begin("a backend that is not built says so");
    static const char *const names[][2] = {{"cuda", "CUDA"}, {"opencl", "OpenCL"}};
    for (int i = 0; i < 2; i++)
        if (!das_backend_is_built(names[i][0]))
            REFUSED(das_device_open(names[i][0], NULL, &device, E), DAS_ERROR_NOT_BUILT, names[i][1], NULL);
    test_end();
}

static void lists(void)
{
    test_begin("every device of the list has a name that opens it");
    int64_t count = 0, cpus = 0;
    das_mock_install();
    OK(das_device_count(&count, E));
    EXPECT(count >= 3);
    for (int64_t i = 0; i < count; i++) {
        das_device_info listed = {.struct_size = sizeof listed}, opened = {.struct_size = sizeof opened};
        das_device *device = NULL;
        if (!OK(das_device_list(i, &listed, E)) || !OK(das_device_open(listed.name, NULL, &device, E)))
            continue;
        OK(das_device_get_info(device, &opened, E));
        EXPECT_MSG(strcmp(listed.name, opened.name) == 0, "%s opens %s", listed.name, opened.name);
        EXPECT_MSG(strcmp(listed.description, opened.description) == 0, "%s is described as %s and as %s", listed.name,
                   listed.description, opened.description);
        EXPECT_MSG(listed.description[0] != '\0', "%s has no description", listed.name);
        EXPECT_MSG(listed.compute_units >= 1 && opened.compute_units == listed.compute_units, "%s has %d and %d compute units",
                   listed.name, (int)listed.compute_units, (int)opened.compute_units);
        EXPECT_MSG(opened.memory_bytes >= 1 && opened.max_buffer_bytes >= 1, "%s has no memory", listed.name);
        EXPECT((opened.is_gpu == 0 || opened.is_gpu == 1) && (opened.has_double == 0 || opened.has_double == 1));
        cpus += strcmp(listed.name, "cpu") == 0;
        if (strcmp(listed.name, "cpu") == 0)
            EXPECT(opened.is_gpu == 0 && opened.has_double == 1);
        das_device_destroy(&device);
    }
    EXPECT_INT(cpus, 1);
    static const char *const same[] = {"cpu:0", "mock", "auto", NULL};
    for (int i = 0; i < 4; i++) {
        das_device *device = NULL;
        OK(das_device_open(same[i], NULL, &device, E));
        das_device_destroy(&device);
    }
    test_begin("devices that cannot be listed are no devices");
    das_mock_reset();
    das_mock_fail(DAS_MOCK_DEVICE_COUNT, 1, DAS_ERROR_NO_DRIVER);
    int64_t fewer = -5;
    OK(das_device_count(&fewer, E));
    EXPECT_INT(fewer, count - 2);
    das_mock_fail(DAS_MOCK_DEVICE_COUNT, 1, DAS_ERROR_DRIVER_TOO_OLD);
    das_device *device = NULL;
    REFUSED(das_device_open("mock", NULL, &device, E), DAS_ERROR_DRIVER_TOO_OLD, "mock", NULL);
    EXPECT(device == NULL);
    REFUSED(das_device_open("mock:2", NULL, &device, E), DAS_ERROR_NO_DEVICE, "mock:2", NULL);
    das_mock_reset();
    EXPECT_NO_BREACH();
    test_end();
    das_mock_uninstall();
}

static char logged[4096];
static void *log_context_seen;

static void collect(void *context, int32_t level, const char *message)
{
    log_context_seen = context;
    if (level < DAS_LOG_ERROR || level > DAS_LOG_DEBUG)
        test_note("log level %d", (int)level);
    strncat(logged, message, sizeof logged - strlen(logged) - 1);
}

static void logs(void)
{
    test_begin("auto logs why it passed a backend over");
    das_device_options *options = NULL;
    das_device *device = NULL;
    das_device_info info = {.struct_size = sizeof info};
    if (OK(das_device_options_create(&options, E)) && OK(das_device_options_set_log(options, collect, &info, E)) &&
        OK(das_device_open("auto", options, &device, E)) && OK(das_device_get_info(device, &info, E))) {
        if (strcmp(info.name, "cpu") == 0)
            EXPECT(strstr(logged, "cuda") != NULL && strstr(logged, "opencl") != NULL && log_context_seen == &info);
        das_device_destroy(&device);
        logged[0] = '\0';
        OK(das_device_options_set_log(options, NULL, NULL, E));
        OK(das_device_open("auto", options, &device, E));
        EXPECT(logged[0] == '\0');
    }
    das_device_destroy(&device);
    das_device_options_destroy(&options);
    test_end();
}

int main(void)
{
    pinned();
    errors();
    versions();
    structures();
    lists();
    logs();
    return test_finish();
}
