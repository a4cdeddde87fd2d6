/*
 * Helpers shared by all test programs.
 *
 * A program prints one line per case ("PASS name", "FAIL name: why", "SKIP name: why") and ends with
 * "N passed, N failed, N skipped"; test_finish() prints that line and returns the exit status.
 *
 *     int main(void)
 *     {
 *         test_begin("addition");
 *         EXPECT(1 + 1 == 2);
 *         test_end();
 *         return test_finish();
 *     }
 */
#ifndef DAS_TESTS_TESTING_H
#define DAS_TESTS_TESTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define TEST_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define TEST_PRINTF(text, first)
#endif

/* Cases. A case that was begun passes unless a check in it fails; only its first failure is printed. */
void test_begin(const char *name, ...) TEST_PRINTF(1, 2);
void test_note(const char *why, ...) TEST_PRINTF(1, 2); /* marks the running case failed */
bool test_has_failed(void);                            /* whether the running case failed already */
const char *test_failure(void);                        /* why, "" when it has not */
void test_discard(void);                               /* forgets the running case: no line, not counted */
bool test_end(void);                                   /* prints the line; true when the case passed */
void test_skip(const char *name, const char *why, ...) TEST_PRINTF(2, 3);
int test_finish(void); /* the closing line; 0 when nothing failed and something ran */

#define EXPECT(condition)                                                      \
    ((condition) ? (void)0 : test_note("%s:%d: %s", __FILE__, __LINE__, #condition))
#define EXPECT_MSG(condition, ...) ((condition) ? (void)0 : test_note(__VA_ARGS__))
#define EXPECT_INT(got, want) test_expect_int((long long)(got), (long long)(want), #got, __FILE__, __LINE__)
/* |got - want| <= relative * |want|, or <= relative where want is 0; a NaN never agrees. */
#define EXPECT_NEAR(got, want, relative) \
    test_expect_near((got), (want), (relative), #got, __FILE__, __LINE__)

void test_expect_int(long long got, long long want, const char *what, const char *file, int line);
void test_expect_near(double got, double want, double relative, const char *what, const char *file, int line);

/* Random numbers (splitmix64): the same seed gives the same numbers on every machine. */
typedef struct {
    uint64_t state;
} test_rng;

test_rng test_rng_seeded(uint64_t seed);
uint64_t test_rng_next(test_rng *rng);
double test_rng_uniform(test_rng *rng, double low, double high); /* low <= x < high */
int test_rng_int(test_rng *rng, int low, int high);              /* both ends included */
bool test_rng_chance(test_rng *rng, double probability);
double test_rng_normal(test_rng *rng);
/* The seed of --seed N on the command line, else of the environment's DAS_TEST_SEED, else fallback. Prints it. */
uint64_t test_seed(int argc, char **argv, uint64_t fallback);

/* The value of "--name VALUE" on the command line, or NULL. */
const char *test_option(int argc, char **argv, const char *name);

/* Memory between two guards, aligned as asked (a power of two), filled with the poison byte 0xFF:
 * NaN for every float type, -1 for integers. test_guarded_intact() tells whether the guards are whole. */
void *test_guarded_alloc(size_t bytes, size_t alignment);
bool test_guarded_intact(const void *memory);
void test_guarded_free(void *memory);

/* Memory that ends (at_end) or starts exactly at a page nobody may touch, so that an access beyond it crashes.
 * Poisoned likewise; aligned to what `bytes` allows. Free it with the same number of bytes. */
void *test_paged_alloc(size_t bytes, bool at_end);
void test_paged_free(void *memory, size_t bytes);

/* From now on a crash prints "FAIL name: crashed (signal)" for the running case before the program dies. */
void test_report_crashes(void);

/* A new empty directory (NULL on failure), and its removal with everything in it. */
char *test_temp_dir(void);
void test_temp_dir_remove(char *path);

#ifdef __cplusplus
}
#endif

#endif
