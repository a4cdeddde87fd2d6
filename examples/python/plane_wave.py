"""A point, seen by 64 elements after a plane wave, reconstructed from Python. Needs no NumPy."""
import array
import math
import sys

import das

FS, SPEED, CENTRE, SAMPLES = 25e6, 1540.0, 5e6, 1024
POINT = (2e-3, 0.0, 20e-3)
NX, NZ, STEP, ORIGIN = 81, 101, 0.2e-3, (-8e-3, 0.0, 10e-3)

positions = [[(k - 31.5) * 0.3e-3, 0.0, 0.0] for k in range(64)]
rf = array.array("f")
for position in positions:
    tau = (POINT[2] + math.dist(POINT, position)) / SPEED
    for n in range(SAMPLES):
        cycles = (n / FS - tau) * CENTRE
        rf.append(math.exp(-1.5 * cycles * cycles) * math.cos(2 * math.pi * cycles) if abs(cycles) < 8 else 0.0)

device = das.Device(sys.argv[1] if len(sys.argv) > 1 else "auto")
acquisition = das.Acquisition()
acquisition.set_receive_elements(positions)
acquisition.add_plane_transmit(0.0)
acquisition.set_sampling_frequency(FS)
acquisition.set_sound_speed(SPEED)
acquisition.set_data(das.TYPE_F32, SAMPLES)
grid = das.Grid.cartesian(ORIGIN, [[STEP, 0, 0], [0, 0, STEP]], [NX, NZ])
options = das.Options()
options.set_f_number(1.5)
options.set_window(das.WINDOW_HANN, 0.0)
plan = das.Plan(device, acquisition, grid, options)
run = das.Run(device)
run.enable_timing(1)
image = plan.reconstruct(rf, run=run)

z, x = max(((z, x) for z in range(NZ) for x in range(NX)), key=lambda zx: abs(image[zx]))
timing = run.timing()
print(f"libdas {das.version()} on {device.info().name.decode()}: {plan.description()}")
print(f"upload {timing.upload_ms:.3f} ms, compute {timing.compute_ms:.3f} ms, copy back {timing.download_ms:.3f} ms")
print(f"brightest at x {(ORIGIN[0] + x * STEP) * 1e3:.1f} mm, z {(ORIGIN[2] + z * STEP) * 1e3:.1f} mm")
sys.exit(abs(ORIGIN[0] + x * STEP - POINT[0]) > 1.01 * STEP or abs(ORIGIN[2] + z * STEP - POINT[2]) > 1.01 * STEP)
