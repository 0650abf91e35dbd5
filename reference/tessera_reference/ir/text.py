"""Types in text, and printing IR in MLIR's generic form (spec 3, 13.1; AMB-LANG-66: quoted operation names)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ..numerics.formats import DType
from .attributes import COMMON_ATTRIBUTES, ByteCount, array_value, attribute_text, dtype_named, string_text
from .diagnostics import Location, did_you_mean
from .operation import AttributeValue, Block, Exit, Function, Instruction, Module, Names, Refusal, Walk, trampoline
from .types import (
    LAYOUTS,
    ROW_MAJOR,
    Dim,
    Fragment,
    Future,
    Layout,
    Memref,
    Mesh,
    Pointer,
    Scalar,
    Shard,
    Tensor,
    Type,
    Value,
    Vector,
)

# Reading types: `tensor<4x8xbf16; layout=col_major>`, exported as `!tessera.tensor<...>` (section 13.1).
#
# Only types without types inside are read here; a function type is read by the parser of the text around it.


DIALECT = "!tessera."
LARGEST_EXTENT = 2**63 - 1
"""Extents are 64-bit signed integers, as everywhere at the ABI."""
ADDRESS_SPACES = ("shared", "global")
"""The address spaces of a memref (AMB-LANG-35)."""
POINTER_SPACES = {0: "generic", 1: "global", 3: "shared", 4: "constant", 5: "local"}
"""The address spaces of pointers by number; local is private (LANG-08.3-01, AMB-LANG-35)."""

_PARTS = re.compile(r"(?:!tessera\.)?(\w+|!llvm\.ptr)<(.*)>(?:\[addrspace=(\w*)\])?", re.DOTALL | re.ASCII)
_SHAPED = re.compile(r"((?:[^x]*x)*?)(complex(?:64|128)|[^x]*)")  # no name in a shape contains an x (AMB-LANG-06)
_DIM = re.compile(r"\?|[0-9]+|[A-Za-wyz_][A-Za-wyz0-9_]*")
_LAYOUT = re.compile(r"([A-Za-z_]\w*)(?:\(((?:\w+=[0-9]{1,18}(?:,|(?=\))))*)\))?")
_AXES = re.compile(r"axes=\[([A-Za-z_]\w*(?:,[A-Za-z_]\w*)*)\]", re.ASCII)
_GROUPS = re.compile(r"groups=\[(\[[0-9]+(?:,[0-9]+)*\](?:,\[[0-9]+(?:,[0-9]+)*\])*)\]", re.ASCII)
_MESH = re.compile(r"axes=\[([A-Za-z_]\w*(?:,[A-Za-z_]\w*)*)\],shape=\[([0-9]+(?:,[0-9]+)*)\]", re.ASCII)


def read_type(text: str) -> Type:
    """Return the type that a text denotes, in this project's form or the exported one. Raises `Refusal`."""
    match = _PARTS.fullmatch(text)
    if match is None:
        return Scalar(dtype_named(text.removeprefix(DIALECT)))
    name, inside, space = match[1], "".join(match[2].split()), match[3]
    if name not in _READERS or (space is not None and name != "memref"):
        message = f"{text[:60]} is no type"
        requirement = f"a dtype, or one of {', '.join(_READERS)}, fn"
        raise Refusal("types", message, requirement, "LANG-02.2-01", did_you_mean(name, _READERS))
    return _READERS[name](inside if space is None else f"{inside};addrspace={space}")


def exported(type_: Type) -> str:
    """Return a type in exported text: all of it between the angle brackets of a dialect type."""
    if isinstance(type_, Pointer | Future | Shard):
        return str(type_)  # a dialect's type unchanged
    if isinstance(type_, Memref):
        return f"{DIALECT}{str(type_).replace('>[', '; ').rstrip(']')}>"
    text = str(type_)
    return f"{DIALECT}fn<{text.removeprefix('fn')}>" if text.startswith("fn(") else f"{DIALECT}{text}"


