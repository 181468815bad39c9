"""A small Whisper learns tones for syllables, and is saved in Hugging Face's format."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from transformers import WhisperFeatureExtractor

from tests.tasks.speech import tones
from wxb.core import paths
from wxb.core.errors import WxbError
from wxb.core.files import read_json
from wxb.corpora.text.encoded import read_columns, write_columns
from wxb.corpora.text.saved import SavedTokenizer
from wxb.corpora.text.tokenizers import load, train
from wxb.tasks.speech.params import SpecAugment
from wxb.tasks.speech.predictor import read, windows
from wxb.tasks.speech.reading.preparation import write
from wxb.tasks.speech.record.audio.cleaning import block_loudness
from wxb.tasks.speech.record.audio.features import RATE
from wxb.tasks.speech.seq2seq import layout
from wxb.tasks.speech.seq2seq.method import Method
from wxb.tasks.speech.seq2seq.model import mask_features

LORA = {"lora": {"r": 8, "alpha": 16, "target_modules": ["q_proj", "v_proj"]}}


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A folder with a tokenizer and a model trained with it, and its records."""
    folder = tmp_path_factory.mktemp("project")
    records = tones.records(folder, 64)
    texts = [record.gold["text"] for record in records]
    for name in ("models/characters", "data/tokenizers/characters"):
        train("byte-level-bpe", 300, texts).save_pretrained(folder / name)
    fit(folder, records, "base", "characters", tones.experiment())
    return folder, records


def encode(folder, records, name, backbone, experiment):
    """Write features and targets like the stages tokenize and align; their paths and counts."""
    tokenizer = SavedTokenizer(folder / "models" / backbone)
    method = Method.with_vocabulary(experiment, [], tokenizer)
    (folder / name).mkdir(exist_ok=True)
    features, targets = folder / name / "train.arrow", folder / name / "targets.arrow"
    method.encode([records], features, label="test")
    columns, splits, account = method.align(features, [records])
    write_columns(targets, columns, splits)
    return features, targets, account


def fit(folder, records, name, backbone, experiment):
    """Train an experiment and save it at models/<name>; the path, the predictor, the history."""
    features, targets, _ = encode(folder, records, name, backbone, experiment)
    base = folder / "models" / backbone
    method = Method.with_vocabulary(experiment, [], load(base))
    items = method.dataset(features, targets, records)
    run = method.training_run(
        items, items, seed=1, checkpoints=folder / f"checkpoints-{name}", label="test"
    )
    model, history = method.fit(base, run)
    predictor = Method.Predictor.from_training(model, method, targets)
    out = folder / "models" / name
    predictor.save(out, experiment, updates=history[-1]["step"], examples=1)
    return out, predictor, history


def texts(predictor, records):
    transcripts = predictor.predict([record.input for record in records])
    return [transcript.text for transcript in transcripts]


def test_a_trained_model_transcribes(project):
    folder, records = project
    predictor = Method.Predictor.load(folder / "models/base")
    pairs = zip(texts(predictor, records), records, strict=True)
    correct = sum(text == record.gold["text"] for text, record in pairs)
    assert correct > 0.8 * len(records)
    silence = folder / "silence.flac"
    write(silence, np.zeros(RATE, np.float32), RATE)
    (nothing,) = predictor.predict([str(silence)])
    assert predictor.describe("", nothing) == {"text": "", "segments": []}


def test_a_long_recording_has_several_segments(project):
    folder, records = project
    predictor = Method.Predictor.load(folder / "models/base")
    utterances = [tones.samples(record.gold["text"]) for record in records[:2]]
    pause = np.zeros(RATE, np.float32)
    path = folder / "long.flac"
    write(path, np.concatenate([utterances[0], pause, utterances[1]]), RATE)
    (transcript,) = predictor.predict([str(path)])
    assert transcript.text == "".join(texts(predictor, records[:2]))
    first, second = transcript.segments
    assert first.end < 0.6 < 1.3 < second.start < second.end < 2
    assert predictor.predict([path.read_bytes()]) == [transcript]


