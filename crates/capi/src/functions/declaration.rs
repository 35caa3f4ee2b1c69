//! Declarations of the functions in C, made of the table.

use std::fmt::Write;
use std::iter;

use super::{FUNCTIONS, Function, status};
use crate::dtype;

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
    ("TF_WritableFileHandle", "WritableFile"),
    ("TF_StringStream", "StringStream"),
    ("TF_Thread", "Thread"),
    ("TF_VariableInputLockHolder", "LockHolder"),
    ("TF_VariableInfo", "VariableInfo"),
    ("TF_Device", "Device"),
];

/// Public structures, and small enumerations.
const STRUCTURES: &str = "\
typedef struct SP_Stream_st* SP_Stream;
typedef struct TF_StringView { const char* data; size_t len; } TF_StringView;
typedef struct TF_Buffer { const void* data; size_t length; void (*data_deallocator)(void*, size_t); } TF_Buffer;
typedef struct TF_AllocatorAttributes { size_t struct_size; unsigned char on_host; } TF_AllocatorAttributes;
typedef struct TF_InputRange_Args { size_t struct_size; void* priv; int start; int stop; TF_Status* status; } TF_InputRange_Args;
typedef struct TF_FileStatistics { int64_t length; int64_t mtime_nsec; bool is_directory; } TF_FileStatistics;
typedef struct TF_ThreadOptions { size_t stack_size; size_t guard_size; int numa_node; } TF_ThreadOptions;
typedef enum TF_LogLevel { TF_INFO = 0, TF_WARNING = 1, TF_ERROR = 2, TF_FATAL = 3 } TF_LogLevel;
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
    ("work_func", "void (*work_func)(void*)"),
    ("deallocator", "void (*deallocator)(void*, size_t, void*)"),
    (
        "visitor",
        "void (*visitor)(const char*, const char*, void*)",
    ),
    (
        "copyFunc",
        "void (*copyFunc)(TF_OpKernelContext*, TF_Tensor*, TF_Tensor*)",
    ),
    (
        "updateFunc",
        "void (*updateFunc)(TF_OpKernelContext*, TF_Tensor*, TF_Tensor*, int)",
    ),
    (
        "plugin_allocator",
        "void (*plugin_allocator)(TF_OpKernelContext*, TF_Tensor*, TF_DataType, const int64_t*, int, TF_Status*)",
    ),
    (
        "binary_add_func",
        "void (*binary_add_func)(TF_OpKernelContext*, TF_Tensor*, TF_Tensor*, TF_Tensor*)",
    ),
    (
        "zeros_like_func",
        "void (*zeros_like_func)(TF_OpKernelContext*, TF_Tensor*, TF_Tensor*)",
    ),
    ("make_func", "void* (*make_func)(void*)"),
    (
        "shape_inference_func",
        "void (*shape_inference_func)(TF_ShapeInferenceContext*, TF_Status*)",
    ),
];

