/* Numbers beyond 2^31, and beyond what one launch holds: works, or is refused with a reason; never wraps. Memory is
 * reserved and hardly touched, but for the cases that want a GPU with room. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "conformance.h"

static void *reserve(size_t bytes)
{
    void *memory =
        sizeof(size_t) < 8
            ? MAP_FAILED
            : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static bool refused(das_status status)
{
    return status == DAS_ERROR_TOO_LARGE || status == DAS_ERROR_OUT_OF_DEVICE_MEMORY || status == DAS_ERROR_OUT_OF_MEMORY;
}

/* Two transmits whose records lie more than 2^31 elements apart: ramps of different height. */
static void far_records(const conformance_target *target, oracle_type type)
{
    const char *name = type == ORACLE_I8 ? "int8 records 2^31 elements apart" : "float records 2^31 elements apart";
    const int64_t apart = (INT64_C(1) << 31) + 5;
    scenario s;
    das_error error = DAS_ERROR_INIT;
    das_status status;
    float image[3] = {-1, -1, -1};

    scenario_init(&s);
    s.o.type = type;
    s.o.samples = 401;
    scenario_transmits(&s, 2);
    scenario_compact(&s);
    s.o.transmit_stride = apart;
    s.o.frame_stride = 0;
    s.data_strided = true;
    s.data_elements = apart + s.o.samples;
    s.data_bytes = (size_t)(s.data_elements * oracle_type_bytes(type));
    s.way = target->is_cpu ? WAY_IMPORT : WAY_QUEUE;
    s.data = reserve(s.data_bytes);
    s.o.data = s.data;
    if (s.data == NULL) {
        test_skip(name, "no address space of %zu bytes", s.data_bytes);
    } else {
        test_begin("%s on %s", name, target->name);
        for (int64_t t = 0; t < 2; t++) {
            int64_t at = scenario_index(&s, 0, t, 0, 400);
            if (type == ORACLE_I8)
                ((int8_t *)s.data)[at] = (int8_t)(t == 0 ? 3 : 100);
            else
                ((float *)s.data)[at] = t == 0 ? 3 : 100;
        }
        status = scenario_run(target, &s, image, &error);
        if (refused(status))
            EXPECT_MSG(error.message[0] != '\0', "refused without a message");
        else
            EXPECT_MSG(status == DAS_OK && image[0] == 103, "%s, %s, value %g, expected 103", das_status_name(status),
                       error.message, (double)image[0]);
        test_end();
        munmap(s.data, s.data_bytes);
    }
    s.data = NULL;
    scenario_free(&s);
}

/* Two frames of an image more than 2^31 elements apart; CPU, which writes the caller's memory itself. */
static void far_frames(const conformance_target *target)
{
    static const int64_t strides[6] = {(INT64_C(1) << 31) + 7, 1, 1, 1, 1, 1};
    size_t bytes = (size_t)(strides[0] + 1) * sizeof(float);
    scenario s;
    das_error error = DAS_ERROR_INIT;
    float *image = reserve(bytes);

    if (image == NULL) {
        test_skip("image frames 2^31 elements apart", "no address space of %zu bytes", bytes);
        return;
    }
    scenario_init(&s);
    s.frames = s.data_frames = 2;
    s.image_strided = true;
    memcpy(s.image_stride, strides, sizeof strides);
    s.way = WAY_IMPORT;
    scenario_compact(&s);
    scenario_data(&s);
    for (int64_t i = 0; i < s.data_elements; i++)
        ((float *)s.data)[i] = i < s.o.samples ? 5 : 6;
    test_begin("image frames 2^31 elements apart on %s", target->name);
    EXPECT_MSG(scenario_run(target, &s, image, &error) == DAS_OK, "%s", error.message);
    EXPECT(image[0] == 5);
    EXPECT(image[strides[0]] == 6);
    EXPECT(image[7] == 0);
    test_end();
    munmap(image, bytes);
    scenario_free(&s);
}

