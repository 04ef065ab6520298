"""Jinja for templates from anybody: no access to Python, and bounded in time and memory.

Jinja's own sandbox keeps a template from Python's insides, but not from computing without end. Here everything that a
template does is paid for, from an allowance for one rendering:

- *steps*: a turn of a loop, or a call of a macro, costs as much as its body is long, so nested loops and recursion end;
  an operation costs what it looks at;
- *characters* that it makes, wherever they go. What multiplies (products, padding, joining, indentation, powers) says
  beforehand how much it would make, and is refused before it is done;
- values within each other are counted as often as they would be printed, so that doubling a list does not help.

Nothing depends on clocks or signals: a template that is refused is refused on every machine. Real templates stay a
hundredfold below.
"""

from __future__ import annotations

import functools
import json
import re
import string
import types
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from typing import Any

import jinja2
from jinja2 import nodes
from jinja2.ext import loopcontrols
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace
from jinja2.visitor import NodeTransformer

from punchcard.exact import write_json

#: Characters of a template.
MOST_SOURCE = 1 << 16
#: Steps of one rendering: a second or two.
MOST_STEPS = 4_000_000
#: Characters that one rendering may make, all in all.
MOST_CHARACTERS = 1 << 25
# What a call costs, and a value that is counted.
_CALL = 8
_VALUE = 3
# Values within each other.
_DEEPEST = 200
# A whole number may have so many bits.
_MOST_BITS = 1 << 14
# Widths of padding, of indentation of JSON, and digits to round to.
_WIDEST = 10_000
_WIDEST_INDENT = 64
_MOST_DIGITS = 100


class TemplateLimitError(jinja2.TemplateError):
    """A template costs more than it may."""


class Meter:
    """What is left of the allowance for one rendering."""

    def __init__(self, steps: int = MOST_STEPS, characters: int = MOST_CHARACTERS) -> None:
        self._steps = steps
        self._characters = characters

    def step(self, count: int = 1) -> None:
        """Pays for steps."""
        self._steps -= count
        if self._steps < 0:
            raise TemplateLimitError(f"it takes more than {MOST_STEPS:,} steps")

    def make(self, count: int) -> None:
        """Pays for characters that are made."""
        self.allow(count)
        self._characters -= count
        self.step(count >> 6)

    def allow(self, count: int) -> None:
        """Raises if so many characters are more than is left."""
        if count > self._characters:
            raise TemplateLimitError(f"it makes more than {MOST_CHARACTERS:,} characters")

    def size(self, value: Any) -> int:
        """About how many characters a value has in print. Counting is paid for."""
        total, level = 0, [value]
        for _ in range(_DEEPEST):
            inner: list[Any] = []
            for item in level:
                if isinstance(item, (str, bytes)):
                    total += len(item)
                    continue
                total += 8
                if isinstance(item, int) and item.bit_length() > 64:
                    total += item.bit_length() // 3
                inside = _inside(item)
                if inside is not None:
                    self.step(_VALUE * len(inside))
                    inner.extend(inside)
            self.step(total >> 6)
            self.allow(total)
            if not inner:
                return total
            level = inner
        raise TemplateLimitError(f"it has values within each other, more than {_DEEPEST} deep")

    def look(self, value: Any) -> Any:
        """Pays for going through a value, but not through what it holds, and returns it."""
        if isinstance(value, range):
            self.step(len(value))
        elif hasattr(value, "__len__"):
            self.step(len(value) >> 6 if isinstance(value, str) else len(value) >> 3)
        return value

    def made(self, value: Any) -> Any:
        """Pays for a value that was made of others, and returns it."""
        if isinstance(value, str):
            self.make(len(value))
        elif isinstance(value, (list, tuple, dict)):
            self.make(8 * len(value))
            self.step(len(value))
        elif isinstance(value, int) and value.bit_length() > _MOST_BITS:
            raise TemplateLimitError("it makes a number that is too large")
        return value

    def listed(self, values: Any) -> Any:
        """What can be gone through once only, as a list; everything else as it is."""
        if not isinstance(values, types.GeneratorType):
            return values
        items = []
        for item in values:
            self.step(_VALUE)
            items.append(item)
        return items


_meter: ContextVar[Meter] = ContextVar("punchcard-template-meter")


