"""The reference of params.yaml in docs/params.md, from the JSON schema of its classes."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from wxb.core.params import PARAMS, Params, tasks

BOUNDS = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}


def tables() -> Iterator[str]:
    """The keys of each class of blocks as a Markdown table, those of the whole file first."""
    Params.model_rebuild(_types_namespace=tasks.any_block())
    schema = Params.model_json_schema()
    classes = {_title(name): block for name, block in sorted(schema["$defs"].items())}
    for title, block in {PARAMS.name: schema, **classes}.items():
        rows = []
        for key, value in block.get("properties", {}).items():
            default = json.dumps(value["default"]) if "default" in value else "required"
            default = "a block" if default.startswith("{") else default
            rows.append(f"`{key}` | {_values(value)} | {default}")
        yield f"### {title}\n\n{block.get('description', '')}\n"
        yield "\n".join(["key | value | default", "---|---|---", *rows, ""])


def _title(name: str) -> str:
    """The name of a class, after that of its task if several tasks have one of this name."""
    task = re.match("wxb__tasks__([a-z]+)__", name)
    own = name.rpartition("__params__")[2].rpartition("__")[2] if name.startswith("wxb") else name
    return f"{task[1]} {own}" if task else re.sub("_+", " ", own.replace("_Literal", "")).strip()


def _values(value: Mapping[str, Any]) -> str:
    """The values that a key may have, by its JSON schema."""
    match value:
        case {"$ref": ref}:
            title = _title(ref.rpartition("/")[2])
            return f"[{title}](#{title.lower().replace(' ', '-')})"
        case {"anyOf": options} | {"oneOf": options}:
            return " or ".join(dict.fromkeys(map(_values, options)))
        case {"enum": constants}:
            return " or ".join(f"`{constant}`" for constant in constants)
        case {"const": constant}:
            return f"`{constant}`"
        case {"type": "array", "items": items}:
            return f"a list of: {_values(items)}"
        case {"type": "object", "additionalProperties": Mapping() as values}:
            return f"by name: {_values(values)}"
    bounds = [f"{sign} {value[bound]}" for bound, sign in BOUNDS.items() if bound in value]
    return " ".join([value.get("type", "any"), ", ".join(bounds)]).strip()
