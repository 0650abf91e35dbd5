"""A run on many machines: its work is spread over the workers of a cluster that runs already, of dask.distributed.

`engine` gives units of work to the workers, each of which does a unit in a process of its own. What units are made of,
and the process that does them, are in `cases`, in `strength.on_workers` and in `vectors.on_workers`.
"""
