//! A narrow network's program beside a calculation that shares nothing with it: plain loops, 64 bits.

use std::fs::File;
use std::sync::Arc;

use tfrt::eager::Eager;
use tfrt::{AnyAsyncValue, MultiThreadedWorkQueue, Runtime};
use tfrt_networks::resnet::{Convolution, EagerResNet, Form, ResNet};
use tfrt_tensor::{Tensor, btf};

const NARROW: ResNet = ResNet {
    batch: 2,
    image: 40,
    width: 4,
    blocks: [2, 1, 1, 1],
    classes: 10,
    form: Form::Plain,
};

#[test]
fn logits_are_those_of_a_plain_calculation() {
    let runtime = Runtime::new();
    let tensors = NARROW.tensors(3, runtime.host().allocator()).unwrap();
    let wanted = plain(&NARROW, &tensors.iter().map(elements).collect::<Vec<_>>());
    let largest = wanted.iter().fold(0.0_f64, |a, b| a.max(b.abs()));
    assert!(largest > 0.1 && largest < 100.0, "{wanted:?}");
    for form in [Form::Plain, Form::Fused, Form::Packed] {
        let network = ResNet { form, ..NARROW };
        let program = runtime
            .compile("resnet.mlir", network.program("none.btf"))
            .unwrap();
        let mut arguments: Vec<AnyAsyncValue> =
            tensors.iter().cloned().map(AnyAsyncValue::new).collect();
        if form == Form::Packed {
            let weights = arguments.split_off(1);
            let pack = program.function("pack").unwrap();
            let packed = pack.call(&runtime.context(), weights).wait().unwrap();
            arguments.extend(packed.into_inner());
        }
        let infer = program.function("infer").unwrap();
        let results = infer.call(&runtime.context(), arguments).wait().unwrap();
        let found = elements(results.get::<Tensor>(0).unwrap());
        assert_eq!(found.len(), wanted.len());
        for (found, wanted) in found.iter().zip(&wanted) {
            let error = (f64::from(*found) - wanted).abs();
            assert!(error < 1e-5 * largest, "{form:?}: {found} and not {wanted}");
        }
    }
}

#[test]
fn one_operation_at_a_time_gives_the_same_and_recorded_the_same_bits() {
    let mut first = None;
    for n_threads in [1, 3] {
        let queue = MultiThreadedWorkQueue::new(n_threads, 1).unwrap();
        let runtime = Runtime::builder().queue(Arc::new(queue)).build();
        let tensors = NARROW.tensors(3, runtime.host().allocator()).unwrap();
        let network = EagerResNet::new(&NARROW, &tensors[1..], &runtime).unwrap();
        let images = network.eager().of(tensors[0].clone());
        let logits = network.logits(&images).unwrap();
        let found = logits.to_vec::<f32>().unwrap();
        let wanted = plain(&NARROW, &tensors.iter().map(elements).collect::<Vec<_>>());
        let largest = wanted.iter().fold(0.0_f64, |a, b| a.max(b.abs()));
        for (found, wanted) in found.iter().zip(&wanted) {
            let error = (f64::from(*found) - wanted).abs();
            assert!(error < 1e-5 * largest, "{found} and not {wanted}");
        }

        let body =
            |_: &Eager, inputs: &[tfrt::eager::Handle]| Ok(vec![network.logits(&inputs[0])?]);
        let recorded = Eager::new(&runtime).record(&[("images", &images)], body);
        let model = recorded.unwrap().compile(&runtime).unwrap();
        let call = model.call(&runtime.context(), [("images", images.to_host().unwrap())]);
        let outputs = call.wait().unwrap();
        let bits = |logits: &[f32]| logits.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        let recorded = outputs.tensor("output0").unwrap().to_vec::<f32>().unwrap();
        assert_eq!(bits(&found), bits(&recorded));
        assert_eq!(*first.get_or_insert(bits(&found)), bits(&found));
    }
}

