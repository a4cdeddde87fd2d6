#include "cuda_plan.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

das_status das_cuda_plan_query(das_device *device, const das_problem *problem, das_plan_layout *layout, das_error *error)
{
    das_cuda_layout chosen;
    das_status status = das_cuda_choose(device, problem, &chosen, error);
    if (status != DAS_OK)
        return status;
    layout->plan_bytes = chosen.device_bytes;
    layout->slot_bytes = chosen.slot_bytes;
    layout->tiles = chosen.chunks;
    return DAS_OK;
}

/* ---------------------------------------------------------------------------
 * Contents of the sections
 * ------------------------------------------------------------------------- */

static void write_transmits(const das_problem *problem, das_cuda_transmit *out)
{
    static const int32_t waves[] = {0, 1, 0, 2, 3}; /* das_transmit_kind to DAS_WAVE_* */
    double fs = problem->sampling_frequency_hz;
    for (int64_t i = 0; i < problem->transmit_count; i++, out++) {
        const das_transmit *t = &problem->transmit[i];
        memset(out, 0, sizeof *out);
        out->wave = waves[t->kind];
        memcpy(out->point, t->kind == DAS_TRANSMIT_PLANE ? t->origin : t->point, sizeof out->point);
        memcpy(out->direction, t->direction, sizeof out->direction);
        bool shifted =
            problem->transmit_times_s == NULL && (t->kind == DAS_TRANSMIT_DIVERGING || t->kind == DAS_TRANSMIT_FOCUSED);
        double constant_s = shifted ? t->constant_s : 0.0;
        for (int c = 0; c < 3; c++)
            out->scaled[c] = out->point[c] * (fs / problem->sound_speed_m_s);
        out->constant = (constant_s + (t->delay_s - t->start_time_s)) * fs;
        if (problem->phase_reference == DAS_PHASE_REFERENCE_TIME_ZERO) {
            double turns = problem->demodulation_frequency_hz * t->start_time_s;
            out->phase = turns - rint(turns);
        }
    }
}

static void write_elements(const das_problem *problem, das_cuda_element *out)
{
    for (int64_t i = 0; i < problem->receive_count; i++, out++) {
        const das_element *r = &problem->receive[i];
        memset(out, 0, sizeof *out);
        memcpy(out->position, r->position, sizeof out->position);
        memcpy(out->normal, r->normal, sizeof out->normal);
        for (int c = 0; c < 3; c++)
            out->scaled[c] = r->position[c] * (problem->sampling_frequency_hz / problem->sound_speed_m_s);
        out->constant = r->delay_s * problem->sampling_frequency_hz;
    }
}

static void copy_pair(const das_pair *from, das_cuda_pair *to)
{
    to->offset = from->offset;
    to->weight = from->weight;
    to->receive = from->receive;
    to->transmit = from->transmit;
}

/* Pairs in the order of the outputs they belong to, and within one in that of the transmits. */
static void write_pairs(const das_problem *problem, das_cuda_pair *pairs, int64_t *first)
{
    int64_t count = problem->pair_count, receives = problem->receive_count;
    const das_pair *from = problem->pair;
    if (!problem->keep_receive || problem->keep_transmit) { /* already in order */
        for (int64_t i = 0; i < count; i++)
            copy_pair(&from[i], &pairs[i]);
        int64_t outputs = (problem->keep_transmit ? problem->transmit_count : 1) * (problem->keep_receive ? receives : 1);
        int64_t i = 0;
        for (int64_t o = 0; o < outputs; o++) {
            first[o] = i;
            while (i < count &&
                   (!problem->keep_transmit ||
                    (problem->keep_receive ? from[i].transmit * receives + from[i].receive : from[i].transmit) <= o))
                i++;
        }
        first[outputs] = count;
        return;
    }
    for (int64_t r = 0; r <= receives; r++)
        first[r] = 0;
    for (int64_t i = 0; i < count; i++)
        first[from[i].receive + 1]++;
    for (int64_t r = 0; r < receives; r++)
        first[r + 1] += first[r];
    for (int64_t i = 0; i < count; i++)
        copy_pair(&from[i], &pairs[first[from[i].receive]++]);
    for (int64_t r = receives; r > 0; r--)
        first[r] = first[r - 1];
    first[0] = 0;
}

