/* A plugin of operations that try the functions of variables, with uses that are wrong where an attribute says so. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "tfrt_capi.h"

static atomic_int n_copies, n_added, n_deleted;

static void copy(TF_OpKernelContext* ctx, TF_Tensor* from, TF_Tensor* to) {
    (void)ctx;
    n_copies++;
    memcpy(TF_TensorData(to), TF_TensorData(from), TF_TensorByteSize(from));
    TF_DeleteTensor(from);
    TF_DeleteTensor(to);
}

static void failing_copy(TF_OpKernelContext* ctx, TF_Tensor* from, TF_Tensor* to) {
    TF_Status* s = TF_NewStatus();
    TF_SetStatus(s, 8, "no room for a copy");
    TF_OpKernelContext_Failure(ctx, s);
    TF_DeleteStatus(s);
    TF_DeleteTensor(from);
    TF_DeleteTensor(to);
}

/* Asks for the variable that is being copied. */
static void asking_copy(TF_OpKernelContext* ctx, TF_Tensor* from, TF_Tensor* to) {
    TF_Status* s = TF_NewStatus();
    TF_Tensor* other = NULL;
    TF_GetInputTensorFromVariable(ctx, 0, true, false, false, copy, &other, s);
    TF_DeleteTensor(other);
    TF_DeleteStatus(s);
    copy(ctx, from, to);
}

static void update(TF_OpKernelContext* ctx, TF_Tensor* to, TF_Tensor* from, int op) {
    (void)ctx;
    float* x = TF_TensorData(to);
    const float* y = TF_TensorData(from);
    for (int64_t i = 0; i < TF_TensorElementCount(to); i++) x[i] += op == 1 ? -y[i] : y[i];
    TF_DeleteTensor(from);
    TF_DeleteTensor(to);
}

static void end(TF_OpKernelContext* ctx, TF_Status* s) {
    if (TF_GetCode(s) != 0) TF_OpKernelContext_Failure(ctx, s);
    TF_DeleteStatus(s);
}

static void give(TF_OpKernelContext* ctx, int at, int32_t number) {
    TF_Status* s = TF_NewStatus();
    TF_Tensor* z = TF_AllocateOutput(ctx, at, TF_INT32, NULL, 0, 4, s);
    *(int32_t*)TF_TensorData(z) = number;
    TF_DeleteTensor(z);
    TF_DeleteStatus(s);
}

static void* code_create(TF_OpKernelConstruction* c) {
    TF_Status* s = TF_NewStatus();
    int32_t code = 0;
    TF_OpKernelConstruction_GetAttrInt32(c, "code", &code, s);
    TF_DeleteStatus(s);
    return (void*)(intptr_t)code;
}

/* How often copies were made since this was asked. */
static void copies_compute(void* state, TF_OpKernelContext* ctx) {
    (void)state;
    give(ctx, 0, atomic_exchange(&n_copies, 0));
}

static void assign_compute(void* state, TF_OpKernelContext* ctx) {
    TF_Status* s = TF_NewStatus();
    TF_AssignVariable(ctx, 0, 1, state != NULL, copy, s);
    end(ctx, s);
}

static void update_compute(void* state, TF_OpKernelContext* ctx) {
    TF_Status* s = TF_NewStatus();
    TF_AssignUpdateVariable(ctx, 0, 1, (int)(intptr_t)state, 0, copy, update, s);
    end(ctx, s);
}

/* Gives the variable's own memory out. */
static void peek_compute(void* state, TF_OpKernelContext* ctx) {
    (void)state;
    TF_Status* s = TF_NewStatus();
    TF_Tensor* x = NULL;
    TF_GetInputTensorFromVariable(ctx, 0, false, false, false, copy, &x, s);
    if (TF_GetCode(s) == 0) TF_SetOutput(ctx, 0, x, s);
    TF_DeleteTensor(x);
    end(ctx, s);
}

/* Adds a number to variables, which are locked; may wait until another call is there as well. */
typedef struct { unsigned char do_lock, sparse; int32_t meet; float add; } Change;

