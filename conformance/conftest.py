"""Makes the suite's options, marker, fixtures and report available wherever the suite is collected."""

from tessera_conformance.plugin import *  # noqa: F403
