"""`racer-viewer selftest`: whether everything works here, each part tried for real."""