static void write_pair_weights(const das_problem *problem, float *out)
{
    memset(out, 0, (size_t)(problem->transmit_count * problem->receive_count) * sizeof *out);
    for (int64_t i = 0; i < problem->pair_count; i++)
        out[problem->pair[i].transmit * problem->receive_count + problem->pair[i].receive] = (float)problem->pair[i].weight;
}

static void write_window(const das_problem *problem, void *out)
{
    for (int64_t i = 0; i < problem->window_count; i++) {
        if (problem->precision == DAS_PRECISION_DOUBLE)
            ((double *)out)[i] = problem->window_values[i];
        else
            ((float *)out)[i] = (float)problem->window_values[i];
    }
}

static void write_times(const double *seconds, int64_t count, double fs, double *out)
{
    for (int64_t i = 0; i < count; i++)
        out[i] = seconds[i] * fs;
}

/* Fills the image of the plan's memory: sections at their offsets from device or host. */
static void write_sections(const das_problem *problem, const das_cuda_layout *layout, char *device, char *host)
{
    void *at[DAS_CUDA_SECTION_COUNT];
    for (int i = 0; i < DAS_CUDA_SECTION_COUNT; i++)
        at[i] = (layout->section[i].on_host ? host : device) + layout->section[i].offset;
    int64_t points = problem->grid.point_count, transmits = problem->transmit_count, receives = problem->receive_count;
    double fs = problem->sampling_frequency_hz;
    write_transmits(problem, at[DAS_CUDA_TRANSMITS]);
    write_elements(problem, at[DAS_CUDA_ELEMENTS]);
    if (layout->section[DAS_CUDA_OUTPUT_FIRST].bytes > 0)
        write_pairs(problem, at[DAS_CUDA_PAIRS], at[DAS_CUDA_OUTPUT_FIRST]);
    for (int k = 0; k < 3; k++)
        if (layout->section[DAS_CUDA_AXIS_0 + k].bytes > 0)
            memcpy(at[DAS_CUDA_AXIS_0 + k], problem->grid.values[k], layout->section[DAS_CUDA_AXIS_0 + k].bytes);
    if (layout->section[DAS_CUDA_WINDOW].bytes > 0)
        write_window(problem, at[DAS_CUDA_WINDOW]);
    if (problem->transmit_times_s != NULL)
        write_times(problem->transmit_times_s, transmits * points, fs, at[DAS_CUDA_TRANSMIT_TIMES]);
    if (problem->receive_times_s != NULL)
        write_times(problem->receive_times_s, receives * points, fs, at[DAS_CUDA_RECEIVE_TIMES]);
    if (problem->transmit_weights != NULL)
        memcpy(at[DAS_CUDA_TRANSMIT_WEIGHTS], problem->transmit_weights, layout->section[DAS_CUDA_TRANSMIT_WEIGHTS].bytes);
    if (problem->receive_weights != NULL)
        memcpy(at[DAS_CUDA_RECEIVE_WEIGHTS], problem->receive_weights, layout->section[DAS_CUDA_RECEIVE_WEIGHTS].bytes);
    if (layout->section[DAS_CUDA_PAIR_WEIGHTS].bytes > 0)
        write_pair_weights(problem, at[DAS_CUDA_PAIR_WEIGHTS]);
}

