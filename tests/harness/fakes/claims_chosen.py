"""The reference with less of it claimed: documents, features and methods that are named here, or those of a product."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tessera_conformance.adapter import NotSupported
from tessera_conformance.cases import clauses_directory
from tessera_conformance.interface import interface
from tessera_conformance.registry import load_registry
from tessera_conformance.registry.model import Product
from tessera_reference.adapter import ReferenceAdapter

# The reference with less of it claimed: of the documents and features that it has, those that are named here.


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
        if params["to"] != "graph":
            raise NotSupported(f"lowering to {params['to']}")
        return super().language_lower(**params)

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


# The reference with just the documents, features and methods of a product: `products_alone:parser` is a parser.


def alone(product: Product) -> type[WithoutFeatures]:
    """The reference without the methods that a product does not have."""

    def lacking(name: str) -> Any:
        def method(self: WithoutFeatures, **params: Any) -> Any:
            raise NotSupported(name)

        return method

    left_out = {
        name.replace(".", "_", 1): lacking(name)
        for name, method in interface().methods.items()
        if method.area != "session" and not {name, f"{method.area}.*"} & {*product.methods}
    }
    members = {"documents": product.documents, "features": product.features, **left_out}
    return type(product.id, (WithoutFeatures,), members)


globals().update(
    {product.id.replace("-", "_"): alone(product) for product in load_registry(clauses_directory()).products}
)
