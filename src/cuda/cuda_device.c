#include "cuda_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

das_status das_cuda_check(das_device *device, das_cu_result result, const char *what, das_error *error)
{
    if (result == DAS_CU_SUCCESS)
        return DAS_OK;
    bool lost;
    das_cu_status(result, &lost);
    if (lost)
        das_device_set_lost(device);
    return das_cu_fail(das_cuda_of(device)->driver, result, what, error);
}

das_status das_cuda_enter(const das_device *device, das_error *error)
{
    const das_cuda_device *self = das_cuda_of(device);
    das_cu_result result = self->driver->context_push(self->context);
    return result == DAS_CU_SUCCESS ? DAS_OK : das_cu_fail(self->driver, result, "cuCtxPushCurrent", error);
}

void das_cuda_leave(const das_device *device)
{
    das_cu_context ignored;
    das_cuda_of(device)->driver->context_pop(&ignored);
}

das_status das_cuda_device_count(int32_t *count, das_error *error)
{
    *count = 0;
    const das_cu_driver *driver = das_cu_driver_get(error);
    if (driver == NULL)
        return DAS_OK;
    int found = 0;
    das_cu_result result = driver->device_count(&found);
    if (result != DAS_CU_SUCCESS)
        das_cu_fail(driver, result, "cuDeviceGetCount", error);
    else if (found == 0)
        das_fail(error, DAS_ERROR_NO_DEVICE, "the CUDA driver finds no device");
    else
        *count = found;
    return DAS_OK;
}

static das_status describe(const das_cu_driver *driver, das_cu_device device, int32_t index, das_device_info *info,
                           das_error *error)
{
    char model[128] = "";
    int major = 0, minor = 0, units = 0;
    size_t bytes = 0;
    das_cu_result result = driver->device_name(model, (int)sizeof model, device);
    if (result == DAS_CU_SUCCESS)
        result = driver->device_attribute(&major, DAS_CU_CAPABILITY_MAJOR, device);
    if (result == DAS_CU_SUCCESS)
        result = driver->device_attribute(&minor, DAS_CU_CAPABILITY_MINOR, device);
    if (result == DAS_CU_SUCCESS)
        result = driver->device_attribute(&units, DAS_CU_MULTIPROCESSORS, device);
    if (result == DAS_CU_SUCCESS)
        result = driver->device_memory(&bytes, device);
    if (result != DAS_CU_SUCCESS)
        return das_cu_fail(driver, result, "describing the CUDA device", error);
    info->is_gpu = 1;
    info->has_double = 1;
    info->compute_units = units;
    info->memory_bytes = bytes;
    info->max_buffer_bytes = bytes;
    snprintf(info->name, sizeof info->name, "cuda:%" PRId32, index);
    snprintf(info->description, sizeof info->description, "%.120s, compute capability %d.%d, driver for CUDA %d.%d", model,
             major, minor, driver->version / 1000, driver->version % 1000 / 10);
    return DAS_OK;
}

das_status das_cuda_device_list(int32_t index, das_device_info *info, das_error *error)
{
    const das_cu_driver *driver = das_cu_driver_get(error);
    if (driver == NULL)
        return DAS_ERROR_NO_DRIVER;
    das_cu_device device;
    das_cu_result result = driver->device_get(&device, index);
    if (result != DAS_CU_SUCCESS)
        return das_cu_fail(driver, result, "cuDeviceGet", error);
    return describe(driver, device, index, info, error);
}

int32_t das_cuda_device_auto(void)
{
    int32_t count = 0;
    das_cuda_device_count(&count, NULL);
    return count > 0 ? 0 : -1;
}

/* CUDA's version of the compiler that made the kernels; 0 if the build did not say. */
#ifndef DAS_CUDA_TOOLKIT_VERSION
#define DAS_CUDA_TOOLKIT_VERSION 0
#endif
#ifndef DAS_CUDA_ARCHS
#define DAS_CUDA_ARCHS "unknown"
#endif

/* No kernel for this card, or none that this driver can read: says which. */
static das_status fail_image(const das_cuda_device *self, das_cu_result result, das_error *error)
{
    int toolkit = DAS_CUDA_TOOLKIT_VERSION, driver = self->driver->version;
    char made[48] = "";
    if (toolkit != 0)
        snprintf(made, sizeof made, ", built with CUDA %d.%d", toolkit / 1000, toolkit % 1000 / 10);
    if (result == DAS_CU_UNSUPPORTED_PTX_VERSION || (toolkit != 0 && driver / 1000 < toolkit / 1000))
        return das_fail(error, DAS_ERROR_DRIVER_TOO_OLD,
                        "the driver is for CUDA %d.%d and cannot read libdas's kernels (%d)%s; install a newer driver",
                        driver / 1000, driver % 1000 / 10, result, made);
    return das_fail(error, DAS_ERROR_NO_KERNEL_IMAGE,
                    "no kernel for compute capability %d.%d: libdas has them for " DAS_CUDA_ARCHS
                    "%s, the driver is for CUDA %d.%d",
                    self->capability / 10, self->capability % 10, made, driver / 1000, driver % 1000 / 10);
}

