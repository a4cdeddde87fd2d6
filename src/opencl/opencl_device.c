#include "opencl_backend.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#if defined(__linux__) && defined(__x86_64__)
#include <sys/syscall.h>
#endif

/* ---------------------------------------------------------------------------
 * Signals
 * ------------------------------------------------------------------------- */

void das_opencl_signals_save(das_opencl_signals *signals)
{
    static const int synchronous[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
    sigset_t blocked;
    memset(signals, 0, sizeof *signals);
    for (int s = 1; s < DAS_OPENCL_SIGNALS; s++)
        signals->known[s] = sigaction(s, NULL, &signals->action[s]) == 0;
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof synchronous / sizeof synchronous[0]; i++)
        sigdelset(&blocked, synchronous[i]);
    pthread_sigmask(SIG_SETMASK, &blocked, &signals->mask);
}

/* sigaction() adds a flag of its own (SA_RESTORER) to a handler that never had one, so that the host
 * would see a change. The kernel's call leaves it out; its structure is that of x86-64. */
static void restore_exactly(int s, const struct sigaction *before)
{
#if defined(__linux__) && defined(__x86_64__)
    if ((before->sa_flags & 0x04000000) == 0 && (before->sa_flags & SA_SIGINFO) == 0 &&
        (before->sa_handler == SIG_DFL || before->sa_handler == SIG_IGN)) {
        struct {
            void (*handler)(int);
            unsigned long flags;
            void (*restorer)(void);
            unsigned long mask;
        } action = {before->sa_handler, (unsigned long)before->sa_flags, NULL, 0};
        memcpy(&action.mask, &before->sa_mask, sizeof action.mask);
        if (syscall(SYS_rt_sigaction, s, &action, NULL, sizeof action.mask) == 0)
            return;
    }
#endif
    sigaction(s, before, NULL);
}

void das_opencl_signals_restore(const das_opencl_signals *signals)
{
    for (int s = 1; s < DAS_OPENCL_SIGNALS; s++) {
        struct sigaction now;
        const struct sigaction *before = &signals->action[s];
        if (!signals->known[s] || sigaction(s, NULL, &now) != 0)
            continue;
        if (now.sa_handler != before->sa_handler || now.sa_flags != before->sa_flags)
            restore_exactly(s, before);
    }
    pthread_sigmask(SIG_SETMASK, &signals->mask, NULL);
}

/* ---------------------------------------------------------------------------
 * Errors
 * ------------------------------------------------------------------------- */

static das_status status_of(cl_int code, bool open)
{
    switch (code) {
    case CL_MEM_OBJECT_ALLOCATION_FAILURE:
    case CL_OUT_OF_RESOURCES:
    case CL_INVALID_BUFFER_SIZE:
        return DAS_ERROR_OUT_OF_DEVICE_MEMORY;
    case CL_OUT_OF_HOST_MEMORY:
        return DAS_ERROR_OUT_OF_MEMORY;
    case CL_COMPILER_NOT_AVAILABLE:
        return DAS_ERROR_UNSUPPORTED;
    case CL_DEVICE_NOT_FOUND:
    case CL_PLATFORM_NOT_FOUND_KHR:
        return DAS_ERROR_NO_DEVICE;
    case CL_DEVICE_NOT_AVAILABLE:
    case CL_INVALID_DEVICE:
        return open ? DAS_ERROR_DEVICE_LOST : DAS_ERROR_NO_DEVICE;
    /* The backend's own objects are valid: a driver that says otherwise has given them up. */
    case CL_INVALID_CONTEXT:
    case CL_INVALID_COMMAND_QUEUE:
        return open ? DAS_ERROR_DEVICE_LOST : DAS_ERROR_ARGUMENT;
    default:
        return DAS_ERROR_INTERNAL;
    }
}

