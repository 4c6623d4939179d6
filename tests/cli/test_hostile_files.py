"""Files of others: attacks end in one line and under limits."""

import bz2
import gzip
import io
import json
import lzma
import os
import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace

import foreign
import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
import yaml
from samples import ROOT

from launchwise.base.arrays import read_array, read_arrays
from launchwise.base.errors import UserError
from launchwise.base.scripting import running
from launchwise.cli import app
from launchwise.tables.files import METADATA_KEY, read_table
from launchwise.tables.measurements import measurement_schema
from launchwise.workloads.sources import cpu_limit
from launchwise.workloads.spec import load_spec

STRANGER = ROOT / "tests" / "strangers" / "threshold_mask"
WORDS = Path(__file__).parent / "data" / "hostile.yaml"
ASKED = ["--as", "x", "--problem", "n=64", "--device"]


def laughs(inner):
    """YAML whose aliases stand for 10^10 values."""
    lines = [f"a{level}: &a{level} {inner.format(level - 1)}" for level in range(1, 10)]
    return "\n".join(["a0: &a0 {x: 1}", *lines])


LISTS = "[" + ", ".join(["*a{0}"] * 10) + "]"
MERGED = "{{<<: " + LISTS + "}}"

YAML = {
    "aliases of lists": (laughs(LISTS), "stands for more than 200,000 values"),
    "aliases that are merged": (laughs(MERGED), "stands for more than 200,000 values"),
    "an alias inside itself": ("a: &a [*a]", "line 1: \\*a stands inside itself"),
    "brackets": ("[" * 1_000_000, "line 1: is nested more than 50 levels deep"),
    "indented keys": ("\n".join(" " * n + "a:" for n in range(1_500)), "line 51: is nested"),
    "many values": ("[" + "1," * 1_000_000, "stands for more than 200,000 values"),
    "a long value": ("a: " + "x" * 5_000_000, "is longer than 4,194,304 bytes"),
    "a tag": ("a: !!python/object/apply:os.system [ls]", "line 1: .*is a tag"),
    "digits": ("a: " + "9" * 5_000, "line 1: is no integer up to"),
    "hexadecimal digits": ("a: 0x" + "f" * 1_000_000, "line 1: is no integer up to"),
    "minutes of minutes": ("a: " + "1:" * 10_000 + "1.5", "line 1: is no number"),
}

EXPRESSIONS = (
    *("'%4000000000d' % 1", "9**9**9", "[0] * 10**9", "8192**8192**width"),
    *("round_up(" * 99 + "1" + ", 3**600)" * 99, "-" * 9_000 + "width", "0x" + "f" * 9_000),
)
"""Some of those without a value; all others are in tests/base."""


