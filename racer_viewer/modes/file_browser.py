"""File browser in the window: folders, and the files of the kinds that a screen can open."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from itertools import islice
from pathlib import Path

from racer_env.errors import os_reason
from racer_viewer.modes.screen import AppContext, Screen
from racer_viewer.translation import _
from racer_viewer.ui.item_list import Button, Item
from racer_viewer.ui.views import Key, ListView

MAX_ENTRIES = 2000
"""Maximum number of entries of a folder that are read; more would delay a frame."""


class FileBrowser(Screen):
    """List of a folder: the way up, its folders, and its files of some kinds, newest first.

    suffixes: endings of the files that are listed, in lower case.
    open_file: called with the chosen file after the browser was closed.
    """

    def __init__(self, app: AppContext, title: str, suffixes: Sequence[str], open_file: Callable[[Path], None]) -> None:
        super().__init__(app, ListView(title, subtitle=lambda: str(self.folder), width=760))
        self._suffixes, self._open_file = tuple(suffixes), open_file
        self.folder = Path()
        """Folder that is shown."""
        for folder in (app.browsed, Path.home(), app.data):
            if folder is not None:
                self.go_to(folder)
            if self.list.items:
                break

    def keys(self) -> Sequence[Key]:
        return (("Up Down", _("choose")), ("Enter", _("open")), ("Esc", _("back")), ("F1", _("help")))

    def go_to(self, folder: Path) -> None:
        """Show a folder; a notice says why it cannot be shown."""
        try:
            folders, files, complete = self._read(folder)
        except OSError as error:
            self.app.notify(_("{path} cannot be opened: {reason}").format(path=folder, reason=os_reason(error)))
            return
        self.folder = self.app.browsed = folder
        items: list[Item] = [Button(f"< {place}", on_press=partial(self.go_to, place)) for place in _above(folder)]
        items += [Button(f"{each.name}{os.sep}", on_press=partial(self.go_to, each)) for each in folders]
        items += [
            Button(
                path.name,
                str(path),
                on_press=partial(self._choose, path),
                note=f"{datetime.fromtimestamp(changed):%Y-%m-%d}",
            )
            for changed, path in files
        ]
        if not files:
            kinds = ", ".join(self._suffixes)
            items.append(Button(_("No file of this kind here: {kinds}").format(kinds=kinds), enabled=False))
        if not complete:
            items.append(Button(_("This folder has more files than can be listed"), enabled=False))
        self.list.items = items
        self.list.choose(0)

    def _read(self, folder: Path) -> tuple[list[Path], list[tuple[float, Path]], bool]:
        """Return the folders by name, the files with their time of change, and whether that is all."""
        folders, files = [], []
        with os.scandir(folder) as entries:
            for entry in islice(entries, MAX_ENTRIES):
                try:
                    if entry.name.startswith("."):
                        continue
                    if entry.is_dir():
                        folders.append(Path(entry.path))
                    elif entry.name.lower().endswith(self._suffixes):
                        files.append((entry.stat().st_mtime, Path(entry.path)))
                except OSError:
                    continue  # it was deleted meanwhile, or is a link to nowhere
            complete = next(entries, None) is None
        folders.sort(key=lambda path: path.name.lower())
        files.sort(key=lambda file: (-file[0], file[1].name))
        return folders, files, complete

    def _choose(self, path: Path) -> None:
        self.app.pop()
        self._open_file(path)


def _above(folder: Path) -> list[Path]:
    """Return the folder above; above the root of a drive, all other drives."""
    if folder.parent != folder:
        return [folder.parent]
    drives: Callable[[], list[str]] = getattr(os, "listdrives", list)  # on Windows, from Python 3.12
    return [Path(drive) for drive in drives() if Path(drive) != folder]
