/* Lists the devices of this machine, then opens the best one. */
#include "example.h"

#include <inttypes.h>

int main(void)
{
    das_error error = DAS_ERROR_INIT;
    int64_t count = 0;
    must(das_device_count(&count, &error), &error);
    for (int64_t k = 0; k < count; k++) {
        das_device_info info = {.struct_size = sizeof info};
        must(das_device_list(k, &info, &error), &error);
        printf("%-9s %s, %d units, %" PRIu64 " MiB\n", info.name, info.description, info.compute_units,
               info.memory_bytes >> 20);
    }

    das_device *device = NULL;
    das_device_info info = {.struct_size = sizeof info};
    must(das_device_open("auto", NULL, &device, &error), &error);
    must(das_device_get_info(device, &info, &error), &error);
    printf("\"auto\" opened %s\n", info.name);
    das_device_destroy(&device);
    return count < 1;
}
