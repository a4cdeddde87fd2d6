/* Numbers beyond 2^31: works, or is refused with a reason; never wraps. Memory is reserved, hardly touched. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

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
    }
}