def packed_zip(member, method=zipfile.ZIP_DEFLATED):
    """A zip with one member."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", method) as archive:
        archive.writestr("a.json", member)
    return target.getvalue()


def zip_of_gzips(count):
    """A zip whose members are packed, 120 MB each."""
    target, member = io.BytesIO(), gzip.compress(b'{"a": 1') + gzip.compress(b" " * 10**6) * 120
    with zipfile.ZipFile(target, "w") as archive:
        for number in range(count):
            archive.writestr(f"{number}.json.gz", member)
    return target.getvalue()


def imported():
    """Name to a file for ``launchwise import`` and what is said of it."""
    part, letters = b"[" * 1_500_000, gzip.compress(b"x" * 10**6) * 127
    large = "holds more than 128 MB, unpacked: raise .* --max-mb"
    less = large.replace("128", "16")
    named = foreign.cache()
    for key in ("tune_params", "tune_params_keys"):
        del named[key]
    named["cache"] = {"1": {**{f"p{n}": 1 for n in range(20_000)}, "time": 1.0}}
    ragged = [{f"k{n}": n, "x": n, "time": 1.0} for n in range(60_000)]
    wide = json.dumps(foreign.cache()).replace("tile", "t" * 1_000_000)
    return {
        # Packers allow parts one after the other: 3 GB in 3 MB.
        "3_gb.json.gz": (gzip.compress(part, 1) * 2_000, large),
        "a.json.bz2": (bz2.compress(part, 1) * 12, less),
        "a.json.xz": (lzma.compress(part, preset=0) * 12, less),
        "a.zip": (packed_zip(part * 12), less),
        "bzip2.zip": (packed_zip(part, zipfile.ZIP_BZIP2), "neither stored nor"),
        # A zip of packed files is one file: 60 times 120 MB.
        "gzips.zip": (zip_of_gzips(60), large),
        # Parts that hold nothing take time, too.
        "parts.json.gz": (gzip.compress(b"", 1) * 200_000, large),
        "parts.zip": (packed_zip(bz2.compress(b"") * 200_000), large),
        # 127 MB of one text without an end, in 124 KB; four times that where a letter is wide.
        "endless.json.gz": (gzip.compress(b'{"a": "') + letters, "is of no known for"),
        "wide.json.gz": (
            gzip.compress(b' {"a": "') + letters + gzip.compress("\U0001f600".encode()),
            "takes more than 1024 MB of memory to read: raise the limit by --max-mb",
        ),
        "deep.json": (part, "nested too deep"),
        "lists.json": (b"[" + b"[]," * 5_000_000 + b"[]]", "more than 8,000,000 values"),
        "fields.csv": (b"a,b\n" + b"," * 9_000_000, "more than 8,000,000 values"),
        "digits.json": (b'[{"x": ' + b"9" * 1_000_000 + b', "time": 1}]', "Exceeds the limit"),
        "short.jsonl": (b'{"x": 1, "time": 5e-324}\n{"x": 2, "time": 0}\n', "no configuration"),
        "half.jsonl": (
            ROWS.encode() + b'{"block_size": "\\ud800x", "time": 1}\n' + ROWS.encode(),
            r"half\.jsonl:3: is not JSON: .* surrogates not allowed",
        ),
        "twice.json": (b'[{"x": 1, "time": 1, "x": 2}]', "'x' is given twice"),
        "twice.jsonl": (
            ROWS.encode() + b'{"block_size": 1, "block_size": 2, "time": 1}\n' + ROWS.encode(),
            r"twice\.jsonl:3: is not JSON: 'block_size' is given twice",
        ),
        "damaged.jsonl": (ROWS.encode() + b"{]\n" + ROWS.encode(), r"\.jsonl:3: is not JSON"),
        "names.json": (json.dumps(named).encode(), "are 20,000 names, more than 250"),
        "keys.json": (json.dumps(ragged).encode(), "has rows of 60,002 keys, more than 500"),
        "keys.autotune.json": (
            json.dumps({"key": [1], "configs_timings": [[one, 1.0] for one in ragged]}).encode(),
            "has rows of 60,002 keys, more than 500",
        ),
        "name.json": (wide.encode(), "is longer than 200 characters"),
    }


def sources():
    """Name to a file for ``launchwise new`` and what is said of it."""
    one = b"__global__ void k(float *x, int n) { x[n] = 1; }"
    return {
        "braces.cu": (b"\xff\xfe" + one[:-2] + b"{" * 50_000, "has no kernel: no function"),
        "parameters.cu": (
            b"__global__ void k(" + b"int a," * 10_000 + b"int b) {}",
            "k: has 10,001 parameters, more than 250",
        ),
        "long.cu": (one + b" " * (4 << 20), "is longer than 4,194,304 bytes"),
        "headers.cu": (
            b'#include "half_1.h"\n#include "half_2.h"\n' + one,
            "and its headers are lo",
        ),
    }


ROWS = '{"block_size": 32, "time": 2.0}\n{"block_size": 64, "time": 1.5}\n'


def spec_with(**changed):
    """The stranger's spec with other top-level keys."""
    known = yaml.safe_load((STRANGER / "spec.yaml").read_text())
    return yaml.dump({**known, **changed}, Dumper=yaml.CSafeDumper, sort_keys=False)


def specs():
    """Name to a ``spec.yaml`` and what is said of it."""
    doubled = {"d0": "width", **{f"d{n}": f"d{n - 1} + d{n - 1}" for n in range(1, 60)}}
    many = {f"p{n}": {"type": "integer"} for n in range(5_000)}
    long = {"n" * 1_000_000: {"type": "integer"}}
    wide = {each: {"kind": "launch", "values": [*range(1, 60_000)]} for each in ("bx", "by")}
    wrong = {text: (spec_with(constraints=[text]), "constraints") for text in EXPRESSIONS}
    return {
        **YAML,
        **wrong,
        "names of names": (spec_with(derived=doubled), "more than 50,000 characters"),
        # Each value is held against the limits of a GPU.
        "values of a tunable": (spec_with(tunables=wide), "takes more than 0.75 s of CPU time to "),
        "many parameters": (spec_with(problem=many), "has more than 250 names"),
        "a long name": (spec_with(problem=long), "is longer than 200 characters"),
    }