das_status das_opencl_fail(das_device *device, das_error *error, cl_int code, const char *what)
{
    das_status status = status_of(code, device != NULL);
    if (status == DAS_ERROR_DEVICE_LOST)
        das_device_set_lost(device);
    return das_fail(error, status, "%s failed with %s (%d)", what, das_opencl_error_name(code), (int)code);
}

/* ---------------------------------------------------------------------------
 * Enumeration
 * ------------------------------------------------------------------------- */

typedef struct found_device {
    cl_device_id id;
    bool gpu;
} found_device;

typedef struct found_devices {
    found_device *devices;
    int32_t count;
} found_devices;

static void device_text(const das_opencl_api *cl, cl_device_id id, cl_uint what, char *text, size_t bytes)
{
    size_t used = 0;
    text[0] = '\0';
    if (cl->GetDeviceInfo(id, what, bytes - 1, text, &used) != CL_SUCCESS)
        used = 0;
    text[used < bytes ? used : bytes - 1] = '\0';
}

static bool device_value(const das_opencl_api *cl, cl_device_id id, cl_uint what, void *value, size_t bytes)
{
    memset(value, 0, bytes);
    return cl->GetDeviceInfo(id, what, bytes, value, NULL) == CL_SUCCESS;
}

/* A device that can run the kernels: it is there, compiles OpenCL C 1.2 and has the full profile. */
static bool usable(const das_opencl_api *cl, cl_device_id id)
{
    cl_bool available, compiler, little;
    char text[256];
    unsigned major = 0, minor = 0;
    if (!device_value(cl, id, CL_DEVICE_AVAILABLE, &available, sizeof available) || !available)
        return false;
    if (!device_value(cl, id, CL_DEVICE_COMPILER_AVAILABLE, &compiler, sizeof compiler) || !compiler)
        return false;
    if (!device_value(cl, id, CL_DEVICE_ENDIAN_LITTLE, &little, sizeof little) || !little)
        return false;
    device_text(cl, id, CL_DEVICE_PROFILE, text, sizeof text);
    if (strcmp(text, "FULL_PROFILE") != 0)
        return false;
    device_text(cl, id, CL_DEVICE_VERSION, text, sizeof text);
    return sscanf(text, "OpenCL %u.%u", &major, &minor) == 2 && (major > 1 || (major == 1 && minor >= 2));
}

static bool is_pocl(const das_opencl_api *cl, cl_platform_id platform)
{
    char text[256] = "";
    size_t used = 0;
    if (cl->GetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof text - 1, text, &used) == CL_SUCCESS && used < sizeof text &&
        strstr(text, "Portable Computing Language") != NULL)
        return true;
    memset(text, 0, sizeof text);
    return cl->GetPlatformInfo(platform, CL_PLATFORM_VERSION, sizeof text - 1, text, &used) == CL_SUCCESS &&
           used < sizeof text && (strstr(text, "PoCL") != NULL || strstr(text, "pocl") != NULL);
}

/* PoCL has no devices where it cannot make its cache folder, which is the case with a home that cannot be written: a private
 * folder for temporary files then serves. PoCL takes it from the environment only, where it is set while PoCL looks at it;
 * a host whose other threads use the environment meanwhile should set POCL_CACHE_DIR or XDG_CACHE_HOME itself. */
static cl_int pocl_devices_elsewhere(const das_opencl_api *cl, cl_platform_id platform, cl_uint *count)
{
    const char *parent = getenv("TMPDIR"), *home = getenv("HOME");
    char path[512];
    struct stat about;
    cl_int code;
    if (getenv("POCL_CACHE_DIR") != NULL || getenv("XDG_CACHE_HOME") != NULL || home == NULL || access(home, W_OK) == 0)
        return CL_DEVICE_NOT_FOUND;
    if (parent == NULL || parent[0] == '\0')
        parent = "/tmp";
    if (snprintf(path, sizeof path, "%s/libdas-pocl-%lu", parent, (unsigned long)geteuid()) >= (int)sizeof path)
        return CL_DEVICE_NOT_FOUND;
    if (mkdir(path, 0700) != 0 &&
        (lstat(path, &about) != 0 || !S_ISDIR(about.st_mode) || about.st_uid != geteuid() || (about.st_mode & 022) != 0))
        return CL_DEVICE_NOT_FOUND;
    if (setenv("POCL_CACHE_DIR", path, 0) != 0)
        return CL_DEVICE_NOT_FOUND;
    code = cl->GetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, NULL, count);
    unsetenv("POCL_CACHE_DIR");
    return code;
}

