"""Reports: a run is recorded in one JSON Lines file, from which every page and summary is made."""
