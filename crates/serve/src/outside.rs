//! Requests as bytes for those who check from outside how they are read: fuzzers, and their seeds.

use std::sync::Arc;

use bytes::{BufMut, Bytes};
use hyper::header::{HeaderName, HeaderValue};
use hyper::{HeaderMap, Method, Uri};
use tfrt_host::{AnyAsyncValue, Error, RequestContext};
use tfrt_tensor::{DType, Tensor};

use crate::model::Loaded;
use crate::refusal::Refusal;
use crate::servable::{Description, Dim, Place, Servable, TensorInfo};
use crate::{grpc, http, v1, v2};

/// The inputs of a request, or why it is refused.
type Read = Result<Vec<(String, Tensor)>, Refusal>;

/// Ways to read a request.
const READERS: [fn(&Loaded, &[u8]) -> Read; 6] = [
    |model, bytes| v2::inputs_of(model, Bytes::copy_from_slice(bytes), None),
    |model, bytes| {
        let (length, body) = length_of(bytes);
        v2::inputs_of(model, Bytes::copy_from_slice(body), Some(length))
    },
    |model, bytes| v1::inputs_of(model, &Bytes::copy_from_slice(bytes)).map(|(_, inputs)| inputs),
    |model, bytes| grpc::kserve_inputs_of(model, Bytes::copy_from_slice(bytes)),
    |model, bytes| grpc::tensorflow_inputs_of(model, Bytes::copy_from_slice(bytes), MAX_BYTES),
    |model, bytes| v2::generate::request::parse(model, bytes).map(|request| request.inputs),
];

/// Kinds of requests, which the first byte chooses, modulo their number: one for each reader, and heads.
pub const N_KINDS: usize = READERS.len() + 1;

/// The most bytes of a request, as far as what is read grows beyond it.
const MAX_BYTES: usize = 1 << 16;

/// A model that is not called: inputs of several types, of any shape and of some.
struct Silent(Description);

impl Servable for Silent {
    fn description(&self) -> &Description {
        &self.0
    }

    fn call(
        &self,
        _: &Arc<RequestContext>,
        _: Vec<(String, Tensor)>,
        _: Place,
    ) -> Vec<AnyAsyncValue> {
        Vec::new()
    }
}

/// Makes the model.
fn model() -> Loaded {
    let tensor = |name: &str, dtype, dims| TensorInfo {
        name: name.to_owned(),
        dtype,
        dims,
    };
    let rows = vec![Dim::Symbol("N".to_owned()), Dim::Fixed(2)];
    let tensors = vec![
        tensor("x", DType::F32, Some(rows)),
        tensor("s", DType::String, None),
        tensor("h", DType::F16, None),
        tensor("b", DType::I1, None),
        tensor("i", DType::I8, None),
        tensor("n", DType::I64, None),
    ];
    let description = Description {
        platform: "test".to_owned(),
        inputs: tensors.clone(),
        outputs: tensors,
    };
    Loaded::new("m".into(), 1, Arc::new(Silent(description)), None)
}

/// Splits the length of JSON off, which the first two bytes are.
fn length_of(bytes: &[u8]) -> (usize, &[u8]) {
    match bytes.split_first_chunk::<2>() {
        Some((length, body)) => (u16::from_le_bytes(*length).into(), body),
        None => (0, bytes),
    }
}

/// Reads bytes behind the first, which says how, as a request; what comes out is written as KServe has it, and read again.
/// Of a head, it is looked at who may ask for it. Returns why they are no request, `None` if they are one.
///
/// # Errors
///
/// If what was written is not read, or is read as something else; if a head needs no token that should.
pub fn read_again(bytes: &[u8]) -> Result<Option<String>, Error> {
    let Some((first, request)) = bytes.split_first() else {
        return Ok(Some("there are no bytes".to_owned()));
    };
    let kind = usize::from(*first) % N_KINDS;
    let (Some(read), model) = (READERS.get(kind), model()) else {
        let Some((method, uri, headers)) = head_of(request) else {
            return Ok(Some("a line is no part of a head".to_owned()));
        };
        let is_known = http::read_head(&method, uri.path(), &headers)?;
        return Ok((!is_known).then(|| "there is no such endpoint".to_owned()));
    };
    let inputs = match read(&model, request) {
        Ok(inputs) => inputs,
        Err(refusal) => return Ok(Some(refusal.message())),
    };
    let (body, length) = written(&inputs)?;
    let again = v2::inputs_of(&model, body.clone(), Some(length)).map_err(|it| it.error)?;
    match written(&again)? == (body, length) {
        true => Ok(None),
        false => Err(Error::invalid_argument("tensors are read otherwise")),
    }
}

/// Reads a line with a method and a path, and lines with a header each.
fn head_of(bytes: &[u8]) -> Option<(Method, Uri, HeaderMap)> {
    let mut lines = bytes.split(|byte| *byte == b'\n');
    let mut first = lines.next()?.splitn(2, |byte| *byte == b' ');
    let method = Method::from_bytes(first.next()?).ok()?;
    let uri = Uri::try_from(first.next()?).ok()?;
    let mut headers = HeaderMap::new();
    for line in lines {
        let mut parts = line.splitn(2, |byte| *byte == b':');
        let name = HeaderName::from_bytes(parts.next()?).ok()?;
        headers.append(name, HeaderValue::from_bytes(parts.next()?).ok()?);
    }
    Some((method, uri, headers))
}

