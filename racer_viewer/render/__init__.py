"""Drawing with pygame. Depends on the engine's tracks and cars, not on bridges, environments or training."""
