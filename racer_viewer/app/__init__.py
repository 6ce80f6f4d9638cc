"""The window, its menu and its files, and the same screens without a window."""
