"""A request that cannot be met is refused in words: what was tried, what is wrong, what to do; and no traceback."""

from __future__ import annotations

import argparse

import pytest

from tessera_conformance.cases import parse_shard
from tessera_conformance.options import add_options
from tessera_conformance.transports import ImplementationUnavailable
from tessera_conformance.transports.locate import locate

from .conftest import FAKES

pytestmark = pytest.mark.slow

USAGE = pytest.ExitCode.USAGE_ERROR


@pytest.mark.parametrize(
    ("implementation", "words"),
    [
        ("py:nowhere:make", ["py:nowhere:make: there is no module nowhere, here or on PYTHONPATH; run `python -c"]),
        ("py:echo:Absent", ["module echo has no callable 'Absent'; name a function or class"]),
        ("py:echo", ["module or factory is missing", "use py:module:factory"]),
        (
            "py:broken_import:make",
            ["importing broken_import failed: ", "broken_import.py:", "acme driver 3 or newer", "; run `python -c"],
        ),
        ("rpc:no-such-program --x", ["no program no-such-program is on PATH; give the command"]),
        ("rpc:./nope", ["rpc:./nope: there is no file ./nope; give the command"]),
        ("rpc:/dev/null", ["/dev/null is no program that may be run"]),
        ("referense", ["unknown form; did you mean reference?"]),
        ("rpc:'unbalanced", ["No closing quotation", "balance the quotes"]),
        ("cabi:no/such/libacme.so", ["there is no file no/such/libacme.so; name the shared library"]),
        ("cabi:lib.so,descriptions=d", ["there is no option descriptions; did you mean description?"]),
        ("cabi:lib.so,colour=d", ["there is no option colour; use cabi:/path/lib.so, with ,header=FILE "]),
        (
            "acme",
            ["unknown form", "use reference, py:module:factory, ops:module:table, rpc:command, cabi:/path/lib.so, "],
        ),
    ],
)
def test_an_implementation_that_cannot_be_found(monkeypatch, implementation, words):
    monkeypatch.syspath_prepend(FAKES)
    with pytest.raises(ImplementationUnavailable) as raised:
        locate(implementation)
    assert [word for word in words if word not in str(raised.value)] == []


@pytest.mark.parametrize("implementation", ["py:nowhere:make", "acme"])
def test_a_run_without_an_implementation_ends_before_it_begins(shared_checkout, implementation):
    done = shared_checkout.run(f"--impl={implementation}")
    assert done.exit_code == USAGE
    assert done.report is None
    assert f"error: {implementation}: " in done.output
    assert "Traceback" not in done.output


@pytest.mark.parametrize("option", ["--deadline=0", "--deadline=-1", "--start-deadline=inf"])
def test_a_deadline_that_is_no_time(capsys, option):
    parser = argparse.ArgumentParser()
    add_options(parser.add_argument)
    with pytest.raises(SystemExit):
        parser.parse_args(["--impl=reference", option])
    assert "positive number of seconds" in capsys.readouterr().err


@pytest.mark.parametrize("shard", ["0/3", "4/3", "half"])
def test_a_malformed_shard(shard):
    with pytest.raises(ValueError, match="expected k/N"):
        parse_shard(shard)


@pytest.mark.parametrize(
    ("option", "words"), [("--deadline=0", "positive number of seconds"), ("--shard=4/3", "expected k/N")]
)
def test_a_malformed_option_is_a_bad_request(shared_checkout, option, words):
    done = shared_checkout.run(option)
    assert (done.exit_code, words in done.output) == (USAGE, True)


def test_a_case_to_reproduce_that_does_not_exist(shared_checkout):
    done = shared_checkout.run("--reproduce=ir/sample/passes/3")
    assert done.exit_code == USAGE
    assert "no such case: ir/sample/passes/3; did you mean ir/sample/passes/" in done.output
    assert done.report is None


UNSOUND = {
    "a": ('@clause("LANG-02.1-99")\ndef test_a(check): ...', ["LANG-02.1-99", "LANG-02.1-09"]),
    "b": ('@clause("LANG-02-99")\ndef test_b(check): ...', ["there is no clause LANG-02-99"]),
    "c": ("def test_c(check): ...", ["no clause: every test of the suite names the clauses it judges"]),
    "d": ('@clause("LANG-02-01")\n@level("quick")\ndef test_d(check): ...', ["unknown level 'quick'"]),
    "e": (
        '@clause("LANG-02-01")\n@pytest.mark.parametrize("x", ["a b", "a-b"])\ndef test_e(check, x): ...',
        ["case id ir/more/e/a-b is also that of"],
    ),
}


def test_tests_that_are_not_tagged_soundly_stop_the_run(checkout):
    """Unknown clause ids, missing tags and clashing case ids are errors of collection, and all are told."""
    tests = "\n\n".join(text for text, _ in UNSOUND.values())
    text = f"import pytest\nfrom tessera_conformance.marks import clause, level\n\n{tests}\n"
    (checkout.directory / "conformance" / "ir" / "test_more.py").write_text(text)
    done = checkout.run()
    assert done.exit_code == USAGE, done.output
    assert done.report is None
    _, *told = done.output.split("conformance/ir/test_more.py::test_")
    problems = {each[0]: each for each in told if not each.startswith("e[a b]")}
    assert problems.keys() == UNSOUND.keys(), done.output
    for name, (_, words) in UNSOUND.items():
        assert [word for word in words if word not in problems[name]] == []
