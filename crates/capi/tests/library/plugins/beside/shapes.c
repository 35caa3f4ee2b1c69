/* An operation whose shape function tries the functions of shapes. Its text is kept for the kernel, which gives it. */
#include "beside.h"

static Text shapes;

static void say_shape(Text* text, TF_ShapeInferenceContext* ctx, const char* label, TF_ShapeHandle* shape) {
    int64_t rank = TF_ShapeInferenceContextRank(ctx, shape);
    say(text, "%s: rank %lld, known %d", label, (long long)rank, TF_ShapeInferenceContextRankKnown(ctx, shape));
    TF_DimensionHandle* dim = TF_NewDimensionHandle();
    for (int64_t i = 0; i < rank; i++) {
        TF_ShapeInferenceContextDim(ctx, shape, i, dim);
        say(text, "%s %lld: known %d, value %lld", label, (long long)i, TF_DimensionHandleValueKnown(dim),
            (long long)TF_DimensionHandleValue(dim));
    }
    TF_DeleteDimensionHandle(dim);
}

/* Dimensions counted from the end, and those that are not there. */
static void say_dimensions(Text* text, TF_ShapeInferenceContext* ctx, TF_ShapeHandle* shape) {
    for (int64_t i = -4; i <= 4; i++) {
        TF_DimensionHandle* dim = TF_NewDimensionHandle();
        TF_ShapeInferenceContextDim(ctx, shape, i, dim);
        say(text, "dimension %lld: known %d, value %lld", (long long)i, TF_DimensionHandleValueKnown(dim),
            (long long)TF_DimensionHandleValue(dim));
        TF_DeleteDimensionHandle(dim);
    }
}

static void say_ranks(Text* text, TF_ShapeInferenceContext* ctx, TF_ShapeHandle* shape, TF_Status* s) {
    char label[64];
    for (int64_t rank = 0; rank <= 4; rank++) {
        TF_ShapeHandle* result = TF_NewShapeHandle();
        TF_ShapeInferenceContextWithRank(ctx, shape, rank, result, s);
        snprintf(label, sizeof label, "of rank %d", (int)rank);
        say_status(text, label, s);
        if (TF_GetCode(s) == TF_OK) say_shape(text, ctx, label, result);
        TF_ShapeInferenceContextWithRankAtLeast(ctx, shape, rank, result, s);
        snprintf(label, sizeof label, "of rank %d at least", (int)rank);
        say_status(text, label, s);
        TF_ShapeInferenceContextWithRankAtMost(ctx, shape, rank, result, s);
        snprintf(label, sizeof label, "of rank %d at most", (int)rank);
        say_status(text, label, s);
        TF_DeleteShapeHandle(result);
    }
}

static void say_parts(Text* text, TF_ShapeInferenceContext* ctx, TF_ShapeHandle* shape, TF_Status* s) {
    static const int64_t ends[][2] = {
        {0, INT64_MAX}, {1, INT64_MAX}, {0, 1}, {-1, INT64_MAX}, {0, -1}, {-2, -1}, {2, 1}, {-9, INT64_MAX}, {0, -9},
        {9, INT64_MAX}, {0, 9}, {3, 3}, {-1, -2},
    };
    char label[64];
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        TF_ShapeHandle* result = TF_NewShapeHandle();
        TF_ShapeInferenceContextSubshape(ctx, shape, ends[i][0], ends[i][1], result, s);
        snprintf(label, sizeof label, "from %lld to %lld", (long long)ends[i][0],
                 ends[i][1] == INT64_MAX ? 99LL : (long long)ends[i][1]);
        say_status(text, label, s);
        if (TF_GetCode(s) == TF_OK) say_shape(text, ctx, label, result);
        TF_DeleteShapeHandle(result);
    }
}

