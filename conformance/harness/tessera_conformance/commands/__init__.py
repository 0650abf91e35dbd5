"""The subcommands of `tessera-conformance` that belong to no other package, and their reports of foreseen errors."""
