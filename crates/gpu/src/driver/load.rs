//! Finding and opening the driver's library.
//!
//! The driver comes with the system, and is opened by name. A library that is not there, is none, or lacks a function is
//! one error that says so: [`Functions`] is made with all of its functions or not at all, so that no call can meet one that
//! is missing.
//!
//! Signatures are written here once and held against those that `cudarc` made from NVIDIA's headers, when this is
//! compiled. Codes are numbers, since a driver may be newer than any list of them.

#![expect(unsafe_code, reason = "opening a library; types of its functions")]

use std::ffi::{c_char, c_int, c_uint, c_ulonglong, c_void};
use std::path::Path;

use cudarc::driver::sys;
use libloading::Library;

use super::{GpuError, GpuErrorKind};

/// The names of the driver's library.
#[cfg(windows)]
const NAMES: &[&str] = &["nvcuda.dll"];
#[cfg(not(windows))]
const NAMES: &[&str] = &["libcuda.so.1", "libcuda.so"];

/// The driver that is needed, for messages.
const NEEDED: &str = "devices of type gpu need NVIDIA's driver 525 or later";

/// Makes the table of a library's functions, each with the name that it has there.
///
/// `functions! { init = cuInit(flags: c_uint); }` makes a field `init: unsafe extern "C" fn(c_uint) -> u32`, reads it from
/// the library, and checks that `cudarc::driver::sys::cuInit` takes the same.
macro_rules! functions {
    ($($name:ident = $symbol:ident($($argument:ident: $kind:ty),*);)*) => {
        /// The driver's functions. All give a code.
        pub(super) struct Functions {
            $(pub(super) $name: unsafe extern "C" fn($($kind),*) -> u32,)*
            // Takes any code, of which NVIDIA's headers know some.
            pub(super) error_name: unsafe extern "C" fn(u32, *mut *const c_char) -> u32,
            // Two names, by age of the driver.
            pub(super) elapsed: unsafe extern "C" fn(*mut f32, sys::CUevent, sys::CUevent) -> u32,
            /// Tells the parameters of kernels, since CUDA 12.4.
            pub(super) parameter: Option<unsafe extern "C" fn(sys::CUfunction, usize, *mut usize, *mut usize) -> u32>,
            /// Captures and launches graphs, if the driver does.
            pub(super) graphs: Option<GraphFunctions>,
            /// Makes contexts: in this form in every driver, and not in the newest headers.
            pub(super) context_create: unsafe extern "C" fn(*mut sys::CUcontext, c_uint, sys::CUdevice) -> u32,
            // Invariant: the functions are of this library, which stays open as long as they are there.
            _library: Library,
        }

        $(const _: unsafe fn($($kind),*) -> sys::CUresult = sys::$symbol;)*

        impl Functions {
            fn of(library: Library) -> Result<Functions, Vec<&'static str>> {
                let mut missing = Vec::new();
                $(
                    // SAFETY: the function of this name has this type in every driver; the check above compares it
                    // with NVIDIA's headers.
                    let $name = unsafe { library.get::<unsafe extern "C" fn($($kind),*) -> u32>(stringify!($symbol)) };
                    let $name = $name.map(|function| *function).map_err(|_| missing.push(stringify!($symbol)));
                )*
                // SAFETY: it has the type of the field.
                let error_name = unsafe { library.get("cuGetErrorName") }.ok().map(|function| *function);
                if error_name.is_none() {
                    missing.push("cuGetErrorName");
                }
                let names = ["cuEventElapsedTime_v2", "cuEventElapsedTime"];
                // SAFETY: both have the type of the field.
                let elapsed = names.iter().find_map(|name| unsafe { library.get(*name) }.ok()).map(|function| *function);
                if elapsed.is_none() {
                    missing.push(names[1]);
                }
                // SAFETY: it has the type of the field.
                let parameter = unsafe { library.get("cuFuncGetParamInfo") }.ok().map(|function| *function);
                // SAFETY: it has the type of the field.
                let context_create = unsafe { library.get("cuCtxCreate_v2") }.ok().map(|function| *function);
                let graphs = GraphFunctions::of(&library);
                if context_create.is_none() {
                    missing.push("cuCtxCreate_v2");
                }
                match ($($name,)* error_name, elapsed, context_create) {
                    ($(Ok($name),)* Some(error_name), Some(elapsed), Some(context_create)) => Ok(Functions { $($name,)* error_name, elapsed, parameter, graphs, context_create, _library: library }),
                    _ => Err(missing),
                }
            }
        }
    };
}

