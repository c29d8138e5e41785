"""Docstrings as Markdown: examples become code blocks, LaTeX becomes code, and comments document the fields."""

import re
from typing import Any

import griffe

_MATH = re.compile(r":math:`([^`]*)`", re.DOTALL)
_DIRECTIVE = re.compile(r"\s*# doctest: .*")
_COMMENT = re.compile(r"^\s*\w+: .*?#\s+(?!noqa|type:)(.*)$")


def to_markdown(text: str) -> str:
    r"""The text with every example fenced; without the fence Markdown takes ``>>>`` for a quotation.

    >>> to_markdown("Adds.\n\n>>> 1 + 1\n2").splitlines()[2:]
    ['```pycon', '>>> 1 + 1', '2', '```']
    """
    lines: list[str] = []
    inside = False
    for line in _MATH.sub(r"`\1`", text).splitlines():
        if inside and not line.strip():
            lines.append("```")
            inside = False
        elif not inside and line.startswith(">>> "):
            lines.append("```pycon")
            inside = True
        lines.append(_DIRECTIVE.sub("", line))
    return "\n".join([*lines, "```"] if inside else lines)


def comment_of(line: str) -> str | None:
    """What the comment behind an annotated field says.

    >>> comment_of("    costs: Floats  # (m+1,) averages")
    '(m+1,) averages'
    """
    found = _COMMENT.match(line)
    return found[1] if found else None


class Docstrings(griffe.Extension):
    """Applies ``to_markdown`` to every docstring, and gives fields their comments."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite the docstring of an object, once it is known."""
        if obj.docstring is not None:
            obj.docstring.value = to_markdown(obj.docstring.value)
        elif obj.is_attribute and obj.lines:
            comment = comment_of(obj.lines[0])
            if comment is not None:
                obj.docstring = griffe.Docstring(comment, parent=obj)
