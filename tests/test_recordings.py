"""The recordings of ../shared/data, through das_image with the command of each one's about.json: what their images must
show. Positions within 0.1 mm and widths within 15 % of what about.json says, or closer where it says so."""
import cmath
import csv
import json
import math
import os
import shlex
import struct

from reporting import SHARED, Image, case, finish, program, report, run, scratch_folder

DATA = os.path.join(SHARED, "data")
if not os.path.isdir(DATA):
    report("SKIP", "recordings", "no ../shared/data here and DAS_SHARED does not name it")
    finish()
if not os.access(program("das_image"), os.X_OK):
    report("SKIP", "recordings", f"{program('das_image')} is not built")
    finish()

scratch = scratch_folder()


def path(name):
    return os.path.join(scratch.name, name)


def about(recording):
    with open(os.path.join(DATA, recording, "about.json")) as file:
        return json.load(file)


def command(recording, **changes):
    """Options of about.json's command; changes: option=value, None removes it."""
    words = shlex.split(about(recording)["command"])
    assert words[0] == "das_image" and words[-2:] == ["acquisition.json", "out.png"], words
    options, k = {}, 1
    while k < len(words) - 2:
        options[words[k]] = words[k + 1]
        k += 2
    for option, value in changes.items():
        options["--" + option.replace("_", "-")] = value
    return [w for option, value in options.items() if value is not None for w in ([option] if value is True else [option, value])]


def reconstruct(recording, out, source=None, **changes):
    result = run("das_image", *command(recording, **changes), source or os.path.join(DATA, recording, "acquisition.json"), path(out))
    assert result.returncode == 0, result.stderr


def picture(recording):
    """The command as it stands makes a PNG of the right size that is neither black nor white."""
    reconstruct(recording, "out.png")
    with open(path("out.png"), "rb") as file:
        content = file.read()
    width, height = struct.unpack(">II", content[16:24])
    sizes = [int(w.split(":")[2]) for w in command(recording) if w.count(":") == 2]
    assert content[:8] == b"\x89PNG\r\n\x1a\n" and [width, height] == sizes, (width, height)
    assert len(content) > width * height / 10, "hardly anything in the picture"


class Map:
    """A magnitude image over two axes in mm, [row][column]."""

    def __init__(self, recording, columns, rows, source=None, **changes):
        self.axes = {"x": columns, "z": rows}
        options = {a: f"{lo * 1e-3!r}:{hi * 1e-3!r}:{n}" for a, (lo, hi, n) in self.axes.items()}
        reconstruct(recording, "map.npy", source, **options, **changes)
        image = Image(path("map.npy"))
        assert image.shape == (rows[2], columns[2]), image.shape
        self.width, self.height = columns[2], rows[2]
        self.values = [abs(v) for v in image.values]

    def at(self, column, row):
        return self.values[row * self.width + column]

    def place(self, axis, index):
        lo, hi, n = self.axes[axis]
        return lo + index * (hi - lo) / (n - 1)

    def index(self, axis, place):
        lo, hi, n = self.axes[axis]
        return (place - lo) / (hi - lo) * (n - 1)

    def peak(self, columns=None, rows=None):
        c0, c1 = columns or (0, self.width - 1)
        r0, r1 = rows or (0, self.height - 1)
        return max(((self.at(c, r), c, r) for r in range(r0, r1 + 1) for c in range(c0, c1 + 1)))[1:]

    def extent(self, axis, column, row, decibels):
        """Where the profile through a pixel falls by so much, before and behind, in mm."""
        profile = [self.at(k, row) for k in range(self.width)] if axis == "x" else [self.at(column, k) for k in range(self.height)]
        start = column if axis == "x" else row
        level = profile[start] * 10 ** (-decibels / 20)
        ends = []
        for step in (-1, 1):
            k = start
            while profile[k] > level:
                k += step
                assert 0 <= k < len(profile), "the profile does not fall"
            ends.append(self.place(axis, k - step * (level - profile[k]) / (profile[k - step] - profile[k])))
        return ends

    def outer_extent(self, column, first, last, decibels):
        """The outermost places of a column's rows where it is so much below its largest; it may ripple in between."""
        profile = [self.at(column, k) for k in range(first, last + 1)]
        level = max(profile) * 10 ** (-decibels / 20)
        above = [k for k, v in enumerate(profile) if v >= level]
        ends = []
        for k, step in ((above[0], -1), (above[-1], 1)):
            assert 0 < k < len(profile) - 1, "the profile does not fall"
            ends.append(self.place("z", first + k + step * (profile[k] - level) / (profile[k] - profile[k + step])))
        return ends