static das_status add_platform(const das_opencl_api *cl, cl_platform_id platform, bool pocl, found_devices *found,
                               das_error *error)
{
    cl_uint count = 0;
    cl_device_id *ids;
    found_device *grown;
    cl_int code = cl->GetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, NULL, &count);
    if (code != CL_SUCCESS && pocl)
        code = pocl_devices_elsewhere(cl, platform, &count);
    /* A platform that cannot list its devices has none. */
    if (code != CL_SUCCESS || count == 0 || count > 4096)
        return DAS_OK;
    ids = calloc(count, sizeof *ids);
    grown = realloc(found->devices, ((size_t)found->count + count) * sizeof *grown);
    if (grown != NULL)
        found->devices = grown;
    if (ids == NULL || grown == NULL) {
        free(ids);
        return das_fail(error, DAS_ERROR_OUT_OF_MEMORY, "no memory for a list of %u OpenCL devices", (unsigned)count);
    }
    if (cl->GetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, ids, NULL) == CL_SUCCESS) {
        for (cl_uint i = 0; i < count; i++) {
            cl_bitfield type;
            if (!usable(cl, ids[i]) || !device_value(cl, ids[i], CL_DEVICE_TYPE, &type, sizeof type))
                continue;
            found->devices[found->count].id = ids[i];
            found->devices[found->count].gpu = (type & CL_DEVICE_TYPE_GPU) != 0;
            found->count++;
        }
    }
    free(ids);
    return DAS_OK;
}

/* Fills `found`, whose devices the caller frees. PoCL comes last, so that leaving it out does not number the others
 * anew: where it cannot work it may end the process as soon as it is asked for devices. */
static das_status enumerate(const das_opencl_api **api, bool with_pocl, found_devices *found, das_error *error)
{
    const das_opencl_api *cl;
    das_opencl_signals signals;
    das_error why = DAS_ERROR_INIT;
    cl_uint count = 0;
    cl_platform_id *platforms = NULL;
    das_status status = DAS_OK;
    cl_int code;
    memset(found, 0, sizeof *found);
    das_opencl_signals_save(&signals);
    cl = das_opencl_load(&why);
    if (cl == NULL) {
        das_opencl_signals_restore(&signals);
        return das_fail(error, why.status, "%s", why.message);
    }
    *api = cl;
    code = cl->GetPlatformIDs(0, NULL, &count);
    if (code != CL_SUCCESS || count == 0 || count > 4096) {
        status = das_fail(error, DAS_ERROR_NO_DEVICE, "libOpenCL.so.1 knows no platform: %s (%d)", das_opencl_error_name(code),
                          (int)code);
    } else if ((platforms = calloc(count, sizeof *platforms)) == NULL) {
        status = das_fail(error, DAS_ERROR_OUT_OF_MEMORY, "no memory for a list of %u OpenCL platforms", (unsigned)count);
    } else if ((code = cl->GetPlatformIDs(count, platforms, NULL)) != CL_SUCCESS) {
        status = das_fail(error, DAS_ERROR_NO_DEVICE, "clGetPlatformIDs failed with %s (%d)", das_opencl_error_name(code),
                          (int)code);
    } else {
        for (int pocl = 0; pocl <= (int)with_pocl; pocl++)
            for (cl_uint i = 0; i < count && status == DAS_OK; i++)
                if (is_pocl(cl, platforms[i]) == (bool)pocl)
                    status = add_platform(cl, platforms[i], pocl, found, error);
        if (status == DAS_OK && found->count == 0)
            status = das_fail(error, DAS_ERROR_NO_DEVICE, "%u OpenCL platforms have no usable device", (unsigned)count);
    }
    free(platforms);
    das_opencl_signals_restore(&signals);
    if (status != DAS_OK) {
        free(found->devices);
        memset(found, 0, sizeof *found);
    }
    return status;
}

