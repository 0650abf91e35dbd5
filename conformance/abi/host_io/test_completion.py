"""Completions: their members, their rules, and that the same requests have the same ones (D4, Context)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from tessera_conformance.chapters.abi.host_io.kit.exchange import SUCCESS, Completion, connected
from tessera_conformance.chapters.abi.host_io.kit.sequences import ACCEPTED_BY, FAILING, SUCCEEDING, mixed
from tessera_conformance.marks import clause, feature


def judged(completions: Iterable[Completion]) -> list[Any]:
    """Return the completions without `error_message`, which is a text for people (AMB-HIO-52)."""
    return [(completion["ok"], completion["error_code"]) for completion in completions]


@clause("HIO-D3-12", "HIO-D4-01", "HIO-D4-02", "HIO-D4-03", "HIO-D4-04", "HIO-D4-05")
@pytest.mark.parametrize("kind", SUCCEEDING)
def test_a_request_that_succeeds_has_no_error(impl, check, kind):
    """All three members are there: `ok` is true, code and message are null, written out (AMB-HIO-18)."""
    host = connected(impl, check)
    request = SUCCEEDING[kind](host)
    for completion in host.completions(*(host.another(request) for _ in range(3))):
        check.equal(dict(completion), SUCCESS, "the completion")


@clause("HIO-D3-12", "HIO-D4-01", "HIO-D4-02", "HIO-D4-03", "HIO-D4-06")
@pytest.mark.parametrize("cause", FAILING)
def test_a_request_that_fails_has_an_error_code(impl, check, cause):
    """All three members are there: `ok` is false, the code is a text that is not empty (AMB-HIO-10, AMB-HIO-18)."""
    host = connected(impl, check)
    request = FAILING[cause](host)
    completions = host.completions(*(host.another(request) for _ in range(3)))
    if cause in ACCEPTED_BY:
        check.reading(*ACCEPTED_BY[cause], all(answer["ok"] for answer in completions))
    for completion in completions:
        check.equal(sorted(completion), ["error_code", "error_message", "ok"], "the members of the completion")
        check.equal(completion["ok"], False, "ok")
        check.true(isinstance(completion["error_code"], str), "error_code is a text", completion["error_code"])
        check.true(bool(completion["error_code"]), "error_code is not empty", completion["error_code"])
        message = completion["error_message"]
        check.true(message is None or isinstance(message, str), "error_message is a text or null", message)


@clause("HIO-D3-12", "HIO-D4-01", "HIO-D4-02", "HIO-D4-03")
def test_a_response_has_no_other_members(impl, check):
    """Two ids and a completion, which has three members, of requests that succeed and that fail (AMB-HIO-53)."""
    host = connected(impl, check)
    answers = host.exchange(host.write(), host.read(), FAILING["missing member"](host))
    check.equal(len(answers.responses), 3, "the number of responses")
    check.reading("AMB-HIO-53", "allowed", bool(answers.members))
    check.equal(list(answers.members), [], "the members that the schema does not name")


@clause("HIO-D4-02", "HIO-D4-07", "HIO-Context-04")
@pytest.mark.parametrize("cause", FAILING)
def test_a_cause_has_the_same_code_each_time(impl, check, cause):
    """Alone and after others, under any ids (AMB-HIO-10, AMB-HIO-52)."""
    host = connected(impl, check)
    request = FAILING[cause](host)
    [first] = host.completions(request)
    others = [build(host) for build in SUCCEEDING.values()]
    again = [host.another(request) | {"correlation_id": f"flow {number % 5}"} for number in range(20)]
    codes = judged(host.completions(*again[:10])) + judged(host.completions(*others, *again[10:]))[len(others) :]
    check.equal(codes, judged([first]) * 20, "ok and error_code, each time")


@clause("HIO-D4-07", "HIO-Context-04")
def test_the_same_requests_have_the_same_completions_again(impl, check):
    """A sequence of requests that succeed and fail, repeated under other correlation ids."""
    host = connected(impl, check)
    requests = mixed(host)
    actual = [
        judged(host.completions(*(request | {"correlation_id": f"run {run}"} for request in requests)))
        for run in range(4)
    ]
    for again in actual[1:]:
        check.equal(again, actual[0], "ok and error_code of each request")


@clause("HIO-D4-07", "HIO-Context-04")
@feature("endpoint-control")
def test_the_same_requests_have_the_same_completions_on_another_endpoint(impl, check):
    """The same frames, ids included; some depend on what was written before, noticed or not (AMB-HIO-26)."""
    size = {"sips": 2, "cubes": 2, "pes": 3, "queue_depth": 64}
    runs = []
    for _ in range(3):
        check.returns(impl.host_io.open(machine=size), "an endpoint is opened")
        host = connected(impl, check)
        before = [host.launch(host.binary(place)) for place in host.machine.neighbours()]
        unwritten = judged(host.completions(*before))
        runs.append(unwritten + judged(host.completions(*mixed(host))))
    for again in runs[1:]:
        check.equal(again, runs[0], "ok and error_code of each request")


@clause("HIO-D4-07", "HIO-Context-04")
@feature("delivery-order")
@pytest.mark.parametrize("seed", range(1, 6))
def test_the_order_of_completion_changes_no_completion(impl, check, seed):
    """Requests that are completed in another order have the completions that they have in order (AMB-HIO-48)."""
    host = connected(impl, check)
    requests = mixed(host)
    plain = host.completions(*(request | {"correlation_id": "in order"} for request in requests))
    actual = host.completions(*(request | {"correlation_id": "shuffled"} for request in requests), seed=seed)
    check.equal(judged(actual), judged(plain), "ok and error_code of each request")
