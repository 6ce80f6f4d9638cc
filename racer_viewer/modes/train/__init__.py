"""Training screens: setup of a run, its live view, and the list of runs."""
