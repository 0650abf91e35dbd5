"""Verifiers of Tile IR that overlook one kind of mistake, or refuse one legal form (language spec, 7, 8, 11)."""

from dataclasses import replace
from math import prod

from tessera_reference.ir.targets import TARGETS, MmaShape
from tessera_reference.tile.operations import SharedAlloc

from .changes import instead, nothing, wrapped
from .verifiers_of_text import misreads, overlooks, turns_down

TYPES = [
    overlooks("fragment_types", "LANG-07.1-01", "that a fragment type is incomplete", "fragment<|dtype|layout"),
    overlooks("roles", "LANG-07.1-01", "that a fragment is used as two things", "one fragment is"),
    turns_down("commas_only", "LANG-07.1-01", "a layout behind a semicolon", r"fragment<[^>]*; *layout"),
    overlooks("index_count", "LANG-07.1-02", "that indices are too few or too many", "indices given"),
    overlooks("index_type", "LANG-07.1-02", "that an index is no int32", "an index is"),
    overlooks("shared_parameters", "LANG-07.1-02", "that a parameter is in shared memory", r"is memref<4xfp32>\[addr"),
    overlooks("stored_dtype", "LANG-07.1-02", "that a value has not the dtype of its memory", "the value is"),
    overlooks("unknown_extents", "LANG-07.1-02", "that an extent of a memref is unknown", r"memref<(\?|N)x"),
    overlooks("spaces", "LANG-08.3-01", "that an address space is none", "private|address space"),
    overlooks("allocated", "LANG-07.2-01", "that shared.alloc allocates elsewhere", "it allocates"),
    overlooks("unknown_tiles", "LANG-03.1-04", "that an extent is unknown", r"dimensions|extents|memref<(\?|N)x"),
]

OPERATIONS = [
    overlooks("loaded_memory", "LANG-07.2-02", "that ldmatrix reads global memory", "it reads memref"),
    overlooks("loaded_dtype", "LANG-07.2-02", "that ldmatrix reads another dtype", "it reads fp16 into"),
    overlooks("loaded_rank", "LANG-07.2-02", "that a memref has no rows", "has no rows"),
    overlooks("sizes", "LANG-07.2-03", "that m, n and k are others than the fragments'", "m, n and k are"),
    overlooks("missing_sizes", "LANG-07.2-03", "that m, n or k is missing", "is missing"),
    overlooks("three_types", "LANG-07.2-03", "that fragments are of several types", "the fragments are"),
    instead("accumulator_from_its_start", "LANG-07.2-03", "takes any accumulator that is one from its start on",
        "tile.fragments._require_accumulator", nothing),
    overlooks("stored_operand", "LANG-07.2-03", "that an accumulator is stored as an operand", "one fragment is"),
    misreads("named_copies", "LANG-07.2-04", "does nothing for a copy that is named", r"\n *%cp = .*", ""),
    overlooks("copied_fp16", "LANG-07.2-04", "that a copy makes fp16 of bf16", "it copies bf16 to fp16"),
    overlooks("copied_pairs", "LANG-07.2-04", "that two bytes are copied", "it copies 2 bytes of elements of 2"),
    overlooks("copied_back", "LANG-07.2-04", "that a copy goes another way", "to (global|shared) memory"),
    overlooks("copy_alignment", "LANG-07.2-04", "that a copy is misaligned", r"it copies \d+ bytes at"),
    overlooks("pending", "LANG-07.2-04", "that a negative number of groups is pending", "pending is"),
    overlooks("barrier_operands", "LANG-07.2-05", "that a barrier has operands", r"\d+ (operand|result)s?\b"),
    overlooks("shuffle_delta", "LANG-07.2-06", "that delta is negative", "delta is"),
    overlooks("shuffle_mask", "LANG-07.2-06", "that a mask is negative", "the mask is"),
    overlooks("shuffle_type", "LANG-07.2-06", "that a shuffle gives another type", "the result is"),
    turns_down("decimal_masks", "LANG-07.2-06", "masks in hexadecimal", r"mask = 0x"),
    overlooks("axes", "LANG-08.2-03", "that there is no such axis", "axis"),
    overlooks("loops", "LANG-01-06", "that the bounds of a loop are no int32", "the range's"),
    overlooks("conditions", "LANG-01-06", "that a condition is no bool", "the condition is"),
    overlooks("carried_memory", "LANG-01-06", "that a loop carries memory", "hands on"),
    overlooks("leaves_a_region", "LANG-01-06", "that a region returns", "a region does not come back"),
    overlooks("foreign", "LANG-08.2-03", "that a kernel holds operations of the host", "a kernel cannot hold"),
]  # fmt: skip


def has(name, clause, description, has_mma):
    """Return a violation with other matrix instructions of a target."""
    return instead(name, clause, description, "ir.targets.Target.has_mma", has_mma)


def allocations(function):
    held = [instruction.operation for instruction in function.body.instructions]
    buffers = [operation.returns for operation in held if isinstance(operation, SharedAlloc)]
    return [prod(int(extent) for extent in buffer.shape) * buffer.dtype.storage_bytes for buffer in buffers]


TARGET = [
    has("turned_shapes", "LANG-07.3-02", "has matrix instructions with m and n exchanged",
        lambda self, held, m, n, k: MmaShape(held, m, n, k) in self.mma or MmaShape(held, n, m, k) in self.mma),
    has("of_any_target", "LANG-11-10", "takes matrix instructions of other targets",
        lambda self, held, m, n, k: any(MmaShape(held, m, n, k) in target.mma for target in TARGETS.values())),
    has("of_any_dtype", "LANG-11-10", "takes a shape of one dtype for another",
        lambda self, held, m, n, k: any((shape.m, shape.n, shape.k) == (m, n, k) for shape in self.mma)),
    has("any_size", "LANG-11-15", "takes tiles of any size", lambda self, held, m, n, k: True),
    overlooks("other_target", "LANG-11-10", "that a kernel is made for another target", "is made for"),
    overlooks("threads", "LANG-11-15", "that a block has too many threads", "its block has"),
    instead("corners", "LANG-07.3-01", "does not see that a corner is misaligned", "tile.verifier._verify_alignment",
        nothing),
    instead("any_rows", "LANG-03.3-03", "takes rows of any length", "tile.fragments.ALIGNMENT", 1),
    instead("rows_of_32", "LANG-11-14", "aligns rows of matrices to 32 bytes", "tile.fragments.ALIGNMENT", 32),
    wrapped("LANG-07.3-03", "off_by_one", "lets a byte more pass than a block has", "tile.verifier._verify_shared_size",
        lambda usual, function, target: usual(function, replace(target, shared_bytes=target.shared_bytes + 1))),
    wrapped("LANG-07.3-03", "of_one_target", "takes every target to have the memory of one",
        "tile.verifier._verify_shared_size",
        lambda usual, function, target: usual(function, replace(target, shared_bytes=TARGETS["sm_90"].shared_bytes))),
    instead("packed", "LANG-07.3-04", "counts allocations without the gaps between", "tile.verifier.shared_bound",
        lambda function: sum(allocations(function))),
]  # fmt: skip
