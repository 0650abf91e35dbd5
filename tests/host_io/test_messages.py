"""Frames and messages: read without loss or refused by name, fills in exact fractions, texts made from a schema."""

from __future__ import annotations

import copy
import itertools
import json
import random
import runpy
import struct
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tessera_reference.host_io.errors import InvalidFrame, RequestFailed
from tessera_reference.host_io.frames import read_frame, request_of, value_of, write_frame
from tessera_reference.host_io.machine import PAGE, SparseMemory
from tessera_reference.host_io.patterns import MinusZero, bytes_of, overflows, rounded

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
    ("text", "number"),
    [
        ("64", 64),
        ("64.0", 64),
        ("6.4e1", 64),
        ("6.4E+0000000000001", 64),
        ("640e-0000000000001", 64),
        ("640e-1", 64),
        ("0.0", 0),
        ("0e99999999999999999999", 0),
        ("-0", MinusZero()),
        ("-0e-99999999999999999999", Decimal("-0")),
        ("-0.0", Decimal("-0.0")),
        ("0.1", Decimal("0.1")),
        ("18446744073709551615", 2**64 - 1),
        ("1.8446744073709551615e19", 2**64 - 1),
        ("9007199254740993", 2**53 + 1),
        ("1e-400", Decimal("1e-400")),
    ],
)
def test_a_number_is_what_is_written(text: str, number: int | Decimal) -> None:
    found = read_frame(f'{{"a": {text}}}')["a"]
    assert (type(found), str(found)) == (type(number), str(number)) or (found, type(found)) == (number, type(number))


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
    found = read_frame(f'{{"a": {text}}}')["a"]
    assert isinstance(found, Decimal)
    assert found.is_finite()


def test_a_text_may_hold_any_character() -> None:
    assert read_frame(r'{"a": "\ud83d\ude00 \u0000 \u2028"}') == {"a": "\U0001f600 \0 \u2028"}


VALUES: Any = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('ab\n"', max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text("xyz", min_size=1), VALUES, max_size=4))
def test_an_object_is_read_as_it_was_written(value: dict[str, Any]) -> None:
    text = write_frame(value)
    assert "\n" not in text
    assert read_frame(text) == value == json.loads(text)


@given(st.decimals(allow_nan=False, allow_infinity=False))
def test_a_number_is_written_with_all_its_digits(number: Decimal) -> None:
    text = write_frame({"a": [number, "b"]})
    kept = json.loads(text, parse_float=Decimal, parse_int=Decimal)["a"][0]
    assert (kept, kept.is_signed()) == (number, number.is_signed())


