"""What the Python test scripts share: result lines and totals as the C tests print them, running programs, .npy files.
The standard library only."""
import array
import os
import struct
import subprocess
import sys
import tempfile
import traceback

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BIN = os.environ.get("DAS_BIN", os.path.join(TOP, "build", "bin"))
LIB = os.environ.get("DAS_LIB", os.path.join(TOP, "lib"))
SHARED = os.environ.get("DAS_SHARED", os.path.join(os.path.dirname(TOP), "shared"))
totals = {"PASS": 0, "FAIL": 0, "SKIP": 0}


def report(result, name, why=""):
    totals[result] += 1
    print(f"{result} {name}" + (f": {why}" if why else ""), flush=True)


def case(name):
    """Runs the function below it at once, as one case; an assertion or any other exception fails it."""
    def run(function):
        try:
            function()
        except AssertionError as problem:
            report("FAIL", name, " ".join(str(problem).split()) or f"line {problem.__traceback__.tb_next.tb_lineno}")
        except Exception:
            report("FAIL", name, " ".join(traceback.format_exc().split())[-400:])
        else:
            report("PASS", name)
    return run


def finish():
    print(f"{totals['PASS']} passed, {totals['FAIL']} failed, {totals['SKIP']} skipped")
    sys.exit(1 if totals["FAIL"] or not totals["PASS"] + totals["SKIP"] else 0)


def program(name):
    return os.path.join(BIN, name)


def run(name, *arguments, **options):
    """Runs one of the programs; the result has returncode, stdout and stderr as text."""
    return subprocess.run([program(name), *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          universal_newlines=True, errors="replace", **options)


class Image:
    """A .npy of float32 or complex64 in C order: values of a flat index, or of [a, b, c]."""

    def __init__(self, path):
        with open(path, "rb") as file:
            content = file.read()
        assert content[:8] == b"\x93NUMPY\x01\x00", f"{path} is not a .npy of version 1.0"
        length, = struct.unpack("<H", content[8:10])
        assert (10 + length) % 64 == 0 and content[9 + length:10 + length] == b"\n", "header is not padded to 64 bytes"
        header = eval(content[10:10 + length].decode("latin1"), {"__builtins__": {}})
        assert sorted(header) == ["descr", "fortran_order", "shape"] and header["fortran_order"] is False, header
        self.dtype, self.shape = header["descr"], header["shape"]
        assert self.dtype in ("<f4", "<c8"), self.dtype
        numbers = array.array("f", content[10 + length:])
        if sys.byteorder == "big":
            numbers.byteswap()
        if self.dtype == "<c8":
            self.values = [complex(re, im) for re, im in zip(numbers[0::2], numbers[1::2])]
        else:
            self.values = numbers
        count = 1
        for axis in self.shape:
            count *= axis
        assert count == len(self.values), f"{len(self.values)} values, shape {self.shape}"

    def __getitem__(self, index):
        flat = 0
        for axis, k in zip(self.shape, index):
            assert 0 <= k < axis
            flat = flat * axis + k
        return self.values[flat]


def scratch_folder():
    return tempfile.TemporaryDirectory(prefix="das-test-")
