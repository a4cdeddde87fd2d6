/* Which instruction sets this processor and its system offer, and what is known of its model. */
#include "cpu_backend.h"

#include <stdio.h>
#include <string.h>

const char *das_cpu_isa_name(das_cpu_isa isa)
{
    static const char *const names[DAS_CPU_ISA_COUNT] = {"scalar", "avx2", "avx512", "neon"};
    return names[isa];
}

das_cpu_isa das_cpu_best(const das_cpu_features *features)
{
    if (features->has[DAS_CPU_AVX512] && !features->narrow_512)
        return DAS_CPU_AVX512;
    if (features->has[DAS_CPU_AVX2])
        return DAS_CPU_AVX2;
    if (features->has[DAS_CPU_NEON])
        return DAS_CPU_NEON;
    return DAS_CPU_SCALAR;
}

/* Models on which the AVX-512 path gains nothing over AVX2. Zen 4, which splits such vectors in two, is not one: half the
 * instructions, same clock. Nothing here is slow for its gathers: only tiles too coarse for permutes use them. */
static const struct {
    char vendor[13];
    uint32_t family, model;
} narrow_512_models[] = {
    {"GenuineIntel", 6, 0x55}, /* Skylake, Cascade Lake and Cooper Lake servers: clock drops, one unit in some */
    {"GenuineIntel", 6, 0x66}, /* Cannon Lake */
};

bool das_cpu_narrow_512(const char *vendor, uint32_t family, uint32_t model)
{
    for (size_t k = 0; k < sizeof narrow_512_models / sizeof narrow_512_models[0]; k++)
        if (strcmp(vendor, narrow_512_models[k].vendor) == 0 && family == narrow_512_models[k].family &&
            model == narrow_512_models[k].model)
            return true;
    return false;
}

#if defined(__x86_64__)
#include <cpuid.h>

static uint64_t enabled_state(void)
{
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

void das_cpu_detect(das_cpu_features *features)
{
    uint32_t a, b, c, d, basic_c;
    char vendor[13] = "";
    memset(features, 0, sizeof *features);
    features->has[DAS_CPU_SCALAR] = true;
    snprintf(features->model, sizeof features->model, "x86-64");

    if (!__get_cpuid(0, &a, &b, &c, &d))
        return;
    memcpy(vendor, &b, 4);
    memcpy(vendor + 4, &d, 4);
    memcpy(vendor + 8, &c, 4);
    if (!__get_cpuid(1, &a, &b, &basic_c, &d))
        return;
    uint32_t family = a >> 8 & 15, model = a >> 4 & 15;
    if (family == 6 || family == 15)
        model += (a >> 16 & 15) << 4;
    if (family == 15)
        family += a >> 20 & 255;

    char brand[49] = "";
    uint32_t *words = (uint32_t *)(void *)brand;
    uint32_t copy[12];
    bool branded = true;
    for (uint32_t k = 0; k < 3 && branded; k++)
        branded = __get_cpuid(0x80000002u + k, &copy[4 * k], &copy[4 * k + 1], &copy[4 * k + 2], &copy[4 * k + 3]) != 0;
    if (branded) {
        memcpy(words, copy, 48);
        const char *start = brand + strspn(brand, " ");
        snprintf(features->model, sizeof features->model, "%s", start);
    }

    /* OSXSAVE, AVX, FMA, F16C, and the system saves the registers. */
    const uint32_t basic = 1u << 27 | 1u << 28 | 1u << 12 | 1u << 29;
    if ((basic_c & basic) != basic)
        return;
    uint64_t state = enabled_state();
    if ((state & 6) != 6 || !__get_cpuid_count(7, 0, &a, &b, &c, &d))
        return;
    features->has[DAS_CPU_AVX2] = (b & 1u << 5) != 0;
    /* F, DQ, BW, VL. */
    const uint32_t wide = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31;
    features->has[DAS_CPU_AVX512] = features->has[DAS_CPU_AVX2] && (b & wide) == wide && (state & 0xe0) == 0xe0;
    features->narrow_512 = das_cpu_narrow_512(vendor, family, model);
}

#elif defined(__aarch64__)
#include <sys/auxv.h>

void das_cpu_detect(das_cpu_features *features)
{
    const unsigned long asimd = 1ul << 1; /* HWCAP_ASIMD */
    memset(features, 0, sizeof *features);
    features->has[DAS_CPU_SCALAR] = true;
    features->has[DAS_CPU_NEON] = (getauxval(AT_HWCAP) & asimd) != 0;
    snprintf(features->model, sizeof features->model, "aarch64");
}

#else

void das_cpu_detect(das_cpu_features *features)
{
    memset(features, 0, sizeof *features);
    features->has[DAS_CPU_SCALAR] = true;
    snprintf(features->model, sizeof features->model, "unknown processor");
}

#endif
