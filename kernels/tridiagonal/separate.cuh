// Parallel cyclic reduction by one block in shared memory (Hockney and Jesshope 1981): in every step
// each row gets rid of its neighbours, which then are twice as far. Included in the namespaces of those
// who use it.

// a x_left + x + c x_right = d: a row divided by its diagonal.
struct UnitRow {
    REAL a, c, d;

    __device__ __forceinline__ static UnitRow of(Row<REAL> row) {
        const REAL inverse = REAL(1) / row.b;
        return {row.a * inverse, row.c * inverse, row.d * inverse};
    }
};

// Such rows in shared memory, array after array, `apart` words from one to the next: neighbouring
// threads read neighbouring words.
struct InShared {
    REAL *words;
    int rows, apart;

    __device__ __forceinline__ UnitRow get(int i) const {
        return {words[i], words[apart + i], words[2 * apart + i]};
    }

    __device__ __forceinline__ void put(int i, UnitRow row) const {
        words[i] = row.a;
        words[apart + i] = row.c;
        words[2 * apart + i] = row.d;
    }
};

// Leaves every row coupled to the outside alone: `a` to what stands before the first row, `c` to what
// stands behind the last. Returns where they are.
__device__ __forceinline__ InShared separate(InShared now, InShared next) {
    const int rows = now.rows;
    for (int far = 1; far < rows; far *= 2) {
        for (int i = threadIdx.x; i < rows; i += blockDim.x) {
            UnitRow row = now.get(i);
            REAL b = 1, d = row.d, a = row.a, c = row.c;
            if (i >= far) {
                const UnitRow left = now.get(i - far);
                b -= row.a * left.c;
                d -= row.a * left.d;
                a *= -left.a;
            }
            if (i + far < rows) {
                const UnitRow right = now.get(i + far);
                b -= row.c * right.a;
                d -= row.c * right.d;
                c *= -right.c;
            }
            next.put(i, UnitRow::of({a, b, c, d}));
        }
        __syncthreads();
        const InShared swap = now;
        now = next;
        next = swap;
    }
    return now;
}
