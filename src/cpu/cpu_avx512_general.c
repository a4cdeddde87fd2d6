/* The general path on AVX-512. */
#if defined(__AVX512F__)
#define GENERAL_KERNELS das_cpu_general_f32_avx512
#include "cpu_general.inc"
#else
typedef int das_cpu_avx512_general_is_empty; /* C wants a declaration */
#endif
