#include "acquisition_file.h"

#include "checked.h"
#include "csv_file.h"
#include "npy_file.h"
#include "whole_file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct sample_type sample_types[] = {
    {"|i1", DAS_TYPE_I8, 1, false, false},   {"|u1", DAS_TYPE_U8, 1, false, false},
    {"<i2", DAS_TYPE_I16, 2, false, false},  {"<u2", DAS_TYPE_U16, 2, false, false},
    {"<i4", DAS_TYPE_F64, 4, false, true},   {"<i8", DAS_TYPE_F64, 8, false, true},
    {"<f2", DAS_TYPE_F16, 2, false, false},  {"<f4", DAS_TYPE_F32, 4, false, false},
    {"<f8", DAS_TYPE_F64, 8, false, false},  {"<c8", DAS_TYPE_CF32, 8, true, false},
    {"<i2x2", DAS_TYPE_CI16, 4, true, false}, {"<f2x2", DAS_TYPE_CF16, 4, true, false},
};
static const char sample_type_names[] = "one of |i1 |u1 <i2 <u2 <i4 <i8 <f2 <f4 <f8 <c8 <i2x2 <f2x2";
static const char *const axis_names[AXIS_COUNT] = {"frame", "transmit", "receive", "trace", "sample"};

static const struct sample_type *find_sample_type(const char *name)
{
    for (size_t k = 0; k < sizeof sample_types / sizeof *sample_types; k++)
        if (!strcmp(sample_types[k].name, name))
            return &sample_types[k];
    return NULL;
}

#ifdef DAS_HAVE_CJSON
#include <cjson/cJSON.h>

/* Where in the file: field, field[index], or field[index].key. */
struct place {
    const char *file, *field;
    int64_t index; /* -1: none */
    const char *key;
};

static struct place at(const char *file, const char *field)
{
    return (struct place){file, field, -1, NULL};
}

static _Noreturn void refuse(struct place place, const cJSON *value, const char *expected)
{
    char index[32] = "";
    char *text = value ? cJSON_PrintUnformatted(value) : NULL;
    if (place.index >= 0)
        snprintf(index, sizeof index, "[%lld]", (long long)place.index);
    fail("%s: %s%s%s%s is %.80s%s, expected %s", place.file, place.field, index, place.key ? "." : "",
         place.key ? place.key : "", text ? text : "missing", text && strlen(text) > 80 ? "..." : "", expected);
}

/* A list of allowed keys, closed by NULL. */
static void check_keys(struct place place, const cJSON *object, const char *const *allowed)
{
    if (!cJSON_IsObject(object))
        refuse(place, object, "an object");
    for (const cJSON *item = object->child; item; item = item->next) {
        const char *const *key = allowed;
        while (*key && strcmp(*key, item->string) != 0)
            key++;
        place.key = item->string;
        if (!*key)
            refuse(place, item, "no such key");
        for (const cJSON *earlier = object->child; earlier != item; earlier = earlier->next)
            if (!strcmp(earlier->string, item->string))
                refuse(place, item, "each key once");
    }
}

static const cJSON *find(const cJSON *object, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(object, key);
}

static double number(struct place place, const cJSON *item)
{
    if (!cJSON_IsNumber(item) || !isfinite(item->valuedouble))
        refuse(place, item, "a finite number");
    return item->valuedouble;
}

static double positive(struct place place, const cJSON *item)
{
    if (!cJSON_IsNumber(item) || !isfinite(item->valuedouble) || item->valuedouble <= 0)
        refuse(place, item, "a finite number above 0");
    return item->valuedouble;
}

static double optional_number(struct place place, const cJSON *item, double otherwise)
{
    return item ? number(place, item) : otherwise;
}

static const char *string(struct place place, const cJSON *item, const char *expected)
{
    if (!cJSON_IsString(item) || !item->valuestring[0])
        refuse(place, item, expected);
    return item->valuestring;
}

