"""Lets `library.c` call Python: each function of the headers is registered under its name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ..abi.status import Status
from ..numerics.environment import check_environment
from ..runtime.entries import report
from .extensions import Extensions
from .functions import Functions
from .process import Process, variables
from .session import Session

__all__ = ["serve"]


def serve(ffi: Any, lib: Any) -> None:
    """Register the functions that a library declares. Raises `UnsuitableEnvironment`."""
    check_environment()
    session = Session(Process(ffi, lib), partial(variables, ffi, lib))
    functions, extensions = Functions(session, ffi), Extensions(session, ffi)
    for declared in dir(lib):
        name = declared.removeprefix("py_")
        if declared == name or name == "alive":
            continue
        of_ours = getattr(functions, name, None) or getattr(extensions, name, None) or extensions.function(name)
        ffi.def_extern(declared, onerror=_reporting(session, name))(of_ours)


def _reporting(session: Session, name: str) -> Callable[..., int]:
    """What a function returns that raises, which none should: a launch that fails comes nearest to a defect of ours."""

    def report_defect(kind: Any, error: BaseException, traceback: Any) -> int:
        text = f"{name}: a defect of the reference: {type(error).__name__}: {error}"
        return report(session.runtime, Status.TESS_ERR_LAUNCH_FAILED, text)

    return report_defect
