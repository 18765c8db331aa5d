"""The words that a text is found by."""

import time

import pytest

from tests.conftest import Database


def lexemes(db: Database, text: str, *, whole: bool = True, language: str = "english") -> set[str]:
    return set(db.value("SELECT tsvector_to_array(hindsight.text_tsv_v1(%s, %s, %s))", (language, text, whole)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The errors are running", {"error", "run"}),
        ("汇率换算", {"汇率", "率换", "换算", "算"}),
        ("猫", {"猫"}),
        ("SSH端口是49222", {"ssh", "端口", "口是", "是", "49222"}),
        ("ERR-7731", {"err", "7731", "err-7731"}),
        ("user_id", {"user", "id", "user_id"}),
        ("C++ and C#", {"c", "c++", "c#"}),
        ("ＡＢＣ１２３", {"abc123"}),
        ("東京タワー", {"東京", "京タ", "タワ", "ワー", "ー"}),
        ("서울시청", {"서울", "울시", "시청", "청"}),
        ("don't do that", set()),
        ("naïve Nguyễn", {"naiv", "nguyen"}),
        ("zero\u200bwidth so\u00adft", {"zerowidth", "soft"}),
        ("getUserById", {"getuserbyid", "get", "user", "id"}),
        (
            ".NET --flag $HOME #1234 50%",
            {"net", ".net", "flag", "--flag", "home", "$home", "1234", "#1234", "50", "50%"},
        ),
        ("สวัสดี", {"สว", "วั", "ัส", "สด", "ดี", "ี"}),
        ("🎉", {"🎉"}),
        ("", set()),
    ],
)
def test_a_text_has_the_words_of_its_language_its_identifiers_and_bigrams(
    db: Database, text: str, expected: set[str]
) -> None:
    assert lexemes(db, text) == expected


def test_a_query_has_no_half_bigrams_unless_it_is_one_character(db: Database) -> None:
    assert lexemes(db, "汇率换算", whole=False) == {"汇率", "率换", "换算"}
    assert lexemes(db, "猫", whole=False) == {"猫"}


@pytest.mark.parametrize(
    "word", ["user_id", "v1.2.3", "c++", "c#", "etc/hosts", "err-7731", ".net", "--flag", "foo.bar@example.org"]
)
def test_an_identifier_is_told(db: Database, word: str) -> None:
    assert db.value("SELECT hindsight._is_identifier('english', %s)", (word,)) is True


@pytest.mark.parametrize(
    "word", ["and/or", "e.g", "1st", "2nd", "6am", "10gb", "docker", "8.4", "49222", "well-known", "汇率"]
)
def test_an_ordinary_word_is_none(db: Database, word: str) -> None:
    assert db.value("SELECT hindsight._is_identifier('english', %s)", (word,)) is False


def test_a_german_bank_stems_german(db: Database) -> None:
    assert lexemes(db, "Die Häuser stehen", language="german") == {"haus", "steh"}


def test_a_language_of_a_users_own_is_refused_since_a_dump_could_not_be_restored(db: Database) -> None:
    db.rows("CREATE TEXT SEARCH CONFIGURATION public.mine (COPY = simple)")
    for language in ("mine", "public.mine", "pg_temp_3.mine", "3748", None):
        with pytest.raises(Exception, match="unknown text-search configuration"):
            db.call("create_bank", bank="x", language=language)


@pytest.mark.parametrize("character", ["x", "汇", "🚀", "'", "\\", ":", "&"])
def test_a_text_of_the_greatest_length_has_words_and_no_error(db: Database, character: str) -> None:
    assert isinstance(lexemes(db, character * 10_000), set)


def test_the_parts_of_a_memory_are_labelled_by_weight(db: Database) -> None:
    document = db.value(
        "SELECT hindsight.document_tsv_v1('english', 'alpha', '{beta}', '{gamma}', 'delta', 'epsilon')::text"
    )
    weighted = {"'alpha':1A", "'beta':2B", "'gamma':3B", "'delta':4B", "'epsilon':5C"}
    assert set(document.split()) == weighted | {"'=gamma'", "'=delta'"}


def test_what_the_content_says_is_not_counted_again_as_a_tag(db: Database) -> None:
    document = db.value("SELECT hindsight.document_tsv_v1('english', 'alpha', '{alpha,beta}', '{}', NULL, NULL)::text")
    assert set(document.split()) == {"'alpha':1A", "'beta':3B"}


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("She went to Berlin and bought boots", "where does she go? what did she buy?"),
        ("The children have lost their teeth", "a child loses a tooth"),
        ("He gave a talk he had written himself", "giving talks, writing"),
    ],
)
def test_an_irregular_form_is_found_by_its_base_form(db: Database, said: str, asked: str) -> None:
    shared = db.value(
        "SELECT count(*) FROM unnest(tsvector_to_array(hindsight.text_tsv_v1('english', %s))) AS w "
        "JOIN unnest(tsvector_to_array(hindsight.text_tsv_v1('english', %s))) AS q ON q = w",
        (said, asked),
    )
    assert shared >= 2


def test_a_long_chinese_text_takes_no_longer_than_its_length(db: Database) -> None:
    started = time.perf_counter()
    assert db.value("SELECT length(hindsight.text_tsv_v1('english', repeat('汇率接口更新', 1600)))") >= 6
    assert time.perf_counter() - started < 1


def test_irregular_forms_are_those_of_english_only(db: Database) -> None:
    assert db.value("SELECT hindsight.text_tsv_v1('simple', 'went')::text") == "'went':1"


def test_an_unknown_language_is_refused_when_the_bank_is_made(db: Database) -> None:
    with pytest.raises(Exception, match="unknown text-search configuration 'klingon'"):
        db.call("create_bank", bank="qo'noS", language="klingon")
