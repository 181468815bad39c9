"""The text of params.yaml with blocks added: whatever was there keeps its bytes."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.nodes import CollectionNode, MappingNode, Node, ScalarNode, SequenceNode

from wxb.errors import WxbError, choices
from wxb.files import publish
from wxb.params import PARAMS, ParamsError, check, read_yaml

COMMENTS = 38  # the column of comments in params.yaml, where there is room


def read(path: Path = PARAMS) -> str:
    """The text of params.yaml, line ends as they are. Raises ParamsError where it is not valid."""
    check(read_yaml(path), path)
    return path.read_bytes().decode("utf-8")


def write(text: str, path: Path = PARAMS) -> None:
    """Replace params.yaml. Raises ParamsError, the file left alone, where `text` is not valid."""
    check_text(text, path)
    with publish(path) as (draft,):
        draft.write_bytes(text.encode("utf-8"))


def check_text(text: str, path: Path = PARAMS) -> None:
    """Raise ParamsError where a text is not valid as params.yaml."""
    check(YAML(typ="safe").load(text), path)


def check_new(text: str, section: str, name: str, how: str = "choose another name") -> None:
    """Raise WxbError where a section has a block of this name; `how` says what to do."""
    if name in _children(_find(text, section)):
        kind = {"corpora": "corpus", "studies": "study"}.get(section, section.rstrip("s"))
        raise WxbError(
            f"params.yaml has the {kind} {name!r} already, and nothing is overwritten: {how}"
        )


def scalar(value: Any) -> str:
    """A value in one line, quoted where YAML asks for it; lists in brackets."""
    yaml, stream = YAML(typ="safe"), io.StringIO()
    yaml.default_flow_style, yaml.width, yaml.allow_unicode = True, 2**20, True
    yaml.dump([value], stream)
    return stream.getvalue().strip()[1:-1]


def rendered(content: Mapping[str, Any], why: Mapping[str, str]) -> str:
    """A mapping as YAML in the style of params.yaml; `why` are comments by dotted key."""
    return "".join(f"{line}\n" for line in _lines(content, why, ""))


def _lines(content: Mapping[str, Any], why: Mapping[str, str], above: str) -> list[str]:
    lines = []
    for key, value in content.items():
        place = f"{above}{key}"
        deeper = isinstance(value, Mapping) and len(value) > 0
        line = "  " * above.count(".") + f"{key}:"
        line += "" if deeper or value is None else f" {scalar(value)}"
        if place in why:
            line = f"{line.ljust(COMMENTS - 3)} # {why[place]}"
        lines.append(line)
        if deeper:
            lines += _lines(value, why, f"{place}.")
    return lines


def block(text: str, section: str, name: str) -> str:
    """The lines of one block, comments included, indented as if it stood alone.

    Raises ParamsError with the nearest name where there is none.
    """
    blocks = _children(_find(text, section))
    if name not in blocks:
        raise ParamsError(f"{section} has no {name!r}{choices(name, blocks)}")
    key, value = blocks[name]
    begin = text.rfind("\n", 0, key.start_mark.index) + 1
    return textwrap.dedent(text[begin : _end_of_line(text, _last(key, value))])


def names(text: str) -> list[str]:
    """The blocks of all sections, as `corpora.pii`."""
    sections = _children(_compose(text)).items()
    return [f"{section}.{name}" for section, (_, node) in sections for name in _children(node)]


def with_block(text: str, section: str, block: str) -> str:
    """The text with a block, its name and all, added at the end of a section.

    Raises WxbError where the section has one of this name, or is written in braces.
    """
    root = _find(text)
    (name,) = _children(_compose(block))
    key, node = _children(root)[section]
    blocks = _children(node)
    check_new(text, section, name)
    if blocks and _in_braces(node):
        raise WxbError(f"params.yaml: `{section}` is in braces; expected one block below the other")
    if blocks:
        indent = next(iter(blocks.values()))[0].start_mark.column
        end = _end_of_line(text, _last(key, node))
        end = _after_comments(text, end, indent)
    else:  # `corpora: {}`, or nothing after the colon
        indent = 2
        text = text[: node.start_mark.index] + text[node.end_mark.index :]
        end = _end_of_line(text, key.end_mark.index)
    return _inserted(text, end, textwrap.indent(block, " " * indent))


def with_item(text: str, place: tuple[str, ...], item: str) -> str:
    """The text with an item added to the list at a place. Raises KeyError where none is there."""
    node = _find(text, *place)
    assert isinstance(node, SequenceNode)
    last = node.value[-1]
    if node.flow_style:
        at = last.end_mark.index
        return f"{text[:at]}, {item}{text[at:]}"
    end = _end_of_line(text, last.end_mark.index)
    return _inserted(text, end, " " * node.start_mark.column + f"- {item}\n")


def with_value(text: str, place: tuple[str, ...], value: str) -> str:
    """The text with another value at a place that has one. Raises KeyError where none is there."""
    node = _find(text, *place)
    return text[: node.start_mark.index] + value + text[node.end_mark.index :]


def renamed(block: str, name: str) -> str:
    """A block under another name."""
    ((key, _),) = _children(_compose(block)).values()
    return block[: key.start_mark.index] + name + block[key.end_mark.index :]


def _compose(text: str) -> Node:
    node: Node = YAML(typ="safe").compose(text)
    return node


def _find(text: str, *place: str) -> Node:
    node = _compose(text)
    for part in place:
        node = _children(node)[part][1]
    return node


def _children(node: Node) -> dict[str, tuple[Node, Node]]:
    """The keys and values of a mapping by name."""
    if not isinstance(node, MappingNode):
        return {}
    return {str(key.value): (key, value) for key, value in node.value}


def _in_braces(node: Node) -> bool:
    return isinstance(node, CollectionNode) and bool(node.flow_style)


def _last(key: Node, node: Node) -> int:
    """Where the content of a node ends; marks of block mappings and of nothing reach further."""
    if isinstance(node, ScalarNode) and node.start_mark.index == node.end_mark.index:
        return int(key.end_mark.index)
    if isinstance(node, ScalarNode) or _in_braces(node) or not node.value:
        return int(node.end_mark.index)
    if isinstance(node, MappingNode):
        return _last(*node.value[-1])
    return _last(node.value[-1], node.value[-1])


def _end_of_line(text: str, index: int) -> int:
    """Where the line ends on which the content before `index` ends: after its line feed."""
    end = text.find("\n", len(text[:index].rstrip()))
    return len(text) if end < 0 else end + 1


def _after_comments(text: str, end: int, indent: int) -> int:
    """Past the comment lines that follow at once and are as deep as a block: they belong to it."""
    for line in text[end:].splitlines(keepends=True):
        if not line.lstrip(" ").startswith("#") or not line.startswith(" " * indent):
            break
        end += len(line)
    return end


def _inserted(text: str, at: int, added: str) -> str:
    before = text[:at]
    return before + ("" if not before or before.endswith("\n") else "\n") + added + text[at:]
