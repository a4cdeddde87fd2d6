#define DAS_STUB_NAME "opencl"
#define DAS_STUB_MISSING "device: this libdas was built without OpenCL; expected one built with OPENCL=1"
#define DAS_STUB_BACKEND das_backend_opencl
#include "backend_stub.h"
