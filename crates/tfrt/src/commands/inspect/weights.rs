//! The constants of a model, the largest first, with statistics of their elements.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use serde::Serialize;
use tfrt::HostAllocator;
use tfrt::asynchronous::SystemAllocator;
use tfrt::ir::attributes::DenseAttribute;
use tfrt::ir::{Attribute, Module, Operation, visible};
use tfrt::tensor::{DType, DenseHostTensor, Tensor, TensorMetadata, TensorShape};

use crate::commands::check::place;
use crate::data::scalars::scalars;
use crate::failure::Failure;

/// The number of elements that are read at once.
const CHUNK: usize = 1 << 14;

/// The constants of a model.
#[derive(Serialize)]
pub struct Weights {
    schema: &'static str,
    file: String,
    total_bytes: u64,
    total_elements: u64,
    bytes_by_type: BTreeMap<String, u64>,
    weights: Vec<Weight>,
}

#[derive(Serialize)]
struct Weight {
    name: String,
    #[serde(rename = "type")]
    ty: String,
    shape: Vec<i64>,
    elements: u64,
    bytes: u64,
    #[serde(flatten)]
    statistics: Option<Statistics>,
}

/// Statistics of elements, of which NaN are left out.
#[derive(Clone, Copy, Default, Serialize)]
struct Statistics {
    min: f64,
    max: f64,
    mean: f64,
    deviation: f64,
    zeros: u64,
    not_finite: u64,
}

impl Weights {
    /// Reads the constants of a module.
    pub fn new(file: &str, module: &Module) -> Result<Weights, Failure> {
        let (mut found, mut apart) = (Vec::new(), Vec::new());
        module.walk_pre_order(module.top(), &mut |op| {
            let operation = module.op(op);
            let name = operation.name().as_str();
            if ["graph.external", "cpu.onnx.External"].contains(&name) {
                apart.extend(Weight::apart(operation));
            }
            for (name, value) in operation.attributes() {
                let is_constant = operation.name().as_str().ends_with("onnx.Constant");
                let Attribute::Dense(dense) = value else {
                    continue;
                };
                let name = match is_constant {
                    true => place(operation.location()),
                    false => format!("{} of {}", name, place(operation.location())),
                };
                found.push((name, dense.clone()));
            }
        });
        let mut weights: Vec<Weight> = found
            .into_iter()
            .map(|(name, dense)| Weight::new(name, &dense))
            .collect::<Result<_, _>>()?;
        weights.append(&mut apart);
        weights.sort_by_key(|weight| std::cmp::Reverse(weight.bytes));
        let mut bytes_by_type = BTreeMap::new();
        for weight in &weights {
            *bytes_by_type.entry(weight.ty.clone()).or_default() += weight.bytes;
        }
        Ok(Weights {
            schema: "tfrt.inspect-weights/1",
            file: file.to_owned(),
            total_bytes: weights.iter().map(|weight| weight.bytes).sum(),
            total_elements: weights.iter().map(|weight| weight.elements).sum(),
            bytes_by_type,
            weights,
        })
    }

    /// Returns the lines that people are shown.
    pub fn text(&self) -> String {
        let mut text = String::new();
        self.write(&mut text).expect("a String takes all text");
        text
    }

    fn write(&self, text: &mut String) -> std::fmt::Result {
        let by_type = self.bytes_by_type.iter();
        let by_type: Vec<String> = by_type
            .map(|(ty, bytes)| format!("{} of {ty}", size(*bytes)))
            .collect();
        writeln!(
            text,
            "{}: {} constants, {} elements, {}: {}",
            visible::name(&self.file),
            self.weights.len(),
            self.total_elements,
            size(self.total_bytes),
            by_type.join(", ")
        )?;
        for weight in &self.weights {
            let shape: Vec<String> = weight.shape.iter().map(i64::to_string).collect();
            let shape = format!("{} [{}]", weight.ty, shape.join(", "));
            write!(text, "  {:>10}  {shape:<28}", size(weight.bytes))?;
            match &weight.statistics {
                Some(statistics) => write!(
                    text,
                    "  {:>11.4e} to {:>11.4e}, mean {:>11.4e}, deviation {:>10.4e}",
                    statistics.min, statistics.max, statistics.mean, statistics.deviation
                )?,
                None => write!(text, "  {:>70}", "")?,
            }
            let statistics = weight.statistics.unwrap_or_default();
            write!(text, "  {}", visible::name(&weight.name))?;
            if statistics.zeros * 2 > weight.elements {
                write!(text, " ({} of {} are 0)", statistics.zeros, weight.elements)?;
            }
            if statistics.not_finite > 0 {
                write!(text, " ({} are no finite numbers)", statistics.not_finite)?;
            }
            writeln!(text)?;
        }
        Ok(())
    }
}

