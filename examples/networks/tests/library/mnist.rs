//! The programs in the form of the original's for MNIST, beside plain loops of 64 bits.

use std::fs::File;
use std::sync::Arc;

use tfrt::asynchronous::SystemAllocator;
use tfrt::{HostAllocator, Runtime};
use tfrt_tensor::btf::BtfReader;

/// Runs a program of `examples/` and returns the numbers of each tensor that it prints.
fn printed(name: &str) -> Vec<Vec<f64>> {
    let (output, captured) = tfrt::Output::captured();
    let runtime = Runtime::builder().output(output).build();
    let text = std::fs::read_to_string(format!("../{name}")).unwrap();
    let text = text.replace("examples/mnist.btf", "../mnist.btf");
    let program = runtime.compile(name, text).unwrap();
    let main = program.function("main").unwrap();
    main.call(&runtime.context(), ()).wait().unwrap();
    let values = |line: &str| {
        let (_, list) = line.split_once("values = [").unwrap();
        let list = list.trim_end_matches(']').split(", ");
        list.map(|number| number.parse().unwrap()).collect()
    };
    captured.printed().lines().map(values).collect()
}

/// Returns the tensors of the file.
fn tensors() -> Vec<Vec<f64>> {
    let allocator: Arc<dyn HostAllocator> = Arc::new(SystemAllocator::new());
    let mut reader = BtfReader::new("mnist.btf", File::open("../mnist.btf").unwrap()).unwrap();
    let mut read = |index: u64| {
        let tensor = reader.read(index, &allocator).unwrap();
        let reading = tensor.as_dense().unwrap().read().unwrap();
        match index {
            5 => reading
                .elements::<i32>()
                .unwrap()
                .iter()
                .copied()
                .map(f64::from)
                .collect(),
            _ => reading
                .elements::<f32>()
                .unwrap()
                .iter()
                .copied()
                .map(f64::from)
                .collect(),
        }
    };
    (0..8).map(&mut read).collect()
}

/// x w + b, for one row.
fn layer(x: &[f64], w: &[f64], b: &[f64]) -> Vec<f64> {
    let column = |(index, bias): (usize, &f64)| {
        let column = w.iter().skip(index).step_by(b.len());
        bias + x.iter().zip(column).map(|(x, w)| x * w).sum::<f64>()
    };
    b.iter().enumerate().map(column).collect()
}

fn hidden(x: &[f64], w: &[f64], b: &[f64]) -> Vec<f64> {
    layer(x, w, b).into_iter().map(|x| x.max(0.0)).collect()
}

fn softmax(x: Vec<f64>) -> Vec<f64> {
    let sum: f64 = x.iter().map(|x| x.exp()).sum();
    x.into_iter().map(|x| x.exp() / sum).collect()
}

#[test]
fn inference_gets_right_what_a_plain_calculation_does() {
    let tensors = tensors();
    let [w0, b0, w1, b1, images, labels, ..] = &tensors[..] else {
        panic!("the file has eight tensors");
    };
    let is_right = |(image, label): &(&[f64], &f64)| {
        let logits = layer(&hidden(image, w0, b0), w1, b1);
        let best = (0..10)
            .max_by(|a, b| logits[*a].total_cmp(&logits[*b]))
            .unwrap();
        best as f64 == **label
    };
    let n_right = images.chunks(64).zip(labels).filter(is_right).count();
    let printed = printed("mnist_inference.mlir");
    assert!(
        (printed[0][0] - n_right as f64 / 100.0).abs() < 1e-6,
        "{printed:?}, {n_right}"
    );
}

#[test]
fn training_goes_where_a_plain_calculation_does() {
    let mut tensors = tensors();
    let (target, image) = (tensors.pop().unwrap(), tensors.pop().unwrap());
    let [w0, b0, w1, b1, ..] = &mut tensors[..] else {
        panic!("the file has eight tensors");
    };
    let mut found = Vec::new();
    for step in 0..12 {
        let hidden = hidden(&image, w0, b0);
        let probabilities = softmax(layer(&hidden, w1, b1));
        if step == 0 || step == 11 {
            found.push(probabilities.clone());
        }
        let gradient: Vec<f64> = probabilities
            .iter()
            .zip(&target)
            .map(|(p, t)| p - t)
            .collect();
        let back = |(index, hidden): (usize, &f64)| match *hidden > 0.0 {
            true => gradient
                .iter()
                .zip(&w1[index * 10..])
                .map(|(g, w)| g * w)
                .sum(),
            false => 0.0,
        };
        let of_hidden: Vec<f64> = hidden.iter().enumerate().map(back).collect();
        for (x, row) in hidden.iter().zip(w1.chunks_mut(10)) {
            row.iter_mut()
                .zip(&gradient)
                .for_each(|(w, g)| *w -= 0.01 * x * g);
        }
        for (x, row) in image.iter().zip(w0.chunks_mut(256)) {
            row.iter_mut()
                .zip(&of_hidden)
                .for_each(|(w, g)| *w -= 0.01 * x * g);
        }
        b1.iter_mut()
            .zip(&gradient)
            .for_each(|(b, g)| *b -= 0.01 * g);
        b0.iter_mut()
            .zip(&of_hidden)
            .for_each(|(b, g)| *b -= 0.01 * g);
    }
    let printed = printed("mnist_training.mlir");
    for (printed, found) in [&printed[2], &printed[4]].into_iter().zip(&found) {
        assert_eq!(printed.len(), 10);
        for (printed, found) in printed.iter().zip(found) {
            assert!((printed - found).abs() < 1e-5, "{printed} and not {found}");
        }
    }
}
