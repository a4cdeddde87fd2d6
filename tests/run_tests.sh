#!/bin/bash
# Runs test programs and scripts, prints their PASS, FAIL and SKIP lines and, last,
# the totals. One that ends badly without saying so counts as a failure.
#
#     tests/run_tests.sh TEST...
#
# TEST           a program or script, with its arguments behind it in the same word; or without=BACKEND:SOURCE,
#                which is reported as skipped
# TEST_RUNNER    words put before programs (an emulator)
# TEST_TIMEOUT   seconds after which a test that hangs is ended (default 1800)
set -u
passed=0 failed=0 skipped=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT
for test in "$@"; do
    case $test in
    without=*)
        source=${test#*:}
        echo "SKIP $(basename "${source%.c}"): this build is without the $(sed 's/without=\(.*\):.*/\1/' <<<"$test") backend"
        skipped=$((skipped + 1))
        continue
        ;;
    *.sh) command=(bash "$test") ;;
    *.py) command=("${PYTHON:-python3}" "$test") ;;
    *.jl | *.m) command=("$test") ;;
    *) read -r -a command <<<"${TEST_RUNNER:-} $test" ;;
    esac
    echo "== $test"
    start=$SECONDS
    timeout "${TEST_TIMEOUT:-1800}" "${command[@]}" >"$log" 2>&1
    status=$?
    read -r p f s < <(awk '/^PASS /{p++} /^FAIL /{f++} /^SKIP /{s++} END{print p+0, f+0, s+0}' "$log")
    last=$(tail -n 1 "$log")
    if [ "$last" != "$p passed, $f failed, $s skipped" ]; then
        echo "FAIL $(basename "$test"): ended with status $status and without totals that fit its $p passed, $f failed, $s skipped" >>"$log"
        f=$((f + 1))
        cat "$log"
    elif [ $status -ne 0 ] && [ "$f" -eq 0 ]; then
        echo "FAIL $(basename "$test"): exit status $status" >>"$log"
        f=$((f + 1))
        cat "$log"
    elif [ "$f" -ne 0 ]; then
        sed '$d' "$log"
    else
        grep -E '^(PASS|SKIP) ' "$log"
    fi
    echo "== $test: $p passed, $f failed, $s skipped in $((SECONDS - start)) s"
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ $((passed + skipped)) -gt 0 ]
