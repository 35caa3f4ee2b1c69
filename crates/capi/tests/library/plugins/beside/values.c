/* Operations that try what needs no kernel: statuses, tensors, buffers, and lists of what is registered. */
#include "beside.h"

static int by_text(const void* a, const void* b) { return strcmp(*(char* const*)a, *(char* const*)b); }

typedef struct { char* all[16]; int n; } Payloads;

/* The order of payloads is none: they are sorted before they are told. */
static void visit(const char* key, const char* value, void* capture) {
    Payloads* payloads = capture;
    char* pair = malloc(strlen(key) + strlen(value) + 2);
    sprintf(pair, "%s=%s", key, value);
    if (payloads->n < 16) payloads->all[payloads->n++] = pair;
}

static void say_payloads(Text* text, const char* label, const TF_Status* s) {
    Payloads payloads = {{NULL}, 0};
    TF_ForEachPayload(s, visit, &payloads);
    qsort(payloads.all, payloads.n, sizeof(char*), by_text);
    say(text, "%s: %d payloads", label, payloads.n);
    for (int i = 0; i < payloads.n; i++) {
        say(text, "%s: %s", label, payloads.all[i]);
        free(payloads.all[i]);
    }
}

static void status_compute(void* state, TF_OpKernelContext* ctx) {
    (void)state;
    Text text = {NULL, 0, 0};
    char label[64];
    TF_Status* s = TF_NewStatus();
    say_status(&text, "new", s);
    for (int code = -2; code <= 20; code++) {
        snprintf(label, sizeof label, "code %d", code);
        TF_SetStatus(s, (TF_Code)code, "a message: \xc3\xa4, 100%");
        say_status(&text, label, s);
    }
    TF_SetStatus(s, (TF_Code)99, "far out");
    say_status(&text, "code 99", s);
    TF_SetStatus(s, TF_INTERNAL, "");
    say_status(&text, "empty message", s);
    TF_SetStatus(s, TF_OK, "dropped");
    TF_SetPayload(s, "key", "of success");
    say_payloads(&text, "payloads of success", s);
    TF_SetStatus(s, TF_INVALID_ARGUMENT, "with payloads");
    TF_SetPayload(s, "key", "first");
    TF_SetPayload(s, "other", "");
    TF_SetPayload(s, "key", "second");
    say_payloads(&text, "payloads", s);
    TF_SetStatus(s, TF_INVALID_ARGUMENT, "set anew");
    say_payloads(&text, "payloads of before", s);
    for (int number = 0; number <= 134; number++) {
        snprintf(label, sizeof label, "errno %d", number);
        TF_SetStatusFromIOError(s, number, "file.txt");
        say_status(&text, label, s);
    }
    TF_DeleteStatus(s);
    TF_DeleteStatus(NULL);
    give(ctx, 0, &text);
    drop(&text);
}

static void count_free(void* data, size_t len, void* count) {
    *(size_t*)count += 1000 + len;
    free(data);
}

/* For memory that lies within other memory. TensorFlow calls deallocators that are null. */
static void count_only(void* data, size_t len, void* count) {
    (void)data;
    *(size_t*)count += 1000 + len;
}

/* A tensor in memory of ours, from some byte on. */
static void say_own(Text* text, const char* label, int type, size_t offset, size_t len) {
    size_t freed = 0;
    const int64_t dims[] = {2, 3};
    char* memory = aligned_alloc(64, 256);
    memset(memory, 7, 256);
    TF_Tensor* t = TF_NewTensor((TF_DataType)type, dims, 2, memory + offset, len, offset ? count_only : count_free, &freed);
    say_tensor(text, label, t);
    say(text, "%s: freed %zu, in place %d, moved %d", label, freed, t && TF_TensorData(t) == memory,
        t && TF_TensorMaybeMove(t) == t);
    TF_DeleteTensor(t);
    say(text, "%s: freed %zu in the end", label, freed);
    if (offset) free(memory);
}

