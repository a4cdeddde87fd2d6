/* What the programs share: messages, memory and numbers. Whatever goes wrong here ends the program with one line on
   stderr and exit status 1, and without leaving a half-written file. */
#ifndef CHECKED_H
#define CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define CHECKED_PRINTF __attribute__((format(printf, 1, 2)))
#else
#define CHECKED_PRINTF
#endif

/* The name put before every message. */
void name_program(const char *name);

/* Prints one line (control characters become '?'), removes the file named by remove_on_failure, exits with 1. */
_Noreturn void fail(const char *format, ...) CHECKED_PRINTF;

/* The file that fail(), or a signal that ends the program, removes; NULL for none. The path is not copied. */
void remove_on_failure(const char *path);

/* Fails if what was printed could not be written. */
void finish_printing(void);

/* Memory for count things of the given size, not cleared; `what` names it in the message. */
void *allocate(uint64_t count, uint64_t size, const char *what);

/* a * b, or failure when it does not fit into 63 bits. */
uint64_t product(uint64_t a, uint64_t b, const char *what);

/* A copy of a formatted text, to be freed. */
char *format_text(const char *format, ...) CHECKED_PRINTF;

/* True when the whole text is one finite decimal number (no hexadecimal, no infinity, no blanks). */
bool parse_number(const char *text, double *value);

/* True when the whole text is one decimal count of at most 2^63 - 1. */
bool parse_count(const char *text, uint64_t *value);

#endif
