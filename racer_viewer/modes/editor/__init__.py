"""The editor of circuits; `open_editor` opens it."""

from racer_viewer.modes.editor.screen import EditorScreen, open_editor

__all__ = ["EditorScreen", "open_editor"]
