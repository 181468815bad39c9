"""Train small chat models and adapters that answer a few questions."""

import shutil

from tests import tiny, training_steps
from wxb.corpora.records import Record
from wxb.corpora.text.tokenizers import load, train
from wxb.tasks.chat.sft import SftMethod

ANSWERS = {
    "What is one plus two?": "3",
    "What is the opposite of hot?": "cold",
    "熱的相反詞是什麼？": "冷",
    "Spell cat.": "c-a-t",
}
LORA = {"lora": {"r": 8, "alpha": 16, "target_modules": ["q_proj", "v_proj"]}}


def experiment(tuning=None, **encoding):
    training = {"epochs": 30, "batch_size": 2, "learning_rate": 5e-3}
    return training_steps.experiment(
        "chat",
        "sft",
        encoding={"max_length": 64, **encoding},
        tuning=tuning or {},
        training={**training, "early_stopping_patience": 30},
    )


def backbone(folder):
    """Save a small LLaMA with a tokenizer of the questions; returns the folder."""
    tokenizer = train("byte-level-bpe", 320, [*ANSWERS, *ANSWERS.values()])
    return tiny.llama(folder, tokenizer, max_position_embeddings=192)


def records(answers):
    """A record for each question and its answer."""
    return [
        Record(str(i), question, {"text": answer, "kind": str(i), "format": "text"}, None, question)
        for i, (question, answer) in enumerate(answers.items())
    ]


def train_model(folder, tuning=None, answers=ANSWERS, **encoding):
    """Train on the questions, and save the model to `folder`, next to its backbone `base`."""
    base = folder.parent / "base"
    if not base.exists():
        backbone(base)
    settings = experiment(tuning, **encoding)
    work = folder.parent / f"{folder.name}-work"
    method = SftMethod(settings, [], load(base))
    predictor, _, _ = training_steps.train(method, base, records(answers), work)
    folder.mkdir()
    predictor.save(folder)
    shutil.rmtree(work)
    return folder


RECORDS = records(ANSWERS)
