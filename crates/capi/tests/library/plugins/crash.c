/* A plugin whose kernel crashes, in one of several ways. */
#include <stdlib.h>
#include "tfrt_capi.h"

static void* crash_create(TF_OpKernelConstruction* c) {
    TF_Status* s = TF_NewStatus();
    int32_t way = 0;
    TF_OpKernelConstruction_GetAttrInt32(c, "way", &way, s);
    TF_DeleteStatus(s);
    return (void*)(intptr_t)way;
}

static void crash_compute(void* state, TF_OpKernelContext* ctx) {
    (void)ctx;
    volatile int zero = 0, *volatile nowhere = NULL;
    switch ((intptr_t)state) {
    case 0: *nowhere = 1; break;
    case 1: abort();
    case 2: zero = 7 / zero; break;
    case 3: exit(3);
    }
}

void TF_InitKernel(void) {
    TF_Status* s = TF_NewStatus();
    TF_OpDefinitionBuilder* op = TF_NewOpDefinitionBuilder("TestCrash");
    TF_OpDefinitionBuilderAddAttr(op, "way: int");
    TF_OpDefinitionBuilderAddOutput(op, "never: float");
    TF_RegisterOpDefinition(op, s);
    TF_RegisterKernelBuilder("TestCrash", TF_NewKernelBuilder("TestCrash", "CPU", crash_create, crash_compute, NULL), s);
    TF_DeleteStatus(s);
}
