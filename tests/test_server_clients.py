"""Libraries that people use, against the server: structured output with each of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field
from server_process import serving

from punchcard.errors import PunchcardError

pytest.importorskip("fastapi")
pytest.importorskip("prometheus_client")
pytest.importorskip("uvicorn")
openai = pytest.importorskip("openai")

MODEL = "smollm2-135m"


class Booking(BaseModel):
    """A table in a restaurant."""

    place: Literal["Luigi", "Ratskeller"]
    guests: int = Field(ge=1, le=20)
    outside: bool


ASKED = "Book a table for four at Luigi, outside please."


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    core = pytest.importorskip("punchcard._core")
    if not hasattr(core, "LocalRuntime"):
        pytest.skip("built without the local runtime")
    from punchcard.models import LocalModel
    from punchcard.server.options import ServerOptions

    try:
        model = LocalModel.load(MODEL)
    except PunchcardError as error:
        pytest.skip(str(error))
    with serving(model, ServerOptions(max_tokens=200, slots=2)) as server:
        yield f"{server.url}/v1"


class TestInstructor:
    @pytest.mark.parametrize("mode", ["TOOLS", "JSON_SCHEMA"])
    def test_a_model_is_filled_in(self, url: str, mode: str) -> None:
        instructor = pytest.importorskip("instructor")
        client = instructor.from_openai(
            openai.OpenAI(base_url=url, api_key="none"), mode=getattr(instructor.Mode, mode)
        )
        booking = client.chat.completions.create(
            model=MODEL,
            response_model=Booking,
            messages=[{"role": "user", "content": ASKED}],
            max_retries=0,
            temperature=0,
        )
        assert isinstance(booking, Booking)


class TestPydanticAI:
    def agent(self, url: str, **options: Any) -> Any:
        ai = pytest.importorskip("pydantic_ai")
        pytest.importorskip("pydantic_ai.models.openai")
        from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
        from pydantic_ai.providers.openai import OpenAIProvider

        kind = OpenAIResponsesModel if options.pop("responses", False) else OpenAIChatModel
        model = kind(MODEL, provider=OpenAIProvider(base_url=url, api_key="none"))
        return ai.Agent(model, **options)

    def test_output_by_a_tool(self, url: str) -> None:
        result = self.agent(url, output_type=Booking).run_sync(ASKED, model_settings={"temperature": 0})
        assert isinstance(result.output, Booking)
        assert result.usage.output_tokens > 0

    def test_output_by_a_schema(self, url: str) -> None:
        ai = pytest.importorskip("pydantic_ai")
        result = self.agent(url, output_type=ai.NativeOutput(Booking)).run_sync(ASKED)
        assert isinstance(result.output, Booking)

    def test_responses(self, url: str) -> None:
        ai = pytest.importorskip("pydantic_ai")
        agent = self.agent(url, output_type=ai.NativeOutput(Booking), responses=True)
        assert isinstance(agent.run_sync(ASKED).output, Booking)


class TestLangChain:
    @pytest.mark.parametrize("method", ["json_schema", "function_calling"])
    def test_structured_output(self, url: str, method: str) -> None:
        langchain = pytest.importorskip("langchain_openai")
        chat = langchain.ChatOpenAI(model=MODEL, base_url=url, api_key="none", temperature=0)
        assert isinstance(chat.with_structured_output(Booking, method=method).invoke(ASKED), Booking)

    def test_tools_in_a_stream(self, url: str) -> None:
        langchain = pytest.importorskip("langchain_openai")
        chat = langchain.ChatOpenAI(model=MODEL, base_url=url, api_key="none", temperature=0)
        bound = chat.bind_tools([Booking], tool_choice="Booking", parallel_tool_calls=False)
        whole: Any = None
        for chunk in bound.stream(ASKED):
            whole = chunk if whole is None else whole + chunk
        (call,) = whole.tool_calls
        assert call["name"] == "Booking"
        Booking.model_validate(call["args"])
