#!/usr/bin/env python3
"""The article's workload on a GPU, three ways in one run: the article's own kernel in Numba CUDA, the same
loop as a CuPy RawKernel, and das_bench.

    tests/peers_gpu.py [--bench DAS_BENCH] [--repeat N]

Each is timed twice: as the article did it, with a host clock and without waiting for the kernel, and properly,
with events on the device. Upload, computation and copy-back are printed apart.
"""
import argparse
import json
import math
import subprocess
import sys
import time

import numpy as np

if not hasattr(np, "row_stack"):
    np.row_stack = np.vstack  # numba looks for it

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


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bench", default="build/bin/das_bench")
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
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
    result = subprocess.run([options.bench, "--workload", "article", "--device", "cuda", "--dtype", "i16", "--repeat", "20", "--json"],
                            stdout=subprocess.PIPE, universal_newlines=True)
    if result.returncode != 0:
        print("das_bench: exit status %d" % result.returncode)
        return 1
    das = json.loads(result.stdout.strip().splitlines()[-1])
    line("libdas", "events on the device", (das["upload_ms"], das["compute_ms"], das["download_ms"]))
    for name, ms in compute.items():
        print("libdas is %.1f times as fast as: %s" % (ms / das["compute_ms"], name))
    return 0


if __name__ == "__main__":
    sys.exit(main())
