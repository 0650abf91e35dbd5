"""The C header: handles, enumerations, structures and prototypes (runtime specification, section 4).

It is judged by what it declares: names of parameters and tags are free, and so is how a type is spelled (AMB-RT-100).
"""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.abi.kit.c_header import Linkage, UnreadableHeader, linkages, read_header
from tessera_conformance.chapters.abi.kit.c_names import (
    COLLECTIVE_OPERATORS,
    COPY_KINDS,
    LAUNCH_FLAGS,
    MEMORY_KINDS,
    PROTOTYPES,
    STATUSES,
)
from tessera_conformance.marks import clause, feature

HANDLES = {
    "tessContext_t": "RT-04.1-01",
    "tessMesh_t": "RT-04.1-02",
    "tessStream_t": "RT-04.3-01",
    "tessEvent_t": "RT-04.3-02",
    "tessModule_t": "RT-04.5-01",
    "tessKernel_t": "RT-04.5-02",
    "tessProfiler_t": "RT-04.8-01",
}
ENUMERATIONS = {
    "tessStatus_t": ("RT-04.1-15", STATUSES),
    "tessMemKind": ("RT-04.4-12", MEMORY_KINDS),
    "tessCopyKind": ("RT-04.4-13", COPY_KINDS),
    "tessCollOp": ("RT-04.6-14", COLLECTIVE_OPERATORS),
}
AXES = ("tp", "pp", "dp", "ep")
SWITCHES = ("stableReductions", "deterministic", "rngStateless", "allowFastMath")
LAUNCH_FIELDS = {
    "grid": ("RT-04.5-07", "int[3]"),
    "block": ("RT-04.5-08", "int[3]"),
    "shmemBytes": ("RT-04.5-10", "size_t"),
    "flags": ("RT-04.5-11", "unsigned int"),
}


def header_of(impl, check):
    """The declarations of the implementation's header."""
    text = check.returns(impl.abi.header())["text"]
    try:
        header, problem = read_header(text), ""
    except UnreadableHeader as unreadable:
        header, problem = None, str(unreadable)
    check.equal(problem, "", "what is wrong with the header as C")
    return header


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=clause(number), id=name) for name, number in HANDLES.items()]
)
def test_a_handle_is_an_opaque_pointer(impl, check, name):
    """The type is a pointer to a structure that the header does not define."""
    header = header_of(impl, check)
    check.true(header.is_opaque_handle(name), f"{name} is a pointer to an incomplete structure")


@pytest.mark.parametrize(
    ("name", "enumerators"),
    [pytest.param(name, names, marks=clause(number), id=name) for name, (number, names) in ENUMERATIONS.items()],
)
def test_an_enumeration_has_its_enumerators(impl, check, name, enumerators):
    """The type is a C enum of that name whose enumerators count from 0 in the order of the specification."""
    actual = header_of(impl, check).enumerators(name)
    check.true(actual is not None, f"{name} is an enumeration")
    check.equal(
        actual,
        tuple((enumerator, value) for value, enumerator in enumerate(enumerators)),
        "enumerators and their values",
    )


@clause("RT-04.2-01")
def test_the_axes_of_a_mesh_are_four_ints(impl, check):
    """tessMeshAxes is {int tp, pp, dp, ep;}, in this order and nothing else."""
    actual = header_of(impl, check).members("tessMeshAxes")
    check.equal(actual, tuple((name, "int") for name in AXES), "the members of tessMeshAxes")


@clause("RT-04.7-01", "RT-02-10")
def test_the_numerics_policy_is_four_ints(impl, check):
    """tessNumericsPolicy has stable reductions and the mode of random numbers among its four switches, in order."""
    actual = header_of(impl, check).members("tessNumericsPolicy")
    check.equal(actual, tuple((name, "int") for name in SWITCHES), "the members of tessNumericsPolicy")


@pytest.mark.parametrize(
    ("name", "type_"),
    [pytest.param(name, type_, marks=clause(number), id=name) for name, (number, type_) in LAUNCH_FIELDS.items()],
)
def test_the_launch_configuration_has_the_field(impl, check, name, type_):
    """grid and block are arrays of three ints, shmemBytes is a size_t, flags are unsigned."""
    members = dict(header_of(impl, check).members("tessLaunchConfig") or ())
    check.equal(members.get(name), type_, f"the type of {name}")


@clause("RT-04.5-12")
def test_the_fields_of_the_launch_configuration_are_in_order(impl, check):
    """grid, block, shmemBytes, flags, and nothing before, between or behind them."""
    members = header_of(impl, check).members("tessLaunchConfig") or ()
    check.equal([name for name, _ in members], list(LAUNCH_FIELDS), "the members of tessLaunchConfig")


@feature("c-abi")
@clause("RT-06-07", "RT-06-08", "RT-06-10", "RT-06-12", "RT-06-14")
def test_the_header_defines_the_launch_flags(impl, check):
    """By enumerators or by macros: none, and one bit for each flag."""
    header = header_of(impl, check)
    actual = {name: header.value(name) for name in LAUNCH_FLAGS}
    check.equal(actual, dict(zip(LAUNCH_FLAGS, (0, 1, 2, 4, 8), strict=True)), "the flags")


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        pytest.param(name, parameters, marks=clause(number), id=name)
        for name, (number, parameters) in PROTOTYPES.items()
    ],
)
def test_a_function_has_the_prototype_of_the_specification(impl, check, name, parameters):
    """Number, order and types of the parameters are those of the specification."""
    header = header_of(impl, check)
    actual, expected = header.prototype(name), header.expected(f"tessStatus_t {name}{parameters};")
    check.equal(None if actual is None else actual.parameters, expected.parameters, f"the parameters of {name}")


@clause("RT-07-01")
@pytest.mark.parametrize("name", PROTOTYPES)
def test_a_function_returns_a_status(impl, check, name):
    """Every function of the host interface returns a tessStatus_t; tessExplain is none of them (AMB-RT-36)."""
    header = header_of(impl, check)
    actual, expected = header.prototype(name), header.expected(f"tessStatus_t {name}(void);")
    check.equal(None if actual is None else actual.result, expected.result, f"the result of {name}")


@feature("c-abi")
@clause("LANG-16-07")
@pytest.mark.parametrize("name", PROTOTYPES)
def test_a_function_is_called_as_c_calls(impl, check, name):
    """Also from C++: its name is not mangled there, and no keyword or attribute asks for another calling convention."""
    text = check.returns(impl.abi.header())["text"]
    check.equal(linkages(text).get(name), Linkage(is_c=True), f"how {name} is linked and called")


@feature("c-abi")
@clause("RT-02-08")
@pytest.mark.parametrize("name", ["tessBroadcast", "tessReduceScatter", "tessAllGather", "tessAllReduce"])
def test_the_header_declares_the_four_collectives(impl, check, name):
    """Broadcast, reduce-scatter, all-gather and all-reduce are functions of the header."""
    check.true(header_of(impl, check).prototype(name) is not None, f"{name} is declared")
