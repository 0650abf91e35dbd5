"""What part of the suite a run is to judge: cases, clauses, features, the failures of a report, and places."""
