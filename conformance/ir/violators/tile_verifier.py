"""Verifiers of Tile IR that overlook one kind of mistake, or refuse one legal form (language spec, 7, 8, 11)."""

from dataclasses import replace
from math import prod

from tessera_reference.ir.targets import TARGETS, MmaShape
from tessera_reference.tile.operations import SharedAlloc

from .changes import instead, nothing, wrapped
from .verifiers_of_text import misreads, overlooks, turns_down

TYPES = [
    overlooks("LANG-07.1-01", "fragment_types", "that a fragment type is incomplete", "fragment<|dtype|layout"),
    overlooks("LANG-07.1-01", "roles", "that a fragment is used as two things", "one fragment is"),
    turns_down("LANG-07.1-01", "commas_only", "a layout behind a semicolon", r"fragment<[^>]*; *layout"),
    overlooks("LANG-07.1-02", "index_count", "that indices are too few or too many", "indices given"),
    overlooks("LANG-07.1-02", "index_type", "that an index is no int32", "an index is"),
    overlooks("LANG-07.1-02", "shared_parameters", "that a parameter is in shared memory", r"is memref<4xfp32>\[addr"),
    overlooks("LANG-07.1-02", "stored_dtype", "that a value has not the dtype of its memory", "the value is"),
    overlooks("LANG-07.1-02", "unknown_extents", "that an extent of a memref is unknown", r"memref<(\?|N)x"),
    overlooks("LANG-08.3-01", "spaces", "that an address space is none", "private|address space"),
    overlooks("LANG-07.2-01", "allocated", "that shared.alloc allocates elsewhere", "it allocates"),
    overlooks("LANG-03.1-04", "unknown_tiles", "that an extent is unknown", r"dimensions|extents|memref<(\?|N)x"),
]

OPERATIONS = [
    overlooks("LANG-07.2-02", "loaded_memory", "that ldmatrix reads global memory", "it reads memref"),
    overlooks("LANG-07.2-02", "loaded_dtype", "that ldmatrix reads another dtype", "it reads fp16 into"),
    overlooks("LANG-07.2-02", "loaded_rank", "that a memref has no rows", "has no rows"),
    overlooks("LANG-07.2-03", "sizes", "that m, n and k are others than the fragments'", "m, n and k are"),
    overlooks("LANG-07.2-03", "missing_sizes", "that m, n or k is missing", "is missing"),
    overlooks("LANG-07.2-03", "three_types", "that fragments are of several types", "the fragments are"),
    instead("LANG-07.2-03", "accumulator_from_its_start", "takes any accumulator that is one from its start on",
        "tile.fragments._require_accumulator", nothing),
    overlooks("LANG-07.2-03", "stored_operand", "that an accumulator is stored as an operand", "one fragment is"),
    misreads("LANG-07.2-04", "named_copies", "does nothing for a copy that is named", r"\n *%cp = .*", ""),
    overlooks("LANG-07.2-04", "copied_fp16", "that a copy makes fp16 of bf16", "it copies bf16 to fp16"),
    overlooks("LANG-07.2-04", "copied_pairs", "that two bytes are copied", "it copies 2 bytes of elements of 2"),
    overlooks("LANG-07.2-04", "copied_back", "that a copy goes another way", "to (global|shared) memory"),
    overlooks("LANG-07.2-04", "copy_alignment", "that a copy is misaligned", r"it copies \d+ bytes at"),
    overlooks("LANG-07.2-04", "pending", "that a negative number of groups is pending", "pending is"),
    overlooks("LANG-07.2-05", "barrier_operands", "that a barrier has operands", r"\d+ (operand|result)s?\b"),
    overlooks("LANG-07.2-06", "shuffle_delta", "that delta is negative", "delta is"),
    overlooks("LANG-07.2-06", "shuffle_mask", "that a mask is negative", "the mask is"),
    overlooks("LANG-07.2-06", "shuffle_type", "that a shuffle gives another type", "the result is"),
    turns_down("LANG-07.2-06", "decimal_masks", "masks in hexadecimal", r"mask = 0x"),
    overlooks("LANG-08.2-03", "axes", "that there is no such axis", "axis"),
    overlooks("LANG-01-06", "loops", "that the bounds of a loop are no int32", "the range's"),
    overlooks("LANG-01-06", "conditions", "that a condition is no bool", "the condition is"),
    overlooks("LANG-01-06", "carried_memory", "that a loop carries memory", "hands on"),
    overlooks("LANG-01-06", "leaves_a_region", "that a region returns", "a region does not come back"),
    overlooks("LANG-08.2-03", "foreign", "that a kernel holds operations of the host", "a kernel cannot hold"),
]  # fmt: skip


def has(clause, name, description, has_mma):
    """Return a violation with other matrix instructions of a target."""
    return instead(clause, name, description, "ir.targets.Target.has_mma", has_mma)


def allocations(function):
    held = [instruction.operation for instruction in function.body.instructions]
    buffers = [operation.returns for operation in held if isinstance(operation, SharedAlloc)]
    return [prod(int(extent) for extent in buffer.shape) * buffer.dtype.storage_bytes for buffer in buffers]


TARGET = [
    has("LANG-07.3-02", "turned_shapes", "has matrix instructions with m and n exchanged",
        lambda self, held, m, n, k: MmaShape(held, m, n, k) in self.mma or MmaShape(held, n, m, k) in self.mma),
    has("LANG-11-10", "of_any_target", "takes matrix instructions of other targets",
        lambda self, held, m, n, k: any(MmaShape(held, m, n, k) in target.mma for target in TARGETS.values())),
    has("LANG-11-10", "of_any_dtype", "takes a shape of one dtype for another",
        lambda self, held, m, n, k: any((shape.m, shape.n, shape.k) == (m, n, k) for shape in self.mma)),
    has("LANG-11-15", "any_size", "takes tiles of any size", lambda self, held, m, n, k: True),
    overlooks("LANG-11-10", "other_target", "that a kernel is made for another target", "is made for"),
    overlooks("LANG-11-15", "threads", "that a block has too many threads", "its block has"),
    instead("LANG-07.3-01", "corners", "does not see that a corner is misaligned", "tile.verifier._verify_alignment",
        nothing),
    instead("LANG-03.3-03", "any_rows", "takes rows of any length", "tile.fragments.ALIGNMENT", 1),
    instead("LANG-11-14", "rows_of_32", "aligns rows of matrices to 32 bytes", "tile.fragments.ALIGNMENT", 32),
    wrapped("LANG-07.3-03", "off_by_one", "lets a byte more pass than a block has", "tile.verifier._verify_shared_size",
        lambda usual, function, target: usual(function, replace(target, shared_bytes=target.shared_bytes + 1))),
    wrapped("LANG-07.3-03", "of_one_target", "takes every target to have the memory of one",
        "tile.verifier._verify_shared_size",
        lambda usual, function, target: usual(function, replace(target, shared_bytes=TARGETS["sm_90"].shared_bytes))),
    instead("LANG-07.3-04", "packed", "counts allocations without the gaps between", "tile.verifier.shared_bound",
        lambda function: sum(allocations(function))),
]  # fmt: skip
