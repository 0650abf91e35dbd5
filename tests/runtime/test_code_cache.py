"""Executables in memory and in TESS_CACHE_DIR: hits, misses, policy (runtime spec 8.2; AMB-RT-22, AMB-RT-69)."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from tessera_reference.abi.fatbin import read, write
from tessera_reference.abi.status import Status
from tessera_reference.compilation.images import compile_module

Maker = Callable[..., Any]
LOOSE = {"stableReductions": 1, "deterministic": 0, "rngStateless": 1, "allowFastMath": 0}
STRICT = {"stableReductions": 1, "deterministic": 1, "rngStateless": 1, "allowFastMath": 0}

FORGED = "module kernels { kernel any(N: int32, x: tensor<Nxint32>) { x = x + 666; } }"


def counted(at: Any) -> tuple[int, int]:
    return at.runtime.code.hits, at.runtime.code.misses


def run(at: Any, kernel: int, count: int = 3) -> None:
    at.launch(kernel, struct.pack("<i4xQ", count, at.memory))
    at.ask("tessStreamSynchronize", at.stream)


def test_the_directory_is_asked_once_for_each_module_and_extent(used: Maker, tmp_path: Path) -> None:
    variables = {"TESS_CACHE_DIR": str(tmp_path)}
    at = used(1, environment=variables)
    first, again = at.kernel("any"), at.kernel("any")
    run(at, first, 3)
    assert counted(at) == (0, 1)
    run(at, first, 3)  # known in memory
    assert counted(at) == (0, 1)
    run(at, first, 4)  # another extent
    assert counted(at) == (0, 2)
    run(at, again, 3)  # another module with the same IR
    assert counted(at) == (1, 2)
    other = used(1, environment=variables)
    run(other, other.kernel("any"), 4)
    assert counted(other) == (1, 0)
    assert len(other.ask("tessxCacheEntries")) == 2


def test_without_a_directory_nothing_is_counted(used: Maker) -> None:
    at = used(1)
    run(at, at.kernel("any"))
    assert counted(at) == (0, 0)
    assert at.ask("tessxCacheEntries") == ()


def test_a_deterministic_launch_ignores_what_another_policy_made(used: Maker, tmp_path: Path) -> None:
    variables = {"TESS_CACHE_DIR": str(tmp_path)}
    at = used(1, environment=variables)
    at.ask("tessSetNumericsPolicy", at.context, LOOSE)
    run(at, at.kernel("any"))
    at.ask("tessSetNumericsPolicy", at.context, STRICT)
    run(at, at.kernel("any"))
    assert counted(at) == (0, 2)
    at.ask("tessSetNumericsPolicy", at.context, LOOSE)
    run(at, at.kernel("any"))  # which may use what the strict one left
    assert counted(at) == (1, 2)


def test_another_driver_invalidates_also_what_is_in_memory(used: Maker, tmp_path: Path) -> None:
    at = used(1, environment={"TESS_CACHE_DIR": str(tmp_path)})
    kernel = at.kernel("any")
    run(at, kernel)
    at.runtime.tessxSetIdentity(driver="another")
    run(at, kernel)
    assert counted(at) == (0, 2)
    at.runtime.tessxSetIdentity(abi_hash="another")
    run(at, kernel)
    assert counted(at) == (0, 3)


def test_a_damaged_entry_is_told_of_and_the_launch_refused(used: Maker, tmp_path: Path) -> None:
    at = used(1, environment={"TESS_CACHE_DIR": str(tmp_path)})
    run(at, at.kernel("any"))
    (path,) = tmp_path.glob("*.tesscache")
    path.write_bytes(path.read_bytes()[:-1])
    kernel = at.kernel("any")
    arguments = struct.pack("<i4xQ", 3, at.memory)
    config = at.configuration()
    refused = at.refused("tessLaunch", kernel, at.mesh, config, arguments, 16, at.stream)
    assert refused is Status.TESS_ERR_CACHE_CORRUPT
    assert at.refused("tessxCacheEntries") is Status.TESS_ERR_CACHE_CORRUPT
    at.ask("tessStreamSynchronize", at.stream)


def test_an_image_that_claims_the_hash_of_another_gets_code_of_its_own(
    used: Maker, image: bytes, tmp_path: Path
) -> None:
    """What an unsigned image left in the directory under a forged hash is not run for the module that it imitates."""
    variables = {"TESS_CACHE_DIR": str(tmp_path)}
    other = read(compile_module(FORGED, ["sm_90"]))
    forged = write(replace(other, ir_hash=read(image).ir_hash))
    at = used(1, environment=variables)
    at.image = forged
    run(at, at.kernel("any"))
    assert counted(at) == (0, 1)
    at.image = image
    run(at, at.kernel("any"))
    assert counted(at) == (0, 2)
