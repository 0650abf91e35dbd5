"""Requests in which references to earlier answers replace handles, addresses and images.

When the requests are sent again, an implementation returns other handles and other memory. A value of a request is
bound to an earlier answer that returned it under the same name, or whose memory it points into. In the request it is
replaced by `{"$from": [exchange, path], "$plus": offset}`. An address within the bytes of an argument buffer is listed
beside them: `{"$bytes": digits, "$addresses": [[place, source], ...]}`.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import struct
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, get_args

from tessera_conformance.cases import slug
from tessera_conformance.check import CheckRecord, expected_rejection
from tessera_conformance.protocol import Fault, FaultKind, Returned, Unsupported, describe, write_outcome
from tessera_conformance.reports.c_program import c_program
from tessera_conformance.reports.lines import FOLDER, plain
from tessera_conformance.session import DEADLINE, START_DEADLINE, Exchange
from tessera_conformance.suite_run import Case
from tessera_conformance.tensors import ElementFormat, Tensor, to_wire
from tessera_conformance.transports import hostio_connection

MEMORY = ("devPtr", "hostPtr")
"""The names of results that are memory; its size is the request's `bytes`."""
LEAST_ADDRESS = 1 << 16
"""Smaller numbers are counts and offsets, or handles by their names."""
LEAST_HANDLE = 1 << 32
"""Larger results are handles and addresses."""
ADDRESS = 8
"""The bytes of an address; addresses are little-endian, at multiples of this many bytes."""
LEAST_TEXT = 16
"""The least length of a text, such as an image, that is bound to an earlier answer."""
_DIGITS = re.compile(r"(?:[0-9a-f]{2})+")

_ENDING = re.compile("Free|Destroy|Unload|Shutdown|Stop")

FieldPath = tuple[Any, ...]


