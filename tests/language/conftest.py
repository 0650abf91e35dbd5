from __future__ import annotations

from collections.abc import Callable

import pytest

from tessera_reference.language import CompiledModule, Diagnostic, Rejection, UnsupportedConstruct, compile_source

HEADER = "module m {\nfunc f(A: tensor<4x8xfp32>, B: tensor<6x8xfp32>, H: tensor<4x8xbf16>, i: int32, c: bool) {\n"
"""A body stands in lines 3 and following."""

Rejects = Callable[[str], Diagnostic]
Accepts = Callable[[str], CompiledModule]


def in_function(body: str) -> str:
    return f"{HEADER}{body}\n}}\n}}\n"


@pytest.fixture
def rejects() -> Rejects:
    """The only diagnostic of an illegal program."""

    def check(source: str) -> Diagnostic:
        with pytest.raises(Rejection) as caught:
            compile_source(source, "t.tsr")
        (found,) = caught.value.diagnostics
        assert found.severity == "error"
        return found

    return check


@pytest.fixture
def rejects_body(rejects: Rejects) -> Rejects:
    return lambda body: rejects(in_function(body))


@pytest.fixture
def accepts() -> Accepts:
    return lambda source: compile_source(source, "t.tsr")


@pytest.fixture
def accepts_body(accepts: Accepts) -> Accepts:
    return lambda body: accepts(in_function(body))


@pytest.fixture
def unsupported() -> Callable[[str], UnsupportedConstruct]:
    def check(source: str) -> UnsupportedConstruct:
        with pytest.raises(UnsupportedConstruct) as caught:
            compile_source(source, "t.tsr")
        return caught.value

    return check
