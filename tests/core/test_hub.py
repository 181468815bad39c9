"""Downloads from the hub, here a local folder: which files and revision, and the errors."""

import json
import shutil

import huggingface_hub
import pytest
from huggingface_hub import errors
from huggingface_hub.utils import filter_repo_objects, httpx

from tests import tiny
from tests.project_copy import ROOT
from tests.repository import write
from wxb.core import hub
from wxb.core.errors import WxbError
from wxb.core.params import read_yaml
from wxb.core.params.backbones import Backbone
from wxb.corpora.text.tokenizers import train

COMMIT = "0123456789" * 4
# Files that can run code, and formats of other libraries.
OTHERS = ["pytorch_model.bin", "consolidated.00.pth", "modeling.py", "tf_model.h5"]


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """The files of a model with its tokenizer and other formats, and of a data set."""
    folder = tmp_path_factory.mktemp("published")
    tokenizer = train("wordpiece", 300, ["Call Ann at 112."])
    tiny.bert(folder / "bert", vocab_size=len(tokenizer))
    tokenizer.save_pretrained(folder / "bert")
    for name in (*OTHERS, "original/params.json"):
        write(folder / "bert" / name, "1 / 0")
    for name in ("README.md", "b.csv", "data/train/a.jsonl"):
        write(folder / "records" / name, name)
    return folder


@pytest.fixture
def requests(published, cwd, monkeypatch):
    """The arguments of all downloads, which fill one cache."""
    requests = []

    def download(repository, *, allow_patterns, ignore_patterns, **options):
        requests.append({"repository": repository, **options})
        origin, cache = published / repository, cwd / "cache" / repository
        names = [p.relative_to(origin).as_posix() for p in origin.rglob("*") if p.is_file()]
        for name in filter_repo_objects(
            names, allow_patterns=allow_patterns, ignore_patterns=ignore_patterns
        ):
            (cache / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(origin / name, cache / name)
        return str(cache)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    return requests


def files(folder):
    return {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}


def test_the_full_profile_pins_everything_by_commit():
    full = read_yaml(ROOT / "params/full.yaml")
    pinned = [full["corpora"]["pii"]["hub"], *full["backbones"].values()]
    revisions = [block["revision"] for block in pinned]
    assert all(len(r) == 40 and set(r) <= set("0123456789abcdef") for r in revisions)


def test_only_files_that_are_loaded_are_downloaded(requests):
    with hub.checkpoint("bert", COMMIT) as folder:
        tokenizer = files(folder)
    assert tokenizer == {"config.json", "tokenizer.json", "tokenizer_config.json"} | tokenizer
    assert not [name for name in tokenizer if name.endswith((".safetensors", *OTHERS))]
    with hub.checkpoint("bert", COMMIT, weights=True) as folder:
        assert files(folder) == tokenizer | {"model.safetensors"}
    assert requests == [{"repository": "bert", "repo_type": "model", "revision": COMMIT}] * 2


def test_only_matching_files_are_copied_from_the_cache(requests, tmp_path):
    everything = {"README.md", "b.csv", "data/train/a.jsonl"}
    some = {"data/train/* *.csv": everything - {"README.md"}, "*.csv": {"b.csv"}}
    for number, (patterns, expected) in enumerate({"*": everything, **some}.items()):
        folder = tmp_path / str(number)
        hub.fetch_dataset("records", COMMIT, patterns.split(), folder)
        assert files(folder) == expected
        assert not any(path.is_symlink() for path in folder.rglob("*"))
    assert requests[-1] == {"repository": "records", "repo_type": "dataset", "revision": COMMIT}
    with pytest.raises(WxbError, match=r"records: found no file that matches x\.csv, y; .*`files`"):
        hub.fetch_dataset("records", "main", ["x.csv", "y"], tmp_path / "none")


REQUEST = httpx.Request("GET", "http://hub")
FAULTS = [
    errors.GatedRepoError("x", response=httpx.Response(403, request=REQUEST)),
    errors.RevisionNotFoundError("x", response=httpx.Response(404, request=REQUEST)),
    httpx.ConnectError("x"),
]


@pytest.mark.parametrize("fault", FAULTS, ids=repr)
@pytest.mark.parametrize("kind", ["model", "dataset"])
def test_errors_have_the_name_and_the_remedy(monkeypatch, tmp_path, fault, kind):
    def fail(*_, **__):
        raise fault

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fail)
    call = {
        "model": lambda: hub.checkpoint("some/name", "v9").__enter__(),
        "dataset": lambda: hub.fetch_dataset("some/name", "v9", ["*"], tmp_path),
    }
    expected = rf"^some/name: .*'v9' \({type(fault).__name__}: x.*some/name/commits/main.*HF_TOKEN"
    with pytest.raises(WxbError, match=expected) as caught:
        call[kind]()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["data/own/bert", "own/bert", "./bert", "/bert"])
def test_a_missing_folder_is_not_looked_for_on_the_hub(requests, name):
    with pytest.raises(WxbError, match=f"^{name}: no such file or folder"), hub.checkpoint(name):
        pass
    assert not requests


def test_a_pointer_of_git_lfs_is_no_checkpoint(tmp_path):
    (tmp_path / "model.safetensors").write_text("version https://git-lfs.github.com/spec/v1\n")
    with pytest.raises(WxbError, match="found a pointer of Git LFS"), hub.checkpoint(tmp_path):
        pass


INDEX, SHARDS = "model.safetensors.index.json", [f"model-{n}-of-2.safetensors" for n in (1, 2)]
MISSING = {(INDEX, SHARDS[0]): SHARDS[1], (INDEX,): SHARDS[0], (*SHARDS,): INDEX,
           ("model.safetensors", INDEX, *SHARDS): "remove the older"}  # fmt: skip


@pytest.mark.parametrize("names", MISSING)
def test_all_files_of_weights_are_required(tmp_path, names):
    for name in names:
        (tmp_path / name).write_text(json.dumps({"weight_map": dict(enumerate(SHARDS))}))
    with pytest.raises(WxbError, match=MISSING[names]), hub.checkpoint(tmp_path, weights=True):
        pass


@pytest.mark.parametrize("name", ["checkpoint-20/model.safetensors", "model.Q4_K_M.gguf"])
def test_an_error_names_checkpoints_in_the_folder(tmp_path, name):
    write(tmp_path / name, "")
    load = hub.checkpoint(tmp_path, weights=True)
    with pytest.raises(WxbError, match=rf"to one of .*/{name.partition('/')[0]}$"), load:
        pass


def test_any_error_of_a_library_names_the_checkpoint(tmp_path):
    with pytest.raises(WxbError, match=r"found: Exception: x"), hub.checkpoint(tmp_path):
        raise Exception("x")
    with pytest.raises(AttributeError), hub.checkpoint(tmp_path):  # a defect of code
        raise AttributeError


def test_the_home_folder_of_a_checkpoint_is_expanded(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "bert").mkdir()
    assert Backbone(corpus="c", objective="none", checkpoint="~/bert").is_local