static void* change_create(TF_OpKernelConstruction* c) {
    TF_Status* s = TF_NewStatus();
    Change* change = calloc(1, sizeof *change);
    TF_OpKernelConstruction_GetAttrBool(c, "use_locking", &change->do_lock, s);
    TF_OpKernelConstruction_GetAttrBool(c, "sparse", &change->sparse, s);
    TF_OpKernelConstruction_GetAttrFloat(c, "add", &change->add, s);
    TF_OpKernelConstruction_GetAttrInt32(c, "meet", &change->meet, s);
    TF_DeleteStatus(s);
    return change;
}

static pthread_mutex_t meeting = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t has_come = PTHREAD_COND_INITIALIZER;
static int n_inside, n_met;

/* Waits until as many are inside, or for some milliseconds; returns whether they came. */
static int meet(int wanted, int ms) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += ms / 1000;
    until.tv_nsec += ms % 1000 * 1000000L;
    if (until.tv_nsec >= 1000000000L) { until.tv_sec++; until.tv_nsec -= 1000000000L; }
    pthread_mutex_lock(&meeting);
    if (++n_inside >= wanted) { n_met = 1; pthread_cond_broadcast(&has_come); }
    while (!n_met && pthread_cond_timedwait(&has_come, &meeting, &until) == 0) {}
    int met = n_met;
    if (--n_inside == 0) n_met = 0;
    pthread_mutex_unlock(&meeting);
    return met;
}

static void change_compute(void* state, TF_OpKernelContext* ctx) {
    const Change* change = state;
    TF_Status* s = TF_NewStatus();
    TF_VariableInputLockHolder* holder = NULL;
    int inputs[8] = {0, 1, 2, 3, 4, 5, 6, 7}, n = TF_NumInputs(ctx), met = 0;
    TF_MaybeLockVariableInputMutexesInOrder(ctx, change->do_lock, change->sparse, inputs, n, copy, &holder, s);
    for (int at = 0; at < n && TF_GetCode(s) == 0; at++) {
        TF_Tensor* x = NULL;
        TF_GetInputTensorFromVariable(ctx, at, change->do_lock, false, change->sparse, copy, &x, s);
        if (TF_GetCode(s) == 0) {
            if (at == 0 && change->meet) met = meet(change->meet, change->do_lock ? 100 : 10000);
            float* elements = TF_TensorData(x);
            for (int64_t i = 0; i < TF_TensorElementCount(x); i++) elements[i] += change->add;
        }
        TF_DeleteTensor(x);
    }
    TF_ReleaseVariableInputLockHolder(holder);
    give(ctx, 0, met);
    end(ctx, s);
}

/* Has a lock for readers, meets another call, and assigns: or, without a holder, locks for itself at once. */
static void upgrade_compute(void* state, TF_OpKernelContext* ctx) {
    TF_Status* s = TF_NewStatus();
    TF_VariableInputLockHolder *shared = NULL, *alone = NULL;
    int inputs[] = {0};
    if (state == NULL) {
        TF_MaybeLockVariableInputMutexesInOrder(ctx, true, false, inputs, 1, copy, &alone, s);
    } else {
        TF_MaybeLockVariableInputMutexesInOrder(ctx, false, false, inputs, 1, copy, &shared, s);
        meet((int)(intptr_t)state, 10000);
    }
    if (TF_GetCode(s) == 0) TF_AssignUpdateVariable(ctx, 0, 1, 0, 0, copy, update, s);
    TF_ReleaseVariableInputLockHolder(shared);
    TF_ReleaseVariableInputLockHolder(alone);
    end(ctx, s);
}

