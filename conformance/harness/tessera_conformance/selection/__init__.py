"""Selection of a part of the suite: cases, clauses, features, the failures of a report, and places."""
