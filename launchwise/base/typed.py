"""Reads YAML files as typed models: strict keys, one-line errors, limits, overrides.

Ten lines of aliases may stand for 10^9 values, and PyYAML's composer in C has no limit of depth:
it overflows the stack of the process. So a scan without recursion goes first, and keeps the limits
before anything is built.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import textwrap
from collections.abc import Iterable, Mapping
from copy import deepcopy
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar, get_args

import yaml
from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler, ValidationError
from pydantic_core import CoreSchema, ErrorDetails

from launchwise.base.errors import UserError, unknown
from launchwise.base.literals import LARGEST
from launchwise.base.storage import read_text


class Strict(BaseModel):
    """Immutable model that rejects unknown keys; a text below a field is its description."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """JSON schema with the texts below fields, which no other use of a model reads."""
        schema = handler(core_schema)
        properties = handler.resolve_ref_schema(schema).get("properties", {})
        for name, text in texts_below(cls).items():
            properties[name]["description"] = text
        return schema


def texts_below(owner: type) -> dict[str, str]:
    """Texts below what a class and those that it descends from assign, by its name, in one line."""
    found: dict[str, str] = {}
    for each in reversed(owner.__mro__):
        if each.__module__.partition(".")[0] == owner.__module__.partition(".")[0]:
            body = ast.parse(textwrap.dedent(inspect.getsource(each))).body[0].body  # type: ignore[attr-defined]
            for entry, text in pairwise(body):
                match entry, text:
                    case (
                        (ast.AnnAssign(ast.Name(name)) | ast.Assign([ast.Name(name)])),
                        ast.Expr(ast.Constant(str(said))),
                    ):
                        found[name] = " ".join(said.split())
    return found


Model = TypeVar("Model", bound=BaseModel)

# The parser in C, ten times as fast, where PyYAML has it.
_SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_TAG = "tag:yaml.org,2002:"


class _Loader(_SafeLoader):
    """YAML loader that rejects repeated keys and integers beyond 64 bits; dates are texts."""


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict[Any, Any]:
    seen: set[Any] = set()
    for key_node, _ in node.value:
        if key_node.tag == f"{_TAG}merge":
            continue
        if not isinstance(key_node, yaml.ScalarNode):
            raise refused("a key must be a name", key_node)
        key = loader.construct_object(key_node)
        if key in seen:
            raise refused(f"{key!r} is given twice", key_node)
        seen.add(key)
    loader.flatten_mapping(node)
    return loader.construct_mapping(node, deep=True)


def _integer(loader: _Loader, node: yaml.ScalarNode) -> int:
    try:
        number: int = loader.construct_yaml_int(node)
    except ValueError:
        # More digits than Python reads, or none: 0x.
        number = LARGEST + 1
    if abs(number) > LARGEST:
        raise refused(f"is no integer up to {LARGEST}", node)
    return number


def _real(loader: _Loader, node: yaml.ScalarNode) -> float:
    try:
        number: float = loader.construct_yaml_float(node)
    except (ValueError, OverflowError):
        raise refused("is no number", node) from None
    return number


_Loader.add_constructor(f"{_TAG}map", _mapping)
_Loader.add_constructor(f"{_TAG}int", _integer)
_Loader.add_constructor(f"{_TAG}float", _real)
_Loader.add_constructor(f"{_TAG}timestamp", _Loader.construct_yaml_str)

_KEPT_BYTES = 1 << 17


def _built(text: str) -> Any:
    check_limits(text, _SafeLoader)
    return yaml.load(text, Loader=_Loader)


_kept = lru_cache(maxsize=256)(_built)


def read_yaml(path: str | Path) -> Any:
    """Read a YAML file in which no key occurs twice, within :func:`check_limits`. The same text is
    parsed once per process: specs are read again and again. Raises UserError when it is missing, is
    not valid YAML, repeats a key or leaves a limit (the line is named)."""
    text = read_text(path, MOST_BYTES)
    try:
        # A copy: who reads a file may change what it says.
        return deepcopy(_kept(text)) if len(text) < _KEPT_BYTES else _built(text)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else "?"
        beyond = isinstance(error, BeyondLimitError)
        message = error.problem if beyond else f"not valid YAML: {error.problem}"
        raise UserError(path, f"line {line}", str(message)) from error
    except yaml.YAMLError as error:
        raise UserError(path, "", f"not valid YAML: {error}") from error


def yaml_text(content: Mapping[str, Any]) -> str:
    """A mapping as YAML, keys in their order; lists and innermost mappings are one line each."""
    plain = json.loads(json.dumps(content))  # The same list twice would be an alias.
    return yaml.safe_dump(
        plain, sort_keys=False, default_flow_style=None, width=100, allow_unicode=True
    )


def read_yaml_mapping(path: str | Path) -> dict[Any, Any]:
    """Read a YAML file of keys and values (see :func:`read_yaml`). Raises UserError also when it
    holds something else, or nothing."""
    found = read_yaml(path)
    if not isinstance(found, dict):
        raise UserError(path, "", "must map keys to values, such as seed: 1")
    return found


def validated(model: type[Model], value: Any, where: str | Path) -> Model:
    """``value`` as ``model``; raises a :class:`UserError` for the first problem."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise UserError(where, *first_problem(error, model, value)) from error


