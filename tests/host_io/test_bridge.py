"""The runtime's operations as messages: the same bits, calls that cannot be expressed, and the command."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tessera_reference.abi.status import Status
from tessera_reference.cli import main
from tessera_reference.compilation.images import compile_module
from tessera_reference.host_io.bridge import Bridge, Exchange
from tessera_reference.host_io.endpoint import MOST_SUNK, Endpoint
from tessera_reference.host_io.frames import ErrorCode, RequestFailed
from tessera_reference.host_io.machine import Place
from tessera_reference.mesh.topology import MeshAxes
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import dtype
from tessera_reference.runtime.bridged import (
    EXAMPLES,
    NOT_EXPRESSED,
    BridgedRuntime,
    Comparison,
    run_example,
    run_kernel,
)
from tessera_reference.runtime.launches import LaunchConfig
from tessera_reference.runtime.state import FUNCTIONS

ROOT = Path(__file__).parents[2]

MESSAGES = "MemoryWrite", "MemoryRead", "KernelLaunch"


def sent(exchanges: Sequence[Exchange], kind: str) -> list[dict[str, Any]]:
    return [
        message for message in (json.loads(exchange.frame) for exchange in exchanges) if message["msg_type"] == kind
    ]


def compared(source: str, *inputs: dict[str, Array], endpoint: Endpoint | None = None) -> Comparison:
    return run_kernel(endpoint or Endpoint(), compile_module(source, ["sm_90"]), "k", inputs)


def array(name: str, *values: Any, shape: tuple[int, ...] | None = None) -> Array:
    return Array.checked(dtype(name), np.array(values).reshape(shape if shape is not None else (len(values),)))


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_has_the_same_bits_both_ways(name: str) -> None:
    comparison = run_example(name, Endpoint())
    assert comparison.equal
    assert len(comparison.outputs) >= 2
    assert all(any(output.own) for output in comparison.outputs)
    assert {json.loads(exchange.frame)["msg_type"] for exchange in comparison.exchanges} <= set(MESSAGES)


GAPS = {
    "fp64": ("x: fp64", array("fp64", 0.1, shape=()), "x is fp64, which no scalar argument is"),
    "int8": ("x: int8", array("int8", 3, shape=()), "x is int8, which no scalar argument is"),
    "infinite": ("x: fp32", array("fp32", np.inf, shape=()), "x is inf, which is no number of JSON"),
    "NaN": ("x: fp16", array("fp16", np.nan, shape=()), "x is nan, which is no number of JSON"),
}


@pytest.mark.parametrize("name", GAPS)
def test_a_scalar_that_no_message_has_is_a_gap(name: str) -> None:
    parameter, value, reason = GAPS[name]
    comparison = compared(f"module m {{ kernel k(A: tensor<2xfp32>, {parameter}) {{ A = A + A; }} }}", {"x": value})
    assert not comparison.equal
    assert comparison.gaps == [f"tessLaunch: UNSUPPORTED: the messages have no way to express kernel k: {reason}"]
    assert sent(comparison.exchanges, "KernelLaunch") == []


def test_a_tensor_without_bytes_is_a_gap() -> None:
    comparison = compared("module m { kernel k(A: tensor<0xfp32>) { A = A; } }", {})
    assert "A has no bytes" in comparison.gaps[0]


def test_ranks_that_meet_are_a_gap() -> None:
    source = """module m {
      mesh g = mesh<axes=[dp], shape=[2]>;
      kernel k(A: tensor<2xfp32>) { A = dist.all_reduce(A, axis=dp, op="sum"); }
    }"""
    comparison = compared(source, *({"A": array("fp32", rank, 1)} for rank in range(2)))
    assert comparison.gaps == ["tessLaunch: UNSUPPORTED: kernel_ref.name: kernel k has collectives"]


def test_memory_that_a_pe_has_not_is_a_gap() -> None:
    bridge = Bridge(Endpoint())
    bridge.allocate(1 << 44, 1 << 30)
    with pytest.raises(RequestFailed) as refused:
        bridge.allocate(1 << 45, 1)
    assert refused.value.code is ErrorCode.UNSUPPORTED
    with pytest.raises(RequestFailed, match="device 16 on a machine of 16 PEs"):
        bridge.places([16])


def test_a_large_read_is_brought_in_parts() -> None:
    bridge = Bridge(Endpoint())
    bridge.allocate(1 << 44, MOST_SUNK + 5)
    place = bridge.places([0])[0]
    bridge.write([place], 1 << 44, b"\x03" * (MOST_SUNK + 5))
    assert bridge.read(place, 1 << 44, MOST_SUNK + 5) == b"\x03" * (MOST_SUNK + 5)
    assert [message["nbytes"] for message in sent(bridge.exchanges, "MemoryRead")] == [MOST_SUNK, 5]


@pytest.fixture
def runtime() -> BridgedRuntime:
    return BridgedRuntime(Endpoint())


@pytest.fixture
def context(runtime: BridgedRuntime) -> int:
    return int(runtime.tessInit()[1])


@pytest.fixture
def mesh(runtime: BridgedRuntime, context: int) -> int:
    return int(runtime.tessMeshCreate(context, [0], 1, MeshAxes(dp=1))[1])


def test_calls_that_no_message_expresses_are_refused(runtime: BridgedRuntime) -> None:
    assert set(NOT_EXPRESSED) <= set(FUNCTIONS)
    for name, has_output in NOT_EXPRESSED.items():
        expected = (Status.TESS_ERR_UNSUPPORTED, None) if has_output else Status.TESS_ERR_UNSUPPORTED
        assert getattr(runtime, name)() == expected
        assert runtime.gaps[-1].startswith(f"{name}: UNSUPPORTED: ")


def test_work_that_is_captured_is_a_gap(runtime: BridgedRuntime, context: int, mesh: int) -> None:
    """The launch that begins a capture is work for later, and so is a copy after it."""
    image = compile_module("module m { kernel k(A: tensor<3xfp32>) { A = A + A; } }", ["sm_90"])
    module = runtime.tessModuleLoad(context, image, len(image))[1]
    stream, pointer = runtime.tessStreamCreate(mesh, 0)[1], runtime.tessMalloc(mesh, 12)[1]
    assert pointer is not None
    before = len(runtime.bridge.exchanges)
    config, buffer = LaunchConfig((1, 1, 1), flags=2), pointer.to_bytes(8, "little")
    kernel = runtime.tessKernelGet(module, "k")[1]
    unsupported = Status.TESS_ERR_UNSUPPORTED
    assert runtime.tessLaunch(kernel, mesh, config, buffer, 8, stream) is unsupported
    host = runtime.tessHostAlloc(12, 1)[1]
    assert runtime.tessMemcpyAsync(host, pointer, 12, 1, stream) is unsupported
    assert len(runtime.bridge.exchanges) == before


def test_a_call_that_the_runtime_refuses_sends_nothing(runtime: BridgedRuntime, context: int, mesh: int) -> None:
    assert runtime.tessMalloc(mesh, -1) == (Status.TESS_ERR_INVALID_VALUE, None)
    assert runtime.tessModuleLoad(context, b"TESSFBIN", 8)[0] is Status.TESS_ERR_INVALID_VALUE
    assert runtime.tessFree(mesh, 12) is Status.TESS_ERR_INVALID_VALUE
    assert (runtime.bridge.exchanges, runtime.gaps) == ([], [])


def test_a_pe_that_fails_is_told() -> None:
    endpoint = Endpoint()
    endpoint.machine.failing = frozenset([Place(0, 0, 1)])
    comparison = run_example("fill", endpoint)
    assert not comparison.equal
    assert comparison.gaps == ["tessMemcpyAsync: PE_FAULT: PE sip 0 cube 0 pe 1 failed"]


def test_the_command_shows_frames_and_the_comparison(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["host-io", "run", str(ROOT / "examples" / "attention.tsr"), "--ranks", "3", "--extent", "L=5"]) == 0
    lines = capsys.readouterr().out.splitlines()
    frames = [json.loads(line[2:]) for line in lines if line.startswith("> ")]
    assert {frame["msg_type"] for frame in frames} == set(MESSAGES)
    assert all(json.loads(line[2:])["completion"]["ok"] for line in lines if line.startswith("< "))
    expected = [f"r0 of rank {rank}: 1280 bytes, equal by the runtime and by messages" for rank in range(3)]
    assert lines[-3:] == expected


PROGRAM = """module m {
  kernel d(A: tensor<3xfp64>, x: fp64) { A = A * x; }
  func s(X: tensor<2xfp32>) -> fp32 { return 1.0; }
}
"""


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (
            ["--function", "d"],
            1,
            "not expressed: tessLaunch: UNSUPPORTED: the messages have no way to express kernel d",
        ),
        (["--function", "s"], 2, "@s cannot be made a kernel: a result is fp32"),
        (["--function", "d", "--ranks", "9"], 2, "--ranks is 9, expected 1 to 8"),
        (["--function", "d", "--extent", "L"], 2, "--extent 'L' is not of the form NAME=N, N from 1 to 999999999"),
        (["--function", "d", "--extent", "L=0"], 2, "--extent 'L=0' is not of the form"),
        ([], 2, "which function? use --function"),
    ],
)
def test_what_the_command_refuses(
    options: list[str], code: int, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "p.tsr"
    program.write_text(PROGRAM)
    assert main(["host-io", "run", str(program), *options]) == code
    shown = capsys.readouterr()
    assert message in shown.out + shown.err
