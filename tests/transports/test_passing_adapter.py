"""An implementation behind a transport, served again: what it answers is the same on the other side."""

from __future__ import annotations

from typing import Any

import pytest

from tessera_conformance.adapter import MalformedAnswer, NotSupported, Refusal
from tessera_conformance.observations import Fault, Rejected, Returned, Unsupported
from tessera_conformance.session import Session
from tessera_conformance.transports.direct import DirectTransport
from tessera_conformance.transports.passing_adapter import PassingAdapter


class Adapter:
    """Answers in every way that there is."""

    def hello(self) -> dict[str, Any]:
        return {
            "protocol": {"minimum": 1, "maximum": 1},
            "implementation": {"name": "acme", "version": "1"},
            "documents": ["runtime_abi"],
        }

    def host_io_memory(self, **params: Any) -> Any:
        return {"data": "00"}

    def abi_pack(self, **params: Any) -> Any:
        diagnostics = [{"category": "types", "message": "no", "operands": ["a"]}]
        raise Refusal("types", "verify", "no", diagnostics)

    def abi_unpack(self, **params: Any) -> Any:
        raise NotSupported("memory")

    def abi_header(self, **params: Any) -> Any:
        raise MalformedAnswer("no text")


@pytest.mark.parametrize("method", ["host_io.memory", "abi.pack", "abi.unpack", "abi.header", "abi.constants"])
def test_an_answer_passes_as_it_is(method):
    inner = DirectTransport(Adapter, "inner")
    outer = Session(DirectTransport(lambda: PassingAdapter(inner), "outer"))
    expected = Session(DirectTransport(Adapter, "inner")).call(method, {})
    assert outer.call(method, {}) == expected


def test_the_answers_are_of_every_kind():
    session = Session(DirectTransport(Adapter, "inner"))
    kinds = [type(session.call(f"abi.{name}", {})) for name in ("pack", "unpack", "header", "constants")]
    assert kinds == [Rejected, Unsupported, Fault, Unsupported]
    assert isinstance(session.call("host_io.memory", {}), Returned)
