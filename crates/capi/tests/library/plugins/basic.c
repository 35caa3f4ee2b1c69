/* A plugin of operations that try the functions of the C API, with uses that are wrong where an attribute says so. */
#include <stdlib.h>
#include <string.h>
#include "tfrt_capi.h"

/* axpy: z = alpha * x + y, with forwarding of x where that may be. */
typedef struct { float alpha; int forward; } Axpy;

static int n_created, n_deleted;

static void* axpy_create(TF_OpKernelConstruction* c) {
    TF_Status* s = TF_NewStatus();
    Axpy* state = calloc(1, sizeof *state);
    unsigned char forward = 0;
    n_created++;
    TF_OpKernelConstruction_GetAttrFloat(c, "alpha", &state->alpha, s);
    TF_OpKernelConstruction_GetAttrBool(c, "forward", &forward, s);
    state->forward = forward;
    if (TF_GetCode(s) != 0) TF_OpKernelConstruction_Failure(c, s);
    if (state->alpha < 0) {
        TF_SetStatus(s, 3, "alpha is below 0");
        TF_OpKernelConstruction_Failure(c, s);
    }
    TF_DeleteStatus(s);
    return state;
}

static void axpy_delete(void* state) {
    n_deleted++;
    free(state);
}

static void axpy_compute(void* state, TF_OpKernelContext* ctx) {
    Axpy* axpy = state;
    TF_Status* s = TF_NewStatus();
    TF_Tensor *x = NULL, *y = NULL, *z = NULL;
    int forwarded = -2;
    TF_GetInput(ctx, 0, &x, s);
    TF_GetInput(ctx, 1, &y, s);
    int64_t n = TF_TensorElementCount(x);
    if (!TF_TensorIsAligned(x) || !TF_TensorIsAligned(y)) {
        TF_SetStatus(s, 13, "an input is not aligned");
        TF_OpKernelContext_Failure(ctx, s);
    }
    if (n != TF_TensorElementCount(y)) {
        TF_SetStatus(s, 3, "x and y differ in size");
        TF_OpKernelContext_Failure(ctx, s);
        goto end;
    }
    int64_t dims[8];
    int rank = TF_NumDims(x);
    for (int i = 0; i < rank && i < 8; i++) dims[i] = TF_Dim(x, i);
    float* from = malloc(n * sizeof(float));
    memcpy(from, TF_TensorData(x), n * sizeof(float));
    if (axpy->forward) {
        TF_DeleteTensor(x);
        x = NULL;
        int candidates[] = {0};
        z = TF_ForwardInputOrAllocateOutput(ctx, candidates, 1, 0, dims, rank, &forwarded, s);
    } else {
        z = TF_AllocateOutput(ctx, 0, TF_ExpectedOutputDataType(ctx, 0), dims, rank, 0, s);
    }
    float* to = TF_TensorData(z);
    const float* other = TF_TensorData(y);
    for (int64_t i = 0; i < n; i++) to[i] = axpy->alpha * from[i] + other[i];
    free(from);
    TF_DeleteTensor(z);
    z = TF_AllocateOutput(ctx, 1, 3, NULL, 0, 4, s);
    *(int32_t*)TF_TensorData(z) = forwarded;
end:
    TF_DeleteTensor(x);
    TF_DeleteTensor(y);
    TF_DeleteTensor(z);
    TF_DeleteStatus(s);
}

/* keep: holds its views of input and output beyond the call, and adds to the input what the views of the last call say.
   After an input below 0 nothing is held. */
static void keep_compute(void* state, TF_OpKernelContext* ctx) {
    (void)state;
    static TF_Tensor *x, *z;
    TF_Status* s = TF_NewStatus();
    float before = 0;
    if (x) {
        before = *(float*)TF_TensorData(x) + 10 * *(float*)TF_TensorData(z);
        TF_DeleteTensor(x);
        TF_DeleteTensor(z);
    }
    TF_GetInput(ctx, 0, &x, s);
    int candidates[] = {0}, forwarded = -2;
    int64_t dims[] = {1};
    z = TF_ForwardInputOrAllocateOutput(ctx, candidates, 1, 0, dims, 1, &forwarded, s);
    if (forwarded != -1) {
        TF_SetStatus(s, 13, "the output has the memory of an input that a view leads to");
        TF_OpKernelContext_Failure(ctx, s);
    }
    float own = *(float*)TF_TensorData(x);
    *(float*)TF_TensorData(z) = before + own;
    if (own < 0) {
        TF_DeleteTensor(x);
        TF_DeleteTensor(z);
        x = z = NULL;
    }
    TF_DeleteStatus(s);
}

