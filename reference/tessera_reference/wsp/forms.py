"""Forms in JSON and the classes that they become: a class is the schema of its form (section 7.2).

The annotation of a member says how it is read: a class, a tuple, the words of a `Literal`, or an `Annotated` type with
its reader, or with PROGRAM or PACKAGE where only one of the two forms has it. What has the default None or () may be
left out; other defaults stand for what a program leaves out, and a package states them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache, partial
from types import NoneType
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

from ..numerics.formats import shown
from .errors import ProgramRefused

MOST = (1 << 32) - 1
U64 = (1 << 64) - 1
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,99}")
PROGRAM, PACKAGE = "program", "package"
Record = TypeVar("Record")

# Values. Every function raises `ProgramRefused` at the path of what does not fit.


def name(value: Any, path: str) -> str:
    """A name: letters, digits, `_`, `.` and `-`, at most 100."""
    if not isinstance(value, str) or not NAME.fullmatch(value):
        raise ProgramRefused(path, f"is {shown(value)}, expected a name of letters, digits, _, . and -")
    return value


def text(value: Any, path: str) -> str:
    """A text that JSON can carry as UTF-8, of at most 1000 characters."""
    if not isinstance(value, str) or len(value) > 1000 or not value.isprintable():
        raise ProgramRefused(path, f"is {shown(value)}, expected a text of printable characters")
    return value


def whole(value: Any, path: str, least: int, most: int) -> int:
    """A whole number in a range."""
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise ProgramRefused(path, f"is {shown(value)}, expected a whole number from {least} to {most}")
    return value


def member(value: Any, path: str, allowed: Sequence[str]) -> str:
    """One of some words."""
    if value not in allowed:
        raise ProgramRefused(path, f"is {shown(value)}, expected one of {', '.join(allowed)}")
    return str(value)


def items(value: Any, path: str) -> Sequence[Any]:
    """A list."""
    if not isinstance(value, list):
        raise ProgramRefused(path, "is no list")
    return value


def objects(value: Any, path: str) -> Sequence[Mapping[str, Any]]:
    """A list of objects."""
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise ProgramRefused(path, "is no list of objects")
    return value


def members(value: Any, path: str, required: Sequence[str], optional: Sequence[str] = ()) -> Mapping[str, Any]:
    """An object that has all required members and no unknown ones."""
    if not isinstance(value, dict):
        raise ProgramRefused(path, "is no object")
    for field in required:
        if field not in value:
            raise ProgramRefused(f"{path}/{field}", "is missing")
    unknown = set(value).difference(required, optional)
    if unknown:
        raise ProgramRefused(f"{path}/{min(unknown)}"[:200], "is no member of this")
    return value


# Members of classes.


class Reader:
    """Reads a program, which names things, or a package, which numbers them; `ids` has what was declared, by name.

    `depth` counts the bodies and expressions around, and `of_policy` is true within the parameters of a policy.
    Every method raises `ProgramRefused`.
    """

    def __init__(self, numbered: bool) -> None:
        self.numbered = numbered
        self.ids: dict[str, dict[str, int]] = defaultdict(dict)
        self.depth = 0
        self.of_policy = False

    def record(self, kind: Callable[..., Record], value: Any, path: str) -> Record:
        """The instance of a class whose members an object has; its method `check` judges them together."""
        if not isinstance(value, dict):
            raise ProgramRefused(path, "is no object")
        stated = {}
        for field, (read, is_empty, has_default, only) in _members(kind).items():
            if only == (PROGRAM if self.numbered else PACKAGE):
                continue
            if field in value:
                stated[field] = read(self, value[field], f"{path}/{field}")
            elif not (is_empty if self.numbered else has_default):
                raise ProgramRefused(f"{path}/{field}", "is missing")
        members(value, path, (), tuple(stated))
        entry = kind(**stated)
        if hasattr(entry, "check"):
            entry.check(path)
        return entry

    def table(self, kind: Any, value: Any, path: str) -> tuple[Any, ...]:
        """The entries of a table, whose names differ; in a package an id is a place, counted from 0."""
        noun = kind.__name__.lower()
        entries, ids = [], self.ids[noun]
        for place, stated in enumerate(objects(value, path)):
            at = f"{path}/{place}"
            if self.numbered:
                whole(stated.get("id"), f"{at}/id", place, place)
                stated = {field: member for field, member in stated.items() if field != "id"}
            entries.append(self.record(kind, stated, at))
            if stated["name"] in ids:
                raise ProgramRefused(f"{at}/name", f"there are two {noun}s {stated['name']}")
            ids[stated["name"]] = place
        return tuple(entries)

    def resolve(self, noun: str, value: Any, path: str) -> int:
        """The id of an entry: as it stands in a package; by name in a program, where mention declares a slot."""
        ids = self.ids[noun]
        if self.numbered:
            if type(value) is not int or not 0 <= value < len(ids):
                raise ProgramRefused(path, f"is {value!r:.60}, expected the id of one of {len(ids)} {noun}s")
            return value
        if isinstance(value, str) and value in ids:
            return ids[value]
        if noun != "slot":
            raise ProgramRefused(path, f"is {value!r:.120}, expected a declared {noun}")
        return ids.setdefault(name(value, path), len(ids))


Read: TypeAlias = Callable[[Reader, Any, str], Any]


@cache
def _members(kind: Any) -> Mapping[str, tuple[Read, bool, bool, str]]:
    """By name the reader of a member, whether it has an empty default or any, and the only form that has it, if any."""
    hints = get_type_hints(kind, include_extras=True)
    described = {}
    for field in fields(kind):
        hint, has_default = hints[field.name], (field.default, field.default_factory) != (MISSING, MISSING)
        only = next((form for form in (PROGRAM, PACKAGE) if form in getattr(hint, "__metadata__", ())), "")
        described[field.name] = _reader(hint), field.default in (None, ()), has_default, only
    return described


def _reader(hint: Any) -> Read:
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return next(filter(callable, parts[1:]), None) or _reader(parts[0])
    if origin is Literal:
        return plain(member, allowed=parts)
    if origin is Mapping:
        return partial(_mapped, _reader(parts[0]), _reader(parts[1]))
    if origin is tuple and isinstance(parts[0], type) and issubclass(parts[0], Entry):
        return lambda reader, value, path: reader.table(parts[0], value, path)
    if origin is tuple:
        return partial(_listed, _reader(parts[0]))
    if NoneType in parts:
        return _reader(parts[0])
    return lambda reader, value, path: reader.record(hint, value, path)


def _listed(read: Read, reader: Reader, value: Any, path: str) -> tuple[Any, ...]:
    return tuple(read(reader, item, f"{path}/{place}") for place, item in enumerate(items(value, path)))


def _mapped(read_name: Read, read: Read, reader: Reader, value: Any, path: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ProgramRefused(path, "is no object")
    return {read_name(reader, entry, path): read(reader, item, f"{path}/{entry}") for entry, item in value.items()}


def plain(read: Callable[..., Any], **bounds: Any) -> Read:
    """The reader of a value that needs nothing but itself."""
    return lambda reader, value, path: read(value, path, **bounds)


def reference(noun: str) -> Read:
    """The reader of the id of an entry, or of its name."""
    return lambda reader, value, path: reader.resolve(noun, value, path)


Name: TypeAlias = Annotated[str, plain(name)]
Text: TypeAlias = Annotated[str, plain(text)]
State: TypeAlias = Annotated[str, plain(member, allowed=("enforced", "recorded", "diagnosed", "unsupported"))]
"""The state of a capability (section 1.3)."""
Amount: TypeAlias = Annotated[int, plain(whole, least=0, most=MOST)]
Size: TypeAlias = Annotated[int, plain(whole, least=1, most=MOST)]
Word: TypeAlias = Annotated[int, plain(whole, least=0, most=U64)]
KernelId: TypeAlias = Annotated[int, reference("kernel")]
ChannelId: TypeAlias = Annotated[int, reference("channel")]
SlotId: TypeAlias = Annotated[int, reference("slot")]
TensorId: TypeAlias = Annotated[int, reference("tensor")]


@dataclass(frozen=True)
class Entry:
    """An entry of a table, which statements refer to by name or id; the name of the class says what it is."""

    name: Name


# The form of a class.


def form(value: Any) -> Any:
    """The form in a package: of a class without what has the default None or (), of an entry of a table with its id."""
    if isinstance(value, tuple):
        return [
            {"id": place, **form(item)} if isinstance(item, Entry) else form(item) for place, item in enumerate(value)
        ]
    if isinstance(value, Mapping):
        return {field: form(item) for field, item in value.items()}
    if isinstance(value, bytes):
        return value.hex()
    if not is_dataclass(value) or isinstance(value, type):
        return value
    if hasattr(value, "own_form"):
        return value.own_form
    stated = {"op": value.op} if hasattr(value, "op") else {}
    for field, (_, is_empty, _, only) in _members(type(value)).items():
        item = getattr(value, field)
        if only != PROGRAM and not (is_empty and item in (None, ())):
            stated[field] = form(item)
    return stated