def _shaped(text: str) -> tuple[tuple[Dim, ...], DType]:
    """Return the extents and the dtype of a text that joins them by the letter x."""
    match = _SHAPED.fullmatch(text)
    assert match is not None, "the last component matches whatever is left"
    dims = match[1].split("x")[:-1]
    if not dims:
        raise Refusal("shapes", f"a shape without dimensions in {text[:40]!r}", "a scalar type", "AMB-LANG-27")
    return tuple(map(_dim, dims)), dtype_named(match[2])


def _dim(text: str) -> Dim:
    if _DIM.fullmatch(text) is None:
        raise Refusal("shapes", f"{text[:40]!r} is no dimension", "an extent, a name or ?", "LANG-02.3-37")
    return read_extent(text) if text[0].isdecimal() else text


def read_extent(text: str) -> int:
    """Return the extent that decimal digits denote. Raises `Refusal`."""
    digits = text.lstrip("0") or "0"
    if len(digits) > 19 or int(digits) > LARGEST_EXTENT:
        raise Refusal("shapes", "an extent is too large", f"extents up to {LARGEST_EXTENT}", "LANG-02.3-37")
    return int(digits)


def read_layout(text: str) -> Layout:
    """Return the layout that a text such as `blocked(bm=2,bn=4)` names. Raises `Refusal`."""
    match = _LAYOUT.fullmatch("".join(text.split()))
    pairs = [pair.partition("=") for pair in (match[2] or "").split(",") if pair] if match else []
    return sound_layout(match[1] if match else text[:40], [(name, int(size)) for name, _, size in pairs])


def sound_layout(name: str, parameters: Sequence[tuple[str, int]]) -> Layout:
    """Return a known layout with exactly its parameters (LANG-02.3-39, -40, -81, -82). Raises `Refusal`."""
    if name not in LAYOUTS:
        message, requirement = f"unknown layout {name!r}", f"one of {', '.join(LAYOUTS)}"
        raise Refusal("layouts", message, requirement, "LANG-02.3-39", did_you_mean(name, LAYOUTS))
    names, expected = sorted(name for name, _ in parameters), sorted(LAYOUTS[name])
    if names != expected:
        message = f"layout {name} has parameters ({', '.join(names)})"
        requirement = f"{name}({', '.join(f'{key}=...' for key in expected)})" if expected else "no parameters"
        raise Refusal("layouts", message, requirement, "LANG-02.3-82")
    if any(size == 0 for _, size in parameters):
        raise Refusal("layouts", "a block has size 0", "block sizes of at least 1", "LANG-02.3-82")
    return Layout(name, tuple(sorted(parameters)))


def _setting(text: str, name: str) -> str:
    """Return the value of `name=value`."""
    key, equals, value = text.partition("=")
    if key != name or not bool(equals):
        raise Refusal("types", f"{text[:40]!r} stands in a type", f"{name}=...", "LANG-02.2-01")
    return value


def _tensor(inside: str) -> Tensor:
    shape, semicolon, layout = inside.partition(";")
    return Tensor(*_shaped(shape), read_layout(_setting(layout, "layout")) if semicolon else ROW_MAJOR)


def _memref(inside: str) -> Memref:
    shape, semicolon, setting = inside.partition(";")
    return sound_memref(*_shaped(shape), _setting(setting, "addrspace") if semicolon else "global")


def sound_memref(shape: tuple[Dim, ...], dtype: DType, space: str) -> Memref:
    """Return a memref in a known address space (LANG-02.2-19). Raises `Refusal`."""
    if space not in ADDRESS_SPACES:
        message = f"a memref is not in address space {space[:40]!r}"
        requirement = f"addrspace={' or '.join(ADDRESS_SPACES)}"
        raise Refusal("types", message, requirement, "LANG-02.2-19", did_you_mean(space, ADDRESS_SPACES))
    return Memref(shape, dtype, space)


