"""Download checkpoints and data sets from a local server with the hub's interface."""

import io
import json
import re
import shutil
from fnmatch import fnmatch
from hashlib import sha256
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import load
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from tokenizers.trainers import BpeTrainer
from transformers import (
    BertConfig,
    BertForPreTraining,
    LlamaConfig,
    LlamaForCausalLM,
)

from tests.corpora.records import to_letters
from wxb.core.files import read_json
from wxb.core.params import read_yaml
from wxb.corpora import clean
from wxb.project.params_file import to_yaml
from wxb.tasks.ner.record import Labelling

HOME = Path(__file__).resolve().parents[3]
FULL = read_yaml(HOME / "params/full.yaml")
ENCODER, DECODER = FULL["backbones"]["encoder"], FULL["backbones"]["decoder"]
DATA = FULL["corpora"]["pii"]["hub"]
NOWHERE = "http://127.0.0.1:9"  # a port without a server
NEVER = ".bin", ".pth", ".py", ".h5", ".mlmodel"
TEXTS = ["Call Ann Lee at 112 or write to ann@lee.example.", "Zoë was born in Bonn in 1990."] * 20


# Small repositories with the same files as the real ones


def llama(folder):
    """A folder like Meta-Llama-3-8B: byte-level BPE, no padding token, sharded weights."""
    begin, end = "<|begin_of_text|>", "<|end_of_text|>"
    special = [begin, end, *(f"<|reserved_special_token_{i}|>" for i in range(6))]
    tokenizer = Tokenizer(models.BPE(ignore_merges=True))
    words = Regex(
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|\s+|[^\s\p{L}\p{N}]+"
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(words, behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = BpeTrainer(vocab_size=300, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(TEXTS, trainer)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(special)
    template = processors.TemplateProcessing(
        single=f"{begin} $A", special_tokens=[(begin, tokenizer.token_to_id(begin))]
    )
    tokenizer.post_processor = processors.Sequence(
        [processors.ByteLevel(trim_offsets=False), template]
    )
    config = LlamaConfig(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        rope_theta=500_000.0,
        bos_token_id=tokenizer.token_to_id(begin),
        eos_token_id=tokenizer.token_to_id(end),
    )
    model = LlamaForCausalLM(config).to(torch.bfloat16)
    model.save_pretrained(folder, max_shard_size="30KB")
    tokenizer.save(str(folder / "tokenizer.json"))
    names = {"bos_token": begin, "eos_token": end}
    added = {str(tokenizer.token_to_id(t)): {"content": t, "special": True} for t in special}
    settings = {
        **names,
        "added_tokens_decoder": added,
        "clean_up_tokenization_spaces": True,
        "model_input_names": ["input_ids", "attention_mask"],
        "model_max_length": 1000000000000000019884624838656,
        "tokenizer_class": "PreTrainedTokenizerFast",
    }
    write(folder, "tokenizer_config.json", json.dumps(settings))
    write(folder, "special_tokens_map.json", json.dumps(names))
    write(folder, "original/consolidated.00.pth", "a pickle")
    write(folder, "original/params.json", "{}")


def bert(folder):
    """A folder like bert-base-uncased: WordPiece in two formats, weights of both heads."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    characters = [chr(i) for i in range(33, 127) if not chr(i).isupper()]
    vocabulary = [*special, *characters, *(f"##{c}" for c in characters), "ann", "call", "at"]
    tokenizer = Tokenizer(
        models.WordPiece({w: i for i, w in enumerate(vocabulary)}, unk_token="[UNK]")
    )
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.add_special_tokens(special)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
    )
    BertForPreTraining(config).save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    write(folder, "tokenizer_config.json", '{"do_lower_case": true, "model_max_length": 512}')
    write(folder, "vocab.txt", "\n".join(vocabulary) + "\n")
    write(folder, "pytorch_model.bin", "a pickle")
    write(folder, "tf_model.h5", "another format")
    write(folder, "coreml/float32_model.mlpackage/Manifest.json", "{}")


def write(folder, name, text):
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")


def content_of(folder):
    """The files of a folder by their path in it."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def record(index, language, split):
    """A record with the fields of open-pii-masking-500k; texts have characters outside the BMP."""
    name, town = f"Zoë{index}", "Bonn 😀" if index % 3 else "Ulm"
    text = f"👋 {name} lives in {town}, {to_letters(index)}."
    spans = [("GIVENNAME", 2, 2 + len(name), name)]
    spans += [("CITY", text.index(town), text.index(town) + len(town), town)]
    return {
        "source_text": text,
        "masked_text": f"👋 [GIVENNAME_1] lives in [CITY_1], {to_letters(index)}.",
        "privacy_mask": [
            {"label": label, "start": start, "end": end, "value": value, "label_index": 1}
            for label, start, end, value in spans
        ],
        "split": split,
        "uid": index,
        "language": language,
        "region": "US",
        "script": "Latn",
        "mbert_tokens": text.split(),
        "mbert_token_classes": ["O"] * len(text.split()),
    }


def lines(records):
    return "".join(json.dumps(r, ensure_ascii=False) + "\n" for r in records).encode()


def dataset():
    """The files of open-pii-masking-500k: every fourth record is English, as there."""
    held_out = [record(i, ("en", "fr", "de", "te")[i % 4], "validation") for i in range(16_100)]
    return {
        ".gitattributes": b"*.jsonl filter=lfs\n",
        "README.md": b"# Open PII\n",
        "data/train/train.jsonl": lines(record(20_000 + i, "en", "train") for i in range(5)),
        "data/validation/test.jsonl": lines(held_out),
        "llama-3.1-community-license.txt": b"Licence\n",
    }


def shard(form, records):
    """A file of records as `datasets` writes it."""
    if form == "jsonl":
        return lines(records)
    if form == "csv":
        cells = [{**record, "spans": json.dumps(record["spans"])} for record in records]
        return pd.DataFrame(cells).to_csv(index=False).encode()
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(records), buffer)
    return buffer.getvalue()


def sharded(count):
    """Records by the shard that holds them, in the hub's usual layout, without a suffix."""
    records = []
    for index in range(4 * count):
        name = f"Zoë{index}"
        spans = [{"start": 2, "end": 2 + len(name), "type": "NAME"}]
        text = f'👋 {name} said, "{sha256(name.encode()).hexdigest() * 2}"'
        records.append({"id": str(index), "language": "en", "input": text, "spans": spans})
    names = ["train-00000-of-00002", "train-00001-of-00002"]
    names += ["validation-00000-of-00001", "test-00000-of-00001"]
    return {f"data/{name}": records[i * count : (i + 1) * count] for i, name in enumerate(names)}


SHARDS = sharded(200)  # of which some are LARGE and the others small, by format
FORMS = ("jsonl", "csv", "parquet")


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """The checkpoints as folders."""
    torch.manual_seed(0)
    paths = {"bert": tmp_path_factory.mktemp("bert"), "llama": tmp_path_factory.mktemp("llama")}
    bert(paths["bert"])
    llama(paths["llama"])
    return paths


@pytest.fixture(scope="module")
def files(folders):
    """The same as files of a repository."""
    return {name: content_of(folder) for name, folder in folders.items()}


@pytest.fixture(scope="module", autouse=True)
def repositories(twin, files):
    """The repositories of the full profile at their pinned commits, and invalid ones."""
    unsafe = {k: v for k, v in files["bert"].items() if not k.endswith(".safetensors")}
    code = json.loads(files["bert"]["config.json"]) | {
        "model_type": "unheard-of",
        "auto_map": {"AutoConfig": "code.Config", "AutoModel": "code.Model"},
    }
    own_code = {**files["bert"], "config.json": json.dumps(code).encode(), "code.py": b"1 / 0"}
    own_code["tokenizer_config.json"] = b'{"auto_map": {"AutoTokenizer": ["code.T", null]}}'
    twin.add("dataset", DATA["repository"], dataset(), commit=DATA["revision"])
    twin.add("model", ENCODER["checkpoint"], files["bert"], commit=ENCODER["revision"])
    twin.add(
        "model", DECODER["checkpoint"], files["llama"], commit=DECODER["revision"], gated="files"
    )
    for name in ("some/bert", "some/mixed", "some/part"):
        twin.add("model", name, files["bert"])
    twin.add("model", "some/hidden", files["bert"], gated="all")
    twin.add("model", "some/pickles", unsafe)
    twin.add("model", "some/code", own_code)
    records = {"README.md": b"# Records\n", "b.csv": b"x\n", "data/train/a.jsonl": b"{}\n"}
    twin.add("dataset", "some/records", records)
    twin.add("dataset", "some/guarded", records, gated="files")
    for form in FORMS:
        shards = {f"{name}.{form}": shard(form, members) for name, members in SHARDS.items()}
        twin.add("dataset", f"some/{form}", {"README.md": b"# Shards\n", **shards})


def tensors(files):
    """The weights of a repository, by their names within the backbone."""
    parts = [load(content) for name, content in files.items() if name.endswith(".safetensors")]
    return {re.sub("^(bert|model)\\.", "", k): v for part in parts for k, v in part.items()}


# The full profile


def test_the_full_profile_pins_everything_by_commit():
    revisions = [DATA["revision"], *(b["revision"] for b in FULL["backbones"].values())]
    assert all(len(r) == 40 and set(r) <= set("0123456789abcdef") for r in revisions)


@pytest.mark.slow
def test_the_full_profile_downloads_data_tokenizers_and_weights(call_wxb, twin, files, tmp_path):
    shutil.copytree(HOME / "params", tmp_path / "params")
    shutil.copy(HOME / "params.yaml", tmp_path)
    calls = [
        ["profile", "full"],
        ["stage", "download", "pii"],
        ["stage", "preprocess", "pii"],
        *(["stage", verb, b] for verb in ("tokenizer", "pretrain") for b in ("encoder", "decoder")),
    ]
    before = len(twin.requests)
    assert call_wxb(*calls, HF_TOKEN=twin.token) == [None] * len(calls)

    raw = content_of(tmp_path / "data/raw")
    name = "data/validation/test.jsonl"
    published = twin.repositories[f"datasets/{DATA['repository']}"].files
    assert raw == {f"pii/{name}": published[name]}

    cleaned = tmp_path / "data/clean/pii"
    counts = {"raw": 16_100, "rejected": 12_100, "train": 1600, "valid": 400, "test": 2000}
    assert read_json(cleaned / "profile.json")["records"] == counts
    rejects = {"other language": 12_075, "over max_records": 25}
    assert read_json(cleaned / "profile.json")["rejects"] == rejects
    for member in clean.read(cleaned / "test.parquet", Labelling()):
        mentions = {span.type: member.input[span.start : span.end] for span in member.gold}
        town = "Bonn 😀" if int(member.id) % 3 else "Ulm"
        assert mentions == {"GIVENNAME": f"Zoë{member.id}", "CITY": town}

    for backbone, kind in (("encoder", "bert"), ("decoder", "llama")):
        original = tensors(files[kind])
        loaded = tensors(content_of(tmp_path / "models" / backbone))
        common = original.keys() & loaded.keys()
        assert sum("layers." in n or "layer." in n for n in common) > 15
        assert all(torch.equal(original[n].float(), loaded[n].float()) for n in common)
        assert read_json(tmp_path / f"reports/metrics/pretrain/{backbone}.json")

    # Published files have no path of this machine.
    for folder in ("data/tokenizers", "models"):
        texts = [v for k, v in content_of(tmp_path / folder).items() if k.endswith("json")]
        assert len(texts) >= 4
        assert not [t for t in texts if b"snapshots" in t or str(tmp_path).encode() in t]

    # Only pinned commits were requested, and no file that can run code.
    requests = [request for request in twin.requests[before:] if " blobs/" not in request]
    pins = [DATA["revision"], ENCODER["revision"], DECODER["revision"]]
    assert all(any(pin in request for request in requests) for pin in pins)
    assert all(any(pin in request for pin in pins) for request in requests)
    assert not [request for request in requests if request.endswith(NEVER)]


@pytest.mark.slow
def test_the_hub_a_folder_and_the_cache_give_the_same(call_wxb, twin, folders):
    pin = [DECODER["checkpoint"], DECODER["revision"]]
    names = {"hub": ["some/bert"], "pinned": pin, "folder": [str(folders["llama"])]}
    calls = [[kind, *name] for name in names.values() for kind in ("tokenizer", "model")]
    bert, model, *pinned = online = call_wxb(*calls, HF_TOKEN=twin.token)
    assert bert == {"tokens": ["[CLS]", "call", "ann", "at", "1", "##1", "##2", "[SEP]"]} | bert
    assert model["class"].startswith("Bert")
    assert pinned[:2] == pinned[2:]
    assert pinned[0]["tokens"][:2] == ["<|begin_of_text|>", "Call"]
    assert pinned[0]["pad"] == "<|end_of_text|>"  # the checkpoint has none of its own
    assert pinned[1]["class"].startswith("Llama")
    assert call_wxb(*calls, HF_HUB_OFFLINE="1", HF_ENDPOINT=NOWHERE) == online


def test_a_cached_pinned_commit_needs_no_request(call_wxb, twin):
    call = ["checkpoint", ENCODER["checkpoint"], ENCODER["revision"]]
    online = call_wxb(call)
    assert "model.safetensors" in online[0]
    before = len(twin.requests)
    assert call_wxb(call) == online
    assert twin.requests[before:] == []
    assert call_wxb(call, HF_ENDPOINT=NOWHERE) == online


def test_a_cached_data_set_needs_no_network(call_wxb):
    call = ["corpus", "some/records"]
    online = call_wxb(call)
    assert online == [{"b.csv": sha256(b"x\n").hexdigest()}]
    assert call_wxb(call, HF_HUB_OFFLINE="1") == online
    assert call_wxb(call, HF_ENDPOINT=NOWHERE) == online


def test_only_files_that_are_loaded_are_downloaded(call_wxb, twin):
    before = len(twin.requests)
    tokenizer, everything = call_wxb(
        ["checkpoint", "some/mixed", None, False], ["checkpoint", "some/mixed"]
    )
    assert tokenizer == ["config.json", "tokenizer.json", "tokenizer_config.json", "vocab.txt"]
    assert everything == ["config.json", "model.safetensors", *tokenizer[1:]]
    assert not [request for request in twin.requests[before:] if request.endswith(NEVER)]


def test_only_matching_files_are_copied_from_the_cache(call_wxb):
    call = ["corpus", "some/records", "main"]
    everything, some, one = call_wxb(
        [*call, "*"], [*call, "data/train/*", "*.csv"], [*call, "*.csv"]
    )
    assert sorted(everything) == ["README.md", "b.csv", "data/train/a.jsonl"]
    assert some == {name: everything[name] for name in ("b.csv", "data/train/a.jsonl")}
    assert one == {"b.csv": sha256(b"x\n").hexdigest()}


@pytest.mark.parametrize("form", FORMS)
def test_shards_of_a_split_can_be_chosen(call_wxb, twin, form):
    (hashes,) = call_wxb(["corpus", f"some/{form}", "main", "data/train-*", "data/test-*"])
    published = twin.repositories[f"datasets/some/{form}"].files
    chosen = {k: v for k, v in published.items() if k.startswith(("data/train", "data/test"))}
    assert len(chosen) == 3
    assert hashes == {name: sha256(content).hexdigest() for name, content in chosen.items()}


def test_records_are_read_from_shards_of_every_format(call_wxb, twin, tmp_path):
    params = read_yaml(HOME / "params.yaml")
    splits = {"train": "train-*", "valid": "validation-*", "test": "test-*"}
    files = {split: [f"data/{pattern}"] for split, pattern in splits.items()}
    for form in FORMS:
        name = f"some/{form}"
        commit = twin.repositories[f"datasets/{name}"].commit
        hub = {"repository": name, "revision": commit, "files": [f"data/*.{form}"]}
        params["corpora"][form] = {
            "task": "ner",
            "path": "params.yaml",
            "hub": hub,
            "split": {"files": files},
        }
    (tmp_path / "params.yaml").write_text(to_yaml(params))
    calls = [["stage", verb, form] for form in FORMS for verb in ("download", "preprocess")]
    assert call_wxb(*calls) == [None] * len(calls)
    for form in FORMS:
        for split, pattern in splits.items():
            shards = [
                members for name, members in SHARDS.items() if fnmatch(name, f"data/{pattern}")
            ]
            expected = {r["id"]: (r["input"], r["spans"]) for members in shards for r in members}
            actual = {
                record.id: (record.input, [span._asdict() for span in record.gold])
                for record in clean.read(
                    tmp_path / f"data/clean/{form}/{split}.parquet", Labelling()
                )
            }
            assert actual == expected
        assert (tmp_path / f"data/clean/{form}/rejects.jsonl").read_bytes() == b""


def test_an_interrupted_download_resumes_where_it_stopped(call_wxb, twin):
    content = bytes(range(256)) * 100_000  # the client saves every 10 MiB
    digest = sha256(content).hexdigest()
    twin.add("dataset", "some/long", {"a.csv": content})
    twin.cut.add(digest)
    assert call_wxb(["corpus", "some/long"]) == [{"a.csv": digest}]
    assert [0 < int(offset) <= len(content) // 2 for offset in twin.resumed] == [True]


# Errors


NOT_FOUND = "found no such {} on http.*: correct {}"
NO_NAME = ".*; expected a local folder or the name of a repository: correct `checkpoint`"
NO_REVISION = "found no revision '{}'; https://huggingface.co/{}/commits/main lists"
RESTRICTED = r"access is restricted; ask for it on https://huggingface.co/{}, then run `hf auth"
PICKLES = "found no model.safetensors; .* convert those you trust with `save_pretrained`"
OWN_CODE = (
    "^.*/new/hub/models--some--code/.*config.json: found `auto_map`, custom Python code: .*code"
)
ERRORS = {
    ("tokenizer", DECODER["checkpoint"], DECODER["revision"]): RESTRICTED.format("meta-llama/.*8B"),
    ("model", DECODER["checkpoint"], DECODER["revision"]): RESTRICTED.format("meta-llama/.*8B"),
    ("model", "some/hidden"): RESTRICTED.format("some/hidden"),
    ("corpus", "some/guarded"): RESTRICTED.format("datasets/some/guarded"),
    ("tokenizer", "some/bret"): NOT_FOUND.format("model", "`checkpoint`"),
    ("model", "some/bret"): NOT_FOUND.format("model", "`checkpoint`"),
    ("corpus", "some/bert"): NOT_FOUND.format("dataset", "`hub.repository` of the corpus"),
    ("tokenizer", "../mine"): NO_NAME,
    ("model", "models/of/mine"): NO_NAME,
    ("tokenizer", "some/bert", "0" * 40): NO_REVISION.format("0" * 40, "some/bert"),
    ("model", "some/bert", "v9"): NO_REVISION.format("v9", "some/bert"),
    ("corpus", "some/records", "v9"): NO_REVISION.format("v9", "datasets/some/records"),
    ("corpus", "some/records", "main", "x.csv", "y"): "found no file that matches x.csv, y; correct"
    " `files` of the corpus: https://huggingface.co/datasets/some/records/tree/main lists",
    ("model", "some/pickles"): PICKLES,
    ("model", "pickles"): PICKLES,
    ("model", "torn"): "expected a checkpoint .*; found: SafetensorError",
    ("tokenizer", "empty"): "expected a checkpoint .*; found: ",
    ("tokenizer", "some/code"): OWN_CODE,
    ("model", "some/code"): OWN_CODE,
}


@pytest.mark.slow
def test_errors_say_what_is_wrong_and_what_to_do(call_wxb, twin, folders, tmp_path):
    (tmp_path / "empty").mkdir()
    for name in ("pickles", "torn"):
        shutil.copytree(folders["bert"], tmp_path / name)
    (tmp_path / "pickles/model.safetensors").unlink()
    (tmp_path / "torn/model.safetensors").write_bytes(b"torn")
    before = len(twin.requests)
    for call, message in zip(ERRORS, call_wxb(*map(list, ERRORS), HF_HOME="new"), strict=True):
        expected = (
            ERRORS[call] if ERRORS[call] == OWN_CODE else f"^{re.escape(call[1])}: {ERRORS[call]}"
        )
        assert re.search(expected, str(message)), (call, message)
        assert "\n" not in message
    assert not [request for request in twin.requests[before:] if request.endswith(NEVER)]


def test_a_refused_token_is_an_error(call_wxb):
    (message,) = call_wxb(["corpus", "some/records"], HF_TOKEN="hf_expired", HF_HOME="new")
    assert re.search(
        "^some/records: .* refuses the token .*Invalid cred.*correct HF_TOKEN", message
    )


def test_errors_without_a_network_say_what_to_do(call_wxb):
    calls = [["checkpoint", "some/new"], ["corpus", "some/new"]]
    instead = ["or set `checkpoint` to a local folder", "or set `path` of the corpus to a local"]
    offline = call_wxb(*calls, HF_HUB_OFFLINE="1")
    unreachable = call_wxb(*calls, HF_ENDPOINT=NOWHERE)
    for first, second, advice in zip(offline, unreachable, instead, strict=True):
        assert re.search("^some/new: HF_HUB_OFFLINE is set and .*hub lacks revision 'main'", first)
        assert re.search(rf"^some/new: {NOWHERE} does not answer .*ConnectError", second)
        assert "set HF_HUB_OFFLINE=1" in second
        assert advice in first
        assert advice in second


def test_missing_files_of_a_cached_snapshot_are_downloaded(call_wxb):
    assert isinstance(call_wxb(["checkpoint", "some/part", "main", False])[0], list)
    (message,) = call_wxb(["checkpoint", "some/part"], HF_HUB_OFFLINE="1")
    assert re.search(
        "^some/part: HF_HUB_OFFLINE is set and .* or some of its files; unset", message
    )