@pytest.mark.parametrize("value", [Decimal("NaN"), Decimal("Infinity"), float("nan"), object()])
def test_what_json_has_not_is_not_written(value: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        write_frame({"a": value})


Message: TypeAlias = dict[str, Any]
Build: TypeAlias = Callable[..., Message]
IDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=256)
TAGS = st.integers(0, 2**31 - 1)
ADDRESSES = st.integers(0, 2**63)
SIZES = st.integers(1, 2**63).map(lambda size: size * 4 % 2**63 or 4)
LABELS = st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
ENVELOPE: dict[str, Any] = {"correlation_id": IDS, "request_id": IDS, "target_device": IDS}
OPTIONS: dict[str, Any] = {"timestamp_tag": LABELS, "debug_label": LABELS}
SHARDS = st.fixed_dictionaries(
    {"sip": TAGS, "cube": TAGS, "pe": TAGS, "pa": ADDRESSES, "nbytes": SIZES, "offset_bytes": ADDRESSES}
)
NUMBERS = st.decimals(-1000, 1000, allow_nan=False, places=4)
ARGUMENTS = st.one_of(
    st.builds(
        lambda shards: {"arg_kind": "tensor", "tensor_pa_map": {"shards": shards}},
        st.lists(SHARDS, min_size=1, max_size=3),
    ),
    st.builds(
        lambda dtype, value: {"arg_kind": "scalar", "dtype": dtype, "value": value},
        st.sampled_from(["fp16", "fp32"]),
        NUMBERS,
    ),
    st.just({"arg_kind": "scalar", "dtype": "bool", "value": True}),
    st.just({"arg_kind": "scalar", "dtype": "i64", "value": -(2**63)}),
)
WRITES = st.fixed_dictionaries(
    {
        "msg_type": st.just("MemoryWrite"),
        **ENVELOPE,
        **dict.fromkeys(("dst_sip", "dst_cube", "dst_pe"), TAGS),
        "dst_pa": ADDRESSES,
        "nbytes": SIZES,
        "src_kind": st.just("pattern"),
        "pattern": st.fixed_dictionaries({"pattern_kind": st.just("fill_fp32"), "value": NUMBERS}),
    },
    optional={**OPTIONS, "dst_mem_kind": st.sampled_from(["HBM", "TCM", "AUTO", None])},
)
READS = st.fixed_dictionaries(
    {
        "msg_type": st.just("MemoryRead"),
        **ENVELOPE,
        **dict.fromkeys(("src_sip", "src_cube", "src_pe"), TAGS),
        "src_pa": ADDRESSES,
        "nbytes": SIZES,
    },
    optional={**OPTIONS, "dst_kind": st.sampled_from(["host_sink", "discard", None])},
)
LAUNCHES = st.fixed_dictionaries(
    {
        "msg_type": st.just("KernelLaunch"),
        **ENVELOPE,
        "kernel_ref": st.fixed_dictionaries(
            {
                "name": IDS,
                "kind": st.just("deployed"),
                "deploy_pa": ADDRESSES,
                "nbytes_code": SIZES,
                **dict.fromkeys(("deploy_sip", "deploy_cube", "deploy_pe"), TAGS),
            }
        ),
        "args": st.lists(ARGUMENTS, max_size=3),
    },
    optional={
        **OPTIONS,
        "grid": st.none() | st.dictionaries(st.text("xyz"), NUMBERS, max_size=2),
        "failure_policy": st.sampled_from(["fail_fast", "collect_all", None]),
    },
)


@given(WRITES | READS | LAUNCHES)
def test_a_message_survives_the_way_to_text_and_back(value: Message) -> None:
    request = request_of(read_frame(write_frame(value)))
    assert request_of(read_frame(write_frame(value_of(request)))) == request


def test_what_has_its_default_is_left_out(memory_write: Build, memory_read: Build) -> None:
    full = {"dst_mem_kind": "AUTO", "timestamp_tag": None, "debug_label": None}
    assert value_of(request_of(memory_write(**full))) == memory_write()
    assert value_of(request_of(memory_read(dst_kind=None))) == memory_read()


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
        return failure.message
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
    assert [each for each in refused if "HIO-" not in each] == []


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
        yield from (memory_write(src_kind=source, pattern=each) for each in (None, {"pattern_kind": "zero"}))
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
    assert [each for each in said if each[0] != each[1]] == []
    assert sum(not valid for valid, _, _ in said) > 101
    assert reasons == {
        *("", "pattern (HIO-D5-10)", "pattern (HIO-D5-11)", "pattern.value (HIO-D5-19)", "pattern.value (HIO-D5-20)"),
        *("nbytes (HIO-D5-07)", "args[0].value (HIO-D7-27)", "kernel_ref.deploy_pa (HIO-D7-07)"),
        *("kernel_ref.deploy_pa (HIO-D7-08)", "kernel_ref.nbytes_code (HIO-D7-12)"),
    }


FORMATS = {"fp16": ("<e", np.float16), "fp32": ("<f", np.float32)}


@pytest.mark.parametrize("dtype", FORMATS)
@given(st.decimals(-70000, 70000, allow_nan=False, places=12) | st.floats(-60000, 60000).map(Decimal))
def test_a_number_is_rounded_once_to_the_nearest_even(dtype: str, value: Decimal) -> None:
    """No neighbour is nearer, by exact fractions; of two that are as near, the mantissa is even."""
    if overflows(value, dtype):
        assert dtype == "fp16"
        assert abs(value) >= 65520
        return
    code, kind = FORMATS[dtype]
    (found,) = struct.unpack(code, bytes_of(value, dtype))
    error = abs(Fraction(found) - Fraction(value))
    for side in (-np.inf, np.inf):
        other = float(np.nextafter(kind(found), kind(side)))
        if np.isfinite(other):
            distance = abs(Fraction(other) - Fraction(value))
            assert error < distance or (error == distance and bytes_of(value, dtype)[0] % 2 == 0)