def first_problem(error: ValidationError, model: type[BaseModel], value: Any) -> tuple[str, str]:
    """Key and message of the first problem that pydantic found in ``value``."""
    problem, *others = error.errors()
    problem = _misspelt(problem, others)
    kind, location = problem["type"], _keys(problem, value)
    key = ".".join(location)
    beside = _models_at(model, problem["loc"][: -1 if kind == "extra_forbidden" else None])
    if kind == "extra_forbidden":
        allowed = {name for candidate in beside for name in candidate.model_fields}
        return key, unknown("key", location[-1], allowed)
    if kind == "missing":
        return key, "is missing"
    if kind in ("union_tag_not_found", "union_tag_invalid"):
        tag = str(problem["ctx"]["discriminator"]).strip("'")
        allowed = {name for candidate in beside for name in _tags(candidate, tag)}
        if kind == "union_tag_not_found":
            known = {name for candidate in beside for name in candidate.model_fields}
            if strange := next((each for each in problem["input"] if each not in known), None):
                return f"{key}.{strange}", unknown("key", strange, known)
            return f"{key}.{tag}", f"is missing (allowed: {', '.join(sorted(allowed))})"
        return f"{key}.{tag}", unknown(tag, problem["ctx"]["tag"], allowed)
    if kind == "value_error":
        return key, str(problem["msg"]).removeprefix("Value error, ")
    if problem["input"] is None:
        return key, "is empty"
    # A value that fits no member of a union is reported once for every member.
    same = [problem, *(other for other in others if _keys(other, value) == location)]
    demands = dict.fromkeys(_INSIDE.sub("", str(each["msg"])) for each in same)
    demand = " or ".join(demands).replace("valid dictionary", "mapping")
    subject = "its name " if problem["loc"][-1:] == ("[key]",) else ""
    got = repr(problem["input"])
    return key, f"{subject}must {demand} (got {got if len(got) <= 60 else f'{got[:59]}…'})"


def _misspelt(problem: ErrorDetails, others: Iterable[ErrorDetails]) -> ErrorDetails:
    """The unknown key beside a missing one, which it is probably meant to be."""
    if problem["type"] != "missing":
        return problem
    above = problem["loc"][:-1]
    beside = (each for each in others if each["type"] == "extra_forbidden")
    return next((each for each in beside if each["loc"][:-1] == above), problem)


_INSIDE = re.compile(r"^\w+ should | or instance of \w+$")  # Words of pydantic's inside


def _keys(problem: Mapping[str, Any], value: Any) -> list[str]:
    """Keys that lead to a problem, without the marks that unions and validators put between."""
    keys = []
    for place, part in enumerate(problem["loc"], start=1):
        inside = range(len(value)) if isinstance(value, list | tuple) else value
        if isinstance(inside, Mapping | range) and part in inside:
            value = value[part]
        elif problem["type"] != "missing" or place < len(problem["loc"]):
            continue
        keys.append(str(part))
    return keys


