/* What is special to the CPU: folding of int16 records ahead of the tiles, whose sums may leave the range of int16, frames
 * packed innermost, coarse grids left to the general path; every instruction set against the general path, and the same
 * bits from any number of threads. Which instruction set a model gets, and how many threads a cgroup quota leaves. */
#include "das/das.h"
#include "cpu/cpu_backend.h"
#include "frontend.h"
#include "testing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ELEMENTS = 24, SAMPLES = 700, SIDE = 90 };

typedef struct path_case {
    const char *name, *path; /* path: what the description must say */
    das_type type;
    das_interpolation interpolation;
    int64_t frames;
    bool full_matrix;
    double peak, outlier, step; /* largest sample; one sample beyond it, or 0; metres between points */
} path_case;

static bool ok(das_status status, const das_error *error)
{
    EXPECT_MSG(status == DAS_OK, "%s: %s", das_status_name(status), error->message);
    return status == DAS_OK;
}

/* Runs the case; image is SIDE * SIDE * frames * parts floats. description may be NULL. */
static bool run(const path_case *c, const char *isa, int64_t threads, bool fast, const void *data, size_t bytes, float *image,
                size_t image_bytes, char description[256])
{
    das_error e = DAS_ERROR_INIT;
    das_device_options *how = NULL;
    das_device *device = NULL;
    das_acquisition *a = NULL;
    das_grid *grid = NULL;
    das_options *options = NULL;
    das_plan *plan = NULL;
    double elements[ELEMENTS][3] = {{0}};
    for (int k = 0; k < ELEMENTS; k++)
        elements[k][0] = (k - 11.5) * 0.3e-3;
    const double origin[3] = {-0.5 * (SIDE - 1) * c->step, 0, 6e-3}, steps[9] = {c->step, 0, 0, 0, 0, c->step, 0, 0, 0};
    const int64_t counts[3] = {SIDE, SIDE, 1};
    bool good = ok(das_device_options_create(&how, &e), &e) && ok(das_device_options_set_isa(how, isa, &e), &e) &&
                ok(das_device_options_set_thread_count(how, threads, &e), &e) &&
                ok(das_device_open("cpu", how, &device, &e), &e) && ok(das_acquisition_create(&a, &e), &e) &&
                ok(das_acquisition_set_receive_elements(a, ELEMENTS, &elements[0][0], &e), &e) &&
                ok(c->full_matrix ? das_acquisition_add_element_transmits(a, &e) : das_acquisition_add_plane_transmit(a, 0.1, &e),
                   &e) &&
                ok(das_acquisition_set_sampling_frequency(a, 25e6, &e), &e) &&
                ok(das_acquisition_set_sound_speed(a, 1500.0, &e), &e) &&
                ok(das_acquisition_set_data(a, c->type, SAMPLES, &e), &e) &&
                ok(das_acquisition_set_frame_count(a, c->frames, &e), &e) &&
                (c->type != DAS_TYPE_CF32 || ok(das_acquisition_set_demodulation_frequency(a, 5e6, &e), &e)) &&
                ok(das_grid_create_cartesian(origin, steps, counts, &grid, &e), &e) && ok(das_options_create(&options, &e), &e) &&
                ok(das_options_set_interpolation(options, c->interpolation, &e), &e) &&
                ok(das_options_set_fast_paths(options, fast, &e), &e) &&
                ok(das_plan_create(device, a, grid, options, &plan, &e), &e) &&
                ok(das_reconstruct_host(plan, data, bytes, image, image_bytes, NULL, &e), &e);
    if (good && description != NULL)
        strncpy(description, das_plan_description(plan), 255);
    das_plan_destroy(&plan);
    das_options_destroy(&options);
    das_grid_destroy(&grid);
    das_acquisition_destroy(&a);
    das_device_destroy(&device);
    das_device_options_destroy(&how);
    return good;
}

static void check(const path_case *c, const char *isa, test_rng *rng)
{
    const size_t parts = c->type == DAS_TYPE_CF32 ? 2 : 1;
    const size_t samples = (size_t)(c->frames * (c->full_matrix ? ELEMENTS : 1)) * ELEMENTS * SAMPLES * parts;
    const size_t bytes = samples * (c->type == DAS_TYPE_I16 ? 2 : 4), values = SIDE * SIDE * (size_t)c->frames * parts;
    void *data = malloc(bytes);
    float *fast = malloc(values * sizeof *fast), *again = malloc(values * sizeof *again), *general = malloc(values * sizeof *general);
    char description[256] = "";
    test_begin("%s on %s", c->name, isa);
    for (size_t i = 0; i < samples; i++) {
        const double x = i == samples / 2 && c->outlier != 0.0 ? c->outlier : test_rng_uniform(rng, -c->peak, c->peak);
        if (c->type == DAS_TYPE_I16)
            ((int16_t *)data)[i] = (int16_t)x;
        else
            ((float *)data)[i] = (float)x;
    }
    if (run(c, isa, 1, true, data, bytes, fast, values * sizeof *fast, description) &&
        run(c, isa, 1, false, data, bytes, general, values * sizeof *general, NULL)) {
        double error = 0.0, norm = 0.0;
        for (size_t i = 0; i < values; i++) {
            error += pow((double)fast[i] - (double)general[i], 2);
            norm += pow((double)general[i], 2);
        }
        EXPECT_MSG(strstr(description, c->path) != NULL, "the path is \"%s\", expected \"%s\" in it", description, c->path);
        static const int64_t threads[] = {2, 7, 64};
        for (int k = 0; k < 3; k++)
            EXPECT_MSG(run(c, isa, threads[k], true, data, bytes, again, values * sizeof *again, NULL) &&
                           memcmp(fast, again, values * sizeof *fast) == 0,
                       "%d threads give other bits than one", (int)threads[k]);
        EXPECT_MSG(norm > 0.0 && sqrt(error / norm) < 1e-5, "relative L2 against the general path %.3g", sqrt(error / norm));
    }
    test_end();
    free(data);
    free(fast);
    free(again);
    free(general);
}

