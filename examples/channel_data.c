#include "channel_data.h"

#include "checked.h"
#include "whole_file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* 32- and 64-bit integers become doubles, which hold them exactly up to 2^53. */
static void read_wide(FILE *file, const struct recording *recording, uint64_t offset, uint64_t count, double *out)
{
    enum { CHUNK = 65536 };
    uint64_t size = recording->sample.bytes;
    unsigned char *chunk = allocate(CHUNK, size, recording->data_path);
    for (uint64_t done = 0; done < count;) {
        uint64_t now = count - done < CHUNK ? count - done : CHUNK;
        read_bytes(file, recording->data_path, offset + done * size, chunk, now * size);
        for (uint64_t k = 0; k < now; k++) {
            int32_t narrow;
            int64_t wide;
            if (size == 4) {
                memcpy(&narrow, chunk + 4 * k, 4);
                wide = narrow;
            } else {
                memcpy(&wide, chunk + 8 * k, 8);
            }
            if (wide > INT64_C(9007199254740992) || wide < -INT64_C(9007199254740992))
                fail("%s: sample %llu is %lld, expected a magnitude of at most 2^53", recording->data_path,
                     (unsigned long long)(done + k), (long long)wide);
            out[done + k] = (double)wide;
        }
        done += now;
    }
    free(chunk);
}

static void read_text_samples(const struct recording *recording, float *out)
{
    static const char blanks[] = " \t\r\n\v\f";
    uint64_t bytes, count = 0;
    char *text = read_text(recording->data_path, (uint64_t)1 << 40, &bytes);
    for (char *token = text + strspn(text, blanks); *token; count++) {
        char *end = token + strcspn(token, blanks);
        bool last = !*end;
        double value;
        *end = 0;
        if (count == recording->samples)
            fail("%s: more than the %llu numbers of data.shape", recording->data_path, (unsigned long long)count);
        if (!parse_number(token, &value) || fabs(value) > 3.4028234663852886e38)
            fail("%s: number %llu is '%.40s', expected a finite number in float's range", recording->data_path,
                 (unsigned long long)count + 1, token);
        out[count] = (float)value;
        token = last ? end : end + 1 + strspn(end + 1, blanks);
    }
    if (count != recording->samples)
        fail("%s: %llu numbers, expected the %llu of data.shape", recording->data_path, (unsigned long long)count,
             (unsigned long long)recording->samples);
    free(text);
}

void channel_data_read(const struct recording *recording, uint64_t first, uint64_t frames, struct channel_data *data)
{
    uint64_t skipped = 0;
    data->type = recording->sample.type;
    data->offset = recording->sample_offset;
    data->count = recording->samples;
    data->frames = frames;
    data->first = first * (uint64_t)recording->stride[AXIS_FRAME];
    if (recording->frames_outermost && !recording->is_text) {
        skipped = data->first;
        data->first = 0;
        data->count = frames * (uint64_t)recording->stride[AXIS_FRAME];
    }
    uint64_t size = das_type_bytes(data->type);
    data->bytes = product(data->count, size, recording->data_path);
    data->samples = allocate(data->count, size, recording->data_path);
    if (recording->is_text) {
        read_text_samples(recording, data->samples);
        return;
    }
    uint64_t file_bytes, offset = recording->data_offset + skipped * recording->sample.bytes;
    FILE *file = open_input(recording->data_path, &file_bytes);
    if (recording->sample.is_wide)
        read_wide(file, recording, offset, data->count, data->samples);
    else
        read_bytes(file, recording->data_path, offset, data->samples, data->bytes);
    fclose(file);
}

/* IEEE 754 binary16. */
static double half_value(uint16_t bits)
{
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    double magnitude = exponent == 31 ? (fraction ? (double)NAN : (double)INFINITY)
                       : exponent     ? ldexp(1024 + fraction, exponent - 25)
                                      : ldexp(fraction, -24);
    return bits & 0x8000 ? -magnitude : magnitude;
}

static double sample_value(const struct channel_data *data, uint64_t n)
{
    switch (data->type) {
    case DAS_TYPE_I8: return ((const int8_t *)data->samples)[n];
    case DAS_TYPE_U8: return ((const uint8_t *)data->samples)[n];
    case DAS_TYPE_I16: return ((const int16_t *)data->samples)[n];
    case DAS_TYPE_U16: return ((const uint16_t *)data->samples)[n];
    case DAS_TYPE_F16: return half_value(((const uint16_t *)data->samples)[n]);
    case DAS_TYPE_F32: return (double)((const float *)data->samples)[n];
    default: return ((const double *)data->samples)[n];
    }
}

