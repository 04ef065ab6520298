"""The command line: what it prints, its exit codes, and one line for each mistake."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from fake_model import FakeModel, speaker

from punchcard.cli import main
from punchcard.models import LocalModel

HOME = Path(__file__).parent.parent / "examples" / "home.py"
CALL = {"name": "set_lights", "arguments": {"room": "kitchen", "brightness": 10}}
ANSWER = f"<tool_call>\n{json.dumps(CALL)}\n</tool_call>"


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Has the commands use a fake model that says the given answers."""

    def use(*answers: str) -> FakeModel:
        fake = FakeModel(speaker(*answers), context_length=20_000)
        monkeypatch.setattr(LocalModel, "load", lambda name: fake)
        return fake

    return use


def invoke(*arguments: str, stdin: str | None = None) -> Result:
    result = CliRunner().invoke(main, arguments, input=stdin)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def test_run_prints_the_call_its_result_and_the_closing_words(model: Any) -> None:
    model(ANSWER, "It is dim now.")
    result = invoke("run", "Dim the kitchen lights to 10%", "--tools", str(HOME))
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        '{"name": "set_lights", "arguments": {"room": "kitchen", "brightness": 10}}',
        '  = {"room": "kitchen", "brightness": 10}',
        "It is dim now.",
    ]


def test_run_prints_the_whole_result_as_json(model: Any) -> None:
    model(ANSWER, "Done.")
    result = invoke("run", "Dim it", "--tools", str(HOME), "--json", "--seed", "1", "--temperature", "0.1")
    printed = json.loads(result.stdout)
    assert printed["function_calls"] == [CALL] and printed["success"] is True
    assert set(printed) >= {"type", "error", "results", "text", "confidence", "timings"}


def test_run_without_a_grammar_reports_a_call_that_is_wrong(model: Any) -> None:
    model('<tool_call>\n{"name": "dance", "arguments": {}}\n</tool_call>', "Sorry.")
    result = invoke("run", "Dance", "--tools", str(HOME), "--no-grammar")
    assert result.exit_code == 1
    assert "  ! there is no tool dance" in result.stdout
    assert result.stderr.strip() == "punchcard: error: dance failed: there is no tool dance"


def test_run_with_definitions_prints_calls_and_executes_nothing(model: Any, tmp_path: Path) -> None:
    model(ANSWER)
    parameters = {"type": "object", "properties": {"room": {"type": "string"}, "brightness": {"type": "integer"}}}
    path = tmp_path / "tools.json"
    path.write_text(json.dumps([{"type": "function", "function": {"name": "set_lights", "parameters": parameters}}]))
    result = invoke("run", "Dim it", "--tools", str(path))
    assert result.exit_code == 0 and result.stdout.splitlines() == [json.dumps(CALL)]


def test_run_says_when_no_tool_was_called(model: Any) -> None:
    model("Jane Austen.")
    result = invoke("run", "Who wrote Emma?", "--tools", str(HOME))
    assert (result.exit_code, result.stdout, result.stderr) == (0, "Jane Austen.\n", "No tool was called.\n")


@pytest.mark.parametrize("source", ["text", "stdin"])
def test_extract_prints_json(model: Any, tmp_path: Path, source: str) -> None:
    fake = model('{"n":3}')
    path = tmp_path / "schema.json"
    path.write_text('{"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}')
    text = "three" if source == "text" else "-"
    result = invoke("extract", text, "--schema", str(path), stdin="three")
    assert (result.exit_code, result.stdout) == (0, '{"n": 3}\n')
    assert "three" in fake.detokenize(fake.tokens)


def test_extract_takes_a_model_by_its_module(model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model('{"n":3}')
    (tmp_path / "shapes.py").write_text("from pydantic import BaseModel\n\n\nclass N(BaseModel):\n    n: int\n")
    monkeypatch.chdir(tmp_path)
    result = invoke("extract", "three", "--schema", "shapes:N")
    assert (result.exit_code, result.stdout) == (0, '{"n": 3}\n')


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (["run", "x", "--tools", "missing.py"], 2, "There is no tool file missing.py"),
        (["run", "x", "--tools", "bad.py"], 2, "bad.py cannot be imported: line 1: ZeroDivisionError"),
        (["run", "x", "--tools", "bad.json"], 2, "bad.json is not JSON"),
        (["run", "x"], 2, "Missing option '--tools'"),
        (["run", "x" * 30_000, "--tools", str(HOME)], 2, "tokens; fake has room for 20000"),
        (["extract", "x", "--schema", "missing.json"], 2, "There is no schema file missing.json"),
        (["extract", "x", "--schema", "bad.json"], 2, "The schema is not JSON"),
        (["extract", "x", "--schema", "type.json"], 2, "strin"),
        (["extract", "x", "--schema", "no_such_module:M"], 2, "No module named 'no_such_module'"),
        (["extract", "x", "--schema", "json:Nix"], 2, "The module json has no Nix"),
        (["extract", "x", "--schema", "true.json", "--temperature", "-1"], 2, "--temperature"),
        (["models", "path", "nix"], 3, "no model is called 'nix'"),
        (["models", "pull", "nix"], 3, "no model is called 'nix'"),
        (["nix"], 2, "No such command 'nix'"),
    ],
)
def test_a_mistake_is_one_line_and_a_code(
    model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], code: int, complaint: str
) -> None:
    model("Hi.")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PUNCHCARD_CACHE", str(tmp_path))
    (tmp_path / "bad.py").write_text("1 / 0\n")
    (tmp_path / "bad.json").write_text("{")
    (tmp_path / "type.json").write_text('{"type": "strin"}')
    (tmp_path / "true.json").write_text("true")
    result = invoke(*arguments)
    assert result.exit_code == code
    assert complaint in result.stderr and result.stdout == "" and "Traceback" not in result.stderr
    if "Usage" not in result.stderr:
        assert len(result.stderr.splitlines()) == 1