static void check_models(void)
{
    static const struct {
        const char *name, *vendor;
        uint32_t family, model;
        das_cpu_isa best; /* of those it has */
    } models[] = {
        {"Skylake server", "GenuineIntel", 6, 0x55, DAS_CPU_AVX2},
        {"Cannon Lake", "GenuineIntel", 6, 0x66, DAS_CPU_AVX2},
        {"Ice Lake server", "GenuineIntel", 6, 0x6a, DAS_CPU_AVX512},
        {"Sapphire Rapids", "GenuineIntel", 6, 0x8f, DAS_CPU_AVX512},
        {"Emerald Rapids", "GenuineIntel", 6, 0xcf, DAS_CPU_AVX512},
        {"Zen 4", "AuthenticAMD", 0x19, 0x61, DAS_CPU_AVX512},
        {"another vendor's model of that number", "AuthenticAMD", 6, 0x55, DAS_CPU_AVX512},
    };
    test_begin("instruction sets by model");
    for (size_t k = 0; k < sizeof models / sizeof *models; k++) {
        das_cpu_features features = {.has = {[DAS_CPU_SCALAR] = true, [DAS_CPU_AVX2] = true, [DAS_CPU_AVX512] = true}};
        features.narrow_512 = das_cpu_narrow_512(models[k].vendor, models[k].family, models[k].model);
        EXPECT_MSG(das_cpu_best(&features) == models[k].best, "%s gets %s, expected %s", models[k].name,
                   das_cpu_isa_name(das_cpu_best(&features)), das_cpu_isa_name(models[k].best));
        features.has[DAS_CPU_AVX512] = false;
        EXPECT_MSG(das_cpu_best(&features) == DAS_CPU_AVX2, "%s without AVX-512 gets %s", models[k].name,
                   das_cpu_isa_name(das_cpu_best(&features)));
    }
    test_end();
}

