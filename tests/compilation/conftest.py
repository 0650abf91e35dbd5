"""Module images as the tests make them, and programs of the equality corpus as kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest

from tessera_conformance.chapters.ir.kit.equality_corpus import PROGRAMS, Program
from tessera_conformance.dsl import type_of
from tessera_reference.abi.fatbin import Fatbin, KernelEntry, read
from tessera_reference.compilation.images import compile_module
from tessera_reference.graph.execution import execute
from tessera_reference.language import compile_source
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import dtype


def array(name: str, values: Any) -> Array:
    """Numbers as an array of a dtype that holds them."""
    return Array.checked(dtype(name), np.asarray(values))


def compiled(source: str, targets: Sequence[str] = ("sm_90",), **options: Any) -> Fatbin:
    """The fatbin of a program, read back from its image."""
    return read(compile_module(source, targets, **options))


@cache
def image_for_two_vendors(source: str) -> bytes:
    """The image of a program for sm_90 and gfx942, which several tests run the corpus with."""
    return compile_module(source, ("sm_90", "gfx942"))


def entry_of(source: str, **options: Any) -> KernelEntry:
    """The entry of the only kernel of a program."""
    (entry,) = compiled(source, **options).metadata.kernels
    return entry


class CorpusKernel:
    """A program of the corpus as a kernel `k` that leaves the result of `f` in its last parameter, `Result`."""

    def __init__(self, program: Program) -> None:
        self.program = program
        given = {key: Array.from_bits(dtype(it.dtype), it.shape, it.data) for key, it in program.inputs.items()}
        module = compile_source(program.source).module
        results = execute(module, "f", given)
        self.is_possible = len(results) == 1 and bool(results[0].shape)
        if not self.is_possible:
            return
        (result,) = results
        self.expected = program.expected[0].data if program.expected else result.to_bits()
        empty = Array(result.dtype, np.zeros(result.shape, result.dtype.carrier))
        self.arguments: Mapping[str, Array] = {**given, "Result": empty}
        written = f"tensor<{'x'.join(map(str, (*result.shape, result.dtype)))}>"
        types = {**{key: type_of(it) for key, it in program.inputs.items()}, "Result": written}
        parameters = ", ".join(f"{key}: {type_}" for key, type_ in types.items())
        order = [parameter.name for parameter in module.functions["f"].parameters]
        head, _, _ = program.source.rstrip().rpartition("}")
        self.source = f"{head}  kernel k({parameters}) {{ Result = f({', '.join(order)}); }}\n}}\n"


@cache
def corpus_kernel(name: str) -> CorpusKernel:
    """The kernel of a program of the corpus, made once for the tests that run all of them."""
    return CorpusKernel(next(program for program in PROGRAMS if program.name == name))


class Helpers:
    """The builders of images and arguments."""

    array = staticmethod(array)
    compiled = staticmethod(compiled)
    entry_of = staticmethod(entry_of)
    image_for_two_vendors = staticmethod(image_for_two_vendors)
    corpus_kernel = staticmethod(corpus_kernel)


@pytest.fixture
def build() -> type[Helpers]:
    """The functions of this file, which tests cannot import from it."""
    return Helpers
