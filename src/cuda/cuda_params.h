/* What the host tells the kernels: read by C and by CUDA C++. Device addresses are
 * 64-bit numbers. */
#ifndef DAS_CUDA_PARAMS_H
#define DAS_CUDA_PARAMS_H

#include <stdint.h>

typedef struct das_cuda_transmit {
    double point[3]; /* source, focus, or the plane's origin; metres */
    double direction[3];
    double constant;  /* samples: (constant_s + d_t - t0) fs */
    double phase;     /* turns at s = 0, less than one */
    double scaled[3]; /* point times samples_per_m */
    int32_t wave;     /* DAS_WAVE_* */
    int32_t reserved;
} das_cuda_transmit;

typedef struct das_cuda_element { /* read 16 bytes at a time */
    double scaled[3];             /* position times samples_per_m */
    double constant;              /* samples: d_r fs */
    double position[3];
    double normal[3];
    double reserved[2];
} das_cuda_element;

typedef struct das_cuda_pair { /* as das_pair */
    int64_t offset;
    double weight;
    int32_t receive, transmit;
} das_cuda_pair;

/* Everything that a plan fixes, then what a launch adds. */
typedef struct das_cuda_params {
    uint64_t transmit, element, pair;           /* das_cuda_transmit[], das_cuda_element[], das_cuda_pair[] */
    uint64_t output_first;                      /* int64[]: pairs of output o are output_first[o] .. output_first[o + 1] - 1 */
    uint64_t axis[3];                           /* double[]: polar angles, elevations, radii; or points [0][count][3] */
    uint64_t window_table;                      /* float[], or double[] with double precision */
    uint64_t transmit_times, receive_times;     /* double[][point], samples; 0: none */
    uint64_t transmit_weights, receive_weights; /* float[][point]; 0: none */
    double samples_per_m, tolerance_m, inverse_2f, turns_per_sample, last, window_parameter, sample_offset;
    int64_t counts[3], point_count;
    double origin[3], steps[3][3];
    int64_t window_count, sample_count, frame_stride, sample_stride;
    int64_t image_first, image_strides[6];
    int64_t receive_count, transmit_count;
    int32_t grid_kind, interpolation, window, clamp, normalization, aperture;
    int32_t data_type, image_type, data_complex, rotate, keep_transmit, keep_receive;
    int32_t simple;  /* no clamping: see find_simple() */
    int32_t patch_a; /* few frames: points of a block along axis 0, of 32 */
    int64_t patches_a;
    int32_t z_normals, unit_weight;
    float inverse_2f_float, turns_float; /* of inverse_2f, turns_per_sample: conversions are slow */
    uint64_t pair_weight;                /* dense data, float[transmit][receive]; 0: all 1 */
    int64_t data_first;                  /* dense data: of sample 0 of transmit 0, receive 0, frame 0 */
    int64_t transmit_stride, receive_stride;
    int32_t value_bytes, sample_bytes; /* of a stored sample; from one to the next */

    /* the launch */
    uint64_t data, image;
    int64_t first_frame, frame_count, image_first_frame; /* frames of data, how many, first of the image */
    int64_t first_point, end_point, first_output;
    int64_t first_transmit, end_transmit, first_pair, end_pair;
    int32_t accumulate, split; /* split: threads that share the pairs of a point */
    int32_t aligned, reserved; /* data lie at a multiple of value_bytes: complex samples may be read whole */
} das_cuda_params;

enum { DAS_CUDA_GENERIC_THREADS = 128, DAS_CUDA_FEW_THREADS = 256 };

/* ---------------------------------------------------------------------------
 * The frames path: see cuda_frames.cuh
 * ------------------------------------------------------------------------- */

