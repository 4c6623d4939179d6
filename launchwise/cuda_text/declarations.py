"""What a CUDA text declares outside of functions: kernels, functions, types, variables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from tree_sitter import Node

from launchwise.cuda_text.syntax import (
    Declarator,
    child,
    declarator,
    declarators,
    has_word,
    plain,
    text_of,
    walk,
)
from launchwise.cuda_text.types import bare

_DEVICE = ("__device__", "__global__", "__constant__", "__shared__", "__managed__")
_TYPES = ("struct_specifier", "class_specifier", "union_specifier", "enum_specifier")
_PARAMETERS = (
    "parameter_declaration",
    "optional_parameter_declaration",
    "variadic_parameter_declaration",
)


@dataclass(frozen=True)
class Parameter:
    """A parameter of a function."""

    name: str  # empty where it has none
    written: str  # its type without qualifiers, ``*`` and ``&``
    pointers: int
    is_const: bool
    is_reference: bool
    is_other: bool  # whether it is a pack or a function
    text: str  # the whole of it


@dataclass(frozen=True)
class TemplateParameter:
    """A parameter of a template."""

    name: str
    kind: str  # type, value, pack, template or other
    text: str
    written: str = ""
    default: str = ""


@dataclass(frozen=True)
class Item:
    """A declaration outside of functions."""

    node: Node  # with its ``template <...>``
    inner: Node
    scope: tuple[str, ...]  # namespaces around it, '' for one without a name
    of_class: bool = False  # whether it is a member of a class

    @property
    def is_function(self) -> bool:
        """Whether it defines or declares a function."""
        return self.declarator.arguments is not None and (
            self.inner.type != "declaration" or len(declarators(self.inner)) == 1
        )

    @property
    def body(self) -> Node | None:
        """Braces of a function, or of a type."""
        return child(self.inner, "body") or child(self._type, "body")

    @cached_property
    def declarator(self) -> Declarator:
        """The first one; of a type or an alias its name."""
        found = declarators(self.inner)
        return found[0] if found else Declarator(text_of(child(self.inner, "name")), None)

    @property
    def made_by_macro(self) -> str:
        """``NAME(part)`` of a function whose name a macro makes; '' for others."""
        inner = child(child(self.inner, "declarator"), "declarator")
        return plain(inner) if inner is not None and inner.type == "function_declarator" else ""

    @property
    def is_kernel(self) -> bool:
        return has_word(self.inner, "__global__")

    @property
    def of_device(self) -> bool:
        """Whether it is marked for the GPU."""
        return has_word(self.inner, *_DEVICE)

    @property
    def is_constant(self) -> bool:
        """Whether it is ``const`` or ``constexpr``, or an enumeration."""
        return has_word(self.inner, "const", "constexpr") or self.inner.type == "enum_specifier"

    @property
    def _type(self) -> Node | None:
        """The structure or enumeration that it defines."""
        if self.inner.type in _TYPES:
            return self.inner
        kind = child(self.inner, "type")
        return kind if kind is not None and kind.type in _TYPES else None

    @property
    def structure(self) -> Node | None:
        """The type with braces that it defines; None for a function that returns one."""
        kind = self._type
        return kind if kind is not None and child(kind, "body") is not None else None

    @cached_property
    def names(self) -> frozenset[str]:
        """Names that it gives: of a function, a type and its enumerators, variables, an alias."""
        found = {each.name.rpartition("::")[2] for each in declarators(self.inner)}
        kind = self._type
        if kind is not None and (child(kind, "body") is not None or not found):
            found.add(text_of(child(kind, "name")))
            found |= {text_of(child(each, "name")) for each in walk(kind, "enumerator")}
        found.add(text_of(child(self.inner, "name")))
        if self.inner.type == "using_declaration":
            found |= {text_of(each) for each in walk(self.inner, "identifier")}
        if self.declarator.node is not None and self.declarator.node.type == "operator_name":
            found.add("operator")
        return frozenset(found - {""})

    @cached_property
    def template(self) -> tuple[TemplateParameter, ...]:
        """Parameters of its template; none where it is no template."""
        if self.node.type != "template_declaration":
            return ()
        listed = child(self.node, "parameters")
        nodes = listed.named_children if listed is not None else []
        return tuple(_template_parameter(each) for each in nodes if each.type != "comment")

    @property
    def is_template(self) -> bool:
        return bool(self.template)

    @property
    def instantiates(self) -> bool:
        """Whether it instantiates or specialises a template."""
        special = self.node.type == "template_declaration" and not self.template
        return special or self.inner.type == "template_instantiation"

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return parameters(self.declarator.arguments)


def parameters(listed: Node | None) -> tuple[Parameter, ...]:
    """Parameters between the brackets of a function."""
    nodes = listed.named_children if listed is not None else []
    found = tuple(_parameter(each) for each in nodes if each.type in _PARAMETERS)
    alone = len(found) == 1 and (found[0].written, found[0].pointers) == ("void", 0)
    return () if alone else found


def _parameter(node: Node) -> Parameter:
    named = declarator(child(node, "declarator"))
    written = bare(text_of(child(node, "type")))
    return Parameter(
        named.name,
        written,
        named.pointers + bool(named.sizes),
        has_word(node, "const", "__constant__"),
        named.is_reference,
        named.arguments is not None or node.type.startswith("variadic"),
        plain(node),
    )


def _template_parameter(node: Node) -> TemplateParameter:
    text, alone = plain(node), "template_template" in node.type
    if alone or node.type.startswith("variadic"):
        names = [text_of(each) for each in walk(node, "identifier", "type_identifier")]
        return TemplateParameter(names[-1] if names else "", "template" if alone else "pack", text)
    if "type_parameter" in node.type:
        own = next((each for each in node.named_children if each.type == "type_identifier"), None)
        name, default = text_of(child(node, "name") or own), text_of(child(node, "default_type"))
        return TemplateParameter(name, "type", text, "", default)
    named = declarator(child(node, "declarator"))
    kind = "other" if named.pointers or named.is_reference or named.arguments else "value"
    written, default = plain(child(node, "type")), text_of(child(node, "default_value"))
    return TemplateParameter(named.name, kind, text, written, default)


_INSIDE = ("namespace_definition", "linkage_specification", "declaration_list", "ERROR")
_ITEMS = (
    *("function_definition", "declaration", "template_instantiation", "alias_declaration"),
    *("type_definition", "using_declaration", "static_assert_declaration", *_TYPES),
    *("field_declaration", "friend_declaration", "expression_statement"),
)


def items(root: Node, members: bool = False) -> list[Item]:
    """Declarations outside of functions, in the order of the text, those of namespaces included.

    ``members`` says whether members of classes count, behind their class.
    """
    return list(_items(root, (), False, members))


def _items(node: Node, scope: tuple[str, ...], of_class: bool, members: bool) -> Iterator[Item]:
    for each in node.children:
        if each.type in _INSIDE:
            inner = scope
            if each.type == "namespace_definition":
                inner = (*scope, *text_of(child(each, "name")).replace(" ", "").split("::"))
            yield from _items(each, inner, of_class, members)
        elif each.type in _ITEMS or each.type == "template_declaration":
            own = each
            while own.type == "template_declaration":
                own = own.named_children[-1]
            found = Item(each, own, scope, of_class)
            yield found
            if members and found.structure is not None and found.structure.type in _TYPES[:3]:
                body = child(found.structure, "body")
                if body is not None:
                    yield from _items(body, scope, True, members)


def is_clear(root: Node) -> bool:
    """Whether no declaration outside of functions and classes is unreadable."""
    return not root.has_error or not any(
        each.type == "ERROR" or (each.type in _INSIDE and each.has_error and not is_clear(each))
        for each in root.children
    )
