/* One reconstruction: lanes take tiles from a counter, so the image does not depend on who takes which. */
#include "cpu_fast.h"

#include <time.h>

int64_t das_cpu_next(das_cpu_job *job)
{
    if (atomic_load_explicit(&job->cancelled, memory_order_relaxed))
        return -1;
    const das_work *work = job->work;
    /* One lane at a time reports; the others go on. */
    if (work->progress != NULL && !atomic_flag_test_and_set(&job->reporting)) {
        double fraction = (double)atomic_load(&job->units_done) / (double)job->unit_count;
        if (work->progress(work->progress_context, fraction) != 0)
            atomic_store(&job->cancelled, true);
        atomic_flag_clear(&job->reporting);
    }
    int64_t unit = atomic_fetch_add(&job->next_unit, 1);
    return unit < job->unit_count && !atomic_load(&job->cancelled) ? unit : -1;
}

int64_t das_cpu_image_offset(const das_problem *problem, int64_t frame, int64_t transmit, int64_t receive, int64_t point)
{
    const int64_t *counts = problem->grid.counts, *strides = problem->image_strides;
    const int64_t i0 = point % counts[0], i1 = point / counts[0] % counts[1], i2 = point / counts[0] / counts[1];
    const int64_t element = problem->image_first + frame * strides[0] + transmit * strides[1] + receive * strides[2] +
                            i2 * strides[3] + i1 * strides[4] + i0 * strides[5];
    return element * (int64_t)das_type_bytes(problem->image_type);
}

void das_cpu_store(das_type type, char *where, bool accumulate, double re, double im)
{
    float *f = (float *)(void *)where;
    double *d = (double *)(void *)where;
    const bool complex_image = type == DAS_TYPE_CF32 || type == DAS_TYPE_CF64;
    if (type == DAS_TYPE_F32 || type == DAS_TYPE_CF32) {
        f[0] = (float)(accumulate ? (double)f[0] + re : re);
        if (complex_image)
            f[1] = (float)(accumulate ? (double)f[1] + im : im);
    } else {
        d[0] = accumulate ? d[0] + re : re;
        if (complex_image)
            d[1] = accumulate ? d[1] + im : im;
    }
}

static void run_lane(void *argument, int64_t lane)
{
    das_cpu_job *job = argument;
    if (job->plan->fast.kernels != NULL)
        job->plan->fast.kernels->run(job, lane);
    else if (job->plan->problem.precision == DAS_PRECISION_DOUBLE)
        das_cpu_general_run_f64(job, lane);
    else
        das_cpu_general_run_f32(job, lane);
}

static das_status stamp(das_event *event, das_queue *queue, das_error *error)
{
    return event != NULL ? das_backend_cpu.event_record(event, queue, error) : DAS_OK;
}

das_status das_cpu_reconstruct(das_plan *plan, das_slot *slot, das_queue *queue, const das_work *work, das_error *error)
{
    das_cpu_plan *own = plan->impl;
    das_cpu_job job = {.plan = own,
                       .work = work,
                       .data = work->data->host_pointer,
                       .image = work->image->host_pointer,
                       .scratch = slot->impl,
                       .unit_count = own->fast.kernels != NULL ? own->fast.tile_count : own->general.tile_count,
                       .reporting = ATOMIC_FLAG_INIT};
    atomic_init(&job.next_unit, 0);
    atomic_init(&job.units_done, 0);
    atomic_init(&job.cancelled, false);
    stamp(work->begun, queue, error);
    stamp(work->packed, queue, error); /* nothing is rearranged */
    das_parallel(own->device, run_lane, &job, own->lanes);
    if (!atomic_load(&job.cancelled) && work->progress != NULL && work->progress(work->progress_context, 1.0) != 0)
        atomic_store(&job.cancelled, true);
    stamp(work->computed, queue, error);
    if (atomic_load(&job.cancelled))
        return das_fail(error, DAS_ERROR_CANCELLED, "the progress callback asked to stop");
    return DAS_OK;
}
