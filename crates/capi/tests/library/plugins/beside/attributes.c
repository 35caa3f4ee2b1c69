/* Operations whose kernels read attributes of all kinds, in all ways, while their state is made. */
#include "beside.h"

typedef TF_OpKernelConstruction Construction;

static void say_sizes(Text* text, Construction* c, TF_Status* s, const char* name) {
    int32_t list = -7, total = -7;
    TF_SetStatus(s, TF_OK, "");
    TF_OpKernelConstruction_GetAttrSize(c, name, &list, &total, s);
    int code = (int)TF_GetCode(s);
    bool has = TF_OpKernelConstruction_HasAttr(c, name, s);
    say(text, "%s: size %d, total %d, code %d, there %d", name, list, total, code, (int)has);
}

/* Tells the value of an attribute by each function of values that are no lists. */
static void say_one(Text* text, Construction* c, TF_Status* s, const char* name) {
    char label[64];
#define LABEL(kind) (snprintf(label, sizeof label, "%s as %s", name, kind), label)
    TF_DataType type = (TF_DataType)-7;
    int32_t narrow = -7;
    int64_t wide = -7;
    float number = -7;
    unsigned char truth = 77;
    char bytes[8] = "-------";
    TF_Tensor* tensor = NULL;
    TF_OpKernelConstruction_GetAttrType(c, name, &type, s);
    say_status(text, LABEL("type"), s);
    TF_OpKernelConstruction_GetAttrInt32(c, name, &narrow, s);
    say_status(text, LABEL("int32"), s);
    TF_OpKernelConstruction_GetAttrInt64(c, name, &wide, s);
    say_status(text, LABEL("int64"), s);
    TF_OpKernelConstruction_GetAttrFloat(c, name, &number, s);
    say_status(text, LABEL("float"), s);
    TF_OpKernelConstruction_GetAttrBool(c, name, &truth, s);
    say_status(text, LABEL("bool"), s);
    TF_OpKernelConstruction_GetAttrString(c, name, bytes, 5, s);
    say_status(text, LABEL("string"), s);
    say(text, "%s: %d %d %lld %a %d %.7s", name, (int)type, narrow, (long long)wide, number, truth, bytes);
    TF_OpKernelConstruction_GetAttrTensor(c, name, &tensor, s);
    say_status(text, LABEL("tensor"), s);
    say_tensor(text, name, tensor);
    TF_DeleteTensor(tensor);
    TF_Buffer* function = TF_OpKernelConstruction_GetAttrFunction(c, name, s);
    say_status(text, LABEL("function"), s);
    if (function) say_bytes(text, name, function->data, function->length);
    TF_DeleteBuffer(function);
    for (int rank = 0; rank < 4; rank++) {
        int64_t extents[4] = {-7, -7, -7, -7};
        TF_OpKernelConstruction_GetAttrTensorShape(c, name, extents, rank, s);
        snprintf(label, sizeof label, "%s as shape of rank %d", name, rank);
        say_status(text, label, s);
        say(text, "%s: %lld %lld %lld %lld", name, (long long)extents[0], (long long)extents[1], (long long)extents[2],
            (long long)extents[3]);
    }
}

/* Tells a list by each function of lists; two values have room. */
static void say_list(Text* text, Construction* c, TF_Status* s, const char* name) {
    char label[64];
    TF_DataType types[3] = {(TF_DataType)-7, (TF_DataType)-7, (TF_DataType)-7};
    int32_t narrow[3] = {-7, -7, -7};
    int64_t wide[3] = {-7, -7, -7};
    float numbers[3] = {-7, -7, -7};
    unsigned char truths[3] = {77, 77, 77};
    TF_Tensor* tensors[3] = {NULL, NULL, NULL};
    char* texts[3] = {"-", "-", "-"};
    size_t lens[3] = {1, 1, 1};
    char storage[16], little[2];
    TF_OpKernelConstruction_GetAttrTypeList(c, name, types, 2, s);
    say_status(text, LABEL("types"), s);
    TF_OpKernelConstruction_GetAttrInt32List(c, name, narrow, 2, s);
    say_status(text, LABEL("list of int32"), s);
    TF_OpKernelConstruction_GetAttrInt64List(c, name, wide, 2, s);
    say_status(text, LABEL("list of int64"), s);
    TF_OpKernelConstruction_GetAttrFloatList(c, name, numbers, 2, s);
    say_status(text, LABEL("floats"), s);
    TF_OpKernelConstruction_GetAttrBoolList(c, name, truths, 2, s);
    say_status(text, LABEL("truths"), s);
    for (int i = 0; i < 3; i++) {
        say(text, "%s %d: %d %d %lld %a %d", name, i, (int)types[i], narrow[i], (long long)wide[i], numbers[i], truths[i]);
    }
    TF_OpKernelConstruction_GetAttrTensorList(c, name, tensors, 2, s);
    say_status(text, LABEL("tensors"), s);
    for (int i = 0; i < 3; i++) {
        say_tensor(text, name, tensors[i]);
        TF_DeleteTensor(tensors[i]);
    }
    TF_OpKernelConstruction_GetAttrStringList(c, name, texts, lens, 2, little, sizeof little, s);
    say_status(text, LABEL("texts in too little room"), s);
    for (int i = 0; i < 3; i++) texts[i] = "-", lens[i] = 1;
    TF_OpKernelConstruction_GetAttrStringList(c, name, texts, lens, 2, storage, sizeof storage, s);
    say_status(text, LABEL("texts"), s);
    for (int i = 0; i < 3; i++) say(text, "%s %d: %zu %.*s", name, i, lens[i], (int)lens[i], texts[i]);
}

