"""A pytest run narrowed before it collects: its arguments become those files and tests that hold what was asked for."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any

import pytest

from tessera_conformance.locations import suite_directory
from tessera_conformance.registry import Registry
from tessera_conformance.registry.case_index import case_index, current_index
from tessera_conformance.selection.choice import Choice, NothingChosen
from tessera_conformance.selection.keywords import matching
from tessera_conformance.selection.places import Place, narrowed, places

FILTERS = ("keyword", "markexpr")


def choice(config: pytest.Config) -> Choice:
    """What the options ask for."""
    option = config.option
    return Choice(option.reproduce, option.cases, option.clauses, option.features, option.failed)


def narrow(config: pytest.Config, registry: Registry) -> Set[str] | None:
    """Narrow the arguments of the run; the ids of the chosen cases, or None where no option chooses any.

    Raises:
        NothingChosen: what was asked for does not exist.
        UnreadableReport: `--failed` names no report.
        SuiteNotCollected: there is no index of cases, and pytest cannot collect the suite.
    """
    named = _places(config)
    wanted = choice(config)
    if not wanted.narrows:
        config.args[:] = _named_by_keyword(config, named)
        return None
    chosen = wanted.of(case_index(), registry)
    kept = {name: case for name, case in chosen.items() if any(place.holds(case.node) for place in named)}
    if not kept:
        raise NothingChosen(
            f"{', '.join(place.argument for place in named)}: holds none of the {len(chosen)} cases that were asked for"
        )
    config.args[:] = narrowed([case.node for case in kept.values()])
    return kept.keys()


def _named_by_keyword(config: pytest.Config, named: Sequence[Place]) -> list[str]:
    """The places, narrowed to the functions or files that `-k` means where the index of cases tells."""
    arguments = [place.argument for place in named]
    if not getattr(config.option, "keyword", "") or any(place.outside for place in named):
        return arguments
    if any(not place.in_suite and place.path != suite_directory() for place in named):
        return arguments  # there may be other tests
    whole = config.rootpath == suite_directory() and not any(place.in_suite for place in named)
    index = case_index() if whole else current_index()
    within = {name: case for name, case in (index or {}).items() if any(place.holds(case.node) for place in named)}
    kept = matching(config.option.keyword, within) if within else None
    return arguments if kept is None else narrowed([case.node for case in kept.values()])


def described(config: pytest.Config) -> dict[str, Any]:
    """What the run was narrowed to, for the header of its report; to be asked before it is narrowed."""
    inside = [place.in_suite for place in _places(config) if not place.outside]
    paths = {} if "" in inside or not inside else {"paths": inside}
    filters = {name: getattr(config.option, name) for name in FILTERS if getattr(config.option, name, "")}
    return choice(config).described() | paths | filters


def _places(config: pytest.Config) -> list[Place]:
    """What the command line names; the suite where `tessera-conformance run` is given nothing."""
    suite = suite_directory()
    of_the_suite = config.rootpath == suite
    if of_the_suite and config.args_source is not pytest.Config.ArgsSource.ARGS:
        return [Place(str(suite), suite)]
    named = places(map(str, config.args), config.invocation_params.dir)
    outside = [place for place in named if place.outside]
    if of_the_suite and outside:
        raise NothingChosen(f"{outside[0].argument}: lies outside the suite, which is in {suite}")
    return named
