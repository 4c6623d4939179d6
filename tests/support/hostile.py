"""Texts that try to be code, and an entry of each kind of file that holds them."""

from __future__ import annotations

from collections.abc import Sequence

from launchwise.exporting.formulas import ExportedFormulas
from launchwise.exporting.table import AnswerTable, Device, Entry
from launchwise.workloads.launch_shapes import LaunchExpressions, Limits, Range

CANARY = "canary"  # File that code of a hostile text writes into the current folder

TEXTS = (
    f'"""\nopen("{CANARY}", "w")\n"""',
    f"'''\nopen('{CANARY}', 'w')\n'''",
    f'" + str(open("{CANARY}", "w")) + "',
    f'");system("touch {CANARY}");("',
    f"*/\nint canary = system('{CANARY}');\n/*",
    f"\nint canary = __builtin_trap();\n// touch {CANARY}",
    "ends in a backslash\\",
    "ends in a trigraph??/",
    "??/\nint canary;",
    "%s {0} {title} %{x} $\\frac{$",
    f"$(touch {CANARY}) `touch {CANARY}`; touch {CANARY}",
    "zero\0in it",
    "\u202etxet siht sesrever\u202c\u2066",
    "\x1b]0;title\x07\x1b[31m",
    "line\u2028separator\x85next",
    "</script><script>document.title = 'canary'</script>",
    "<!--<script>",
    "]]><img src=x onerror=canary()>",
    '" onmouseover="canary()" \'',
    "</textarea></title></style><canary>",
    '<a href="javascript:canary()">x</a>',
    "=cmd|'/C calc'!A0",
    "@SUM(1+1)*cmd|'/C calc'!A0",
    "-2+3+cmd|'/C calc'!A0",
    "\t=1+1",
    "a,b\r\nc",
    "\ufeffmark",
)
"""Quotes, ends of comments, tags, formulas, and characters that nobody sees."""


def table_of(texts: Sequence[str], name: str = "exported") -> AnswerTable:
    """A table of answers with hostile texts wherever one may stand."""
    devices = [Device(f"gpu{k}", (one,), (one,), (one,), (one, one)) for k, one in enumerate(texts)]
    entries = [Entry(k, (1, one), (one, 8, one), 1.0, None, one) for k, one in enumerate(texts)]
    kernels = {one: (LaunchExpressions(one, ("1",) * 3, ("1",) * 3, "0"),) for one in texts}
    return AnswerTable(
        study=name,
        workload="exported",
        title=texts[0],
        commits=tuple(texts),
        parameters=("n", "kind"),
        tunables=("variant", "bx", "mode"),
        texts=frozenset({"kind", "variant", "mode"}),
        devices=tuple(devices),
        version=texts[-1],
        default=(texts[0], 1, texts[0]),
        entries=tuple(entries),
        limits=Limits((Range("n", 1, None, None), Range("kind", None, None, tuple(texts)))),
        neutral=("", 0, texts[0]),
        formulas=ExportedFormulas(launches=kernels),
    )
