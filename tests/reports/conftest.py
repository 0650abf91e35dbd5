"""Report files written by hand, line by line, and a registry of a few clauses: no implementation has run for them."""

from __future__ import annotations

import copy
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tessera_conformance.registry import Clause, Document, Interpretation, Registry
from tessera_conformance.reports.journal import JournalWriter, Report

MUSTS: dict[str, dict[str, Any]] = {
    "RT-10.1-01": {"document": "runtime_abi", "profile": "core", "by": "effect", "excused": "no case is due here"},
    "RT-10.1-02": {"document": "runtime_abi", "profile": "extended", "by": "effect"},
}
"""A run without anything that keeps a claim from success, unless a test adds it."""

PROFILES: dict[str, dict[str, Any]] = {}

NASTY = "<script>alert(1)</script>"

HEADER: dict[str, Any] = {
    "harness": "tessera-conformance 0.1.0",
    "registry": {"clauses": 9, "sha256": "ab" * 32},
    "implementation": {
        "label": "rpc:acme --device 'x 1'",
        "hello": {
            "protocol": {"minimum": 1, "maximum": 1},
            "implementation": {"name": "acme-runtime", "version": "2.1", "device": "acme-x1"},
            "documents": ["runtime_abi", "language_ir"],
            "arithmetic": {"level": "deterministic"},
        },
        "fault": None,
    },
    "selection": {
        "profile": "core",
        "level": "deterministic",
        "shard": None,
        "complete": True,
        "today": None,
        "deviations": [
            {
                "cases": "ir/known/*",
                "mode": "must_fail",
                "reason": "rounds twice",
                "owner": "ada",
                "expires": "2027-01-01",
                "clause": None,
            }
        ],
    },
    "run": {"started": "2026-11-20T08:00:00+00:00", "python": "3.11.7", "platform": "linux", "command": ["pytest"]},
}

DIFFERENCE = {
    "reason": "bits differ",
    "index": [3, 7],
    "expected_bits": "0x3f811fff",
    "actual_bits": "0x3f812000",
    "ulp": 1,
    "elements": 2,
    "of": 128,
}
BITS_REASON = "the bits: element [3, 7]: 0x3f812000, expected 0x3f811fff  1 ULP  (2 of 128 elements differ)"


def tensor(bits: str, shape: Sequence[int]) -> dict[str, Any]:
    return {"$tensor": {"dtype": "fp32", "shape": list(shape), "bits": bits}}


def check(passed: bool = True, kind: str = "equal", difference: Any = None) -> dict[str, Any]:
    expected, actual = (tensor("3f811fff", [1]), tensor("3f812000", [1])) if kind == "bits" else (24, 24)
    what = "the bits" if kind == "bits" else "the buffer's size"
    told = {"kind": kind, "passed": passed, "what": what, "expected": expected, "actual": actual}
    return told | {"difference": difference}


def exchange(observation: Mapping[str, Any], **run: Any) -> dict[str, Any]:
    params = {"source": f"module m {{\n  // {NASTY}\n}}", "inputs": {"a": tensor("3f8000004000000040400000", [3])}}
    return {
        "method": "language.execute",
        "params": params,
        "observation": observation,
        "run": {"seconds": 0.002, **run},
    }


def line(case: str, verdict: str = "pass", clauses: Sequence[str] = ("RT-10.1-01",), **changes: Any) -> dict[str, Any]:
    """An observation line with one check and one exchange, changed as asked."""
    reason = "" if verdict == "pass" else f"because of {verdict}"
    return {
        "case": case,
        "title": f"What {case} is about",
        "clauses": list(clauses),
        "levels": ["fast", "deterministic", "strict"],
        "needs": [],
        "judges": ["effect"] if verdict == "pass" else [],
        "verdict": verdict,
        "disposition": "none",
        "reason": reason,
        "cause": {"unsupported": "feature", "inapplicable": "document"}.get(verdict, ""),
        "interpretation": "",
        "leans": [],
        "cites": [],
        "methods": ["language.execute"],
        "traits": [],
        "checks": [check()] if verdict == "pass" else [],
        "exchanges": [exchange({"returned": {"size": 24}})],
        "run": {"seconds": 0.01},
    } | changes


