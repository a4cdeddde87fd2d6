#!/usr/bin/env python3
"""libdas beside other code on one CUDA card, in one run.

    tests/peers_gpu.py [--bench DAS_BENCH] [--lib FOLDER] [--repeat N] [WORKLOAD ...]

article: the article's own kernel in Numba CUDA and the same loop as a CuPy RawKernel. Each is timed twice: as the article
did it, with a host clock and without waiting for the kernel, and properly, with events on the device. Upload, computation
and copy-back are printed apart.

disk, volume, volume_rf: the packages mach (mach-beamform) and ffdas (with ffdas-core of the card's CUDA), on the workloads
of das_bench. Compute only, on random data that is on the card already: events around a warm call, and the call's kernels
and copies alone, as PyTorch's profiler sees them. Each package gets the layout it wants, its points with x or with z
fastest, and all of its algorithms; its image is compared with libdas's.

What is not installed is left out. CuPy is needed; ffdas needs the loader to find CUDA's libraries.
"""
import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
import traceback
import warnings

import numpy as np

if not hasattr(np, "row_stack"):
    np.row_stack = np.vstack  # numba looks for it
warnings.filterwarnings("ignore", module="torch")

COLUMNS, ROWS, ELEMENTS, SAMPLES = 762, 1200, 128, 2000
def timed(upload, compute, download, event, synchronize, elapsed, repeat):
    """Milliseconds of the three phases: by a host clock without waiting, and by events; medians."""
    naive, proper = [], []
    for i in range(repeat + 1):
        synchronize()
        t = [time.perf_counter()]
        upload()
        t.append(time.perf_counter())
        compute()
        t.append(time.perf_counter())
        download()
        t.append(time.perf_counter())
        e = [event()]
        for phase in (upload, compute, download):
            phase()
            e.append(event())
        synchronize()
        if i > 0:  # the first compiles and warms up
            naive.append([1e3 * (b - a) for a, b in zip(t, t[1:])])
            proper.append([elapsed(a, b) for a, b in zip(e, e[1:])])
    return np.median(naive, axis=0), np.median(proper, axis=0)


def line(name, timing, phases):
    print("%-34s %-24s upload %9.3f ms  compute %9.3f ms  copy-back %9.3f ms" % (name, timing, *phases), flush=True)


def numba_article(data, repeat):
    from numba import cuda

    @cuda.jit
    def kernel(out, raw):
        i = cuda.blockIdx.x
        j = cuda.threadIdx.x
        for k in range(ELEMENTS):
            for n in range(ELEMENTS):
                order = round((math.sqrt(i * i + (j - 6 * k) ** 2) + math.sqrt(i * i + (j - 6 * n) ** 2)) * 0.05 / 1.54 * 30)
                if order < SAMPLES:
                    out[j, i] += raw[k, order]

    state = {"out": cuda.device_array((COLUMNS, ROWS), np.float64)}
    zeros = np.zeros((COLUMNS, ROWS))

    def upload():
        state["raw"] = cuda.to_device(data)
        state["out"] = cuda.to_device(zeros)

    def compute():
        kernel[ROWS, COLUMNS](state["out"], state["raw"])

    def download():
        state["image"] = state["out"].copy_to_host()

    def event():
        e = cuda.event()
        e.record()
        return e

    times = timed(upload, compute, download, event, cuda.synchronize, cuda.event_elapsed_time, repeat)
    return times, state["image"]


def cupy_rawkernel(data, repeat):
    import cupy

    source = r"""
    extern "C" __global__ void article(double *out, const long long *data)
    {
        int i = blockIdx.x, j = threadIdx.x;
        double sum = 0;
        for (int k = 0; k < 128; k++)
            for (int n = 0; n < 128; n++) {
                double x = j - 6 * k, y = j - 6 * n, z = (double)i * i;
                long long order = llrint((sqrt(z + x * x) + sqrt(z + y * y)) * 0.05 / 1.54 * 30);
                if (order < 2000)
                    sum += data[k * 2000 + order];
            }
        out[j * 1200 + i] = sum;
    }"""
    kernel = cupy.RawKernel(source, "article")
    state = {}
    out = cupy.empty((COLUMNS, ROWS), np.float64)

    def upload():
        state["raw"] = cupy.asarray(data)

    def compute():
        kernel((ROWS,), (COLUMNS,), (out, state["raw"]))

    def download():
        state["image"] = cupy.asnumpy(out)

    def event():
        e = cupy.cuda.Event()
        e.record()
        return e

    times = timed(upload, compute, download, event, cupy.cuda.Device().synchronize, cupy.cuda.get_elapsed_time, repeat)
    return times, state["image"]


