"""`tessera-conformance strength --variants`: put the legal variants to the suite, and say which cases fail one."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from tessera_conformance.cases import in_shard, parse_shard
from tessera_conformance.collection import CollectedSuite
from tessera_conformance.registry import Registry
from tessera_conformance.strength import processes
from tessera_conformance.strength.variants.report import as_json, failed, lines_of, markdown, summary
from tessera_conformance.strength.variants.trial import BESIDE, Selection, judge_variants
from tessera_conformance.strength.variants.variant import Variant, load_variants
from tessera_conformance.transports.locate import load_adapter

__all__ = ["SAMPLE", "chosen_variants", "configure_variants", "put_variants"]

CHAPTERS = Path()
"""What stands for the folders of the chapters."""
SAMPLE = Selection(most=40, beside=5)
"""The cases of each variant in a run of the violators."""


def configure_variants(parser: argparse.ArgumentParser) -> None:
    """The options of `strength` for variants."""
    group = parser.add_argument_group("variants", "legal implementations that differ from the control where they may")
    variants_help = "put the variants, of the chapters or of a folder, to the suite instead of the violators"
    group.add_argument("--variants", type=Path, nargs="?", const=CHAPTERS, metavar="DIR", help=variants_help)
    within_help = "cases in the reach of each (all)"
    group.add_argument("--within", type=int, metavar="N", help=within_help)
    beside_help = f"cases out of the reach of each ({BESIDE})"
    group.add_argument("--beside", type=int, default=BESIDE, metavar="N", help=beside_help)


def chosen_variants(arguments: argparse.Namespace, registry: Registry) -> list[Variant]:
    """The variants that the options name.

    Raises:
        RegistryError: a variant names a clause or an interpretation that there is not.
        ValueError: two variants share a name, no variant has such a name, or the shard has another form.
    """
    variants = load_variants(None if arguments.variants in (None, CHAPTERS) else arguments.variants)
    for variant in variants:
        (registry.interpretation if variant.freedom.startswith("AMB-") else registry.clause)(variant.freedom)
    only = arguments.only or ""
    named = [each for each in variants if only in each.name or only in each.freedom]
    if not named:
        raise ValueError(f"no variant's name or freedom contains {only!r}")
    shard = parse_shard(arguments.shard or "1/1")
    return [each for each in named if in_shard(each.name, shard)]


def put_variants(
    arguments: argparse.Namespace,
    variants: Sequence[Variant],
    suite: CollectedSuite,
    registry: Registry,
    chosen_cases: Selection | None = None,
) -> int:
    """0 where every variant passes, 1 where a case fails one or none can tell one from the control.

    The cases are those of the options, unless they are given.
    """
    selection = chosen_cases or Selection(arguments.within, arguments.beside, arguments.thorough)
    jobs = arguments.jobs or processes.available()
    outcomes = []
    for outcome in judge_variants(
        variants, suite.items, registry, lambda: load_adapter(arguments.control), selection, jobs
    ):
        outcomes.append(outcome)
        print("\n".join(lines_of(outcome)), flush=True)
    print(summary(outcomes))
    if arguments.output is not None:
        arguments.output.mkdir(parents=True, exist_ok=True)
        document = json.dumps(as_json(outcomes), indent=1) + "\n"
        (arguments.output / "variants.json").write_text(document, encoding="utf-8")
        (arguments.output / "variants.md").write_text(markdown(outcomes), encoding="utf-8")
    return 1 if failed(outcomes, whole=selection.most is None) else 0
