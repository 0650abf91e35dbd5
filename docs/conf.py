"""The documentation site: Sphinx with MyST."""

project = "Tessera Conformance"
author = "The Tessera Conformance authors"
extensions = ["myst_parser"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "Tessera Conformance"
myst_heading_anchors = 3
