/* The fast paths on AArch64 Advanced SIMD. */
#if defined(__aarch64__)
#include "cpu_vector_neon.h"
#define KERNELS_ISA DAS_CPU_NEON
#define KERNELS_NAME das_cpu_kernels_neon
#include "cpu_fast.inc"
#else
typedef int das_cpu_neon_is_empty; /* C wants a declaration */
#endif
