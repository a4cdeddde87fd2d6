#define DAS_STUB_NAME "cuda"
#define DAS_STUB_MISSING "device: this libdas was built without CUDA; expected one built with CUDA=1"
#define DAS_STUB_BACKEND das_backend_cuda
#include "backend_stub.h"
