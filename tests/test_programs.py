"""das_image, das_simulate and das_bench as their users meet them: values, file formats, pictures, and every kind of bad
input, each of which must end with status 1, one line that names the culprit, and no file."""
import csv
import json
import math
import os
import random
import resource
import signal
import struct
import subprocess
import zlib

from reporting import Image, case, finish, program, report, run, scratch_folder

for name in ("das_image", "das_simulate", "das_bench"):
    if not os.access(program(name), os.X_OK):
        report("SKIP", "programs", f"{program(name)} is not built")
        finish()

scratch = scratch_folder()
folder = scratch.name
C, FS = 1500.0, 20e6  # one sample is 75 um of path
PLANE = [{"type": "plane", "angle_rad": 0.0}]


def path(name):
    return os.path.join(folder, name)


def write(name, content):
    with open(path(name), "wb" if isinstance(content, bytes) else "w") as file:
        file.write(content)
    return path(name)


def floats(*values):
    return struct.pack(f"<{len(values)}f", *values)


def acquisition(data, shape, axes=("receive", "sample"), dtype="<f4", positions=((0, 0, 0),), transmits=PLANE, **more):
    """Writes rf.bin and acquisition.json; more: further keys, those of `data` as data_offset=... and so on."""
    write("rf.bin", data)
    content = {"data": {"file": "rf.bin", "dtype": dtype, "axes": list(axes), "shape": list(shape)},
               "sampling_frequency_hz": FS, "sound_speed_m_s": C, "receive": {"positions_m": [list(p) for p in positions]},
               "transmits": transmits}
    for key, value in more.items():
        place, _, rest = key.partition("_")
        if place in ("data", "receive"):
            content[place][rest] = value
        else:
            content[key] = value
    return write("acquisition.json", json.dumps(content))


def ramp(count):
    return floats(*range(count))


def image(*options, x=0.0, z=0.015, json_path=None):
    """das_image at one point, as an Image."""
    out = path("out.npy")
    if os.path.exists(out):
        os.remove(out)
    result = run("das_image", "--x", f"{x!r}:{x!r}:1", "--z", f"{z!r}:{z!r}:1", *options, json_path or path("acquisition.json"), out)
    assert result.returncode == 0, result.stderr
    assert result.stderr == "", result.stderr
    return Image(out)


def near(got, want, tolerance=1e-6):
    assert abs(got - want) <= tolerance * max(abs(want), 1e-30) or got == want, f"{got} is not {want}"


def refused(arguments, *words, name="das_image", **options):
    """Status 1, one line with all the words, nothing on stdout, and no file more than before."""
    before = sorted(os.listdir(folder))
    result = run(name, *arguments, **options)
    what = " ".join(map(str, arguments)).replace(folder + "/", "")
    assert result.returncode == 1, f"{what}: status {result.returncode}: {result.stderr}"
    assert result.stderr.count("\n") == 1 and result.stderr.endswith("\n"), f"{what}: not one line: {result.stderr}"
    for word in words:
        assert str(word) in result.stderr, f"{what}: no '{word}' in: {result.stderr}"
    assert result.stdout == "", result.stdout
    assert sorted(os.listdir(folder)) == before, f"{what}: left {set(os.listdir(folder)) - set(before)}"


def clear():
    for name in ("out.npy", "out.png"):
        if os.path.exists(path(name)):
            os.remove(path(name))


# ---------------------------------------------------------------------------------------------------------------------
# Values
# ---------------------------------------------------------------------------------------------------------------------
@case("ramp, plane wave: 400")
def _():
    acquisition(ramp(1000), (1, 1000))
    got = image()
    assert got.shape == (1, 1) and got.dtype == "<f4", (got.shape, got.dtype)
    near(got.values[0], 400)


@case("ramp, one-way: 200")
def _():
    acquisition(ramp(1000), (1, 1000), transmits=[{"type": "none"}])
    near(image().values[0], 200)


@case("start times: 300, 500, 700")
def _():
    for start, want in ((5e-6, 300), (-5e-6, 500)):
        acquisition(ramp(1000), (1, 1000), start_time_s=start)
        near(image().values[0], want)
    acquisition(ramp(1000) * 2, (2, 1, 1000), ("transmit", "receive", "sample"), transmits=PLANE * 2, start_time_s=[0, 5e-6])
    near(image().values[0], 700)
    # shared data: one record for both transmits
    acquisition(ramp(1000), (1, 1000), transmits=PLANE * 2, start_time_s=[0, 5e-6])
    near(image().values[0], 700)


@case("sampling frequency 10 MHz, start 5 us: 150")
def _():
    acquisition(ramp(1000), (1, 1000), start_time_s=5e-6, sampling_frequency_hz=10e6)
    near(image().values[0], 150)


@case("record's end: 400, 0, 0 beside a channel of weight 0")
def _():
    for count, want in ((401, 400), (400, 0), (399, 0)):
        acquisition(ramp(count) + floats(*[1e6] * count), (2, count), positions=((0, 0, 0), (0, 0, 0)), receive_weights=[1, 0])
        near(image().values[0], want)


@case("a channel of weight 0 full of NaN")
def _():
    acquisition(ramp(1000) + floats(*[math.nan] * 1000), (2, 1000), positions=((0, 0, 0), (0, 0, 0)), receive_weights=[1, 0])
    near(image().values[0], 400)


@case("nearest: 400; between samples: 12.5")
def _():
    acquisition(ramp(1000), (1, 1000))
    near(image("--interp", "nearest").values[0], 400)
    values = [0.0] * 1000
    values[400], values[401] = 10, 20
    acquisition(floats(*values), (1, 1000))
    near(image(z=0.015009375).values[0], 12.5)


@case("every interpolation on a ramp")
def _():
    acquisition(ramp(1000), (1, 1000))
    for interpolation in ("linear", "quadratic", "cubic"):
        near(image("--interp", interpolation, z=0.015009375).values[0], 400.25)
    near(image("--interp", "lanczos", z=0.015).values[0], 400)


@case("tilted plane wave by angle and by direction: 560, 400")
def _():
    a = math.asin(0.6)
    for transmit, want in (({"type": "plane", "angle_rad": a}, 560), ({"type": "plane", "angle_rad": -a}, 400),
                           ({"type": "plane", "direction": [3, 0, 4]}, 560)):
        acquisition(ramp(1000), (1, 1000), positions=((0.01, 0, 0),), transmits=[transmit])
        near(image(x=0.01, z=0.02).values[0], want)
    acquisition(ramp(1000), (1, 1000), transmits=[{"type": "plane", "angle_rad": 0, "origin_m": [0, 0, 0.0075]}])
    near(image().values[0], 300)


