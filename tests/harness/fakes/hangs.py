"""Never answers a call, and ignores the end of its input."""

import time

from speaker import converse

converse(lambda request: time.sleep(3600))
