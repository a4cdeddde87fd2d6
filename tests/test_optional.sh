#!/bin/bash
# das_image without FFTW, libpng or cJSON: what does not need them works, the rest says what is missing.
. "$(dirname "$0")/reporting.sh"
cjson=$(pkg-config --exists libcjson 2>/dev/null && pkg-config --cflags --libs libcjson)
helpers=$(ls examples/*.c | grep -vE '/([0-9]|das_)')

build()
{
    local name=$1
    shift
    # shellcheck disable=SC2086
    expect "$name compiles" $CC -std=c11 -D_GNU_SOURCE -O1 -Wall -Wextra -Wpedantic -Werror -Iinclude -Iexamples -o "$scratch/$name" \
        examples/das_image.c $helpers "$@" -L"$DAS_LIB" -ldas -lm "-Wl,-rpath,$DAS_LIB"
}

# refuses NAME WORD COMMAND...: status 1, one line with the word, no output file.
refuses()
{
    local name=$1 word=$2 status=0
    shift 2
    "$@" >"$scratch/out" 2>"$scratch/err" || status=$?
    if [ $status -eq 1 ] && [ "$(wc -l <"$scratch/err")" -eq 1 ] && grep -q -e "$word" "$scratch/err" && [ ! -s "$scratch/out" ] &&
        [ -z "$(ls "$scratch"/image.* 2>/dev/null)" ]; then
        pass "$name"
    else
        fail "$name" "status $status: $(head -n 3 "$scratch/err")"
    fi
}

head -c 4000 /dev/zero >"$scratch/rf.bin"
describe()
{
    echo '{"data": {"file": "rf.bin", "dtype": "'"$1"'", "axes": ["sample"], "shape": ['"$2"']}, "sampling_frequency_hz": 1e6,
        "sound_speed_m_s": 1500, "receive": {"positions_m": [[0, 0, 0]]}, "transmits": [{"type": "none"}]}' >"$scratch/$3.json"
}
describe "<f4" 1000 real
describe "<c8" 500 complex
axes="--x 0:0.1:3 --z 0:0.1:3"

# shellcheck disable=SC2086
if [ -n "$cjson" ]; then
    build json-only -DDAS_HAVE_CJSON $cjson
    expect "a .npy needs no more" "$scratch/json-only" $axes "$scratch/real.json" "$scratch/image.npy"
    rm -f "$scratch/image.npy"
    for option in "--bandpass 1e5:2e5" "--demodulate 1e5" --analytic; do
        refuses "$option needs FFTW" "${option%% *}.*FFTW" "$scratch/json-only" $axes $option "$scratch/real.json" "$scratch/image.npy"
    done
    refuses "a PNG needs libpng" "libpng" "$scratch/json-only" $axes "$scratch/complex.json" "$scratch/image.png"
else
    skip "das_image with cJSON alone" "pkg-config does not find libcjson"
fi
build nothing
refuses "acquisition.json needs cJSON" "cJSON" "$scratch/nothing" "$scratch/real.json" "$scratch/image.npy"
if pkg-config --exists libpng libcjson 2>/dev/null; then
    # shellcheck disable=SC2046
    build no-fftw -DDAS_HAVE_CJSON -DDAS_HAVE_PNG $(pkg-config --cflags --libs libcjson libpng)
    refuses "a PNG of real data needs FFTW" "FFTW" "$scratch/no-fftw" $axes "$scratch/real.json" "$scratch/image.png"
    expect "a PNG of complex data does not" "$scratch/no-fftw" $axes "$scratch/complex.json" "$scratch/image.png"
else
    skip "PNG without FFTW" "pkg-config does not find libpng and libcjson"
fi
totals
