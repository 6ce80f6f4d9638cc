"""Translation of the texts on screen with gettext; the English texts are written, and marked, where they are used.

`_("...")` and `ngettext("...", "...", n)` translate when they are called. Tables at module level only mark their texts
with `mark("...")` and are translated with `_` when they are shown. Values are filled in after the translation:
`_("{steps:,} steps").format(steps=steps)`. `tools/messages.py` collects the marked texts and compiles the translations.
"""

from __future__ import annotations

import gettext
import string
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, get_args

Language = Literal["en", "de", "fr"]
LANGUAGES: tuple[Language, ...] = get_args(Language)
LANGUAGE_NAMES: dict[str, str] = {"en": "English", "de": "Deutsch", "fr": "Français"}
DOMAIN = "racer_viewer"
NO_BREAK_SPACE = "\N{NO-BREAK SPACE}"
FOLDER = Path(__file__).parent

_catalogue: gettext.NullTranslations = gettext.NullTranslations()
"""Translations into the current language; none for English."""


def set_language(language: Language) -> None:
    """Translate into this language from now on; texts that are shown already stay."""
    global _catalogue
    wanted = [] if language == "en" else [language]
    _catalogue = gettext.translation(DOMAIN, FOLDER, wanted, fallback=True) if wanted else gettext.NullTranslations()


def first_known(preferred: Iterable[str]) -> Language:
    """Return the first language of the system's preferences that there is a translation for, else English."""
    codes = (code.lower().replace("-", "_").partition("_")[0] for code in preferred)
    return next((known for code in codes for known in LANGUAGES if code == known), "en")


class _Formatter(string.Formatter):
    def format_field(self, value: object, spec: str) -> str:
        return grouped(format(value, spec)) if "," in spec else format(value, spec)


class _Translated(str):
    """A text in another language than English, whose numbers are written as in that language."""

    def format(self, *values: object, **named: object) -> str:
        return _Formatter().vformat(self, values, named)


def grouped(number: str) -> str:
    """Return a number such as 12,345 with the separator of the language: elsewhere a comma begins the decimals."""
    return number if type(_catalogue) is gettext.NullTranslations else number.replace(",", NO_BREAK_SPACE)


def _(text: str) -> str:
    """Return the translation of a text, or the text itself if there is none."""
    if not text or type(_catalogue) is gettext.NullTranslations:
        return text
    return _Translated(_catalogue.gettext(text))


def ngettext(one: str, several: str, number: int) -> str:
    """Return the translation of a text in the form that belongs to a number of things."""
    if type(_catalogue) is gettext.NullTranslations:
        return one if number == 1 else several
    return _Translated(_catalogue.ngettext(one, several, number))


def mark(text: str) -> str:
    """Return the text as it is; it is collected for translation, and translated with `_` where it is shown."""
    return text
