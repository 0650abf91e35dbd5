"""Metadata: canonical JSON, its schema, and what is refused (runtime spec 8.1, RT-08.1-07 to -12)."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tessera_reference.abi import Failure, NumericsPolicy, Status
from tessera_reference.abi.fatbin import (
    CollectivePlan,
    Explanation,
    Fatbin,
    FusionGroup,
    KernelEntry,
    KernelParameter,
    Metadata,
    TileShape,
    metadata_of_bytes,
    metadata_to_bytes,
)

SCHEMA = json.loads((Path(__file__).parents[2] / "schemas" / "fatbin-metadata.schema.json").read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def canonical(document: object) -> bytes:
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode(
        "utf-8", "surrogatepass"
    )


@pytest.fixture
def document(module: Fatbin) -> Any:
    return json.loads(metadata_to_bytes(module.metadata))


def test_metadata_comes_back(module: Fatbin, small_module: Fatbin) -> None:
    for each in (module, small_module):
        assert metadata_of_bytes(metadata_to_bytes(each.metadata)) == each.metadata


def test_the_text_of_a_small_module(small_module: Fatbin) -> None:
    assert metadata_to_bytes(small_module.metadata) == (
        b'{"collective_plans":[],"explanation":{"fusion_groups":[],"tile_shapes":[]},"kernels":[{"block":[32,1,1],'
        b'"buffer_size":8,"dynamic_shared":false,"grid":null,"level":"program","module":"m","name":"f","parameters":'
        b'[{"dtype":"fp32","name":"x","offset":0,"shape":[4],"size":8,"type":"ptr","written":true}],"shared_bytes":0}],'
        b'"policy":null}'
    )


def test_parameter_layouts_are_stored(document: Any) -> None:
    kernel = document["kernels"][0]
    assert [(each["name"], each["offset"], each["size"]) for each in kernel["parameters"]] == [
        ("x", 0, 8),
        ("n", 8, 4),
        ("opaque", 16, 8),
        ("factor", 24, 8),
    ]
    assert kernel["buffer_size"] == 32


def test_metadata_keeps_its_schema(document: Any) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    VALIDATOR.validate(document)


@pytest.mark.parametrize("where", [("parameters", 1, "offset"), ("parameters", 1, "size"), ("buffer_size",)])
def test_a_layout_that_is_not_the_abis_is_refused(document: Any, where: tuple[Any, ...], refused: Any) -> None:
    found = document["kernels"][0]
    for step in where[:-1]:
        found = found[step]
    found[where[-1]] += 8
    assert "true layouts" in str(refused(lambda: metadata_of_bytes(canonical(document))))


@pytest.mark.parametrize("change", ["blanks", "order", "escapes", "twice", "newline", "byte order mark"])
def test_another_spelling_is_refused(document: Any, change: str, refused: Any) -> None:
    text = canonical(document).decode()
    spellings = {
        "blanks": json.dumps(document, sort_keys=True, ensure_ascii=False),
        "order": json.dumps({"policy": document["policy"], **document}, separators=(",", ":"), ensure_ascii=False),
        "escapes": text.replace("ö", "\\u00f6"),
        "twice": text.replace('"level":"tile"', '"level":"tile","level":"tile"'),
        "newline": text + "\n",
        "byte order mark": "\ufeff" + text,
    }
    assert spellings[change] != text
    refused(lambda: metadata_of_bytes(spellings[change].encode()))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff",
        b"null",
        b"[]",
        b"{}",
        b'{"kernels":',
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"[1" + b"0" * 5000 + b"]",
        b"NaN",
        b"-Infinity",
        b"1.5",
        b"1e5",
        b'"\\ud800"',
    ],
)
def test_what_is_no_metadata_is_refused(data: bytes, refused: Any) -> None:
    refused(lambda: metadata_of_bytes(data))


STRANGE = [
    None,
    True,
    False,
    -1,
    0,
    1,
    3,
    2**31,
    2**63,
    2**70,
    "",
    "x",
    "int",
    "ü",
    "\ud800",
    "ptr",
    "fp32",
    [],
    [1],
    {},
]


def places(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every value in a document."""
    yield path
    members = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for name, value in members:
        yield from places(value, (*path, name))


