"""The subcommands of `tessera-conformance` that no tool of its own holds, and how foreseen errors are told."""
