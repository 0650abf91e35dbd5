"""The planner: from a function of Graph IR to units of the compute and the communication queue (collectives spec 2, 8).

`plan_function` runs the passes in order. They find collectives and their awaits (`steps`), fold scalings and casts
(`folding`), fuse small tensors (`fusion`), cut chunks (`slicing`), and assign queues and dependencies (`units`). No
pass changes what is computed. `run_plan` executes the units on all ranks (`execution`, `exchange`), `time_plan` gives
the times at which they run (collectives spec 4.1).
"""

from .execution import Progress, groups_of, run_plan
from .planner import Fold, Options, Part, Plan, Unit, plan_function
from .timeline import time_plan

__all__ = ["Fold", "Options", "Part", "Plan", "Progress", "Unit", "groups_of", "plan_function", "run_plan", "time_plan"]
