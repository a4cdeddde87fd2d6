#define _XOPEN_SOURCE 700
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "testing.h"

#include <ftw.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct {
    int passed, failed, skipped;
    bool running, bad;
    char name[256];
    char why[1200];
} test_state;

void test_begin(const char *name, ...)
{
    va_list list;
    if (test_state.running)
        test_end();
    va_start(list, name);
    vsnprintf(test_state.name, sizeof test_state.name, name, list);
    va_end(list);
    test_state.running = true;
    test_state.bad = false;
    test_state.why[0] = '\0';
}

void test_note(const char *why, ...)
{
    va_list list;
    if (test_state.bad)
        return;
    va_start(list, why);
    vsnprintf(test_state.why, sizeof test_state.why, why, list);
    va_end(list);
    test_state.bad = true;
}

bool test_has_failed(void)
{
    return test_state.bad;
}

const char *test_failure(void)
{
    return test_state.bad ? test_state.why : "";
}

void test_discard(void)
{
    test_state.running = false;
    test_state.bad = false;
}

bool test_end(void)
{
    bool ok = !test_state.bad;
    if (ok)
        printf("PASS %s\n", test_state.name);
    else
        printf("FAIL %s: %s\n", test_state.name, test_state.why);
    fflush(stdout);
    if (ok)
        test_state.passed++;
    else
        test_state.failed++;
    test_state.running = false;
    test_state.bad = false;
    return ok;
}

void test_skip(const char *name, const char *why, ...)
{
    va_list list;
    printf("SKIP %s: ", name);
    va_start(list, why);
    vprintf(why, list);
    va_end(list);
    printf("\n");
    fflush(stdout);
    test_state.skipped++;
}

int test_finish(void)
{
    if (test_state.running)
        test_end();
    printf("%d passed, %d failed, %d skipped\n", test_state.passed, test_state.failed, test_state.skipped);
    return test_state.failed > 0 || test_state.passed + test_state.skipped == 0;
}

void test_expect_int(long long got, long long want, const char *what, const char *file, int line)
{
    if (got != want)
        test_note("%s:%d: %s is %lld, expected %lld", file, line, what, got, want);
}

void test_expect_near(double got, double want, double relative, const char *what, const char *file, int line)
{
    double allowed = relative * (want == 0 ? 1 : fabs(want));
    if (!(fabs(got - want) <= allowed))
        test_note("%s:%d: %s is %.9g, expected %.9g within %.1e", file, line, what, got, want, allowed);
}

test_rng test_rng_seeded(uint64_t seed)
{
    test_rng rng = {seed};
    return rng;
}

uint64_t test_rng_next(test_rng *rng)
{
    uint64_t z = rng->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

double test_rng_uniform(test_rng *rng, double low, double high)
{
    return low + (high - low) * ((double)(test_rng_next(rng) >> 11) * 0x1p-53);
}

int test_rng_int(test_rng *rng, int low, int high)
{
    uint64_t count = (uint64_t)((int64_t)high - low) + 1;
    return (int)(low + (int64_t)(test_rng_next(rng) % count));
}

bool test_rng_chance(test_rng *rng, double probability)
{
    return test_rng_uniform(rng, 0, 1) < probability;
}

double test_rng_normal(test_rng *rng)
{
    /* Box and Muller; 1 - u keeps the logarithm's argument off 0. */
    double u = test_rng_uniform(rng, 0, 1), v = test_rng_uniform(rng, 0, 1);
    return sqrt(-2 * log(1 - u)) * cos(6.283185307179586 * v);
}

const char *test_option(int argc, char **argv, const char *name)
{
    const char *value = NULL;
    for (int i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], name) == 0)
            value = argv[i + 1];
    return value;
}

uint64_t test_seed(int argc, char **argv, uint64_t fallback)
{
    const char *text = test_option(argc, argv, "--seed");
    uint64_t seed;
    if (text == NULL)
        text = getenv("DAS_TEST_SEED");
    seed = text != NULL ? strtoull(text, NULL, 0) : fallback;
    printf("seed %llu\n", (unsigned long long)seed);
    return seed;
}

/* A guarded block: [header][guard][memory][guard], the header in front so that free() finds the start. */
enum { GUARD_BYTES = 256, GUARD_BYTE = 0xA5, POISON_BYTE = 0xFF };

