/* The general path with sums in float. */
#define GENERAL_NAME(name) name##_f32
#include "cpu_general.inc"

float das_cpu_half(uint16_t bits)
{
    const uint32_t sign = (uint32_t)(bits & 0x8000u) << 16;
    uint32_t exponent = bits >> 10 & 31u, fraction = bits & 0x3ffu, word;
    if (exponent == 31u) /* infinite, NaN */
        word = sign | 0x7f800000u | fraction << 13;
    else if (exponent != 0u)
        word = sign | (exponent + 112u) << 23 | fraction << 13;
    else {
        const float small = (float)fraction * 0x1p-24f; /* subnormal in binary16, normal in float */
        memcpy(&word, &small, sizeof word);
        word |= sign;
    }
    float value;
    memcpy(&value, &word, sizeof value);
    return value;
}
