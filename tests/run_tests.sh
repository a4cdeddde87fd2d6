#!/bin/bash
# Runs test programs and scripts, prints their PASS, FAIL and SKIP lines and, last, the totals. One that ends badly
# without saying so counts as a failure.
#
#     tests/run_tests.sh TEST...
#
# TEST           a program or script, with its arguments behind it in the same word; or without=BACKEND:SOURCE,
#                which is reported as skipped
# TEST_RUNNER    words put before programs (an emulator)
# TEST_TIMEOUT   seconds after which a test that hangs is ended (default 1800)
# TEST_JOBS      tests that run at once (default: as many as there are processors, at most 4)
set -u
jobs=${TEST_JOBS:-$(nproc 2>/dev/null || echo 1)}
[ "$jobs" -le 4 ] || jobs=4
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT

# run_one NUMBER TEST: what to print goes to NUMBER.text, the totals to NUMBER.totals.
run_one()
{
    local test=$2 log=$results/$1.log text=$results/$1.text start=$SECONDS command source status p f s
    case $test in
    without=*)
        source=${test#*:}
        test=${test%%:*}
        echo "SKIP $(basename "${source%.c}"): this build is without the ${test#without=} backend" >"$text"
        echo 0 0 1 >"$results/$1.totals"
        return
        ;;
    *.sh) command=(bash "$test") ;;
    *.py) command=("${PYTHON:-python3}" "$test") ;;
    *.jl | *.m) command=("$test") ;;
    *) read -r -a command <<<"${TEST_RUNNER:-} $test" ;;
    esac
    timeout "${TEST_TIMEOUT:-1800}" "${command[@]}" >"$log" 2>&1 </dev/null
    status=$?
    read -r p f s < <(awk '/^PASS /{p++} /^FAIL /{f++} /^SKIP /{s++} END{print p+0, f+0, s+0}' "$log")
    {
        echo "== $test"
        if [ "$(tail -n 1 "$log")" != "$p passed, $f failed, $s skipped" ]; then
            cat "$log"
            echo "FAIL $(basename "$test"): ended with status $status and without totals that fit its $p passed, $f failed, $s skipped"
            f=$((f + 1))
        elif [ $status -ne 0 ] && [ "$f" -eq 0 ]; then
            cat "$log"
            echo "FAIL $(basename "$test"): exit status $status"
            f=$((f + 1))
        elif [ "$f" -ne 0 ]; then
            sed '$d' "$log"
        else
            grep -E '^(PASS|SKIP) ' "$log"
        fi
        echo "== $test: $p passed, $f failed, $s skipped in $((SECONDS - start)) s"
    } >"$text"
    echo "$p $f $s" >"$results/$1.totals"
}

passed=0 failed=0 skipped=0 printed=0

# Prints what has finished, in the order of the tests.
print_finished()
{
    local p f s
    while [ -s "$results/$printed.totals" ]; do
        cat "$results/$printed.text"
        read -r p f s <"$results/$printed.totals"
        passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s)) printed=$((printed + 1))
    done
}

number=0
for test in "$@"; do
    run_one $number "$test" &
    number=$((number + 1))
    while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do
        wait -n
        print_finished
    done
done
wait
print_finished
if [ $printed -ne $number ]; then
    echo "FAIL run_tests.sh: $((number - printed)) tests left no result"
    failed=$((failed + number - printed))
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ $((passed + skipped)) -gt 0 ]
