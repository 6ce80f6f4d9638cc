"""The window with its main menu, and screens that are rendered without a window."""
