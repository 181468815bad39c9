"""Edit params.yaml as text: comments, and all values that do not change, keep their bytes."""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ruamel.yaml import YAML
from ruamel.yaml.nodes import CollectionNode, MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.representer import SafeRepresenter

from wxb.core.errors import WxbError, choices
from wxb.core.files import publish
from wxb.core.params import PARAMS, Params, ParamsError, check, parse_yaml, read_yaml
from wxb.project import engines

COMMENTS = 38  # the column of comments in params.yaml, if key and value are shorter
MAX_COMMENT = 100  # characters
# Matches from the start of a text to the comment on the same line; group 1: the blanks before it.
GAP = re.compile(r"""(?:[^'"#\n]|'(?:[^'\n]|'')*'|"(?:[^"\\\n]|\\.)*"|(?<=\S)\#)*?([ ]+)(?=\#)""")


class Edit(NamedTuple):
    """The replacement of `text[start:end]`: within a line, or whole lines."""

    start: int
    end: int
    new: str


def read(path: Path = PARAMS) -> str:
    """Read params.yaml with its line ends. Raises ParamsError if it is not YAML."""
    read_yaml(path)
    return path.read_bytes().decode("utf-8")


def write(text: str, path: Path = PARAMS) -> None:
    """Replace params.yaml atomically, while DVC's lock keeps runs from starting.

    Raises ParamsError if `text` is invalid, and PlanError if a run is active; the file then stays
    as it is.
    """
    check_text(text, path)
    with engines.exclude_runs(f"{path} was not changed"), publish(path) as (draft,):
        draft.write_bytes(text.encode("utf-8"))


def check_text(text: str, path: Path = PARAMS) -> Params:
    """The parameters of a text as params.yaml. Raises ParamsError; errors name `path`."""
    return check(parse(text), path)


def parse(text: str) -> Any:
    """The content of a YAML text. Raises ParamsError as `parse_yaml` does."""
    return parse_yaml(text, PARAMS)


def inline_yaml(value: Any) -> str:
    """A value as YAML on one line; lists and mappings are in brackets.

    Characters that are not printable, such as line feeds, are escaped.
    """
    yaml, stream = YAML(typ="safe"), io.StringIO()
    yaml.Representer = _Representer
    yaml.default_flow_style, yaml.width, yaml.allow_unicode = True, 2**20, True
    yaml.representer.ignore_aliases = lambda *_: True
    yaml.dump([value], stream)
    return stream.getvalue().strip()[1:-1]


def to_yaml(content: Mapping[str, Any], comments: Mapping[str, str] | None = None) -> str:
    """A mapping as YAML in the style of params.yaml, with `comments` by dotted key.

    A comment is one line: long ones are truncated, characters that are not printable are escaped.
    """
    return "".join(f"{line}\n" for line in _lines(content, comments or {}, ""))


def block_text(text: str, section: str, name: str) -> str:
    """The lines of one block with its comments, without the indent of its section.

    Raises ParamsError, with the nearest name, if the section has no such block.
    """
    blocks = _children(_section(text, section))
    if name not in blocks:
        raise ParamsError(f"{section} has no {name!r}{choices(name, blocks)}")
    key, node = blocks[name]
    return textwrap.dedent(text[_line(text, key) : _end_of_line(text, _last(key, node))])


def block_names(text: str) -> list[str]:
    """The names of all blocks with their sections: `corpora.pii`."""
    sections = _children(_compose(text)).items()
    return [f"{section}.{name}" for section, (_, node) in sections for name in _children(node)]


def check_name_is_free(
    text: str, section: str, name: str, remedy: str = "choose another name"
) -> None:
    """Raise WxbError, with this `remedy`, if a section has a block of this name."""
    if name in _children(_section(text, section)):
        kind = {"corpora": "corpus", "studies": "study"}.get(section, section.rstrip("s"))
        raise WxbError(
            f"params.yaml has the {kind} {name!r} already, which is not overwritten: {remedy}"
        )


