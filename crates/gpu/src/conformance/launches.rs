//! Checks of modules, kernels and their launches.

use super::{Bed, PTX, refused};
use crate::driver::{Argument, GpuErrorKind, Grid};

pub(super) fn bad_modules(bed: &Bed) {
    for image in [&b"hello"[..], b"", &[0x7f, b'E', b'L', b'F', 0, 0, 0, 0]] {
        refused(
            bed.driver.load_module(bed.context, image),
            "CUDA_ERROR_INVALID_IMAGE",
        );
    }
    let broken = PTX.replacen("mad.lo.s32", "mud.lo.s32", 1);
    let error = bed
        .driver
        .load_module(bed.context, broken.as_bytes())
        .expect_err("it is broken");
    assert_eq!(
        (&*error.code, error.kind),
        ("CUDA_ERROR_INVALID_PTX", GpuErrorKind::Refused)
    );
    assert!(error.detail.contains("mud"), "{error}");
}

pub(super) fn functions(bed: &Bed) {
    let module = bed.module();
    let error = bed
        .driver
        .function(bed.context, module, "absent")
        .expect_err("there is none");
    assert_eq!(
        error.to_string(),
        "cuModuleGetFunction failed with CUDA_ERROR_NOT_FOUND: no kernel 'absent'"
    );
    let info = |name| {
        let function = bed.function(module, name);
        bed.driver
            .function_info(bed.context, function)
            .expect("it is there")
    };
    let axpy = info("axpy");
    if let Some(parameters) = axpy.parameters {
        assert_eq!(parameters, [4, 4, 8, 8]);
        assert_eq!(
            info("arguments").parameters.expect("it told before"),
            [8, 8, 4, 4, 8]
        );
        assert!(
            info("nothing")
                .parameters
                .expect("it told before")
                .is_empty()
        );
    }
    assert_eq!((axpy.max_threads, info("sums").shared_bytes), (1024, 1024));
    bed.driver
        .unload_module(bed.context, module)
        .expect("it is there");
}

pub(super) fn axpy(bed: &Bed) {
    const N: usize = 1000;
    let module = bed.module();
    let function = bed.function(module, "axpy");
    let x: Vec<f32> = (0..N).map(|i| i as f32).collect();
    let (x, y) = (bed.put(&x), bed.put(&[1.0; N]));
    let arguments = [
        Argument::U32(N as u32),
        Argument::F32(0.5),
        Argument::Pointer(Some(x)),
        Argument::Pointer(Some(y)),
    ];
    bed.launch(function, Grid::linear(4, 256), &arguments);
    bed.launch(function, Grid::linear(8, 128), &arguments);
    for (i, value) in bed.floats(y, N).into_iter().enumerate() {
        assert_eq!(value, 1.0 + i as f32, "element {i}");
    }
    bed.driver
        .unload_module(bed.context, module)
        .expect("it is there");
    bed.free(x);
    bed.free(y);
}

pub(super) fn sums(bed: &Bed) {
    let module = bed.module();
    let function = bed.function(module, "sums");
    let x: Vec<f32> = (0..512).map(|i| i as f32).collect();
    let (x, y) = (bed.put(&x), bed.allocate(8));
    bed.launch(
        function,
        Grid::linear(2, 256),
        &[Argument::Pointer(Some(y)), Argument::Pointer(Some(x))],
    );
    assert_eq!(bed.floats(y, 2), [32640.0, 98176.0]);
    bed.driver
        .unload_module(bed.context, module)
        .expect("it is there");
    bed.free(x);
    bed.free(y);
}

pub(super) fn dynamic_shared(bed: &Bed) {
    let module = bed.module();
    let function = bed.function(module, "dynamic_shared");
    let y = bed.allocate(4 * 64);
    let grid = Grid {
        shared_bytes: 4 * 64,
        ..Grid::linear(1, 64)
    };
    bed.launch(function, grid, &[Argument::Pointer(Some(y))]);
    let bytes = bed.content(y, 4 * 64);
    let found: Vec<u32> = bytes
        .as_chunks()
        .0
        .iter()
        .map(|four| u32::from_ne_bytes(*four))
        .collect();
    let expected: Vec<u32> = (0..64).map(|i| (63 - i) * (63 - i)).collect();
    assert_eq!(found, expected);
    bed.driver
        .unload_module(bed.context, module)
        .expect("it is there");
    bed.free(y);
}

pub(super) fn arguments(bed: &Bed) {
    let module = bed.module();
    let function = bed.function(module, "arguments");
    let y = bed.allocate(8);
    let arguments = [
        Argument::Pointer(Some(y)),
        Argument::F64(0.125),
        Argument::F32(0.5),
        Argument::U32(3_000_000_000),
        Argument::U64(-7_i64 as u64),
    ];
    bed.launch(function, Grid::linear(1, 1), &arguments);
    let bytes: [u8; 8] = bed.content(y, 8).try_into().expect("eight bytes");
    assert_eq!(f64::from_ne_bytes(bytes), 2_999_999_993.625);
    bed.driver
        .unload_module(bed.context, module)
        .expect("it is there");
    bed.free(y);
}

pub(super) fn bad_grids(bed: &Bed) {
    let module = bed.module();
    let function = bed.function(module, "nothing");
    let one = Grid::linear(1, 1);
    for grid in [
        Grid::linear(0, 1),
        Grid::linear(1, 0),
        Grid::linear(1, 1025),
        Grid {
            blocks: [1, 65536, 1],
            ..one
        },
        Grid {
            threads: [1, 1, 65],
            ..one
        },
        Grid {
            shared_bytes: 1 << 20,
            ..one
        },
    ] {
        refused(
            bed.try_launch(function, grid, &[]),
            "CUDA_ERROR_INVALID_VALUE",
        );
    }
    bed.launch(function, one, &[]);
    bed.wait(bed.stream);
    bed.driver
        .unload_module(bed.context, module)
        .expect("it is there");
}

/// A module of a variable and nothing else.
const VARIABLE: &str = "\
.version 6.4
.target sm_75
.address_size 64
.visible .global .align 4 .b32 table[2] = {30, 12};
";

pub(super) fn variables(bed: &Bed) {
    let module = bed.driver.load_module(bed.context, VARIABLE.as_bytes());
    let module = module.expect("it is a module");
    let found = bed.driver.global(bed.context, module, "table");
    let (at, len_bytes) = found.expect("it is there");
    assert_eq!(len_bytes, 8);
    assert_eq!(bed.content(at, 8), [30, 0, 0, 0, 12, 0, 0, 0]);
    refused(
        bed.driver.global(bed.context, module, "chair"),
        "CUDA_ERROR_NOT_FOUND",
    );
    bed.driver
        .unload_module(bed.context, module)
        .expect("it is there");
}