/* Frame 2999999999 of 3e9 that share one record; only one image frame is there. */
static void late_frame(const conformance_target *target)
{
    scenario s;
    das_error error = DAS_ERROR_INIT;
    das_status status;
    float image[1] = {-1};
    scenario_init(&s);
    scenario_compact(&s);
    s.o.frame_stride = 0;
    s.data_strided = true;
    s.frames = INT64_C(3000000000);
    s.run_range = true;
    s.run_first = s.frames - 1;
    s.run_frames = 1;
    scenario_data(&s);
    for (int64_t i = 0; i < s.data_elements; i++)
        ((float *)s.data)[i] = (float)i;
    test_begin("frame 2999999999 on %s", target->name);
    status = scenario_run(target, &s, image, &error);
    if (!refused(status))
        EXPECT_MSG(status == DAS_OK && image[0] == 400, "%s, %s, value %g, expected 400", das_status_name(status),
                   error.message, (double)image[0]);
    test_end();
    scenario_free(&s);
}

/* A plan of more points than 2^31 is made and says its size, or is refused. */
static void many_points(const conformance_target *target)
{
    static const int64_t counts[] = {50000, 4000000, INT64_C(1) << 30};
    for (int k = 0; k < 3; k++) {
        scenario s;
        das_plan *plan = NULL;
        das_plan_info info;
        das_error error = DAS_ERROR_INIT;
        das_status status;
        scenario_init(&s);
        scenario_compact(&s);
        s.o.grid.count[0] = s.o.grid.count[2] = counts[k];
        s.o.grid.step[0][0] = s.o.grid.step[2][2] = 1e-6;
        test_begin("a grid of %lld x %lld points on %s", (long long)counts[k], (long long)counts[k], target->name);
        status = scenario_plan(target, &s, &plan, &error);
        if (status == DAS_OK) {
            memset(&info, 0, sizeof info);
            info.struct_size = sizeof info;
            EXPECT_INT(das_plan_get_info(plan, &info, &error), DAS_OK);
            EXPECT_INT(info.points, counts[k] * counts[k]);
            EXPECT_INT(info.output_bytes, 4 * counts[k] * counts[k]);
            EXPECT(info.plan_bytes + info.slot_bytes <= info.input_bytes + (UINT64_C(64) << 20));
        } else {
            EXPECT_MSG(refused(status), "%s: %s", das_status_name(status), error.message);
        }
        das_plan_destroy(&plan);
        test_end();
        scenario_free(&s);
    }
}

/* ---- long axes, many frames ---- */

static bool is_gpu(const conformance_target *target)
{
    return strncmp(target->name, "cuda", 4) == 0 || (strncmp(target->name, "opencl", 6) == 0 && target->one_in == 1);
}

/* Each frame has a record of its own; every value of the image is looked at. */
static void many_frames(const conformance_target *target, bool fast_paths)
{
    enum { FRAMES = 70000, POINTS = 3 };
    scenario s;
    das_error error = DAS_ERROR_INIT;
    das_status status;
    float *image = malloc(FRAMES * POINTS * sizeof *image);
    scenario_init(&s);
    s.o.type = ORACLE_I8;
    s.o.samples = 401;
    s.frames = s.data_frames = FRAMES;
    s.no_fast_paths = !fast_paths;
    s.o.grid.count[2] = POINTS;
    s.o.grid.step[2][2] = -0.5 * 75e-6; /* a sample earlier each */
    scenario_compact(&s);
    int8_t *data = scenario_data(&s);
    for (int64_t f = 0; f < FRAMES; f++)
        for (int64_t n = 0; n < s.o.samples; n++)
            data[f * s.o.samples + n] = (int8_t)((3 * f + n) % 101);
    test_begin("70000 frames%s on %s", fast_paths ? "" : ", general path", target->name);
    memset(image, 0xFF, FRAMES * POINTS * sizeof *image);
    status = scenario_run(target, &s, image, &error);
    EXPECT_MSG(status == DAS_OK, "%s: %s", das_status_name(status), error.message);
    for (int64_t i = 0; status == DAS_OK && i < FRAMES * POINTS && !test_has_failed(); i++) {
        double want = (double)((3 * (i / POINTS) + 400 - i % POINTS) % 101);
        EXPECT_MSG(fabs((double)image[i] - want) <= 1e-3, "value %lld is %.9g, expected %g", (long long)i, (double)image[i], want);
    }
    test_end();
    free(image);
    scenario_free(&s);
}

/* A ramp as the record and points down a line: every value of the image is the sample position of its point, times the
 * pairs. */
