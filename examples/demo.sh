#!/bin/bash
# make demo: simulates a phantom, reconstructs it on the CPU and says how long each phase took. With recordings
# at hand (DAS_SHARED, or ../shared beside the checkout) it forms a picture of one of them as well.
#
#     examples/demo.sh BUILD_FOLDER
set -euo pipefail
out=$1
bin=${DAS_BIN:-$out/bin}
if [ ! -x "$bin/das_image" ]; then
    echo "das_image was not built because cJSON is missing: make deps demo" >&2
    exit 1
fi

mkdir -p "$out/demo"
echo "Phantom: 11 plane waves, 128 elements, four points; 361 x 361 pixels"
"$bin/das_simulate" --preset plane "$out/demo"
"$bin/das_image" --device cpu --f-number 1.5 --timing \
    --x -0.015:0.015:361 --z 0.008:0.038:361 "$out/demo/acquisition.json" "$out/demo.png"
echo "picture    $out/demo.png"

recording=${DAS_SHARED:-../shared}/data/plane_wave_points/acquisition.json
if [ -f "$recording" ]; then
    echo
    echo "Recording: 3 plane waves, 192 elements, rows of points; 441 x 841 pixels"
    "$bin/das_image" --device cpu --f-number 1.0 --timing \
        --x -0.022:0.022:441 --z 0.002:0.044:841 "$recording" "$out/demo-recording.png"
    echo "picture    $out/demo-recording.png"
fi