def add_block(text: str, section: str, block: str) -> str:
    """Add a block, given as YAML with its name, at the end of a section; return the new text.

    Raises WxbError if the section has a block of this name, or is written in braces.
    """
    (name,) = _children(_compose(block))
    check_name_is_free(text, section, name)
    text, block = _with_line_feed(text), _with_line_feed(block)
    key, node = _children(_compose(text))[section]
    if not isinstance(node, MappingNode) or not node.value:  # `corpora: {}` or `corpora:`
        below = textwrap.indent(block, "  ")
        return _applied(text, _replacement(text, key, node, "", below))
    if node.flow_style:
        raise WxbError(f"params.yaml: `{section}` is in braces; write one block below the other")
    indent = " " * node.value[0][0].start_mark.column
    end = _end(text, *node.value[-1])
    return _applied(text, [Edit(end, end, textwrap.indent(block, indent))])


def rename_block(block: str, name: str) -> str:
    """The text of a block with another name."""
    ((key, _),) = _children(_compose(block)).values()
    return block[: key.start_mark.index] + name + block[key.end_mark.index :]


def update(text: str, content: Mapping[str, Any]) -> str:
    """Change as little of the text as needed so that it parses as `content`; return the new text.

    The key of a changed value keeps its position and comment. A new key follows the last one of its
    mapping. A removed key goes with its lines and the deeper comments below them.

    Raises ParamsError if a value to change has anchors, aliases or merged keys.
    """
    old = parse(text)
    if old == content:
        return text
    text = _with_line_feed(text)
    changed = _applied(text, _changes(text, _compose(text), old, content))
    if parse(changed) != content:
        raise ParamsError(
            "params.yaml: cannot change values that have anchors (&), aliases (*) or merged keys"
            " (<<); write these values out, then try again"
        )
    return changed


class _Representer(SafeRepresenter):
    """Writes texts with characters that are not printable in double quotes, which escape them."""

    def represent_str(self, data: str) -> Node:
        style = None if data.isprintable() else '"'
        return self.represent_scalar("tag:yaml.org,2002:str", data, style=style)


_Representer.add_representer(str, _Representer.represent_str)


def _comment(text: str) -> str:
    """A text as one line of at most MAX_COMMENT characters; it may come from data."""
    escaped = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text[: MAX_COMMENT + 1])
    return escaped if len(escaped) <= MAX_COMMENT else f"{escaped[: MAX_COMMENT - 3]}..."


def _lines(content: Mapping[str, Any], comments: Mapping[str, str], prefix: str) -> list[str]:
    """The lines of a mapping whose dotted keys begin with `prefix`."""
    lines = []
    for key, value in content.items():
        dotted = f"{prefix}{key}"
        is_nested = isinstance(value, Mapping) and len(value) > 0
        line = "  " * prefix.count(".") + f"{inline_yaml(key)}:"
        line += "" if is_nested or value is None else f" {inline_yaml(value)}"
        if dotted in comments:
            line = f"{line.ljust(COMMENTS - 3)} # {_comment(comments[dotted])}"
        lines.append(line)
        if is_nested:
            lines += _lines(value, comments, f"{dotted}.")
    return lines


def _changes(
    text: str, node: Node, old: Mapping[Any, Any], new: Mapping[Any, Any]
) -> Iterator[Edit]:
    """The edits that turn a mapping into `new`, which shares keys with it."""
    assert isinstance(node, MappingNode)
    for name, (key, child) in zip(old, node.value, strict=False):
        value: Any = new.get(name)
        if name not in new:
            yield Edit(_line(text, key), _end(text, key, child), "")
        elif old[name] == value:
            continue
        elif _keeps_keys(child, old[name], value):
            yield from _changes(text, child, old[name], value)
        elif isinstance(child, SequenceNode) and _is_start(old[name], value):
            yield _append(text, child, value[len(child.value) :])
        elif node.flow_style:
            yield Edit(child.start_mark.index, child.end_mark.index, inline_yaml(value))
        else:
            yield from _replacement(
                text, key, child, *_inline_and_below(value, key.start_mark.column)
            )
    if added := {name: value for name, value in new.items() if name not in old}:
        key, child = node.value[-1]
        end = child.end_mark.index if node.flow_style else _end(text, key, child)
        lines = textwrap.indent(to_yaml(added), " " * key.start_mark.column)
        yield Edit(end, end, f", {inline_yaml(added)[1:-1]}" if node.flow_style else lines)


