/* A plugin of TensorFlow's optimizers on resource variables, of all elements and of rows, for float and double. Each
   number is rounded for itself, in the order in which TensorFlow calculates. This file includes itself, once for each
   type, as a template. */
#ifndef T
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tfrt_capi.h"

enum { MOST_STATES = 4, MOST_NUMBERS = 6 };

/* What is fixed of a node. */
typedef struct { unsigned char use_locking, flag; } Node;

static void copy(TF_OpKernelContext* ctx, TF_Tensor* from, TF_Tensor* to) {
    (void)ctx;
    memcpy(TF_TensorData(to), TF_TensorData(from), TF_TensorByteSize(from));
    TF_DeleteTensor(from);
    TF_DeleteTensor(to);
}

static void* node_of(TF_OpKernelConstruction* c, const char* flag) {
    TF_Status* s = TF_NewStatus();
    Node* node = calloc(1, sizeof *node);
    TF_OpKernelConstruction_GetAttrBool(c, "use_locking", &node->use_locking, s);
    if (TF_GetCode(s) == 0 && *flag) TF_OpKernelConstruction_GetAttrBool(c, flag, &node->flag, s);
    if (TF_GetCode(s) != 0) TF_OpKernelConstruction_Failure(c, s);
    TF_DeleteStatus(s);
    return node;
}

/* Operation, number of variables, index of the gradient, attribute that is its flag. */
#define OPTIMIZERS(X) \
    X(AdaMax, 3, 8, "") \
    X(Adadelta, 3, 6, "") \
    X(Adagrad, 2, 3, "update_slots") \
    X(AdagradDA, 3, 3, "") \
    X(AdagradV2, 2, 4, "update_slots") \
    X(Adam, 3, 9, "use_nesterov") \
    X(AdamWithAmsgrad, 4, 10, "") \
    X(AddSign, 2, 6, "") \
    X(CenteredRMSProp, 4, 8, "") \
    X(Ftrl, 3, 3, "multiply_linear_by_lr") \
    X(FtrlV2, 3, 3, "multiply_linear_by_lr") \
    X(GradientDescent, 1, 2, "") \
    X(KerasMomentum, 2, 3, "use_nesterov") \
    X(Momentum, 2, 3, "use_nesterov") \
    X(PowerSign, 2, 6, "") \
    X(ProximalAdagrad, 2, 5, "") \
    X(ProximalGradientDescent, 1, 4, "") \
    X(RMSProp, 3, 7, "")

/* Those that change rows: as above, then the steps of rows, and of rows of one number. The input after the gradient has
   the numbers of the rows. */
#define OPTIMIZERS_OF_ROWS(X) \
    X(Adadelta, 3, 6, "", Adadelta, Adadelta) \
    X(Adagrad, 2, 3, "update_slots", Adagrad, AdagradOfOne) \
    X(AdagradDA, 3, 3, "", AdagradDARows, AdagradDAOfOne) \
    X(AdagradV2, 2, 4, "update_slots", AdagradV2, AdagradV2) \
    X(CenteredRMSProp, 4, 8, "", CenteredRMSPropRows, CenteredRMSPropRows) \
    X(Ftrl, 3, 3, "multiply_linear_by_lr", Ftrl, FtrlOfOne) \
    X(FtrlV2, 3, 3, "multiply_linear_by_lr", FtrlV2, FtrlV2OfOne) \
    X(KerasMomentum, 2, 3, "use_nesterov", KerasMomentum, KerasMomentum) \
    X(Momentum, 2, 3, "use_nesterov", MomentumRows, MomentumRows) \
    X(ProximalAdagrad, 2, 5, "", ProximalAdagrad, ProximalAdagradOfOne) \
    X(ProximalGradientDescent, 1, 4, "", ProximalGradientDescent, ProximalGradientDescentOfOne) \
    X(RMSProp, 3, 7, "", RMSPropRows, RMSPropRows)

#define CREATE(name, n_states, gradient, flag) \
    static void* name##_create(TF_OpKernelConstruction* c) { return node_of(c, flag); }
OPTIMIZERS(CREATE)

#define T float
#define TYPE 1
#define OF(name) name##_float
#define M(name) name##f
#include "optimizers.c"
#undef T
#undef TYPE
#undef OF
#undef M
#define T double
#define TYPE 2
#define OF(name) name##_double
#define M(name) name
#include "optimizers.c"

