/* das_simulate: writes acquisition.json and the data of a phantom of a few points, for das_image to read. The true
 * points go to points.csv. The same preset and seed give the same files. */
#define _POSIX_C_SOURCE 200809L
#include "checked.h"
#include "whole_file.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char usage[] =
    "usage: das_simulate --preset article|fmc|plane|iq|photoacoustic|volume [--seed N] OUTDIR\n"
    "  article        128 elements firing together, one data set for all transmits, text (nearest, x 0..38 z 0..40 mm)\n"
    "  fmc            full matrix of 128 elements, int16, 62 MiB                          (x 0..38 z 0..40 mm)\n"
    "  plane          11 plane waves, 128 elements, int16                                 (x +-15 z 5..40 mm)\n"
    "  iq             3 plane waves, 64 elements, 8 frames of int16 IQ, points sinking    (x +-10 z 8..30 mm)\n"
    "  photoacoustic  a ring of 128 elements, one-way, int16                              (x +-12 y +-12 mm)\n"
    "  volume         32 x 32 elements, one plane wave, 4 frames of float IQ              (x, y +-8 z 10..26 mm)\n";

static const double pi = 3.14159265358979323846;

enum { MAX_POINTS = 4, MAX_ELEMENTS = 1024, MAX_ANGLES = 11 };

/* The formats a preset writes. */
enum format { TEXT, INT16, IQ_INT16, IQ_FLOAT };

struct preset {
    const char *name;
    enum format format;
    unsigned columns, rows; /* of the array; rows = 0 is a ring of `columns` elements in the x-y plane */
    double pitch_m, first_x_m; /* ring: pitch is the radius */
    unsigned angles;           /* plane waves; 0: every element fires, or nothing does (ring) */
    double last_angle_rad;
    unsigned frames, samples;
    double sampling_frequency_hz, start_time_s, sound_speed_m_s, frequency_hz;
    double cycles;    /* of the pulse, full width at half maximum */
    double amplitude; /* of one echo */
    double sinking_m; /* along z from frame to frame */
    unsigned points;
    double point_m[MAX_POINTS][3];
};

static const struct preset presets[] = {
    {"article", TEXT, 128, 1, 0.3e-3, 0, 0, 0, 1, 2000, 30e6, 0, 1540, 5e6, 1.5, 100, 0,
     3, {{8e-3, 0, 12e-3}, {19e-3, 0, 20e-3}, {29e-3, 0, 28e-3}}},
    {"fmc", INT16, 128, 1, 0.3e-3, 0, 0, 0, 1, 2000, 30e6, 0, 1540, 5e6, 1.5, 4000, 0,
     3, {{8e-3, 0, 12e-3}, {19e-3, 0, 20e-3}, {29e-3, 0, 28e-3}}},
    {"plane", INT16, 128, 1, 0.3e-3, -19.05e-3, 11, 0.1745, 1, 1400, 25e6, 5e-6, 1540, 5e6, 1.5, 4000, 0,
     4, {{0, 0, 12e-3}, {-8e-3, 0, 18e-3}, {6e-3, 0, 26e-3}, {0, 0, 34e-3}}},
    {"iq", IQ_INT16, 64, 1, 0.3e-3, -9.45e-3, 3, 0.1, 8, 200, 5e6, 9e-6, 1540, 5e6, 2.5, 4000, 10e-6,
     3, {{0, 0, 12e-3}, {-4e-3, 0, 18e-3}, {3e-3, 0, 24e-3}}},
    {"photoacoustic", INT16, 128, 0, 25e-3, 0, 0, 0, 1, 1200, 40e6, 0, 1500, 3e6, 1, 4000, 0,
     3, {{0, 0, 0}, {6e-3, 3e-3, 0}, {-5e-3, -7e-3, 0}}},
    {"volume", IQ_FLOAT, 32, 32, 0.5e-3, -7.75e-3, 1, 0, 4, 128, 3.08e6, 10e-6, 1540, 3.08e6, 2.5, 1, 0,
     3, {{0, 0, 18e-3}, {4e-3, -3e-3, 14e-3}, {-3e-3, 5e-3, 22e-3}}},
};

struct phantom {
    const struct preset *preset;
    unsigned elements, transmits;
    double element_m[MAX_ELEMENTS][3];
    double point_m[MAX_POINTS][3];
    uint64_t random;
};

/* splitmix64, uniform in -1..1. */
static double noise(struct phantom *phantom)
{
    uint64_t z = phantom->random += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (double)((z ^ z >> 31) >> 11) * 0x1p-52 - 1;
}