@pytest.mark.parametrize(("dtype", "bits"), [("fp32", "00000080"), ("fp16", "0080"), ("i32", "00000000")])
def test_minus_zero_is_a_whole_number_and_keeps_its_sign_in_floats(dtype: str, bits: str) -> None:
    number = read_frame('{"value":-0}')["value"]
    assert isinstance(number, int)
    assert number == 0
    assert bytes_of(number, dtype).hex() == bits


@pytest.mark.parametrize(
    ("dtype", "text", "bits"),
    [
        ("fp32", "1.00000005960464477539062500", 0x3F800000),
        ("fp32", "1.00000005960464477539062501", 0x3F800001),
        ("fp32", "1.000000059604644775390625" + "0" * 900 + "1", 0x3F800001),
        ("fp32", "1.17549428e-38", 0x007FFFFF),
        ("fp32", "7.006492321624085e-46", 0x00000000),
        ("fp32", "-1e-999999", 0x80000000),
        ("fp32", "-0.0", 0x80000000),
        ("fp16", "65519.99", 0x7BFF),
        ("fp16", "2.98023223876953125e-8", 0x0000),
        ("fp16", "2.98023223876953126e-8", 0x0001),
        ("fp16", "-0.1", 0xAE66),
    ],
)
def test_borders_of_rounding(dtype: str, text: str, bits: int) -> None:
    """Halfway cases, subnormals and zeros; a decimal far behind decides, where fp64 in between would not."""
    size = {"fp16": 2, "fp32": 4}[dtype]
    assert bytes_of(Decimal(text), dtype) == bits.to_bytes(size, "little")


@pytest.mark.parametrize(
    ("dtype", "text", "beyond"),
    [
        ("fp16", "65520", True),
        ("fp16", "65519.999999999", False),
        ("fp32", "340282356779733661637539395458142568447", False),
        ("fp32", "340282356779733661637539395458142568448", True),
        ("fp32", "-1e999999", True),
    ],
)
def test_past_the_largest_there_is_none(dtype: str, text: str, beyond: bool) -> None:
    assert overflows(Decimal(text), dtype) == beyond


def test_a_million_digits_take_no_time() -> None:
    assert rounded(Decimal("0." + "3" * 1_000_000), "fp32") == float(np.float32(1 / 3))


SIZE = 4 * PAGE
STEPS = st.tuples(
    st.integers(0, SIZE - 1) | st.sampled_from([PAGE - 1, PAGE, 2 * PAGE + 1]),
    st.integers(1, SIZE) | st.integers(1, 20),
    st.sampled_from([b"\1", b"\2\3", b"\4\5\6\7"]),
    st.booleans(),
)


@given(st.lists(STEPS, max_size=6))
def test_memory_is_an_array_of_bytes(steps: list[tuple[int, int, bytes, bool]]) -> None:
    memory, plain, written = SparseMemory(), bytearray(SIZE), bytearray(SIZE)
    for pa, count, element, fills in steps:
        nbytes = min(count, SIZE - pa) // len(element) * len(element)
        data = element * (nbytes // len(element))
        if fills and nbytes:
            memory.fill(pa, nbytes, element)
        else:
            memory.write(pa, data)
        plain[pa : pa + nbytes] = data
        written[pa : pa + nbytes] = b"\1" * nbytes
        assert memory.read(0, SIZE) == plain
        assert memory.read(pa, nbytes) == data
        assert memory.was_written(pa, SIZE - pa) == all(written[pa:])


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
        for each in schema.values()
        for node in (each, *each.get("properties", {}).values())
        for clause in node.get("x-clauses", ())
    }
    assert len(stated) > 90
    assert [clause for clause in sorted(stated) if f'id = "{clause}"' not in known] == []


DOCS = Path(__file__).parents[2] / "docs"


def test_the_frames_on_the_page_are_current() -> None:
    script = runpy.run_path(str(DOCS / "draw_host_frames.py"))
    written = (DOCS / "host_io.md").read_text(encoding="utf-8")
    assert written == script["page"](written), "run `python docs/draw_host_frames.py`"
