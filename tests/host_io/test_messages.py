"""Frames and messages: refused by name, the fast judge as the plain one, texts made from a schema."""

from __future__ import annotations

import copy
import itertools
import json
import random
import runpy
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest
from jsonschema import Draft202012Validator

from tessera_reference.host_io.frames import InvalidFrame, RequestFailed, read_frame, request_of, rounded, write_frame

UNREADABLE = {
    "nothing": "",
    "a list": "[]",
    "a text": '"a"',
    "half an object": '{"a":',
    "a member twice": '{"a": 1, "b": {"c": 1, "c": 1}}',
    "NaN": '{"a": NaN}',
    "Infinity": '{"a": -Infinity}',
    "a lone surrogate": r'{"a": "\ud800"}',
    "a lone surrogate as a name": r'{"\udc00": 1}',
    "a surrogate that is written": '{"a": "\ud800"}',
    "bytes that are not UTF-8": b'{"a": "\xff"}',
    "deep lists": '{"a": ' + "[" * 100 + "]" * 100 + "}",
    "very deep lists": '{"a": ' + "[" * 100_000 + "]" * 100_000 + "}",
    "deep objects": '{"a": ' * 100_000 + "1" + "}" * 100_000,
}


@pytest.mark.parametrize("frame", UNREADABLE.values(), ids=UNREADABLE)
def test_an_unreadable_frame_is_refused(frame: str | bytes) -> None:
    with pytest.raises(InvalidFrame):
        read_frame(frame)


@pytest.mark.parametrize(
    "text",
    [
        "1e999999999",
        "-1e-999999999",
        "1e99999999999999999999",
        "1e-99999999999999999999",
        "1" * 5_000,
        "1." + "1" * 900_000,
        "1" * 900_000,
        "1" * 900_000 + "e-900000",
    ],
    ids=lambda text: text[:24],
)
def test_a_number_that_is_far_away_or_long_takes_no_time(text: str) -> None:
    """No power of ten of that size is ever made."""
    actual = read_frame(f'{{"a": {text}}}')["a"]
    assert isinstance(actual, Decimal)
    assert actual.is_finite()


