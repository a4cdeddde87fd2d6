/* The part of OpenCL 1.2 that libdas uses, declared here so that no OpenCL header is needed to
 * build. Values and signatures: The OpenCL Specification, version 1.2. */
#ifndef DAS_OPENCL_API_H
#define DAS_OPENCL_API_H

#include "das/das.h"

#include <stddef.h>
#include <stdint.h>

typedef int32_t cl_int;
typedef uint32_t cl_uint;
typedef uint64_t cl_ulong;
typedef cl_ulong cl_bitfield;
typedef cl_uint cl_bool;
typedef struct das_cl_platform *cl_platform_id;
typedef struct das_cl_device *cl_device_id;
typedef struct das_cl_context *cl_context;
typedef struct das_cl_queue *cl_command_queue;
typedef struct das_cl_mem *cl_mem;
typedef struct das_cl_program *cl_program;
typedef struct das_cl_kernel *cl_kernel;
typedef struct das_cl_event *cl_event;
typedef void cl_context_notify(const char *message, const void *data, size_t bytes, void *context);
typedef void cl_program_notify(cl_program program, void *context);

enum {
    CL_SUCCESS = 0,
    CL_DEVICE_NOT_FOUND = -1,
    CL_DEVICE_NOT_AVAILABLE = -2,
    CL_COMPILER_NOT_AVAILABLE = -3,
    CL_MEM_OBJECT_ALLOCATION_FAILURE = -4,
    CL_OUT_OF_RESOURCES = -5,
    CL_OUT_OF_HOST_MEMORY = -6,
    CL_PROFILING_INFO_NOT_AVAILABLE = -7,
    CL_BUILD_PROGRAM_FAILURE = -11,
    CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST = -14,
    CL_INVALID_VALUE = -30,
    CL_INVALID_PLATFORM = -32,
    CL_INVALID_DEVICE = -33,
    CL_INVALID_CONTEXT = -34,
    CL_INVALID_COMMAND_QUEUE = -36,
    CL_INVALID_MEM_OBJECT = -38,
    CL_INVALID_BUFFER_SIZE = -61,
    CL_PLATFORM_NOT_FOUND_KHR = -1001
};

enum {
    CL_COMPLETE = 0,

    CL_PLATFORM_VERSION = 0x0901,
    CL_PLATFORM_NAME = 0x0902,

    CL_DEVICE_TYPE = 0x1000,
    CL_DEVICE_MAX_COMPUTE_UNITS = 0x1002,
    CL_DEVICE_MAX_WORK_GROUP_SIZE = 0x1004,
    CL_DEVICE_MAX_WORK_ITEM_SIZES = 0x1005,
    CL_DEVICE_MAX_MEM_ALLOC_SIZE = 0x1010,
    CL_DEVICE_GLOBAL_MEM_SIZE = 0x101F,
    CL_DEVICE_LOCAL_MEM_SIZE = 0x1023,
    CL_DEVICE_ENDIAN_LITTLE = 0x1026,
    CL_DEVICE_AVAILABLE = 0x1027,
    CL_DEVICE_COMPILER_AVAILABLE = 0x1028,
    CL_DEVICE_QUEUE_PROPERTIES = 0x102A,
    CL_DEVICE_NAME = 0x102B,
    CL_DRIVER_VERSION = 0x102D,
    CL_DEVICE_PROFILE = 0x102E,
    CL_DEVICE_VERSION = 0x102F,
    CL_DEVICE_EXTENSIONS = 0x1030,
    CL_DEVICE_PLATFORM = 0x1031,
    CL_DEVICE_DOUBLE_FP_CONFIG = 0x1032,
    CL_DEVICE_COMPUTE_CAPABILITY_MAJOR_NV = 0x4000,

    CL_CONTEXT_DEVICES = 0x1081,

    CL_QUEUE_CONTEXT = 0x1090,
    CL_QUEUE_DEVICE = 0x1091,
    CL_QUEUE_PROPERTIES = 0x1093,

    CL_MEM_TYPE = 0x1100,
    CL_MEM_FLAGS = 0x1101,
    CL_MEM_SIZE = 0x1102,
    CL_MEM_CONTEXT = 0x1106,
    CL_MEM_OBJECT_BUFFER = 0x10F0,

    CL_PROGRAM_BUILD_LOG = 0x1183,
    CL_KERNEL_WORK_GROUP_SIZE = 0x11B0,
    CL_EVENT_COMMAND_EXECUTION_STATUS = 0x11D3,
    CL_PROFILING_COMMAND_START = 0x1282,
    CL_PROFILING_COMMAND_END = 0x1283
};

enum {
    CL_DEVICE_TYPE_CPU = 1 << 1,
    CL_DEVICE_TYPE_GPU = 1 << 2,
    CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE = 1 << 0,
    CL_QUEUE_PROFILING_ENABLE = 1 << 1,
    CL_MEM_READ_WRITE = 1 << 0,
    CL_MEM_WRITE_ONLY = 1 << 1,
    CL_MEM_READ_ONLY = 1 << 2,
    CL_MEM_USE_HOST_PTR = 1 << 3,
    CL_MEM_ALLOC_HOST_PTR = 1 << 4,
    CL_MEM_COPY_HOST_PTR = 1 << 5,
    CL_MAP_READ = 1 << 0,
    CL_MAP_WRITE = 1 << 1
};
#define CL_DEVICE_TYPE_ALL UINT64_C(0xFFFFFFFF)

