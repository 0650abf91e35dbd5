"""Responses to other requests, pairs in use, tags with an effect (D3, Verification)."""

from contextlib import suppress

from tessera_reference.host_io import endpoint
from tessera_reference.host_io.frames import InvalidFrame

from ....ir.violators.changes import breaks, wrapped


def answered(clause, name, description, change):
    """Return a violation that changes the answers of an exchange, in place or by returning others."""

    def exchange(usual, self, frames, choices=None):
        answers = [endpoint.read_frame(frame) for frame in usual(self, frames, choices)]
        return [endpoint.write_frame(answer) for answer in change(answers) or answers]

    return wrapped(clause, name, description, "host_io.endpoint.Endpoint.exchange", exchange)


@breaks("HIO-D3-04", "matches by the request id alone", answered)
def by_request_id(answers):
    known = {answer["request_id"]: answer["correlation_id"] for answer in answers if "request_id" in answer}
    for answer in answers:
        if "request_id" in answer:
            answer["correlation_id"] = known[answer["request_id"]]


@breaks("HIO-Verification-02", "hands ids out in sorted order", answered)
def sorted_ids(answers):
    pairs = sorted((answer["correlation_id"], answer["request_id"]) for answer in answers if "request_id" in answer)
    for completion, pair in zip((answer for answer in answers if "request_id" in answer), pairs, strict=True):
        completion["correlation_id"], completion["request_id"] = pair


@breaks("HIO-Verification-02", "answers out of order under ids in order", "host_io.endpoint.Endpoint.drain")
def ids_in_order_of_sending(usual, self, choices):
    pairs = list(self._pending)
    answers = [endpoint.read_frame(frame) for frame in usual(self, choices)]
    named = zip(pairs, answers, strict=True)
    return [endpoint.write_frame(answer | {"correlation_id": pair[0], "request_id": pair[1]}) for pair, answer in named]


def comparing(clause, name, description, part):
    def require_room(usual, self, pair):
        usual(self, next((ids for ids in self._pending if [*map(part, ids)] == [*map(part, pair)]), pair))

    return wrapped(clause, name, description, "host_io.endpoint.Endpoint._require_room", require_room)


any_case = comparing("HIO-D3-06", "any_case", "compares ids without case", str.lower)


@breaks("HIO-D3-06", "acts before it refuses a pair in use", "host_io.endpoint.Endpoint.submit")
def acts_before(usual, self, frame):
    reply = usual(self, frame)
    if reply and "DUPLICATE_REQUEST" in reply:
        message = endpoint._read(frame)
        self._run(endpoint.request_of(message), endpoint.ids_of(message), len(frame))
    return reply


@breaks("HIO-D3-06", "refuses a pair in use once", answered)
def only_the_first_time(answers):
    seen = {}
    for answer in answers:
        if "request_id" in answer:
            pair = answer["correlation_id"], answer["request_id"]
            seen[pair] = seen.get(pair, 0) + 1
            if seen[pair] == 2:
                answer["completion"] = {"ok": True, "error_code": None, "error_message": None}


def tagged(frame):
    with suppress(InvalidFrame):
        return bool(endpoint._read(frame).get("timestamp_tag"))
    return False


class TaggedChoices:
    """Choices whose start depends on the tags of requests."""

    def __init__(self, choices, tags):
        self.choices, self.tags = choices, tags

    def pick(self, count):
        return (self.choices.pick(count) + self.tags) % count


@breaks("HIO-D3-09", "completes in an order that depends on tags", "host_io.endpoint.Endpoint.exchange")
def order_of_tags(usual, self, frames, choices=None):
    listed = list(frames)
    return usual(self, listed, None if choices is None else TaggedChoices(choices, sum(map(tagged, listed))))
