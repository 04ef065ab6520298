"""Engines that make token masks, each behind the same few methods.

Only public interfaces are used, as their documentation has them. Compiled grammars are not cached between calls.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, ClassVar

from common import Row, Vocabulary


class Engine:
    """One engine with one vocabulary. Notations are ``json_schema``, ``lark``, ``ebnf`` and ``tag``, given as text."""

    mask: Any  # the words of the mask that was filled last

    def __init__(self, vocab: Vocabulary) -> None:
        self.vocab = vocab

    def compile(self, notation: str, text: str) -> Any:
        raise NotImplementedError

    def start(self, grammar: Any) -> Any:
        raise NotImplementedError

    def fill(self, matcher: Any) -> None:
        raise NotImplementedError

    def accept(self, matcher: Any, token: int) -> None:
        raise NotImplementedError

    def prepare_batch(self, rows: int, threads: int) -> None:
        raise NotImplementedError("no masks of several sequences in one call")

    def fill_batch(self, matchers: Sequence[Any]) -> None:
        raise NotImplementedError

    def allows(self, token: int) -> bool:
        return bool((int(self.mask[token >> 5]) >> (token & 31)) & 1)

    def may_end(self, matcher: Any) -> bool:
        self.fill(matcher)
        return self.allows(self.vocab.eos)

    def problem(self, matcher: Any) -> str:
        """Why a matcher has given up, where it has."""
        return ""


class Punchcard(Engine):
    options: ClassVar[Row] = {}

    def __init__(self, vocab: Vocabulary) -> None:
        import punchcard

        super().__init__(vocab)
        self.module = punchcard
        info = punchcard.TokenizerInfo.from_vocab(
            vocab.tokens(), eos_token_ids=[vocab.eos], special_token_ids=list(vocab.specials.values())
        )
        self.compiler = punchcard.GrammarCompiler(info, cache_enabled=False)
        self.bitmask = punchcard.allocate_token_bitmask(1, vocab.size)
        self.mask = self.bitmask[0]

    def compile(self, notation: str, text: str) -> Any:
        if notation == "json_schema":
            return self.compiler.compile_json_schema(text, **self.options)
        if notation == "lark":
            return self.compiler.compile_lark(text)
        return self.compiler.compile_ebnf(text) if notation == "ebnf" else self.compiler.compile_structural_tag(text)

    def start(self, grammar: Any) -> Any:
        return self.module.GrammarMatcher(grammar)

    def fill(self, matcher: Any) -> None:
        matcher.fill_next_token_bitmask(self.bitmask)

    def accept(self, matcher: Any, token: int) -> None:
        matcher.accept_token(token)

    def prepare_batch(self, rows: int, threads: int) -> None:
        self.batch = self.module.BatchMatcher(threads=threads)
        self.rows = self.module.allocate_token_bitmask(rows, self.vocab.size)

    def fill_batch(self, matchers: Sequence[Any]) -> None:
        self.batch.fill_next_token_bitmask(matchers, self.rows)


class PunchcardSpec(Punchcard):
    """The profile with every order of members and every spelling."""

    options: ClassVar[Row] = {"profile": "spec"}


class LLGuidance(Engine):
    def __init__(self, vocab: Vocabulary) -> None:
        import llguidance
        import llguidance.numpy
        import llguidance.tiktoken

        super().__init__(vocab)
        self.module, self.numpy = llguidance, llguidance.numpy
        self.tokenizer = llguidance.tiktoken.lltokenizer_from_encoding(
            vocab.encoding, n_vocab=vocab.size, eos_token=vocab.eos
        )
        self.bitmask = self.numpy.allocate_token_bitmask(1, vocab.size)
        self.mask = self.bitmask[0]

    def compile(self, notation: str, text: str) -> Any:
        if notation == "json_schema":
            text = '{"grammars": [{"json_schema": ' + text + "}]}"
        elif notation == "ebnf":
            from llguidance.gbnf_to_lark import gbnf_to_lark

            text = gbnf_to_lark(text)
        elif notation == "tag":
            text = self._tags(json.loads(text))
        if notation in ("lark", "ebnf"):
            text = self.module.LLMatcher.grammar_from_lark(text)
        matcher = self.module.LLMatcher(self.tokenizer, text)
        if matcher.is_error():
            raise ValueError(matcher.get_error())
        return matcher

    def _tags(self, tag: Row) -> str:
        from llguidance import StructTag

        form = tag["format"]
        tags = [
            StructTag(trigger=form["triggers"][0], begin=t["begin"], grammar=t["content"]["json_schema"], end=t["end"])
            for t in form["tags"]
        ]
        return StructTag.to_grammar(tags, assume_special=False)

    def start(self, grammar: Any) -> Any:
        return grammar.deep_copy()

    def fill(self, matcher: Any) -> None:
        self.numpy.fill_next_token_bitmask(matcher, self.bitmask)

    def accept(self, matcher: Any, token: int) -> None:
        matcher.consume_token(token)

    def problem(self, matcher: Any) -> str:
        return str(matcher.get_error())[:300]

    def prepare_batch(self, rows: int, threads: int) -> None:
        self.executor = self.module.LLExecutor(threads)
        self.rows = self.numpy.allocate_token_bitmask(rows, self.vocab.size)

    def fill_batch(self, matchers: Sequence[Any]) -> None:
        numbered = [(matcher, row) for row, matcher in enumerate(matchers)]
        self.numpy.fill_next_token_bitmask_par(self.executor, numbered, self.rows)


class XGrammar(Engine):
    def __init__(self, vocab: Vocabulary) -> None:
        import xgrammar

        super().__init__(vocab)
        self.module = xgrammar
        info = xgrammar.TokenizerInfo(
            vocab.tokens(), vocab_type=xgrammar.VocabType.RAW, vocab_size=vocab.size, stop_token_ids=[vocab.eos]
        )
        self.compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)
        self.bitmask = xgrammar.allocate_token_bitmask(1, vocab.size)
        self.mask = self.bitmask[0].numpy()

    def compile(self, notation: str, text: str) -> Any:
        if notation == "json_schema":
            return self.compiler.compile_json_schema(text)
        if notation == "lark":
            return self.compiler.compile_lark(text)
        return self.compiler.compile_grammar(text) if notation == "ebnf" else self.compiler.compile_structural_tag(text)

    def start(self, grammar: Any) -> Any:
        return self.module.GrammarMatcher(grammar)

    def fill(self, matcher: Any) -> None:
        matcher.fill_next_token_bitmask(self.bitmask)

    def accept(self, matcher: Any, token: int) -> None:
        matcher.accept_token(token)

    def prepare_batch(self, rows: int, threads: int) -> None:
        self.batch = self.module.BatchGrammarMatcher(max_threads=threads)
        self.rows = self.module.allocate_token_bitmask(rows, self.vocab.size)

    def fill_batch(self, matchers: Sequence[Any]) -> None:
        self.batch.batch_fill_next_token_bitmask(list(matchers), self.rows)


class GLRMask(Engine):
    def __init__(self, vocab: Vocabulary) -> None:
        import glrmask
        import numpy as np

        super().__init__(vocab)
        self.module = glrmask
        self.vocabulary = glrmask.Vocab.from_id_to_bytes(dict(enumerate(vocab.tokens())))
        self.mask = np.zeros((vocab.size + 31) // 32, dtype=np.int32)

    def compile(self, notation: str, text: str) -> Any:
        if notation not in ("json_schema", "lark"):
            raise NotImplementedError(f"no such notation: {notation}")
        read = getattr(self.module.Grammar, f"from_{notation}")
        return read(text).compile(self.vocabulary)

    def start(self, grammar: Any) -> Any:
        return grammar.start()

    def fill(self, matcher: Any) -> None:
        matcher.fill_mask(self.mask)

    def accept(self, matcher: Any, token: int) -> None:
        matcher.commit_token(token)

    def may_end(self, matcher: Any) -> bool:
        return bool(matcher.is_accepting())


ENGINES: dict[str, type[Engine]] = {
    "punchcard": Punchcard,
    "punchcard-spec": PunchcardSpec,
    "llguidance": LLGuidance,
    "xgrammar": XGrammar,
    "glrmask": GLRMask,
}