def test_native_training_gives_the_same_weights(project):
    folder, records = project
    brief = {"training": {"epochs": 2}}
    theirs, _, history = fit(folder, records, "t", "characters", tones.experiment(**brief))
    native = tones.experiment(model={"implementation": "native"}, **brief)
    ours, _, native_history = fit(folder, records, "n", "characters", native)
    for their_row, our_row in zip(history, native_history, strict=True):
        assert their_row == pytest.approx(our_row, rel=1e-3)
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
def test_plain_peft_loads_an_adapter_with_the_same_logits(project, name):
    folder, records = project
    brief = tones.experiment(
        backbone="base", model={"shape": None}, tuning=ADAPTERS[name], training={"epochs": 1}
    )
    out, _, _ = fit(folder, records, name, "base", brief)
    predictor = Method.Predictor.load(out)
    assert 0 < predictor.size(trainable=True) < 0.2 * predictor.size()
    features, targets, _ = encode(folder, records[:4], f"{name}-4", "base", brief)
    items = Method(brief, [], predictor.tokenizer).dataset(features, targets, records[:4])
    batch = Method(None, [], predictor.tokenizer).collator()([*items])
    with torch.inference_mode():
        expected = predictor.model(**batch)["logits"]
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
prompt = torch.tensor({predictor.model.prompt}).expand(len(labels), -1)
previous = labels.masked_fill(labels == -100, {predictor.model.pad})[:, :-1]
input_ids = torch.cat([prompt, previous], dim=1)
features = batch["input_features"].transpose(1, 2)
with torch.inference_mode():
    logits = model(input_features=features, decoder_input_ids=input_ids).logits
np.save("logits.npy", logits[:, {len(predictor.model.prompt) - 1}:].numpy())
"""
    subprocess.run([sys.executable, "-c", code], cwd=folder, check=True, capture_output=True)
    assert torch.allclose(torch.from_numpy(np.load(folder / "logits.npy")), expected, atol=1e-5)


def test_a_frozen_model_is_unchanged(project):
    folder, records = project
    frozen = tones.experiment(backbone="base", model={"shape": None}, tuning={"frozen": True})
    out, _, history = fit(folder, records, "frozen", "base", frozen)
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
def test_the_pipeline_of_transformers_runs_the_folder(project):
    folder, records = project
    code = """