def _inside(value: Any) -> Any:
    """What a value holds, as a sequence; `None` for one that holds nothing."""
    if isinstance(value, Mapping):
        return [*value, *value.values()]
    if isinstance(value, (list, tuple, set, frozenset, range)):
        return value
    if isinstance(value, Namespace):
        return list(object.__getattribute__(value, "_Namespace__attrs").values())
    if isinstance(value, (type({}.items()), type({}.values()), type({}.keys()))):
        return list(value)
    return None


def render(template: jinja2.Template, variables: Mapping[str, Any]) -> str:
    """Renders a template of `Environment` within a new allowance. Raises whatever the template raises."""
    token = _meter.set(Meter())
    try:
        return template.render(variables)
    finally:
        _meter.reset(token)


class Environment(ImmutableSandboxedEnvironment):
    """The environment of chat templates: trimmed blocks, ``break`` and ``continue``, and an allowance (`render`)."""

    intercepted_binops = frozenset(ImmutableSandboxedEnvironment.default_binop_table)

    def __init__(self) -> None:
        # Without an optimizer, nothing is computed before an allowance is there.
        super().__init__(
            trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols], optimized=False, finalize=_printed
        )
        del self.globals["lipsum"]
        for name in _UNKNOWN:
            self.filters.pop(name, None)
        self.filters = {name: _guarded(name, function) for name, function in self.filters.items()}
        tests: dict[str, Any] = self.tests
        self.tests = {name: _guarded(name, test) for name, test in tests.items()}
        self.filters |= {"tojson": _tojson, **_OWN}
        self.concat = _concat  # type: ignore[method-assign]

    def from_string(self, source: Any, *options: Any, **more: Any) -> jinja2.Template:
        if len(source) > MOST_SOURCE:
            raise TemplateLimitError(f"it has more than {MOST_SOURCE:,} characters")
        return super().from_string(source, *options, **more)

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        return _Paying().visit(super()._parse(source, name, filename))  # type: ignore[no-any-return]

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        meter = _meter.get()
        meter.step(_CALL)
        if operator == "*":
            _check_product(meter, left, right)
        elif operator == "**":
            _check_power(left, right)
        elif operator == "%" and isinstance(left, (str, bytes)):
            _check_percent(meter, left, right)
        elif operator == "+" and not isinstance(left, (int, float)):
            meter.allow(sum(len(value) for value in (left, right) if hasattr(value, "__len__")))
        return meter.made(super().call_binop(context, operator, left, right))

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        meter = _meter.get()
        meter.step(_CALL)
        args = tuple(meter.listed(value) for value in args)
        owner = getattr(__obj, "__self__", None)
        builtin = isinstance(__obj, types.BuiltinMethodType) and not isinstance(owner, types.ModuleType)
        if builtin or isinstance(owner, tuple(_METHODS)):  # Markup, a kind of str, has methods in Python
            _check_method(meter, owner, __obj.__name__, args, kwargs)
        made = meter.made(super().call(__context, __obj, *args, **kwargs))
        if __obj is dict or __obj is Namespace:
            meter.size(made)
        return made

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        wrapped = super().wrap_str_format(value)
        if wrapped is None:
            return None

        def checked(*args: Any, **kwargs: Any) -> str:
            _check_format(_meter.get(), value.__self__, (args, kwargs))
            return wrapped(*args, **kwargs)

        return checked


class _Paying(NodeTransformer):
    """Puts into a template what pays for its loops, macros and expressions."""

    def visit_For(self, node: nodes.For) -> nodes.Node:
        test = 0 if node.test is None else _weight(node.test)
        weight = _weight(*node.body)
        self.generic_visit(node)
        node.iter = _paid(node.iter, "!iterated", test)
        node.body.insert(0, _payment(weight + 1))
        return node

    def visit_Macro(self, node: Any) -> nodes.Node:
        weight = _weight(*node.body)
        self.generic_visit(node)
        node.body.insert(0, _payment(weight + 1))
        return node  # type: ignore[no-any-return]

    visit_CallBlock = visit_Macro
    visit_Block = visit_Macro

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        self.generic_visit(node)
        return _paid(node.nodes[0], "!concat", *node.nodes[1:])

    def visit_Compare(self, node: nodes.Compare) -> nodes.Node:
        self.generic_visit(node)
        node.expr = _paid(node.expr, "!read")
        for operand in node.ops:
            operand.expr = _paid(operand.expr, "!read")
        return node

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:
        self.generic_visit(node)
        return _paid(node, "!made") if isinstance(node.arg, nodes.Slice) else node

    def visit_List(self, node: nodes.Expr) -> nodes.Node:
        self.generic_visit(node)
        return _paid(node, "!held") if getattr(node, "ctx", "load") == "load" else node

    visit_Tuple = visit_List
    visit_Dict = visit_List


