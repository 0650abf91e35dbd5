"""The protocol's methods, declared once: `interface.toml` of each chapter, and `session.toml` here for shared ones.

The JSON Schemas in `schemas/protocol/` and the tables of `docs/protocol.md` are generated from them. They also give the
suite its prototypes and its lists of handles, pointers and outputs, and the reference its adapter. `docs/protocol.md`,
"Methods", explains the notation.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, TypeVar

from tessera_conformance.cases import chapter_files

# The types of an interface, and their notation: `[int>=0]`, `{name: text, kind?: func/kernel}`, `tensor or null`.
#
# A type is its JSON Schema. That of a name, which a table `[types.AREA]` declares, is `{"$ref": name}`.


BUILTINS = {"bool": "boolean", "int": "integer", "text": "string"} | {
    name: name for name in ("null", "number", "object")
}
"""The builtin types but for `any`, and their names in JSON Schema."""
KINDS = {"number": r"\d+(?:\.\d+)?", "word": r"\$?[^\W\d]\w*(?:/\w+)*", "text": r'"[^"]*"'}
TOKEN = re.compile(rf"\s*({'|'.join(KINDS.values())}|->|>=|\.\.|[^\s\w])")
Read = TypeVar("Read")
Type: TypeAlias = Mapping[str, Any]


class TypeSyntaxError(ValueError):
    """A type or a call does not follow the notation of `docs/protocol.md`, "Methods"."""


@dataclass(frozen=True)
class Field:
    """A member of an object, or a parameter; one with a `?` may be left out."""

    name: str
    type: Type
    optional: bool = False


def record(fields: Sequence[Field]) -> Type:
    """Return the type of an object with these members and no others."""
    if not fields:
        return {"type": "object", "maxProperties": 0}
    required = [field.name for field in fields if not field.optional]
    return {
        "type": "object",
        **({"required": required} if required else {}),
        "properties": {field.name: field.type for field in fields},
        "additionalProperties": False,
    }


def read_type(text: str) -> Type:
    """Return the type of a notation. Raises `TypeSyntaxError`."""
    return _read(text, _Reader.type)


def read_fields(text: str) -> tuple[Field, ...]:
    """Return the fields of `name: type, name?: type`. Raises `TypeSyntaxError`."""
    return _read(f"{text})", lambda reader: reader.fields(")"))


def read_call(text: str) -> tuple[tuple[Field, ...], Type]:
    """Return parameters and result of `(name: type) -> (name: type)`, or `-> type`. Raises `TypeSyntaxError`."""
    return _read(text, _Reader.call)


def _read(text: str, rule: Callable[[_Reader], Read]) -> Read:
    reader = _Reader(text)
    value = rule(reader)
    reader.take("")
    return value


class _Reader:
    """Reads a notation from left to right; `tokens` are those that remain, the next one last."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[str] = ["", *reversed(TOKEN.findall(text))]

    def taken(self, sign: str) -> bool:
        """Take a sign, or the word `or`, if it comes next; return True if it does."""
        comes = self.tokens[-1] == sign
        if comes:
            self.tokens.pop()
        return comes

    def take(self, expected: str) -> str:
        """Take the next token, which must be this sign, or of this kind; "" is the end."""
        token = self.tokens[-1]
        if not re.fullmatch(KINDS.get(expected, re.escape(expected)), token):
            raise TypeSyntaxError(f"{self.text!r}: expected {expected or 'the end'}, found {token or 'the end'}")
        return self.tokens.pop()

    def type(self) -> Type:
        alternatives = [self.single()]
        while self.taken("or"):
            alternatives.append(self.single())
        match alternatives:
            case [one]:
                return one
            case [{"type": "boolean" | "integer" | "number" | "string" as name} as one, {"type": "null"}]:
                return {**one, "type": [name, "null"]}
        return {"oneOf": alternatives}

    def single(self) -> Type:
        if self.taken("["):
            return self.list()
        if self.taken("{"):
            return self.object()
        if self.tokens[-1].startswith('"'):
            return {"const": self.take("text").strip('"')}
        word = self.take("word")
        if "/" in word:
            return {"enum": word.split("/")}
        if word not in BUILTINS:
            return {"$ref": word} if word != "any" else {}
        if not self.taken(">="):
            return {"type": BUILTINS[word]}
        least = self.take("number")
        bound = "minLength" if word == "text" else "minimum"
        return {"type": BUILTINS[word], bound: float(least) if "." in least else int(least)}

    def list(self) -> Type:
        item = self.type()
        schema: dict[str, Any] = {"type": "array", **({"items": item} if item else {})}
        if self.taken(";"):
            schema["minItems"] = int(self.take("number"))
            if not self.taken(".."):
                schema["maxItems"] = schema["minItems"]
        self.take("]")
        return schema

    def object(self) -> Type:
        if not self.taken("*"):
            return record(self.fields("}"))
        self.take(":")
        value = self.type()
        self.take("}")
        return {"type": "object", "additionalProperties": value}

    def fields(self, closing: str) -> tuple[Field, ...]:
        fields: list[Field] = []
        while not self.taken(closing):
            if fields:
                self.take(",")
            name, optional = self.take("word"), self.taken("?")
            self.take(":")
            fields.append(Field(name, self.type(), optional))
        return tuple(fields)

    def call(self) -> tuple[tuple[Field, ...], Type]:
        self.take("(")
        parameters = self.fields(")")
        self.take("->")
        return parameters, record(self.fields(")")) if self.taken("(") else self.type()


