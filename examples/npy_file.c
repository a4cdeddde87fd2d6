#include "npy_file.h"

#include "checked.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Steps over blanks, then over `token` when it is there. */
static bool accept(const char **text, const char *token)
{
    while (isspace((unsigned char)**text))
        ++*text;
    if (strncmp(*text, token, strlen(token)) != 0)
        return false;
    *text += strlen(token);
    return true;
}

static bool accept_string(const char **text, char *string, size_t room)
{
    if (!accept(text, "'") && !accept(text, "\""))
        return false;
    char quote = (*text)[-1];
    const char *end = strchr(*text, quote);
    if (!end || (size_t)(end - *text) >= room)
        return false;
    memcpy(string, *text, (size_t)(end - *text));
    string[end - *text] = 0;
    *text = end + 1;
    return true;
}

static bool accept_shape(const char **text, struct npy_header *header)
{
    if (!accept(text, "("))
        return false;
    while (!accept(text, ")")) {
        char digits[24];
        size_t length;
        accept(text, "");
        length = strspn(*text, "0123456789");
        if (header->axes == NPY_AXES || length >= sizeof digits)
            return false;
        memcpy(digits, *text, length);
        digits[length] = 0;
        *text += length;
        if (!parse_count(digits, &header->shape[header->axes++]))
            return false;
        if (!accept(text, ","))
            return accept(text, ")");
    }
    return true;
}

static bool parse_dictionary(const char *text, struct npy_header *header)
{
    unsigned seen = 0;
    if (!accept(&text, "{"))
        return false;
    while (!accept(&text, "}")) {
        char key[16];
        unsigned bit;
        if (!accept_string(&text, key, sizeof key) || !accept(&text, ":"))
            return false;
        if (!strcmp(key, "descr")) {
            bit = 1;
            if (!accept_string(&text, header->dtype, sizeof header->dtype))
                return false;
        } else if (!strcmp(key, "fortran_order")) {
            bit = 2;
            header->fortran_order = accept(&text, "True");
            if (!header->fortran_order && !accept(&text, "False"))
                return false;
        } else if (!strcmp(key, "shape")) {
            bit = 4;
            if (!accept_shape(&text, header))
                return false;
        } else {
            return false;
        }
        if (seen & bit)
            return false;
        seen |= bit;
        if (!accept(&text, ",")) {
            if (!accept(&text, "}"))
                return false;
            break;
        }
    }
    accept(&text, "");
    return seen == 7 && !*text;
}

void npy_read_header(FILE *file, const char *path, uint64_t file_bytes, struct npy_header *header)
{
    unsigned char start[12] = {0};
    memset(header, 0, sizeof *header);
    if (file_bytes < 10)
        fail("%s: %llu bytes, too short for a .npy file", path, (unsigned long long)file_bytes);
    read_bytes(file, path, 0, start, file_bytes < 12 ? file_bytes : 12);
    if (memcmp(start, "\x93NUMPY", 6) != 0 || start[6] < 1 || start[6] > 3)
        fail("%s: does not start like a .npy file of version 1 to 3", path);
    uint64_t length = start[8] | (uint64_t)start[9] << 8;
    uint64_t offset = 10;
    if (start[6] > 1) {
        length |= (uint64_t)start[10] << 16 | (uint64_t)start[11] << 24;
        offset = 12;
    }
    if (length > 65535 || length + offset > file_bytes)
        fail("%s: header of %llu bytes does not fit the file", path, (unsigned long long)length);
    char *text = allocate(length + 1, 1, path);
    read_bytes(file, path, offset, text, length);
    text[length] = 0;
    if (strlen(text) != length || !parse_dictionary(text, header))
        fail("%s: header '%.100s' is not the dictionary of a .npy file with at most %d axes", path, text, NPY_AXES);
    header->data_offset = offset + length;
    free(text);
}

void npy_write_header(struct output_file *output, const char *dtype, unsigned axes, const uint64_t *shape)
{
    char text[256] = {0};
    int length = snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (", dtype);
    for (unsigned k = 0; k < axes; k++)
        length += snprintf(text + length, sizeof text - (size_t)length, "%llu, ",
                           (unsigned long long)shape[k]);
    length += snprintf(text + length, sizeof text - (size_t)length, "), }");
    /* data starts at a multiple of 64 bytes */
    unsigned padded = (10U + (unsigned)length + 1 + 63) / 64 * 64 - 10;
    memset(text + length, ' ', padded - 1 - (unsigned)length);
    text[padded - 1] = '\n';
    const unsigned char start[10] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (unsigned char)(padded & 255),
                                     (unsigned char)(padded >> 8)};
    write_bytes(output, start, sizeof start);
    write_bytes(output, text, padded);
}
