"""The commands: their options, and which module does the work, imported when it is called."""
