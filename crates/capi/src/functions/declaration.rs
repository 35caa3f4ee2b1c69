//! Declarations of the functions in C, made of the table.

use std::fmt::Write;

use super::{FUNCTIONS, Function};

/// Opaque types: name in C, name in the table.
const OPAQUE: &[(&str, &str)] = &[
    ("TF_Status", "Status"),
    ("TF_Tensor", "Tensor"),
    ("TF_KernelBuilder", "KernelBuilder"),
    ("TF_OpKernelConstruction", "Construction"),
    ("TF_OpKernelContext", "Context"),
    ("TF_AsyncOpKernelDoneCallback", "Done"),
    ("TF_OpDefinitionBuilder", "OpBuilder"),
    ("TF_ShapeInferenceContext", "ShapeContext"),
    ("TF_ShapeHandle", "ShapeBox"),
    ("TF_DimensionHandle", "DimensionBox"),
];

/// Public structures, and numbers with names.
const STRUCTURES: &str = "\
typedef int TF_DataType;
typedef int TF_Code;
typedef struct TF_StringView { const char* data; size_t len; } TF_StringView;
typedef struct TF_Buffer { const void* data; size_t length; void (*data_deallocator)(void*, size_t); } TF_Buffer;
typedef struct TF_AllocatorAttributes { size_t struct_size; unsigned char on_host; } TF_AllocatorAttributes;
typedef struct TF_InputRange_Args { size_t struct_size; void* priv; int start; int stop; TF_Status* status; } TF_InputRange_Args;
typedef struct TF_RendezvousThunk { void* rendezvous; void* functions[3]; } TF_RendezvousThunk;
";

/// Functions of plugins that the host calls, by the name of the parameter.
const CALLBACKS: &[(&str, &str)] = &[
    (
        "create_func",
        "void* (*create_func)(TF_OpKernelConstruction*)",
    ),
    (
        "compute_func",
        "void (*compute_func)(void*, TF_OpKernelContext*)",
    ),
    (
        "compute_async_func",
        "void (*compute_async_func)(void*, TF_OpKernelContext*, TF_AsyncOpKernelDoneCallback*)",
    ),
    ("delete_func", "void (*delete_func)(void*)"),
    ("deallocator", "void (*deallocator)(void*, size_t, void*)"),
    (
        "visitor",
        "void (*visitor)(const char*, const char*, void*)",
    ),
    (
        "shape_inference_func",
        "void (*shape_inference_func)(TF_ShapeInferenceContext*, TF_Status*)",
    ),
];

impl Function {
    /// Returns the declaration in C.
    pub fn declaration(&self) -> String {
        let parameters = self.parameters.iter().map(|(name, rust)| {
            if rust.split_whitespace().collect::<String>() == "Out<usize>" && *name == "vals" {
                return format!("char** {name}");
            }
            let callback = CALLBACKS
                .iter()
                .find(|(own, _)| own == name && *rust == "Callback");
            callback.map_or_else(
                || spaced(&c_type(rust), name),
                |(_, text)| (*text).to_owned(),
            )
        });
        let parameters: Vec<String> = parameters.collect();
        let parameters = match parameters.is_empty() {
            true => "void".to_owned(),
            false => parameters.join(", "),
        };
        let name = format!("{}({parameters})", self.name);
        spaced(&c_type(self.result), &name)
    }
}

fn spaced(c_type: &str, name: &str) -> String {
    format!("{c_type} {name}")
}

/// Returns the text of a C header that declares all functions of the host.
pub fn header() -> String {
    let mut text = String::from(
        "#pragma once\n#include <stdbool.h>\n#include <stddef.h>\n#include <stdint.h>\n\n\
         #ifdef __cplusplus\nextern \"C\" {\n#endif\n\n",
    );
    let mut line = |line: std::fmt::Arguments<'_>| writeln!(text, "{line}").unwrap_or_default();
    for (name, _) in OPAQUE {
        line(format_args!("typedef struct {name} {name};"));
    }
    line(format_args!("{STRUCTURES}"));
    for function in FUNCTIONS {
        line(format_args!("{};", function.declaration()));
    }
    line(format_args!("\n#ifdef __cplusplus\n}}\n#endif"));
    text
}

/// Returns the C type of a parameter or result.
fn c_type(rust: &str) -> String {
    let text: String = rust.split_whitespace().collect();
    let named = match text.as_str() {
        "()" => "void",
        "c_int" => "int",
        "i32" => "int32_t",
        "i64" => "int64_t",
        "u64" => "uint64_t",
        "f32" => "float",
        "u8" => "bool",
        "usize" => "size_t",
        "Text" | "HostText" => "const char*",
        "Memory" | "Callback" => "void*",
        "StringView" => "TF_StringView",
        "Buffer" => "TF_Buffer",
        "BufferRef" => "TF_Buffer*",
        "Rendezvous" => "TF_RendezvousThunk",
        "InputRange" => "TF_InputRange_Args",
        "AllocatorAttributes" => "TF_AllocatorAttributes",
        _ => "",
    };
    if !named.is_empty() {
        return named.to_owned();
    }
    let inner = |kind: &str| {
        let rest = text.strip_prefix(kind)?.strip_prefix('<')?;
        rest.strip_suffix('>')
    };
    if let Some(object) = inner("Handle") {
        let name = OPAQUE.iter().find(|(_, own)| *own == object);
        return format!("{}*", name.map_or(object, |(name, _)| name));
    }
    if let Some(element) = inner("Array") {
        return format!("const {}*", c_type(element));
    }
    match inner("Out") {
        Some(element) => format!("{}*", c_type(element)),
        None => text,
    }
}