/* counts: how often states were made and deleted. */
static void counts_compute(void* state, TF_OpKernelContext* ctx) {
    (void)state;
    TF_Status* s = TF_NewStatus();
    int64_t dims[] = {2};
    TF_Tensor* z = TF_AllocateOutput(ctx, 0, 3, dims, 1, 8, s);
    ((int32_t*)TF_TensorData(z))[0] = n_created;
    ((int32_t*)TF_TensorData(z))[1] = n_deleted;
    TF_DeleteTensor(z);
    TF_DeleteStatus(s);
}

/* strings: each string twice, through cells. */
typedef struct { unsigned char bytes[24]; } Cell;

static const char* cell_text(const Cell* cell, size_t* len) {
    switch (cell->bytes[0] & 3) {
    case 0: *len = cell->bytes[0] >> 2; return (const char*)cell->bytes + 1;
    case 1: *len = *(const size_t*)cell >> 2; return ((const char* const*)cell)[2];
    default: *len = *(const size_t*)cell >> 2; return ((const char* const*)cell)[1];
    }
}

static void cell_set(Cell* cell, const char* text, size_t len) {
    if (len <= 22) {
        cell->bytes[0] = (unsigned char)(len << 2);
        memcpy(cell->bytes + 1, text, len);
        cell->bytes[1 + len] = 0;
        return;
    }
    char* copy = malloc(len + 1);
    memcpy(copy, text, len);
    copy[len] = 0;
    size_t words[3] = {len << 2 | 1, len, (size_t)copy};
    memcpy(cell, words, sizeof words);
}

static void strings_compute(void* state, TF_OpKernelContext* ctx) {
    (void)state;
    TF_Status* s = TF_NewStatus();
    TF_Tensor* x = NULL;
    TF_GetInput(ctx, 0, &x, s);
    int64_t n = TF_TensorElementCount(x), dims[] = {n};
    TF_Tensor* z = TF_AllocateOutput(ctx, 0, 7, dims, 1, 24 * n, s);
    const Cell* from = TF_TensorData(x);
    Cell* to = TF_TensorData(z);
    for (int64_t i = 0; i < n; i++) {
        size_t len;
        const char* text = cell_text(from + i, &len);
        char* twice = malloc(2 * len + 1);
        memcpy(twice, text, len);
        memcpy(twice + len, text, len);
        cell_set(to + i, twice, 2 * len);
        free(twice);
    }
    TF_DeleteTensor(x);
    TF_DeleteTensor(z);
    TF_DeleteStatus(s);
}

/* fail: with the code of an attribute. */
static void* code_create(TF_OpKernelConstruction* c) {
    TF_Status* s = TF_NewStatus();
    int32_t code = 0;
    TF_OpKernelConstruction_GetAttrInt32(c, "code", &code, s);
    TF_DeleteStatus(s);
    return (void*)(intptr_t)(code + 1);
}

static void fail_compute(void* state, TF_OpKernelContext* ctx) {
    TF_Status* s = TF_NewStatus();
    int code = (int)(intptr_t)state - 1;
    TF_SetStatus(s, code, "boom");
    TF_SetPayload(s, "capi/key", "capi-value");
    TF_OpKernelContext_Failure(ctx, s);
    TF_DeleteStatus(s);
}