static void long_axis(const conformance_target *target, const int64_t counts[3], int deep, int64_t elements, int64_t frames,
                      bool fast_paths)
{
    const int64_t points = counts[0] * counts[1] * counts[2];
    const double first = 100, last = 500, pairs = (double)(elements * elements);
    scenario s;
    das_error error = DAS_ERROR_INIT;
    das_status status;
    float *image = malloc((size_t)(frames * points) * sizeof *image);
    scenario_init(&s);
    scenario_elements(&s, elements);
    scenario_transmits(&s, elements);
    for (int64_t i = 0; elements > 1 && i < elements; i++)
        ((oracle_transmit *)s.o.transmit)[i].wave = ORACLE_ELEMENT;
    s.all_elements = elements > 1;
    s.frames = s.data_frames = frames;
    s.no_fast_paths = !fast_paths;
    scenario_point(&s, 0, 0, 0.5 * 75e-6 * first);
    for (int k = 0; k < 3; k++) {
        s.o.grid.count[k] = counts[k];
        s.o.grid.step[k][k == deep ? 2 : k == 2 ? 0 : k] = k == deep ? 0.5 * 75e-6 * (last - first) / (double)(counts[k] - 1) : 1e-9;
    }
    scenario_compact(&s);
    float *data = scenario_data(&s);
    for (int64_t i = 0; i < s.data_elements; i++)
        data[i] = (float)(i % s.o.samples);
    test_begin("%lld x %lld x %lld points, %lld pairs, %lld frames%s on %s", (long long)counts[0], (long long)counts[1],
               (long long)counts[2], (long long)(elements * elements), (long long)frames, fast_paths ? "" : ", general path",
               target->name);
    EXPECT_MSG(image != NULL, "the test is out of memory");
    if (image != NULL) {
        memset(image, 0xFF, (size_t)(frames * points) * sizeof *image);
        status = scenario_run(target, &s, image, &error);
        EXPECT_MSG(status == DAS_OK, "%s: %s", das_status_name(status), error.message);
        for (int64_t i = 0; status == DAS_OK && i < frames * points && !test_has_failed(); i++) {
            int64_t p = i % points, at[3] = {p % counts[0], p / counts[0] % counts[1], p / counts[0] / counts[1]};
            double want = pairs * (first + (last - first) * (double)at[deep] / (double)(counts[deep] - 1));
            EXPECT_MSG(fabs((double)image[i] - want) <= 1e-3 * pairs, "value %lld is %.9g, expected %.9g", (long long)i,
                       (double)image[i], want);
        }
    }
    test_end();
    free(image);
    scenario_free(&s);
}

static void long_axes(const conformance_target *target)
{
    enum { LONG = 65536 * 256 + 3 };
    static const int64_t counts[6][3] = {{LONG, 1, 1},    {1, LONG, 1},     {1, 1, LONG},
                                         {16, 16, 70000}, {16, 70000, 16}, {70000, 16, 16}};
    static const int deep[6] = {0, 1, 2, 2, 1, 0};
    for (int i = 0; i < 6; i++) {
        long_axis(target, counts[i], deep[i], 1, 1, true);
        if (is_gpu(target)) {
            static const int64_t fewer[6][3] = {{LONG / 8, 1, 1}, {1, LONG / 8, 1}, {1, 1, LONG / 8},
                                                {4, 5, 70000},    {4, 70000, 5},    {70000, 4, 5}};
            long_axis(target, counts[i], deep[i], 1, 1, false);
            long_axis(target, counts[i], deep[i], 8, 1, true);
            long_axis(target, fewer[i], deep[i], 3, 32, true);
            long_axis(target, fewer[i], deep[i], 3, 32, false);
        }
    }
}

/* ---- more than 2^31 samples, points or pixels in one buffer ---- */

