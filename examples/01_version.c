/* Which libdas is this, and which backends are in it? These calls load nothing and cannot fail. */
#include <das/das.h>
#include <stdio.h>

int main(void)
{
    static const char *const backends[] = {"cpu", "cuda", "opencl"};
    printf("libdas %s (header %d.%d.%d)\n", das_version_string(), DAS_VERSION_MAJOR, DAS_VERSION_MINOR, DAS_VERSION_PATCH);
    for (int k = 0; k < 3; k++)
        printf("  %-6s %s\n", backends[k], das_backend_is_built(backends[k]) ? "built in" : "not built in");
    /* a program built against a newer header than the library it runs with should say so */
    return das_version_number() < DAS_VERSION_MAJOR * 10000 + DAS_VERSION_MINOR * 100;
}