impl Weight {
    /// Returns a constant that stays in a file, whose elements are not looked at.
    fn apart(operation: &Operation) -> Option<Weight> {
        let ty = operation.attribute("element")?.as_str()?.to_owned();
        let dims = operation.attribute("dims")?.as_array()?.iter();
        let shape: Vec<i64> = dims.map(Attribute::as_i64).collect::<Option<_>>()?;
        let extents = shape.iter().map(|extent| extent.unsigned_abs());
        let elements = extents.fold(1, u64::saturating_mul);
        let element_bytes = DType::from_mlir_name(&ty)?.size_bytes()? as u64;
        let file = operation.attribute("file")?.as_str()?;
        Some(Weight {
            name: format!("{} in '{file}'", place(operation.location())),
            ty,
            shape,
            elements,
            bytes: elements.saturating_mul(element_bytes),
            statistics: None,
        })
    }

    fn new(name: String, dense: &DenseAttribute) -> Result<Weight, Failure> {
        let elements = dense.n_elements().unwrap_or(0);
        let element_bytes = dense.element_size_bytes() as u64;
        Ok(Weight {
            name,
            ty: dense.element_type().to_string(),
            shape: dense.shape(),
            elements,
            bytes: elements.saturating_mul(element_bytes),
            statistics: Statistics::of(dense),
        })
    }
}

impl Statistics {
    /// Looks at all elements; `None` if they are no real numbers.
    fn of(dense: &DenseAttribute) -> Option<Statistics> {
        let dtype = DType::from_mlir_name(&dense.element_type().to_string())?;
        let bytes = dense.bytes();
        let n_elements = bytes.len() / dtype.size_bytes()?;
        let shape = TensorShape::new(&[n_elements]).ok()?;
        let allocator: Arc<dyn HostAllocator> = Arc::new(SystemAllocator::new());
        let metadata = TensorMetadata::new(dtype, shape);
        let tensor: Tensor = DenseHostTensor::from_bytes(&allocator, metadata, bytes)
            .ok()?
            .into();
        let (mut sum, mut squares, mut n_finite) = (0.0_f64, 0.0_f64, 0_u64);
        let mut found = Statistics {
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
            ..Statistics::default()
        };
        for first in (0..n_elements).step_by(CHUNK) {
            for cell in scalars(&tensor, first..n_elements.min(first + CHUNK)).ok()? {
                let number = cell.number()?;
                if !number.is_finite() {
                    found.not_finite += 1;
                    continue;
                }
                found.zeros += u64::from(number == 0.0);
                found.min = found.min.min(number);
                found.max = found.max.max(number);
                sum += number;
                squares += number * number;
                n_finite += 1;
            }
        }
        if n_finite == 0 {
            return None;
        }
        let n = n_finite as f64;
        found.mean = sum / n;
        found.deviation = (squares / n - found.mean * found.mean).max(0.0).sqrt();
        if dense.splat {
            // One element stands for all.
            let times = dense.n_elements().unwrap_or(1);
            found.zeros *= times;
            found.not_finite *= times;
        }
        Some(found)
    }
}

/// Returns a number of bytes in words.
pub fn size(bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut number = bytes as f64;
    let mut unit = 0;
    while number >= 1024.0 && unit + 1 < units.len() {
        number /= 1024.0;
        unit += 1;
    }
    match unit {
        0 => format!("{bytes} B"),
        _ => format!("{number:.2} {}", units[unit]),
    }
}