/// Parameters and results, `""`, whose type in C the table does not say: function (`""`: any), name, type.
const EXACT: &[(&str, &str, &str)] = &[
    ("TF_SetStatus", "code", "TF_Code"),
    ("TF_GetCode", "", "TF_Code"),
    ("TF_GetCode", "status", "const TF_Status*"),
    ("TF_Message", "status", "const TF_Status*"),
    ("TF_ForEachPayload", "status", "const TF_Status*"),
    ("TF_NewBufferFromString", "proto", "const void*"),
    ("TF_TensorType", "", "TF_DataType"),
    ("TF_TensorType", "tensor", "const TF_Tensor*"),
    ("TF_NumDims", "tensor", "const TF_Tensor*"),
    ("TF_Dim", "tensor", "const TF_Tensor*"),
    ("TF_TensorByteSize", "tensor", "const TF_Tensor*"),
    ("TF_TensorData", "tensor", "const TF_Tensor*"),
    ("TF_TensorElementCount", "tensor", "const TF_Tensor*"),
    ("TF_TensorBitcastFrom", "from", "const TF_Tensor*"),
    ("TF_TensorIsAligned", "tensor", "const TF_Tensor*"),
    ("TF_SetOutput", "tensor", "const TF_Tensor*"),
    ("TF_TensorFromProto", "from", "const TF_Buffer*"),
    ("TF_GetStream", "", "SP_Stream"),
    ("TF_InputDatatype", "", "TF_DataType"),
    ("TF_ExpectedOutputDataType", "", "TF_DataType"),
    ("TF_OpKernelConstruction_GetAttrType", "val", "TF_DataType*"),
    (
        "TF_OpKernelConstruction_GetAttrTypeList",
        "vals",
        "TF_DataType*",
    ),
    (
        "TF_OpKernelConstruction_GetAttrBool",
        "val",
        "unsigned char*",
    ),
    (
        "TF_OpKernelConstruction_GetAttrBoolList",
        "vals",
        "unsigned char*",
    ),
    ("TF_OpKernelConstruction_GetAttrString", "val", "char*"),
    (
        "TF_OpKernelConstruction_GetAttrStringList",
        "vals",
        "char**",
    ),
    (
        "TF_ShapeInferenceContext_GetAttrType",
        "val",
        "TF_DataType*",
    ),
    ("TF_GetXlaAutoJitEnabled", "", "unsigned char"),
    ("TF_AppendWritableFile", "data", "const char*"),
    ("TF_GetTempFileName", "", "char*"),
    ("TF_StartThread", "options", "const TF_ThreadOptions*"),
    ("TF_LoadSharedLibrary", "", "void*"),
    ("TF_GetSymbolFromLibrary", "handle", "void*"),
    ("TF_Log", "level", "TF_LogLevel"),
    ("TF_LockVariableInfos", "vars", "TF_VariableInfo**"),
    ("", "dtype", "TF_DataType"),
    ("", "dt", "TF_DataType"),
];

impl Function {
    /// Returns the declaration in C.
    pub fn declaration(&self) -> String {
        let parameters = self.parameters.iter().map(|(name, rust)| {
            let callback = CALLBACKS
                .iter()
                .find(|(own, _)| own == name && *rust == "Callback");
            match callback {
                Some((_, text)) => (*text).to_owned(),
                None if *rust == "Arguments" => "...".to_owned(),
                None => format!("{} {name}", self.c_type(name, rust)),
            }
        });
        let parameters: Vec<String> = parameters.collect();
        let parameters = match parameters.is_empty() {
            true => "void".to_owned(),
            false => parameters.join(", "),
        };
        format!(
            "{} {}({parameters})",
            self.c_type("", self.result),
            self.name
        )
    }

    /// Returns the C type of a parameter, or of the result, whose name is empty.
    fn c_type(&self, name: &str, rust: &str) -> String {
        let mut exact = EXACT.iter();
        let exact = exact.find(|(function, own, _)| {
            (*function == self.name || function.is_empty()) && *own == name
        });
        exact.map_or_else(|| c_type(rust), |(.., exact)| (*exact).to_owned())
    }
}

/// Returns the declarations of all functions, without the types that they are about.
pub fn declarations() -> String {
    let lines = FUNCTIONS
        .iter()
        .map(|function| format!("{};\n", function.declaration()));
    lines.collect()
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
    let types = dtype::names().map(|(code, name)| format!("TF_{} = {code}", name.to_uppercase()));
    line(format_args!("{}", enumeration("TF_DataType", types)));
    let codes = status::names().map(|(name, code)| format!("TF_{name} = {code}"));
    let codes = iter::once("TF_OK = 0".to_owned()).chain(codes);
    line(format_args!("{}", enumeration("TF_Code", codes)));
    line(format_args!("{STRUCTURES}"));
    line(format_args!("{}", declarations()));
    line(format_args!("#ifdef __cplusplus\n}}\n#endif"));
    text
}

/// Returns the C text of an enumeration.
fn enumeration(name: &str, members: impl Iterator<Item = String>) -> String {
    let members: Vec<String> = members.collect();
    format!("typedef enum {name} {{ {} }} {name};", members.join(", "))
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
        "FileStatistics" => "TF_FileStatistics",
        "ThreadOptions" => "TF_ThreadOptions",
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
