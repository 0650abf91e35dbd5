"""Never answers a call, and ignores the end of its input; claims the documents that are named, or the usual one."""

import sys
import time

from speaker import HELLO, converse

converse(lambda request: time.sleep(3600), HELLO | {"documents": sys.argv[1:] or HELLO["documents"]})
