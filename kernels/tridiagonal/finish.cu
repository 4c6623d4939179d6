// One block solves a small system in shared memory by parallel cyclic reduction (Hockney and
// Jesshope 1981): in every step each row gets rid of its neighbours, which then are twice as far.
extern "C" __global__ void KERNEL(finish)(
    const REAL *a, const REAL *b, const REAL *c, const REAL *d, REAL *x, int rows) {
    DYNAMIC_SHARED(REAL, shared);
    Row<REAL> *now = reinterpret_cast<Row<REAL> *>(shared), *next = now + rows;
    const int first = threadIdx.x, step = blockDim.x;
    for (int i = first; i < rows; i += step)
        now[i] = {i > 0 ? a[i] : REAL(0), b[i], i < rows - 1 ? c[i] : REAL(0), d[i]};
    __syncthreads();
    for (int far = 1; far < rows; far *= 2) {
        for (int i = first; i < rows; i += step) {
            Row<REAL> row = now[i];
            if (i >= far) {
                const Row<REAL> left = now[i - far];
                const REAL w = row.a / left.b;
                row.a = -w * left.a;
                row.b -= w * left.c;
                row.d -= w * left.d;
            }
            if (i + far < rows) {
                const Row<REAL> right = now[i + far];
                const REAL w = row.c / right.b;
                row.c = -w * right.c;
                row.b -= w * right.a;
                row.d -= w * right.d;
            }
            next[i] = row;
        }
        __syncthreads();
        Row<REAL> *swap = now;
        now = next;
        next = swap;
    }
    for (int i = first; i < rows; i += step) x[i] = now[i].d / now[i].b;
}
