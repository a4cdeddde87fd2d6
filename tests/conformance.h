/*
 * The conformance suite: the same cases on every device, judged by the oracle.
 *
 * A scenario holds one reconstruction in the oracle's terms plus what only the library knows (layout of the
 * image, ways of calling). scenario_check() runs it on a target and compares; the groups of cases below are
 * called with all targets at once, so that the oracle computes each image once.
 */
#ifndef DAS_TESTS_CONFORMANCE_H
#define DAS_TESTS_CONFORMANCE_H

#include <das/das.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "oracle.h"
#include "testing.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    das_device *device;
    char name[96]; /* "cpu/avx2", "cuda:0", ... */
    char isa[16];  /* CPU: the instruction set forced; else "" */
    bool is_cpu, has_double;
    int one_in; /* of random cases, only one in so many: where a plan takes a compiler seconds */
} conformance_target;

typedef enum { WAY_HOST, WAY_QUEUE, WAY_NO_QUEUE, WAY_IMPORT } scenario_way;

typedef struct {
    oracle_problem o; /* o.data is the scenario's, see scenario_data() */
    void *data;
    int64_t data_elements, data_frames; /* frames stored */
    int64_t frames;                     /* the acquisition's frame count */
    bool data_at_end;                   /* the data end at a guard page, else start at one */
    bool data_strided;                  /* tell the library the strides; else they must be the default ones */
    bool all_elements;                  /* transmits made by das_acquisition_add_element_transmits() */
    bool use_angle;                     /* plane waves of o by their angle; origin 0 and direction in x-z */

    das_precision precision;
    das_type image_type; /* 0: default */
    bool image_strided;
    int64_t image_first, image_stride[6];
    bool run_range;
    int64_t run_first, run_frames, run_image_first;
    int64_t parts; /* > 1: transmits in so many calls, the later ones added to the image */
    bool accumulate;
    double base; /* what the image holds before, with accumulate */
    uint64_t budget;
    bool no_fast_paths;
    int64_t in_flight;
    scenario_way way;

    size_t data_bytes;
    void *owned[48];
    int owned_count;
} scenario;

/* The fixture of the table of cases: c = 1500 m/s, fs = 20 MHz, so that one sample is 75 um of path; linear;
 * one element at the origin, one plane wave straight ahead, one point, 1000 samples of float32. No data yet. */
void scenario_init(scenario *s);
void *scenario_alloc(scenario *s, int64_t count, size_t bytes); /* zeroed, freed with the scenario */
void scenario_free(scenario *s);

/* Arrays of the fixture's kind, to be changed: all at the origin, looking along +z, weight 1. */
oracle_element *scenario_elements(scenario *s, int64_t count);
oracle_transmit *scenario_transmits(scenario *s, int64_t count);
void scenario_point(scenario *s, double x, double y, double z);

void scenario_compact(scenario *s); /* the default strides */
void *scenario_data(scenario *s);   /* allocates the data for the strides set, poisoned; also moves o.first */
int64_t scenario_index(const scenario *s, int64_t frame, int64_t transmit, int64_t receive, int64_t sample);

/* One line about what the scenario is made of. */
void scenario_describe(const scenario *s, char *text, size_t size);

das_status scenario_plan(const conformance_target *target, const scenario *s, das_plan **plan, das_error *error);

/* Elements and bytes of an image for this run; the image type that is in force. */
int64_t scenario_image_elements(const scenario *s);
das_type scenario_image_type(const scenario *s);
int64_t scenario_image_frames(const scenario *s);
int64_t scenario_image_index(const scenario *s, int64_t frame, int64_t transmit, int64_t receive, int64_t point);

/* Runs into image, which the caller has filled. */
das_status scenario_run(const conformance_target *target, const scenario *s, void *image, das_error *error);

/* The oracle's image of the frames of this run, [frame][transmit][receive][point]; freed with the scenario. */
oracle_value *scenario_reference(scenario *s);

/* Runs into a poisoned, guarded image and compares with the reference within the bound of the path. Failures
 * go to test_note(). times: how often to run, all results being the same bits. Returns false if anything
 * differed. */
bool scenario_check(const conformance_target *target, const scenario *s, const oracle_value *reference, int times);

const char *scenario_path(void); /* the plan's description in the last check */

/* The same without an oracle: every value of the image must be re + j im, to `allowed`. */
void scenario_expect(const conformance_target *target, const scenario *s, double re, double im, double allowed);

typedef struct {
    uint64_t seed;
    int cases; /* random cases of each group */
} conformance_amount;

/* Of the cases of table and edges, and the combinations of random, every `of`th from number `share` (from 0) is run. */
void conformance_set_share(int share, int of);
bool conformance_in_share(void); /* whether the next one is run */

/* The groups. Each prints one line per case and target. */
void conformance_table(const conformance_target *targets, int count);
void conformance_edges(const conformance_target *targets, int count);
void conformance_article(const conformance_target *targets, int count);
void conformance_large(const conformance_target *targets, int count);
void conformance_random(const conformance_target *targets, int count, conformance_amount amount);
void conformance_repeat(const conformance_target *targets, int count, conformance_amount amount);

/* Draws a scenario. type and interpolation are given, so that all combinations are covered. */
void conformance_draw(scenario *s, test_rng *rng, oracle_type type, oracle_interpolation interpolation);

#ifdef __cplusplus
}
#endif

#endif