@dataclass
class Sources:
    """The handles, memory and texts that the exchanges so far returned."""

    named: dict[tuple[str, Any], list[Any]] = field(default_factory=dict)
    """By name and value, the exchange that gave it and its path in the result."""
    blocks: list[tuple[int, int, list[Any]]] = field(default_factory=list)
    """The first address and the number of bytes of each piece of memory, and the place of the answer that returned it.
    """

    def add(self, number: int, exchange: Exchange) -> None:
        """Record the values that an exchange returned."""
        for path, value in _leaves_of(exchange):
            name = path[-1] if path else ""
            source = self.named[str(name), value] = [number, list(path)]
            if name in MEMORY and isinstance(value, int):
                size = exchange.params.get("bytes", 0)
                self.blocks.append((value, size if isinstance(size, int) else 0, source))

    def bind(self, name: str, value: Any) -> Any:
        """Return a value of a request, as a reference if an earlier answer returned it."""
        if isinstance(value, Mapping):
            return {key: self.bind(str(key), item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.bind(name, item) for item in value]
        if isinstance(value, bool) or not isinstance(value, int | str):
            return value
        source = self.named.get((name, value))
        if source is not None and (isinstance(value, int) or len(value) >= LEAST_TEXT):
            return {"$from": source, "$plus": 0}
        if isinstance(value, int):
            return self._address(value) or value
        return self._addresses_in(value)

    def _address(self, value: int) -> dict[str, Any] | None:
        if value < LEAST_ADDRESS:
            return None
        for start, size, source in reversed(self.blocks):
            if start <= value <= start + size:
                return {"$from": source, "$plus": value - start}
        return None

    def _addresses_in(self, text: str) -> Any:
        if not self.blocks or len(text) % (2 * ADDRESS) or not _DIGITS.fullmatch(text):
            return text
        data = bytes.fromhex(text)
        addresses: list[list[Any]] = []
        for place in range(0, len(data), ADDRESS):
            source = self._address(int.from_bytes(data[place : place + ADDRESS], "little"))
            if source is not None:
                addresses.append([place, source])
        return {"$bytes": text, "$addresses": addresses} if addresses else text


def bound_requests(exchanges: Sequence[Exchange]) -> list[dict[str, Any]]:
    """Return the parameters of each exchange, with references to values that earlier answers returned."""
    sources = Sources()
    requests = []
    for number, exchange in enumerate(exchanges):
        requests.append({name: sources.bind(name, value) for name, value in exchange.params.items()})
        sources.add(number, exchange)
    return requests


def given_out(exchanges: Sequence[Exchange]) -> list[list[FieldPath]]:
    """Return for each exchange the paths of the handles, which are large numbers, and the memory that it returned."""
    leaves = map(_leaves_of, exchanges)
    return [[path for path, value in values if path and _is_given_out(path[-1], value)] for values in leaves]


def given_twice(exchanges: Sequence[Exchange]) -> bool:
    """True if a live handle or address was returned again: a request with it is ambiguous."""
    live: set[int] = set()
    for exchange in exchanges:
        if isinstance(exchange.observation, Returned):
            if _ENDING.search(exchange.method):
                live -= {value for value in exchange.params.values() if isinstance(value, int)}
            results = ((path, value) for path, value in _leaves_of(exchange) if len(path) == 1)
            handles = [value for path, value in results if _is_given_out(path[0], value)]
            if len({*handles} & live) or len({*handles}) < len(handles):
                return True
            live |= {value for value in handles if value}
    return False


def _is_given_out(name: Any, value: int | str) -> bool:
    return isinstance(value, int) and (name in MEMORY or value >= LEAST_HANDLE)


def _leaves_of(exchange: Exchange) -> Iterator[tuple[FieldPath, Any]]:
    """Yield the numbers and texts that an exchange returned with their paths."""
    for path, item in _parts(exchange.observation.value) if isinstance(exchange.observation, Returned) else ():
        if isinstance(item, int | str) and not isinstance(item, bool):
            yield path, item


def _returned(exchanges: Sequence[Exchange]) -> Iterator[tuple[int, Any]]:
    """Yield the numbers and the values of the exchanges that returned a value."""
    for number, exchange in enumerate(exchanges):
        if isinstance(exchange.observation, Returned):
            yield number, exchange.observation.value


def _parts(value: Any, path: FieldPath = ()) -> Iterator[tuple[FieldPath, Any]]:
    """Yield a value and all values nested in it, with their paths."""
    yield path, value
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _parts(item, (*path, key))
    elif isinstance(value, list | tuple):
        for number, item in enumerate(value):
            yield from _parts(item, (*path, number))


# A standalone script that sends the requests of one case again, and judges the answers.
#
# The script is `reproduce_template.py` filled with the case: its requests with whole tensors, and the checks that can
# be judged again from the answers alone. A check of bits or of a plain value is bound to the value's place in the
# answers; a refusal, a status or a result to the exchange that returned it. The script shows other checks, and leaves
# their judgement to the suite. So it does with an answer to a request that had none in the run: no check has judged it.


_TEMPLATE = Path(__file__).resolve().parent / "reproduce_template.py"
_ENDPOINT_TEMPLATE = _TEMPLATE.with_name("reproduce_endpoint.py")
_CONNECTION = Path(hostio_connection.__file__)
ENDPOINT = "hostio:"
"""The prefix of implementations that are endpoints behind a socket."""
_EMPTY_CASE = 'json.loads(r"""{}""")'
_OWN_IMPORT = re.compile(r"^from (?:__future__|tessera_conformance[\w.]*) import (?:\([^)]*\)|.*)\n", re.MULTILINE)
Place = TypeVar("Place")
TRIES = 3
"""The most times that a script runs a case with streams, whose work depends on time, until the difference shows."""
LARGEST_SMALL = 255
"""A number up to this is in many answers by chance."""


def write_script(
    directory: Path,
    implementation: str,
    case: Case,
    compiler: str | None = None,
    deadlines: tuple[float, float] = (START_DEADLINE, DEADLINE),
) -> Path:
    """Write `reproduce-<case>.py` into the directory and return its path; `deadlines` are of start and calls.

    For a library behind the C interface it also writes `reproduce-<case>.c`. The script for an endpoint sends the
    frames itself.
    """
    if implementation.startswith(ENDPOINT):
        template = _joined(*(path.read_text(encoding="utf-8") for path in (_CONNECTION, _TEMPLATE, _ENDPOINT_TEMPLATE)))
        address = implementation.removeprefix(ENDPOINT).partition(",description=")[0]
        script = _content_of_frames(address, case, deadlines)
    else:
        template = _TEMPLATE.read_text(encoding="utf-8")
        script = _content(implementation, case, compiler, deadlines)
    content = json.dumps(script, indent=1, default=repr)
    if case.folder:  # differs in every run, and is deleted after a few
        content = content.replace(json.dumps(str(case.folder))[1:-1], FOLDER)
    before, _, after = template.partition(_EMPTY_CASE)
    # JSON has single quotes only inside its strings, where an escape can replace them: nothing can end the literal.
    literal = "json.loads(r'''" + content.replace("'", "\\u0027") + "''')"
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / script_name(case.id)
    path.write_text(before + literal + after, encoding="utf-8")
    if implementation.startswith("cabi:"):
        path.with_suffix(".c").write_text(c_program(json.loads(content.replace(FOLDER, "."))), encoding="ascii")
    return path


def _joined(connection: str, template: str, endpoint: str) -> str:
    """Return the texts of three modules as one module that asks an endpoint, with the docstring of the last."""
    before, case, _ = template.partition(f"CASE: dict[str, Any] = {_EMPTY_CASE}\n")
    header, body = _parted(endpoint)
    body, guard, rest = body.partition("if __name__")
    texts = (_parted(connection)[1], _parted(before)[1], body)
    return "\n\n\n".join(
        [header + "from __future__ import annotations\n", *map(str.strip, texts), case + "\n" + guard + rest]
    )


def _parted(text: str) -> tuple[str, str]:
    """Return the docstring of a module, and the rest without imports from this package and `__future__`."""
    _, docstring, rest = text.split('"""', 2)
    return f'"""{docstring}"""\n\n', _OWN_IMPORT.sub("", rest)


def script_name(case: str) -> str:
    """Return the file name of a case's script."""
    return f"reproduce-{slug(case).replace('/', '-')}.py"


def start_command(implementation: str, compiler: str | None = None) -> list[str]:
    """Return the command that serves the implementation over the line protocol, with another compiler where wanted."""
    form, _, rest = implementation.partition(":")
    if form == "rpc" and compiler is None:
        return shlex.split(rest)
    served = [sys.executable, "-m", "tessera_conformance", "serve", implementation]
    return served if compiler is None else [*served, f"--compiler={compiler}"]


def _unseen(case: Case, left: Sequence[CheckRecord]) -> str:
    """Return the reason for which the answers alone cannot show the failed checks that are left; "" if they can."""
    if any("Profiler" in exchange.method for exchange in case.exchanges):
        return "what was written to a file is not looked at"
    if given_twice(case.exchanges):
        return "a handle or an address was given out twice"
    values = (value for record in left for value in _scalars(record.actual))
    if any(isinstance(value, int) and value >= LEAST_HANDLE for value in values):
        return "addresses of memory differ from run to run"
    return ""


def _scalars(value: Any) -> Iterator[Any]:
    if isinstance(value, list | tuple):
        for item in value:
            yield from _scalars(item)
    else:
        yield value


def _content_of_frames(address: str, case: Case, deadlines: tuple[float, float]) -> dict[str, Any]:
    form, _, place = address.partition(":")
    return {
        **_head(case),
        "address": f"unix:{os.path.abspath(place)}" if form == "unix" else address,
        "deadlines": deadlines,
        "requests": [{"method": exchange.method, "params": to_wire(exchange.params)} for exchange in case.exchanges],
        "answers": [_answers_of(exchange) for exchange in case.exchanges],
    }


def _answers_of(exchange: Exchange) -> list[Any] | None:
    """Return the recorded answers of an exchange of frames; None of another exchange."""
    if exchange.method != "host_io.exchange" or not isinstance(exchange.observation, Returned):
        return None
    return [json.loads(text) for text in exchange.observation.value["answers"]]


def _head(case: Case) -> dict[str, Any]:
    """Return a case's subject and verdict."""
    verdict, reason = (case.judgement.verdict, case.judgement.reason) if case.judgement else ("not run", "")
    subject = {"case": case.id, "title": case.title, "clauses": case.clause_ids}
    return {**subject, "verdict": verdict, "reason": reason}


def _content(implementation: str, case: Case, compiler: str | None, deadlines: tuple[float, float]) -> dict[str, Any]:
    exchanges, records = case.exchanges, case.check.records
    judged = [(record, _how(record, exchanges)) for record in records]
    checks = [{"what": record.what} | how for record, how in judged if how is not None]
    left = [record for record, how in judged if how is None and not record.passed]
    lacks_answer = bool(exchanges) and isinstance(exchanges[-1].observation, Unsupported | Fault)
    if lacks_answer and all(record.passed for record in records):
        checks.append({"what": "the request is answered", "how": "answered", "exchange": len(exchanges) - 1})
    faulted = case.judgement is not None and case.judgement.verdict in get_args(FaultKind)
    form, _, rest = implementation.partition(":")
    module = f", and the module {rest.partition(':')[0]} where Python finds it" if form in ("py", "ops") else ""
    served = f"the package tessera-conformance in {sys.executable}{module}"
    return {
        **_head(case),
        "command": start_command(implementation, compiler),
        "compiler": compiler,
        "needs": "" if form == "rpc" and compiler is None else served,
        "directory": os.getcwd(),
        "tries": TRIES if any("StreamCreate" in exchange.method for exchange in exchanges) else 1,
        "deadlines": deadlines,
        "requests": [
            {"method": one.method, "params": to_wire(params)}
            for one, params in zip(exchanges, bound_requests(exchanges), strict=True)
        ],
        "outcomes": [
            {"fault": answer.kind} if isinstance(answer, Fault) else to_wire(write_outcome(answer))
            for answer in (exchange.observation for exchange in exchanges)
        ],
        "given": given_out(exchanges),
        "checks": [] if given_twice(exchanges) else checks,
        "unanswered": faulted or lacks_answer,
        "suite_only": [
            {"what": record.what, "expected": plain(record.expected), "actual": plain(record.actual)} for record in left
        ],
        "unseen": _unseen(case, left),
    }


def _how(record: CheckRecord, exchanges: Sequence[Exchange]) -> dict[str, Any] | None:
    """Return how to judge a check again from the answers; None if only the suite can."""
    match record.kind:
        case "bits" | "equal":
            return _tied(record, exchanges)
        case "returns" | "accepts":
            how, judged = "returned", {}
        case "status":
            how, judged = "status", {"expected": record.expected}
        case "rejects" if (expected := expected_rejection(str(record.expected))) is not None:
            categories, phases, line = expected
            how = "rejected"
            judged = {"expected": record.expected, "categories": categories, "phases": phases, "line": line}
        case _:
            return None
    exchange = _exchange_of(record, exchanges)
    return None if exchange is None else {"how": how, "exchange": exchange, **judged}


def _tied(record: CheckRecord, exchanges: Sequence[Exchange]) -> dict[str, Any] | None:
    """Return the check, bound to the last place of the judged value in the answers before it.

    A plain value must be in one place only, or in one of the last answer; a small number in both.
    """
    places = [
        (number, ["returned", *path])
        for number, result in _returned(exchanges[: record.after])
        for path, value in _parts(result)
        if type(value) is type(record.actual) and value == record.actual
    ]
    if not places:
        return _tied_to_bytes(record, exchanges)
    if isinstance(record.expected, Tensor):
        number, path = places[-1]
        judged = {"expected": to_wire(record.expected), "format": _format(record.expected.format)}
        return {"how": "tensor", "exchange": number, "path": path, **judged}
    small = isinstance(record.actual, int) and abs(record.actual) <= LARGEST_SMALL
    place = _only(places, record.after, last_alone=small)
    if place is None:
        return None
    number, path = place
    other = _other_place(record.expected, exchanges[:number])
    return {"how": "value", "exchange": number, "path": path, "expected": to_wire(record.expected), "as": other}


def _format(layout: ElementFormat) -> dict[str, Any]:
    """Return the hexadecimal digits of a word, the words of an element, and all bits of an exponent and a fraction."""
    exponent, fraction = (1 << layout.exponent_bits) - 1, (1 << layout.fraction_bits) - 1
    masks = {"exponent": exponent << layout.fraction_bits, "fraction": fraction, "infinity": layout.has_infinity}
    return {"digits": 2 * layout.word_bytes, "words": layout.words, **masks}


def _only(places: Sequence[tuple[int, Place]], after: int | None, last_alone: bool = False) -> tuple[int, Place] | None:
    """Return the only one of these places, or the only one in the last answer before the check; None if ambiguous."""
    last = [place for place in places if place[0] == (after or 0) - 1]
    if len(last) == 1 and not last_alone:
        return last[0]
    return places[0] if len(places) == 1 and (not last_alone or after is None or last) else None


def _tied_to_bytes(record: CheckRecord, exchanges: Sequence[Exchange]) -> dict[str, Any] | None:
    """Return the check, bound to the only bytes before it that hold the judged value in one of its encodings."""
    places = [
        (number, (start // 2, expected))
        for number, result in _returned(exchanges[: record.after])
        if isinstance(data := result.get("data"), str)
        for found, expected in dict.fromkeys(_encodings(record.actual, record.expected))
        for start in range(0, len(data), 2)
        if data.startswith(found, start)
    ]
    place = _only(places, record.after)
    if place is None:
        return None
    number, (start, expected) = place
    other = _other_place(expected, exchanges[:number])
    where = {"exchange": number, "path": ["returned", "data"], "start": start}
    return {"how": "bytes", "expected": expected, "as": other, **where}


def _other_place(expected: Any, exchanges: Sequence[Exchange]) -> dict[str, Any] | None:
    """Return the place of the last earlier answer with exactly the expected bytes, for checks that compare answers."""
    places = [number for number, result in _returned(exchanges) if result.get("data") == expected]
    return {"exchange": places[-1], "path": ["returned", "data"]} if places and isinstance(expected, str) else None


def _encodings(actual: Any, expected: Any) -> Iterator[tuple[str, str]]:
    """Yield both values as the bytes that they may have been read from."""
    if isinstance(actual, Tensor) and isinstance(expected, Tensor) and len(actual.data) == len(expected.data):
        yield actual.data.hex(), expected.data.hex()
    elif isinstance(actual, str) and isinstance(expected, str):
        if len(actual) == len(expected) and _DIGITS.fullmatch(actual):
            yield actual, expected
    elif isinstance(actual, list) and isinstance(expected, list) and len(actual) == len(expected):
        for code in "iBqhfd":
            with contextlib.suppress(struct.error, TypeError):
                form = f"<{len(actual)}{code}"
                yield struct.pack(form, *actual).hex(), struct.pack(form, *expected).hex()


def _exchange_of(record: CheckRecord, exchanges: Sequence[Exchange]) -> int | None:
    """Return the exchange with the judged answer, else the last before the check with the recorded description."""
    same = [number for number, exchange in enumerate(exchanges) if exchange.observation is record.answer]
    before = enumerate(exchanges[: record.after] if isinstance(record.actual, str) else ())
    matching = (number for number, exchange in before if record.actual.startswith(describe(exchange.observation)))
    return max(same or matching, default=None)
