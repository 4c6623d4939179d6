#define NVERT 24
__constant__ float2 c_vertex[NVERT];

__global__ void insidePolygon(bool *result, const float *px, const float *py, unsigned npoints)
{
	unsigned gid = blockIdx.x * blockDim.x + threadIdx.x;
	if (gid >= npoints)
		return;

	float x = px[gid], y = py[gid];
	bool c = false;
	int k = NVERT - 1;
	for (int j = 0; j < NVERT; k = j++) {
		float2 a = c_vertex[j], b = c_vertex[k];
		float slope = __fdiv_rn(b.x - a.x, b.y - a.y);
		float cut = __fadd_rn(__fmul_rn(slope, y - a.y), a.x);
#if UseBranch
		if ((a.y > y) != (b.y > y))
			if (x < cut)
				c = !c;
#else
		c ^= ((a.y > y) != (b.y > y)) & (x < cut);
#endif
	}
	result[gid] = c;
}
