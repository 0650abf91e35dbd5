"""The transport `hostio`: an endpoint is asked in its own frames, and what it does wrong is a fault of its case."""

from __future__ import annotations

import json
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from tessera_conformance.protocol import Fault, Hello, Observation, Returned, Unsupported
from tessera_conformance.session import Session
from tessera_conformance.transports import ImplementationUnavailable
from tessera_conformance.transports.locate import locate

Speak: TypeAlias = Callable[[socket.socket, Any], None]
OpenSession: TypeAlias = Callable[..., Session]

REQUEST = {"msg_type": "MemoryRead", "correlation_id": "c", "request_id": "r"}


def frame(**members: Any) -> str:
    return json.dumps({**REQUEST, **members})


def response(line: str | bytes, ok: bool = True) -> bytes:
    """The response to a frame, or the refusal of one that has no ids."""
    try:
        value = json.loads(line)
        ids = {name: value[name] for name in ("correlation_id", "request_id")}
    except (ValueError, LookupError, TypeError):
        return b'{"refused":"no ids"}\n'
    return json.dumps(ids | {"completion": {"ok": ok}}).encode() + b"\n"


@pytest.fixture
def endpoint() -> Iterator[OpenSession]:
    """Opens sessions with an endpoint that speaks as a function says, on one connection after the other."""
    opened: list[tuple[Session, socket.socket, threading.Thread]] = []

    def open_session(speak: Speak, deadline: float = 5.0, more: str = "") -> Session:
        listener = socket.create_server(("127.0.0.1", 0))

        def serve() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    with connection, connection.makefile("rb") as lines, suppress(OSError):
                        speak(connection, lines)

        thread = threading.Thread(target=serve)
        thread.start()
        session = Session(locate(f"hostio:tcp:127.0.0.1:{listener.getsockname()[1]}{more}"), deadline, 5.0)
        opened.append((session, listener, thread))
        return session

    yield open_session
    for session, listener, thread in opened:
        session.close()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


def echo(connection: socket.socket, lines: Any) -> None:
    for line in lines:
        connection.sendall(response(line))


def exchange(session: Session, *frames: str, **params: Any) -> Observation:
    return session.call("host_io.exchange", {"frames": list(frames), **params})


def answers(observation: Observation) -> list[Any]:
    assert isinstance(observation, Returned), observation
    return [json.loads(answer) for answer in observation.value["answers"]]


def test_frames_are_answered(endpoint: OpenSession) -> None:
    session = endpoint(echo)
    actual = answers(exchange(session, frame(), "x", frame(request_id="2")))
    assert [answer.get("request_id") for answer in actual] == ["r", None, "2"]


def test_the_least_description(endpoint: OpenSession) -> None:
    session = endpoint(echo)
    hello = session.open()
    assert isinstance(hello, Hello)
    assert (hello.documents, hello.capabilities) == (("host_io",), {})
    told = session.call("host_io.describe", {})
    assert isinstance(told, Returned)
    assert told.value == {
        "devices": [{"name": "sip:0", "sip": 0}],
        "places": [{"sip": 0, "cube": 0, "pe": 0}, {"sip": 0, "cube": 0, "pe": 1}],
        "memories": [{"kind": "HBM", "base": 0, "bytes": 1048576}],
        "builtins": [],
    }


DESCRIPTION = """
name = "acme-io"
version = "2.1"
features = ["hop-trace"]
queue_depth = 8
builtins = [{ name = "fill", parameters = ["tensor", "i32"] }]

[[devices]]
name = "acme0"
sip = 0
"""


