/*
 * The conformance suite on every device there is, the CPU once for every instruction set.
 *
 *     test_conformance [--device NAME] [--cases N] [--seed N] [--only GROUP] [--share I/N]
 *
 * NAME is the start of a target's name ("cpu", "cpu/avx2", "cuda:0"); N cases are drawn for each of the 50
 * combinations of data type and interpolation; GROUP is table, edges, article, large, random or repeat. I/N runs
 * share I (from 0) of N of table, edges and random, for processes side by side where plans take a compiler long.
 * With DAS_TEST_SMALL set there are few cases and no article.
 */
#define _POSIX_C_SOURCE 200809L /* setenv */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance.h"
#include "mock_backend.h"

enum { MOST = 16 };

static conformance_target targets[MOST];
static int target_count;

static void add_target(das_device *device, const char *name, const char *isa)
{
    conformance_target *target = &targets[target_count];
    das_device_info info;
    memset(&info, 0, sizeof info);
    info.struct_size = sizeof info;
    if (target_count == MOST || das_device_get_info(device, &info, NULL) != DAS_OK) {
        das_device_destroy(&device);
        return;
    }
    target->device = device;
    snprintf(target->name, sizeof target->name, "%s", name);
    snprintf(target->isa, sizeof target->isa, "%s", isa);
    target->is_cpu = isa[0] != '\0';
    target->has_double = info.has_double != 0;
    /* OpenCL on a processor compiles the kernels of every plan there. */
    target->one_in = strncmp(name, "opencl", 6) == 0 && info.is_gpu == 0 ? 6 : 1;
    printf("running on %s: %s\n", target->name, info.description);
    target_count++;
}

static bool wanted(const char *name, const char *filter)
{
    return filter == NULL || strncmp(name, filter, strlen(filter)) == 0;
}

static void open_cpu(const char *filter)
{
    static const char *const isas[] = {"scalar", "avx2", "avx512", "neon"};
    for (size_t i = 0; i < sizeof isas / sizeof isas[0]; i++) {
        char name[32];
        das_device_options *options = NULL;
        das_device *device = NULL;
        das_error error = DAS_ERROR_INIT;
        snprintf(name, sizeof name, "cpu/%s", isas[i]);
        if (!wanted(name, filter))
            continue;
        if (das_device_options_create(&options, &error) != DAS_OK ||
            das_device_options_set_isa(options, isas[i], &error) != DAS_OK ||
            das_device_open("cpu", options, &device, &error) != DAS_OK) {
            if (error.status == DAS_ERROR_UNSUPPORTED) {
                test_skip(name, "NOT TESTED, this processor or build lacks it: %s", error.message);
            } else {
                test_begin("opening %s", name);
                test_note("%s: %s", das_status_name(error.status), error.message);
                test_end();
            }
        }
        das_device_options_destroy(&options);
        if (device != NULL)
            add_target(device, name, isas[i]);
    }
}

static void open_others(const char *filter)
{
    static const char *const backends[] = {"cuda", "opencl"};
    int64_t count = 0;
    for (int b = 0; b < 2; b++) {
        int found = 0;
        das_error error = DAS_ERROR_INIT;
        if (filter != NULL && strncmp(filter, backends[b], strlen(backends[b])) != 0)
            continue;
        if (das_device_count(&count, &error) != DAS_OK)
            count = 0;
        for (int64_t i = 0; i < count; i++) {
            das_device_info info;
            das_device *device = NULL;
            memset(&info, 0, sizeof info);
            info.struct_size = sizeof info;
            if (das_device_list(i, &info, &error) != DAS_OK || strncmp(info.name, backends[b], strlen(backends[b])) != 0 ||
                !wanted(info.name, filter))
                continue;
            found++;
            if (das_device_open(info.name, NULL, &device, &error) == DAS_OK) {
                add_target(device, info.name, "");
            } else {
                test_begin("opening %s", info.name);
                test_note("%s: %s", das_status_name(error.status), error.message);
                test_end();
            }
        }
        if (found == 0) {
            das_device *none = NULL;
            das_error why = DAS_ERROR_INIT;
            das_device_open(backends[b], NULL, &none, &why);
            das_device_destroy(&none);
            test_skip(backends[b], "NOT TESTED, no device (%s: %s)", das_status_name(why.status), why.message);
        }
    }
}

