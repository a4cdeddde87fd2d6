/* Folding ahead of the tiles: one array transmits and receives, so the records (t,r) and (r,t) are read at the same
 * positions and may be added first. Halves what the tiles read of data too large for the caches. */
#include "cpu_fast.h"

#include <string.h>

/* int16 becomes float here, once, and not in every window cut from it. */
static void fold_i16(const int16_t *a, const int16_t *b, float *to, int64_t count)
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
    const char *data = job->data + (problem->first + (job->work->first_frame + frame) * problem->frame_stride) * bytes;
    for (int64_t r = 0; r <= t; r++) {
        const void *a = data + (t * problem->transmit_stride + r * problem->receive_stride) * bytes;
        const void *b = data + (r * problem->transmit_stride + t * problem->receive_stride) * bytes;
        float *to = (float *)job->packed + das_cpu_packed_at(job->plan, t, r, frame);
        if (problem->data_type == DAS_TYPE_I16) {
            fold_i16(a, b, to, count);
            for (int64_t i = 0; t == r && i < count; i++)
                to[i] *= 0.5f;
        } else if (t == r) {
            memcpy(to, a, (size_t)count * sizeof *to);
        } else {
            fold_float(a, b, to, count);
        }
    }
}

typedef struct fold_work {
    das_cpu_job *job;
    atomic_llong next;
} fold_work;

static void fold_lane(void *argument, int64_t lane)
{
    (void)lane;
    fold_work *work = argument;
    const int64_t transmits = work->job->plan->problem.transmit_count, units = work->job->work->frame_count * transmits;
    /* The long ones first. */
    for (int64_t unit; (unit = atomic_fetch_add(&work->next, 1)) < units;)
        fold_transmit(work->job, unit / transmits, transmits - 1 - unit % transmits);
}

void das_cpu_fold(das_cpu_job *job)
{
    fold_work work = {.job = job};
    atomic_init(&work.next, 0);
    das_parallel(job->plan->device, fold_lane, &work, job->plan->lanes);
}
