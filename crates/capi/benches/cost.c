/* A plugin of a kernel that adds two inputs, by 17 calls into the host, as kernels of published plugins make, and of two
   that are given a variable: one looks at it, the other does nothing. */
#include "tfrt_capi.h"

static void add_compute(void* state, TF_OpKernelContext* ctx) {
    (void)state;
    TF_Status* s = TF_NewStatus();
    TF_Tensor *x = NULL, *y = NULL;
    TF_GetInput(ctx, 0, &x, s);
    TF_GetInput(ctx, 1, &y, s);
    if (TF_GetCode(s) != TF_OK) TF_OpKernelContext_Failure(ctx, s);
    int64_t dims[4];
    int rank = TF_NumDims(x);
    for (int i = 0; i < rank && i < 4; i++) dims[i] = TF_Dim(x, i);
    int64_t n = TF_TensorElementCount(x);
    TF_Tensor* z = TF_AllocateOutput(ctx, 0, TF_ExpectedOutputDataType(ctx, 0), dims, rank, n * 4, s);
    if (TF_GetCode(s) != TF_OK) TF_OpKernelContext_Failure(ctx, s);
    const float *a = TF_TensorData(x), *b = TF_TensorData(y);
    float* to = TF_TensorData(z);
    for (int64_t i = 0; i < n; i++) to[i] = a[i] + b[i];
    TF_DeleteTensor(x);
    TF_DeleteTensor(y);
    TF_DeleteTensor(z);
    TF_DeleteStatus(s);
}

static void idle_compute(void* state, TF_OpKernelContext* ctx) {
    (void)state;
    TF_Status* s = TF_NewStatus();
    TF_NumInputs(ctx);
    TF_DeleteStatus(s);
}

static void lock_compute(void* state, TF_OpKernelContext* ctx) {
    (void)state;
    TF_Status* s = TF_NewStatus();
    TF_NumInputs(ctx);
    TF_VariableInputLockHolder* holder = NULL;
    TF_Tensor* v = NULL;
    int inputs[] = {0};
    TF_MaybeLockVariableInputMutexesInOrder(ctx, true, false, inputs, 1, NULL, &holder, s);
    TF_GetInputTensorFromVariable(ctx, 0, true, false, false, NULL, &v, s);
    if (TF_GetCode(s) != TF_OK) TF_OpKernelContext_Failure(ctx, s);
    TF_DeleteTensor(v);
    TF_ReleaseVariableInputLockHolder(holder);
    TF_DeleteStatus(s);
}

static void add_variable_kernel(const char* name, void (*compute)(void*, TF_OpKernelContext*), TF_Status* s) {
    TF_OpDefinitionBuilder* op = TF_NewOpDefinitionBuilder(name);
    TF_OpDefinitionBuilderAddInput(op, "v: resource");
    TF_OpDefinitionBuilderSetIsStateful(op, true);
    TF_RegisterOpDefinition(op, s);
    TF_RegisterKernelBuilder(name, TF_NewKernelBuilder(name, "CPU", NULL, compute, NULL), s);
}

void TF_InitKernel(void) {
    TF_Status* s = TF_NewStatus();
    TF_OpDefinitionBuilder* op = TF_NewOpDefinitionBuilder("CostAdd");
    TF_OpDefinitionBuilderAddAttr(op, "T: {float, double} = DT_FLOAT");
    TF_OpDefinitionBuilderAddAttr(op, "scale: float = 1.0");
    TF_OpDefinitionBuilderAddInput(op, "x: T");
    TF_OpDefinitionBuilderAddInput(op, "y: T");
    TF_OpDefinitionBuilderAddOutput(op, "z: T");
    TF_RegisterOpDefinition(op, s);
    TF_KernelBuilder* kernel = TF_NewKernelBuilder("CostAdd", "CPU", NULL, add_compute, NULL);
    TF_KernelBuilder_TypeConstraint(kernel, "T", TF_FLOAT, s);
    TF_RegisterKernelBuilder("CostAdd", kernel, s);
    add_variable_kernel("CostIdle", idle_compute, s);
    add_variable_kernel("CostLock", lock_compute, s);
    TF_DeleteStatus(s);
}
