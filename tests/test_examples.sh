#!/bin/bash
# Every numbered example runs and finds what it simulates (each checks itself); so do those in Python, Octave and Julia
# where the interpreters are installed. Their length is kept.
. "$(dirname "$0")/reporting.sh"
export DAS_LIB DAS_BIN PYTHONDONTWRITEBYTECODE=1

for source in examples/[0-9]*.c; do
    name=$(basename "$source" .c)
    expect "$name runs" timeout 120 "$DAS_BIN/$name"
    lines=$(wc -l <"$source")
    if [ "$lines" -lt 80 ]; then pass "$name is short"; else fail "$name is short" "$lines lines, expected less than 80"; fi
done

expect "Python example finds its point" "$PYTHON" examples/python/plane_wave.py
expect "Python binding covers the header's types" "$PYTHON" - <<'PYTHON'
import array, math, sys
sys.path.insert(0, "examples/python")
import das

# errors become exceptions that carry the status and the sentence
try:
    das.Device("no-such-device")
except das.Error as error:
    assert error.status < 0 and error.name.startswith("DAS_ERROR_") and "no-such-device" in str(error), error
else:
    raise AssertionError("opened no-such-device")
assert any(info.name == b"cpu" for info in das.devices())

device, acquisition = das.Device("cpu"), das.Acquisition()
try:
    acquisition.set_sound_speed(math.nan)
except das.Error as error:
    assert error.name == "DAS_ERROR_ARGUMENT" and "sound_speed" in str(error), error
else:
    raise AssertionError("took a sound speed of NaN")

# two transmits, three receives, all at the origin: 10000 t + 1000 r + n, one sample is 75 um
acquisition.set_receive_elements([[0, 0, 0]] * 3)
acquisition.add_plane_transmit(0)
acquisition.add_plane_direction_transmit([0, 0, 2])
acquisition.set_sampling_frequency(20e6)
acquisition.set_sound_speed(1500)
acquisition.set_data(das.TYPE_F32, 1000)
data = array.array("f", [10000 * t + 1000 * r + n for t in range(2) for r in range(3) for n in range(1000)])
point = das.Grid.points([[0, 0, 0.015]])
assert abs(das.Plan(device, acquisition, point).reconstruct(data)[0] - 38400) < 0.04
options = das.Options()
options.set_keep_transmit(1)
options.set_keep_receive(1)
plan = das.Plan(device, acquisition, point, options)
kept = plan.reconstruct(bytes(data))
assert kept.shape == (2, 3) and abs(kept[1, 2] - 12400) < 0.02, kept.tolist()
assert list(plan.info().image_shape) == [1, 2, 3, 1, 1, 1] and plan.description()
into = array.array("f", [math.nan] * 6)
assert plan.reconstruct(data, into) is into and abs(into[5] - 12400) < 0.02

# the same by explicit buffers, with times
queue, run, marks = das.Queue(device), das.Run(device), [das.Event(device) for _ in range(2)]
source, target = das.Buffer(device, plan.info().input_bytes), das.Buffer(device, plan.info().output_bytes)
into = array.array("f", [math.nan] * 6)
run.enable_timing(1)
marks[0].record(queue)
source.upload(queue, data)
marks[1].record(queue)
plan.queue(queue, source, target, run)
target.download(queue, into)
queue.wait()
assert into.tobytes() == kept.tobytes() and run.timing().compute_ms > 0 and marks[1].milliseconds_since(marks[0]) >= 0
one = das.Device("cpu", threads=1, isa="scalar")
assert one.info().compute_units == 1
try:
    das.Device("cpu", isa="none-such")
except das.Error as error:
    assert error.status < 0
else:
    raise AssertionError("took none-such")
options = das.Options()
options.set_receive_times([[1e-5], [1e-5], [2e-5]])
options.set_receive_weights([[1.0], [0.5], [0.0]])
got = das.Plan(device, acquisition, point, options).reconstruct(data)[0]
assert abs(got - (400 + 0.5 * 1400 + 10400 + 0.5 * 11400)) < 0.02, got
acquisition.set_traces([0, 1], [2, 0], [1.0, -1.0])
got = das.Plan(device, acquisition, das.Grid.polar([0, 0, 0], [0.0], [0.015])).reconstruct(data)[0]
assert abs(got - (400 - 1400)) < 0.01, got
acquisition.set_traces([], [])

# IQ: +j
iq = das.Acquisition()
iq.set_receive_elements([[0, 0, 0]])
iq.add_plane_transmit(0.0)
iq.set_sampling_frequency(20e6)
iq.set_sound_speed(1500)
iq.set_start_times([5.05e-6])
iq.set_demodulation_frequency(5e6)
iq.set_data(das.TYPE_CF32, 1000)
re, im = das.Plan(device, iq, das.Grid.points([[0, 0, 20.05e-6 * 750]])).reconstruct(array.array("f", [1, 0] * 1000)).tolist()
assert abs(re) < 1e-5 and abs(im - 1) < 1e-5, (re, im)
PYTHON

if command -v octave-cli >/dev/null && [ -x "$DAS_BIN/das_image" ]; then
    expect "Octave example finds its point" octave-cli --no-gui --quiet --eval "cd examples/octave; plane_wave"
else
    skip "Octave example" "octave-cli or das_image is not installed"
fi
if command -v julia >/dev/null; then
    expect "Julia example finds its point" julia examples/julia/das.jl
else
    skip "Julia example" "julia is not installed"
fi
totals