import json, numpy
from transformers import pipeline
transcribe = pipeline("automatic-speech-recognition", "models/base")
greedy = {"num_beams": 1, "max_new_tokens": 8}  # as ours; its default is five beams
windows = numpy.load("windows.npz").values()
inputs = [{"raw": window, "sampling_rate": 16000} for window in windows]
print(json.dumps([transcribe(input_, generate_kwargs=greedy)["text"] for input_ in inputs]))
"""
    trimmed = []
    for record in records[:6]:  # without the silence at the ends, which the pipeline keeps
        samples = read(record.input)
        (window,) = windows(*block_loudness([samples]), 1, overlap=0.3, pause=0.2)
        trimmed.append(samples[window.start : window.end])
    np.savez(folder / "windows.npz", *trimmed)
    process = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
    )
    expected = texts(Method.Predictor.load(folder / "models/base"), records[:6])
    assert json.loads(process.stdout.splitlines()[-1]) == expected
    extractor = WhisperFeatureExtractor.from_pretrained(folder / "models/base")
    assert (extractor.feature_size, extractor.nb_max_frames) == (20, 100)


def test_every_transcript_is_counted(project):
    folder, records = project
    long = [tones.record(folder, "啊" * 5, 900), tones.record(folder, "一", 901)]
    long[1].gold["seconds"] = 1.1
    few = [*records[:3], *long]
    experiment = tones.experiment(encoding={"max_length": 4, "speeds": [0.9]})
    features, targets, account = encode(folder, few, "few", "characters", experiment)
    assert account == {"gold": 10, "kept": 6, "cut": 2, "too_long": 2}
    items = Method(experiment, [], None).dataset(features, targets, few)
    assert len(items) == 6
    assert len(items.features[5]) > len(items.features[0])  # slower
    columns, _ = read_columns(targets, ["labels"])
    assert len(columns["labels"]) == 6 * 4
    item = items[0]
    assert (item["input_features"].shape, item["input_features"].dtype) == ((100, 20), np.float32)


def test_an_encoding_that_does_not_fit_the_backbone_is_refused(project):
    folder, _ = project
    base, characters = folder / "models/base", folder / "models/characters"
    tokenizer = SavedTokenizer(base)
    for changes, message in (
        ({"encoding": {"window": 2}}, r"encoding\.window must be 1 for the model in .*, got 2"),
        ({"encoding": {"mel_bands": 80}}, r"encoding\.mel_bands must be 20 for .*, got 80"),
    ):
        experiment = tones.experiment(model={"shape": None}, **changes)
        with pytest.raises(WxbError, match=message):
            Method(experiment, [], tokenizer).build(base)
    bare = tones.experiment(model={"shape": None})
    with pytest.raises(WxbError, match=r"has a tokenizer but no weights; set `model\.shape`"):
        Method(bare, [], tokenizer).build(characters)
    other = tones.experiment(model={"shape": None}, encoding={"language": "xx"})
    with pytest.raises(WxbError, match=r"has no <\|startoftranscript\|>, <\|xx\|>"):
        Method(other, [], SavedTokenizer(characters)).vocabulary()


def test_the_prompt_has_the_token_of_the_language(project):
    folder, _ = project
    experiment = tones.experiment(encoding={"language": "zh"})
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
    assert layout.prompt_tokens(None) == ["<|startoftranscript|>", "<|notimestamps|>"]


def test_masks_have_at_most_their_width():
    torch.manual_seed(1)
    features = torch.rand(200, 50, 20)
    mask = mask_features(features, SpecAugment(masks=1, bands=4, frames=10)) != features
    frames, bands = mask.all(dim=2).sum(dim=1), mask.all(dim=1).sum(dim=1)
    assert frames.max() == 10
    assert bands.max() == 4
    assert (mask.any(dim=(1, 2)).sum(), frames.min()) != (200, 0)
    unmasked = mask_features(features, SpecAugment(masks=1, bands=0, frames=0))
    assert torch.equal(unmasked, features)


def test_the_ctc_loss_is_added_and_its_layer_is_not_saved(project):
    folder, records = project
    weighted = tones.experiment(model={"ctc_weight": 0.3}, training={"epochs": 1})
    out, predictor, _ = fit(folder, records, "ctc", "characters", weighted)
    features, targets, _ = encode(folder, records[:5], "ctc-5", "characters", weighted)
    items = Method(weighted, [], None).dataset(features, targets, records[:5])
    batch = Method(None, [], predictor.tokenizer).collator()([*items])
    model = predictor.model.eval()
    with torch.inference_mode():
        total = model(**batch)["loss"]
        model.ctc_weight = 0.0
        plain = model(**batch)["loss"]
        encoded = model.backbone.get_encoder()(batch["input_features"].transpose(1, 2))
        logs = model.ctc(encoded.last_hidden_state).log_softmax(-1)
        ctc_losses = [
            torch.nn.functional.ctc_loss(
                row[:, None], labels[None, :-1], [len(row)], [len(labels) - 1], blank=model.pad
            )
            for row, labels in zip(logs, batch["labels"], strict=True)
        ]
    expected = 0.7 * float(plain) + 0.3 * float(torch.stack(ctc_losses).mean())
    assert float(total) == pytest.approx(expected, rel=1e-5)
    assert not [name for name in load_file(out / "model.safetensors") if "ctc" in name]
    assert sorted(path.name for path in out.glob("*.safetensors")) == ["model.safetensors"]


def test_the_settings_are_saved(project):
    folder, _ = project
    saved = read_json(folder / "models/base" / paths.SETTINGS)
    assert {key: saved[key] for key in ("task", "method", "window", "mel_bands", "frozen")} == {
        "task": "speech",
        "method": "seq2seq",
        "window": 1,
        "mel_bands": 20,
        "frozen": False,
    }
    assert Path(folder / "models/base/generation_config.json").exists()
