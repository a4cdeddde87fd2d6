/* Layout of data and image: default order, strides, extents checked at each call, frames, transmits, accumulation. */
#include "contract.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static contract_scene scene;

static void expect_shape(const das_plan_info *info, const int64_t shape[6], int line)
{
    int64_t stride = 1;
    for (int k = 5; k >= 0; k--) {
        EXPECT_MSG(info->image_shape[k] == shape[k], "line %d: axis %d has length %lld, expected %lld", line, k,
                   (long long)info->image_shape[k], (long long)shape[k]);
        EXPECT_MSG(info->image_strides[k] == stride, "line %d: axis %d has stride %lld, expected %lld", line, k,
                   (long long)info->image_strides[k], (long long)stride);
        stride *= shape[k];
    }
    EXPECT_INT(info->output_bytes, (uint64_t)stride * das_type_bytes(info->image_type));
}

static void default_order(const char *name)
{
    das_device *device = contract_open(name);
    das_plan_info info = {.struct_size = sizeof info};
    test_begin("%s: the default image is [frame][transmit][receive][axis 2][axis 1][axis 0], compact", name);
    if (device == NULL || !contract_scene_create(&scene)) {
        das_device_destroy(&device);
        test_end();
        return;
    }
    for (int keep = 0; keep < 4; keep++) {
        const int64_t shape[6] = {SCENE_FRAMES, keep & 1 ? SCENE_TRANSMITS : 1, keep & 2 ? SCENE_ELEMENTS : 1, 7, 1, 5};
        OK(das_options_set_keep_transmit(scene.options, keep & 1, E));
        OK(das_options_set_keep_receive(scene.options, keep & 2, E));
        OK(das_plan_query(device, scene.acquisition, scene.grid, scene.options, &info, E));
        expect_shape(&info, shape, __LINE__);
        EXPECT_INT(info.image_type, DAS_TYPE_F32);
        EXPECT_INT(info.points, SCENE_POINTS);
        EXPECT_INT(info.pairs, SCENE_TRANSMITS * SCENE_ELEMENTS);
        EXPECT_INT(info.input_bytes, sizeof scene.data);
    }
    static const struct {
        das_type data, image;
        das_precision precision;
        das_type expected;
    } types[] = {
        {DAS_TYPE_I8, 0, DAS_PRECISION_EXACT, DAS_TYPE_F32},     {DAS_TYPE_CI16, 0, DAS_PRECISION_EXACT, DAS_TYPE_CF32},
        {DAS_TYPE_F64, 0, DAS_PRECISION_DOUBLE, DAS_TYPE_F64},   {DAS_TYPE_CF32, 0, DAS_PRECISION_DOUBLE, DAS_TYPE_CF64},
        {DAS_TYPE_F64, DAS_TYPE_F32, DAS_PRECISION_DOUBLE, DAS_TYPE_F32},
        {DAS_TYPE_CF16, DAS_TYPE_CF64, DAS_PRECISION_EXACT, DAS_TYPE_CF64},
    };
    das_device_info about = {.struct_size = sizeof about};
    OK(das_device_get_info(device, &about, E));
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (types[i].precision == DAS_PRECISION_DOUBLE && !about.has_double)
            continue;
        OK(das_acquisition_set_data(scene.acquisition, types[i].data, SCENE_SAMPLES, E));
        OK(das_options_set_image_type(scene.options, types[i].image, E));
        OK(das_options_set_precision(scene.options, types[i].precision, E));
        OK(das_plan_query(device, scene.acquisition, scene.grid, scene.options, &info, E));
        EXPECT_INT(info.image_type, types[i].expected);
        EXPECT_INT(info.input_bytes, SCENE_VALUES * das_type_bytes(types[i].data));
    }
    contract_scene_destroy(&scene);

    /* A sector: angles are axis 0, radii axis 2. */
    const double zero[3] = {0}, axis[4] = {0.001, 0.002, 0.003, 0.004};
    const int64_t polar_shape[6] = {SCENE_FRAMES, 1, 1, 4, 2, 3};
    contract_scene_create(&scene);
    das_grid_destroy(&scene.grid);
    OK(das_grid_create_polar(zero, 3, axis, 2, axis, 4, axis, &scene.grid, E));
    OK(das_plan_query(device, scene.acquisition, scene.grid, scene.options, &info, E));
    expect_shape(&info, polar_shape, __LINE__);
    contract_scene_destroy(&scene);
    das_device_destroy(&device);
    test_end();
}

