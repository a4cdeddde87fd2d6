#include "spectrum.h"

#include "checked.h"

#ifdef DAS_HAVE_FFTW
#include <fftw3.h>
#include <math.h>
#include <stdlib.h>

struct spectrum {
    uint64_t samples;
    double sampling_frequency_hz;
    double complex *record;
    fftw_plan forward, backward;
};

static const double two_pi = 6.283185307179586476925;

struct spectrum *spectrum_create(uint64_t samples, double sampling_frequency_hz, const char *option)
{
    struct spectrum *spectrum = allocate(1, sizeof *spectrum, option);
    if (samples > INT32_MAX)
        fail("%s: records of %llu samples, expected at most 2147483647", option, (unsigned long long)samples);
    spectrum->samples = samples;
    spectrum->sampling_frequency_hz = sampling_frequency_hz;
    spectrum->record = fftw_malloc(samples * sizeof *spectrum->record);
    if (!spectrum->record)
        fail("%s: no memory for a record of %llu samples", option, (unsigned long long)samples);
    int n = (int)samples;
    spectrum->forward = fftw_plan_dft_1d(n, spectrum->record, spectrum->record, FFTW_FORWARD, FFTW_ESTIMATE);
    spectrum->backward = fftw_plan_dft_1d(n, spectrum->record, spectrum->record, FFTW_BACKWARD, FFTW_ESTIMATE);
    if (!spectrum->forward || !spectrum->backward)
        fail("%s: FFTW has no plan for %llu samples", option, (unsigned long long)samples);
    return spectrum;
}

double complex *spectrum_record(struct spectrum *spectrum)
{
    return spectrum->record;
}

/* Frequency of bin k, negative in the upper half. */
static double frequency(const struct spectrum *spectrum, uint64_t k)
{
    double bin = 2 * k > spectrum->samples ? (double)k - (double)spectrum->samples : (double)k;
    return bin * spectrum->sampling_frequency_hz / (double)spectrum->samples;
}

/* Third-order Butterworth magnitude squared, mapped from low-pass to band-pass. */
static double bandpass_gain(double f, double low, double high)
{
    if (f == 0)
        return 0;
    double w = (f * f - low * high) / (f * (high - low));
    return 1 / (1 + pow(w, 6));
}

void spectrum_apply(struct spectrum *spectrum, const struct spectrum_filter *filter, double start_time_s)
{
    uint64_t n = spectrum->samples;
    double complex *x = spectrum->record;
    double scale = 1 / (double)n;
    if (filter->bandpass || filter->analytic) {
        fftw_execute(spectrum->forward);
        for (uint64_t k = 0; k < n; k++) {
            double gain = scale;
            if (filter->bandpass)
                gain *= bandpass_gain(frequency(spectrum, k), filter->low_hz, filter->high_hz);
            if (filter->analytic)
                gain *= k == 0 || 2 * k == n ? 1 : 2 * k < n ? 2 : 0;
            x[k] *= gain;
        }
        fftw_execute(spectrum->backward);
        if (!filter->analytic)
            for (uint64_t i = 0; i < n; i++)
                x[i] = creal(x[i]);
    }
    if (filter->demodulate) {
        double fc = filter->demodulation_frequency_hz, fs = spectrum->sampling_frequency_hz;
        double cut = fmin(fc, fs / 4) * (1 + 1e-12);
        for (uint64_t i = 0; i < n; i++) {
            double turns = fc * (start_time_s + (double)i / fs);
            x[i] *= 2 * cexp(-I * two_pi * (turns - floor(turns)));
        }
        fftw_execute(spectrum->forward);
        for (uint64_t k = 0; k < n; k++)
            x[k] = fabs(frequency(spectrum, k)) <= cut ? x[k] * scale : 0;
        fftw_execute(spectrum->backward);
    }
}

void spectrum_destroy(struct spectrum *spectrum)
{
    fftw_destroy_plan(spectrum->forward);
    fftw_destroy_plan(spectrum->backward);
    fftw_free(spectrum->record);
    free(spectrum);
}
#else
struct spectrum *spectrum_create(uint64_t samples, double sampling_frequency_hz, const char *option)
{
    (void)samples;
    (void)sampling_frequency_hz;
    fail("%s: this program was built without FFTW, expected data that needs no filter", option);
}

double complex *spectrum_record(struct spectrum *spectrum)
{
    (void)spectrum;
    return NULL;
}

void spectrum_apply(struct spectrum *spectrum, const struct spectrum_filter *filter, double start_time_s)
{
    (void)spectrum;
    (void)filter;
    (void)start_time_s;
}

void spectrum_destroy(struct spectrum *spectrum)
{
    (void)spectrum;
}
#endif
