"""A plugin of pytest: the scheduler of a cluster that is gone is given up soon."""

from tessera_conformance.executor import engine

engine.SCHEDULER_DEADLINE = 3.0
