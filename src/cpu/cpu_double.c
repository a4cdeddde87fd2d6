/* The general path with sums in double, for DAS_PRECISION_DOUBLE. */
#define DAS_KERNEL_DOUBLE
#define GENERAL_KERNELS das_cpu_general_f64
#include "cpu_general.inc"