@pytest.mark.parametrize("value", [Decimal("NaN"), Decimal("Infinity"), float("nan"), object()])
def test_what_json_has_not_is_not_written(value: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        write_frame({"a": value})


Message: TypeAlias = dict[str, Any]
Build: TypeAlias = Callable[..., Message]
SPOILT = (None, True, -1, 0, 2**31, 2**64, "", "x" * 300, [], {}, [1], {"a": 1}, "HBM", "tensor", "scalar", "fp32")


def mutants(message: Message, count: int) -> Iterator[Message]:
    """The message with a member somewhere missing, replaced or added."""
    chance = random.Random(7)
    for _ in range(count):
        spoilt = copy.deepcopy(message)
        part: Any = spoilt
        while True:
            keys = list(part) if isinstance(part, dict) else list(range(len(part)))
            key = chance.choice(keys)
            inner = part[key]
            if not isinstance(inner, dict | list) or not inner or chance.random() < 0.3:
                break
            part = inner
        match chance.randrange(3):
            case 0:
                del part[key]
            case 1:
                part[key] = chance.choice(SPOILT)
            case 2 if isinstance(part, dict):
                part[chance.choice(["source", "blob", "x"])] = chance.choice(SPOILT)
        yield spoilt


def judged(message: Message, fast: bool) -> str | None:
    try:
        request_of(message, fast=fast)
    except RequestFailed as failure:
        return str(failure)
    return None


@pytest.mark.parametrize("kind", ["write", "read", "launch"])
def test_the_fast_judge_says_what_the_plain_one_says(
    kind: str, memory_write: Build, memory_read: Build, kernel_launch: Build, tensor: Build
) -> None:
    pytest.importorskip("fastjsonschema", reason="pip install -e '.[host-io]'")
    scalar = {"arg_kind": "scalar", "dtype": "i32", "value": 3}
    launch = kernel_launch(args=[tensor([(0, 0, 1), (1, 0, 0)]), scalar], grid={"x": 1}, failure_policy="collect_all")
    message = {"write": memory_write(), "read": memory_read(dst_kind="discard"), "launch": launch}[kind]
    said = [(judged(mutant, True), judged(mutant, False)) for mutant in mutants(message, 400)]
    assert [pair for pair in said if pair[0] != pair[1]] == []
    refused = [fast for fast, _ in said if fast is not None]
    assert len(refused) > 200
    assert [text for text in refused if "HIO-" not in text] == []


def told(message: Message) -> tuple[str, str]:
    with pytest.raises(RequestFailed) as caught:
        request_of(message)
    assert caught.value.code == "INVALID_MESSAGE"
    return caught.value.field, caught.value.clause


def test_a_refusal_names_the_member_and_its_clause(memory_write: Build, memory_read: Build) -> None:
    missing = {name: value for name, value in memory_write().items() if name != "dst_pe"}
    assert told(missing) == ("dst_pe", "HIO-D5-05")
    assert told(memory_write(msg_type="memory_write")) == ("msg_type", "HIO-D2-01")
    assert told(memory_write(payload="00")) == ("payload", "HIO-D5-25")
    assert told(memory_read(payload="00")) == ("payload", "AMB-HIO-15")
    assert told(memory_write(dst_pa=-1)) == ("dst_pa", "HIO-D5-06")
    assert told(memory_write(pattern={"pattern_kind": "fill_u32"})) == ("pattern.value", "HIO-D5-20")
    assert told(memory_write(pattern={"pattern_kind": "fill_u64", "value": 1})) == ("pattern.pattern_kind", "HIO-D5-12")
    assert told(memory_write(pattern=None)) == ("pattern", "HIO-D5-11")
    assert told(memory_write(nbytes=6)) == ("nbytes", "HIO-D5-07")
    assert told(memory_write(value=2**32)) == ("pattern.value", "HIO-D5-19")
    assert told(memory_write(value=True)) == ("pattern.value", "HIO-D5-19")
    assert told(memory_write(dst_pa=2**64 - 63)) == ("dst_pa", "HIO-D5-06")
    assert told(memory_write(dst_mem_kind="SRAM")) == ("dst_mem_kind", "HIO-D5-31")
    assert told(memory_read(dst_kind="file")) == ("dst_kind", "HIO-D6-15")


def test_a_refusal_of_a_launch_names_the_argument(kernel_launch: Build, tensor: Build) -> None:
    scalar = {"arg_kind": "scalar", "dtype": "i32", "value": 3}
    assert told(kernel_launch(args=[scalar, {**scalar, "arg_kind": "vector"}])) == ("args[1].arg_kind", "HIO-D7-49")
    assert told(kernel_launch(args=[{}])) == ("args[0].arg_kind", "HIO-D7-49")
    assert told(kernel_launch(args=[scalar, 7])) == ("args[1]", "HIO-D7-04")
    assert told(kernel_launch(args=[{**scalar, "dtype": "bf16"}])) == ("args[0].dtype", "HIO-D7-26")
    assert told(kernel_launch(args=[{**scalar, "value": True}])) == ("args[0].value", "HIO-D7-27")
    shards = tensor([(0, 0, 0), (0, 0, -1)])
    assert told(kernel_launch(args=[shards])) == ("args[0].tensor_pa_map.shards[1].pe", "HIO-D7-21")
    assert told(kernel_launch(args=[tensor([])])) == ("args[0].tensor_pa_map.shards", "HIO-D7-18")
    assert told(kernel_launch(kernel={"source": "x"})) == ("kernel_ref.source", "HIO-D7-14, HIO-D7-15")
    assert told(kernel_launch(kernel={"kind": "deployed", "nbytes_code": 1})) == ("kernel_ref.deploy_pa", "HIO-D7-08")
    assert told(kernel_launch(failure_policy="retry")) == ("failure_policy", "HIO-D7-50")
    assert told(kernel_launch(data=[1])) == ("data", "HIO-D7-33")
    assert told(kernel_launch(meta={"a": "b" * 4096})) == ("meta", "HIO-D7-33")


EDGES = (
    *(None, True, 0, -1, 0.5, 1e30, 255, 256, 65535, 65536, 2**32 - 1, 2**32, 65519, 65520, -65520),
    *(2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1),
    *(2**128 - 2**103 - 1, 2**128 - 2**103, -(2**128) + 2**103, Decimal("65519.99"), Decimal("1e-400")),
)
"""Values at the ends of the ranges of dtypes."""


def disagreeing(memory_write: Build, kernel_launch: Build) -> Iterator[Message]:
    """Messages whose members may disagree, in ways that a schema can say."""
    kinds = ("zero", "fill_u8", "fill_u16", "fill_u32", "fill_fp16", "fill_fp32")
    for kind in kinds:
        yield memory_write(pattern={"pattern_kind": kind})
        yield from (memory_write(pattern={"pattern_kind": kind, "value": value}) for value in EDGES)
        yield from (memory_write(pattern={"pattern_kind": kind, "value": 1}, nbytes=nbytes) for nbytes in range(1, 9))
    for source in ("pattern", "host_buffer_ref"):
        yield from (memory_write(src_kind=source, pattern=pattern) for pattern in (None, {"pattern_kind": "zero"}))
    for kind, pa, nbytes in itertools.product(("deployed", "builtin"), (None, 0, 1), (0, 1)):
        yield kernel_launch(kernel={"kind": kind, "deploy_pa": pa, "nbytes_code": nbytes})
    for dtype, value in itertools.product(("i32", "i64", "fp16", "fp32", "bool"), EDGES):
        yield kernel_launch(args=[{"arg_kind": "scalar", "dtype": dtype, "value": value}])


def test_the_published_schema_refuses_members_that_disagree(memory_write: Build, kernel_launch: Build) -> None:
    """It refuses the messages that the endpoint refuses, which names the member and its clause."""
    schema = json.loads((ROOT / "schemas" / "host_io.schema.json").read_text("utf-8"))
    judges = {
        kind: Draft202012Validator({"$ref": f"#/$defs/{definition}", "$defs": schema["$defs"]})
        for kind, definition in (("MemoryWrite", "memory_write"), ("KernelLaunch", "kernel_launch"))
    }
    said, reasons = [], set()
    for message in disagreeing(memory_write, kernel_launch):
        reason = judged(message, fast=False)
        said.append((judges[message["msg_type"]].is_valid(message), reason is None, message))
        reasons.add("" if reason is None else reason.split(":")[0] + reason[reason.rindex(" (") :])
    assert [pair for pair in said if pair[0] != pair[1]] == []
    assert sum(not valid for valid, _, _ in said) > 101
    assert reasons == {
        *("", "pattern (HIO-D5-10)", "pattern (HIO-D5-11)", "pattern.value (HIO-D5-19)", "pattern.value (HIO-D5-20)"),
        *("nbytes (HIO-D5-07)", "args[0].value (HIO-D7-27)", "kernel_ref.deploy_pa (HIO-D7-07)"),
        *("kernel_ref.deploy_pa (HIO-D7-08)", "kernel_ref.nbytes_code (HIO-D7-12)"),
    }


def test_a_million_digits_take_no_time() -> None:
    assert rounded(Decimal("0." + "3" * 1_000_000), "fp32") == float(np.float32(1 / 3))


ROOT = Path(__file__).parents[2]


def test_what_is_made_from_the_schema_is_current() -> None:
    outputs = runpy.run_path(str(ROOT / "docs" / "draw_host_messages.py"))["outputs"]()
    stale = [path.name for path, text in outputs.items() if path.read_text(encoding="utf-8") != text]
    assert stale == [], "run `python docs/draw_host_messages.py`"


def test_the_schema_is_one() -> None:
    schema = json.loads((ROOT / "schemas" / "host_io.schema.json").read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)


def test_its_clauses_are_in_the_registry() -> None:
    text = (ROOT / "schemas" / "host_io.schema.json").read_text(encoding="utf-8")
    known = (ROOT / "conformance" / "clauses" / "host_io.toml").read_text(encoding="utf-8")
    schema = json.loads(text)["$defs"]
    stated = {
        clause
        for member in schema.values()
        for node in (member, *member.get("properties", {}).values())
        for clause in node.get("x-clauses", ())
    }
    assert len(stated) > 90
    assert [clause for clause in sorted(stated) if f'id = "{clause}"' not in known] == []


DOCS = Path(__file__).parents[2] / "docs"


def test_the_frames_on_the_page_are_current() -> None:
    script = runpy.run_path(str(DOCS / "draw_host_frames.py"))
    written = (DOCS / "host_io.md").read_text(encoding="utf-8")
    assert written == script["page"](written), "run `python docs/draw_host_frames.py`"