def spot(recording, x, z, width, height):
    """A bright spot: its place, and its -6 dB widths, on a grid of 0.02 mm."""
    m = Map(recording, (x - 1.6, x + 1.6, 161), (z - 1.2, z + 1.2, 121), analytic=True)
    column, row = m.peak()
    got = m.place("x", column), m.place("z", row)
    assert abs(got[0] - x) <= 0.051 and abs(got[1] - z) <= 0.051, f"at ({got[0]:.2f}, {got[1]:.2f}) mm, expected ({x}, {z})"
    for axis, want in (("x", width), ("z", height)):
        lo, hi = m.extent(axis, column, row, 20 * math.log10(2))
        assert abs(hi - lo - want) <= 0.15 * want, f"-6 dB width along {axis} {hi - lo:.2f} mm, expected {want}"


@case("fmc_steel_pins: the picture")
def _():
    picture("fmc_steel_pins")


@case("fmc_steel_pins: pins where they are, as wide as they are")
def _():
    spot("fmc_steel_pins", -9.54, 43.12, 0.80, 0.33)
    spot("fmc_steel_pins", 10.65, 38.13, 0.87, 0.40)


@case("ndt_half_matrix: the picture")
def _():
    picture("ndt_half_matrix")


@case("ndt_half_matrix: notch and back wall")
def _():
    spot("ndt_half_matrix", 6.70, 19.60, 1.59, 0.93)
    wall = Map("ndt_half_matrix", (-10, 5, 16), (36, 46, 201), analytic=True)
    profile = [sum(wall.at(c, r) for c in range(wall.width)) for r in range(wall.height)]
    z = wall.place("z", profile.index(max(profile)))
    assert abs(z - 40.8) < 0.3, f"back wall at {z:.2f} mm"


# ---------------------------------------------------------------------------------------------------------------------
GRID = ((-22, 22, 441), (2, 44, 841))


def scatterers():
    with open(os.path.join(DATA, "plane_wave_points", "scatterers.csv")) as file:
        return [tuple(float(v) * 1e3 for v in row) for row in list(csv.reader(file))[1:]]


@case("plane_wave_points: the picture")
def _():
    picture("plane_wave_points")


@case("plane_wave_points: rows of points and isolated points")
def _():
    m = Map("plane_wave_points", *GRID, analytic=True)
    points = scatterers()
    for z in (14.78, 16.26, 17.74, 28.09, 29.57, 39.92, 41.40):
        row = [p for p in points if abs(p[2] - z) < 0.02 and abs(p[0]) < 8]
        assert len(row) >= 13, f"{len(row)} scatterers at {z}"
        dx, dz = [], []
        for p in row:
            c, r = round(m.index("x", p[0])), round(m.index("z", p[2]))
            c, r = m.peak((c - 3, c + 3), (r - 10, r + 10))
            a, b, d = m.at(c - 1, r), m.at(c, r), m.at(c + 1, r)
            dx.append(m.place("x", c + (a - d) / (2 * (a - 2 * b + d))) - p[0])
            lo, hi = m.extent("z", c, r, 3.0)
            dz.append((lo + hi) / 2 - p[2])
        mean_z, mean_x = sum(dz) / len(dz), sum(map(abs, dx)) / len(dx)
        assert abs(mean_z) <= 0.04, f"row {z} mm measured {mean_z:+.3f} mm off"
        assert mean_x <= 0.03, f"row {z} mm: mean |dx| {mean_x:.3f} mm"
        assert max(map(abs, dx)) <= 0.13, f"row {z} mm: a point {max(map(abs, dx)):.3f} mm off"
    for z in (10.349, 22.176, 34.003):
        c, r = round(m.index("x", 0)), round(m.index("z", z))
        lo, hi = m.outer_extent(c, r - 14, r + 14, 3.0)
        assert abs(lo - z + 0.39) <= 0.03 and abs(hi - z - 0.38) <= 0.03, f"point {z} mm: -3 dB from {lo - z:+.3f} to {hi - z:+.3f} mm"