enum {
    DAS_CUDA_FRAMES_THREADS = 256,
    DAS_CUDA_FRAMES_POINTS = 8, /* of a warp, side by side */
    DAS_CUDA_FRAMES_ZEROS = 6,  /* rows of zeros before the packed data */
    DAS_CUDA_PACK_TILE = 32,    /* samples and frames that a block packs */
    DAS_CUDA_TENSOR_AFTER = 4   /* the tensor path: rows of zeros after the packed data, which windows may reach into */
};

typedef struct das_cuda_frames {
    das_cuda_params common; /* first_frame, frame_count: those that are packed */
    uint64_t packed;        /* float or float2 [pair][sample][frame], after the rows of zeros */
    int64_t row_floats;     /* from one sample to the next: whole blocks of the kernel */
    int64_t pair_rows;      /* samples of a record and the zeros around them */
    int64_t packed_pair;    /* the first that is packed */
    int64_t rows;           /* of the packed pairs, and the zeros before them */
    int32_t lead;           /* of which before the record */
    int32_t axis[3];        /* grid axes: of a warp's points, and the others */
    int32_t warps;          /* of a block along axis[0]; the rest are along axis[1] */
    int32_t blocks[2];      /* along these axes */
    int32_t reversed;       /* order of blocks: the last first */
    int32_t first_block, first_slice;

    /* The tensor path, see cuda_tensor.cuh: packed is float16, a row holds two complex or four real samples. */
    uint64_t peaks;            /* uint32[frame]: bits of the largest magnitude of what is packed; 0: use scale */
    float scale, weight_scale; /* powers of two by which samples and weights are multiplied */
    int32_t frames_each;       /* of a block */
    int32_t patch_a;           /* of a warp's points, how many along axis[0]; the rest are along axis[1] */
} das_cuda_frames;

#define DAS_CUDA_MAGIC 12582912.0f /* 1.5 2^23: a float added to it has its rounded value in its low bits */
#define DAS_CUDA_MAGIC_BITS 0x4B400000u

/* ---------------------------------------------------------------------------
 * The tile path: see cuda_tile.cuh
 * ------------------------------------------------------------------------- */

enum {
    DAS_CUDA_TILE = 32,           /* points along each side of a tile */
    DAS_CUDA_TILE_THREADS = 512,  /* two points each */
    DAS_CUDA_TILE_WINDOW = 128,   /* samples of a trace that a tile may need */
    DAS_CUDA_TILE_ROWS_REAL = 32, /* transmits worked on together */
    DAS_CUDA_TILE_ROWS_IQ = 8,
    DAS_CUDA_TILE_GROUP = 8,      /* rows of a folded matrix start at a multiple of this */
    DAS_CUDA_TILE_ELEMENTS = 1024 /* most transmits, most receive elements */
};

typedef struct das_cuda_tile {
    das_cuda_params common;
    uint64_t packed;       /* float or float2 [row][stride] */
    uint64_t flags_offset; /* bytes from there to a byte per row: 1 if it holds something that is not finite */
    double second[3];      /* from a thread's first point to its second, in samples */
    int64_t rows;          /* packed */
    int64_t sample_count;
    int64_t frame;                  /* of the data */
    int32_t axis_a, axis_b, axis_c; /* grid axes: across and down a tile, and the third */
    int32_t tiles_a, tiles_b;
    int32_t slow_a, reversed;    /* order of tiles: along axis b first; the last first */
    int32_t half_window, window; /* samples; window base = reference - half_window; multiples of 4 */
    int32_t lead;                /* zeros in front of a packed record */
    int32_t stride;              /* samples from one packed row to the next */
    int32_t folded;
    int32_t first_row_transmit, end_row_transmit; /* transmits that are packed */
    int32_t first_tile, first_slice;              /* of the launch */
    float radius;                                 /* of a tile, in samples of one-way path */
    int32_t line;   /* transmits are points, which have the elements' one y and z; no aperture: kernels of their own */
    uint32_t magic; /* bits of DAS_CUDA_MAGIC: not a constant to the compiler, which would add it to every index apart */
} das_cuda_tile;

#endif
