# Sourced by the test scripts: result lines and totals, as the C tests print them.
# The working directory is the top of the tree.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
DAS_LIB=${DAS_LIB:-$PWD/lib}
DAS_BIN=${DAS_BIN:-$PWD/build/bin}
DAS_BUILD=${DAS_BUILD:-$PWD/build}
CC=${CC:-cc}
CXX=${CXX:-c++}
PYTHON=${PYTHON:-python3}
MAKE=${MAKE:-make}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
passed=0 failed=0 skipped=0

pass() { echo "PASS $1"; passed=$((passed + 1)); }
fail() { echo "FAIL $1: ${2:-}"; failed=$((failed + 1)); }
skip() { echo "SKIP $1: $2"; skipped=$((skipped + 1)); }

# expect NAME COMMAND...: passes if the command succeeds; shows what it printed if not.
expect()
{
    local name=$1
    shift
    if "$@" >"$scratch/log" 2>&1; then
        pass "$name"
    else
        fail "$name" "$* gave $?: $(tail -n 3 "$scratch/log" | tr '\n' ' ')"
    fi
}

# same NAME WANT GOT: passes if both texts are equal.
same()
{
    if [ "$2" = "$3" ]; then
        pass "$1"
    else
        fail "$1" "$(diff <(echo "$2") <(echo "$3") | head -n 12 | tr '\n' ' ')"
    fi
}

totals()
{
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" -eq 0 ]
    exit
}
