"""Submissions: a report with all it takes to check it, and the check, which recomputes every verdict."""