/* A made-up tree of cgroup files: at most 4 of them, relative to its root. */
static void check_quotas(void)
{
    static const struct {
        const char *name, *groups;
        struct {
            const char *file, *text;
        } files[4];
        int64_t expected;
    } cases[] = {
        {"v2, unlimited", "0::/a\n", {{"a/cpu.max", "max 100000\n"}}, 0},
        {"v2, two CPUs", "0::/a\n", {{"a/cpu.max", "200000 100000\n"}}, 2},
        {"v2, one and a half", "0::/a\n", {{"a/cpu.max", "150000 100000\n"}}, 2},
        {"v2, a tenth", "0::/a\n", {{"a/cpu.max", "10000 100000\n"}}, 1},
        {"v2, the group around it allows less", "0::/a/b\n", {{"a/cpu.max", "300000 100000\n"}, {"a/b/cpu.max", "500000 50000\n"}}, 3},
        {"v2, the group itself allows less", "0::/a/b\n", {{"a/cpu.max", "800000 100000\n"}, {"a/b/cpu.max", "100000 50000\n"}}, 2},
        {"v2, limited at its root alone", "0::/a/b\n", {{"cpu.max", "400000 100000\n"}, {"a/b/cpu.max", "max 100000\n"}}, 4},
        {"v2, in a namespace", "0::/\n", {{"cpu.max", "100000 100000\n"}}, 1},
        {"v2, a group that is not there", "0::/../x\n", {{"cpu.max", "500000 100000\n"}}, 5},
        {"v2, not a quota", "0::/a\n", {{"a/cpu.max", "many\n"}}, 0},
        {"v2, no period", "0::/a\n", {{"a/cpu.max", "100000\n"}}, 0},
        {"v2, more than 64 bits of CPUs", "0::/a\n", {{"a/cpu.max", "9223372036854775807 100000\n"}}, 92233720368548},
        {"v1, unlimited", "4:cpu,cpuacct:/a\n", {{"cpu/a/cpu.cfs_quota_us", "-1\n"}, {"cpu/a/cpu.cfs_period_us", "100000\n"}}, 0},
        {"v1, two and a bit", "5:memory:/m\n4:cpu,cpuacct:/a\n",
         {{"cpu/a/cpu.cfs_quota_us", "210000\n"}, {"cpu/a/cpu.cfs_period_us", "100000\n"}}, 3},
        {"v1, the group around it", "4:cpuacct,cpu:/a/b\n",
         {{"cpu/cpu.cfs_quota_us", "100000\n"}, {"cpu/cpu.cfs_period_us", "50000\n"}}, 2},
        {"v1, without a period", "4:cpu:/a\n", {{"cpu/a/cpu.cfs_quota_us", "100000\n"}}, 0},
        {"v1, of cpuset and cpuacct", "4:cpuset:/a\n3:cpuacct:/a\n",
         {{"cpu/a/cpu.cfs_quota_us", "100000\n"}, {"cpu/a/cpu.cfs_period_us", "100000\n"}}, 0},
        {"both, v1 counts", "4:cpu,cpuacct:/a\n0::/u\n",
         {{"cpu/a/cpu.cfs_quota_us", "300000\n"}, {"cpu/a/cpu.cfs_period_us", "100000\n"}}, 3},
        {"no line", "", {{NULL, NULL}}, 0},
        {"not such lines", "a\n0:\n", {{NULL, NULL}}, 0},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char root[] = "/tmp/das_cgroup_XXXXXX", path[200], command[100];
        test_begin("cgroup quota: %s", cases[k].name);
        EXPECT(mkdtemp(root) != NULL);
        for (int j = -1; j < 4; j++) {
            const char *name = j < 0 ? "groups" : cases[k].files[j].file, *text = j < 0 ? cases[k].groups : cases[k].files[j].text;
            if (name == NULL)
                continue;
            snprintf(path, sizeof path, "%s/%s", root, name);
            for (char *slash = path + sizeof root; (slash = strchr(slash, '/')) != NULL; slash++) {
                *slash = '\0';
                mkdir(path, 0700);
                *slash = '/';
            }
            FILE *file = fopen(path, "w");
            EXPECT(file != NULL);
            if (file != NULL) {
                fputs(text, file);
                fclose(file);
            }
        }
        snprintf(path, sizeof path, "%s/groups", root);
        EXPECT_INT(das_quota_threads(path, root), cases[k].expected);
        snprintf(command, sizeof command, "rm -r %s", root);
        EXPECT_INT(system(command), 0);
        EXPECT_INT(das_quota_threads(path, root), 0);
        test_end();
    }
}

int main(int argc, char **argv)
{
    static const path_case cases[] = {
        {"int16 folded", "packed, folded linear", DAS_TYPE_I16, DAS_INTERPOLATION_LINEAR, 1, true, 2000, 0, 50e-6},
        {"int16 folded, one sum beyond int16", "packed, folded linear", DAS_TYPE_I16, DAS_INTERPOLATION_LINEAR, 1, true, 16000,
         32700, 50e-6},
        {"int16 folded, sums beyond int16", "packed, folded cubic", DAS_TYPE_I16, DAS_INTERPOLATION_CUBIC, 1, true, 32700, 0, 50e-6},
        {"float folded, two frames", "packed, folded linear", DAS_TYPE_F32, DAS_INTERPOLATION_LINEAR, 2, true, 1, 0, 50e-6},
        {"IQ over frames", "linear over frames", DAS_TYPE_CF32, DAS_INTERPOLATION_LINEAR, 7, false, 1, 0, 50e-6},
        {"IQ over frames, cubic", "cubic over frames", DAS_TYPE_CF32, DAS_INTERPOLATION_CUBIC, 21, false, 1, 0, 50e-6},
        {"real over frames", "linear over frames", DAS_TYPE_I16, DAS_INTERPOLATION_LINEAR, 40, false, 32700, 0, 50e-6},
        {"one frame of IQ", "linear tables", DAS_TYPE_CF32, DAS_INTERPOLATION_LINEAR, 1, false, 1, 0, 50e-6},
        {"wide steps", "linear", DAS_TYPE_F32, DAS_INTERPOLATION_LINEAR, 1, true, 1, 0, 150e-6},
        {"steps too wide for vectors", "general", DAS_TYPE_F32, DAS_INTERPOLATION_LINEAR, 1, false, 1, 0, 900e-6},
    };
    static const char *const isas[] = {"scalar", "avx2", "avx512", "neon"};
    test_rng rng = test_rng_seeded(test_seed(argc, argv, 20240601));
    check_models();
    check_quotas();
    for (size_t k = 0; k < sizeof isas / sizeof *isas; k++) {
        das_error e = DAS_ERROR_INIT;
        das_device_options *how = NULL;
        das_device *device = NULL;
        das_device_options_create(&how, NULL);
        das_device_options_set_isa(how, isas[k], NULL);
        const bool there = das_device_open("cpu", how, &device, &e) == DAS_OK;
        das_device_destroy(&device);
        das_device_options_destroy(&how);
        if (!there) {
            test_skip(isas[k], "NOT TESTED: %s", e.message);
            continue;
        }
        for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
            check(&cases[c], isas[k], &rng);
    }
    return test_finish();
}
