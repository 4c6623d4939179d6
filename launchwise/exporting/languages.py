"""Answers in C, C++ and Python: names, expressions, templates, and one answer as macros."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from pprint import pformat
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from launchwise.base.expressions import parsed
from launchwise.base.literals import cpp_comment, cpp_text, visible
from launchwise.base.names import assigned
from launchwise.base.vectors import COMPARISONS, INFIX, nested
from launchwise.exporting.formulas import EXPORTED_FACTS, name_kinds
from launchwise.exporting.lookup import SQUARINGS
from launchwise.exporting.table import AnswerTable
from launchwise.learning.answers import BASES, NO_TIME, Answer
from launchwise.workloads.parts import Value
from launchwise.workloads.spec import Spec

KEYWORDS = frozenset(
    """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t
    class compl const constexpr const_cast continue decltype default delete do double dynamic_cast
    else enum explicit export extern false float for friend goto if inline int long mutable
    namespace new noexcept not not_eq nullptr operator or or_eq private protected public register
    reinterpret_cast return short signed sizeof static static_assert static_cast struct switch
    template this thread_local throw true try typedef typeid typename union unsigned using virtual
    void volatile wchar_t while xor xor_eq
    """.split()  # noqa: SIM905 (a list of 90 lines is harder to read)
)

_TAKEN = re.compile(
    r"std|detail|launchwise|linux|unix|i386|offsetof|NULL|EOF"
    r"|(U?INT|S?SIZE|PTRDIFF|WCHAR|WINT|SIG_ATOMIC)\w*_(MAX|MIN|WIDTH|C)"
)
"""Namespaces of the header, macros of compilers and of the headers that it includes."""


def cpp_name(name: str) -> str:
    """A name that C++ allows: different ones stay different."""
    found = re.sub(r"\W", "_", name, flags=re.ASCII)
    found = f"_{found}" if found[:1].isdigit() else found
    stem = found.rstrip("_")
    return f"{found}_" if stem in KEYWORDS or _TAKEN.fullmatch(stem) else found


def cpp_values(values: Sequence[Value]) -> str:
    """Numbers and texts in braces."""
    listed = (cpp_text(each) if isinstance(each, str) else str(each) for each in values)
    return f"{{{', '.join(listed)}}}"


_FUNCTIONS = {
    **{"//": "quotient", "%": "remainder", "**": "power"},
    **{"min": "least", "max": "most", "abs": "absolute"},
    **{name: name for name in ("ceil_div", "round_up", "next_power_of_2")},
}
"""Operator or function to what computes it in C++."""

_LOGIC = ("and", "or", "not", *COMPARISONS)


def python_expression(text: str, derived: Collection[str]) -> str:
    """An expression in Python: names are keys of ``names``, derived names functions of ``names``.

    ``derived``: derived names: keys of ``_DERIVED``.
    """

    class Names(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.AST:
            text = f"_DERIVED[{node.id!r}](names)" if node.id in derived else f"names[{node.id!r}]"
            return ast.parse(text, mode="eval").body

        def visit_Call(self, node: ast.Call) -> ast.AST:
            assert isinstance(node.func, ast.Name)
            own = ("ceil_div", "round_up", "next_power_of_2")
            name = f"_{node.func.id}" if node.func.id in own else node.func.id
            function = ast.Name(name, ast.Load())
            return ast.Call(function, [self.visit(one) for one in node.args], [])

    return ast.unparse(Names().visit(parsed(text)))


def cpp_expression(text: str, members: Mapping[str, str], quoted: Callable[[str], str]) -> str:
    """An expression in C++, over integers of 64 bits and texts.

    ``members``: name to what stands for it in C++.
    ``quoted``: function that gives a text as a literal.
    """

    def write(node: Any) -> str:
        match node:
            case ["name", name]:
                return members[name]
            case str():
                return quoted(node)
            case ["if", test, body, other]:
                return f"({write(test)} ? {write(body)} : {write(other)})"
            case ["and" | "or" as sign, *parts]:
                return f"({(' && ' if sign == 'and' else ' || ').join(map(condition, parts))})"
            case ["not" | "negative" as sign, operand]:
                return f"({'!' if sign == 'not' else '-'}{write(operand)})"
            case [sign, left, right] if sign in INFIX:
                return f"({write(left)} {sign} {write(right)})"
            case [sign, *parts] if sign in _FUNCTIONS:
                return f"detail::{_FUNCTIONS[sign]}({', '.join(map(argument, parts))})"
            case int() | float():
                return repr(+node)  # a truth value counts as 0 or 1
        raise ValueError(f"{node[0]!r} cannot be written in C++")

    def condition(node: Any) -> str:
        is_one = isinstance(node, list) and node[0] in _LOGIC
        return write(node) if is_one else f"bool({write(node)})"

    def argument(node: Any) -> str:
        # Conditions count as 0 or 1.
        return f"std::int64_t({write(node)})"

    return write(nested(text))


FILTERS: dict[str, Callable[..., str]] = {
    "comment": cpp_comment,
    "name": cpp_name,
    "number": lambda value: repr(0 if value is None else value),
    "pformat": pformat,
    "repr": repr,
    "text": cpp_text,
    "values": cpp_values,
}


def rendered(
    template: str,
    table: AnswerTable | Mapping[str, Any],
    formula: Callable[[str], str] = str,
    **values: Any,
) -> str:
    """A file of ``templates/`` for a table of answers.

    ``formula``: function, and filter, that writes an expression of the workload in the file's
        language.
    """
    environment = Environment(
        loader=PackageLoader("launchwise.exporting"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {**FILTERS, "formula": formula}
    found = environment.get_template(template)
    return found.render(table=table, formula=formula, **values)


def cpp_header(table: AnswerTable) -> str:
    """The header: ``launchwise::<study>::recommend(device, problem)``."""
    members = {name: f"asked.{cpp_name(name)}" for name in table.parameters}
    conditions = [cpp_expression(each, members, cpp_text) for each in table.limits.texts]
    # A number has at most 20 characters.
    lengths = [
        len(one.kernel.encode()) + sum(len(each.encode()) + 22 for each in one.arguments) + 1
        for kernels in table.formulas.launches.values()
        for one in kernels
    ]

    def view(text: str) -> str:
        return f"std::string_view({cpp_text(text)})"

    members |= {name: f"chosen.{cpp_name(name)}" for name in table.tunables}
    members |= {name: f"derived_{cpp_name(name)}()" for name, _ in table.formulas.derived}
    members |= {name: f"gpu.{name}" for name in EXPORTED_FACTS}
    return rendered(
        "answers.hpp",
        table,
        formula=lambda text: cpp_expression(
            text, members, lambda one: f"std::string_view({cpp_text(one)})"
        ),
        conditions=conditions,
        kinds=name_kinds(table.spec),
        most_kernels=max([1, *map(len, table.formulas.launches.values())]),
        longest_name=max([1, *lengths]),
        facts=EXPORTED_FACTS,
        squarings=SQUARINGS,
    )


def macros_text(answer: Answer, spec: Spec) -> str:
    """Macros of the first suggestion: numbers as they are, the variant by its name. Kernels of a
    workload without host code are built with macros that are named as its tunables, and with
    ``macros`` of the spec. Host code has names of its own, and macros are in capitals."""
    configuration = answer.suggestions[0].configuration
    problem = assigned(answer.problem)
    about = cpp_comment(f"{problem} on {answer.gpu}: {BASES[answer.basis]}")
    lines = [f"// {about}", "#pragma once"]
    for name, value in configuration.items():
        if isinstance(value, str) and (name == "variant" or spec.has_host_code):
            lines.append(f"#define {macro_name(name)}_{macro_name(value)} 1")
        else:
            lines.append(_defined(macro_name(name) if spec.has_host_code else name, value))
    whole = {**spec.neutral, **configuration}
    for name, text in spec.macros.items():
        lines.append(_defined(name, spec.value(text, answer.problem, whole)))
    return "\n".join(lines) + "\n"


def _defined(name: str, value: Any) -> str:
    # A text of the spec neither ends the line nor goes on in the next one.
    text = visible(" ".join(str(value).split())).rstrip("\\")
    return f"#define {name} {text}"


def macro_name(name: str) -> str:
    """A name in capitals, of letters, digits and underscores."""
    return re.sub(r"\W", "_", name, flags=re.ASCII).upper()


def python_module(table: AnswerTable) -> str:
    derived = dict(table.formulas.derived)
    return rendered(
        "answers.py.txt",
        table,
        formula=lambda text: f"lambda names: {python_expression(text, derived)}",
        measured={one.name: one.measured for one in table.devices},
        reasons=list(dict.fromkeys(one.but_libraries(one.why) for one in table.entries)),
        tested=["; ".join(table.said(one)) for one in table.devices],
        facts=EXPORTED_FACTS,
        no_time=NO_TIME,
        squarings=SQUARINGS,
        devices=[one.names for one in table.devices],
        conditions=" and ".join(f"({one})" for one in table.limits.texts) or "True",
    )
