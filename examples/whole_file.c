#define _XOPEN_SOURCE 700
#define _FILE_OFFSET_BITS 64
#include "whole_file.h"

#include "checked.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

FILE *open_input(const char *path, uint64_t *bytes)
{
    struct stat about;
    /* Not waiting for the writer of a pipe, which is refused anyway. */
    int descriptor = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (descriptor < 0)
        fail("%s: cannot be opened for reading: %s", path, strerror(errno));
    if (fstat(descriptor, &about) || !S_ISREG(about.st_mode))
        fail("%s: not a regular file", path);
    FILE *file = fdopen(descriptor, "rb");
    if (!file)
        fail("%s: cannot be opened for reading: %s", path, strerror(errno));
    *bytes = (uint64_t)about.st_size;
    return file;
}

void read_bytes(FILE *file, const char *path, uint64_t offset, void *memory, uint64_t bytes)
{
    if (fseeko(file, (off_t)offset, SEEK_SET) || fread(memory, 1, (size_t)bytes, file) != (size_t)bytes)
        fail("%s: %llu bytes at offset %llu could not be read", path, (unsigned long long)bytes,
             (unsigned long long)offset);
}

char *read_text(const char *path, uint64_t limit, uint64_t *bytes)
{
    FILE *file = open_input(path, bytes);
    if (*bytes > limit)
        fail("%s: %llu bytes, expected a text of at most %llu", path, (unsigned long long)*bytes,
             (unsigned long long)limit);
    char *text = allocate(*bytes + 1, 1, path);
    read_bytes(file, path, 0, text, *bytes);
    text[*bytes] = 0;
    fclose(file);
    if (memchr(text, 0, (size_t)*bytes))
        fail("%s: holds a zero byte, expected text", path);
    return text;
}

char *path_beside(const char *beside, const char *name)
{
    const char *slash = strrchr(beside, '/');
    if (name[0] == '/' || !slash)
        return format_text("%s", name);
    return format_text("%.*s/%s", (int)(slash - beside), beside, name);
}

void open_output(struct output_file *output, const char *path)
{
    /* Through a symbolic link the file it names is written, not the link replaced. */
    char *resolved = realpath(path, NULL);
    output->path = format_text("%s", resolved ? resolved : path);
    output->temporary = format_text("%s.XXXXXX", output->path);
    free(resolved);
    int descriptor = mkstemp(output->temporary);
    if (descriptor < 0)
        fail("%s: cannot be written: %s", path, strerror(errno));
    remove_on_failure(output->temporary);
    /* mkstemp makes private files; an ordinary file obeys the umask */
    mode_t mask = umask(0);
    umask(mask);
    if (fchmod(descriptor, 0666 & ~mask) || !(output->file = fdopen(descriptor, "wb")))
        fail("%s: cannot be written: %s", path, strerror(errno));
}

void write_bytes(struct output_file *output, const void *memory, uint64_t bytes)
{
    if (fwrite(memory, 1, (size_t)bytes, output->file) != (size_t)bytes)
        fail("%s: writing failed: %s", output->path, strerror(errno));
}

void finish_output(struct output_file *output)
{
    if (ferror(output->file) || fflush(output->file) || fsync(fileno(output->file)))
        fail("%s: writing failed: %s", output->path, strerror(errno));
    if (fclose(output->file) || rename(output->temporary, output->path))
        fail("%s: cannot be written: %s", output->path, strerror(errno));
    remove_on_failure(NULL);
    free(output->temporary);
    free(output->path);
}
