#ifndef SIZES_H
#define SIZES_H
#define OFFSET 3
struct Size { int n; };
#endif
