//! The memory that sessions of one model hold, measured in a process of their own.

use std::fmt::Write;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use tfrt::input::Input;
use tfrt::ir::Source;
use tfrt::{Model, Runtime, Tensor};
use tfrt_async::trim_memory;

use crate::own_process::in_own_process;

/// A page of Linux on most machines; elsewhere it is larger, and less is found than there is.
const PAGE_BYTES: usize = 4096;
const MIB: usize = 1 << 20;
/// Of the table, and of the matrix.
const WEIGHT_BYTES: usize = 2 * MIB;

/// Looks a row of a table up, which is used as it lies, and multiplies it by a matrix, which is packed.
fn text() -> Input {
    let weights = |factor: f32| {
        (0..WEIGHT_BYTES / 4).fold(String::new(), |mut text, index| {
            let number = (index % 7) as f32 * factor;
            write!(text, "{:08X}", number.to_bits().swap_bytes()).unwrap();
            text
        })
    };
    let (table, matrix) = (weights(1.0), weights(0.5));
    let text = format!(
        r#"func.func @main(%i: tensor<1xi64>) -> tensor<1x512xf32>
             attributes {{model.input_names = ["i"], model.output_names = ["y"], model.input_dims = [[1 : i64]]}} {{
           %t = "onnx.Constant"() {{value = dense<"0x{table}"> : tensor<512x1024xf32>}} : () -> tensor<512x1024xf32>
           %w = "onnx.Constant"() {{value = dense<"0x{matrix}"> : tensor<1024x512xf32>}} : () -> tensor<1024x512xf32>
           %x = "onnx.Gather"(%t, %i) : (tensor<512x1024xf32>, tensor<1xi64>) -> tensor<1x1024xf32>
           %y = "onnx.MatMul"(%x, %w) : (tensor<1x1024xf32>, tensor<1024x512xf32>) -> tensor<1x512xf32>
           tfrt.return %y : tensor<1x512xf32>
         }}"#
    );
    Input::Text(Source::new("model.mlir", text))
}

/// Returns the bytes of the process that are in memory.
fn resident() -> usize {
    let numbers = fs::read_to_string("/proc/self/statm").unwrap();
    let pages = numbers.split(' ').nth(1).unwrap();
    pages.parse::<usize>().unwrap() * PAGE_BYTES
}

fn first(model: &Model, runtime: &Runtime) -> f32 {
    let i = Tensor::from_vec(&[1], vec![3_i64]).unwrap();
    let outputs = model.call(&runtime.context(), [("i", i)]).wait().unwrap();
    outputs.tensor("y").unwrap().to_vec::<f32>().unwrap()[0]
}

#[test]
fn sessions_hold_neither_a_table_twice_nor_what_weights_were_packed_of() {
    let _alone = crate::alone();
    in_own_process(
        "sessions::sessions_hold_neither_a_table_twice_nor_what_weights_were_packed_of",
        look_at_sessions,
    );
}

fn look_at_sessions() {
    let (runtime, input) = (Runtime::new(), text());
    let row = 3 * 1024;
    let expected: f32 = (0..1024)
        .map(|k| ((row + k) % 7) as f32 * (k * 512 % 7) as f32 * 0.5)
        .sum();
    // The code that calls run is in memory after the first, and so is what is made once.
    let mut sessions = vec![runtime.load_model(&input).unwrap()];
    drop(runtime.load_model(&input).unwrap());
    assert_eq!(first(&sessions[0], &runtime), expected);
    trim_memory();
    let before = resident();
    sessions.extend((0..4).map(|_| runtime.load_model(&input).unwrap()));
    for session in &sessions {
        assert_eq!(first(session, &runtime), expected);
    }
    // Blocks that are idle are no session's; some come back a little later, from threads that saw them last.
    trim_memory();
    let each = || resident().saturating_sub(before) / 4;
    let end = Instant::now() + Duration::from_secs(10);
    while each() >= WEIGHT_BYTES / 2 && Instant::now() < end {
        thread::sleep(Duration::from_millis(10));
        trim_memory();
    }
    let each = each();
    assert!(
        each < WEIGHT_BYTES / 2,
        "{each} bytes a session, of weights of 2 times {WEIGHT_BYTES}"
    );
}
