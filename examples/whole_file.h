/* Files read whole, and files written whole or not at all. */
#ifndef WHOLE_FILE_H
#define WHOLE_FILE_H

#include <stdint.h>
#include <stdio.h>

/* A text file with a NUL behind it, at most `limit` bytes; to be freed. */
char *read_text(const char *path, uint64_t limit, uint64_t *bytes);

/* Opens a regular file for reading and tells its size. */
FILE *open_input(const char *path, uint64_t *bytes);

/* Reads exactly `bytes` bytes from `offset`. */
void read_bytes(FILE *file, const char *path, uint64_t offset, void *memory, uint64_t bytes);

/* `name` beside the file `beside`, unless it is absolute; to be freed. */
char *path_beside(const char *beside, const char *name);

/* An output file grows under a temporary name in the same folder; finish_output flushes and renames it. */
struct output_file {
    FILE *file;
    char *path;
    char *temporary;
};
void open_output(struct output_file *output, const char *path);
void write_bytes(struct output_file *output, const void *memory, uint64_t bytes);
void finish_output(struct output_file *output);

#endif
