/* The memory layout of DLPack tensors, as its specification fixes it (version 0.8 of the managed tensor). */
#ifndef DAS_DLPACK_H
#define DAS_DLPACK_H

#include <stdint.h>

enum { DAS_DL_CPU = 1, DAS_DL_CUDA = 2, DAS_DL_CUDA_HOST = 3, DAS_DL_OPENCL = 4, DAS_DL_CUDA_MANAGED = 13 };
enum { DAS_DL_INT = 0, DAS_DL_UINT = 1, DAS_DL_FLOAT = 2, DAS_DL_COMPLEX = 5 };

typedef struct das_dl_managed_tensor {
    void *data;
    int32_t device_type;
    int32_t device_id;
    int32_t ndim;
    uint8_t type_code;
    uint8_t type_bits;
    uint16_t type_lanes;
    int64_t *shape;
    int64_t *strides; /* in elements; NULL: compact, last axis fastest */
    uint64_t byte_offset;
    void *manager_context;
    void (*deleter)(struct das_dl_managed_tensor *self);
} das_dl_managed_tensor;

#endif
