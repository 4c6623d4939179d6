"""What nvcc says against a source, as one line."""

from pathlib import Path

from launchwise.measuring.bundle import refusal

SAID = """\
/made/up/half.cu(7): error: more than one instance of overloaded function "max" matches the \
argument list:
            function "max(int, int)" (declared at line 12 of /toolkit/limits.h)
            function "max(int, unsigned int)" (declared at line 14 of /toolkit/limits.h)
            function "max(long, long)" (declared at line 16 of /toolkit/limits.h)
            function "max(long, unsigned long)" (declared at line 18 of /toolkit/limits.h)
            argument types are: (int, long)
              out[i] = max(i, last);
                       ^

/made/up/half.cu(7): error: identifier "last" is undefined
              out[i] = max(i, last);
                              ^

/made/up/half.cu(9): error: no instance of function "twice" matches the argument list
            argument types are: (float *)
                    twice(out);
                    ^

/made/up/part.cuh(3): error: expected a ";"
                    int one = 1
                              ^

/made/up/half.cu(11): error: identifier "four" is undefined

5 errors detected in the compilation of "half.cu".
"""


def test_messages_of_several_lines_and_of_several_errors_are_one_line():
    said = refusal(SAID, RuntimeError(), Path("/made/up"))
    overloaded, twice, missing = said.split("; ")
    assert overloaded == (
        'nvcc failed: half.cu:7: more than one instance of overloaded function "max" matches the '
        'argument list: function "max(int, int)", function "max(int, unsigned int)", '
        'function "max(long, long)", 1 more, argument types are: (int, long)'
    )
    assert twice == (
        'half.cu:9: no instance of function "twice" matches the argument list: '
        "argument types are: (float *)"
    )
    assert missing == 'part.cuh:3: expected a ";"'
