"""Responses and completions that break the rules of their form, or differ from time to time (D3, D4)."""

import unicodedata
from itertools import count

from tessera_reference.host_io import endpoint

from ....ir.violators.changes import breaks
from .message_changes import completing, responding


def succeeded(change):
    return lambda completion: completion | change if completion["ok"] else completion


def renamed(clause, member, name, description, change):
    return responding(clause, name, description, lambda answer: answer | {member: change(answer[member])})


@breaks("HIO-Context-04", "has other codes after fifty", completing)
def codes_change_later(completion, numbers=count()):  # noqa: B008 - numbers in the life of the process
    return completion if next(numbers) < 50 or completion["ok"] else completion | {"error_code": "E"}


@breaks("HIO-D4-07", "names the correlation in its codes", responding)
def codes_of_flows(answer):
    if not answer["completion"]["ok"]:
        answer["completion"]["error_code"] = f"BAD_{answer['correlation_id']}"


@breaks("HIO-D4-02", "has the request id within its codes", "host_io.endpoint._response")
def coded_ids(usual, pair, failure):
    if failure is None:
        return usual(pair, failure)
    answer = endpoint.read_frame(usual(pair, failure))
    answer["completion"]["error_code"] = f"{failure.code} in {pair[1]}"
    return endpoint.write_frame(answer)


VIOLATORS = [
    *(renamed(clause, member, f"{member}_{name}", description, change)
        for clause, member in {"HIO-D3-10": "correlation_id", "HIO-D3-11": "request_id"}.items()
        for name, description, change in (
            ("lower", "repeats it in lower case", str.lower),
            ("stripped", "repeats it without spaces around it", str.strip),
            ("short", "repeats 255 characters of it", lambda text: text[:255]),
            ("composed", "repeats it composed", lambda text: unicodedata.normalize("NFC", text)),
        )),
    completing("HIO-D4-01", "no_ok", "leaves ok out",
        lambda completion: {name: value for name, value in completion.items() if name != "ok"}),
    completing("HIO-D4-03", "without_nulls", "leaves nulls out",
        lambda completion: {name: value for name, value in completion.items() if value is not None}),
    completing("HIO-D4-03", "message_in_a_list", "has a list of messages",
        lambda completion: completion if completion["ok"] else completion | {"error_message": ["wrong"]}),
    completing("HIO-D4-04", "ok_with_a_code", "has the code OK", succeeded({"error_code": "OK"})),
    completing("HIO-D4-05", "ok_with_a_message", "has the message done", succeeded({"error_message": "done"})),
]  # fmt: skip
