/* Operations whose kernels try the functions of a running kernel: inputs, outputs, memory, names, asynchronous ends. */
#include "beside.h"

static void say_view(Text* text, const char* label, TF_StringView view) {
    say(text, "%s: %.*s", label, (int)view.len, view.data);
}

static void say_inputs(Text* text, TF_OpKernelContext* ctx, TF_Status* s) {
    char label[64];
    int n = TF_NumInputs(ctx);
    say(text, "inputs %d, outputs %d", n, TF_NumOutputs(ctx));
    for (int i = 0; i < n; i++) {
        TF_Tensor* x = NULL;
        snprintf(label, sizeof label, "input %d", i);
        TF_SetStatus(s, TF_INTERNAL, "of before");
        TF_GetInput(ctx, i, &x, s);
        say_status(text, label, s);
        say_tensor(text, label, x);
        say(text, "%s: type %d, moved %d", label, (int)TF_InputDatatype(ctx, i), TF_TensorMaybeMove(x) == x);
        say_view(text, label, TF_GetOpKernelRequestedInput(ctx, i));
        TF_DeleteTensor(x);
    }
    TF_Tensor* x = NULL;
    TF_GetInput(ctx, n, &x, s);
    say_status(text, "input behind the last", s);
    TF_GetInput(ctx, -1, &x, s);
    say_status(text, "input -1", s);
    say(text, "untouched %d", x == NULL);
    static const char* const names[] = {"x", "xs", "y", "nothing", "z"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(label, sizeof label, "input '%s'", names[i]);
        x = NULL;
        TF_GetInputByName(ctx, names[i], &x, s);
        say_status(text, label, s);
        say_tensor(text, label, x);
        TF_DeleteTensor(x);
        TF_InputRange_Args range = {sizeof range, NULL, -7, -7, s};
        TF_InputRange(ctx, names[i], &range);
        say_status(text, label, s);
        say(text, "%s: from %d to %d", label, range.start, range.stop);
    }
    for (int i = -1; i <= n; i += n + 1) {
        snprintf(label, sizeof label, "input %d", i);
        bool is = TF_IsRefInput(ctx, i, s);
        say_status(text, label, s);
        say(text, "%s: reference %d", label, (int)is);
        is = TF_IsHostMemoryInput(ctx, i, s);
        say_status(text, label, s);
        say(text, "%s: in the host's memory %d", label, (int)is);
    }
    for (int i = 0; i < n; i++) {
        bool is = TF_IsRefInput(ctx, i, s);
        say(text, "input %d: reference %d, code %d", i, (int)is, (int)TF_GetCode(s));
        is = TF_IsHostMemoryInput(ctx, i, s);
        say(text, "input %d: in the host's memory %d, code %d", i, (int)is, (int)TF_GetCode(s));
    }
}

static void say_memory(Text* text, TF_OpKernelContext* ctx, TF_Status* s) {
    const int64_t dims[] = {2, 2};
    TF_Tensor* t = TF_AllocateTemp(ctx, TF_INT32, dims, 2, NULL, s);
    say_status(text, "temporary", s);
    memset(TF_TensorData(t), 1, 16);
    say_tensor(text, "temporary", t);
    say(text, "temporary: moved %d", TF_TensorMaybeMove(t) == t);
    TF_DeleteTensor(t);
    TF_AllocatorAttributes attributes = {0};
    t = TF_AllocateTemp(ctx, TF_INT32, dims, 2, &attributes, s);
    say_status(text, "temporary of no size", s);
    TF_DeleteTensor(t);
    attributes.struct_size = sizeof attributes;
    attributes.on_host = 1;
    t = TF_AllocateTemp(ctx, TF_DOUBLE, NULL, 0, &attributes, s);
    say_status(text, "temporary on the host", s);
    if (t) *(double*)TF_TensorData(t) = 1;
    say_tensor(text, "temporary on the host", t);
    TF_DeleteTensor(t);
    say(text, "stream %d", TF_GetStream(ctx, s) != NULL);
    say_status(text, "stream", s);
    TF_IncNumDeferredOps(ctx);
    TF_DecNumDeferredOps(ctx);
}