/* Image element (f, t, r, i2, i1, i0) with strides[6]. */
static int64_t place(int64_t first, const int64_t strides[6], const int64_t shape[6], int64_t index)
{
    int64_t at = first;
    for (int k = 5; k >= 0; k--) {
        at += index % shape[k] * strides[k];
        index /= shape[k];
    }
    return at;
}

/* The image through strides (NULL: compact) holds what the compact one does, and nothing else was written. */
static void expect_strided(das_device *device, int64_t first, const int64_t strides[6], const int64_t shape[6], const float *compact,
                           size_t elements, size_t bytes_expected, int line)
{
    das_plan *plan = NULL;
    das_plan_info info = {.struct_size = sizeof info};
    int64_t packed[6] = {0, 0, 0, 0, 0, 1};
    for (int k = 4; k >= 0; k--)
        packed[k] = packed[k + 1] * shape[k + 1];
    OK(das_options_set_image_strides(scene.options, first, strides, E));
    if (strides == NULL)
        strides = packed;
    if (!OK(das_plan_create(device, scene.acquisition, scene.grid, scene.options, &plan, E)))
        return;
    OK(das_plan_get_info(plan, &info, E));
    EXPECT_MSG(info.output_bytes == bytes_expected, "line %d: output_bytes %llu, expected %zu", line,
               (unsigned long long)info.output_bytes, bytes_expected);
    EXPECT(memcmp(info.image_strides, strides, sizeof info.image_strides) == 0);
    size_t bytes = (size_t)info.output_bytes + 64;
    for (int way = 0; way < 2; way++) {
        float *image = test_guarded_alloc(bytes, 64);
        for (size_t i = 0; i < bytes / 4; i++)
            image[i] = -12345;
        if (way == 0) {
            OK(das_reconstruct_host(plan, scene.data, sizeof scene.data, image, bytes, NULL, E));
        } else {
            das_buffer *data = NULL, *into = NULL;
            if (OK(das_buffer_create(device, sizeof scene.data, DAS_MEMORY_DEVICE, &data, E)) &&
                OK(das_buffer_create(device, bytes, DAS_MEMORY_DEVICE, &into, E)) &&
                OK(das_buffer_upload(NULL, data, 0, scene.data, sizeof scene.data, E)) &&
                OK(das_buffer_upload(NULL, into, 0, image, bytes, E)) && OK(das_reconstruct(plan, NULL, data, into, NULL, E)))
                OK(das_buffer_download(NULL, into, 0, image, bytes, E));
            das_buffer_destroy(&data);
            das_buffer_destroy(&into);
        }
        for (size_t i = 0; i < elements; i++) {
            float *at = &image[place(first, strides, shape, (int64_t)i)];
            if (!(fabsf(*at - compact[i]) <= 1e-5f)) {
                test_note("line %d, way %d: element %zu is %g, expected %g", line, way, i, (double)*at, (double)compact[i]);
                break;
            }
            *at = -12345;
        }
        for (size_t i = 0; i < bytes / 4; i++)
            if (image[i] != -12345) {
                test_note("line %d, way %d: element %zu between the image's was written", line, way, i);
                break;
            }
        EXPECT(test_guarded_intact(image));
        test_guarded_free(image);
    }
    das_plan_destroy(&plan);
    OK(das_options_set_image_strides(scene.options, 0, NULL, E));
}

