"""A corpus of deadlocks of every kind, each with what helps against it, worked out by hand."""

from . import channels, resources, tasks
from .corpus import DEADLOCKS, Deadlock

__all__ = ["DEADLOCKS", "Deadlock", "channels", "resources", "tasks"]
