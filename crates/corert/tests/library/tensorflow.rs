//! Operations compared with TensorFlow: `recorded/tensorflow.txt` has calls, and the results that TensorFlow gave.
//! `recorded/record.py` writes it and describes its form.
//!
//! Types, shapes, integers, truth values and strings are the same; floats differ in their last places. What TensorFlow
//! refuses is refused.

use std::sync::mpsc;
use std::time::Duration;

use tfrt_corert::{AttrValue, Context, CoreRuntime, IntoAttr, OpAttrs, TensorHandle};
use tfrt_host::kernel::KernelRegistry;
use tfrt_host::{DType, HostContext};
use tfrt_tensor::math::number::Real;
use tfrt_tensor::{Bool, StringHostTensor, Tensor, TensorShape, with_real};

const RECORDED: &str = include_str!("recorded/tensorflow.txt");

/// Known differences: the beginning of a line, and the reason.
const OTHERS: &[(&str, &str)] = &[("Selu {} | f64", "the row's numbers are those of f32")];

#[test]
fn operations_are_those_of_tensorflow() {
    let host = HostContext::builder(KernelRegistry::new()).build();
    let runtime = CoreRuntime::new(&host);
    runtime.set_kernels(tfrt_kernels::rows::find);
    let bed = TestBed {
        context: runtime.context(),
        runtime,
    };
    let mut used = vec![false; OTHERS.len()];
    let mut wrong = Vec::new();
    for line in RECORDED.lines() {
        let outcome = bed.check(line);
        let other = OTHERS.iter().position(|(start, _)| line.starts_with(start));
        match (outcome, other) {
            (Err(_), Some(index)) => used[index] = true,
            (Err(message), None) => wrong.push(format!("{line}\n    {message}")),
            (Ok(()), _) => (),
        }
    }
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert_eq!(used, vec![true; OTHERS.len()], "some differ no longer");
}

struct TestBed {
    runtime: CoreRuntime,
    context: Context,
}

impl TestBed {
    fn check(&self, line: &str) -> Result<(), String> {
        let (call, wanted) = line.split_once(" -> ").unwrap();
        let mut parts = call.split(" | ");
        let (name, stated) = parts.next().unwrap().split_once(" {").unwrap();
        let inputs: Vec<TensorHandle> = parts.map(|part| self.tensor(part)).collect();
        let attrs = attributes(stated.strip_suffix('}').unwrap());
        match (self.call(name, &inputs, &attrs), wanted) {
            (Ok(found), "error") => Err(format!("gave {found:?}")),
            (Err(message), "error") => {
                let is_named = message.contains(&format!("tf.{name}"))
                    // Of functions of two elements in any type.
                    || message.starts_with("tensor shape mismatch");
                is_named
                    .then_some(())
                    .ok_or_else(|| format!("does not say who: {message}"))
            }
            (Err(message), _) => Err(format!("failed: {message}")),
            (Ok(found), wanted) => {
                let wanted: Vec<&str> = wanted.split(" | ").collect();
                if found.len() != wanted.len() {
                    return Err(format!("gave {} results", found.len()));
                }
                found
                    .iter()
                    .zip(wanted)
                    .try_for_each(|(found, wanted)| same(found, wanted))
            }
        }
    }

    fn call(
        &self,
        name: &str,
        inputs: &[TensorHandle],
        attrs: &OpAttrs,
    ) -> Result<Vec<TensorHandle>, String> {
        let inputs: Vec<&TensorHandle> = inputs.iter().collect();
        let op = self.runtime.op(&format!("tf.{name}"), &self.runtime.cpu());
        let op = op.map_err(|error| error.message().to_owned())?;
        let results = op.call(&self.context, &inputs[..], attrs);
        let results = results.map_err(|error| error.message().to_owned())?;
        for result in &results {
            let (sender, receiver) = mpsc::channel();
            result.to_async().and_then(move || sender.send(()).unwrap());
            receiver.recv_timeout(Duration::from_secs(60)).unwrap();
            if let Some(error) = result.error() {
                return Err(error.message().to_owned());
            }
        }
        Ok(results.into_iter().collect())
    }

    fn tensor(&self, text: &str) -> TensorHandle {
        let (dtype, extents, words) = parsed(text);
        let dense = |dtype| {
            with_real!(dtype, T => {
                let list: Vec<T> = words.iter().map(|word| number::<T>(word)).collect();
                self.runtime.dense(&extents, &list).unwrap()
            }, else panic!("{text}"))
        };
        match dtype {
            DType::String => {
                let strings = words.iter().map(|word| unquoted(word)).collect();
                let shape = TensorShape::new(&extents).unwrap();
                self.runtime
                    .handle(StringHostTensor::new(shape, strings).unwrap())
            }
            DType::I1 => {
                let list: Vec<Bool> = words.iter().map(|word| Bool::from(*word == "1")).collect();
                self.runtime.dense(&extents, &list).unwrap()
            }
            dtype => dense(dtype),
        }
    }
}