static void vector(struct place place, const cJSON *item, double out[3])
{
    const cJSON *part = cJSON_IsArray(item) ? item->child : NULL;
    int k = 0;
    for (; part; part = part->next, k++) {
        if (k == 3 || !cJSON_IsNumber(part) || !isfinite(part->valuedouble))
            refuse(place, item, "[x, y, z] of finite numbers");
        out[k] = part->valuedouble;
    }
    if (k != 3)
        refuse(place, item, "[x, y, z] of finite numbers");
}

static void direction(struct place place, const cJSON *item, double out[3])
{
    vector(place, item, out);
    if (out[0] == 0 && out[1] == 0 && out[2] == 0)
        refuse(place, item, "a vector that is not zero");
}

static uint64_t length(const cJSON *array)
{
    uint64_t count = 0;
    for (const cJSON *item = array->child; item; item = item->next)
        count++;
    return count;
}

/* [[x, y, z], ...] or the name of a CSV; returns the number of rows. */
static uint64_t read_vectors(struct place place, const cJSON *item, double **out)
{
    if (cJSON_IsString(item)) {
        struct csv_table table;
        char *path = path_beside(place.file, item->valuestring);
        csv_read(path, "x_m,y_m,z_m", 3, &table);
        free(path);
        *out = table.values;
        return table.rows;
    }
    if (!cJSON_IsArray(item) || !item->child)
        refuse(place, item, "[[x, y, z], ...] or the name of a CSV file");
    uint64_t count = length(item);
    *out = allocate(count, 3 * sizeof **out, place.field);
    place.index = 0;
    for (const cJSON *row = item->child; row; row = row->next, place.index++)
        vector(place, row, *out + 3 * place.index);
    return count;
}

/* One number per thing, or NULL when the key is missing. */
static double *optional_list(struct place place, const cJSON *item, uint64_t count, const char *things)
{
    char expected[96];
    if (!item)
        return NULL;
    snprintf(expected, sizeof expected, "a list of %llu numbers, one per %s", (unsigned long long)count, things);
    if (!cJSON_IsArray(item) || length(item) != count)
        refuse(place, item, expected);
    double *list = allocate(count, sizeof *list, place.field);
    place.index = 0;
    for (const cJSON *value = item->child; value; value = value->next, place.index++)
        list[place.index] = number(place, value);
    return list;
}

static void read_receive(const char *file, const cJSON *receive, struct recording *recording)
{
    static const char *const keys[] = {"positions_m", "normals", "weights", "delays_s", NULL};
    struct place place = at(file, "receive.normals");
    if (!receive)
        refuse(at(file, "receive"), NULL, "an object with positions_m");
    check_keys(at(file, "receive"), receive, keys);
    recording->elements = read_vectors(at(file, "receive.positions_m"), find(receive, "positions_m"), &recording->positions_m);
    const cJSON *normals = find(receive, "normals");
    if (normals) {
        uint64_t rows = read_vectors(place, normals, &recording->normals);
        if (rows != recording->elements)
            fail("%s: receive.normals has %llu rows, expected %llu, one per element", file, (unsigned long long)rows,
                 (unsigned long long)recording->elements);
        for (uint64_t k = 0; k < rows; k++) {
            const double *u = recording->normals + 3 * k;
            if (u[0] == 0 && u[1] == 0 && u[2] == 0)
                fail("%s: receive.normals[%llu] is [0, 0, 0], expected a vector that is not zero", file,
                     (unsigned long long)k);
        }
    }
    recording->receive_weights =
        optional_list(at(file, "receive.weights"), find(receive, "weights"), recording->elements, "element");
    recording->receive_delays_s =
        optional_list(at(file, "receive.delays_s"), find(receive, "delays_s"), recording->elements, "element");
}