/* wrong: a wrong use of the C API, by number. */
static void wrong_compute(void* state, TF_OpKernelContext* ctx) {
    int which = (int)(intptr_t)state - 1;
    TF_Status* s = TF_NewStatus();
    TF_Tensor* x = NULL;
    int64_t dims[] = {2}, bad[] = {-2};
    TF_GetInput(ctx, 0, &x, s);
    TF_Tensor* z = TF_AllocateOutput(ctx, 0, 1, dims, 1, 8, s);
    memset(TF_TensorData(z), 0, 8);
    switch (which) {
    case 0: TF_Dim(x, 9); break;
    case 1: TF_DeleteTensor(x); TF_NumDims(x); x = NULL; break;
    case 2: TF_DeleteTensor(x); TF_DeleteTensor(x); x = NULL; break;
    case 3: TF_NumDims((TF_Tensor*)s); break;
    case 4: TF_TensorData((TF_Tensor*)0x7fff12345678); break;
    case 5: TF_NumDims(NULL); break;
    case 6: TF_InputDatatype(ctx, 7); break;
    case 7: TF_ExpectedOutputDataType(ctx, -1); break;
    case 8: TF_AllocateTemp(ctx, 1, bad, 1, NULL, s); break;
    case 9: TF_GetInput(ctx, 0, NULL, s); break;
    case 10: TF_SetStatus((TF_Status*)ctx, 3, "no"); break;
    case 11: TF_NewKernelBuilder(NULL, "CPU", NULL, wrong_compute, NULL); break;
    case 12: TF_GetInputByName(ctx, NULL, &z, s); break;
    case 13: TF_AllocateTemp(ctx, 1, dims, -3, NULL, s); break;
    case 14: TF_DeleteBuffer((TF_Buffer*)&which); break;
    case 15: TF_GetInput(ctx, 5, &x, NULL); break;
    case 100: TF_GetInput(ctx, -5, &z, s); TF_OpKernelContext_Failure(ctx, s); break;
    case 101: TF_SetOutput(ctx, 7, x, s); TF_OpKernelContext_Failure(ctx, s); break;
    case 16: TF_SetShape(x, dims, 1); TF_SetShape(x, bad, 1); break;
    case 17: TF_RunAsyncOpKernelDoneCallback((TF_AsyncOpKernelDoneCallback*)x); break;
    case 18: TF_GetRendezvous(ctx); break;
    case 19: { TF_KernelBuilder* b = TF_NewKernelBuilder("X", "CPU", NULL, wrong_compute, NULL);
               TF_RegisterKernelBuilder("late", b, s);
               TF_DeleteKernelBuilder(b); break; }
    default: break;
    }
    TF_DeleteTensor(x);
    TF_DeleteTensor(z);
    TF_DeleteStatus(s);
}

/* keep: leaves its output out. */
static void nothing_compute(void* state, TF_OpKernelContext* ctx) { (void)state; (void)ctx; }

/* half: the input, and an output that is left out. */
static void half_compute(void* state, TF_OpKernelContext* ctx) {
    TF_Status* s = TF_NewStatus();
    TF_Tensor* x = NULL;
    (void)state;
    TF_GetInput(ctx, 0, &x, s);
    TF_SetOutput(ctx, 0, x, s);
    TF_DeleteTensor(x);
    TF_DeleteStatus(s);
}

/* async: twice the input, said to be done once or twice, or by a later call, or with the context of an earlier one. */
static TF_AsyncOpKernelDoneCallback* kept_done;
static TF_OpKernelContext* kept_ctx;

static void async_compute(void* state, TF_OpKernelContext* ctx, TF_AsyncOpKernelDoneCallback* done) {
    TF_Status* s = TF_NewStatus();
    TF_Tensor* x = NULL;
    TF_GetInput(ctx, 0, &x, s);
    int64_t n = TF_TensorElementCount(x), dims[] = {n};
    TF_Tensor* z = TF_AllocateOutput(ctx, 0, 1, dims, 1, 4 * n, s);
    for (int64_t i = 0; i < n; i++) ((float*)TF_TensorData(z))[i] = 2 * ((float*)TF_TensorData(x))[i];
    TF_DeleteTensor(x);
    TF_DeleteTensor(z);
    TF_DeleteStatus(s);
    switch ((intptr_t)state) {
    case 2: TF_RunAsyncOpKernelDoneCallback(done); break;
    case 3: kept_done = done; kept_ctx = ctx; return;
    case 4: TF_RunAsyncOpKernelDoneCallback(kept_done); break;
    case 5: TF_NumInputs(kept_ctx); break;
    }
    TF_RunAsyncOpKernelDoneCallback(done);
}

