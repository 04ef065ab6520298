"""The server keeps what its OpenAPI document says: schemathesis makes requests out of it, right and wrong ones.

PUNCHCARD_EXAMPLES sets how many for each operation.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from server_process import FakeBatchModel, counting, serving

from punchcard.server import create_app
from punchcard.server.options import ServerOptions

schemathesis = pytest.importorskip("schemathesis")
pytest.importorskip("fastapi")
pytest.importorskip("prometheus_client")
pytest.importorskip("uvicorn")

from hypothesis import HealthCheck, settings  # noqa: E402
from schemathesis.checks import not_a_server_error  # noqa: E402
from schemathesis.specs.openapi.checks import (  # noqa: E402
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

# That a request which the document allows is answered is not among them: much that makes a request wrong, such as a
# schema that nothing satisfies, cannot be said there.
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    negative_data_rejection,
    unsupported_method,
]


OPTIONS = ServerOptions(max_tokens=8, queue=1000)


def _document() -> Any:
    app = create_app(FakeBatchModel(counting), OPTIONS)
    app.state.service.close()
    return app.openapi()


schema = schemathesis.openapi.from_dict(_document())


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serving(FakeBatchModel(counting), OPTIONS) as server:
        yield server.url


@schema.parametrize()
@settings(
    max_examples=int(os.environ.get("PUNCHCARD_EXAMPLES", "25")),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
def test_the_document_is_kept(case: Any, url: str) -> None:
    if isinstance(case.body, dict) and isinstance(case.body.get("model"), str):
        case.body["model"] = "fake"  # or nothing would be reached
    case.call_and_validate(base_url=url, checks=CHECKS)