@case("focused: c tau = 10, 20, 30 mm; diverging; element by position and by index")
def _():
    for z in (0.01, 0.02, 0.03):
        acquisition(ramp(1000), (1, 1000), transmits=[{"type": "focused", "focus_m": [0, 0, 0.02]}])
        near(image(z=z).values[0], 2 * z / 75e-6)
    acquisition(ramp(1000), (1, 1000), transmits=[{"type": "diverging", "source_m": [0, 0, -0.01]}])
    near(image().values[0], 400)
    for transmit in ({"type": "element", "position_m": [0.009, 0, 0]}, {"type": "element", "index": 1}):
        acquisition(floats(*[0] * 1000) + ramp(1000), (2, 1000), positions=((0, 0, 0), (0.009, 0, 0)), transmits=[transmit])
        near(image(z=0.012).values[0], 400)


@case("f-number 1.5: 3 of 5 elements")
def _():
    xs = (0, 0.0025, 0.0049, 0.0051, 0.01)
    acquisition(floats(*[1] * 5000), (5, 1000), positions=[(x, 0, 0) for x in xs])
    near(image("--f-number", "1.5").values[0], 3)
    near(image("--f-number", "1.5", "--normalize", "count").values[0], 1)
    hann = [(1 + math.cos(math.pi * x / 0.005)) / 2 for x in xs[:3]]
    near(image("--f-number", "1.5", "--window", "hann").values[0], sum(hann))
    near(image("--f-number", "1.5", "--window", "hann", "--normalize", "weights").values[0], 1)
    near(image("--f-number", "1.5", "--window", "tukey:1").values[0], sum(hann))
    near(image("--f-number", "1.5", "--window", "tukey:0").values[0], 3)
    near(image("--f-number", "1.5", "--window", "hamming").values[0], sum(0.08 + 0.92 * w for w in hann))
    # elements that look along +x see nothing of a point in front of them
    acquisition(floats(*[1] * 5000), (5, 1000), positions=[(x, 0, 0) for x in xs], receive_normals=[[1, 0, 0]] * 5)
    near(image("--f-number", "1.5").values[0], 0)


@case("IQ: +j")
def _():
    for dtype, data in (("<c8", floats(*[1, 0] * 1000)), ("<i2x2", struct.pack("<2000h", *[1, 0] * 1000)),
                        ("<f2x2", struct.pack("<2000e", *[1, 0] * 1000))):
        acquisition(data, (1, 1000), dtype=dtype, demodulation_frequency_hz=5e6, start_time_s=5.05e-6)
        got = image(z=20.05e-6 * C / 2)
        assert got.dtype == "<c8"
        assert abs(got.values[0] - 1j) < 1e-5, got.values[0]


@case("one-way from the side: 200")
def _():
    acquisition(ramp(1000), (1, 1000), positions=((0.009, 0, 0),), transmits=[{"type": "none"}])
    near(image(z=0.012).values[0], 200)


@case("128 elements of int16 32767 at one sample: 4194176")
def _():
    acquisition(struct.pack("<h", 32767) * 128 * 500, (128, 500), dtype="<i2", positions=((0, 0, 0),) * 128)
    near(image().values[0], 4194176)


@case("a pixel on an element, window hann, f-number 1: 0")
def _():
    acquisition(ramp(1000), (1, 1000))
    assert image("--f-number", 1, "--window", "hann", z=0.0).values[0] == 0


THREE = [struct.pack("<1000f", *[10000 * t + 1000 * r + n for n in range(1000)]) for t in range(2) for r in range(3)]


@case("2 transmits x 3 receives: 38400, and each of them kept")
def _():
    acquisition(b"".join(THREE), (2, 3, 1000), ("transmit", "receive", "sample"), positions=((0, 0, 0),) * 3, transmits=PLANE * 2)
    near(image().values[0], 38400)
    for keep, shape, want in (("transmit", (2, 1, 1), [4200, 34200]), ("receive", (3, 1, 1), [10800, 12800, 14800]),
                              ("transmit,receive", (2, 3, 1, 1), [10000 * t + 1000 * r + 400 for t in range(2) for r in range(3)])):
        got = image("--keep", keep)
        assert got.shape == shape, got.shape
        for a, b in zip(got.values, want):
            near(a, b)


@case("axes in any order")
def _():
    values = [[[10000 * t + 1000 * r + n for n in range(500)] for r in range(3)] for t in range(2)]
    for axes in (("sample", "transmit", "receive"), ("receive", "sample", "transmit"), ("transmit", "sample", "receive")):
        size = {"transmit": 2, "receive": 3, "sample": 500}
        flat = [values[i["transmit"]][i["receive"]][i["sample"]]
                for a in range(size[axes[0]]) for b in range(size[axes[1]]) for c in range(size[axes[2]])
                for i in [dict(zip(axes, (a, b, c)))]]
        acquisition(floats(*flat), [size[a] for a in axes], axes, positions=((0, 0, 0),) * 3, transmits=PLANE * 2)
        near(image().values[0], 38400)


@case("frames: all in a .npy, one by --frame, in any place")
def _():
    for axes, data in ((("frame", "sample"), b"".join(floats(*[n + 1000 * f for n in range(500)]) for f in range(3))),
                       (("sample", "frame"), floats(*[n + 1000 * f for n in range(500) for f in range(3)]))):
        acquisition(data, (3, 500) if axes[0] == "frame" else (500, 3), axes)
        got = image()
        assert got.shape == (3, 1, 1), got.shape
        for f in range(3):
            near(got.values[f], 400 + 1000 * f)
            only = image("--frame", f)
            assert only.shape == (1, 1)
            near(only.values[0], 400 + 1000 * f)


@case("every type of sample")
def _():
    small = [n % 100 for n in range(401)]
    packs = {"|i1": ("b", 0), "|u1": ("B", 3), "<i2": ("h", 0), "<u2": ("H", 32768), "<i4": ("i", 0), "<i8": ("q", 0),
             "<f2": ("e", 0), "<f4": ("f", 0), "<f8": ("d", 0)}
    for dtype, (letter, offset) in packs.items():
        acquisition(struct.pack(f"<401{letter}", *[n + offset + (1 if k == 400 else 0) for k, n in enumerate(small)]), (1, 401),
                    dtype=dtype, data_offset=offset)
        near(image().values[0], small[400] + 1)
    acquisition(struct.pack("<401q", *[2**53] * 401), (1, 401), dtype="<i8")
    near(image().values[0], 2**53)


@case("text: line ends, blank lines and trailing spaces do not matter")
def _():
    base = json.load(open(acquisition(b"", (1, 401))))
    base["data"] = {"file": "source.txt", "format": "text", "axes": ["receive", "sample"], "shape": [1, 401]}
    write("acquisition.json", json.dumps(base))
    write("source.txt", "\r\n\n".join(f"{n}  " for n in range(401)) + "\n\n")
    near(image().values[0], 400)
    write("source.txt", " ".join(f"{n}.0e0" for n in range(401)))
    near(image().values[0], 400)


