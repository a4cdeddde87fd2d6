#include "backend.h"

#include <dlfcn.h>
#include <stdio.h>

void *das_dl_open(const char *const *names, das_error *error)
{
    char reason[400] = "no name given";
    for (; *names != NULL; names++) {
        void *library = dlopen(*names, RTLD_NOW | RTLD_LOCAL);
        if (library != NULL)
            return library;
        const char *why = dlerror();
        snprintf(reason, sizeof reason, "%s", why != NULL ? why : *names);
    }
    das_fail(error, DAS_ERROR_NO_DRIVER, "cannot load the driver library: %s", reason);
    return NULL;
}

void *das_dl_symbol(void *library, const char *name)
{
    return dlsym(library, name);
}