/* Every entry: result, name without "cl", parameters. */
#define DAS_OPENCL_FUNCTIONS(X)                                                                                             \
    X(cl_int, GetPlatformIDs, (cl_uint, cl_platform_id *, cl_uint *))                                                       \
    X(cl_int, GetPlatformInfo, (cl_platform_id, cl_uint, size_t, void *, size_t *))                                         \
    X(cl_int, GetDeviceIDs, (cl_platform_id, cl_bitfield, cl_uint, cl_device_id *, cl_uint *))                              \
    X(cl_int, GetDeviceInfo, (cl_device_id, cl_uint, size_t, void *, size_t *))                                             \
    X(cl_context, CreateContext,                                                                                            \
      (const intptr_t *, cl_uint, const cl_device_id *, cl_context_notify *, void *, cl_int *))                             \
    X(cl_int, RetainContext, (cl_context))                                                                                  \
    X(cl_int, ReleaseContext, (cl_context))                                                                                 \
    X(cl_int, GetContextInfo, (cl_context, cl_uint, size_t, void *, size_t *))                                              \
    X(cl_int, RetainDevice, (cl_device_id))                                                                                 \
    X(cl_int, ReleaseDevice, (cl_device_id))                                                                                \
    X(cl_command_queue, CreateCommandQueue, (cl_context, cl_device_id, cl_bitfield, cl_int *))                              \
    X(cl_int, RetainCommandQueue, (cl_command_queue))                                                                       \
    X(cl_int, ReleaseCommandQueue, (cl_command_queue))                                                                      \
    X(cl_int, GetCommandQueueInfo, (cl_command_queue, cl_uint, size_t, void *, size_t *))                                   \
    X(cl_mem, CreateBuffer, (cl_context, cl_bitfield, size_t, void *, cl_int *))                                            \
    X(cl_int, RetainMemObject, (cl_mem))                                                                                    \
    X(cl_int, ReleaseMemObject, (cl_mem))                                                                                   \
    X(cl_int, GetMemObjectInfo, (cl_mem, cl_uint, size_t, void *, size_t *))                                                \
    X(cl_int, EnqueueReadBuffer,                                                                                            \
      (cl_command_queue, cl_mem, cl_bool, size_t, size_t, void *, cl_uint, const cl_event *, cl_event *))                   \
    X(cl_int, EnqueueWriteBuffer,                                                                                           \
      (cl_command_queue, cl_mem, cl_bool, size_t, size_t, const void *, cl_uint, const cl_event *, cl_event *))             \
    X(void *, EnqueueMapBuffer,                                                                                             \
      (cl_command_queue, cl_mem, cl_bool, cl_bitfield, size_t, size_t, cl_uint, const cl_event *, cl_event *, cl_int *))    \
    X(cl_int, EnqueueUnmapMemObject, (cl_command_queue, cl_mem, void *, cl_uint, const cl_event *, cl_event *))             \
    X(cl_program, CreateProgramWithSource, (cl_context, cl_uint, const char **, const size_t *, cl_int *))                  \
    X(cl_int, BuildProgram, (cl_program, cl_uint, const cl_device_id *, const char *, cl_program_notify *, void *))         \
    X(cl_int, GetProgramBuildInfo, (cl_program, cl_device_id, cl_uint, size_t, void *, size_t *))                           \
    X(cl_int, ReleaseProgram, (cl_program))                                                                                 \
    X(cl_kernel, CreateKernel, (cl_program, const char *, cl_int *))                                                        \
    X(cl_int, SetKernelArg, (cl_kernel, cl_uint, size_t, const void *))                                                     \
    X(cl_int, ReleaseKernel, (cl_kernel))                                                                                   \
    X(cl_int, GetKernelWorkGroupInfo, (cl_kernel, cl_device_id, cl_uint, size_t, void *, size_t *))                         \
    X(cl_int, EnqueueNDRangeKernel,                                                                                         \
      (cl_command_queue, cl_kernel, cl_uint, const size_t *, const size_t *, const size_t *, cl_uint, const cl_event *,     \
       cl_event *))                                                                                                         \
    X(cl_int, EnqueueMarkerWithWaitList, (cl_command_queue, cl_uint, const cl_event *, cl_event *))                         \
    X(cl_int, EnqueueBarrierWithWaitList, (cl_command_queue, cl_uint, const cl_event *, cl_event *))                        \
    X(cl_int, WaitForEvents, (cl_uint, const cl_event *))                                                                   \
    X(cl_int, GetEventInfo, (cl_event, cl_uint, size_t, void *, size_t *))                                                  \
    X(cl_int, GetEventProfilingInfo, (cl_event, cl_uint, size_t, void *, size_t *))                                         \
    X(cl_int, RetainEvent, (cl_event))                                                                                      \
    X(cl_int, ReleaseEvent, (cl_event))                                                                                     \
    X(cl_int, Flush, (cl_command_queue))                                                                                    \
    X(cl_int, Finish, (cl_command_queue))

typedef struct das_opencl_api {
#define DAS_OPENCL_MEMBER(result, name, parameters) result(*name) parameters;
    DAS_OPENCL_FUNCTIONS(DAS_OPENCL_MEMBER)
#undef DAS_OPENCL_MEMBER
} das_opencl_api;

/* The table of libOpenCL.so.1, loaded at the first call. NULL with DAS_ERROR_NO_DRIVER where there is
 * no such library, DAS_ERROR_DRIVER_TOO_OLD where it lacks a function. Any thread. */
const das_opencl_api *das_opencl_load(das_error *error);

/* Fills the table through `lookup`, which answers NULL for what it lacks. */
typedef void *das_opencl_lookup(void *library, const char *name);
das_status das_opencl_resolve(das_opencl_api *api, das_opencl_lookup *lookup, void *library, das_error *error);

/* For tests: every later das_opencl_load() answers this table; NULL restores the real one. */
void das_opencl_use_api(const das_opencl_api *api);

/* "CL_OUT_OF_RESOURCES", or "OpenCL error" for codes without a name here. */
const char *das_opencl_error_name(cl_int code);

#endif
