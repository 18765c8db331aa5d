"""The formula, as public functions."""

import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.conftest import Database

unit = st.floats(0, 1)
days = st.floats(0, 1e7)
fixtures = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def score(db: Database, *arguments: float) -> float:
    return float(db.value(f"SELECT hindsight.score({', '.join(['%s'] * len(arguments))})", arguments))


def test_a_memory_of_seventy_days_weighs_0_497_of_a_fresh_one(db: Database) -> None:
    assert score(db, 0.8, 0.9, 70, 0.01) / score(db, 0.8, 0.9, 0, 0.01) == pytest.approx(0.497, abs=0.0005)


def test_half_the_confidence_is_half_the_score(db: Database) -> None:
    assert score(db, 0.8, 0.5, 3, 0.01) == pytest.approx(score(db, 0.8, 1.0, 3, 0.01) / 2)


@fixtures
@given(similarity=unit, confidence=unit, age=days, rate=unit, weight=unit)
def test_the_score_is_the_product_and_lies_in_the_unit_interval(
    db: Database, similarity: float, confidence: float, age: float, rate: float, weight: float
) -> None:
    found = score(db, similarity, confidence, age, rate, weight)
    assert 0 <= found <= 1
    assert found == pytest.approx(similarity * confidence * math.exp(-min(rate * age, 200)) * weight, abs=1e-12)


@fixtures
@given(semantic=unit, lexical=unit)
def test_a_silent_channel_takes_nothing_from_a_strong_one(db: Database, semantic: float, lexical: float) -> None:
    found = db.value("SELECT hindsight.similarity(%s, %s)", (semantic, lexical))
    assert max(semantic, lexical) - 1e-12 <= found <= 1
    assert db.value("SELECT hindsight.similarity(%s, NULL)", (semantic,)) == pytest.approx(semantic)


@pytest.mark.parametrize(("cosine", "expected"), [(0.75, 0), (0.5, 0), (-1, 0), (1, 1), (0.875, 0.5), (1.0000001, 1)])
def test_a_cosine_is_calibrated_by_the_models_floor(db: Database, cosine: float, expected: float) -> None:
    assert db.value("SELECT hindsight.semantic(%s, 0.75)", (cosine,)) == pytest.approx(expected)


@pytest.mark.parametrize(("bm25", "expected"), [(0, 0), (10, 0.5), (30, 0.75)])
def test_bm25_of_ten_counts_half(db: Database, bm25: float, expected: float) -> None:
    assert db.value("SELECT hindsight.lexical(%s)", (bm25,)) == pytest.approx(expected)


def test_an_age_to_come_does_not_raise_a_score(db: Database) -> None:
    assert score(db, 0.8, 0.9, -5, 0.01) == score(db, 0.8, 0.9, 0, 0.01)