static void place(struct phantom *phantom, const struct preset *preset, uint64_t seed)
{
    phantom->preset = preset;
    phantom->random = seed;
    phantom->elements = preset->columns * (preset->rows ? preset->rows : 1);
    phantom->transmits = preset->angles ? preset->angles : preset->rows ? phantom->elements : 1;
    for (unsigned k = 0; k < phantom->elements; k++) {
        unsigned column = k % preset->columns, row = k / preset->columns;
        double angle = 2 * pi * k / phantom->elements;
        double *e = phantom->element_m[k];
        e[0] = preset->rows ? preset->first_x_m + column * preset->pitch_m : preset->pitch_m * cos(angle);
        e[1] = preset->rows > 1 ? preset->first_x_m + row * preset->pitch_m : preset->rows ? 0 : preset->pitch_m * sin(angle);
        e[2] = 0;
    }
    for (unsigned k = 0; k < preset->points; k++)
        for (int axis = 0; axis < 3; axis++) {
            /* up to half a millimetre off the round values, but never out of the image plane */
            bool flat = preset->rows == 1 ? axis == 1 : preset->rows == 0 && axis == 2;
            phantom->point_m[k][axis] = preset->point_m[k][axis] + (flat ? 0 : 0.5e-3 * noise(phantom));
        }
}

static double plane_angle(const struct preset *preset, unsigned transmit)
{
    return preset->angles > 1 ? preset->last_angle_rad * (2.0 * transmit / (preset->angles - 1) - 1) : 0;
}

static double distance(const double a[3], const double b[3])
{
    return sqrt((a[0] - b[0]) * (a[0] - b[0]) + (a[1] - b[1]) * (a[1] - b[1]) + (a[2] - b[2]) * (a[2] - b[2]));
}

static double transmit_path(const struct phantom *phantom, unsigned transmit, const double point[3])
{
    const struct preset *preset = phantom->preset;
    double angle = plane_angle(preset, transmit);
    if (preset->angles)
        return point[0] * sin(angle) + point[2] * cos(angle);
    return preset->rows ? distance(point, phantom->element_m[transmit]) : 0;
}

/* Adds the echoes of all points to a record of (real, imaginary) samples: a Gaussian envelope on a carrier, centred on
 * the travel time; IQ is referenced to time zero. */
static void add_echoes(const struct phantom *phantom, unsigned frame, unsigned transmit, unsigned element, double *record)
{
    const struct preset *preset = phantom->preset;
    double fs = preset->sampling_frequency_hz, f = preset->frequency_hz;
    double sigma = preset->cycles / f / 2.354820045;
    for (unsigned k = 0; k < preset->points; k++) {
        double point[3];
        memcpy(point, phantom->point_m[k], sizeof point);
        point[2] += frame * preset->sinking_m;
        double tau = (transmit_path(phantom, transmit, point) + distance(point, phantom->element_m[element])) /
                     preset->sound_speed_m_s;
        double centre = (tau - preset->start_time_s) * fs, reach = 4 * sigma * fs;
        double low = fmax(0, ceil(centre - reach)), high = fmin(preset->samples - 1.0, floor(centre + reach));
        for (double n = low; n <= high; n++) {
            double t = (n - centre) / fs, envelope = preset->amplitude * exp(-t * t / (2 * sigma * sigma));
            double phase = preset->format >= IQ_INT16 ? -2 * pi * f * tau : 2 * pi * f * t;
            record[2 * (size_t)n] += envelope * cos(phase);
            record[2 * (size_t)n + 1] += envelope * sin(phase);
        }
    }
}

static double integer(double value)
{
    return fmax(-32768, fmin(32767, nearbyint(value)));
}

/* One record with a little noise on it, in the preset's format. */
static void write_record(struct output_file *output, struct phantom *phantom, double *record)
{
    const struct preset *preset = phantom->preset;
    unsigned parts = preset->format >= IQ_INT16 ? 2 : 1;
    for (unsigned n = 0; n < preset->samples; n++)
        for (unsigned k = 0; k < parts; k++) {
            double value = record[2 * n + k] + 0.01 * preset->amplitude * noise(phantom);
            if (preset->format == TEXT) {
                char text[24];
                int length = snprintf(text, sizeof text, "%.0f\n", integer(value));
                write_bytes(output, text, (uint64_t)length);
            } else if (preset->format == IQ_FLOAT) {
                float number = (float)value;
                write_bytes(output, &number, sizeof number);
            } else {
                int16_t number = (int16_t)integer(value);
                write_bytes(output, &number, sizeof number);
            }
        }
}

static void write_data(const char *path, struct phantom *phantom)
{
    const struct preset *preset = phantom->preset;
    size_t bytes = 2 * preset->samples * sizeof(double);
    double *record = allocate(1, bytes, "a record");
    /* the article's transmits share one data set: all elements fire at time zero */
    unsigned data_sets = preset->format == TEXT ? 1 : phantom->transmits;
    unsigned per_set = phantom->transmits / data_sets;
    struct output_file output;
    open_output(&output, path);
    for (unsigned frame = 0; frame < preset->frames; frame++)
        for (unsigned set = 0; set < data_sets; set++)
            for (unsigned element = 0; element < phantom->elements; element++) {
                memset(record, 0, bytes);
                for (unsigned k = 0; k < per_set; k++)
                    add_echoes(phantom, frame, set * per_set + k, element, record);
                write_record(&output, phantom, record);
            }
    finish_output(&output);
    free(record);
}

