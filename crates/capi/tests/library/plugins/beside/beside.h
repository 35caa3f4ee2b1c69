/* A plugin that runs in TensorFlow and here: its operations call the functions of the C API, and give text of what these
   answered. Built with TENSORFLOW on TensorFlow's own headers, else on the one that `tfrt plugin functions` prints. */
#pragma once
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef TENSORFLOW
/* In C, `ops.h` uses names of types that it does not make. */
typedef struct TF_OpDefinitionBuilder TF_OpDefinitionBuilder;
typedef struct TF_ShapeInferenceContext TF_ShapeInferenceContext;
typedef struct TF_ShapeHandle TF_ShapeHandle;
typedef struct TF_DimensionHandle TF_DimensionHandle;
#include "tensorflow/c/kernels.h"
#include "tensorflow/c/kernels_experimental.h"
#include "tensorflow/c/ops.h"
#include "tensorflow/c/c_api.h"
#include "tensorflow/c/c_api_experimental.h"
#else
#include "tfrt_capi.h"
#endif

/* A text that grows. */
typedef struct { char* bytes; size_t len, room; } Text;

/* Adds a line. */
void say(Text* text, const char* format, ...) __attribute__((format(printf, 2, 3)));
/* Adds a line of a status: code and message. */
void say_status(Text* text, const char* label, const TF_Status* status);
/* Adds a line of bytes, in hexadecimal digits. */
void say_bytes(Text* text, const char* label, const void* bytes, size_t len);
/* Adds a line of a tensor: type, extents, sizes, and its first elements. */
void say_tensor(Text* text, const char* label, const TF_Tensor* tensor);
/* Frees a text. */
void drop(Text* text);
/* Makes a text an output, which is a scalar of strings. */
void give(TF_OpKernelContext* ctx, int output, const Text* text);

/* Defines an operation; lists end with NULL. Adds what was wrong to the text of registrations. */
void define(const char* name, const char* const* attrs, const char* const* inputs, const char* const* outputs,
            void (*shape)(TF_ShapeInferenceContext*, TF_Status*));
/* Registers a kernel. */
void kernel(const char* op, void* (*create)(TF_OpKernelConstruction*), void (*compute)(void*, TF_OpKernelContext*),
            void (*drop_state)(void*));

#define LIST(...) (const char* const[]){__VA_ARGS__, NULL}
#define NONE (const char* const[]){NULL}

/* What the functions answered that register operations and kernels. */
extern Text registrations;

/* Each file registers its operations. */
void init_values(void);
void init_attributes(void);
void init_contexts(void);
void init_shapes(void);
