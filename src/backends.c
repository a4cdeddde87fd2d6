#include "backend.h"

const das_backend *const das_backends[] = {&das_backend_cpu, &das_backend_cuda, &das_backend_opencl};
const int32_t das_backend_count = (int32_t)(sizeof das_backends / sizeof das_backends[0]);
const das_backend *das_backend_extra = NULL;