static void say_names(Text* text, TF_OpKernelContext* ctx) {
    say_view(text, "kernel", TF_GetOpKernelName(ctx));
    say_view(text, "device", TF_GetDeviceName(ctx));
    say_view(text, "container", TF_GetResourceMgrDefaultContainerName(ctx));
    say(text, "frame %llu, turn %lld, device %d", (unsigned long long)TF_GetFrameId(ctx), (long long)TF_GetIterId(ctx),
        TF_GetDeviceId(ctx));
    say(text, "one step %d, graphs of a version %d", TF_StepId(ctx) == TF_GetStepId(ctx),
        TF_GetGraphDefVersion(ctx) > 1000);
}

/* context: outputs are a text, a float of two elements, and each of `xs`. */
static void context_compute(void* state, TF_OpKernelContext* ctx) {
    (void)state;
    Text text = {NULL, 0, 0};
    TF_Status* s = TF_NewStatus();
    const int64_t dims[] = {2};
    say_inputs(&text, ctx, s);
    say_memory(&text, ctx, s);
    say_names(&text, ctx);
    int n = TF_NumOutputs(ctx);
    for (int i = 0; i < n; i++) say(&text, "output %d: type %d", i, (int)TF_ExpectedOutputDataType(ctx, i));
    /* The type and the length that are asked for are not looked at. */
    TF_Tensor* z = TF_AllocateOutput(ctx, 1, TF_DOUBLE, dims, 1, 1, s);
    say_status(&text, "allocated", s);
    ((float*)TF_TensorData(z))[0] = 1.25f;
    ((float*)TF_TensorData(z))[1] = -2;
    say_tensor(&text, "allocated", z);
    TF_Tensor* again = TF_GetMutableOutput(ctx, 1, s);
    say_status(&text, "output as it is", s);
    say_tensor(&text, "output as it is", again);
    say(&text, "shared %d", TF_TensorData(again) == TF_TensorData(z));
    TF_DeleteTensor(again);
    TF_DeleteTensor(z);
    again = TF_GetMutableOutput(ctx, n, s);
    say_status(&text, "output behind the last, as it is", s);
    TF_DeleteTensor(again);
    for (int i = 2; i < n; i++) {
        TF_Tensor* x = NULL;
        TF_GetInput(ctx, i - 1, &x, s);
        TF_SetOutput(ctx, i, x, s);
        say_status(&text, "set", s);
        if (i == 2) {
            TF_SetOutput(ctx, n, x, s);
            say_status(&text, "set behind the last", s);
        }
        TF_DeleteTensor(x);
    }
    bool is = false;
    for (int i = 0; i < n; i++) {
        is = TF_IsHostMemoryOutput(ctx, i, s);
        say(&text, "output %d: in the host's memory %d, code %d", i, (int)is, (int)TF_GetCode(s));
    }
    is = TF_IsHostMemoryOutput(ctx, n, s);
    say_status(&text, "output behind the last", s);
    say(&text, "output behind the last: in the host's memory %d", (int)is);
    give(ctx, 0, &text);
    TF_DeleteStatus(s);
    drop(&text);
}

/* allocations: outputs that can't be allocated. */
static void allocations_compute(void* state, TF_OpKernelContext* ctx) {
    (void)state;
    Text text = {NULL, 0, 0};
    TF_Status* s = TF_NewStatus();
    const int64_t dims[] = {2};
    TF_Tensor* z = TF_AllocateOutput(ctx, 1, TF_FLOAT, dims, 1, 8, s);
    say_status(&text, "first", s);
    if (z) memset(TF_TensorData(z), 0, TF_TensorByteSize(z));
    TF_DeleteTensor(z);
    z = TF_AllocateOutput(ctx, 1, TF_FLOAT, dims, 1, 8, s);
    say_status(&text, "second", s);
    TF_DeleteTensor(z);
    z = TF_AllocateOutput(ctx, 9, TF_FLOAT, dims, 1, 8, s);
    say_status(&text, "behind the last", s);
    TF_DeleteTensor(z);
    give(ctx, 0, &text);
    TF_DeleteStatus(s);
    drop(&text);
}

