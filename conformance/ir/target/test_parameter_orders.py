"""Several scalars in every order: buffers first, then scalars, then what is hidden (language spec, 16)."""

from __future__ import annotations

import re
from itertools import combinations, permutations

import pytest

from tessera_conformance.chapters.ir.kit.kernel_texts import KernelText
from tessera_conformance.chapters.ir.kit.level_programs import BOTH_VENDORS, emitted, lowered, results_at, verified
from tessera_conformance.dsl import returning, tensor_of
from tessera_conformance.marks import clause, feature

POINTER = "!llvm.ptr<1>"
SCALARS = ("int32", "fp64", "int64", "fp32", "fp32", "fp64")


def name_of(order):
    """Names one after another."""
    return "-".join(map(str, order))


@clause("LANG-16-02", "LANG-16-03")
@feature("target-ir-text")
@pytest.mark.parametrize("count", [4, 5, 6])
@pytest.mark.parametrize("target", BOTH_VENDORS)
def test_no_buffer_stands_behind_any_scalar(impl, check, count, target):
    """Only the first two places are legal for two buffers among so many parameters."""
    for places in combinations(range(count), 2):
        scalars = iter(SCALARS)
        types = [POINTER if place in places else next(scalars) for place in range(count)]
        parameters = {f"p{place}": type_ for place, type_ in enumerate(types)}
        text = KernelText(parameters, level="target", target=target).module
        if places == (0, 1):
            check.accepts(verified(impl, text, "target", target))
        else:
            check.rejects(verified(impl, text, "target", target), category=("tile", "types"), phase="verify")


@clause("LANG-16-03")
@feature("target-ir-text")
@pytest.mark.parametrize("types", sorted(set(permutations(["int32", "fp32", "fp32", "int64"]))), ids=name_of)
def test_scalars_stand_in_any_order_among_themselves(impl, check, types):
    """Scalars of one type or of several, wide and narrow ones, behind a buffer."""
    parameters = {"x": POINTER, **{f"p{place}": type_ for place, type_ in enumerate(types)}}
    check.accepts(verified(impl, KernelText(parameters, level="target").module, "target"))


DECLARED = {"A": "tensor<40xfp32>", "s": "fp32", "t": "fp32", "u": "fp32"}
EXPRESSION = "(A + s) * t - u"
MIXED = {"A": "tensor<40xfp32>", "B": "tensor<40xfp64>", "s": "fp32", "d": "fp64", "e": "fp64"}
MIXED_EXPRESSION = "(op.cast(A * s) @{dtype=fp64} - d) * e + B"
VALUES = {"s": 3, "t": 5, "u": 7, "d": 11, "e": 13}


def declared(order, types):
    """A parameter list in an order."""
    return ", ".join(f"{name}: {types[name]}" for name in order)


def inputs_of(types):
    """Tensors of small whole numbers, and the scalars."""
    return {
        name: tensor_of(kind.removesuffix(">").rpartition("x")[2], [*range(40)]) if "tensor" in kind
        else tensor_of(kind, VALUES[name])
        for name, kind in types.items()
    }  # fmt: skip


def buffers_first(impl, check, source, target="sm_90"):
    """Each kernel of a program takes pointers at Target IR, and then none. Gives what each takes."""
    actual = lowered(impl, check, source, "target", target)
    entries = [list(actual.functions[name].arguments) for name in actual.kernels]
    for arguments in entries:
        first = next((place for place, argument in enumerate(arguments) if argument != POINTER), len(arguments))
        check.true(POINTER not in arguments[first:], "no buffer behind a scalar", arguments)
    return entries


@clause("LANG-16-02", "LANG-16-03")
@feature("lower-target", "execute-target")
@pytest.mark.parametrize("order", [*permutations(DECLARED)], ids=name_of)
def test_scalars_of_one_type_keep_their_parts(impl, check, order):
    """However a function declares them, each is added, multiplied or taken off as its name says."""
    source = returning(EXPRESSION, declared(order, DECLARED))
    buffers_first(impl, check, source)
    (value,) = results_at(impl, check, source, "target", **inputs_of(DECLARED))
    check.bits(value, tensor_of("fp32", [(index + 3) * 5 - 7 for index in range(40)]))


