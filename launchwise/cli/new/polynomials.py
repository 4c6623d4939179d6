"""Integer arithmetic of indices as sums of products of names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from tree_sitter import Node

from launchwise.cuda_text.syntax import child, parse, text_of, walk
from launchwise.cuda_text.types import is_type

Term = tuple[str, ...]
Polynomial = dict[Term, int]
"""Product of names, sorted, to its factor; the empty product is the constant."""

Expand = Callable[[Node, bool], "Polynomial | None"]
"""What a name, a member or a call stands for; None where it stands for itself.

The second argument says whether it stands in a divisor or in the distance of a shift.
"""

_MOST_TERMS, _MOST_FACTORS, _DEEPEST, _LONGEST = 64, 16, 40, 2_000
_CASTS = ("static_cast", "reinterpret_cast", "const_cast", "dynamic_cast")


def add(one: Polynomial, other: Polynomial, sign: int = 1) -> Polynomial:
    """``one + sign * other``."""
    found = dict(one)
    for term, factor in other.items():
        found[term] = found.get(term, 0) + sign * factor
    return {term: factor for term, factor in found.items() if factor}


def multiply(one: Polynomial, other: Polynomial) -> Polynomial:
    found: Polynomial = {}
    for left, factor in one.items():
        for right, other_factor in other.items():
            term = tuple(sorted(left + right))
            found[term] = found.get(term, 0) + factor * other_factor
    return {term: factor for term, factor in found.items() if factor}


def divided(one: Polynomial, other: Polynomial) -> Polynomial | None:
    """``one / other`` where ``other`` is one product that divides all of ``one``; else None."""
    if len(other) != 1 or 0 in other.values():
        return None
    ((term, factor),) = other.items()
    found: Polynomial = {}
    for each, own in one.items():
        rest = Counter(each)
        rest.subtract(term)
        if own % factor or min(rest.values(), default=0) < 0:
            return None
        found[tuple(sorted(rest.elements()))] = own // factor
    return found


def coefficient(one: Polynomial, name: str) -> Polynomial:
    """What ``name`` is multiplied by in a polynomial that is linear in it."""
    return {
        tuple(each for each in term if each != name): factor
        for term, factor in one.items()
        if term.count(name) == 1
    }


def names_of(one: Polynomial) -> set[str]:
    return {name for term in one for name in term}


def written(one: Polynomial) -> str:
    """A polynomial as an expression."""
    text = ""
    for term, factor in sorted(one.items(), key=lambda pair: (not pair[0], pair[1] < 0)):
        size = abs(factor)
        product = " * ".join([*term, *([str(size)] if size != 1 or not term else [])])
        sign = "-" if factor < 0 else "+"
        text += f" {sign} {product}" if text else product if factor > 0 else f"-{product}"
    return text or "0"


def expression(text: str) -> Node:
    """The tree of an expression of C++."""
    root = parse(f"auto value = {text};")
    return child(next(walk(root, "init_declarator"), root), "value") or root


def uncast(node: Node) -> Node:
    """What stands in brackets, casts and constructors of numbers."""
    while True:
        inner: Node | None = None
        if node.type == "parenthesized_expression" and node.named_child_count == 1:
            inner = node.named_children[0]
        elif node.type == "cast_expression":
            inner = child(node, "value")
        elif node.type == "call_expression":
            called, given = child(node, "function"), child(node, "arguments")
            by_name = called is not None and called.type == "template_function"
            name = text_of(child(called, "name")) if by_name else text_of(called)
            casts = (by_name and name in _CASTS) or is_type(name)
            if casts and given is not None and given.named_child_count == 1:
                inner = given.named_children[0]
        if inner is None:
            return node
        node = inner


def read(node: Node, expand: Expand, in_divisor: bool = False, depth: int = 0) -> Polynomial:
    """Polynomial of an expression; what is no sum or product becomes one name of its own."""
    node = uncast(node)

    def of(name: str, divides: bool = in_divisor) -> Polynomial:
        part = child(node, name)
        return read(part, expand, divides, depth + 1) if part is not None else {}

    if depth > _DEEPEST:
        return {(f"? {text_of(node)[:_LONGEST]}",): 1}
    operator = text_of(child(node, "operator"))
    if node.type == "number_literal":
        text = text_of(node).rstrip("uUlL").replace("'", "")
        number = int(text) if text.isdigit() else None
        return {(f"? {text_of(node)}",): 1} if number is None else {(): number} if number else {}
    if node.type == "unary_expression" and operator in ("+", "-"):
        return multiply(of("argument"), {(): -1 if operator == "-" else 1})
    if node.type == "binary_expression" and operator in ("/", "%", "<<", ">>"):
        return _opaque(operator, of("left"), of("right", True))
    if node.type == "binary_expression" and operator in ("+", "-", "*"):
        left, right = of("left"), of("right")
        sign = -1 if operator == "-" else 1
        found = multiply(left, right) if operator == "*" else add(left, right, sign)
        if len(found) <= _MOST_TERMS and max(map(len, found), default=0) <= _MOST_FACTORS:
            return found
    elif node.type in ("identifier", "field_expression", "call_expression"):
        known = expand(node, in_divisor)
        if known is not None:
            return known
        owner = child(node, "argument")
        member = owner is not None and owner.type == "identifier" and "->" not in text_of(node)
        if node.type == "identifier" or member:
            return {("".join(text_of(node).split()),): 1}
    return {(_whole(node, expand, in_divisor),): 1}


def _whole(node: Node, expand: Expand, in_divisor: bool) -> str:
    """An expression as one name, with what its own names stand for."""
    parts = []
    for each in walk(node):
        if each.child_count == 0:
            known = expand(each, in_divisor) if each.type == "identifier" else None
            parts.append(f"( {written(known)} )" if known else text_of(each))
    return " ".join(["?", *parts])[:_LONGEST]


def _opaque(operator: str, one: Polynomial, other: Polynomial) -> Polynomial:
    """Quotient, remainder or shift."""
    constant = other.get((), 0) if set(other) <= {()} else 0
    if operator == "<<" and 0 <= constant < 32:
        return multiply(one, {(): 1 << constant})
    if operator == ">>" and 0 < constant < 32:
        other, operator = {(): 1 << constant}, "/"
    exact = divided(one, other) if operator == "/" else None
    return exact if exact is not None else {(f"? {written(one)} {operator} {written(other)}",): 1}
