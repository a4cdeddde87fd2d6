#include "frontend.h"

#include <stdio.h>

void das_log(const das_device *device, int32_t level, const char *format, ...)
{
    if (device == NULL || device->host.log == NULL)
        return;
    char message[2048];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    if (length >= 0)
        device->host.log(device->host.log_context, level, message);
}