@case("plane_wave_points: with the angles negated an off-axis point halves and moves 0.24 mm")
def _():
    with open(os.path.join(DATA, "plane_wave_points", "acquisition.json")) as file:
        content = json.load(file)
    for transmit in content["transmits"]:
        transmit["angle_rad"] = -transmit["angle_rad"]
    for holder, key in ((content["data"], "file"), (content["receive"], "positions_m")):
        holder[key] = os.path.join(DATA, "plane_wave_points", holder[key])
    with open(path("negated.json"), "w") as file:
        json.dump(content, file)
    # which point is not said: that at x = 8.37 mm in the row at 29.57 mm does so
    x, z = min(((p[0], p[2]) for p in scatterers() if abs(p[2] - 29.57) < 0.02), key=lambda p: abs(p[0] - 8.37))
    seen = []
    for source in (None, path("negated.json")):
        m = Map("plane_wave_points", (x - 0.5, x + 0.5, 51), (z - 0.5, z + 0.5, 51), source, analytic=True)
        column, row = m.peak()
        seen.append((m.at(column, row), m.place("x", column), m.place("z", row)))
    right, negated = seen
    assert math.hypot(right[1] - x, right[2] - z) <= 0.05, f"the point is at ({right[1]:.2f}, {right[2]:.2f}) mm"
    ratio, moved = negated[0] / right[0], math.hypot(negated[1] - right[1], negated[2] - right[2])
    print(f"negated: {ratio:.2f} of the amplitude, {moved:.2f} mm off")
    assert abs(ratio - 0.5) <= 0.05, f"{ratio:.2f} of the amplitude"
    assert abs(moved - 0.24) <= 0.05, f"moved {moved:.2f} mm"


# ---------------------------------------------------------------------------------------------------------------------
def fit_circle(points):
    """Least squares: x^2 + y^2 = 2 a x + 2 b y + c."""
    rows = [(2 * x, 2 * y, 1.0, x * x + y * y) for x, y in points]
    m = [[sum(r[i] * r[k] for r in rows) for k in range(4)] for i in range(3)]
    for i in range(3):
        for j in range(3):
            if i != j:
                factor = m[j][i] / m[i][i]
                m[j] = [a - factor * b for a, b in zip(m[j], m[i])]
    a, b, c = (m[i][3] / m[i][i] for i in range(3))
    return a, b, math.sqrt(c + a * a + b * b)


@case("rotating_disk: the picture")
def _():
    picture("rotating_disk")


