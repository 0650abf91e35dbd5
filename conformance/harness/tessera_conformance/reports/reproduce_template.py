"""Asks an implementation again what one conformance case asked it, and compares the answer with what was expected.

    python THIS_FILE [--tries=N] [COMMAND [ARGUMENT ...]]

COMMAND starts an implementation of the line protocol on its standard input and output. Without one, the implementation
of the recorded run is started, in the directory of that run if it still exists. Only the standard library is needed,
and what starts the implementation. The case itself, its requests and what was expected, is at the end of this file.
A difference that depends on time need not show each time: the case is run up to N times, until it does. The default is
once, or three times for a case with streams. Exit codes: 0 when the answers are as expected, 1 when a difference still
shows, 2 when the implementation does not start, crashes or hangs. 3 means that the answers differ from the recorded
ones and only the suite can judge them.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import queue
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
from typing import Any

METHOD_NOT_FOUND = -32601
AS_EXPECTED, DIFFERS, NO_ANSWER, UNDECIDED = 0, 1, 2, 3


class NoAnswer(Exception):
    """The implementation did not start, died, hung, or did not speak the protocol."""


class Implementation:
    """A process that answers one JSON-RPC line with one JSON-RPC line."""

    def __init__(self, command: list[str], directory: str | None) -> None:
        self._exchange = tempfile.TemporaryDirectory(prefix="tessera-exchange-")  # of processes that it starts
        try:
            self._process = subprocess.Popen(
                command,
                cwd=directory,
                env={**os.environ, "TESSERA_CONFORMANCE_EXCHANGE": self._exchange.name},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=os.name == "posix",
            )
        except OSError as error:
            self._exchange.cleanup()
            raise NoAnswer(f"cannot start {shlex.join(command)}: {error.strerror}") from None
        self._lines: queue.Queue[bytes] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._last_id = 0

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(b"")

    def ask(self, method: str, params: Any, deadline: float) -> Any:
        """Return the result of one request: `returned`, `rejected` or `unsupported`."""
        self._last_id += 1
        request = {"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params}
        # A thread writes while this one waits, so that a process that reads nothing cannot block it.
        threading.Thread(target=self._write, args=(json.dumps(request).encode() + b"\n",), daemon=True).start()
        try:
            line = self._lines.get(timeout=deadline)
        except queue.Empty:
            raise NoAnswer(f"hang: {method}: no answer within {deadline:g} s") from None
        if not line:
            raise NoAnswer(f"crash: {method}: the implementation ended with {self._end()}")
        return self._result(method, line)

    def _write(self, line: bytes) -> None:
        assert self._process.stdin is not None
        rest = memoryview(line)
        with contextlib.suppress(OSError):  # the reading end reports a process that has exited
            while rest:
                rest = rest[os.write(self._process.stdin.fileno(), rest) :]

    def _result(self, method: str, line: bytes) -> Any:
        try:
            answer = json.loads(line)
            if answer["id"] != self._last_id:
                raise NoAnswer(f"protocol error: {method}: the answer carries id {answer['id']!r}")
            if "error" not in answer:
                if not isinstance(answer["result"], dict):
                    raise TypeError("a result is an object")
                return answer["result"]
            error = answer["error"]
            if error["code"] == METHOD_NOT_FOUND:
                return {"unsupported": {"feature": method}}
            raise NoAnswer(f"crash: {method}: {error['message']}")
        except (ValueError, KeyError, TypeError):
            raise NoAnswer(f"protocol error: {method}: {line[:200]!r}") from None

    def _end(self) -> str:
        try:
            code = self._process.wait(timeout=2.0)
        except subprocess.TimeoutExpired:
            return "its output closed"
        return f"exit code {code}" if code >= 0 else f"signal {-code}"

    def stop(self) -> None:
        """End the process and its child processes."""
        if os.name == "posix":
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()
        self._process.wait()
        self._reader.join(timeout=1.0)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None and not self._reader.is_alive():
                pipe.close()
        self._exchange.cleanup()


def words(tensor: Any, form: Any) -> list[int]:
    """Return the storage codes of a tensor message."""
    digits, bits = form["digits"], tensor["bits"]
    return [int(bits[start : start + digits], 16) for start in range(0, len(bits), digits)]


def is_nan(word: int, form: Any) -> bool:
    """True if a code is a NaN; fp8_e4m3 has one of each sign, and no infinity."""
    exponent, fraction = form["exponent"], form["fraction"]
    if not exponent or word & exponent != exponent:
        return False
    return bool(word & fraction != 0 if form["infinity"] else word & fraction == fraction)


def index_of(element: int, shape: list[int]) -> list[int]:
    """Return the indices of a row-major element number."""
    indices = []
    for extent in reversed(shape):
        indices.append(element % extent)
        element //= extent
    return indices[::-1]


def difference(actual: Any, expected: Any, form: Any) -> str | None:
    """Return the first difference of two tensor messages in a format, or None; any NaN equals any NaN."""
    if not isinstance(actual, dict) or not isinstance(actual.get("$tensor"), dict):
        return f"expected a tensor, found {short(actual)}"
    tensor, target = actual["$tensor"], expected["$tensor"]
    kind, expected_kind = (f"{one.get('dtype')} of shape {one.get('shape')}" for one in (tensor, target))
    if kind != expected_kind:
        return f"expected {expected_kind}, found {kind}"
    target_words = words(target, form)
    try:
        actual_words = words(tensor, form)
    except (KeyError, TypeError, ValueError):
        return f"malformed tensor: {short(actual)}"
    if len(actual_words) != len(target_words):
        return f"expected {len(target_words)} words, found {len(actual_words)}"
    digits = form["digits"]
    for place, (one, other) in enumerate(zip(actual_words, target_words, strict=True)):
        if one != other and not (is_nan(one, form) and is_nan(other, form)):
            index = index_of(place // form["words"], target["shape"])
            return f"element {index}: 0x{one:0{digits}x}, expected 0x{other:0{digits}x}"
    return None


def at(value: Any, path: list[Any]) -> Any:
    """Return the value at a path inside a nested value, or None."""
    for key in path:
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def wanted(check: Any, outcomes: list[Any]) -> Any:
    """Return the value that a check expects: its own, or that of another answer."""
    other = check["as"]
    return at(outcomes[other["exchange"]], other["path"]) if other else check["expected"]


def unsupported(outcome: Any) -> bool:
    """True if an answer reports, by the protocol or by its status, that the request is not supported."""
    return "unsupported" in outcome or outcome.get("rejected", {}).get("code") == "TESS_ERR_UNSUPPORTED"


def judge(check: Any, outcomes: list[Any]) -> str | None:
    """Return the fault of the answers in the light of one check, or None."""
    outcome = outcomes[check["exchange"]]
    rejected = outcome.get("rejected", {})
    match check["how"]:
        case "tensor":
            return difference(at(outcome, check["path"]), check["expected"], check["format"])
        case "value":
            actual, expected = at(outcome, check["path"]), wanted(check, outcomes)
            same = actual == expected and isinstance(actual, bool) == isinstance(expected, bool)
            return None if same else f"expected {short(expected)}, found {short(actual)}"
        case "bytes":
            actual, start = at(outcome, check["path"]), 2 * check["start"]
            expected = wanted(check, outcomes)
            part = actual[start : start + len(check["expected"])] if isinstance(actual, str) else None
            return None if part == expected else f"expected {short(expected)}, found {short(part)}"
        case "returned":
            if unsupported(outcome) and not unsupported(CASE["outcomes"][check["exchange"]]):
                return None  # what an implementation does not support is no difference to the suite
            return None if "returned" in outcome else f"expected a result, found {short(outcome)}"
        case "answered":
            return None if "unsupported" not in outcome else f"claimed, but {short(outcome)}"
        case "status":
            passed = rejected.get("code") == check["expected"]
        case "rejected":
            passed = refused_rightly(check, rejected)
    return None if passed else f"expected {short(check['expected'])}, found {short(outcome)}"


def refused_rightly(check: Any, rejected: Any) -> bool:
    """True if a rejection has an expected category and, where given, an expected phase and line."""
    entries = [entry for entry in rejected.get("diagnostics", []) if entry.get("severity", "error") == "error"]
    entries = entries or [{"category": rejected.get("code")}]
    in_phase = not check["phases"] or rejected.get("phase") in check["phases"]
    return in_phase and any(
        entry.get("category") in check["categories"] and check["line"] in (None, entry.get("line")) for entry in entries
    )


def short(value: Any) -> str:
    """Return a value as JSON, cut if it is long."""
    text = json.dumps(value)
    return text if len(text) <= 300 else f"{text[:300]} ... ({len(text)} characters)"


def resolved(value: Any, outcomes: list[Any]) -> Any:
    """Return a value of a request, with references replaced by values of these answers."""
    if isinstance(value, list):
        return [resolved(item, outcomes) for item in value]
    if not isinstance(value, dict):
        return value
    if "$from" in value:
        number, path = value["$from"]
        start = at(outcomes[number].get("returned"), path)
        return start + value["$plus"] if isinstance(start, int) else start
    if "$addresses" in value:
        data = bytearray.fromhex(value["$bytes"])
        for place, source in value["$addresses"]:
            address = resolved(source, outcomes)
            data[place : place + 8] = (address if isinstance(address, int) else 0).to_bytes(8, "little")
        return data.hex()
    return {name: resolved(item, outcomes) for name, item in value.items()}


def ask_all(command: list[str], directory: str | None) -> list[Any]:
    """Open a session, send the requests of the case, and print what comes back."""
    implementation = Implementation(command, directory)
    start, call = CASE["deadlines"]
    try:
        hello = implementation.ask("session.open", {"protocol": 1, "harness": "reproduce", "exchange": None}, start)
        print(f"answers  {short(at(hello, ['implementation']))}")
        outcomes: list[Any] = []
        for request in CASE["requests"]:
            params = resolved(request["params"], outcomes)
            print(f"send     {request['method']} {short(params)}")
            outcomes.append(implementation.ask(request["method"], params, call))
            print(f"came     {short(outcomes[-1])}")
        return outcomes
    finally:
        implementation.stop()


def introduce() -> None:
    """Print the case and its recorded verdict."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a reason may hold characters that the encoding lacks
    print(f"case     {CASE['case']}\n         {CASE['title']}")
    print(f"clauses  {', '.join(CASE['clauses'])}")
    print(f"then     {CASE['verdict']}: {CASE['reason']}")


