#!/bin/bash
# make check-install: installs to scratch folders, builds users of the installed library in C and C++, shared and
# static, through pkg-config alone, loads it from Python, and uninstalls it again.
. "$(dirname "$0")/reporting.sh"

# The build tree under test; its settings come from make's variables.
install=("$MAKE" --no-print-directory O="${DAS_BUILD}" CC="$CC")
[ "$DAS_BUILD" = "$PWD/build" ] && install=("$MAKE" --no-print-directory CC="$CC")

cat >"$scratch/user.c" <<'C'
#include <das/das.h>
#include <math.h>
#include <stdio.h>

/* One element at the origin, a ramp as data: the image is the sample position, 400 at 15 mm. */
int main(void)
{
    static float ramp[1000];
    float image = 0;
    for (int n = 0; n < 1000; n++)
        ramp[n] = (float)n;
    const double element[3] = {0, 0, 0}, point[3] = {0, 0, 15e-3};
    das_error e = DAS_ERROR_INIT;
    das_device *device = NULL;
    das_acquisition *acquisition = NULL;
    das_grid *grid = NULL;
    das_plan *plan = NULL;
    if (das_device_open("cpu", NULL, &device, &e) || das_acquisition_create(&acquisition, &e) ||
        das_acquisition_set_receive_elements(acquisition, 1, element, &e) ||
        das_acquisition_add_plane_transmit(acquisition, 0.0, &e) ||
        das_acquisition_set_sampling_frequency(acquisition, 20e6, &e) ||
        das_acquisition_set_sound_speed(acquisition, 1500.0, &e) ||
        das_acquisition_set_data(acquisition, DAS_TYPE_F32, 1000, &e) || das_grid_create_points(1, point, &grid, &e) ||
        das_plan_create(device, acquisition, grid, NULL, &plan, &e) ||
        das_reconstruct_host(plan, ramp, sizeof ramp, &image, sizeof image, NULL, &e))
        fprintf(stderr, "%s\n", e.message);
    das_plan_destroy(&plan);
    das_grid_destroy(&grid);
    das_acquisition_destroy(&acquisition);
    das_device_destroy(&device);
    printf("%s %.3f\n", das_version_string(), (double)image);
    return !(fabs((double)image - 400.0) < 4e-4);
}
C
cp "$scratch/user.c" "$scratch/user.cpp"
cat >"$scratch/user.py" <<'PY'
import ctypes, sys

das = ctypes.CDLL(sys.argv[1])
pointer, c_int64, c_double = ctypes.c_void_p, ctypes.c_int64, ctypes.c_double


class Error(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("status", ctypes.c_int32), ("message", ctypes.c_char * 512)]


error = Error(ctypes.sizeof(Error))


def call(name, *arguments):
    status = getattr(das, name)(*arguments, ctypes.byref(error))
    if status:
        sys.exit(f"{name}: {status} {error.message.decode()}")


device, acquisition, grid, plan = pointer(), pointer(), pointer(), pointer()
call("das_device_open", b"cpu", None, ctypes.byref(device))
call("das_acquisition_create", ctypes.byref(acquisition))
call("das_acquisition_set_receive_elements", acquisition, c_int64(1), (c_double * 3)())
call("das_acquisition_add_plane_transmit", acquisition, c_double(0))
call("das_acquisition_set_sampling_frequency", acquisition, c_double(20e6))
call("das_acquisition_set_sound_speed", acquisition, c_double(1500))
call("das_acquisition_set_data", acquisition, 6, c_int64(1000))
call("das_grid_create_points", c_int64(1), (c_double * 3)(0, 0, 15e-3), ctypes.byref(grid))
call("das_plan_create", device, acquisition, grid, None, ctypes.byref(plan))
ramp = (ctypes.c_float * 1000)(*range(1000))
image = ctypes.c_float()
call("das_reconstruct_host", plan, ramp, ctypes.c_size_t(4000), ctypes.byref(image), ctypes.c_size_t(4), None)
for name, handle in ("plan", plan), ("grid", grid), ("acquisition", acquisition), ("device", device):
    getattr(das, f"das_{name}_destroy")(ctypes.byref(handle))
    assert not handle
