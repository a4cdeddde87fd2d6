/* NumPy's .npy files: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html */
#ifndef NPY_FILE_H
#define NPY_FILE_H

#include "whole_file.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { NPY_AXES = 8 };

struct npy_header {
    char dtype[16];
    bool fortran_order; /* the first axis is the fastest */
    unsigned axes;
    uint64_t shape[NPY_AXES];
    uint64_t data_offset; /* bytes before the first sample */
};

/* Reads versions 1.0 to 3.0; ends the program on a malformed header. */
void npy_read_header(FILE *file, const char *path, uint64_t file_bytes, struct npy_header *header);

/* Writes a version 1.0 header in C order. */
void npy_write_header(struct output_file *output, const char *dtype, unsigned axes, const uint64_t *shape);

#endif
