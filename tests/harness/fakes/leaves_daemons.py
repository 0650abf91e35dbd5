"""Starts processes that outlive it: in a session of its own, orphaned there, and with a cleared environment.

None of them keeps its standard output open, so that its own end is noticed at once.
"""

import os
import subprocess
import sys

from speaker import converse

SLEEP = "import time; time.sleep(600)"


def answer(request: dict) -> None:
    started = []
    started.append(subprocess.Popen([sys.executable, "-c", SLEEP], stdout=2, start_new_session=True).pid)
    forked = (
        "import subprocess, sys\n"
        f"print(subprocess.Popen([sys.executable, '-c', {SLEEP!r}], stdout=2, start_new_session=True).pid)"
    )
    for environment in (None, {"PATH": os.environ["PATH"]}):
        told = subprocess.run(
            [sys.executable, "-c", forked], env=environment, start_new_session=True, stdout=subprocess.PIPE, check=True
        )
        started.append(int(told.stdout))
    sys.stderr.write(f"pids {' '.join(map(str, started))}\n")
    sys.stderr.flush()
    os._exit(3)


converse(answer)
