"""numpy as a table of operations: `--impl=ops:conformance.adapters.numpy_adapter:TABLE`."""

from __future__ import annotations

import numpy as np

from tessera_conformance.operations import calls

NAME, VERSION = "numpy", np.__version__
TABLE = calls("numpy", {"np": np})
