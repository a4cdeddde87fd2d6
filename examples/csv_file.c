#include "csv_file.h"

#include "checked.h"
#include "whole_file.h"

#include <stdlib.h>
#include <string.h>

/* Cuts the next line off *text, without line end and blanks around it; NULL at the end. */
static char *next_line(char **text)
{
    char *line = *text;
    if (!*line)
        return NULL;
    char *end = line + strcspn(line, "\n");
    *text = *end ? end + 1 : end;
    while (end > line && strchr(" \t\r\n", end[-1]))
        end--;
    *end = 0;
    return line + strspn(line, " \t");
}

static unsigned count_columns(const char *line)
{
    unsigned columns = 1;
    for (; *line; line++)
        columns += *line == ',';
    return columns;
}

void csv_read(const char *path, const char *header, unsigned required, struct csv_table *table)
{
    uint64_t bytes;
    char *text = read_text(path, (uint64_t)1 << 32, &bytes), *rest = text;
    char *line = next_line(&rest);
    size_t length = line ? strlen(line) : 0;
    unsigned columns = line ? count_columns(line) : 0;
    if (!line || columns < required || strncmp(line, header, length) != 0 || (header[length] && header[length] != ','))
        fail("%s: header is '%.80s', expected '%s'%s", path, line ? line : "", header,
             required < count_columns(header) ? " (the last column may be missing)" : "");

    uint64_t rows = 0, room = 0;
    for (const char *c = rest; *c; c++)
        room += *c == '\n';
    double *values = allocate(product(room + 1, columns, path), sizeof *values, path);
    for (uint64_t number = 2; (line = next_line(&rest)); number++) {
        if (!*line)
            continue;
        if (count_columns(line) != columns)
            fail("%s line %llu: '%.80s' has %u columns, expected %u", path, (unsigned long long)number, line,
                 count_columns(line), columns);
        for (unsigned k = 0; k < columns; k++) {
            char *field = line + strspn(line, " \t");
            size_t whole = strcspn(line, ",");
            char *end = line + whole;
            line = end + 1;
            while (end > field && strchr(" \t", end[-1]))
                end--;
            *end = 0;
            if (!parse_number(field, &values[rows * columns + k]))
                fail("%s line %llu: column %u is '%.80s', expected a finite number", path, (unsigned long long)number,
                     k + 1, field);
        }
        rows++;
    }
    if (!rows)
        fail("%s: no rows under the header", path);
    free(text);
    *table = (struct csv_table){rows, columns, values};
}
