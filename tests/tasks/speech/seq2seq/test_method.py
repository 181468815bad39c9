"""A small Whisper learns tones for syllables, and what it is saved as is Hugging Face's own."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from transformers import WhisperFeatureExtractor

from tests.tasks.speech import made
from wxb.core import paths
from wxb.core.errors import WxbError
from wxb.core.files import read_json
from wxb.corpora.text.encoded import read_columns, write_columns
from wxb.corpora.text.tokenizers import SavedTokenizer, load, train
from wxb.tasks.speech.params import SpecAugment
from wxb.tasks.speech.predictor import read, windows
from wxb.tasks.speech.reading.writing import write
from wxb.tasks.speech.record.audio.cleaning import loudness_of
from wxb.tasks.speech.record.audio.features import RATE
from wxb.tasks.speech.seq2seq import layout
from wxb.tasks.speech.seq2seq.method import Method
from wxb.tasks.speech.seq2seq.model import masked

LORA = {"lora": {"r": 8, "alpha": 16, "target_modules": ["q_proj", "v_proj"]}}


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A folder with recordings, a tokenizer alone for a backbone, and the trained model of it."""
    folder = tmp_path_factory.mktemp("world")
    records = made.records(folder, 64)
    texts = [record.gold["text"] for record in records]
    for name in ("models/characters", "data/tokenizers/characters"):
        train("byte-level-bpe", 300, texts).save_pretrained(folder / name)
    fitted(folder, records, "base", "characters", made.experiment())
    return folder, records


def prepared(folder, records, name, backbone, experiment):
    """Features and targets as the stages tokenize and align write them, and the tokenizer."""
    saved = SavedTokenizer(folder / "models" / backbone)
    method = Method.with_vocabulary(experiment, [], saved)
    place = folder / name
    place.mkdir(exist_ok=True)
    features, targets = place / "train.arrow", place / "targets.arrow"
    method.encode(records, features, label="test")
    columns, splits, account = method.align(features, [records])
    write_columns(targets, columns, splits)
    return features, targets, account


def fitted(folder, records, name, backbone, experiment):
    """Train an experiment and save it at models/<name>."""
    features, targets, _ = prepared(folder, records, name, backbone, experiment)
    place = folder / "models" / backbone
    method = Method.with_vocabulary(experiment, [], load(place))
    items = method.dataset(features, targets, records)
    run = method.training_run(
        items, items, seed=1, checkpoints=folder / f"checkpoints-{name}", label="test"
    )
    model, history = method.fit(place, run)
    predictor = Method.Predictor.from_training(model, method, targets)
    out = folder / "models" / name
    predictor.save(out, experiment, updates=history[-1]["step"], examples=1)
    return out, predictor, history


def texts(predictor, records):
    return [found.text for found in predictor.predict([record.input for record in records])]


def test_it_learns_and_writes_what_it_hears(world):
    folder, records = world
    predictor = Method.Predictor.load(folder / "models/base")
    heard = texts(predictor, records)
    right = sum(text == record.gold["text"] for text, record in zip(heard, records, strict=True))
    assert right > 0.8 * len(records)
    silence = folder / "silence.flac"
    write(silence, np.zeros(RATE, np.float32), RATE)
    (nothing,) = predictor.predict([str(silence)])
    assert predictor.describe("", nothing) == {"text": "", "segments": []}


