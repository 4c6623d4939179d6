// What kernels need of the toolkit's header is in cuda_on_cpu.h, which is included before.
