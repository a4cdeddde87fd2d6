/* DLPack tensors and buffer descriptions. The structure is written out here anew, from the DLPack specification. */
#include "contract.h"

#include <stdlib.h>
#include <string.h>

typedef struct tensor {
    void *data;
    int32_t device_type, device_id;
    int32_t ndim;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides;
    uint64_t byte_offset;
    void *manager;
    void (*deleter)(struct tensor *);
} tensor;

enum { CPU = 1, CUDA = 2, OPENCL = 4, INT = 0, UINT = 1, FLOAT = 2, BFLOAT = 4, COMPLEX = 5 };

static int deletions;
static tensor *deleted;

static void delete_tensor(tensor *self)
{
    deletions++;
    deleted = self;
}

static int64_t shape4[4] = {SCENE_FRAMES, SCENE_TRANSMITS, SCENE_ELEMENTS, SCENE_SAMPLES};

static tensor tensor_of(void *data, int32_t ndim, int64_t *shape, int64_t *strides, uint8_t code, uint8_t bits)
{
    tensor t = {.data = data,
                .device_type = CPU,
                .ndim = ndim,
                .code = code,
                .bits = bits,
                .lanes = 1,
                .shape = shape,
                .strides = strides,
                .deleter = delete_tensor};
    return t;
}

static das_device *device;
static contract_scene scene;
static das_plan *plan;
static das_buffer *image;
static float expected[SCENE_PIXELS], pixels[SCENE_PIXELS];

/* The tensor gives the scene's image and is deleted once. */
static void expect_image(tensor *t)
{
    das_buffer *buffer = NULL;
    deletions = 0;
    deleted = NULL;
    if (!OK(das_buffer_import_dlpack(device, t, &buffer, E)))
        return;
    EXPECT_INT(deletions, 0);
    if (OK(das_reconstruct(plan, NULL, buffer, image, NULL, E)) && OK(das_buffer_download(NULL, image, 0, pixels, sizeof pixels, E)))
        EXPECT_MSG(contract_same(pixels, expected, sizeof pixels), "another image");
    EXPECT_INT(deletions, 0);
    das_buffer_destroy(&buffer);
    EXPECT(deletions == 1 && deleted == t);
}

/* The tensor is refused and stays the caller's. */
static void expect_refused(tensor *t, das_status status, const char *argument, const char *value, int line)
{
    das_buffer *buffer = (das_buffer *)(void *)t;
    deletions = 0;
    contract_refused(das_buffer_import_dlpack(device, t, &buffer, E), status, argument, value, "das_buffer_import_dlpack()", __FILE__,
                     line);
    EXPECT_MSG(buffer == NULL, "line %d leaves a handle", line);
    EXPECT_MSG(deletions == 0, "line %d: deleter called %d times", line, deletions);
}

/* The tensor is imported, but the plan wants something else. */
static void expect_mismatch(tensor *t, const char *value, int line)
{
    das_buffer *buffer = NULL;
    deletions = 0;
    if (OK(das_buffer_import_dlpack(device, t, &buffer, E)))
        contract_refused(das_reconstruct(plan, NULL, buffer, image, NULL, E), DAS_ERROR_ARGUMENT, "data", value, "das_reconstruct()",
                         __FILE__, line);
    das_buffer_destroy(&buffer);
    EXPECT_INT(deletions, 1);
}

#define TENSOR_REFUSED(t, status, argument, value) expect_refused(&(t), (status), (argument), (value), __LINE__)

static void layouts(void)
{
    test_begin("DLPack: NULL strides are compact");
    tensor t = tensor_of(scene.data, 4, shape4, NULL, FLOAT, 32);
    expect_image(&t);

    test_begin("DLPack: strides are elements, axes of length 1 do not matter");
    int64_t strides4[4] = {768, 256, 64, 1};
    t = tensor_of(scene.data, 4, shape4, strides4, FLOAT, 32);
    expect_image(&t);
    int64_t shape6[6] = {1, SCENE_FRAMES, SCENE_TRANSMITS, 1, SCENE_ELEMENTS, SCENE_SAMPLES};
    int64_t strides6[6] = {-99, 768, 256, INT64_MIN, 64, 1};
    t = tensor_of(scene.data, 6, shape6, strides6, FLOAT, 32);
    expect_image(&t);
    t.deleter = NULL;
    das_buffer *buffer = NULL;
    OK(das_buffer_import_dlpack(device, &t, &buffer, E));
    das_buffer_destroy(&buffer);

    test_begin("DLPack: byte_offset is honoured");
    float *shifted = malloc(sizeof scene.data + 12);
    memset(shifted, 0xFF, 12);
    memcpy(shifted + 3, scene.data, sizeof scene.data);
    t = tensor_of(shifted, 4, shape4, NULL, FLOAT, 32);
    t.byte_offset = 12;
    expect_image(&t);
    if (OK(das_buffer_import_dlpack(device, &t, &buffer, E))) {
        EXPECT_INT(das_buffer_bytes(buffer), sizeof scene.data);
        das_buffer_destroy(&buffer);
    }
    free(shifted);
    test_end();
}

