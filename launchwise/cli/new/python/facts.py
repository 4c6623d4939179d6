"""What a run of a Python file says: the child writes it as JSON, the parent reads it."""

from __future__ import annotations

from dataclasses import dataclass, field

TYPES: tuple[str, ...] = ("float16", "bfloat16", "float32", "float64", "int1")
TYPES += ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
"""Types of Triton's language."""

CPU_SECONDS = 6  # Most CPU time of the child
STATEMENT_SECONDS = (
    1.0  # Most CPU time of a statement of the file, and of an argument of a decorator
)

Literal = bool | int | float | str | None
Ordered = dict[str, None]  # Names, each once, in the order in which they are met


@dataclass
class Use:
    """How a kernel uses a pointer."""

    is_loaded: bool = False
    is_stored: bool = False
    atomics: bool = False
    stored_as: str = ""  # Type that a value is converted to before it is stored.
    indexes: Ordered = field(default_factory=dict)  # Pointers whose address it is loaded for.
    sizes: list[str] = field(default_factory=list)  # Of what it points to; '' for unknown ones.
    strides: dict[str, int] = field(default_factory=dict)  # What indices are multiplied by, to
    # their dimension.
    is_bare: bool = True  # Whether only the pointer itself is an address.

    @property
    def role(self) -> str:
        if self.atomics or (self.is_loaded and self.is_stored):
            return "inout"
        return "output" if self.is_stored else "input"


@dataclass
class Reading:
    """What runs of a kernel did; names are those of its parameters."""

    uses: dict[str, Use] = field(default_factory=dict)
    bounding: Ordered = field(default_factory=dict)  # Compared, a divisor, or an end of a loop.
    counted: Ordered = field(default_factory=dict)  # A range, loop or bound of an index ends there.
    texts: dict[str, Ordered] = field(default_factory=dict)  # Compared with these texts.
    bounds: list[Ordered] = field(default_factory=list)  # Per axis, what its index is below,
    steps: list[Ordered] = field(default_factory=list)  # and what it is multiplied by.
    held: dict[str, Ordered] = field(default_factory=dict)  # Blocks that nothing steps by, to what
    # bounds their elements.
    has_dot: bool = False
    has_tiles: bool = False  # A pointer of two ranges.
    has_loop: bool = False
    notes: dict[str, int] = field(default_factory=dict)  # What no launch here can do, to its line.


@dataclass
class Given:
    """What a launch gives for a parameter."""

    text: str | None = None  # Expression over problem parameters,
    problem: str = ""  # or why there is none, with the line.
    literal: Literal = None
    is_own: bool = False  # A parameter of the host's function,
    is_free: bool = False  # or an expression that reads one.
    is_none: bool = False
    asks: str = ""  # "1" or "0" for `x is not None`.
    type: str = ""  # Such as tl.float16.
    guessed: str = ""  # The tensor whose stride it is, where its sizes are guessed.
    is_tensor: bool = False
    shape: list[str | None] = field(default_factory=list)  # Of a tensor; None: not said.
    dtype: str = ""
    question: str = ""  # Of its shape.


@dataclass
class Host:
    """The launch of a kernel in the host code of its file."""

    is_there: bool = False
    given: dict[str, Given] = field(default_factory=dict)
    grid: list[str] = field(default_factory=list)
    problem: str = ""  # Why there is no grid.


@dataclass
class Tuning:
    """Configurations and derived constexprs of a kernel."""

    configs: list[dict[str, int | str]] = field(default_factory=list)  # All have the same names.
    key: list[str] = field(default_factory=list)  # Arguments whose change asks to tune anew.
    macros: dict[str, str] = field(default_factory=dict)
    given: list[str] = field(default_factory=list)  # Macros that ask whether an array is given.
    zeroed: list[str] = field(default_factory=list)  # Arguments set to zero before each run,
    restored: list[str] = field(default_factory=list)  # or put back.
    notes: list[str] = field(default_factory=list)  # What a person must do, each with a line.

    @property
    def axes(self) -> dict[str, list[int | str]]:
        """Tunables to their values, ascending where they are numbers."""
        found: dict[str, list[int | str]] = {}
        for name in self.configs[0] if self.configs else ():
            values = list(dict.fromkeys(each[name] for each in self.configs))
            whole = all(isinstance(each, int) for each in values)
            found[name] = sorted(values, key=lambda one: one) if whole else values
        return found


@dataclass
class Kernel:
    name: str
    line: int
    parameters: list[str]
    constexprs: list[str]
    defaults: dict[str, Literal]
    reading: Reading
    tuning: Tuning
    host: Host


@dataclass
class Code:
    """CUDA text of a call of ``cupy.RawKernel`` or ``cupy.RawModule``."""

    line: int
    text: str = ""
    names: list[str] = field(default_factory=list)  # The kernel, or name expressions.
    options: list[str] = field(default_factory=list)  # Of the compiler,
    macros: dict[str, str] = field(default_factory=dict)  # without those that define macros.
    refused: str = ""  # Why it cannot be taken.


@dataclass
class Facts:
    """What a file says."""

    kernels: list[str] = field(default_factory=list)  # No other one calls them; launched first.
    chosen: Kernel | None = None
    copied: str = ""  # The part of the file that a build needs; '' for all of it,
    modules: list[str] = field(default_factory=list)  # files beside it that must be copied, too,
    missing: list[str] = field(default_factory=list)  # and what the copy reads and nothing defines.
    codes: list[Code] = field(default_factory=list)
