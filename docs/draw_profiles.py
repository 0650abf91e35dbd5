"""Writes the page of named profiles, profiles.md, from the clause registry: `python docs/draw_profiles.py`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tessera_conformance.cases import clauses_directory
from tessera_conformance.registry import Registry, load_registry
from tessera_conformance.registry.model import NamedProfile, Product

PAGE = Path(__file__).parent / "profiles.md"

INTRODUCTION = """# Profiles

Nobody builds all five documents at once. This page has the profiles by product, one of which fits what you build. The
profiles by feature say what a claim leaves out. It is written by `python docs/draw_profiles.py` from
`conformance/clauses/profiles.toml`.

## By product

A product's cases are those that ask only its methods and need only its features. A product is **whole** where its cases
pass, but for those of other numerics levels and those that follow [another reading](verdicts.md). The end of a complete
run names the products that are whole. Those of which at least half the cases pass are within reach.
"""

FEATURES = """## By feature

An implementation claims documents and, of what is optional, features. Most features are beyond the core: leaving one
out costs nothing. Some core MUST clauses, though, cannot be judged without a feature. Ranks show only where the
memory of single ranks can be read, Tile IR only where a compiler prints it. These features make up the **profiles by
feature**. An implementation claims one by claiming all of its features.

Core stays core. The clauses of a profile that is not claimed are unsupported. The claim is then *partial* at best,
and has the number of clauses that are missing by profile. A claim of *success* names the profiles that it covers.
[Verdicts](verdicts.md) has examples. A test holds the table exact: the reference without any feature leaves just
these clauses unjudged.
"""


def page() -> str:
    """The whole page."""
    registry = load_registry(clauses_directory())
    rows = [row(profile) for profile in registry.profiles]
    products = [
        "| product | what it is | what it needs | documents | features |",
        "|---|---|---|---|---|",
        *(product_row(product) for product in registry.products),
        "",
    ]
    head = ["| profile | document | what it is | features | core MUST clauses |", "|---|---|---|---|---|"]
    parts = [
        INTRODUCTION,
        "\n".join(products),
        FEATURES,
        "\n".join([*head, *rows, ""]),
        *(listing(profile, registry) for profile in registry.profiles),
    ]
    return "\n".join(parts)


def row(profile: NamedProfile) -> str:
    """One line of the table."""
    features = ", ".join(f"`{name}`" for name in profile.features)
    cells = (f"`{profile.id}`", f"`{profile.document}`", profile.summary, features, str(len(profile.clauses)))
    return f"| {' | '.join(cells)} |"


def product_row(product: Product) -> str:
    """One line of the table of products."""
    names = (", ".join(f"`{name}`" for name in part) for part in (product.documents, product.features))
    return f"| {' | '.join((f'`{product.id}`', product.summary, product.needs, *names))} |"


def listing(profile: NamedProfile, registry: Registry) -> str:
    """The clauses of a profile with their summaries."""
    return "\n".join([f"### {profile.id}\n", *described(profile, registry), ""])


def described(profile: NamedProfile, registry: Registry) -> Iterator[str]:
    """A line for each clause."""
    for name in profile.clauses:
        yield f"- {name}: {registry.clauses[name].summary}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
