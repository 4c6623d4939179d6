"""Integer arithmetic of indices as sums of products of names."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from launchwise.cli.new.tokens import closing, is_name
from launchwise.cuda_text.types import is_type

Term = tuple[str, ...]
Polynomial = dict[Term, int]
"""Product of names, sorted, to its factor; the empty product is the constant."""

Expand = Callable[[str], "Polynomial | None"]
"""What a name stands for; None where it stands for itself."""

_MOST_TERMS = 64
_DEEPEST = 40
_LONGEST = 2_000


def read(
    tokens: Sequence[str], expand: Expand, depth: int = 0, divisors: Expand | None = None
) -> Polynomial:
    """Polynomial of an expression; what is no sum or product becomes one name of its own.

    ``divisors`` is what names stand for in divisors and in distances of shifts; the same if None.
    """
    return _Reader(list(tokens), expand, depth, divisors).sum()


def add(one: Polynomial, other: Polynomial, sign: int = 1) -> Polynomial:
    """``one + sign * other``."""
    found = dict(one)
    for term, factor in other.items():
        found[term] = found.get(term, 0) + sign * factor
    return {term: factor for term, factor in found.items() if factor}


def multiply(one: Polynomial, other: Polynomial) -> Polynomial:
    """Product of two polynomials."""
    found: Polynomial = {}
    for left, factor in one.items():
        for right, other_factor in other.items():
            term = tuple(sorted((*left, *right)))
            found[term] = found.get(term, 0) + factor * other_factor
    return {term: factor for term, factor in found.items() if factor}


def divided(one: Polynomial, other: Polynomial) -> Polynomial | None:
    """``one / other`` where ``other`` is one product that divides all of ``one``; else None."""
    if len(other) != 1 or not all(other.values()):
        return None
    ((term, factor),) = other.items()
    found: Polynomial = {}
    for each, own in one.items():
        rest = list(each)
        for name in term:
            if name not in rest:
                return None
            rest.remove(name)
        if own % factor:
            return None
        found[tuple(rest)] = own // factor
    return found


def coefficient(one: Polynomial, name: str) -> Polynomial:
    """What ``name`` is multiplied by in a polynomial that is linear in it."""
    return {
        tuple(each for each in term if each != name): factor
        for term, factor in one.items()
        if term.count(name) == 1
    }


def names_of(one: Polynomial) -> set[str]:
    """Names of a polynomial."""
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


class _Reader:
    """A reader of one expression."""

    def __init__(
        self, tokens: list[str], expand: Expand, depth: int, divisors: Expand | None = None
    ) -> None:
        self.tokens, self.at = tokens, 0
        self.expand, self.depth = expand, depth
        self.divisors = divisors or expand

    def peek(self, ahead: int = 0) -> str:
        place = self.at + ahead
        return self.tokens[place] if place < len(self.tokens) else ""

    def sum(self) -> Polynomial:
        found = self.product()
        while self.peek() in ("+", "-"):
            sign = 1 if self.peek() == "+" else -1
            self.at += 1
            found = add(found, self.product(), sign)
        if self.at < len(self.tokens) or len(found) > _MOST_TERMS:
            self.at = len(self.tokens)
            return {(self.whole(),): 1}
        return found

    def whole(self) -> str:
        """The expression as one name, with what its own names stand for."""
        parts = []
        for token in self.tokens:
            known = self.expand(token) if is_name(token) else None
            parts.append(f"( {written(known)} )" if known else token)
        return " ".join(["?", *parts])[:_LONGEST]

    def product(self) -> Polynomial:
        found = self.factor()
        while True:
            operator = self.peek()
            shift = operator in ("<", ">") and self.peek(1) == operator
            if operator == "*":
                self.at += 1
                found = multiply(found, self.factor())
                if len(found) > _MOST_TERMS:
                    found = {(self.whole(),): 1}
            elif operator in ("/", "%") or shift:
                self.at += 2 if shift else 1
                found = self.opaque(operator, found, self.divisor())
            else:
                return found

    def divisor(self) -> Polynomial:
        """The factor that divides, or by which is shifted."""
        outside, self.expand = self.expand, self.divisors
        found = self.factor()
        self.expand = outside
        return found

    def opaque(self, operator: str, one: Polynomial, other: Polynomial) -> Polynomial:
        """Quotient, remainder or shift."""
        constant = other.get((), 0) if set(other) <= {()} else 0
        if operator == "<" and 0 <= constant < 32:
            return multiply(one, {(): 1 << constant})
        if operator == ">" and 0 < constant < 32:
            other, operator = {(): 1 << constant}, "/"
        exact = divided(one, other) if operator == "/" and other else None
        return (
            exact if exact is not None else {(f"? {written(one)} {operator} {written(other)}",): 1}
        )

    def factor(self) -> Polynomial:
        token = self.peek()
        if token in ("-", "+"):
            self.at += 1
            return multiply(self.factor(), {(): -1 if token == "-" else 1})
        if token == "(":
            end = closing(self.tokens, self.at)
            inside = self.tokens[self.at + 1 : end]
            self.at = end + 1
            if inside and all(_is_type_word(each) for each in inside) and self.starts():
                return self.factor()
            return self.nested(inside)
        if token[:1].isdigit():
            self.at += 1
            text = token.rstrip("uUlL").replace("'", "")
            return {(): int(text)} if text.isdigit() else {(f"? {token}",): 1}
        if token and is_name(token):
            return self.name()
        self.at += 1
        return {(f"? {token}",): 1}

    def starts(self) -> bool:
        """Whether a factor follows, so that what came before is a cast."""
        token = self.peek()
        return token == "(" or token[:1].isdigit() or (bool(token) and is_name(token))

    def nested(self, inside: Sequence[str]) -> Polynomial:
        if self.depth > _DEEPEST or not inside:
            return {("? " + " ".join(inside),): 1}
        return read(inside, self.expand, self.depth + 1, self.divisors)

    def name(self) -> Polynomial:
        """A name with its members, calls and brackets."""
        start = self.at
        token = self.peek()
        self.at += 1
        if _is_type_word(token) and self.peek() == "(":
            return self.factor()
        if self.peek() == "." and is_name(self.peek(1) or "0"):
            member = self.peek(1)
            self.at += 2
            if self.peek() not in ("(", "[", "."):
                return {(f"{token}.{member}",): 1}
        simple = self.at == start + 1
        while self.peek() in ("(", "[", ".", "->", "::"):
            simple = False
            if self.peek() in ("(", "["):
                self.at = closing(self.tokens, self.at) + 1
            else:
                self.at += 2
        if not simple:
            part = self.tokens[start : self.at]
            return {(_Reader(part, self.expand, self.depth, self.divisors).whole(),): 1}
        known = self.expand(token)
        return {(token,): 1} if known is None else known


def _is_type_word(token: str) -> bool:
    return token in ("const", "volatile", "unsigned") or is_type(token)