functions! {
    init = cuInit(flags: c_uint);
    driver_version = cuDriverGetVersion(version: *mut c_int);
    device_count = cuDeviceGetCount(count: *mut c_int);
    device_get = cuDeviceGet(device: *mut sys::CUdevice, ordinal: c_int);
    device_name = cuDeviceGetName(name: *mut c_char, len: c_int, device: sys::CUdevice);
    device_memory = cuDeviceTotalMem_v2(bytes: *mut usize, device: sys::CUdevice);
    device_attribute = cuDeviceGetAttribute(value: *mut c_int, attribute: sys::CUdevice_attribute, device: sys::CUdevice);
    primary_retain = cuDevicePrimaryCtxRetain(context: *mut sys::CUcontext, device: sys::CUdevice);
    primary_release = cuDevicePrimaryCtxRelease_v2(device: sys::CUdevice);
    context_destroy = cuCtxDestroy_v2(context: sys::CUcontext);
    set_current = cuCtxSetCurrent(context: sys::CUcontext);
    context_synchronize = cuCtxSynchronize();
    stream_create = cuStreamCreate(stream: *mut sys::CUstream, flags: c_uint);
    stream_destroy = cuStreamDestroy_v2(stream: sys::CUstream);
    stream_query = cuStreamQuery(stream: sys::CUstream);
    stream_synchronize = cuStreamSynchronize(stream: sys::CUstream);
    stream_wait = cuStreamWaitEvent(stream: sys::CUstream, event: sys::CUevent, flags: c_uint);
    event_create = cuEventCreate(event: *mut sys::CUevent, flags: c_uint);
    event_destroy = cuEventDestroy_v2(event: sys::CUevent);
    event_record = cuEventRecord(event: sys::CUevent, stream: sys::CUstream);
    event_query = cuEventQuery(event: sys::CUevent);
    event_synchronize = cuEventSynchronize(event: sys::CUevent);
    allocate = cuMemAlloc_v2(pointer: *mut sys::CUdeviceptr, bytes: usize);
    free = cuMemFree_v2(pointer: sys::CUdeviceptr);
    memory_info = cuMemGetInfo_v2(free: *mut usize, total: *mut usize);
    register = cuMemHostRegister_v2(start: *mut c_void, bytes: usize, flags: c_uint);
    unregister = cuMemHostUnregister(start: *mut c_void);
    registered = cuMemHostGetDevicePointer_v2(pointer: *mut sys::CUdeviceptr, start: *mut c_void, flags: c_uint);
    copy_up = cuMemcpyHtoDAsync_v2(to: sys::CUdeviceptr, from: *const c_void, bytes: usize, stream: sys::CUstream);
    copy_down = cuMemcpyDtoHAsync_v2(to: *mut c_void, from: sys::CUdeviceptr, bytes: usize, stream: sys::CUstream);
    copy_within = cuMemcpyDtoDAsync_v2(to: sys::CUdeviceptr, from: sys::CUdeviceptr, bytes: usize, stream: sys::CUstream);
    fill_byte = cuMemsetD8Async(at: sys::CUdeviceptr, value: u8, n: usize, stream: sys::CUstream);
    fill_half = cuMemsetD16Async(at: sys::CUdeviceptr, value: u16, n: usize, stream: sys::CUstream);
    fill_word = cuMemsetD32Async(at: sys::CUdeviceptr, value: c_uint, n: usize, stream: sys::CUstream);
    module_load = cuModuleLoadDataEx(module: *mut sys::CUmodule, image: *const c_void, n: c_uint, options: *mut sys::CUjit_option, values: *mut *mut c_void);
    module_unload = cuModuleUnload(module: sys::CUmodule);
    module_function = cuModuleGetFunction(function: *mut sys::CUfunction, module: sys::CUmodule, name: *const c_char);
    module_global = cuModuleGetGlobal_v2(pointer: *mut sys::CUdeviceptr, bytes: *mut usize, module: sys::CUmodule, name: *const c_char);
    function_attribute = cuFuncGetAttribute(value: *mut c_int, attribute: sys::CUfunction_attribute, function: sys::CUfunction);
    launch = cuLaunchKernel(function: sys::CUfunction, gx: c_uint, gy: c_uint, gz: c_uint, bx: c_uint, by: c_uint, bz: c_uint, shared: c_uint, stream: sys::CUstream, parameters: *mut *mut c_void, extra: *mut *mut c_void);
}

