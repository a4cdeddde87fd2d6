/* What a launch of a kernel that does nothing takes on the first CUDA device, for comparison with a call of the library. */
#ifndef DAS_TESTS_EMPTY_LAUNCH_H
#define DAS_TESTS_EMPTY_LAUNCH_H

#include <stdbool.h>
#include <stdint.h>

/* Readies the launch in a context that becomes the thread's; `why` says what is missing. */
bool empty_launch_open(const char **why);
/* Launches `count` times in one stream; waits after each, or once at the end. */
bool empty_launch_run(int64_t count, bool wait_each);

#endif