/* A wrong use, by number. Inputs: a variable, another resource or variable, floats. */
static void wrong_compute(void* state, TF_OpKernelContext* ctx) {
    TF_Status* s = TF_NewStatus();
    TF_Tensor *x = NULL, *y = NULL;
    TF_VariableInputLockHolder* holder = NULL;
    TF_VariableInfo* info = NULL;
    void* object = NULL;
    int first[] = {0}, second[] = {1}, bad[] = {0, 9};
    int64_t dims[] = {1};
    TF_StringView name = {"w", 1};
    TF_GetInput(ctx, 2, &y, s);
    switch ((int)(intptr_t)state) {
    case 0: TF_GetInputTensorFromVariable(ctx, 7, true, false, false, copy, &x, s); break;
    case 1: TF_GetInputTensorFromVariable(ctx, -1, true, false, false, copy, &x, NULL); break;
    case 2: TF_GetInputTensorFromVariable(ctx, 2, true, false, false, copy, &x, s); break;
    case 3: TF_GetInputTensorFromVariable(ctx, 0, true, false, false, copy, NULL, s); break;
    case 4: TF_GetInputTensorFromVariable(NULL, 0, true, false, false, copy, &x, s); break;
    case 5: TF_GetInputTensorFromVariable((TF_OpKernelContext*)y, 0, true, false, false, copy, &x, s); break;
    case 6: TF_GetInputTensorFromVariable(ctx, 1, true, false, false, copy, &x, s); break;
    case 7: TF_MaybeLockVariableInputMutexesInOrder(ctx, true, false, bad, 2, copy, &holder, s); break;
    case 8: TF_MaybeLockVariableInputMutexesInOrder(ctx, true, false, NULL, 2, copy, &holder, s); break;
    case 9: TF_MaybeLockVariableInputMutexesInOrder(ctx, true, false, first, 1, copy, NULL, s); break;
    case 10: TF_MaybeLockVariableInputMutexesInOrder(ctx, true, false, second, 1, copy, &holder, s); break;
    case 11: TF_MaybeLockVariableInputMutexesInOrder(NULL, true, false, first, 1, copy, &holder, s); break;
    case 12: TF_MaybeLockVariableInputMutexesInOrder(ctx, true, false, first, 1, copy, &holder, s);
             TF_ReleaseVariableInputLockHolder(holder);
             break;
    case 13: TF_ReleaseVariableInputLockHolder((TF_VariableInputLockHolder*)y); break;
    case 14: TF_AssignVariable(ctx, 0, 9, false, copy, s); break;
    case 15: TF_AssignVariable(ctx, 2, 2, false, copy, s); break;
    case 16: TF_AssignVariable((TF_OpKernelContext*)0x7fff12345670, 0, 2, false, copy, s); break;
    case 17: TF_AssignUpdateVariable(ctx, 0, 2, 0, 0, copy, NULL, s); break;
    case 18: TF_AssignUpdateVariable(ctx, 0, -3, 0, 0, copy, update, s); break;
    case 19: TF_AssignUpdateVariable(ctx, 1, 2, 0, 0, copy, update, s); break;
    case 20: TF_AssignRefVariable(ctx, 0, 0, 2, false, false, copy, s); break;
    case 21: TF_AssignRefVariable(ctx, 2, 0, 2, false, false, copy, s); break;
    case 22: TF_OpKernelContext_ForwardRefInputToRefOutput(ctx, 2, 0); break;
    case 23: TF_OpKernelContext_ForwardRefInputToRefOutput(ctx, 8, 0); break;
    case 24: TF_TemporaryVariable(ctx, TF_FLOAT, dims, 1, NULL, NULL, s); break;
    case 25: TF_TemporaryVariable(ctx, TF_FLOAT, NULL, 1, &name, NULL, s); break;
    case 26: TF_DestroyTemporaryVariable(ctx, 0, &name, s); break;
    case 27: TF_AddNVariant(ctx, NULL, s); break;
    case 28: TF_ZerosLikeVariant(ctx, copy, s); break;
    case 29: TF_CreateVariableInfoFromContext(ctx, 2, s); break;
    case 30: TF_LockVariableInfos(NULL, 2, s); break;
    case 31: TF_LockVariableInfos(&info, 1, s); break;
    case 32: TF_GetTensorFromVariableInfo(NULL, s); break;
    case 33: TF_AllocateTempForVariableInfo(ctx, NULL, s); break;
    case 34: info = TF_CreateVariableInfoFromContext(ctx, 0, s);
             TF_DeleteVariableInfo(info);
             TF_DeleteVariableInfo(info);
             break;
    case 35: TF_CreatePluginResource(ctx, NULL, "r", NULL, NULL, s); break;
    case 36: TF_LookupOrCreatePluginResource(ctx, "", "r", &object, NULL, NULL, NULL, s); break;
    case 37: TF_GetDevice(NULL); break;
    case 38: TF_CreateVariableInfoFromContext(ctx, 1, s); break;
    case 39: TF_GetInputTensorFromVariable(ctx, 0, true, false, false, failing_copy, &x, s); break;
    case 40: TF_GetInputTensorFromVariable(ctx, 0, true, false, false, asking_copy, &x, s); break;
    default: break;
    }
    /* What is told to the status is not told again: the host has failed the call. */
    TF_ReleaseVariableInputLockHolder(holder);
    TF_DeleteTensor(x);
    TF_DeleteTensor(y);
    TF_DeleteStatus(s);
}