static void image_strides(const char *name)
{
    das_device *device = contract_open(name);
    test_begin("%s: image strides place every element, and nothing between them is written", name);
    if (device == NULL || !contract_scene_create(&scene)) {
        das_device_destroy(&device);
        test_end();
        return;
    }
    float compact[SCENE_PIXELS], kept[SCENE_PIXELS * SCENE_TRANSMITS];
    const int64_t shape[6] = {2, 1, 1, 7, 1, 5}, kept_shape[6] = {2, 3, 1, 7, 1, 5};
    const int64_t plain[6] = {35, 35, 35, 5, 5, 1}, gaps[6] = {200, 1, 1, 20, 1, 3}, transposed[6] = {1, 7, 7, 2, 9, 14};
    const int64_t backwards[6] = {-35, 1, 1, -5, 1, -1}, mixed[6] = {1, 0, 0, -20, 0, 4}, frames_last[6] = {1, 0, 0, 10, 0, 2};
    const int64_t kept_strides[6] = {1, 2, 5, 30, 0, 6};
    if (contract_scene_image(&scene, device, compact)) {
        expect_strided(device, 0, plain, shape, compact, SCENE_PIXELS, 70 * 4, __LINE__);
        expect_strided(device, 9, NULL, shape, compact, SCENE_PIXELS, (9 + 70) * 4, __LINE__);
        expect_strided(device, 7, gaps, shape, compact, SCENE_PIXELS, (7 + 200 + 120 + 12 + 1) * 4, __LINE__);
        expect_strided(device, 0, transposed, shape, compact, SCENE_PIXELS, (1 + 12 + 56 + 1) * 4, __LINE__);
        expect_strided(device, 69, backwards, shape, compact, SCENE_PIXELS, 70 * 4, __LINE__);
        expect_strided(device, 120, mixed, shape, compact, SCENE_PIXELS, (120 + 1 + 16 + 1) * 4, __LINE__);
        expect_strided(device, 0, frames_last, shape, compact, SCENE_PIXELS, 70 * 4, __LINE__);
        das_plan *plan = NULL;
        OK(das_options_set_keep_transmit(scene.options, 1, E));
        OK(das_plan_create(device, scene.acquisition, scene.grid, scene.options, &plan, E));
        OK(das_reconstruct_host(plan, scene.data, sizeof scene.data, kept, sizeof kept, NULL, E));
        das_plan_destroy(&plan);
        expect_strided(device, 0, kept_strides, kept_shape, kept, SCENE_PIXELS * SCENE_TRANSMITS, (1 + 4 + 180 + 24 + 1) * 4, __LINE__);
    }
    contract_scene_destroy(&scene);
    das_device_destroy(&device);
    test_end();
}

/* A plan with its buffers, the data already there. */
typedef struct rig {
    das_plan *plan;
    das_buffer *data, *image;
    das_run *run;
    das_queue *queue;
} rig;

static bool rig_create(rig *r, das_device *device, uint64_t data_bytes, uint64_t image_bytes)
{
    memset(r, 0, sizeof *r);
    return OK(das_plan_create(device, scene.acquisition, scene.grid, scene.options, &r->plan, E)) && OK(das_run_create(device, &r->run, E)) &&
           OK(das_queue_create(device, &r->queue, E)) && OK(das_buffer_create(device, data_bytes, DAS_MEMORY_DEVICE, &r->data, E)) &&
           OK(das_buffer_create(device, image_bytes, DAS_MEMORY_DEVICE, &r->image, E)) &&
           OK(das_buffer_upload(NULL, r->data, 0, scene.data, data_bytes < sizeof scene.data ? data_bytes : sizeof scene.data, E));
}

static void rig_destroy(rig *r)
{
    das_plan_destroy(&r->plan);
    das_run_destroy(&r->run);
    das_queue_destroy(&r->queue);
    das_buffer_destroy(&r->data);
    das_buffer_destroy(&r->image);
}

