"""A run on many machines: its work is distributed to the workers of a running cluster of dask.distributed.

`engine` gives units of work to the workers, each of which does a unit in a process of its own. `cases`,
`strength.on_workers` and `vectors.on_workers` define units and the process that does them.
"""