/* References. */
static void ref_assign_compute(void* state, TF_OpKernelContext* ctx) {
    (void)state;
    TF_Status* s = TF_NewStatus();
    if (!TF_IsRefInput(ctx, 0, s) || TF_IsRefInput(ctx, 1, s) || TF_InputDatatype(ctx, 0) != 101) {
        TF_SetStatus(s, TF_INTERNAL, "the first input is no reference");
    } else {
        TF_AssignRefVariable(ctx, 0, 0, 1, true, true, copy, s);
    }
    end(ctx, s);
}

static void ref_add_compute(void* state, TF_OpKernelContext* ctx) {
    (void)state;
    TF_Status* s = TF_NewStatus();
    TF_VariableInputLockHolder* holder = NULL;
    TF_Tensor *x = NULL, *y = NULL;
    int inputs[] = {0, 1};
    TF_MaybeLockVariableInputMutexesInOrder(ctx, true, false, inputs, 2, copy, &holder, s);
    if (TF_GetCode(s) == 0) TF_GetInputTensorFromVariable(ctx, 0, true, false, false, copy, &x, s);
    if (TF_GetCode(s) == 0) {
        TF_GetInput(ctx, 1, &y, s);
        update(ctx, x, y, 0);
        TF_OpKernelContext_ForwardRefInputToRefOutput(ctx, 0, 0);
    }
    TF_ReleaseVariableInputLockHolder(holder);
    end(ctx, s);
}

static void allocate(TF_OpKernelContext* ctx, TF_Tensor* to, TF_DataType dtype, const int64_t* dims, int n, TF_Status* s) {
    TF_Tensor* own = TF_AllocateTemp(ctx, dtype, dims, n, NULL, s);
    if (TF_GetCode(s) == 0) TF_TensorBitcastFrom(own, dtype, to, dims, n, s);
    for (int64_t i = 0; i < TF_TensorElementCount(to); i++) ((float*)TF_TensorData(to))[i] = 7 + i;
    TF_DeleteTensor(own);
}

static void temporary_compute(void* state, TF_OpKernelContext* ctx) {
    (void)state;
    TF_Status* s = TF_NewStatus();
    int64_t dims[] = {3};
    TF_StringView name = {"temporary", 9};
    TF_TemporaryVariable(ctx, TF_FLOAT, dims, 1, &name, allocate, s);
    end(ctx, s);
}

static void destroy_temporary_compute(void* state, TF_OpKernelContext* ctx) {
    (void)state;
    TF_Status* s = TF_NewStatus();
    TF_StringView name = {"temporary", 9};
    TF_DestroyTemporaryVariable(ctx, 0, &name, s);
    end(ctx, s);
}

/* Variants. */
static void binary_add(TF_OpKernelContext* ctx, TF_Tensor* x, TF_Tensor* y, TF_Tensor* out) {
    (void)ctx;
    n_added++;
    const float *a = TF_TensorData(x), *b = TF_TensorData(y);
    float* c = TF_TensorData(out);
    for (int64_t i = 0; i < TF_TensorElementCount(out); i++) c[i] = a[i] + b[i];
    TF_DeleteTensor(x);
    TF_DeleteTensor(y);
    TF_DeleteTensor(out);
}

