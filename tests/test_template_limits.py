"""Chat templates come with a model file, from anybody: whatever they do ends soon, with an error that says why.

Each template runs in a process with little memory. None of these tests measures time: what bounds a template is what it
does, not how long that takes here.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from punchcard.errors import ModelError
from punchcard.formats import sandbox
from punchcard.formats.template import render_template

MESSAGES = [{"role": "user", "content": "hello " * 1000}, {"role": "assistant", "content": "x"}]
DOUBLED = (
    "{{% set ns = namespace(x={0}) %}}{{% for i in range(60) %}}{{% set ns.x = {1} %}}{{% endfor %}}{{{{ ns.x{2} }}}}"
)


def large(expression: str) -> str:
    return "{% set a = 'a' * 10000000 %}{% for i in range(100000) %}{% set b = " + expression + " %}{% endfor %}"


HOSTILE = {
    # Loops
    "{% for i in range(10**10) %}x{% endfor %}": "Range too big",
    "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}": "steps",
    "{% for i in range(99999) %}{% for j in range(99999) if j < 0 %}{% endfor %}{% endfor %}": "steps",
    "{% for i in range(99999) recursive %}{{ loop(range(99999)) }}{% endfor %}": "steps|recursion",
    "{% for i in [1, 2] recursive %}{{ loop([1, 2]) }}{% endfor %}": "recursion",
    "{% for i in range(99999) %}" + "{% if 1 %}c{% endif %}" * 2000 + "{% endfor %}": "steps",
    "{% for i in range(99999) %}" + "c" * 60000 + "{% endfor %}": "characters",
    "{% for c in 'a' * 10**7 %}{% endfor %}": "steps",
    # Macros and blocks
    "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}": "recursion",
    "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(80) }}": "steps",
    "{% macro m() %}{{ caller() }}{% endmacro %}{% macro r() %}{% call m() %}{{ r() }}{% endcall %}{% endmacro %}"
    "{{ r() }}": "recursion",
    "{% block a %}{{ self.a() }}{{ self.a() }}{% endblock %}": "recursion",
    # Products and powers
    "{{ 'a' * 10**10 }}": "characters",
    "{{ 10**10 * 'a' }}": "characters",
    "{{ [1] * 10**10 }}": "characters",
    "{{ ('a' | safe) * 10**10 }}": "characters",
    "{{ True * 'a' * 10**10 }}": "characters",
    "{{ 10 ** (10 ** 10) }}": "number",
    DOUBLED.format("3", "ns.x * ns.x", ""): "number",
    # Doubling
    DOUBLED.format("'a'", "ns.x + ns.x", ""): "characters",
    DOUBLED.format("'a'", "ns.x ~ ns.x", ""): "characters",
    DOUBLED.format("[1]", "ns.x + ns.x", ""): "steps|characters",
    DOUBLED.format("[1]", "[ns.x, ns.x]", ""): "steps|characters",
    DOUBLED.format("(1,)", "(ns.x, ns.x)", ""): "steps|characters",
    DOUBLED.format("{}", "{'a': ns.x, 'b': ns.x}", "|tojson"): "steps|characters",
    DOUBLED.format("{}", "dict(a=ns.x, b=ns.x)", "|string"): "steps|characters",
    DOUBLED.format("1", "namespace(a=ns.x, b=ns.x)", ""): "steps|characters",
    "{% set ns = namespace(x='a') %}{% for i in range(60) %}{% set y %}{{ ns.x }}{{ ns.x }}{% endset %}"
    "{% set ns.x = y %}{% endfor %}": "characters",
    "".join(f"{{% set a{i} = 'a' * 10000000 %}}" for i in range(1000)): "characters",
    # Padding
    "{{ '%10000000000d' % 1 }}": "pads",
    "{{ '%*d' % (10**9, 1) }}": "pads",
    "{{ '%.999999999f' % 1 }}": "pads",
    "{{ '%(a)1000000000s' % {'a': 1} }}": "pads",
    "{{ ('%1000000000s' | safe) % 'a' }}": "pads",
    "{{ '%1000000000s' | format('a') }}": "pads",
    "{{ '{:>1000000000}'.format('a') }}": "pads",
    "{{ '{:{}}'.format('a', 10**9) }}": "pads",
    "{{ '{a:>1000000000}'.format_map({'a': 1}) }}": "pads",
    "{{ '{0:{1}}'['format']('a', 10**9) }}": "pads",
    "{{ ('{0}' * 100000).format(messages[0].content) }}": "characters",
    "{{ 'a'.center(10**10) }}": "pads",
    "{{ ('a' | safe).center(10**9) }}": "pads",
    "{{ 'a' | center(10**10) }}": "pads",
    "{% filter center(10**9) %}a{% endfilter %}": "pads",
    "{{ ['a'] | map('center', 10**9) | list }}": "pads",
    "{{ 'a'.ljust(10**9) }}": "pads",
    "{{ 'a'.rjust(10**9, 'b') }}": "pads",
    "{{ 'a'.zfill(10**9) }}": "pads",
    "{{ '\t'.expandtabs(10**9) }}": "pads",
    "{{ '\t'.expandtabs(tabsize=10**9) }}": "pads",
    "{{ ('\t' * 100000).expandtabs(9999) }}": "characters",
    "{{ 1.5 | round(10**9, 'ceil') }}": "rounds",
    "{{ strftime_now('%1000000000Y') }}": "form of a date",
    "{{ strftime_now('%Y' * 10**6) }}": "form of a date",
    # Filters and methods that amplify
    "{{ ('a' * 100000).replace('a', 'b' * 100000) }}": "characters",
    "{{ ('a' * 100000).replace('', 'b' * 100000) }}": "characters",
    "{{ ('a' * 100000) | replace('a', 'b' * 100000) }}": "characters",
    "{{ ('b' * 100000).join(range(99999) | map('string')) }}": "characters",
    "{{ range(99999) | join('b' * 100000) }}": "characters",
    "{{ ('b' * 100000).join('a' * 100000) }}": "characters",
    "{{ [1] | batch(10**10, 'x') | list }}": "pads",
    "{{ [1] | slice(10**9) | list }}": "pads",
    "{{ ('a\n' * 100000) | indent(10**9) }}": "pads",
    "{{ ('a\n' * 100000) | indent(9999) }}": "characters",
    "{{ ('a\n' * 100000) | indent('b' * 100000) }}": "characters",
    "{{ ('a ' * 100000) | wordwrap(1, wrapstring='b' * 100000) }}": "characters",
    "{{ [[1]] | tojson(indent=10**9) }}": "indents",
    "{{ [1] | tojson(indent='a' * 1000000) }}": "indents",
    "{{ messages | tojson(separators=('b' * 100000, ':')) }}": "indents",
    "{{ ([range(1000) | list] * 1000) | sum(start=[]) }}": "number",
    "{{ 'a' | truncate(0, True, 'b' * 10**9) }}": "characters",
    "{{ ('a' * 100000).translate({97: 'b' * 100000}) }}": "cannot call str.translate",
    "{{ (1).to_bytes(10**9, 'big') }}": "cannot call int.to_bytes",
    "{{ 'a'.encode().center(10**9) }}": "cannot call str.encode",
    "{{ lipsum(n=10**6) }}": "undefined",
    # Looking again and again
    large("'b' in a"): "steps|characters",
    large("a == a ~ ''"): "steps|characters",
    large("a[1:]"): "characters",
    large("a | upper"): "characters",
    large("a.find('b')"): "steps|characters",
    large("a.split('a')"): "steps|characters",
    large("(a is in a)"): "steps|characters",
    "{% set x = range(99999) | list %}{% for i in x %}{{ x | sort | length }}{% endfor %}": "steps",
    "{% for i in range(99999) %}{{ range(99999).count('a') }}{% endfor %}": "steps",
    # The template itself
    "a" * 10**7: "characters",
    "{{ " + "(" * 5000 + "1" + ")" * 5000 + " + " * 5000 + "1 }}": "",
    "{% if 1 %}" * 3000 + "{% endif %}" * 3000: "",
    # What Jinja's sandbox keeps it from
    "{{ ''.__class__.__mro__ }}": "unsafe",
    "{% include '/etc/passwd' %}": "",
    "{{ messages.append(1) }}": "unsafe",
}

SCRIPT = """
import json, resource, sys
from punchcard.errors import ModelError
from punchcard.formats.template import render_template

resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
templates, messages = json.load(sys.stdin)
said = []
for template in templates:
    try:
        said.append([True, render_template(template, messages, None)[:100]])
    except ModelError as error:
        said.append([False, str(error)])
json.dump(said, sys.stdout)
"""


@pytest.fixture(scope="module")
def said() -> dict[str, tuple[bool, str]]:
    """What came of each template: all in one process, which has to live on."""
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT], input=json.dumps([list(HOSTILE), MESSAGES]), capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr[-2000:]
    return dict(zip(HOSTILE, json.loads(run.stdout), strict=True))


@pytest.mark.parametrize("template", HOSTILE, ids=lambda template: template[:60])
def test_a_hostile_template_is_an_error_that_says_why(template: str, said: dict[str, Any]) -> None:
    rendered, text = said[template]
    assert not rendered, text
    assert text.startswith("The model's chat template cannot be rendered: ")
    reasons = HOSTILE[template].split("|")
    assert any(reason in text for reason in reasons), text


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{% for m in messages %}[{{ m.role }}]{{ m.content | trim }}{% endfor %}", "[user]a[assistant]b"),
        ("{% for m in messages if m.role == 'user' %}{{ loop.index }}/{{ loop.length }}{% endfor %}", "1/1"),
        (
            "{% set n = namespace(t='') %}{% for m in messages %}{% set n.t = n.t ~ m.role[0] %}{% endfor %}{{ n.t }}",
            "ua",
        ),
        ("{% for m in messages[1:] %}{{ m.content }}{% endfor %}{{ messages[-1]['content'] }}", "bb"),
        ("{{ messages | map(attribute='role') | join(', ') }}", "user, assistant"),
        ("{{ (messages | selectattr('role', 'equalto', 'user') | list | first).content }}", "a "),
        (
            "{% macro show(m, s=':') %}{{ m.role }}{{ s }}{% endmacro %}{{ show(messages[0]) }}"
            "{{ show(messages[1], '-') }}",
            "user:assistant-",
        ),
        ("{% for k, v in {'a': 1, 'b': [2]}.items() %}{{ k }}={{ v | tojson }};{% endfor %}", "a=1;b=[2];"),
        ("{{ {'a': ['ü']} | tojson(indent=2) }}", '{\n  "a": [\n    "ü"\n  ]\n}'),
        ("{{ {'b': 1, 'a': '<'} | tojson(sort_keys=True, separators=(',', ':')) }}", '{"a":"<","b":1}'),
        ("{{ '<think>x</think> y'.split('</think>')[-1].lstrip() }}{{ 'a-b'.replace('-', '+') }}", "ya+b"),
        (
            "{{ '%s is %05.1f' % ('a', 2.25) }}{{ '{:>3}|{x}'.format('a', x=1) }}{{ '%d%%' | format(5) }}",
            "a is 002.2  a|15%",
        ),
        ("{{ 'a\nb' | indent(2) }}{{ 'ab' | center(4) }}{{ 'x' * 3 }}{{ [0] * 2 }}", "a\n  b ab xxx[0, 0]"),
        (
            "{% for i in range(5) %}{% if i == 1 %}{% continue %}{% endif %}{% if i == 3 %}{% break %}{% endif %}"
            "{{ i }}{% endfor %}",
            "02",
        ),
        (
            "{% for n in [1, [2, 3]] recursive %}{% if n is iterable %}({{ loop(n) }}){% else %}{{ n }}{% endif %}"
            "{% endfor %}",
            "1(23)",
        ),
        ("{% macro m() %}<{{ caller('x') }}>{% endmacro %}{% call(y) m() %}{{ y }}{% endcall %}", "<x>"),
        ("{% set x %}a{{ 1 + 1 }}{% endset %}{{ x }}{% filter upper %}b{% endfilter %}{{ 2 ** 10 }}", "a2B1024"),
        (
            "{{ [1, 2, 3, 4] | batch(3) | list }}{{ [3, 1] | sort }}{{ {'b': 1, 'a': 2} | dictsort }}",
            "[[1, 2, 3], [4]][1, 3][('a', 2), ('b', 1)]",
        ),
        ("{% if 'us' in messages[0].role and messages[0] is mapping and x is not defined %}y{% endif %}", "y"),
        (
            "{{ messages[0].get('name', 'none') }}{{ messages[0].role.upper() }}{{ none }}{{ true }}{{ x }}",
            "noneUSERNoneTrue",
        ),
    ],
)
def test_what_templates_do_still_works(template: str, text: str) -> None:
    messages = [{"role": "user", "content": "a "}, {"role": "assistant", "content": "b"}]
    assert render_template(template, messages, None) == text


def test_a_long_conversation_is_far_from_the_limits() -> None:
    template = (
        "{% for m in messages %}{% if loop.index0 == messages | length - 1 or m.role in ['user', 'assistant'] %}"
        "{{ '<|im_start|>' + m.role + '\n' + (m.content.split('</think>')[-1] | trim) + '<|im_end|>\n' }}{% endif %}"
        "{% endfor %}{{ tools | tojson(indent=4) }}"
    )
    messages = [{"role": ("user", "assistant")[i % 2], "content": "hello " * 100} for i in range(2000)]
    parameters = {"type": "object", "properties": {f"p{i}": {"type": "string"} for i in range(50)}}
    tools = [{"type": "function", "function": {"name": f"f{i}", "parameters": parameters}} for i in range(100)]
    text = render_template(template, messages, tools)
    assert text.count("<|im_start|>") == 2000 and len(text) > 10**6


def test_each_rendering_has_an_allowance_of_its_own() -> None:
    half = "{% for i in range(99999) %}{{ 'abc' }}{% endfor %}"
    for _ in range(4):
        assert len(render_template(half, [], None)) == 299997
    with pytest.raises(ModelError, match=f"{sandbox.MOST_STEPS:,} steps"):
        render_template(half * 4, [], None)
