/* How much memory will it take? The query answers before anything is allocated; a budget makes the plan cut its work
 * into tiles instead of refusing it. */
#include "example.h"

#include <inttypes.h>

static void print(const char *what, const das_plan_info *info)
{
    printf("%-8s input %" PRIu64 ", output %" PRIu64 ", plan %" PRIu64 ", scratch %" PRIu64 " bytes, %d tiles\n", what,
           info->input_bytes, info->output_bytes, info->plan_bytes, info->slot_bytes, info->tiles);
}

int main(void)
{
    das_error error = DAS_ERROR_INIT;
    das_device *device = NULL;
    das_options *options = NULL;
    das_plan *plan = NULL;
    das_plan_info query = {.struct_size = sizeof query}, made = {.struct_size = sizeof made};
    das_acquisition *acquisition = make_acquisition();
    das_grid *grid = make_grid();
    must(das_acquisition_add_element_transmits(acquisition, &error), &error); /* full matrix: 64 x 64 records */
    must(das_device_open("auto", NULL, &device, &error), &error);
    must(das_plan_query(device, acquisition, grid, NULL, &query, &error), &error);
    print("default", &query);

    must(das_options_create(&options, &error), &error);
    must(das_options_set_memory_budget(options, 8 << 20, &error), &error);
    must(das_plan_query(device, acquisition, grid, options, &query, &error), &error);
    print("8 MiB", &query);
    must(das_plan_create(device, acquisition, grid, options, &plan, &error), &error);
    must(das_plan_get_info(plan, &made, &error), &error);
    printf("%s\n", das_plan_description(plan));

    das_plan_destroy(&plan);
    das_options_destroy(&options);
    das_grid_destroy(&grid);
    das_acquisition_destroy(&acquisition);
    das_device_destroy(&device);
    return made.plan_bytes + made.slot_bytes > 8 << 20 || made.plan_bytes != query.plan_bytes;
}
