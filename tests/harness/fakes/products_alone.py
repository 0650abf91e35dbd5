"""The reference with just the documents, features and methods of a product: `products_alone:parser` is a parser."""

from __future__ import annotations

from typing import Any

from claims_chosen import WithoutFeatures

from tessera_conformance.adapter import NotSupported
from tessera_conformance.interface import interface
from tessera_conformance.locations import clauses_directory
from tessera_conformance.registry import load_registry
from tessera_conformance.registry.model import Product


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
