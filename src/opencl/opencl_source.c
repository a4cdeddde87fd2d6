/* The text of the kernels, as it stands in its files. */
#include "opencl_backend.h"

#ifndef DAS_OPENCL_SOURCE_PATH
#define DAS_OPENCL_SOURCE_PATH "src/opencl/opencl_kernels.cl"
#endif
#ifndef DAS_OPENCL_REAL_PATH
#define DAS_OPENCL_REAL_PATH "src/opencl/opencl_real.cl"
#endif
#ifndef DAS_OPENCL_FAST_PATH
#define DAS_OPENCL_FAST_PATH "src/opencl/opencl_fast.cl"
#endif
#ifndef DAS_OPENCL_BLOCK_PATH
#define DAS_OPENCL_BLOCK_PATH "src/opencl/opencl_block.cl"
#endif
#ifndef DAS_KERNEL_HEADER_PATH
#define DAS_KERNEL_HEADER_PATH "src/kernel.h"
#endif

#define EMBED(name, path)                                  \
    __asm__(".section .rodata\n"                           \
            ".global das_opencl_text_" #name "\n"          \
            ".hidden das_opencl_text_" #name "\n"          \
            ".global das_opencl_text_" #name "_end\n"      \
            ".hidden das_opencl_text_" #name "_end\n"      \
            "das_opencl_text_" #name ":\n"                 \
            ".incbin \"" path "\"\n"                       \
            "das_opencl_text_" #name "_end:\n"             \
            ".byte 0\n"                                    \
            ".previous\n");                                \
    extern const char das_opencl_text_##name[];            \
    extern const char das_opencl_text_##name##_end[];      \
    das_opencl_text das_opencl_source_##name(void)         \
    {                                                      \
        das_opencl_text text = {das_opencl_text_##name, 0}; \
        text.bytes = (size_t)(das_opencl_text_##name##_end - das_opencl_text_##name); \
        return text;                                       \
    }

EMBED(real, DAS_OPENCL_REAL_PATH)
EMBED(kernel, DAS_KERNEL_HEADER_PATH)
EMBED(kernels, DAS_OPENCL_SOURCE_PATH)
EMBED(fast, DAS_OPENCL_FAST_PATH)
EMBED(block, DAS_OPENCL_BLOCK_PATH)
