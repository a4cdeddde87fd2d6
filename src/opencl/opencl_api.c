#include "opencl_api.h"

#include "backend.h"

#include <pthread.h>
#include <string.h>

static struct {
    pthread_mutex_t mutex;
    das_lock_owner mutex_of;
    bool loaded;
    das_opencl_api api;
    const das_opencl_api *replacement;
} das_opencl_library = {.mutex = PTHREAD_MUTEX_INITIALIZER};

das_status das_opencl_resolve(das_opencl_api *api, das_opencl_lookup *lookup, void *library, das_error *error)
{
    void *symbol;
    memset(api, 0, sizeof *api);
    /* POSIX lets a function's address travel through void *; memcpy keeps ISO C content. */
#define DAS_OPENCL_RESOLVE(result, name, parameters)                                                                  \
    symbol = lookup(library, "cl" #name);                                                                             \
    if (symbol == NULL)                                                                                               \
        return das_fail(error, DAS_ERROR_DRIVER_TOO_OLD, "libOpenCL.so.1 lacks cl" #name ", OpenCL 1.2 is needed");   \
    memcpy(&api->name, &symbol, sizeof symbol);
    DAS_OPENCL_FUNCTIONS(DAS_OPENCL_RESOLVE)
#undef DAS_OPENCL_RESOLVE
    return DAS_OK;
}

static das_status load_library(das_error *error)
{
    static const char *const names[] = {"libOpenCL.so.1", "libOpenCL.so", NULL};
    void *library = das_dl_open(names, error);
    das_opencl_api api;
    das_status status;
    if (library == NULL)
        return DAS_ERROR_NO_DRIVER;
    status = das_opencl_resolve(&api, das_dl_symbol, library, error);
    if (status == DAS_OK) {
        das_opencl_library.api = api;
        das_opencl_library.loaded = true;
    }
    return status;
}

static void lock(void)
{
    if (das_locks_inherited(&das_opencl_library.mutex_of)) {
        pthread_mutex_init(&das_opencl_library.mutex, NULL);
        das_locks_renewed(&das_opencl_library.mutex_of);
    }
    pthread_mutex_lock(&das_opencl_library.mutex);
}

const das_opencl_api *das_opencl_load(das_error *error)
{
    const das_opencl_api *api;
    lock();
    api = das_opencl_library.replacement;
    if (api == NULL && (das_opencl_library.loaded || load_library(error) == DAS_OK))
        api = &das_opencl_library.api;
    pthread_mutex_unlock(&das_opencl_library.mutex);
    return api;
}

void das_opencl_use_api(const das_opencl_api *api)
{
    lock();
    das_opencl_library.replacement = api;
    pthread_mutex_unlock(&das_opencl_library.mutex);
}

const char *das_opencl_error_name(cl_int code)
{
    switch (code) {
    case CL_SUCCESS: return "CL_SUCCESS";
    case CL_DEVICE_NOT_FOUND: return "CL_DEVICE_NOT_FOUND";
    case CL_DEVICE_NOT_AVAILABLE: return "CL_DEVICE_NOT_AVAILABLE";
    case CL_COMPILER_NOT_AVAILABLE: return "CL_COMPILER_NOT_AVAILABLE";
    case CL_MEM_OBJECT_ALLOCATION_FAILURE: return "CL_MEM_OBJECT_ALLOCATION_FAILURE";
    case CL_OUT_OF_RESOURCES: return "CL_OUT_OF_RESOURCES";
    case CL_OUT_OF_HOST_MEMORY: return "CL_OUT_OF_HOST_MEMORY";
    case CL_PROFILING_INFO_NOT_AVAILABLE: return "CL_PROFILING_INFO_NOT_AVAILABLE";
    case CL_BUILD_PROGRAM_FAILURE: return "CL_BUILD_PROGRAM_FAILURE";
    case CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST: return "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST";
    case CL_INVALID_VALUE: return "CL_INVALID_VALUE";
    case CL_INVALID_PLATFORM: return "CL_INVALID_PLATFORM";
    case CL_INVALID_DEVICE: return "CL_INVALID_DEVICE";
    case CL_INVALID_CONTEXT: return "CL_INVALID_CONTEXT";
    case CL_INVALID_COMMAND_QUEUE: return "CL_INVALID_COMMAND_QUEUE";
    case CL_INVALID_MEM_OBJECT: return "CL_INVALID_MEM_OBJECT";
    case CL_INVALID_BUFFER_SIZE: return "CL_INVALID_BUFFER_SIZE";
    case CL_PLATFORM_NOT_FOUND_KHR: return "CL_PLATFORM_NOT_FOUND_KHR";
    default: return "OpenCL error";
    }
}