def value_at(document: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        document = document[step]
    return document


def changed(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    document = copy.deepcopy(document)
    found = document
    for step in path[:-1]:
        found = found[step]
    found[path[-1]] = value
    return document


def read_or_refused(document: Any) -> Metadata | None:
    try:
        return metadata_of_bytes(canonical(document))
    except Failure as failure:
        if failure.status is not Status.TESS_ERR_INVALID_VALUE:
            raise
        return None


def test_whatever_stands_in_a_place_is_read_as_it_is_or_refused(document: Any) -> None:
    """What is read has the bytes it was read from, and keeps the schema; the schema refuses nothing that is read."""
    read = refused = 0
    for path in places(document):
        for value in STRANGE:
            other = changed(document, path, value)
            found = read_or_refused(other)
            if found is None:
                refused += 1
            else:
                read += 1
                assert metadata_to_bytes(found) == canonical(other)
                VALIDATOR.validate(other)
    assert read > 50
    assert refused > 1000


def test_a_member_more_is_refused_in_every_object(document: Any) -> None:
    objects = [
        path for path in places(document) if isinstance(value_at(document, path), dict) and path[-1:] != ("extents",)
    ]
    assert len(objects) > 10
    for path in objects:
        assert read_or_refused(changed(document, (*path, "more"), 1)) is None
        assert not VALIDATOR.is_valid(changed(document, (*path, "more"), 1))


def test_a_member_less_is_refused_in_every_object(document: Any) -> None:
    members = [path for path in places(document) if path and isinstance(path[-1], str) and path[-2:-1] != ("extents",)]
    assert len(members) > 40
    for path in members:
        parent = {name: value for name, value in value_at(document, path[:-1]).items() if name != path[-1]}
        assert read_or_refused(changed(document, path[:-1], parent)) is None
        assert not VALIDATOR.is_valid(changed(document, path[:-1], parent))


def test_the_schema_refuses_what_is_of_the_wrong_type(document: Any) -> None:
    """Everything the schema can see, names given twice and layouts being beyond it."""
    for path in places(document):
        for value in (None, True, "?", 1.5, [None], {"x": None}):
            other = changed(document, path, value)
            if not VALIDATOR.is_valid(other):
                assert read_or_refused(other) is None, path


@pytest.mark.parametrize("name", ["", "1x", "_Z3fooi.1", "operator()", "über", "a-b", "while", "f\n"])
def test_a_kernel_has_a_name_that_c_can_say(name: str, small_module: Fatbin, refused: Any) -> None:
    (kernel,) = small_module.metadata.kernels
    assert "C identifier" in str(refused(lambda: replace(kernel, name=name)))


def test_names_differ(small_module: Fatbin, refused: Any) -> None:
    (kernel,) = small_module.metadata.kernels
    assert "each name once" in str(refused(lambda: Metadata((kernel, kernel))))
    assert "two parameters called x" in str(refused(lambda: replace(kernel, parameters=2 * kernel.parameters)))


@pytest.mark.parametrize(
    "arguments",
    [
        ("x", "int32", "fp32", (4,)),
        ("x", "int32", None, None, True),
        ("x", "ptr", "fp32", None),
        ("x", "ptr", None, (4,)),
        ("x", "ptr", "fp31", (4,)),
        ("x", "ptr", "fp32", [4]),
        ("x", "ptr", "fp32", (-1,)),
        ("x", "ptr", "fp32", ("2n",)),
        ("x", "ptr", "fp32", (True,)),
        ("x", "ptr", "fp32", (4,), 1),
        ("x", "ptr", ["fp32"], (4,)),
    ],
)
def test_a_parameter_that_cannot_be_is_not_made(arguments: Any, refused: Any) -> None:
    refused(lambda: KernelParameter(*arguments))


@pytest.mark.parametrize(
    "change",
    [
        {"grid": (0, 1, 1)},
        {"grid": (1, 1)},
        {"grid": [1, 1, 1]},
        {"grid": (1 << 31, 1, 1)},
        {"block": (32, 1, 0)},
        {"block": None},
        {"shared_bytes": -1},
        {"dynamic_shared": 1},
        {"level": "graph"},
        {"module": None},
        {"module": "\ud800"},
        {"parameters": ("x",)},
        {"parameters": []},
    ],
)
def test_an_entry_that_cannot_be_is_not_made(change: Any, small_module: Fatbin, refused: Any) -> None:
    (kernel,) = small_module.metadata.kernels
    refused(lambda: replace(kernel, **change))


@pytest.mark.parametrize(
    "make",
    [
        lambda: CollectivePlan("all_to_none", "tp", "ring"),
        lambda: CollectivePlan("all_reduce", 3, "ring"),
        lambda: CollectivePlan("all_reduce", "tp", "star"),
        lambda: CollectivePlan("all_reduce", "tp", "ring", "autotuner"),
        lambda: CollectivePlan("all_reduce", "tp", "ring", subgroup="!tessera.shard<axes=[dp, tp]>"),
        lambda: CollectivePlan("all_reduce", "tp", "ring", bytes=-1),
        lambda: CollectivePlan("all_reduce", "tp", "ring", chunk_bytes=0),
        lambda: CollectivePlan("all_reduce", "tp", "ring", wire="bf17"),
        lambda: CollectivePlan("all_reduce", "tp", "ring", path=["rdma"]),
        lambda: CollectivePlan("all_reduce", "tp", "ring", priority=1 << 63),
        lambda: FusionGroup("2f", ()),
        lambda: FusionGroup("f", ("\udfff",)),
        lambda: FusionGroup("f", ["a"]),
        lambda: TileShape("f", "a", (("m", 0),)),
        lambda: TileShape("f", "a", (("n", 1), ("m", 1))),
        lambda: TileShape("f", "a", (("m", 1), ("m", 2))),
        lambda: TileShape("f", "a", {"m": 1}),
        lambda: Explanation((TileShape("f", "a", ()),)),
        lambda: Explanation((), (FusionGroup("f", ()),)),
        lambda: Metadata(("f",)),
        lambda: Metadata((), {}),
        lambda: Metadata((), None, ("ring",)),
        lambda: Metadata((), None, (), None),
    ],
)
def test_other_metadata_that_cannot_be_is_not_made(make: Any, refused: Any) -> None:
    refused(make)


def test_large_metadata(small_module: Fatbin) -> None:
    """A thousand kernels of forty parameters."""
    choose = random.Random(3)
    parameters = tuple(KernelParameter(f"p{n}", choose.choice(["int8", "int64", "fp16"])) for n in range(40))
    kernels = tuple(KernelEntry(f"k{n}", "m", parameters, (1, 1, 1), (1, 1, 1)) for n in range(1000))
    metadata = Metadata(kernels, NumericsPolicy())
    assert metadata_of_bytes(metadata_to_bytes(metadata)) == metadata
