"""Logical axes (runtime spec 4.2, 4.6; AMB-RT-01, -02, -03)."""

from __future__ import annotations

from itertools import product

import pytest

from tessera_reference.abi import Failure, Status
from tessera_reference.mesh.axes import AXES, MeshAxes


def test_the_sample_of_section_18_has_eight_ranks() -> None:
    axes = MeshAxes(tp=2, pp=1, dp=4, ep=0)
    assert axes.sizes == (2, 1, 4, 1)
    assert axes.ranks == 8
    axes.require(8)


def test_an_omitted_axis_counts_one() -> None:
    assert MeshAxes().ranks == 1
    assert MeshAxes(dp=3).sizes == (1, 1, 3, 1)


@pytest.mark.parametrize("size", [-1, 2**31, True, 1.0, "2", None])
@pytest.mark.parametrize("axis", AXES)
def test_a_size_that_is_no_size_is_refused(axis: str, size: object) -> None:
    with pytest.raises(Failure, match=f"axes.{axis} is .*; expected 0 for an absent axis") as caught:
        MeshAxes(**{axis: size})  # type: ignore[arg-type]
    assert caught.value.status is Status.TESS_ERR_INVALID_VALUE


@pytest.mark.parametrize("devices", [7, 9, 0])
def test_each_rank_needs_one_device(devices: int) -> None:
    with pytest.raises(Failure, match=rf"axes 2 x 1 x 4 x 0 for {devices} devices; expected axes whose product"):
        MeshAxes(2, 1, 4, 0).require(devices)


def test_ranks_count_row_major_with_ep_fastest() -> None:
    axes = MeshAxes(2, 3, 2, 2)
    in_order = list(product(range(2), range(3), range(2), range(2)))
    assert [axes.rank(coordinates) for coordinates in in_order] == list(range(24))


@pytest.mark.parametrize(("place", "coordinate"), [(0, 2), (1, 3), (2, -1), (3, 2)])
def test_coordinates_outside_the_mesh_have_no_rank(place: int, coordinate: int) -> None:
    coordinates = [0, 0, 0, 0]
    coordinates[place] = coordinate
    with pytest.raises(Failure, match=f"coordinate {coordinate} along {AXES[place]}"):
        MeshAxes(2, 3, 2, 2).rank(coordinates)


def test_the_groups_of_the_sample() -> None:
    axes = MeshAxes(2, 1, 4, 0)
    assert axes.groups("dp") == ((0, 1, 2, 3), (4, 5, 6, 7))
    assert axes.groups("tp") == ((0, 4), (1, 5), (2, 6), (3, 7))
    assert axes.groups("ep") == tuple((rank,) for rank in range(8))
    assert [axes.size_along(axis) for axis in AXES] == [2, 1, 4, 1]


@pytest.mark.parametrize("axis", AXES)
def test_ranks_of_a_group_differ_along_its_axis_only(axis: str) -> None:
    axes, place = MeshAxes(2, 3, 2, 2), AXES.index(axis)
    coordinates = list(product(range(2), range(3), range(2), range(2)))
    groups = axes.groups(axis)
    assert sorted(rank for group in groups for rank in group) == list(range(24))
    assert [group[0] for group in groups] == sorted(group[0] for group in groups)
    for group in groups:
        at = [coordinates[rank] for rank in group]
        assert [each[place] for each in at] == list(range(axes.size_along(axis)))
        assert len({each[:place] + each[place + 1 :] for each in at}) == 1


@pytest.mark.parametrize(
    ("axis", "message"),
    [(None, "a NULL axis; expected tp, pp, dp, ep"), ("xp", "axis 'xp'"), ("", "axis ''")],
)
def test_an_unknown_axis_is_refused(axis: str | None, message: str) -> None:
    with pytest.raises(Failure, match=message) as caught:
        MeshAxes(2).groups(axis)
    assert caught.value.status is Status.TESS_ERR_INVALID_VALUE


def test_the_nearest_spelling_is_offered() -> None:
    with pytest.raises(Failure, match=r"did you mean tp\?"):
        MeshAxes(2).size_along("TP")
