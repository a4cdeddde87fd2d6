/* Comma-separated numbers under a fixed header line. */
#ifndef CSV_FILE_H
#define CSV_FILE_H

#include <stdint.h>

struct csv_table {
    uint64_t rows;
    unsigned columns;
    double *values; /* [row][column], to be freed */
};

/* The header must be `header`, or its first `required` columns or more. Ends the program on anything else. */
void csv_read(const char *path, const char *header, unsigned required, struct csv_table *table);

#endif