/* Whether device and host have so much memory to spare; says so if not. */
static bool has_room(const conformance_target *target, const char *name, double device_bytes, double host_bytes)
{
    das_device_info info = {.struct_size = sizeof info};
    double host = (double)sysconf(_SC_AVPHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    das_device_get_info(target->device, &info, NULL);
    if ((double)info.memory_bytes >= 1.25 * device_bytes && (double)info.max_buffer_bytes >= 0.8 * device_bytes &&
        host >= 1.25 * host_bytes)
        return true;
    test_skip(name, "NOT TESTED on %s, which has %.1f GB (largest buffer %.1f, host %.1f) of %.1f (host %.1f) GB", target->name,
              1e-9 * (double)info.memory_bytes, 1e-9 * (double)info.max_buffer_bytes, 1e-9 * host, 1.25e-9 * device_bytes,
              1.25e-9 * host_bytes);
    return false;
}

static int record_value(int64_t frame, int64_t transmit, int64_t receive)
{
    return (int)((7 * frame + 3 * transmit + 5 * receive) % 11) - 3;
}

/* int8 records that are constant, so that the image is a sum of integers: as one huge frame, or as many. */
static void many_samples(const conformance_target *target, int64_t elements, int64_t frames, bool fast_paths)
{
    enum { SAMPLES = 2100, SIDE = 24, POINTS = SIDE * SIDE };
    const int64_t records = frames * elements * elements, bytes = records * SAMPLES;
    char name[100];
    snprintf(name, sizeof name, "%lld int8 samples, %lld frames%s", (long long)bytes, (long long)frames,
             fast_paths ? "" : ", general path");
    if (!has_room(target, name, 4 * (double)bytes, 1.2 * (double)bytes))
        return;
    scenario s;
    das_error error = DAS_ERROR_INIT;
    float *image = malloc((size_t)(frames * POINTS) * sizeof *image);
    int8_t *data = reserve((size_t)bytes);
    scenario_init(&s);
    s.o.type = ORACLE_I8;
    s.o.samples = SAMPLES;
    oracle_element *element = scenario_elements(&s, elements);
    oracle_transmit *transmit = scenario_transmits(&s, elements);
    for (int64_t i = 0; i < elements; i++) {
        element[i].position[0] = 20e-6 * ((double)i - 0.5 * (double)(elements - 1));
        transmit[i].wave = ORACLE_ELEMENT;
        memcpy(transmit[i].vector, element[i].position, sizeof transmit[i].vector);
    }
    s.all_elements = true;
    s.frames = s.data_frames = frames;
    s.no_fast_paths = !fast_paths;
    s.o.grid.count[0] = s.o.grid.count[2] = SIDE;
    s.o.grid.step[0][0] = s.o.grid.step[2][2] = 0.2e-3;
    scenario_point(&s, -2e-3, 0, 15e-3);
    scenario_compact(&s);
    s.way = WAY_QUEUE;
    s.o.data = s.data = data;
    s.data_elements = bytes;
    s.data_bytes = (size_t)bytes;
    test_begin("%s on %s", name, target->name);
    if (data == NULL || image == NULL) {
        test_note("the test is out of memory");
    } else {
        for (int64_t i = 0; i < records; i++)
            memset(data + i * SAMPLES, record_value(i / elements / elements, i / elements % elements, i % elements), SAMPLES);
        memset(image, 0xFF, (size_t)(frames * POINTS) * sizeof *image);
        das_status status = scenario_run(target, &s, image, &error);
        EXPECT_MSG(status == DAS_OK, "%s: %s", das_status_name(status), error.message);
        for (int64_t f = 0; status == DAS_OK && f < frames; f++) {
            double want = 0;
            for (int64_t i = 0; i < elements * elements; i++)
                want += record_value(f, i / elements, i % elements);
            for (int64_t p = 0; p < POINTS; p++)
                EXPECT_MSG(fabs((double)image[f * POINTS + p] - want) <= 1e-5 * 8 * (double)(elements * elements),
                           "frame %lld, point %lld: %.9g, expected %.9g", (long long)f, (long long)p,
                           (double)image[f * POINTS + p], want);
        }
    }
    test_end();
    if (data != NULL)
        munmap(data, (size_t)bytes);
    free(image);
    s.data = NULL;
    scenario_free(&s);
}

/* An image of more than 2^31 values, looked at where it starts, about 2^31 and 2^32 bytes, and where it ends. */
static void many_pixels(const conformance_target *target, int64_t side, int64_t frames, bool fast_paths)
{
    enum { LOOK = 5000 };
    const int64_t points = side * side, pixels = frames * points;
    const double first = 100, last = 500;
    char name[100];
    snprintf(name, sizeof name, "%lld points, %lld frames%s", (long long)points, (long long)frames, fast_paths ? "" : ", general path");
    if (!has_room(target, name, 4.5 * (double)pixels, 1e8))
        return;
    scenario s;
    das_error error = DAS_ERROR_INIT;
    das_plan *plan = NULL;
    das_queue *queue = NULL;
    das_buffer *data = NULL, *image = NULL;
    scenario_init(&s);
    s.frames = s.data_frames = frames;
    s.no_fast_paths = !fast_paths;
    s.o.grid.count[0] = s.o.grid.count[2] = side;
    s.o.grid.step[0][0] = 1e-9;
    s.o.grid.step[2][2] = 0.5 * 75e-6 * (last - first) / (double)(side - 1);
    scenario_point(&s, 0, 0, 0.5 * 75e-6 * first);
    scenario_compact(&s);
    float *record = scenario_data(&s);
    for (int64_t i = 0; i < s.data_elements; i++)
        record[i] = (float)(i % s.o.samples + i / s.o.samples);
    test_begin("%s on %s", name, target->name);
    bool ok = scenario_plan(target, &s, &plan, &error) == DAS_OK && das_queue_create(target->device, &queue, &error) == DAS_OK &&
              das_buffer_create(target->device, s.data_bytes, DAS_MEMORY_DEVICE, &data, &error) == DAS_OK &&
              das_buffer_create(target->device, 4 * (uint64_t)pixels, DAS_MEMORY_DEVICE, &image, &error) == DAS_OK &&
              das_buffer_upload(queue, data, 0, record, s.data_bytes, &error) == DAS_OK &&
              das_reconstruct(plan, queue, data, image, NULL, &error) == DAS_OK && das_queue_wait(queue, &error) == DAS_OK;
    EXPECT_MSG(ok, "%s: %s", das_status_name(error.status), error.message);
    const int64_t looks[] = {0, (INT64_C(1) << 29) - LOOK / 2, (INT64_C(1) << 30) - LOOK / 2, (INT64_C(1) << 31) - LOOK / 2,
                             points - LOOK, points - LOOK / 2, pixels / 2, pixels - LOOK};
    for (size_t k = 0; ok && k < sizeof looks / sizeof looks[0]; k++) {
        float values[LOOK];
        if (looks[k] < 0 || looks[k] + LOOK > pixels)
            continue;
        ok = das_buffer_download(queue, image, 4 * (uint64_t)looks[k], values, sizeof values, &error) == DAS_OK &&
             das_queue_wait(queue, &error) == DAS_OK;
        EXPECT_MSG(ok, "%s: %s", das_status_name(error.status), error.message);
        for (int64_t i = 0; ok && i < LOOK; i++) {
            int64_t at = looks[k] + i;
            double want = first + (last - first) * (double)(at % points / side) / (double)(side - 1) + (double)(at / points);
            EXPECT_MSG(fabs((double)values[i] - want) <= 1e-3, "value %lld is %.9g, expected %.9g", (long long)at,
                       (double)values[i], want);
        }
    }
    das_buffer_destroy(&data);
    das_buffer_destroy(&image);
    das_queue_destroy(&queue);
    das_plan_destroy(&plan);
    test_end();
    scenario_free(&s);
}

static void many_of_everything(const conformance_target *target)
{
    for (int fast = 1; fast >= 0; fast--) {
        many_samples(target, 1024, 1, fast);
        many_samples(target, 64, 256, fast);
        many_pixels(target, 46500, 1, fast);
        many_pixels(target, 8200, 33, fast);
    }
}

void conformance_large(const conformance_target *targets, int count)
{
    for (int i = 0; i < count; i++) {
        /* Others copy what is between the records: 2 GiB are enough for them. */
        if (targets[i].is_cpu || strncmp(targets[i].name, "cuda", 4) == 0)
            far_records(&targets[i], ORACLE_I8);
        if (targets[i].is_cpu) {
            far_records(&targets[i], ORACLE_F32);
            far_frames(&targets[i]);
        }
        late_frame(&targets[i]);
        many_points(&targets[i]);
        if (getenv("DAS_TEST_SMALL") != NULL) {
            test_skip("long axes, many frames, large buffers", "NOT TESTED on %s, with DAS_TEST_SMALL", targets[i].name);
            continue;
        }
        many_frames(&targets[i], true);
        many_frames(&targets[i], false);
        long_axes(&targets[i]);
        if (is_gpu(&targets[i])) {
            if (has_room(&targets[i], "float records 2^31 elements apart", 1.8e10, 1.2e10))
                far_records(&targets[i], ORACLE_F32);
            many_of_everything(&targets[i]);
        }
    }
}
