/* The kernels, as nvcc built them. */
#include "cuda_internal.h"

#ifndef DAS_CUDA_FATBIN_PATH
#error "the makefile says where the fat binary is"
#endif

__asm__(".section .rodata\n"
        ".balign 16\n"
        ".globl das_cuda_fatbin\n"
        ".hidden das_cuda_fatbin\n"
        ".type das_cuda_fatbin, %object\n"
        "das_cuda_fatbin:\n"
        ".incbin \"" DAS_CUDA_FATBIN_PATH "\"\n"
        ".size das_cuda_fatbin, . - das_cuda_fatbin\n"
        ".previous\n");