sys.exit(abs(image.value - 400) > 4e-4)
PY

# users NAME ROOT LIBDIR: builds and runs programs against what is installed there.
users()
{
    local name=$1 libdir=$2
    export PKG_CONFIG_PATH=$libdir/pkgconfig
    unset PKG_CONFIG_LIBDIR
    same "$name: pkg-config tells the version of das.h" \
        "$(sed -n 's/^#define DAS_VERSION_[A-Z]* //p' include/das/das.h | paste -sd.)" "$(pkg-config --modversion libdas)"
    local flags shared static
    flags="$(pkg-config --cflags libdas) -Wall -Wextra -Wpedantic -Werror"
    shared=$(pkg-config --libs libdas)
    static=$(pkg-config --static --libs libdas | sed 's/-ldas/-l:libdas.a/')
    for language in c cpp; do
        local compiler=$CC
        [ $language = cpp ] && compiler=$CXX
        # shellcheck disable=SC2086
        expect "$name: $language, shared, compiles" $compiler $flags -o "$scratch/shared-$language" "$scratch/user.$language" $shared -lm
        expect "$name: $language, shared, runs" env LD_LIBRARY_PATH="$libdir" "$scratch/shared-$language"
        # shellcheck disable=SC2086
        expect "$name: $language, static, compiles" $compiler $flags -o "$scratch/static-$language" "$scratch/user.$language" $static
        expect "$name: $language, static, runs" env -u LD_LIBRARY_PATH "$scratch/static-$language"
    done
    same "$name: the program asks for the soname" "libdas.so.0" \
        "$(readelf -d "$scratch/shared-c" | sed -n 's/.*NEEDED.*\[\(libdas.*\)\]/\1/p')"
    if command -v "$PYTHON" >/dev/null; then
        expect "$name: Python loads it" "$PYTHON" "$scratch/user.py" "$libdir/libdas.so.0"
    else
        skip "$name: Python loads it" "no $PYTHON here"
    fi
}

# 1. A prefix of one's own.
prefix=$scratch/own
expect "prefix: installs" "${install[@]}" install PREFIX="$prefix"
users "prefix" "$prefix/lib"
expect "prefix: uninstalls" "${install[@]}" uninstall PREFIX="$prefix"
same "prefix: nothing is left" "" "$(find "$prefix" ! -type d)"

# 2. A package: DESTDIR in front, a multiarch libdir, then moved to its place. Only the paths of libdas.pc
# could tell the two apart, so they must not contain DESTDIR.
stage=$scratch/stage
expect "package: installs" "${install[@]}" install DESTDIR="$stage" prefix=/usr libdir=/usr/lib/somewhere
same "package: files" "usr/include/das/das.h
usr/lib/somewhere/libdas.a
usr/lib/somewhere/libdas.so
usr/lib/somewhere/libdas.so.0
usr/lib/somewhere/$(basename "$(readlink -f "$DAS_LIB/libdas.so")")
usr/lib/somewhere/pkgconfig/libdas.pc" "$(cd "$stage" && find . ! -type d | sed 's|^\./||' | LC_ALL=C sort)"
same "package: libdas.pc does not know DESTDIR" "" "$(grep -F "$stage" "$stage/usr/lib/somewhere/pkgconfig/libdas.pc")"
same "package: links are relative" "libdas.so.0" "$(readlink "$stage/usr/lib/somewhere/libdas.so")"
same "package: the header is readable for all" "644" "$(stat -c %a "$stage/usr/include/das/das.h")"
sed -i "s|/usr|$stage/usr|" "$stage/usr/lib/somewhere/pkgconfig/libdas.pc"
users "package" "$stage/usr/lib/somewhere"
expect "package: uninstalls" "${install[@]}" uninstall DESTDIR="$stage" prefix=/usr libdir=/usr/lib/somewhere
same "package: nothing is left" "" "$(find "$stage" ! -type d)"
totals
