"""Implementations in another process, each with one fault: `python speaker.py FAULT` reads a request a line.

All answer `session.*` rightly, and leave the rest to the function that is named after the fault. Nothing here imports
the harness, so that a fake is also the smallest example of an implementation in another process.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HELLO = {
    "protocol": {"minimum": 1, "maximum": 1},
    "implementation": {"name": "fake", "version": "1.0"},
    "documents": ["language_ir"],
    "capabilities": {},
    "arithmetic": {"level": "strict"},
}


def send(raw: str) -> None:
    sys.stdout.write(raw + "\n")
    sys.stdout.flush()


def result(request: dict[str, Any], value: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": value})


def converse(answer: Callable[[dict[str, Any]], None], hello: dict[str, Any] = HELLO) -> None:
    """Answer `session.open`, `session.reset` and `session.close`; hand every other request to `answer`."""
    for line in sys.stdin:
        request = json.loads(line)
        if request["method"] == "session.open":
            send(result(request, hello))
        elif request["method"].startswith("session."):
            send(result(request, {"returned": {}}))
        else:
            answer(request)
        if request["method"] == "session.close":
            return


def answers_twice() -> None:
    """Sends every answer twice."""

    def answer(request: dict) -> None:
        send(result(request, {"unsupported": {"feature": "thought"}}) + "\n" + result(request, {"returned": {}}))

    converse(answer)


def answers_with_expectations() -> None:
    """Answers what it guesses the harness wants to hear instead of a result."""
    guess = {"verdict": "pass", "expected": {"outputs": []}, "passed": True}
    converse(lambda request: send(result(request, guess)))


def answers_with_malformed_tensors() -> None:
    """Returns tensors whose bits do not fit their shape."""
    tensor = {"$tensor": {"dtype": "bf16", "shape": [2, 2], "bits": "3f80"}}
    converse(lambda request: send(result(request, {"returned": {"outputs": [tensor]}})))


def answers_with_wrong_id() -> None:
    """Answers every call with the id of another."""
    converse(lambda request: send(result({"id": request["id"] + 1}, {"returned": {"modules": []}})))


def claims_nothing() -> None:
    """Claims no document at all."""
    converse(lambda request: None, HELLO | {"documents": []})


def claims_what_it_lacks() -> None:
    """Claims the language document, and supports none of it."""
    converse(lambda request: send(result(request, {"unsupported": {"feature": request["method"]}})))


def closes_its_output() -> None:
    """Closes standard output in the middle of a call and lives on."""

    def answer(request: dict) -> None:
        os.close(1)
        time.sleep(3600)

    converse(answer)


def crashes_in_a_call() -> None:
    """Dies of a segmentation fault in the middle of every call."""
    converse(lambda request: os.kill(os.getpid(), signal.SIGSEGV))


def crashes_once() -> None:
    """Dies in its first call after a fresh installation; the file named by CRASH_ONCE remembers that it has."""

    def answer(request: dict) -> None:
        memory = Path(os.environ["CRASH_ONCE"])
        if not memory.exists():
            memory.touch()
            sys.exit(3)
        send(result(request, {"rejected": {"code": "syntax", "phase": "parse", "message": "no"}}))

    converse(answer)


def dies_at_start() -> None:
    """Dies before it has said hello."""
    print("cannot find libacme.so.3", file=sys.stderr)
    sys.exit(7)


def dies_with_last_words() -> None:
    """Dies in every call, as launchers do when a process of theirs dies: with a message on standard output."""

    def answer(request: dict) -> None:
        send("BAD TERMINATION")
        send("EXIT CODE: 9")
        sys.exit(9)

    converse(answer)


def dies_between_calls() -> None:
    """Answers a call, and then dies with a message on standard output."""

    def answer(request: dict) -> None:
        send(result(request, {"unsupported": {"feature": "life"}}) + "\nBAD TERMINATION\nEXIT CODE: 9")
        sys.exit(9)

    converse(answer)


def floods_stderr() -> None:
    """Writes megabytes to standard error before each answer, which is fine."""

    def answer(request: dict) -> None:
        sys.stderr.write("warning: slow path\n" * 200_000)
        send(result(request, {"rejected": {"code": "syntax", "phase": "parse", "message": "no"}}))

    converse(answer)


def hangs() -> None:
    """Never answers a call, and ignores the end of its input; claims the documents that are named, or the usual one."""
    converse(lambda request: time.sleep(3600), HELLO | {"documents": sys.argv[1:] or HELLO["documents"]})


def hangs_at_start() -> None:
    """Starts, reads nothing and says nothing."""
    time.sleep(3600)


def hangs_with_a_daemon() -> None:
    """Starts a process in a session of its own, tells its id in a file, and never answers again."""
    sleep = "import time; time.sleep(600)"

    def answer(request: dict) -> None:
        daemon = subprocess.Popen([sys.executable, "-c", sleep], start_new_session=True)
        told = Path(sys.argv[1], f"{os.getpid()}.unfinished")
        told.write_text(f"{os.getpid()} {daemon.pid}")
        told.rename(told.with_suffix(".pids"))
        time.sleep(600)

    converse(answer)


def implements_no_method() -> None:
    """Knows no method but the session's: JSON-RPC error -32601."""

    def answer(request: dict) -> None:
        error = {"code": -32601, "message": "method not found"}
        send(json.dumps({"jsonrpc": "2.0", "id": request["id"], "error": error}))

    converse(answer)


