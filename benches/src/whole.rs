//! Eager operations, and whole models in files, whose instructions are counted: the costs of kernels, tensors and plans
//! where users meet them.
//!
//! Models are those of the benchmark `models`, which makes their files; one whose file is not there is left out, and
//! that is said. All is run on one thread, with AVX2 at most, since counts would differ between processors.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use tfrt::eager::{Eager, Handle};
use tfrt::tensor::DenseHostTensor;
use tfrt::tensor::math::packed_gemm::InstructionSet;
use tfrt::{DType, Error, Runtime, SingleThreadedWorkQueue};

use crate::folders;

/// The number of calls of an eager operation.
const N_CALLS: usize = 1_000;
/// The models, by the names that lines have for them, and the names of their files.
const MODELS: [(&str, &str); 2] = [("resnet50", "resnet50"), ("minilm", "encoder1")];

/// A subject that is counted.
pub struct Whole {
    /// The name.
    pub name: &'static str,
    /// The number of calls that it makes.
    pub n_calls: usize,
    /// The function that makes these calls.
    pub work: Box<dyn FnMut()>,
}

/// Returns everything that can be counted here, and says what is left out on standard error.
///
/// # Panics
///
/// If something fails that has no reason to.
pub fn all() -> Vec<Whole> {
    let limited = InstructionSet::Avx2
        .min(InstructionSet::best())
        .limit_process();
    limited.expect("nothing else has limited the process");
    let runtime = Runtime::builder()
        .queue(Arc::new(SingleThreadedWorkQueue::new()))
        .build();
    let mut all = eager(&runtime);
    for (name, file) in MODELS {
        match model(name, file, &runtime) {
            Ok(model) => all.push(model),
            Err(why) => eprintln!("SKIPPED: {name}: {why}"),
        }
    }
    all
}

/// Returns operations on 16 floats.
fn eager(runtime: &Runtime) -> Vec<Whole> {
    let eager = Eager::new(runtime);
    let floats: Vec<f32> = (0_u8..16).map(|index| f32::from(index) - 8.0).collect();
    let x = eager.tensor(&[4, 4], &floats).expect("there is memory");
    let operation = |name, call: fn(&Handle) -> Result<Handle, Error>| {
        let x = x.clone();
        let call =
            move || (0..N_CALLS).for_each(|_| drop(call(&x).expect("it has no reason to fail")));
        Whole {
            name,
            n_calls: N_CALLS,
            work: Box::new(call),
        }
    };
    vec![
        operation("eager_relu", Handle::relu),
        operation("eager_add", |x| x + x),
        operation("eager_matmul", |x| x.matmul(x)),
        operation("eager_softmax", Handle::softmax),
        operation("eager_cast", |x| x.cast(DType::F64)),
        operation("eager_sum", |x| x.sum(&[1])),
        operation("eager_reshape", |x| x.reshape(&[2, 8])),
        operation("eager_transpose", |x| x.transpose(&[1, 0])),
        operation("eager_concat", |x| Handle::concat(&[x, x], 1)),
    ]
}

fn model(name: &'static str, file: &str, runtime: &Runtime) -> Result<Whole, String> {
    let folder = folders::target("models");
    let list = folder.join(format!("{file}.model"));
    let path = fs::read_to_string(&list);
    let path = path.map_err(|error| {
        format!(
            "{}: {error}; the benchmark `models` makes it",
            list.display()
        )
    })?;
    let model = runtime
        .open_model(folder.join(path))
        .map_err(|error| error.to_string())?;
    let inputs = inputs(&folder.join(file), runtime);
    let runtime = runtime.clone();
    let call = move || {
        let outputs = model.call(&runtime.context(), &inputs[..]).wait();
        drop(outputs.expect("it has no reason to fail"));
    };
    Ok(Whole {
        name,
        n_calls: 1,
        work: Box::new(call),
    })
}

/// Reads the inputs of a model: of each a line in `inputs.txt` with name, type, extents and file.
///
/// # Panics
///
/// If the files are not what `onnx_models.py make` writes.
pub fn inputs(folder: &Path, runtime: &Runtime) -> Vec<(String, DenseHostTensor)> {
    let list = fs::read_to_string(folder.join("inputs.txt")).expect("inputs were made");
    let one = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let extents: Vec<usize> = words[2]
            .split(',')
            .map(|size| size.parse().expect("a number"))
            .collect();
        let bytes = fs::read(folder.join(words[3])).expect("it was made");
        let allocator = runtime.host().allocator();
        let made = match words[1] {
            "float32" => {
                let elements = bytes.as_chunks::<4>().0.iter();
                let floats: Vec<f32> = elements.map(|bytes| f32::from_le_bytes(*bytes)).collect();
                DenseHostTensor::from_slice(allocator, &extents, &floats)
            }
            _ => {
                let elements = bytes.as_chunks::<8>().0.iter();
                let integers: Vec<i64> = elements.map(|bytes| i64::from_le_bytes(*bytes)).collect();
                DenseHostTensor::from_slice(allocator, &extents, &integers)
            }
        };
        (words[0].to_owned(), made.expect("there is memory"))
    };
    list.lines().map(one).collect()
}