#[test]
fn one_operation_at_a_time_tells_of_weights_that_are_missing() {
    let runtime = Runtime::new();
    let tensors = NARROW.tensors(3, runtime.host().allocator()).unwrap();
    let error = EagerResNet::new(&NARROW, &tensors[2..], &runtime);
    let message = error.err().map(|error| error.message().to_owned());
    let n = NARROW.names().len();
    let expected = format!("expected {n} weights, found {}", n - 1);
    assert_eq!(message, Some(expected));
}

#[test]
fn the_program_reads_its_weights_and_prints_logits() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let path = folder.join("narrow \"resnet\".btf");
    let (output, captured) = tfrt::Output::captured();
    let runtime = Runtime::builder().output(output).build();
    let tensors = NARROW.tensors(3, runtime.host().allocator()).unwrap();
    btf::write(&mut File::create(&path).unwrap(), &tensors).unwrap();
    let program = NARROW.program(path.to_str().unwrap());
    let program = runtime.compile("resnet.mlir", program).unwrap();
    let main = program.function("main").unwrap();
    main.call(&runtime.context(), ()).wait().unwrap();
    let text = captured.printed();
    assert!(
        text.starts_with("DenseHostTensor dtype = f32, shape = [2, 10], values = ["),
        "{text}"
    );
}

#[test]
fn fifty_layers_have_as_many_weights_as_everybody_says() {
    let network = ResNet::FIFTY;
    let of = |c: &Convolution| c.size * c.size * c.channels * c.filters + 2 * c.filters;
    let convolutions: usize = network.convolutions().iter().map(of).sum();
    // 25,557,032 with 1000 classes; each one more has 2048 weights and a bias.
    assert_eq!(convolutions + 2048 * 1000 + 1000, 25_557_032);
    assert_eq!(network.names().len(), 53 * 5 + 2);
}

fn elements(tensor: &Tensor) -> Vec<f32> {
    let dense = tensor.as_dense().unwrap();
    let reading = dense.read().unwrap();
    reading.elements::<f32>().unwrap().to_vec()
}

/// Images of `[n, extent, extent, channels]`.
struct Images {
    extent: usize,
    channels: usize,
    elements: Vec<f64>,
}

impl Images {
    fn at(&self, n: usize, y: isize, x: isize, channel: usize) -> Option<f64> {
        let within = |at: isize| usize::try_from(at).ok().filter(|at| *at < self.extent);
        let (y, x) = (within(y)?, within(x)?);
        Some(self.elements[((n * self.extent + y) * self.extent + x) * self.channels + channel])
    }

    fn map(mut self, f: impl Fn(f64) -> f64) -> Images {
        self.elements
            .iter_mut()
            .for_each(|element| *element = f(*element));
        self
    }
}

/// Calculates the logits from image and weights, as the file has them.
fn plain(network: &ResNet, tensors: &[Vec<f32>]) -> Vec<f64> {
    let mut weights = tensors.iter();
    let elements = weights.next().unwrap().iter().copied().map(f64::from);
    let images = Images {
        extent: network.image,
        channels: 3,
        elements: elements.collect(),
    };
    let mut convolutions = network.convolutions().into_iter();
    let mut next = |images: &Images, pad: [usize; 2]| {
        let convolution = convolutions.next().unwrap();
        let weights: Vec<&Vec<f32>> = weights.by_ref().take(5).collect();
        convolve(network.batch, images, &convolution, &weights, pad)
    };
    let relu = |images: Images| images.map(|x| x.max(0.0));
    let mut images = pool(network.batch, &relu(next(&images, [3, 3])));
    for (index, blocks) in network.blocks.into_iter().enumerate() {
        for block in 0..blocks {
            let a = relu(next(&images, [0, 0]));
            let stride = if index > 0 && block == 0 { 2 } else { 1 };
            let b = relu(next(&a, same(a.extent, stride)));
            let mut c = next(&b, [0, 0]);
            let shortcut = if block == 0 {
                next(&images, [0, 0])
            } else {
                images
            };
            for (c, s) in c.elements.iter_mut().zip(&shortcut.elements) {
                *c += s;
            }
            images = relu(c);
        }
    }
    let (weight, bias) = (weights.next().unwrap(), weights.next().unwrap());
    let area = (images.extent * images.extent) as f64;
    let mut logits = Vec::new();
    for image in images
        .elements
        .chunks(images.elements.len() / network.batch)
    {
        let mean = |channel: usize| {
            image
                .iter()
                .skip(channel)
                .step_by(images.channels)
                .sum::<f64>()
                / area
        };
        let means: Vec<f64> = (0..images.channels).map(mean).collect();
        for (class, bias) in bias.iter().enumerate() {
            let column = weight.iter().skip(class).step_by(network.classes);
            let product: f64 = means
                .iter()
                .zip(column)
                .map(|(x, w)| x * f64::from(*w))
                .sum();
            logits.push(product + f64::from(*bias));
        }
    }
    logits
}