static das_status load_kernels(das_cuda_device *self, das_error *error)
{
    static const char *const names[DAS_CUDA_KERNEL_COUNT] = {
#define DAS_CUDA_NAME(enumerator, name) name,
        DAS_CUDA_KERNELS(DAS_CUDA_NAME)
#undef DAS_CUDA_NAME
    };
    const das_cu_driver *driver = self->driver;
    das_cu_result result = driver->module_load(&self->module, das_cuda_fatbin);
    bool lost;
    if (result != DAS_CU_SUCCESS) {
        self->module = NULL;
        if (das_cu_status(result, &lost) == DAS_ERROR_NO_KERNEL_IMAGE)
            return fail_image(self, result, error);
        return das_cu_fail(driver, result, "cuModuleLoadData", error);
    }
    for (int i = 0; i < DAS_CUDA_KERNEL_COUNT; i++) {
        result = driver->module_function(&self->kernel[i], self->module, names[i]);
        if (result == DAS_CU_SUCCESS && i > DAS_CUDA_PACK && self->shared_bytes > 48 * 1024)
            result = driver->function_set(self->kernel[i], DAS_CU_FUNCTION_MAX_DYNAMIC_SHARED, self->shared_bytes - 4096);
        if (result != DAS_CU_SUCCESS)
            return das_cu_fail(driver, result, names[i], error);
    }
    return DAS_OK;
}

static das_status open_context(das_cuda_device *self, int32_t index, const das_native *native, das_error *error)
{
    const das_cu_driver *driver = self->driver;
    das_cu_result result;
    if (native != NULL && native->cu_context != NULL) {
        self->context = native->cu_context;
        result = driver->context_push(self->context);
        if (result != DAS_CU_SUCCESS)
            return das_fail(error, DAS_ERROR_ARGUMENT, "cu_context is %p, which CUDA refuses (%d); expected a CUcontext",
                            native->cu_context, result);
        result = driver->context_device(&self->ordinal);
        if (result == DAS_CU_SUCCESS)
            return DAS_OK;
        das_cu_context ignored;
        driver->context_pop(&ignored);
        return das_cu_fail(driver, result, "cuCtxGetDevice", error);
    }
    result = driver->device_get(&self->ordinal, index);
    if (result != DAS_CU_SUCCESS)
        return das_cu_fail(driver, result, "cuDeviceGet", error);
    result = driver->primary_retain(&self->context, self->ordinal);
    if (result != DAS_CU_SUCCESS)
        return das_cu_fail(driver, result, "cuDevicePrimaryCtxRetain", error);
    self->primary = true;
    result = driver->context_push(self->context);
    if (result == DAS_CU_SUCCESS)
        return DAS_OK;
    driver->primary_release(self->ordinal);
    return das_cu_fail(driver, result, "cuCtxPushCurrent", error);
}

static das_status read_attributes(das_cuda_device *self, das_error *error)
{
    const struct {
        int attribute;
        int value;
    } wanted[] = {
        {DAS_CU_CAPABILITY_MAJOR, 0}, {DAS_CU_CAPABILITY_MINOR, 0}, {DAS_CU_MULTIPROCESSORS, 0}, {DAS_CU_MAX_SHARED_OPTIN, 0}};
    int value[4];
    for (int i = 0; i < 4; i++) {
        das_cu_result result = self->driver->device_attribute(&value[i], wanted[i].attribute, self->ordinal);
        if (result != DAS_CU_SUCCESS)
            return das_cu_fail(self->driver, result, "cuDeviceGetAttribute", error);
    }
    self->capability = value[0] * 10 + value[1];
    self->multiprocessors = value[2];
    self->shared_bytes = value[3];
    return DAS_OK;
}

das_status das_cuda_device_open(das_device *device, int32_t index, const das_native *native, das_error *error)
{
    const das_cu_driver *driver = das_cu_driver_get(error);
    if (driver == NULL) {
        /* A second look for the status alone, in case the caller gave no error. */
        das_error why = DAS_ERROR_INIT;
        das_cu_driver_get(&why);
        return why.status != DAS_OK ? why.status : DAS_ERROR_NO_DRIVER;
    }
    das_cuda_device *self = das_device_allocate(device, sizeof *self);
    if (self == NULL)
        return das_fail(error, DAS_ERROR_OUT_OF_MEMORY, "out of memory for a CUDA device");
    memset(self, 0, sizeof *self);
    self->driver = driver;
    das_status status = open_context(self, index, native, error);
    if (status != DAS_OK) {
        das_device_release(device, self);
        return status;
    }
    status = read_attributes(self, error);
    if (status == DAS_OK)
        status = describe(driver, self->ordinal, self->primary ? index : self->ordinal, &device->info, error);
    if (status == DAS_OK)
        status = load_kernels(self, error);
    if (status != DAS_OK && self->module != NULL)
        driver->module_unload(self->module);
    das_cu_context ignored;
    driver->context_pop(&ignored);
    if (status != DAS_OK) {
        if (self->primary)
            driver->primary_release(self->ordinal);
        das_device_release(device, self);
        return status;
    }
    device->impl = self;
    return DAS_OK;
}

void das_cuda_device_close(das_device *device)
{
    das_cuda_device *self = das_cuda_of(device);
    if (das_cuda_enter(device, NULL) == DAS_OK) {
        self->driver->module_unload(self->module);
        das_cuda_leave(device);
    }
    if (self->primary)
        self->driver->primary_release(self->ordinal);
    das_device_release(device, self);
    device->impl = NULL;
}