# Reads every `interface.toml` into areas, named types and methods, and checks that each name is declared.


SESSION_FILE = Path(__file__).parent / "session.toml"


class InterfaceError(Exception):
    """An `interface.toml` has a statement without a meaning."""


@dataclass(frozen=True)
class NamedType:
    """A type with a name; `where` are keywords of JSON Schema that restrict it further, `c` its structure in C."""

    name: str
    area: str
    notation: str
    type: Type
    title: str = ""
    where: Mapping[str, Any] = field(default_factory=dict)
    c: str = ""


@dataclass(frozen=True)
class Method:
    """A method of the protocol; `c` are the parameters of its C function."""

    area: str
    name: str
    notation: str
    parameters: tuple[Field, ...]
    result: Type
    clauses: tuple[str, ...] = ()
    c: str = ""
    feature: str = ""
    doc: str = ""

    @property
    def full_name(self) -> str:
        """The name in a request: `runtime.tessInit`."""
        return f"{self.area}.{self.name}"

    def parameters_of(self, name: str) -> tuple[str, ...]:
        """Return the names of the parameters whose type has this name."""
        return tuple(parameter.name for parameter in self.parameters if parameter.type == {"$ref": name})

    @property
    def outputs(self) -> tuple[Field, ...]:
        """The members of the result."""
        members, required = self.result.get("properties", {}), self.result.get("required", ())
        return tuple(Field(name, type_, name not in required) for name, type_ in members.items())


@dataclass(frozen=True)
class Area:
    """The methods and types of one schema file; every method of it takes the parameters `also`, optionally."""

    name: str
    title: str
    also: tuple[Field, ...]
    types: Mapping[str, NamedType]
    methods: Mapping[str, Method]


@dataclass(frozen=True)
class Interface:
    """All methods and types of the protocol."""

    areas: Mapping[str, Area]
    enumerators: Mapping[str, tuple[str, ...]]

    @cached_property
    def types(self) -> Mapping[str, NamedType]:
        """Every named type; a name has the same meaning in all areas."""
        return {name: type_ for area in self.areas.values() for name, type_ in area.types.items()}

    @cached_property
    def methods(self) -> Mapping[str, Method]:
        """Every method by its name in a request."""
        return {method.full_name: method for area in self.areas.values() for method in area.methods.values()}

    @cached_property
    def c_functions(self) -> Mapping[str, Method]:
        """The functions of the host interface by name, in the specification's order."""
        return {name: method for name, method in self.areas["runtime"].methods.items() if method.c}

    def allows_null(self, declared: Type) -> bool:
        """True if a value of a type may be null."""
        match declared:
            case {"$ref": name}:
                return self.allows_null(self.types[name].type)
            case {"oneOf": alternatives}:
                return any(map(self.allows_null, alternatives))
            case {"type": "null" | [_, "null"]}:
                return True
        return False


