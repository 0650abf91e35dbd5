"""Known deviations excuse what they name, and cannot rot."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.slow

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


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"cases": "x", "mode": "should_fail"}, ":4: mode: 'should_fail' is not one of"),
        ({"cases": "x", "expires": '"soon"'}, ":7: expires: "),
        ({"cases": "", "expires": "2027-01-31"}, ":3: cases: "),
    ],
)
def test_a_malformed_file_is_refused(run_with, entry, words):
    done = run_with(entry)
    assert done.exit_code == pytest.ExitCode.USAGE_ERROR
    assert words in done.output