static void extents(const char *name)
{
    das_device *device = contract_open(name);
    test_begin("%s: extents are checked against the buffers at each call", name);
    if (device == NULL || !contract_scene_create(&scene)) {
        das_device_destroy(&device);
        test_end();
        return;
    }
    const size_t whole = sizeof scene.data, half = whole / 2, image = SCENE_PIXELS * 4;
    rig r;
    if (rig_create(&r, device, whole, image))
        OK(das_reconstruct(r.plan, NULL, r.data, r.image, NULL, E));
    rig_destroy(&r);
    if (rig_create(&r, device, whole - 1, image))
        REFUSED(das_reconstruct(r.plan, NULL, r.data, r.image, NULL, E), DAS_ERROR_ARGUMENT, "data", "6143");
    rig_destroy(&r);
    if (rig_create(&r, device, whole, image - 1))
        REFUSED(das_reconstruct(r.plan, NULL, r.data, r.image, NULL, E), DAS_ERROR_ARGUMENT, "image", "279");
    rig_destroy(&r);
    /* A run that asks for one frame needs only that frame, wherever it is. */
    if (rig_create(&r, device, half, image / 2)) {
        OK(das_run_set_frames(r.run, 0, 1, 0, E));
        OK(das_reconstruct(r.plan, NULL, r.data, r.image, r.run, E));
        OK(das_run_set_frames(r.run, 1, 1, 0, E));
        REFUSED(das_reconstruct(r.plan, NULL, r.data, r.image, r.run, E), DAS_ERROR_ARGUMENT, "data", "3072");
        OK(das_run_set_frames(r.run, 0, 1, 1, E));
        REFUSED(das_reconstruct(r.plan, NULL, r.data, r.image, r.run, E), DAS_ERROR_ARGUMENT, "image", "140");
        float pixels[SCENE_POINTS];
        OK(das_run_set_frames(r.run, 0, 1, 0, E));
        OK(das_reconstruct_host(r.plan, scene.data, half, pixels, sizeof pixels, r.run, E));
        REFUSED(das_reconstruct_host(r.plan, scene.data, half - 1, pixels, sizeof pixels, r.run, E), DAS_ERROR_ARGUMENT, "data", "3071");
    }
    rig_destroy(&r);
    /* Frames beyond the acquisition's count are limited by the buffers only. */
    if (rig_create(&r, device, 10 * half, 10 * image / 2)) {
        OK(das_run_set_frames(r.run, 8, 2, 8, E));
        OK(das_reconstruct(r.plan, NULL, r.data, r.image, r.run, E));
        OK(das_run_set_frames(r.run, 9, 2, 0, E));
        REFUSED(das_reconstruct(r.plan, NULL, r.data, r.image, r.run, E), DAS_ERROR_ARGUMENT, "data", "30720");
    }
    rig_destroy(&r);
    /* Backwards in time: frame 0 is the last of the buffer. */
    OK(das_acquisition_set_data_strides(scene.acquisition, SCENE_VALUES / 2, -SCENE_VALUES / 2, 256, 64, 1, E));
    if (rig_create(&r, device, whole, image)) {
        OK(das_reconstruct(r.plan, NULL, r.data, r.image, NULL, E));
        OK(das_run_set_frames(r.run, 2, 1, 0, E));
        REFUSED(das_reconstruct(r.plan, NULL, r.data, r.image, r.run, E), DAS_ERROR_ARGUMENT, "data", NULL);
    }
    rig_destroy(&r);
    contract_scene_destroy(&scene);
    das_device_destroy(&device);
    test_end();
}

static bool close_to(const float *a, const float *b, size_t count, const char *what)
{
    for (size_t i = 0; i < count; i++)
        if (!(fabsf(a[i] - b[i]) <= 1e-5f)) {
            test_note("%s: element %zu is %g, expected %g", what, i, (double)a[i], (double)b[i]);
            return false;
        }
    return true;
}

static bool is_empty(const float *image, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (image[i] != 0)
            return false;
    return true;
}

