"""`tessera-reference serve` speaks the protocol: the same answers as in process."""

from __future__ import annotations

import sys

from tessera_conformance.observations import Rejected, Returned
from tessera_conformance.protocol import Hello
from tessera_conformance.session import Session
from tessera_conformance.tensors import Tensor
from tessera_conformance.transports.locate import locate

DOUBLE = "module m { func f(A: tensor<2xbf16>) -> tensor<2xbf16> { return A + A; } }"
ONE_TWO = Tensor.from_words("bf16", (2,), [0x3F80, 0x4000])


def test_serve_answers_as_in_process():
    direct = Session(locate("reference"))
    served = Session(locate(f"rpc:{sys.executable} -m tessera_reference.cli serve"))
    try:
        assert isinstance(served.open(), Hello)
        assert served.open() == direct.open()
        requests = [
            ("language.execute", {"source": DOUBLE, "function": "f", "inputs": {"A": ONE_TWO}}),
            ("language.execute", {"source": DOUBLE, "function": "g", "inputs": {}}),
            ("language.parse", {"source": "module m {"}),
            ("language.lower", {"source": DOUBLE, "to": "graph"}),
            ("language.compile", {"source": DOUBLE}),
        ]
        answers = [served.call(*request) for request in requests]
        assert answers == [direct.call(*request) for request in requests]
        assert answers[0] == Returned({"outputs": [Tensor.from_words("bf16", (2,), [0x4000, 0x4080])]})
        assert isinstance(answers[1], Rejected)
    finally:
        served.close()


def test_a_large_tensor_crosses_as_a_file():
    served = Session(locate(f"rpc:{sys.executable} -m tessera_reference.cli serve"))
    large = Tensor.from_words("bf16", (65536,), [0x3F80] * 65536)
    source = DOUBLE.replace("2xbf16", "65536xbf16")
    try:
        answer = served.call("language.execute", {"source": source, "function": "f", "inputs": {"A": large}})
        assert answer == Returned({"outputs": [Tensor.from_words("bf16", (65536,), [0x4000] * 65536)]})
    finally:
        served.close()
