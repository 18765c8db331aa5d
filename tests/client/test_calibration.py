"""`hindsight calibrate` and `hindsight index`: what they measure, what they change, what they refuse."""

from __future__ import annotations

import importlib.util
import json
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import psycopg
import pytest

from hindsight import calibration, cli, local_model, sync_caller
from hindsight.calibration import Thresholds
from hindsight.client import AsyncHindsight
from hindsight.config import Settings, load_settings
from hindsight.embedding import LocalEmbedder, embedder_from
from hindsight.embedding_cache import CachedEmbedder
from hindsight.errors import AccessDenied, ConfigurationError, EmbeddingError, InvalidArgument
from hindsight.results import SampledMemory
from hindsight.sync_client import Hindsight
from hindsight.vectors import LOCAL_MODEL, MODEL_DEFAULTS
from tests.conftest import Database

ROOT = Path(__file__).parents[2]
SAMPLE = json.loads(calibration.SAMPLE.read_text(encoding="utf-8"))


class Plain:
    """An embedder that knows the sample: a topic has an axis of its own; `common` is what all texts share."""

    model, dimensions, floor, recall_threshold, merge_threshold = "plain", 200, 0.0, 0.5, 0.95

    def __init__(self, common: float = 0.5) -> None:
        self._axes: dict[str, int] = {}
        self._common = common
        items = SAMPLE["topics"] + SAMPLE["others"]
        for axis, item in enumerate(items):
            for language in ("en", "zh"):
                self._axes[item["memory"][language]] = axis
                self._axes[item["question"][language]] = axis

    def query(self, text: str) -> list[float]:
        vector = [0.0] * self.dimensions
        vector[0] = self._common
        vector[1 + self._axes.get(text, 150 + len(text) % 40)] += 1.0
        return vector

    def passages(self, texts: Sequence[str]) -> list[list[float]]:
        return [self.query(text) for text in texts]


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> CachedEmbedder:
    """The local model, which embeds each text of the sample once for all of these tests."""
    return CachedEmbedder(LocalEmbedder(), tmp_path_factory.mktemp("embeddings") / "cache.sqlite")


def sampled(contents: Sequence[str], embedder: Any) -> list[SampledMemory]:
    vectors = embedder.passages(contents)
    return [
        SampledMemory(memory_id=uuid.uuid4(), content=content, embedding=vector)
        for content, vector in zip(contents, vectors, strict=True)
    ]


# ---- what is measured ------------------------------------------------------------------------------------