das_status das_opencl_device_count(int32_t *count, das_error *error)
{
    const das_opencl_api *cl;
    found_devices found;
    das_status status = enumerate(&cl, true, &found, error);
    *count = found.count;
    free(found.devices);
    return status == DAS_ERROR_OUT_OF_MEMORY ? status : DAS_OK;
}

int32_t das_opencl_device_auto(void)
{
    const das_opencl_api *cl;
    found_devices found;
    int32_t index = -1;
    if (enumerate(&cl, false, &found, NULL) != DAS_OK)
        return -1;
    for (int32_t i = 0; i < found.count && index < 0; i++)
        if (found.devices[i].gpu)
            index = i;
    free(found.devices);
    return index;
}

/* ---------------------------------------------------------------------------
 * Description
 * ------------------------------------------------------------------------- */

static bool has_fp64(const das_opencl_api *cl, cl_device_id id)
{
    cl_bitfield config;
    return device_value(cl, id, CL_DEVICE_DOUBLE_FP_CONFIG, &config, sizeof config) && config != 0;
}

static void describe(const das_opencl_api *cl, cl_device_id id, int32_t index, das_device_info *info)
{
    cl_bitfield type;
    cl_uint units;
    cl_ulong bytes;
    char name[256], version[256], driver[256];
    device_value(cl, id, CL_DEVICE_TYPE, &type, sizeof type);
    info->is_gpu = (type & CL_DEVICE_TYPE_GPU) != 0;
    info->has_double = has_fp64(cl, id);
    device_value(cl, id, CL_DEVICE_MAX_COMPUTE_UNITS, &units, sizeof units);
    info->compute_units = (int32_t)units;
    device_value(cl, id, CL_DEVICE_GLOBAL_MEM_SIZE, &bytes, sizeof bytes);
    info->memory_bytes = bytes;
    device_value(cl, id, CL_DEVICE_MAX_MEM_ALLOC_SIZE, &bytes, sizeof bytes);
    info->max_buffer_bytes = bytes;
    if (index >= 0)
        snprintf(info->name, sizeof info->name, "opencl:%d", (int)index);
    else
        snprintf(info->name, sizeof info->name, "opencl");
    device_text(cl, id, CL_DEVICE_NAME, name, sizeof name);
    device_text(cl, id, CL_DEVICE_VERSION, version, sizeof version);
    device_text(cl, id, CL_DRIVER_VERSION, driver, sizeof driver);
    snprintf(info->description, sizeof info->description, "%.100s, %.90s, driver %.40s", name, version, driver);
}

static das_status no_such_device(int32_t index, int32_t count, das_error *error)
{
    return das_fail(error, DAS_ERROR_NO_DEVICE, "name is \"opencl:%d\"; there are %d OpenCL devices", (int)index, (int)count);
}

das_status das_opencl_device_list(int32_t index, das_device_info *info, das_error *error)
{
    const das_opencl_api *cl;
    found_devices found;
    das_status status = enumerate(&cl, true, &found, error);
    if (status != DAS_OK)
        return status;
    if (index < found.count)
        describe(cl, found.devices[index].id, index, info);
    else
        status = no_such_device(index, found.count, error);
    free(found.devices);
    return status;
}

/* ---------------------------------------------------------------------------
 * Opening
 * ------------------------------------------------------------------------- */