def attempts(lines, folder, megabytes=2000):
    """Exit code and output of ``launchwise`` with each list of words, under limits."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "tests" / "support" / "attacked.py"), str(megabytes)],
        input="".join(json.dumps(line) + "\n" for line in lines),
        cwd=folder,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    return [tuple(json.loads(line)) for line in done.stdout.splitlines()]


def test_attacks_end_in_one_line_within_ten_seconds_and_two_gigabytes(tmp_path):
    lines, wanted = [], []
    for number, (name, (text, said)) in enumerate(specs().items()):
        folder = tmp_path / str(number) / STRANGER.name
        shutil.copytree(STRANGER, folder)
        (folder / "spec.yaml").write_text(text)
        lines.append(["check", str(folder)])
        wanted.append((name, said))
    for name, (content, said) in imported().items():
        (tmp_path / name).write_bytes(content)
        most = ["--max-mb", "16"] if "than 16 MB" in said else []
        lines.append(["import", name, *ASKED, f"{name}=NVIDIA RTX A4000", *most])
        wanted.append((name, said))
    for number in (1, 2):
        (tmp_path / f"half_{number}.h").write_bytes(b" " * (2 << 20))
    for name, (content, said) in sources().items():
        (tmp_path / name).write_bytes(content)
        lines.append(["new", "made", "--from", name])
        wanted.append((name, said))
    (tmp_path / "one.cu").write_text("__global__ void k(float *x, int n) { x[n] = 1; }")
    # Sources over which regular expressions take long: check has the limit of a draft.
    folder = tmp_path / "raw" / STRANGER.name
    shutil.copytree(STRANGER, folder)
    with open(next(folder.glob("*.cu")), "a") as source:
        source.write('R"a(' * 100_000 + "\n")
    lines.append(["check", str(folder)])
    wanted.append(("raw texts", r"threshold_mask: takes more than 0.75 s of CPU time to read"))
    (tmp_path / "rows.jsonl").write_text(ROWS)
    (tmp_path / "sweeps" / "gpu").mkdir(parents=True)
    for name in ("sweeps/gpu/w.parquet", "pipe"):
        os.mkfifo(tmp_path / name)
    (tmp_path / "endless").symlink_to("/dev/zero")
    (tmp_path / "loop").symlink_to("loop")
    folder = tmp_path / "fifo" / STRANGER.name
    shutil.copytree(STRANGER, folder)
    with open(next(folder.glob("*.cu")), "a") as source:
        source.write(f"#include <{tmp_path}/pipe>\n")
    filled = {"LONGER": "g" * 5_000, "LONG": "x" * 300, "CARD": "'rows.jsonl=NVIDIA RTX A4000'"}
    for line, said in yaml.safe_load(WORDS.read_text()).items():
        words = line
        for name, text in filled.items():
            words = words.replace(name, text)
        lines.append(shlex.split(words))
        wanted.append((line, said))
    assert len(lines) == len(wanted) > 30
    for (name, said), (code, told) in zip(wanted, attempts(lines, tmp_path), strict=True):
        *_, last = told.splitlines() or [""]
        assert code == 2, (name, code, told[-500:])
        assert last.startswith("launchwise: "), (name, told[-500:])
        assert len(last) < 5_000, name
        assert "Traceback" not in told, name
        assert re.search(said, last), (name, last)
    assert not (tmp_path / "made").exists()
    assert not list(tmp_path.glob("kernels/*"))


def test_reading_ends_after_a_limit_of_cpu_time():
    with (
        pytest.raises(UserError, match=r"slow\.cu: takes more than 0\.05 s of CPU time to read"),
        cpu_limit("slow.cu", 0.05),
    ):
        for _ in range(10**9):
            pass
    with cpu_limit("quick.cu", 5):
        pass


def test_too_little_memory_is_one_line_of_a_command(tmp_path):
    (tmp_path / "a.json").write_bytes(b"[" + b"1.5, " * 4_000_000 + b"1]")
    words = ["import", "a.json", *ASKED, "a.json=NVIDIA RTX A4000"]
    ((code, told),) = attempts([words], tmp_path, 80)
    assert (code, told) == (2, "launchwise: there is too little memory for this\n")


def too_deep(levels=0):
    """Calls itself without an end."""
    return too_deep(levels + 1)


@pytest.mark.usefixtures("own_log")
@pytest.mark.parametrize(
    ("fail", "said"),
    [
        (too_deep, "something is nested too deep to be read"),
        (lambda: np.ones(1 << 58), "there is too little"),
    ],
)
def test_what_overflows_is_one_line_in_the_log_of_a_stage(tmp_path, fail, said):
    path = tmp_path / "stage.log"
    with pytest.raises(SystemExit) as ended, running(SimpleNamespace(log=[path])):
        fail()
    assert ended.value.code == 1
    (line,) = path.read_text().splitlines()
    assert line.startswith(f"E launchwise: {said}")


def of_repeated_text():
    """A text of 1 MB in 100 000 rows: 100 GB in a small file."""
    index = pyarrow.array(np.zeros(100_000, np.int8))
    return pyarrow.table({"gpu": pyarrow.DictionaryArray.from_arrays(index, ["x" * 1_000_000])})


def of_repeated_numbers():
    """More values than are allowed, all of them 0."""
    zeros = pyarrow.array(np.zeros(51_000_000, np.int8))
    return pyarrow.table({f"c{n}": zeros for n in range(4)})


@pytest.mark.parametrize(
    ("made", "said"),
    [(of_repeated_text, "gpu: unpacks to more than 2 GiB"), (of_repeated_numbers, "200,000,000")],
)
def test_parquet_is_measured_before_it_is_unpacked(tmp_path, made, said):
    path = tmp_path / "x.parquet"
    note = {"kind": "measurements", "version": 3, "units": {}, "facts": {}}
    noted = made().replace_schema_metadata({METADATA_KEY: json.dumps(note).encode()})
    pyarrow.parquet.write_table(noted, path)
    assert path.stat().st_size < 3_000_000
    with pytest.raises(UserError, match=said):
        read_table(path, measurement_schema(load_spec(STRANGER)))


def header_of(shape, dtype="<f8"):
    """An ``.npy`` of 8 bytes with a header that says more."""
    said = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(said).to_bytes(2, "little") + said + bytes(8)


@pytest.mark.parametrize(
    "content",
    [
        header_of("(1000000000000,)"),
        header_of("(4294967296, 4294967296)"),
        header_of("(-1,)"),
        header_of("(1,)", "|O"),
        header_of("(" * 150 + "1" + ",)" * 150),
        header_of("-" * 9_000 + "1"),
        b"\x93NUMPY",
        b"",
    ],
)
def test_arrays_hold_what_their_headers_say(tmp_path, content):
    plain, packed = tmp_path / "x.npy", tmp_path / "x.npz"
    plain.write_bytes(content)
    with pytest.raises(UserError, match=r"is no \.npy file of numbers"):
        read_array(plain)
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", content)
    with pytest.raises(UserError, match="cannot be read as a model"):
        read_arrays(packed, "a model")


@pytest.mark.parametrize("read", [read_array, lambda path: read_arrays(path, "a model")])
def test_arrays_are_no_pipes(tmp_path, read):
    os.mkfifo(tmp_path / "x")
    with pytest.raises(UserError, match="x: is no regular file"):
        read(tmp_path / "x")


@pytest.mark.parametrize("said", ["No space left on device", "No usable temporary directory"])
def test_what_the_system_refuses_is_one_line(monkeypatch, capsys, said):
    def refused(**options):
        raise OSError(28, said)

    monkeypatch.setattr(app, "app", refused)
    assert app.main([]) == 2
    assert capsys.readouterr().err == f"launchwise: {said}\n"


def test_lower_limits_of_the_user_stay(tmp_path):
    (tmp_path / "one.cu").write_text("__global__ void k(float *x, int n) { x[n] = 1; }")
    words = ["new", str(tmp_path / "made"), "--from", str(tmp_path / "one.cu")]
    script = f"from launchwise.cli.app import main; main({words})"
    limited = ["/bin/sh", "-c", 'ulimit -f 4000; exec "$@"', "sh", sys.executable, "-c", script]
    subprocess.run(limited, cwd=ROOT, check=True)
    assert (tmp_path / "made" / "spec.yaml").is_file()
