#include "frontend.h"

#include <string.h>

#define DAS_STRING_(x) #x
#define DAS_STRING(x) DAS_STRING_(x)

const char *das_version_string(void)
{
    return DAS_STRING(DAS_VERSION_MAJOR) "." DAS_STRING(DAS_VERSION_MINOR) "." DAS_STRING(DAS_VERSION_PATCH);
}

uint32_t das_version_number(void)
{
    return DAS_VERSION_MAJOR * 10000u + DAS_VERSION_MINOR * 100u + DAS_VERSION_PATCH;
}

int32_t das_backend_is_built(const char *backend)
{
    for (int32_t i = 0; backend != NULL && i < das_backend_count; i++)
        if (strcmp(backend, das_backends[i]->name) == 0)
            return das_backends[i]->built;
    return 0;
}
