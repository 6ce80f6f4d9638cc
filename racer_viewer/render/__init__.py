"""Drawing, with pygame. Knows the engine's tracks and cars, and nothing of bridges, environments or learning."""

import os

os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