@cache
def interface() -> Interface:
    """Return the interface of this suite. Raises `InterfaceError`."""
    return read_files([SESSION_FILE, *chapter_files("interface.toml").values()])


def feature_of(method: str, params: Mapping[str, Any] = MappingProxyType({})) -> str:
    """Return the feature that a request needs, by the name of its method; "" if it needs none.

    `{at}` in a declared feature is the level of IR in the request, by default `graph`.
    """
    declared = interface().methods.get(method)
    return declared.feature.format(at=params.get("at", "graph")) if declared else ""


def read_files(paths: list[Path]) -> Interface:
    """Return the interface that some files declare together. Raises `InterfaceError`."""
    areas: dict[str, Area] = {}
    enumerators: dict[str, tuple[str, ...]] = {}
    for path in paths:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
        enumerators |= {name: tuple(text.split()) for name, text in document.pop("enumerators", {}).items()}
        try:
            areas |= {area.name: area for area in _areas(document)}
        except (TypeSyntaxError, TypeError) as error:
            raise InterfaceError(f"{path}: {error}") from None
    interface = Interface(areas, enumerators)
    _check(interface)
    return interface


def _areas(document: Mapping[str, Any]) -> Iterator[Area]:
    for name, stated in document["areas"].items():
        types = {key: _named(name, key, entry) for key, entry in document.get("types", {}).get(name, {}).items()}
        methods = {method: _method(name, method, entry) for method, entry in document.get(name, {}).items()}
        yield Area(name, stated["title"], read_fields(stated.get("also", "")), types, methods)


def _named(area: str, name: str, stated: str | Mapping[str, Any]) -> NamedType:
    whole = {"is": stated} if isinstance(stated, str) else dict(stated)
    notation = " ".join(whole.pop("is").split())
    return NamedType(name, area, notation, read_type(notation), **whole)


def _method(area: str, name: str, stated: Mapping[str, Any]) -> Method:
    whole = dict(stated)
    notation = " ".join(whole.pop("call").split())
    return Method(area, name, notation, *read_call(notation), tuple(whole.pop("clauses", ())), **whole)


def _check(interface: Interface) -> None:
    names = [name for area in interface.areas.values() for name in area.types]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InterfaceError(f"declared twice: {', '.join(twice)}")
    roots = [type_.type for type_ in interface.types.values()]
    roots += [parameter.type for method in interface.methods.values() for parameter in method.parameters]
    roots += [method.result for method in interface.methods.values()]
    unknown = sorted({name for root in roots for name in _names(root)} - set(names))
    if unknown:
        raise InterfaceError(f"no type is called {', '.join(unknown)}")


def _names(node: object) -> Iterator[str]:
    """Yield the named types in a type."""
    match node:
        case {"$ref": str(name)}:
            yield name
        case dict() | list():
            for part in node.values() if isinstance(node, dict) else node:
                yield from _names(part)


# The declarations of C from the lines of `interface.toml`: the functions of the runtime and the extensions.
#
# The line of a function of the runtime gives its parameters in C. Those of an extension `tessx...` follow from the
# types of its line (`docs/cabi.md`, "Extensions"). `declarations()` is what cffi reads; `c_functions()` describes how
# the arguments of each function are passed. `tessera.h` and `tessera_ext.h` are written by hand and compared with this.


Form = Literal[
    "handle", "pointer", "integer", "bool", "number", "text", "data", "memory", "integers", "structure", "json"
]

STATUS = "tessStatus_t"
ABSENT = -(1 << 63)
"""TESSX_ABSENT: an omitted optional integer of an extension."""
OWN_HANDLES = ("graph",)
"""Handles that no function of the runtime has."""
ELSEWHERE = frozenset(
    ("runtime.tessxHostMemory", "runtime.tessxHostRead", "runtime.tessxHostWrite", "abi.header", "abi.constants")
)
"""Functions that the process with the library answers itself: host memory, and facts of the header."""
WITHOUT_FUNCTIONS = ("session", "messages", "binding")
"""Areas without C functions: the session has two of its own, the binding is Python."""
BUFFER = ("void* out", "size_t capacity", "size_t* needed")
TEXT_BUFFER = ("char* out", "size_t capacity", "size_t* needed")
SESSION = {"tessxHello": ", ".join(TEXT_BUFFER), "tessxReset": "void", "tessxOutcome": ", ".join(TEXT_BUFFER)}
"""The functions of the session and their parameters."""


