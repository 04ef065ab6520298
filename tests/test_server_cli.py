"""`punchcard serve`: its options, and what it warns of."""

from __future__ import annotations

import socket
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from server_process import FakeBatchModel, counting

from punchcard.cli import main
from punchcard.models import LocalModel

uvicorn = pytest.importorskip("uvicorn")
pytest.importorskip("fastapi")
pytest.importorskip("prometheus_client")


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What would be served, and where."""
    seen: dict[str, Any] = {}

    def run(app: Any, **options: Any) -> None:
        seen.update(options, service=app.state.service)
        app.state.service.close()

    monkeypatch.setattr(uvicorn, "run", run)
    monkeypatch.setattr(LocalModel, "load", lambda name, threads=None: FakeBatchModel(counting))
    monkeypatch.setattr(sys, "setswitchinterval", lambda seconds: None)
    monkeypatch.delenv("PUNCHCARD_API_KEY", raising=False)
    return seen


def invoke(*arguments: str) -> Result:
    result = CliRunner().invoke(main, ["serve", *arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def test_by_default_only_this_machine_is_served(served: dict[str, Any]) -> None:
    result = invoke()
    assert result.exit_code == 0
    assert (served["host"], served["port"]) == ("127.0.0.1", 8000)
    assert "warning" not in result.stderr
    assert "fake at http://127.0.0.1:8000/v1, 8 at once" in result.stderr
    options = served["service"].options
    assert options.hosts == ("localhost", "127.0.0.1", "::1")
    assert (options.slots, options.queue, options.max_request_bytes, options.api_key) == (8, 64, 4 << 20, None)


def test_another_address_without_a_key_is_warned_of(served: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    assert "warning: 0.0.0.0 can be reached from other machines" in invoke("--host", "0.0.0.0").stderr
    assert served["service"].options.hosts is None
    assert "warning" not in invoke("--host", "0.0.0.0", "--api-key", "secret").stderr
    monkeypatch.setenv("PUNCHCARD_API_KEY", "from the environment")
    assert "warning" not in invoke("--host", "0.0.0.0").stderr
    assert served["service"].options.api_key == "from the environment"


def test_limits_are_options(served: dict[str, Any]) -> None:
    invoke("--slots", "2", "--queue", "3", "--max-tokens", "50", "--compile-seconds", "1.5", "--model-name", "mine")
    service = served["service"]
    assert (service.slots, service.options.queue, service.options.max_tokens) == (2, 3, 50)
    assert service.options.compile_seconds == 1.5
    assert service.model_name == "mine"


@pytest.mark.parametrize("arguments", [["--slots", "0"], ["--port", "70000"], ["--default-temperature", "3"]])
def test_what_makes_no_sense_is_refused(served: dict[str, Any], arguments: list[str]) -> None:
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert not served


def test_a_port_that_is_taken_is_said_before_a_model_is_loaded(
    served: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LocalModel, "load", lambda name, threads=None: pytest.fail("a model is loaded"))
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        result = invoke("--port", str(port))
    assert result.exit_code == 2
    assert f"cannot listen on 127.0.0.1, port {port}" in " ".join(result.stderr.split())
    assert " at http" not in result.stderr
    assert not served


def test_any_free_port_is_named(served: dict[str, Any]) -> None:
    result = invoke("--port", "0")
    assert served["port"] > 0
    assert f"fake at http://127.0.0.1:{served['port']}/v1" in result.stderr


def test_every_option_is_documented() -> None:
    text = (Path(__file__).parent.parent / "docs" / "serving.md").read_text(encoding="utf-8")
    command = main.commands["serve"]  # type: ignore[attr-defined]
    options = [name for parameter in command.params for name in parameter.opts]
    assert [name for name in options if f"`{name}" not in text] == []