static void say_bitcasts(Text* text) {
    const int64_t dims[] = {2, 3}, flat[] = {12}, odd[] = {5};
    TF_Status* s = TF_NewStatus();
    TF_Tensor* from = TF_AllocateTensor(TF_FLOAT, dims, 2, 24);
    for (int i = 0; i < 6; i++) ((float*)TF_TensorData(from))[i] = i + 0.5f;
    TF_Tensor* to = TF_AllocateTensor(TF_FLOAT, NULL, 0, 4);
    ((float*)TF_TensorData(to))[0] = 0;
    TF_SetStatus(s, TF_INTERNAL, "of before");
    TF_TensorBitcastFrom(from, (TF_DataType)5, to, flat, 1, s);
    say_status(text, "bitcast", s);
    say_tensor(text, "bitcast", to);
    say(text, "bitcast: shared %d", TF_TensorData(to) == TF_TensorData(from));
    TF_TensorBitcastFrom(from, TF_FLOAT, to, odd, 1, s);
    say_status(text, "bitcast of another size", s);
    TF_TensorBitcastFrom(from, TF_STRING, to, dims, 2, s);
    say_status(text, "bitcast to strings", s);
    say(text, "moved while shared %d", TF_TensorMaybeMove(from) == from);
    TF_Tensor* cells = TF_AllocateTensor(TF_STRING, NULL, 0, 24);
    memset(TF_TensorData(cells), 0, 24);
    TF_TensorBitcastFrom(cells, TF_FLOAT, to, flat, 1, s);
    say_status(text, "bitcast of strings", s);
    TF_DeleteTensor(cells);
    TF_DeleteTensor(to);
    say(text, "moved %d", TF_TensorMaybeMove(from) == from);
    const int64_t turned[] = {3, 1, 2};
    TF_SetShape(from, turned, 3);
    say_tensor(text, "set shape", from);
    TF_DeleteTensor(from);
    TF_DeleteStatus(s);
}

static void say_protos(Text* text) {
    /* dtype: DT_FLOAT, tensor_shape { dim { size: 3 } }, float_val: 1.5 */
    static const unsigned char one[] = {0x08, 1, 0x12, 4, 0x12, 2, 0x08, 3, 0x2a, 4, 0, 0, 0xc0, 0x3f};
    /* dtype: DT_INT16, tensor_shape { dim { size: 2 } }, int_val: [1, -2] */
    static const unsigned char packed[] = {0x08, 5, 0x12, 4, 0x12, 2, 0x08, 2, 0x3a, 11, 1,
                                           0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1};
    /* dtype: DT_DOUBLE, tensor_content: eight bytes */
    static const unsigned char content[] = {0x08, 2, 0x12, 0, 0x22, 8, 0, 0, 0, 0, 0, 0, 0xf8, 0x3f};
    static const unsigned char wrong[] = {0x08, 1, 0x12, 4, 0x12, 2, 0x08, 3, 0x22, 4, 0, 0, 0xc0, 0x3f};
    const struct { const char* label; const void* bytes; size_t len; } all[] = {
        {"proto of one", one, sizeof one},
        {"proto of integers", packed, sizeof packed},
        {"proto of bytes", content, sizeof content},
        {"proto of too few bytes", wrong, sizeof wrong},
        {"no proto", "\377\377", 2},
    };
    TF_Status* s = TF_NewStatus();
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        TF_Buffer* buffer = TF_NewBufferFromString(all[i].bytes, all[i].len);
        TF_Tensor* t = TF_AllocateTensor(TF_FLOAT, NULL, 0, 4);
        *(float*)TF_TensorData(t) = 0;
        TF_TensorFromProto(buffer, t, s);
        say_status(text, all[i].label, s);
        say_tensor(text, all[i].label, t);
        TF_DeleteTensor(t);
        TF_DeleteBuffer(buffer);
    }
    TF_DeleteStatus(s);
}

