/* A plugin whose kernel counts the calls on its state, and the states that there are. */
#include <stdatomic.h>
#include <stdlib.h>
#include "tfrt_capi.h"

static atomic_int n_created, n_deleted;

static void* node_create(TF_OpKernelConstruction* c) {
    (void)c;
    n_created++;
    return calloc(1, sizeof(atomic_int));
}

static void node_delete(void* state) {
    n_deleted++;
    free(state);
}

static void node_compute(void* state, TF_OpKernelContext* ctx) {
    atomic_int* n_calls = state;
    TF_Status* s = TF_NewStatus();
    int64_t dims[] = {3};
    TF_Tensor* z = TF_AllocateOutput(ctx, 0, TF_INT32, dims, 1, 12, s);
    int32_t* to = TF_TensorData(z);
    to[0] = ++*n_calls;
    to[1] = n_created;
    to[2] = n_deleted;
    TF_DeleteTensor(z);
    TF_DeleteStatus(s);
}

void TF_InitKernel(void) {
    TF_Status* s = TF_NewStatus();
    TF_OpDefinitionBuilder* op = TF_NewOpDefinitionBuilder("TestNode");
    TF_OpDefinitionBuilderAddAttr(op, "T: type");
    TF_OpDefinitionBuilderAddAttr(op, "n: int = 0");
    TF_OpDefinitionBuilderAddAttr(op, "table: tensor = {dtype: DT_FLOAT, tensor_shape: {}}");
    TF_OpDefinitionBuilderAddInput(op, "x: T");
    TF_OpDefinitionBuilderAddOutput(op, "counts: int32");
    TF_RegisterOpDefinition(op, s);
    TF_KernelBuilder* kernel = TF_NewKernelBuilder("TestNode", "CPU", node_create, node_compute, node_delete);
    TF_RegisterKernelBuilder("TestNode", kernel, s);
    TF_DeleteStatus(s);
}
