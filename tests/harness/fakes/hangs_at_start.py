"""Starts, reads nothing and says nothing."""

import time

time.sleep(3600)