static void fill_zeros(TF_OpKernelContext* ctx, TF_Tensor* x, TF_Tensor* out) {
    (void)ctx;
    n_added++;
    memset(TF_TensorData(out), 0, TF_TensorByteSize(out));
    TF_DeleteTensor(x);
    TF_DeleteTensor(out);
}

static void add_n_compute(void* state, TF_OpKernelContext* ctx) {
    (void)state;
    TF_Status* s = TF_NewStatus();
    TF_AddNVariant(ctx, binary_add, s);
    end(ctx, s);
}

static void zeros_like_compute(void* state, TF_OpKernelContext* ctx) {
    (void)state;
    TF_Status* s = TF_NewStatus();
    TF_ZerosLikeVariant(ctx, fill_zeros, s);
    end(ctx, s);
}

static void added_compute(void* state, TF_OpKernelContext* ctx) {
    (void)state;
    give(ctx, 0, atomic_exchange(&n_added, 0));
}

/* An object of the plugin among the resources, which counts. */
static void* make_object(void* argument) {
    int* count = malloc(sizeof *count);
    *count = (int)(intptr_t)argument;
    return count;
}

static void delete_object(void* object) {
    n_deleted++;
    free(object);
}

static void resource_compute(void* state, TF_OpKernelContext* ctx) {
    TF_Status* s = TF_NewStatus();
    void* object = NULL;
    if (state != NULL) {
        TF_CreatePluginResource(ctx, "box", "count", make_object(state), delete_object, s);
        give(ctx, 0, n_deleted);
    } else {
        TF_LookupOrCreatePluginResource(ctx, "box", "count", &object, make_object, (void*)40, delete_object, s);
        give(ctx, 0, object ? ++*(int*)object : -1);
    }
    if (TF_GetDevice(ctx) == NULL || TF_GetDevice(ctx) != TF_GetDevice(ctx)) TF_SetStatus(s, TF_INTERNAL, "no device");
    end(ctx, s);
}

/* Variables found one by one: the first gets the sum of both, in memory of its own if the state says so. */
static void infos_compute(void* state, TF_OpKernelContext* ctx) {
    TF_Status* s = TF_NewStatus();
    TF_VariableInfo* infos[2] = {NULL, NULL};
    TF_Tensor *x = NULL, *y = NULL;
    for (int at = 0; at < 2 && TF_GetCode(s) == 0; at++) infos[at] = TF_CreateVariableInfoFromContext(ctx, at, s);
    if (TF_GetCode(s) == 0) TF_LockVariableInfos(infos, 2, s);
    if (TF_GetCode(s) == 0 && state != NULL) TF_AllocateTempForVariableInfo(ctx, infos[0], s);
    if (TF_GetCode(s) == 0) x = TF_GetTensorFromVariableInfo(infos[0], s);
    if (TF_GetCode(s) == 0) y = TF_GetTensorFromVariableInfo(infos[1], s);
    if (TF_GetCode(s) == 0) {
        for (int64_t i = 0; i < TF_TensorElementCount(x); i++) ((float*)TF_TensorData(x))[i] += ((float*)TF_TensorData(y))[i];
    }
    TF_DeleteTensor(x);
    TF_DeleteTensor(y);
    TF_DeleteVariableInfo(infos[0]);
    TF_DeleteVariableInfo(infos[1]);
    end(ctx, s);
}

/* A resource comes back as it was given. */
static void same_compute(void* state, TF_OpKernelContext* ctx) {
    (void)state;
    TF_Status* s = TF_NewStatus();
    TF_Tensor* x = NULL;
    TF_GetInputByName(ctx, "x", &x, s);
    if (TF_TensorType(x) != 20 || TF_NumDims(x) != 0 || TF_TensorByteSize(x) != 200) TF_SetStatus(s, TF_INTERNAL, "no handle");
    else TF_SetOutput(ctx, 0, x, s);
    TF_DeleteTensor(x);
    end(ctx, s);
}

