/* The general path on AVX2. */
#if defined(__AVX2__)
#define GENERAL_KERNELS das_cpu_general_f32_avx2
#include "cpu_general.inc"
#else
typedef int das_cpu_avx2_general_is_empty; /* C wants a declaration */
#endif
