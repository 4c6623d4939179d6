/* Thomas algorithm: elimination without pivoting of a tridiagonal system, in place.
 *
 * thomas.py compiles and loads it. a: below the diagonal, b: diagonal, c: above it, d: right-hand
 * side, becomes the solution; c is overwritten. a[0] and c[rows - 1] are ignored. Returns 0, or the
 * number (from 1) of the row with a zero pivot.
 *
 * A pivot waits for one division and one subtraction: a_i c_(i-1) / pivot_(i-1) is divided as a
 * whole. The reciprocal of the pivot is computed beside that, and scales c and d, so that the
 * backward pass has no division. */
#include <stdint.h>

#define THOMAS(NAME, REAL)                                                                   \
    int64_t NAME(int64_t rows, const REAL *restrict a, const REAL *restrict b,               \
                 REAL *restrict c, REAL *restrict d) {                                       \
        REAL pivot = b[0];                                                                   \
        if (pivot == 0) return 1;                                                            \
        REAL inverse = 1 / pivot, above = c[0], solved = d[0] * inverse;                     \
        c[0] = above * inverse;                                                              \
        d[0] = solved;                                                                       \
        for (int64_t i = 1; i < rows; ++i) {                                                 \
            pivot = b[i] - a[i] * above / pivot;                                             \
            if (pivot == 0) return i + 1;                                                    \
            inverse = 1 / pivot;                                                             \
            above = c[i];                                                                    \
            solved = (d[i] - a[i] * solved) * inverse;                                       \
            c[i] = above * inverse;                                                          \
            d[i] = solved;                                                                   \
        }                                                                                    \
        for (int64_t i = rows - 2; i >= 0; --i) {                                            \
            solved = d[i] - c[i] * solved;                                                   \
            d[i] = solved;                                                                   \
        }                                                                                    \
        return 0;                                                                            \
    }

THOMAS(thomas_float32, float)
THOMAS(thomas_float64, double)
