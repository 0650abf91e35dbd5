"""`smoke` asks about what is claimed, and says of each answer whether it is right."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tessera_conformance.adapter import Refusal
from tessera_conformance.cli import main
from tessera_conformance.tensors import Tensor

FAKES = Path(__file__).parent / "fakes"


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(FAKES)


def smoke(capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, dict[str, list[str]]]:
    """The exit code, and what was said of each method."""
    code = main(["smoke", *options])
    told: dict[str, list[str]] = {}
    for line in capsys.readouterr().out.splitlines():
        method, _, what = line.partition(" ")
        told.setdefault(method, []).append(what.strip())
    return code, told


def test_every_document_that_is_claimed_is_asked(capsys: pytest.CaptureFixture[str]) -> None:
    code, told = smoke(capsys, "--impl=reference")
    assert code == 0
    assert {"language.execute", "numerics.evaluate", "abi.parameter_layout", "tessMemcpyAsync"} < told.keys()
    assert {"collectives.all_reduce", "host_io.describe", "wsp.execute"} < told.keys()
    assert all(
        answer.startswith("right, ")
        for method, answers in told.items()
        for answer in answers[method == "session.open" :]
    )


def test_what_is_not_claimed_is_not_asked(capsys: pytest.CaptureFixture[str]) -> None:
    _, told = smoke(capsys, "py:echo:Echo")
    assert set(told) == {"session.open", "language.parse", "language.verify", "language.execute"}


def test_a_wrong_answer_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """Echo hands back its input, where A + A was asked for."""
    code, told = smoke(capsys, "py:echo:Echo")
    assert code == 1
    (answer,) = told["language.execute"]
    assert answer.startswith("wrong, A + A: ") and "3f800000" in answer and "40000000" in answer


class Machine:
    """Copies bytes within itself, and does not tell its devices."""

    def __init__(self) -> None:
        self._memory: dict[int, bytes] = {}

    def hello(self) -> dict[str, object]:
        return {
            "protocol": {"minimum": 1, "maximum": 1},
            "implementation": {"name": "machine", "version": "1"},
            "documents": ["runtime_abi"],
        }

    def runtime_tessMeshCreate(self, *, context: int, deviceIds: list[int], **_: object) -> dict[str, int]:  # noqa: N802, N803
        if not context:
            raise Refusal("TESS_ERR_INVALID_VALUE", "call", "no context")
        return {"mesh": 1 + deviceIds[0]}

    def runtime_tessMalloc(self, *, bytes: int, **_: object) -> dict[str, int]:  # noqa: N802
        self._memory[len(self._memory) + 1] = b""
        return {"devPtr": len(self._memory)}

    def runtime_tessxHostMemory(self, *, bytes: int, **_: object) -> dict[str, int]:  # noqa: N802
        return {"hostPtr": self.runtime_tessMalloc(bytes=bytes)["devPtr"]}

    def runtime_tessxHostWrite(self, *, hostPtr: int, data: str) -> dict[str, int]:  # noqa: N802, N803
        self._memory[hostPtr] = bytes.fromhex(data)
        return {}

    def runtime_tessxHostRead(self, *, hostPtr: int, **_: object) -> dict[str, str]:  # noqa: N802, N803
        return {"data": self._memory[hostPtr].hex()}

    def runtime_tessMemcpyAsync(self, *, dst: int, src: int, **_: object) -> dict[str, int]:  # noqa: N802
        self._memory[dst] = self._memory[src]
        return {}

    def runtime_tessInit(self) -> dict[str, int]:  # noqa: N802
        return {"context": 1}

    def runtime_tessStreamCreate(self, **_: object) -> dict[str, int]:  # noqa: N802
        return {"stream": 1}

    def runtime_tessStreamSynchronize(self, **_: object) -> dict[str, int]:  # noqa: N802
        return {}

    def runtime_tessShutdown(self, **_: object) -> dict[str, int]:  # noqa: N802
        return {}


def test_a_machine_that_does_not_tell_its_devices_has_the_first(capsys: pytest.CaptureFixture[str]) -> None:
    _, told = smoke(capsys, f"py:{__name__}:Machine")
    assert told["tessMemcpyAsync"] == ["right, eight bytes to the device and back"]


def test_what_an_adapter_raises_is_told_without_the_frames_of_the_harness(capsys: pytest.CaptureFixture[str]) -> None:
    _, told = smoke(capsys, f"py:{__name__}:Short")
    assert told["language.execute"] == [
        "crash, A + A: MalformedTensor: fp32 of shape [2] takes 8 bytes, but 3 were given"
    ]
    (frames,) = (lines for method, lines in told.items() if not method)
    assert [line for line in frames if "File" in line and Path(__file__).name not in line] == []


class Short:
    """Answers with fewer bytes than the shape has."""

    def hello(self) -> dict[str, object]:
        return {
            "protocol": {"minimum": 1, "maximum": 1},
            "implementation": {"name": "short", "version": "1"},
            "documents": ["language_ir"],
            "capabilities": {"execution": "enforced"},
        }

    def language_execute(self, **_: object) -> dict[str, object]:
        return {"outputs": [Tensor("fp32", (2,), b"abc")]}


def test_an_unknown_feature_is_told_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    code, told = smoke(capsys, "py:claims_a_typo:ClaimsATypo", "--door=operations")
    assert code == 1
    assert re.search(
        "wrong: .*'extra_dtypes', which is no feature; did you mean extra-dtypes.; `tessera-conformance clauses",
        told["session.open"][1],
    )


def test_by_operations_no_program_is_asked(capsys: pytest.CaptureFixture[str]) -> None:
    _, told = smoke(capsys, "--impl=reference", "--door=operations")
    assert not [method for method in told if method.startswith("language.")]
    assert told["numerics.evaluate"] == ["right, an addition"]


@pytest.mark.parametrize("options", [[], ["reference", "--impl=reference"]])
def test_one_implementation_is_named(capsys: pytest.CaptureFixture[str], options: list[str]) -> None:
    assert main(["smoke", *options]) == 2
    assert "implementations are named; expected one, --impl and one of reference, " in capsys.readouterr().err