static void read_transmit(struct place place, const cJSON *item, const struct recording *recording, struct transmit *transmit)
{
    static const char *const element[] = {"type", "weight", "delay_s", "position_m", "index", NULL};
    static const char *const plane[] = {"type", "weight", "delay_s", "angle_rad", "direction", "origin_m", NULL};
    static const char *const diverging[] = {"type", "weight", "delay_s", "source_m", "origin_m", NULL};
    static const char *const focused[] = {"type", "weight", "delay_s", "focus_m", "origin_m", NULL};
    static const char *const none[] = {"type", "weight", "delay_s", NULL};
    static const struct {
        const char *name;
        const char *const *keys;
    } kinds[] = {[TRANSMIT_ELEMENT] = {"element", element},
                 [TRANSMIT_PLANE] = {"plane", plane},
                 [TRANSMIT_DIVERGING] = {"diverging", diverging},
                 [TRANSMIT_FOCUSED] = {"focused", focused},
                 [TRANSMIT_NONE] = {"none", none}};
    static const char expected[] = "one of \"element\", \"plane\", \"diverging\", \"focused\", \"none\"";
    if (!cJSON_IsObject(item))
        refuse(place, item, "an object");
    place.key = "type";
    const char *type = string(place, find(item, "type"), expected);
    unsigned kind = 0;
    while (kind <= TRANSMIT_NONE && strcmp(kinds[kind].name, type) != 0)
        kind++;
    if (kind > TRANSMIT_NONE)
        refuse(place, find(item, "type"), expected);
    place.key = NULL;
    check_keys(place, item, kinds[kind].keys);

    memset(transmit, 0, sizeof *transmit);
    transmit->kind = (enum transmit_kind)kind;
    place.key = "weight";
    transmit->weight = optional_number(place, find(item, "weight"), 1);
    place.key = "delay_s";
    transmit->delay_s = optional_number(place, find(item, "delay_s"), 0);
    const cJSON *origin = find(item, "origin_m");
    place.key = "origin_m";
    if (origin)
        vector(place, origin, transmit->origin_m);

    const cJSON *value;
    switch (transmit->kind) {
    case TRANSMIT_ELEMENT: {
        const cJSON *index = find(item, "index");
        value = find(item, place.key = "position_m");
        if (!value == !index) {
            place.key = NULL;
            refuse(place, item, "exactly one of position_m and index");
        }
        if (value) {
            vector(place, value, transmit->vector);
        } else {
            place.key = "index";
            double n = cJSON_IsNumber(index) ? index->valuedouble : -1;
            if (!(n >= 0 && n < (double)recording->elements && n == floor(n)))
                refuse(place, index, "the 0-based index of a receive element");
            memcpy(transmit->vector, recording->positions_m + 3 * (uint64_t)n, sizeof transmit->vector);
        }
        break;
    }
    case TRANSMIT_PLANE: {
        const cJSON *angle = find(item, "angle_rad");
        value = find(item, place.key = "direction");
        if (!value == !angle) {
            place.key = NULL;
            refuse(place, item, "exactly one of angle_rad and direction");
        }
        if (value) {
            direction(place, value, transmit->vector);
        } else {
            place.key = "angle_rad";
            double a = number(place, angle);
            if (fabs(a) > 3.14159265358979323846)
                refuse(place, angle, "an angle of -pi to pi");
            transmit->vector[0] = sin(a);
            transmit->vector[2] = cos(a);
        }
        break;
    }
    case TRANSMIT_DIVERGING:
        value = find(item, place.key = "source_m");
        vector(place, value, transmit->vector);
        break;
    case TRANSMIT_FOCUSED:
        value = find(item, place.key = "focus_m");
        vector(place, value, transmit->vector);
        if (!memcmp(transmit->vector, transmit->origin_m, sizeof transmit->vector) ||
            (transmit->vector[0] == transmit->origin_m[0] && transmit->vector[1] == transmit->origin_m[1] &&
             transmit->vector[2] == transmit->origin_m[2]))
            refuse(place, value, "a focus that is not the origin");
        break;
    case TRANSMIT_NONE:
        break;
    }
}