def every_kind() -> list[dict[str, Any]]:
    """A case of each verdict and each disposition."""
    fault = {"fault": {"kind": "crash", "detail": "SIGSEGV in launch", "reproducible": True}}
    failing = {"reason": BITS_REASON, "checks": [check(), check(False, "bits", DIFFERENCE)]}
    crashed = {"exchanges": [exchange(fault, stderr="Segmentation fault\x1b[31m at 0x0")]}
    return [
        line("abi/buffer/padding", clauses=["RT-10.1-01"]),
        line("abi/buffer/size", clauses=["RT-10.1-02"]),
        line("ir/matmul/k-tail", "fail", ["LANG-15-01"], **failing),
        line("ir/matmul/nasty", "fail", ["LANG-15-01"], title=NASTY, reason=f"{NASTY} ]]> & \x00\x1b\ud7ff\ufffe"),
        line("ir/known/rounding", "fail", ["LANG-05-01"], disposition="known_deviation"),
        line("ir/known/waived", "crash", ["LANG-05-01"], disposition="waived"),
        line("ir/known/unexpected", clauses=["LANG-05-02"], disposition="unexpected_pass"),
        line("runtime/launch/crash", "crash", ["RT-12-01"], **crashed),
        line("runtime/launch/hang", "hang", ["RT-12-01"]),
        line("runtime/launch/garbled", "protocol_error", ["RT-12-01"]),
        line("runtime/launch/harness", "harness_error", ["RT-12-01"]),
        line("runtime/fp8/cast", "unsupported", ["RT-12-02"]),
        line("collectives/ring/order", "inapplicable", ["COLL-01-01"]),
    ]


Build = Callable[..., Report]


@pytest.fixture
def lacking() -> Callable[[str, str], dict[str, Any]]:
    """Makes the line of a case that failed because a feature was answered as unsupported."""

    def make(case: str, feature: str) -> dict[str, Any]:
        told = exchange({"unsupported": {"feature": feature}})
        reason = f"claimed, but the implementation answered that it does not support {feature}"
        return line(case, "fail", exchanges=[told], reason=reason)

    return make


@pytest.fixture
def not_started(build: Build) -> Report:
    """The report of an implementation that wrote fourteen lines and ended."""
    header = {
        "implementation": {"label": "rpc:acme", "hello": None, "fault": "exit code 3"},
        "run": {"stderr": "".join(f"line {number}\n" for number in range(1, 15))},
    }
    return build([line(f"abi/{number}", "crash", exchanges=[]) for number in range(3)], header=header)


@pytest.fixture
def observations() -> list[dict[str, Any]]:
    """A case of each verdict and each disposition."""
    return every_kind()


@pytest.fixture
def observation() -> Callable[..., dict[str, Any]]:
    """Makes one observation line."""
    return line


@pytest.fixture
def build(tmp_path: Path) -> Build:
    """Writes a report file of the given lines and seals it.

    `selection` changes the header, `planned` adds cases, `musts` and `profiles` are what the claim is about.
    """

    def make(
        lines: Sequence[dict[str, Any]],
        *,
        name: str = "report",
        planned: Sequence[str] = (),
        problems: Sequence[str] = (),
        header: Mapping[str, Any] | None = None,
        musts: Mapping[str, Any] = MUSTS,
        profiles: Mapping[str, Any] = PROFILES,
        products: Mapping[str, Any] = PROFILES,
        **selection: Any,
    ) -> Report:
        writer = started(tmp_path / name, lines, planned, header, selection, musts, profiles, products)
        return writer.finish(problems, {"seconds": 41.25})

    return make


def started(
    directory: Path,
    lines: Sequence[dict[str, Any]],
    planned: Sequence[str] = (),
    header: Mapping[str, Any] | None = None,
    selection: Mapping[str, Any] | None = None,
    musts: Mapping[str, Any] = MUSTS,
    profiles: Mapping[str, Any] = PROFILES,
    products: Mapping[str, Any] = PROFILES,
) -> JournalWriter:
    """A report as a run leaves it that has not ended yet."""
    rules = {"musts": musts, "profiles": profiles, "products": products}
    head = copy.deepcopy(HEADER) | dict(header or {})
    head["selection"] |= selection or {}
    writer = JournalWriter(directory / "report.jsonl")
    writer.header(head)
    writer.plan([*(one["case"] for one in lines), *planned], rules)
    for one in lines:
        writer.observation(one)
    return writer


