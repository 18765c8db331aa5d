"""The REST API against its own description, by schemathesis: whatever fits it or does not, nothing breaks."""

from __future__ import annotations

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from processes import new_bank, start_http
from schemathesis.checks import load_all_checks
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from hindsight.config import Settings
from hindsight.openapi import described
from hindsight.rest import operations
from hindsight.service import MemoryService

load_all_checks()
CHECKS = [
    schemathesis.checks.not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


@pytest.fixture(scope="session")
def described_server(shared_url, directory):
    server = start_http(directory, database_url=shared_url, bank=new_bank())
    for content in ("The port is 22", "用户使用 Docker Desktop", "Alice prefers tea"):
        assert server.ask("POST", "/api/memory", {"content": content}).status == 201
    yield server
    assert server.ask("GET", "/health").status == 200
    assert server.end() == 0
    assert "Traceback" not in server.log


@pytest.fixture(scope="session")
def description(described_server):
    return schemathesis.openapi.from_url(f"{described_server.url}/openapi.json")


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=lambda mode: mode.value)
@pytest.mark.parametrize(
    ("path", "method"),
    [(one.path.replace(":path}", "}"), one.method) for one in operations(MemoryService(Settings()))],
)
def test_every_operation_answers_as_described_or_refuses(description, path, method, mode):
    @settings(
        max_examples=10,
        deadline=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=description[path][method].as_strategy(generation_mode=mode))
    def answered(case):
        case.call_and_validate(checks=CHECKS, timeout=10)

    answered()


def test_every_route_of_the_api_is_described():
    offered = operations(MemoryService(Settings()))
    description = described(offered)
    assert {(path, method) for path, methods in description["paths"].items() for method in methods} == {
        (one.path.replace(":path}", "}"), one.method.lower()) for one in offered
    }
    names = [method["operationId"] for methods in description["paths"].values() for method in methods.values()]
    assert len(names) == len(set(names))