def test_the_sample_says_the_same_in_both_languages_and_nothing_twice() -> None:
    texts = [
        item[part][language]
        for item in SAMPLE["topics"] + SAMPLE["others"]
        for part in ("memory", "question")
        for language in ("en", "zh")
    ]
    assert len(set(texts)) == len(texts) >= 120
    chinese = [any("\u4e00" <= c <= "\u9fff" for c in text) for text in texts]
    assert chinese == [False, True] * (len(texts) // 2)
    assert all(one != other for kind in ("same", "close") for one, other in SAMPLE[kind])


def test_the_floor_is_the_cosine_of_what_has_nothing_in_common() -> None:
    measured = calibration.measure(Plain(common=0.5))
    assert [(pair.question, pair.memory) for pair in measured.pairs] == [
        ("zh", "zh"), ("zh", "en"), ("en", "zh"), ("en", "en"),
    ]  # fmt: skip
    assert measured.thresholds().floor == pytest.approx(0.25 / 1.25, abs=1e-3)
    assert all(pair.answers == pytest.approx([1.0] * 40) for pair in measured.pairs)
    assert all(pair.found(0.99) == 1 and pair.false(0.99) == 0 for pair in measured.pairs)


def test_the_threshold_lets_the_false_rate_through_and_no_more(local: CachedEmbedder) -> None:
    measured = calibration.measure(local)
    found = measured.thresholds()
    unrelated = [cosine for pair in measured.pairs for cosine in pair.unrelated]
    through = sum(cosine >= found.recall_threshold for cosine in unrelated) / len(unrelated)
    assert through == pytest.approx(calibration.FALSE_RATE, abs=0.0005)
    merged = sum(cosine >= found.merge_threshold for cosine in measured.same) / len(measured.same)
    assert merged == pytest.approx(calibration.SAME_RATE, abs=0.05)


def test_the_local_models_defaults_are_what_calibrate_measures(local: CachedEmbedder) -> None:
    default, found = MODEL_DEFAULTS[LOCAL_MODEL], calibration.measure(local).thresholds()
    assert (found.floor, found.recall_threshold, found.merge_threshold) == pytest.approx(
        (default.floor, default.recall_threshold, default.merge_threshold), abs=0.011
    )


def test_a_model_that_tells_nothing_apart_is_refused() -> None:
    class Blind(Plain):
        def query(self, text: str) -> list[float]:
            return [1.0] * self.dimensions

    with pytest.raises(EmbeddingError, match=r"plain can't be calibrated: .*do not rise"):
        calibration.measure(Blind()).thresholds().checked("plain")


def test_the_floor_of_a_bank_moves_the_threshold_with_it() -> None:
    moved = calibration.moved(Thresholds(0.0, 0.3, 0.95), floor=0.5)
    assert (moved.floor, moved.recall_threshold) == (0.5, pytest.approx(0.65)), "0.3 of what is left above the floor"
    assert calibration.moved(Thresholds(0.0, 0.3, 0.95), floor=0.95).checked("x").floor == 0.95


def test_the_floor_of_a_bank_is_measured_on_its_own_memories_from_twenty_on() -> None:
    embedder = Plain(common=2.0)
    contents = [item["memory"]["zh"] for item in SAMPLE["topics"]]
    assert calibration.bank_floor(embedder, sampled(contents, embedder)) == pytest.approx(4 / 5)
    with pytest.raises(InvalidArgument, match="19 embedded memories"):
        calibration.bank_floor(embedder, sampled(contents[:19], embedder))


# ---- the local model across languages --------------------------------------------------------------------


def test_the_means_of_the_local_model_are_those_of_the_sample() -> None:
    spec = importlib.util.spec_from_file_location("tool", ROOT / "tools/measure_local_means.py")
    assert spec
    assert spec.loader
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    kept = json.loads(local_model._MEANS.read_text(encoding="utf-8"))
    made = tool.measured()
    for side in ("query", "passage"):
        for language in ("en", "zh"):
            assert made[side][language] == pytest.approx(kept[side][language], abs=2e-4)


def test_unrelated_texts_have_one_cosine_in_and_across_languages(local: CachedEmbedder) -> None:
    for pair in calibration.measure(local).pairs:
        middle = sorted(pair.unrelated)[len(pair.unrelated) // 2]
        assert abs(middle) < 0.05, (pair.question, pair.memory)
        assert sorted(pair.answers)[20] > 0.3, (pair.question, pair.memory)


@pytest.mark.parametrize(("asked", "held"), [("zh", "en"), ("en", "zh")])
def test_a_question_finds_its_answer_in_the_other_language_among_memories_in_its_own(
    local: CachedEmbedder, asked: str, held: str
) -> None:
    topics = SAMPLE["topics"]
    own = local.passages([item["memory"][asked] for item in topics])
    other = local.passages([item["memory"][held] for item in topics])
    places = []
    for number, item in enumerate(topics):
        question = local.query(item["question"][asked])
        answer = cosine(question, other[number])
        rest = [vector for vectors in (own, other) for n, vector in enumerate(vectors) if n != number]
        places.append(sum(cosine(question, vector) > answer for vector in rest))
    assert sum(place < 5 for place in places) / len(places) > 0.85, "of e5 as it is: none of 40 for a Chinese question"


def test_recall_finds_a_memory_across_languages_and_nothing_for_what_is_not_there(
    db: Database, bank: str, local: CachedEmbedder
) -> None:
    db.call(
        "register_model", model=local.model, dimensions=384, floor=local.floor,
        recall_threshold=local.recall_threshold, merge_threshold=local.merge_threshold,
    )  # fmt: skip
    contents = ["The user's cat is named Miso", "手机应用必须能离线使用", "The user plays the violin"]
    for content, vector in zip(contents, local.passages(contents), strict=True):
        db.call("store", bank=bank, content=content, embedding=str(vector), model=local.model)
    for question, answer in (
        ("用户的宠物叫什么名字？", contents[:1]),
        ("Does the phone client need internet access?", contents[1:2]),
        ("用户会演奏什么乐器？", contents[2:]),
        ("天空为什么是蓝色的？", []),
        ("How long does it take to boil an egg?", []),
    ):
        assert db.contents(bank, embedding=str(local.query(question))) == answer, question


# ---- the commands ----------------------------------------------------------------------------------------


def cosine(one: Sequence[float], other: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


class Ran:
    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def hindsight(
    fresh_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    local: CachedEmbedder,
) -> Callable[..., Ran]:
    """Runs a command in this process, in a database of the test's own, with the local model."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DATABASE_URL", fresh_url)
    monkeypatch.setenv("HINDSIGHT_EMBEDDING_PROVIDER", "local")
    monkeypatch.setattr(
        sync_caller, "embedder_from", lambda settings: local if embedder_from(settings) is not None else None
    )

    def command(*arguments: str) -> Ran:
        capsys.readouterr()
        return Ran(cli.run(arguments), *capsys.readouterr())

    return command


def thresholds(url: str) -> list[tuple[float, float, float]]:
    with psycopg.connect(url) as connection:
        return connection.execute(
            "SELECT floor, recall_threshold, merge_threshold FROM hindsight.embedding_model"
        ).fetchall()


def test_calibrate_shows_the_values_and_writes_them(hindsight: Callable[..., Ran], fresh_url: str) -> None:
    assert hindsight("store", "The user's cat is named Miso").code == 0
    with psycopg.connect(fresh_url, autocommit=True) as connection:
        connection.execute("SELECT hindsight.set_thresholds(%s, 0.5, 0.9, 0.95)", (LOCAL_MODEL,))
    dry = hindsight("calibrate", "--dry-run")
    assert (dry.code, thresholds(fresh_url)) == (0, [(0.5, 0.9, 0.95)])
    assert "1 live memories in 1 banks would go by the new values" in dry.out
    report = hindsight("calibrate", "--json").json
    assert report["old"] == {"floor": 0.5, "recall_threshold": 0.9, "merge_threshold": 0.95}
    assert (report["written"], report["memories"], report["banks"]) == (True, 1, 1)
    assert thresholds(fresh_url) == [tuple(report["new"].values())]
    for pair in report["pairs"]:
        assert pair["found_old"] < pair["found_new"] > 0.4
        assert pair["false_old"] <= pair["false_new"] < 0.01
    assert f"recall_threshold  {report['old']['recall_threshold']:.3f}" in dry.out


def test_calibrate_registers_a_model_that_nothing_was_stored_with(
    hindsight: Callable[..., Ran], fresh_url: str
) -> None:
    assert hindsight("calibrate", "--dry-run").code == 0
    assert thresholds(fresh_url) == []
    assert hindsight("calibrate").code == 0
    assert len(thresholds(fresh_url)) == 1


def test_calibrate_takes_the_floor_of_a_bank(hindsight: Callable[..., Ran], fresh_url: str) -> None:
    with Hindsight.connect(fresh_url, settings=load_settings()) as client:
        client.create_bank("chats")
        client.store_many(
            "chats", [{"content": f"Caroline: I went to the gallery with friend number {n}"} for n in range(30)]
        )
    report = hindsight("calibrate", "--bank", "chats", "--json").json
    assert report["bank_floor"] > 0.5, "they are all alike"
    assert report["new"]["floor"] == pytest.approx(report["bank_floor"], abs=1e-3)
    assert thresholds(fresh_url) == [tuple(report["new"].values())]
    small = hindsight("calibrate", "--bank", "none")
    assert (small.code, "none" in small.err) == (3, True)


def test_calibrate_without_a_model_or_the_right_says_what_is_missing(
    hindsight: Callable[..., Ran], fresh_url: str, login: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", login(fresh_url, "hindsight_app"))
    ran = hindsight("calibrate")
    assert (ran.code, "hindsight_owner" in ran.err) == (5, True)
    monkeypatch.setenv("HINDSIGHT_EMBEDDING_PROVIDER", "none")
    ran = hindsight("calibrate")
    assert (ran.code, "HINDSIGHT_EMBEDDING_PROVIDER" in ran.err) == (2, True)


def test_index_shows_and_builds_anew_while_memories_stay(hindsight: Callable[..., Ran]) -> None:
    assert hindsight("index").code == 3, "nothing is registered yet"
    assert hindsight("store", "用户的猫叫米索").code == 0
    assert hindsight("index", "--json").json["m"] == 24
    built = hindsight("index", "--m", "32", "--ef-construction", "128", "--ef-search", "100", "--json").json
    assert (built["m"], built["ef_construction"], built["ef_search"]) == (32, 128, 100)
    assert hindsight("index", "--rebuild", "--json").json == built
    assert "米索" in hindsight("recall", "用户的猫").out


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--m", "70"), 2, "at least twice m"),
        (("--ef-search", "0"), 2, "between 1 and 1000"),
        (("--model", "没有"), 3, "没有"),
        (("--m", "many"), 2, "many"),
    ],
)
def test_index_refuses_what_cannot_be_built(
    hindsight: Callable[..., Ran], arguments: tuple[str, ...], code: int, said: str
) -> None:
    hindsight("store", "one")
    ran = hindsight("index", *arguments)
    assert ran.code == code
    assert said in ran.err


# ---- settings and clients --------------------------------------------------------------------------------


def test_the_settings_make_the_index_of_a_model_that_is_used_first(fresh_url: str) -> None:
    settings = load_settings(embedding_provider="local", hnsw_m=8, hnsw_ef_construction=20, hnsw_ef_search=50)
    with Hindsight.connect(fresh_url, settings=settings) as client:
        client.create_bank("alice")
        client.store("alice", "one")
        (model,) = client.models()
    assert (model.m, model.ef_construction, model.ef_search) == (8, 20, 50)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"hnsw_m": 1}, "HINDSIGHT_HNSW_M"),
        ({"hnsw_ef_construction": 1001}, "HINDSIGHT_HNSW_EF_CONSTRUCTION"),
        ({"hnsw_m": 65}, "less than twice HINDSIGHT_HNSW_M"),
        ({"hnsw_ef_search": 0}, "HINDSIGHT_HNSW_EF_SEARCH"),
    ],
)
def test_settings_that_build_no_index_are_refused(fields: dict[str, int], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        load_settings(**fields)


async def test_the_async_client_tunes_as_the_sync_one_does(fresh_url: str, login: Callable[..., str]) -> None:
    settings = Settings(embedding_provider="local")
    async with await AsyncHindsight.connect(fresh_url, settings=settings) as client:
        await client.register_model()
        await client.create_bank("alice")
        await client.store("alice", "记忆 one")
        assert await client.set_index(LOCAL_MODEL, m=12) is True
        assert await client.set_index(LOCAL_MODEL, ef_search=80) is False
        await client.set_thresholds(LOCAL_MODEL, floor=0.05)
        (model,) = await client.models()
        assert (model.m, model.ef_search, model.floor) == (12, 80, 0.05)
        (drawn,) = await client.sample_memories("alice")
        assert (drawn.content, len(drawn.embedding)) == ("记忆 one", 384)
    async with await AsyncHindsight.connect(login(fresh_url, "hindsight_app"), settings=settings) as client:
        with pytest.raises(AccessDenied):
            await client.set_index(LOCAL_MODEL, m=20)