/// Writes tensors as a request: JSON, and the elements behind it. Returns the length of the JSON, too.
fn written(inputs: &[(String, Tensor)]) -> Result<(Bytes, usize), Error> {
    let (mut documents, mut elements) = (Vec::new(), Vec::new());
    for (name, tensor) in inputs {
        let bytes = v2::tensors::to_bytes(name, tensor).map_err(|it| it.error)?;
        documents.push(serde_json::json!({
            "name": name,
            "datatype": crate::datatype::shown(tensor.metadata().dtype),
            "shape": v2::tensors::extents_of(tensor),
            "parameters": {"binary_data_size": bytes.len()},
        }));
        elements.extend_from_slice(&bytes);
    }
    let json = serde_json::json!({ "inputs": documents }).to_string();
    let length = json.len();
    Ok(([json.as_bytes(), &elements].concat().into(), length))
}

/// Returns requests of each kind.
pub fn examples() -> Vec<Vec<u8>> {
    let json = br#"{"id": "a", "parameters": {"timeout": 5}, "inputs": [
        {"name": "x", "shape": [2, 2], "datatype": "FP32", "data": [[1, NaN], [3e9, -0.5]]},
        {"name": "s", "shape": [2], "datatype": "BYTES", "data": ["a", "\u00e9"]},
        {"name": "b", "shape": [1, 1], "datatype": "BOOL", "data": [true]},
        {"name": "n", "shape": [], "datatype": "INT64", "data": [-9223372036854775808]}],
        "outputs": [{"name": "i"}]}"#;
    let head = br#"{"inputs": [{"name": "h", "shape": [3], "datatype": "FP16", "parameters": {"binary_data_size": 6}},
        {"name": "s", "shape": [1], "datatype": "BYTES", "parameters": {"binary_data_size": 5}}]}"#;
    let mut binary = u16::try_from(head.len())
        .unwrap_or(0)
        .to_le_bytes()
        .to_vec();
    binary.put_slice(head);
    binary.put_slice(&[0, 60, 0, 188, 0, 124, 1, 0, 0, 0, 255]);
    let rows = br#"{"instances": [{"x": [1, 2], "s": {"b64": "aGk="}, "h": 0.1, "i": 3}, {"x": [3, 4], "s": "b", "h": -1e9, "i": -4}]}"#;
    let columns = br#"{"signature_name": "serving_default", "inputs": {"x": [[1, 2]], "b": [[true, false]], "n": 7}}"#;
    let members = br#"{"id": "a", "x": [1, 2, -Infinity, 4e-9], "s": "\u00e9", "parameters": {"h": [0.1], "timeout": 9, "top": false}, "b": true}"#;
    let [kserve, tensorflow] = grpc::examples();
    let head = b"POST /v2/models/m/versions/1/infer\ninference-header-content-length:17\ncontent-encoding:gzip\nauthorization:Bearer 0123456789abcdef";
    let call = b"POST /inference.GRPCInferenceService/ModelInfer\ncontent-type:application/grpc+proto\ngrpc-timeout:200m";
    let of = |kind: u8, bytes: &[u8]| [&[kind], bytes].concat();
    vec![
        of(0, json),
        of(1, &binary),
        of(2, rows),
        of(2, columns),
        of(3, &kserve),
        of(4, &tensorflow),
        of(5, members),
        of(6, head),
        of(6, call),
        of(6, b"POST /v2/models/m/generate_stream"),
        of(6, b"GET /v1/models/m/versions/2/metadata"),
        of(6, b"GET /v2/health/ready"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_as_they_are_written() {
        for example in examples() {
            let text = String::from_utf8_lossy(&example).into_owned();
            assert_eq!(read_again(&example).unwrap(), None, "{text}");
        }
    }

    /// Flips, takes and repeats bytes by the numbers of a generator.
    #[test]
    fn what_is_near_a_request_is_refused_or_read_as_it_is_written() {
        let mut state = 1_u64;
        let mut next = move |below: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            usize::try_from(state >> 33).unwrap_or(0) % below
        };
        let examples = examples();
        for _ in 0..20_000 {
            let mut bytes = examples[next(examples.len())].clone();
            for _ in 0..=next(4) {
                let at = 1 + next(bytes.len() - 1);
                match next(4) {
                    0 => bytes[at] ^= 1 << next(8),
                    1 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][next(5)],
                    2 if bytes.len() > 20 => drop(bytes.drain(at..bytes.len().min(at + next(9)))),
                    _ => {
                        let part = bytes[at..bytes.len().min(at + next(9))].to_vec();
                        bytes.splice(at..at, part);
                    }
                }
            }
            let text = String::from_utf8_lossy(&bytes).into_owned();
            read_again(&bytes).unwrap_or_else(|error| panic!("{error}: {text}"));
        }
    }
}