typedef struct {
    void *start;
    size_t bytes;
} guard_header;

static const unsigned char *guard_front(const void *memory)
{
    return (const unsigned char *)memory - GUARD_BYTES;
}

static guard_header guard_read(const void *memory)
{
    guard_header header;
    memcpy(&header, guard_front(memory) - sizeof header, sizeof header);
    return header;
}

void *test_guarded_alloc(size_t bytes, size_t alignment)
{
    size_t before = sizeof(guard_header) + GUARD_BYTES + alignment;
    guard_header header;
    unsigned char *memory;
    if (bytes > SIZE_MAX - before - GUARD_BYTES)
        return NULL;
    header.bytes = bytes;
    header.start = malloc(before + bytes + GUARD_BYTES);
    if (header.start == NULL)
        return NULL;
    memory = (unsigned char *)header.start + before;
    memory -= (uintptr_t)memory % alignment;
    memcpy(memory - GUARD_BYTES - sizeof header, &header, sizeof header);
    memset(memory - GUARD_BYTES, GUARD_BYTE, GUARD_BYTES);
    memset(memory, POISON_BYTE, bytes);
    memset(memory + bytes, GUARD_BYTE, GUARD_BYTES);
    return memory;
}

bool test_guarded_intact(const void *memory)
{
    guard_header header = guard_read(memory);
    const unsigned char *front = guard_front(memory), *back = (const unsigned char *)memory + header.bytes;
    for (size_t i = 0; i < GUARD_BYTES; i++)
        if (front[i] != GUARD_BYTE || back[i] != GUARD_BYTE)
            return false;
    return true;
}

void test_guarded_free(void *memory)
{
    if (memory != NULL)
        free(guard_read(memory).start);
}

static size_t page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

void *test_paged_alloc(size_t bytes, bool at_end)
{
    size_t page = page_bytes(), inside = (bytes + page - 1) / page * page;
    unsigned char *start =
        mmap(NULL, inside + 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED)
        return NULL;
    if (mprotect(start, page, PROT_NONE) != 0 || mprotect(start + page + inside, page, PROT_NONE) != 0) {
        munmap(start, inside + 2 * page);
        return NULL;
    }
    memset(start + page, POISON_BYTE, inside);
    return start + page + (at_end ? inside - bytes : 0);
}

void test_paged_free(void *memory, size_t bytes)
{
    size_t page = page_bytes(), inside = (bytes + page - 1) / page * page;
    if (memory != NULL)
        munmap((unsigned char *)memory - (uintptr_t)memory % page - page, inside + 2 * page);
}

static void crashed(int number)
{
    /* Only calls that are allowed in a signal handler. */
    const char *text = number == SIGFPE ? ": crashed (SIGFPE)\n" : number == SIGILL ? ": crashed (SIGILL)\n"
                       : number == SIGABRT                       ? ": crashed (SIGABRT)\n"
                                                                 : ": crashed (SIGSEGV)\n";
    ssize_t ignored = write(STDOUT_FILENO, "FAIL ", 5);
    ignored = write(STDOUT_FILENO, test_state.name, strlen(test_state.name));
    ignored = write(STDOUT_FILENO, text, strlen(text));
    (void)ignored;
    signal(number, SIG_DFL);
    raise(number);
}

void test_report_crashes(void)
{
    signal(SIGSEGV, crashed);
    signal(SIGBUS, crashed);
    signal(SIGFPE, crashed);
    signal(SIGILL, crashed);
    signal(SIGABRT, crashed);
}

char *test_temp_dir(void)
{
    const char *parent = getenv("TMPDIR");
    char *path;
    size_t size;
    if (parent == NULL || parent[0] == '\0')
        parent = "/tmp";
    size = strlen(parent) + sizeof "/das-test-XXXXXX";
    path = malloc(size);
    if (path == NULL)
        return NULL;
    snprintf(path, size, "%s/das-test-XXXXXX", parent);
    if (mkdtemp(path) == NULL) {
        free(path);
        return NULL;
    }
    return path;
}

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *where)
{
    (void)status;
    (void)kind;
    (void)where;
    return remove(path);
}

void test_temp_dir_remove(char *path)
{
    if (path == NULL)
        return;
    nftw(path, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    free(path);
}
