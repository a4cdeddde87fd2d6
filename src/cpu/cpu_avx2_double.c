/* The general path on AVX2, with sums in double. */
#if defined(__AVX2__)
#define DAS_KERNEL_DOUBLE
#define GENERAL_KERNELS das_cpu_general_f64_avx2
#include "cpu_general.inc"
#else
typedef int das_cpu_avx2_double_is_empty; /* C wants a declaration */
#endif