static void read_transmits(const char *file, const cJSON *transmits, struct recording *recording)
{
    struct place place = at(file, "transmits");
    if (cJSON_IsString(transmits) && !strcmp(transmits->valuestring, "elements")) {
        recording->transmits = recording->elements;
        recording->transmit = allocate(recording->transmits, sizeof *recording->transmit, "transmits");
        for (uint64_t k = 0; k < recording->transmits; k++) {
            recording->transmit[k] = (struct transmit){.kind = TRANSMIT_ELEMENT, .weight = 1};
            memcpy(recording->transmit[k].vector, recording->positions_m + 3 * k, 3 * sizeof(double));
        }
        return;
    }
    if (!cJSON_IsArray(transmits) || !transmits->child)
        refuse(place, transmits, "\"elements\" or a list of at least one transmit");
    recording->transmits = length(transmits);
    recording->transmit = allocate(recording->transmits, sizeof *recording->transmit, "transmits");
    place.index = 0;
    for (const cJSON *item = transmits->child; item; item = item->next, place.index++)
        read_transmit(place, item, recording, &recording->transmit[place.index]);
}

static void read_start_times(const char *file, const cJSON *item, struct recording *recording)
{
    uint64_t count = recording->transmits;
    if (cJSON_IsArray(item)) {
        recording->start_times_s = optional_list(at(file, "start_time_s"), item, count, "transmit");
        return;
    }
    double start = optional_number(at(file, "start_time_s"), item, 0);
    recording->start_times_s = allocate(count, sizeof(double), "start_time_s");
    for (uint64_t k = 0; k < count; k++)
        recording->start_times_s[k] = start;
}

static void read_traces(const char *file, const cJSON *item, struct recording *recording)
{
    struct csv_table table;
    char *path = path_beside(file, string(at(file, "traces"), item, "the name of a CSV file"));
    csv_read(path, "transmit,receive,weight", 2, &table);
    recording->traces = table.rows;
    recording->trace_transmit = allocate(table.rows, sizeof(int64_t), path);
    recording->trace_receive = allocate(table.rows, sizeof(int64_t), path);
    recording->trace_weights = allocate(table.rows, sizeof(double), path);
    for (uint64_t k = 0; k < table.rows; k++) {
        const double *row = table.values + k * table.columns;
        const double limits[2] = {(double)recording->transmits, (double)recording->elements};
        for (int n = 0; n < 2; n++)
            if (!(row[n] >= 0 && row[n] < limits[n] && row[n] == floor(row[n])))
                fail("%s row %llu: %s is %.17g, expected an integer of 0 to %.0f", path, (unsigned long long)k + 1,
                     n ? "receive" : "transmit", row[n], limits[n] - 1);
        recording->trace_transmit[k] = (int64_t)row[0];
        recording->trace_receive[k] = (int64_t)row[1];
        recording->trace_weights[k] = table.columns == 3 ? row[2] : 1;
    }
    free(table.values);
    free(path);
}

/* data.axes, fastest last: returns their number. */
static unsigned read_axes(const char *file, const cJSON *axes, enum axis order[AXIS_COUNT], struct recording *recording)
{
    unsigned count = 0;
    struct place place = at(file, "data.axes");
    if (!cJSON_IsArray(axes))
        refuse(place, axes, "a list of \"frame\", \"transmit\", \"receive\", \"sample\", or \"trace\" and \"sample\"");
    for (const cJSON *item = axes->child; item; item = item->next) {
        unsigned axis = 0;
        while (axis < AXIS_COUNT && !(cJSON_IsString(item) && !strcmp(item->valuestring, axis_names[axis])))
            axis++;
        if (axis == AXIS_COUNT)
            refuse(place, axes, "only the names \"frame\", \"transmit\", \"receive\", \"trace\", \"sample\"");
        if (recording->present[axis])
            refuse(place, axes, "each axis once");
        recording->present[axis] = true;
        order[count++] = (enum axis)axis;
    }
    if (!recording->present[AXIS_SAMPLE])
        refuse(place, axes, "a \"sample\" axis");
    if (recording->present[AXIS_TRACE] && (recording->present[AXIS_TRANSMIT] || recording->present[AXIS_RECEIVE]))
        refuse(place, axes, "either a \"trace\" axis or \"transmit\" and \"receive\"");
    return count;
}

