/* What the files of the CUDA backend share. */
#ifndef DAS_CUDA_INTERNAL_H
#define DAS_CUDA_INTERNAL_H

#include "cuda_driver.h"
#include "cuda_params.h"

/* Kernels of cuda_kernels.cu, X(enumerator, name). */
#define DAS_CUDA_KERNELS(X)                                                                                                    \
    X(DAS_CUDA_GENERIC, "das_generic")                                                                                         \
    X(DAS_CUDA_GENERIC_LINEAR, "das_generic_linear")                                                                           \
    X(DAS_CUDA_GENERIC_FRAMES, "das_generic_frames")                                                                           \
    X(DAS_CUDA_GENERIC_FRAMES_LINEAR, "das_generic_frames_linear")                                                             \
    X(DAS_CUDA_GENERIC_DOUBLE, "das_generic_double")                                                                           \
    X(DAS_CUDA_FEW, "das_few_real")                                                                                            \
    X(DAS_CUDA_FEW_IQ, "das_few_iq")                                                                                           \
    X(DAS_CUDA_FEW_FRAMES, "das_few_frames")                                                                                   \
    X(DAS_CUDA_FEW_FRAMES_IQ, "das_few_frames_iq")                                                                             \
    X(DAS_CUDA_PACK_FRAMES, "das_pack_frames")                                                                                 \
    X(DAS_CUDA_FRAMES_NEAREST, "das_frames_nearest")                                                                           \
    X(DAS_CUDA_FRAMES_LINEAR, "das_frames_linear")                                                                             \
    X(DAS_CUDA_FRAMES_ANY, "das_frames_any")                                                                                   \
    X(DAS_CUDA_FRAMES_NEAREST_WIDE, "das_frames_nearest_wide")                                                                 \
    X(DAS_CUDA_FRAMES_LINEAR_WIDE, "das_frames_linear_wide")                                                                   \
    X(DAS_CUDA_FRAMES_ANY_WIDE, "das_frames_any_wide")                                                                         \
    X(DAS_CUDA_FRAMES_NEAREST_IQ, "das_frames_nearest_iq")                                                                     \
    X(DAS_CUDA_FRAMES_LINEAR_IQ, "das_frames_linear_iq")                                                                       \
    X(DAS_CUDA_FRAMES_ANY_IQ, "das_frames_any_iq")                                                                             \
    X(DAS_CUDA_FRAMES_NEAREST_IQ_WIDE, "das_frames_nearest_iq_wide")                                                           \
    X(DAS_CUDA_FRAMES_LINEAR_IQ_WIDE, "das_frames_linear_iq_wide")                                                             \
    X(DAS_CUDA_FRAMES_ANY_IQ_WIDE, "das_frames_any_iq_wide")                                                                   \
    X(DAS_CUDA_CLEAR_PEAKS, "das_clear_peaks")                                                                                 \
    X(DAS_CUDA_PEAKS, "das_peaks")                                                                                             \
    X(DAS_CUDA_PACK_TENSOR, "das_pack_tensor")                                                                                 \
    X(DAS_CUDA_TENSOR_NEAREST, "das_tensor_nearest")                                                                           \
    X(DAS_CUDA_TENSOR_LINEAR, "das_tensor_linear")                                                                             \
    X(DAS_CUDA_TENSOR_NEAREST_WIDE, "das_tensor_nearest_wide")                                                                 \
    X(DAS_CUDA_TENSOR_LINEAR_WIDE, "das_tensor_linear_wide")                                                                   \
    X(DAS_CUDA_TENSOR_NEAREST_IQ, "das_tensor_nearest_iq")                                                                     \
    X(DAS_CUDA_TENSOR_LINEAR_IQ, "das_tensor_linear_iq")                                                                       \
    X(DAS_CUDA_TENSOR_NEAREST_IQ_WIDE, "das_tensor_nearest_iq_wide")                                                           \
    X(DAS_CUDA_TENSOR_LINEAR_IQ_WIDE, "das_tensor_linear_iq_wide")                                                             \
    X(DAS_CUDA_PACK, "das_pack")                                                                                               \
    X(DAS_CUDA_TILE_NEAREST, "das_tile_nearest")                                                                               \
    X(DAS_CUDA_TILE_LINEAR, "das_tile_linear")                                                                                 \
    X(DAS_CUDA_TILE_CUBIC, "das_tile_cubic")                                                                                   \
    X(DAS_CUDA_TILE_NEAREST_LINE, "das_tile_nearest_line")                                                                     \
    X(DAS_CUDA_TILE_LINEAR_LINE, "das_tile_linear_line")                                                                       \
    X(DAS_CUDA_TILE_CUBIC_LINE, "das_tile_cubic_line")                                                                         \
    X(DAS_CUDA_TILE_NEAREST_IQ, "das_tile_nearest_iq")                                                                         \
    X(DAS_CUDA_TILE_LINEAR_IQ, "das_tile_linear_iq")                                                                           \
    X(DAS_CUDA_TILE_CUBIC_IQ, "das_tile_cubic_iq")                                                                             \
    X(DAS_CUDA_TILE_NEAREST_PLANES, "das_tile_nearest_planes")                                                                 \
    X(DAS_CUDA_TILE_LINEAR_PLANES, "das_tile_linear_planes")                                                                   \
    X(DAS_CUDA_TILE_CUBIC_PLANES, "das_tile_cubic_planes")

