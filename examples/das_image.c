/* das_image: an acquisition.json and its data in, an image out, as .png (envelope in dB) or .npy (the raw sum). */
#define _POSIX_C_SOURCE 200809L
#include "acquisition_file.h"
#include "channel_data.h"
#include "checked.h"
#include "npy_file.h"
#include "png_file.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char usage[] =
    "usage: das_image [--device D] [--interp nearest|linear|quadratic|cubic|lanczos] [--f-number F]\n"
    "                 [--window rect|hann|hamming|tukey:A] [--keep transmit,receive]\n"
    "                 [--normalize none|count|weights] [--sound-speed C] [--frame N]\n"
    "                 [--bandpass LO:HI] [--demodulate FC] [--analytic] [--range DB] [--timing]\n"
    "                 [--x X0:X1:NX] [--y Y0:Y1:NY] [--z Z0:Z1:NZ] ACQUISITION.json OUT.png|OUT.npy\n"
    "Metres, seconds, hertz; the ends of an axis are included, a missing axis is 0:0:1.\n"
    "A PNG shows the envelope of one frame; a .npy holds all frames, or the one of --frame.\n";

struct axis_values {
    double first, last;
    uint64_t count;
};

struct settings {
    const char *device, *input, *output, *filter_option;
    bool is_png, timing, keep_transmit, keep_receive, has_frame;
    das_interpolation interpolation;
    das_window window;
    das_normalization normalization;
    double window_parameter, f_number, sound_speed_m_s, range_db;
    uint64_t frame;
    struct spectrum_filter filter;
    struct axis_values axis[3];
};

static _Noreturn void refuse(const char *option, const char *value, const char *expected)
{
    fail("%s is '%s', expected %s", option, value, expected);
}

/* Index of `value` in a list closed by NULL. */
static int32_t choose(const char *option, const char *value, const char *const *names, const char *expected)
{
    for (int32_t k = 0; names[k]; k++)
        if (!strcmp(value, names[k]))
            return k;
    refuse(option, value, expected);
}

/* Cuts "a:b:c" into exactly `count` parts. */
static bool split(char *text, unsigned count, char **parts)
{
    for (unsigned k = 0; k < count; k++) {
        parts[k] = text;
        text = strchr(text, ':');
        if (!text != (k + 1 == count))
            return false;
        if (text)
            *text++ = 0;
    }
    return true;
}

static double parse_positive(const char *option, const char *value)
{
    double number;
    if (!parse_number(value, &number) || number <= 0)
        refuse(option, value, "a number above 0");
    return number;
}

static void parse_axis(const char *option, const char *value, struct axis_values *axis)
{
    char *parts[3], *copy = format_text("%s", value);
    if (!split(copy, 3, parts) || !parse_number(parts[0], &axis->first) || !parse_number(parts[1], &axis->last) ||
        !parse_count(parts[2], &axis->count) || !axis->count)
        refuse(option, value, "FIRST:LAST:COUNT, two numbers in metres and a count of at least 1");
    if (axis->count == 1 && (axis->first < axis->last || axis->first > axis->last))
        refuse(option, value, "equal ends for a count of 1");
    free(copy);
}

static void parse_window(const char *option, const char *value, struct settings *settings)
{
    static const char *const names[] = {"rect", "hann", "hamming", NULL};
    static const char expected[] = "rect, hann, hamming or tukey:A with A of 0 to 1";
    if (strncmp(value, "tukey:", 6) != 0) {
        settings->window = choose(option, value, names, expected);
        settings->window_parameter = 0;
        return;
    }
    settings->window = DAS_WINDOW_TUKEY;
    if (!parse_number(value + 6, &settings->window_parameter) || settings->window_parameter < 0 ||
        settings->window_parameter > 1)
        refuse(option, value, expected);
}

static void parse_bandpass(const char *option, const char *value, struct spectrum_filter *filter)
{
    char *parts[2], *copy = format_text("%s", value);
    if (!split(copy, 2, parts) || !parse_number(parts[0], &filter->low_hz) ||
        !parse_number(parts[1], &filter->high_hz) || filter->low_hz <= 0 || filter->high_hz <= filter->low_hz)
        refuse(option, value, "LO:HI in hertz with 0 < LO < HI");
    filter->bandpass = true;
    free(copy);
}

static void parse_keep(const char *option, const char *value, struct settings *settings)
{
    static const char *const names[] = {"transmit", "receive", "transmit,receive", "receive,transmit", NULL};
    int32_t which = choose(option, value, names, "transmit, receive or transmit,receive");
    settings->keep_transmit = which != 1;
    settings->keep_receive = which != 0;
}

