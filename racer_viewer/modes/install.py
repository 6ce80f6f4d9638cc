"""Installation of optional packages from the window: a question, progress that can be cancelled, and the result."""

from __future__ import annotations

from collections.abc import Callable

from racer_env.errors import RacerError, in_one_line
from racer_viewer.modes.screen import AppContext, MessageScreen
from racer_viewer.modes.waiting import WaitingScreen
from racer_viewer.optional import Installation, MissingPartError, OptionalPart, can_install
from racer_viewer.translation import _
from racer_viewer.ui.item_list import Button


def with_part(app: AppContext, part: OptionalPart, action: Callable[[], None]) -> None:
    """Run an action that needs a part: at once if it is installed, else after its installation if the user wants it."""
    if part.is_installed:
        action()
        return
    title = _("{package} is not installed").format(package=part.title)
    if not can_install():
        app.push(MessageScreen(app, title, f"{MissingPartError(part)}."))
        return

    def install() -> None:
        app.pop()
        _install(app, part, action)

    text = _("{features} need more packages, about {megabytes} MB to download. Everything else works without.").format(
        features=_(part.features), megabytes=part.megabytes
    )
    if part.note:
        text = f"{text}\n{_(part.note)}"
    app.push(
        MessageScreen(app, title, text, [Button(_("Install"), on_press=install), Button(_("Back"), on_press=app.pop)])
    )


def _install(app: AppContext, part: OptionalPart, action: Callable[[], None]) -> None:
    """Show the progress of an installation, then run the action; a failure is shown and can be retried."""
    try:
        installation = Installation(part)
    except OSError as error:
        app.push(MessageScreen(app, _("The installation cannot be started"), in_one_line(error)))
        return

    def finish() -> None:
        try:
            installation.finish()
        except RacerError as error:
            items = [Button(_("Try again"), on_press=retry), Button(_("Back"), on_press=app.pop)]
            title = _("{package} could not be installed").format(package=part.title)
            app.push(MessageScreen(app, title, in_one_line(error), items))
        else:
            action()

    def retry() -> None:
        app.pop()
        _install(app, part, action)

    app.push(
        WaitingScreen(
            app,
            _("Installing {package}").format(package=part.title),
            lambda: installation.done,
            finish,
            cancel=installation.cancel,
            detail=lambda: installation.text,
            progress=lambda: installation.share,
        )
    )