static void read_shape(const char *file, const cJSON *shape, unsigned axes, uint64_t lengths[AXIS_COUNT])
{
    struct place place = at(file, "data.shape");
    if (!cJSON_IsArray(shape) || length(shape) != axes)
        refuse(place, shape, "a list with one length per axis of data.axes");
    unsigned k = 0;
    for (const cJSON *item = shape->child; item; item = item->next, k++) {
        if (!cJSON_IsNumber(item) || !(item->valuedouble >= 1 && item->valuedouble <= 9007199254740992.0) ||
            item->valuedouble != floor(item->valuedouble))
            refuse(place, shape, "integers of at least 1");
        lengths[k] = (uint64_t)item->valuedouble;
    }
}

static void check_count(const char *file, const char *axis, uint64_t count, const char *things, uint64_t expected)
{
    if (count != expected)
        fail("%s: data.shape has %llu on the %s axis, expected %llu, one per %s", file, (unsigned long long)count, axis,
             (unsigned long long)expected, things);
}

static void check_counts(const char *file, const struct recording *r)
{
    if (r->present[AXIS_TRACE] != (r->traces != 0))
        fail("%s: %s, expected both a trace axis and \"traces\", or neither", file,
             r->traces ? "\"traces\" without a trace axis in data.axes" : "data.axes has a trace axis without \"traces\"");
    if (r->traces) {
        check_count(file, "trace", r->count[AXIS_TRACE], "row of traces", r->traces);
        return;
    }
    check_count(file, "receive", r->count[AXIS_RECEIVE], "receive element", r->elements);
    if (r->present[AXIS_TRANSMIT])
        check_count(file, "transmit", r->count[AXIS_TRANSMIT], "transmit", r->transmits);
}

/* The shape and type in a .npy file, which the JSON may leave out but not contradict. */
static void read_npy(const char *file, const cJSON *data, unsigned axes, uint64_t lengths[AXIS_COUNT], uint64_t *bytes,
                     bool *fortran_order, struct recording *recording)
{
    struct npy_header header;
    const cJSON *dtype = find(data, "dtype"), *shape = find(data, "shape");
    const char *path = recording->data_path;
    FILE *npy = open_input(path, bytes);
    npy_read_header(npy, path, *bytes, &header);
    fclose(npy);
    const struct sample_type *sample = find_sample_type(dtype ? recording->sample.name : header.dtype);
    if (!sample)
        fail("%s: dtype is '%s', expected %s", path, header.dtype, sample_type_names);
    /* interleaved pairs are a last axis of 2 in the file */
    bool pairs = strstr(sample->name, "x2") != NULL;
    if (strncmp(sample->name, header.dtype, 3) != 0 || header.dtype[3])
        fail("%s: dtype is '%s', expected data.dtype '%s'", path, header.dtype, sample->name);
    if (header.axes != axes + pairs || (pairs && (header.shape[axes] != 2 || header.fortran_order)))
        fail("%s: %u axes, expected %u as in data.axes%s", path, header.axes, axes + pairs,
             pairs ? " and one of 2, in C order" : "");
    if (shape)
        read_shape(file, shape, axes, lengths);
    for (unsigned k = 0; k < axes; k++) {
        if (shape && lengths[k] != header.shape[k])
            fail("%s: axis %u has length %llu, expected %llu from data.shape", path, k, (unsigned long long)header.shape[k],
                 (unsigned long long)lengths[k]);
        lengths[k] = header.shape[k];
        if (!lengths[k])
            fail("%s: axis %u has length 0, expected at least 1", path, k);
    }
    recording->sample = *sample;
    recording->data_offset = header.data_offset;
    *fortran_order = header.fortran_order;
}

