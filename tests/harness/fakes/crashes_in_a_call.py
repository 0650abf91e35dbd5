"""Dies of a segmentation fault in the middle of every call."""

import os
import signal

from speaker import converse

converse(lambda request: os.kill(os.getpid(), signal.SIGSEGV))
