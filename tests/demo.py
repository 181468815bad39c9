"""The committed params.yaml, without the blocks that a user added to it."""

from pathlib import Path

from wxb.core.params import check, parse_yaml, read_yaml
from wxb.project import params_file

ROOT = Path(__file__).parents[1]
NER = ["ner-encoder", "ner-decoder", "ner-decoder-lora", "ner-decoder-qlora"]
NER += ["ner-decoder-bidirectional", "ner-generative", "ner-generative-neftune"]
NER += ["ner-crf", "ner-mentions"]
BLOCKS = {
    "corpora": ["pii"],
    "backbones": ["encoder", "decoder", "words"],
    "experiments": NER,
    "studies": ["ner"],
    "lessons": ["gates", "images", "attention"],
}


def without_own_blocks(text):
    """A text of params.yaml, of which only the blocks of the demo stay."""
    content = parse_yaml(text)
    for section, names in BLOCKS.items():
        content[section] = {name: content[section][name] for name in names}
    content["studies"]["ner"]["experiments"] = NER
    return params_file.update(text, content)


TEXT = without_own_blocks((ROOT / "params.yaml").read_text(encoding="utf-8"))


def content(profile=None):
    """The content of params.yaml, with the blocks of a profile, if any."""
    sections = parse_yaml(TEXT)
    for section, blocks in (read_yaml(ROOT / f"params/{profile}.yaml") if profile else {}).items():
        sections[section] |= blocks
    return sections


def params():
    """The checked parameters."""
    return check(content())


def write(folder):
    """Write params.yaml to a folder; returns its path."""
    path = folder / "params.yaml"
    path.write_text(TEXT, encoding="utf-8")
    return path