/// Makes a table of functions that a library has all of, or is taken to have none of.
///
/// `group! { Graphs { launch = cuGraphLaunch(..); } }` makes `struct Graphs` with such a field, and `Graphs::of`.
macro_rules! group {
    ($(#[$doc:meta])* $group:ident {
        $($name:ident = $symbol:ident($($argument:ident: $kind:ty),*);)*
    }) => {
        $(#[$doc])*
        pub(super) struct $group {
            $(pub(super) $name: unsafe extern "C" fn($($kind),*) -> u32,)*
        }

        $(const _: unsafe fn($($kind),*) -> sys::CUresult = sys::$symbol;)*

        impl $group {
            fn of(library: &Library) -> Option<$group> {
                $(
                    // SAFETY: the function of this name has this type in every driver; the check above compares it
                    // with NVIDIA's headers.
                    let $name = unsafe { library.get::<unsafe extern "C" fn($($kind),*) -> u32>(stringify!($symbol)) };
                )*
                Some($group { $($name: *$name.ok()?,)* })
            }
        }
    };
}

group! {
    /// The driver's functions for graphs. All give a code.
    GraphFunctions {
        begin = cuStreamBeginCapture_v2(stream: sys::CUstream, mode: sys::CUstreamCaptureMode);
        end = cuStreamEndCapture(stream: sys::CUstream, graph: *mut sys::CUgraph);
        instantiate = cuGraphInstantiateWithFlags(executable: *mut sys::CUgraphExec, graph: sys::CUgraph, flags: c_ulonglong);
        launch = cuGraphLaunch(executable: sys::CUgraphExec, stream: sys::CUstream);
        destroy_executable = cuGraphExecDestroy(executable: sys::CUgraphExec);
        destroy_graph = cuGraphDestroy(graph: sys::CUgraph);
    }
}

/// Opens the driver that the system has.
///
/// # Errors
///
/// `Unavailable` if there is none, or it is too old.
pub(super) fn open() -> Result<(Functions, String), GpuError> {
    let mut reasons = Vec::new();
    for name in NAMES {
        match open_library(name.as_ref()) {
            Ok(library) => {
                return functions(library, name).map(|functions| (functions, (*name).to_owned()));
            }
            Err(error) => reasons.push((name, error)),
        }
    }
    // A file that is there but can't be opened is told as it is.
    let is_absent = |text: &str| {
        text.contains("No such file") || text.contains("cannot open shared object file")
    };
    match reasons.into_iter().find(|(_, error)| !is_absent(error)) {
        None => Err(unavailable(format!(
            "no CUDA driver: {} was not found; {NEEDED}",
            NAMES[0]
        ))),
        Some((name, error)) => Err(not_opened(name, &error)),
    }
}

/// Opens a library as the driver.
///
/// # Errors
///
/// `Unavailable` if it is none, or lacks functions.
pub(super) fn open_at(path: &Path) -> Result<Functions, GpuError> {
    let name = path.display().to_string();
    let library = open_library(path).map_err(|error| not_opened(&name, &error))?;
    functions(library, &name)
}

fn open_library(path: &Path) -> Result<Library, String> {
    // SAFETY: what a library does when it is opened is the library's; the user has named it, or the system has it under
    // the name of its driver.
    let library = unsafe { Library::new(path) };
    library.map_err(|error| {
        let mut text = error.to_string();
        if let Some(source) = std::error::Error::source(&error) {
            text = source.to_string();
        }
        text
    })
}

fn functions(library: Library, name: &str) -> Result<Functions, GpuError> {
    Functions::of(library).map_err(|missing| {
        let list = missing[..missing.len().min(3)].join(", ");
        let more = match missing.len() {
            0..=3 => String::new(),
            n => format!(" and {} others", n - 3),
        };
        unavailable(format!(
            "{name} is no CUDA driver of version 525 or later: it lacks {list}{more}"
        ))
    })
}

fn not_opened(name: &str, error: &str) -> GpuError {
    unavailable(format!(
        "no CUDA driver: {name} can't be opened: {error}; {NEEDED}"
    ))
}

fn unavailable(detail: String) -> GpuError {
    GpuError::new("", "CUDA_ERROR_NOT_FOUND", GpuErrorKind::Unavailable).detail(detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_driver_is_one_clear_error() {
        let message = |path: &Path| open_at(path).err().unwrap().to_string();
        let absent = message(Path::new("/nowhere/libcuda.so.1"));
        assert!(
            absent.starts_with("no CUDA driver: /nowhere/libcuda.so.1 can't be opened: "),
            "{absent}"
        );
        assert!(absent.ends_with(NEEDED), "{absent}");
        let text = message(&Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml"));
        assert!(text.contains("Cargo.toml can't be opened: "), "{text}");
        // The library of mathematical functions is a library, and no driver.
        if cfg!(target_os = "linux") {
            let other = message(Path::new("libm.so.6"));
            assert_eq!(
                other,
                "libm.so.6 is no CUDA driver of version 525 or later: it lacks cuInit, cuDriverGetVersion, cuDeviceGetCount and 40 others"
            );
        }
    }
}
