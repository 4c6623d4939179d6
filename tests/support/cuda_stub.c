// A CUDA driver without a GPU: memory is the host's, and a launch is written to the file that
// LAUNCHWISE_STUB_LOG names. It tells whether the caller hands over whole addresses and the right values;
// it computes nothing.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int Result;
enum { SUCCESS = 0, INVALID = 1, OUT_OF_MEMORY = 2, INVALID_CONTEXT = 201 };

static _Thread_local int pushed = 0;
static char context;

Result cuInit(unsigned flags) { return flags ? INVALID : SUCCESS; }
Result cuDeviceGet(int *device, int number) {
    *device = number;
    return number ? INVALID : SUCCESS;
}
Result cuDeviceGetAttribute(int *value, int attribute, int device) {
    (void)device;
    *value = attribute == 16 ? 132 : attribute == 75 ? 9 : attribute == 76 ? 0 : attribute == 97 ? 232448 : -1;
    return SUCCESS;
}
Result cuDevicePrimaryCtxRetain(void **found, int device) {
    (void)device;
    *found = &context;
    return SUCCESS;
}
Result cuCtxPushCurrent_v2(void *given) {
    if (given != &context) return INVALID_CONTEXT;
    ++pushed;
    return SUCCESS;
}
Result cuCtxPopCurrent_v2(void **found) {
    *found = &context;
    return pushed-- > 0 ? SUCCESS : INVALID_CONTEXT;
}
Result cuCtxSynchronize(void) { return pushed > 0 ? SUCCESS : INVALID_CONTEXT; }
Result cuStreamSynchronize(void *stream) {
    (void)stream;
    return pushed > 0 ? SUCCESS : INVALID_CONTEXT;
}
Result cuMemAlloc_v2(void **found, size_t nbytes) {
    if (pushed <= 0) return INVALID_CONTEXT;
    if (nbytes > (size_t)1 << 30) return OUT_OF_MEMORY;
    *found = calloc(1, nbytes);
    return SUCCESS;
}
Result cuMemFree_v2(void *memory) {
    free(memory);
    return pushed > 0 ? SUCCESS : INVALID_CONTEXT;
}
Result cuMemGetInfo_v2(size_t *free_bytes, size_t *total) {
    *free_bytes = *total = (size_t)1 << 30;
    return pushed > 0 ? SUCCESS : INVALID_CONTEXT;
}
Result cuMemcpyHtoDAsync_v2(void *to, const void *from, size_t nbytes, void *stream) {
    (void)stream;
    memcpy(to, from, nbytes);
    return pushed > 0 ? SUCCESS : INVALID_CONTEXT;
}
Result cuMemcpyDtoHAsync_v2(void *to, const void *from, size_t nbytes, void *stream) {
    return cuMemcpyHtoDAsync_v2(to, from, nbytes, stream);
}
Result cuModuleLoadData(void **module, const void *image) {
    *module = (void *)image;
    return pushed > 0 && !memcmp(image, "\177ELF", 4) ? SUCCESS : INVALID;
}
Result cuModuleGetFunction(void **function, void *module, const char *name) {
    (void)module;
    *function = strdup(name);
    return SUCCESS;
}
Result cuFuncSetAttribute(void *function, int attribute, int value) {
    (void)function;
    return attribute == 8 && value > 0 ? SUCCESS : INVALID;
}
Result cuPointerGetAttribute(void *value, int attribute, void *pointer) {
    if (attribute != 9 || !pointer) return INVALID;
    *(int *)value = 0;
    return SUCCESS;
}
Result cuGetErrorName(int code, const char **name) {
    *name = code == INVALID_CONTEXT ? "CUDA_ERROR_INVALID_CONTEXT" : "CUDA_ERROR_INVALID_VALUE";
    return SUCCESS;
}

// A kernel with its values as they are when it is launched, or put into a graph.
typedef struct {
    char before[200], after[300];
} Line;