static void mismatches(void)
{
    int64_t more[4] = {SCENE_FRAMES, SCENE_TRANSMITS, SCENE_ELEMENTS, SCENE_SAMPLES + 1};
    int64_t flat[1] = {SCENE_VALUES}, merged[3] = {SCENE_FRAMES, SCENE_TRANSMITS * SCENE_ELEMENTS, SCENE_SAMPLES};
    int64_t reversed[4] = {1, 2, 6, 24};
    test_begin("DLPack: a tensor that differs from the plan's data is refused by das_reconstruct");
    tensor t = tensor_of(scene.data, 4, more, NULL, FLOAT, 32);
    expect_mismatch(&t, "65", __LINE__);
    t = tensor_of(scene.data, 4, shape4, reversed, FLOAT, 32);
    expect_mismatch(&t, "24", __LINE__);
    t = tensor_of(scene.data, 1, flat, NULL, FLOAT, 32);
    expect_mismatch(&t, "1536", __LINE__);
    t = tensor_of(scene.data, 3, merged, NULL, FLOAT, 32);
    expect_mismatch(&t, "12", __LINE__);
    t = tensor_of(scene.data, 4, shape4, NULL, INT, 16);
    float *copy = malloc(2 * sizeof scene.data);
    memcpy(copy, scene.data, sizeof scene.data);
    /* Large enough, so that only the type differs. */
    t = tensor_of(copy, 4, shape4, NULL, FLOAT, 64);
    expect_mismatch(&t, "F64", __LINE__);
    free(copy);

    test_begin("DLPack: what cannot be a buffer is refused and stays the caller's");
    int64_t none[4] = {2, 0, 4, 64}, negative[4] = {2, 3, -4, 64}, huge[4] = {INT64_MAX, INT64_MAX, 4, 64}, backwards[4] = {768, 256, -64, 1};
    int64_t nine[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1}, wraps[4] = {INT64_MAX, 256, 64, 1};
    t = tensor_of(NULL, 4, shape4, NULL, FLOAT, 32);
    TENSOR_REFUSED(t, DAS_ERROR_ARGUMENT, "managed_tensor", "NULL");
    t.byte_offset = 64;
    TENSOR_REFUSED(t, DAS_ERROR_ARGUMENT, "managed_tensor", "NULL");
    t = tensor_of(scene.data, 4, shape4, NULL, BFLOAT, 16);
    TENSOR_REFUSED(t, DAS_ERROR_ARGUMENT, "managed_tensor", "4");
    t = tensor_of(scene.data, 4, shape4, NULL, INT, 64);
    TENSOR_REFUSED(t, DAS_ERROR_ARGUMENT, "managed_tensor", "64");
    t = tensor_of(scene.data, 4, shape4, NULL, FLOAT, 32);
    t.lanes = 4;
    TENSOR_REFUSED(t, DAS_ERROR_ARGUMENT, "managed_tensor", "4");
    t = tensor_of(scene.data, 4, none, NULL, FLOAT, 32);
    TENSOR_REFUSED(t, DAS_ERROR_ARGUMENT, "shape", "0");
    t = tensor_of(scene.data, 4, negative, NULL, FLOAT, 32);
    TENSOR_REFUSED(t, DAS_ERROR_ARGUMENT, "shape", "-4");
    t = tensor_of(scene.data, 4, huge, NULL, FLOAT, 32);
    TENSOR_REFUSED(t, DAS_ERROR_TOO_LARGE, NULL, NULL);
    t = tensor_of(scene.data, 4, shape4, wraps, FLOAT, 32);
    TENSOR_REFUSED(t, DAS_ERROR_TOO_LARGE, NULL, NULL);
    t = tensor_of(scene.data, 4, shape4, backwards, FLOAT, 32);
    TENSOR_REFUSED(t, DAS_ERROR_UNSUPPORTED, "strides", "-64");
    t = tensor_of(scene.data, 9, nine, NULL, FLOAT, 32);
    TENSOR_REFUSED(t, DAS_ERROR_ARGUMENT, "ndim", "9");
    t = tensor_of(scene.data, -1, nine, NULL, FLOAT, 32);
    TENSOR_REFUSED(t, DAS_ERROR_ARGUMENT, "ndim", "-1");
    t = tensor_of(scene.data, 4, NULL, NULL, FLOAT, 32);
    TENSOR_REFUSED(t, DAS_ERROR_ARGUMENT, "shape", "NULL");
    t = tensor_of(scene.data, 4, shape4, NULL, FLOAT, 32);
    t.byte_offset = UINT64_MAX;
    TENSOR_REFUSED(t, DAS_ERROR_TOO_LARGE, "byte_offset", NULL);
    static const int32_t elsewhere[] = {CUDA, OPENCL, 0, 10, -1};
    for (size_t i = 0; i < sizeof elsewhere / sizeof elsewhere[0]; i++) {
        t = tensor_of(scene.data, 4, shape4, NULL, FLOAT, 32);
        t.device_type = elsewhere[i];
        TENSOR_REFUSED(t, DAS_ERROR_WRONG_DEVICE, "managed_tensor", NULL);
    }
    t = tensor_of(scene.data, 4, shape4, NULL, FLOAT, 32);
    das_buffer *buffer = NULL;
    REFUSED(das_buffer_import_dlpack(NULL, &t, &buffer, E), DAS_ERROR_ARGUMENT, "device", "NULL");
    REFUSED(das_buffer_import_dlpack(device, NULL, &buffer, E), DAS_ERROR_ARGUMENT, "managed_tensor", "NULL");
    REFUSED(das_buffer_import_dlpack(device, &t, NULL, E), DAS_ERROR_ARGUMENT, "buffer", "NULL");
    EXPECT_INT(deletions, 0);
    test_end();
}

