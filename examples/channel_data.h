/* The samples of a recording: read from its file, filtered, and described to the library. */
#ifndef CHANNEL_DATA_H
#define CHANNEL_DATA_H

#include "acquisition_file.h"
#include "spectrum.h"

struct channel_data {
    das_type type;
    void *samples; /* to be freed */
    uint64_t count, bytes;
    double offset;            /* still to be subtracted */
    uint64_t first, frames;   /* where the first of the frames wanted begins, and how many are wanted */
};

/* Reads `frames` frames from frame `first` on, and no others where the file's order allows it. */
void channel_data_read(const struct recording *recording, uint64_t first, uint64_t frames, struct channel_data *data);

/* Filters real samples into float, or complex float; the layout stays. `option` is named in messages. */
void channel_data_filter(const struct recording *recording, const struct spectrum_filter *filter, const char *option,
                         struct channel_data *data);

das_status channel_data_describe(const struct recording *recording, const struct channel_data *data,
                                 das_acquisition *acquisition, das_error *error);

#endif
