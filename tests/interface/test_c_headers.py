"""The C header written by hand declares what the interface does, as the rule of C prototypes says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tessera_conformance.chapters.abi.kit.c_header import read_header
from tessera_conformance.interface import CFunction, c_functions, declarations, interface

# The rule from an interface to C: prototypes written by hand as `docs/cabi.md` has them, and that it gives C.

BUFFER = "out, size_t capacity, size_t* needed"
PROTOTYPES = {
    "runtime.tessInit": "tessInit(tessContext_t* out_context)",
    "runtime.tessHostAlloc": "tessHostAlloc(size_t bytes, void** hostPtr, tessMemKind kind)",
    "runtime.tessMeshCreate": "tessMeshCreate(tessContext_t context, const int* deviceIds, int nDevices, "
    "tessMeshAxes axes, tessMesh_t* out_mesh)",
    "runtime.tessxDevices": f"tessxDevices(char* {BUFFER})",
    "runtime.tessxPeek": f"tessxPeek(tessMesh_t mesh, int64_t rank, void* devPtr, int64_t bytes, void* {BUFFER})",
    "runtime.tessxPoke": "tessxPoke(tessMesh_t mesh, int64_t rank, void* devPtr, const void* data, size_t dataSize)",
    "runtime.tessxLastError": f"tessxLastError(char* {BUFFER})",
    "runtime.tessxSetSchedule": "tessxSetSchedule(const char* policy, int64_t seed, const char* choices, int untimed)",
    "runtime.tessxGetSchedule": f"tessxGetSchedule(char* {BUFFER})",
    "runtime.tessxGraphInstantiate": "tessxGraphInstantiate(tessStream_t stream, tessxGraph_t* graph)",
    "runtime.tessxCacheUse": "tessxCacheUse(int64_t* hits, int64_t* misses)",
    "runtime.tessxSetAlgorithm": "tessxSetAlgorithm(tessContext_t context, const char* collective, "
    "const char* algorithm, const char* source)",
    "abi.parameter_layout": f"tessxParameterLayout(const char* signature, char* {BUFFER})",
    "abi.unpack": f"tessxUnpack(const char* signature, const void* buffer, size_t bufferSize, char* {BUFFER})",
    "numerics.declared": "tessxNumericsDeclared(const char* operation, const char* dtype, const char* shapes, "
    f"const char* attributes, int64_t element, char* {BUFFER})",
    "host_io.open": "tessxHostIoOpen(const char* machine)",
}


@pytest.mark.parametrize("method", PROTOTYPES)
def test_a_method_has_the_prototype_of_the_rule(method: str) -> None:
    assert c_functions()[method].prototype == f"tessStatus_t {PROTOTYPES[method]};"


def test_what_the_loading_process_answers_itself_is_no_c_function() -> None:
    left_out = set(interface().methods) - set(c_functions())
    assert {name for name in left_out if not name.startswith(("session.", "binding."))} == {
        "runtime.tessxHostMemory",
        "runtime.tessxHostRead",
        "runtime.tessxHostWrite",
        "abi.header",
        "abi.constants",
    }


def test_functions_have_names_of_their_own() -> None:
    names = [c_function.name for c_function in c_functions().values()]
    assert len(set(names)) == len(names)


def test_an_optional_number_has_no_value_that_says_that_it_is_absent() -> None:
    """The rule has none, so that no extension may have one."""
    extensions = [c_function.method for c_function in c_functions().values() if c_function.extension]
    assert [
        method.full_name
        for method in extensions
        for parameter in method.parameters
        if parameter.optional and parameter.type == {"type": "number"}
    ] == []


def test_the_declarations_are_c() -> None:
    cffi = pytest.importorskip("cffi", reason="needs cffi: pip install 'tessera-conformance[cabi]'")
    ffi = cffi.FFI()
    ffi.cdef(declarations())
    sizes = [ffi.sizeof(name) for name in ("tessMeshAxes", "tessLaunchConfig", "tessNumericsPolicy")]
    assert sizes == [16, 40, 16]
    assert ffi.sizeof("tessApi") == 16 + 8 * len(interface().c_functions)
    assert ffi.typeof("tessStatus_t").relements["TESS_ERR_CACHE_CORRUPT"] == 11


def test_the_table_has_the_functions_in_their_order() -> None:
    table = declarations().partition("typedef struct tessApi {")[2].partition("}")[0]
    assert re.findall(r"\(\*(\w+)\)", table) == list(interface().c_functions)


# The C headers, which are written by hand, declare what the interface says, and say of each function what it is.

FOLDER = Path(__file__).parents[2] / "reference/tessera_reference/abi"
HEADER = (FOLDER / "tessera.h").read_text(encoding="utf-8")
EXTENSIONS = (FOLDER / "tessera_ext.h").read_text(encoding="utf-8")
BOTH = HEADER + EXTENSIONS

DECLARED = read_header(declarations())
WRITTEN = read_header(BOTH)
FUNCTIONS = {c_function.name: c_function for c_function in c_functions().values()}
COMMENTED = re.compile(r"/\*\n((?: \*[^\n]*\n)+?) \*/\ntessStatus_t (\w+)\(")
COMMENTS = {name: re.sub(r"\n \* +", " ", comment) for comment, name in COMMENTED.findall(BOTH)}


def clauses_in(comment: str) -> set[str]:
    """The clauses that a comment names; `RT-04.6-08 to 13`, `RT-04.3-09 to RT-04.3-12` are all of them in between."""
    found = set()
    for section, first, last in re.findall(r"\b([A-Z]+-[\w.]+)-(\d\d)(?: to (?:[\w.-]+-)?(\d\d))?", comment):
        found |= {f"{section}-{number:02}" for number in range(int(first), int(last or first) + 1)}
    return found


def test_every_function_is_declared() -> None:
    """And no other one."""
    assert set(WRITTEN.functions) == {*DECLARED.functions, "tessxOutcome"}


@pytest.mark.parametrize("name", DECLARED.functions)
def test_a_function_has_its_prototype(name: str) -> None:
    actual, expected = WRITTEN.prototype(name), DECLARED.prototype(name)
    assert actual == expected


@pytest.mark.parametrize("name", ["tessMeshAxes", "tessLaunchConfig", "tessNumericsPolicy", "tessApi"])
def test_a_structure_has_its_members(name: str) -> None:
    assert WRITTEN.members(name) is not None
    assert WRITTEN.members(name) == DECLARED.members(name)


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_a_function_says_what_it_is(function: CFunction) -> None:
    """Above it stands a sentence, and the clauses that the interface names."""
    comment = COMMENTS[function.name]
    assert re.match(r" \* [A-Z].*\.", comment)
    assert clauses_in(comment) >= set(function.method.clauses)


def test_the_table_is_in_the_order_of_the_header() -> None:
    members = [name for name, _ in WRITTEN.members("tessApi") or ()]
    assert members[:3] == ["struct_size", "major", "minor"]
    assert members[3:] == [name for name in read_header(HEADER).functions if name != "tessGetApi"]