static void fill_params(const das_problem *problem, const das_cuda_plan *self, das_cuda_params *params)
{
    const das_cuda_layout *layout = &self->layout;
    uint64_t at[DAS_CUDA_SECTION_COUNT];
    for (int i = 0; i < DAS_CUDA_SECTION_COUNT; i++)
        at[i] = layout->section[i].bytes == 0
                    ? 0
                    : (layout->section[i].on_host ? self->host_pointer : self->memory) + layout->section[i].offset;
    memset(params, 0, sizeof *params);
    params->transmit = at[DAS_CUDA_TRANSMITS];
    params->element = at[DAS_CUDA_ELEMENTS];
    params->pair = at[DAS_CUDA_PAIRS];
    params->output_first = at[DAS_CUDA_OUTPUT_FIRST];
    for (int k = 0; k < 3; k++) {
        params->axis[k] = at[DAS_CUDA_AXIS_0 + k];
        params->counts[k] = problem->grid.counts[k];
        params->origin[k] = problem->grid.origin[k];
        memcpy(params->steps[k], problem->grid.steps[k], sizeof params->steps[k]);
    }
    params->window_table = at[DAS_CUDA_WINDOW];
    params->transmit_times = at[DAS_CUDA_TRANSMIT_TIMES];
    params->receive_times = at[DAS_CUDA_RECEIVE_TIMES];
    params->transmit_weights = at[DAS_CUDA_TRANSMIT_WEIGHTS];
    params->receive_weights = at[DAS_CUDA_RECEIVE_WEIGHTS];
    params->samples_per_m = problem->sampling_frequency_hz / problem->sound_speed_m_s;
    params->tolerance_m = 1e-3 * problem->sound_speed_m_s / problem->sampling_frequency_hz;
    params->aperture = problem->f_number > 0.0;
    params->inverse_2f = params->aperture ? 0.5 / problem->f_number : 0.0;
    params->inverse_2f_float = (float)params->inverse_2f;
    params->rotate = problem->demodulation_frequency_hz != 0.0;
    params->turns_per_sample = problem->demodulation_frequency_hz / problem->sampling_frequency_hz;
    params->turns_float = (float)params->turns_per_sample;
    params->last = (double)(problem->sample_count - 1);
    params->window_parameter = problem->window_parameter;
    params->sample_offset = problem->sample_offset;
    params->point_count = problem->grid.point_count;
    params->window_count = problem->window_count;
    params->sample_count = problem->sample_count;
    params->frame_stride = problem->frame_stride;
    params->sample_stride = problem->sample_stride;
    params->image_first = problem->image_first;
    memcpy(params->image_strides, problem->image_strides, sizeof params->image_strides);
    params->receive_count = problem->receive_count;
    params->transmit_count = problem->transmit_count;
    params->grid_kind = (int32_t)problem->grid.kind;
    params->interpolation = problem->interpolation;
    params->window = problem->window;
    params->clamp = problem->outside == DAS_OUTSIDE_CLAMP;
    params->normalization = problem->normalization;
    params->data_type = problem->data_type;
    params->image_type = problem->image_type;
    params->data_complex = problem->data_complex;
    params->keep_transmit = problem->keep_transmit;
    params->keep_receive = problem->keep_receive;
    params->simple = problem->fast_paths && problem->precision != DAS_PRECISION_DOUBLE &&
                     problem->outside == DAS_OUTSIDE_ZERO && problem->sample_count < INT32_MAX;
    /* Blocks of 8 by 4 points where the grid is that large: close together, whichever way the delays change. */
    int64_t across = problem->grid.counts[0], rows = problem->grid.counts[1] * problem->grid.counts[2];
    params->patch_a = rows >= 4 ? 8 : rows >= 2 ? 16 : 32;
    while (params->patch_a > 1 && params->patch_a / 2 >= across)
        params->patch_a /= 2;
    params->patches_a = (across - 1) / params->patch_a + 1;
    params->pair_weight = at[DAS_CUDA_PAIR_WEIGHTS];
    params->unit_weight = problem->unit_weight && params->pair_weight == 0; /* pairs left out have weight 0 there */
    params->data_first = problem->first;
    params->transmit_stride = problem->transmit_stride;
    params->receive_stride = problem->receive_stride;
    params->value_bytes = (int32_t)das_type_bytes(problem->data_type);
    params->sample_bytes = (int32_t)((uint64_t)problem->sample_stride * (uint64_t)params->value_bytes);
    params->z_normals = 1;
    for (int64_t r = 0; r < problem->receive_count; r++) {
        const double *normal = problem->receive[r].normal;
        if (normal[0] != 0.0 || normal[1] != 0.0 || normal[2] != 1.0)
            params->z_normals = 0;
    }
}

