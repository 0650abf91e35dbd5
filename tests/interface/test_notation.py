"""The notation of types and calls: what it means, and which declarations are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tessera_conformance.cli import main
from tessera_conformance.commands import clauses as command
from tessera_conformance.interface import (
    Field,
    InterfaceError,
    Type,
    TypeSyntaxError,
    read_call,
    read_fields,
    read_files,
    read_type,
    record,
)

INT, TEXT = {"type": "integer"}, {"type": "string"}

TYPES: list[tuple[str, Type]] = [
    ("int", INT),
    ("any", {}),
    ("int>=1", {**INT, "minimum": 1}),
    ("text>=1", {**TEXT, "minLength": 1}),
    ("number>=0.5", {"type": "number", "minimum": 0.5}),
    ("handle", {"$ref": "handle"}),
    ("sum/max/min", {"enum": ["sum", "max", "min"]}),
    ('"2.0"', {"const": "2.0"}),
    ("[int]", {"type": "array", "items": INT}),
    ("[int; 3]", THREE := {"type": "array", "items": INT, "minItems": 3, "maxItems": 3}),
    ("[[text]; 1..]", {"type": "array", "items": {"type": "array", "items": TEXT}, "minItems": 1}),
    ("{*: tensor}", {"type": "object", "additionalProperties": {"$ref": "tensor"}}),
    ("{}", record(())),
    ("{text: text, $tensor?: int}", record((Field("text", TEXT), Field("$tensor", INT, optional=True)))),
    ("data or int or null", {"oneOf": [{"$ref": "data"}, INT, {"type": "null"}]}),
    ("[int or null]", {"type": "array", "items": {"type": ["integer", "null"]}}),
]


@pytest.mark.parametrize(("text", "meant"), TYPES)
def test_a_type_is_read(text: str, meant: Type) -> None:
    assert read_type(text) == meant


def test_spaces_and_lines_mean_nothing() -> None:
    assert read_type(" [\n int ;3 ]\n") == THREE


def test_a_call_has_parameters_and_a_result() -> None:
    assert read_call("(a: int, b?: text) -> (c: int)") == (
        (Field("a", INT), Field("b", TEXT, optional=True)),
        record((Field("c", INT),)),
    )
    assert read_call("() -> ()") == ((), record(()))
    assert read_call("() -> hello") == ((), {"$ref": "hello"})
    assert read_fields("null?: text") == (Field("null", TEXT, optional=True),)


@pytest.mark.parametrize(
    "text",
    ["", "[int", "[int; x]", "{a int}", "{a: int b: int}", "int or", "int int", '"open', "{*: int, b: int}", "int>=x"],
)
def test_what_is_not_a_type_is_refused(text: str) -> None:
    with pytest.raises(TypeSyntaxError, match=r"expected|unexpected|unreadable"):
        read_type(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('call = "() -> (a: handel)"', "no type is called handel"),
        ('call = "() - (a: int)"', "expected ->, found -"),
        ('call = "() -> ()"\nclause = ["RT-01-01"]', "clause"),
    ],
)
def test_a_declaration_without_meaning_is_refused(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "interface.toml"
    path.write_text(f'[areas.runtime]\ntitle = "x"\n[runtime.tessX]\n{text}\n', encoding="utf-8")
    with pytest.raises(InterfaceError, match=words):
        read_files([path])


def test_a_type_is_declared_once(tmp_path: Path) -> None:
    paths = [tmp_path / f"{area}.toml" for area in ("abi", "runtime")]
    for path in paths:
        path.write_text(f'[areas.{path.stem}]\ntitle = "x"\n[types.{path.stem}]\nhandle = "int"\n', encoding="utf-8")
    with pytest.raises(InterfaceError, match="declared twice: handle"):
        read_files(paths)


def test_the_command_refuses_a_clause_that_the_registry_does_not_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "interface.toml"
    method = '[runtime.{}]\ncall = "() -> ()"\nclauses = ["{}"]\n'
    methods = method.format("tessOne", "RT-04.1-16") + method.format("tessTwo", "RT-04.1-99")
    path.write_text(f'[areas.runtime]\ntitle = "x"\n{methods}', encoding="utf-8")
    monkeypatch.setattr(command, "interface", lambda: read_files([path]))
    assert main(["interface"]) == 1
    told = capsys.readouterr().out
    assert told.count("error: ") == 1
    assert "error: runtime.tessTwo: there is no clause RT-04.1-99; expected the id of a clause" in told
