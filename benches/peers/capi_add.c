/* A kernel of two inputs and one output of floats, by TensorFlow's C API: what a call costs through it. */
typedef struct TF_OpDefinitionBuilder TF_OpDefinitionBuilder;
typedef struct TF_ShapeInferenceContext TF_ShapeInferenceContext;
typedef struct TF_ShapeHandle TF_ShapeHandle;
typedef struct TF_DimensionHandle TF_DimensionHandle;
#include "tensorflow/c/kernels.h"
#include "tensorflow/c/ops.h"

static void add_compute(void* state, TF_OpKernelContext* ctx) {
    (void)state;
    TF_Status* s = TF_NewStatus();
    TF_Tensor *x = NULL, *y = NULL;
    TF_GetInput(ctx, 0, &x, s);
    TF_GetInput(ctx, 1, &y, s);
    if (TF_GetCode(s) == TF_OK) {
        int64_t n = TF_TensorElementCount(x), dims[8];
        int rank = TF_NumDims(x);
        for (int i = 0; i < rank && i < 8; i++) dims[i] = TF_Dim(x, i);
        TF_Tensor* z = TF_AllocateOutput(ctx, 0, TF_FLOAT, dims, rank, n * sizeof(float), s);
        if (TF_GetCode(s) == TF_OK) {
            const float *a = TF_TensorData(x), *b = TF_TensorData(y);
            float* to = TF_TensorData(z);
            for (int64_t i = 0; i < n; i++) to[i] = a[i] + b[i];
        }
        TF_DeleteTensor(z);
    }
    if (TF_GetCode(s) != TF_OK) TF_OpKernelContext_Failure(ctx, s);
    TF_DeleteTensor(x);
    TF_DeleteTensor(y);
    TF_DeleteStatus(s);
}

void TF_InitKernel(void) {
    TF_Status* s = TF_NewStatus();
    TF_OpDefinitionBuilder* b = TF_NewOpDefinitionBuilder("PeerAdd");
    TF_OpDefinitionBuilderAddInput(b, "x: float");
    TF_OpDefinitionBuilderAddInput(b, "y: float");
    TF_OpDefinitionBuilderAddOutput(b, "z: float");
    TF_RegisterOpDefinition(b, s);
    TF_RegisterKernelBuilder("PeerAdd", TF_NewKernelBuilder("PeerAdd", "CPU", NULL, add_compute, NULL), s);
    TF_DeleteStatus(s);
}
