"""`tessera-conformance smoke`: a plain case of each kind for the claimed documents and features, and its outcome."""

from __future__ import annotations

import argparse
import shlex
import sys
from contextlib import closing

import pytest

from tessera_conformance.cases import SuiteNotCollected, clauses_directory
from tessera_conformance.collection import CollectedSuite
from tessera_conformance.protocol import Fault, Unsupported, describe
from tessera_conformance.registry import RegistryError, load_registry
from tessera_conformance.strength.matrix import put
from tessera_conformance.suite_run import SuiteRun, strange_claims
from tessera_conformance.terminal import error_text, print_error, quoted_tail, reporting_errors, visible
from tessera_conformance.transports import ImplementationUnavailable
from tessera_conformance.transports.locate import COMPILERS, FORMS, locate, via_of
from tessera_conformance.verdicts import WAYS

CASES = {
    "ir/test_grammar.py::test_a_malformed_module_is_refused[keyword]": "a module, and one that is misspelt",
    "ir/test_constructs.py::test_the_plainest_program_with_a_construct_is_legal[function]": "a legal program",
    "ir/test_rejections.py::test_shape[reshape-to-more-elements]": "a program with a shape that does not fit",
    "ir/test_graph_ir.py::test_a_module_becomes_a_graph_ir_module": "a program to Graph IR",
    "ir/test_elementwise.py::test_golden[fp32/add/edges]": "an addition",
    "abi/test_parameter_layout.py::test_a_pointer_has_eight_bytes[x*]": "a pointer as a parameter",
    "runtime/test_legal_calls.py::test_tessgetversion": "the version",
    "runtime/test_legal_calls.py::test_tessmemcpyasync": "bytes to the device and back",
    "collectives/test_all_reduce.py::test_golden[fp32/sum/ranks-2]": "a sum over two ranks",
    "abi/host_io/test_completion.py::test_a_request_that_succeeds_has_no_error[read]": "a read of memory",
    "runtime/wsp/test_network_channels.py::test_a_token_is_received_as_it_was_sent[[0]]": "a token between processes",
}
"""The node ids of the cases, in the order in which they run, and what each is about."""
SOUND, UNSOUND, UNUSABLE = 0, 1, 2
NAME_WIDTH = 22


def configure_smoke(parser: argparse.ArgumentParser) -> None:
    """The command `smoke`."""
    parser.add_argument("implementation", nargs="?", metavar="IMPL", help=FORMS)
    parser.add_argument("--impl", metavar="IMPL", help="the same, as the other commands take it")
    parser.add_argument("--via", choices=WAYS, default="programs", help="as of the run: by operations asks no program")
    parser.add_argument("--compiler", default=None, metavar="COMPILER", help=COMPILERS)
    parser.add_argument("--deadline", type=float, default=10.0, metavar="SECONDS", help="for each call")
    parser.set_defaults(handler=reporting_errors(smoke, ImplementationUnavailable, RegistryError, SuiteNotCollected))


def smoke(arguments: argparse.Namespace) -> int:
    """Return 0 if no answer is wrong; 1 if one is, or breaks the protocol, or a claim is no feature; 2 without answers.

    An unsupported answer is not wrong here. A run counts it as a failure if it was claimed; the output says so.
    """
    named = [name for name in (arguments.implementation, arguments.impl) if name]
    if len(named) != 1:
        print_error(error_text("smoke", f"{len(named)} implementations are named", f"one, --impl and one of {FORMS}"))
        return UNUSABLE
    transport, deadlines = locate(named[0], arguments.compiler), (arguments.deadline, arguments.deadline)
    registry = load_registry(clauses_directory())
    run = SuiteRun(transport, registry, via=via_of(named[0], arguments.via), deadlines=deadlines)
    with closing(run.session):
        return _smoke(run)


def _smoke(run: SuiteRun) -> int:
    hello = run.hello
    if isinstance(hello, Fault):
        _print("session.open", describe(hello), hello)
        return UNSOUND
    _print("session.open", f"{hello.name} {hello.version}, claims {', '.join(hello.documents) or 'no document'}")
    strange = strange_claims(hello, run.registry)
    for sentence in strange:
        _print("session.open", f"wrong: {sentence}")
    suite = CollectedSuite(f"rpc:{shlex.quote(sys.executable)}", files=[*CASES])
    items = {item.nodeid: item for item in suite.items}
    outcomes = [outcome for node, what in CASES.items() if (outcome := _ask(run, items[node], what)) is not None]
    if not outcomes:
        print("nothing was asked, since nothing is claimed: name `documents` and `capabilities` in the Hello")
    return SOUND if outcomes and all(outcomes) and not strange else UNSOUND


def _ask(run: SuiteRun, item: pytest.Function, what: str) -> bool | None:
    """Run a case and print its outcome; return True unless an answer is wrong, None if the case does not apply."""
    case, judgement = put(run, item)
    calls = [exchange for exchange in case.exchanges if exchange.method != "session.reset"]
    if not calls or judgement.verdict == "inapplicable":
        return None
    method, answer = calls[-1].method.removeprefix("runtime."), calls[-1].observation
    if isinstance(answer, Unsupported):
        claimed = f"the feature {', '.join(case.needs)}" if case.needs else f"the core of {case.clauses[0].document}"
        counted = f"{claimed} is claimed, so that a run counts a failure" if judgement.verdict == "fail" else what
        _print(method, f"{describe(answer)}: {counted}")
        return True
    word = {"pass": "right", "fail": "wrong"}.get(judgement.verdict) or judgement.verdict.replace("_", " ")
    fault = next((one.observation for one in case.exchanges if isinstance(one.observation, Fault)), None)
    _print(method, ": ".join(filter(None, [f"{word}, {what}", judgement.reason])), fault)
    return judgement.verdict == "pass"


def _print(method: str, what: str, observation: object = None) -> None:
    print(f"{method:{NAME_WIDTH}} {what}")
    if isinstance(observation, Fault) and observation.stderr.strip():
        print(visible("\n".join(quoted_tail(observation.stderr, f"{'':{NAME_WIDTH}} "))))
