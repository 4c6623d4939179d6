void twice(REAL *restrict y, const REAL *restrict x, int n)
{
#pragma omp target teams distribute parallel for is_device_ptr(y, x)
#if step > 0
#pragma omp tile sizes(step)
#endif
    for (int i = 0; i < n; ++i) y[i] += 2 * x[i];
}
