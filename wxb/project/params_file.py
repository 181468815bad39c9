"""Edit params.yaml: replace the lines of blocks that change, and leave all others as they are."""

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from textwrap import indent
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import MappingNode, Node
from ruamel.yaml.scalarstring import DoubleQuotedScalarString

from wxb.core.files import publish
from wxb.core.params import PARAMS, ParamsError, check, parse_yaml
from wxb.project import engines

PLAIN = re.compile(r"[\w./][\w./+ -]*")  # strings without quotes


def write(content: Mapping[str, Any]) -> None:
    """Change params.yaml atomically to `content`, while DVC's lock keeps runs from starting.

    Raises ParamsError as `update` does and if `content` is invalid, and PlanError if a run is
    active; the file then stays as it is.
    """
    text = update(PARAMS.read_text(encoding="utf-8"), content)
    check(content)
    with engines.exclude_runs(f"{PARAMS} was not changed"), publish(PARAMS) as (draft,):
        draft.write_bytes(text.encode("utf-8"))


def to_yaml(content: Mapping[str, Any]) -> str:
    """A mapping of blocks as YAML in the style of params.yaml."""
    return _dump(_node(content))


def update(text: str, content: Mapping[str, Any]) -> str:
    """Change a text so that it parses as `content`; new blocks come last in their section.

    Comments stay, except those in removed blocks and keys. Raises ParamsError if a value to change
    has anchors, aliases or merged keys.
    """
    text += "" if text.endswith("\n") else "\n"
    before, lines = parse_yaml(text), text.splitlines(keepends=True)
    for section, start, stop, node in reversed([*_key_lines(YAML().compose(text), lines)]):
        new, old = content.get(section), before[section]
        has_blocks = isinstance(node, MappingNode) and not node.flow_style
        if has_blocks and new and isinstance(new, Mapping):
            blocks = [*_key_lines(node, lines[:stop])]
            added = [to_yaml({name: new[name]}) for name in new if name not in old]
            lines[stop:stop] = [indent(block, "  ") for block in added]
            for name, first, last, _ in reversed(blocks):
                if name not in new:
                    del lines[first:last]
                elif new[name] != old[name]:
                    lines[first:last] = [_with_content(lines[first:last], {name: new[name]})]
        elif section not in content:
            del lines[start:stop]
        elif new != old:
            lines[start:stop] = [_with_content(lines[start:stop], {section: new})]
    lines += [to_yaml({section: content[section]}) for section in content if section not in before]
    if parse_yaml(changed := "".join(lines)) != content:
        raise _shared_values_error()
    return changed


def _with_content(lines: Sequence[str], values: Mapping[str, Any]) -> str:
    """A key's lines with `values`, {key: value}; comments stay. ParamsError for outer aliases."""
    margin = lines[0][: len(lines[0]) - len(lines[0].lstrip())]
    try:
        node = _yaml().load("".join(line.removeprefix(margin) for line in lines))
    except YAMLError:  # an alias to another block
        raise _shared_values_error() from None
    _set_content(node, values)
    return indent(_dump(node), margin)


def _shared_values_error() -> ParamsError:
    return ParamsError(
        "params.yaml: cannot change values that have anchors (&), aliases (*) or merged keys"
        " (<<); write these values out, then try again"
    )


def _set_content(node: CommentedMap, values: Mapping[str, Any]) -> None:
    """Make a node equal `values` in place; comments at keys that remain stay."""
    for key in node.keys() - values.keys():
        del node[key]
    for key, value in values.items():
        old = node.get(key)
        if isinstance(old, CommentedMap) and isinstance(value, Mapping) and old and value:
            _set_content(old, value)
        elif isinstance(old, CommentedSeq) and isinstance(value, list) and old and value:
            equal = len(old) if value[: len(old)] == old else 0
            old[equal:] = [_node(item) for item in value[equal:]]
        elif key not in node or old != value:
            node[key] = _node(value)


def _node(value: Any, depth: int = 0) -> Any:
    """A YAML node. Lists, and mappings from depth 2, have flow style; text not PLAIN has quotes."""
    if isinstance(value, Mapping):
        node = CommentedMap({_node(key): _node(inner, depth + 1) for key, inner in value.items()})
        if depth > 1:
            node.fa.set_flow_style()
        return node
    if isinstance(value, list):
        items = CommentedSeq(map(_node, value))
        items.fa.set_flow_style()
        return items
    # Other parsers read some plain strings otherwise than ruamel.yaml's own.
    is_quoted = isinstance(value, str) and not PLAIN.fullmatch(value)
    return DoubleQuotedScalarString(value) if is_quoted else value


def _key_lines(node: Node, lines: Sequence[str]) -> Iterator[tuple[str, int, int, Node]]:
    """Yield key, lines `[start, stop)` and value of each key of a mapping that ends with `lines`.

    The lines of a key do not have the comments below it.
    """
    starts = [key.start_mark.line for key, _ in node.value]
    stops = [*starts[1:], len(lines)]
    for (key, value), start, stop in zip(node.value, starts, stops, strict=True):
        while not lines[stop - 1].strip() or lines[stop - 1].lstrip().startswith("#"):
            stop -= 1
        yield key.value, start, stop, value


def _yaml() -> YAML:
    yaml = YAML()
    yaml.width, yaml.preserve_quotes = 2**20, True
    return yaml


def _dump(node: Any) -> str:
    stream = io.StringIO()
    _yaml().dump(node, stream)
    return stream.getvalue()
