/* A plan on a CUDA device, and how it was chosen. */
#ifndef DAS_CUDA_PLAN_H
#define DAS_CUDA_PLAN_H

#include "cuda_internal.h"

typedef enum das_cuda_section {
    DAS_CUDA_TRANSMITS,
    DAS_CUDA_ELEMENTS,
    DAS_CUDA_PAIRS,
    DAS_CUDA_OUTPUT_FIRST,
    DAS_CUDA_AXIS_0,
    DAS_CUDA_AXIS_1,
    DAS_CUDA_AXIS_2,
    DAS_CUDA_WINDOW,
    DAS_CUDA_TRANSMIT_TIMES,
    DAS_CUDA_RECEIVE_TIMES,
    DAS_CUDA_TRANSMIT_WEIGHTS,
    DAS_CUDA_RECEIVE_WEIGHTS,
    DAS_CUDA_PAIR_WEIGHTS,
    DAS_CUDA_SECTION_COUNT
} das_cuda_section;

typedef enum das_cuda_path {
    DAS_CUDA_PATH_GENERIC,
    DAS_CUDA_PATH_FEW,
    DAS_CUDA_PATH_TILE,
    DAS_CUDA_PATH_FRAMES,
    DAS_CUDA_PATH_TENSOR
} das_cuda_path;

/* The choice of path and memory, the same for a query and a plan. */
typedef struct das_cuda_layout {
    struct {
        uint64_t bytes;
        uint64_t offset;
        bool on_host; /* read over the bus, because it does not fit into the budget */
    } section[DAS_CUDA_SECTION_COUNT];
    uint64_t device_bytes, host_bytes;
    uint64_t slot_bytes;
    int64_t output_count;

    das_cuda_path path;
    das_cuda_kernel kernel;
    int32_t chunks;          /* transmits or frames are packed so many at a time */
    das_cuda_tile shape;     /* without addresses */
    int32_t chunk_transmits; /* a multiple of the kernel's rows */
    uint32_t shared_bytes;
    das_cuda_frames frames; /* without addresses */
    int64_t chunk_frames, chunk_pairs;
    uint64_t peaks_offset; /* bytes from the packed data; 0: no peaks needed */
} das_cuda_layout;

typedef struct das_cuda_plan {
    das_cuda_layout layout;
    das_cuda_params params;
    das_cu_pointer memory;
    void *host;
    das_cu_pointer host_pointer;
    int64_t *pair_first; /* [transmit_count + 1] */
} das_cuda_plan;

typedef struct das_cuda_slot {
    das_cu_pointer packed;
} das_cuda_slot;

das_status das_cuda_choose(const das_device *device, const das_problem *problem, das_cuda_layout *layout, das_error *error);
/* Rows that packing transmits first .. end - 1 takes. */
int64_t das_cuda_packed_rows(const das_cuda_tile *shape, int64_t receive_count, int64_t first, int64_t end);

#endif