static void parse_option(const char *option, const char *value, struct settings *settings)
{
    static const char *const interpolations[] = {"nearest", "linear", "quadratic", "cubic", "lanczos", NULL};
    static const char *const normalizations[] = {"none", "count", "weights", NULL};
    if (!strcmp(option, "--device"))
        settings->device = value;
    else if (!strcmp(option, "--interp"))
        settings->interpolation = choose(option, value, interpolations, "nearest, linear, quadratic, cubic or lanczos");
    else if (!strcmp(option, "--f-number")) {
        if (!parse_number(value, &settings->f_number) || settings->f_number < 0)
            refuse(option, value, "a number of at least 0");
    } else if (!strcmp(option, "--window"))
        parse_window(option, value, settings);
    else if (!strcmp(option, "--keep"))
        parse_keep(option, value, settings);
    else if (!strcmp(option, "--normalize"))
        settings->normalization = choose(option, value, normalizations, "none, count or weights");
    else if (!strcmp(option, "--sound-speed"))
        settings->sound_speed_m_s = parse_positive(option, value);
    else if (!strcmp(option, "--frame")) {
        if (!parse_count(value, &settings->frame))
            refuse(option, value, "the 0-based number of a frame");
        settings->has_frame = true;
    } else if (!strcmp(option, "--bandpass"))
        parse_bandpass(option, value, &settings->filter);
    else if (!strcmp(option, "--demodulate")) {
        settings->filter.demodulation_frequency_hz = parse_positive(option, value);
        settings->filter.demodulate = true;
    } else if (!strcmp(option, "--range"))
        settings->range_db = parse_positive(option, value);
    else
        parse_axis(option, value, &settings->axis[option[2] - 'x']);
}

static void check_output(const struct settings *settings)
{
    struct stat about;
    if (!stat(settings->output, &about) && S_ISDIR(about.st_mode))
        refuse("OUT", settings->output, "a file, not a folder");
    char *folder = path_beside(settings->output, ".");
    int denied = access(folder, W_OK) ? errno : 0;
    free(folder);
    if (denied)
        fail("OUT is '%s', expected a folder that can be written: %s", settings->output, strerror(denied));
}

static void parse_command_line(int argc, char **argv, struct settings *settings)
{
    static const char *const options[] = {"--device", "--interp",      "--f-number", "--window",   "--keep",  "--normalize",
                                          "--frame",  "--sound-speed", "--bandpass", "--demodulate", "--range", "--x",
                                          "--y",      "--z",           NULL};
    *settings = (struct settings){.device = "auto",
                                  .interpolation = DAS_INTERPOLATION_LINEAR,
                                  .range_db = 60,
                                  .axis = {{0, 0, 1}, {0, 0, 1}, {0, 0, 1}}};
    for (int k = 1; k < argc; k++) {
        const char *argument = argv[k];
        unsigned which = 0;
        while (options[which] && strcmp(options[which], argument) != 0)
            which++;
        if (options[which]) {
            if (++k == argc)
                fail("%s is the last argument, expected a value behind it", argument);
            parse_option(argument, argv[k], settings);
        } else if (!strcmp(argument, "--analytic"))
            settings->filter.analytic = true;
        else if (!strcmp(argument, "--timing"))
            settings->timing = true;
        else if (!strcmp(argument, "--help")) {
            fputs(usage, stdout);
            exit(EXIT_SUCCESS);
        } else if (argument[0] == '-' && argument[1])
            fail("%s is no option, expected one of those --help lists", argument);
        else if (!settings->input)
            settings->input = argument;
        else if (!settings->output)
            settings->output = argument;
        else
            fail("'%s' is one argument too many, expected ACQUISITION.json and OUT.png or OUT.npy", argument);
    }
    if (!settings->output)
        fail("%s missing, expected ACQUISITION.json and OUT.png or OUT.npy (--help tells more)",
             settings->input ? "OUT is" : "arguments are");
    size_t length = strlen(settings->output);
    const char *ending = length > 4 ? settings->output + length - 4 : "";
    settings->is_png = !strcmp(ending, ".png");
    if (!settings->is_png && strcmp(ending, ".npy") != 0)
        refuse("OUT", settings->output, "a name that ends in .png or .npy");
    if (settings->window != DAS_WINDOW_RECT && settings->f_number <= 0)
        fail("--window needs an aperture, expected --f-number above 0");
    if (settings->filter.demodulate && settings->filter.analytic)
        fail("--demodulate and --analytic are both given, expected one of them");
    if (settings->is_png && (settings->keep_transmit || settings->keep_receive))
        fail("--keep is given with '%s', expected an OUT.npy", settings->output);
    settings->filter_option = settings->filter.bandpass     ? "--bandpass"
                              : settings->filter.demodulate ? "--demodulate"
                              : settings->filter.analytic   ? "--analytic"
                                                            : NULL;
}

