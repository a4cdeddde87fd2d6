/* The fast paths on AVX-512. */
#if defined(__AVX512F__)
#include "cpu_vector_avx512.h"
#define KERNELS_ISA DAS_CPU_AVX512
#define KERNELS_NAME das_cpu_kernels_avx512
#include "cpu_fast.inc"
#else
typedef int das_cpu_avx512_is_empty; /* C wants a declaration */
#endif
