/* Calls operations eagerly by TensorFlow's C API: what `capi_eager.py` measures.
 *
 *     capi_eager OP PLUGIN N
 *
 * calls PeerAdd or AddV2 on four floats, ReadVariableOp on a variable of four, or ResourceApplyAdam on 10,000,000 floats,
 * N times, on one thread.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensorflow/c/c_api.h"
#include "tensorflow/c/c_api_experimental.h"
#include "tensorflow/c/eager/c_api.h"

static TF_Status* status;
static TFE_Context* context;

static void check(void) {
    if (TF_GetCode(status) != TF_OK) {
        fprintf(stderr, "%s\n", TF_Message(status));
        exit(1);
    }
}

static TFE_TensorHandle* floats(const int64_t* extents, int rank, int64_t n, float value) {
    TF_Tensor* tensor = TF_AllocateTensor(TF_FLOAT, extents, rank, n * sizeof(float));
    float* data = TF_TensorData(tensor);
    for (int64_t i = 0; i < n; i++) data[i] = value;
    TFE_TensorHandle* handle = TFE_NewTensorHandle(tensor, status);
    check();
    TF_DeleteTensor(tensor);
    return handle;
}

static TFE_Op* op(const char* name, TFE_TensorHandle** inputs, int n_inputs) {
    TFE_Op* made = TFE_NewOp(context, name, status);
    check();
    for (int i = 0; i < n_inputs; i++) TFE_OpAddInput(made, inputs[i], status);
    check();
    return made;
}

static TFE_TensorHandle* execute(TFE_Op* called, int n_results) {
    TFE_TensorHandle* result = NULL;
    TFE_Execute(called, &result, &n_results, status);
    check();
    TFE_DeleteOp(called);
    return result;
}

static TFE_TensorHandle* variable(const char* name, TFE_TensorHandle* value) {
    TFE_Op* made = op("VarHandleOp", NULL, 0);
    TFE_OpSetAttrType(made, "dtype", TF_FLOAT);
    TFE_OpSetAttrShape(made, "shape", NULL, -1, status);
    TFE_OpSetAttrString(made, "shared_name", name, strlen(name));
    TFE_OpSetAttrString(made, "container", "", 0);
    TFE_TensorHandle* handle = execute(made, 1);
    TFE_TensorHandle* inputs[] = {handle, value};
    TFE_Op* assign = op("AssignVariableOp", inputs, 2);
    TFE_OpSetAttrType(assign, "dtype", TF_FLOAT);
    execute(assign, 0);
    return handle;
}

int main(int n_args, char** args) {
    if (n_args != 4) return 2;
    const char* name = args[1];
    int n = atoi(args[3]);
    status = TF_NewStatus();
    TFE_ContextOptions* options = TFE_NewContextOptions();
    /* ConfigProto: one thread inside operations, one between them. */
    TFE_ContextOptionsSetConfig(options, "\x10\x01\x28\x01", 4, status);
    check();
    context = TFE_NewContext(options, status);
    check();
    if (*args[2]) {
        TF_LoadPluggableDeviceLibrary(args[2], status);
        check();
    }
    int64_t four = 4, many = 10000000;
    TFE_TensorHandle* inputs[10];
    int n_inputs = 2, n_results = 1;
    const char* type = "T";
    if (strcmp(name, "ResourceApplyAdam") == 0) {
        const float numbers[] = {0.9f, 0.999f, 0.001f, 0.9f, 0.999f, 1e-7f};
        inputs[0] = variable("weights", floats(&many, 1, many, 1));
        inputs[1] = variable("m", floats(&many, 1, many, 0));
        inputs[2] = variable("v", floats(&many, 1, many, 0));
        for (int i = 0; i < 6; i++) inputs[3 + i] = floats(NULL, 0, 1, numbers[i]);
        inputs[9] = floats(&many, 1, many, 0.5f);
        n_inputs = 10;
        n_results = 0;
    } else if (strcmp(name, "ReadVariableOp") == 0) {
        inputs[0] = variable("v", floats(&four, 1, 4, 1));
        n_inputs = 1;
        type = "dtype";
    } else {
        inputs[0] = floats(&four, 1, 4, 1);
        inputs[1] = floats(&four, 1, 4, 2);
        if (strcmp(name, "AddV2") != 0) type = NULL;
    }
    for (int i = 0; i < n; i++) {
        TFE_Op* called = op(name, inputs, n_inputs);
        if (type) TFE_OpSetAttrType(called, type, TF_FLOAT);
        TFE_TensorHandle* result = execute(called, n_results);
        if (result) TFE_DeleteTensorHandle(result);
    }
    return 0;
}