/* Columns and rows of the picture: the two axes longer than 1. */
static void picture_size(const struct settings *settings, uint64_t size[2])
{
    unsigned found = 0;
    for (unsigned k = 0; k < 3; k++)
        if (settings->axis[k].count > 1) {
            if (found < 2)
                size[found] = settings->axis[k].count;
            found++;
        }
    if (found != 2)
        fail("'%s' with %u of --x, --y, --z longer than 1, expected exactly two for a PNG", settings->output, found);
    png_check(size[0], size[1]);
}

static void expect(das_status status, const das_error *error, const char *what)
{
    if (status)
        fail("%s: %s: %s", what, das_status_name(status), error->message);
}

static void make_grid(const struct settings *settings, das_grid **grid, das_error *error)
{
    double origin[3], steps[9] = {0};
    int64_t counts[3];
    for (int k = 0; k < 3; k++) {
        const struct axis_values *axis = &settings->axis[k];
        origin[k] = axis->first;
        counts[k] = (int64_t)axis->count;
        if (axis->count > 1)
            steps[3 * k + k] = (axis->last - axis->first) / (double)(axis->count - 1);
    }
    char what[96];
    snprintf(what, sizeof what, "--x, --y, --z with %llu x %llu x %llu points",
             (unsigned long long)settings->axis[0].count, (unsigned long long)settings->axis[1].count,
             (unsigned long long)settings->axis[2].count);
    expect(das_grid_create_cartesian(origin, steps, counts, grid, error), error, what);
}

static das_options *make_options(const struct settings *settings, das_error *error)
{
    das_options *options = NULL;
    das_status status = das_options_create(&options, error);
    if (!status)
        status = das_options_set_interpolation(options, settings->interpolation, error);
    if (!status)
        status = das_options_set_f_number(options, settings->f_number, error);
    if (!status)
        status = das_options_set_window(options, settings->window, settings->window_parameter, error);
    if (!status)
        status = das_options_set_normalization(options, settings->normalization, error);
    if (!status)
        status = das_options_set_keep_transmit(options, settings->keep_transmit, error);
    if (!status)
        status = das_options_set_keep_receive(options, settings->keep_receive, error);
    expect(status, error, "options");
    return options;
}

static void write_npy(const struct settings *settings, const das_plan_info *info, const float *image)
{
    struct output_file output;
    uint64_t shape[6];
    unsigned axes = 0;
    for (unsigned k = 0; k < 6; k++)
        if (info->image_shape[k] > 1 || k == 3 || k == 5)
            shape[axes++] = (uint64_t)info->image_shape[k];
    open_output(&output, settings->output);
    npy_write_header(&output, info->image_type == DAS_TYPE_CF32 ? "<c8" : "<f4", axes, shape);
    write_bytes(&output, image, info->output_bytes);
    finish_output(&output);
}

/* Envelope in dB below the largest: 255 is the largest, 0 is `range` dB below it or less. */
static void write_png(const struct settings *settings, const uint64_t size[2], const float *image)
{
    struct output_file output;
    uint64_t count = size[0] * size[1];
    unsigned char *pixels = allocate(count, 1, "OUT.png");
    double largest = 0;
    for (uint64_t k = 0; k < count; k++) {
        double magnitude = hypot((double)image[2 * k], (double)image[2 * k + 1]);
        if (!isfinite(magnitude))
            fail("'%s': the image is not finite at pixel (%llu, %llu), expected finite data", settings->output,
                 (unsigned long long)(k % size[0]), (unsigned long long)(k / size[0]));
        largest = fmax(largest, magnitude);
    }
    if (largest == 0)
        fprintf(stderr, "das_image: warning: every pixel is 0: no sample belongs to x %g..%g, y %g..%g, z %g..%g (metres)\n",
                settings->axis[0].first, settings->axis[0].last, settings->axis[1].first, settings->axis[1].last,
                settings->axis[2].first, settings->axis[2].last);
    for (uint64_t k = 0; k < count; k++) {
        double magnitude = hypot((double)image[2 * k], (double)image[2 * k + 1]);
        double level = magnitude > 0 ? 1 + 20 * log10(magnitude / largest) / settings->range_db : 0;
        pixels[k] = (unsigned char)(level > 0 ? 255 * level + 0.5 : 0);
    }
    open_output(&output, settings->output);
    png_write(&output, size[0], size[1], pixels);
    finish_output(&output);
    free(pixels);
}

