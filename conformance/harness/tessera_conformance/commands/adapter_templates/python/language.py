"""A compiler behind the Tessera conformance suite: fill in the methods that yours has, delete the others.

    tessera-conformance smoke --impl=py:my_adapter:make     asks a question of each kind and judges the answers
    tessera-conformance run --impl=py:my_adapter:make       runs the suite

What each method takes and returns is described in docs/protocol.md of the project. A method that is not here reads
as unsupported, which is never a pass. Raise `Refusal` where your implementation refuses a request, and `NotSupported`
where it lacks a feature. Any other exception reads as a crash of that case, and the run goes on.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tessera_conformance.adapter import NotSupported, Refusal
from tessera_conformance.server import serve
from tessera_conformance.tensors import Tensor

TOKEN = re.compile(r"\s+|//[^\n]*|/\*.*?\*/|(?P<token>[A-Za-z_][A-Za-z0-9_]*|.)", re.DOTALL)
DECLARATIONS = ("func", "kernel", "type", "let", "const", "mesh")


class MyAdapter:
    """Answers for an implementation."""

    def hello(self) -> Mapping[str, Any]:
        """Name the implementation, and claim only what works."""
        return {
            "protocol": {"minimum": 1, "maximum": 1},
            "implementation": {"name": "my-implementation", "version": "0.1"},
            "documents": ["language_ir"],
            "capabilities": {},
            "arithmetic": {"level": "strict"},
            "parallel": True,  # several processes may answer at once; take it away where they share a device
        }

    def language_parse(self, *, source: str) -> dict[str, Any]:
        """The modules and their declarations, in source order. This one knows modules that declare nothing."""
        tokens = [found["token"] for found in TOKEN.finditer(source) if found["token"]]
        modules = []
        while tokens:
            word, name, opening, *tokens = [*tokens, "", "", ""]
            if word != "module" or not name.isidentifier() or opening != "{":
                raise _syntax(f"expected module NAME {{, found {word} {name} {opening}")
            tokens = [token for token in tokens if token]
            if tokens[:1] and tokens[0] in DECLARATIONS:
                raise NotSupported(f"declarations of {tokens[0]}")
            if tokens[:1] != ["}"]:
                raise _syntax(f"expected a declaration or }}, found {(tokens or ['the end'])[0]}")
            modules.append({"name": name, "declarations": []})
            tokens = tokens[1:]
        return {"modules": modules}

    def language_verify(self, *, source: str) -> dict[str, Any]:
        """The warnings of a legal program; refuse any other."""
        raise NotSupported("language.verify")

    def language_execute(
        self, *, source: str, function: str, inputs: Mapping[str, Tensor], level: str = "strict"
    ) -> dict[str, Any]:
        """The results of a function. A tensor has `dtype`, `shape` and `data`: row-major, little-endian bytes."""
        raise NotSupported("language.execute")


def _syntax(message: str) -> Refusal:
    return Refusal("syntax", "parse", message, [{"category": "syntax", "message": message}])


make = MyAdapter

if __name__ == "__main__":  # in a process of its own: --impl=rpc:"python my_adapter.py"
    serve(make())
