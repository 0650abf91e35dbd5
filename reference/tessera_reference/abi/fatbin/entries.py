"""What a module says about itself: its metadata (runtime spec 8.1, RT-08.1-07 to -12).

The kernel table with its entry descriptors and parameter layouts, the numerics policy it wants, its collective plans,
which are hints, and what `tessExplain` tells. How metadata is written down is `metadata_json`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ...numerics.formats import DTYPES
from ..identifiers import is_c_identifier
from ..parameter_types import Parameter
from ..parameters import ParameterLayout, layout_of
from ..policy import NumericsPolicy
from .checks import is_whole_number, require, require_all, require_text
from .collective_plans import CollectivePlan

__all__ = [
    "ALGORITHMS",
    "COLLECTIVES",
    "LEVELS",
    "Explanation",
    "FusionGroup",
    "KernelEntry",
    "KernelParameter",
    "Metadata",
    "TileShape",
]

LEVELS = ("program", "tile")
"""A program brings its own launches and computes the whole result on any grid; a tile kernel is one launch."""

COLLECTIVES = ("all_reduce", "reduce_scatter", "all_gather", "broadcast")
ALGORITHMS = ("ring", "tree", "hierarchical")
_LARGEST_EXTENT = (1 << 31) - 1  # grid and block are C ints


@dataclass(frozen=True)
class KernelParameter:
    """A parameter of a kernel; of a pointer also the dtype and shape of its tensor, and whether the kernel writes it.

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
            extents = all(is_whole_number(each, 0) or is_c_identifier(each) for each in self.shape)
            require(extents, f"{where}, shape,", self.shape, "numbers from 0, and names of dimensions")


@dataclass(frozen=True)
class KernelEntry:
    """The entry descriptor of a kernel: where it is found, what it takes, and how it is launched.

    `module` names the IR module it belongs to. `grid` None leaves the grid to the launch; `block` stands in where a
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
        return layout_of([Parameter(each.name, each.type) for each in self.parameters])


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
            isinstance(each, tuple) and len(each) == 2 and is_c_identifier(each[0]) and is_whole_number(each[1], 1)
            for each in self.extents
        )
        require(pairs, "the extents of a tile shape", self.extents, "names, each with a number from 1")
        names = [name for name, _ in self.extents]
        require(names == sorted(set(names)), "the extents of a tile shape", self.extents, "each name once, in order")


@dataclass(frozen=True)
class Explanation:
    """What `tessExplain` tells beside the collective plans (RT-17-08, RT-17-09)."""

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
        names = [each.name for each in self.kernels]
        require(len(names) == len(set(names)), "the kernel table", names, "each name once")

    def kernel(self, name: str) -> KernelEntry | None:
        """The entry of a kernel, or None (RT-08.1-07)."""
        return next((each for each in self.kernels if each.name == name), None)


def _three_extents(value: object) -> bool:
    return (
        isinstance(value, tuple)
        and len(value) == 3
        and all(is_whole_number(each, 1, _LARGEST_EXTENT) for each in value)
    )