def _models_at(model: Any, location: Iterable[Any]) -> list[type[BaseModel]]:
    """Models that a value at ``location`` inside ``model`` may have, as far as types tell."""
    models: list[type[BaseModel]] = [model]
    for part in location:
        tagged = [each for each in models if any(part in _tags(each, n) for n in each.model_fields)]
        fields = [each.model_fields[part] for each in models if part in each.model_fields]
        if fields:
            models = [inner for field in fields for inner in models_in(field.annotation)]
        elif len(models) > 1 and tagged:
            models = tagged
    return models


def _tags(model: type[BaseModel], field: str) -> tuple[Any, ...]:
    """Values of a field that tells the members of a union apart."""
    return get_args(model.model_fields[field].annotation) if field == "kind" else ()


def models_in(annotation: Any) -> list[Any]:
    """Models that a type is made of: itself, members of its unions, what its containers hold."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [
        found for argument in getattr(annotation, "__args__", ()) for found in models_in(argument)
    ]


MOST_BYTES = 4 << 20  # Longest YAML file, bytes
MOST_VALUES = 200_000  # Most keys and values of a YAML file, with those that aliases stand for
MOST_LEVELS = 50  # Most mappings and lists inside each other


class BeyondLimitError(yaml.MarkedYAMLError):
    """Well-formed YAML that is refused here."""


def refused(message: str, event: Any) -> BeyondLimitError:
    """Error at the line where a node or an event of PyYAML begins."""
    return BeyondLimitError(problem=message, problem_mark=event.start_mark)


def check_limits(text: str, loader: Any) -> None:
    """Insist that a YAML text stays within the limits, and names no tag. Raises
    yaml.MarkedYAMLError with the line where it is no YAML, or leaves a limit."""
    # Values below each open collection; the first entry is the file.
    counts, anchors, known, levels = [0], [""], dict[str, int](), 0
    for event in yaml.parse(text, Loader=loader):
        match event:
            case yaml.CollectionStartEvent():
                _insist_on_no_tag(event)
                counts.append(1)
                anchors.append(event.anchor or "")
                levels = max(levels, len(counts) - 1)
                if event.anchor:
                    # Open: an alias to it would be endless.
                    known[event.anchor] = 0
            case yaml.CollectionEndEvent():
                count, anchor = counts.pop(), anchors.pop()
                if anchor:
                    known[anchor] = count
                counts[-1] += count
            case yaml.ScalarEvent():
                _insist_on_no_tag(event)
                counts[-1] += 1
                if event.anchor:
                    known[event.anchor] = 1
            case yaml.AliasEvent() if event.anchor in known:
                if known[event.anchor] == 0:
                    raise refused(f"*{event.anchor} stands inside itself", event)
                counts[-1] += known[event.anchor]
        if levels > MOST_LEVELS:
            raise refused(f"is nested more than {MOST_LEVELS} levels deep", event)
        if counts[-1] > MOST_VALUES:
            raise refused(f"stands for more than {MOST_VALUES:,} values, aliases included", event)


def _insist_on_no_tag(event: Any) -> None:
    if event.tag is not None:
        raise refused(f"{event.tag} is a tag: leave it out", event)


def merged(
    below: Mapping[str, Any], above: Mapping[str, Any], null_removes: bool = True
) -> dict[str, Any]:
    """``below`` overridden by ``above``; neither is changed. Mappings are merged key by key,
    ``None`` takes a key away, and everything else, lists too, is replaced (JSON Merge Patch, RFC
    7386)."""
    found = dict(below)
    for key, value in above.items():
        if value is None and null_removes:
            found.pop(key, None)
        elif isinstance(value, Mapping):
            inner = found.get(key)
            found[key] = merged(inner if isinstance(inner, Mapping) else {}, value, null_removes)
        else:
            found[key] = value
    return found


def laid_over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Settings files as Snakemake merges them: as :func:`merged`, but ``None`` is a value."""
    return merged(below, above, null_removes=False)
