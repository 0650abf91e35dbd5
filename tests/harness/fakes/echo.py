"""A healthy adapter of a few lines, which echoes its inputs; and such adapters with one fault each."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from typing import Any

from tessera_conformance.adapter import NotSupported, Refusal
from tessera_conformance.tensors import Tensor


class Echo:
    """Claims the language document and answers every execution with its inputs."""

    def hello(self) -> Mapping[str, Any]:
        return {
            "protocol": {"minimum": 1, "maximum": 1},
            "implementation": {"name": "echo", "version": "1.0"},
            "documents": ["language_ir"],
            "capabilities": {"execution": "enforced", "extra-dtypes": "enforced"},
            "arithmetic": {"level": "strict"},
        }

    def language_execute(
        self, *, source: str, function: str, inputs: Mapping[str, Tensor], level: str = "strict"
    ) -> dict[str, Any]:
        if function == "refused":
            raise Refusal("types", "verify", "no such function")
        if function == "missing":
            raise NotSupported("language.missing")
        return {"outputs": list(inputs.values())}


ACTING = "\x1b[2J\x9b2K\u202egnp\u2066\u200b\x07"


class Acting(Echo):
    """Answers with control and format characters wherever it may: they clear a screen, and turn the reading order."""

    def hello(self) -> dict:
        return {**super().hello(), "implementation": {"name": ACTING, "version": ACTING}}

    def language_execute(self, **params: object) -> dict:
        raise RuntimeError(ACTING)


class Parallel(Echo):
    """Says that several processes of it may answer at the same time."""

    def hello(self) -> dict[str, Any]:
        return {**super().hello(), "parallel": True}


class ClaimsATypo(Echo):
    """Claims a feature under a name that does not exist."""

    def hello(self) -> dict:
        return {**super().hello(), "capabilities": {"extra_dtypes": "enforced"}}


class Exits(Echo):
    """Ends the whole process, politely."""

    def language_execute(self, **params: object) -> dict:
        os._exit(0)


class KillsItsProcess(Echo):
    """Takes its whole process with it, as native code in this process may."""

    def language_execute(self, **params: object) -> dict:
        os.kill(os.getpid(), signal.SIGKILL)
        return {}


class Raises(Echo):
    """Has a bug of its own."""

    def language_execute(self, **params: object) -> dict:
        raise LookupError("no such register")


class Sleeps(Echo):
    """Never comes back from a call."""

    def language_execute(self, **params: object) -> dict:
        time.sleep(3600)
        return {}


class SpeaksSurrogates(Echo):
    """Raises an error whose text has no UTF-8 form."""

    def language_execute(self, **params: object) -> dict:
        raise LookupError("half a pair: \ud800")
