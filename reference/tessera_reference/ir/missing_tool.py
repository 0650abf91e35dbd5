"""What is raised where an optional package is wanted and not installed."""

from __future__ import annotations

__all__ = ["MissingTool"]


class MissingTool(Exception):
    """What this needs is not installed; `install` says how to get it."""

    def __init__(self, tool: str, install: str) -> None:
        super().__init__(tool, install)
        self.tool = tool
        self.install = install

    def __str__(self) -> str:
        return f"{self.tool} is not installed: {self.install}"
