"""Circuits as people make them: drafts to edit, strokes, imports, and the library of own circuits. No window."""
