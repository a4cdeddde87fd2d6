"""The calls of the Julia example against the prototypes of das.h, since Julia is rarely at hand: the same functions, as many
arguments, and types of the same size and kind."""
import os
import re

from reporting import case, finish

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
with open(os.path.join(ROOT, "include", "das", "das.h")) as file:
    header = re.sub(r"/\*.*?\*/", " ", file.read(), flags=re.S)
with open(os.path.join(ROOT, "examples", "julia", "das.jl")) as file:
    julia = re.sub(r"#[^\n]*", "", file.read())

NUMBERS = {"int32_t": "Int32", "das_status": "Int32", "das_type": "Int32", "int64_t": "Int64", "double": "Float64", "size_t": "Csize_t",
           "uint32_t": "UInt32", "void": "Cvoid"}
POINTERS = {"char": {"Cstring"}, "das_error": {"Ref{ErrorStruct}"}, "double": {"Ptr{Float64}"}, "int64_t": {"Ptr{Int64}"}}


def kinds(parameter):
    """Julia types that may stand for a C parameter."""
    words = re.sub(r"\bconst\b", " ", parameter).replace("*", " * ").replace("[", " * [").split()
    stars, base = words.count("*"), words[0]
    if stars == 0:
        return {NUMBERS[base]}
    return {"Ref{Ptr{Cvoid}}"} if stars == 2 else POINTERS.get(base, {"Ptr{Cvoid}"})


def split(text):
    """The parts between the commas outside brackets, up to the bracket that closes."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "([{") - (letter in ")]}")
        if depth < 0:
            break
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip()]


def prototype(name):
    found = re.search(r"DAS_API\s+([\w ]+?[ *]+)" + name + r"\(([^)]*)\)", header)
    assert found, f"das.h has no {name}()"
    returns, parameters = found.groups()
    return kinds(returns), [] if parameters.strip() == "void" else [kinds(p) for p in parameters.split(",")]


@case("the Julia example calls what das.h declares")
def _():
    calls = 0
    for found in re.finditer(r"ccall\(", julia):
        target, returns, types, *arguments = split(julia[found.end():])
        types = split(types[1:])
        assert len(types) == len(arguments), f"{target}: {len(types)} types, {len(arguments)} arguments"
        literal = re.search(r":(das_\w+)", target)
        # in a loop over symbols: those named in the nearest one above
        names = [literal.group(1)] if literal else re.findall(r":(das_\w+)", julia[julia.rindex("\nfor (", 0, found.start()):found.start()])
        assert names, target
        for name in names:
            want_returns, want = prototype(name)
            assert returns in want_returns, f"{name} returns {returns}, expected {want_returns}"
            assert len(types) == len(want), f"{name} takes {len(want)} arguments, not {len(types)}"
            for type_, allowed in zip(types, want):
                assert type_ in allowed, f"{name}: {type_}, expected {allowed}"
            calls += 1
    assert calls >= 20, calls


@case("the Julia example's numbers are those of das.h")
def _():
    for name, value in re.findall(r"const (TYPE_\w+) = Int32\((\d+)\)", julia):
        assert re.search(rf"DAS_{name} = {value}\b", header), name


finish()
