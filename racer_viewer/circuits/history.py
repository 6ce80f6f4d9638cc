"""History of a draft: undo and redo without limit. Drafts are immutable, so every state is kept as it was."""

from __future__ import annotations

from dataclasses import dataclass

from racer_viewer.circuits.draft import Draft


@dataclass(frozen=True)
class _Edit:
    """An edit: drafts before and after, and its name."""

    before: Draft
    after: Draft
    label: str


class History:
    """All edits of a draft. draft: the current state."""

    def __init__(self, draft: Draft) -> None:
        self.draft = self._saved = draft
        self._done: list[_Edit] = []
        self._undone: list[_Edit] = []
        self._merge = ""

    @property
    def can_undo(self) -> bool:
        return bool(self._done)

    @property
    def can_redo(self) -> bool:
        return bool(self._undone)

    @property
    def undo_label(self) -> str:
        """Name of the edit that `undo` takes back; empty without one."""
        return self._done[-1].label if self._done else ""

    @property
    def redo_label(self) -> str:
        """Name of the edit that `redo` repeats; empty without one."""
        return self._undone[-1].label if self._undone else ""

    @property
    def dirty(self) -> bool:
        """True if the draft differs from the one that was saved last."""
        return self.draft != self._saved

    def do(self, draft: Draft, label: str = "", merge: str = "") -> None:
        """Make another draft the current one; without a difference nothing happens.

        merge: consecutive edits with the same text, such as the steps of a drag, are one edit to undo.
        """
        continues = bool(merge) and merge == self._merge and bool(self._done)
        if draft != self.draft:
            before = self._done.pop().before if continues else self.draft
            if draft != before:
                self._done.append(_Edit(before, draft, label))
            self.draft = draft
            self._undone.clear()
            self._merge = merge if self._done and self._done[-1].after is draft else ""

    def seal(self) -> None:
        """End merging: the next edit is one of its own."""
        self._merge = ""

    def undo(self) -> Draft:
        """Take the last edit back, if there is one; return the draft."""
        if self._done:
            edit = self._done.pop()
            self._undone.append(edit)
            self.draft = edit.before
        self.seal()
        return self.draft

    def redo(self) -> Draft:
        """Repeat the edit that was taken back last, if there is one; return the draft."""
        if self._undone:
            edit = self._undone.pop()
            self._done.append(edit)
            self.draft = edit.after
        self.seal()
        return self.draft

    def saved(self) -> None:
        """Mark the draft as saved; undo still goes back beyond it."""
        self._saved = self.draft
        self.seal()