static void print_timing(const das_device *device, const das_plan *plan, const das_run *run)
{
    das_error error = DAS_ERROR_INIT;
    das_timing timing = {.struct_size = sizeof timing};
    das_device_info info = {.struct_size = sizeof info};
    expect(das_run_get_timing(run, &timing, &error), &error, "--timing");
    expect(das_device_get_info(device, &info, &error), &error, "--timing");
    printf("device     %s (%s)\n", info.name, info.description);
    printf("plan       %s\n", das_plan_description(plan));
    printf("upload     %10.3f ms\n", timing.upload_ms);
    printf("compute    %10.3f ms, %.3f ms of it packing\n", timing.compute_ms, timing.pack_ms);
    printf("copy-back  %10.3f ms\n", timing.download_ms);
}

int main(int argc, char **argv)
{
    struct settings settings;
    struct recording recording;
    struct channel_data data;
    uint64_t size[2];
    name_program("das_image");
    parse_command_line(argc, argv, &settings);
    if (settings.is_png)
        picture_size(&settings, size);
    check_output(&settings);

    das_error error = DAS_ERROR_INIT;
    das_device *device = NULL;
    das_grid *grid = NULL;
    make_grid(&settings, &grid, &error);
    recording_read(settings.input, &recording);
    uint64_t frames = recording.count[AXIS_FRAME];
    if (settings.frame >= frames)
        fail("--frame is %llu, expected 0 to %llu", (unsigned long long)settings.frame, (unsigned long long)frames - 1);
    if (settings.is_png || settings.has_frame)
        frames = 1;
    if (settings.is_png && !recording.sample.is_complex && !settings.filter.demodulate && !settings.filter.analytic) {
        settings.filter.analytic = true;
        if (!settings.filter_option)
            settings.filter_option = "the envelope of an OUT.png from real data";
    }
    char what[96];
    snprintf(what, sizeof what, "--device is '%.64s'", settings.device);
    expect(das_device_open(settings.device, NULL, &device, &error), &error, what);

    das_acquisition *acquisition = NULL;
    das_plan *plan = NULL;
    das_run *run = NULL;
    das_plan_info info = {.struct_size = sizeof info};
    channel_data_read(&recording, settings.frame, frames, &data);
    if (settings.filter_option)
        channel_data_filter(&recording, &settings.filter, settings.filter_option, &data);
    if (settings.filter.demodulate)
        recording.demodulation_frequency_hz = settings.filter.demodulation_frequency_hz;
    if (settings.sound_speed_m_s > 0)
        recording.sound_speed_m_s = settings.sound_speed_m_s;

    expect(das_acquisition_create(&acquisition, &error), &error, settings.input);
    expect(recording_describe(&recording, acquisition, &error), &error, settings.input);
    expect(das_acquisition_set_demodulation_frequency(acquisition, recording.demodulation_frequency_hz, &error), &error,
           settings.input);
    expect(channel_data_describe(&recording, &data, acquisition, &error), &error, settings.input);
    das_options *options = make_options(&settings, &error);
    expect(das_plan_query(device, acquisition, grid, options, &info, &error), &error, settings.input);
    float *image = allocate(info.output_bytes, 1, "the image");
    expect(das_plan_create(device, acquisition, grid, options, &plan, &error), &error, settings.input);
    expect(das_run_create(device, &run, &error), &error, settings.device);
    expect(das_run_enable_timing(run, settings.timing, &error), &error, "--timing");
    expect(das_reconstruct_host(plan, data.samples, (size_t)data.bytes, image, (size_t)info.output_bytes, run, &error),
           &error, settings.input);

    if (settings.is_png)
        write_png(&settings, size, image);
    else
        write_npy(&settings, &info, image);
    if (settings.timing)
        print_timing(device, plan, run);
    finish_printing();
    das_run_destroy(&run);
    das_plan_destroy(&plan);
    das_options_destroy(&options);
    das_acquisition_destroy(&acquisition);
    das_grid_destroy(&grid);
    das_device_destroy(&device);
    recording_free(&recording);
    free(data.samples);
    free(image);
    return EXIT_SUCCESS;
}
