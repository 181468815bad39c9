"""Edit params.yaml with ruamel.yaml, which keeps comments."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import CommentMark
from ruamel.yaml.scalarstring import DoubleQuotedScalarString
from ruamel.yaml.tokens import CommentToken

from wxb.core.errors import WxbError, choices
from wxb.core.files import publish
from wxb.core.params import PARAMS, Params, ParamsError, check, parse_yaml, read_yaml
from wxb.project import engines

MAX_COMMENT = 100  # characters
COMMENTS = 38  # the column of comments in params.yaml, if key and value are shorter
PLAIN = re.compile(r"[\w./](?:[^:#,\[\]{}]*[^:#,\[\]{} ])?")  # strings without quotes
SINGULAR = {"corpora": "corpus", "studies": "study"}
BEFORE, AFTER, AFTER_ITEM = 1, 2, 0  # where ruamel.yaml keeps the comments of a key or a list item


def read(path: Path = PARAMS) -> str:
    """Read params.yaml as text. Raises ParamsError if it is not YAML."""
    read_yaml(path)
    return path.read_text(encoding="utf-8")


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


def to_yaml(content: Mapping[str, Any], comments: Mapping[str, str] | None = None) -> str:
    """A mapping as YAML in the style of params.yaml, with `comments` by dotted key.

    A comment is one line: long ones are truncated, characters that are not printable are escaped.
    """
    return _dump(_node(content, comments or {}))


def block_names(text: str) -> list[str]:
    """The names of all blocks with their sections: `corpora.pii`."""
    sections = {key: value for key, value in parse(text).items() if isinstance(value, Mapping)}
    return [f"{section}.{name}" for section, blocks in sections.items() for name in blocks]


def block_text(text: str, section: str, name: str) -> str:
    """One block with its comments, without the indent of its section.

    Raises ParamsError, with the nearest name, if the section has no such block.
    """
    blocks = _load(text)[section]
    if name not in blocks:
        raise ParamsError(f"{section} has no {name!r}{choices(name, blocks)}")
    return _dump(CommentedMap({name: blocks[name]}))


def rename_block(block: str, name: str) -> str:
    """The text of a block with another name."""
    return name + block[block.index(":") :]


def check_name_is_free(
    text: str, section: str, name: str, remedy: str = "choose another name"
) -> None:
    """Raise WxbError, with this `remedy`, if a section has a block of this name."""
    if name in (parse(text)[section] or {}):
        kind = SINGULAR.get(section, section.rstrip("s"))
        raise WxbError(
            f"params.yaml has the {kind} {name!r} already, which is not overwritten: {remedy}"
        )


def add_block(text: str, section: str, block: str) -> str:
    """Add a block, given as YAML with its name, at the end of a section; return the new text.

    Raises WxbError if the section has a block of this name.
    """
    document, added = _load(text), _load(block)
    (name,) = added
    check_name_is_free(text, section, name)
    if not document[section]:  # `corpora: {}` or `corpora:`
        document[section] = CommentedMap()
    document[section][name] = added[name]
    document[section].ca.items[name] = added.ca.items.get(name)
    return _dump(document)


def update(text: str, content: Mapping[str, Any]) -> str:
    """Change a text so that it parses as `content`; return the new text.

    Raises ParamsError if a value to change has anchors, aliases or merged keys.
    """
    if parse(text) == content:
        return text
    document = _load(text)
    _overlay(document, content)
    changed = _dump(document)
    if parse(changed) != content:
        raise ParamsError(
            "params.yaml: cannot change values that have anchors (&), aliases (*) or merged keys"
            " (<<); write these values out, then try again"
        )
    return changed


def _overlay(node: CommentedMap, values: Mapping[str, Any]) -> None:
    """Set the content of a node in place."""
    for key in node.keys() - values.keys():
        del node[key]
        node.ca.items.pop(key, None)
    for key, value in values.items():
        old = node.get(key)
        if isinstance(old, CommentedMap) and isinstance(value, Mapping) and old and value:
            _overlay(old, value)
        elif isinstance(old, CommentedSeq) and isinstance(value, list) and value:
            equal = [item == other for item, other in zip(old, value, strict=False)]
            start = [*equal, False].index(False)
            del old[start:]
            old.extend(map(_node, value[start:]))
        elif key not in node or old != value:
            node[key] = _node(value)


def _node(value: Any, comments: Mapping[str, str] | None = None, prefix: str = "") -> Any:
    """A value as ruamel.yaml dumps it in the style of params.yaml: lists are in brackets."""
    if isinstance(value, Mapping):
        node = CommentedMap()
        for key, inner in value.items():
            node[_node(key)] = _node(inner, comments, f"{prefix}{key}.")
            if comment := (comments or {}).get(f"{prefix}{key}"):
                node.yaml_add_eol_comment(_one_line(comment), key, COMMENTS)
        return node
    if isinstance(value, list):
        items = CommentedSeq(map(_node, value))
        items.fa.set_flow_style()
        return items
    # Other parsers read some plain strings otherwise than ruamel.yaml's own.
    is_quoted = isinstance(value, str) and not (PLAIN.fullmatch(value) and value.isprintable())
    return DoubleQuotedScalarString(value) if is_quoted else value


def _one_line(comment: str) -> str:
    """A comment of at most MAX_COMMENT printable characters; it may come from data."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in comment)[:MAX_COMMENT]


def _load(text: str) -> CommentedMap:
    """Parse a text. The comments before a block belong to it, not to the block above."""
    document: CommentedMap = _yaml().load(text)
    keys = []
    for name, value in document.items():
        keys.append((document, name))
        if isinstance(value, CommentedMap) and _is_open(value):
            keys += [(value, block) for block in value]
    for (node, key), (next_node, next_key) in pairwise(keys):
        is_section = node is document and next_node is not document
        if not is_section and (comments := _take_comments_after(node, key)):
            token = CommentToken(comments, CommentMark(0), None)
            next_node.ca.items.setdefault(next_key, [None] * 4)[BEFORE] = [token]
    return document


def _take_comments_after(node: CommentedMap | CommentedSeq, key: Any) -> str:
    """Remove the lines of comments that follow the last line of a value, and return them."""
    while _is_open(node[key]):
        node = node[key]
        key = [*node][-1] if isinstance(node, CommentedMap) else len(node) - 1
    place = AFTER if isinstance(node, CommentedMap) else AFTER_ITEM
    comments = node.ca.items.get(key)
    if not comments or comments[place] is None:
        return ""
    token = comments[place]
    beside, _, below = str(token.value).partition("\n")
    comments[place] = CommentToken(f"{beside}\n", token.start_mark, None) if beside else None
    return below


def _is_open(value: Any) -> bool:
    """Whether a value is a mapping or a list without braces and brackets."""
    is_collection = isinstance(value, CommentedMap | CommentedSeq)
    return is_collection and len(value) > 0 and not value.fa.flow_style()


def _yaml() -> YAML:
    yaml = YAML()
    yaml.width, yaml.preserve_quotes = 2**20, True
    return yaml


def _dump(node: Any) -> str:
    stream = io.StringIO()
    _yaml().dump(node, stream)
    return stream.getvalue()
