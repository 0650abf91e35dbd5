"""A runtime in use, which the tests of the runtime share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tessera_reference.abi.status import Status
from tessera_reference.compilation.images import compile_module
from tessera_reference.mesh.topology import MeshAxes
from tessera_reference.runtime.api import Runtime
from tessera_reference.runtime.launches import LaunchConfig

SOURCE = """module kernels {
  mesh pair = mesh<axes=[dp], shape=[2]>;
  kernel fill(v: int32, x: tensor<8xint32>) { x[0:8] = v; }
  kernel digit(v: int32, x: tensor<8xint32>) { x = x * 10 + v; }
  kernel any(N: int32, x: tensor<Nxint32>) { x = x + 1; }
  kernel truth(x: tensor<4xbool>) { x[0:2] = true; }
  kernel twice(x: tensor<2xfp32>) { x = x * 2; }
  kernel met(x: tensor<8xint32>) { x = dist.all_reduce(x, axis=dp, op="sum"); }
}
"""


class Used:
    """A runtime with a context, a mesh of the first devices along dp, a stream, and 256 bytes of memory."""

    def __init__(self, ranks: int = 2, image: bytes = b"", **arguments: Any) -> None:
        self.runtime = Runtime(**arguments)
        self.image = image
        self.context = self.ask("tessInit")
        self.mesh = self.ask("tessMeshCreate", self.context, list(range(ranks)), ranks, MeshAxes(dp=ranks))
        self.stream = self.ask("tessStreamCreate", self.mesh, 0)
        self.memory = self.ask("tessMalloc", self.mesh, 256)

    def ask(self, function: str, *arguments: Any, **named: Any) -> Any:
        """Return the value of a call that has to succeed."""
        answer = getattr(self.runtime, function)(*arguments, **named)
        status, value = answer if isinstance(answer, tuple) else (answer, None)
        assert status is Status.TESS_OK, self.runtime.last_error
        return value

    def refused(self, function: str, *arguments: Any, **named: Any) -> Status:
        """The status of a call that has to fail, and to say so in its own name."""
        answer = getattr(self.runtime, function)(*arguments, **named)
        status = answer[0] if isinstance(answer, tuple) else answer
        assert status is not Status.TESS_OK
        assert isinstance(status, Status)
        return status

    def kernel(self, name: str) -> int:
        """A kernel of `SOURCE`."""
        module = self.ask("tessModuleLoad", self.context, self.image, len(self.image))
        return int(self.ask("tessKernelGet", module, name))

    def launch(self, kernel: int, arguments: bytes, stream: int | None = None, flags: int = 0) -> None:
        """Queue a launch."""
        on = self.stream if stream is None else stream
        config = LaunchConfig((1, 1, 1), flags=flags)
        self.ask("tessLaunch", kernel, self.mesh, config, arguments, len(arguments), on)

    def issue(self, rank: int, stream: int, pointer: int | None = None) -> None:
        """Issue an all-reduce of two int32 on one rank."""
        at = self.memory if pointer is None else pointer
        self.ask("tessxIssue", self.mesh, rank, "all_reduce", at, 2, 9, stream, op=0, axis="dp")


@pytest.fixture(scope="session")
def image() -> bytes:
    """The module image of `SOURCE`."""
    return compile_module(SOURCE, ["sm_90"])


@pytest.fixture(name="used")
def fixture_used(image: bytes) -> Callable[..., Used]:
    """Makes a runtime in use."""
    return lambda ranks=2, **arguments: Used(ranks, image, **arguments)
