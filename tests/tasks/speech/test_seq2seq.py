"""A small Whisper learns tones for syllables, and is saved in Hugging Face's format."""

import shutil

import numpy as np
import pyarrow as pa
import pytest
import torch
from safetensors.torch import load_file
from transformers import (
    AutoProcessor,
    WhisperConfig,
    WhisperFeatureExtractor,
    WhisperForConditionalGeneration,
    WhisperProcessor,
)

from tests import training_steps
from tests.tasks.speech import tones
from wxb.core.errors import WxbError
from wxb.core.files import read_json, write_json
from wxb.corpora.text.encoded import read_columns
from wxb.corpora.text.tokenizers import SavedTokenizer, load, train
from wxb.project import sharing
from wxb.tasks.speech.models.whisper import load_whisper, mask_features
from wxb.tasks.speech.params import SpecAugment
from wxb.tasks.speech.record.audio import RATE, write_flac
from wxb.tasks.speech.seq2seq import WhisperMethod, prompt_tokens
from wxb.training.batches import collate

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
    method = WhisperMethod(experiment, [], tokenizer)
    return training_steps.encode(method, records, folder / name)


def fit(folder, records, name, backbone, experiment):
    """Train an experiment and save it at models/<name>; the path, the predictor, the history."""
    base = folder / "models" / backbone
    method = WhisperMethod(experiment, [], load(base))
    predictor, history, _ = training_steps.train(method, base, records, folder / name)
    out = folder / "models" / name
    predictor.save(out)
    return out, predictor, history


def texts(predictor, records):
    transcripts = predictor.predict([record.input for record in records])
    return [transcript.text for transcript in transcripts]


def test_a_trained_model_transcribes(project):
    folder, records = project
    predictor = WhisperMethod.PREDICTOR.load(folder / "models/base")
    pairs = zip(texts(predictor, records), records, strict=True)
    correct = sum(text == record.gold["text"] for text, record in pairs)
    assert correct > 0.8 * len(records)
    silence = folder / "silence.flac"
    write_flac(silence, np.zeros(RATE, np.float32))
    (nothing,) = predictor.predict([str(silence)])
    assert predictor.output_fields("", nothing) == {"text": "", "segments": []}
    extractor = WhisperFeatureExtractor.from_pretrained(folder / "models/base")
    assert (extractor.feature_size, extractor.nb_max_frames) == (20, 100)


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


