"""Helpers of the violators of the WSP runtime: defaults, ends of processes, and an adapter that confuses packages."""

import json
from contextlib import suppress

from tessera_reference.adapter import ReferenceAdapter
from tessera_reference.wsp.run import Processes
from tessera_reference.wsp.statements import Consume

BODY = Processes.body


def defaulting(kind, **defaults):
    """Return the substitution by which a class of a package has other defaults."""
    make = kind.__init__

    def made(self, **stated):
        make(self, **{**defaults, **stated})

    return kind, "__init__", made


class Ended(Exception):
    """Raised by a process that ends before its last statement."""


def ends_the_process(self, process, statements, path):
    """End the whole process of a consumer that has no more tokens."""
    for statement in statements:
        yield from BODY(self, process, (statement,), path)
        if isinstance(statement, Consume):
            raise Ended


def until_it_ends(self, process, body):
    """Run a process that may end before its last statement."""
    with suppress(Ended):
        yield from self.body(process, body, "body")
    for channel in process.produces:
        self.close(process, channel)
    process.done = True


class RunsLatest(ReferenceAdapter):
    """A runtime that runs the latest compiled package of the same name in place of a package."""

    def __init__(self):
        super().__init__()
        self._latest = {}

    def wsp_compile(self, *, program, target):
        answer = super().wsp_compile(program=program, target=target)
        self._latest[program["name"]] = answer["package"]
        return answer

    def wsp_run(self, *, package, **arguments):
        return super().wsp_run(package=self._latest.get(json.loads(package)["name"], package), **arguments)