typedef enum das_cuda_kernel {
#define DAS_CUDA_KERNEL(enumerator, name) enumerator,
    DAS_CUDA_KERNELS(DAS_CUDA_KERNEL)
#undef DAS_CUDA_KERNEL
        DAS_CUDA_KERNEL_COUNT
} das_cuda_kernel;

typedef struct das_cuda_device {
    const das_cu_driver *driver;
    das_cu_device ordinal;
    das_cu_context context;
    bool primary; /* retained here; else the caller's */
    das_cu_module module;
    das_cu_function kernel[DAS_CUDA_KERNEL_COUNT];
    int multiprocessors;
    int capability;   /* 90 is 9.0 */
    int shared_bytes; /* that a block may have */
} das_cuda_device;

typedef struct das_cuda_buffer {
    das_cu_pointer pointer; /* as the device sees it */
    bool on_host;           /* pinned host memory */
} das_cuda_buffer;

typedef struct das_cuda_queue {
    das_cu_stream stream;
    bool imported;
} das_cuda_queue;

static inline das_cuda_device *das_cuda_of(const das_device *device)
{
    return device->impl;
}
static inline das_cu_stream das_cuda_stream(const das_queue *queue)
{
    return ((const das_cuda_queue *)queue->impl)->stream;
}
static inline das_cu_pointer das_cuda_pointer(const das_buffer *buffer)
{
    return ((const das_cuda_buffer *)buffer->impl)->pointer;
}

/* cuda_device.c */

extern const unsigned char das_cuda_fatbin[];

/* Makes the device's context current, and the caller's again. */
das_status das_cuda_enter(const das_device *device, das_error *error);
void das_cuda_leave(const das_device *device);
/* Fills error for a failed driver call; marks the device lost if it is. DAS_OK for success. */
das_status das_cuda_check(das_device *device, das_cu_result result, const char *what, das_error *error);

das_status das_cuda_device_count(int32_t *count, das_error *error);
das_status das_cuda_device_list(int32_t index, das_device_info *info, das_error *error);
das_status das_cuda_device_open(das_device *device, int32_t index, const das_native *native, das_error *error);
void das_cuda_device_close(das_device *device);
int32_t das_cuda_device_auto(void);

/* cuda_buffer.c */
das_status das_cuda_buffer_create(das_buffer *buffer, das_error *error);
das_status das_cuda_buffer_import(das_buffer *buffer, uint64_t native, das_error *error);
void das_cuda_buffer_destroy(das_buffer *buffer);
das_status das_cuda_upload(das_queue *queue, das_buffer *buffer, uint64_t offset, const void *pointer, uint64_t bytes,
                           das_error *error);
das_status das_cuda_download(das_queue *queue, das_buffer *buffer, uint64_t offset, void *pointer, uint64_t bytes,
                             das_error *error);

/* cuda_queue.c */
das_status das_cuda_queue_create(das_queue *queue, das_error *error);
das_status das_cuda_queue_import(das_queue *queue, void *native, das_error *error);
void das_cuda_queue_destroy(das_queue *queue);
das_status das_cuda_queue_wait(das_queue *queue, das_error *error);
das_status das_cuda_queue_wait_event(das_queue *queue, das_event *event, das_error *error);
das_status das_cuda_event_create(das_event *event, das_error *error);
void das_cuda_event_destroy(das_event *event);
das_status das_cuda_event_record(das_event *event, das_queue *queue, das_error *error);
das_status das_cuda_event_query(das_event *event, das_error *error);
das_status das_cuda_event_wait(das_event *event, das_error *error);
das_status das_cuda_event_elapsed(das_event *start, das_event *stop, double *milliseconds, das_error *error);

/* cuda_plan.c, cuda_reconstruct.c */
das_status das_cuda_plan_query(das_device *device, const das_problem *problem, das_plan_layout *layout, das_error *error);
das_status das_cuda_plan_create(das_plan *plan, const das_problem *problem, das_error *error);
void das_cuda_plan_destroy(das_plan *plan);
das_status das_cuda_slot_create(das_plan *plan, das_slot *slot, das_error *error);
void das_cuda_slot_destroy(das_plan *plan, das_slot *slot);
das_status das_cuda_reconstruct(das_plan *plan, das_slot *slot, das_queue *queue, const das_work *work, das_error *error);

#endif
