"""The equality corpus as machine code: ptxas and the AMD linker take the kernels of each of its programs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tessera_conformance.chapters.ir.kit.equality_corpus import PROGRAMS
from tessera_reference.ir.targets import target_of
from tessera_reference.language import compile_source
from tessera_reference.levels.emission import emit
from tessera_reference.levels.execution import lower, specialized
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import dtype


def test_the_corpus_is_large_and_its_names_differ() -> None:
    assert len(PROGRAMS) >= 60
    assert len({program.name for program in PROGRAMS}) == len(PROGRAMS)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sm_80", "sm_90", "gfx90a", "gfx942"])
def test_every_program_is_assembled(tools: Any, tmp_path: Path, drawn: Callable[[int], int], name: str) -> None:
    """A quarter for each target, another one for each; all of them with `--whole`."""
    target = target_of(name)
    programs = Random(name).sample(PROGRAMS, drawn(len(PROGRAMS)))
    with_kernels = 0
    for program in programs:
        shapes = {key: Array.from_bits(dtype(it.dtype), it.shape, it.data) for key, it in program.inputs.items()}
        module = specialized(compile_source(program.source).module, "f", shapes)
        lowered = lower(module, "target", target)
        if any(function.device for function in lowered.functions.values()):
            with_kernels += 1
            tools.assemble(emit(lowered, "llvm", target), target, tmp_path)
    assert with_kernels > len(programs) / 2
