"""The editor of params.yaml: comments, and all that is not changed, keep their bytes."""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ruamel.yaml import YAML
from ruamel.yaml.nodes import CollectionNode, MappingNode, Node, ScalarNode, SequenceNode

from wxb.core.errors import WxbError, choices
from wxb.core.files import publish
from wxb.core.params import PARAMS, ParamsError, check, read_yaml
from wxb.project import engines

COMMENTS = 38  # the column of comments in params.yaml, where there is room
# The blanks before the comment that ends a line.
GAP = re.compile(r"""(?:[^'"#\n]|'(?:[^'\n]|'')*'|"(?:[^"\\\n]|\\.)*"|(?<=\S)\#)*?([ ]+)(?=\#)""")


class Edit(NamedTuple):
    """A stretch of a text, and what replaces it: within a line, or whole lines."""

    start: int
    end: int
    new: str


def read(path: Path = PARAMS) -> str:
    """The text of params.yaml, line ends as they are. Raises ParamsError if it is not YAML."""
    read_yaml(path)
    return path.read_bytes().decode("utf-8")


def write(text: str, path: Path = PARAMS) -> None:
    """Replace params.yaml at once.

    Raises ParamsError if `text` is not valid, and PlanError while a run is at work in the project;
    the file then stays as it is.
    """
    check_text(text, path)
    with engines.no_run(f"{path} was not changed"), publish(path) as (draft,):
        draft.write_bytes(text.encode("utf-8"))


def check_text(text: str, path: Path = PARAMS) -> None:
    """Raise ParamsError where a text is not valid as params.yaml."""
    check(parse(text), path)


def parse(text: str) -> Any:
    """The content of a YAML text."""
    return YAML(typ="safe").load(text)


def scalar(value: Any) -> str:
    """A value in one line, quoted where YAML requires it; lists and mappings in brackets."""
    yaml, stream = YAML(typ="safe"), io.StringIO()
    yaml.default_flow_style, yaml.width, yaml.allow_unicode = True, 2**20, True
    yaml.representer.ignore_aliases = lambda *_: True
    yaml.dump([value], stream)
    return stream.getvalue().strip()[1:-1]


def rendered(content: Mapping[str, Any], why: Mapping[str, str] | None = None) -> str:
    """A mapping as YAML in the style of params.yaml; `why` are comments by dotted key."""
    return "".join(f"{line}\n" for line in _lines(content, why or {}, ""))


def block(text: str, section: str, name: str) -> str:
    """The lines of one block, comments included, indented as if it stood alone.

    Raises ParamsError with the nearest name where there is none.
    """
    blocks = _children(_section(text, section))
    if name not in blocks:
        raise ParamsError(f"{section} has no {name!r}{choices(name, blocks)}")
    key, node = blocks[name]
    return textwrap.dedent(text[_line(text, key) : _end_of_line(text, _last(key, node))])


def names(text: str) -> list[str]:
    """The blocks of all sections, as `corpora.pii`."""
    sections = _children(_compose(text)).items()
    return [f"{section}.{name}" for section, (_, node) in sections for name in _children(node)]


def check_new(text: str, section: str, name: str, how: str = "choose another name") -> None:
    """Raise WxbError where a section has a block of this name; `how` says what to do."""
    if name in _children(_section(text, section)):
        kind = {"corpora": "corpus", "studies": "study"}.get(section, section.rstrip("s"))
        raise WxbError(
            f"params.yaml has the {kind} {name!r} already, and nothing is overwritten: {how}"
        )


def with_block(text: str, section: str, block: str) -> str:
    """The text with a block, its name and comments included, added at the end of a section.

    Raises WxbError where the section has one of this name, or is written in braces.
    """
    (name,) = _children(_compose(block))
    check_new(text, section, name)
    text, block = _with_line_feed(text), _with_line_feed(block)
    key, node = _children(_compose(text))[section]
    if not isinstance(node, MappingNode) or not node.value:  # `corpora: {}`, or nothing at all
        below = textwrap.indent(block, "  ")
        return _applied(text, _replacement(text, key, node, "", below))
    if node.flow_style:
        raise WxbError(f"params.yaml: `{section}` is in braces; expected one block below the other")
    indent = " " * node.value[0][0].start_mark.column
    end = _end(text, *node.value[-1])
    return _applied(text, [Edit(end, end, textwrap.indent(block, indent))])


def renamed(block: str, name: str) -> str:
    """A block under another name."""
    ((key, _),) = _children(_compose(block)).values()
    return block[: key.start_mark.index] + name + block[key.end_mark.index :]


def updated(text: str, content: Mapping[str, Any]) -> str:
    """The text with as few changes as make it read as `content`.

    A value that changes keeps its key's place and comment. A new key follows the last one of its
    mapping. A key that goes takes its lines with it, and the deeper comments below them.

    Raises ParamsError where the text has anchors or merged keys at a place that changes.
    """
    old = parse(text)
    if old == content:
        return text
    text = _with_line_feed(text)
    changed = _applied(text, _changes(text, _compose(text), old, content))
    if parse(changed) != content:
        raise ParamsError(
            "params.yaml: anchors (&), aliases (*) or merged keys (<<) stand where values are to"
            " change; write these values out, then try again"
        )
    return changed