@dataclass(frozen=True)
class Input:
    """A parameter of a method, and its C parameters: two for data with its size."""

    name: str
    form: Form
    parameters: tuple[str, ...]
    optional: bool = False


@dataclass(frozen=True)
class Output:
    """The output behind a pointer; the forms `data`, `text` and `json` go through a buffer of the caller."""

    name: str
    form: Form
    parameters: tuple[str, ...]


Position = Input | Output


@dataclass(frozen=True)
class CFunction:
    """A C function, its method, and its inputs and outputs in the order of the C parameters."""

    name: str
    method: Method
    positions: tuple[Position, ...]
    extension: bool

    @property
    def parameters(self) -> str:
        """The C parameters with their names."""
        return ", ".join(parameter for position in self.positions for parameter in position.parameters) or "void"

    @property
    def prototype(self) -> str:
        """The declaration of the function."""
        return f"{STATUS} {self.name}({self.parameters});"


@cache
def c_functions() -> Mapping[str, CFunction]:
    """Return every C function that a library may have, by the name of its method, in the order of the interface."""
    declared = interface()
    return {
        name: _function(declared, method)
        for name, method in declared.methods.items()
        if method.area not in WITHOUT_FUNCTIONS and name not in ELSEWHERE
    }


def declarations(only: Collection[str] | None = None) -> str:
    """Return the declarations in C, for cffi or a compiler: the specification's, the function table, the extensions.

    `only` names the extensions to declare; without it all are.
    """
    declared = interface()
    own = [function for function in c_functions().values() if not function.extension]
    extensions = [function for function in c_functions().values() if function.extension]
    handles = dict.fromkeys(re.findall(r"tess[A-Z]\w*_t", " ".join(function.parameters for function in own)))
    enumerations = {name: words for name, words in declared.enumerators.items() if not name.endswith("Flags")}
    lines = [f"typedef struct {name[:-2]}* {name};" for name in handles]
    lines += [f"typedef enum {{ {', '.join(words)} }} {name};" for name, words in enumerations.items()]
    lines += [_structure(type_.c) for type_ in declared.types.values() if type_.c]
    lines += [function.prototype for function in own]
    pointers = [f"  {STATUS} (*{function.name})({function.parameters});" for function in own]
    lines += ["typedef struct tessApi {", "  size_t struct_size;", "  int major, minor;", *pointers, "} tessApi;"]
    lines += ["const tessApi* tessGetApi(void);"]
    lines += [f"typedef struct tessx{name.title()}* tessx{name.title()}_t;" for name in OWN_HANDLES]
    lines += [f"{STATUS} {name}({parameters});" for name, parameters in SESSION.items()]
    lines += [extension.prototype for extension in extensions if only is None or extension.name in only]
    return "\n".join(lines) + "\n"


def _function(declared: Interface, method: Method) -> CFunction:
    if method.c:
        return CFunction(method.name, method, tuple(_declared_positions(declared, method)), extension=False)
    inputs = [_extension_input(declared, parameter) for parameter in method.parameters]
    outputs = _extension_outputs(method)
    words = f"{'' if method.area == 'abi' else method.area}_{method.name}".split("_")  # tessxParameterLayout
    name = method.name if method.area == "runtime" else "tessx" + "".join(word.capitalize() for word in words)
    return CFunction(name, method, (*inputs, *outputs), extension=True)


# Functions of the runtime: their line gives the types in C