# What is entered by itself, and then paid for by itself.
_BODIES = (nodes.For, nodes.Macro, nodes.CallBlock, nodes.Block)


def _weight(*parts: nodes.Node) -> int:
    """How long a body is: its nodes, without those of bodies in it."""
    count, waiting = 0, list(parts)
    while waiting:
        node = waiting.pop()
        count += 1
        if isinstance(node, nodes.TemplateData):
            count += len(node.data) >> 6
        if not isinstance(node, _BODIES):
            waiting.extend(node.iter_child_nodes())
    return count


def _paid(node: Any, name: str, *args: Any) -> nodes.Filter:
    """An expression that goes through a function of `_OWN`."""
    given = [value if isinstance(value, nodes.Node) else nodes.Const(value) for value in args]
    made = nodes.Filter(node, name, given, [], None, None)
    return made.set_lineno(node.lineno) if node.lineno else made  # type: ignore[return-value]


def _payment(weight: int) -> nodes.Stmt:
    return nodes.ExprStmt(_paid(nodes.Const(weight), "!pay"))


@jinja2.pass_context
def _printed(context: Context, value: Any) -> Any:
    """What is about to be printed."""
    meter = _meter.get()
    meter.step(_CALL)
    meter.make(len(value) if isinstance(value, str) else meter.size(value))
    return value


def _concat(parts: Iterable[str]) -> str:
    """Joins the pieces of an output. Its text is here without having been paid for."""
    meter, taken = _meter.get(), []
    for part in parts:
        meter.make(len(part))
        taken.append(part)
    return "".join(taken)


@jinja2.pass_context
def _pay(context: Context, weight: int) -> None:
    _meter.get().step(weight)


@jinja2.pass_context
def _iterated(context: Context, values: Any, weight: int) -> Any:
    """What a loop goes through. ``weight``: of the condition that is asked of each value."""
    meter = _meter.get()
    values = meter.listed(values)
    if weight and hasattr(values, "__len__"):
        meter.step(len(values) * weight)
    return values


@jinja2.pass_context
def _joined(context: Context, *values: Any) -> str:
    meter = _meter.get()
    meter.make(sum(map(meter.size, values)))
    return "".join(map(str, values))


@jinja2.pass_context
def _read(context: Context, value: Any) -> Any:
    """A value that is compared, as a whole."""
    meter = _meter.get()
    meter.step(len(value) >> 6 if isinstance(value, str) else meter.size(value) >> 6)
    return value


@jinja2.pass_context
def _made(context: Context, value: Any) -> Any:
    return _meter.get().made(value)


@jinja2.pass_context
def _held(context: Context, value: Any) -> Any:
    """A list, tuple or dict that the template writes: it may hold a value several times."""
    _meter.get().size(value)
    return value


#: Under names that no template can spell.
_OWN = {"!pay": _pay, "!iterated": _iterated, "!concat": _joined, "!read": _read, "!made": _made, "!held": _held}


# What multiplies.


def _check_product(meter: Meter, left: Any, right: Any) -> None:
    if isinstance(left, int) and isinstance(right, int):
        if left.bit_length() + right.bit_length() > _MOST_BITS:
            raise TemplateLimitError("it makes a number that is too large")
        return
    for value, times in ((left, right), (right, left)):
        if isinstance(times, int) and isinstance(value, (str, bytes, list, tuple)):
            meter.allow(max(meter.size(value), 1) * max(times, 0))


def _check_power(base: Any, exponent: Any) -> None:
    if isinstance(base, int) and isinstance(exponent, int) and base.bit_length() * max(exponent, 0) > _MOST_BITS:
        raise TemplateLimitError("it makes a number that is too large")


