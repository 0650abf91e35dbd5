"""Does a unit as its tasks say: `gives`, `forgets` to answer, `dies`, `raises`, or finds that it `cannot`."""

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from tessera_conformance.executor.answers import AnswerWriter, do_unit


def work(settings: Mapping[str, Any], tasks: Sequence[str], answers: AnswerWriter) -> None:
    for task in tasks:
        deed = task.partition(" ")[0]
        answers.begins(task)
        if deed == "gives":
            answers.gives(task, settings["result"])
        elif deed == "dies":
            os.abort()
        elif deed == "raises":
            raise RuntimeError("a defect")
        elif deed == "cannot":
            answers.refuses("has no such device")


if __name__ == "__main__":
    sys.exit(do_unit(work))