def _declared_positions(declared: Interface, method: Method) -> Iterator[Position]:
    """Yield the parameters in C, each with its parameter or output of the method."""
    inputs, outputs = iter(method.parameters), iter(method.outputs)
    for c_type in (word.strip() for word in method.c.strip("()").split(",")):
        if c_type.endswith("*") and not c_type.startswith("const ") and c_type != "void*":
            output = next(outputs)
            name = output.name if output.name in ("devPtr", "hostPtr") else f"out_{output.name}"
            yield Output(output.name, _declared_form(declared, output, c_type), (f"{c_type} {name}",))
        else:
            input_ = next(inputs)
            form = _declared_form(declared, input_, c_type)
            yield Input(input_.name, form, (f"{c_type} {input_.name}",), input_.optional)
    left = [operand.name for operand in (*inputs, *outputs)]
    if left:
        raise ValueError(f"{method.full_name}: no parameter in C for {', '.join(left)}")


def _declared_form(declared: Interface, field: Field, c_type: str) -> Form:
    if c_type == "const int*":
        return "integers"
    if c_type == "const char*":
        return "text"
    bare = c_type.removeprefix("const ").rstrip("*").strip()
    if any(bare == _structure_name(type_.c) for type_ in declared.types.values() if type_.c):
        return "structure"
    form = _form(declared, field.type)
    if form not in ("handle", "pointer", "integer", "memory"):
        raise ValueError(f"{field.name}: {c_type} cannot carry {field.type}")
    return form


# Extensions: their parameters in C follow from the types


def _extension_input(declared: Interface, field: Field) -> Input:
    form = _form(declared, field.type)
    size = [f"size_t {field.name}Size"] if form in ("data", "memory") else []
    return Input(field.name, form, (f"{_c_type(form, field.name)} {field.name}", *size), field.optional)


def _extension_outputs(method: Method) -> Iterable[Output]:
    """Yield one out pointer for each scalar, one datum or text through a buffer, or else the result as JSON."""
    declared = interface()
    outputs = method.outputs
    forms = [_form(declared, output.type) for output in outputs]
    mandatory = not any(output.optional for output in outputs)
    if outputs and mandatory and all(form in SCALARS for form in forms):
        for result, form in zip(outputs, forms, strict=True):
            yield Output(result.name, form, (f"{_c_type(form, result.name)}* {result.name}",))
    elif len(outputs) == 1 and mandatory and forms[0] == "data":
        yield Output(outputs[0].name, "data", BUFFER)
    elif len(outputs) == 1 and mandatory and outputs[0].type == {"type": "string"}:
        yield Output(outputs[0].name, "text", TEXT_BUFFER)
    elif outputs or "$ref" in method.result:
        yield Output("", "json", TEXT_BUFFER)


C_TYPES: Mapping[Form, str] = {
    "pointer": "void*",
    "integer": "int64_t",
    "bool": "int",
    "number": "double",
    "data": "const void*",
    "memory": "const void*",
}
"""The C types of the forms, but for handles, whose type has their name; values of other forms are texts."""
SCALARS: tuple[Form, ...] = ("handle", "pointer", "integer", "bool")
"""The forms of outputs behind a pointer of their own."""
FORMS: Mapping[str, Form] = {
    "integer": "integer",
    "boolean": "bool",
    "number": "number",
    "string": "text",
    "handle": "handle",
    "pointer": "pointer",
    "allocation": "pointer",
    "address": "pointer",
    "data": "data",
    "memory": "memory",
}
"""The forms of builtin and named types; other named types have that of the type that they stand for."""


def _form(declared: Interface, kind: Type) -> Form:
    """Return the form of values of a type; a text that may be null is a text, which may be NULL."""
    match kind:
        case {"$ref": name} if name not in FORMS:
            return _form(declared, declared.types[name].type)
        case {"$ref": str(name)} | {"type": str(name)}:
            return FORMS.get(name, "json")
        case {"enum": _} | {"const": _} | {"type": ["string", "null"]}:
            return "text"
        case {"oneOf": [only, {"type": "null"}]} if _form(declared, only) == "text":
            return "text"
    return "json"


def _c_type(form: Form, name: str) -> str:
    if form == "handle":
        return f"{'tessx' if name in OWN_HANDLES else 'tess'}{name.title()}_t"
    return C_TYPES.get(form, "const char*")


def _structure(c: str) -> str:
    """Return `Name { members }` as a type definition."""
    name = _structure_name(c)
    return f"typedef struct {c[len(name) :].strip()} {name};"


def _structure_name(c: str) -> str:
    return c.partition("{")[0].strip()


