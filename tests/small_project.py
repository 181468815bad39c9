"""A small project with all kinds of stages, which a test session builds once."""

import hashlib
import json
import re

from tests import demo, forks
from tests.corpora.records import to_letters
from tests.project_copy import Project, keep_experiments

# Folders whose bytes must be the same in each run.
REPORTS = ("metrics", "predictions", "studies", "training")
REPRODUCIBLE = ["data", "models", *(f"reports/{name}" for name in REPORTS)]

# All methods and tokenizers, a native architecture, and all kinds of tuning.
EXPERIMENTS = ["ner-encoder", "ner-generative-neftune", "ner-mentions"]
BLOCKS = {
    ("download", "preprocess"): [*demo.BLOCKS["corpora"], "local"],
    ("tokenizer", "pretrain"): demo.BLOCKS["backbones"],
    ("tokenize", "align", "train", "evaluate"): EXPERIMENTS,
    ("compare", "report"): demo.BLOCKS["studies"],
    ("lesson",): demo.BLOCKS["lessons"],
}
STAGES_BY_VERB = {
    verb: [f"{verb}@{name}" for name in names] for verbs, names in BLOCKS.items() for verb in verbs
} | {"check": ["check"]}
STAGES = {stage for stages in STAGES_BY_VERB.values() for stage in stages}
SPANS = [{"start": 5, "end": 8, "type": "NAME"}]
LOCAL = [{"input": f"Call Ann {to_letters(i)}.", "spans": SPANS, "author": i} for i in range(20)]


class SmallProject(Project):
    """A copy with fewer experiments, and one more corpus from a local file."""

    def create(self):
        super().create()
        self.edit(shrink)
        (self.folder / "local.json").write_text(json.dumps(LOCAL))
        split = {"by": "author", "test": 0.2, "valid": 0.2}
        local = {"task": "ner", "path": "local.json", "fields": {"id": None}, "split": split}
        self.edit(lambda params: params["corpora"].update(local=local))
        self.commit("first")

    def build(self):
        """Run all stages, and trace their imports."""
        self.traces.mkdir(exist_ok=True)
        forks.stages(self, traces=self.traces)

    @property
    def traces(self):
        """The folder with the imports of the stages, next to the project."""
        return self.folder.parent / "traces"

    def commit(self, message):
        self.run("git", "add", "-A")
        name = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        self.run("git", *name, "commit", "-qm", message)

    def repro(self, *targets, **environment):
        """Run `dvc repro`; returns the stages that ran."""
        return stages_run(self.run("dvc", "repro", *targets, **environment))

    def snakemake(self, *targets, **environment):
        """Run `snakemake --cores 2`; returns the stages that DVC ran."""
        return stages_run(self.run("snakemake", "--cores", "2", *targets, **environment))

    def append(self, name, text):
        path = self.folder / name
        path.write_text(path.read_text() + text)

    def hashes(self):
        return {
            str(path.relative_to(self.folder)): hashlib.sha256(path.read_bytes()).hexdigest()
            for folder in REPRODUCIBLE
            for path in sorted((self.folder / folder).rglob("*"))
            if path.is_file() and path.name != ".gitignore"
        }


def shrink(params):
    """Remove most experiments, and shorten training."""
    params["corpora"]["pii"]["generate"].update(labelled=300)
    # More to train on: a model that predicts nothing stays the same if a setting changes.
    params["corpora"]["pii"]["split"]["further"]["situations"]["share"] = 0.25
    params["lessons"]["images"].update(widths=[4, 8])
    params["lessons"]["images"]["training"]["epochs"] = 1
    params["experiments"]["ner-encoder"]["model"]["implementation"] = "native"
    params["experiments"]["ner-generative-neftune"]["training"]["epochs"] = 1
    tuning = params["experiments"]["ner-generative-neftune"]["tuning"]
    alpha = tuning["neftune_alpha"]
    tuning.update(params["experiments"]["ner-decoder-qlora"]["tuning"], neftune_alpha=alpha)
    keep_experiments(params, EXPERIMENTS)


def stages_run(output):
    """The stages that DVC ran, from its output."""
    return set(re.findall(r"Running stage '([^']+)'", output))