static void write_vectors(const char *path, unsigned count, const double (*vectors)[3])
{
    struct output_file output;
    open_output(&output, path);
    fprintf(output.file, "x_m,y_m,z_m\n");
    for (unsigned k = 0; k < count; k++)
        if (fprintf(output.file, "%.9g,%.9g,%.9g\n", vectors[k][0], vectors[k][1], vectors[k][2]) < 0)
            fail("%s: writing failed: %s", path, strerror(errno));
    finish_output(&output);
}

static void write_json(const char *path, const char *data, const struct phantom *phantom)
{
    static const char *const dtypes[] = {NULL, "<i2", "<i2x2", "<c8"};
    const struct preset *p = phantom->preset;
    struct output_file output;
    open_output(&output, path);
    FILE *f = output.file;
    fprintf(f, "{\n \"data\": {\"file\": \"%s\", ", data);
    if (p->format == TEXT)
        fprintf(f, "\"format\": \"text\", \"axes\": [\"receive\", \"sample\"], \"shape\": [%u, %u]},\n",
                phantom->elements, p->samples);
    else
        fprintf(f, "\"dtype\": \"%s\", \"axes\": [\"frame\", \"transmit\", \"receive\", \"sample\"], "
                   "\"shape\": [%u, %u, %u, %u]},\n", dtypes[p->format], p->frames, phantom->transmits,
                phantom->elements, p->samples);
    fprintf(f, " \"sampling_frequency_hz\": %.17g,\n \"start_time_s\": %.17g,\n \"sound_speed_m_s\": %.17g,\n",
            p->sampling_frequency_hz, p->start_time_s, p->sound_speed_m_s);
    if (p->format >= IQ_INT16)
        fprintf(f, " \"demodulation_frequency_hz\": %.17g,\n", p->frequency_hz);
    fprintf(f, " \"receive\": {\"positions_m\": \"elements.csv\"},\n \"transmits\": ");
    if (!p->angles && p->rows) {
        fprintf(f, "\"elements\"\n");
    } else if (!p->angles) {
        fprintf(f, "[{\"type\": \"none\"}]\n");
    } else {
        for (unsigned k = 0; k < p->angles; k++)
            fprintf(f, "%s{\"type\": \"plane\", \"angle_rad\": %.17g}", k ? ",\n  " : "[\n  ", plane_angle(p, k));
        fprintf(f, "\n ]\n");
    }
    if (fprintf(f, "}\n") < 0)
        fail("%s: writing failed: %s", path, strerror(errno));
    finish_output(&output);
}

static const struct preset *find_preset(const char *name)
{
    for (size_t k = 0; k < sizeof presets / sizeof *presets; k++)
        if (!strcmp(presets[k].name, name))
            return &presets[k];
    fail("--preset is '%s', expected article, fmc, plane, iq, photoacoustic or volume", name);
}

int main(int argc, char **argv)
{
    const struct preset *preset = NULL;
    const char *folder = NULL;
    uint64_t seed = 1;
    name_program("das_simulate");
    for (int k = 1; k < argc; k++) {
        bool takes_value = !strcmp(argv[k], "--preset") || !strcmp(argv[k], "--seed");
        if (takes_value && k + 1 == argc)
            fail("%s is the last argument, expected a value behind it", argv[k]);
        if (!strcmp(argv[k], "--preset"))
            preset = find_preset(argv[++k]);
        else if (!strcmp(argv[k], "--seed")) {
            if (!parse_count(argv[++k], &seed))
                fail("--seed is '%s', expected a count of 0 to 2^63 - 1", argv[k]);
        } else if (!strcmp(argv[k], "--help")) {
            fputs(usage, stdout);
            return EXIT_SUCCESS;
        } else if (!strncmp(argv[k], "--", 2))
            fail("%s is no option, expected --preset, --seed or --help", argv[k]);
        else if (folder)
            fail("'%s' is one argument too many, expected one OUTDIR", argv[k]);
        else
            folder = argv[k];
    }
    if (!preset || !folder)
        fail("%s missing (--help tells more)", preset ? "OUTDIR is" : "--preset is");
    if (mkdir(folder, 0777) && errno != EEXIST)
        fail("OUTDIR is '%s', expected a folder that can be made: %s", folder, strerror(errno));

    struct phantom *phantom = allocate(1, sizeof *phantom, "the phantom");
    const char *data_name = preset->format == TEXT ? "source.txt" : "data.bin";
    char *json = format_text("%s/acquisition.json", folder), *data = format_text("%s/%s", folder, data_name);
    char *elements = format_text("%s/elements.csv", folder), *points = format_text("%s/points.csv", folder);
    place(phantom, preset, seed);
    write_data(data, phantom);
    write_vectors(elements, phantom->elements, (const double(*)[3])phantom->element_m);
    write_vectors(points, preset->points, (const double(*)[3])phantom->point_m);
    write_json(json, data_name, phantom);
    free(json);
    free(data);
    free(elements);
    free(points);
    free(phantom);
    return EXIT_SUCCESS;
}
