/* Filters of whole records by discrete Fourier transform, through FFTW. */
#ifndef SPECTRUM_H
#define SPECTRUM_H

#include <complex.h>
#include <stdbool.h>
#include <stdint.h>

struct spectrum_filter {
    bool bandpass;
    double low_hz, high_hz;
    bool demodulate; /* at most one of demodulate and analytic */
    double demodulation_frequency_hz;
    bool analytic;
};

struct spectrum;

/* For records of `samples` samples; `option` is named when the program was built without FFTW. */
struct spectrum *spectrum_create(uint64_t samples, double sampling_frequency_hz, const char *option);

/* The record the filter works on, in place: real samples go in (imaginary parts 0). */
double complex *spectrum_record(struct spectrum *spectrum);
void spectrum_apply(struct spectrum *spectrum, const struct spectrum_filter *filter, double start_time_s);

void spectrum_destroy(struct spectrum *spectrum);

#endif
