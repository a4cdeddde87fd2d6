#include "frontend.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void fill_info(const das_problem *problem, const das_plan_layout *layout, das_plan_info *info)
{
    memset(info, 0, sizeof *info);
    info->struct_size = sizeof *info;
    info->image_type = problem->image_type;
    memcpy(info->image_shape, problem->image_shape, sizeof info->image_shape);
    memcpy(info->image_strides, problem->image_strides, sizeof info->image_strides);
    info->points = problem->grid.point_count;
    info->pairs = problem->pair_count;
    info->input_bytes = problem->input_bytes;
    info->output_bytes = problem->output_bytes;
    info->plan_bytes = layout->plan_bytes;
    info->slot_bytes = layout->slot_bytes;
    info->slots = problem->slots;
    info->tiles = layout->tiles;
}

/* Checks the arguments, makes the problem and asks the backend for its layout. On DAS_OK the caller frees the problem. */
static das_status prepare(das_device *device, const das_acquisition *acquisition, const das_grid *grid,
                          const das_options *options, das_problem *problem, das_plan_info *info, das_error *error)
{
    DAS_REQUIRE_POINTER(device, error);
    DAS_REQUIRE_POINTER(acquisition, error);
    DAS_REQUIRE_POINTER(grid, error);
    das_status status = das_device_check(device, error);
    if (status == DAS_OK)
        status = das_problem_create(acquisition, grid, options, problem, error);
    if (status != DAS_OK)
        return status;
    if (problem->precision == DAS_PRECISION_DOUBLE && !device->info.has_double) {
        das_problem_free(problem);
        return das_fail(error, DAS_ERROR_UNSUPPORTED, "precision is DAS_PRECISION_DOUBLE; device \"%s\" has no double arithmetic",
                        device->info.name);
    }
    das_plan_layout layout = {0, 0, 1};
    status = device->backend->plan_query(device, problem, &layout, error);
    if (status != DAS_OK) {
        das_problem_free(problem);
        return status;
    }
    fill_info(problem, &layout, info);
    return DAS_OK;
}

das_status das_plan_query(das_device *device, const das_acquisition *acquisition, const das_grid *grid,
                          const das_options *options, das_plan_info *info, das_error *error)
{
    DAS_REQUIRE_POINTER(info, error);
    das_problem problem;
    das_plan_info found;
    fenv_t saved;
    das_float_environment_enter(&saved);
    das_status status = prepare(device, acquisition, grid, options, &problem, &found, error);
    if (status == DAS_OK)
        das_problem_free(&problem);
    das_float_environment_leave(&saved);
    return status != DAS_OK ? status : das_copy_out(info, &found, sizeof found, "info", error);
}

void das_plan_renew_locks(das_plan *plan)
{
    if (!das_locks_inherited_by(&plan->locks_of, atomic_load(&plan->device->locks_of)))
        return;
    /* Calls on their way were the parent's. */
    pthread_mutex_init(&plan->mutex, NULL);
    pthread_cond_init(&plan->slot_free, NULL);
    for (int32_t i = 0; i < plan->problem.slots; i++)
        plan->slots[i].busy = false;
    das_locks_renewed(&plan->locks_of);
}

/* Undoes as much of a plan as was made: `slots` slots, the backend's part if `impl`. */
static void plan_free(das_plan *plan, int32_t slots, bool impl)
{
    das_device *device = plan->device;
    bool reachable = das_device_reachable(device);
    for (int32_t i = 0; i < slots; i++) {
        das_slot *slot = &plan->slots[i];
        das_event_destroy(&slot->done);
        das_queue_destroy(&slot->queue);
        if (reachable)
            device->backend->slot_destroy(plan, slot);
    }
    if (impl && reachable)
        device->backend->plan_destroy(plan);
    das_plan_renew_locks(plan); /* destroying a condition waits for the threads that wait for it */
    pthread_mutex_destroy(&plan->mutex);
    pthread_cond_destroy(&plan->slot_free);
    das_device_release(device, plan->slots);
    das_device_release(device, plan);
    das_device_unretain(device);
}

static das_status slot_make(das_plan *plan, das_slot *slot, das_error *error)
{
    das_status status = plan->device->backend->slot_create(plan, slot, error);
    if (status != DAS_OK)
        return status;
    status = das_queue_create(plan->device, &slot->queue, error);
    if (status == DAS_OK)
        status = das_event_create(plan->device, &slot->done, error);
    if (status != DAS_OK) {
        das_queue_destroy(&slot->queue);
        plan->device->backend->slot_destroy(plan, slot);
    }
    return status;
}

static das_status plan_make(das_device *device, const das_problem *problem, const das_plan_info *info, das_plan **out,
                            das_error *error)
{
    das_plan *plan = das_device_allocate(device, sizeof *plan);
    das_slot *slots = das_device_allocate(device, (uint64_t)problem->slots * sizeof *slots);
    if (plan == NULL || slots == NULL) {
        das_device_release(device, plan);
        das_device_release(device, slots);
        return das_fail_memory(error, "a plan", sizeof *plan);
    }
    memset(plan, 0, sizeof *plan);
    memset(slots, 0, (size_t)problem->slots * sizeof *slots);
    das_device_retain(device);
    plan->device = device;
    plan->problem = *problem;
    plan->info = *info;
    plan->slots = slots;
    atomic_init(&plan->locks_of, atomic_load(&device->locks_of));
    pthread_mutex_init(&plan->mutex, NULL);
    pthread_cond_init(&plan->slot_free, NULL);

    /* The backend reads arrays through its argument only. */
    das_problem *kept = &plan->problem;
    kept->receive = NULL;
    kept->transmit = NULL;
    kept->pair = NULL;
    kept->pair_first = NULL;
    kept->window_values = NULL;
    kept->transmit_times_s = kept->receive_times_s = NULL;
    kept->transmit_weights = kept->receive_weights = NULL;
    memset(kept->grid.values, 0, sizeof kept->grid.values);

    das_status status = device->backend->plan_create(plan, problem, error);
    if (status != DAS_OK) {
        plan_free(plan, 0, false);
        return status;
    }
    for (int32_t i = 0; i < problem->slots; i++) {
        status = slot_make(plan, &slots[i], error);
        if (status != DAS_OK) {
            plan_free(plan, i, true);
            return status;
        }
    }
    *out = plan;
    return DAS_OK;
}

das_status das_plan_create(das_device *device, const das_acquisition *acquisition, const das_grid *grid,
                           const das_options *options, das_plan **plan, das_error *error)
{
    DAS_REQUIRE_POINTER(plan, error);
    *plan = NULL;
    das_problem problem;
    das_plan_info info;
    fenv_t saved;
    das_float_environment_enter(&saved);
    das_status status = prepare(device, acquisition, grid, options, &problem, &info, error);
    if (status == DAS_OK) {
        status = plan_make(device, &problem, &info, plan, error);
        das_problem_free(&problem);
    }
    das_float_environment_leave(&saved);
    return status;
}

das_status das_plan_get_info(const das_plan *plan, das_plan_info *info, das_error *error)
{
    DAS_REQUIRE_POINTER(plan, error);
    return das_copy_out(info, &plan->info, sizeof plan->info, "info", error);
}

const char *das_plan_description(const das_plan *plan)
{
    return plan != NULL ? plan->description : "";
}

void das_plan_destroy(das_plan **plan)
{
    if (plan == NULL || *plan == NULL)
        return;
    das_plan *old = *plan;
    *plan = NULL;
    das_users_wait(old->device, &old->users);
    plan_free(old, old->problem.slots, true);
}
