//
//  FIR: y[n] = sum_k taps[k] x[n+k]
//
#define NTAPS   31

__constant__ float d_taps[NTAPS];

__global__ void fir( float *y, const float *x, int nsamples )
{
    int n = blockIdx.x * TPB + threadIdx.x;
    float acc = 0.0f;
#if use_shared
    __shared__ float s[ TPB + NTAPS - 1 ];
    for ( int i = threadIdx.x; i < TPB + NTAPS - 1; i += TPB )
    {
        int from = blockIdx.x * TPB + i;
        s[ i ] = from < nsamples + NTAPS - 1 ? x[ from ] : 0.0f;
    }
    __syncthreads();
    for ( int k = 0; k < NTAPS; k++ )
        acc += d_taps[ k ] * s[ threadIdx.x + k ];
    if ( n < nsamples )
        y[ n ] = acc;
#else
    if ( n < nsamples )
    {
        for ( int k = 0; k < NTAPS; k++ )
            acc += d_taps[ k ] * x[ n + k ];
        y[ n ] = acc;
    }
#endif
}
