"""The subcommands of `tessera-reference`."""
