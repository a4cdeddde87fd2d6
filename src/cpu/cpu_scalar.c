/* The general path with sums in float. */
#define GENERAL_KERNELS das_cpu_general_f32
#include "cpu_general.inc"
