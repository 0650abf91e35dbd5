"""Documents of topologies against their schema, and routes against all ways (runtime spec 4.2, 13)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tessera_reference.abi.status import Failure
from tessera_reference.ir.targets import TARGETS
from tessera_reference.mesh.topology import NAMES, End, InvalidDocument, Link, Routes, Topology, load, named, read


def way(topology: Topology, a: End, b: End, *down: str) -> list[str] | None:
    links = topology.route(a, b, frozenset(down))
    return None if links is None else [link.name for link in links]


def test_a_device_takes_its_limits_from_its_target() -> None:
    four, five = named("mixed").device(3), named("mixed").device(4)
    assert (four.hardware.warp, four.hardware.shared_bytes) == (32, 232448)
    assert (five.hardware.warp, five.hardware.threads_per_block) == (64, 1024)
    assert five.memory_bytes == 192 * 2**30


ENDS = ("a", "b", "c", "d", "e", "f")


@st.composite
def links(draw: st.DrawFn) -> list[Link]:
    """Links between six ends, some of which have one link or none; two may join the same ends."""
    pairs = draw(st.lists(st.tuples(st.sampled_from(ENDS), st.sampled_from(ENDS)), max_size=9))
    names = draw(st.permutations(range(len(pairs))))
    return [
        Link(f"l{name}", a, b, 1, draw(st.integers(0, 2))) for name, (a, b) in zip(names, pairs, strict=True) if a != b
    ]


def simple_ways(found: list[Link], a: str, b: str, down: frozenset[str]) -> Iterator[tuple[Link, ...]]:
    """Every way that comes to no end twice."""
    waiting: list[tuple[str, tuple[str, ...], tuple[Link, ...]]] = [(a, (a,), ())]
    while waiting:
        end, seen, way = waiting.pop()
        if end == b:
            yield way
            continue
        for link in found:
            if end in (link.a, link.b) and link.other(end) not in seen and link.name not in down:
                other = str(link.other(end))
                waiting.append((other, (*seen, other), (*way, link)))


def length(way: tuple[Link, ...]) -> tuple[int, int, list[str]]:
    """The key by which ways are compared."""
    return sum(link.latency for link in way), len(way), [link.name for link in way]


@settings(max_examples=150, deadline=None)
@given(links(), st.data())
def test_the_shortest_of_all_ways_is_taken(found: list[Link], data: st.DataObject) -> None:
    down = frozenset(data.draw(st.lists(st.sampled_from([link.name for link in found] or [""]), max_size=2)))
    routes = Routes(found)
    for a in ENDS:
        for b in ENDS:
            expected = min(simple_ways(found, a, b, down), key=length, default=None)
            assert routes.between(a, b, down) == expected


@pytest.mark.parametrize("devices", [2, 4096])
def test_a_way_across_a_switch_is_not_searched_for(devices: int) -> None:
    routes = Routes(Link(f"l{number:04}", number, "switch", 1, 5) for number in range(devices))
    actual = [routes.between(number, (number + 1) % devices, frozenset()) for number in range(devices)]
    assert [[link.a for link in way or ()] for way in actual] == [[n, (n + 1) % devices] for n in range(devices)]


ROOT = Path(__file__).resolve().parents[2]
SCHEMA = json.loads((ROOT / "schemas" / "topology.schema.json").read_text(encoding="utf-8"))
PACKAGED = ROOT / "reference" / "tessera_reference" / "mesh" / "topologies"
Change = Callable[[dict[str, Any]], Any]


def put(*path: Any) -> Change:
    """Put the last of the arguments at the place that the others lead to."""
    *way, key, value = path

    def change(document: Any) -> None:
        for step in way:
            document = document[step]
        document[key] = value

    return change


def drop(*path: Any) -> Change:
    *way, key = path

    def change(document: Any) -> None:
        for step in way:
            document = document[step]
        del document[key]

    return change


ACCEPTED: dict[str, Change] = {
    "as it is": lambda document: None,
    "a whole number with a point": put("devices", 0, "memory_bytes", 1000.0),
    "a format with a point": put("format", 1.0),
    "the longest name": put("name", "x" * 64),
    "a name of every kind of character": put("name", "aZ09_.-"),
    "no latency": put("links", 0, "latency", 0),
    "the most bytes": put("devices", 0, "memory_bytes", 2**48),
    "the most bandwidth": put("links", 0, "bandwidth", 10**15),
    "a switch of no node": drop("switches", 0, "node"),
    "NICs": put("nics", [{"name": "nic0", "node": "left"}, {"name": "nic1", "node": "left"}]),
    "the most credits": put("links", 0, "credits", 65536),
    **{f"kind {kind}": put("links", 0, "kind", kind) for kind in ("nvlink", "pcie", "network")},
    **{f"target {target}": put("devices", 0, "target", target) for target in TARGETS},
}
REFUSED: dict[str, tuple[Change, str]] = {
    "format 2": (put("format", 2), "$.format"),
    "format true": (put("format", True), "$.format"),
    "no format": (drop("format"), "$"),
    "an unknown member": (put("colour", 1), "$"),
    "a long description": (put("description", "x" * 1001), "$.description"),
    "a name with a line end": (put("name", "small\n"), "$.name"),
    "nodes that are no array": (put("nodes", {}), "$.nodes"),
    "too many switches": (put("switches", [{"name": f"s{at}"} for at in range(4097)]), "$.switches"),
    "no devices": (put("devices", []), "$.devices"),
    "a node with too much memory": (put("nodes", 1, "memory_bytes", 2**48 + 1), "$.nodes[1].memory_bytes"),
    "a switch of node null": (put("switches", 0, "node", None), "$.switches[0].node"),
    "a large id": (put("devices", 0, "id", 2**31), "$.devices[0].id"),
    "an unknown target": (put("devices", 1, "target", "sm_91"), "$.devices[1].target"),
    "a target that is a list": (put("devices", 1, "target", ["sm_90"]), "$.devices[1].target"),
    "a device without a target": (drop("devices", 1, "target"), "$.devices[1]"),
    "half a byte": (put("devices", 0, "memory_bytes", 0.5), "$.devices[0].memory_bytes"),
    "endless memory": (put("devices", 0, "memory_bytes", float("inf")), "$.devices[0].memory_bytes"),
    "too many multiprocessors": (put("devices", 0, "multiprocessors", 4097), "$.devices[0].multiprocessors"),
    "a link with an end that is true": (put("links", 0, "b", True), "$.links[0].b"),
    "a link without bandwidth": (put("links", 2, "bandwidth", 0), "$.links[2].bandwidth"),
    "a link of an unknown kind": (put("links", 2, "kind", "infiniband"), "$.links[2].kind"),
    "a link of too many credits": (put("links", 2, "credits", 65537), "$.links[2].credits"),
    "a NIC on no node": (put("nics", [{"name": "nic0"}]), "$.nics[0]"),
    "a link of negative latency": (put("links", 2, "latency", -1), "$.links[2].latency"),
}
MEANINGLESS: dict[str, tuple[Change, str, str]] = {
    "a node given twice": (put("nodes", 1, "name", "left"), "$.nodes[1].name", "no earlier element"),
    "a switch given twice": (put("switches", 1, "name", "hub"), "$.switches[1].name", "no earlier element"),
    "a switch named as a node": (put("switches", 1, "name", "right"), "$.switches[1].name", "no node has"),
    "a NIC given twice": (put("nics", [{"name": "nic0", "node": "left"}] * 2), "$.nics[1].name", "no earlier element"),
    "a NIC named as a switch": (put("nics", [{"name": "hub", "node": "left"}]), "$.nics[0].name", "node or switch"),
    "a NIC on an unknown node": (put("nics", [{"name": "nic0", "node": "lefft"}]), "$.nics[0].node", "mean left?"),
    "RDMA to a device": (put("links", 0, "kind", "rdma"), "$.links[0].a", "a NIC or a switch"),
    "a device given twice": (put("devices", 2, "id", 10), "$.devices[2].id", "no earlier element"),
    "a link given twice": (put("links", 6, "name", "in10"), "$.links[6].name", "no earlier element"),
    "a device on no node": (put("devices", 0, "node", "lefft"), "$.devices[0].node", "did you mean left?"),
    "a switch on no node": (put("switches", 0, "node", "hub"), "$.switches[0].node", "one of left, right"),
    "a link from nowhere": (put("links", 0, "a", "centre"), "$.links[0].a", "one of left, right, hub, network"),
    "a link to no device": (put("links", 0, "b", 99), "$.links[0].b", "id of a device"),
    "a link from an end to itself": (put("links", 0, "b", 10), "$.links[0].b", "another end"),
}
"""Mistakes that a schema cannot express."""


def by_schema(document: object) -> bool:
    return bool(jsonschema.Draft202012Validator(SCHEMA).is_valid(document))


@pytest.mark.parametrize("change", ACCEPTED.values(), ids=ACCEPTED)
def test_reader_and_schema_accept(document: dict[str, Any], change: Change) -> None:
    change(document)
    assert by_schema(document)
    read(document, "small.json")


@pytest.mark.parametrize(("change", "path"), REFUSED.values(), ids=REFUSED)
def test_reader_and_schema_refuse(document: dict[str, Any], change: Change, path: str) -> None:
    change(document)
    assert not by_schema(document)
    with pytest.raises(InvalidDocument) as caught:
        read(document, "small.json")
    assert (caught.value.file, caught.value.path) == ("small.json", path)
    assert str(caught.value).startswith(f"small.json: {path} ")


@pytest.mark.parametrize("document", [None, [], "topology", 1])
def test_reader_and_schema_refuse_what_is_no_object(document: object) -> None:
    assert not by_schema(document)
    with pytest.raises(InvalidDocument, match=r"\$ is .*; expected an object"):
        read(document, "small.json")


@pytest.mark.parametrize(("change", "path", "expected"), MEANINGLESS.values(), ids=MEANINGLESS)
def test_the_reader_refuses_what_has_no_meaning(
    document: dict[str, Any], change: Change, path: str, expected: str
) -> None:
    change(document)
    assert by_schema(document)
    with pytest.raises(InvalidDocument) as caught:
        read(document, "small.json")
    assert caught.value.path == path
    assert expected in caught.value.expected


def test_the_published_schema_is_the_one_that_is_read() -> None:
    published = (ROOT / "schemas" / "topology.schema.json").read_bytes()
    assert (PACKAGED.parent / "topology.schema.json").read_bytes() == published


def test_the_schema_knows_every_target() -> None:
    assert sorted(SCHEMA["$defs"]["device"]["properties"]["target"]["enum"]) == sorted(TARGETS)


def test_every_topology_of_the_package_has_a_name_and_the_form() -> None:
    actual = sorted(PACKAGED.glob("*.json"))
    assert tuple(path.stem for path in actual) == NAMES
    for path in actual:
        assert by_schema(json.loads(path.read_text(encoding="utf-8")))
        assert named(path.stem).name == load(path).name == path.stem


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", "is not JSON"),
        ("{", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ('{"format": 1, "format": 1}', "two members 'format'"),
        ("[" * 500 + "]" * 500, "is not JSON"),
        ("{" + "".join(f'"{name}": 0, ' for name in range(100_000)) + '"z": 1, "z": 1}', "two members 'z'"),
        ('{"format": NaN}', "NaN is no number of JSON"),
        ('{"format": -Infinity}', "-Infinity is no number of JSON"),
        ('{"format": ' + "9" * 5000 + "}", "is not JSON"),
    ],
)
def test_a_text_that_is_no_json_is_refused(text: str, found: str) -> None:
    with pytest.raises(InvalidDocument, match=found):
        load(text)


def test_a_text_of_too_many_values_or_bytes_is_refused() -> None:
    with pytest.raises(InvalidDocument, match=r"is not JSON .more than 2000000 values"):
        load("[" + "[]," * 3_000_000 + "0]")
    with pytest.raises(InvalidDocument, match=r"is not JSON .more than 33554432 bytes"):
        load("9" * 40_000_000)


def test_a_text_is_read(document: dict[str, Any]) -> None:
    assert load(json.dumps(document)).name == "small"


def test_a_file_that_cannot_be_read_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "latin.json").write_bytes(b'{"name": "\xe9"}')
    for name in ("latin.json", "missing.json"):
        with pytest.raises(InvalidDocument, match="cannot be read") as caught:
            load(tmp_path / name)
        assert caught.value.file == str(tmp_path / name)


def test_an_unknown_member_is_named_with_the_nearest_one(document: dict[str, Any]) -> None:
    document["devices"][0]["memory_byte"] = 1
    with pytest.raises(InvalidDocument, match=r"unknown member 'memory_byte'.*did you mean memory_bytes\?"):
        read(document, "small.json")


def test_what_is_wrong_with_a_link_names_it_and_its_ends(document: dict[str, Any]) -> None:
    link = document["links"][2]
    link["bandwidth"] = 0
    with pytest.raises(InvalidDocument) as caught:
        read(document, "small.json")
    assert f"(link {link['name']!r} between {link['a']!r} and {link['b']!r})" in str(caught.value)


def test_a_link_that_names_no_kind_is_of_pcie_within_a_node(document: dict[str, Any]) -> None:
    document["links"][0]["credits"] = 3.0
    links = read(document, "small.json").links
    assert {link.kind for link in links} == {"pcie", "network"}
    assert all((link.kind == "network") == ("network" in (link.a, link.b)) for link in links)
    assert [link.credits for link in links] == [3] + [1] * (len(links) - 1)


def test_an_unknown_name_of_a_topology_is_refused() -> None:
    with pytest.raises(Failure, match=r"did you mean two-nodes\?"):
        named("two-node")
