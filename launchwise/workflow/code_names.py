"""Names that are known to have no effects on results: functions, methods, decorators, errors."""

from __future__ import annotations


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


PURE_CALLS = _names(
    """
    abs all any bool dict enumerate float format frozenset int isinstance len list max min
    range repr reversed round set sorted str sum tuple type zip Path unknown
    """
)
"""Functions without side effects, as far as values are formatted; ``unknown`` makes a message."""

PURE_METHODS = _names(
    """
    as_posix capitalize count format items join keys lower lstrip partition relative_to
    removeprefix removesuffix replace rpartition rstrip split splitlines startswith endswith
    strip title upper values with_suffix total_seconds
    """
)
"""Methods of texts, collections and paths that change nothing."""

PLAIN_DECORATORS = _names(
    """
    abstractmethod cache cached_property classmethod contextmanager dataclass final
    lru_cache overload override property runtime_checkable setter staticmethod
    total_ordering wraps
    """
)
"""Decorators that read no annotations of functions and register nothing."""

PURE_AT_IMPORT = _names(
    """
    re.compile logging.getLogger field Field TypeVar ParamSpec NewType MappingProxyType cast
    np.dtype np.log np.log1p np.float32 np.float64 math.log math.log2 math.sqrt
    StringConstraints BeforeValidator AfterValidator PlainSerializer ConfigDict POINTER
    itertools.count threading.Lock get_args timedelta Decimal fields namedtuple defaultdict
    Counter pd.StringDtype pa.Check pa.Check.gt pa.Check.ge
    """
)
"""Functions of other libraries that a module may call when it is imported, without effects."""

PURE_BASES = _names(
    """
    ABC BaseException BaseModel Enum Exception Generic IntEnum NamedTuple NodeTransformer
    NodeVisitor Protocol StrEnum Structure Thread TypedDict local object GenerateJsonSchema
    SafeDumper SafeLoader MarkedYAMLError _SafeLoader
    """
)
"""Classes of other libraries that note nothing of the classes that inherit from them."""

OTHER_ERRORS = _names(
    """
    ArithmeticError AssertionError AttributeError FileNotFoundError ImportError MemoryError
    OSError OverflowError RecursionError SyntaxError UnicodeDecodeError UnicodeError
    ZeroDivisionError CalledProcessError InvalidExpression TimeoutExpired ValidationError
    JSONDecodeError
    """
)
"""More errors that no ``UserError`` is one of."""