/* Time of sample 0 of the record at these indices. */
static double start_time(const struct recording *recording, uint64_t transmit, uint64_t trace)
{
    return recording->start_times_s[recording->traces ? (uint64_t)recording->trace_transmit[trace] : transmit];
}

void channel_data_filter(const struct recording *recording, const struct spectrum_filter *filter, const char *option,
                         struct channel_data *data)
{
    const uint64_t *count = recording->count;
    const int64_t *stride = recording->stride;
    uint64_t samples = count[AXIS_SAMPLE];
    bool to_complex = filter->demodulate || filter->analytic;
    if (recording->sample.is_complex)
        fail("%s: the data are complex (%s), expected real samples", option, recording->sample.name);
    if (filter->demodulate && !recording->present[AXIS_TRANSMIT] && !recording->traces)
        for (uint64_t k = 1; k < recording->transmits; k++)
            if (recording->start_times_s[k] < recording->start_times_s[0] ||
                recording->start_times_s[k] > recording->start_times_s[0])
                fail("%s: data shared by all transmits with start_time_s[%llu] = %g, expected %g as in the first", option,
                     (unsigned long long)k, recording->start_times_s[k], recording->start_times_s[0]);
    struct spectrum *spectrum = spectrum_create(samples, recording->sampling_frequency_hz, option);
    float *out = allocate(data->count, to_complex ? 8 : 4, option);
    double complex *record = spectrum_record(spectrum);
    for (uint64_t f = 0; f < data->frames; f++)
        for (uint64_t t = 0; t < count[AXIS_TRANSMIT]; t++)
            for (uint64_t k = 0; k < count[AXIS_TRACE]; k++)
                for (uint64_t r = 0; r < count[AXIS_RECEIVE]; r++) {
                    uint64_t base = data->first + f * (uint64_t)stride[AXIS_FRAME] + t * (uint64_t)stride[AXIS_TRANSMIT] +
                                    k * (uint64_t)stride[AXIS_TRACE] + r * (uint64_t)stride[AXIS_RECEIVE];
                    uint64_t step = (uint64_t)stride[AXIS_SAMPLE];
                    for (uint64_t n = 0; n < samples; n++)
                        record[n] = sample_value(data, base + n * step) - data->offset;
                    spectrum_apply(spectrum, filter, start_time(recording, t, k));
                    for (uint64_t n = 0; n < samples; n++) {
                        uint64_t m = base + n * step;
                        if (to_complex) {
                            out[2 * m] = (float)creal(record[n]);
                            out[2 * m + 1] = (float)cimag(record[n]);
                        } else {
                            out[m] = (float)creal(record[n]);
                        }
                    }
                }
    spectrum_destroy(spectrum);
    free(data->samples);
    data->samples = out;
    data->type = to_complex ? DAS_TYPE_CF32 : DAS_TYPE_F32;
    data->bytes = data->count * das_type_bytes(data->type);
    data->offset = 0;
}

das_status channel_data_describe(const struct recording *recording, const struct channel_data *data,
                                 das_acquisition *acquisition, das_error *error)
{
    const int64_t *stride = recording->stride;
    int64_t first = (int64_t)data->first;
    das_status status =
        das_acquisition_set_data(acquisition, data->type, (int64_t)recording->count[AXIS_SAMPLE], error);
    if (!status)
        status = das_acquisition_set_frame_count(acquisition, (int64_t)data->frames, error);
    if (!status)
        status = das_acquisition_set_sample_offset(acquisition, data->offset, error);
    if (status)
        return status;
    if (recording->traces)
        return das_acquisition_set_trace_strides(acquisition, first, stride[AXIS_FRAME], stride[AXIS_TRACE],
                                                 stride[AXIS_SAMPLE], error);
    return das_acquisition_set_data_strides(acquisition, first, stride[AXIS_FRAME], stride[AXIS_TRANSMIT],
                                            stride[AXIS_RECEIVE], stride[AXIS_SAMPLE], error);
}
