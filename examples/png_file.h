/* Grey pictures as PNG, through libpng. */
#ifndef PNG_FILE_H
#define PNG_FILE_H

#include "whole_file.h"

#include <stdint.h>

/* Ends the program when it was built without libpng or the picture is larger than a PNG can be. */
void png_check(uint64_t width, uint64_t height);

/* 8-bit grey, first row on top. */
void png_write(struct output_file *output, uint64_t width, uint64_t height, const unsigned char *pixels);

#endif