static void define(const char* name, const char* const* attrs, const char* const* inputs, const char* const* outputs) {
    TF_Status* s = TF_NewStatus();
    TF_OpDefinitionBuilder* b = TF_NewOpDefinitionBuilder(name);
    for (; *attrs; attrs++) TF_OpDefinitionBuilderAddAttr(b, *attrs);
    for (; *inputs; inputs++) TF_OpDefinitionBuilderAddInput(b, *inputs);
    for (; *outputs; outputs++) TF_OpDefinitionBuilderAddOutput(b, *outputs);
    TF_OpDefinitionBuilderSetIsStateful(b, true);
    TF_RegisterOpDefinition(b, s);
    TF_DeleteStatus(s);
}

#define LIST(...) (const char* const[]){__VA_ARGS__, NULL}
#define NONE (const char* const[]){NULL}

static void kernel(const char* op, void* (*create)(TF_OpKernelConstruction*), void (*compute)(void*, TF_OpKernelContext*),
                   void (*delete)(void*), int type) {
    TF_Status* s = TF_NewStatus();
    TF_KernelBuilder* b = TF_NewKernelBuilder(op, "CPU", create, compute, delete);
    if (type) TF_KernelBuilder_TypeConstraint(b, "T", type, s);
    TF_KernelBuilder_Priority(b, 1);
    TF_RegisterKernelBuilder(op, b, s);
    TF_DeleteStatus(s);
}

void TF_InitKernel(void) {
    define("TestCopies", NONE, NONE, LIST("n: int32"));
    kernel("TestCopies", NULL, copies_compute, NULL, 0);
    define("TestAdded", NONE, NONE, LIST("n: int32"));
    kernel("TestAdded", NULL, added_compute, NULL, 0);
    define("TestAssign", LIST("T: type", "code: int = 0"), LIST("var: resource", "value: T"), NONE);
    kernel("TestAssign", code_create, assign_compute, NULL, 0);
    define("TestUpdate", LIST("T: type", "code: int = 0"), LIST("var: resource", "value: T"), NONE);
    kernel("TestUpdate", code_create, update_compute, NULL, 0);
    define("TestPeek", NONE, LIST("var: resource"), LIST("value: float"));
    kernel("TestPeek", NULL, peek_compute, NULL, 0);
    define("TestChange", LIST("N: int", "use_locking: bool = false", "sparse: bool = false", "add: float = 1", "meet: int = 0"),
           LIST("vars: N * resource"), LIST("met: int32"));
    kernel("TestChange", change_create, change_compute, free, 0);
    define("TestUpgrade", LIST("use_locking: bool = false", "code: int = 0"), LIST("var: resource", "value: float"), NONE);
    kernel("TestUpgrade", code_create, upgrade_compute, NULL, 0);
    define("TestWrongVariable", LIST("code: int"), LIST("var: resource", "other: resource", "x: float"), NONE);
    kernel("TestWrongVariable", code_create, wrong_compute, NULL, 0);
    define("TestRefAssign", LIST("T: type"), LIST("ref: Ref(T)", "value: T"), LIST("out: Ref(T)"));
    kernel("TestRefAssign", NULL, ref_assign_compute, NULL, 0);
    define("TestRefAdd", LIST("T: type"), LIST("ref: Ref(T)", "value: T"), LIST("out: Ref(T)"));
    kernel("TestRefAdd", NULL, ref_add_compute, NULL, 1);
    define("TestTemporary", NONE, NONE, LIST("ref: Ref(float)"));
    kernel("TestTemporary", NULL, temporary_compute, NULL, 0);
    define("TestDestroyTemporary", NONE, LIST("ref: Ref(float)"), LIST("value: float"));
    kernel("TestDestroyTemporary", NULL, destroy_temporary_compute, NULL, 0);
    kernel("AddN", NULL, add_n_compute, NULL, 21);
    kernel("ZerosLike", NULL, zeros_like_compute, NULL, 21);
    define("TestResource", LIST("code: int = 0"), NONE, LIST("n: int32"));
    kernel("TestResource", code_create, resource_compute, NULL, 0);
    define("TestInfos", LIST("code: int = 0"), LIST("var: resource", "other: resource"), NONE);
    kernel("TestInfos", code_create, infos_compute, NULL, 0);
    define("TestSame", NONE, LIST("x: resource"), LIST("y: resource"));
    kernel("TestSame", NULL, same_compute, NULL, 0);
}
