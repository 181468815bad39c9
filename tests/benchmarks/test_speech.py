"""The benchmark of preparing recordings, at a size that tells nothing of speed."""

from typer.testing import CliRunner

from tests.benchmarks.script import script

benchmark = script("speech/preparation")


def test_both_ways_prepare_the_same_recordings(tmp_path):
    files = benchmark.made(tmp_path / "raw", 12, 1.0, seed=1)
    heard = benchmark.one_by_one(files, 40)
    assert 6 < heard < 18
    benchmark.prepared(tmp_path, 1.0, 40)
    split = [path.stem for path in tmp_path.glob("*.arrow")]
    assert sorted(split) == ["test", "train", "valid"]
    assert (tmp_path / "clean/rejects.jsonl").read_text() == ""


def test_the_table_names_both(tmp_path):
    asked = ["--hours", "0.005", "--seconds", "1", "--peer", "3", "--bands", "40"]
    done = CliRunner().invoke(benchmark.app, asked, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert "librosa.load and WhisperFeatureExtractor" in done.output
    assert "18 recordings" in done.output