static const char* const names[] = {
    "one_string", "one_int", "one_float", "one_bool", "one_type", "one_shape", "open_shape", "one_tensor", "one_function",
    "big_int", "nothing", "empty_string",
};

static const char* const list_names[] = {
    "strings", "ints", "floats", "bools", "types", "shapes", "tensors", "no_ints", "one_int", "nothing", "big_ints",
};

static const char* const attributes[] = {
    "one_string: string = 'a text of some length'",
    "empty_string: string = ''",
    "one_int: int = -42",
    "big_int: int = 5000000000",
    "one_float: float = 0.1",
    "one_bool: bool = true",
    "one_type: type = DT_INT64",
    "one_shape: shape = { dim { size: 2 } dim { size: 3 } }",
    "open_shape: shape = { dim { size: -1 } dim { size: 3 } }",
    "one_tensor: tensor = { dtype: DT_FLOAT tensor_shape { dim { size: 3 } } float_val: 1.5 float_val: 2.5 }",
    "one_function: func",
    "strings: list(string) = ['ab', '', 'cde']",
    "ints: list(int) = [1, -2, 3]",
    "big_ints: list(int) = [1, 5000000000]",
    "no_ints: list(int) = []",
    "floats: list(float) = [0.5, 2, -1e10]",
    "bools: list(bool) = [true, false]",
    "types: list(type) = [DT_FLOAT, DT_STRING]",
    "shapes: list(shape) = [{ dim { size: 2 } }, { unknown_rank: true }, { dim { size: 4 } dim { size: 5 } }]",
    "tensors: list(tensor) = []",
    "bounded: int >= 2 = 3",
    "few: {int32, float} = DT_INT32",
    "word: {'SAME', 'VALID'} = 'VALID'",
    NULL,
};

/* Reads a field of a message that is a text; returns what comes behind it. */
static const unsigned char* field(Text* text, const char* label, const unsigned char* at) {
    say(text, "%s: field %d, %.*s", label, at[0], at[1], (const char*)at + 2);
    return at + 2 + at[1];
}

static void* attributes_create(Construction* c) {
    Text* text = calloc(1, sizeof *text);
    TF_Status* s = TF_NewStatus();
    TF_StringView name = TF_OpKernelConstruction_GetName(c);
    say(text, "name %.*s", (int)name.len, name.data);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        say_sizes(text, c, s, names[i]);
        say_one(text, c, s, names[i]);
    }
    for (size_t i = 0; i < sizeof list_names / sizeof *list_names; i++) {
        say_sizes(text, c, s, list_names[i]);
        say_list(text, c, s, list_names[i]);
    }
    TF_Buffer* node = TF_OpKernelConstruction_GetNodeDef(c, s);
    say_status(text, "node", s);
    if (node && node->length > 4) field(text, "operation", field(text, "node", node->data));
    TF_DeleteBuffer(node);
    /* A failure that is none. */
    TF_SetStatus(s, TF_OK, "");
    TF_OpKernelConstruction_Failure(c, s);
    TF_DeleteStatus(s);
    return text;
}

static void attributes_compute(void* state, TF_OpKernelContext* ctx) { give(ctx, 0, state); }

static void attributes_drop(void* state) {
    if (state) drop(state);
    free(state);
}

/* failures: what a kernel tells while its state is made (0), twice while it runs (1), with a payload (2). */
static int n_failed_states;

static void* failure_create(Construction* c) {
    TF_Status* s = TF_NewStatus();
    int32_t code = 0, place = 0;
    TF_OpKernelConstruction_GetAttrInt32(c, "code", &code, s);
    TF_OpKernelConstruction_GetAttrInt32(c, "place", &place, s);
    if (place == 0) {
        TF_SetStatus(s, (TF_Code)code, "no state: {1} [2] 100%");
        TF_OpKernelConstruction_Failure(c, s);
        TF_SetStatus(s, TF_INTERNAL, "a second failure");
        TF_OpKernelConstruction_Failure(c, s);
        TF_DeleteStatus(s);
        return NULL;
    }
    TF_DeleteStatus(s);
    return (void*)(intptr_t)(code * 10 + place);
}

static void failure_compute(void* state, TF_OpKernelContext* ctx) {
    int code = (int)(intptr_t)state / 10, place = (int)(intptr_t)state % 10;
    TF_Status* s = TF_NewStatus();
    TF_OpKernelContext_Failure(ctx, s);
    TF_SetStatus(s, (TF_Code)code, "the first failure");
    if (place == 2) TF_SetPayload(s, "beside/key", "a value");
    TF_OpKernelContext_Failure(ctx, s);
    TF_SetStatus(s, TF_INTERNAL, "the second failure");
    TF_OpKernelContext_Failure(ctx, s);
    TF_DeleteStatus(s);
}

static void failure_drop(void* state) {
    if (!state) n_failed_states++;
}

static void count_compute(void* state, TF_OpKernelContext* ctx) {
    (void)state;
    Text text = {NULL, 0, 0};
    say(&text, "states of failed nodes deleted: %d", n_failed_states);
    n_failed_states = 0;
    give(ctx, 0, &text);
    drop(&text);
}

void init_attributes(void) {
    define("BesideAttributes", attributes, NONE, LIST("text: string"), NULL);
    kernel("BesideAttributes", attributes_create, attributes_compute, attributes_drop);
    define("BesideFailure", LIST("code: int", "place: int"), NONE, LIST("text: string"), NULL);
    kernel("BesideFailure", failure_create, failure_compute, failure_drop);
    define("BesideFailures", NONE, NONE, LIST("text: string"), NULL);
    kernel("BesideFailures", NULL, count_compute, NULL);
}