@clause("LANG-16-02", "LANG-16-03")
@feature("lower-target", "execute-target", "casts")
@pytest.mark.parametrize("order", [*permutations(MIXED)][::7], ids=name_of)
def test_scalars_of_several_widths_keep_their_parts(impl, check, order):
    """Scalars of 32 and of 64 bits, before, between and behind the tensors."""
    source = returning(MIXED_EXPRESSION, declared(order, MIXED))
    buffers_first(impl, check, source)
    (value,) = results_at(impl, check, source, "target", **inputs_of(MIXED))
    check.bits(value, tensor_of("fp64", [(index * 3 - 11) * 13 + index for index in range(40)]))


# What is emitted

WIDTHS = {POINTER: 8, "int32": 4, "int64": 8, "fp32": 4, "fp64": 8}


def judge_hidden(check, widths, listed):
    """Something stands behind the scalars, and its numbers have 32 or 64 bits (AMB-LANG-220)."""
    check.true(bool(listed), "there are hidden parameters", listed)
    check.equal([width for width in widths if width not in (4, 8)], [], "the widths of other hidden parameters")


def emitted_entries(impl, check, order, target, to, pattern):
    """Return the parameters of the mixed program's kernels at Target IR, with a pattern's match in their assembly."""
    source = returning(MIXED_EXPRESSION, declared(order, MIXED))
    entries = buffers_first(impl, check, source, target)
    check.true(bool(entries), "there is a kernel")
    lists = re.findall(pattern, emitted(impl, check, source, to, target))
    check.equal(len(lists), len(entries), "the number of entries whose parameters are listed")
    return list(zip(entries, lists, strict=True))


@clause("LANG-16-04", "LANG-16-02", "LANG-16-03")
@feature("lower-target", "target-nvptx", "casts")
@pytest.mark.parametrize("order", [*permutations(MIXED)][::23], ids=name_of)
def test_ptx_passes_buffers_then_scalars_then_what_is_hidden(impl, check, order):
    """The widths of an entry's parameters: those of its buffers and scalars, and then those of the hidden ones."""
    pattern = r"\.entry\s+tss_kernel_\w+\s*\(([^)]*)\)"
    for arguments, listed in emitted_entries(impl, check, order, "sm_90", "ptx", pattern):
        widths = [int(bits) // 8 for bits in re.findall(r"\.param\s+(?:\.align\s+\d+\s+)?\.[a-z](\d+)", listed)]
        shown = [WIDTHS[argument] for argument in arguments]
        check.equal(widths[: len(shown)], shown, "the widths of buffers and scalars")
        judge_hidden(check, widths[len(shown) :], widths[len(shown) :])


@clause("LANG-16-04", "LANG-16-02", "LANG-16-03")
@feature("lower-target", "target-amdgcn", "casts")
@pytest.mark.parametrize("order", [*permutations(MIXED)][::23], ids=name_of)
def test_the_metadata_of_amd_list_buffers_then_scalars_then_what_is_hidden(impl, check, order):
    """The kinds, sizes and offsets of `.args`, by which a loader fills arguments in."""
    pattern = r"\.args:\n((?:      .*\n)+)"
    for arguments, listed in emitted_entries(impl, check, order, "gfx942", "amdgcn", pattern):
        kinds = re.findall(r"\.value_kind:\s*(\w+)", listed)
        sizes = list(map(int, re.findall(r"\.size:\s*(\d+)", listed)))
        offsets = list(map(int, re.findall(r"\.offset:\s*(\d+)", listed)))
        check.equal(len(sizes), len(kinds), "a size for each argument")
        shown = ["global_buffer" if argument == POINTER else "by_value" for argument in arguments]
        check.equal(kinds[: len(shown)], shown, "the kinds of buffers and scalars")
        check.equal(sizes[: len(shown)], [WIDTHS[argument] for argument in arguments], "their sizes")
        check.true(offsets == sorted(offsets), "the offsets ascend", offsets)
        by_value = [size for kind, size in zip(kinds, sizes, strict=True) if kind == "by_value"]
        behind = by_value[shown.count("by_value") :]
        judge_hidden(check, behind, kinds[len(shown) :])
        check.true("global_buffer" not in kinds[len(shown) :], "no buffer among what is hidden", kinds)
