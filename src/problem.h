/* The validated, normalised description of what to compute: made by the front end
 * from an acquisition, a grid and options, read by the backends when they plan.
 *
 * Everything here has been checked: counts are at least 1 and their products fit
 * int64, numbers are finite (but for NaN in time tables), directions are unit
 * vectors, indices are in range. */
#ifndef DAS_PROBLEM_H
#define DAS_PROBLEM_H

#include "das/das.h"

#include <stdbool.h>

typedef enum das_transmit_kind {
    DAS_TRANSMIT_ELEMENT,   /* |p - point| / c */
    DAS_TRANSMIT_PLANE,     /* (p - origin).direction / c */
    DAS_TRANSMIT_DIVERGING, /* |p - point| / c + constant_s, constant_s = -|origin - point| / c */
    DAS_TRANSMIT_FOCUSED,   /* constant_s + sgn |p - point| / c, constant_s = |origin - point| / c,
                               sgn = +1 if (p - point).direction >= -1e-3 c / fs, else -1 */
    DAS_TRANSMIT_NONE       /* 0 */
} das_transmit_kind;

typedef struct das_transmit {
    das_transmit_kind kind;
    double point[3];     /* element, virtual source or focus */
    double origin[3];    /* plane */
    double direction[3]; /* plane: n; focused: (F - o) / |F - o| */
    double constant_s;
    double delay_s;      /* d_t */
    double start_time_s; /* t0_t */
    double weight;       /* contained in the pairs' weights too */
} das_transmit;

typedef struct das_element {
    double position[3];
    double normal[3];
    double delay_s; /* d_r */
    double weight;  /* contained in the pairs' weights too */
} das_element;

/* One term of the sum over (transmit, receive). Pairs of weight 0 are left out. */
typedef struct das_pair {
    int64_t offset; /* of sample 0 of frame 0, in elements from the start of the data */
    double weight;  /* w_tr w_t w_r */
    int32_t receive;
    int32_t transmit;
} das_pair;

typedef enum das_grid_kind { DAS_GRID_CARTESIAN, DAS_GRID_POLAR, DAS_GRID_POINTS } das_grid_kind;

struct das_grid {
    das_grid_kind kind;
    int64_t counts[3]; /* of axes 0, 1, 2 */
    int64_t point_count;
    double origin[3];   /* Cartesian origin or polar apex */
    double steps[3][3]; /* Cartesian; 0 for axes of length 1 */
    double *values[3];  /* polar: angles (axis 0), elevations (1), radii (2); points: [0] is [count][3] */
};

/* Position of a point; the one definition of it on the host. */
void das_grid_point(const das_grid *grid, int64_t i0, int64_t i1, int64_t i2, double point[3]);

typedef struct das_problem {
    /* medium and sampling */
    double sampling_frequency_hz;
    double sound_speed_m_s;
    double demodulation_frequency_hz; /* 0 for real data */

    /* receive and transmit */
    int64_t receive_count;
    int64_t transmit_count;
    const das_element *receive;
    const das_transmit *transmit;

    /* pairs sorted by transmit, then receive (repeated pairs keep the order given):
     * those of transmit t are pair[pair_first[t]] .. pair[pair_first[t + 1] - 1] */
    int64_t pair_count; /* may be 0: the image is 0 */
    const das_pair *pair;
    const int64_t *pair_first;

    /* facts that allow fast paths */
    bool dense;       /* no trace list: every pair of non-zero weight is at first + t transmit_stride + r receive_stride */
    bool complete;    /* dense, and no pair has been left out for its weight */
    bool unit_weight; /* every pair has weight 1 */
    bool reciprocal;  /* element transmits at the receive elements, in order, and the pair list, weights and all delays
                         are symmetric, no aperture, no tables, nothing kept: tau(n,k) = tau(k,n) for every point */

    /* data, strides in elements of data_type (a complex sample is one) */
    das_type data_type;
    bool data_complex;
    int64_t sample_count;
    int64_t frame_count; /* the most that one call reconstructs */
    int64_t first;       /* contained in the pairs' offsets */
    int64_t frame_stride;
    int64_t transmit_stride; /* 0 with a trace list */
    int64_t receive_stride;  /* 0 with a trace list */
    int64_t trace_count;     /* 0 without a trace list; those of weight 0 included */
    int64_t trace_stride;    /* with a trace list */
    int64_t sample_stride;
    double sample_offset;

    /* grid: owned by the problem, as are the arrays above */
    das_grid grid;

    /* options */
    das_interpolation interpolation;
    double f_number; /* 0: no limit; 0 as well with a receive weight table */
    das_window window;
    double window_parameter;
    int64_t window_count; /* DAS_WINDOW_TABLE */
    const double *window_values;
    das_normalization normalization;
    bool keep_transmit;
    bool keep_receive;
    das_outside outside;
    das_precision precision;
    das_phase_reference phase_reference;
    bool incremental;
    bool fast_paths;
    int32_t slots;
    uint64_t memory_budget; /* bytes for plan and all slots; never 0 */

    /* tables, NULL if absent; valid only while the plan is being created or queried */
    const double *transmit_times_s;  /* [transmit_count][grid.point_count], NaN: no path */
    const double *receive_times_s;   /* [receive_count][grid.point_count], NaN: no path */
    const float *transmit_weights;   /* [transmit_count][grid.point_count] */
    const float *receive_weights;    /* [receive_count][grid.point_count] */

    /* image: frame, transmit, receive, axis 2, axis 1, axis 0 */
    das_type image_type;
    int64_t image_shape[6];
    int64_t image_first;
    int64_t image_strides[6];
    uint64_t input_bytes;  /* extent of frame_count frames */
    uint64_t output_bytes;
} das_problem;

#endif
