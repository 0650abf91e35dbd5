"""What can go wrong with the cluster; each error says what, where and what to do about it."""

from __future__ import annotations


class ExecutorUnavailable(Exception):
    """The cluster cannot do this run: no scheduler, no worker, or a worker that is not like this machine."""


class ExecutorLost(Exception):
    """The cluster went away while it was at work."""
