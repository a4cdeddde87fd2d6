/* The fast paths on AVX2. */
#if defined(__AVX2__)
#include "cpu_vector_avx2.h"
#define KERNELS_ISA DAS_CPU_AVX2
#define KERNELS_NAME das_cpu_kernels_avx2
#include "cpu_fast.inc"
#else
typedef int das_cpu_avx2_is_empty; /* C wants a declaration */
#endif