@pytest.mark.parametrize("four_bit", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_loaded_adapter_transcribes_as_the_trained_one(project, four_bit):
    folder, records = project
    tuning = {**LORA, "four_bit": four_bit}
    brief = tones.experiment(model={"shape": None}, tuning=tuning, training={"epochs": 1})
    out, trained, _ = fit(folder, records, f"lora-{four_bit}", "base", brief)
    loaded = WhisperMethod.PREDICTOR.load(out)
    assert 0 < loaded.size(trainable=True) < 0.2 * loaded.size()
    assert (out / "adapter_model.safetensors").exists()
    assert not (out / "model.safetensors").exists()
    assert texts(loaded, records[:8]) == texts(trained, records[:8])
    assert isinstance(AutoProcessor.from_pretrained(out), WhisperProcessor)


def test_a_merged_adapter_keeps_the_generation_settings_of_training(project, tmp_path):
    """A base model without them would let transformers guess language and task."""
    folder, records = project
    shutil.copytree(folder / "models/base", folder / "models/bare")
    (folder / "models/bare/generation_config.json").unlink()
    brief = tones.experiment(model={"shape": None}, tuning=LORA, training={"epochs": 2})
    out, _, _ = fit(folder, records[:8], "bare-lora", "bare", brief)
    sharing.merge(out, tmp_path / "merged")
    settings = read_json(tmp_path / "merged/generation_config.json")
    expected = {**read_json(folder / "models/base/generation_config.json"), "num_beams": 1}
    for key in ("decoder_start_token_id", "no_timestamps_token_id", "num_beams"):
        assert settings[key] == expected[key]


def test_a_checkpoint_of_longer_windows_reads_short_ones(project):
    folder, records = project
    whisper = WhisperForConditionalGeneration.from_pretrained(folder / "models/base")
    config = WhisperConfig(**{**whisper.config.to_dict(), "max_source_positions": 150})
    longer = WhisperForConditionalGeneration(config)
    weights = whisper.state_dict()
    del weights["model.encoder.embed_positions.weight"]  # sinusoids of any length
    assert not longer.load_state_dict(weights, strict=False).unexpected_keys
    shutil.copytree(folder / "models/base", folder / "models/longer")
    longer.save_pretrained(folder / "models/longer")
    short = tones.experiment(backbone="longer", model={"shape": None}, tuning={"frozen": True})
    out, _, history = fit(folder, records[:8], "short", "longer", short)
    assert [row["step"] for row in history] == [0]  # frozen, so evaluated only
    assert WhisperMethod.PREDICTOR.load(out).size(trainable=True) == 0
    expected, found = (
        load_file(path / "model.safetensors") for path in (folder / "models/base", out)
    )
    assert expected.keys() == found.keys()
    assert all(torch.equal(found[name], value) for name, value in expected.items())
    adapted = tones.experiment(backbone="longer", model={"shape": None}, tuning=LORA)
    out, trained, _ = fit(folder, records[:8], "short-lora", "longer", adapted)
    assert texts(WhisperMethod.PREDICTOR.load(out), records[:8]) == texts(trained, records[:8])


def test_only_our_masks_are_drawn(project):
    """Whisper may have masks of its own in its configuration."""
    folder, _ = project
    shutil.copytree(folder / "models/base", folder / "models/masked")
    config = folder / "models/masked/config.json"
    write_json(config, {**read_json(config), "apply_spec_augment": True, "mask_time_prob": 0.5})
    assert not load_whisper(folder / "models/masked", 1).config.apply_spec_augment


def test_every_transcript_is_counted(project):
    folder, records = project
    long = [tones.record(folder, "啊" * 5, 900), tones.record(folder, "一", 901)]
    long[1].gold["seconds"] = 1.1
    few = [*records[:3], *long]
    experiment = tones.experiment(encoding={"max_length": 4, "speeds": [0.9]})
    features, targets, account = encode(folder, few, "few", "characters", experiment)
    assert account == {"gold": 10, "kept": 6, "cut": 2, "too_long": 2}
    method = WhisperMethod(experiment, [], SavedTokenizer(folder / "models/characters"))
    items = method.items(features, targets, few)
    assert len(items) == 6
    with pytest.raises(WxbError, match=r"too long; raise .*'window': 1"):
        method.train(folder, [], items, seed=1, checkpoints=folder, caption="train")
    frames = pa.ipc.open_file(features).read_all()["frames"]
    assert len(frames[5]) > len(frames[0])  # slower
    columns, _ = read_columns(targets, ["labels"])
    assert len(columns["labels"]) == 6 * 4
    item = items[0]
    assert (item["input_features"].shape, item["input_features"].dtype) == ((100, 20), np.float32)


def test_an_encoding_that_does_not_fit_the_backbone_is_refused(project):
    folder, _ = project
    other = tones.experiment(model={"shape": None}, encoding={"language": "xx"})
    with pytest.raises(WxbError, match=r"has no <\|startoftranscript\|>, <\|xx\|>"):
        WhisperMethod(other, [], SavedTokenizer(folder / "models/characters"))


def test_the_prompt_has_the_token_of_the_language(project):
    folder, _ = project
    experiment = tones.experiment(encoding={"language": "zh"})
    method = WhisperMethod(experiment, [], load(folder / "models/characters"))
    model, tokenizer = method.new_model(folder / "models/characters"), method.tokenizer
    names = tokenizer.convert_ids_to_tokens(model.prompt)
    assert names == ["<|startoftranscript|>", "<|zh|>", "<|transcribe|>", "<|notimestamps|>"]
    settings = model.backbone.generation_config
    assert (settings.language, settings.task) == ("<|zh|>", "transcribe")
    assert settings.is_multilingual is True
    assert prompt_tokens(None) == ["<|startoftranscript|>", "<|notimestamps|>"]


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
    items = WhisperMethod(weighted, [], predictor.tokenizer).items(features, targets, records[:5])
    batch = collate([*items], predictor.tokenizer.pad_token_id)
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