static void tensor_compute(void* state, TF_OpKernelContext* ctx) {
    (void)state;
    Text text = {NULL, 0, 0};
    char label[64];
    const int64_t dims[] = {2, 3}, none[] = {0, 3};
    for (int type = -1; type <= 40; type++) {
        say(&text, "size of type %d: %zu", type, TF_DataTypeSize((TF_DataType)type));
    }
    say(&text, "alignment %zu", TF_TensorDefaultAlignment());
    static const int types[] = {1, 2, 3, 4, 5, 6, 8, 9, 10, 14, 17, 18, 19, 22, 23};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        TF_DataType type = (TF_DataType)types[i];
        snprintf(label, sizeof label, "allocated %d", types[i]);
        TF_Tensor* t = TF_AllocateTensor(type, dims, 2, 6 * TF_DataTypeSize(type));
        memset(TF_TensorData(t), i, TF_TensorByteSize(t));
        say_tensor(&text, label, t);
        TF_DeleteTensor(t);
    }
    TF_Tensor* t = TF_AllocateTensor(TF_FLOAT, dims, 2, 23);
    say_tensor(&text, "too short", t);
    TF_DeleteTensor(t);
    t = TF_AllocateTensor(TF_FLOAT, none, 2, 0);
    say_tensor(&text, "without elements", t);
    TF_DeleteTensor(t);
    t = TF_AllocateTensor(TF_STRING, dims, 2, 6 * 24);
    /* Cells of no string: TensorFlow hands out what was in the memory before. */
    memset(TF_TensorData(t), 0, TF_TensorByteSize(t));
    say_tensor(&text, "strings", t);
    TF_DeleteTensor(t);
    say_own(&text, "own", 1, 0, 24);
    say_own(&text, "own with room", 1, 0, 64);
    say_own(&text, "own too short", 1, 0, 16);
    say_own(&text, "own at 4", 1, 4, 24);
    say_own(&text, "own at 16", 1, 16, 24);
    say_bitcasts(&text);
    say_protos(&text);
    TF_DeleteTensor(NULL);
    give(ctx, 0, &text);
    drop(&text);
}

static size_t n_freed;

static void free_bytes(void* bytes, size_t len) {
    n_freed += 1000 + len;
    free(bytes);
}

static void buffer_compute(void* state, TF_OpKernelContext* ctx) {
    (void)state;
    Text text = {NULL, 0, 0};
    n_freed = 0;
    TF_Buffer* b = TF_NewBuffer();
    TF_Buffer view = TF_GetBuffer(b);
    say(&text, "new: %zu bytes, none %d, deallocator %d", view.length, view.data == NULL, view.data_deallocator != NULL);
    char* own = malloc(5);
    memcpy(own, "five!", 5);
    b->data = own;
    b->length = 5;
    b->data_deallocator = free_bytes;
    view = TF_GetBuffer(b);
    say_bytes(&text, "filled", view.data, view.length);
    TF_DeleteBuffer(b);
    say(&text, "freed %zu", n_freed);
    const char bytes[] = {'a', 0, 'b'};
    b = TF_NewBufferFromString(bytes, 3);
    view = TF_GetBuffer(b);
    say_bytes(&text, "of bytes", view.data, view.length);
    say(&text, "copied %d", view.data != bytes);
    TF_DeleteBuffer(b);
    TF_DeleteBuffer(NULL);
    b = TF_NewBufferFromString("", 0);
    say(&text, "of nothing: %zu bytes", TF_GetBuffer(b).length);
    TF_DeleteBuffer(b);
    give(ctx, 0, &text);
    drop(&text);
}

/* Reads a number of seven bits a byte. */
static uint64_t varint(const unsigned char** at) {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
        unsigned char byte = *(*at)++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) return value;
    }
}

/* Tells the definition of an operation out of a list of all. */
static void say_definition(Text* text, const TF_Buffer* list, const char* op) {
    const unsigned char* at = list->data;
    const unsigned char* end = at + list->length;
    size_t len = strlen(op);
    while (at < end) {
        varint(&at);
        size_t size = varint(&at);
        /* Its first field is the name. */
        if (at[0] == 0x0a && at[1] == len && memcmp(at + 2, op, len) == 0) say_bytes(text, op, at, size);
        at += size;
    }
}

