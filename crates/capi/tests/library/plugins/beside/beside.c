/* Texts and registrations of the plugin, and its entry point. */
#include "beside.h"

Text registrations;

void say(Text* text, const char* format, ...) {
    char line[4096];
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(line, sizeof line - 1, format, arguments);
    va_end(arguments);
    if (n > (int)sizeof line - 2) n = sizeof line - 2;
    line[n++] = '\n';
    if (text->len + n + 1 > text->room) {
        text->room = 2 * (text->len + n + 1);
        text->bytes = realloc(text->bytes, text->room);
    }
    memcpy(text->bytes + text->len, line, n);
    text->len += n;
    text->bytes[text->len] = 0;
}

void say_status(Text* text, const char* label, const TF_Status* status) {
    /* TensorFlow adds lines about the node to some. */
    const char* message = TF_Message(status);
    say(text, "%s: %d %.*s", label, (int)TF_GetCode(status), (int)strcspn(message, "\n"), message);
}

void say_bytes(Text* text, const char* label, const void* bytes, size_t len) {
    char digits[2048] = "";
    for (size_t i = 0; i < len && 2 * i + 3 < sizeof digits; i++) {
        snprintf(digits + 2 * i, 3, "%02x", ((const unsigned char*)bytes)[i]);
    }
    say(text, "%s: %zu %s", label, len, digits);
}

void say_tensor(Text* text, const char* label, const TF_Tensor* tensor) {
    if (!tensor) {
        say(text, "%s: none", label);
        return;
    }
    char extents[128] = "";
    size_t at = 0;
    for (int i = 0; i < TF_NumDims(tensor) && at < 100; i++) {
        at += snprintf(extents + at, sizeof extents - at, " %lld", (long long)TF_Dim(tensor, i));
    }
    size_t len = TF_TensorByteSize(tensor);
    say(text, "%s: type %d, extents%s, elements %lld, bytes %zu, aligned %d", label, (int)TF_TensorType(tensor), extents,
        (long long)TF_TensorElementCount(tensor), len, (int)TF_TensorIsAligned(tensor));
    if (TF_TensorType(tensor) != TF_STRING && len > 0) {
        say_bytes(text, label, TF_TensorData(tensor), len < 64 ? len : 64);
    }
}

void drop(Text* text) {
    free(text->bytes);
    memset(text, 0, sizeof *text);
}

void give(TF_OpKernelContext* ctx, int output, const Text* text) {
    TF_Status* s = TF_NewStatus();
    TF_Tensor* z = TF_AllocateOutput(ctx, output, TF_STRING, NULL, 0, 24, s);
    if (z) {
        /* A cell of the kind whose bytes lie elsewhere; the host frees them. */
        char* copy = malloc(text->len + 1);
        memcpy(copy, text->len ? text->bytes : "", text->len + 1);
        size_t words[3] = {text->len << 2 | 1, text->len, (size_t)copy};
        memcpy(TF_TensorData(z), words, sizeof words);
    }
    TF_DeleteTensor(z);
    TF_DeleteStatus(s);
}

void define(const char* name, const char* const* attrs, const char* const* inputs, const char* const* outputs,
            void (*shape)(TF_ShapeInferenceContext*, TF_Status*)) {
    TF_Status* s = TF_NewStatus();
    TF_OpDefinitionBuilder* b = TF_NewOpDefinitionBuilder(name);
    for (; *attrs; attrs++) TF_OpDefinitionBuilderAddAttr(b, *attrs);
    for (; *inputs; inputs++) TF_OpDefinitionBuilderAddInput(b, *inputs);
    for (; *outputs; outputs++) TF_OpDefinitionBuilderAddOutput(b, *outputs);
    /* So that no call is left out or joined with another. */
    TF_OpDefinitionBuilderSetIsStateful(b, 1);
    if (shape) TF_OpDefinitionBuilderSetShapeInferenceFunction(b, shape);
    TF_RegisterOpDefinition(b, s);
    say_status(&registrations, name, s);
    TF_DeleteStatus(s);
}

void kernel(const char* op, void* (*create)(TF_OpKernelConstruction*), void (*compute)(void*, TF_OpKernelContext*),
            void (*drop_state)(void*)) {
    TF_Status* s = TF_NewStatus();
    TF_RegisterKernelBuilder(op, TF_NewKernelBuilder(op, "CPU", create, compute, drop_state), s);
    say_status(&registrations, op, s);
    TF_DeleteStatus(s);
}

/* registrations: what was told while the plugin was loaded. */
static void registrations_compute(void* state, TF_OpKernelContext* ctx) {
    (void)state;
    give(ctx, 0, &registrations);
}

static void unused_compute(void* state, TF_OpKernelContext* ctx) {
    (void)state;
    (void)ctx;
}

/* Builders of kernels and operations that come to nothing. */
static void say_builders(void) {
    TF_Status* s = TF_NewStatus();
    TF_KernelBuilder* b = TF_NewKernelBuilder("BesideUnused", "CPU", NULL, unused_compute, NULL);
    for (int type = 0; type <= 40; type++) {
        char label[32];
        snprintf(label, sizeof label, "constraint %d", type);
        TF_KernelBuilder_TypeConstraint(b, "T", (TF_DataType)type, s);
        say_status(&registrations, label, s);
    }
    TF_KernelBuilder_HostMemory(b, "nothing");
    TF_KernelBuilder_Priority(b, -3);
    TF_KernelBuilder_Label(b, "never");
    TF_DeleteKernelBuilder(b);
    TF_DeleteKernelBuilder(NULL);
    b = TF_NewKernelBuilder("BesideUnused", "CPU", NULL, unused_compute, NULL);
    TF_RegisterKernelBuilderWithKernelDef("\377\377", "BesideUnused", b, s);
    say_status(&registrations, "no definition of a kernel", s);
    TF_OpDefinitionBuilder* op = TF_NewOpDefinitionBuilder("BesideNever");
    TF_OpDefinitionBuilderAddInput(op, "no input at all");
    TF_DeleteOpDefinitionBuilder(op);
    TF_DeleteStatus(s);
}

void TF_InitKernel(void) {
    say_builders();
    init_values();
    init_attributes();
    init_contexts();
    init_shapes();
    define("BesideRegistrations", NONE, NONE, LIST("text: string"), NULL);
    kernel("BesideRegistrations", NULL, registrations_compute, NULL);
}
