"""The planner: from a function of Graph IR to units of the compute and the communication queue (collectives spec 2, 8).

`plan_function` runs the passes in order: collectives and their awaits (`steps`), folding of scalings and casts
(`folding`), fusion of small tensors (`fusion`), chunks (`slicing`), queues and what each unit waits for (`units`).
No pass changes what is computed.
"""

from .planner import plan_function
from .units import Fold, Options, Part, Unit

__all__ = ["Fold", "Options", "Part", "Unit", "plan_function"]