static void types(void)
{
    static const struct {
        uint8_t code, bits;
        das_type type;
    } known[] = {{INT, 8, DAS_TYPE_I8},      {UINT, 8, DAS_TYPE_U8},     {INT, 16, DAS_TYPE_I16},     {UINT, 16, DAS_TYPE_U16},
                 {FLOAT, 16, DAS_TYPE_F16},  {FLOAT, 32, DAS_TYPE_F32},  {FLOAT, 64, DAS_TYPE_F64},   {COMPLEX, 32, DAS_TYPE_CF16},
                 {COMPLEX, 64, DAS_TYPE_CF32}};
    test_begin("DLPack: every element type is known by its code and bits");
    char *bytes = calloc(SCENE_VALUES, 8);
    das_acquisition *a = scene.acquisition;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        das_plan *typed = NULL;
        das_buffer *buffer = NULL, *typed_image = NULL;
        tensor t = tensor_of(bytes, 4, shape4, NULL, known[i].code, known[i].bits);
        OK(das_acquisition_set_data(a, known[i].type, SCENE_SAMPLES, E));
        if (OK(das_plan_create(device, a, scene.grid, NULL, &typed, E)) && OK(das_buffer_import_dlpack(device, &t, &buffer, E)) &&
            OK(das_buffer_create(device, 8 * SCENE_PIXELS, DAS_MEMORY_DEVICE, &typed_image, E))) {
            EXPECT_INT(das_buffer_bytes(buffer), SCENE_VALUES * das_type_bytes(known[i].type));
            OK(das_reconstruct(typed, NULL, buffer, typed_image, NULL, E));
        }
        das_buffer_destroy(&buffer);
        das_buffer_destroy(&typed_image);
        das_plan_destroy(&typed);
    }

    test_begin("DLPack: a trailing axis of 2 is a complex element where the plan wants one");
    static const struct {
        uint8_t code, bits;
        das_type type;
    } pairs[] = {{INT, 16, DAS_TYPE_CI16}, {FLOAT, 16, DAS_TYPE_CF16}};
    int64_t shape5[5] = {SCENE_FRAMES, SCENE_TRANSMITS, SCENE_ELEMENTS, SCENE_SAMPLES, 2};
    int64_t odd[5] = {1537, 512, 128, 2, 1}, planar[5] = {1536, 512, 128, 1, 64};
    for (int i = 0; i < 2; i++) {
        das_plan *typed = NULL;
        das_buffer *buffer = NULL, *typed_image = NULL;
        tensor t = tensor_of(bytes, 5, shape5, NULL, pairs[i].code, pairs[i].bits);
        OK(das_acquisition_set_data(a, pairs[i].type, SCENE_SAMPLES, E));
        if (!OK(das_plan_create(device, a, scene.grid, NULL, &typed, E)) ||
            !OK(das_buffer_create(device, 8 * SCENE_PIXELS, DAS_MEMORY_DEVICE, &typed_image, E)))
            break;
        if (OK(das_buffer_import_dlpack(device, &t, &buffer, E))) {
            OK(das_reconstruct(typed, NULL, buffer, typed_image, NULL, E));
            REFUSED(das_reconstruct(plan, NULL, buffer, image, NULL, E), DAS_ERROR_ARGUMENT, "data", NULL);
        }
        das_buffer_destroy(&buffer);
        /* Pairs that do not lie together, or at odd places, are none. */
        int64_t *wrong[2] = {odd, planar};
        for (int k = 0; k < 2; k++) {
            t.strides = wrong[k];
            if (OK(das_buffer_import_dlpack(device, &t, &buffer, E)))
                REFUSED(das_reconstruct(typed, NULL, buffer, typed_image, NULL, E), DAS_ERROR_ARGUMENT, "data", NULL);
            das_buffer_destroy(&buffer);
        }
        das_buffer_destroy(&typed_image);
        das_plan_destroy(&typed);
    }
    OK(das_acquisition_set_data(a, DAS_TYPE_F32, SCENE_SAMPLES, E));
    free(bytes);
    test_end();
}