_NUMBER = re.compile(r"[0-9]+")


def _check_widths(text: str) -> None:
    if any(len(found[0]) > 9 or int(found[0]) > _WIDEST for found in _NUMBER.finditer(text)):
        raise TemplateLimitError(f"it pads to more than {_WIDEST:,} characters")


def _check_percent(meter: Meter, form: Any, values: Any) -> None:
    """For the operator ``%`` and the filter ``format``."""
    text = form.decode("latin-1") if isinstance(form, bytes) else str(form)
    fields = text.count("%")
    for spec in re.findall(r"%(?:\([^()]*\))?([-+ #0-9.*]*)", text):
        if "*" in spec:
            raise TemplateLimitError("it pads to a width that is computed")
        _check_widths(spec)
    meter.allow(len(text) + fields * (_WIDEST + meter.size(values) if fields else 0))


def _check_format(meter: Meter, form: str, values: Any) -> None:
    """For ``str.format``."""
    fields = 0
    for _, name, spec, _ in string.Formatter().parse(form):
        fields += name is not None
        if spec and "{" in spec:
            raise TemplateLimitError("it pads to a width that is computed")
        _check_widths(spec or "")
    meter.allow(len(form) + fields * (_WIDEST + meter.size(values)))


def _replaced(text: Any, old: Any, new: Any, count: Any = None) -> int:
    """Characters of a text after `str.replace`."""
    text, old, new = str(text), str(old), str(new)
    found = text.count(old)
    if isinstance(count, int) and count >= 0:
        found = min(found, count)
    return int(len(text) + found * len(new))


def _padded(text: Any, width: Any = 80, *_: Any) -> int:
    if isinstance(width, int) and width > _WIDEST:
        raise TemplateLimitError(f"it pads to more than {_WIDEST:,} characters")
    return len(str(text)) + _WIDEST


def _expanded(text: Any, tabsize: Any = 8) -> int:
    return int(_padded(text, tabsize) + str(text).count("\t") * int(tabsize))


def _strung(separator: Any, values: Any) -> int:
    items = list(values)
    return len(str(separator)) * len(items)


def _indented(text: Any, width: Any = 4, *_: Any, **__: Any) -> int:
    _padded("", width)
    by = len(width) if isinstance(width, str) else int(width)
    return len(str(text)) + (str(text).count("\n") + 2) * by


def _wrapped(text: Any, width: Any = 79, break_long: Any = True, wrapstring: Any = None, *_: Any, **__: Any) -> int:
    return len(str(text)) * (1 + len(wrapstring or "\n"))


def _pieces(name: str, text: str, sep: Any = None, *_: Any, **__: Any) -> int:
    """About how many pieces a text is split into."""
    return int(text.count(sep)) if name != "splitlines" and isinstance(sep, str) and sep else len(text) >> 1


def _parted(values: Any, count: Any, fill_with: Any = None) -> int:
    return _padded("", count)


def _rounded(value: Any, precision: Any = 0, *_: Any, **__: Any) -> int:
    if isinstance(precision, int) and abs(precision) > _MOST_DIGITS:
        raise TemplateLimitError(f"it rounds to more than {_MOST_DIGITS} digits")
    return 0


def _summed(values: Any, attribute: Any = None, start: Any = 0) -> int:
    if not isinstance(start, (int, float)):
        raise TemplateLimitError("it adds up something that is no number")
    return 0


def _filter_joined(values: Any, d: Any = "", attribute: Any = None) -> int:
    return _strung(d, values if isinstance(values, Iterable) else ())


#: How many characters a filter would make.
_FILTERS: Mapping[str, Callable[..., int]] = {
    "center": _padded,
    "indent": _indented,
    "wordwrap": _wrapped,
    "replace": _replaced,
    "join": _filter_joined,
    "batch": _parted,
    "slice": _parted,
    "round": _rounded,
    "sum": _summed,
}
#: Filters of Jinja's that no chat template needs, and that cost what cannot be told beforehand.
_UNKNOWN = ("filesizeformat", "pprint", "random", "urlize", "xmlattr")