def bench(options, *arguments):
    """What das_bench measured, None if it failed."""
    result = subprocess.run([options.bench, "--device", "cuda", "--repeat", "20", "--json", *map(str, arguments)],
                            stdout=subprocess.PIPE, universal_newlines=True)
    if result.returncode != 0:
        print("das_bench: exit status %d" % result.returncode)
        return None
    return json.loads(result.stdout.strip().splitlines()[-1])


def article(options):
    data = np.random.default_rng(1).integers(-2048, 2048, (ELEMENTS, SAMPLES))
    images, compute = {}, {}
    for name, run in (("article, Numba CUDA", numba_article), ("article, CuPy RawKernel", cupy_rawkernel)):
        try:
            (naive, proper), images[name] = run(data, options.repeat)
        except ImportError as error:
            print("%s: not measured, %s" % (name, error))
            continue
        line(name, "host clock, no waiting", naive)
        line(name, "events on the device", proper)
        compute[name] = proper[1]
    if len(images) == 2:
        a, b = images.values()
        print("the two images are %s" % ("equal" if np.array_equal(a, b) else "different: %d pixels" % np.sum(a != b)))
    das = bench(options, "--workload", "article", "--dtype", "i16")
    if not das:
        return False
    line("libdas", "events on the device", (das["upload_ms"], das["compute_ms"], das["download_ms"]))
    for name, ms in compute.items():
        print("libdas is %.1f times as fast as: %s" % (ms / das["compute_ms"], name))
    return True


# As in das_bench.c; all are one plane wave straight down.
PLANE_WAVES = {
    "disk": dict(columns=128, rows=1, pitch=0.298e-3, first=-18.923e-3, iq=True, samples=334, fs=20e6 / 3, start=9.95e-6,
                 fd=5e6, c=1480.0, origin=(-12.5e-3, 0, 10e-3), last=(12.5e-3, 0, 35e-3), counts=(251, 1, 251)),
    "volume": dict(columns=32, rows=32, pitch=0.5e-3, first=-7.75e-3, iq=True, samples=512, fs=3.08e6, start=0.0,
                   fd=3.08e6, c=1540.0, origin=(-8e-3, -8e-3, 10e-3), last=(8e-3, 8e-3, 26e-3), counts=(64, 64, 64)),
    "volume_rf": dict(columns=32, rows=32, pitch=0.5e-3, first=-7.75e-3, iq=False, samples=2048, fs=12.32e6, start=0.0,
                      fd=0.0, c=1540.0, origin=(-8e-3, -8e-3, 10e-3), last=(8e-3, 8e-3, 26e-3), counts=(64, 64, 64)),
}
# Workload, frames, f-number, float16 storage.
RUNS = (("disk", 1, 1.0, False), ("disk", 32, 1.0, False), ("disk", 32, 0.0, False), ("disk", 512, 1.0, False),
        ("volume", 128, 0.0, False), ("volume", 128, 0.0, True), ("volume_rf", 32, 0.0, False), ("volume_rf", 32, 0.0, True))


class Problem:
    """Geometry, and data as [frame][element][sample][part] on the host."""

    def __init__(self, name, frames, f_number, half):
        self.__dict__.update(PLANE_WAVES[name])
        self.frames, self.f_number, self.half = frames, f_number, half
        place = self.first + self.pitch * np.arange(self.columns)
        x, y = np.meshgrid(place, place if self.rows > 1 else [0.0])
        self.elements = np.stack([x.ravel(), y.ravel(), 0 * x.ravel()], axis=-1)
        axes = [np.linspace(a, b, n) for a, b, n in zip(self.origin, self.last, self.counts)]
        z, y, x = np.meshgrid(*axes[::-1], indexing="ij")
        self.points = np.stack([x, y, z], axis=-1)  # [z][y][x][3]
        shape = (frames, len(self.elements), self.samples, 2 if self.iq else 1)
        self.data = np.random.default_rng(1).random(shape, dtype=np.float32)
        self.data -= np.float32(0.5)
        if half:
            self.data = self.data.astype(np.float16)

    def ordered_points(self, z_fastest):
        points = self.points.transpose(2, 1, 0, 3) if z_fastest else self.points
        return np.ascontiguousarray(points.reshape(-1, 3))

    def image(self, values, z_fastest):
        """[frame][point] in that order as [frame][z][y][x]."""
        if z_fastest:
            return values.reshape((self.frames,) + self.counts).transpose(0, 3, 2, 1)
        return values.reshape((self.frames,) + self.counts[::-1])


