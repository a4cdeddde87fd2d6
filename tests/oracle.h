/*
 * The oracle: delay-and-sum written down plainly, one output point at a time, to judge the library by.
 *
 * It shares no code, no types and no constants with the library. Geometry, phase and sums are long double
 * (quadruple or 80-bit where the machine has it), so that even double-precision plans can be compared.
 * SI units; complex values are counted as one sample.
 */
#ifndef DAS_TESTS_ORACLE_H
#define DAS_TESTS_ORACLE_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    ORACLE_I8,
    ORACLE_U8,
    ORACLE_I16,
    ORACLE_U16,
    ORACLE_F16,
    ORACLE_F32,
    ORACLE_F64,
    ORACLE_CI16,
    ORACLE_CF16,
    ORACLE_CF32
} oracle_type;

typedef enum {
    ORACLE_ELEMENT,   /* vector: the element's position */
    ORACLE_PLANE,     /* vector: direction, normalised here */
    ORACLE_DIVERGING, /* vector: virtual source */
    ORACLE_FOCUSED,   /* vector: focus */
    ORACLE_ONE_WAY    /* arrival time 0 */
} oracle_wave;

typedef enum { ORACLE_NEAREST, ORACLE_LINEAR, ORACLE_QUADRATIC, ORACLE_CUBIC, ORACLE_LANCZOS3 } oracle_interpolation;
typedef enum { ORACLE_RECT, ORACLE_HANN, ORACLE_HAMMING, ORACLE_TUKEY, ORACLE_WINDOW_TABLE } oracle_window;
typedef enum { ORACLE_NO_DIVISION, ORACLE_BY_COUNT, ORACLE_BY_WEIGHTS } oracle_normalization;
typedef enum { ORACLE_CARTESIAN, ORACLE_POLAR, ORACLE_POINTS } oracle_grid_kind;

typedef struct {
    oracle_wave wave;
    double vector[3], origin[3];
    double start_time_s; /* of sample 0, after the transmit's time zero */
    double delay_s, weight;
} oracle_transmit;

typedef struct {
    double position[3], normal[3]; /* the normal is normalised here */
    double delay_s, weight;
} oracle_element;

typedef struct {
    int64_t transmit, receive;
    double weight;
} oracle_trace;

typedef struct {
    oracle_grid_kind kind;
    int64_t count[3]; /* points along axes 0, 1, 2; points: count[0], and 1, 1 */
    double origin[3]; /* Cartesian origin, or the polar apex */
    double step[3][3];
    const double *axis[3];    /* polar: values of theta, phi and r */
    const double (*point)[3]; /* a list of points */
} oracle_grid;

typedef struct {
    /* data */
    const void *data;
    oracle_type type;
    double offset; /* subtracted from every sample (from both parts of a complex one) */
    int64_t samples;
    /* Where sample n of record (f, t, r) is, in elements: first + f frame + t transmit + r receive + n sample;
     * with traces first + f frame + k trace + n sample. Any stride may be 0 or negative. */
    int64_t first, frame_stride, transmit_stride, receive_stride, sample_stride, trace_stride;
    double sampling_frequency_hz, demodulation_frequency_hz, sound_speed_m_s;

    /* acquisition; traces NULL means every pair */
    int64_t transmits, receives, traces;
    const oracle_transmit *transmit;
    const oracle_element *element;
    const oracle_trace *trace;
    const double *pair_weight;             /* [transmit][receive] or NULL; not with traces */
    int64_t first_transmit, last_transmit; /* only transmits first <= t < last; both 0 means all */

    /* image */
    oracle_grid grid;
    oracle_interpolation interpolation;
    double f_number; /* 0: no limit */
    oracle_window window;
    double tukey;
    const double *window_value; /* table over q = 0..1 */
    int64_t window_values;
    oracle_normalization normalization;
    bool keep_transmit, keep_receive;
    bool clamp;              /* s into the record instead of contributing 0 */
    bool phase_at_sample_0;  /* phase of tau - t0 instead of tau */
    bool double_precision;   /* f64 data is used as it is, not rounded to f32 */

    /* tables [transmit or receive][point], NULL where unused; a NaN arrival means no path */
    const double *transmit_arrival_s, *receive_arrival_s;
    const float *transmit_weight, *receive_weight; /* receive_weight stands in for the aperture */

    /* If not NULL, one byte per data element: set to 1 where an interpolation may read. */
    unsigned char *touched;
} oracle_problem;

typedef struct {
    double re, im;
    double power;  /* sum of |weight|^2 |v|^2, divided likewise: the scale of rounding errors */
    double slack;  /* nearest, quadratic: sum of the jumps of terms within ORACLE_TIE of a tie */
    int64_t edges; /* terms so close to a tolerance edge that either decision is right; the value is then open */
    int64_t terms; /* pairs of non-zero weight whose s is in the record */
} oracle_value;

#define ORACLE_TIE 1e-5  /* samples */
#define ORACLE_EDGE 2e-4 /* samples; the edges themselves are shifted by 1e-3 */

int64_t oracle_points(const oracle_problem *problem);
/* Output values of one point and one frame: kept transmits x kept receives. */
int64_t oracle_values(const oracle_problem *problem);
void oracle_position(const oracle_problem *problem, int64_t point, long double position[3]);

/* Values of one point, value[frame - first_frame][kept transmit][kept receive]. False when out of memory. */
bool oracle_point(const oracle_problem *problem, int64_t point, int64_t first_frame, int64_t frames,
                  oracle_value *value);

/* The whole image, value[frame][kept transmit][kept receive][point]. */
bool oracle_image(const oracle_problem *problem, int64_t frames, oracle_value *value);

/* One stored sample as the formula sees it, parts in value[0] and value[1]. */
void oracle_sample(const oracle_problem *problem, int64_t index, double value[2]);
bool oracle_is_complex(oracle_type type);
int64_t oracle_type_bytes(oracle_type type);

/* IEEE binary16. The conversion to it rounds to nearest even. */
double oracle_half_to_double(uint16_t bits);
uint16_t oracle_double_to_half(double value);

#ifdef __cplusplus
}
#endif

#endif
