"""Messages from objects and back; the fast judge and the plain one refuse the same messages with the same words."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessera_reference.host_io.errors import RequestFailed
from tessera_reference.host_io.frames import read_frame, request_of, value_of, write_frame

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
    said = [(judged(each, True), judged(each, False)) for each in mutants(message, 400)]
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
    assert told(kernel_launch(data=[1])) == ("data", "HIO-D7-33")
    assert told(kernel_launch(meta={"a": "b" * 4096})) == ("meta", "HIO-D7-33")
