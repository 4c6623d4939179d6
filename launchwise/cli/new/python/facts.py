"""What a run of a Python file says: the child writes it as JSON, the parent reads it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

TYPES: tuple[str, ...] = ("float16", "bfloat16", "float32", "float64", "int1")
TYPES += ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
"""Types of Triton's language."""


@dataclass
class Use:
    """How a kernel uses a pointer.

    Parameters
    ----------
    stored_as
        Type that a value is converted to before it is stored; '' if none.
    indexes
        Pointers whose address depends on what is loaded from it.
    bounds, factors, remainders
        What masks compare with, what addresses multiply, and what indices are reduced to.
    is_bare
        Whether only the pointer itself is an address.
    """

    is_loaded: bool = False
    is_stored: bool = False
    atomics: bool = False
    stored_as: str = ""
    indexes: dict[str, None] = field(default_factory=dict)
    bounds: dict[str, None] = field(default_factory=dict)
    factors: dict[str, None] = field(default_factory=dict)
    remainders: dict[str, None] = field(default_factory=dict)
    is_bare: bool = True

    @property
    def role(self) -> str:
        """Role of the argument."""
        if self.atomics or (self.is_loaded and self.is_stored):
            return "inout"
        return "output" if self.is_stored else "input"


@dataclass
class Reading:
    """What runs of a kernel did.

    Parameters
    ----------
    axes
        Axes of the grid that it reads.
    bounding
        Parameters that it compares with, divides by or counts to.
    computed
        Parameters that are an operand, so that no block holds them whole.
    divisions
        Sizes that it divides by a block.
    counted
        Parameters that a range, a loop or a bound of an index ends at.
    texts
        Parameters to texts that they are compared with.
    bounds, steps
        Per axis of the grid, what its index is compared with and multiplied by.
    held
        Blocks to what their elements are compared with.
    scratch_line, descriptor_line
        Where it makes a tensor descriptor, and where it uses one that is a parameter; 0 for none.
    """

    uses: dict[str, Use] = field(default_factory=dict)
    axes: dict[int, None] = field(default_factory=dict)
    bounding: dict[str, None] = field(default_factory=dict)
    computed: dict[str, None] = field(default_factory=dict)
    counted: dict[str, None] = field(default_factory=dict)
    divisions: list[tuple[str, str]] = field(default_factory=list)
    texts: dict[str, list[str]] = field(default_factory=dict)
    bounds: list[list[str]] = field(default_factory=list)
    steps: list[list[str]] = field(default_factory=list)
    held: dict[str, list[str]] = field(default_factory=dict)
    has_dot: bool = False
    has_loop: bool = False
    scratch_line: int = 0
    descriptor_line: int = 0


@dataclass
class Given:
    """What a launch gives for a parameter.

    Parameters
    ----------
    text
        Its expression over problem parameters; None where there is none.
    problem
        Why there is none, with the line.
    literal
        Its value, where the file has it.
    is_own
        Whether it is a parameter of the host's function.
    is_free
        Whether its text reads one.
    asks
        ``1`` or ``0`` for ``x is not None``; else ''.
    type
        ``tl.float16`` and the like; else ''.
    array
        Name of the tensor; '' for numbers.
    guessed
        Tensor whose sizes are guessed and whose stride it is; '' for none.
    """

    text: str | None = None
    problem: str = ""
    literal: bool | int | float | str | None = None
    is_own: bool = False
    is_free: bool = False
    is_none: bool = False
    asks: str = ""
    type: str = ""
    array: str = ""
    guessed: str = ""


@dataclass
class Tensor:
    """What the host says of a tensor: sizes (None for unknown ones), type and a question."""

    shape: list[str | None] = field(default_factory=list)
    dtype: str = ""
    question: str = ""


@dataclass
class Host:
    """The launch of a kernel in the host code of its file.

    Parameters
    ----------
    grid
        Sizes of the grid; empty with a ``problem``.
    """

    is_there: bool = False
    given: dict[str, Given] = field(default_factory=dict)
    tensors: dict[str, Tensor] = field(default_factory=dict)
    grid: list[str] = field(default_factory=list)
    problem: str = ""


@dataclass
class Tuning:
    """Configurations and derived constexprs of a kernel.

    Parameters
    ----------
    configs
        Tunables to their values, in the order of the file; every one has all of ``axes``.
    key
        Arguments whose change asks Triton to tune anew.
    macros
        Constexprs to expressions of ``spec.yaml``.
    given
        Constexprs whose expression asks whether an array is given.
    zeroed, restored
        Arguments that Triton sets to zero, or puts back, before each run.
    notes
        What a person must do, each with a line of the file.
    """

    configs: list[dict[str, int | str]] = field(default_factory=list)
    key: list[str] = field(default_factory=list)
    macros: dict[str, str] = field(default_factory=dict)
    given: list[str] = field(default_factory=list)
    zeroed: list[str] = field(default_factory=list)
    restored: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def axes(self) -> dict[str, list[int | str]]:
        """Tunables to their values, ascending where they are numbers."""
        found: dict[str, list[int | str]] = {}
        for name in self.configs[0] if self.configs else ():
            values = list(dict.fromkeys(each[name] for each in self.configs))
            whole = all(isinstance(each, int) for each in values)
            found[name] = sorted(values, key=lambda one: one) if whole else values
        return found

    @property
    def combinations(self) -> int:
        """Configurations that the axes make together."""
        return math.prod(map(len, self.axes.values()))

    @property
    def is_product(self) -> bool:
        """Whether the configurations are all combinations of their values."""
        return len({tuple(each.values()) for each in self.configs}) == self.combinations


@dataclass
class Kernel:
    """A kernel of Triton.

    Parameters
    ----------
    line
        Of its ``def``.
    defaults
        Parameters to numbers and texts that the function has for them; None for others.
    """

    name: str
    line: int
    parameters: list[str]
    constexprs: list[str]
    defaults: dict[str, bool | int | float | str | None]
    reading: Reading
    tuning: Tuning
    host: Host


@dataclass
class Code:
    """A call of ``cupy.RawKernel`` or ``cupy.RawModule``, and why it is refused."""

    line: int
    text: str = ""
    names: list[str] = field(default_factory=list)
    options: list[str] = field(default_factory=list)
    refused: str = ""


@dataclass
class Facts:
    """What a file says.

    Parameters
    ----------
    kernels
        Functions of Triton that no other one calls, those first that host code reads.
    chosen
        The kernel that was asked for, or the first.
    values
        Names of the file to numbers and texts, as Python writes them.
    codes, launches
        CUDA texts; kernels to threads per block, and bytes of shared memory, of their first launch.
    """

    kernels: list[str] = field(default_factory=list)
    chosen: Kernel | None = None
    values: dict[str, str] = field(default_factory=dict)
    codes: list[Code] = field(default_factory=list)
    launches: dict[str, tuple[list[int], int]] = field(default_factory=dict)
