#define _XOPEN_SOURCE 700
#include "checked.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *program = "program";
static const char *volatile unfinished;

void name_program(const char *name)
{
    program = name;
}

static void on_signal(int number)
{
    if (unfinished)
        unlink(unfinished);
    signal(number, SIG_DFL);
    raise(number);
}

void remove_on_failure(const char *path)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGXFSZ};
    unfinished = path;
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) {
        struct sigaction action;
        /* what the caller of the program ignores stays ignored */
        if (!sigaction(numbers[k], NULL, &action) && action.sa_handler != SIG_IGN)
            signal(numbers[k], path ? on_signal : SIG_DFL);
    }
}

void fail(const char *format, ...)
{
    char line[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    for (char *c = line; *c; c++)
        if (iscntrl((unsigned char)*c))
            *c = '?';
    fflush(stdout);
    fprintf(stderr, "%s: %s\n", program, line);
    if (unfinished)
        unlink(unfinished);
    exit(EXIT_FAILURE);
}

void finish_printing(void)
{
    if (fflush(stdout) || ferror(stdout))
        fail("standard output: writing failed: %s", strerror(errno));
}

void *allocate(uint64_t count, uint64_t size, const char *what)
{
    if (size && count > (uint64_t)PTRDIFF_MAX / size)
        fail("%s: %llu times %llu bytes is more than this machine can address", what, (unsigned long long)count,
             (unsigned long long)size);
    size_t bytes = (size_t)(count * size);
    void *memory = malloc(bytes ? bytes : 1);
    if (!memory)
        fail("%s: no memory for %llu bytes", what, (unsigned long long)bytes);
    return memory;
}

uint64_t product(uint64_t a, uint64_t b, const char *what)
{
    if (b && a > (uint64_t)INT64_MAX / b)
        fail("%s: %llu times %llu is beyond 2^63 - 1", what, (unsigned long long)a, (unsigned long long)b);
    return a * b;
}

char *format_text(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length < 0)
        fail("a text could not be formatted");
    char *text = allocate((uint64_t)length + 1, 1, "text");
    va_start(arguments, format);
    vsnprintf(text, (size_t)length + 1, format, arguments);
    va_end(arguments);
    return text;
}

bool parse_number(const char *text, double *value)
{
    if (!*text || text[strspn(text, "0123456789+-.eE")])
        return false;
    char *end;
    *value = strtod(text, &end);
    return !*end && isfinite(*value);
}

bool parse_count(const char *text, uint64_t *value)
{
    if (!*text || text[strspn(text, "0123456789")])
        return false;
    errno = 0;
    unsigned long long parsed = strtoull(text, NULL, 10);
    *value = parsed;
    return !errno && parsed <= (unsigned long long)INT64_MAX;
}