static das_status context_has_device(const das_opencl_api *cl, cl_context context, cl_device_id id, das_error *error)
{
    cl_device_id *ids;
    size_t bytes = 0;
    bool found = false;
    cl_int code = cl->GetContextInfo(context, CL_CONTEXT_DEVICES, 0, NULL, &bytes);
    if (code != CL_SUCCESS)
        return das_opencl_fail(NULL, error, code, "cl_context: clGetContextInfo");
    ids = calloc(1, bytes + sizeof *ids);
    if (ids == NULL)
        return das_fail(error, DAS_ERROR_OUT_OF_MEMORY, "no memory for the devices of cl_context");
    code = cl->GetContextInfo(context, CL_CONTEXT_DEVICES, bytes, ids, NULL);
    for (size_t i = 0; code == CL_SUCCESS && i < bytes / sizeof *ids; i++)
        found = found || ids[i] == id;
    free(ids);
    if (code != CL_SUCCESS)
        return das_opencl_fail(NULL, error, code, "cl_context: clGetContextInfo");
    return found ? DAS_OK
                 : das_fail(error, DAS_ERROR_ARGUMENT, "cl_device_id is not a device of cl_context; expected one of them");
}

/* Whether the device names an extension; its list may be long. */
static bool has_extension(const das_opencl_api *cl, cl_device_id id, const char *name)
{
    size_t bytes = 0;
    char *text;
    bool found;
    if (cl->GetDeviceInfo(id, CL_DEVICE_EXTENSIONS, 0, NULL, &bytes) != CL_SUCCESS)
        return false;
    text = calloc(1, bytes + 1);
    found = text != NULL && cl->GetDeviceInfo(id, CL_DEVICE_EXTENSIONS, bytes, text, NULL) == CL_SUCCESS &&
            strstr(text, name) != NULL;
    free(text);
    return found;
}

static void read_limits(const das_opencl_api *cl, das_opencl_device *opened)
{
    size_t items[8] = {1};
    cl_bitfield properties;
    device_value(cl, opened->id, CL_DEVICE_QUEUE_PROPERTIES, &properties, sizeof properties);
    opened->profiling = (properties & CL_QUEUE_PROFILING_ENABLE) != 0;
    opened->fp64 = has_fp64(cl, opened->id);
    if (has_extension(cl, opened->id, "cl_nv_compiler_options") &&
        has_extension(cl, opened->id, "cl_nv_device_attribute_query"))
        device_value(cl, opened->id, CL_DEVICE_COMPUTE_CAPABILITY_MAJOR_NV, &opened->nvidia, sizeof opened->nvidia);
    device_value(cl, opened->id, CL_DEVICE_LOCAL_MEM_SIZE, &opened->local_bytes, sizeof opened->local_bytes);
    device_value(cl, opened->id, CL_DEVICE_MAX_MEM_ALLOC_SIZE, &opened->max_buffer_bytes, sizeof opened->max_buffer_bytes);
    device_value(cl, opened->id, CL_DEVICE_MAX_COMPUTE_UNITS, &opened->units, sizeof opened->units);
    device_value(cl, opened->id, CL_DEVICE_MAX_WORK_GROUP_SIZE, &opened->max_group, sizeof opened->max_group);
    device_value(cl, opened->id, CL_DEVICE_MAX_WORK_ITEM_SIZES, items, sizeof items);
    opened->max_group = opened->max_group > 0 ? opened->max_group : 1;
    opened->max_items = items[0] > 0 ? items[0] : 1;
    opened->units = opened->units > 0 ? opened->units : 1;
}

/* The caller's context is retained, else one is made. */
static das_status open_context(das_opencl_device *opened, const das_native *native, das_error *error)
{
    const das_opencl_api *cl = opened->cl;
    cl_int code = CL_SUCCESS;
    if (native == NULL || native->cl_context == NULL) {
        intptr_t properties[3] = {0x1084 /* CL_CONTEXT_PLATFORM */, 0, 0};
        cl_platform_id platform;
        if (!device_value(cl, opened->id, CL_DEVICE_PLATFORM, &platform, sizeof platform))
            return das_fail(error, DAS_ERROR_NO_DEVICE, "the OpenCL device names no platform");
        properties[1] = (intptr_t)platform;
        opened->context = cl->CreateContext(properties, 1, &opened->id, NULL, NULL, &code);
        return opened->context != NULL ? DAS_OK : das_opencl_fail(NULL, error, code, "clCreateContext");
    }
    code = cl->RetainContext((cl_context)native->cl_context);
    if (code != CL_SUCCESS)
        return das_opencl_fail(NULL, error, code, "cl_context: clRetainContext");
    opened->context = native->cl_context;
    return context_has_device(cl, opened->context, opened->id, error);
}

