"""Drawing with pygame. Depends on the engine's tracks and cars, not on bridges, environments or training."""

import os

os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