/* ---- das_buffer_describe ---- */

static void expect_described(das_buffer *buffer, das_buffer *into, bool fits, const char *name, int line)
{
    das_status status = das_reconstruct(plan, NULL, buffer, into, NULL, E);
    if (fits)
        contract_ok(status, "das_reconstruct()", __FILE__, line);
    else
        contract_refused(status, DAS_ERROR_ARGUMENT, name, "expected DAS_TYPE_F32 ", "das_reconstruct()", __FILE__, line);
}

static void descriptions(const char *name)
{
    das_device *d = contract_open(name);
    das_device *kept = device;
    das_plan *kept_plan = plan;
    das_buffer *data = NULL, *into = NULL;
    test_begin("%s: a described buffer that differs from the plan is refused", name);
    if (d != NULL && OK(das_plan_create(d, scene.acquisition, scene.grid, NULL, &plan, E)) &&
        OK(das_buffer_create(d, sizeof scene.data, DAS_MEMORY_DEVICE, &data, E)) &&
        OK(das_buffer_create(d, sizeof pixels, DAS_MEMORY_DEVICE, &into, E)) &&
        OK(das_buffer_upload(NULL, data, 0, scene.data, sizeof scene.data, E))) {
        const int64_t strides4[4] = {768, 256, 64, 1}, wrong4[4] = {768, 64, 256, 1};
        const int64_t image6[6] = {2, 1, 1, 7, 1, 5}, image3[3] = {2, 7, 5}, wrong3[3] = {2, 5, 7}, wrong_strides[3] = {35, 1, 7};
        expect_described(data, into, true, NULL, __LINE__);
        OK(das_buffer_describe(data, DAS_TYPE_F32, 4, shape4, NULL, E));
        expect_described(data, into, true, NULL, __LINE__);
        OK(das_buffer_describe(data, DAS_TYPE_F32, 4, shape4, strides4, E));
        expect_described(data, into, true, NULL, __LINE__);
        OK(das_buffer_describe(data, DAS_TYPE_F32, 4, shape4, wrong4, E));
        expect_described(data, into, false, "data", __LINE__);
        OK(das_buffer_describe(data, DAS_TYPE_CI16, 4, shape4, NULL, E));
        expect_described(data, into, false, "data", __LINE__);
        OK(das_buffer_describe(data, 0, 0, NULL, NULL, E));
        expect_described(data, into, true, NULL, __LINE__);
        OK(das_buffer_describe(into, DAS_TYPE_F32, 6, image6, NULL, E));
        expect_described(data, into, true, NULL, __LINE__);
        OK(das_buffer_describe(into, DAS_TYPE_F32, 3, image3, NULL, E));
        expect_described(data, into, true, NULL, __LINE__);
        OK(das_buffer_describe(into, DAS_TYPE_F32, 3, wrong3, NULL, E));
        expect_described(data, into, false, "image", __LINE__);
        OK(das_buffer_describe(into, DAS_TYPE_F32, 3, image3, wrong_strides, E));
        expect_described(data, into, false, "image", __LINE__);
        OK(das_buffer_describe(into, DAS_TYPE_F64, 3, image3, NULL, E));
        expect_described(data, into, false, "image", __LINE__);
        /* A description may be of more frames than the plan's, or of fewer if the run asks for no more. */
        const int64_t five_frames[4] = {5, 3, 4, 64}, one_frame[4] = {1, 3, 4, 64}, led[5] = {1, 1, 2, 7, 5};
        das_buffer *five = NULL;
        das_run *run = NULL;
        OK(das_buffer_describe(into, DAS_TYPE_F32, 5, led, NULL, E));
        if (OK(das_buffer_create(d, 5 * sizeof scene.data / 2, DAS_MEMORY_DEVICE, &five, E)) && OK(das_run_create(d, &run, E))) {
            OK(das_buffer_describe(five, DAS_TYPE_F32, 4, five_frames, NULL, E));
            expect_described(five, into, true, NULL, __LINE__);
            OK(das_run_set_frames(run, 3, 2, 0, E));
            OK(das_reconstruct(plan, NULL, five, into, run, E));
            OK(das_run_set_frames(run, 0, 1, 1, E));
            OK(das_buffer_describe(five, DAS_TYPE_F32, 4, one_frame, NULL, E));
            OK(das_reconstruct(plan, NULL, five, into, run, E));
            OK(das_run_set_frames(run, 1, 1, 1, E));
            REFUSED(das_reconstruct(plan, NULL, five, into, run, E), DAS_ERROR_ARGUMENT, "data", "described");
        }
        das_run_destroy(&run);
        das_buffer_destroy(&five);
        /* With a trace list the axes are frames, traces and samples. */
        const int64_t index[3] = {0, 1, 2}, three[3] = {2, 3, 64}, four[3] = {2, 4, 64};
        das_plan *traced = NULL;
        OK(das_acquisition_set_traces(scene.acquisition, 3, index, index, NULL, E));
        OK(das_buffer_describe(into, 0, 0, NULL, NULL, E));
        if (OK(das_plan_create(d, scene.acquisition, scene.grid, NULL, &traced, E))) {
            OK(das_buffer_describe(data, DAS_TYPE_F32, 3, three, NULL, E));
            OK(das_reconstruct(traced, NULL, data, into, NULL, E));
            OK(das_buffer_describe(data, DAS_TYPE_F32, 3, four, NULL, E));
            REFUSED(das_reconstruct(traced, NULL, data, into, NULL, E), DAS_ERROR_ARGUMENT, "data", "described");
            OK(das_buffer_describe(data, 0, 0, NULL, NULL, E));
        }
        das_plan_destroy(&traced);
        OK(das_acquisition_set_traces(scene.acquisition, 0, NULL, NULL, NULL, E));
        /* A failing call leaves the description as it was. */
        OK(das_buffer_describe(into, DAS_TYPE_F32, 3, image3, NULL, E));
        REFUSED(das_buffer_describe(into, DAS_TYPE_F64, 9, image3, NULL, E), DAS_ERROR_ARGUMENT, "ndim", "9");
        expect_described(data, into, true, NULL, __LINE__);
    }
    das_buffer_destroy(&data);
    das_buffer_destroy(&into);
    das_plan_destroy(&plan);
    das_device_destroy(&d);
    device = kept;
    plan = kept_plan;
    test_end();
}

int main(void)
{
    device = contract_open("cpu");
    if (device != NULL && contract_scene_create(&scene) && contract_scene_image(&scene, device, expected) &&
        OK(das_plan_create(device, scene.acquisition, scene.grid, NULL, &plan, E)) &&
        OK(das_buffer_create(device, sizeof pixels, DAS_MEMORY_DEVICE, &image, E))) {
        layouts();
        mismatches();
        types();
        contract_each_device(descriptions);
    } else {
        test_begin("DLPack");
        test_note("no scene: %s", contract_message());
        test_end();
    }
    das_buffer_destroy(&image);
    das_plan_destroy(&plan);
    contract_scene_destroy(&scene);
    das_device_destroy(&device);
    return test_finish();
}
