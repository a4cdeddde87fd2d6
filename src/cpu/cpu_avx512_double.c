/* The general path on AVX-512, with sums in double. */
#if defined(__AVX512F__)
#define DAS_KERNEL_DOUBLE
#define GENERAL_KERNELS das_cpu_general_f64_avx512
#include "cpu_general.inc"
#else
typedef int das_cpu_avx512_double_is_empty; /* C wants a declaration */
#endif