def _lines(content: Mapping[str, Any], why: Mapping[str, str], above: str) -> list[str]:
    lines = []
    for key, value in content.items():
        place = f"{above}{key}"
        deeper = isinstance(value, Mapping) and len(value) > 0
        line = "  " * above.count(".") + f"{scalar(key)}:"
        line += "" if deeper or value is None else f" {scalar(value)}"
        if place in why:
            line = f"{line.ljust(COMMENTS - 3)} # {why[place]}"
        lines.append(line)
        if deeper:
            lines += _lines(value, why, f"{place}.")
    return lines


def _changes(
    text: str, node: Node, old: Mapping[Any, Any], new: Mapping[Any, Any]
) -> Iterator[Edit]:
    """What to edit so that a mapping, which has keys, reads as `new`, which keeps some of them."""
    assert isinstance(node, MappingNode)
    for name, (key, child) in zip(old, node.value, strict=False):
        value: Any = new.get(name)
        if name not in new:
            yield Edit(_line(text, key), _end(text, key, child), "")
        elif old[name] == value:
            continue
        elif _keeps_keys(child, old[name], value):
            yield from _changes(text, child, old[name], value)
        elif isinstance(child, SequenceNode) and old[name] == _start(value, len(child.value)):
            yield _longer(text, child, value[len(child.value) :])
        elif node.flow_style:
            yield Edit(child.start_mark.index, child.end_mark.index, scalar(value))
        else:
            yield from _replacement(text, key, child, *_parts(value, key.start_mark.column))
    if added := {name: value for name, value in new.items() if name not in old}:
        key, child = node.value[-1]
        end = child.end_mark.index if node.flow_style else _end(text, key, child)
        lines = textwrap.indent(rendered(added), " " * key.start_mark.column)
        yield Edit(end, end, f", {scalar(added)[1:-1]}" if node.flow_style else lines)


def _keeps_keys(node: Node, old: Any, new: Any) -> bool:
    """Whether a mapping can be changed key by key."""
    if not isinstance(node, MappingNode) or not isinstance(new, Mapping):
        return False
    return bool(old.keys() & new.keys()) and not (node.flow_style and old.keys() - new.keys())


def _start(value: Any, length: int) -> Any:
    """The first items of a longer list, if it is one and they are some."""
    return value[:length] if isinstance(value, list) and 0 < length < len(value) else None


def _longer(text: str, node: SequenceNode, items: list[Any]) -> Edit:
    """Add items to a list."""
    end = node.value[-1].end_mark.index
    if node.flow_style:
        return Edit(end, end, f", {scalar(items)[1:-1]}")
    end = _end_of_line(text, end)
    indent = " " * node.start_mark.column
    return Edit(end, end, "".join(f"{indent}- {scalar(item)}\n" for item in items))


def _parts(value: Any, column: int) -> tuple[str, str]:
    """A value as what follows its key on the same line, and as the lines below."""
    if isinstance(value, Mapping) and value:
        return "", textwrap.indent(rendered(value), " " * (column + 2))
    return ("" if value is None else f" {scalar(value)}"), ""


def _replacement(text: str, key: Node, node: Node, inline: str, below: str) -> Iterator[Edit]:
    """Replace the value of a key, in a mapping without braces; the key's comment stays."""
    colon = text.index(":", key.end_mark.index) + 1
    if isinstance(node, CollectionNode) and node.value and not node.flow_style:
        yield Edit(colon, colon, inline)
        yield Edit(_end_of_line(text, colon), _end_of_line(text, _last(key, node)), below)
    else:
        end = max(colon, len(text[: node.end_mark.index].rstrip()))
        yield Edit(colon, end, inline)
        yield Edit(_end_of_line(text, end), _end_of_line(text, end), below)


def _applied(text: str, edits: Iterator[Edit] | list[Edit]) -> str:
    """A text after edits that do not overlap; a comment keeps its column where there is room."""
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
    """Where the line of a key begins."""
    return text.rfind("\n", 0, key.start_mark.index) + 1


def _last(key: Node, node: Node) -> int:
    """Where the content of a node ends; marks of block mappings and of nothing reach further."""
    if isinstance(node, ScalarNode) and node.start_mark.index == node.end_mark.index:
        return int(key.end_mark.index)
    if not isinstance(node, CollectionNode) or node.flow_style or not node.value:
        return int(node.end_mark.index)
    if isinstance(node, MappingNode):
        return _last(*node.value[-1])
    return _last(node.value[-1], node.value[-1])


def _end_of_line(text: str, index: int) -> int:
    """Where the line ends on which the content before `index` ends: after its line feed."""
    end = text.find("\n", len(text[:index].rstrip()))
    return len(text) if end < 0 else end + 1


def _end(text: str, key: Node, node: Node) -> int:
    """Where a key and its value end, with the deeper comments that follow at once."""
    end = _end_of_line(text, _last(key, node))
    for line in text[end:].splitlines(keepends=True):
        comment = line.lstrip(" ")
        if not comment.startswith("#") or len(line) - len(comment) <= key.start_mark.column:
            break
        end += len(line)
    return end
