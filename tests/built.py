"""The project at its smallest, with all kinds of stages: what a session builds once."""

import hashlib
import json
import re

from tests import traced
from tests.copied import ROOT, Project
from tests.corpora.made import lettered
from wxb.core.params import load

# What contract 1 of the design names; reports/training is kept to the same promise.
REPEATABLE = [
    "data",
    "models",
    "reports/metrics",
    "reports/predictions",
    "reports/studies",
    "reports/training",
]

PARAMS = load(ROOT / "params.yaml")
# Both tasks and both tokenizers, with an architecture of our own, and with all that tuning knows;
# more would take minutes.
EXPERIMENTS = ["ner-encoder", "ner-generative-neftune"]
PARITY = ["bert", "llama"]
BLOCKS = {
    ("download", "preprocess"): [*PARAMS.corpora, "local"],
    ("tokenizer", "pretrain"): PARAMS.backbones,
    ("tokenize", "align", "train", "evaluate"): EXPERIMENTS,
    ("compare", "report"): PARAMS.studies,
    ("lesson",): PARAMS.lessons,
    ("parity",): PARITY,
}
# By verb: the stages of a verb are one block of dvc.yaml.
STAGES_OF = {
    verb: [f"{verb}@{name}" for name in names] for verbs, names in BLOCKS.items() for verb in verbs
} | {"check": ["check"]}
STAGES = {stage for stages in STAGES_OF.values() for stage in stages}
LOCAL = [
    {
        "input": f"Call Ann {lettered(i)}.",
        "spans": [{"start": 5, "end": 8, "type": "NAME"}],
        "author": i,
    }
    for i in range(20)
]


class Smallest(Project):
    """The project with fewer experiments, and one more corpus, from a local file."""

    def create(self):
        super().create()
        self.edit(few)
        (self.folder / "local.json").write_text(json.dumps(LOCAL))
        self.edit(
            lambda params: params["corpora"].update(
                local={
                    "task": "ner",
                    "path": "local.json",
                    "fields": {"id": None},
                    "split": {"by": "author", "test": 0.2, "valid": 0.2},
                }
            )
        )
        self.commit("begin")

    def build(self):
        """Make everything by Snakemake, and note what each stage imports."""
        self.traces.mkdir(exist_ok=True)
        assert self.snakemake(**traced.environment(self, self.traces)) == STAGES

    @property
    def traces(self):
        """The folder of what the stages imported, beside a project that was built."""
        return self.folder.parent / "traces"

    def commit(self, message):
        self.run("git", "add", "-A")
        name = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        self.run("git", *name, "commit", "-qm", message)

    def repro(self, *targets, **environment):
        """The stages that `dvc repro` really ran."""
        return ran(self.run("dvc", "repro", *targets, **environment))

    def snakemake(self, *targets, **environment):
        """The stages that DVC really ran under `snakemake --cores 2`."""
        return ran(self.run("snakemake", "--cores", "2", *targets, **environment))

    def append(self, name, text):
        path = self.folder / name
        path.write_text(path.read_text() + text)

    def hashes(self):
        return {
            str(path.relative_to(self.folder)): hashlib.sha256(path.read_bytes()).hexdigest()
            for top in REPEATABLE
            for path in sorted((self.folder / top).rglob("*"))
            if path.is_file() and path.name != ".gitignore"
        }


def few(params):
    params["portable"] = False  # which takes twice the time
    params["lessons"]["images"]["training"]["epochs"] = 1
    params["studies"]["ner"]["experiments"] = EXPERIMENTS
    params["experiments"]["ner-encoder"]["model"]["implementation"] = "native"
    tuning = params["experiments"]["ner-generative-neftune"]["tuning"]
    alpha = tuning["neftune_alpha"]
    tuning.update(params["experiments"]["ner-decoder-qlora"]["tuning"], neftune_alpha=alpha)
    for section, kept in {"experiments": EXPERIMENTS, "parity": PARITY}.items():
        for name in {*params[section]} - {*kept}:
            del params[section][name]


def ran(output):
    return set(re.findall(r"Running stage '([^']+)'", output))