static void lists_compute(void* state, TF_OpKernelContext* ctx) {
    (void)state;
    Text text = {NULL, 0, 0};
    TF_Status* s = TF_NewStatus();
    TF_Buffer* b = TF_GetAllOpList();
    static const char* const ops[] = {
        "BesideStatus", "BesideAttributes", "BesideShapes", "BesideContext", "BesideChoice", "BesideProperties",
        "BesideTypes",
        /* Operations of TensorFlow that the host defines for plugins that have kernels of them. */
        "Abs", "Add", "AddN", "AddV2", "AvgPool", "BatchMatMul", "BatchMatMulV2", "BiasAdd", "BiasAddGrad",
        "Bitcast", "Cast", "ConcatV2", "Conv2D", "Conv3DBackpropFilterV2", "Conv3DBackpropInputV2", "Div", "Exp",
        "Identity", "LeakyRelu", "LogSoftmax", "MatMul", "MaxPool", "Maximum", "Minimum", "Mul", "Neg", "NoOp",
        "QuantizedReshape", "RealDiv", "Relu", "Relu6", "ReluGrad", "Reshape", "Rsqrt", "Sigmoid", "Softmax", "Sqrt",
        "Square", "SquaredDifference", "Sub", "Tanh", "Transpose", "ZerosLike", "_FusedBatchNormEx",
        "_QuantizedMaxPool3D",
    };
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) say_definition(&text, b, ops[i]);
    TF_DeleteBuffer(b);
    static const char* const of[] = {"BesideStatus", "BesideHost", "BesideNowhere"};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        b = TF_GetRegisteredKernelsForOp(of[i], s);
        say_status(&text, of[i], s);
        if (b) say_bytes(&text, of[i], b->data, b->length);
        TF_DeleteBuffer(b);
    }
    b = TF_GetAllRegisteredKernels(s);
    say_status(&text, "all kernels", s);
    say(&text, "there are some: %d", b && b->length > 100);
    TF_DeleteBuffer(b);
    int is = TF_OpIsStateful("BesideStatus", s);
    say_status(&text, "stateful", s);
    say(&text, "stateful %d", is);
    is = TF_OpIsStateful("BesidePure", s);
    say_status(&text, "pure", s);
    say(&text, "pure %d", is);
    TF_OpIsStateful("BesideNowhere", s);
    say_status(&text, "no such operation", s);
    const char* version = TF_Version();
    say(&text, "version: %d", version && strchr(version, '.') != NULL);
    say(&text, "jit %d", (int)TF_GetXlaAutoJitEnabled());
    TF_DeleteStatus(s);
    give(ctx, 0, &text);
    drop(&text);
}

void init_values(void) {
    define("BesideStatus", NONE, NONE, LIST("text: string"), NULL);
    kernel("BesideStatus", NULL, status_compute, NULL);
    define("BesideTensor", NONE, NONE, LIST("text: string"), NULL);
    kernel("BesideTensor", NULL, tensor_compute, NULL);
    define("BesideBuffer", NONE, NONE, LIST("text: string"), NULL);
    kernel("BesideBuffer", NULL, buffer_compute, NULL);
    define("BesideTypes",
           LIST("numbers: numbertype", "reals: realnumbertype", "quantized: quantizedtype", "any: list(type) >= 2",
                "numbers_list: list(numbertype)", "few: list({float, bool}) = []", "words: list({'a', 'b'}) = ['b']"),
           NONE, LIST("text: string"), NULL);
    define("BesideLists", NONE, NONE, LIST("text: string"), NULL);
    kernel("BesideLists", NULL, lists_compute, NULL);
    TF_Status* s = TF_NewStatus();
    TF_OpDefinitionBuilder* b = TF_NewOpDefinitionBuilder("BesideProperties");
    TF_OpDefinitionBuilderAddInput(b, "x: int32");
    TF_OpDefinitionBuilderAddInput(b, "y: int32");
    TF_OpDefinitionBuilderAddOutput(b, "z: int32");
    TF_OpDefinitionBuilderSetIsCommutative(b, 1);
    TF_OpDefinitionBuilderSetIsAggregate(b, 1);
    TF_OpDefinitionBuilderSetAllowsUninitializedInput(b, 1);
    TF_OpDefinitionBuilderDeprecated(b, 7, "there is a better one");
    TF_RegisterOpDefinition(b, s);
    say_status(&registrations, "BesideProperties", s);
    b = TF_NewOpDefinitionBuilder("BesidePure");
    TF_OpDefinitionBuilderAddOutput(b, "z: int32");
    TF_RegisterOpDefinition(b, s);
    TF_DeleteStatus(s);
}