/* forwarding: the output is in the memory of an input that nobody else needs. */
static void forward_compute(void* state, TF_OpKernelContext* ctx) {
    (void)state;
    Text text = {NULL, 0, 0};
    TF_Status* s = TF_NewStatus();
    TF_Tensor* x = NULL;
    const int64_t same[] = {3, 2}, other[] = {5};
    const int candidates[] = {0, 1};
    TF_GetInput(ctx, 1, &x, s);
    const void* data = TF_TensorData(x);
    int from = -7;
    /* While the input is held, or if the number of elements is another one, it is not taken. */
    TF_Tensor* z = TF_ForwardInputOrAllocateOutput(ctx, candidates, 2, 1, same, 2, &from, s);
    say_status(&text, "held", s);
    say(&text, "held: from %d", from);
    if (z) memset(TF_TensorData(z), 0, TF_TensorByteSize(z));
    TF_DeleteTensor(z);
    TF_DeleteTensor(x);
    z = TF_ForwardInputOrAllocateOutput(ctx, candidates, 2, 2, other, 1, &from, s);
    say_status(&text, "of another size", s);
    say(&text, "of another size: from %d", from);
    if (z) memset(TF_TensorData(z), 0, TF_TensorByteSize(z));
    TF_DeleteTensor(z);
    z = TF_ForwardInputOrAllocateOutput(ctx, candidates, 2, 3, same, 2, &from, s);
    say_status(&text, "free", s);
    say(&text, "free: from %d, in place %d", from, TF_TensorData(z) == data);
    if (from < 0) memset(TF_TensorData(z), 0, TF_TensorByteSize(z));
    say_tensor(&text, "free", z);
    TF_DeleteTensor(z);
    give(ctx, 0, &text);
    TF_DeleteStatus(s);
    drop(&text);
}

/* strings: tells each string of the input, small ones and large ones, and gives them doubled. */
static void strings_compute(void* state, TF_OpKernelContext* ctx) {
    (void)state;
    Text text = {NULL, 0, 0};
    TF_Status* s = TF_NewStatus();
    TF_Tensor* x = NULL;
    TF_GetInput(ctx, 0, &x, s);
    say_tensor(&text, "strings", x);
    int64_t n = TF_TensorElementCount(x);
    TF_Tensor* z = TF_AllocateOutput(ctx, 1, TF_STRING, &n, 1, 24 * n, s);
    for (int64_t i = 0; i < n; i++) {
#ifdef TENSORFLOW
        const TF_TString* from = (const TF_TString*)TF_TensorData(x) + i;
        TF_TString* to = (TF_TString*)TF_TensorData(z) + i;
        const char* bytes = TF_TString_GetDataPointer(from);
        size_t len = TF_TString_GetSize(from);
        TF_TString_Init(to);
        TF_TString_Copy(to, bytes, len);
        TF_TString_Append(to, from);
#else
        /* The low bits of the first byte are the kind of the cell: small, or elsewhere. */
        const unsigned char* from = (const unsigned char*)TF_TensorData(x) + 24 * i;
        size_t* to = (size_t*)TF_TensorData(z) + 3 * i;
        int is_small = (from[0] & 3) == 0;
        size_t len = is_small ? from[0] >> 2 : *(const size_t*)from >> 2;
        const char* bytes = is_small ? (const char*)from + 1 : ((const char* const*)from)[(from[0] & 3) == 1 ? 2 : 1];
        char* twice = malloc(2 * len + 1);
        memcpy(twice, bytes, len);
        memcpy(twice + len, bytes, len);
        to[0] = len << 3 | 1;
        to[1] = 2 * len;
        to[2] = (size_t)twice;
#endif
        say(&text, "%lld: %zu %.*s", (long long)i, len, (int)len, bytes);
    }
    TF_DeleteTensor(x);
    TF_DeleteTensor(z);
    give(ctx, 0, &text);
    TF_DeleteStatus(s);
    drop(&text);
}

static void async_compute(void* state, TF_OpKernelContext* ctx, TF_AsyncOpKernelDoneCallback* done) {
    (void)state;
    Text text = {NULL, 0, 0};
    say_names(&text, ctx);
    give(ctx, 0, &text);
    drop(&text);
    TF_RunAsyncOpKernelDoneCallback(done);
}

