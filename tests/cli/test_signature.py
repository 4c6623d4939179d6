"""The parser of CUDA files: kernels, parameters, constant memory, macros."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from launchwise.base.errors import UserError
from launchwise.base.typed import read_yaml
from launchwise.cli.new.signature import choose, read_source
from launchwise.cli.new.tunables import needed_macros
from launchwise.cli.new.writing import spec_text
from launchwise.cuda_text.directives import without_comments
from launchwise.cuda_text.preprocessor import expanded
from launchwise.cuda_text.syntax import tokens_of
from launchwise.cuda_text.types import elements


@pytest.fixture
def read(tmp_path):
    def source(text):
        path = tmp_path / "k.cu"
        path.write_text(text)
        return read_source(path)

    return source


def macros(source, name=None):
    """Names of the macros that a kernel needs."""
    kernel = choose(source, name, Path("k.cu"))
    return {need.name for need in needed_macros(source, kernel)}


def test_comments_texts_and_continued_lines():
    text = 'a /* b\n c */ d // e \\\n f\n"g // h" \'"\' i J\n#define J K \\\n L\nJ\n'
    tokens = tokens_of(expanded(without_comments(text)).text)
    assert tokens == ["a", "d", '"g // h"', "'\"'", "i", "J", "K", "L"]


def test_macros_are_names_that_nothing_declares(read):
    source = read(
        """
        #include <cuda.h>
        #define FIXED 4
        #define SIDE (block_size_x * FIXED)
        #define SQUARE(a) ((a) * (a) * exponent)
        #ifndef GUARD_H
        #define GUARD_H
        #endif
        typedef float real;
        enum Mode { SLOW, FAST };
        constexpr int rows = 3 * per_file;
        struct Pair { int left, right; };
        template <typename T, int N> __device__ T twice(T value) { return value * N * in_device; }
        static int on_host(int a = HOST_DEFAULT) { return HOST_ONLY; }
        __global__ void __launch_bounds__(MAX_THREADS) k(
            real *__restrict__ x, const Pair *pairs, unsigned int n)
        {
            __shared__ real cache[SIDE][rows];
            real sum = 0, other[2], *pointer = x;
            const auto mode = FAST;
            int2 q = make_int2(1, 2);
            for (unsigned i = 0, j = n; i < j; i += step) sum += cache[i][q.x] * SQUARE(2.0f);
            auto f = [&](int a, float b) { return a * b + inside; };
            Pair p = pairs[0];
            if (p.left == SLOW || mode == threadIdx.x)
                pointer[warpSize] = twice<real, 2>(f(1, sum));
            x[0] = other[0] + static_cast<float>(later) + M_PI + pairs->right;
        #pragma unroll how_often
            while (sum < INFINITY) sum *= (real)2;
        #if use_padding == 1 && defined(USE_FAST)
        #endif
        }
        __global__ void another(float *x) { x[0] = ONLY_ANOTHER; }
        """
    )
    shared = {"per_file", "in_device", "use_padding", "USE_FAST", "how_often"}
    own = {"block_size_x", "exponent", "MAX_THREADS", "step", "inside", "later"}
    assert macros(source) == shared | own
    assert macros(source, "another") == shared | {"ONLY_ANOTHER"}


def test_types_of_several_words():
    assert elements("long unsigned int", {}) == ("uint64", 1)
    assert elements("short int", {}) == ("int16", 1)
    assert elements("a", {"a": "b", "b": "a"}) == ("", 1)


PIECES = st.sampled_from(
    [
        *("__global__ ", "void ", "k", "(", ")", "{", "}", "[", "]", "<", ">", ";", ",", "*", "&"),
        *(
            "float ",
            "int ",
            "x",
            "=",
            '"',
            "'",
            "/*",
            "*/",
            "//",
            "\n",
            "#define A ",
            "#if ",
            "\\\n",
        ),
        *("#ifndef A", "#endif\n", "template <typename T>", "__constant__ ", "typedef ", "using "),
        *("namespace a ", 'extern "C" ', "enum ", "1", "::", "...", "\\\n"),
        *("k<<<", ">>>(", "dim3 ", "blockIdx.x ", "threadIdx.x ", "if (x < 1)", "atomicAdd(&x"),
    ]
)


@settings(max_examples=50)
@given(st.lists(PIECES, max_size=40).map("".join))
@example("__constant__ __global__ __global__ ,;")
def test_whatever_a_file_holds_is_read_or_refused_in_words(text):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "k.cu"
        path.write_text(text + "\n__global__ void last(float *x) {}")
        try:
            source = read_source(path)
            kernel = choose(source, None, path)
        except UserError:
            return
        spec = Path(folder) / "spec.yaml"
        spec.write_text(spec_text("mine", "k.cu", source, kernel))
        assert read_yaml(spec)["variants"]