static void shape_function(TF_ShapeInferenceContext* ctx, TF_Status* s) {
    Text text = {NULL, 0, 0};
    say(&text, "inputs %lld", (long long)TF_ShapeInferenceContextNumInputs(ctx));
    TF_ShapeHandle *x = TF_NewShapeHandle(), *y = TF_NewShapeHandle(), *both = TF_NewShapeHandle();
    TF_ShapeInferenceContextGetInput(ctx, 0, x, s);
    say_status(&text, "x", s);
    TF_ShapeInferenceContextGetInput(ctx, 1, y, s);
    say_status(&text, "y", s);
    say_shape(&text, ctx, "x", x);
    say_shape(&text, ctx, "y", y);
    TF_ShapeInferenceContextGetInput(ctx, 2, both, s);
    say_status(&text, "input behind the last", s);
    TF_ShapeInferenceContextGetInput(ctx, -1, both, s);
    say_status(&text, "input -1", s);
    say_dimensions(&text, ctx, x);
    say_ranks(&text, ctx, x, s);
    say_parts(&text, ctx, x, s);
    TF_ShapeInferenceContextConcatenateShapes(ctx, x, y, both, s);
    say_status(&text, "both", s);
    say_shape(&text, ctx, "both", both);
    TF_ShapeHandle* scalar = TF_ShapeInferenceContextScalar(ctx);
    say_shape(&text, ctx, "scalar", scalar);
    TF_ShapeHandle* vector = TF_ShapeInferenceContextVectorFromSize(ctx, 7);
    say_shape(&text, ctx, "vector", vector);
    TF_DataType type = (TF_DataType)-7;
    static const char* const names[] = {"T", "number", "nothing"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        TF_ShapeInferenceContext_GetAttrType(ctx, names[i], &type, s);
        say_status(&text, names[i], s);
        say(&text, "%s: type %d", names[i], (int)type);
    }
    TF_ShapeInferenceContextSetUnknownShape(ctx, s);
    say_status(&text, "unknown", s);
    TF_ShapeInferenceContextSetOutput(ctx, 2, x, s);
    say_status(&text, "output behind the last", s);
    TF_ShapeInferenceContextSetOutput(ctx, 1, both, s);
    say_status(&text, "output 1", s);
    TF_ShapeInferenceContextSetOutput(ctx, 0, scalar, s);
    say_status(&text, "output 0", s);
    TF_DeleteShapeHandle(x);
    TF_DeleteShapeHandle(y);
    TF_DeleteShapeHandle(both);
    TF_DeleteShapeHandle(scalar);
    TF_DeleteShapeHandle(vector);
    drop(&shapes);
    shapes = text;
}

static void shapes_compute(void* state, TF_OpKernelContext* ctx) {
    (void)state;
    TF_Status* s = TF_NewStatus();
    int64_t dims[16], rank = 0;
    for (int i = 0; i < 2; i++) {
        TF_Tensor* x = NULL;
        TF_GetInput(ctx, i, &x, s);
        for (int axis = 0; axis < TF_NumDims(x) && rank < 16; axis++) dims[rank++] = TF_Dim(x, axis);
        TF_DeleteTensor(x);
    }
    TF_Tensor* z = TF_AllocateOutput(ctx, 1, TF_FLOAT, dims, (int)rank, 0, s);
    if (z) memset(TF_TensorData(z), 0, TF_TensorByteSize(z));
    TF_DeleteTensor(z);
    give(ctx, 0, &shapes);
    TF_DeleteStatus(s);
}

/* A shape function that refuses. */
static void refuse(TF_ShapeInferenceContext* ctx, TF_Status* s) {
    (void)ctx;
    TF_SetStatus(s, TF_INVALID_ARGUMENT, "no shape will do");
}

void init_shapes(void) {
    define("BesideShapes", LIST("T: {float, double}", "number: int = 3"), LIST("x: T", "y: T"),
           LIST("text: string", "z: float"), shape_function);
    kernel("BesideShapes", NULL, shapes_compute, NULL);
    define("BesideRefuse", NONE, NONE, LIST("text: string"), refuse);
    kernel("BesideRefuse", NULL, shapes_compute, NULL);
}
