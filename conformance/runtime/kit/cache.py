"""The cache on disk: contexts that use a directory, its entries, hits and misses of launches (spec 8.2).

A *use* is the work of an application: a new context under TESS_CACHE_DIR, a module, one launch, a synchronization.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tessera_conformance.check import Check
from tessera_conformance.protocol import Observation, Returned
from tessera_conformance.session import Implementation

from .encoding import packed, values_of
from .mesh_session import CONFIGURATION, MeshSession, axes_of, compiled, devices, opened

FILL = """module caching {
  kernel fill(N: int32, v: int32, x: tensor<Nxint32>) { x[0:N] = v; }
  kernel clear(N: int32, v: int32, x: tensor<Nxint32>) { x[0:N] = v - v; }
}
"""
"""Kernels over N elements."""


def caching(impl: Implementation, check: Check, directory: Path, ranks: int = 1, **variables: str) -> MeshSession:
    """Return a new context, with its mesh and stream, that stores results in a directory."""
    chosen = {"TESS_CACHE_DIR": str(directory), **variables}
    check.returns(impl.runtime.tessxSetEnvironment(variables=chosen), "the environment is set")
    return opened(impl, check, ranks)


def filled(session: MeshSession, image: str, count: int = 64, value: int = 7, kernel: str = "fill", **cfg: Any) -> int:
    """Load a module, fill elements, and return their common value."""
    module = session.ask("tessModuleLoad", context=session.context, image=image)["module"]
    pointer = session.allocate(4 * count)
    arguments = packed(("int32", count), ("int32", value), ("ptr", pointer))
    session.launch(session.kernel_of(module, kernel), arguments, **cfg)
    found = values_of("int32", session.download(pointer, 4 * count))
    session.check.equal(len(set(found)), 1, "the number of values in the tensor")
    return int(found[0])


def used(session: MeshSession) -> tuple[int, int]:
    """Return the hits and misses since the context was made."""
    counts = session.ask("tessxCacheUse")
    return counts["hits"], counts["misses"]


def entries(session: MeshSession, kind: str = "binary") -> Sequence[Mapping[str, Any]]:
    """Return the entries of one kind."""
    return [entry for entry in session.ask("tessxCacheEntries")["entries"] if entry["kind"] == kind]


def ended(session: MeshSession) -> None:
    """End the context, whose cache in memory is lost."""
    session.close()


def use(impl: Implementation, check: Check, directory: Path, image: str, **stated: Any) -> tuple[int, int]:
    """Make one whole use, check its result, and return its hits and misses."""
    session = caching(impl, check, directory)
    check.equal(filled(session, image, **stated), stated.get("value", 7), "what the kernel has written")
    counted = used(session)
    ended(session)
    return counted


def first_refusal(impl: Implementation, check: Check, directory: Path, image: str) -> Observation:
    """Return the answer of the first failing call of a use, or of its last call if all succeed."""
    variables = {"TESS_CACHE_DIR": str(directory)}
    check.returns(impl.runtime.tessxSetEnvironment(variables=variables), "the environment is set")
    ids = devices(impl, check, 1)
    runtime = impl.runtime
    found: dict[str, Any] = {}

    def step(function: str, /, **arguments: Any) -> Observation:
        observation: Observation = getattr(runtime, function)(**arguments)
        found.update(observation.value if isinstance(observation, Returned) else {})
        return observation

    steps: list[Callable[[], Observation]] = [
        lambda: step("tessInit"),
        lambda: step("tessMeshCreate", context=found["context"], deviceIds=ids, axes=axes_of(dp=1)),
        lambda: step("tessStreamCreate", mesh=found["mesh"], priority=0),
        lambda: step("tessMalloc", mesh=found["mesh"], bytes=256),
        lambda: step("tessModuleLoad", context=found["context"], image=image),
        lambda: step("tessKernelGet", module=found["module"], name="fill"),
        lambda: step(
            "tessLaunch",
            kernel=found["kernel"],
            mesh=found["mesh"],
            cfg=dict(CONFIGURATION),
            argBuffer=packed(("int32", 64), ("int32", 7), ("ptr", found["devPtr"])).hex(),
            stream=found["stream"],
        ),
        lambda: step("tessStreamSynchronize", stream=found["stream"]),
    ]
    for call_step in steps:
        observation = call_step()
        if not isinstance(observation, Returned):
            return observation
    return observation


def image_of(impl: Implementation, check: Check, source: str = FILL, **options: Any) -> str:
    """Return the image of a program."""
    return compiled(impl, check, source, **options)