static void describe(Line *line, const char *function, const unsigned *grid, const unsigned *block, unsigned shared,
                     void **values) {
    snprintf(line->before, sizeof line->before, "%.*s %u %u %u %u %u %u %u", (int)strcspn(function, "_"), function,
             grid[0], grid[1], grid[2], block[0], block[1], block[2], shared);
    // a, b, c, d, x and two numbers of `finish`, the shortest list of all.
    int at = 0;
    for (int i = 0; i < 5; ++i) at += sprintf(line->after + at, " %llx", *(unsigned long long *)values[i]);
    if (!strncmp(function, "finish_", 7)) sprintf(line->after + at, " %d %d", *(int *)values[5], *(int *)values[6]);
}

static void write_down(const Line *line, void *stream, const char *how) {
    const char *path = getenv("LAUNCHWISE_STUB_LOG");
    if (!path) return;
    FILE *log = fopen(path, "a");
    fprintf(log, "%s %p%s%s\n", line->before, stream, line->after, how);
    fclose(log);
}

Result cuLaunchKernel(const char *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                      unsigned bz, unsigned shared, void *stream, void **values, void **extra) {
    if (pushed <= 0) return INVALID_CONTEXT;
    if (extra) return INVALID;
    Line line;
    describe(&line, function, (unsigned[]){gx, gy, gz}, (unsigned[]){bx, by, bz}, shared, values);
    write_down(&line, stream, "");
    return SUCCESS;
}

// Graphs: one chain of kernels at most. A stream whose handle is CAPTURED is always being captured.
#define CAPTURED ((void *)0xCA97)
enum { MOST_NODES = 16 };
typedef struct {
    const char *function;
    unsigned grid[3], block[3], shared;
    void **values, **extra;
    void *kernel, *context;
} Node;
typedef struct {
    int nodes, ready;
    Line lines[MOST_NODES];
} Graph;
static _Thread_local int mode = 0;

Result cuThreadExchangeStreamCaptureMode(int *given) {
    const int before = mode;
    mode = *given;
    *given = before;
    return SUCCESS;
}
Result cuStreamIsCapturing(void *stream, int *status) {
    *status = stream == CAPTURED;
    return SUCCESS;
}
Result cuGraphCreate(Graph **graph, unsigned flags) {
    *graph = calloc(1, sizeof **graph);
    return flags || mode != 2 ? INVALID : SUCCESS;
}
Result cuGraphAddKernelNode_v2(Line **node, Graph *graph, Line *const *before, size_t count, const Node *given) {
    // Each kernel waits for the one that was added before it.
    if (count != (graph->nodes > 0) || (count && before[0] != &graph->lines[graph->nodes - 1])) return INVALID;
    if (given->extra || graph->nodes == MOST_NODES) return INVALID;
    *node = &graph->lines[graph->nodes++];
    describe(*node, given->function, given->grid, given->block, given->shared, given->values);
    return SUCCESS;
}
Result cuGraphInstantiateWithFlags(Graph **ready, Graph *graph, unsigned long long flags) {
    *ready = graph;
    graph->ready = 1;
    return flags || mode != 2 ? INVALID : SUCCESS;
}
Result cuGraphExecKernelNodeSetParams_v2(Graph *ready, Line *node, const Node *given) {
    (void)ready;
    describe(node, given->function, given->grid, given->block, given->shared, given->values);
    return SUCCESS;
}
Result cuGraphLaunch(Graph *ready, void *stream) {
    if (pushed <= 0) return INVALID_CONTEXT;
    if (!ready->ready || stream == CAPTURED) return INVALID;
    for (int i = 0; i < ready->nodes; ++i) write_down(&ready->lines[i], stream, " replayed");
    return SUCCESS;
}
Result cuGraphExecDestroy(Graph *ready) {
    ready->ready = 0;
    return SUCCESS;
}
Result cuGraphDestroy(Graph *graph) {
    const int in_use = graph->ready;
    free(graph);
    return in_use ? INVALID : SUCCESS;
}
