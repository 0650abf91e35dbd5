"""Stage one of hierarchical collectives: trees through devices, and what is refused."""

from __future__ import annotations

import pytest

from tessera_reference.abi import Failure, Status
from tessera_reference.collectives.groups import require_stage_one, through_devices
from tessera_reference.collectives.operations import orders
from tessera_reference.numerics.trees import FOLD, PAIRWISE, Tree


@pytest.mark.parametrize(
    ("tree", "ranks", "partials", "text"),
    [
        (PAIRWISE, 1, (1, 1), "0"),
        (FOLD, 3, (1, 1), "((0 1) 2)"),
        (FOLD, 2, (1, 3), "(((0 1) 2) ((3 4) 5))"),
        (FOLD, 2, (3, 1), "(((0 1) 2) ((3 4) 5))"),
        (PAIRWISE, 2, (2, 2), "(((0 1) (2 3)) ((4 5) (6 7)))"),
        (Tree.parse("(1 0)"), 2, (2, 3), "((((6 7) 8) ((9 10) 11)) (((0 1) 2) ((3 4) 5)))"),
    ],
)
def test_warps_are_innermost_then_blocks(tree: Tree, ranks: int, partials: tuple[int, int], text: str) -> None:
    assert str(through_devices(tree, ranks, partials)) == text


def test_devices_are_combined_as_the_algorithm_has_it() -> None:
    plain, staged = (orders("hierarchical", 4, 2, partials) for partials in (None, (1, 2)))
    assert [str(each) for each in plain[:2]] == ["((0 1) (2 3))"] * 2
    assert [str(each) for each in staged[:2]] == ["(((0 1) (2 3)) ((4 5) (6 7)))"] * 2


@pytest.mark.parametrize(
    ("given", "status"),
    [
        (("broadcast", "hierarchical", (2, 2), False), Status.TESS_ERR_INVALID_VALUE),
        (("all_reduce", "hierarchical", (2,), False), Status.TESS_ERR_INVALID_VALUE),
        (("all_reduce", "hierarchical", (0, 2), False), Status.TESS_ERR_INVALID_VALUE),
        (("all_reduce", "tree", (2, 2), False), Status.TESS_ERR_UNSUPPORTED),
        (("all_reduce", "hierarchical", (2, 2), True), Status.TESS_ERR_UNSUPPORTED),
    ],
)
def test_what_has_no_stage_one_is_refused(given: tuple[str, str, tuple[int, ...], bool], status: Status) -> None:
    with pytest.raises(Failure) as failure:
        require_stage_one(*given)
    assert failure.value.status is status