def _fragment(inside: str) -> Fragment:
    parts = re.split(r"[,;](?![^(]*\))", inside)
    if len(parts) not in (4, 5) or any(not size.isdecimal() or not size.isascii() for size in parts[:3]):
        message = f"fragment<{inside[:40]}> is no fragment type"
        raise Refusal("types", message, "fragment<m,n,k,dtype> or fragment<m,n,k,dtype,layout=...>", "LANG-02.2-15")
    m, n, k = map(read_extent, parts[:3])
    layout = read_layout(_setting(parts[4], "layout")) if len(parts) == 5 else None
    return sound_fragment(m, n, k, dtype_named(parts[3]), layout)


def sound_fragment(m: int, n: int, k: int, dtype: DType, layout: Layout | None) -> Fragment:
    """Return a fragment with extents of at least 1. Raises `Refusal`."""
    if min(m, n, k) <= 0:
        raise Refusal("tile", "a fragment has an extent of 0", "extents of at least 1", "LANG-02.2-15")
    return Fragment(m, n, k, dtype, layout)


def _mesh(inside: str) -> Mesh:
    match = _MESH.fullmatch(inside)
    if match is None:
        raise Refusal("distributed", f"mesh<{inside[:40]}> is no mesh type", "mesh<axes=[dp], shape=[4]>", "LANG-09-01")
    return sound_mesh(tuple(match[1].split(",")), tuple(map(read_extent, match[2].split(","))))


def sound_mesh(axes: tuple[str, ...], shape: tuple[int, ...]) -> Mesh:
    """Return a mesh with an extent of at least 1 for each of its axes (LANG-09-01, AMB-LANG-82). Raises `Refusal`."""
    if not len(shape) == len(axes) > 0:
        message = f"a mesh of {len(axes)} axes has {len(shape)} extents"
        raise Refusal("distributed", message, "one extent for each axis", "LANG-09-01")
    if len(set(axes)) != len(axes):
        raise Refusal("distributed", "an axis occurs twice", "axes of different names", "LANG-09-01")
    if min(shape) <= 0:
        raise Refusal("distributed", "an axis has no extent", "extents of at least 1", "LANG-09-01")
    return Mesh(axes, shape)


def _pointer(inside: str) -> Pointer:
    spaces = {
        **{str(number): number for number in POINTER_SPACES},
        **{name: number for number, name in POINTER_SPACES.items()},
    }
    spaces["private"] = spaces["local"]
    if inside not in spaces:
        message = f"{inside[:40]!r} is no address space of a pointer"
        requirement = f"one of {', '.join(f'{number} ({name})' for number, name in POINTER_SPACES.items())}"
        raise Refusal("types", message, requirement, "LANG-08.3-01", did_you_mean(inside, spaces))
    return Pointer(spaces[inside])


def _vector(inside: str) -> Vector:
    shape, element = _shaped(inside)
    extent = shape[0]
    if len(shape) != 1 or not isinstance(extent, int) or extent <= 0:
        message = f"vector<{inside[:40]}> is no vector type"
        raise Refusal("types", message, "one extent of at least 1: vector<4xfp32>", "LANG-11-01")
    return Vector(extent, element)


def _future(inside: str) -> Future:
    value = read_type(inside)
    if not isinstance(value, Tensor | Scalar):
        message = f"a future of {inside[:40]}"
        requirement = "a future of a tensor or scalar: !tessera.future<tensor<4xfp32>>"
        raise Refusal("types", message, requirement, "COLL-02.1-01")
    return Future(value)


def _shard(inside: str) -> Shard:
    axes, groups = _AXES.fullmatch(inside), _GROUPS.fullmatch(inside)
    if axes is None and groups is None:
        message = f"shard<{inside[:40]}> is no shard type"
        requirement = "!tessera.shard<axes=[dp, tp]> or !tessera.shard<groups=[[0, 2], [1, 3]]>"
        raise Refusal("distributed", message, requirement, "COLL-02.2-03")
    if axes is not None:
        names = tuple(axes[1].split(","))
        if len(set(names)) != len(names):
            raise Refusal("distributed", "an axis occurs twice", "each axis once", "COLL-02.2-03")
        return Shard(names)
    assert groups is not None
    rank_groups = tuple(tuple(map(read_extent, group.split(","))) for group in groups[1].strip("[]").split("],["))
    ranks = [rank for group in rank_groups for rank in group]
    if len(set(ranks)) != len(ranks):
        raise Refusal("distributed", "a rank is in two groups", "each once", "COLL-02.2-03")
    if len({len(group) for group in rank_groups}) != 1:
        raise Refusal("distributed", "groups have different sizes", "as many ranks in each group", "COLL-02.2-03")
    return Shard(groups=rank_groups)