/// `f32[2] 1 2`: type, extents, and what follows.
fn parsed(text: &str) -> (DType, Vec<usize>, Vec<&str>) {
    let mut words = text.split(' ');
    let (dtype, extents) = words.next().unwrap().split_once('[').unwrap();
    let extents = extents.strip_suffix(']').unwrap().split(',');
    let extents = extents.filter(|extent| !extent.is_empty());
    (
        dtype_of(dtype),
        extents.map(|extent| extent.parse().unwrap()).collect(),
        words.collect(),
    )
}

fn dtype_of(name: &str) -> DType {
    if name == "str" {
        return DType::String;
    }
    let mut all = DType::ALL.into_iter();
    all.find(|dtype| dtype.to_string() == name).unwrap()
}

fn number<T: Real>(word: &str) -> T {
    match word.parse::<i64>() {
        // Large ones are exact in 64 bits alone.
        Ok(whole) if T::DTYPE == DType::I64 => {
            tfrt_tensor::from_bytes(tfrt_tensor::to_bytes(&[whole])).unwrap()[0]
        }
        _ => T::from_f64(word.parse().unwrap()),
    }
}

/// Returns a text in quotes: `\x20` is the byte.
fn unquoted(word: &str) -> Vec<u8> {
    let text = word
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'));
    let mut bytes = Vec::new();
    let mut rest = text.unwrap().as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        match first {
            b'\\' => {
                let digits = std::str::from_utf8(&behind[1..3]).unwrap();
                bytes.push(u8::from_str_radix(digits, 16).unwrap());
                rest = &behind[3..];
            }
            first => {
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    bytes
}

/// `axis=i:1; keep_dims=b:0`
fn attributes(text: &str) -> OpAttrs {
    let mut attrs = OpAttrs::new();
    for entry in text.split("; ").filter(|entry| !entry.is_empty()) {
        let (name, value) = entry.split_once('=').unwrap();
        let (kind, value) = value.split_once(':').unwrap();
        let words: Vec<&str> = value.split(' ').filter(|word| !word.is_empty()).collect();
        let text = |word: &str| String::from_utf8(unquoted(word)).unwrap();
        let value = match kind {
            "b" => (value == "1").into_attr(),
            "i" => value.parse::<i64>().unwrap().into_attr(),
            "f" => value.parse::<f32>().unwrap().into_attr(),
            "s" => text(value).as_str().into_attr(),
            "t" => dtype_of(value).into_attr(),
            "I" => {
                let list: Vec<i64> = words.iter().map(|word| word.parse().unwrap()).collect();
                list[..].into_attr()
            }
            "F" => {
                let list: Vec<f32> = words.iter().map(|word| word.parse().unwrap()).collect();
                list[..].into_attr()
            }
            _ => {
                let list: Vec<String> = words.iter().map(|word| text(word)).collect();
                let list = list.iter().map(|text| text.as_str().into_attr());
                AttrValue::Aggregate(list.collect::<Vec<_>>().into())
            }
        };
        attrs.set_named(name, value).unwrap();
    }
    attrs
}

fn same(found: &TensorHandle, wanted: &str) -> Result<(), String> {
    let (dtype, extents, words) = parsed(wanted);
    let metadata = found.metadata().unwrap();
    if (metadata.dtype, &metadata.shape.to_dims()[..]) != (dtype, &extents[..]) {
        return Err(format!("gave {metadata}"));
    }
    let tensor = found.tensor().unwrap().unwrap();
    let tensor = match tensor {
        Tensor::Scalar(scalar) => {
            let allocator = HostContext::builder(KernelRegistry::new()).build();
            Tensor::from(scalar.to_dense(allocator.allocator()).unwrap())
        }
        tensor => tensor.clone(),
    };
    if let Tensor::String(strings) = &tensor {
        let wanted: Vec<Vec<u8>> = words.iter().map(|word| unquoted(word)).collect();
        let are_same = strings.strings() == wanted;
        return are_same
            .then_some(())
            .ok_or_else(|| format!("gave {}", tensor.to_text().unwrap()));
    }
    let reading = tensor.as_dense().unwrap().read().unwrap();
    let are_same = match dtype {
        DType::I1 => {
            let list = reading.elements::<Bool>().unwrap().iter();
            list.zip(&words)
                .all(|(one, word)| bool::from(*one) == (*word == "1"))
        }
        dtype => with_real!(dtype, T => {
            let list = reading.elements::<T>().unwrap().iter();
            let wanted: Vec<T> = words.iter().map(|word| number::<T>(word)).collect();
            let sizes = wanted.iter().map(|one| one.to_f64().abs());
            let largest = sizes.filter(|one| one.is_finite()).fold(0.0, f64::max);
            list.zip(&wanted).all(|(one, other)| is_near(*one, *other, largest))
        }, else panic!("{wanted}")),
    };
    are_same
        .then_some(())
        .ok_or_else(|| format!("gave {}", tensor.to_text().unwrap()))
}

/// Returns whether two numbers are the same, of floats but for the last places of the largest one beside them.
fn is_near<T: Real>(one: T, other: T, largest: f64) -> bool {
    let near = match T::DTYPE {
        DType::F32 => 2e-6,
        DType::F64 => 2e-15,
        DType::F16 | DType::Bf16 => 1e-2,
        _ => 0.0,
    };
    let (one, other) = (one.to_f64(), other.to_f64());
    let both_none = one.is_nan() && other.is_nan();
    both_none || one == other || (one - other).abs() <= near * largest
}