def test_a_long_recording_is_written_in_parts(world):
    folder, records = world
    predictor = Method.Predictor.load(folder / "models/base")
    said = [records[0].gold["text"], records[1].gold["text"]]
    pause = np.zeros(RATE // 2, np.float32)
    path = folder / "long.flac"
    write(path, np.concatenate([made.sung(said[0]), pause, pause, made.sung(said[1])]), RATE)
    (found,) = predictor.predict([str(path)])
    assert found.text == "".join(texts(predictor, records[:2]))
    first, second = found.segments
    assert first.end < 0.6 < 1.3 < second.start < second.end < 2
    assert predictor.predict([path.read_bytes()]) == [found]


def test_the_same_weights_are_learnt_natively(world):
    folder, records = world
    brief = {"training": {"epochs": 2}}
    theirs, _, history = fitted(folder, records, "t", "characters", made.experiment(**brief))
    native = made.experiment(model={"implementation": "native"}, **brief)
    ours, _, again = fitted(folder, records, "n", "characters", native)
    for one, other in zip(history, again, strict=True):
        assert one == pytest.approx(other, rel=1e-3)
    first, second = (load_file(path / "model.safetensors") for path in (theirs, ours))
    assert first.keys() == second.keys()
    for name, weight in first.items():
        assert torch.allclose(weight, second[name], atol=1e-3), name
    configs = [read_json(path / "config.json") for path in (theirs, ours)]
    assert configs[0] == configs[1]


ADAPTERS = {
    "lora": LORA,
    "qlora": {**LORA, "four_bit": True},
}


@pytest.mark.parametrize("name", ADAPTERS)
@pytest.mark.slow
def test_plain_peft_loads_an_adapter_with_the_same_logits(world, name):
    folder, records = world
    brief = made.experiment(
        backbone="base", model={"shape": None}, tuning=ADAPTERS[name], training={"epochs": 1}
    )
    out, _, _ = fitted(folder, records, name, "base", brief)
    mine = Method.Predictor.load(out)
    assert 0 < mine.size(trainable=True) < 0.2 * mine.size()
    features, targets, _ = prepared(folder, records[:4], f"{name}-4", "base", brief)
    items = Method(brief, [], mine.tokenizer).dataset(features, targets, records[:4])
    batch = Method(None, [], mine.tokenizer).collator()([*items])
    with torch.inference_mode():
        expected = mine.model(**batch)["logits"]
    np.savez(folder / "batch.npz", **{key: value.numpy() for key, value in batch.items()})
    code = f"""
import numpy as np, torch
from peft import PeftModel
from transformers import AutoModelForSpeechSeq2Seq, BitsAndBytesConfig
quantized = None
if {name == "qlora"}:
    quantized = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True, bnb_4bit_compute_dtype=torch.float32)
base = AutoModelForSpeechSeq2Seq.from_pretrained("models/base", dtype=torch.float32,
    quantization_config=quantized)
for module in base.modules():
    if hasattr(module, "support_avx512bf16_for_cpu"):
        module.support_avx512bf16_for_cpu = False
model = PeftModel.from_pretrained(base, "models/{name}").eval()
batch = {{key: torch.from_numpy(value) for key, value in np.load("batch.npz").items()}}
labels = batch["labels"]
prompt = torch.tensor({mine.model.prompt}).expand(len(labels), -1)
read = torch.cat([prompt, labels.masked_fill(labels == -100, {mine.model.pad})[:, :-1]], dim=1)
features = batch["input_features"].transpose(1, 2)
with torch.inference_mode():
    logits = model(input_features=features, decoder_input_ids=read).logits
np.save("logits.npy", logits[:, {len(mine.model.prompt) - 1}:].numpy())
"""
    subprocess.run([sys.executable, "-c", code], cwd=folder, check=True, capture_output=True)
    assert torch.allclose(torch.from_numpy(np.load(folder / "logits.npy")), expected, atol=1e-5)


def test_a_frozen_model_stays_what_it_was(world):
    folder, records = world
    frozen = made.experiment(backbone="base", model={"shape": None}, tuning={"frozen": True})
    out, _, history = fitted(folder, records, "frozen", "base", frozen)
    assert [row["step"] for row in history] == [0]
    before, after = (
        load_file(folder / "models" / n / "model.safetensors") for n in ("base", "frozen")
    )
    assert all(torch.equal(weight, after[name]) for name, weight in before.items())
    predictor = Method.Predictor.load(out)
    assert predictor.size(trainable=True) == 0
    assert texts(predictor, records) == texts(
        Method.Predictor.load(folder / "models/base"), records
    )


@pytest.mark.slow
def test_the_pipeline_of_transformers_runs_the_folder(world):
    folder, records = world
    code = """
import json, numpy
from transformers import pipeline
hear = pipeline("automatic-speech-recognition", "models/base")
greedily = {"num_beams": 1, "max_new_tokens": 8}  # as we do; left to itself, it follows five beams
sounds = [{"raw": sound, "sampling_rate": 16000} for sound in numpy.load("heard.npz").values()]
print(json.dumps([hear(sound, generate_kwargs=greedily)["text"] for sound in sounds]))
"""
    chosen, heard = records[:6], []
    for record in chosen:  # without the silence at the ends, which the pipeline leaves
        samples = read(record.input)
        (window,) = windows(*loudness_of([samples]), 1, overlap=0.3, pause=0.2)
        heard.append(samples[window.start : window.end])
    np.savez(folder / "heard.npz", *heard)
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
    )
    mine = texts(Method.Predictor.load(folder / "models/base"), chosen)
    assert json.loads(done.stdout.splitlines()[-1]) == mine
    extractor = WhisperFeatureExtractor.from_pretrained(folder / "models/base")
    assert (extractor.feature_size, extractor.nb_max_frames) == (20, 100)