_READERS: dict[str, Callable[[str], Type]] = {
    "tensor": _tensor,
    "memref": _memref,
    "fragment": _fragment,
    "mesh": _mesh,
    "!llvm.ptr": _pointer,
    "vector": _vector,
    "future": _future,
    "shard": _shard,
}

# Printing IR in MLIR's generic form (spec section 13.1; AMB-LANG-66: quoted operation names).
#
# Types read as in the spec, `tensor<128x64xbf16>`. For export they become `!tessera.tensor<128x64xbf16>`, so that
# `mlir-opt --allow-unregistered-dialect` takes the text. Every exported operation also carries its location, and a
# function the names of its parameters, which other tools do not keep. `text_reader` reads both forms.

MODULE = "builtin.module"
FUNCTION = "tessera.graph.func"
KERNEL = "tessera.graph.kernel"
DEVICE_KERNELS = {"tile": "tessera.tile.kernel", "target": "tessera.target.kernel"}
"""The name of a device's kernel at each level that has kernels."""
MESH = "tessera.graph.mesh"
TERMINATORS: Mapping[str, Exit] = {
    "tessera.graph.return": "return",
    "tessera.graph.yield": "yield",
    "tessera.graph.unreachable": "unreachable",
}
"""The operations that end a block, by the kind of its end."""
ENDINGS: Mapping[Exit, str] = {exit: name for name, exit in TERMINATORS.items()}

DEEPEST_MARGIN = 32
"""The nesting beyond which lines are not indented further, so that the text grows with the program only."""


def print_module(module: Module, *, export: bool = False) -> str:
    """Return the text of a module; locations are printed on export only."""
    return _Printer(export).module(module)