def npy(descr, order, shape, data, version=1):
    header = f"{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}".encode()
    header += b" " * (53 - len(header) % 64 if len(header) % 64 <= 53 else 117 - len(header) % 64) + b"\n"
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", len(header)) + header + data


@case(".npy: versions, Fortran order, dtype and shape left out or given")
def _():
    def use(**data):
        base = json.load(open(acquisition(b"", (1, 1), positions=((0, 0, 0),) * 3, transmits=PLANE * 2)))
        base["data"] = dict({"file": "rf.npy", "axes": ["transmit", "receive", "sample"]}, **data)
        write("acquisition.json", json.dumps(base))
        return image().values[0]
    write("rf.npy", npy("<f4", False, (2, 3, 1000), b"".join(THREE)))
    near(use(), 38400)
    near(use(dtype="<f4", shape=[2, 3, 1000]), 38400)
    write("rf.npy", npy("<f4", False, (2, 3, 1000), b"".join(THREE), 2))
    near(use(), 38400)
    write("rf.npy", npy("<f4", True, (2, 3, 1000), floats(*[10000 * t + 1000 * r + n for n in range(1000) for r in range(3) for t in range(2)])))
    near(use(), 38400)


@case("traces: half matrix with weights, repeated pairs")
def _():
    write("traces.csv", "transmit,receive,weight\r\n0,0,1\r\n0,1,2\r\n1,1,-1\r\n1,1,0.5\r\n")
    acquisition(b"".join(floats(*[n + 1000 * k for n in range(500)]) for k in range(4)), (4, 500), ("trace", "sample"),
                positions=((0, 0, 0),) * 2, transmits="elements", traces="traces.csv")
    near(image().values[0], 400 + 2 * 1400 - 2400 + 0.5 * 3400)
    got = image("--keep", "transmit,receive")
    assert got.shape == (2, 2, 1, 1)
    for a, b in zip(got.values, (400, 2800, 0, -2400 + 0.5 * 3400)):
        near(a, b)


@case("weights and delays of transmits and elements; the command line's sound speed")
def _():
    acquisition(ramp(1000), (1, 1000), transmits=[{"type": "plane", "angle_rad": 0, "weight": -2, "delay_s": 1e-6}],
                receive_weights=[3], receive_delays_s=[2e-6])
    near(image().values[0], -6 * 460)
    acquisition(ramp(1000), (1, 1000))
    near(image("--sound-speed", 3000).values[0], 200)
    near(image("--sound-speed", 1, "--sound-speed", "3000").values[0], 200)


@case("late records: 0.1 s at 100 MHz")
def _():
    acquisition(ramp(4000), (1, 4000), sampling_frequency_hz=100e6, start_time_s=0.1,
                transmits=[{"type": "plane", "angle_rad": 0, "delay_s": 0.1}])
    near(image().values[0], 2000)


