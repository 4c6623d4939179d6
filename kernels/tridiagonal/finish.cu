// One block solves a small system. Each thread first reduces a sub-system of m rows to two equations
// (m = 0: none does); what is left is solved in shared memory by parallel cyclic reduction (Hockney
// and Jesshope 1981): in every step each row gets rid of its neighbours, which then are twice as far.

// Rows in shared memory, array after array: neighbouring threads read neighbouring words.
struct InShared {
    REAL *words;
    int rows;

    __device__ __forceinline__ Row<REAL> get(int i) const {
        return {words[i], words[rows + i], words[2 * rows + i], words[3 * rows + i]};
    }

    __device__ __forceinline__ void put(int i, Row<REAL> row) const {
        words[i] = row.a;
        words[rows + i] = row.b;
        words[2 * rows + i] = row.c;
        words[3 * rows + i] = row.d;
    }

    __device__ __forceinline__ REAL solution(int i) const {
        return words[3 * rows + i] / words[rows + i];
    }
};

// Leaves every row with its own unknown alone; returns where they are.
__device__ __forceinline__ InShared separate(InShared now, InShared next) {
    const int rows = now.rows;
    for (int far = 1; far < rows; far *= 2) {
        for (int i = threadIdx.x; i < rows; i += blockDim.x) {
            Row<REAL> row = now.get(i);
            if (i >= far) {
                const Row<REAL> left = now.get(i - far);
                const REAL w = row.a / left.b;
                row.a = -w * left.a;
                row.b -= w * left.c;
                row.d -= w * left.d;
            }
            if (i + far < rows) {
                const Row<REAL> right = now.get(i + far);
                const REAL w = row.c / right.b;
                row.c = -w * right.c;
                row.b -= w * right.a;
                row.d -= w * right.d;
            }
            next.put(i, row);
        }
        __syncthreads();
        const InShared swap = now;
        now = next;
        next = swap;
    }
    return now;
}

extern "C" __global__ void KERNEL(finish)(
    const REAL *a, const REAL *b, const REAL *c, const REAL *d, REAL *x, int rows, int m) {
    DYNAMIC_SHARED(REAL, shared);
    const System<REAL> system{a, b, c, d};
    const int number = threadIdx.x, threads = blockDim.x;
    const int subsystems = m ? rows / m : 0, inner = m ? 2 * subsystems : rows;
    InShared now{shared, inner};
    const InShared next{shared + 4 * inner, inner};
    const Share share(number, subsystems, rows, m);
    const auto own = [&](int k) { return system.row(share.first + k); };
    if (number < subsystems) {
        Row<REAL> up, down;
        reduce<REAL>(own, share.count, up, down);
        now.put(2 * number, up);
        now.put(2 * number + 1, down);
    }
    if (!m)
        for (int i = number; i < rows; i += threads) now.put(i, system.row(i));
    __syncthreads();
    // What couples the ends to rows that are not there is whatever somebody left in memory.
    if (number == 0) now.words[0] = now.words[3 * inner - 1] = 0;
    __syncthreads();
    now = separate(now, next);
    if (!m)
        for (int i = number; i < rows; i += threads) x[i] = now.solution(i);
    if (!m) return;
    REAL first = 0, last = 0;
    if (number < subsystems) {
        first = now.solution(2 * number);
        last = now.solution(2 * number + 1);
    }
    // From here on shared memory holds what the forward sweeps leave.
    __syncthreads();
    if (number >= subsystems) return;
    const auto kept = [&](int k) -> REAL & {
        return shared[k < m ? k * threads + number : m * threads + k - m];
    };
    substitute<REAL>(
        own, share.count, first, last,
        [&](int k, REAL c_kept, REAL d_kept) {
            kept(k) = c_kept;
            x[share.first + k] = d_kept;
        },
        [&](int k) { return kept(k); },
        [&](int k) { return x[share.first + k]; },
        [&](int k, REAL value) { x[share.first + k] = value; });
}
