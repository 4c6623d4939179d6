#include <math_constants.h>

// Reduces fValue over the block in pScratch[]; everybody gets the result.
template <class TOp>
static __device__ float BlockReduce(float* pScratch, float fValue, TOp op)
{
	pScratch[threadIdx.x] = fValue;
	__syncthreads();
	for (unsigned nHalf = blockDim.x / 2; nHalf >= 1; nHalf /= 2)
	{
		if (threadIdx.x < nHalf)
			pScratch[threadIdx.x] = op(pScratch[threadIdx.x], pScratch[threadIdx.x + nHalf]);
		__syncthreads();
	}
	const float fResult = pScratch[0];
	__syncthreads();	// before anybody uses the scratch again
	return fResult;
}

struct SMax { __device__ float operator()(float a, float b) const { return fmaxf(a, b); } };
struct SSum { __device__ float operator()(float a, float b) const { return a + b; } };

__global__ void SoftmaxKernel(float* pOut, const float* pIn, int nCols)
{
	extern __shared__ float pScratch[];
	const float* pRow = pIn + (size_t)blockIdx.x * nCols;

	float fMax = -CUDART_INF_F;
	for (int nCol = threadIdx.x; nCol < nCols; nCol += blockDim.x)
		fMax = fmaxf(fMax, pRow[nCol]);
	fMax = BlockReduce(pScratch, fMax, SMax());

	float fSum = 0.0f;
	for (int nCol = threadIdx.x; nCol < nCols; nCol += blockDim.x)
		fSum += expf(pRow[nCol] - fMax);
	fSum = BlockReduce(pScratch, fSum, SSum());

	for (int nCol = threadIdx.x; nCol < nCols; nCol += blockDim.x)
		pOut[(size_t)blockIdx.x * nCols + nCol] = expf(pRow[nCol] - fMax) / fSum;
}