/* adopt: a tensor in the plugin's memory becomes the output. */
static void adopt_free(void* data, size_t len, void* count) { (void)len; ++*(int*)count; free(data); }
static int n_freed;

static void adopt_compute(void* state, TF_OpKernelContext* ctx) {
    (void)state;
    TF_Status* s = TF_NewStatus();
    int64_t dims[] = {2};
    float* memory = aligned_alloc(64, 64);
    memory[0] = 7; memory[1] = n_freed;
    TF_Tensor* z = TF_NewTensor(1, dims, 1, memory, 64, adopt_free, &n_freed);
    if (TF_TensorMaybeMove(z)) { TF_SetStatus(s, 13, "moved"); TF_OpKernelContext_Failure(ctx, s); }
    TF_SetOutput(ctx, 0, z, s);
    TF_DeleteTensor(z);
    TF_DeleteStatus(s);
}

/* recast: a tensor in the plugin's memory becomes another one; the function that frees the memory uses it. */
static TF_Tensor* recast;
static void recast_free(void* data, size_t len, void* rank) { (void)len; *(int*)rank = TF_NumDims(recast); free(data); }

static void recast_compute(void* state, TF_OpKernelContext* ctx) {
    (void)state;
    TF_Status* s = TF_NewStatus();
    int rank = -1;
    int64_t dims[] = {1, 1};
    TF_Tensor* z = TF_AllocateOutput(ctx, 0, 3, NULL, 0, 4, s);
    recast = TF_NewTensor(1, NULL, 0, aligned_alloc(64, 64), 64, recast_free, &rank);
    TF_TensorBitcastFrom(z, 1, recast, dims, 2, s);
    *(int32_t*)TF_TensorData(z) = rank;
    TF_DeleteTensor(recast);
    TF_DeleteTensor(z);
    TF_DeleteStatus(s);
}

/* leave: deletes neither its status nor a tensor of its own, but the tensor that an earlier call has left. */
static TF_Tensor* left;

static void free_nothing(void* data, size_t len, void* argument) { (void)data; (void)len; (void)argument; }

static void leave_compute(void* state, TF_OpKernelContext* ctx) {
    TF_Status* s = TF_NewStatus();
    TF_Tensor* x = NULL;
    static _Alignas(64) float one[16];
    TF_DeleteTensor(left);
    left = TF_NewTensor(1, NULL, 0, one, sizeof(float), free_nothing, NULL);
    TF_GetInput(ctx, 0, &x, s);
    TF_SetOutput(ctx, 0, x, s);
    TF_DeleteTensor(x);
    (void)state;
}

/* shapes: the first extent is 7. */
static void shape_function(TF_ShapeInferenceContext* ctx, TF_Status* s) {
    TF_ShapeHandle* x = TF_NewShapeHandle();
    TF_ShapeInferenceContextGetInput(ctx, 0, x, s);
    TF_ShapeInferenceContextWithRankAtLeast(ctx, x, 1, x, s);
    if (TF_GetCode(s) == 0) {
        TF_ShapeHandle* rest = TF_NewShapeHandle();
        TF_ShapeHandle* seven = TF_ShapeInferenceContextVectorFromSize(ctx, 7);
        TF_ShapeInferenceContextSubshape(ctx, x, 1, INT64_MAX, rest, s);
        TF_ShapeInferenceContextConcatenateShapes(ctx, seven, rest, rest, s);
        TF_ShapeInferenceContextSetOutput(ctx, 0, rest, s);
        TF_DeleteShapeHandle(rest);
        TF_DeleteShapeHandle(seven);
    }
    TF_DeleteShapeHandle(x);
}

static void seven_compute(void* state, TF_OpKernelContext* ctx) {
    (void)state;
    TF_Status* s = TF_NewStatus();
    TF_Tensor* x = NULL;
    TF_GetInput(ctx, 0, &x, s);
    int64_t dims[] = {7, TF_Dim(x, 1)};
    TF_Tensor* z = TF_AllocateOutput(ctx, 0, 1, dims, 2, 0, s);
    TF_DeleteTensor(x);
    TF_DeleteTensor(z);
    TF_DeleteStatus(s);
}

