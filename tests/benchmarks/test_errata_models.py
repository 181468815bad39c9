"""Each defect of a model has the effect that docs/errata.md describes, and ours has none."""

import re
from functools import partial

import numpy as np
import pytest
import torch

from tests.benchmarks.script import script
from tests.models.equal import SINGLE
from tests.project_copy import ROOT
from wxb.models import llama
from wxb.models.attention import softmax

errata = script("errata_models")
difference, twin = errata.difference, errata.twin


@pytest.fixture(autouse=True)
def project_root(monkeypatch):
    monkeypatch.chdir(ROOT)


def test_removing_the_outer_columns_keeps_the_separator_of_shorter_rows():
    ids, mask = errata.between_special_tokens(torch.tensor([4, 2]), vocabulary=20)
    assert ids[1].tolist() == [errata.CLS, *ids[1, 1:3].tolist(), errata.SEP, 0, 0]
    published, published_mask = errata.without_outer_columns(ids, mask)
    assert published[1][published_mask[1].bool()].tolist() == [*ids[1, 1:3].tolist(), errata.SEP]
    right, right_mask = errata.without_special_tokens(ids, mask)
    assert right[1][right_mask[1].bool()].tolist() == ids[1, 1:3].tolist()
    with_separator, change = errata.separators(rows=8)
    assert with_separator == 7
    assert change > 0.01


def test_a_decoder_without_a_mask_attends_to_padding():
    texts = 100
    padded = errata.source_padding(errata.reverser(), texts, columns=50)
    assert padded.masked == padded.right > 0.9 * texts
    assert padded.unmasked < padded.right / 2
    assert padded.on_padding > 0.4


def test_without_biases_the_weights_of_whisper_do_not_fit():
    biases = errata.without_biases()
    # Attentions: one for each encoder layer, two for each decoder layer.
    assert len(biases.unused) == 3 * (2 + 2 * 2)
    assert all(re.search(r"(q|v|out)_proj\.bias$", key) for key in biases.unused)
    assert biases.without > 0.05
    assert biases.with_them <= SINGLE


def test_a_first_convolution_of_stride_2_leaves_too_few_frames():
    theirs, ours, batch = errata.tiny("whisper")
    for encoder in (theirs.model.encoder, ours.model.encoder):
        assert (encoder.conv1.stride, encoder.conv2.stride) == ((1,), (2,))
    ours.model.encoder.conv1.stride = (2,)
    with pytest.raises(RuntimeError, match="must match the size"):
        ours(**batch)
    assert errata.two_strides_of_2() == (750, 1500)


def test_pairs_are_halves_of_a_head_and_not_neighbours(monkeypatch):
    rotated = errata.layouts()
    assert rotated.halves <= SINGLE
    assert rotated.neighbours > 0.1
    assert rotated.changed > 0.1
    theirs, ours, batch = errata.tiny("llama")
    monkeypatch.setattr(llama, "rotate", errata.rotate_neighbours)
    with torch.no_grad():
        first = [model(**batch).logits[:, 0] for model in (ours, theirs)]
    assert difference(*first) <= SINGLE  # the first position is not rotated


def test_an_untied_head_is_not_the_embedding():
    assert errata.always_tied() > 0.1
    theirs, _, batch = errata.tiny("llama", tie_word_embeddings=False)
    with torch.no_grad():
        assert difference(twin(theirs)(**batch).logits, theirs(**batch).logits) <= SINGLE


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_softmax_without_subtracting_the_maximum_overflows(kind):
    limit = errata.overflow(kind)
    assert limit == int(np.log(np.finfo(kind).max)) + 1
    below = np.array([limit - 1, 0], kind)
    plain, ours = errata.plain_softmax(below), softmax(torch.from_numpy(below))
    # The exponent of at most 710 is rounded to eps, and so are both powers and their sum.
    np.testing.assert_allclose(plain, ours, rtol=710 * np.finfo(kind).eps)
    assert softmax(torch.tensor([2.0 * limit, 0.0])).tolist() == [1, 0]


def test_masking_by_minus_infinity_has_nan_gradients_for_an_empty_text():
    assert errata.nan_gradients(errata.minus_infinity) == 3  # all but the last bias
    assert errata.nan_gradients(softmax) == 0


def test_every_section_of_the_page_is_measured(monkeypatch):
    monkeypatch.setattr(errata, "reverser", partial(errata.reverser, steps=0))
    page = (ROOT / "docs/errata.md").read_text().partition("\n## Models\n")[2]
    assert re.findall("^### (.+)", page, re.MULTILINE) == [title for title, _ in errata.measure()]