/* Strides of 0 share data: the same as data that repeats. */
static void sharing(const char *name)
{
    das_device *device = contract_open(name);
    float shared[SCENE_PIXELS], repeated[SCENE_PIXELS];
    test_begin("%s: data strides of 0 repeat records, transmits and frames", name);
    if (device != NULL && contract_scene_create(&scene)) {
        float *copy = malloc(sizeof scene.data), *original = malloc(sizeof scene.data);
        memcpy(original, scene.data, sizeof scene.data);
        static const int64_t kinds[4][3] = {{768, 0, 64}, {0, 256, 64}, {768, 256, 0}, {0, 0, 0}};
        for (int kind = 0; kind < 4; kind++) {
            memcpy(scene.data, original, sizeof scene.data);
            OK(das_acquisition_set_data_strides(scene.acquisition, 0, kinds[kind][0], kinds[kind][1], kinds[kind][2], 1, E));
            das_plan_info info = {.struct_size = sizeof info};
            OK(das_plan_query(device, scene.acquisition, scene.grid, scene.options, &info, E));
            int64_t last = kinds[kind][0] + 2 * kinds[kind][1] + 3 * kinds[kind][2] + 63;
            EXPECT_INT(info.input_bytes, (last + 1) * 4);
            contract_scene_image(&scene, device, shared);
            for (int f = 0; f < SCENE_FRAMES; f++)
                for (int t = 0; t < SCENE_TRANSMITS; t++)
                    for (int e = 0; e < SCENE_ELEMENTS; e++)
                        memcpy(copy + ((f * SCENE_TRANSMITS + t) * SCENE_ELEMENTS + e) * SCENE_SAMPLES,
                               original + f * kinds[kind][0] + t * kinds[kind][1] + e * kinds[kind][2], SCENE_SAMPLES * 4);
            memcpy(scene.data, copy, sizeof scene.data);
            OK(das_acquisition_set_data_strides(scene.acquisition, 0, 768, 256, 64, 1, E));
            contract_scene_image(&scene, device, repeated);
            close_to(shared, repeated, SCENE_PIXELS, "strides of 0");
            EXPECT(!is_empty(shared, SCENE_PIXELS));
        }
        free(copy);
        free(original);
        contract_scene_destroy(&scene);
    }
    das_device_destroy(&device);
    test_end();
}

