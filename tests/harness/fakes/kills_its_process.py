"""Takes its whole process with it, as native code in this process may."""

import os
import signal

from echo import Echo


class KillsItsProcess(Echo):
    def language_execute(self, **params: object) -> dict:
        os.kill(os.getpid(), signal.SIGKILL)
        return {}
