"""Helpers of the violators of the messages: requests read as others, or refused, and changed responses."""

from copy import deepcopy

from tessera_reference.host_io import endpoint
from tessera_reference.host_io.frames import ErrorCode, RequestFailed

from ....ir.violators.changes import wrapped

REQUIRE, SPACE = "host_io.machine.Machine.require", "host_io.machine.Machine.space"
LAUNCH, RUN = "host_io.endpoint.launch", "host_io.endpoint.Endpoint._run"
READ, WRITE = "host_io.endpoint.Endpoint._read", "host_io.endpoint.Endpoint._write"


def read_as(clause, name, description, change):
    """Return a violation that reads requests changed by `change`, in place or as a result; responses keep their ids."""

    def request_of(usual, value, **options):
        own = deepcopy(value)
        return usual(change(own) or own, **options)

    return wrapped(clause, name, description, "host_io.endpoint.request_of", request_of)


def refusing(clause, name, description, when):
    """Return a violation that refuses some valid requests."""

    def request_of(usual, value, **options):
        request = usual(value, **options)
        if when(value):
            raise RequestFailed(ErrorCode.UNSUPPORTED, "not this")
        return request

    return wrapped(clause, name, description, "host_io.endpoint.request_of", request_of)


def responding(clause, name, description, change):
    """Return a violation that changes responses, in place or as a result; a text replaces the JSON of a response."""

    def response(usual, pair, failure):
        answer = endpoint.read_frame(usual(pair, failure))
        other = change(answer)
        return other if isinstance(other, str) else endpoint.write_frame(other or answer)

    return wrapped(clause, name, description, "host_io.endpoint._response", response)


def completing(clause, name, description, change):
    """Return a violation that changes completions, in place or by returning another one."""

    def within(answer):
        answer["completion"] = change(answer["completion"]) or answer["completion"]

    return responding(clause, name, description, within)


def requiring(clause, name, description, change):
    """Return a violation that requires other bytes to lie within a memory.

    `change` takes the machine, an address, a size, a kind and the field, and returns another address, size and kind.
    """

    def require(usual, self, place, pa, nbytes, kind="AUTO", field=""):
        usual(self, place, *change(self, pa, nbytes, kind, field), field)

    return wrapped(clause, name, description, REQUIRE, require)