@pytest.mark.parametrize("form", ["toml", "json"])
def test_a_description_is_told(endpoint: OpenSession, tmp_path: Path, form: str) -> None:
    import tomllib

    path = tmp_path / f"acme, io.{form}"
    path.write_text(DESCRIPTION if form == "toml" else json.dumps(tomllib.loads(DESCRIPTION)))
    session = endpoint(echo, more=f",description={path}")
    hello = session.open()
    assert isinstance(hello, Hello)
    assert (hello.name, hello.version, hello.capabilities) == ("acme-io", "2.1", {"hop-trace": "enforced"})
    told = session.call("host_io.describe", {})
    assert isinstance(told, Returned)
    assert told.value["devices"] == [{"name": "acme0", "sip": 0}]
    assert told.value["queue_depth"] == 8
    assert told.value["memories"] == [{"kind": "HBM", "base": 0, "bytes": 1048576}]


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("missing.toml", None, "No such file or directory"),
        ("io.toml", "name = ", "Invalid value"),
        ("io.json", "[]", "expected an object"),
        ("io.json", "{", "Expecting"),
        ("io.toml", "features = 'all'", "features: expected a list of texts"),
        ("io.toml", "name = 3", "name"),
        ("io.toml", "queue_depth = 0", "queue_depth"),
        ("io.toml", "devices = []", "devices"),
        ("io.toml", "color = 'red'", "color"),
    ],
)
def test_a_description_that_cannot_be_is_told(tmp_path: Path, name: str, text: str | None, problem: str) -> None:
    path = tmp_path / name
    if text is not None:
        path.write_text(text)
    with pytest.raises(ImplementationUnavailable) as told:
        locate(f"hostio:unix:io.sock,description={path}")
    assert problem in str(told.value)
    assert "correct the description" in str(told.value)


@pytest.mark.parametrize("text", ["", "unix:", "tcp:", "tcp:localhost", "tcp::80", "tcp:localhost:65536", "file:x"])
def test_an_address_that_is_none_is_told(text: str) -> None:
    with pytest.raises(ImplementationUnavailable, match="use hostio:unix:PATH or hostio:tcp:HOST:PORT"):
        locate(f"hostio:{text}")


def test_what_frames_cannot_say_is_unsupported(endpoint: OpenSession) -> None:
    session = endpoint(echo)
    assert session.call("host_io.components", {}) == Unsupported("host_io.components")
    assert session.call("runtime.tessInit", {}) == Unsupported("runtime.tessInit")
    assert exchange(session, frame(), seed=0) == Unsupported("delivery-order")
    buffer = {"correlation_id": "c", "request_id": "r", "data": "00"}
    assert exchange(session, frame(), buffers=[buffer]) == Unsupported("host-buffer-ref")
    assert exchange(session, frame().replace(" ", "\n")) == Unsupported("host_io.exchange")
    assert len(answers(exchange(session, frame(), buffers=[]))) == 1


def silent(connection: socket.socket, lines: Any) -> None:
    """Answers requests alone."""
    for line in lines:
        if b"refused" not in response(line):
            connection.sendall(response(line))


def test_frames_without_ids_need_no_answer(endpoint: OpenSession) -> None:
    session = endpoint(silent)
    for _ in range(2):
        actual = answers(
            exchange(session, "x", frame(), '{"correlation_id":"c","correlation_id":"c","request_id":"r"}')
        )
        assert [answer["request_id"] for answer in actual] == ["r"] * len(actual)
        assert 1 <= len(actual) <= 2


def test_answers_in_any_order_and_in_pieces(endpoint: OpenSession) -> None:
    def backwards(connection: socket.socket, lines: Any) -> None:
        data = b"".join(response(lines.readline()) for _ in range(40)[::-1])
        for first in range(0, len(data), 33):
            connection.sendall(data[first : first + 33])
        lines.readline()

    assert len(answers(exchange(endpoint(backwards), *(frame(request_id=str(n)) for n in range(40))))) == 40


def test_far_more_than_a_socket_holds(endpoint: OpenSession) -> None:
    frames = [frame(request_id=str(number), debug_label="x" * 5000) for number in range(2000)]
    assert len(answers(exchange(endpoint(echo), *frames))) == 2000


def test_an_answer_with_other_ids_is_for_the_case_to_judge(endpoint: OpenSession) -> None:
    def other(connection: socket.socket, lines: Any) -> None:
        for _ in lines:
            connection.sendall(response(frame(request_id="other")))

    assert [answer["request_id"] for answer in answers(exchange(endpoint(other), frame()))] == ["other"]


