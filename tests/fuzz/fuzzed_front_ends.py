"""Front ends that go wrong in one way; `make_...` are the factories that `--impl=py:...` names."""

from __future__ import annotations

from typing import Any

from tessera_conformance.adapter import Diagnostic, NotSupported, Refusal
from tessera_conformance.tensors import Tensor


class Fake:
    """Accepts every text, and knows how to verify only."""

    def hello(self) -> dict[str, Any]:
        return {
            "protocol": {"minimum": 1, "maximum": 1},
            "implementation": {"name": "fake", "version": "1"},
            "documents": ["language_ir"],
        }

    def language_verify(self, *, source: str, **rest: Any) -> dict[str, Any]:
        self.read(source)
        return {"warnings": []}

    def read(self, source: str) -> None:
        """Go wrong, in a way of each subclass."""


class Crashes(Fake):
    """Falls over a while loop."""

    def read(self, source: str) -> None:
        if "while" in source:
            raise ZeroDivisionError("while")


class Hangs(Fake):
    """Never comes back from a barrier."""

    def read(self, source: str) -> None:
        while "barrier" in source:
            pass


class Refuses(Fake):
    """Refuses whatever holds a for loop."""

    def read(self, source: str) -> None:
        if "for (" in source:
            raise Refusal("types", "verify", "no loops", [Diagnostic("types", "no loops")])


class GoesWrongTwice(Fake):
    """Falls over a while loop, and refuses a for loop."""

    def read(self, source: str) -> None:
        Crashes.read(self, source)  # type: ignore[arg-type]
        Refuses.read(self, source)  # type: ignore[arg-type]


class Knows(Fake):
    """Knows no method at all."""

    def language_verify(self, *, source: str, **rest: Any) -> dict[str, Any]:
        raise NotSupported("language")


class Miscounts(Fake):
    """Returns another value every time it is asked."""

    def __init__(self) -> None:
        self.count = 0

    def language_execute(self, **rest: Any) -> dict[str, Any]:
        self.count += 1
        return {"outputs": [Tensor.from_words("int32", (), [self.count])]}


class DoesNotStart(Fake):
    """Has no Hello."""

    def hello(self) -> dict[str, Any]:
        raise OSError("no device")