/* choices: each kernel says which it is. */
#define CHOICE(name)                                                     \
    static void name##_compute(void* state, TF_OpKernelContext* ctx) {   \
        (void)state;                                                     \
        Text text = {NULL, 0, 0};                                        \
        say(&text, "the kernel " #name);                                 \
        give(ctx, 0, &text);                                             \
        drop(&text);                                                     \
    }

CHOICE(low)
CHOICE(high)
CHOICE(labelled)
CHOICE(integers)
CHOICE(twin)

static void choice(void (*compute)(void*, TF_OpKernelContext*), TF_DataType type, int priority, const char* label) {
    TF_Status* s = TF_NewStatus();
    TF_KernelBuilder* b = TF_NewKernelBuilder("BesideChoice", "CPU", NULL, compute, NULL);
    TF_KernelBuilder_TypeConstraint(b, "T", type, s);
    TF_KernelBuilder_Priority(b, priority);
    if (label) TF_KernelBuilder_Label(b, label);
    TF_RegisterKernelBuilder("BesideChoice", b, s);
    say_status(&registrations, "BesideChoice", s);
    TF_DeleteStatus(s);
}

void init_contexts(void) {
    define("BesideContext", LIST("N: int >= 0"), LIST("x: double", "xs: N * float", "y: string"),
           LIST("text: string", "z: float", "zs: N * float"), NULL);
    kernel("BesideContext", NULL, context_compute, NULL);
    define("BesideAllocations", NONE, NONE, LIST("text: string", "z: float"), NULL);
    kernel("BesideAllocations", NULL, allocations_compute, NULL);
    define("BesideForward", NONE, LIST("x: int32", "y: float"), LIST("text: string", "a: float", "b: float", "c: float"), NULL);
    kernel("BesideForward", NULL, forward_compute, NULL);
    define("BesideStrings", NONE, LIST("x: string"), LIST("text: string", "z: string"), NULL);
    kernel("BesideStrings", NULL, strings_compute, NULL);
    define("BesideAsync", NONE, NONE, LIST("text: string"), NULL);
    TF_Status* s = TF_NewStatus();
    TF_KernelBuilder* b = TF_NewAsyncKernelBuilder("BesideAsync", "CPU", NULL, async_compute, NULL);
    TF_RegisterKernelBuilder("BesideAsync", b, s);
    define("BesideChoice", LIST("T: {float, double, int32, int64, bool}"), LIST("x: T"), LIST("text: string"), NULL);
    choice(low_compute, TF_FLOAT, 0, NULL);
    choice(high_compute, TF_FLOAT, 5, NULL);
    choice(labelled_compute, TF_FLOAT, 0, "odd");
    choice(integers_compute, TF_INT32, -1, NULL);
    choice(twin_compute, TF_INT64, 2, NULL);
    choice(twin_compute, TF_INT64, 2, NULL);
    define("BesideTwo", LIST("T: {float, int32}"), LIST("x: T"), LIST("text: string"), NULL);
    b = TF_NewKernelBuilder("BesideTwo", "CPU", NULL, low_compute, NULL);
    TF_KernelBuilder_TypeConstraint(b, "T", TF_FLOAT, s);
    TF_KernelBuilder_TypeConstraint(b, "T", TF_INT32, s);
    TF_RegisterKernelBuilder("BesideTwo", b, s);
    define("BesideHost", LIST("T: type"), LIST("x: T"), LIST("text: string"), NULL);
    b = TF_NewKernelBuilder("BesideHost", "CPU", NULL, low_compute, NULL);
    TF_KernelBuilder_TypeConstraint(b, "T", TF_FLOAT, s);
    TF_KernelBuilder_TypeConstraint(b, "T", TF_INT32, s);
    TF_KernelBuilder_HostMemory(b, "x");
    TF_KernelBuilder_Priority(b, 3);
    TF_KernelBuilder_Label(b, "here");
    TF_RegisterKernelBuilder("BesideHost", b, s);
    TF_DeleteStatus(s);
}
