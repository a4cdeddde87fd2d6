/* The CUDA driver API, as far as it is used here: own declarations, so that this
 * compiles without cuda.h, and a table filled from libcuda.so.1 when it is first
 * needed. Types and values are those of the driver's stable ABI. */
#ifndef DAS_CUDA_DRIVER_H
#define DAS_CUDA_DRIVER_H

#include "backend.h"

typedef int das_cu_result;
typedef int das_cu_device;
typedef uint64_t das_cu_pointer;
typedef struct das_cu_context_handle *das_cu_context;
typedef struct das_cu_module_handle *das_cu_module;
typedef struct das_cu_function_handle *das_cu_function;
typedef struct das_cu_stream_handle *das_cu_stream;
typedef struct das_cu_event_handle *das_cu_event;

enum {
    DAS_CU_SUCCESS = 0,
    DAS_CU_INVALID_VALUE = 1,
    DAS_CU_OUT_OF_MEMORY = 2,
    DAS_CU_DEINITIALIZED = 4,
    DAS_CU_STUB_LIBRARY = 34,
    DAS_CU_NO_DEVICE = 100,
    DAS_CU_INVALID_IMAGE = 200,
    DAS_CU_INVALID_CONTEXT = 201,
    DAS_CU_NO_BINARY_FOR_GPU = 209,
    DAS_CU_ECC_UNCORRECTABLE = 214,
    DAS_CU_INVALID_PTX = 218,
    DAS_CU_UNSUPPORTED_PTX_VERSION = 222,
    DAS_CU_NOT_READY = 600,
    DAS_CU_ILLEGAL_ADDRESS = 700,
    DAS_CU_LAUNCH_OUT_OF_RESOURCES = 701,
    DAS_CU_LAUNCH_TIMEOUT = 702,
    DAS_CU_CONTEXT_IS_DESTROYED = 709,
    DAS_CU_ASSERT = 710,
    DAS_CU_HARDWARE_STACK_ERROR = 714,
    DAS_CU_LAUNCH_FAILED = 719,
    DAS_CU_SYSTEM_NOT_READY = 802,
    DAS_CU_SYSTEM_DRIVER_MISMATCH = 803
};

enum { /* of cuDeviceGetAttribute */
    DAS_CU_MULTIPROCESSORS = 16,
    DAS_CU_CAPABILITY_MAJOR = 75,
    DAS_CU_CAPABILITY_MINOR = 76,
    DAS_CU_MAX_SHARED_OPTIN = 97,
    DAS_CU_UNIFIED_ADDRESSING = 41
};

enum { DAS_CU_FUNCTION_MAX_DYNAMIC_SHARED = 8 }; /* of cuFuncSetAttribute */
enum { DAS_CU_HOST_PORTABLE = 1, DAS_CU_HOST_MAPPED = 2 };
enum { DAS_CU_STREAM_NON_BLOCKING = 1 };

#define DAS_CU_STREAM_PER_THREAD ((das_cu_stream)(uintptr_t)2)