static void describe(das_plan *plan, const das_problem *problem, const das_cuda_layout *layout)
{
    static const char *const names[] = {"nearest", "linear", "quadratic", "cubic", "lanczos"};
    char memory[64] = "";
    if (layout->host_bytes > 0)
        snprintf(memory, sizeof memory, ", %" PRIu64 " bytes of tables in host memory", layout->host_bytes);
    const char *device = plan->device->info.name, *name = names[problem->interpolation],
               *iq = problem->data_complex ? ", IQ" : "";
    if (layout->path == DAS_CUDA_PATH_TILE)
        snprintf(plan->description, sizeof plan->description, "%s: tiles, %s%s%s, %" PRId32 " pieces", device, name, iq,
                 layout->shape.folded ? ", reciprocal pairs folded" : "", layout->chunks);
    else if (layout->path == DAS_CUDA_PATH_FRAMES)
        snprintf(plan->description, sizeof plan->description, "%s: %" PRId32 " frames together, %s%s, %" PRId32 " pieces",
                 device, layout->frames.frames_each, name, iq, layout->chunks);
    else if (layout->path == DAS_CUDA_PATH_TENSOR)
        snprintf(plan->description, sizeof plan->description,
                 "%s: tensor cores, %" PRId32 " frames together, %s%s, %" PRId32 " pieces", device, layout->frames.frames_each,
                 name, iq, layout->chunks);
    else if (layout->path == DAS_CUDA_PATH_FEW)
        snprintf(plan->description, sizeof plan->description, "%s: few frames, %s%s%s", device, name, iq, memory);
    else
        snprintf(plan->description, sizeof plan->description, "%s: generic, %s%s%s%s", device, name, iq,
                 problem->precision == DAS_PRECISION_DOUBLE ? ", double" : "", memory);
}

/* ---------------------------------------------------------------------------
 * The plan
 * ------------------------------------------------------------------------- */

static void free_memory(das_device *device, das_cuda_plan *self)
{
    const das_cu_driver *driver = das_cuda_of(device)->driver;
    if (self->memory != 0)
        driver->memory_free(self->memory);
    if (self->host != NULL)
        driver->host_free(self->host);
}

/* Allocates and fills the plan's memory. The context is current. */
static das_status make_memory(das_device *device, das_cuda_plan *self, const das_problem *problem, das_error *error)
{
    const das_cu_driver *driver = das_cuda_of(device)->driver;
    const das_cuda_layout *layout = &self->layout;
    das_status status =
        das_cuda_check(device, driver->memory_allocate(&self->memory, layout->device_bytes), "cuMemAlloc", error);
    if (status != DAS_OK) {
        self->memory = 0;
        return status;
    }
    if (layout->host_bytes > 0) {
        das_cu_result result =
            driver->host_allocate(&self->host, layout->host_bytes, DAS_CU_HOST_PORTABLE | DAS_CU_HOST_MAPPED);
        if (result == DAS_CU_OUT_OF_MEMORY) {
            self->host = NULL;
            return das_fail(error, DAS_ERROR_OUT_OF_MEMORY, "out of pinned host memory for %" PRIu64 " bytes of tables",
                            layout->host_bytes);
        }
        status = das_cuda_check(device, result, "cuMemHostAlloc", error);
        if (status != DAS_OK) {
            self->host = NULL;
            return status;
        }
        status = das_cuda_check(device, driver->host_device_pointer(&self->host_pointer, self->host, 0),
                                "cuMemHostGetDevicePointer", error);
        if (status != DAS_OK)
            return status;
    }
    char *staging = das_device_allocate(device, layout->device_bytes);
    if (staging == NULL)
        return das_fail(error, DAS_ERROR_OUT_OF_MEMORY, "out of memory for a plan of %" PRIu64 " bytes", layout->device_bytes);
    write_sections(problem, layout, staging, self->host);
    status =
        das_cuda_check(device, driver->copy_to_device(self->memory, staging, layout->device_bytes, DAS_CU_STREAM_PER_THREAD),
                       "copying a plan to the device", error);
    if (status == DAS_OK)
        status = das_cuda_check(device, driver->stream_wait(DAS_CU_STREAM_PER_THREAD), "cuStreamSynchronize", error);
    das_device_release(device, staging);
    return status;
}

