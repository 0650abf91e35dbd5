"""The subcommands of `tessera-conformance` that belong to no other package, and how they report foreseen errors."""
