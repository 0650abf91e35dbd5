"""Names of kernels of any length: kept, distinguished and never cut (runtime specification, 8.1, 10.3; AMB-RT-105).

Of a name 63 characters are significant. A longer one may be refused by the compiler; where it is not, it is whole.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tessera_conformance.chapters.runtime.kit.encoding import elements, packed
from tessera_conformance.chapters.runtime.kit.mesh_session import MeshSession, compiled, opened
from tessera_conformance.chapters.runtime.kit.readings import no_kernel
from tessera_conformance.marks import clause, feature
from tessera_conformance.protocol import Returned

INVALID = "TESS_ERR_INVALID_VALUE"
LENGTHS = (1, 2, 8, 15, 16, 31, 32, 33, 48, 62, 63)
LONG = (64, 65, 128, 256, 1023)
ALPHABET = "kernel_NAMES_of_4_any_Length_7_abcdefghij"


def name_of(length: int) -> str:
    """A name of so many characters: letters, digits and underscores."""
    return "".join(ALPHABET[place * 7 % len(ALPHABET)] for place in range(length))


def neighbours(length: int) -> list[str]:
    """Names of one length that differ in one character: the first, one in the middle, the last, the one before it."""
    name = "q" * length
    places = sorted({0, length // 2, max(length - 2, 0), length - 1})
    return [name, *(f"{name[:place]}r{name[place + 1 :]}" for place in places)]


def program(names: Sequence[str]) -> str:
    """A module with kernels of these names; each writes its place in the list, from 1."""
    kernels = (f"kernel {name}(x: tensor<4xint32>) {{ x[0:4] = {place}; }}" for place, name in enumerate(names, 1))
    return f"module m {{ {' '.join(kernels)} }}"


def module_of(session: MeshSession, names: Sequence[str]) -> int:
    """A loaded module with kernels of these names, of which each finds the kernel that was declared with it."""
    module = session.load(program(names))
    for place, name in enumerate(names, 1):
        pointer = session.upload(bytes(16))
        session.launch(session.kernel_of(module, name), packed(("ptr", pointer)))
        session.check.equal(session.integers(pointer, 4), [place] * 4, f"what kernel {name} writes")
    return module


@feature("image-inspection")
@clause("RT-10.3-01", "RT-10.3-02", "RT-08.1-07")
def test_the_kernel_table_has_names_of_any_length(impl, check):
    """From one character to 63, whole and in order."""
    names = [name_of(length) for length in LENGTHS]
    actual = check.returns(impl.abi.inspect(image=compiled(impl, check, program(names))))["kernels"]
    check.equal(sorted(kernel["name"] for kernel in actual), sorted(names), "the names in the kernel table")


@clause("RT-08.1-07", "RT-10.3-01")
@pytest.mark.parametrize("length", LENGTHS)
def test_names_that_differ_in_one_character_are_different_kernels(impl, check, length):
    """At the beginning, in the middle and at the end; and a character less or more is no name."""
    session = opened(impl, check)
    names = neighbours(length)
    module = module_of(session, names)
    for name in (names[0][:-1], names[0] + "q", names[-1][:-1] + "s", names[0] + "_"):
        no_kernel(check, session.attempt("tessKernelGet", module=module, name=name))


@clause("RT-08.1-07", "RT-10.3-01")
def test_names_of_which_one_begins_the_other_are_different_kernels(impl, check):
    """One module with names of every length, each the beginning of the next."""
    module_of(opened(impl, check), ["z" * length for length in LENGTHS])


@clause("RT-10.3-01", "RT-08.1-07")
@pytest.mark.parametrize("length", LONG)
def test_a_longer_name_is_whole_or_refused(impl, check, length):
    """Two names that differ in their last character: refused by the compiler, or two kernels."""
    names = ["w" * (length - 1) + end for end in "ab"]
    answer = impl.abi.compile(source=program(names))
    if not isinstance(answer, Returned):
        check.rejects(answer, category=("types", "syntax", INVALID, "TESS_ERR_UNSUPPORTED"))
        return
    session = opened(impl, check)
    module = module_of(session, names)
    for name in (names[0][:-1], names[0][:63], names[0] + "a"):
        no_kernel(check, session.attempt("tessKernelGet", module=module, name=name))


REGISTERS = ["r0", "rd1", "p1", "f2", "tid", "v0", "s0", "vcc", "exec", "ret", "reg", "add", "entry", "k_param_0"]
"""Identifiers of C that are registers, instructions or directives in the languages of devices."""


@clause("RT-10.3-01")
def test_a_kernel_may_have_the_name_of_a_register(impl, check):
    """Names of the languages of devices are names of kernels as good as others."""
    module_of(opened(impl, check), REGISTERS)


@clause("RT-10.1-01", "RT-10.3-01")
@pytest.mark.parametrize("first", range(0, len(REGISTERS) - 3, 3))
def test_a_parameter_may_have_the_name_of_a_register(impl, check, first):
    """Four of them in one kernel of such a name: two tensors and two numbers, each in a role of its own."""
    x, factor, term, y = names = REGISTERS[first : first + 4]
    row = "tensor<4xint32>"
    parameters = f"{x}: {row}, {factor}: int32, {term}: int32, {y}: {row}"
    session = opened(impl, check)
    kernel = session.kernel("r0", f"module m {{ kernel r0({parameters}) {{ {y} = {x} * {factor} + {term}; }} }}")
    given, result = session.upload(elements("int32", 3, -1, 4, 9)), session.upload(bytes(16))
    arguments = packed(("ptr", given), ("int32", 7), ("int32", -2), ("ptr", result))
    session.launch(kernel, arguments)
    check.equal(session.integers(result, 4), [19, -9, 26, 61], f"what the kernel of {', '.join(names)} leaves")
    check.equal(session.integers(given, 4), [3, -1, 4, 9], "the tensor that it reads")