# ---------------------------------------------------------------------------------------------------------------------
# Grids and pictures
# ---------------------------------------------------------------------------------------------------------------------
def read_png(name):
    """Rows of an 8-bit grey PNG."""
    content = open(name, "rb").read()
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    at, packed, size = 8, b"", None
    while at < len(content):
        length, kind = struct.unpack(">I4s", content[at:at + 8])
        chunk = content[at + 8:at + 8 + length]
        assert struct.unpack(">I", content[at + 8 + length:at + 12 + length])[0] == zlib.crc32(kind + chunk)
        if kind == b"IHDR":
            width, height, *rest = struct.unpack(">IIBBBBB", chunk)
            assert rest == [8, 0, 0, 0, 0], rest
            size = (width, height)
        elif kind == b"IDAT":
            packed += chunk
        at += 12 + length
    assert kind == b"IEND"
    width, height = size
    raw, rows, before = zlib.decompress(packed), [], [0] * width
    assert len(raw) == height * (width + 1)
    for r in range(height):
        kind, line = raw[r * (width + 1)], list(raw[r * (width + 1) + 1:(r + 1) * (width + 1)])
        for k in range(width):
            a, b, c = line[k - 1] if k else 0, before[k], before[k - 1] if k else 0
            p = a + b - c
            paeth = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
            line[k] = (line[k] + [0, a, b, (a + b) // 2, paeth][kind]) & 255
        rows.append(line)
        before = line
    return rows


@case("axes: order, inclusive ends, falling axes; y is kept apart from x and z")
def _():
    acquisition(ramp(1000), (1, 1000), transmits=[{"type": "none"}])
    out = path("out.npy")
    axes = {"x": (-0.003, 0.003, 3), "y": (0.004, 0.0, 2), "z": (0.005, 0.02, 4)}
    result = run("das_image", *[w for a, (lo, hi, n) in axes.items() for w in (f"--{a}", f"{lo}:{hi}:{n}")], path("acquisition.json"), out)
    assert result.returncode == 0, result.stderr
    got = Image(out)
    assert got.shape == (4, 2, 3), got.shape
    value = lambda a, i: axes[a][0] + i * (axes[a][1] - axes[a][0]) / (axes[a][2] - 1)
    for iz in range(4):
        for iy in range(2):
            for ix in range(3):
                near(got[iz, iy, ix], math.sqrt(value("x", ix)**2 + value("y", iy)**2 + value("z", iz)**2) / 75e-6, 2e-6)


def picture(*options):
    out = path("out.png")
    if os.path.exists(out):
        os.remove(out)
    result = run("das_image", *options, path("acquisition.json"), out)
    assert result.returncode == 0, result.stderr
    return read_png(out)


def simulated(preset, seed=1):
    target = path(f"{preset}-{seed}")
    if not os.path.exists(target):
        result = run("das_simulate", "--preset", preset, "--seed", seed, target)
        assert result.returncode == 0 and not result.stderr, result.stderr
    return target


@case("PNG: grey levels are the envelope in dB, first grid values at the top left")
def _():
    source = os.path.join(simulated("plane"), "acquisition.json")
    grid = ("--x", "-0.010:0.002:41", "--z", "0.010:0.022:61", "--f-number", "1")
    npy_out, png_out = path("out.npy"), path("levels.png")
    result = run("das_image", *grid, "--analytic", source, npy_out)
    assert result.returncode == 0, result.stderr
    envelope = [abs(v) for v in Image(npy_out).values]
    for decibels in (60, 25):
        result = run("das_image", *grid, "--range", decibels, source, png_out)
        assert result.returncode == 0, result.stderr
        rows = read_png(png_out)
        assert len(rows) == 61 and len(rows[0]) == 41
        levels = [level for row in rows for level in row]
        assert max(levels) == 255 and min(levels) == 0 if decibels == 25 else max(levels) == 255
        for level, value in zip(levels, envelope):
            want = 255 * max(0.0, 1 + 20 * math.log10(value / max(envelope)) / decibels) if value else 0
            assert abs(level - want) <= 0.51 + 1e-3, (level, want)


@case("PNG of complex data, of the chosen frame, of any two axes; nothing but zeros is black")
def _():
    data = floats(*[v for f in range(2) for n in range(400) for v in (1.0 if n == 200 + 40 * f else 0.0, 0.0)])
    acquisition(data, (2, 400), ("frame", "sample"), dtype="<c8")
    for frame in range(2):
        rows = picture("--frame", frame, "--z", f"0:{300 * 37.5e-6!r}:301", "--y", "0:0.001:2")
        assert len(rows) == 301 and len(rows[0]) == 2
        assert [k for k, row in enumerate(rows) if row[0] == 255] == [200 + 40 * frame], frame
    acquisition(floats(*[0] * 800), (1, 400), dtype="<c8")
    assert picture("--x", "0:1:3", "--z", "0:1:4") == [[0] * 3] * 4


@case("--analytic and --bandpass and --demodulate on pure tones")
def _():
    # 12 whole periods in 256 samples, so that the transforms are exact
    count, periods = 256, 12
    tone = floats(*[math.cos(2 * math.pi * periods * n / count + 0.5) for n in range(count)])
    f = periods / count * FS
    acquisition(tone, (1, count), transmits=[{"type": "none"}])
    for n in (17, 100, 201):
        got = image("--analytic", z=n * 75e-6).values[0]
        want = complex(math.cos(2 * math.pi * periods * n / count + 0.5), math.sin(2 * math.pi * periods * n / count + 0.5))
        assert abs(got - want) < 1e-5, (got, want)
        for low, high in ((0.5e6, 2e6), (1.5e6, 4e6), (0.1e6, 0.2e6)):
            w = (f * f - low * high) / (f * (high - low))
            near(image("--bandpass", f"{low}:{high}", z=n * 75e-6).values[0], want.real / (1 + w**6), 1e-4)
        # IQ at any frequency near the tone's, turned back by the library, is the analytic signal again, whatever the start
        # time; a tone further from FC than FC, or than a quarter of the sampling frequency, is cut off
        for start in (0, 3e-6):
            acquisition(tone, (1, count), transmits=[{"type": "none"}], start_time_s=start)
            for fc, kept in ((12, 1), (9, 1), (8, 1), (16, 1), (5, 0), (80, 0), (70, 1)):
                got = image("--demodulate", repr(fc / count * FS), z=n * 75e-6 + start * C).values[0]
                assert abs(got - kept * want) < 1e-4, (fc, got, want)
        acquisition(tone, (1, count), transmits=[{"type": "none"}])


@case("--analytic keeps the mean and the highest frequency once; --bandpass removes the mean; filters see no offset")
def _():
    for values in ([3.0] * 64, [1.0, -1.0] * 32, [1.0, -1.0] * 31 + [1.0]):
        acquisition(struct.pack(f"<{len(values)}H", *[int(v) + 100 for v in values]), (1, len(values)), dtype="<u2",
                    transmits=[{"type": "none"}], data_offset=100)
        got = image("--analytic", z=10 * 75e-6).values[0]
        near(got.real, values[10], 1e-5)
        assert len(values) % 2 or abs(got.imag) < 1e-5, got
        assert values[0] != 3 or abs(image("--bandpass", "1e5:1e6", z=10 * 75e-6).values[0]) < 1e-6


@case("a data file of 6 GB: the last frame, and nothing else, is read")
def _():
    frames = 3000000
    source = acquisition(b"", (frames, 1000), ("frame", "sample"), dtype="<i2")
    with open(path("rf.bin"), "wb") as file:
        file.seek((frames - 1) * 2000)
        file.write(struct.pack("<1000h", *range(1000)))

    def little_memory():
        resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
    for option, want in (((), 400), (("--frame", 2), 0)):
        result = run("das_image", "--device", "cpu", "--frame", frames - 1, "--z", "0.015:0.015:1", *option, source, path("out.npy"),
                     preexec_fn=little_memory)
        assert result.returncode == 0, result.stderr
        near(Image(path("out.npy")).values[0], want)
    refused(["--frame", frames, source, path("new.npy")], "--frame", frames)
    write("rf.bin", b"")


@case("stopped by a signal: no temporary file is left")
def _():
    source = acquisition(ramp(1000), (1, 1000))
    clear()
    running = subprocess.Popen([program("das_image"), "--device", "cpu", "--x", "0:0.01:3000", "--z", "0.01:0.02:2000", source, path("out.npy")],
                               stderr=subprocess.PIPE)
    while running.poll() is None:
        if any(name.startswith("out.npy.") for name in os.listdir(folder)):
            running.send_signal(signal.SIGTERM)
            break
    running.communicate()
    assert running.returncode in (0, -signal.SIGTERM), running.returncode
    assert os.path.exists(path("out.npy")) == (running.returncode == 0)
    assert not any(name.startswith("out.npy.") for name in os.listdir(folder)), os.listdir(folder)
    clear()


# ---------------------------------------------------------------------------------------------------------------------
# Simulated phantoms
# ---------------------------------------------------------------------------------------------------------------------
def points_of(target):
    with open(os.path.join(target, "points.csv")) as file:
        return [tuple(float(v) for v in row) for row in list(csv.reader(file))[1:]]


def check_points(preset, step, options=(), flat="y", seed=1):
    """Around each true point the brightest pixel is within a step or two of it, and stands out."""
    target = simulated(preset, seed)
    source, out = os.path.join(target, "acquisition.json"), path("out.npy")
    for p in points_of(target):
        axes, sizes = [], []
        for k, a in enumerate("xyz"):
            n = 1 if a in flat else 21
            lo, hi = (p[k] - (n - 1) / 2 * step, p[k] + (n - 1) / 2 * step) if n > 1 else (p[k], p[k])
            axes += [f"--{a}", f"{lo!r}:{hi!r}:{n}"]
            sizes.append(n)
        result = run("das_image", *axes, *options, source, out)
        assert result.returncode == 0, result.stderr
        values = [abs(v) for v in Image(out).values]
        count = sizes[0] * sizes[1] * sizes[2]
        for f in range(len(values) // count):
            frame = values[f * count:(f + 1) * count]
            best = frame.index(max(frame))
            where = (best % sizes[0], best // sizes[0] % sizes[1], best // (sizes[0] * sizes[1]))
            for k in range(3):
                assert abs(where[k] - (sizes[k] - 1) / 2) <= 2, f"{preset} point {p}: pixel {where} of {sizes} in frame {f}"
            assert max(frame) > 3 * sorted(frame)[len(frame) // 2], f"{preset} point {p} does not stand out"


@case("das_simulate article: points where they were put")
def _():
    check_points("article", 0.1e-3, ("--interp", "nearest", "--analytic"))


@case("das_simulate plane: points where they were put")
def _():
    check_points("plane", 0.1e-3, ("--f-number", "1", "--analytic"))
    check_points("plane", 0.1e-3, ("--f-number", "1", "--analytic", "--interp", "cubic"), seed=7)


@case("das_simulate iq: points where they were put")
def _():
    check_points("iq", 0.1e-3)


@case("das_simulate photoacoustic: points where they were put")
def _():
    check_points("photoacoustic", 0.1e-3, ("--analytic",), flat="z")


@case("das_simulate volume: points where they were put")
def _():
    check_points("volume", 0.25e-3, flat="")


@case("das_simulate fmc: points where they were put")
def _():
    check_points("fmc", 0.1e-3, ("--interp", "linear"))
    for name in os.listdir(path("fmc-1")):
        os.remove(os.path.join(path("fmc-1"), name))


@case("das_simulate: the seed decides, and nothing else")
def _():
    for preset in ("article", "plane", "iq", "photoacoustic", "volume"):
        first = simulated(preset)
        again, other = path("again"), path("other")
        assert run("das_simulate", "--preset", preset, again).returncode == 0
        assert run("das_simulate", "--preset", preset, "--seed", 2, other).returncode == 0
        for name in os.listdir(first):
            content = open(os.path.join(first, name), "rb").read()
            assert content == open(os.path.join(again, name), "rb").read(), name
            if name not in ("acquisition.json", "elements.csv"):
                assert content != open(os.path.join(other, name), "rb").read(), name
        for name in os.listdir(first):
            os.remove(os.path.join(again, name))
            os.remove(os.path.join(other, name))


@case("--timing prints the phases")
def _():
    acquisition(ramp(1000), (1, 1000))
    result = run("das_image", "--timing", path("acquisition.json"), path("out.npy"))
    assert result.returncode == 0
    for word in ("upload", "compute", "copy-back", "packing", "ms"):
        assert word in result.stdout, result.stdout


# ---------------------------------------------------------------------------------------------------------------------
# Bad input
# ---------------------------------------------------------------------------------------------------------------------
@case("das_image: every option refuses bad values")
def _():
    clear()
    source, out = acquisition(ramp(1000), (1, 1000)), path("out.npy")
    bad = {
        "--device": ["", "gpu", "cuda:x", "cpu:1:2", "cuda:-1"],
        "--interp": ["", "Linear", "spline", "linear "],
        "--f-number": ["", "-1", "nan", "inf", "1x", "0x1", "1e999", " 1"],
        "--window": ["", "hanning", "tukey", "tukey:", "tukey:1.1", "tukey:-0.1", "tukey:nan", "hann:1"],
        "--keep": ["", "both", "transmit,", "transmit receive", "transmit,transmit"],
        "--normalize": ["", "sum", "Count"],
        "--sound-speed": ["", "0", "-1540", "nan", "inf", "1540m"],
        "--frame": ["", "-1", "1.5", "one", "99999999999999999999"],
        "--bandpass": ["", "1e6", "1e6:", ":1e6", "2e6:1e6", "1e6:1e6", "0:1e6", "-1:1e6", "nan:1e6", "1e6:inf", "1:2:3"],
        "--demodulate": ["", "0", "-5e6", "nan", "5MHz"],
        "--range": ["", "0", "-60", "nan", "inf"],
        "--x": ["", "0", "0:1", "0:1:0", "0:1:-3", "0:1:2.5", "0:1:1", "nan:1:2", "0:inf:2", "0:1:2:3", "a:b:c", "0:1:99999999999999999999"],
        "--y": ["0:1", "0:1:1", "::"],
        "--z": ["0:1", "1:0:1", "0::2"],
    }
    for option, values in bad.items():
        for value in values:
            refused([option, value, source, out], option, value)
        refused([source, out, option], option, "value")
    for extra in (["--nonsense"], ["--x=0:1:2"], ["--F-number", "1"]):
        refused([*extra, source, out], extra[0], "option")
    refused(["--frame", 1, source, out], "--frame", "1", "0 to 0")


@case("das_image: options that do not go together")
def _():
    clear()
    source, npy_out, png = acquisition(ramp(1000), (1, 1000)), path("out.npy"), path("out.png")
    two = ("--x", "0:0.001:2", "--z", "0.01:0.02:2")
    refused(["--window", "hann", source, npy_out], "--window", "--f-number")
    refused(["--demodulate", "5e6", "--analytic", source, npy_out], "--demodulate", "--analytic")
    refused(["--keep", "transmit", *two, source, png], "--keep", ".npy")
    refused([source, png], "out.png", "two")
    refused(["--x", "0:1:2", source, png], "out.png", "two")
    refused([*two, "--y", "0:1:2", source, png], "out.png", "two")
    refused([source, path("out.jpg")], "out.jpg", ".png")
    refused([source, path("out")], "OUT", ".npy")
    refused([source, ".png"], "OUT", ".png")
    refused([source], "OUT")
    refused([], "ACQUISITION")
    refused([source, npy_out, "third"], "third")
    for option in (("--analytic",), ("--bandpass", "1e6:2e6"), ("--demodulate", "5e6")):
        acquisition(floats(*[0] * 2000), (1, 1000), dtype="<c8")
        refused([*option, source, npy_out], option[0], "complex")
    acquisition(ramp(1000), (1, 1000), transmits=PLANE * 2, start_time_s=[0, 1e-6])
    refused(["--demodulate", "5e6", source, npy_out], "--demodulate", "start_time_s")
    acquisition(floats(*[math.nan] * 1000), (1, 1000))
    refused([*two, source, png], "out.png", "finite")


@case("das_image: impossible grids and images")
def _():
    clear()
    source, out = acquisition(ramp(1000), (1, 1000)), path("out.npy")
    refused(["--x", "0:1:4000000000000000000", source, out], "4000000000000000000")
    refused(["--x", "0:1:2000000000", "--z", "0:1:2000000000", source, out], "2000000000")
    refused(["--x", "0:1:3000000000", "--y", "0:1:3000000000", "--z", "0:1:3000000000", source, out], "3000000000")
    refused(["--x", "0:1:400000000", "--z", "0:1:400000000", source, out])
    refused(["--x", "0:1:4000000000", "--z", "0:1:2", source, path("out.png")], "4000000000")


@case("das_image: outputs that cannot be written leave nothing behind")
def _():
    clear()
    source = acquisition(ramp(1000), (1, 1000))
    refused([source, path("none/out.npy")], "none/out.npy")
    os.mkdir(path("folder.npy"))
    refused([source, path("folder.npy")], "folder.npy", "folder")
    os.rmdir(path("folder.npy"))

    def small_files():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
    for name in ("out.npy", "out.png"):
        grid = ("--x", "-0.01:0.01:150", "--z", "0.005:0.02:150")
        data = floats(*[((n * 7919) % 1000) / 1000 for n in range(1000)])
        refused([*grid, "--range", "20", acquisition(data, (1, 1000)), path(name)], name, preexec_fn=small_files)
        write(name, b"the file before")
        refused([*grid, "--range", "20", source, path(name)], name, preexec_fn=small_files)
        assert open(path(name), "rb").read() == b"the file before"
        os.remove(path(name))


def json_cases():
    """(what is wrong, words of the message, change to a good description)."""
    def put(*keys):
        *way, last, value = keys

        def change(content):
            for key in way:
                content = content[key]
            content[last] = value
        return change

    def drop(*keys):
        *way, last = keys

        def change(content):
            for key in way:
                content = content[key]
            del content[last]
        return change
    bad_numbers = ("1", None, [], {}, True)
    for key in ("data", "sampling_frequency_hz", "sound_speed_m_s", "receive", "transmits"):
        yield f"no {key}", (key,), drop(key)
    for key in ("file", "axes", "shape", "dtype"):
        yield f"no data.{key}", (f"data.{key}",), drop("data", key)
    yield "no positions", ("receive.positions_m",), drop("receive", "positions_m")
    for key in ("sampling_frequency_hz", "sound_speed_m_s"):
        for value in (0, -1, 1e999, *bad_numbers):
            yield f"{key} {value}", (key, "expected"), put(key, value)
    for value in bad_numbers[1:] + ([0, 0], ["a"], [None]):
        yield f"start_time_s {value}", ("start_time_s",), put("start_time_s", value)
    for value in bad_numbers:
        yield f"demodulation {value}", ("demodulation_frequency_hz",), put("demodulation_frequency_hz", value)
    yield "demodulated real data", ("demodulation_frequency_hz", "complex"), put("demodulation_frequency_hz", 5e6)
    for place in ((), ("data",), ("receive",), ("transmits", 0)):
        yield f"unknown key in {place}", ("speling",), put(*place, "speling", 1)
    for value in ("<f4 ", "float32", ">f4", "<c16", "", 4, None):
        yield f"dtype {value}", ("data.dtype", "<i2x2"), put("data", "dtype", value)
    for value in (["receive"], ["sample", "sample"], ["receive", "time"], ["trace", "receive", "sample"], "sample", [], [1]):
        yield f"axes {value}", ("data.axes",), put("data", "axes", value)
    for value in ([2], [2, 100, 1], [2, 0], [2, -100], [2, 99.5], [2, "100"], "2x100", [2, 1e300], None):
        yield f"shape {value}", ("data.shape",), put("data", "shape", value)
    yield "too few bytes", ("rf.bin", "800", "808"), put("data", "shape", [2, 101])
    yield "too many bytes", ("rf.bin", "800", "792"), put("data", "shape", [2, 99])
    yield "bytes beyond 2^63", ("data.shape",), put("data", "shape", [9007199254740992, 9007199254740992])
    yield "more elements than channels", ("data.shape", "receive"), put("receive", "positions_m", [[0, 0, 0]] * 3)
    yield "no such file", ("nowhere.bin",), put("data", "file", "nowhere.bin")
    yield "a folder for data", ("regular file",), put("data", "file", ".")
    yield "file is a number", ("data.file",), put("data", "file", 5)
    yield "unknown format", ("data.format",), put("data", "format", "hdf5")
    yield "text with dtype", ("data.dtype",), put("data", "format", "text")
    for value in ("0", None, [0]):
        yield f"offset {value}", ("data.offset",), put("data", "offset", value)
    for value in ([], [[0, 0]] * 2, [[0, 0, 0, 0]] * 2, [[0, 0, "a"]] * 2, [0, 0, 0], 5, {}, [[0, 0, None]] * 2, [[0, 0, 1e999]] * 2):
        yield f"positions {value}", ("receive.positions_m",), put("receive", "positions_m", value)
    yield "no such CSV", ("nowhere.csv",), put("receive", "positions_m", "nowhere.csv")
    for value in ([[0, 0, 0]] * 2, [[0, 0, 1]], [[0, 0, 1]] * 3, "x"):
        yield f"normals {value}", (), put("receive", "normals", value)
    for key in ("weights", "delays_s"):
        for value in ([1], [1, 2, 3], 1, [1, "2"], [1, None], {}):
            yield f"{key} {value}", (f"receive.{key}",), put("receive", key, value)
    for value in ([], "element", "all", 5, {}, [5], [[]]):
        yield f"transmits {value}", ("transmits",), put("transmits", value)
    for value in ({}, {"type": "wave"}, {"type": 1}, {"type": "element"}, {"type": "element", "index": 2},
                  {"type": "element", "index": -1}, {"type": "element", "index": 0.5}, {"type": "element", "index": "0"},
                  {"type": "element", "index": 0, "position_m": [0, 0, 0]}, {"type": "element", "position_m": [0, 0]},
                  {"type": "plane"}, {"type": "plane", "angle_rad": 0, "direction": [0, 0, 1]}, {"type": "plane", "angle_rad": "0"},
                  {"type": "plane", "angle_rad": 3.2}, {"type": "plane", "direction": [0, 0, 0]},
                  {"type": "plane", "angle_rad": 0, "origin_m": [0]}, {"type": "plane", "angle_rad": 0, "focus_m": [0, 0, 1]},
                  {"type": "diverging"}, {"type": "diverging", "source_m": 3}, {"type": "focused"},
                  {"type": "focused", "focus_m": [0, 0, 0]}, {"type": "focused", "focus_m": [1, 0, 0], "origin_m": [1, 0, 0]},
                  {"type": "none", "angle_rad": 0}, {"type": "none", "weight": "1"}, {"type": "none", "delay_s": None}):
        yield f"transmit {value}", ("transmits[0]",), put("transmits", [value])
    yield "traces without an axis", ("traces", "axes"), put("traces", "traces.csv")
    yield "a trace axis without traces", ("traces",), put("data", "axes", ["trace", "sample"])
    yield "traces are a list", ("traces",), put("traces", [[0, 0]])
    yield "transmit axis of another length", ("data.shape", "transmit"), lambda content: (
        content["data"].update(axes=["transmit", "sample"]), content["receive"].update(positions_m=[[0, 0, 0]]))


@case("acquisition.json: every field refuses bad values")
def _():
    clear()
    write("traces.csv", "transmit,receive\n0,0\n0,1\n")
    for what, words, change in json_cases():
        content = json.load(open(acquisition(ramp(200), (2, 100), positions=((0, 0, 0),) * 2)))
        change(content)
        source = write("acquisition.json", json.dumps(content).replace("Infinity", "1e999"))
        try:
            refused([source, path("out.npy")], *words)
        except AssertionError as problem:
            raise AssertionError(f"{what}: {problem}") from None


@case("acquisition.json: not JSON, doubled keys, NaN, zero bytes")
def _():
    clear()
    good = open(acquisition(ramp(200), (2, 100), positions=((0, 0, 0),) * 2)).read()
    for text, words in ((good[:-1], ("line 1",)), (good + "x", ("line 1",)), ("", ()), ("[]", ("object",)), ("null", ("object",)),
                        (good.replace("1500.0", "NaN"), ("JSON",)), (good.replace("1500.0", "Infinity"), ("JSON",)),
                        (good.replace('"sound_speed_m_s"', '"sound_speed_m_s": 1, "sound_speed_m_s"'), ("sound_speed_m_s", "once")),
                        (good.replace('"file"', '"file": "a", "file"'), ("data.file", "once")),
                        (good.replace("rf.bin", "rf.bin\\u0000"), ("u0000",)), (good + "\0", ("zero byte",)),
                        ("[" * 100000, ("JSON",)), (good.replace("}", "}\n", 1).replace("1500.0", "x"), ("line 2",))):
        refused([write("acquisition.json", text), path("out.npy")], "acquisition.json", *words)
    refused([path("nothing.json"), path("out.npy")], "nothing.json")
    refused([folder, path("out.npy")], "regular file")


@case("CSV files: header, columns, numbers, rows")
def _():
    clear()
    for text, words in (("", ("header",)), ("x,y,z\n0,0,0\n", ("header", "x_m,y_m,z_m")), ("x_m,y_m\n0,0\n", ("header",)),
                        ("x_m,y_m,z_m,w\n0,0,0,0\n", ("header",)), ("x_m,y_m,z_m\n", ("rows",)), ("x_m,y_m,z_m\n0,0\n", ("line 2", "columns")),
                        ("x_m,y_m,z_m\n0,0,0\n0,0,0,0\n", ("line 3",)), ("x_m,y_m,z_m\n0,,0\n", ("line 2", "column 2")),
                        ("x_m,y_m,z_m\n0,nan,0\n", ("nan",)), ("x_m,y_m,z_m\n0,1e999,0\n", ("1e999",)), ("x_m,y_m,z_m\n0,0,0x1\n", ("0x1",)),
                        ("x_m,y_m,z_m\n0,0,0\n", ("data.shape",))):
        write("elements.csv", text)
        content = json.load(open(acquisition(ramp(200), (2, 100), positions=((0, 0, 0),) * 2)))
        content["receive"]["positions_m"] = "elements.csv"
        refused([write("acquisition.json", json.dumps(content)), path("out.npy")], *words)
    for text, words in (("transmit,receive\n0,0\n1,0\n", ("transmit", "1")), ("transmit,receive\n0,0\n0,2\n", ("receive", "2")),
                        ("transmit,receive\n0,0\n0,0.5\n", ("receive",)), ("transmit,receive\n0,0\n-1,0\n", ("transmit",)),
                        ("transmit,receive,gain\n0,0,1\n0,0,1\n", ("header",)), ("transmit,receive,weight\n0,0,1\n0,0\n", ("line 3",)),
                        ("transmit,receive,weight\n0,0,1\n0,0,nan\n", ("nan",)), ("transmit,receive\n0,0\n", ("data.shape", "trace"))):
        write("traces.csv", text)
        acquisition(ramp(200), (2, 100), ("trace", "sample"), positions=((0, 0, 0),) * 2, traces="traces.csv")
        refused([path("acquisition.json"), path("out.npy")], *words)


@case("data files: .npy, text, integers beyond 2^53")
def _():
    clear()
    content = json.load(open(acquisition(b"", (1, 1))))
    content["data"] = {"file": "rf.npy", "axes": ["receive", "sample"]}
    whole = npy("<f4", False, (1, 100), ramp(100))
    for data, words in ((b"", ()), (whole[:9], ()), (whole[:40], ()), (whole[:-1], ("bytes",)), (whole + b"\0", ("bytes",)),
                        (b"\x93NUMPX" + whole[6:], (".npy",)), (whole[:6] + b"\4" + whole[7:], ("version",)),
                        (npy(">f4", False, (1, 100), ramp(100)), (">f4",)), (npy("<c16", False, (1, 100), ramp(400)), ("<c16",)),
                        (npy("<f4", False, (100,), ramp(100)), ("axes",)), (npy("<f4", False, (1, 1, 100), ramp(100)), ("axes",)),
                        (npy("<f4", False, (1, 0), b""), ("length 0",)), (npy("<f4", "Maybe", (1, 100), ramp(100)), ("header",)),
                        (npy("<f4", False, "(1, -100)", ramp(100)), ("header",)), (npy("|O", False, (1, 100), ramp(100)), ("|O",))):
        write("rf.npy", data)
        refused([write("acquisition.json", json.dumps(content)), path("out.npy")], "rf.npy", *words)
    write("rf.npy", whole)
    for extra, words in (({"dtype": "<i2"}, ("<f4", "<i2")), ({"shape": [1, 99]}, ("99", "100")), ({"shape": [100]}, ("data.shape",))):
        refused([write("acquisition.json", json.dumps(dict(content, data=dict(content["data"], **extra)))), path("out.npy")], *words)

    content["data"] = {"file": "source.txt", "format": "text", "axes": ["receive", "sample"], "shape": [1, 3]}
    source = write("acquisition.json", json.dumps(content))
    for text, words in (("1 2", ("2 numbers", "3")), ("1 2 3 4", ("3",)), ("", ("0 numbers",)), ("1 2 x", ("'x'",)), ("1 nan 3", ("nan",)),
                        ("1 1e39 3", ("1e39",)), ("1,2,3", ("1,2,3",)), ("1 2 0x3", ("0x3",))):
        write("source.txt", text)
        refused([source, path("out.npy")], "source.txt", *words)

    for value in (2**53 + 1, -2**53 - 1, 2**63 - 1):
        acquisition(struct.pack("<3q", 0, value, 0), (1, 3), dtype="<i8")
        refused([path("acquisition.json"), path("out.npy")], "rf.bin", value, "2^53")


@case("das_image: files with random damage give an image or one line, never a crash")
def _():
    clear()
    draw = random.Random(int(os.environ.get("DAS_TEST_SEED", "1")))
    write("elements.csv", "x_m,y_m,z_m\n0,0,0\n0.001,0,0\n")
    write("traces.csv", "transmit,receive,weight\n0,0,1\n1,0,2\n1,1,1\n")
    write("rf.npy", npy("<i2", False, (3, 50), struct.pack("<150h", *range(150))))
    write("source.txt", "\n".join(map(str, range(150))))
    for name, data in (("a", {"file": "rf.npy", "axes": ["trace", "sample"]}),
                       ("b", {"file": "source.txt", "format": "text", "axes": ["trace", "sample"], "shape": [3, 50]})):
        write(f"{name}.json", json.dumps({"data": data, "sampling_frequency_hz": 1e6, "sound_speed_m_s": 1500, "traces": "traces.csv",
                                          "receive": {"positions_m": "elements.csv", "normals": [[0, 0, 1], [0, 1, 1]]},
                                          "transmits": "elements", "start_time_s": [0, 1e-6]}))
    names = ("a.json", "b.json", "elements.csv", "traces.csv", "rf.npy", "source.txt")
    good = {name: open(path(name), "rb").read() for name in names}
    images = 0
    for turn in range(400):
        victim = draw.choice(names)
        damaged = bytearray(good[victim][:128] if draw.random() < 0.05 else good[victim])
        for _ in range(draw.choice((1, 1, 2, 5))):
            at = draw.randrange(len(damaged))
            what = draw.randrange(4)
            if what == 0:
                damaged[at] = draw.randrange(256)
            elif what == 1:
                del damaged[at:at + draw.randrange(1, 8)]
            elif what == 2:
                damaged[at:at] = draw.choice((b"0", b"-", b"9" * 20, b"e9", b",", b"[", b"}", b'"', b"\n", b"nan", b"null", b"\0"))
            else:
                end = at + draw.randrange(1, 12)
                damaged[at:at] = damaged[at:end]
            damaged = damaged or bytearray(b" ")
        write(victim, bytes(damaged))
        source = victim if victim.endswith("json") else draw.choice(("a.json", "b.json"))
        result = run("das_image", "--device", "cpu", "--z", "0:0.02:9", path(source), path("out.npy"))
        what = f"turn {turn}: {victim}: status {result.returncode}: {result.stderr[-300:]}"
        assert result.returncode in (0, 1), what
        assert result.stderr.count("\n") == result.returncode, what
        assert os.path.exists(path("out.npy")) == (result.returncode == 0), what
        images += result.returncode == 0
        clear()
        write(victim, good[victim])
    assert 20 < images < 380, f"{images} of 400 damaged files made an image"


@case("das_simulate: bad command lines")
def _():
    clear()
    for arguments, words in (([], ("--preset",)), (["--preset", "plane"], ("OUTDIR",)), ([path("new")], ("--preset",)),
                             (["--preset", "ring", path("new")], ("--preset", "ring")), (["--preset"], ("--preset", "value")),
                             (["--preset", "iq", "--seed", "-1", path("new")], ("--seed", "-1")),
                             (["--preset", "iq", "--seed", "x", path("new")], ("--seed", "x")), (["--preset", "iq", "--seed"], ("--seed",)),
                             (["--preset", "iq", path("new"), "b"], ("b",)), (["--preset", "iq", "--sed", "1", path("new")], ("--sed",)),
                             (["--preset", "iq", path("none/new")], ("none/new",))):
        refused(arguments, *words, name="das_simulate")
    blocked = write("file", "")
    refused(["--preset", "iq", blocked], "file", name="das_simulate")


# ---------------------------------------------------------------------------------------------------------------------
# The benchmark
# ---------------------------------------------------------------------------------------------------------------------
KEYS = {"workload", "device", "kernel", "dtype", "frames", "points", "points_inside", "upload_ms", "pack_ms", "compute_ms",
        "download_ms", "points_per_s", "repeat", "max_error"}


@case("das_bench: one line of JSON, right counts, within the bound and the memory")
def _():
    for options, points, inside in ((("tiny", "--calls", "2"), 16 * 16 * 8, None), (("tiny", "--dtype", "i16", "--interp", "nearest", "--frames", "3"), 3 * 16 * 16 * 8, None),
                                    (("tiny", "--f-number", "1", "--window", "hann", "--interp", "cubic"), 2048, 1),
                                    (("tiny", "--precision", "double", "--dtype", "f64", "--interp", "lanczos"), 2048, None),
                                    (("tiny", "--transmits", "3", "--threads", "1", "--general", "--interp", "quadratic"), 3 * 2048, None),
                                    (("disk", "--frames", "1", "--dtype", "ci16"), 251 * 251 * 128, 0.553)):
        result = run("das_bench", "--workload", *options, "--device", "cpu", "--repeat", "1", "--json")
        assert result.returncode == 0, f"{options}: {result.stderr}"
        assert result.stdout.count("\n") == 1 and result.stderr == "", result.stdout + result.stderr
        got = json.loads(result.stdout)
        assert KEYS <= set(got), KEYS - set(got)
        assert got["points"] == points, got["points"]
        if inside is None:
            assert got["points_inside"] == points
        elif inside == 1:
            assert 0 < got["points_inside"] < points
        else:
            assert abs(got["points_inside"] / points - inside) < 5e-4, got["points_inside"] / points
        assert 0 <= got["max_error"] <= got["error_bound"], got["max_error"]
        assert got["plan_bytes"] + got["slot_bytes"] <= got["input_bytes"] + (64 << 20)
        assert got["repeat"] == 1 and got["device"] == "cpu" and got["compute_ms"] > 0
        assert min(got.get("call_us", 0), got.get("call_wait_us", 0)) > 0 if "--calls" in options else "call_us" not in got


@case("das_bench: bad command lines")
def _():
    for arguments, words in (([], ("--workload",)), (["--workload", "x"], ("--workload", "x")), (["--workload", "tiny", "--frames", "0"], ("--frames", "0")),
                             (["--workload", "tiny", "--dtype", "cf32"], ("--dtype", "cf32")), (["--workload", "disk", "--dtype", "f32"], ("--dtype",)),
                             (["--workload", "tiny", "--interp", "x"], ("--interp",)), (["--workload", "tiny", "--device", "gpu"], ("--device",)),
                             (["--workload", "tiny", "--repeat", "0"], ("--repeat",)), (["--workload", "tiny", "--calls", "0"], ("--calls",)), (["--workload", "tiny", "--nonsense", "1"], ("--nonsense",)),
                             (["--workload", "fmc", "--transmits", "129"], ("--transmits",)), (["--workload", "tiny", "--literal", "3"], ("--literal",)),
                             (["--workload", "tiny", "--f-number", "nan"], ("--f-number",)), (["--workload", "tiny", "--repeat"], ("--repeat",))):
        refused(arguments, *words, name="das_bench")


finish()
