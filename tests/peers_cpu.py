#!/usr/bin/env python3
"""Times what others offer on the CPU beside das_bench, in one run, and prints the ratios.

    tests/peers_cpu.py [--install] [--bench build/bin/das_bench] [--columns N] [--repeat N]

--install makes a virtual environment with NumPy, SciPy, Numba and PyMUST in a temporary folder and runs in it.

(a) the article's loop in C, double precision, one thread (das_bench --literal);
(b) the same loop in Numba, one thread, as it was published;
(c) a Numba rewrite on all cores: prange, fastmath, distances worked out once, padded data instead of a bounds check;
(d) PyMUST's delay-and-sum matrix of the disk workload, already built, times 32 frames.

(a) to (c) run over some columns of the image, spread evenly, and are scaled to all of it.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
NX, NZ, NE, NS = 762, 1200, 128, 2000


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--install", action="store_true", help="install the peers with pip, in a temporary folder")
    parser.add_argument("--bench", default=os.path.join(TOP, "build", "bin", "das_bench"))
    parser.add_argument("--columns", type=int, default=4, help="columns of the article's image for (a) and (b)")
    parser.add_argument("--repeat", type=int, default=5)
    return parser.parse_args()


def install_and_rerun():
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        python = os.path.join(folder, "bin", "python")
        subprocess.run([python, "-m", "pip", "install", "--quiet", "numpy", "scipy", "numba", "pymust"], check=True)
        rest = [word for word in sys.argv[1:] if word != "--install"]
        sys.exit(subprocess.run([python, os.path.abspath(__file__)] + rest).returncode)


def bench(program, repeat, *options):
    """The JSON of one run of das_bench; compute_ms is a median."""
    run = subprocess.run([program, "--device", "cpu", "--json", "--repeat", str(repeat), *options], check=True,
                         capture_output=True, text=True)
    return json.loads(run.stdout)


def median_time(function, repeat):
    function()
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return sorted(times)[len(times) // 2]


def numba_loops():
    import numba
    import numpy as np

    @numba.njit
    def published(data, columns, out):
        for at in range(columns.size):
            j = columns[at]
            for i in range(NZ):
                total = 0.0
                for k in range(NE):
                    for n in range(NE):
                        path = np.sqrt(float(i * i + (j - 6 * k) * (j - 6 * k))) + np.sqrt(float(i * i + (j - 6 * n) * (j - 6 * n)))
                        order = int(np.rint(path * 0.05 / 1.54 * 30))
                        if order < NS:
                            total += data[k * NS + order]
                out[at, i] = total

    @numba.njit(parallel=True, fastmath=True)
    def rewritten(padded, columns, out):
        scale = np.float32(0.05 / 1.54 * 30)
        for at in numba.prange(columns.size):
            j = columns[at]
            delay = np.empty((NE, NZ), np.float32)
            for k in range(NE):
                for i in range(NZ):
                    dx, dz = np.float32(j - 6 * k), np.float32(i)
                    delay[k, i] = np.sqrt(dx * dx + dz * dz) * scale
            total = np.zeros(NZ, np.float32)
            for k in range(NE):
                record, own = padded[k], delay[k]
                for n in range(NE):
                    other = delay[n]
                    for i in range(NZ):
                        total[i] += record[np.int32(own[i] + other[i] + np.float32(0.5))]
            out[at] = total

    return published, rewritten


def article(columns, repeat):
    """Seconds of (b) and (c) for the whole image."""
    import numba
    import numpy as np

    published, rewritten = numba_loops()
    data = np.random.default_rng(1).integers(-2048, 2048, NE * NS).astype(np.int64)
    padded = np.zeros((NE, 4096), np.float32)
    padded[:, :NS] = data.reshape(NE, NS)
    few = np.linspace(0, NX - 1, columns).astype(np.int64)
    many = np.linspace(0, NX - 1, max(columns, 8 * numba.get_num_threads())).astype(np.int64)
    out_b, out_few, out_c = (np.zeros((n, NZ), t) for n, t in
                             ((few.size, np.float64), (few.size, np.float32), (many.size, np.float32)))
    published(data, few[:1], out_b)
    start = time.perf_counter()
    published(data, few, out_b)
    seconds_b = (time.perf_counter() - start) * NX / few.size
    rewritten(padded, few, out_few)
    differing = np.mean(np.abs(out_few - out_b) > 1e-3 * np.sqrt(np.mean(out_b ** 2)))
    seconds_c = median_time(lambda: rewritten(padded, many, out_c), repeat) * NX / many.size
    print(f"     the rewrite differs from the published loop at {100 * differing:.2f} % of its points (float rounds near ties)")
    return seconds_b, seconds_c


def pymust_disk(repeat):
    """Seconds of the product, as PyMUST gives the matrix and as complex64 CSR."""
    import numpy as np
    import pymust

    frames, samples = 32, 334
    param = pymust.utils.Param()
    param.fs, param.pitch, param.fc, param.c, param.t0, param.fnumber = (
        20e6 / 3, 0.298e-3, 5e6, 1480.0, np.array([9.95e-6]), 1.0)
    param.width, param.Nelements = 0.25e-3, NE
    x, z = np.meshgrid(np.linspace(-12.5e-3, 12.5e-3, 251), np.linspace(10e-3, 35e-3, 251))
    matrix = pymust.dasmtx(1j * np.array([samples, NE]), x, z, np.zeros(NE), param)
    random = np.random.default_rng(1)
    data = (random.standard_normal((samples * NE, frames)) + 1j * random.standard_normal((samples * NE, frames)))
    as_given = median_time(lambda: matrix @ data, max(1, repeat // 2))
    rows, small = matrix.tocsr().astype(np.complex64), data.astype(np.complex64)
    return as_given, median_time(lambda: rows @ small, repeat), rows.nnz


def main():
    settings = arguments()
    if settings.install:
        install_and_rerun()
    try:
        import numba
        import pymust  # noqa: F401
    except ImportError as problem:
        sys.exit(f"{problem}; run with --install")

    ms = 1e-3
    literal = bench(settings.bench, settings.repeat, "--workload", "article", "--literal", str(settings.columns))
    print(f"das_bench: {literal['device_description']}; Numba {numba.__version__}, {numba.get_num_threads()} threads")
    ours = literal["compute_ms"] * ms
    seconds_b, seconds_c = article(settings.columns, settings.repeat)
    again = bench(settings.bench, settings.repeat, "--workload", "article")["compute_ms"] * ms
    ours = sorted((ours, again))[0]
    print(f"article  {ours:9.4f} s  libdas, {literal['kernel']}")
    for name, seconds in (("(a) literal C loop, 1 thread", literal["literal_scaled_ms"] * ms),
                          ("(b) the article's Numba loop, 1 thread", seconds_b),
                          ("(c) Numba rewrite, all threads", seconds_c)):
        print(f"         {seconds:9.4f} s  {name}: {seconds / ours:.1f} x libdas")

    terms = NX * NZ * NE * NE
    for dtype, interp in (("f32", "nearest"), ("f32", "linear"), ("i16", "nearest"), ("i16", "linear")):
        run = bench(settings.bench, settings.repeat, "--workload", "fmc", "--dtype", dtype, "--interp", interp)
        seconds = run["compute_ms"] * ms
        print(f"fmc      {seconds:9.4f} s  {dtype} {interp}: {terms / seconds:.3g} terms/s, "
              f"{100 * ours / seconds:.0f} % of the article's, packing {run['pack_ms']:.1f} ms")

    as_given, csr, nonzeros = pymust_disk(settings.repeat)
    run = bench(settings.bench, settings.repeat, "--workload", "disk")
    seconds = run["compute_ms"] * ms
    print(f"disk     {seconds:9.4f} s  libdas, {run['kernel']}")
    print(f"         {as_given:9.4f} s  (d) PyMUST's matrix as built (complex128, COO) times 32 frames: {as_given / seconds:.1f} x libdas")
    print(f"         {csr:9.4f} s      the same as complex64 CSR, {nonzeros} non-zeros: {csr / seconds:.1f} x libdas")

    for isa in ("scalar", "avx2", "avx512", "neon"):
        def forced(*options):
            return bench(settings.bench, settings.repeat, "--isa", isa, *options)
        try:
            run = forced("--workload", "article", "--threads", "1")
        except subprocess.CalledProcessError:
            continue
        print(f"{isa}: article, one thread {run['compute_ms'] * ms:.4f} s, {run['points_per_s']:.3g} terms/s")
        if isa == "scalar":
            continue
        all_threads = forced("--workload", "article")["compute_ms"] * ms
        linear = forced("--workload", "fmc", "--interp", "linear")["compute_ms"] * ms
        disk = forced("--workload", "disk")["compute_ms"] * ms
        print(f"    all threads: article {all_threads:.4f} s; fmc linear {linear:.4f} s, {100 * all_threads / linear:.0f} % of "
              f"the article's terms/s; disk {disk:.4f} s, PyMUST {as_given / disk:.1f} x libdas")


if __name__ == "__main__":
    main()