/* Frames, transmits and accumulation write what was asked for and nothing else. */
static void parts(const char *name)
{
    das_device *device = contract_open(name);
    float expected[SCENE_PIXELS], got[SCENE_PIXELS];
    rig r;
    test_begin("%s: a run's frames go where they should, and no other frame is written", name);
    if (device == NULL || !contract_scene_create(&scene) || !contract_scene_image(&scene, device, expected)) {
        contract_scene_destroy(&scene);
        das_device_destroy(&device);
        test_end();
        return;
    }
    if (rig_create(&r, device, sizeof scene.data, sizeof got)) {
        float marks[SCENE_PIXELS];
        for (int i = 0; i < SCENE_PIXELS; i++)
            marks[i] = (float)i;
        for (int from = 0; from < 2; from++)
            for (int to = 0; to < 2; to++) {
                OK(das_buffer_upload(r.queue, r.image, 0, marks, sizeof marks, E));
                OK(das_run_set_frames(r.run, from, 1, to, E));
                OK(das_reconstruct(r.plan, r.queue, r.data, r.image, r.run, E));
                OK(das_buffer_download(r.queue, r.image, 0, got, sizeof got, E));
                OK(das_queue_wait(r.queue, E));
                EXPECT(contract_close(got + to * SCENE_POINTS, expected + from * SCENE_POINTS, SCENE_POINTS));
                EXPECT(contract_same(got + (1 - to) * SCENE_POINTS, marks + (1 - to) * SCENE_POINTS, SCENE_POINTS * 4));
            }
        OK(das_run_set_frames(r.run, 0, 0, 0, E));
        OK(das_reconstruct(r.plan, r.queue, r.data, r.image, r.run, E));
        OK(das_buffer_download(r.queue, r.image, 0, got, sizeof got, E));
        OK(das_queue_wait(r.queue, E));
        EXPECT(contract_same(got, expected, sizeof got));

        test_begin("%s: accumulating adds to the image, also from host to host", name);
        OK(das_buffer_upload(r.queue, r.image, 0, marks, sizeof marks, E));
        OK(das_run_set_accumulate(r.run, 1, E));
        OK(das_reconstruct(r.plan, r.queue, r.data, r.image, r.run, E));
        OK(das_buffer_download(r.queue, r.image, 0, got, sizeof got, E));
        OK(das_queue_wait(r.queue, E));
        float sum[SCENE_PIXELS];
        for (int i = 0; i < SCENE_PIXELS; i++)
            sum[i] = marks[i] + expected[i];
        close_to(got, sum, SCENE_PIXELS, "accumulated");
        memcpy(got, marks, sizeof got);
        OK(das_reconstruct_host(r.plan, scene.data, sizeof scene.data, got, sizeof got, r.run, E));
        close_to(got, sum, SCENE_PIXELS, "accumulated from host to host");
        OK(das_run_set_accumulate(r.run, 0, E));
        OK(das_reconstruct_host(r.plan, scene.data, sizeof scene.data, got, sizeof got, r.run, E));
        EXPECT(contract_same(got, expected, sizeof got));
    }
    rig_destroy(&r);

    test_begin("%s: transmits one at a time add up to all of them", name);
    OK(das_options_set_incremental(scene.options, 1, E));
    if (rig_create(&r, device, sizeof scene.data, sizeof got)) {
        for (int t = 0; t < SCENE_TRANSMITS; t++) {
            OK(das_run_set_transmits(r.run, t, 1, E));
            OK(das_run_set_accumulate(r.run, t > 0, E));
            OK(das_reconstruct(r.plan, r.queue, r.data, r.image, r.run, E));
        }
        OK(das_buffer_download(r.queue, r.image, 0, got, sizeof got, E));
        OK(das_queue_wait(r.queue, E));
        close_to(got, expected, SCENE_PIXELS, "transmit by transmit");
    }
    rig_destroy(&r);

    test_begin("%s: with kept transmits only the images of those asked for are written", name);
    OK(das_options_set_keep_transmit(scene.options, 1, E));
    float kept[SCENE_PIXELS * SCENE_TRANSMITS], all[SCENE_PIXELS * SCENE_TRANSMITS];
    if (rig_create(&r, device, sizeof scene.data, sizeof kept)) {
        OK(das_reconstruct_host(r.plan, scene.data, sizeof scene.data, all, sizeof all, NULL, E));
        for (int t = 0; t < SCENE_TRANSMITS; t++)
            for (int way = 0; way < 2; way++) {
                for (size_t i = 0; i < sizeof kept / 4; i++)
                    kept[i] = -7;
                OK(das_run_set_transmits(r.run, t, 1, E));
                if (way == 0) {
                    OK(das_buffer_upload(r.queue, r.image, 0, kept, sizeof kept, E));
                    OK(das_reconstruct(r.plan, r.queue, r.data, r.image, r.run, E));
                    OK(das_buffer_download(r.queue, r.image, 0, kept, sizeof kept, E));
                    OK(das_queue_wait(r.queue, E));
                } else {
                    OK(das_reconstruct_host(r.plan, scene.data, sizeof scene.data, kept, sizeof kept, r.run, E));
                }
                for (int i = 0; i < SCENE_PIXELS * SCENE_TRANSMITS; i++) {
                    bool asked = i / SCENE_POINTS % SCENE_TRANSMITS == t;
                    if (asked ? !(fabsf(kept[i] - all[i]) <= 1e-5f) : kept[i] != -7) {
                        test_note("transmit %d, way %d: element %d is %g", t, way, i, (double)kept[i]);
                        break;
                    }
                }
            }
    }
    rig_destroy(&r);
    contract_scene_destroy(&scene);
    das_device_destroy(&device);
    test_end();
}

