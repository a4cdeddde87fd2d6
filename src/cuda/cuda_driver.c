#include "cuda_driver.h"

#include <stddef.h>
#include <string.h>

/* The oldest driver that has every symbol with the meaning used here. */
#define MINIMUM_VERSION 11000

das_status das_cu_status(das_cu_result result, bool *lost)
{
    *lost = false;
    switch (result) {
    case DAS_CU_SUCCESS:
        return DAS_OK;
    case DAS_CU_OUT_OF_MEMORY:
        return DAS_ERROR_OUT_OF_DEVICE_MEMORY;
    case DAS_CU_NO_DEVICE:
        return DAS_ERROR_NO_DEVICE;
    case DAS_CU_STUB_LIBRARY:
    case DAS_CU_SYSTEM_NOT_READY:
    case DAS_CU_SYSTEM_DRIVER_MISMATCH:
        return DAS_ERROR_NO_DRIVER;
    case DAS_CU_NO_BINARY_FOR_GPU:
    case DAS_CU_INVALID_IMAGE:
    case DAS_CU_INVALID_PTX:
    case DAS_CU_UNSUPPORTED_PTX_VERSION:
        return DAS_ERROR_NO_KERNEL_IMAGE;
    case DAS_CU_NOT_READY:
        return DAS_ERROR_NOT_READY;
    case DAS_CU_DEINITIALIZED:
    case DAS_CU_ECC_UNCORRECTABLE:
    case DAS_CU_ILLEGAL_ADDRESS:
    case DAS_CU_LAUNCH_TIMEOUT:
    case DAS_CU_CONTEXT_IS_DESTROYED:
        *lost = true;
        return DAS_ERROR_DEVICE_LOST;
    default:
        /* 710 to 719: asserts, stack errors, illegal instructions and addresses, launch failures;
         * all leave the context unusable. */
        if (result >= DAS_CU_ASSERT && result <= DAS_CU_LAUNCH_FAILED && result != 711 && result != 712 && result != 713) {
            *lost = true;
            return DAS_ERROR_DEVICE_LOST;
        }
        return DAS_ERROR_INTERNAL;
    }
}

das_status das_cu_fail(const das_cu_driver *driver, das_cu_result result, const char *what, das_error *error)
{
    const char *name = NULL, *text = NULL;
    bool lost;
    if (driver->error_name(result, &name) != DAS_CU_SUCCESS || name == NULL)
        name = "an unknown error";
    if (driver->error_string(result, &text) != DAS_CU_SUCCESS || text == NULL)
        text = "no description";
    return das_fail(error, das_cu_status(result, &lost), "%s: %s (%d), %s", what, name, result, text);
}

static const struct {
    const char *symbol;
    size_t offset;
} symbols[] = {
#define DAS_CU_SYMBOL(member, symbol, parameters) {symbol, offsetof(das_cu_driver, member)},
    DAS_CU_FUNCTIONS(DAS_CU_SYMBOL)
#undef DAS_CU_SYMBOL
};

das_status das_cu_driver_fill(das_cu_driver *driver, das_cu_lookup *lookup, void *library, das_error *error)
{
    memset(driver, 0, sizeof *driver);
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
        void *function = lookup(library, symbols[i].symbol);
        if (function == NULL)
            return das_fail(error, DAS_ERROR_DRIVER_TOO_OLD,
                            "the CUDA driver library lacks %s; a driver for CUDA %d.%d or later is needed", symbols[i].symbol,
                            MINIMUM_VERSION / 1000, MINIMUM_VERSION % 1000 / 10);
        /* POSIX lets a pointer to an object hold one to a function. */
        memcpy((char *)driver + symbols[i].offset, &function, sizeof function);
    }
    das_cu_result result = driver->init(0);
    if (result != DAS_CU_SUCCESS) {
        das_status status = das_cu_fail(driver, result, "cuInit", error);
        if (status == DAS_ERROR_NO_DEVICE || status == DAS_ERROR_NO_DRIVER)
            return status;
        return das_fail(error, DAS_ERROR_NO_DRIVER, "the CUDA driver does not initialise: cuInit gives %d", result);
    }
    result = driver->driver_version(&driver->version);
    if (result != DAS_CU_SUCCESS)
        return das_cu_fail(driver, result, "cuDriverGetVersion", error);
    if (driver->version < MINIMUM_VERSION)
        return das_fail(error, DAS_ERROR_DRIVER_TOO_OLD, "the driver is for CUDA %d.%d, %d.%d or later is needed",
                        driver->version / 1000, driver->version % 1000 / 10, MINIMUM_VERSION / 1000,
                        MINIMUM_VERSION % 1000 / 10);
    return DAS_OK;
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static das_lock_owner mutex_of;
static das_cu_driver real_driver;
static bool real_is_ready;
static const das_cu_driver *replacement;

static void lock(void)
{
    if (das_locks_inherited(&mutex_of)) {
        pthread_mutex_init(&mutex, NULL);
        das_locks_renewed(&mutex_of);
    }
    pthread_mutex_lock(&mutex);
}

const das_cu_driver *das_cu_driver_get(das_error *error)
{
    static const char *const names[] = {"libcuda.so.1", NULL};
    static void *library;
    lock();
    const das_cu_driver *driver = replacement;
    if (driver == NULL) {
        if (!real_is_ready) {
            if (library == NULL)
                library = das_dl_open(names, error);
            if (library != NULL)
                real_is_ready = das_cu_driver_fill(&real_driver, das_dl_symbol, library, error) == DAS_OK;
        }
        driver = real_is_ready ? &real_driver : NULL;
    }
    pthread_mutex_unlock(&mutex);
    return driver;
}

void das_cu_driver_replace(const das_cu_driver *driver)
{
    lock();
    replacement = driver;
    pthread_mutex_unlock(&mutex);
}
