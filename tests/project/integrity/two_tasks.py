"""A project of two tasks whose stages do almost nothing; its dvc.yaml has the form of the real one.

A stage's result depends on its inputs, on `VALUE` in the code of its task, and on its parameters.
No two stages write the same bytes: otherwise one could be restored from the other's objects.
"""

import json

DVC_YAML = """
stages:
  check:
    cmd: python -IS stages/check.py
    deps: [params.yaml, stages/common.py, stages/check.py]
    outs: [.wxb/params-checked]
  preprocess:
    foreach: ${corpora}
    do:
      cmd: python -IS stages/preprocess.py ${key}
      params: ["corpora.${key}"]
      deps:
        - .wxb/params-checked
        - raw/${key}
        - stages/common.py
        - stages/preprocess.py
        - tasks/${item.task}/reading
      outs: ["data/${key}"]
  train:
    foreach: ${experiments}
    do:
      cmd: python -IS stages/train.py ${key}
      params: ["experiments.${key}.training", "experiments.${key}.corpus"]
      deps:
        - data/${item.corpus}
        - stages/common.py
        - stages/train.py
        - tasks/${item.task}/method.py
      outs: ["models/${key}"]
  evaluate:
    foreach: ${experiments}
    do:
      cmd: python -IS stages/evaluate.py ${key}
      params: [seed, "experiments.${key}.prediction", "experiments.${key}.study"]
      deps:
        - data/${item.corpus}
        - models/${key}
        - stages/common.py
        - stages/evaluate.py
        - tasks/${item.task}/metrics.py
      metrics:
        - reports/metrics/${item.study}/${key}.json: {cache: false}
      outs: ["reports/predictions/${item.study}/${key}"]
  compare:
    foreach: ${studies}
    do:
      cmd: python -IS stages/compare.py ${key}
      params: ["studies.${key}"]
      deps:
        - reports/metrics/${key}
        - reports/predictions/${key}
        - stages/common.py
        - stages/compare.py
        - tasks/${item.task}/metrics.py
      plots:
        - reports/studies/${key}.json: {cache: false}
        - reports/studies/${key}.csv: {cache: false}
  report:
    foreach: ${studies}
    do:
      cmd: python -IS stages/report.py ${key}
      params: ["studies.${key}"]
      deps: ["reports/studies/${key}.json", stages/common.py, stages/report.py]
      outs: ["reports/${key}.html"]
"""
# JSON is YAML, and read in a fraction of the time.
PARAMS = {
    "seed": 1,
    "corpora": {"names": {"task": "ner"}, "news": {"task": "classification"}},
    "studies": {
        "tags": {"task": "ner", "experiments": ["encoder", "decoder"]},
        "topics": {"task": "classification", "experiments": ["linear"]},
    },
    "experiments": {
        name: {
            "task": task,
            "corpus": corpus,
            "study": study,
            "training": {"rate": 1},
            "prediction": {"beam": 1},
        }
        for name, task, corpus, study in [
            ("encoder", "ner", "names", "tags"),
            ("decoder", "ner", "names", "tags"),
            ("linear", "classification", "news", "topics"),
        ]
    },
}
COMMON = """
import json, os, sys
NAME = sys.argv[1] if sys.argv[1:] else ""
VERB = os.path.basename(sys.argv[0])[:-3]
with open("logs/started", "a") as file:
    file.write(f"{VERB}@{NAME}\\n" if NAME else f"{VERB}\\n")
PARAMS = json.load(open("params.yaml"))
def read(path):
    with open(path) as file:
        return file.read()
def value(path):
    scope = {}
    exec(read(path), scope)
    return scope["VALUE"]
def write(path, content):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(content)
"""
STAGES = {
    "check": 'write(".wxb/params-checked", "valid")',
    "preprocess": """
number = value(f"tasks/{PARAMS['corpora'][NAME]['task']}/reading/lines.py")
for name in sorted(os.listdir(f"raw/{NAME}")):
    write(f"data/{NAME}/{name}", f"{NAME} {number} " + read(f"raw/{NAME}/{name}").lower())
""",
    "train": """
item = PARAMS["experiments"][NAME]
words = read(f"data/{item['corpus']}/train.txt").split()
number = value(f"tasks/{item['task']}/method.py") * item["training"]["rate"]
write(f"models/{NAME}/weights.json", json.dumps([number, NAME, *sorted(words)]))
write(f"models/{NAME}/config.json", json.dumps({"name": NAME, "words": len(words)}))
""",
    "evaluate": """
item = PARAMS["experiments"][NAME]
words = json.loads(read(f"models/{NAME}/weights.json"))
predicted = [w for w in read(f"data/{item['corpus']}/test.txt").split() if w in words]
settings = [PARAMS["seed"], item["prediction"]["beam"], value(f"tasks/{item['task']}/metrics.py")]
write(f"reports/predictions/{item['study']}/{NAME}/test.json", json.dumps([NAME, *predicted]))
score = {"name": NAME, "n": len(predicted), "rate": words[0], "settings": sum(settings)}
write(f"reports/metrics/{item['study']}/{NAME}.json", json.dumps(score))
""",
    "compare": """
study = PARAMS["studies"][NAME]
number = value(f"tasks/{study['task']}/metrics.py")
scores = {n: json.loads(read(f"reports/metrics/{NAME}/{n}.json")) for n in study["experiments"]}
lines = [read(f"reports/predictions/{NAME}/{n}/test.json") for n in study["experiments"]]
write(f"reports/studies/{NAME}.json", json.dumps([number, scores, lines]))
write(f"reports/studies/{NAME}.csv", ",".join(scores))
""",
    "report": """
study = PARAMS["studies"][NAME]["experiments"]
write(f"reports/{NAME}.html", f"<p>{study} {len(read(f'reports/studies/{NAME}.json'))}</p>")
""",
}
LOAD = "exec(open('stages/common.py').read())\n"
CODE = [
    f"tasks/{task}/{name}.py"
    for task in ("ner", "classification")
    for name in ("reading/lines", "method", "metrics")
]
UNUSED = ["tasks/ner/page.py", "wxb/cli.py", "notes.md"]  # no stage depends on them
# As in the real project: otherwise DVC writes files .gitignore, also to folders that stages read.
GITIGNORE = """
/data/
/models/
/reports/*
!/reports/metrics/
!/reports/studies/
/logs/
/.wxb/
/.snakemake/
__pycache__
"""
FILES = {
    "dvc.yaml": DVC_YAML,
    "params.yaml": json.dumps(PARAMS, indent=1),
    ".gitignore": GITIGNORE,
    "raw/names/train.txt": "Ann Bob\n",
    "raw/names/test.txt": "Bob Carl\n",
    "raw/news/train.txt": "rain sun\n",
    "raw/news/test.txt": "sun snow\n",
    "stages/common.py": COMMON,
    "logs/started": "",
    **{f"stages/{verb}.py": LOAD + code for verb, code in STAGES.items()},
    **dict.fromkeys(CODE, "VALUE = 1\n"),
    **dict.fromkeys(UNUSED, "# nothing\n"),
}