/* Kept axes of a trace list index elements and transmits; pairs that are absent are 0. */
static void traces(const char *name)
{
    das_device *device = contract_open(name);
    test_begin("%s: with a trace list kept axes index elements and transmits, absent pairs are 0", name);
    if (device != NULL && contract_scene_create(&scene)) {
        enum { VALUES = SCENE_PIXELS * SCENE_TRANSMITS * SCENE_ELEMENTS };
        float *all = malloc(VALUES * 4), *got = malloc(VALUES * 4), *few = malloc(sizeof scene.data);
        const int64_t transmit[4] = {2, 0, 2, 1}, receive[4] = {3, 1, 0, 3};
        das_plan *plan = NULL;
        das_plan_info info = {.struct_size = sizeof info};
        OK(das_options_set_keep_transmit(scene.options, 1, E));
        OK(das_options_set_keep_receive(scene.options, 1, E));
        OK(das_plan_create(device, scene.acquisition, scene.grid, scene.options, &plan, E));
        OK(das_reconstruct_host(plan, scene.data, sizeof scene.data, all, VALUES * 4, NULL, E));
        das_plan_destroy(&plan);
        for (int f = 0; f < SCENE_FRAMES; f++)
            for (int k = 0; k < 4; k++)
                memcpy(few + (f * 4 + k) * SCENE_SAMPLES,
                       scene.data + ((f * SCENE_TRANSMITS + transmit[k]) * SCENE_ELEMENTS + receive[k]) * SCENE_SAMPLES,
                       SCENE_SAMPLES * 4);
        OK(das_acquisition_set_traces(scene.acquisition, 4, transmit, receive, NULL, E));
        if (OK(das_plan_create(device, scene.acquisition, scene.grid, scene.options, &plan, E))) {
            OK(das_plan_get_info(plan, &info, E));
            EXPECT_INT(info.pairs, 4);
            EXPECT_INT(info.input_bytes, SCENE_FRAMES * 4 * SCENE_SAMPLES * 4);
            memset(got, 0xFF, VALUES * 4);
            OK(das_reconstruct_host(plan, few, (size_t)info.input_bytes, got, VALUES * 4, NULL, E));
            for (int i = 0; i < VALUES && !test_has_failed(); i++) {
                int r = i / SCENE_POINTS % SCENE_ELEMENTS, t = i / SCENE_POINTS / SCENE_ELEMENTS % SCENE_TRANSMITS;
                bool present = false;
                for (int k = 0; k < 4; k++)
                    present = present || (transmit[k] == t && receive[k] == r);
                EXPECT_MSG(fabsf(got[i] - (present ? all[i] : 0)) <= 1e-6f, "transmit %d, receive %d: %g, expected %g", t, r,
                           (double)got[i], (double)(present ? all[i] : 0));
            }
            das_plan_destroy(&plan);
        }
        free(all);
        free(got);
        free(few);
        contract_scene_destroy(&scene);
    }
    das_device_destroy(&device);
    test_end();
}

/* What has weight 0 is never read: here it would be a NaN. */
static void never_read(const char *name)
{
    das_device *device = contract_open(name);
    float expected[SCENE_PIXELS], got[SCENE_PIXELS];
    test_begin("%s: pairs, elements and transmits of weight 0 are never read", name);
    if (device != NULL && contract_scene_create(&scene)) {
        double pairs[SCENE_TRANSMITS * SCENE_ELEMENTS], receive[SCENE_ELEMENTS] = {1, 0, 1, 1}, transmit[SCENE_TRANSMITS] = {1, 1, 0};
        for (int i = 0; i < SCENE_TRANSMITS * SCENE_ELEMENTS; i++)
            pairs[i] = i != 4;
        OK(das_acquisition_set_pair_weights(scene.acquisition, SCENE_TRANSMITS, SCENE_ELEMENTS, pairs, E));
        OK(das_acquisition_set_receive_weights(scene.acquisition, SCENE_ELEMENTS, receive, E));
        OK(das_acquisition_set_transmit_weights(scene.acquisition, SCENE_TRANSMITS, transmit, E));
        das_plan_info info = {.struct_size = sizeof info};
        OK(das_plan_query(device, scene.acquisition, scene.grid, scene.options, &info, E));
        EXPECT_INT(info.pairs, 5);
        contract_scene_image(&scene, device, expected);
        for (int i = 0; i < SCENE_VALUES; i++) {
            int e = i / SCENE_SAMPLES % SCENE_ELEMENTS, t = i / SCENE_SAMPLES / SCENE_ELEMENTS % SCENE_TRANSMITS;
            if (e == 1 || t == 2 || t * SCENE_ELEMENTS + e == 4)
                scene.data[i] = NAN;
        }
        contract_scene_image(&scene, device, got);
        EXPECT(contract_same(got, expected, sizeof got) && !is_empty(got, SCENE_PIXELS));
        contract_scene_destroy(&scene);
    }
    das_device_destroy(&device);
    test_end();
}