def _keeps_keys(node: Node, old: Any, new: Any) -> bool:
    """Whether a value is a mapping that can be changed key by key."""
    if not isinstance(node, MappingNode) or not isinstance(new, Mapping):
        return False
    return bool(old.keys() & new.keys()) and not (node.flow_style and old.keys() - new.keys())


def _is_start(items: list[Any], value: Any) -> bool:
    """Whether `value` is a list that begins with these items and has more."""
    return isinstance(value, list) and 0 < len(items) < len(value) and value[: len(items)] == items


def _append(text: str, node: SequenceNode, items: list[Any]) -> Edit:
    """The edit that appends items to a list."""
    end = node.value[-1].end_mark.index
    if node.flow_style:
        return Edit(end, end, f", {inline_yaml(items)[1:-1]}")
    end = _end_of_line(text, end)
    indent = " " * node.start_mark.column
    return Edit(end, end, "".join(f"{indent}- {inline_yaml(item)}\n" for item in items))


def _inline_and_below(value: Any, column: int) -> tuple[str, str]:
    """A value as YAML: what follows its key on the line, and the indented lines below it.

    Only non-empty mappings are below; None is empty in both.
    """
    if isinstance(value, Mapping) and value:
        return "", textwrap.indent(to_yaml(value), " " * (column + 2))
    return ("" if value is None else f" {inline_yaml(value)}"), ""


def _replacement(text: str, key: Node, node: Node, inline: str, below: str) -> Iterator[Edit]:
    """The edits that replace a value in a mapping without braces; the key's comment stays."""
    colon = text.index(":", key.end_mark.index) + 1
    if isinstance(node, CollectionNode) and node.value and not node.flow_style:
        yield Edit(colon, colon, inline)
        yield Edit(_end_of_line(text, colon), _end_of_line(text, _last(key, node)), below)
    else:
        end = max(colon, len(text[: node.end_mark.index].rstrip()))
        yield Edit(colon, end, inline)
        yield Edit(_end_of_line(text, end), _end_of_line(text, end), below)


def _applied(text: str, edits: Iterator[Edit] | list[Edit]) -> str:
    """A text after edits that do not overlap; comments keep their column if there is room."""
    for start, end, new in sorted(edits, reverse=True):
        before, after = text[:start], text[end:]
        if before[-1:] not in ("", "\n") and (gap := GAP.match(after)):
            wider = len(new) - len(text[start:end].rpartition("\n")[2])
            blanks = " " * max(1, len(gap[1]) - wider)
            after = after[: gap.start(1)] + blanks + after[gap.end(1) :]
        text = before + new + after
    return text


def _with_line_feed(text: str) -> str:
    return text if text.endswith("\n") else f"{text}\n"


def _compose(text: str) -> Node:
    node: Node = YAML(typ="safe").compose(text)
    return node


def _section(text: str, name: str) -> Node:
    return _children(_compose(text))[name][1]


def _children(node: Node) -> dict[str, tuple[Node, Node]]:
    """The keys and values of a mapping by name."""
    if not isinstance(node, MappingNode):
        return {}
    return {str(key.value): (key, value) for key, value in node.value}


def _line(text: str, key: Node) -> int:
    """The index at which the line of a key begins."""
    return text.rfind("\n", 0, key.start_mark.index) + 1


def _last(key: Node, node: Node) -> int:
    """The index at which a value's content ends; end marks of block nodes lie further on."""
    if isinstance(node, ScalarNode) and node.start_mark.index == node.end_mark.index:
        return int(key.end_mark.index)
    if not isinstance(node, CollectionNode) or node.flow_style or not node.value:
        return int(node.end_mark.index)
    if isinstance(node, MappingNode):
        return _last(*node.value[-1])
    return _last(node.value[-1], node.value[-1])


def _end_of_line(text: str, index: int) -> int:
    """The index after the line feed that follows the last non-blank before `index`."""
    end = text.find("\n", len(text[:index].rstrip()))
    return len(text) if end < 0 else end + 1


def _end(text: str, key: Node, node: Node) -> int:
    """The index after a key, its value and the deeper comments directly below."""
    end = _end_of_line(text, _last(key, node))
    for line in text[end:].splitlines(keepends=True):
        comment = line.lstrip(" ")
        if not comment.startswith("#") or len(line) - len(comment) <= key.start_mark.column:
            break
        end += len(line)
    return end
