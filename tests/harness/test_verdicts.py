"""Whole runs over the sample suite: verdicts, known deviations, and the report that holds them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tessera_conformance.reports.journal import JournalWriter, read, without_run
from tessera_conformance.verdicts import Deviations, MalformedDeviations

pytestmark = pytest.mark.slow


# A whole run over the sample suite: each case gets the verdict that it deserves, and the report holds together.

EXPECTED = {
    "belongs-to-an-unclaimed-document": "inapplicable",
    "differs-in-one-bit": "fail",
    "is-broken": "harness_error",
    "is-refused": "pass",
    "is-refused-for-the-wrong-reason": "fail",
    "is-skipped-by-hand": "harness_error",
    "judges-another-level": "inapplicable",
    "makes-no-check": "harness_error",
    "needs-a-core-feature": "fail",
    "needs-an-unclaimed-feature": "unsupported",
    "passes/1": "pass",
    "passes/2": "pass",
}


@pytest.fixture(scope="module")
def whole_run(shared_checkout):
    """The run of the whole sample suite, which several tests read."""
    return shared_checkout.run(report="whole", command=["-p", "no:randomly"])


def test_each_case_gets_its_verdict(whole_run):
    assert whole_run.verdicts() == EXPECTED
    assert whole_run.exit_code == pytest.ExitCode.TESTS_FAILED
    assert whole_run.report.claim == "failure"


def test_a_failing_case_says_what_was_sent_and_where_it_first_differs(whole_run):
    line = whole_run.observation("differs-in-one-bit")
    (exchange,) = line["exchanges"]
    assert exchange["method"] == "language.execute"
    assert exchange["params"]["inputs"]["A"]["$tensor"]["bits"] == "3f803f803f813f80"
    assert exchange["observation"]["returned"]["outputs"][0]["$tensor"]["bits"] == "3f803f803f813f80"
    assert [check["kind"] for check in line["checks"]] == ["returns", "equal", "bits"]
    difference = line["checks"][-1]["difference"]
    assert (difference["index"], difference["expected_bits"], difference["actual_bits"]) == ([1, 0], "0x3f80", "0x3f81")
    assert (difference["ulp"], difference["elements"], difference["of"]) == (1, 1, 4)


def test_a_claimed_feature_that_is_unsupported_fails(whole_run):
    line = whole_run.observation("needs-a-core-feature")
    assert line["verdict"] == "fail"
    assert "claimed, but the implementation answered that it does not support language.missing" in line["reason"]


def test_a_case_without_checks_is_never_a_pass(shared_checkout):
    done = shared_checkout.run("-k", "no_check")
    assert "made no checks" in done.observation("makes-no-check")["reason"]
    assert done.exit_code == pytest.ExitCode.TESTS_FAILED


def test_a_narrowed_run_without_failures_is_only_partial(shared_checkout):
    done = shared_checkout.run("-k", "passes")
    assert (done.exit_code, done.report.claim) == (0, "partial")


PARTS = [
    ("--deselect=conformance/ir/test_sample.py::test_is_refused",),
    ("--ignore-glob=*second*",),
    ("-m", "not level"),
]


def test_a_run_that_leaves_something_out_is_not_complete(checkout):
    """However it is left out: what was not planned cannot fail, so the claim is partial at best."""
    heading = "from tessera_conformance.marks import clause\n\n"
    second = heading + "@clause('LANG-02-01')\ndef test_x(check):\n    check.true(True, 'x')\n"
    (checkout.directory / "conformance" / "ir" / "test_second.py").write_text(second)
    assert checkout.run().report.header["selection"]["complete"] is True
    for options in PARTS:
        assert checkout.run(*options).report.header["selection"]["complete"] is False, options


def test_a_level_at_which_cases_are_not_judged_is_only_partial(checkout):
    """Nothing fails at level fast, but a case of another level was not judged."""
    suite = checkout.directory / "conformance" / "ir" / "test_sample.py"
    text = suite.read_text().split("@clause", 1)[0]
    one = '@clause("LANG-02-01")\n{mark}def test_{name}(check):\n    check.true(True, "x")\n\n\n'
    suite.write_text(text + one.format(mark="", name="any") + one.format(mark='@level("strict")\n', name="strict"))
    strict, fast = checkout.run("--level=strict"), checkout.run("--level=fast")
    assert "1 case of numerics is not judged at level fast" in " ".join(fast.output.split())
    assert "of numerics" not in strict.output
    assert (strict.report.claim, fast.report.claim) == ("partial", "partial")


def test_a_suite_that_judges_next_to_nothing_earns_no_success(checkout):
    """One case passes and none fails; the other core MUST clauses of the claimed document were not judged."""
    suite = checkout.directory / "conformance" / "ir" / "test_sample.py"
    text = suite.read_text().split("@clause", 1)[0]
    suite.write_text(text + '@clause("LANG-02-01")\ndef test_any(check):\n    check.true(True, "x")\n')
    done = checkout.run()
    assert (done.report.claim, done.exit_code) == ("partial", 0)
    assert "core MUST clauses are not judged: LANG-" in " ".join(done.output.split())
    assert "1 judged, 1 passed, 0 unsupported, " in " ".join(done.output.split())


def test_a_test_says_what_it_judges_where_its_checks_tell_it_wrong(checkout):
    suite = checkout.directory / "conformance" / "ir" / "test_sample.py"
    text = suite.read_text().split("@clause", 1)[0].replace("import clause,", "import clause, judges,")
    body = '@clause("LANG-02-01")\n{mark}def test_{name}(check):\n    check.equal(1, 1)\n\n\n'
    suite.write_text(text + body.format(mark="", name="a") + body.format(mark='@judges("refusal")\n', name="b"))
    done = checkout.run()
    assert done.observation("a")["judges"] == ["effect"]
    assert done.observation("b")["judges"] == ["refusal"]
    suite.write_text(text + body.format(mark='@judges("refusals")\n', name="c"))
    assert "unknown mark judges('refusals'): expected one of effect, acceptance, refusal" in checkout.run().output


def test_a_claim_of_a_feature_that_does_not_exist_is_a_problem(shared_checkout):
    done = shared_checkout.run("--impl=py:echo:ClaimsATypo", "-k", "passes")
    assert done.report.claim == "failure"
    (problem,) = done.report.footer["problems"]
    assert "'extra_dtypes', which is no feature; did you mean extra-dtypes?" in problem


def test_what_a_dying_implementation_said_is_kept(shared_checkout, fake_command):
    header = shared_checkout.run(f"--impl=rpc:{fake_command('dies_at_start')}", "-k", "passes").report.header
    assert "exit code 7" in header["implementation"]["fault"]
    assert "cannot find libacme.so.3" in header["run"]["stderr"]


def test_profile_core_leaves_out_extended_clauses(shared_checkout):
    verdicts = shared_checkout.run("--profile=core").verdicts()
    assert verdicts["needs-an-unclaimed-feature"] == "inapplicable"
    assert {name: verdict for name, verdict in verdicts.items() if EXPECTED[name] != verdict} == {
        "needs-an-unclaimed-feature": "inapplicable"
    }


def test_another_level_runs_other_cases(shared_checkout):
    assert shared_checkout.run("--level=fast").verdicts()["judges-another-level"] == "fail"


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("fake", "verdict"),
    [
        ("dies_at_start", "crash"),
        ("speaks_another_protocol", "protocol_error"),
        ("returns_too_many_outputs", "fail"),
        ("answers_twice", "unsupported"),
        ("hangs", "hang"),
        ("crashes_in_a_call", "crash"),
        ("claims_nothing", "inapplicable"),
        ("closes_its_output", "protocol_error"),
    ],
)
def test_no_fault_of_an_implementation_ends_the_run(shared_checkout, fake_command, fake, verdict):
    """Every verdict that a fault leads to; the faults themselves are named in `test_misbehaving_implementations.py`.

    A run is of two cases, one of them of two calls, and each case has the verdict of that fault.
    """
    done = shared_checkout.run(f"--impl=rpc:{fake_command(fake)}", "-k", "passes and 2 or one_bit", "--deadline=0.5")
    assert done.report.problem is None
    assert set(done.verdicts()) == {"passes/2", "differs-in-one-bit"}
    assert set(done.verdicts().values()) == {verdict}


def test_in_process_and_rpc_give_the_same_report(shared_checkout, whole_run):
    command = f"{sys.executable} -m tessera_conformance serve py:echo:Echo"
    assert shared_checkout.run(f"--impl=rpc:{command}", report="rpc").verdicts() == whole_run.verdicts()


@pytest.mark.parametrize("workers", ["0", "2"])
def test_the_report_is_the_same_bytes_in_any_order_and_under_xdist(shared_checkout, whole_run, workers):
    pytest.importorskip("xdist", reason="pip install pytest-xdist")
    other = shared_checkout.run(report="other", command=["-n", workers, "-p", "reversed_order"])
    assert _canonical(other.path) == _canonical(whole_run.path)


def _canonical(path: Path) -> list[object]:
    return [without_run(json.loads(line)) for line in path.read_text().splitlines()]


def test_shards_divide_the_suite(shared_checkout):
    parts = [set(shared_checkout.run(f"--shard={k}/3").verdicts()) for k in (1, 2, 3)]
    assert set().union(*parts) == set(EXPECTED)
    assert sum(len(part) for part in parts) == len(EXPECTED)


def test_a_killed_run_leaves_a_readable_and_invalid_report(checkout, fake_command, tmp_path):
    """The implementation outlives the run and ends once it has a file `go`, so that the test leaves nothing behind."""
    implementation = f"--impl=rpc:{fake_command('waits')} {tmp_path}"
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", "-q", implementation, "--deadline=0.6", "conformance"],
        cwd=checkout.directory,
        env={**os.environ, "PYTHONPATH": "conformance/harness", "TMPDIR": str(tmp_path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    path = checkout.directory / "report" / "report.jsonl"
    limit = time.monotonic() + 60
    while time.monotonic() < limit and (not path.exists() or path.read_text().count("\n") < 3):
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    (tmp_path / "go").touch()
    report = read(path)
    assert report.problem is not None
    assert "footer" in report.problem or "cut off" in report.problem
    assert report.claim == "invalid"
    assert len(report.observations) >= 1
    assert len(report.plan["cases"]) == len(EXPECTED)


def test_a_worker_that_dies_is_a_crash_of_its_case(shared_checkout):
    pytest.importorskip("xdist", reason="pip install pytest-xdist")
    done = shared_checkout.run("--impl=py:echo:KillsItsProcess", "-k", "one_bit", command=["-n", "1"])
    assert done.verdicts() == {"differs-in-one-bit": "crash"}
    assert done.report.claim == "failure"
    assert done.observation("differs-in-one-bit")["clauses"] == ["LANG-02-01", "LANG-10-02"]


def test_a_python_hang_is_a_hang(shared_checkout):
    done = shared_checkout.run("--impl=py:echo:Sleeps", "-k", "one_bit", "--deadline=0.2")
    assert done.verdicts() == {"differs-in-one-bit": "hang"}


def test_an_exception_of_an_adapter_is_a_crash_with_its_traceback(shared_checkout):
    done = shared_checkout.run("--impl=py:echo:Raises", "-k", "one_bit")
    line = done.observation("differs-in-one-bit")
    assert (line["verdict"], line["reason"]) == ("crash", "LookupError: no such register")
    assert "echo.py" in line["exchanges"][0]["run"]["stderr"]


# Known deviations excuse what they name, and cannot rot.

ENTRY = """
[[deviation]]
cases = "{cases}"
mode = "{mode}"
reason = "the multiplier drops the last bit"
owner = "numerics"
expires = {expires}
"""


@pytest.fixture
def run_with(shared_checkout, tmp_path):
    """Run the two cases of the sample that pass and the one that fails, under some deviations."""

    def run(*entries: dict, options=("-k", "passes or one_bit"), today="2026-11-20"):
        defaults = {"mode": "must_fail", "expires": "2027-01-31"}
        path = tmp_path / "known.toml"
        path.write_text("".join(ENTRY.format(**{**defaults, **entry}) for entry in entries))
        return shared_checkout.run(f"--deviations={path}", f"--today={today}", *options)

    return run


def test_a_known_deviation_does_not_count(run_with):
    done = run_with({"cases": "ir/sample/differs-*"})
    assert done.observation("differs-in-one-bit")["disposition"] == "known_deviation"
    assert done.observation("differs-in-one-bit")["verdict"] == "fail"
    assert (done.exit_code, done.report.claim) == (0, "partial")


def test_what_may_fail_is_waived(run_with):
    done = run_with({"cases": "ir/sample/*", "mode": "may_fail"})
    assert done.observation("differs-in-one-bit")["disposition"] == "waived"
    assert done.observation("passes/1")["disposition"] == "none"
    assert done.exit_code == 0


def test_an_unexpected_pass_fails_the_run(run_with):
    done = run_with({"cases": "ir/sample/differs-*"}, {"cases": "ir/sample/passes/*"})
    assert done.observation("passes/1")["disposition"] == "unexpected_pass"
    assert (done.exit_code, done.report.claim) == (1, "failure")


def test_an_expired_deviation_fails_the_run(run_with):
    done = run_with({"cases": "ir/sample/differs-*", "expires": "2026-11-19"})
    assert "expired on 2026-11-19" in done.report.footer["problems"][0]
    assert (done.exit_code, done.report.claim) == (1, "failure")


def test_a_deviation_that_matches_nothing_fails_a_whole_run(run_with):
    unmatched = {"cases": "ir/sample/no-such-case"}
    failing = {"cases": "ir/sample/*", "mode": "may_fail"}
    assert run_with(failing, unmatched).report.footer["problems"] == []
    done = run_with(failing, unmatched, options=())
    assert done.report.footer["problems"] == [
        "deviation 'ir/sample/no-such-case' matches no case: remove or correct it"
    ]
    assert done.report.claim == "failure"


def test_a_malformed_file_is_refused(run_with, tmp_path):
    done = run_with({"cases": "x", "mode": "should_fail"})
    assert done.exit_code == pytest.ExitCode.USAGE_ERROR
    assert ":4: mode: 'should_fail' is not one of" in done.output
    for cases, expires, words in (("x", '"soon"', ":7: expires: "), ("", "2027-01-31", ":3: cases: ")):
        path = tmp_path / "malformed.toml"
        path.write_text(ENTRY.format(cases=cases, expires=expires, mode="must_fail"))
        with pytest.raises(MalformedDeviations, match=words):
            Deviations.read(path)


# The report that a run keeps in memory equals the report file.


def test_the_sealed_report_is_what_is_read_back(whole_run, tmp_path):
    report = whole_run.report
    assert report.problem is None
    writer = JournalWriter(tmp_path / "report.jsonl")
    writer.header({key: value for key, value in report.header.items() if key not in ("record", "format")})
    plan = report.plan
    writer.plan(plan["cases"], plan)
    for line in reversed(report.observations):
        writer.observation({key: value for key, value in line.items() if key != "record"})
    kept, actual = writer.finish(report.footer["problems"], {"seconds": 1}), read(tmp_path / "report.jsonl")
    assert (kept.header, kept.plan, kept.observations) == (actual.header, actual.plan, actual.observations)
    assert (kept.footer, kept.problem, kept.claim) == (actual.footer, actual.problem, actual.claim)
    assert actual.observations == report.observations
