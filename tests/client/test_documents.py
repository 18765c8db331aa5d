"""The documents and the deployment files say what the code does."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml
from pydantic import AliasChoices

from hindsight import Hindsight, errors
from hindsight.config import Settings
from tests.conftest import Database

ROOT = Path(__file__).parents[2]


def names(setting: str) -> list[str]:
    alias = Settings.model_fields[setting].validation_alias
    return (
        [str(name) for name in alias.choices] if isinstance(alias, AliasChoices) else [f"HINDSIGHT_{setting.upper()}"]
    )


def table_row(setting: str) -> str:
    field = Settings.model_fields[setting]
    own, *others = names(setting)
    default = {None: "", False: "`false`", True: "`true`"}.get(field.default, f"`{field.default}`")
    return f"| `{own}` | {', '.join(f'`{other}`' for other in others)} | {default} | {field.description} |"


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
    return loaded


def test_the_table_of_settings_is_the_settings() -> None:
    lines = (ROOT / "docs/configuration.md").read_text(encoding="utf-8").splitlines()
    rows = [line for line in lines if line.startswith("| `HINDSIGHT_")]
    assert rows == [table_row(setting) for setting in Settings.model_fields]


def test_the_example_of_an_environment_names_every_setting() -> None:
    example = (ROOT / ".env.example").read_text(encoding="utf-8")
    for setting in Settings.model_fields:
        own, *others = names(setting)
        assert f"\n#{own}=" in example
        assert all(other in example for other in others)


def test_the_variables_that_compose_asks_for_are_in_the_example() -> None:
    asked = set(re.findall(r"\$\{(\w+)", (ROOT / "docker-compose.yml").read_text(encoding="utf-8")))
    assert asked == {"POSTGRES_PASSWORD", "HINDSIGHT_TOKEN", "HINDSIGHT_PORT"}
    example = (ROOT / ".env.example").read_text(encoding="utf-8")
    assert all(f"\n#{name}=" in example for name in asked)


def test_compose_starts_the_server_after_the_schema_after_the_database(compose: dict[str, Any]) -> None:
    database, migrate, server = (compose["services"][name] for name in ("database", "migrate", "server"))
    assert database["healthcheck"]["test"][:2] == ["CMD", "pg_isready"]
    assert [volume.split(":")[0] for volume in database["volumes"]] == list(compose["volumes"])
    assert migrate["depends_on"]["database"]["condition"] == "service_healthy"
    assert server["depends_on"]["migrate"]["condition"] == "service_completed_successfully"
    assert migrate["restart"] == "no"
    assert (database["restart"], server["restart"]) == ("unless-stopped", "unless-stopped")
    assert server["environment"]["HINDSIGHT_DATABASE_URL"].split("@")[1].split(":")[0] in compose["services"]


def test_compose_publishes_on_loopback_only_and_holds_no_secret(compose: dict[str, Any]) -> None:
    published = [port for service in compose["services"].values() for port in service.get("ports", [])]
    assert all(port.startswith("127.0.0.1:") for port in published)
    for service in compose["services"].values():
        for name, value in service["environment"].items():
            if re.search("PASSWORD|TOKEN|KEY", name):
                assert value.startswith("${")
            assert not re.search("//[^@/]*:[^@/]*@", value)


def test_compose_gives_the_server_settings_that_it_takes(compose: dict[str, Any]) -> None:
    known = {name for setting in Settings.model_fields for name in names(setting)} | {"PGPASSWORD"}
    assert set(compose["services"]["server"]["environment"]) <= known


def test_the_image_is_small_and_does_not_run_as_root() -> None:
    dockerfile = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    final = dockerfile.rpartition("\nFROM ")[2]
    assert re.findall(r"^FROM (\S+)", dockerfile, re.MULTILINE) == ["python:3.12-slim"] * 2
    assert re.findall(r"^USER (\d+)", final, re.MULTILINE) == ["10001"]
    assert "apt-get" not in dockerfile
    assert 'ENTRYPOINT ["hindsight"]' in final
    assert "/health" in final


def test_only_what_the_wheel_needs_goes_to_the_builder() -> None:
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").split("\n")
    kept = {line[1:] for line in ignored if line.startswith("!")}
    copied = {
        name
        for line in re.findall(
            r"^COPY (?!--from)(.*)$", (ROOT / "Dockerfile").read_text(encoding="utf-8"), re.MULTILINE
        )
        for name in line.split()[:-1]
    }
    assert "*" in ignored
    assert "**/.env*" in ignored
    assert copied == kept
    assert all((ROOT / name).exists() for name in kept)


def test_the_commands_of_the_documents_exist() -> None:
    from hindsight.cli import app

    for document in [*sorted(ROOT.glob("docs/*.md")), ROOT / "README.md"]:
        text = document.read_text(encoding="utf-8")
        for command in re.findall(r"^(?:\$ )?hindsight ([a-z-]+)", text, re.MULTILINE):
            assert command in app, f"{document.name}: hindsight {command}"
        for target in re.findall(r"^(?:\$ )?make ([a-z]+)", text, re.MULTILINE):
            assert f"\n{target}:" in (ROOT / "Makefile").read_text(encoding="utf-8"), f"{document.name}: make {target}"


# ---- README and docs: what they show is run, what there is they name ------------------------------------


def blocks(name: str, language: str) -> list[str]:
    text = (ROOT / name).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def masked(text: str) -> list[str]:
    """Lines without what differs from run to run: ids, figures, spaces."""
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "<id>", text)
    return [" ".join(re.sub(r"\d", "0", line).split()) for line in text.strip().splitlines()]


@pytest.mark.parametrize("name", ["README.md", "docs/sql-api.md"])
def test_the_sql_shown_runs(fresh_url: str, name: str) -> None:
    with psycopg.connect(fresh_url, autocommit=True) as connection:
        connection.execute("SELECT hindsight.create_bank('alice')")
        for block in blocks(name, "sql"):
            connection.execute(block)


def test_the_python_shown_runs(fresh_url: str) -> None:
    block, loop = blocks("README.md", "python")
    run = subprocess.run(
        [sys.executable, "-c", block], env={**os.environ, "DATABASE_URL": fresh_url}, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    assert "MySQL 8.4 (vector, text, entity)" in run.stdout
    assert "just now, decision: The database is MySQL 8.4\n</memories>\n" in run.stdout
    assert run.stdout.endswith("['stored', 'forgotten']\n")
    environment = {**os.environ, "DATABASE_URL": fresh_url}
    subprocess.run([sys.executable, "-c", loop], env=environment, check=True)
    with Hindsight.connect(fresh_url) as client:
        assert [turn["role"] for turn in client.working_get("alice", "s1").turns] == ["user", "assistant"]
        assert [session.state for session in client.queue("alice")] == ["due"]


def test_the_commands_shown_print_what_is_shown(fresh_url: str) -> None:
    environment = {
        **os.environ,
        "DATABASE_URL": fresh_url,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    for block in blocks("README.md", "console"):
        for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE):
            if command.startswith("make "):
                continue  # make demo has a test of its own, make test is what runs this one
            run = subprocess.run(command, shell=True, env=environment, capture_output=True, text=True)
            assert run.returncode == 0, run.stderr
            assert masked(run.stdout) == masked(shown)


def test_every_public_function_and_argument_is_in_the_documents(db: Database) -> None:
    document = (ROOT / "docs/sql-api.md").read_text(encoding="utf-8")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    functions = db.rows("""
        SELECT p.proname AS name, coalesce(p.proargnames[1:p.pronargs], '{}') AS arguments FROM pg_proc p
        WHERE p.pronamespace = 'hindsight'::regnamespace AND p.proname !~ '^_'
    """)
    for function in functions:
        name, arguments = function["name"], ", ".join(function["arguments"])
        assert f"`{name}({arguments})" in document, f"{name}({arguments})"
        if not name.endswith("_v1") and name != "principal":
            assert f"`{name}(" in readme, name
    for sqlstate, error in errors.BY_SQLSTATE.items():
        assert f"| `{sqlstate}` | `{error.__name__}` |" in document
    for type_ in db.rows("SELECT type FROM hindsight.memory_type"):
        assert f"`{type_['type']}`" in document


def test_the_columns_of_recall_are_in_the_documents(db: Database) -> None:
    document = " ".join((ROOT / "docs/sql-api.md").read_text(encoding="utf-8").split())
    columns = db.rows(
        "SELECT attname FROM pg_attribute WHERE attrelid = 'hindsight.recalled'::regclass AND attnum > 0 ORDER BY attnum"
    )
    assert f"`{', '.join(column['attname'] for column in columns)}`" in document


def test_links_between_documents_lead_somewhere() -> None:
    for path in [ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\((?!https?://|#)([^)#]+)", path.read_text(encoding="utf-8")):
            assert (path.parent / target).exists(), f"{path.name}: {target}"
