"""Training in the window: setting a run up, seeing it learn, and the list of all runs."""