def test_every_transcript_is_accounted_for(world):
    folder, records = world
    long = [made.record(folder, "啊" * 5, 900), made.record(folder, "一", 901)]
    long[1].gold["seconds"] = 1.1
    few = [*records[:3], *long]
    experiment = made.experiment(encoding={"max_length": 4, "speeds": [0.9]})
    features, targets, account = prepared(folder, few, "few", "characters", experiment)
    assert account == {"gold": 10, "kept": 6, "cut": 2, "too_long": 2}
    items = Method(experiment, [], None).dataset(features, targets, few)
    assert len(items) == 6
    assert len(items.stored[5]) > len(items.stored[0])  # slower
    columns, _ = read_columns(targets, ["labels"])
    assert len(columns["labels"]) == 6 * 4
    item = items[0]
    assert (item["input_features"].shape, item["input_features"].dtype) == ((100, 20), np.float32)


def test_what_does_not_fit_the_backbone_is_told(world):
    folder, _ = world
    base, characters = folder / "models/base", folder / "models/characters"
    tokenizer = SavedTokenizer(base)
    for changes, message in (
        ({"encoding": {"window": 2}}, r"encoding\.window: found 2; the model in .* is for 1"),
        ({"encoding": {"mel_bands": 80}}, r"encoding\.mel_bands: found 80; .* is for 20"),
    ):
        experiment = made.experiment(model={"shape": None}, **changes)
        with pytest.raises(WxbError, match=message):
            Method(experiment, [], tokenizer).build(base)
    bare = made.experiment(model={"shape": None})
    with pytest.raises(WxbError, match=r"found a tokenizer and no weights; give `model\.shape`"):
        Method(bare, [], tokenizer).build(characters)
    other = made.experiment(model={"shape": None}, encoding={"language": "xx"})
    with pytest.raises(WxbError, match=r"has no <\|startoftranscript\|>, <\|xx\|>"):
        Method(other, [], SavedTokenizer(characters)).vocabulary()


def test_a_language_is_asked_for_by_its_token(world):
    folder, _ = world
    experiment = made.experiment(encoding={"language": "zh"})
    tokenizer = Method(experiment, [], load(folder / "models/characters")).vocabulary()
    model = Method(experiment, [], tokenizer).build(folder / "models/characters")
    names = tokenizer.convert_ids_to_tokens(model.prompt)
    assert names == ["<|startoftranscript|>", "<|zh|>", "<|transcribe|>", "<|notimestamps|>"]
    settings = model.backbone.generation_config
    assert (settings.language, settings.task, settings.is_multilingual) == (
        "<|zh|>",
        "transcribe",
        True,
    )
    assert layout.prompt(None) == ["<|startoftranscript|>", "<|notimestamps|>"]


def test_masks_hide_stretches_and_no_more():
    torch.manual_seed(1)
    features = torch.rand(200, 50, 20)
    hidden = masked(features, SpecAugment(masks=1, bands=4, frames=10)) != features
    whole = hidden.all(dim=2).sum(dim=1), hidden.all(dim=1).sum(dim=1)  # frames, bands
    assert whole[0].max() == 10
    assert whole[1].max() == 4
    assert (hidden.any(dim=(1, 2)).sum(), whole[0].min()) != (200, 0)
    same = masked(features, SpecAugment(masks=1, bands=0, frames=0))
    assert torch.equal(same, features)


def test_ctc_is_that_of_the_frames_and_is_not_kept(world):
    folder, records = world
    weighted = made.experiment(model={"ctc_weight": 0.3}, training={"epochs": 1})
    out, predictor, _ = fitted(folder, records, "ctc", "characters", weighted)
    features, targets, _ = prepared(folder, records[:5], "ctc-5", "characters", weighted)
    items = Method(weighted, [], None).dataset(features, targets, records[:5])
    batch = Method(None, [], predictor.tokenizer).collator()([*items])
    model = predictor.model.eval()
    with torch.inference_mode():
        whole = model(**batch)["loss"]
        model.ctc_weight = 0.0
        plain = model(**batch)["loss"]
        encoded = model.backbone.get_encoder()(batch["input_features"].transpose(1, 2))
        logs = model.ctc(encoded.last_hidden_state).log_softmax(-1)
        each = [
            torch.nn.functional.ctc_loss(
                row[:, None], labels[None, :-1], [len(row)], [len(labels) - 1], blank=model.pad
            )
            for row, labels in zip(logs, batch["labels"], strict=True)
        ]
    expected = 0.7 * float(plain) + 0.3 * float(torch.stack(each).mean())
    assert float(whole) == pytest.approx(expected, rel=1e-5)
    assert not [name for name in load_file(out / "model.safetensors") if "ctc" in name]
    assert sorted(path.name for path in out.glob("*.safetensors")) == ["model.safetensors"]


def test_the_settings_say_how_it_hears(world):
    folder, _ = world
    told = read_json(folder / "models/base" / paths.SETTINGS)
    assert {key: told[key] for key in ("task", "method", "window", "mel_bands", "frozen")} == {
        "task": "speech",
        "method": "seq2seq",
        "window": 1,
        "mel_bands": 20,
        "frozen": False,
    }
    assert Path(folder / "models/base/generation_config.json").exists()
