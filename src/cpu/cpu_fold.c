/* Folding ahead of the tiles: one array transmits and receives, so the records (t,r) and (r,t) are read at the same
 * positions and may be added first. Halves what the tiles read of data too large for the caches. */
#include "cpu_fast.h"

#include <string.h>

/* Sums of int16 samples, as int16. False if one does not fit. */
static bool fold_narrow(const int16_t *a, const int16_t *b, int16_t *to, int64_t count)
{
    uint32_t beyond = 0;
    for (int64_t i = 0; i < count; i++) {
        const int32_t sum = a[i] + b[i];
        beyond |= (uint32_t)(sum + 32768) >> 16;
        to[i] = (int16_t)sum;
    }
    return beyond == 0;
}

static void fold_wide(const int16_t *a, const int16_t *b, float *to, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = (float)(a[i] + b[i]);
}

static void fold_float(const float *a, const float *b, float *to, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = a[i] + b[i];
}

static void fold_transmit(das_cpu_job *job, int64_t frame, int64_t t)
{
    const das_problem *problem = &job->plan->problem;
    const int64_t count = problem->sample_count, bytes = (int64_t)das_type_bytes(problem->data_type);
    const bool wide = atomic_load(&job->wide);
    const char *data = job->data + (problem->first + (job->work->first_frame + frame) * problem->frame_stride) * bytes;
    for (int64_t r = 0; r <= t; r++) {
        const void *a = data + (t * problem->transmit_stride + r * problem->receive_stride) * bytes;
        const void *b = data + (r * problem->transmit_stride + t * problem->receive_stride) * bytes;
        const int64_t at = das_cpu_packed_at(job->plan, t, r, frame);
        if (problem->data_type == DAS_TYPE_F32) {
            if (t == r)
                memcpy((float *)job->packed + at, a, (size_t)count * sizeof(float));
            else
                fold_float(a, b, (float *)job->packed + at, count);
        } else if (wide) {
            float *to = (float *)job->packed + at;
            fold_wide(a, b, to, count);
            for (int64_t i = 0; t == r && i < count; i++)
                to[i] *= 0.5f;
        } else if (t == r) {
            memcpy((int16_t *)job->packed + at, a, (size_t)count * sizeof(int16_t));
        } else if (!fold_narrow(a, b, (int16_t *)job->packed + at, count)) {
            atomic_store(&job->wide, true);
            return;
        }
    }
}

typedef struct fold_work {
    das_cpu_job *job;
    atomic_llong next;
    bool wide;
} fold_work;

static void fold_lane(void *argument, int64_t lane)
{
    (void)lane;
    fold_work *work = argument;
    const int64_t transmits = work->job->plan->problem.transmit_count, units = work->job->work->frame_count * transmits;
    /* The long ones first. */
    for (int64_t unit; (unit = atomic_fetch_add(&work->next, 1)) < units && atomic_load(&work->job->wide) == work->wide;)
        fold_transmit(work->job, unit / transmits, transmits - 1 - unit % transmits);
}

void das_cpu_fold(das_cpu_job *job)
{
    /* int16 stays int16, which halves what the tiles read, unless a sum leaves its range: then all over again. */
    const bool wides[2] = {job->plan->problem.data_type != DAS_TYPE_I16, true};
    for (int k = 0; k < 2; k++) {
        fold_work work = {.job = job, .wide = wides[k]};
        atomic_init(&work.next, 0);
        atomic_store(&job->wide, wides[k]);
        das_parallel(job->plan->device, fold_lane, &work, job->plan->lanes);
        if (atomic_load(&job->wide) == wides[k])
            break;
    }
}
