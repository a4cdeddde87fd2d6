/* The fast paths without an instruction set of their own. */
#include "cpu_vector_portable.h"
#define KERNELS_ISA DAS_CPU_SCALAR
#define KERNELS_NAME das_cpu_kernels_scalar
#include "cpu_fast.inc"