@pytest.fixture
def killed(tmp_path: Path) -> Callable[[Sequence[dict[str, Any]]], Path]:
    """Writes the report file of a run that ends without sealing it."""

    def make(lines: Sequence[dict[str, Any]]) -> Path:
        writer = started(tmp_path / "killed", lines)
        writer._file.close()
        return writer.path

    return make


def clause(document: str, name: str, level: str = "MUST", **changes: Any) -> Clause:
    fields: dict[str, Any] = {
        "document": document,
        "id": name,
        "section": name.split("-")[1].removeprefix("0"),
        "lines": (1, 1),
        "source": "sha256:00",
        "level": level,
        "kind": "requirement",
        "summary": f"What {name} demands",
        "verify": "test",
        "reason": None,
        "area": "abi",
        "topic": "topic",
        "feature": "core",
        "profile": "core",
        "duplicate_of": None,
        "interpretations": (),
        "since": "0.1.0",
        "status": "active",
    }
    return Clause(**fields | changes)


@pytest.fixture
def registry() -> Registry:
    """Nine active clauses of three documents, one a twin, one not testable, one untested; and a withdrawn one."""
    clauses = [
        clause("runtime_abi", "RT-10.1-01"),
        clause("runtime_abi", "RT-10.1-02", interpretations=("AMB-RT-16",)),
        clause("runtime_abi", "RT-12-01"),
        clause("runtime_abi", "RT-12-02", "SHOULD"),
        clause("runtime_abi", "RT-13-01", "INFO", verify="inspection"),
        clause("runtime_abi", "RT-13-02", status="withdrawn"),
        clause("language_ir", "LANG-05-01"),
        clause("language_ir", "LANG-05-02"),
        clause("language_ir", "LANG-15-01"),
        clause("language_ir", "LANG-15-02", duplicate_of="LANG-15-01"),
        clause("collectives", "COLL-01-01", "SHOULD", summary=f"A summary with {NASTY}"),
        clause("collectives", "COLL-01-02", "MAY"),
    ]
    titles = {"runtime_abi": "Runtime & ABI", "language_ir": "Language and IR", "collectives": "Collectives"}
    sections = {"15": "Appendix B"}
    documents = {key: Document(key, title, "X", "spec.txt", 10, "00", sections) for key, title in titles.items()}
    decided = Interpretation(
        "runtime_abi",
        "AMB-RT-16",
        ("10.1",),
        "The size may or may not be rounded",
        "Sizes are rounded up",
        "Section 10.1 says so",
        (),
        ("RT-10.1-02",),
        "that",
        "0.1.0",
        "active",
    )
    return Registry(documents, {one.id: one for one in clauses}, {decided.id: decided})


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A browser without a window; an event loop runs while it is there, and other tests need their own."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("chromium is not on PATH (Debian: apt-get install chromium)")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is missing (pip install playwright)")
    options = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-dev-shm-usage"]
    with playwright.sync_playwright() as running:
        launched = running.chromium.launch(executable_path=chromium, args=options)
        yield launched
        launched.close()


@pytest.fixture
def open_file(browser: Any) -> Iterator[Callable[..., Any]]:
    """Opens a page from a file; what the browser complains of or asks for beside the page fails the test."""
    complaints: list[str] = []
    requests: list[str] = []

    def dismiss(dialog: Any) -> None:
        complaints.append(f"dialog {dialog.message}")
        dialog.dismiss()

    context = browser.new_context(viewport={"width": 1400, "height": 1000})
    tab = context.new_page()
    tab.on("console", lambda message: complaints.append(message.text))
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    tab.on("dialog", dismiss)
    tab.on("request", lambda request: requests.append(request.url))

    def go(path: Path, address: str = "", width: int = 1400) -> Any:
        tab.set_viewport_size({"width": width, "height": 1000})
        tab.goto("about:blank")  # so that the page is loaded, where only what follows # differs
        requests.clear()
        tab.goto(path.as_uri() + address)
        tab.locator("main:not([aria-busy])").wait_for()
        return tab

    yield go
    assert complaints == []
    assert all(url.startswith("file://") for url in requests)
    assert len(set(requests)) == 1  # a page may be loaded again
    context.close()
