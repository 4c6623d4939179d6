/* The partition method on the cores of the host, for interface systems; REAL is float or double.
 *
 * cores.py compiles and loads it. The rows are cut into `parts` neighbouring parts of two rows or more,
 * alike but for one row. `reduce` leaves two equations of each part, between its first row, its last
 * row and their neighbours outside, and changes nothing of the system. `substitute` is given the
 * solution of these equations and writes that of the whole into d; c is overwritten, too. What stands
 * below the first and above the last element of the diagonal is copied, never computed with. Both
 * return 0, or 1 when a pivot is zero.
 *
 * Each row of a part waits for a division by the pivot of the row before. So every core walks along
 * LANES parts at once, and their divisions overlap. */
#include <stdint.h>

#define LANES 4

typedef struct {
    const REAL *a, *b;
    REAL *c, *d;
    int64_t rows, parts;
} System;

static inline int64_t first_row(const System *of, int64_t part) {
    return of->rows * part / of->parts;
}

static inline int reduce_lanes(const int lanes, const System *of, int64_t part, REAL *ends_a,
                               REAL *ends_b, REAL *ends_c, REAL *ends_d) {
    const REAL *a = of->a, *b = of->b, *c = of->c, *d = of->d;
    int64_t first[LANES], end[LANES];
    REAL ub[LANES], uc[LANES], ud[LANES], fa[LANES], fb[LANES], fc[LANES], fd[LANES];
    int zero = 0;
    for (int k = 0; k < lanes; ++k) {
        const int64_t s = first[k] = first_row(of, part + k);
        end[k] = first_row(of, part + k + 1);
        ub[k] = b[s], uc[k] = c[s], ud[k] = d[s];
        fa[k] = a[s + 1], fb[k] = b[s + 1], fc[k] = c[s + 1], fd[k] = d[s + 1];
    }
    for (int64_t i = 2; i <= of->rows / of->parts; ++i)
        for (int k = 0; k < lanes; ++k) {
            const int64_t row = first[k] + i;
            if (row >= end[k]) continue;
            const REAL inverse = 1 / fb[k], t = uc[k] * inverse, w = a[row] * inverse;
            zero |= fb[k] == 0;
            ub[k] -= t * fa[k];
            ud[k] -= t * fd[k];
            uc[k] = -t * fc[k];
            fa[k] = -w * fa[k];
            fb[k] = b[row] - w * fc[k];
            fd[k] = d[row] - w * fd[k];
            fc[k] = c[row];
        }
    for (int k = 0; k < lanes; ++k) {
        const int64_t at = 2 * (part + k);
        ends_a[at] = a[first[k]], ends_b[at] = ub[k], ends_c[at] = uc[k], ends_d[at] = ud[k];
        ends_a[at + 1] = fa[k], ends_b[at + 1] = fb[k], ends_c[at + 1] = fc[k], ends_d[at + 1] = fd[k];
    }
    return zero;
}

static inline int substitute_lanes(const int lanes, const System *of, int64_t part, const REAL *x) {
    const REAL *a = of->a, *b = of->b;
    REAL *c = of->c, *d = of->d;
    int64_t first[LANES], last[LANES];
    REAL above[LANES], solved[LANES];
    int zero = 0;
    for (int k = 0; k < lanes; ++k) {
        first[k] = first_row(of, part + k);
        last[k] = first_row(of, part + k + 1) - 1;
        above[k] = 0;
        solved[k] = d[first[k]] = x[2 * (part + k)];
    }
    for (int64_t i = 1; i < of->rows / of->parts; ++i)
        for (int k = 0; k < lanes; ++k) {
            const int64_t row = first[k] + i;
            if (row >= last[k]) continue;
            const REAL pivot = b[row] - a[row] * above[k], inverse = 1 / pivot;
            zero |= pivot == 0;
            c[row] = above[k] = c[row] * inverse;
            d[row] = solved[k] = (d[row] - a[row] * solved[k]) * inverse;
        }
    for (int k = 0; k < lanes; ++k) solved[k] = d[last[k]] = x[2 * (part + k) + 1];
    for (int64_t i = 1; i < of->rows / of->parts; ++i)
        for (int k = 0; k < lanes; ++k) {
            const int64_t row = last[k] - i;
            if (row > first[k]) d[row] = solved[k] = d[row] - c[row] * solved[k];
        }
    return zero;
}

int reduce(int64_t rows, int64_t parts, const REAL *a, const REAL *b, REAL *c, REAL *d, REAL *ends_a,
           REAL *ends_b, REAL *ends_c, REAL *ends_d) {
    const System whole = {a, b, c, d, rows, parts};
    int zero = 0;
#pragma omp parallel for schedule(static) reduction(| : zero)
    for (int64_t part = 0; part < parts; part += LANES)
        /* The whole number is a constant for the compiler, which unrolls the lanes. */
        zero |= parts - part >= LANES
                    ? reduce_lanes(LANES, &whole, part, ends_a, ends_b, ends_c, ends_d)
                    : reduce_lanes((int)(parts - part), &whole, part, ends_a, ends_b, ends_c, ends_d);
    return zero;
}

int substitute(int64_t rows, int64_t parts, const REAL *a, const REAL *b, REAL *c, REAL *d,
               const REAL *x) {
    const System whole = {a, b, c, d, rows, parts};
    int zero = 0;
#pragma omp parallel for schedule(static) reduction(| : zero)
    for (int64_t part = 0; part < parts; part += LANES)
        zero |= parts - part >= LANES ? substitute_lanes(LANES, &whole, part, x)
                                      : substitute_lanes((int)(parts - part), &whole, part, x);
    return zero;
}