@case("rotating_disk: centre, radius, velocity")
def _():
    reconstruct("rotating_disk", "disk.npy")
    image = Image(path("disk.npy"))
    assert image.shape == (32, 251, 251) and image.dtype == "<c8", image.shape
    n = 251
    xs, zs = [-12.5 + 0.1 * k for k in range(n)], [10 + 0.1 * k for k in range(n)]
    frames = [image.values[f * n * n:(f + 1) * n * n] for f in range(32)]
    power = [sum(abs(v[k])**2 for v in frames[::2]) for k in range(n * n)]

    # the speckle smoothed over 9 x 9 pixels; the edge where it is half way in dB between inside and outside
    sums = [[0.0] * (n + 1) for _ in range(n + 1)]
    for r in range(n):
        line = 0.0
        for c in range(n):
            line += power[r * n + c]
            sums[r + 1][c + 1] = sums[r][c + 1] + line

    def smooth(r, c):
        r0, r1, c0, c1 = max(0, r - 4), min(n, r + 5), max(0, c - 4), min(n, c + 5)
        return (sums[r1][c1] - sums[r0][c1] - sums[r1][c0] + sums[r0][c0]) / ((r1 - r0) * (c1 - c0))

    def mean(inside):
        values = [smooth(r, c) for r in range(0, n, 5) for c in range(0, n, 5) if inside(math.hypot(xs[c] + 0.8, zs[r] - 22.56))]
        return sum(values) / len(values)
    within, outside = mean(lambda d: d < 8), mean(lambda d: 11.5 < d < 12.5)
    assert 10 * math.log10(within / outside) > 12, "the disk does not stand out"
    level, edge = math.sqrt(within * outside), []
    for k in range(180):
        a, d = math.pi * k / 90, 6.0
        while d < 12:
            c, r = round((-0.8 + d * math.cos(a) + 12.5) * 10), round((22.56 + d * math.sin(a) - 10) * 10)
            if not (0 <= c < n and 0 <= r < n):
                break
            if smooth(r, c) < level:
                edge.append((-0.8 + d * math.cos(a), 22.56 + d * math.sin(a)))
                break
            d += 0.05
    assert len(edge) > 120, f"{len(edge)} points of the edge"
    x, z, radius = fit_circle(edge)
    print(f"disk: centre ({x:.2f}, {z:.2f}) mm, radius {radius:.2f} mm")
    assert abs(x + 0.80) <= 0.1 and abs(z - 22.56) <= 0.1, f"centre ({x:.2f}, {z:.2f}) mm"
    assert 10.1 <= radius <= 10.5, f"radius {radius:.2f} mm"

    prf, fc, speed = about("rotating_disk")["pulse_repetition_frequency_hz"], 5e6, 1480.0
    line = []
    for c in range(n):
        if abs(xs[c] + 0.8) < 8:
            total = 0j
            for r in range(120, 131):
                k = r * n + c
                total += sum(frames[f + 1][k] * frames[f][k].conjugate() for f in range(31))
            line.append((xs[c], -speed * prf / (4 * math.pi * fc) * cmath.phase(total)))
    mx, mv = sum(p[0] for p in line) / len(line), sum(p[1] for p in line) / len(line)
    slope = sum((p[0] - mx) * (p[1] - mv) for p in line) / sum((p[0] - mx)**2 for p in line)
    zero = mx - mv / slope
    print(f"disk: {slope:.4f} m/s per mm, zero at x = {zero:.2f} mm")
    assert abs(slope - 0.061) <= 0.003, f"slope {slope:.4f} m/s per mm"
    assert abs(zero + 0.75) <= 0.15, f"zero at x = {zero:.2f} mm"


# ---------------------------------------------------------------------------------------------------------------------
def read_plane(name, n):
    """An image of x and y; z is an axis of length 1 of its own."""
    image = Image(name)
    assert image.shape == (1, n, n), image.shape
    return image.values


@case("photoacoustic_arc: the picture")
def _():
    picture("photoacoustic_arc")


@case("photoacoustic_arc: sharpest at 1472 to 1480 m/s, a cross-section of 20 mm")
def _():
    n = 261

    def sharpness(speed):
        reconstruct("photoacoustic_arc", "mouse.npy", sound_speed=str(speed), y="-0.013:0.013:261", x="-0.013:0.013:261")
        image = read_plane(path("mouse.npy"), n)
        gradient = sum((image[k + 1] - image[k])**2 + (image[k + n] - image[k])**2
                       for r in range(n - 1) for k in range(r * n, r * n + n - 1)) / (n - 1)**2
        mean = sum(image) / len(image)
        return gradient / (sum((v - mean)**2 for v in image) / len(image))
    speeds = list(range(1456, 1497, 4))
    values = [sharpness(speed) for speed in speeds]
    best = speeds[values.index(max(values))]
    print("mouse: sharpness " + " ".join(f"{s}:{v:.4f}" for s, v in zip(speeds, values)))
    assert 1472 <= best <= 1480, f"sharpest at {best} m/s"

    # inside the animal there is more than outside
    reconstruct("photoacoustic_arc", "mouse.npy", analytic=True)
    image = [abs(v) for v in read_plane(path("mouse.npy"), n)]
    centre = [image[r * n + c] for r in range(0, n, 3) for c in range(0, n, 3) if math.hypot(r - 130, c - 130) < 80]
    rim = [image[r * n + c] for r in range(0, n, 3) for c in range(0, n, 3) if math.hypot(r - 130, c - 130) > 125]
    assert sum(centre) / len(centre) > 2 * sum(rim) / len(rim), "no cross-section to be seen"


finish()
