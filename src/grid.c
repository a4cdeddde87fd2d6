#include "frontend.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Points beyond this are refused, so that indices times small sizes stay in int64. */
static const int64_t point_limit = (int64_t)1 << 62;

static das_status count_points(das_grid *grid, const char *const names[3], das_error *error)
{
    grid->point_count = 1;
    for (int k = 0; k < 3; k++) {
        int64_t count = grid->counts[k];
        DAS_REQUIRE(count >= 1, error, "%s is %" PRId64 "; expected 1 or more", names[k], count);
        if (count > point_limit / grid->point_count)
            return das_fail(error, DAS_ERROR_TOO_LARGE,
                            "%s is %" PRId64 ", making %" PRId64 " x %" PRId64 " x %" PRId64
                            " points; expected at most 2^62",
                            names[k], count, grid->counts[0], grid->counts[1], grid->counts[2]);
        grid->point_count *= count;
    }
    return DAS_OK;
}

/* Hands `made` to the caller as a handle of its own. */
static das_status publish(das_grid *made, das_grid **grid, das_error *error)
{
    *grid = das_calloc(1, sizeof **grid);
    if (*grid == NULL) {
        das_grid_free(made);
        return das_fail_memory(error, "a grid", sizeof **grid);
    }
    **grid = *made;
    return DAS_OK;
}

das_status das_grid_create_cartesian(const double origin_m[3], const double steps_m[9], const int64_t counts[3], das_grid **grid,
                                     das_error *error)
{
    static const char *const names[3] = {"counts[0]", "counts[1]", "counts[2]"};
    das_grid made = {.kind = DAS_GRID_CARTESIAN};
    DAS_REQUIRE_POINTER(grid, error);
    *grid = NULL;
    DAS_REQUIRE_POINTER(origin_m, error);
    DAS_REQUIRE_POINTER(steps_m, error);
    DAS_REQUIRE_POINTER(counts, error);
    memcpy(made.counts, counts, sizeof made.counts);
    das_status status = count_points(&made, names, error);
    if (status == DAS_OK)
        status = das_check_finite(origin_m, 3, "origin_m", error);
    if (status != DAS_OK)
        return status;
    memcpy(made.origin, origin_m, sizeof made.origin);
    for (int k = 0; k < 3; k++) {
        if (counts[k] == 1)
            continue;
        for (int j = 0; j < 3; j++) {
            double step = steps_m[3 * k + j];
            DAS_REQUIRE(isfinite(step), error, "steps_m[%d] is %g; expected a finite number", 3 * k + j, step);
            DAS_REQUIRE(isfinite(step * (double)(counts[k] - 1)), error,
                        "steps_m[%d] is %g, which over %" PRId64 " points overflows; expected metres", 3 * k + j, step, counts[k]);
            made.steps[k][j] = step;
        }
    }
    return publish(&made, grid, error);
}

das_status das_grid_create_polar(const double apex_m[3], int64_t angle_count, const double *angles_rad, int64_t elevation_count,
                                 const double *elevations_rad, int64_t radius_count, const double *radii_m, das_grid **grid,
                                 das_error *error)
{
    static const char *const names[3] = {"angle_count", "elevation_count", "radius_count"};
    static const double zero = 0.0;
    das_grid made = {.kind = DAS_GRID_POLAR, .counts = {angle_count, elevation_count, radius_count}};
    DAS_REQUIRE_POINTER(grid, error);
    *grid = NULL;
    DAS_REQUIRE_POINTER(apex_m, error);
    DAS_REQUIRE_POINTER(angles_rad, error);
    DAS_REQUIRE_POINTER(radii_m, error);
    DAS_REQUIRE(elevations_rad != NULL || elevation_count == 1, error,
                "elevations_rad is NULL with elevation_count %" PRId64 "; expected 1", elevation_count);
    das_status status = count_points(&made, names, error);
    const double *const values[3] = {angles_rad, elevations_rad != NULL ? elevations_rad : &zero, radii_m};
    static const char *const value_names[3] = {"angles_rad", "elevations_rad", "radii_m"};
    if (status == DAS_OK)
        status = das_check_finite(apex_m, 3, "apex_m", error);
    for (int k = 0; status == DAS_OK && k < 3; k++)
        status = das_check_count(made.counts[k], 1, names[k], error);
    for (int k = 0; status == DAS_OK && k < 3; k++)
        status = das_check_finite(values[k], made.counts[k], value_names[k], error);
    for (int k = 0; status == DAS_OK && k < 3; k++) {
        void *copy = NULL;
        status = das_duplicate(values[k], made.counts[k], sizeof(double), &copy, error);
        made.values[k] = copy;
    }
    if (status != DAS_OK) {
        das_grid_free(&made);
        return status;
    }
    memcpy(made.origin, apex_m, sizeof made.origin);
    return publish(&made, grid, error);
}

