"""The reference with less of it claimed: of the documents and features that it has, those that are named here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tessera_conformance.adapter import NotSupported
from tessera_conformance.locations import clauses_directory
from tessera_conformance.registry import load_registry
from tessera_reference.adapter import ReferenceAdapter


class WithoutFeatures(ReferenceAdapter):
    """All documents, and no feature of them."""

    documents: Sequence[str] | None = None
    """The documents that it claims; those of the reference where it names none."""
    features: Sequence[str] = ()

    def hello(self) -> dict[str, Any]:
        hello: dict[str, Any] = super().hello()
        claimed = {name: state for name, state in hello["capabilities"].items() if name in self.features}
        return hello | {"documents": list(self.documents or hello["documents"]), "capabilities": claimed}


class LanguageAlone(WithoutFeatures):
    """The language without a feature: it neither lowers, nor reads or runs what is lower than Graph IR."""

    documents = ("language_ir",)

    def language_lower(self, **params: Any) -> Any:
        raise NotSupported("language.lower")

    def language_verify_ir(self, **params: Any) -> Any:
        return super().language_verify_ir(**_at_graph(params))

    def language_execute_ir(self, **params: Any) -> Any:
        return super().language_execute_ir(**_at_graph(params))

    def language_execute(self, **params: Any) -> Any:
        return super().language_execute(**_at_graph(params))


def _at_graph(params: dict[str, Any]) -> dict[str, Any]:
    level = params.get("at", "graph")
    if level != "graph":
        raise NotSupported(f"programs at {level}")
    return params


class NamedProfiles(WithoutFeatures):
    """All documents, and of their features those of the named profiles."""

    features = tuple(name for row in load_registry(clauses_directory()).profiles for name in row.features)