def test_two_answers_to_one_frame_are_seen(endpoint: OpenSession) -> None:
    def twice(connection: socket.socket, lines: Any) -> None:
        for line in lines:
            connection.sendall(response(line) * 2)

    assert len(answers(exchange(endpoint(twice), frame()))) == 2


def overlong(connection: socket.socket, lines: Any) -> None:
    """Refuses a frame of more than a mebibyte, and ends the connection."""
    while line := lines.readline((1 << 20) + 1):
        connection.sendall(response(line))
        if not line.endswith(b"\n"):
            return


def test_an_overlong_frame_may_end_the_connection(endpoint: OpenSession) -> None:
    """A frame behind it is sent on a new connection."""
    actual = answers(exchange(endpoint(overlong), frame(), "x" * (1 << 21), frame(request_id="2"), "x" * (1 << 21)))
    assert [answer["request_id"] for answer in actual if "request_id" in answer] == ["r", "2"]


@pytest.mark.parametrize("refusal", [b"", b'{"refused": "no ids"}\n'], ids=["silent", "refusing"])
def test_a_frame_without_ids_may_end_the_connection(endpoint: OpenSession, refusal: bytes) -> None:
    """The frames behind it are sent on a new connection (AMB-HIO-55)."""

    def ends(connection: socket.socket, lines: Any) -> None:
        for line in lines:
            if b"request_id" not in line:
                connection.sendall(refusal)
                return
            connection.sendall(response(line))

    session = endpoint(ends)
    for frames in ((frame(), "{}", "[", frame(request_id="2"), "x"), (frame(), frame(request_id="2"))):
        actual = [answer["request_id"] for answer in answers(exchange(session, *frames)) if "request_id" in answer]
        assert actual == ["r", "2"]


def test_a_request_that_was_answered_is_not_sent_again(endpoint: OpenSession) -> None:
    """An endpoint may answer requests behind a frame without ids before it ends the connection."""

    def ends_late(connection: socket.socket, lines: Any) -> None:
        for line in lines:
            connection.sendall(response(line))
            if b'"1"' in line:
                return

    actual = answers(exchange(endpoint(ends_late), "{}", frame(request_id="1"), frame(request_id="2")))
    assert [answer.get("request_id") for answer in actual] == [None, "1", "2"]


@pytest.mark.parametrize(("outcomes", "seen"), [((True, False), True), ((False, True), True), ((True, True), False)])
def test_a_repeated_pair_counts_where_it_was_in_use(
    endpoint: OpenSession, outcomes: tuple[bool, bool], seen: bool
) -> None:
    """Both may succeed, since the first may have been answered before the second came."""

    def speak(connection: socket.socket, lines: Any) -> None:
        for ok in outcomes:
            connection.sendall(response(lines.readline(), ok))
        lines.readline()

    observation = exchange(endpoint(speak), frame(), frame())
    if seen:
        assert [answer["completion"]["ok"] for answer in answers(observation)] == list(outcomes)
    else:
        assert isinstance(observation, Returned)


def speaks(data: bytes) -> Speak:
    def speak(connection: socket.socket, lines: Any) -> None:
        lines.readline()
        connection.sendall(data)
        lines.read()

    return speak


def half(connection: socket.socket, lines: Any) -> None:
    connection.sendall(response(lines.readline()) + b'{"correlation_id"')


def floods(connection: socket.socket, lines: Any) -> None:
    lines.readline()
    while True:
        connection.sendall(b"{}\n" * 1000)