das_status das_grid_create_points(int64_t count, const double *points_m, das_grid **grid, das_error *error)
{
    static const char *const names[3] = {"count", "", ""};
    das_grid made = {.kind = DAS_GRID_POINTS, .counts = {count, 1, 1}};
    DAS_REQUIRE_POINTER(grid, error);
    *grid = NULL;
    DAS_REQUIRE_POINTER(points_m, error);
    das_status status = count_points(&made, names, error);
    if (status == DAS_OK)
        status = das_check_count(count, 3, "count", error);
    if (status == DAS_OK)
        status = das_check_finite(points_m, 3 * count, "points_m", error);
    void *copy = NULL;
    if (status == DAS_OK)
        status = das_duplicate(points_m, 3 * count, sizeof(double), &copy, error);
    if (status != DAS_OK)
        return status;
    made.values[0] = copy;
    return publish(&made, grid, error);
}

double das_grid_reach(const das_grid *grid)
{
    double reach = 0.0, radius = 0.0;
    if (grid->kind == DAS_GRID_POINTS) {
        for (int64_t i = 0; i < 3 * grid->counts[0]; i++)
            reach = fmax(reach, fabs(grid->values[0][i]));
        return reach;
    }
    for (int64_t i = 0; grid->kind == DAS_GRID_POLAR && i < grid->counts[2]; i++)
        radius = fmax(radius, fabs(grid->values[2][i]));
    for (int j = 0; j < 3; j++) {
        double along = fabs(grid->origin[j]) + radius;
        for (int k = 0; k < 3; k++)
            along += (double)(grid->counts[k] - 1) * fabs(grid->steps[k][j]); /* 0 for a sector */
        reach = fmax(reach, along);
    }
    return reach;
}

void das_grid_point(const das_grid *grid, int64_t i0, int64_t i1, int64_t i2, double point[3])
{
    if (grid->kind == DAS_GRID_POINTS) {
        memcpy(point, grid->values[0] + 3 * i0, 3 * sizeof *point);
    } else if (grid->kind == DAS_GRID_POLAR) {
        double th = grid->values[0][i0], ph = grid->values[1][i1], r = grid->values[2][i2];
        point[0] = grid->origin[0] + r * (sin(th) * cos(ph));
        point[1] = grid->origin[1] + r * sin(ph);
        point[2] = grid->origin[2] + r * (cos(th) * cos(ph));
    } else {
        for (int j = 0; j < 3; j++)
            point[j] = grid->origin[j] + (double)i0 * grid->steps[0][j] + (double)i1 * grid->steps[1][j] +
                       (double)i2 * grid->steps[2][j];
    }
}

das_status das_grid_get_shape(const das_grid *grid, int64_t shape[3], das_error *error)
{
    DAS_REQUIRE_POINTER(grid, error);
    DAS_REQUIRE_POINTER(shape, error);
    memcpy(shape, grid->counts, sizeof grid->counts);
    return DAS_OK;
}

das_status das_grid_get_point(const das_grid *grid, int64_t i0, int64_t i1, int64_t i2, double point_m[3], das_error *error)
{
    DAS_REQUIRE_POINTER(grid, error);
    DAS_REQUIRE_POINTER(point_m, error);
    const int64_t index[3] = {i0, i1, i2};
    for (int k = 0; k < 3; k++)
        DAS_REQUIRE(index[k] >= 0 && index[k] < grid->counts[k], error,
                    "i%d is %" PRId64 "; expected 0 to %" PRId64, k, index[k], grid->counts[k] - 1);
    das_grid_point(grid, i0, i1, i2, point_m);
    return DAS_OK;
}

das_status das_grid_copy(const das_grid *grid, das_grid *copy, das_error *error)
{
    *copy = *grid;
    memset(copy->values, 0, sizeof copy->values);
    das_status status = DAS_OK;
    for (int k = 0; status == DAS_OK && k < 3; k++) {
        int64_t count = grid->kind == DAS_GRID_POINTS ? 3 * grid->counts[0] : grid->counts[k];
        void *values = NULL;
        if (grid->values[k] != NULL)
            status = das_duplicate(grid->values[k], count, sizeof(double), &values, error);
        copy->values[k] = values;
    }
    if (status != DAS_OK)
        das_grid_free(copy);
    return status;
}

void das_grid_free(das_grid *grid)
{
    for (int k = 0; k < 3; k++) {
        free(grid->values[k]);
        grid->values[k] = NULL;
    }
}

void das_grid_destroy(das_grid **grid)
{
    if (grid == NULL || *grid == NULL)
        return;
    das_grid_free(*grid);
    free(*grid);
    *grid = NULL;
}
