//! Tensors as text with all digits.

use std::fmt::Write;

use tfrt_host::Error;
use tfrt_tensor::{DType, Tensor};

/// The most elements that are printed.
const MOST: usize = 32;

/// Returns the text of a tensor: all digits of up to 32 elements if it is a dense one of the host.
pub(super) fn of(tensor: &Tensor) -> Result<String, Error> {
    let Tensor::Dense(dense) = tensor else {
        return tensor.to_text();
    };
    let reading = dense.read()?;
    let n = dense.n_elements().min(MOST);
    let elements: Vec<String> = match dense.dtype() {
        DType::F32 => {
            let all = reading.elements::<f32>()?.iter().take(n);
            all.map(|x| general(f64::from(*x), 9)).collect()
        }
        DType::F64 => {
            let all = reading.elements::<f64>()?.iter().take(n);
            all.map(|x| general(*x, 17)).collect()
        }
        DType::I32 => {
            let all = reading.elements::<i32>()?.iter().take(n);
            all.map(i32::to_string).collect()
        }
        DType::I64 => {
            let all = reading.elements::<i64>()?.iter().take(n);
            all.map(i64::to_string).collect()
        }
        _ => return tensor.to_text(),
    };
    let (dtype, shape) = (dense.dtype(), dense.shape());
    let mut text = format!("DenseHostTensor dtype = {dtype}, shape = {shape}, values = [");
    let _infallible = write!(text, "{}", elements.join(", "));
    if dense.n_elements() > MOST {
        text.push_str(", ... ");
    }
    text.push(']');
    Ok(text)
}

/// Returns a number as C's `%g` prints it with so many digits.
fn general(x: f64, n_digits: usize) -> String {
    if x.is_nan() {
        return "nan".to_owned();
    }
    if x.is_infinite() {
        return if x > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let text = format!("{x:.*e}", n_digits - 1);
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let is_short = exponent >= -4 && usize::try_from(exponent).map_or(true, |it| it < n_digits);
    let trimmed = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if is_short {
        let behind = usize::try_from(n_digits as i32 - 1 - exponent).unwrap_or(0);
        return trimmed(&format!("{x:.behind$}"));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trimmed(digits), exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_printed_as_c_does() {
        let short = |x: f32| general(f64::from(x), 9);
        assert_eq!(short(36.0), "36");
        assert_eq!(short(0.0), "0");
        assert_eq!(short(0.2 + 1e-9), "0.200000003");
        assert_eq!(short(-0.5), "-0.5");
        assert_eq!(short(f32::MAX), "3.40282347e+38");
        assert_eq!(short(1e-5), "9.99999975e-06");
        assert_eq!(short(f32::NEG_INFINITY), "-inf");
        assert_eq!(general(0.1, 17), "0.10000000000000001");
    }
}
