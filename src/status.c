#include "frontend.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

const char *das_status_name(das_status status)
{
    switch (status) {
    case DAS_OK: return "DAS_OK";
    case DAS_ERROR_ARGUMENT: return "DAS_ERROR_ARGUMENT";
    case DAS_ERROR_OUT_OF_MEMORY: return "DAS_ERROR_OUT_OF_MEMORY";
    case DAS_ERROR_OUT_OF_DEVICE_MEMORY: return "DAS_ERROR_OUT_OF_DEVICE_MEMORY";
    case DAS_ERROR_TOO_LARGE: return "DAS_ERROR_TOO_LARGE";
    case DAS_ERROR_UNSUPPORTED: return "DAS_ERROR_UNSUPPORTED";
    case DAS_ERROR_NOT_BUILT: return "DAS_ERROR_NOT_BUILT";
    case DAS_ERROR_NO_DRIVER: return "DAS_ERROR_NO_DRIVER";
    case DAS_ERROR_DRIVER_TOO_OLD: return "DAS_ERROR_DRIVER_TOO_OLD";
    case DAS_ERROR_NO_DEVICE: return "DAS_ERROR_NO_DEVICE";
    case DAS_ERROR_NO_KERNEL_IMAGE: return "DAS_ERROR_NO_KERNEL_IMAGE";
    case DAS_ERROR_WRONG_DEVICE: return "DAS_ERROR_WRONG_DEVICE";
    case DAS_ERROR_NOT_READY: return "DAS_ERROR_NOT_READY";
    case DAS_ERROR_BUSY: return "DAS_ERROR_BUSY";
    case DAS_ERROR_CANCELLED: return "DAS_ERROR_CANCELLED";
    case DAS_ERROR_FORKED: return "DAS_ERROR_FORKED";
    case DAS_ERROR_DEVICE_LOST: return "DAS_ERROR_DEVICE_LOST";
    case DAS_ERROR_FILE: return "DAS_ERROR_FILE";
    case DAS_ERROR_INTERNAL: return "DAS_ERROR_INTERNAL";
    default: return "unknown status";
    }
}

das_status das_fail_v(das_error *error, das_status status, const char *format, va_list arguments)
{
    if (error != NULL && error->struct_size == sizeof *error) {
        error->status = status;
        if (vsnprintf(error->message, sizeof error->message, format, arguments) < 0)
            error->message[0] = '\0';
        for (char *c = error->message; *c != '\0'; c++)
            if (*c == '\n' || *c == '\r')
                *c = ' ';
    }
    return status;
}

das_status das_fail(das_error *error, das_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    das_fail_v(error, status, format, arguments);
    va_end(arguments);
    return status;
}

das_status das_check_count(int64_t count, int64_t width, const char *name, das_error *error)
{
    static const int64_t limit = INT64_C(1) << 48;
    DAS_REQUIRE(count >= 1, error, "%s is %" PRId64 "; expected 1 or more", name, count);
    if (count > limit / width)
        return das_fail(error, DAS_ERROR_TOO_LARGE, "%s is %" PRId64 "; expected at most %" PRId64, name, count, limit / width);
    return DAS_OK;
}

das_status das_check_finite(const double *values, int64_t count, const char *name, das_error *error)
{
    for (int64_t i = 0; i < count; i++) {
        if (isfinite(values[i]))
            continue;
        if (count == 1)
            return das_fail(error, DAS_ERROR_ARGUMENT, "%s is %g; expected a finite number", name, values[i]);
        return das_fail(error, DAS_ERROR_ARGUMENT, "%s[%" PRId64 "] is %g; expected a finite number", name, i, values[i]);
    }
    return DAS_OK;
}

das_status das_copy_out(void *out, const void *in, uint32_t size, const char *name, das_error *error)
{
    DAS_REQUIRE(out != NULL, error, "%s is NULL; expected a structure with its struct_size set", name);
    uint32_t given;
    memcpy(&given, out, sizeof given);
    DAS_REQUIRE(given >= sizeof given, error, "%s->struct_size is %" PRIu32 "; expected sizeof the structure, %" PRIu32, name,
                given, size);
    uint32_t known = given < size ? given : size;
    memcpy((char *)out + sizeof given, (const char *)in + sizeof given, known - sizeof given);
    memset((char *)out + known, 0, given - known);
    return DAS_OK;
}
