"""Does a unit as its tasks say: one `gives` a result, one `forgets` to.

Others are of a process that `dies`, `raises`, `fells` its worker, is a `stranger`, or finds that it `cannot`.
"""

import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from tessera_conformance.executor.worker import AnswerWriter, do_unit


def work(settings: Mapping[str, Any], tasks: Sequence[str], answers: AnswerWriter) -> None:
    for task in tasks:
        deed = task.partition(" ")[0]
        answers.write("running", task)
        if deed == "gives":
            answers.write("result", [task, settings["result"]])
        elif deed == "dies":
            os.abort()
        elif deed == "raises":
            raise RuntimeError("a defect")
        elif deed == "fells":
            os.kill(os.getppid(), signal.SIGKILL)
            time.sleep(60)
        elif deed == "stranger":
            answers.write("greeting", {"implementation": {"name": "other"}})
        elif deed == "cannot":
            answers.write("refusal", "has no such device")


class MakesAFolder:
    """Makes a folder wherever it is unpickled."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (self.path,)


def answer_with_code(path: str) -> MakesAFolder:
    """Answer as a hostile worker would."""
    return MakesAFolder(path)


if __name__ == "__main__":
    sys.exit(do_unit(work))
