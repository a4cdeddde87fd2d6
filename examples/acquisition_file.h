/* acquisition.json, the plain description of a recording, read strictly: whatever is not understood ends the program. */
#ifndef ACQUISITION_FILE_H
#define ACQUISITION_FILE_H

#include <das/das.h>
#include <stdbool.h>
#include <stdint.h>

enum axis { AXIS_FRAME, AXIS_TRANSMIT, AXIS_RECEIVE, AXIS_TRACE, AXIS_SAMPLE, AXIS_COUNT };

/* What a sample of the file is. Those above the library's own types are turned into doubles on reading. */
struct sample_type {
    const char *name; /* NumPy's, or with x2 for interleaved pairs */
    das_type type;    /* in memory */
    uint64_t bytes;   /* in the file */
    bool is_complex;
    bool is_wide; /* <i4 and <i8 */
};

enum transmit_kind {
    TRANSMIT_ELEMENT,
    TRANSMIT_PLANE,
    TRANSMIT_DIVERGING,
    TRANSMIT_FOCUSED,
    TRANSMIT_NONE,
};

struct transmit {
    enum transmit_kind kind;
    double vector[3]; /* position, direction, source or focus */
    double origin_m[3];
    double weight, delay_s;
};

struct recording {
    char *json_path, *data_path;
    bool is_text;
    struct sample_type sample;
    uint64_t data_offset;         /* bytes of the file before the first sample */
    uint64_t count[AXIS_COUNT];   /* 1 where the data lack the axis */
    int64_t stride[AXIS_COUNT];   /* in samples; 0 where the data lack the axis */
    bool present[AXIS_COUNT];
    bool frames_outermost;
    uint64_t samples; /* of the whole file */
    double sample_offset;

    double sampling_frequency_hz, sound_speed_m_s, demodulation_frequency_hz;
    uint64_t elements, transmits, traces; /* traces: 0 without a list */
    double *positions_m;                  /* [element][3] */
    double *normals, *receive_weights, *receive_delays_s; /* NULL for the default */
    struct transmit *transmit;
    double *start_times_s; /* [transmit] */
    int64_t *trace_transmit, *trace_receive;
    double *trace_weights;
};

void recording_read(const char *path, struct recording *recording);
void recording_free(struct recording *recording);

/* Everything but the data's type, layout and frames. */
das_status recording_describe(const struct recording *recording, das_acquisition *acquisition, das_error *error);

#endif
