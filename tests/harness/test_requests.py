"""A request that cannot be met is refused in words: what was tried, what is wrong, what to do; and no traceback."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.slow

USAGE = pytest.ExitCode.USAGE_ERROR


@pytest.mark.parametrize(
    ("implementation", "words"),
    [
        ("py:nowhere:make", ["importing nowhere failed", "No module named 'nowhere'", "to fix: run `python -c"]),
        ("py:echo:Absent", ["module echo has no callable 'Absent'", "to fix: name a function or class"]),
        ("py:echo", ["module or factory is missing", "use py:module:factory"]),
        ("py:broken_import:make", ["importing broken_import failed", "acme driver 3 or newer", "to fix"]),
        ("rpc:no-such-program --x", ["no program 'no-such-program' is on PATH", "to fix: give the command"]),
        ("rpc:'unbalanced", ["No closing quotation", "balance the quotes"]),
        ("cabi:no/such/libacme.so", ["there is no file no/such/libacme.so", "to fix: name the shared library"]),
        (
            "acme",
            ["unknown form", "use reference, py:module:factory, rpc:command, cabi:/path/lib.so, hostio:unix:PATH or"],
        ),
    ],
)
def test_an_implementation_that_cannot_be_found(shared_checkout, implementation, words):
    done = shared_checkout.run(f"--impl={implementation}")
    assert done.exit_code == USAGE
    assert done.report is None
    assert [word for word in words if word not in done.output] == []


@pytest.mark.parametrize("option", ["--deadline=0", "--deadline=-1", "--start-deadline=inf"])
def test_a_deadline_that_is_no_time(shared_checkout, option):
    done = shared_checkout.run(option)
    assert (done.exit_code, "positive number of seconds" in done.output) == (USAGE, True)


@pytest.mark.parametrize("shard", ["0/3", "4/3", "half"])
def test_a_malformed_shard(shared_checkout, shard):
    done = shared_checkout.run(f"--shard={shard}")
    assert (done.exit_code, "expected k/N" in done.output) == (USAGE, True)


def test_a_case_to_reproduce_that_does_not_exist(shared_checkout):
    done = shared_checkout.run("--reproduce=ir/sample/passes/3")
    assert done.exit_code == USAGE
    assert "no such case: ir/sample/passes/3; did you mean ir/sample/passes/" in done.output
    assert done.report is None


@pytest.mark.parametrize(
    ("test", "words"),
    [
        ('@clause("LANG-02.1-99")\ndef test_x(check): ...', ["LANG-02.1-99", "LANG-02.1-09"]),
        ('@clause("LANG-02-99")\ndef test_x(check): ...', ["there is no clause LANG-02-99"]),
        ("def test_x(check): ...", ["no clause: every test of the suite names the clauses it judges"]),
        ('@clause("LANG-02-01")\n@level("quick")\ndef test_x(check): ...', ["unknown level 'quick'"]),
        (
            '@clause("LANG-02-01")\n@pytest.mark.parametrize("x", ["a b", "a-b"])\ndef test_x(check, x): ...',
            ["case id ir/more/x/a-b is also that of"],
        ),
    ],
)
def test_a_test_that_is_not_tagged_soundly_stops_the_run(checkout, test, words):
    """Unknown clause ids, missing tags and clashing case ids are errors of collection."""
    text = f"import pytest\nfrom tessera_conformance.marks import clause, level\n\n{test}\n"
    (checkout.directory / "conformance" / "ir" / "test_more.py").write_text(text)
    done = checkout.run()
    assert done.exit_code == USAGE, done.output
    assert done.report is None
    assert [word for word in words if word not in done.output] == []