# The JSON Schemas in `schemas/protocol/`, made from the interface: one file an area.


WIDTH = 120


def schema_text(interface: Interface, area: Area) -> str:
    """Return the file of an area: the schemas of the parameters and the result of each method, and of the types."""
    definitions: dict[str, Any] = {}
    for method in area.methods.values():
        title = {"title": method.doc} if method.doc else {}
        definitions[f"{method.name}.params"] = {**title, **record((*method.parameters, *area.also))}
        definitions[f"{method.name}.result"] = method.result
    for name, type_ in area.types.items():
        title = {"title": type_.title} if type_.title else {}
        definitions[name] = {**title, **type_.type, **type_.where}
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"tessera:protocol/{area.name}",
        "title": f"Protocol 1, {area.name}: {area.title}",
        "$comment": "Generated from the interface.toml files by `tessera-conformance interface --write`",
        "$defs": _linked(definitions, interface.types, area.name),
    }
    return _laid_out(schema) + "\n"


def _linked(node: Any, types: Mapping[str, NamedType], area: str) -> Any:
    """Return a schema in which each name of a type is the address of its definition, seen from an area's file."""
    match node:
        case {"$ref": str(name)}:
            home = types[name].area
            return {"$ref": f"{'' if home == area else f'tessera:protocol/{home}'}#/$defs/{name}"}
        case dict():
            return {key: _linked(part, types, area) for key, part in node.items()}
        case list():
            return [_linked(part, types, area) for part in node]
    return node


def _laid_out(node: Any, indent: int = 0, indented: int = 0) -> str:
    """Return JSON in a readable layout: a value that fits on a line is on one."""
    flat = _on_one_line(node)
    if not node or not isinstance(node, dict | list) or (indent > 2 and indent + indented + len(flat) < WIDTH):
        return flat
    pad = " " * (indent + 2)
    if isinstance(node, list):
        lines = [pad + _laid_out(item, indent + 2) for item in node]
        return "[\n" + ",\n".join(lines) + "\n" + " " * indent + "]"
    lines = [f"{pad}{json.dumps(key)}: {_laid_out(item, indent + 2, len(key) + 4)}" for key, item in node.items()]
    return "{\n" + ",\n".join(lines) + "\n" + " " * indent + "}"


def _on_one_line(node: Any) -> str:
    if isinstance(node, dict) and node:
        return "{ " + ", ".join(f"{json.dumps(key)}: {_on_one_line(item)}" for key, item in node.items()) + " }"
    if isinstance(node, list):
        return "[" + ", ".join(map(_on_one_line, node)) + "]"
    return json.dumps(node, ensure_ascii=False)


# The tables of `docs/protocol.md`, generated from the interface: the methods and the types of each area.


MARKED = re.compile(r"(<!-- (interface: \w+|core methods) -->)\n.*?(<!-- end -->)", re.DOTALL)


def page_with_tables(page: str, tables: Mapping[str, Iterable[str]]) -> str:
    """Return a page with new tables between its marks, such as `<!-- interface: AREA -->` and `<!-- end -->`.

    Raises `KeyError`: a mark names no table.
    """
    return MARKED.sub(lambda mark: "\n".join([mark[1], *tables[mark[2]], mark[3]]), page)


def tables_of(area: Area) -> Iterator[str]:
    """Yield the tables of the methods and the types of an area."""
    if area.methods:
        yield "\n| method | returned value | |\n|---|---|---|"
        yield from (_row(area, method) for method in area.methods.values())
    if area.types:
        yield "\n| type | is | |\n|---|---|---|"
        yield from (f"| `{type_.name}` | `{type_.notation}` | {type_.title} |" for type_ in area.types.values())
    yield ""


def _row(area: Area, method: Method) -> str:
    name = method.name if area.name == "runtime" else method.full_name
    parameters, _, returned = method.notation.partition(" -> ")
    if returned.startswith("("):
        returned = f"{{{returned[1:-1]}}}"
    feature = f"Feature `{method.feature}`." if method.feature else ""
    remarks = " ".join(filter(None, [feature, method.doc, ", ".join(method.clauses)]))
    return f"| `{name}{parameters}` | `{returned}` | {remarks} |"