static void add(const char* prefix, const char* op, void* (*create)(TF_OpKernelConstruction*),
                void (*compute)(void*, TF_OpKernelContext*), int type) {
    TF_Status* s = TF_NewStatus();
    char name[64] = "";
    strcpy(name, prefix);
    TF_KernelBuilder* b = TF_NewKernelBuilder(strcat(name, op), "CPU", create, compute, free);
    TF_KernelBuilder_TypeConstraint(b, "T", type, s);
    TF_KernelBuilder_Priority(b, 1);
    TF_RegisterKernelBuilder(op, b, s);
    TF_DeleteStatus(s);
}

#define ADD(name, n_states, gradient, flag) \
    add("ResourceApply", #name, name##_create, name##_float, 1); \
    add("ResourceApply", #name, name##_create, name##_double, 2);
#define ADD_ROWS(name, n_states, gradient, flag, rows, one) \
    add("ResourceSparseApply", #name, name##_create, name##_rows_float, 1); \
    add("ResourceSparseApply", #name, name##_create, name##_rows_double, 2);

void TF_InitKernel(void) {
    OPTIMIZERS(ADD)
    OPTIMIZERS_OF_ROWS(ADD_ROWS)
}

#else

typedef void OF(Step)(T* const* states, int64_t i, T g, const T* numbers, int flag);

static T OF(sign)(T x) { return (T)(x > 0) - (T)(x < 0); }
static T OF(larger)(T x, T y) { return x < y ? y : x; }
static T OF(power)(T x, T y) { return y == (T)0.5 ? M(sqrt)(x) : M(pow)(x, y); }

#define STEP(name) static void OF(name##_step)(T* const* states, int64_t i, T g, const T* n, int flag)
#define AT(index) states[index][i]

STEP(GradientDescent) { (void)flag; AT(0) -= g * n[0]; }

STEP(Momentum) {
    T accum = AT(1) = AT(1) * n[1] + g;
    AT(0) -= flag ? g * n[0] + accum * n[1] * n[0] : accum * n[0];
}

STEP(KerasMomentum) {
    T accum = AT(1) = AT(1) * n[1] - g * n[0];
    AT(0) += flag ? accum * n[1] - g * n[0] : accum;
}

STEP(Adam) {
    T rate = n[2] * M(sqrt)(1 - n[1]) / (1 - n[0]), beta1 = n[3];
    T m = AT(1) = AT(1) + (g - AT(1)) * (1 - beta1);
    T v = AT(2) = AT(2) + (g * g - AT(2)) * (1 - n[4]);
    AT(0) -= (flag ? (g * (1 - beta1) + beta1 * m) * rate : m * rate) / (M(sqrt)(v) + n[5]);
}

STEP(AdamWithAmsgrad) {
    (void)flag;
    T rate = n[2] * M(sqrt)(1 - n[1]) / (1 - n[0]);
    T m = AT(1) = AT(1) + (g - AT(1)) * (1 - n[3]);
    T v = AT(2) = AT(2) + (g * g - AT(2)) * (1 - n[4]);
    T most = AT(3) = OF(larger)(AT(3), v);
    AT(0) -= m * rate / (M(sqrt)(most) + n[5]);
}

STEP(AdaMax) {
    (void)flag;
    T m = AT(1) = AT(1) + (g - AT(1)) * (1 - n[2]);
    T v = AT(2) = OF(larger)(n[3] * AT(2), M(fabs)(g));
    AT(0) -= n[1] / (1 - n[0]) * (m / (v + n[4]));
}

STEP(Adagrad) {
    T accum = AT(1) = flag ? AT(1) + g * g : AT(1);
    AT(0) -= g * n[0] * (1 / M(sqrt)(accum));
}

STEP(AdagradV2) {
    T accum = AT(1) = flag ? AT(1) + g * g : AT(1);
    AT(0) -= g * n[0] / (M(sqrt)(accum) + n[1]);
}

STEP(AdagradDA) {
    (void)flag;
    T lr = n[0], l1 = n[1], steps = n[3];
    T sum = AT(1) = AT(1) + g;
    T squares = AT(2) = AT(2) + g * g;
    T divisor = n[2] * steps * lr + M(sqrt)(squares);
    AT(0) = l1 > 0 ? (0 - lr) * OF(sign)(sum) * OF(larger)(M(fabs)(sum) - steps * l1, 0) / divisor
                   : (0 - lr) * sum / divisor;
}

STEP(Adadelta) {
    (void)flag;
    T rho = n[1];
    T accum = AT(1) = AT(1) * rho + g * g * (1 - rho);
    T update = M(sqrt)(AT(2) + n[2]) * (1 / M(sqrt)(accum + n[2])) * g;
    AT(2) = AT(2) * rho + update * update * (1 - rho);
    AT(0) -= update * n[0];
}

STEP(RMSProp) {
    (void)flag;
    T ms = AT(1) = AT(1) + (g * g - AT(1)) * (1 - n[1]);
    T mom = AT(2) = AT(2) * n[2] + g * n[0] / M(sqrt)(ms + n[3]);
    AT(0) -= mom;
}

STEP(CenteredRMSProp) {
    (void)flag;
    T ms = AT(2) = AT(2) + (g * g - AT(2)) * (1 - n[1]);
    T mg = AT(1) = AT(1) + (g - AT(1)) * (1 - n[1]);
    T mom = AT(3) = AT(3) * n[2] + g * n[0] / M(sqrt)(ms - mg * mg + n[3]);
    AT(0) -= mom;
}

static void OF(ftrl)(T* const* states, int64_t i, T g, T shrunk, const T* n, T power, int flag) {
    T lr = n[0], l1 = n[1], l2 = n[2], threshold = l1, divisor;
    T next = AT(1) + g * g;
    T root = OF(power)(next, 0 - power), before = OF(power)(AT(1), 0 - power);
    if (flag) {
        AT(2) = AT(2) + (shrunk * lr - (root - before) * AT(0));
        divisor = root + 2 * l2 * lr;
        threshold = l1 * lr;
    } else {
        AT(2) = AT(2) + (shrunk - (root - before) / lr * AT(0));
        divisor = root / lr + 2 * l2;
    }
    T linear = AT(2);
    AT(0) = M(fabs)(linear) > threshold ? (threshold * OF(sign)(linear) - linear) / divisor : 0;
    AT(1) = next;
}

STEP(Ftrl) { OF(ftrl)(states, i, g, g, n, n[3], flag); }
STEP(FtrlV2) { OF(ftrl)(states, i, g, g + 2 * n[3] * AT(0), n, n[4], flag); }

STEP(AddSign) {
    (void)flag;
    T m = AT(1) = AT(1) * n[3] + g * (1 - n[3]);
    AT(0) -= n[0] * (n[1] + n[2] * (OF(sign)(g) * OF(sign)(m))) * g;
}

STEP(PowerSign) {
    (void)flag;
    T m = AT(1) = AT(1) * n[3] + g * (1 - n[3]);
    AT(0) -= n[0] * M(exp)(n[1] * n[2] * (OF(sign)(g) * OF(sign)(m))) * g;
}

static T OF(proximal)(T p, T rate, T l1, T l2) {
    T divisor = 1 + l2 * rate;
    return l1 > 0 ? OF(sign)(p) * OF(larger)(M(fabs)(p) - rate * l1, 0) / divisor : p / divisor;
}

STEP(ProximalGradientDescent) {
    (void)flag;
    AT(0) = OF(proximal)(AT(0) - g * n[0], n[0], n[1], n[2]);
}

STEP(ProximalAdagrad) {
    (void)flag;
    T accum = AT(1) = AT(1) + g * g;
    T rate = n[0] * (1 / M(sqrt)(accum));
    AT(0) = OF(proximal)(AT(0) - g * rate, rate, n[1], n[2]);
}

/* Rows, where TensorFlow's kernels for them calculate in another order. */

STEP(MomentumRows) {
    T accum = AT(1) = AT(1) * n[1] + g;
    AT(0) -= flag ? g * n[0] + accum * (n[1] * n[0]) : accum * n[0];
}

STEP(RMSPropRows) {
    (void)flag;
    T ms = AT(1) = AT(1) * n[1] + g * g * (1 - n[1]);
    T mom = AT(2) = AT(2) * n[2] + 1 / M(sqrt)(ms + n[3]) * n[0] * g;
    AT(0) -= mom;
}

STEP(CenteredRMSPropRows) {
    (void)flag;
    T ms = AT(2) = AT(2) * n[1] + g * g * (1 - n[1]);
    T mg = AT(1) = AT(1) * n[1] + g * (1 - n[1]);
    T mom = AT(3) = AT(3) * n[2] + 1 / M(sqrt)(ms + n[3] - mg * mg) * n[0] * g;
    AT(0) -= mom;
}

STEP(AdagradDARows) {
    (void)flag;
    T l1 = n[1], steps = n[3];
    T sum = AT(1) = AT(1) + g;
    T squares = AT(2) = AT(2) + g * g;
    T divisor = n[2] + M(sqrt)(squares) / (steps * n[0]);
    AT(0) = l1 > 0 ? -OF(sign)(sum) * OF(larger)(M(fabs)(sum) / steps - l1, 0) / divisor : -(sum / steps) / divisor;
}

/* Rows of one number: partly in double. */

STEP(AdagradOfOne) {
    T accum = AT(1) = flag ? AT(1) + g * g : AT(1);
    AT(0) -= g * n[0] / M(sqrt)(accum);
}

STEP(AdagradDAOfOne) {
    (void)flag;
    double lr = n[0], l1 = n[1], steps = n[3];
    T sum = AT(1) = AT(1) + g;
    T squares = AT(2) = AT(2) + (double)g * g;
    double divisor = steps * n[2] * lr + M(sqrt)(squares), kept = M(fabs)(sum) - steps * l1;
    AT(0) = l1 > 0 ? OF(sign)(-sum) * lr * (kept > 0 ? kept : 0) / divisor : -sum * lr / divisor;
}

static void OF(ftrl_of_one)(T* const* states, int64_t i, T g, T shrunk, const T* n, T power, int flag) {
    T lr = n[0], l1 = n[1], l2 = n[2], threshold = l1, divisor;
    T next = AT(1) + g * g;
    T root = OF(power)(next, 0 - power), before = OF(power)(AT(1), 0 - power);
    if (flag) {
        AT(2) = AT(2) + shrunk * lr - (root - before) * AT(0);
        divisor = root + 2 * l2 * lr;
        threshold = l1 * lr;
    } else {
        AT(2) = AT(2) + shrunk - (root - before) / lr * AT(0);
        divisor = root / lr + 2 * l2;
    }
    T linear = AT(2);
    AT(0) = M(fabs)(linear) > threshold ? (threshold * OF(sign)(linear) - linear) / divisor : 0;
    AT(1) = next;
}

STEP(FtrlOfOne) { OF(ftrl_of_one)(states, i, g, g, n, n[3], flag); }
STEP(FtrlV2OfOne) { OF(ftrl_of_one)(states, i, g, g + 2 * n[3] * AT(0), n, n[4], flag); }

static T OF(proximal_of_one)(T p, T rate, T l1, T l2) {
    T kept = l1 > 0 ? OF(sign)(p) * OF(larger)(M(fabs)(p) - rate * l1, 0) : p;
    return kept / (1.0 + l2 * rate);
}

STEP(ProximalGradientDescentOfOne) {
    (void)flag;
    AT(0) = OF(proximal_of_one)(AT(0) - g * n[0], n[0], n[1], n[2]);
}

STEP(ProximalAdagradOfOne) {
    (void)flag;
    T accum = AT(1) = AT(1) + g * g;
    T rate = n[0] / M(sqrt)(accum);
    AT(0) = OF(proximal_of_one)(AT(0) - rate * g, rate, n[1], n[2]);
}

#undef STEP
#undef AT

/* Takes a step of all elements, with their variables locked. */
static void OF(all)(const Node* node, T* const* states, const T* numbers, TF_Tensor* const* tensors, int n_states,
                    int gradient, OF(Step)* step, TF_Status* s) {
    const T* g = TF_TensorData(tensors[gradient]);
    int64_t n = TF_TensorElementCount(tensors[gradient]);
    for (int at = 0; at < n_states; at++) {
        if (TF_TensorElementCount(tensors[at]) != n) {
            return TF_SetStatus(s, TF_INVALID_ARGUMENT, "var and grad do not have the same shape");
        }
    }
    for (int64_t i = 0; i < n; i++) step(states, i, g[i], numbers, node->flag);
}

/* Takes steps of rows, one after the other: `steps` are those of rows, and of rows of one number. */
static void OF(rows)(const Node* node, T* const* states, const T* numbers, TF_Tensor* const* tensors, int n_states,
                     int gradient, OF(Step)* const* steps, TF_Status* s) {
    const T* g = TF_TensorData(tensors[gradient]);
    const void* indices = TF_TensorData(tensors[gradient + 1]);
    int is_wide = TF_TensorType(tensors[gradient + 1]) == TF_INT64;
    int64_t n = TF_TensorElementCount(tensors[0]), n_rows = TF_NumDims(tensors[0]) ? TF_Dim(tensors[0], 0) : 0;
    int64_t n_indices = TF_TensorElementCount(tensors[gradient + 1]), width = n_rows ? n / n_rows : 0;
    for (int at = 1; at < n_states; at++) {
        if (TF_TensorElementCount(tensors[at]) != n) {
            return TF_SetStatus(s, TF_INVALID_ARGUMENT, "var and its states do not have the same shape");
        }
    }
    if (TF_TensorElementCount(tensors[gradient]) != n_indices * width) {
        return TF_SetStatus(s, TF_INVALID_ARGUMENT, "grad must be the same size as indices in the first dimension.");
    }
    OF(Step)* step = steps[width == 1];
    for (int64_t at = 0; at < n_indices; at++) {
        int64_t row = is_wide ? ((const int64_t*)indices)[at] : ((const int32_t*)indices)[at];
        if (row < 0 || row >= n_rows) {
            char text[96];
            snprintf(text, sizeof text, "Index %lld at offset %lld in indices is out of range", (long long)row,
                     (long long)at);
            return TF_SetStatus(s, TF_INVALID_ARGUMENT, text);
        }
        for (int64_t i = 0; i < width; i++) step(states, row * width + i, g[at * width + i], numbers, node->flag);
    }
}

/* Takes a step with all variables locked; `steps` are one of all elements, or two of rows. */
static void OF(run)(const Node* node, TF_OpKernelContext* ctx, int n_states, int gradient, OF(Step)* const* steps,
                    int is_sparse) {
    TF_Status* s = TF_NewStatus();
    TF_VariableInputLockHolder* holder = NULL;
    TF_Tensor *tensors[MOST_STATES + MOST_NUMBERS + 2] = {NULL};
    T* states[MOST_STATES] = {NULL};
    T numbers[MOST_NUMBERS] = {0};
    int inputs[MOST_STATES] = {0, 1, 2, 3}, n_inputs = TF_NumInputs(ctx), n_numbers = 0;
    TF_MaybeLockVariableInputMutexesInOrder(ctx, node->use_locking, is_sparse, inputs, n_states, copy, &holder, s);
    if (TF_GetCode(s) != 0) goto end;
    for (int at = n_states; at < n_inputs; at++) {
        TF_GetInput(ctx, at, &tensors[at], s);
        if (TF_GetCode(s) != 0) goto end;
        if (at == gradient || (is_sparse && at == gradient + 1)) continue;
        if (TF_NumDims(tensors[at]) != 0) {
            TF_SetStatus(s, TF_INVALID_ARGUMENT, "a number is not a scalar");
            goto end;
        }
        const void* data = TF_TensorData(tensors[at]);
        numbers[n_numbers++] = TF_TensorType(tensors[at]) == TYPE ? *(const T*)data : (T)*(const int64_t*)data;
    }
    for (int at = 0; at < n_states; at++) {
        TF_GetInputTensorFromVariable(ctx, at, node->use_locking, false, is_sparse, copy, &tensors[at], s);
        if (TF_GetCode(s) != 0) goto end;
        states[at] = TF_TensorData(tensors[at]);
    }
    if (is_sparse) OF(rows)(node, states, numbers, tensors, n_states, gradient, steps, s);
    else OF(all)(node, states, numbers, tensors, n_states, gradient, steps[0], s);
end:
    if (TF_GetCode(s) != 0) TF_OpKernelContext_Failure(ctx, s);
    for (int at = 0; at < n_inputs; at++) TF_DeleteTensor(tensors[at]);
    TF_ReleaseVariableInputLockHolder(holder);
    TF_DeleteStatus(s);
}

#define COMPUTE(name, n_states, gradient, flag) \
    static void OF(name)(void* node, TF_OpKernelContext* ctx) { \
        OF(Step)* const steps[] = {OF(name##_step)}; \
        OF(run)(node, ctx, n_states, gradient, steps, 0); \
    }
#define COMPUTE_ROWS(name, n_states, gradient, flag, rows, one) \
    static void OF(name##_rows)(void* node, TF_OpKernelContext* ctx) { \
        OF(Step)* const steps[] = {OF(rows##_step), OF(one##_step)}; \
        OF(run)(node, ctx, n_states, gradient, steps, 1); \
    }
OPTIMIZERS(COMPUTE)
OPTIMIZERS_OF_ROWS(COMPUTE_ROWS)
#undef COMPUTE
#undef COMPUTE_ROWS
#endif
