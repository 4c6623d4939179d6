"""What is left out of a CUDA source that runs on the CPU: code of the host, and no more."""

from __future__ import annotations

from launchwise.cpu.other_code import other_code

SOURCE = """
struct Pair { float x; float y; };
struct Timer { void scaled() { cudaDeviceSynchronize(); } };
constexpr int scaled(int n) { return 2 * n; }
constexpr int place(int n) { return scaled(n) - 1; }
static int launches = 0;
__global__ void sum(float *out) {
    Pair p = {1, 2};
    out[place(1)] = reinterpret_cast<const float *>(&p)[1];
}
void run(float *out) { ++launches; sum<<<1, 1>>>(out); }
int main() { run(nullptr); }
"""


def test_what_a_kernel_needs_stays_though_a_method_of_the_host_has_its_name() -> None:
    left_out = {SOURCE[start:end].strip() for start, end, _ in other_code(SOURCE)}
    assert left_out == {
        "struct Timer { void scaled() { cudaDeviceSynchronize(); } };",
        "static int launches = 0;",
        "void run(float *out) { ++launches; sum<<<1, 1>>>(out); }",
        "int main() { run(nullptr); }",
    }
