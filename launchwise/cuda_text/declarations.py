"""What a CUDA text declares outside of functions, and the names that code reads and reaches."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
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
    name: str  # empty where it has none
    written: str  # its type without qualifiers, ``*`` and ``&``
    pointers: int
    is_const: bool
    is_reference: bool
    is_other: bool  # whether it is a pack or a function
    text: str  # the whole of it


@dataclass(frozen=True)
class TemplateParameter:
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
            # A specialization gives its template another meaning.
            found.add(text_of(child(kind, "name")).partition("<")[0].rpartition("::")[2])
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
    ``members`` says whether members of classes count, behind their class."""
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


IDENTIFIERS = ("identifier", "type_identifier", "field_identifier", "namespace_identifier")
_SKIPPED = (
    *("using_declaration", "namespace_alias_definition", "alias_declaration", "attribute"),
    *("goto_statement", "static_assert_declaration", "attribute_specifier"),
    *("attribute_declaration", "ms_declspec_modifier"),
)
_FUNCTIONS = ("function_definition", "template_declaration", "declaration", "field_declaration")


def identifiers(nodes: Iterable[Node]) -> set[str]:
    return {text_of(each) for node in nodes for each in walk(node, *IDENTIFIERS)}


def read_names(nodes: Iterable[Node], templates: Mapping[str, Sequence[bool]]) -> dict[str, bool]:
    """Names that are read as values or stand for types, in their order, to whether as types.
    Functions that are called, members and what belongs to a namespace are left out. ``templates``
    are names of templates to whether each of their parameters is a type."""
    found: dict[str, bool] = {}
    for node in nodes:
        for name, is_type in _read(node, templates):
            found[name] = found.get(name, False) or is_type
    return found


def _read(node: Node, templates: Mapping[str, Sequence[bool]]) -> Iterator[tuple[str, bool]]:
    waiting = [node]
    while waiting:
        here = waiting.pop()
        children = list(here.named_children)
        if here.type in _SKIPPED:
            continue
        if here.type in ("identifier", "type_identifier"):
            if name := text_of(here):  # The parser adds empty ones where code breaks off.
                yield name, here.type == "type_identifier"
        elif here.type == "ERROR":
            # Of what could not be read, names that look like macros.
            yield from ((each, False) for each in identifiers([here]) if each.isupper())
            continue
        elif here.type == "type_definition":
            children = [each for each in children if child(each, "body") is not None]
        elif here.type == "qualified_identifier":
            children = [each for each in children if each.child_count]
        elif here.type in ("template_function", "template_type"):
            # A name that stands alone is a value, unless the template takes a type there.
            types = templates.get(text_of(child(here, "name")), ())
            listed, children = child(here, "arguments"), []
            for place, each in enumerate(listed.named_children if listed is not None else ()):
                if name := _lone_name(each):
                    yield name, place < len(types) and types[place]
                else:
                    children.append(each)
        elif here.type == "call_expression":
            function = child(here, "function")
            if function is not None and function.type == "identifier":
                children.remove(function)
        waiting += reversed(children)


def _lone_name(node: Node) -> str:
    inner = child(node, "type") if node.type == "type_descriptor" else node
    alone = node.type != "type_descriptor" or node.named_child_count == 1
    is_name = inner is not None and inner.type in ("identifier", "type_identifier")
    return text_of(inner) if alone and is_name else ""


def declared_names(nodes: Iterable[Node]) -> set[str]:
    """Names that nodes declare: variables, parameters, functions, types, enumerators."""
    found: set[str] = set()
    for node in nodes:
        for each in walk(node):
            found |= {one.name.rpartition("::")[2] for one in declarators(each)}
            if each.type == "binary_expression":
                found |= _like_a_comparison(each)
            elif each.type == "structured_binding_declarator":
                found |= identifiers([each])
            elif each.type.endswith("type_parameter_declaration"):
                found |= {text_of(one) for one in walk(each, "type_identifier")}
            elif each.type in ("lambda_capture_initializer", "namespace_alias_definition"):
                found.add(text_of(each.named_children[0]))
            elif each.type in _NAMED:
                found.add(text_of(child(each, "name")))
    return found - {""}


def _like_a_comparison(node: Node) -> set[str]:
    """What ``a::tile<8> part = f();`` declares, whose tree may be that of two comparisons."""
    left, right = child(node, "left"), child(node, "right")
    inner = child(left, "left")
    if text_of(child(node, "operator")) != ">" or text_of(child(left, "operator")) != "<":
        return set()
    if inner is None or inner.type not in ("identifier", "qualified_identifier"):
        return set()
    named = child(right, "left") or child(right, "function") or right
    return {text_of(named)} if named is not None and named.type == "identifier" else set()


_NAMED = (
    *("struct_specifier", "class_specifier", "union_specifier", "enum_specifier", "enumerator"),
    *("alias_declaration", "namespace_definition", "concept_definition"),
)


def on_device(item: Item) -> list[Node]:
    """Parts of a declaration that device code may use: nothing of the host."""
    if item.is_function:
        device = item.of_device or (item.body is not None and has_word(item.inner, "constexpr"))
        return [item.node] if device else []
    structure = item.structure
    body = child(structure, "body")
    if structure is None or body is None or structure.type == "enum_specifier":
        return [item.node]
    kept = [each for each in body.named_children if not _is_of_host(each)]
    others = [each for each in item.node.named_children if each not in (structure, item.inner)]
    beside = [each for each in item.inner.named_children if each != structure]
    name = child(structure, "name")
    layout = [each for each in structure.named_children if each not in (body, name)]
    return [*kept, *others, *(beside if item.inner != structure else []), *layout]


def _is_of_host(member: Node) -> bool:
    inner = member.named_children[-1] if member.type == "template_declaration" else member
    if inner.type not in _FUNCTIONS or child(inner, "body") is None:
        return declarator(child(inner, "declarator")).arguments is not None
    return not has_word(inner, "__device__", "constexpr")


def reached(starts: Collection[Node], items: Sequence[Item]) -> list[Item]:
    """Declarations that some nodes name, those that these name, and so on; kernels are left out."""
    index: dict[str, list[int]] = {}
    for number, item in enumerate(items):
        for name in item.names if not item.is_kernel else ():
            index.setdefault(name, []).append(number)
    wanted: set[int] = set()
    seen: set[str] = set()
    waiting = identifiers(starts)
    while waiting:
        name = waiting.pop()
        seen.add(name)
        for number in {*index.get(name, ())} - wanted:
            wanted.add(number)
            waiting |= identifiers(on_device(items[number])) - seen
    return [items[number] for number in sorted(wanted)]