#: Those that look at what a value holds only where they are told to, or not at all.
_SHALLOW = frozenset(
    [
        "attr",
        "batch",
        "count",
        "d",
        "default",
        "first",
        "items",
        "last",
        "length",
        "list",
        "map",
        "reject",
        "rejectattr",
        "reverse",
        "select",
        "selectattr",
        "slice",
        "sum",
    ]
)
#: Filters and methods that take long for each character.
_SLOW = frozenset(
    ["capitalize", "e", "escape", "forceescape", "list", "striptags", "title", "urlencode", "wordcount", "wordwrap"]
)

#: Methods that a template may call, of values of these types. Those with a function make so many characters.
_METHODS: Mapping[type, Mapping[str, Callable[..., int] | None]] = {
    str: {
        **dict.fromkeys(
            [
                "capitalize",
                "casefold",
                "count",
                "endswith",
                "find",
                "format",
                "format_map",
                "index",
                "isalnum",
                "isalpha",
                "isascii",
                "isdecimal",
                "isdigit",
                "isidentifier",
                "islower",
                "isnumeric",
                "isprintable",
                "isspace",
                "istitle",
                "isupper",
                "lower",
                "lstrip",
                "partition",
                "removeprefix",
                "removesuffix",
                "rfind",
                "rindex",
                "rpartition",
                "rsplit",
                "rstrip",
                "split",
                "splitlines",
                "startswith",
                "strip",
                "swapcase",
                "title",
                "upper",
            ]
        ),
        **dict.fromkeys(("center", "ljust", "rjust", "zfill"), _padded),
        "expandtabs": _expanded,
        "join": _strung,
        "replace": _replaced,
    },
    dict: dict.fromkeys(("copy", "get", "items", "keys", "values")),
    list: dict.fromkeys(("copy", "count", "index")),
    tuple: dict.fromkeys(("count", "index")),
    range: dict.fromkeys(("count", "index")),
    int: dict.fromkeys(("bit_length",)),
    float: dict.fromkeys(("is_integer",)),
}


def _check_method(meter: Meter, owner: Any, name: str, args: Any, kwargs: Any) -> None:
    """Raises unless a method of a value may be called so."""
    kind = next((kind for kind in _METHODS if isinstance(owner, kind)), None)
    known = {} if kind is None else _METHODS[kind]
    if name not in known:
        raise jinja2.TemplateError(f"a template cannot call {type(owner).__name__}.{name}")
    meter.look(owner)
    for value in (*args, *kwargs.values()):
        meter.look(value)
    if name in _SLOW:
        meter.step(len(owner))
    elif name in ("split", "rsplit", "splitlines"):
        meter.step(2 * _pieces(name, owner, *args, **kwargs))
    estimate = known[name]
    if estimate is not None:
        meter.allow(meter.size(args) + estimate(owner, *args, **kwargs))


def _guarded(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A filter or a test that pays for what it looks at and for what it makes."""
    passes = hasattr(function, "jinja_pass_arg")  # its first argument is Jinja's
    estimate = _FILTERS.get(name)

    @functools.wraps(function)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        meter = _meter.get()
        meter.step(_CALL)
        first, given = args[:passes], [meter.listed(value) for value in args[passes:]]
        for value in (*given, *kwargs.values()):
            meter.look(value) if name in _SHALLOW or isinstance(value, str) else meter.size(value)
        if name in _SLOW and given and isinstance(given[0], str):
            meter.step(len(given[0]))
        if name == "format":
            _check_percent(meter, given[0], (given[1:], kwargs))
        if estimate is not None:
            meter.allow(meter.size(given) + estimate(*given, **kwargs))
        return meter.made(function(*first, *given, **kwargs))

    return guarded


def _tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """JSON as models have seen it: Jinja's own filter escapes for HTML."""
    meter = _meter.get()
    value = meter.listed(value)
    meter.size(value)
    width = indent if isinstance(indent, int) else len(indent or "")
    if max(width, len("".join(separators or ()))) > _WIDEST_INDENT:
        raise TemplateLimitError(f"it indents JSON by more than {_WIDEST_INDENT} characters")
    if indent is None:
        text = write_json(value, ensure_ascii=ensure_ascii, separators=separators, sort_keys=sort_keys)
        return str(meter.made(text))
    # With indentation, what comes out grows with the depth, too.
    encoder = json.JSONEncoder(ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)
    return _concat(encoder.iterencode(value))
