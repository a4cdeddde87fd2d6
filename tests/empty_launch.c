/* Through the driver's own functions, so that the library has no part in it. */
#include "empty_launch.h"

#include <dlfcn.h>
#include <stddef.h>

static const char kernel[] = ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry empty()\n{\n    ret;\n}\n";

static struct {
    int (*init)(unsigned);
    int (*retain)(void **context, int device);
    int (*set_current)(void *context);
    int (*load)(void **module, const void *text);
    int (*function)(void **function, void *module, const char *name);
    int (*stream)(void **stream, unsigned flags);
    int (*launch)(void *function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned local, void *stream,
                  void **arguments, void **extra);
    int (*wait)(void *stream);
} cu;

static void *stream, *function;

static bool find(void *library, const char *name, void *pointer)
{
    void *found = dlsym(library, name);
    *(void **)pointer = found;
    return found != NULL;
}

bool empty_launch_open(const char **why)
{
    enum { NON_BLOCKING = 1 };
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL), *context, *module;
    *why = "libcuda.so.1 cannot be loaded";
    if (library == NULL)
        return false;
    *why = "libcuda.so.1 lacks a function";
    if (!find(library, "cuInit", &cu.init) || !find(library, "cuDevicePrimaryCtxRetain", &cu.retain) ||
        !find(library, "cuCtxSetCurrent", &cu.set_current) || !find(library, "cuModuleLoadData", &cu.load) ||
        !find(library, "cuModuleGetFunction", &cu.function) || !find(library, "cuStreamCreate", &cu.stream) ||
        !find(library, "cuLaunchKernel", &cu.launch) || !find(library, "cuStreamSynchronize", &cu.wait))
        return false;
    *why = "the driver refuses an empty kernel";
    return cu.init(0) == 0 && cu.retain(&context, 0) == 0 && cu.set_current(context) == 0 && cu.load(&module, kernel) == 0 &&
           cu.function(&function, module, "empty") == 0 && cu.stream(&stream, NON_BLOCKING) == 0;
}

bool empty_launch_run(int64_t count, bool wait_each)
{
    for (int64_t i = 0; i < count; i++)
        if (cu.launch(function, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL) != 0 || (wait_each && cu.wait(stream) != 0))
            return false;
    return cu.wait(stream) == 0;
}