static das_status open_device(das_opencl_device *opened, const das_native *native, das_error *error)
{
    const das_opencl_api *cl = opened->cl;
    das_opencl_signals signals;
    cl_int code = CL_SUCCESS;
    das_status status;
    if (!usable(cl, opened->id))
        return das_fail(error, DAS_ERROR_UNSUPPORTED,
                        "the OpenCL device is not available or lacks a compiler for OpenCL C 1.2");
    das_opencl_signals_save(&signals);
    status = open_context(opened, native, error);
    if (status == DAS_OK) {
        opened->service = cl->CreateCommandQueue(opened->context, opened->id, 0, &code);
        if (opened->service == NULL)
            status = das_opencl_fail(NULL, error, code, "clCreateCommandQueue");
    }
    das_opencl_signals_restore(&signals);
    return status;
}

static void close_device(das_device *device, das_opencl_device *opened)
{
    const das_opencl_api *cl = opened->cl;
    if (opened->service != NULL)
        cl->ReleaseCommandQueue(opened->service);
    if (opened->context != NULL)
        cl->ReleaseContext(opened->context);
    if (opened->id != NULL)
        cl->ReleaseDevice(opened->id);
    pthread_mutex_destroy(&opened->service_mutex);
    das_device_release(device, opened);
}

das_status das_opencl_device_open(das_device *device, int32_t index, const das_native *native, das_error *error)
{
    const das_opencl_api *cl = NULL;
    found_devices found;
    bool own = native == NULL || native->cl_device == NULL;
    das_opencl_device *opened;
    cl_device_id id = NULL;
    cl_int code;
    das_status status = enumerate(&cl, true, &found, error);
    if (own) {
        if (status == DAS_OK && index >= found.count)
            status = no_such_device(index, found.count, error);
        if (status == DAS_OK)
            id = found.devices[index].id;
    } else {
        /* A device of the caller's may be hidden from enumeration, a sub-device for instance. */
        id = native->cl_device;
        index = -1;
        for (int32_t i = 0; i < found.count; i++)
            if (found.devices[i].id == id)
                index = i;
        status = cl != NULL ? DAS_OK : status;
    }
    free(found.devices);
    if (status != DAS_OK)
        return status;

    opened = das_device_allocate(device, sizeof *opened);
    if (opened == NULL)
        return das_fail(error, DAS_ERROR_OUT_OF_MEMORY, "no memory for an OpenCL device");
    memset(opened, 0, sizeof *opened);
    pthread_mutex_init(&opened->service_mutex, NULL);
    opened->cl = cl;
    code = cl->RetainDevice(id);
    if (code == CL_SUCCESS) {
        opened->id = id;
        status = open_device(opened, native, error);
    } else {
        status = das_opencl_fail(NULL, error, code, own ? "clRetainDevice" : "cl_device_id: clRetainDevice");
    }
    if (status != DAS_OK) {
        close_device(device, opened);
        return status;
    }
    read_limits(cl, opened);
    describe(cl, id, index, &device->info);
    opened->gpu = device->info.is_gpu != 0;
    opened->memory_bytes = device->info.memory_bytes;
    device->impl = opened;
    das_log(device, DAS_LOG_INFO, "opened %s: %s", device->info.name, device->info.description);
    return DAS_OK;
}

void das_opencl_device_close(das_device *device)
{
    close_device(device, das_opencl_of(device));
    device->impl = NULL;
}
