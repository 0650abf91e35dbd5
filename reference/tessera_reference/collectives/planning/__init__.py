"""The planner: from a function of Graph IR to units of the compute and the communication queue (collectives spec 2, 8).

`plan_function` runs the passes in order: collectives and their awaits (`steps`), folding of scalings and casts
(`folding`), fusion of small tensors (`fusion`), chunks (`slicing`), queues and what each unit waits for (`units`).
No pass changes what is computed. `run_plan` executes the units on all ranks (`execution`, `exchange`),
`time_plan` tells when they run (collectives spec 4.1).
"""

from .execution import Progress, groups_of, run_plan
from .planner import Fold, Options, Part, Plan, Unit, plan_function
from .timeline import time_plan

__all__ = ["Fold", "Options", "Part", "Plan", "Progress", "Unit", "groups_of", "plan_function", "run_plan", "time_plan"]
