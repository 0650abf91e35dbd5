"""Handles: NULL, foreign, dead and of another kind (AMB-RT-38)."""

from __future__ import annotations

from typing import Any

import pytest

from tessera_reference.abi.status import Failure, Status
from tessera_reference.runtime.arguments import Handles


def status_of(handles: Handles, kind: str, handle: Any) -> Status:
    with pytest.raises(Failure) as caught:
        handles.find(kind, object, handle, "tessTest")
    return caught.value.status


def test_a_handle_finds_what_it_was_given_for() -> None:
    handles, held = Handles(), object()
    assert handles.find("mesh", object, handles.give("mesh", held), "tessTest") is held


@pytest.mark.parametrize("handle", [0, None, -1, 99, 1 << 70, True, 1.0, "1", b"1", [], {}])
def test_what_is_no_handle_is_refused(handle: Any) -> None:
    handles = Handles()
    assert handles.give("mesh", object()) == 1  # which True and 1.0 are equal to
    assert status_of(handles, "mesh", handle) is Status.TESS_ERR_NOT_INITIALIZED
    assert status_of(handles, "stream", handle) is Status.TESS_ERR_INVALID_VALUE


def test_a_handle_of_another_kind_is_refused_alive_and_dead() -> None:
    handles = Handles()
    stream = handles.give("stream", object())
    assert status_of(handles, "mesh", stream) is Status.TESS_ERR_INVALID_VALUE
    handles.end(stream)
    assert status_of(handles, "mesh", stream) is Status.TESS_ERR_INVALID_VALUE
    assert status_of(handles, "stream", stream) is Status.TESS_ERR_INVALID_VALUE


def test_a_dead_context_is_not_initialized_and_its_number_not_given_again() -> None:
    handles = Handles()
    context = handles.give("context", object())
    handles.end(context)
    assert status_of(handles, "context", context) is Status.TESS_ERR_NOT_INITIALIZED
    assert handles.give("context", object()) != context


def test_live_ones_are_in_the_order_in_which_they_were_made() -> None:
    handles = Handles()
    given = [handles.give("event", name) for name in "abc"]
    handles.give("mesh", "d")
    handles.end(given[1])
    assert [held for _, held in handles.live("event")] == ["a", "c"]
    assert handles.live("graph") == []