/// Returns the padding before and behind, for a filter of 3 whose output is as large as the stride allows.
fn same(extent: usize, stride: usize) -> [usize; 2] {
    let needed = ((extent.div_ceil(stride) - 1) * stride + 3).saturating_sub(extent);
    [needed / 2, needed - needed / 2]
}

fn convolve(
    batch: usize,
    images: &Images,
    convolution: &Convolution,
    weights: &[&Vec<f32>],
    [before, behind]: [usize; 2],
) -> Images {
    let Convolution {
        size,
        stride,
        channels,
        filters,
        ..
    } = *convolution;
    assert_eq!(channels, images.channels);
    let extent = (images.extent + before + behind - size) / stride + 1;
    let place =
        |output: usize, offset: usize| (output * stride + offset) as isize - before as isize;
    let mut elements = Vec::new();
    for at in 0..batch * extent * extent {
        let (n, y, x) = (at / extent / extent, at / extent % extent, at % extent);
        for f in 0..filters {
            let mut sum = 0.0;
            for tap in 0..size * size * channels {
                let (row, column, c) =
                    (tap / channels / size, tap / channels % size, tap % channels);
                let image = images.at(n, place(y, row), place(x, column), c);
                sum += image.unwrap_or(0.0) * f64::from(weights[0][tap * filters + f]);
            }
            let [scale, shift, mean, variance] =
                [1, 2, 3, 4].map(|part| f64::from(weights[part][f]));
            elements.push((sum - mean) / (variance + 1e-5).sqrt() * scale + shift);
        }
    }
    Images {
        extent,
        channels: filters,
        elements,
    }
}

fn pool(batch: usize, images: &Images) -> Images {
    let (extent, channels) = (images.extent.div_ceil(2), images.channels);
    let [before, _] = same(images.extent, 2);
    let mut elements = Vec::new();
    for at in 0..batch * extent * extent {
        let (n, y, x) = (at / extent / extent, at / extent % extent, at % extent);
        for c in 0..channels {
            let place =
                |output: usize, offset: usize| (output * 2 + offset) as isize - before as isize;
            let window =
                (0..9).filter_map(|tap| images.at(n, place(y, tap / 3), place(x, tap % 3), c));
            elements.push(window.fold(f64::NEG_INFINITY, f64::max));
        }
    }
    Images {
        extent,
        channels,
        elements,
    }
}

#[test]
fn programs_for_images_of_nothing_can_be_written() {
    for form in [Form::Plain, Form::Fused, Form::Packed] {
        let network = ResNet {
            image: 0,
            form,
            ..NARROW
        };
        assert!(network.program("none.btf").contains("@infer"));
    }
}

#[test]
fn networks_that_fit_no_memory_are_told() {
    let runtime = Runtime::new();
    for batch in [1 << 50, usize::MAX / 4, usize::MAX] {
        let network = ResNet {
            batch,
            ..ResNet::FIFTY
        };
        assert!(network.tensors(1, runtime.host().allocator()).is_err());
    }
}