/* Imports need the alignment of the element only; data and image may lie in one block if they do not overlap. */
static void alignment(void)
{
    das_device *device = contract_open("cpu");
    float expected[SCENE_PIXELS];
    test_begin("imports need the alignment of the element type only");
    if (device != NULL && contract_scene_create(&scene) && contract_scene_image(&scene, device, expected)) {
        das_plan *plan = NULL;
        unsigned char *block = test_guarded_alloc(sizeof scene.data + sizeof expected + 64, 64);
        OK(das_plan_create(device, scene.acquisition, scene.grid, scene.options, &plan, E));
        for (size_t shift = 0; shift < 8; shift++) {
            unsigned char *from = block + shift, *to = from + sizeof scene.data;
            das_buffer *data = NULL, *image = NULL;
            memcpy(from, scene.data, sizeof scene.data);
            memset(to, 0xFF, sizeof expected);
            OK(das_buffer_import_pointer(device, from, sizeof scene.data, NULL, NULL, &data, E));
            OK(das_buffer_import_pointer(device, to, sizeof expected, NULL, NULL, &image, E));
            if (shift % 4 == 0) {
                OK(das_reconstruct(plan, NULL, data, image, NULL, E));
                EXPECT(contract_same(to, expected, sizeof expected));
            } else {
                REFUSED(das_reconstruct(plan, NULL, data, image, NULL, E), DAS_ERROR_ARGUMENT, "data", "alignment");
            }
            das_buffer_destroy(&image);
            /* An image over the end of the data. */
            OK(das_buffer_import_pointer(device, to - 4, sizeof expected, NULL, NULL, &image, E));
            if (shift % 4 == 0)
                REFUSED(das_reconstruct(plan, NULL, data, image, NULL, E), DAS_ERROR_ARGUMENT, "image", NULL);
            das_buffer_destroy(&data);
            das_buffer_destroy(&image);
        }
        REFUSED(das_reconstruct_host(plan, block, sizeof scene.data, block + sizeof scene.data - 4, sizeof expected, NULL, E),
                DAS_ERROR_ARGUMENT, "image", NULL);
        das_plan_destroy(&plan);
        EXPECT(test_guarded_intact(block));
        test_guarded_free(block);
    }
    contract_scene_destroy(&scene);
    test_begin("the library's own memory is aligned to 64 bytes");
    for (uint64_t bytes = 1; bytes < 300; bytes += 37) {
        das_buffer *buffer = NULL;
        OK(das_buffer_create(device, bytes, DAS_MEMORY_DEVICE, &buffer, E));
        EXPECT(das_buffer_host_pointer(buffer) != NULL && (uintptr_t)das_buffer_host_pointer(buffer) % 64 == 0);
        das_buffer_destroy(&buffer);
    }
    das_device_destroy(&device);
    test_end();
}

int main(void)
{
    contract_each_device(default_order);
    contract_each_device(image_strides);
    contract_each_device(extents);
    contract_each_device(sharing);
    contract_each_device(parts);
    contract_each_device(traces);
    contract_each_device(never_read);
    alignment();
    test_begin("mock: the front end kept backend.h all the while");
    EXPECT_NO_BREACH();
    test_end();
    return test_finish();
}