def leaves_daemons() -> None:
    """Starts processes that outlive it: in a session of its own, orphaned there, and with a cleared environment.

    None of them keeps its standard output open, so that its own end is noticed at once.
    """
    sleep = "import time; time.sleep(600)"

    def answer(request: dict) -> None:
        started = []
        started.append(subprocess.Popen([sys.executable, "-c", sleep], stdout=2, start_new_session=True).pid)
        forked = (
            "import subprocess, sys\n"
            f"print(subprocess.Popen([sys.executable, '-c', {sleep!r}], stdout=2, start_new_session=True).pid)"
        )
        for environment in (None, {"PATH": os.environ["PATH"]}):
            told = subprocess.run(
                [sys.executable, "-c", forked],
                env=environment,
                start_new_session=True,
                stdout=subprocess.PIPE,
                check=True,
            )
            started.append(int(told.stdout))
        sys.stderr.write(f"pids {' '.join(map(str, started))}\n")
        sys.stderr.flush()
        os._exit(3)

    converse(answer)


def logs_and_crashes_on_verify() -> None:
    """Writes every source it is given to the file named by LOG, and dies in `language.verify`."""

    def answer(request: dict) -> None:
        with open(os.environ["LOG"], "a", encoding="utf-8") as log:
            log.write(request["params"]["source"] + "\n")
        if request["method"] == "language.verify":
            sys.exit(9)
        send(result(request, {"returned": {"modules": []}}))

    converse(answer)


def returns_nothing() -> None:
    """Answers with null."""
    converse(lambda request: send(result(request, None)))


def returns_too_many_outputs() -> None:
    """Returns one output more than the function has."""

    def answer(request: dict) -> None:
        tensors = list(request["params"].get("inputs", {}).values())
        send(result(request, {"returned": {"outputs": [*tensors, *tensors, *tensors]}}))

    converse(answer)


def sends_text() -> None:
    """Lets a log line slip onto standard output; claims the documents that are named, or the usual one."""

    def answer(request: dict) -> None:
        send("INFO: compiling ...")
        send(result(request, {"returned": {"modules": []}}))

    converse(answer, HELLO | {"documents": sys.argv[1:] or HELLO["documents"]})


def sends_too_much() -> None:
    """Answers with more than a harness should read: nested or endless lists, or a large file of holes."""

    def answer(request: dict) -> None:
        kind = request["params"]["source"]
        if kind == "a file of holes":
            path = request["params"]["function"]
            with open(path, "wb") as file:
                file.truncate(1 << 40)
            tensor = {"dtype": "int8", "shape": [1 << 40], "file": path, "sha256": "0" * 64}
            send(result(request, {"returned": {"outputs": [{"$tensor": tensor}]}}))
            return
        lists = {
            "nested": ",".join(["[" * 400 + "]" * 400] * 1100),
            "many": ",".join(["[]"] * 300_000),
            "too many": ",".join(["0"] * 3_000_000),
            "too deep": "[" * 100_000 + "]" * 100_000,
            "a long integer": "9" * 100_000,
            "wide": ",".join(["7"] * 900_000),
            "many keys": "{" + ",".join(f'"{number}":0' for number in range(900_000)) + "}",
            "equal keys": "{" + ",".join(['"k":0'] * 900_000) + "}",
            "lone surrogates": ",".join(['"\\ud800"'] * 900_000),
            "long numbers": ",".join(["8" * 4_000] * 9_000),
            "a long text": f'"{"x" * 60_000_000}"',
            "a wide text": f'"\\ud83d\\ude00{"x" * 70_000_000}"',
            "long extents": tensor_of(["7" * 4_000] * 200),
            "many extents": tensor_of(["9" * 18] * 20_000),
            "a product of extents": tensor_of(["9" * 18] * 200),
        }
        send(f'{{"jsonrpc":"2.0","id":{request["id"]},"result":{{"returned":{{"outputs":[{lists[kind]}]}}}}}}')

    converse(answer)


def tensor_of(extents: list[str]) -> str:
    """A tensor's message with a shape of these extents, as JSON."""
    return f'{{"$tensor":{{"dtype":"fp32","shape":[{",".join(extents)}],"bits":"00000000"}}}}'


def speaks_another_protocol() -> None:
    """Speaks only a protocol of the future."""
    converse(lambda request: None, HELLO | {"protocol": {"minimum": 7, "maximum": 9}})


def splits_a_message_over_lines() -> None:
    """Pretty-prints its answers over several lines."""
    converse(lambda request: send(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": {}}, indent=2)))


def splits_a_message_over_writes() -> None:
    """Writes each answer in three pieces with pauses between: slow, but within the protocol."""

    def answer(request: dict) -> None:
        text = result(request, {"rejected": {"code": "syntax", "phase": "parse", "message": "no"}}) + "\n"
        for piece in (text[:5], text[5:20], text[20:]):
            sys.stdout.write(piece)
            sys.stdout.flush()
            time.sleep(0.01)

    converse(answer)


def waits() -> None:
    """Tells its process in a file of a folder, and answers once the folder has a file `go`."""

    def answer(request: dict) -> None:
        Path(sys.argv[1], f"{os.getpid()}.pids").write_text(str(os.getpid()))
        while not Path(sys.argv[1], "go").exists():
            time.sleep(0.02)
        send(result(request, {"returned": {"outputs": []}}))

    converse(answer)


if __name__ == "__main__":
    globals()[sys.argv.pop(1)]()