@pytest.mark.parametrize(
    ("speak", "kind", "detail"),
    [
        (lambda connection, lines: None, "crash", "ended the connection after 0 of 2 answers"),
        (half, "crash", "after 1 of 2 answers: end of the connection within '{\"correlation_id\"'"),
        (speaks(response(frame())), "hang", "1 frames are not answered at the deadline, 1 of them requests"),
        (speaks(b""), "hang", "2 frames are not answered at the deadline, 2 of them requests"),
        (speaks(b"INFO: reading\n"), "protocol_error", "an answer is not JSON in UTF-8: 'INFO: reading'"),
        (speaks(b"\xff\xfe\n"), "protocol_error", "not JSON in UTF-8: '\\\\xff\\\\xfe'"),
        (speaks(b"\n"), "protocol_error", "not JSON in UTF-8: ''"),
        (speaks(b"[]\n"), "protocol_error", "not a JSON object: '[]'"),
        (speaks(b"[" * 100_000 + b"\n"), "protocol_error", "not JSON"),
        (speaks(b"x" * (1 << 21)), "protocol_error", "an answer of more than 1048576 bytes"),
        (floods, "protocol_error", " answers to 2 frames"),
    ],
    ids=["ends", "half", "hangs-midway", "hangs", "text", "bytes", "empty", "list", "deep", "long", "floods"],
)
def test_a_fault_is_named(endpoint: OpenSession, speak: Speak, kind: str, detail: str) -> None:
    observation = exchange(endpoint(speak, deadline=0.5), frame(), frame(request_id="2"))
    assert isinstance(observation, Fault)
    assert (observation.kind, detail in observation.detail) == (kind, True), observation.detail


def test_a_late_answer_is_a_fault_of_its_case(endpoint: OpenSession) -> None:
    late = threading.Event()

    def speak(connection: socket.socket, lines: Any) -> None:
        connection.sendall(response(lines.readline()))
        late.wait(5.0)
        connection.sendall(b'{"more":1}\n')
        late.clear()
        lines.readline()

    session = endpoint(speak)
    assert len(answers(exchange(session, frame()))) == 1
    late.set()
    while late.is_set():
        pass
    fault = session.reset()
    assert fault is not None
    assert (fault.kind, fault.detail) == ("protocol_error", "an answer without a request: '{\"more\":1}'")


def test_a_fault_is_followed_by_a_new_connection(endpoint: OpenSession) -> None:
    """The endpoint ends its third connection only; a crash is tried again on the next."""
    count = iter(range(100))

    def speak(connection: socket.socket, lines: Any) -> None:
        if next(count) != 2:
            echo(connection, lines)

    session, observations = endpoint(speak), []
    for _ in range(4):
        observations.append(exchange(session, frame()))
        assert session.reset() is None
    assert [isinstance(observation, Returned) for observation in observations] == [True, True, False, True]
    assert isinstance(observations[2], Fault)
    assert (observations[2].kind, observations[2].reproducible) == ("crash", False)


def test_an_endpoint_that_nobody_started(tmp_path: Path) -> None:
    session = Session(locate(f"hostio:unix:{tmp_path / 'io.sock'}"), 0.5, 0.5)
    observation = exchange(session, frame())
    assert isinstance(observation, Fault)
    assert observation.kind == "crash"
    assert "no endpoint listens: No such file or directory" in observation.detail


def test_an_endpoint_that_accepts_nobody(tmp_path: Path) -> None:
    path = str(tmp_path / "io.sock")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(0)
        waiting = [socket.socket(socket.AF_UNIX) for _ in range(2)]
        for connection in waiting:
            connection.setblocking(False)
            with suppress(BlockingIOError):
                connection.connect(path)
        observation = exchange(Session(locate(f"hostio:unix:{path}"), 0.5, 0.5), frame())
        for connection in waiting:
            connection.close()
    assert isinstance(observation, Fault)
    assert (observation.kind, "accepts no connection" in observation.detail) == ("hang", True)


def test_an_endpoint_is_served_over_the_line_protocol(endpoint: OpenSession) -> None:
    label = endpoint(echo).label
    served = Session(locate(f"rpc:{sys.executable} -m tessera_conformance serve {label}"))
    try:
        assert isinstance(served.open(), Hello)
        assert [answer["request_id"] for answer in answers(exchange(served, frame()))] == ["r"]
        assert exchange(served, frame(), seed=1) == Unsupported("delivery-order")
        assert isinstance(served.call("host_io.describe", {}), Returned)
        assert served.reset() is None
        assert served.call("host_io.trace", {}) == Unsupported("host_io.trace")
    finally:
        served.close()
