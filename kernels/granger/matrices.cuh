// Where the matrices of many regressions lie. REAL is a macro of the build. Included in the namespaces of
// those who use it.

// A regression's matrix: element (column, row) after `first`, neighbours of a column `step` apart.
// STEP is 1 where each regression has its matrices to itself, 0 where `step` says.
template <int STEP>
struct Matrix {
    REAL *first;
    long long step;
    int rows;

    __device__ __forceinline__ REAL &at(int column, int row) const {
        const long long place = static_cast<long long>(column) * rows + row;
        return first[STEP ? place * STEP : place * step];
    }
};

struct Sizes {
    int county, countx, rows, cols;
};

// Which of its `countx` series a regression explains: as published, the second, but the first for m = 1.
__device__ __forceinline__ int series_of(int m) { return m == 1 ? 0 : 1; }

// Matrices of regression m, its own or interleaved with those of the others.
struct Regression {
    Sizes sizes;
    REAL *x, *y, *q, *r, *b;

    template <int STEP>
    __device__ __forceinline__ Matrix<STEP> matrix(REAL *all, int m, int rows, int cols) const {
        const long long own = static_cast<long long>(m) * rows * cols;
        return {all + (STEP ? own : m), sizes.county, rows};
    }
    template <int STEP>
    __device__ __forceinline__ Matrix<STEP> x_of(int m) const {
        return matrix<STEP>(x, m, sizes.rows, sizes.cols);
    }
    template <int STEP>
    __device__ __forceinline__ Matrix<STEP> q_of(int m) const {
        return matrix<STEP>(q, m, sizes.rows, sizes.cols);
    }
    template <int STEP>
    __device__ __forceinline__ Matrix<STEP> r_of(int m) const {
        return matrix<STEP>(r, m, sizes.cols, sizes.cols);
    }
    template <int STEP>
    __device__ __forceinline__ Matrix<STEP> b_of(int m) const {
        return matrix<STEP>(b, m, sizes.cols, 1);
    }
    // The series that it explains, as a column.
    template <int STEP>
    __device__ __forceinline__ Matrix<STEP> y_of(int m) const {
        const Matrix<STEP> all = matrix<STEP>(y, m, sizes.rows, sizes.countx);
        return {&all.at(series_of(m), 0), sizes.county, sizes.rows};
    }
};