static void read_data(const char *file, const cJSON *data, struct recording *recording)
{
    static const char *const keys[] = {"file", "format", "dtype", "axes", "shape", "offset", NULL};
    enum axis order[AXIS_COUNT];
    uint64_t lengths[AXIS_COUNT], file_bytes;
    bool fortran_order = false;
    if (!data)
        refuse(at(file, "data"), NULL, "an object");
    check_keys(at(file, "data"), data, keys);
    const char *name = string(at(file, "data.file"), find(data, "file"), "the name of a file");
    recording->data_path = path_beside(file, name);
    recording->sample_offset = optional_number(at(file, "data.offset"), find(data, "offset"), 0);
    unsigned axes = read_axes(file, find(data, "axes"), order, recording);

    const cJSON *format = find(data, "format"), *dtype = find(data, "dtype"), *shape = find(data, "shape");
    if (format && !(cJSON_IsString(format) && !strcmp(format->valuestring, "text")))
        refuse(at(file, "data.format"), format, "\"text\", or no such key");
    recording->is_text = format != NULL;
    if (recording->is_text && dtype)
        refuse(at(file, "data.dtype"), dtype, "no dtype with \"format\": \"text\"");
    if (dtype) {
        const struct sample_type *sample = cJSON_IsString(dtype) ? find_sample_type(dtype->valuestring) : NULL;
        if (!sample)
            refuse(at(file, "data.dtype"), dtype, sample_type_names);
        recording->sample = *sample;
    }

    size_t end = strlen(name);
    if (!recording->is_text && end > 4 && !strcmp(name + end - 4, ".npy")) {
        read_npy(file, data, axes, lengths, &file_bytes, &fortran_order, recording);
    } else {
        read_shape(file, shape, axes, lengths);
        if (recording->is_text)
            recording->sample = *find_sample_type("<f4");
        else if (!dtype)
            refuse(at(file, "data.dtype"), NULL, sample_type_names);
        fclose(open_input(recording->data_path, &file_bytes));
    }

    uint64_t samples = 1;
    for (unsigned k = 0; k < AXIS_COUNT; k++)
        recording->count[k] = 1;
    for (unsigned k = axes; k-- > 0;) {
        unsigned axis = fortran_order ? axes - 1 - k : k;
        recording->count[order[axis]] = lengths[axis];
        recording->stride[order[axis]] = (int64_t)samples;
        samples = product(samples, lengths[axis], "data.shape");
    }
    recording->samples = samples;
    recording->frames_outermost = order[fortran_order ? axes - 1 : 0] == AXIS_FRAME;
    uint64_t bytes = product(samples, recording->sample.bytes, "data.shape");
    if (!recording->is_text && file_bytes != recording->data_offset + bytes)
        fail("%s: %llu bytes, expected %llu (%llu samples of %s%s)", recording->data_path, (unsigned long long)file_bytes,
             (unsigned long long)(recording->data_offset + bytes), (unsigned long long)samples, recording->sample.name,
             recording->data_offset ? " and the header" : "");
}

void recording_read(const char *path, struct recording *recording)
{
    static const char *const keys[] = {"data",     "sampling_frequency_hz", "start_time_s", "sound_speed_m_s",
                                       "demodulation_frequency_hz", "receive", "transmits", "traces", NULL};
    uint64_t bytes;
    memset(recording, 0, sizeof *recording);
    recording->json_path = format_text("%s", path);
    char *text = read_text(path, (uint64_t)1 << 32, &bytes);
    if (strstr(text, "\\u0000"))
        fail("%s: a string holds \\u0000, expected text", path);
    const char *end = NULL;
    cJSON *root = cJSON_ParseWithLengthOpts(text, (size_t)bytes + 1, &end, 1);
    if (!root) {
        unsigned long long line = 1;
        for (const char *c = text; end && c < end; c++)
            line += *c == '\n';
        fail("%s: not JSON at line %llu, at '%.40s'", path, line, end ? end : "");
    }
    check_keys(at(path, "the file"), root, keys);
    recording->sampling_frequency_hz = positive(at(path, "sampling_frequency_hz"), find(root, "sampling_frequency_hz"));
    recording->sound_speed_m_s = positive(at(path, "sound_speed_m_s"), find(root, "sound_speed_m_s"));
    recording->demodulation_frequency_hz =
        optional_number(at(path, "demodulation_frequency_hz"), find(root, "demodulation_frequency_hz"), 0);
    read_receive(path, find(root, "receive"), recording);
    read_transmits(path, find(root, "transmits"), recording);
    read_start_times(path, find(root, "start_time_s"), recording);
    if (find(root, "traces"))
        read_traces(path, find(root, "traces"), recording);
    read_data(path, find(root, "data"), recording);
    check_counts(path, recording);
    if (recording->demodulation_frequency_hz != 0 && !recording->sample.is_complex)
        refuse(at(path, "demodulation_frequency_hz"), find(root, "demodulation_frequency_hz"),
               "0 for data that are not complex");
    cJSON_Delete(root);
    free(text);
}
#else
void recording_read(const char *path, struct recording *recording)
{
    (void)recording;
    (void)find_sample_type;
    (void)sample_type_names;
    (void)axis_names;
    fail("%s: this program was built without cJSON, which reads acquisition.json", path);
}
#endif