def with_files() -> None:
    """Make a new folder for the files of the case, where it has any."""
    text = json.dumps(CASE)
    if "<folder>" in text:
        place = json.dumps(tempfile.mkdtemp(prefix="reproduce-"))[1:-1]
        CASE.update(json.loads(text.replace("<folder>", place)))


def main() -> int:
    """Run the case, judge the answers, and print the result."""
    with_files()
    if sys.argv[1:] in (["-h"], ["--help"]):
        print(__doc__)
        return AS_EXPECTED
    words, tries = sys.argv[1:], CASE["tries"]
    if words and words[0].startswith("--tries="):
        tries = max(1, int(words.pop(0).partition("=")[2]))
    command_line = shlex.split(words[0]) if len(words) == 1 else words
    directory = None if command_line or not os.path.isdir(CASE["directory"]) else CASE["directory"]
    introduce()
    command = command_line or CASE["command"]
    print(f"command  {shlex.join(command)}\n         in {directory or os.getcwd()}")
    if not command_line and CASE["needs"]:
        print(f"needs    {CASE['needs']}")
    code, result = AS_EXPECTED, ""
    for number in range(1, tries + 1):
        if tries > 1:
            print(f"try      {number} of at most {tries}")
        now, text = ask_once(command, directory)
        if now >= code:
            code, result = now, text
        if now in (DIFFERS, NO_ANSWER):
            code, result = now, text
            break
    print(f"result   {result}")
    return code


