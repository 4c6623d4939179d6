__global__ void tr(ELEM*dst,const ELEM*src,int rows,int cols){
  __shared__ ELEM t[TILE][TILE+PAD];
  int x=blockIdx.x*TILE+threadIdx.x, y=blockIdx.y*TILE+threadIdx.y;
  for(int j=0;j<TILE;j+=TILE/4)
    if(x<cols&&y+j<rows) t[threadIdx.y+j][threadIdx.x]=src[(y+j)*cols+x];
  __syncthreads();
  x=blockIdx.y*TILE+threadIdx.x; y=blockIdx.x*TILE+threadIdx.y;
  for(int j=0;j<TILE;j+=TILE/4)
    if(x<rows&&y+j<cols) dst[(y+j)*rows+x]=t[threadIdx.x][threadIdx.y+j];
}