void recording_free(struct recording *recording)
{
    free(recording->json_path);
    free(recording->data_path);
    free(recording->positions_m);
    free(recording->normals);
    free(recording->receive_weights);
    free(recording->receive_delays_s);
    free(recording->transmit);
    free(recording->start_times_s);
    free(recording->trace_transmit);
    free(recording->trace_receive);
    free(recording->trace_weights);
    memset(recording, 0, sizeof *recording);
}

static das_status add_transmit(const struct transmit *transmit, das_acquisition *acquisition, das_error *error)
{
    switch (transmit->kind) {
    case TRANSMIT_ELEMENT:
        return das_acquisition_add_element_transmit(acquisition, transmit->vector, error);
    case TRANSMIT_PLANE:
        return das_acquisition_add_plane_direction_transmit(acquisition, transmit->vector, transmit->origin_m, error);
    case TRANSMIT_DIVERGING:
        return das_acquisition_add_diverging_transmit(acquisition, transmit->vector, transmit->origin_m, error);
    case TRANSMIT_FOCUSED:
        return das_acquisition_add_focused_transmit(acquisition, transmit->vector, transmit->origin_m, error);
    case TRANSMIT_NONE:
        break;
    }
    return das_acquisition_add_oneway_transmit(acquisition, error);
}

das_status recording_describe(const struct recording *r, das_acquisition *acquisition, das_error *error)
{
    int64_t elements = (int64_t)r->elements, transmits = (int64_t)r->transmits;
    das_status status = das_acquisition_set_receive_elements(acquisition, elements, r->positions_m, error);
    if (!status && r->normals)
        status = das_acquisition_set_receive_normals(acquisition, elements, r->normals, error);
    if (!status && r->receive_weights)
        status = das_acquisition_set_receive_weights(acquisition, elements, r->receive_weights, error);
    if (!status && r->receive_delays_s)
        status = das_acquisition_set_receive_delays(acquisition, elements, r->receive_delays_s, error);
    double *weights = allocate(r->transmits, sizeof *weights, "transmits");
    double *delays = allocate(r->transmits, sizeof *delays, "transmits");
    for (uint64_t k = 0; k < r->transmits && !status; k++) {
        status = add_transmit(&r->transmit[k], acquisition, error);
        weights[k] = r->transmit[k].weight;
        delays[k] = r->transmit[k].delay_s;
    }
    if (!status)
        status = das_acquisition_set_transmit_weights(acquisition, transmits, weights, error);
    if (!status)
        status = das_acquisition_set_transmit_delays(acquisition, transmits, delays, error);
    free(weights);
    free(delays);
    if (!status)
        status = das_acquisition_set_start_times(acquisition, transmits, r->start_times_s, error);
    if (!status)
        status = das_acquisition_set_sampling_frequency(acquisition, r->sampling_frequency_hz, error);
    if (!status)
        status = das_acquisition_set_sound_speed(acquisition, r->sound_speed_m_s, error);
    if (!status && r->traces)
        status = das_acquisition_set_traces(acquisition, (int64_t)r->traces, r->trace_transmit, r->trace_receive,
                                            r->trace_weights, error);
    return status;
}