/* The mock, whose memory the host cannot read and whose queues run later. */
static void open_mock(const char *filter)
{
    das_device *device = NULL;
    das_error error = DAS_ERROR_INIT;
    if (!wanted("mock", filter))
        return;
    das_mock_install();
    if (das_device_open("mock", NULL, &device, &error) == DAS_OK) {
        add_target(device, "mock", "");
    } else {
        test_begin("opening mock");
        test_note("%s: %s", das_status_name(error.status), error.message);
        test_end();
    }
}

static void close_mock(void)
{
    test_begin("the front end kept its promises to the mock");
    EXPECT_NO_BREACH();
    EXPECT_INT(das_mock_live(), 0);
    test_end();
    das_mock_uninstall();
}

/* The environment variable forces an instruction set where the option does not. */
static void environment(void)
{
    for (int i = 0; i < target_count; i++) {
        conformance_target target = targets[i];
        das_error error = DAS_ERROR_INIT;
        das_device_info forced, optioned;
        if (!target.is_cpu)
            continue;
        test_begin("DAS_CPU_ISA=%s", target.isa);
        memset(&forced, 0, sizeof forced);
        memset(&optioned, 0, sizeof optioned);
        forced.struct_size = optioned.struct_size = sizeof forced;
        target.device = NULL;
        setenv("DAS_CPU_ISA", target.isa, 1);
        EXPECT_INT(das_device_open("cpu", NULL, &target.device, &error), DAS_OK);
        unsetenv("DAS_CPU_ISA");
        EXPECT_INT(das_device_get_info(target.device, &forced, &error), DAS_OK);
        EXPECT_INT(das_device_get_info(targets[i].device, &optioned, &error), DAS_OK);
        EXPECT(strcmp(forced.description, optioned.description) == 0);
        das_device_destroy(&target.device);
        test_end();
    }
}

int main(int argc, char **argv)
{
    const char *filter = test_option(argc, argv, "--device"), *cases = test_option(argc, argv, "--cases");
    const char *only = test_option(argc, argv, "--only"), *small = getenv("DAS_TEST_SMALL");
    const char *share = test_option(argc, argv, "--share");
    int mine = 0, of = 1;
    conformance_amount amount = {test_seed(argc, argv, 20240601), cases != NULL ? atoi(cases) : small != NULL ? 2 : 24};

    if (share != NULL && (sscanf(share, "%d/%d", &mine, &of) != 2 || mine < 0 || mine >= of)) {
        fprintf(stderr, "--share wants I/N with 0 <= I < N, not %s\n", share);
        return 2;
    }
    conformance_set_share(mine, of);
#if !defined(__SANITIZE_ADDRESS__)
    test_report_crashes();
#endif
    open_cpu(filter);
    open_others(filter);
    open_mock(filter);
    if (only == NULL)
        environment();
    if (only == NULL || strcmp(only, "table") == 0)
        conformance_table(targets, target_count);
    if (only == NULL || strcmp(only, "edges") == 0)
        conformance_edges(targets, target_count);
    if (only == NULL ? small == NULL : strcmp(only, "article") == 0)
        conformance_article(targets, target_count);
    if (only == NULL || strcmp(only, "large") == 0)
        conformance_large(targets, target_count);
    if (only == NULL || strcmp(only, "random") == 0)
        conformance_random(targets, target_count, amount);
    if (only == NULL || strcmp(only, "repeat") == 0)
        conformance_repeat(targets, target_count, amount);
    for (int i = 0; i < target_count; i++)
        das_device_destroy(&targets[i].device);
    if (wanted("mock", filter))
        close_mock();
    return test_finish();
}