def ask_once(command: list[str], directory: str | None) -> tuple[int, str]:
    """Ask once, print what each check says, and return the exit code and its meaning."""
    try:
        outcomes = ask_all(command, directory)
    except NoAnswer as stop:
        return NO_ANSWER, str(stop)
    wrong = [judge(check, outcomes) for check in CASE["checks"]]
    for check, reason in zip(CASE["checks"], wrong, strict=True):
        print(f"check    {check['what']}: {reason or 'as expected'}")
    for check in CASE["suite_only"]:
        print(f"check    {check['what']}: expected {short(check['expected'])}, found then {short(check['actual'])}")
    return conclude(any(wrong), outcomes)


def conclude(wrong: bool, outcomes: list[Any]) -> tuple[int, str]:
    """Return the exit code and its meaning; a case that only the suite can judge is undecided.

    So is a check that only the suite can make, and an answer to a request that had none in the recorded run.
    """
    if wrong:
        return DIFFERS, "a difference still shows"
    if CASE["unanswered"]:
        return UNDECIDED, "an answer came this time; only the suite can judge it"
    if CASE["checks"] and not CASE["suite_only"]:
        return AS_EXPECTED, "as expected"
    now, then = ([*map(essence, answers, CASE["given"])] for answers in (outcomes, CASE["outcomes"]))
    if CASE["unseen"]:
        return UNDECIDED, f"{CASE['unseen']}; only the suite can judge it"
    if all(outcome == {"returned": {}} for outcome in now):
        return UNDECIDED, "no answer shows it; only the suite can judge it"
    if now == then:
        return DIFFERS, "the same answers as then"
    return UNDECIDED, "the answers are others than then; only the suite can judge them"


def essence(outcome: Any, paths: list[Any]) -> Any:
    """Return the part of an outcome that distinguishes two answers: the code and phase of a refusal, or the value.

    Handles and addresses at `paths` differ from run to run: only an address's offset in its 256 bytes is kept.
    """
    rejected = outcome.get("rejected")
    if rejected:
        return [rejected["code"], rejected["phase"]]
    outcome = json.loads(json.dumps(outcome))
    for *path, last in paths:
        part = at(outcome.get("returned"), path)
        if isinstance(part, dict) and last in part:
            value = part.pop(last)
            if last in ("devPtr", "hostPtr") and isinstance(value, int) and value % 256:
                part[last] = value % 256
    return outcome


CASE: dict[str, Any] = json.loads(r"""{}""")

if __name__ == "__main__":
    sys.exit(main())
