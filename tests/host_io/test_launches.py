"""Launches: built-in kernels, deployed images, the checks before anything runs, failure policies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pytest

from tessera_reference.compilation.images import compile_module
from tessera_reference.host_io.endpoint import Endpoint
from tessera_reference.host_io.machine import Place

Message: TypeAlias = dict[str, Any]
Build: TypeAlias = Callable[..., Message]
Ask: TypeAlias = Callable[..., list[Message]]

PLACES = [(1, 1, 3), (0, 0, 1), (0, 1, 0), (0, 0, 0)]
DOWN = [(0, 1, 0), (1, 1, 3)]
SEVEN = {"arg_kind": "scalar", "dtype": "i32", "value": 7}
HALF = {"arg_kind": "scalar", "dtype": "fp32", "value": 0.5}


def codes(answers: list[Message]) -> list[str | None]:
    return [each["completion"]["error_code"] for each in answers]


def filled(endpoint: Endpoint, pa: int = 0) -> set[tuple[int, int, int]]:
    """The places whose memory begins with sevens."""
    machine = endpoint.machine
    return {tuple(each) for each in machine.places() if machine.space(each).read(pa, 64) == b"\7\0\0\0" * 16}


def test_work_goes_where_the_shards_say(endpoint: Endpoint, ask: Ask, kernel_launch: Build, tensor: Build) -> None:
    assert codes(ask(kernel_launch("fill", [tensor(PLACES), SEVEN]))) == [None]
    assert filled(endpoint) == set(PLACES)


def test_the_floats_of_the_kernels(endpoint: Endpoint, ask: Ask, kernel_launch: Build, tensor: Build) -> None:
    """A sum that rounds, one that is infinite, a NaN, subnormals; then halved; then copied."""
    a = np.array([1, 3e38, np.nan, 1e-45] * 4, "<f4")
    b = np.array([2**-24, 3e38, 1, -1e-45] * 4, "<f4")
    space = endpoint.machine.space(Place(0, 0, 1))
    space.write(0, a.tobytes())
    space.write(64, b.tobytes())
    here = [(0, 0, 1)]
    three = [tensor(here, 0), tensor(here, 64), tensor(here, 128)]
    assert codes(ask(kernel_launch("add_fp32", three))) == [None]
    assert codes(ask(kernel_launch("scale_fp32", [tensor(here, 0), HALF]))) == [None]
    assert codes(ask(kernel_launch("copy", [tensor(here, 128), tensor(here, 256)]))) == [None]
    expected = np.array([1, np.inf, np.nan, 0] * 4, "<f4")
    np.testing.assert_array_equal(np.frombuffer(space.read(128, 64), "<f4"), expected)
    assert space.read(256, 64) == space.read(128, 64)
    np.testing.assert_array_equal(
        np.frombuffer(space.read(0, 64), "<f4"), np.array([0.5, 1.5e38, np.nan, 0] * 4, "<f4")
    )


def test_the_nth_shards_belong_together_whatever_their_order(
    endpoint: Endpoint, ask: Ask, kernel_launch: Build, tensor: Build
) -> None:
    for number, place in enumerate(PLACES):
        endpoint.machine.space(Place(*place)).write(0, bytes([number]) * 64)
    source, target = tensor(PLACES), tensor(reversed(PLACES), 4096)
    assert codes(ask(kernel_launch("copy", [source, target]))) == [None]
    found = [endpoint.machine.space(Place(*place)).read(4096, 64) for place in PLACES]
    assert found == [bytes([number]) * 64 for number in range(4)]


@pytest.mark.parametrize(
    ("name", "sizes", "code"),
    [
        ("fill", (66,), "ARGUMENT_MISMATCH"),
        ("fill", (64, 64), "ARGUMENT_MISMATCH"),
        ("copy", (64, 60), "ARGUMENT_MISMATCH"),
        ("copy", (63, 63), None),
        ("copy", (64,), "ARGUMENT_MISMATCH"),
        ("sort", (64,), "UNKNOWN_KERNEL"),
        ("nop", (63, 1), None),
        ("nop", (), None),
    ],
)
def test_arguments_have_to_fit(
    ask: Ask, kernel_launch: Build, tensor: Build, name: str, sizes: tuple[int, ...], code: str | None
) -> None:
    arguments = [tensor(PLACES[:1], nbytes=each) for each in sizes]
    assert codes(ask(kernel_launch(name, [*arguments, *([SEVEN] if name == "fill" else [])]))) == [code]


def test_shards_that_do_not_belong_together_are_refused(ask: Ask, kernel_launch: Build, tensor: Build) -> None:
    others = kernel_launch("copy", [tensor(PLACES[:2]), tensor(PLACES[1:3], 4096)])
    fewer = kernel_launch("copy", [tensor(PLACES[:2]), tensor(PLACES[:1], 4096)])
    assert codes(ask(others, fewer)) == ["ARGUMENT_MISMATCH"] * 2


def test_a_kernel_reads_no_more_than_the_machine_bears(ask: Ask, kernel_launch: Build, tensor: Build) -> None:
    """A fill reads nothing."""
    whole = tensor(PLACES[:1], nbytes=1 << 30)
    assert codes(ask(kernel_launch("copy", [whole, whole]), kernel_launch("fill", [whole, SEVEN]))) == [
        "UNSUPPORTED",
        None,
    ]


@pytest.mark.parametrize("policy", ["fail_fast", "collect_all"])
def test_a_faulty_shard_stops_all_of_them(
    endpoint: Endpoint, ask: Ask, kernel_launch: Build, tensor: Build, policy: str
) -> None:
    """The lowest by SIP, cube and PE is told: here an address, then a place."""
    argument = tensor([(1, 1, 4), (0, 0, 1), (0, 1, 0)])
    argument["tensor_pa_map"]["shards"][2]["pa"] = 1 << 30
    (answer,) = ask(kernel_launch("fill", [argument, SEVEN], failure_policy=policy))
    assert answer["completion"]["error_code"] == "ADDRESS_OUT_OF_RANGE"
    assert answer["completion"]["error_message"].startswith("args[0].tensor_pa_map.shards[2]: ")
    assert filled(endpoint) == set()


def test_the_lowest_faulty_shard_is_told_of_all_tensors(ask: Ask, kernel_launch: Build, tensor: Build) -> None:
    """The second tensor's is lower than the first's."""
    (answer,) = ask(kernel_launch(args=[tensor([(9, 0, 0)]), tensor([(2, 9, 0)]), tensor([(2, 9, 0)])]))
    assert answer["completion"]["error_message"].startswith("args[1].")


@pytest.mark.parametrize(
    ("policy", "done"),
    [("fail_fast", PLACES[1:2] + PLACES[3:]), ("collect_all", PLACES[1:2] + PLACES[3:] + [(1, 1, 2)])],
)
def test_failure_policies(
    endpoint: Endpoint, ask: Ask, kernel_launch: Build, tensor: Build, policy: str, done: list[tuple[int, int, int]]
) -> None:
    endpoint.machine.failing = frozenset(Place(*each) for each in DOWN)
    launch = kernel_launch("fill", [tensor([(1, 1, 2), *PLACES]), SEVEN], failure_policy=policy)
    (answer,) = ask(launch)
    assert answer["completion"]["error_code"] == "PE_FAULT"
    assert "sip 0 cube 1 pe 0" in answer["completion"]["error_message"]
    assert filled(endpoint) == set(done)


def test_the_default_policy_is_fail_fast(endpoint: Endpoint, ask: Ask, kernel_launch: Build, tensor: Build) -> None:
    endpoint.machine.failing = frozenset(Place(*each) for each in DOWN)
    ask(kernel_launch("fill", [tensor([(1, 1, 2), *PLACES]), SEVEN]))
    assert (1, 1, 2) not in filled(endpoint)


CODE = {"kind": "deployed", "deploy_pa": 8192, "deploy_sip": 1, "nbytes_code": 64}


def test_a_kernel_deployed_by_a_pattern_computes_nothing(
    endpoint: Endpoint, ask: Ask, memory_write: Build, kernel_launch: Build, tensor: Build
) -> None:
    launch = kernel_launch("k", [tensor(PLACES), SEVEN], kernel=CODE)
    deploy = memory_write(dst_sip=1, dst_cube=0, dst_pe=0, dst_pa=8192, nbytes=60)
    rest = memory_write(dst_sip=1, dst_cube=0, dst_pe=0, dst_pa=8252, nbytes=4)
    answers = ask(launch, deploy, launch, rest, launch)
    assert codes(answers) == ["KERNEL_NOT_DEPLOYED", None, "KERNEL_NOT_DEPLOYED", None, None]
    assert filled(endpoint) == set()


SOURCE = """module m {
  kernel twice(X: tensor<3x5xfp32>, Y: tensor<3x5xfp32>) { Y = X + X; }
  kernel scaled(X: tensor<Nxfp32>, N: int32, Y: tensor<Nxfp32>) { Y = X + X; }
}
"""


@pytest.fixture(scope="module")
def image() -> bytes:
    return compile_module(SOURCE, ["sm_90"])


def test_an_image_runs_its_kernel_on_every_shard(
    endpoint: Endpoint, ask: Ask, memory_write: Build, kernel_launch: Build, tensor: Build, image: bytes
) -> None:
    code = {**CODE, "nbytes_code": len(image)}
    deploy = memory_write(
        src_kind="host_buffer_ref", pattern=None, dst_sip=1, dst_cube=0, dst_pe=0, dst_pa=8192, nbytes=len(image)
    )
    endpoint.share({("c", "r"): image})
    for number, place in enumerate(PLACES):
        endpoint.machine.space(Place(*place)).write(0, np.full(15, number + 0.25, "<f4").tobytes())
    pair = [tensor(PLACES, 0, 60), tensor(PLACES, 4096, 60)]
    extent = {"arg_kind": "scalar", "dtype": "i32", "value": 15}
    answers = ask(
        deploy,
        kernel_launch("twice", pair, kernel=code),
        kernel_launch("thrice", pair, kernel=code),
        kernel_launch("twice", pair[:1], kernel=code),
        kernel_launch("twice", [tensor(PLACES, 0, 64), tensor(PLACES, 4096, 64)], kernel=code),
        kernel_launch("scaled", [pair[0], extent, tensor(PLACES, 65536, 60)], kernel=code),
    )
    assert codes(answers) == [None, None, "UNKNOWN_KERNEL", "ARGUMENT_MISMATCH", "ARGUMENT_MISMATCH", None]
    for number, place in enumerate(PLACES):
        for pa in (4096, 65536):
            data = endpoint.machine.space(Place(*place)).read(pa, 60)
            np.testing.assert_array_equal(np.frombuffer(data, "<f4"), np.full(15, 2 * number + 0.5, "<f4"))


def test_a_broken_image_is_none(
    endpoint: Endpoint, ask: Ask, memory_write: Build, kernel_launch: Build, image: bytes
) -> None:
    endpoint.machine.space(Place(1, 0, 0)).write(8192, image[:-1] + b"\0")
    answers = ask(kernel_launch("twice", kernel={**CODE, "nbytes_code": len(image) - 8}))
    assert codes(answers) == ["KERNEL_NOT_DEPLOYED"]