das_status das_cuda_plan_create(das_plan *plan, const das_problem *problem, das_error *error)
{
    das_device *device = plan->device;
    das_cuda_plan *self = das_device_allocate(device, sizeof *self);
    if (self == NULL)
        return das_fail(error, DAS_ERROR_OUT_OF_MEMORY, "out of memory for a plan");
    memset(self, 0, sizeof *self);
    uint64_t first_bytes = ((uint64_t)problem->transmit_count + 1) * sizeof(int64_t);
    self->pair_first = das_device_allocate(device, first_bytes);
    das_status status = self->pair_first != NULL ? das_cuda_choose(device, problem, &self->layout, error)
                                                 : das_fail(error, DAS_ERROR_OUT_OF_MEMORY, "out of memory for a plan");
    if (status == DAS_OK)
        status = das_cuda_enter(device, error);
    if (status == DAS_OK) {
        memcpy(self->pair_first, problem->pair_first, first_bytes);
        status = make_memory(device, self, problem, error);
        if (status != DAS_OK)
            free_memory(device, self);
        das_cuda_leave(device);
    }
    if (status != DAS_OK) {
        if (self->pair_first != NULL)
            das_device_release(device, self->pair_first);
        das_device_release(device, self);
        return status;
    }
    fill_params(problem, self, &self->params);
    const das_cuda_layout *layout = &self->layout;
    describe(plan, problem, layout);
    plan->impl = self;
    return DAS_OK;
}

void das_cuda_plan_destroy(das_plan *plan)
{
    das_device *device = plan->device;
    das_cuda_plan *self = plan->impl;
    if (das_cuda_enter(device, NULL) == DAS_OK) {
        free_memory(device, self);
        das_cuda_leave(device);
    }
    das_device_release(device, self->pair_first);
    das_device_release(device, self);
    plan->impl = NULL;
}

das_status das_cuda_slot_create(das_plan *plan, das_slot *slot, das_error *error)
{
    das_device *device = plan->device;
    const das_cuda_plan *self = plan->impl;
    das_cuda_slot *made = das_device_allocate(device, sizeof *made);
    if (made == NULL)
        return das_fail(error, DAS_ERROR_OUT_OF_MEMORY, "out of memory for a plan's slot");
    made->packed = 0;
    das_status status = DAS_OK;
    if (self->layout.slot_bytes > 0) {
        status = das_cuda_enter(device, error);
        if (status == DAS_OK) {
            status =
                das_cuda_check(device, das_cuda_of(device)->driver->memory_allocate(&made->packed, self->layout.slot_bytes),
                               "cuMemAlloc", error);
            das_cuda_leave(device);
        }
    }
    if (status != DAS_OK)
        das_device_release(device, made);
    else
        slot->impl = made;
    return status;
}

void das_cuda_slot_destroy(das_plan *plan, das_slot *slot)
{
    das_device *device = plan->device;
    das_cuda_slot *self = slot->impl;
    if (self->packed != 0 && das_cuda_enter(device, NULL) == DAS_OK) {
        das_cuda_of(device)->driver->memory_free(self->packed);
        das_cuda_leave(device);
    }
    das_device_release(device, self);
    slot->impl = NULL;
}