class _Printer:
    """The printer; within a function, `names` has the name of each value so far."""

    def __init__(self, export: bool) -> None:
        self.export = export
        self.lines: list[str] = []
        self.names: dict[Value, str] = {}
        self.free = Names()
        self.known: dict[Type, str] = {}

    def module(self, module: Module) -> str:
        """Return the whole text."""
        self.lines = ['"builtin.module"() ({']
        if not module.functions and not module.meshes:
            self.lines.append("^bb0:")  # a region has one block, even empty
        for name, mesh in module.meshes.items():
            inside = entries({"sym_name": name, "axes": mesh.axes, "shape": mesh.shape})
            self.lines.append(f'  "{MESH}"() {{{inside}}} : () -> (){self.place(module.location)}')
        for function in module.functions.values():
            trampoline(self.function(function))
        self.lines.append(f"}}) {{{entries({'sym_name': module.name})}}} : () -> (){self.place(module.location)}")
        return "\n".join(self.lines) + "\n"

    def function(self, function: Function) -> Walk[None]:
        """Print a function or kernel."""
        self.names, self.free = {}, Names()
        kind = DEVICE_KERNELS.get(function.device, KERNEL if function.kernel else FUNCTION)
        self.lines.append(f'  "{kind}"() ({{')
        parameters = [self.define(parameter) for parameter in function.parameters]
        yield self.block(function.body, 2)
        attributes: dict[str, Any] = {"sym_name": function.name, **in_order(function.attributes)}
        if function.defaults:
            of_value = dict(zip(function.parameters, parameters, strict=True))
            attributes["defaults"] = {
                name: array_value(function.defaults[value.name])
                for value, name in of_value.items()
                if value.name in function.defaults
            }
        if self.export:
            attributes["parameters"] = tuple(parameters)
        takes, gives = self.types(value.type for value in function.parameters), self.types(function.results)
        inside = f"{entries(attributes)}, function_type = ({takes}) -> ({gives})"
        self.lines.append(f"  }}) {{{inside}}} : () -> (){self.place(function.location)}")

    def block(self, block: Block, depth: int) -> Walk[None]:
        """Print the lines of a block: its arguments with their names, its instructions, and its end."""
        margin = "  " * min(depth, DEEPEST_MARGIN)
        if block.arguments:
            arguments = ", ".join(f"%{self.names[value]}: {self.type(value.type)}" for value in block.arguments)
            self.lines.append(f"{margin[2:]}^bb0({arguments}):")
        elif depth == 2:
            self.lines.append(f"{margin[2:]}^bb0():")
        for instruction in block.instructions:
            if instruction.regions:
                yield self.owner(instruction, depth, margin)
            else:
                self.lines.append(f"{margin}{self.head(instruction)}{self.tail(instruction)}")
        types = self.types(value.type for value in block.results)
        self.lines.append(f'{margin}"{ENDINGS[block.exit]}"({self.used(block.results)}) : ({types}) -> ()')

    def owner(self, instruction: Instruction, depth: int, margin: str) -> Walk[None]:
        """Print an instruction with regions. Its results are named before its regions, and visible only after it."""
        self.lines.append(f"{margin}{self.head(instruction)} ({{")
        for position, region in enumerate(instruction.regions):
            if position:
                self.lines.append(f"{margin}}}, {{")
            for argument in region.arguments:
                self.define(argument)
            yield self.block(region, depth + 1)
        self.lines.append(f"{margin}}}){self.tail(instruction)}")

    def head(self, instruction: Instruction) -> str:
        """Return results, name and operands."""
        operands = self.used(instruction.operands)
        results = ", ".join(f"%{self.define(result)}" for result in instruction.results)
        return f'{results}{results and " = "}"{instruction.operation.name}"({operands})'

    def tail(self, instruction: Instruction) -> str:
        """Return attributes, types and location; common attributes follow the operation's own."""
        own, common = instruction.operation.attributes, instruction.attributes
        if self.export:  # other tools do not know units of bytes
            own = {name: int(value) if isinstance(value, ByteCount) else value for name, value in own.items()}
        assert not common or own.keys().isdisjoint(common), f"{instruction.operation.name}: an attribute has two values"
        inside = entries({**own, **in_order(common)} if common else own)
        attributes = f" {{{inside}}}" if inside else ""
        inputs = self.types([value.type for value in instruction.operands])
        outputs = self.types([value.type for value in instruction.results])
        outputs = outputs if len(instruction.results) == 1 else f"({outputs})"
        return f"{attributes} : ({inputs}) -> {outputs}{self.place(instruction.location)}"

    def define(self, value: Value) -> str:
        """Give a value a name, and return it."""
        name = self.names[value] = self.free.unique(value.name)
        return name

    def used(self, values: Iterable[Value]) -> str:
        """Return values by name; an undefined one, which no verified module has, receives a name."""
        return ", ".join([f"%{self.names.get(value) or self.define(value)}" for value in values])

    def types(self, types: Iterable[Type]) -> str:
        """Return types separated by commas."""
        return ", ".join([self.type(type_) for type_ in types])

    def type(self, type_: Type) -> str:
        """Return a type in this project's or the exported form."""
        text = self.known.get(type_)
        if text is None:
            text = self.known[type_] = exported(type_) if self.export else str(type_)
        return text

    def place(self, location: Location) -> str:
        """Return the printed location of an operation."""
        if not self.export:
            return ""
        return f" loc({string_text(location.filename)}:{location.span.line}:{location.span.column})"


def entries(attributes: Mapping[str, Any]) -> str:
    """Return attributes separated by commas."""
    return ", ".join([f"{name} = {attribute_text(value)}" for name, value in attributes.items()])


def in_order(attributes: Mapping[str, AttributeValue]) -> dict[str, AttributeValue]:
    """Return common attributes in the order of section 5.3, followed by the others by name."""
    common = {name: attributes[name] for name in COMMON_ATTRIBUTES if name in attributes}
    return common | {name: attributes[name] for name in sorted(attributes.keys() - common.keys())}
