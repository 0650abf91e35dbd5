"""Cannot be imported: its driver is missing."""

raise ImportError("needs acme driver 3 or newer")