def test_an_unknown_model_and_a_file_that_is_none(tmp_path: Path) -> None:
    damaged = tmp_path / "model.gguf"
    damaged.write_bytes(b"GGUF\x03\x00")
    for name, complaint in (("nix", "no model is called 'nix'"), (str(damaged), "model.gguf")):
        result = invoke("run", "x", "--tools", str(HOME), "--model", name)
        assert result.exit_code == 3 and len(result.stderr.splitlines()) == 1
        assert complaint in result.stderr or "no local runtime" in result.stderr


@pytest.mark.parametrize("command", [["run", "x", "--tools", str(HOME)], ["extract", "x", "--schema", "true.json"]])
def test_ctrl_c_prints_what_was_written(
    model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    willing = speaker('"Once upon a time"')

    def logits(tokens: list[int]) -> Any:
        if bytes(token for token in tokens if token < 256).endswith(b"upon"):
            raise KeyboardInterrupt
        return willing(tokens)

    fake = model("")
    monkeypatch.setattr(fake, "_logits", logits)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "true.json").write_text("true")
    result = invoke(*command)
    assert result.exit_code == 130
    assert 'interrupted after: "Once' in result.stderr


def test_models_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PUNCHCARD_CACHE", str(tmp_path))
    lines = invoke("models", "list").stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["smollm2-135m", "qwen2.5-coder-1.5b"]
    assert "(default)" in lines[0]
    result = invoke("models", "path", "smollm2-135m")
    assert result.exit_code == 3 and "punchcard models pull smollm2-135m" in result.stderr


def test_the_version() -> None:
    result = invoke("--version")
    assert result.exit_code == 0 and result.stdout.startswith("punchcard ")


def test_run_executes_coroutine_functions(model: Any, tmp_path: Path) -> None:
    model('<tool_call>\n{"name": "double", "arguments": {"n": 4}}\n</tool_call>', "It is 8.")
    path = tmp_path / "tools.py"
    path.write_text(
        "import asyncio\nfrom punchcard import tool\n\n@tool\nasync def double(n: int) -> int:\n"
        '    """Double a number."""\n    await asyncio.sleep(0)\n    return 2 * n\n',
        encoding="utf-8",
    )
    result = invoke("run", "Double 4", "--tools", str(path), "--save", str(tmp_path / "run.json"))
    assert result.exit_code == 0
    assert result.stdout.splitlines() == ['{"name": "double", "arguments": {"n": 4}}', "  = 8", "It is 8."]
    saved = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))
    assert saved["runs"][0]["turns"][0]["calls"][0]["result"] == 8


@pytest.mark.parametrize(("answer", "code", "outcome"), [("y", 0, "  = {"), ("n", 1, "  ! refused: the user said no")])
def test_run_asks_before_it_executes(model: Any, answer: str, code: int, outcome: str) -> None:
    model(ANSWER, "Fine.")
    result = invoke("run", "Dim it", "--tools", str(HOME), "--approve", stdin=answer + "\n")
    assert result.exit_code == code and result.stdout.splitlines()[1].startswith(outcome)
    assert "Execute it?" in result.stderr


def test_run_out_of_time(model: Any) -> None:
    model("a long story " * 200)
    result = invoke("run", "Tell", "--tools", str(HOME), "--max-seconds", "0.01")
    assert result.exit_code == 1 and "stopped after 0.01 seconds (max_seconds)" in result.stderr


@pytest.mark.parametrize("surroundings", [{"LANG": "C", "LC_ALL": "C", "TZ": "Asia/Kolkata"}, {"PYTHONUTF8": "0"}])
def test_the_command_is_a_module_too_whatever_surrounds_it(surroundings: dict[str, str]) -> None:
    import os
    import signal
    import subprocess
    import sys

    def ignore() -> None:  # as under nohup, or behind `&`
        for name in ("SIGINT", "SIGTERM", "SIGHUP"):
            signal.signal(getattr(signal, name), signal.SIG_IGN)

    run = subprocess.run(
        [sys.executable, "-m", "punchcard", "--version"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env={**os.environ, **surroundings},
        preexec_fn=ignore,
        check=False,
    )
    assert run.returncode == 0 and run.stdout.startswith("punchcard "), run.stderr
