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
        double fraction = (double)(job->units_before + atomic_load(&job->units_done)) / (double)job->units_total;
        if (work->progress(work->progress_context, fraction) != 0)
            atomic_store(&job->cancelled, true);
        atomic_flag_clear(&job->reporting);
    }
    int64_t unit = atomic_fetch_add(&job->next_unit, 1);
    return unit < job->unit_count && !atomic_load(&job->cancelled) ? unit : -1;
}

static void run_lane(void *argument, int64_t lane)
{
    das_cpu_job *job = argument;
    if (job->plan->fast.kernels != NULL)
        job->plan->fast.kernels->run(job, lane);
    else
        job->plan->general.kernels->run(job, lane);
}

static das_status stamp(das_event *event, das_queue *queue, das_error *error)
{
    return event != NULL ? das_backend_cpu.event_record(event, queue, error) : DAS_OK;
}

static void pack_lane(void *argument, int64_t lane)
{
    das_cpu_job *job = argument;
    job->plan->fast.kernels->pack(job, lane);
}

das_status das_cpu_reconstruct(das_plan *plan, das_slot *slot, das_queue *queue, const das_work *work, das_error *error)
{
    das_cpu_plan *own = plan->impl;
    const das_cpu_fast *fast = &own->fast;
    das_work part = *work;
    das_cpu_job job = {.plan = own,
                       .work = &part,
                       .data = work->data->host_pointer,
                       .image = work->image->host_pointer,
                       .scratch = slot->impl,
                       .unit_count = fast->kernels != NULL ? fast->tile_count : own->general.tile_count,
                       .reporting = ATOMIC_FLAG_INIT};
    const int64_t chunk = fast->kernels != NULL && fast->frames ? fast->chunk_frames : work->frame_count;
    job.units_total = job.unit_count * ((work->frame_count - 1) / chunk + 1);
    if (fast->kernels != NULL && (fast->packed || fast->frames))
        job.packed = job.scratch + (uint64_t)own->lanes * fast->lane_bytes;
    atomic_init(&job.cancelled, false);
    stamp(work->begun, queue, error);
    for (int64_t frame = 0; frame < work->frame_count && !atomic_load(&job.cancelled); frame += chunk) {
        part.first_frame = work->first_frame + frame;
        part.image_first_frame = work->image_first_frame + frame;
        part.frame_count = work->frame_count - frame < chunk ? work->frame_count - frame : chunk;
        atomic_store(&job.next_unit, 0);
        atomic_store(&job.units_done, 0);
        atomic_store(&job.next_pack, 0);
        if (fast->kernels != NULL && fast->packed)
            das_cpu_fold(&job);
        else if (fast->kernels != NULL && fast->frames)
            das_parallel(own->device, pack_lane, &job, own->lanes);
        if (frame == 0)
            stamp(work->packed, queue, error);
        das_parallel(own->device, run_lane, &job, own->lanes);
        job.units_before += job.unit_count;
    }
    if (!atomic_load(&job.cancelled) && work->progress != NULL && work->progress(work->progress_context, 1.0) != 0)
        atomic_store(&job.cancelled, true);
    stamp(work->computed, queue, error);
    if (atomic_load(&job.cancelled))
        return das_fail(error, DAS_ERROR_CANCELLED, "the progress callback asked to stop");
    return DAS_OK;
}
