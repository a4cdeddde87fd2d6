/* Folding ahead of the tiles: one array transmits and receives, so the records (t,r) and (r,t) are read at the same
 * positions and may be added first. Halves what the tiles read of data too large for the caches. */
#include "cpu_fast.h"

static void fold_transmit(const das_cpu_job *job, int64_t frame, int64_t t)
{
    const das_problem *problem = &job->plan->problem;
    const int64_t count = problem->sample_count, bytes = (int64_t)das_type_bytes(problem->data_type);
    const char *data = job->data + (problem->first + (job->work->first_frame + frame) * problem->frame_stride) * bytes;
    for (int64_t r = 0; r <= t; r++) {
        const char *a = data + (t * problem->transmit_stride + r * problem->receive_stride) * bytes;
        const char *b = data + (r * problem->transmit_stride + t * problem->receive_stride) * bytes;
        float *to = job->packed + das_cpu_packed_at(job->plan, t, r, frame);
        const float *fa = (const float *)(const void *)a, *fb = (const float *)(const void *)b;
        const int16_t *ha = (const int16_t *)(const void *)a, *hb = (const int16_t *)(const void *)b;
        if (problem->data_type == DAS_TYPE_F32 && t != r)
            for (int64_t i = 0; i < count; i++)
                to[i] = fa[i] + fb[i];
        else if (problem->data_type == DAS_TYPE_F32)
            for (int64_t i = 0; i < count; i++)
                to[i] = fa[i];
        else if (t != r)
            for (int64_t i = 0; i < count; i++)
                to[i] = (float)(ha[i] + hb[i]);
        else
            for (int64_t i = 0; i < count; i++)
                to[i] = (float)ha[i];
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