def call_ms(call, repeat):
    """Median by events, each call queued behind another so that its launch is not measured where it does not wait."""
    import cupy
    stream, times = cupy.cuda.Stream.null, []
    for i in range(repeat + 2):
        start, end = cupy.cuda.Event(), cupy.cuda.Event()
        call()
        start.record(stream)
        call()
        end.record(stream)
        end.synchronize()
        if i >= 2:
            times.append(cupy.cuda.get_elapsed_time(start, end))
    return np.median(times)


def kernels_ms(call, repeat):
    """Median sum of what runs on the device in a call; not a number without a profiler."""
    try:
        import torch
        torch.cuda.synchronize()
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
            for _ in range(repeat):
                call()
            torch.cuda.synchronize()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "trace.json")
            profile.export_chrome_trace(path)
            with open(path) as file:
                events = json.load(file)["traceEvents"]
        events = [e for e in events if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
        events = [e["dur"] for e in sorted(events, key=lambda e: e["ts"])]
        return np.median(np.reshape(events, (repeat, -1)).sum(axis=1)) * 1e-3
    except Exception as error:
        print("  profiler: %s: %s" % (type(error).__name__, error))
        return math.nan


def libdas_calls(p, options):
    """Name, call, and what fetches its image; one after the other."""
    import cupy
    os.environ.setdefault("DAS_LIB", options.lib)
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "examples", "python"))
    import das
    kinds = ((das.TYPE_F32, das.TYPE_F16), (das.TYPE_CF32, das.TYPE_CF16))
    acquisition, settings, device = das.Acquisition(), das.Options(), das.Device("cuda")
    acquisition.set_receive_elements(p.elements)
    acquisition.add_plane_transmit(0.0)
    acquisition.set_start_times([p.start])
    acquisition.set_sampling_frequency(p.fs)
    acquisition.set_demodulation_frequency(p.fd)
    acquisition.set_sound_speed(p.c)
    acquisition.set_data(kinds[p.iq][p.half], p.samples)
    acquisition.set_frame_count(p.frames)
    steps = [(b - a) / max(n - 1, 1) for a, b, n in zip(p.origin, p.last, p.counts)]
    grid = das.Grid.cartesian(p.origin, np.diag(steps), p.counts)
    settings.set_interpolation(das.LINEAR)
    settings.set_f_number(p.f_number)
    plan, queue = das.Plan(device, acquisition, grid, settings), das.Queue(device)
    info = plan.info()
    data, image = das.Buffer(device, info.input_bytes), das.Buffer(device, info.output_bytes)
    data.upload(queue, p.data)
    queue.wait()

    def call():
        plan.queue(queue, data, image)
        queue.wait()

    def fetch():
        call()
        values = np.empty(info.output_bytes // 4, np.float32)
        image.download(queue, values)
        queue.wait()
        return p.image(cupy.asarray(values.view(np.complex64) if p.iq else values), False)

    yield "libdas, called from Python", call, fetch


def mach_calls(p, options):
    """mach: [element][sample][frame] in, [point][frame] out, added to what is there. No float16."""
    if p.half:
        return
    import cupy
    import mach
    from mach._cuda_impl import InterpolationType, beamform  # without the checks of mach.beamform(), some 0.1 ms
    data = p.data.view(np.complex64) if p.iq else p.data
    data = cupy.ascontiguousarray(cupy.asarray(data[..., 0]).transpose(1, 2, 0))
    elements = cupy.asarray(p.elements, np.float32)
    out = cupy.zeros((p.points.size // 3, p.frames), data.dtype)
    for z_fastest in (False, True):
        points = cupy.asarray(p.ordered_points(z_fastest), np.float32)
        arrivals = cupy.asarray(p.ordered_points(z_fastest)[:, 2] / p.c, np.float32)

        def call():
            beamform(channel_data=data, rx_coords_m=elements, scan_coords_m=points, tx_wave_arrivals_s=arrivals, out=out,
                     f_number=p.f_number, rx_start_s=p.start, sampling_freq_hz=p.fs, sound_speed_m_s=p.c,
                     modulation_freq_hz=p.fd, tukey_alpha=0.0, interp_type=InterpolationType.Linear)

        def fetch():
            out.fill(0)
            call()
            return p.image(out.T, z_fastest)

        yield "mach %s, %s fastest" % (mach.__version__, "z" if z_fastest else "x"), call, fetch


def ffdas_calls(p, options):
    """ffdas: [frame][element][1][sample] in, [frame][point] out, lengths in samples. It has no f-number: a cone about each
    element's normal gives the same aperture. The phase is that of the time since sample 0."""
    import cupy
    import ffdas
    from ffdas._core import _ffdas
    from ffdas._core.library import get_library_handle
    k = p.fs / p.c
    if p.half:
        data = cupy.asarray(p.data[:, :, None])
        data = ffdas.view(data, ffdas.half2) if p.iq else data[..., 0]
    else:
        data = cupy.asarray((p.data.view(np.complex64) if p.iq else p.data)[:, :, None, :, 0])
    kind = np.complex64 if p.iq else np.float32
    elements = cupy.asarray(p.elements * k, np.float32)
    cone = None
    if p.f_number > 0:
        cone = cupy.zeros((len(p.elements), 4), np.float32)
        cone[:, 2], cone[:, 3] = 1, 1 / math.hypot(1, 0.5 / p.f_number)
    out = cupy.empty((p.frames, p.points.size // 3), kind)
    weights, zero = cupy.ones((1, out.shape[1]), np.float32), np.zeros(1, kind)
    turn = kind(np.exp(2j * math.pi * p.fd * p.start)) if p.iq else kind(1)
    for z_fastest in (False, True):
        points = cupy.asarray(p.ordered_points(z_fastest) * k, np.float32)
        offsets = cupy.asarray(p.ordered_points(z_fastest)[None, :, 2] * k - p.start * p.fs, np.float32)
        for algorithm in (ffdas.Algorithm.ALG1, ffdas.Algorithm.ALG2, ffdas.Algorithm.ALG4):
            if algorithm == ffdas.Algorithm.ALG4 and not p.iq:
                continue  # complex data only

            def call():  # ffdas.das() without its checks
                _ffdas.das(get_library_handle(), data, elements, points, offsets, weights, cone, 2 * math.pi * p.fd / p.fs,
                           zero, out, algorithm, _ffdas.ComputeType.FP32, False)

            def fetch():
                call()
                return p.image(out * turn, z_fastest)

            name = "ffdas %s %s, %s fastest" % (ffdas.__version__, algorithm.name, "z" if z_fastest else "x")
            yield name, call, fetch


def relative_error(image, reference):
    import cupy
    difference = image - reference
    return float(cupy.sqrt(cupy.sum(cupy.abs(difference) ** 2, dtype=np.float64) /
                           cupy.sum(cupy.abs(reference) ** 2, dtype=np.float64)))


def packages(options, name, frames, f_number, half):
    """One run of all packages on one workload; a package's fastest way is the one with the shortest kernels."""
    import cupy
    p = Problem(name, frames, f_number, half)
    print("\n%s, %d frames, %s, f-number %g" % (name, frames, "float16" if half else "float32", f_number), flush=True)
    reference, best = None, {}
    for package, calls in (("libdas", libdas_calls), ("mach", mach_calls), ("ffdas", ffdas_calls)):
        ways = calls(p, options)
        while True:
            try:
                way, call, fetch = next(ways)
                image = fetch()
                if reference is None:
                    reference = image
                error = relative_error(image, reference)
                del image
                times = call_ms(call, options.repeat), kernels_ms(call, options.repeat)
            except StopIteration:
                break
            except ImportError as problem:
                print("  %s: not installed (%s)" % (package, problem))
                break
            except Exception:
                print("  %s, a way it cannot go:" % package)
                traceback.print_exc(file=sys.stdout)
                continue
            print("  %-34s call %9.4f ms  kernels alone %9.4f ms  from libdas's image %.2g" % (way, *times, error), flush=True)
            least = times[1] if math.isfinite(times[1]) else times[0]
            if package != "libdas" and (package not in best or least < best[package][0]):
                best[package] = least, times[0], way, error
        if package == "libdas" and reference is None:
            return False
        cupy.get_default_memory_pool().free_all_blocks()
    das = bench(options, "--workload", name, "--frames", frames, "--f-number", f_number,
                "--dtype", "%sf%d" % ("c" if p.iq else "", 16 if half else 32))
    if not das:
        return False
    print("  das_bench: compute %.4f ms, of which packing %.4f ms, error %.2g"
          % (das["compute_ms"], das["pack_ms"], das["max_error"]))
    for kernels, whole, way, error in best.values():
        print("  libdas is %.2f times as fast as the call of %s (from libdas's image %.2g), %.2f times as its kernels alone"
              % (whole / das["compute_ms"], way, error, kernels / das["compute_ms"]), flush=True)
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bench", default="build/bin/das_bench")
    parser.add_argument("--lib", default="build/lib", help="folder of libdas.so")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help="article, disk, volume, volume_rf; default all")
    options = parser.parse_args()
    good = True
    if not options.workloads or "article" in options.workloads:
        good = article(options)
    for run in RUNS:
        if not options.workloads or run[0] in options.workloads:
            try:
                good = packages(options, *run) and good
            except Exception:
                traceback.print_exc(file=sys.stdout)
                good = False
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
