"""The metadata of a module image (runtime spec 8.1, RT-08.1-07 to -12).

Kernels, collective plans, and their canonical JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property, partial
from typing import Any, TypeAlias, TypeVar

from ...ir.diagnostics import read_json
from ...numerics.formats import DTYPES, shown
from ..parameters import Parameter, ParameterLayout, is_c_identifier, layout_of
from ..policy import NumericsPolicy
from ..status import Failure, invalid

# Checks of the parts of a fatbin, which raise `Failure`.


_LARGEST = (1 << 63) - 1


def malformed(actual: str, allowed: str) -> Failure:
    """Return the failure for data that are not a module image (AMB-RT-43)."""
    return invalid("fatbin", actual, allowed)


def require(holds: bool, what: str, value: object, allowed: str) -> None:
    """Raise `Failure` with TESS_ERR_INVALID_VALUE unless a condition on `value` holds."""
    if not holds:
        raise malformed(f"{what} is {shown(_as_list(value))}", allowed)


def _as_list(value: object) -> object:
    """Return a value as messages show it: a tuple as a list, as in an image."""
    return [_as_list(item) for item in value] if isinstance(value, tuple) else value


def require_all(what: str, values: object, kind: type) -> None:
    """Raise `Failure` unless `values` is a tuple of values of type `kind`."""
    of_kind = isinstance(values, tuple) and all(isinstance(value, kind) for value in values)
    require(of_kind, what, values, f"a tuple of {kind.__name__} values")


def require_text(what: str, value: object) -> None:
    """Raise `Failure` unless `value` is text that UTF-8 can encode, so without halves of surrogate pairs."""
    require(isinstance(value, str), what, value, "text")
    try:
        str(value).encode()
    except UnicodeEncodeError:
        raise malformed(f"{what} is {shown(value)}", "text without halves of surrogate pairs") from None


def is_whole_number(value: object, low: int, high: int = _LARGEST) -> bool:
    """True if `value` is an int, not a bool, within bounds; by default those of 64 bits."""
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


# The plans of a module for its collectives, which are hints (runtime spec 8.1; RT-08.1-10, -11; AMB-COLL-85).


PLANNED_COLLECTIVES = ("all_reduce", "reduce_scatter", "all_gather", "broadcast", "all_to_all")
PLANNED_ALGORITHMS = ("auto", "ring", "tree", "halving_doubling", "hierarchical", "direct")
SOURCES = ("hint", "default")
_TEXTS = ("function", "subgroup", "path", "scope")
_KEPT = ("priority", "overlap", "qos")


@dataclass(frozen=True)
class CollectivePlan:
    """The best way to run a collective along an axis or, without axis and subgroup, over the whole mesh.

    `source` names who chose the algorithm: the program (hint), or the table by size (default), which leaves it to the
    runtime (auto) where the size is unknown. The fields after it are left out where the program does not set them.
    """

    collective: str
    axis: str | None
    algorithm: str
    source: str = "hint"
    function: str | None = None
    """The function that contains it."""
    subgroup: str | None = None
    """The ranks that take part, where they are neither those of an axis nor the whole mesh."""
    bytes: int | None = None
    """The size of the full buffer; None if an extent is unknown."""
    chunk_bytes: int | None = None
    wire: str | None = None
    """The dtype that travels, where it is not that of the data."""
    path: str | None = None
    scope: str | None = None
    priority: int | str | None = None
    overlap: int | str | None = None
    qos: int | str | None = None

    def __post_init__(self) -> None:
        allowed = ", ".join(PLANNED_COLLECTIVES)
        require(self.collective in PLANNED_COLLECTIVES, "the collective of a plan", self.collective, allowed)
        if self.axis is not None:
            require_text("the axis of a plan", self.axis)
            require(self.subgroup is None, "the subgroup of a plan along an axis", self.subgroup, "none")
        allowed = ", ".join(PLANNED_ALGORITHMS)
        require(self.algorithm in PLANNED_ALGORITHMS, "the algorithm of a plan", self.algorithm, allowed)
        require(self.source in SOURCES, "the source of a plan", self.source, " or ".join(SOURCES))
        for name in _TEXTS:
            if getattr(self, name) is not None:
                require_text(f"the {name} of a plan", getattr(self, name))
        for name, least in (("bytes", 0), ("chunk_bytes", 1)):
            value = getattr(self, name)
            require(value is None or is_whole_number(value, least), f"{name} of a plan", value, f"{least} or more")
        wire = self.wire is None or (isinstance(self.wire, str) and self.wire in DTYPES)
        require(wire, "the wire of a plan", self.wire, "one of " + ", ".join(DTYPES))
        for name in _KEPT:
            value = getattr(self, name)
            if not is_whole_number(value, -(1 << 63)) and value is not None:
                require_text(f"the {name} of a plan", value)

    @property
    def members(self) -> Mapping[str, object]:
        """The fields by name, including an axis of None."""
        members = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in members.items() if value is not None or name == "axis"}

    def __str__(self) -> str:
        where = f"along {self.axis}" if self.axis else f"in {self.subgroup}" if self.subgroup else "over the whole mesh"
        of = f" of @{self.function}" if self.function else ""
        chosen = "a hint" if self.source == "hint" else "by size"
        more = [f"{name} {value}" for name, value in self.members.items() if name not in _SAID]
        return f"{self.collective}{of} {where}: {', '.join((self.algorithm, chosen, *more))}"


_SAID = ("collective", "axis", "algorithm", "source", "function", "subgroup")

# The metadata of a module (runtime spec 8.1, RT-08.1-07 to -12).
#
# The kernel table with its entry descriptors and parameter layouts, the numerics policy it requests, its collective
# plans, which are hints, and the contents of `tessExplain`. `metadata_json` gives the text form.


LEVELS = ("program", "tile")
"""A program has its own launches and computes the whole result on any grid; a tile kernel is one launch."""

COLLECTIVES = ("all_reduce", "reduce_scatter", "all_gather", "broadcast")
_LARGEST_EXTENT = (1 << 31) - 1  # grid and block are C ints


@dataclass(frozen=True)
class KernelParameter:
    """A parameter of a kernel; a pointer has the dtype and shape of its tensor, and True if the kernel writes it.

    A text in the shape is a dimension that a launch gives; a pointer of dtype and shape None is opaque.
    """

    name: str
    type: str
    dtype: str | None = None
    shape: tuple[int | str, ...] | None = None
    written: bool = False

    def __post_init__(self) -> None:
        Parameter(self.name, self.type)  # checks both
        where = f"parameter {self.name}"
        require(isinstance(self.written, bool), f"{where}, written,", self.written, "true or false")
        if self.type != "ptr":
            require(not self.written, f"{where}, written,", self.written, "false for a scalar (RT-10.2-02)")
            require(self.dtype is None and self.shape is None, f"{where}, its tensor,", self.shape, "none for a scalar")
            return
        dtype_known = self.dtype is None or (isinstance(self.dtype, str) and self.dtype in DTYPES)
        require(dtype_known, f"{where}, dtype,", self.dtype, "one of " + ", ".join(DTYPES))
        require((self.dtype is None) == (self.shape is None), f"{where}, shape,", self.shape, "given with the dtype")
        if self.shape is not None:
            require(isinstance(self.shape, tuple), f"{where}, shape,", self.shape, "extents")
            extents = all(is_whole_number(extent, 0) or is_c_identifier(extent) for extent in self.shape)
            require(extents, f"{where}, shape,", self.shape, "numbers from 0, and names of dimensions")


@dataclass(frozen=True)
class KernelEntry:
    """The entry descriptor of a kernel: its place, its parameters, and its launch configuration.

    `module` names the IR module it belongs to. `grid` None leaves the grid to the launch; `block` is used where a
    launch gives zeros (AMB-RT-08). `shared_bytes` is the static shared memory, beside which `dynamic_shared` lets a
    launch add more (AMB-RT-09).
    """

    name: str
    module: str
    parameters: tuple[KernelParameter, ...]
    grid: tuple[int, int, int] | None
    block: tuple[int, int, int]
    shared_bytes: int = 0
    dynamic_shared: bool = False
    level: str = "program"

    def __post_init__(self) -> None:
        require(is_c_identifier(self.name), "a kernel's name", self.name, "a C identifier (RT-10.3-01)")
        where = f"kernel {self.name}"
        require_text(f"{where}, module,", self.module)
        require_all(f"{where}, parameters,", self.parameters, KernelParameter)
        if self.grid is not None:
            require(_three_extents(self.grid), f"{where}, grid,", self.grid, "three numbers from 1")
        require(_three_extents(self.block), f"{where}, block,", self.block, "three numbers from 1")
        require(is_whole_number(self.shared_bytes, 0), f"{where}, shared_bytes,", self.shared_bytes, "bytes")
        require(
            isinstance(self.dynamic_shared, bool), f"{where}, dynamic_shared,", self.dynamic_shared, "true or false"
        )
        require(self.level in LEVELS, f"{where}, level,", self.level, " or ".join(LEVELS))
        _ = self.layout  # refuses a parameter given twice

    @cached_property
    def layout(self) -> ParameterLayout:
        """The parameter buffer, in declared order (RT-08.1-08, RT-10.1-13)."""
        return layout_of([Parameter(parameter.name, parameter.type) for parameter in self.parameters])


@dataclass(frozen=True)
class FusionGroup:
    """Operations of a kernel that one launch computes together, in order."""

    kernel: str
    operations: tuple[str, ...]

    def __post_init__(self) -> None:
        require(is_c_identifier(self.kernel), "the kernel of a fusion group", self.kernel, "a C identifier")
        require(isinstance(self.operations, tuple), "the operations of a fusion group", self.operations, "texts")
        for operation in self.operations:
            require_text("an operation of a fusion group", operation)


@dataclass(frozen=True)
class TileShape:
    """The tile of an operation: its extents by name, (("k", 32), ("m", 64), ("n", 64)), in order of name."""

    kernel: str
    operation: str
    extents: tuple[tuple[str, int], ...]

    def __post_init__(self) -> None:
        require(is_c_identifier(self.kernel), "the kernel of a tile shape", self.kernel, "a C identifier")
        require_text("the operation of a tile shape", self.operation)
        pairs = isinstance(self.extents, tuple) and all(
            isinstance(extent, tuple)
            and len(extent) == 2
            and is_c_identifier(extent[0])
            and is_whole_number(extent[1], 1)
            for extent in self.extents
        )
        require(pairs, "the extents of a tile shape", self.extents, "names, each with a number from 1")
        names = [name for name, _ in self.extents]
        require(names == sorted(set(names)), "the extents of a tile shape", self.extents, "each name once, in order")


@dataclass(frozen=True)
class Explanation:
    """The contents of `tessExplain` beside the collective plans (RT-17-08, RT-17-09)."""

    fusion_groups: tuple[FusionGroup, ...] = ()
    tile_shapes: tuple[TileShape, ...] = ()

    def __post_init__(self) -> None:
        require_all("the fusion groups", self.fusion_groups, FusionGroup)
        require_all("the tile shapes", self.tile_shapes, TileShape)


@dataclass(frozen=True)
class Metadata:
    """The embedded metadata of a module (RT-08.1-12). Kernel names differ; `policy` None leaves it to the context."""

    kernels: tuple[KernelEntry, ...]
    policy: NumericsPolicy | None = None
    collective_plans: tuple[CollectivePlan, ...] = ()
    explanation: Explanation = Explanation()

    def __post_init__(self) -> None:
        require_all("the kernels", self.kernels, KernelEntry)
        require_all("the collective plans", self.collective_plans, CollectivePlan)
        policy = self.policy is None or isinstance(self.policy, NumericsPolicy)
        require(policy, "the policy", self.policy, "a numerics policy, or none")
        require(isinstance(self.explanation, Explanation), "the explanation", self.explanation, "an Explanation")
        names = [kernel.name for kernel in self.kernels]
        require(len(names) == len(set(names)), "the kernel table", names, "each name once")

    def kernel(self, name: str) -> KernelEntry | None:
        """Return the entry of a kernel, or None (RT-08.1-07)."""
        return next((candidate for candidate in self.kernels if candidate.name == name), None)


def _three_extents(value: object) -> bool:
    return (
        isinstance(value, tuple)
        and len(value) == 3
        and all(is_whole_number(item, 1, _LARGEST_EXTENT) for item in value)
    )


# Metadata as canonical JSON: one text for each value (schema `tessera:fatbin-metadata`).
#
# Members in order of name, no blanks, UTF-8. Any other spelling is refused when read, so that an image has one spelling
# and the signed text is the text that is read.


Value = TypeVar("Value")
Reader: TypeAlias = Callable[[Any], Any]
NO_READERS: Mapping[str, Reader] = {}


def metadata_to_bytes(metadata: Metadata) -> bytes:
    """Return the canonical JSON of `metadata`."""
    document = {
        "kernels": [_kernel_document(kernel) for kernel in metadata.kernels],
        "policy": None if metadata.policy is None else _members_of(metadata.policy),
        "collective_plans": [_members_of(collective_plan) for collective_plan in metadata.collective_plans],
        "explanation": {
            "fusion_groups": [_members_of(fusion_group) for fusion_group in metadata.explanation.fusion_groups],
            "tile_shapes": [
                {"kernel": tile_shape.kernel, "operation": tile_shape.operation, "extents": dict(tile_shape.extents)}
                for tile_shape in metadata.explanation.tile_shapes
            ],
        },
    }
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def metadata_of_bytes(data: bytes) -> Metadata:
    """Read metadata. Raises `Failure` with TESS_ERR_INVALID_VALUE for anything but its canonical JSON."""
    try:
        document = read_json(data)
    except ValueError as error:
        raise malformed(f"metadata that is no JSON: {error}", "canonical JSON in UTF-8") from None
    metadata = _metadata(document)
    require(metadata_to_bytes(metadata) == data, "the metadata", data, "its canonical JSON, and true layouts")
    return metadata


def _kernel_document(kernel: KernelEntry) -> dict[str, Any]:
    layout = kernel.layout
    parameters = [
        {**_members_of(parameter), "offset": offset, "size": size}
        for parameter, offset, size in zip(kernel.parameters, layout.offsets, layout.sizes, strict=True)
    ]
    return {**_members_of(kernel), "parameters": parameters, "buffer_size": layout.size}


def _members_of(entry: Any) -> dict[str, Any]:
    return {field.name: getattr(entry, field.name) for field in fields(entry)}


def _metadata(document: object) -> Metadata:
    readers = {
        "kernels": _list_of("kernels", _kernel),
        "policy": lambda policy: None if policy is None else _value("the policy", NumericsPolicy, policy),
        "collective_plans": _list_of("collective_plans", partial(_value, "a collective plan", CollectivePlan)),
        "explanation": _explanation,
    }
    return _value("the metadata", Metadata, document, readers)


def _kernel(document: object) -> KernelEntry:
    readers = {"parameters": _list_of("parameters", _parameter)}
    return _value("a kernel", KernelEntry, document, readers, "buffer_size")


def _parameter(document: object) -> KernelParameter:
    return _value("a parameter", KernelParameter, document, {}, "offset", "size")


def _explanation(document: object) -> Explanation:
    readers = {
        "fusion_groups": _list_of("fusion_groups", partial(_value, "a fusion group", FusionGroup)),
        "tile_shapes": _list_of("tile_shapes", partial(_value, "a tile shape", TileShape, readers={"extents": _pairs})),
    }
    return _value("the explanation", Explanation, document, readers)


def _pairs(document: object) -> tuple[tuple[str, Any], ...]:
    if not isinstance(document, dict):
        raise malformed(f"extents is {shown(document)}", "an object")
    return tuple(document.items())


def _value(
    what: str, cls: type[Value], document: object, readers: Mapping[str, Reader] = NO_READERS, *beside: str
) -> Value:
    """Return a value of an object with exactly its fields and `beside`; a list without a reader becomes a tuple."""
    names = [field.name for field in fields(cls)]  # type: ignore[arg-type]  # all are dataclasses
    members = _members(what, document, *names, *beside)
    return cls(**{name: readers.get(name, _tuple)(members[name]) for name in names})


def _members(what: str, document: object, *names: str) -> Mapping[str, Any]:
    """Return the members of an object that has exactly these."""
    if not isinstance(document, dict) or document.keys() != set(names):
        raise malformed(f"{what} is {shown(document)}", "an object with the members " + ", ".join(names))
    return document


def _list_of(what: str, read: Callable[[object], Value]) -> Callable[[object], tuple[Value, ...]]:
    def read_list(document: object) -> tuple[Value, ...]:
        if not isinstance(document, list):
            raise malformed(f"{what} is {shown(document)}", "a list")
        return tuple(map(read, document))

    return read_list


def _tuple(document: Any) -> Any:
    """Return a list as a tuple, and anything else unchanged, for the value to refuse."""
    return tuple(document) if isinstance(document, list) else document
