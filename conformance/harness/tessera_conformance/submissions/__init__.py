"""Submissions: a report with everything needed to check it, and the check, which recomputes every verdict."""
