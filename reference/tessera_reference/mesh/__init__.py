"""The simulated machine under the runtime: virtual time, topology, memory, order, costs (spec 9, 12, 13, 17)."""
