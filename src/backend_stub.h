/* A backend of a library built without it: no devices, and every open says why. Included by the backends' stubs with
 * DAS_STUB_NAME ("cuda"), DAS_STUB_MISSING (what to say), and DAS_STUB_BACKEND (the variable) defined. */
#include "backend.h"

static das_status not_built(das_error *error)
{
    return das_fail(error, DAS_ERROR_NOT_BUILT, DAS_STUB_MISSING);
}

static das_status device_count(int32_t *count, das_error *error)
{
    *count = 0;
    not_built(error);
    return DAS_OK;
}

static das_status device_list(int32_t index, das_device_info *info, das_error *error)
{
    (void)index;
    (void)info;
    return not_built(error);
}

static das_status device_open(das_device *device, int32_t index, const das_native *native, das_error *error)
{
    (void)device;
    (void)index;
    (void)native;
    return not_built(error);
}

static int32_t device_auto(void)
{
    return -1;
}

/* No device is ever opened, so nothing else is ever called. */
const das_backend DAS_STUB_BACKEND = {
    .size = sizeof(das_backend),
    .version = DAS_BACKEND_VERSION,
    .name = DAS_STUB_NAME,
    .built = false,
    .device_count = device_count,
    .device_list = device_list,
    .device_open = device_open,
    .device_auto = device_auto,
};