/* X(member, symbol, parameters) of every function used. */
#define DAS_CU_FUNCTIONS(X)                                                                                             \
    X(init, "cuInit", (unsigned flags))                                                                                 \
    X(driver_version, "cuDriverGetVersion", (int *version))                                                             \
    X(error_name, "cuGetErrorName", (das_cu_result result, const char **name))                                          \
    X(error_string, "cuGetErrorString", (das_cu_result result, const char **text))                                      \
    X(device_count, "cuDeviceGetCount", (int *count))                                                                   \
    X(device_get, "cuDeviceGet", (das_cu_device * device, int ordinal))                                                 \
    X(device_name, "cuDeviceGetName", (char *name, int length, das_cu_device device))                                   \
    X(device_memory, "cuDeviceTotalMem_v2", (size_t *bytes, das_cu_device device))                                      \
    X(device_attribute, "cuDeviceGetAttribute", (int *value, int attribute, das_cu_device device))                      \
    X(primary_retain, "cuDevicePrimaryCtxRetain", (das_cu_context * context, das_cu_device device))                     \
    X(primary_release, "cuDevicePrimaryCtxRelease_v2", (das_cu_device device))                                          \
    X(context_push, "cuCtxPushCurrent_v2", (das_cu_context context))                                                    \
    X(context_pop, "cuCtxPopCurrent_v2", (das_cu_context * context))                                                    \
    X(context_device, "cuCtxGetDevice", (das_cu_device * device))                                                       \
    X(module_load, "cuModuleLoadData", (das_cu_module * module, const void *image))                                     \
    X(module_unload, "cuModuleUnload", (das_cu_module module))                                                          \
    X(module_function, "cuModuleGetFunction", (das_cu_function * function, das_cu_module module, const char *name))     \
    X(function_set, "cuFuncSetAttribute", (das_cu_function function, int attribute, int value))                         \
    X(memory_allocate, "cuMemAlloc_v2", (das_cu_pointer * pointer, size_t bytes))                                       \
    X(memory_free, "cuMemFree_v2", (das_cu_pointer pointer))                                                            \
    X(host_allocate, "cuMemHostAlloc", (void **pointer, size_t bytes, unsigned flags))                                  \
    X(host_free, "cuMemFreeHost", (void *pointer))                                                                      \
    X(host_device_pointer, "cuMemHostGetDevicePointer_v2", (das_cu_pointer * device, void *pointer, unsigned flags))    \
    X(copy, "cuMemcpyAsync", (das_cu_pointer to, das_cu_pointer from, size_t bytes, das_cu_stream stream))              \
    X(copy_to_device, "cuMemcpyHtoDAsync_v2",                                                                           \
      (das_cu_pointer to, const void *from, size_t bytes, das_cu_stream stream))                                        \
    X(copy_to_host, "cuMemcpyDtoHAsync_v2", (void *to, das_cu_pointer from, size_t bytes, das_cu_stream stream))        \
    X(stream_create, "cuStreamCreate", (das_cu_stream * stream, unsigned flags))                                        \
    X(stream_destroy, "cuStreamDestroy_v2", (das_cu_stream stream))                                                     \
    X(stream_wait, "cuStreamSynchronize", (das_cu_stream stream))                                                       \
    X(stream_wait_event, "cuStreamWaitEvent", (das_cu_stream stream, das_cu_event event, unsigned flags))               \
    X(event_create, "cuEventCreate", (das_cu_event * event, unsigned flags))                                            \
    X(event_destroy, "cuEventDestroy_v2", (das_cu_event event))                                                         \
    X(event_record, "cuEventRecord", (das_cu_event event, das_cu_stream stream))                                        \
    X(event_query, "cuEventQuery", (das_cu_event event))                                                                \
    X(event_wait, "cuEventSynchronize", (das_cu_event event))                                                           \
    X(event_elapsed, "cuEventElapsedTime", (float *milliseconds, das_cu_event start, das_cu_event stop))                \
    X(launch, "cuLaunchKernel",                                                                                         \
      (das_cu_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, \
       unsigned block_z, unsigned shared_bytes, das_cu_stream stream, void **parameters, void **extra))

typedef struct das_cu_driver {
#define DAS_CU_MEMBER(member, symbol, parameters) das_cu_result(*member) parameters;
    DAS_CU_FUNCTIONS(DAS_CU_MEMBER)
#undef DAS_CU_MEMBER
    int version; /* 13000 is 13.0 */
} das_cu_driver;

typedef void *das_cu_lookup(void *library, const char *name);

/* Fills the table and initialises the driver. DAS_ERROR_NO_DRIVER, NO_DEVICE, DRIVER_TOO_OLD. */
das_status das_cu_driver_fill(das_cu_driver *driver, das_cu_lookup *lookup, void *library, das_error *error);

/* The process's driver, loaded and initialised at the first call; NULL when there is none, with the
 * reason in error. Any thread. */
const das_cu_driver *das_cu_driver_get(das_error *error);

/* Tests: what das_cu_driver_get() returns; NULL restores the real one. */
void das_cu_driver_replace(const das_cu_driver *driver);

/* Status that a driver's result means, and whether the context is lost with it. */
das_status das_cu_status(das_cu_result result, bool *lost);

/* Fills error: "what: CUDA_ERROR_NAME, text". */
das_status das_cu_fail(const das_cu_driver *driver, das_cu_result result, const char *what, das_error *error);

#endif