static void define(const char* name, const char* const* attrs, const char* const* inputs,
                   const char* const* outputs, void (*shape)(TF_ShapeInferenceContext*, TF_Status*)) {
    TF_Status* s = TF_NewStatus();
    TF_OpDefinitionBuilder* b = TF_NewOpDefinitionBuilder(name);
    for (; *attrs; attrs++) TF_OpDefinitionBuilderAddAttr(b, *attrs);
    for (; *inputs; inputs++) TF_OpDefinitionBuilderAddInput(b, *inputs);
    for (; *outputs; outputs++) TF_OpDefinitionBuilderAddOutput(b, *outputs);
    if (shape) TF_OpDefinitionBuilderSetShapeInferenceFunction(b, shape);
    TF_RegisterOpDefinition(b, s);
    TF_DeleteStatus(s);
}

#define LIST(...) (const char* const[]){__VA_ARGS__, NULL}
#define NONE (const char* const[]){NULL}

static void kernel(const char* op, void* (*create)(TF_OpKernelConstruction*),
                   void (*compute)(void*, TF_OpKernelContext*), void (*delete)(void*), int type, int priority) {
    TF_Status* s = TF_NewStatus();
    TF_KernelBuilder* b = TF_NewKernelBuilder(op, "CPU", create, compute, delete);
    if (type) TF_KernelBuilder_TypeConstraint(b, "T", type, s);
    TF_KernelBuilder_Priority(b, priority);
    TF_RegisterKernelBuilder(op, b, s);
    TF_DeleteStatus(s);
}

void TF_InitKernel(void) {
    TF_Status* s = TF_NewStatus();
    define("TestAxpy", LIST("T: {float, double}", "alpha: float = 2", "forward: bool = false"),
           LIST("x: T", "y: T"), LIST("z: T", "forwarded: int32"), NULL);
    kernel("TestAxpy", axpy_create, axpy_compute, axpy_delete, 1, 0);
    define("TestKeep", NONE, LIST("x: float"), LIST("z: float"), NULL);
    kernel("TestKeep", NULL, keep_compute, NULL, 0, 0);
    define("TestCounts", NONE, NONE, LIST("counts: int32"), NULL);
    kernel("TestCounts", NULL, counts_compute, NULL, 0, 0);
    define("TestStrings", NONE, LIST("x: string"), LIST("z: string"), NULL);
    kernel("TestStrings", NULL, strings_compute, NULL, 0, 0);
    define("TestFail", LIST("code: int"), LIST("x: float"), LIST("z: float"), NULL);
    kernel("TestFail", code_create, fail_compute, NULL, 0, 0);
    define("TestWrong", LIST("code: int"), LIST("x: float"), LIST("z: float"), NULL);
    kernel("TestWrong", code_create, wrong_compute, NULL, 0, 0);
    define("TestNothing", NONE, LIST("x: float"), LIST("z: float"), NULL);
    kernel("TestNothing", NULL, nothing_compute, NULL, 0, 0);
    define("TestHalf", NONE, LIST("x: float"), LIST("y: float", "z: float"), NULL);
    kernel("TestHalf", NULL, half_compute, NULL, 0, 0);
    define("TestAdopt", NONE, NONE, LIST("z: float"), NULL);
    kernel("TestAdopt", NULL, adopt_compute, NULL, 0, 0);
    define("TestLeave", NONE, LIST("x: float"), LIST("z: float"), NULL);
    kernel("TestLeave", NULL, leave_compute, NULL, 0, 0);
    define("TestRecast", NONE, NONE, LIST("rank: int32"), NULL);
    kernel("TestRecast", NULL, recast_compute, NULL, 0, 0);
    define("TestSeven", NONE, LIST("x: float"), LIST("z: float"), shape_function);
    kernel("TestSeven", NULL, seven_compute, NULL, 0, 0);
    define("TestAsync", LIST("code: int = 0"), LIST("x: float"), LIST("z: float"), NULL);
    TF_KernelBuilder* b = TF_NewAsyncKernelBuilder("TestAsync", "CPU", code_create, async_compute, NULL);
    TF_RegisterKernelBuilder("TestAsync", b, s);
    /* Operations that the runtime has: twice the sum for floats, and nothing that comes first for int32. */
    kernel("AddV2", axpy_create, axpy_compute, axpy_delete, 2, -1);
    TF_DeleteStatus(s);
}
