//! TensorFlow Serving's services: `PredictionService` for tensors, and `ModelService` for states.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use hyper::{Request, Response};
use prost::Message;
use tfrt_tensor::{DType, Tensor};
use tonic::{Code, Status};

use self::messages::{
    Any, Int64, MetadataRequest, MetadataResponse, ModelSpec, PredictRequest, PredictResponse,
    Shape, ShapeDim, Signature, Signatures, State, StatusProto, StatusRequest, StatusResponse,
    TensorInfo, TensorProto, VersionStatus,
};
use super::arriving::Arriving;
use super::{Call, decoded, unary, unknown};
use crate::inference::{self, Counted, Surroundings};
use crate::model::Loaded;
use crate::refusal::Refusal;
use crate::servable;
use crate::v1::{self, METHOD, SIGNATURE, types};
use crate::v2::tensors::find_input;

mod messages;
mod tensor;

/// The only part of a model's metadata.
const SIGNATURES: &str = "signature_def";

/// Answers a call of a method of `PredictionService`.
pub(super) async fn predictions(
    call: Call,
    method: &str,
    request: Request<Arriving>,
) -> Result<Response<tonic::body::Body>, Status> {
    match method {
        "Predict" => unary(&call, request, predict).await,
        "GetModelMetadata" => unary(&call, request, metadata).await,
        "Classify" | "Regress" | "MultiInference" => Err(Status::unimplemented(format!(
            "`{method}` takes examples, which this server does not read: `Predict` takes tensors"
        ))),
        other => Err(unknown(other)),
    }
}

/// Answers a call of a method of `ModelService`.
pub(super) async fn models(
    call: Call,
    method: &str,
    request: Request<Arriving>,
) -> Result<Response<tonic::body::Body>, Status> {
    match method {
        "GetModelStatus" => unary(&call, request, status).await,
        "HandleReloadConfigRequest" => Err(Status::unimplemented(
            "models are those of the command line: KServe's `RepositoryModelLoad` loads one again",
        )),
        other => Err(unknown(other)),
    }
}

/// Returns the version that a request names, if it does.
fn version_of(spec: &ModelSpec) -> Result<Option<u64>, Refusal> {
    if !spec.version_label.is_empty() {
        let label = spec.version_label.escape_debug();
        return Err(Refusal::not_found(format!(
            "there is no version of the label '{label}': versions have numbers alone"
        )));
    }
    let Some(version) = &spec.version else {
        return Ok(None);
    };
    let number = u64::try_from(version.value);
    number.map(Some).map_err(|_| {
        let found = version.value;
        Refusal::invalid(format!("expected a version from 0, found {found}"))
    })
}

fn find(call: &Call, spec: Option<ModelSpec>) -> Result<(Arc<Loaded>, ModelSpec), Refusal> {
    let spec = spec.ok_or_else(|| Refusal::invalid("expected a `model_spec`, found none"))?;
    let model = call
        .shared
        .repository
        .find(&spec.name, version_of(&spec)?)?;
    let answered = ModelSpec {
        name: model.name.to_string(),
        version: Some(Int64 {
            value: i64::try_from(model.version).unwrap_or(i64::MAX),
        }),
        signature_name: SIGNATURE.to_owned(),
        version_label: String::new(),
    };
    v1::check_signature(&spec.signature_name)?;
    Ok((model, answered))
}

async fn predict(call: Call, mut request: PredictRequest) -> Result<PredictResponse, Refusal> {
    let (model, spec) = find(&call, request.model_spec.take())?;
    let mut counted = Counted::new(&model, call.began, &call.trace);
    let ticket = call.admitted(|| request.encoded_len())?;
    let wanted = wanted(&model, &request.output_filter)?;
    let inputs = inputs(&model, request, call.shared.limits.max_request_bytes)?;
    counted.counts_itself();
    let surroundings = Surroundings {
        host: &call.shared.host,
        limits: &call.shared.limits,
        ticket: &ticket,
        began: call.began,
        timeout: call.timeout,
        trace: &call.trace,
    };
    let inferred = inference::infer(&surroundings, &model, inputs).await?;
    let writing = Instant::now();
    let written = |index: &usize| {
        let name = &model.description().outputs[*index].name;
        let proto = tensor::write(name, &inferred.outputs[*index])?;
        Ok((name.clone(), proto))
    };
    let outputs: Result<BTreeMap<_, _>, Refusal> = wanted.iter().map(written).collect();
    let outputs = outputs.inspect_err(|refusal| {
        inference::count_failure(&model, call.began, &refusal.error);
    })?;
    let mut times = inferred.times;
    times.output = writing.elapsed();
    model.statistics.succeed(times, inferred.n_rows);
    Ok(PredictResponse {
        outputs,
        model_spec: Some(spec),
    })
}

/// Reads the inputs of a message, which become so many bytes at most.
pub(super) fn inputs_of(
    model: &Loaded,
    message: Bytes,
    max_bytes: usize,
) -> Result<Vec<(String, Tensor)>, Refusal> {
    inputs(model, decoded(message)?, max_bytes)
}

/// Makes the tensors of the inputs, which have so many bytes together at most.
fn inputs(
    model: &Loaded,
    request: PredictRequest,
    max_bytes: usize,
) -> Result<Vec<(String, Tensor)>, Refusal> {
    let mut inputs = Vec::with_capacity(request.inputs.len());
    let mut left = max_bytes;
    for (name, proto) in request.inputs {
        let expected = find_input(model.description(), &name)?.dtype;
        let tensor = tensor::read(&name, expected, proto, left)?;
        left = left.saturating_sub(tensor.metadata().len_bytes().unwrap_or(0));
        inputs.push((name, tensor));
    }
    Ok(inputs)
}

/// Returns a message with inputs.
pub(super) fn example() -> Vec<u8> {
    let tensor = |dtype, extents: &[i64]| TensorProto {
        dtype: types::number_of(dtype),
        tensor_shape: Some(Shape {
            dim: extents.iter().map(|size| ShapeDim::of(*size)).collect(),
            unknown_rank: false,
        }),
        ..TensorProto::default()
    };
    let x = TensorProto {
        float_val: vec![1.0, f32::NAN],
        ..tensor(DType::F32, &[2, 2])
    };
    let h = TensorProto {
        half_val: vec![15360],
        ..tensor(DType::F16, &[1])
    };
    let s = TensorProto {
        string_val: vec![b"a".to_vec()],
        ..tensor(DType::String, &[])
    };
    let inputs = [("x", x), ("h", h), ("s", s)];
    let request = PredictRequest {
        model_spec: Some(ModelSpec::default()),
        inputs: inputs.map(|(name, own)| (name.to_owned(), own)).into(),
        output_filter: Vec::new(),
    };
    request.encode_to_vec()
}

/// Finds the places of the outputs that a request wants: all if it names none.
fn wanted(model: &Loaded, filter: &[String]) -> Result<Vec<usize>, Refusal> {
    let description = model.description();
    if filter.is_empty() {
        return Ok((0..description.outputs.len()).collect());
    }
    let place = |name: &String| {
        description.output(name).ok_or_else(|| {
            Refusal::invalid(format!(
                "unexpected output '{}' in `output_filter` for model '{}'",
                name.escape_debug(),
                model.name
            ))
        })
    };
    filter.iter().map(place).collect()
}

async fn metadata(call: Call, request: MetadataRequest) -> Result<MetadataResponse, Refusal> {
    let (model, spec) = find(&call, request.model_spec)?;
    let other = request
        .metadata_field
        .iter()
        .find(|field| *field != SIGNATURES);
    if let Some(other) = other {
        return Err(Refusal::invalid(format!(
            "expected the metadata field '{SIGNATURES}', found '{}'",
            other.escape_debug()
        )));
    }
    if request.metadata_field.is_empty() {
        return Err(Refusal::invalid(format!(
            "expected the metadata field '{SIGNATURES}', found none"
        )));
    }
    let description = model.description();
    let signature = Signature {
        inputs: description.inputs.iter().map(tensor_info).collect(),
        outputs: description.outputs.iter().map(tensor_info).collect(),
        method_name: METHOD.to_owned(),
    };
    let signatures = Signatures {
        signature_def: BTreeMap::from([(SIGNATURE.to_owned(), signature)]),
    };
    let any = Any {
        type_url: "type.googleapis.com/tensorflow.serving.SignatureDefMap".to_owned(),
        value: signatures.encode_to_vec(),
    };
    Ok(MetadataResponse {
        model_spec: Some(spec),
        metadata: BTreeMap::from([(SIGNATURES.to_owned(), any)]),
    })
}

fn tensor_info(info: &servable::TensorInfo) -> (String, TensorInfo) {
    let dim = |dim: &servable::Dim| match dim {
        servable::Dim::Fixed(extent) => ShapeDim::of(i64::try_from(*extent).unwrap_or(i64::MAX)),
        servable::Dim::Symbol(name) => ShapeDim {
            size: -1,
            name: name.clone(),
        },
        servable::Dim::Unknown => ShapeDim::of(-1),
    };
    let shape = Shape {
        dim: info.dims.iter().flatten().map(dim).collect(),
        unknown_rank: info.dims.is_none(),
    };
    let described = TensorInfo {
        name: info.name.clone(),
        dtype: types::number_of(info.dtype),
        tensor_shape: Some(shape),
    };
    (info.name.clone(), described)
}

async fn status(call: Call, request: StatusRequest) -> Result<StatusResponse, Refusal> {
    let spec = request.model_spec.unwrap_or_default();
    let entries = v1::versions(&call.shared, &spec.name, version_of(&spec)?)?;
    let one = |entry: crate::repository::IndexEntry| {
        let (state, code) = match entry.is_ready {
            true => (State::Available, Code::Ok),
            false => (State::End, Code::Unknown),
        };
        let message = match entry.is_ready {
            true => String::new(),
            false => entry.reason,
        };
        VersionStatus {
            version: i64::try_from(entry.version).unwrap_or(i64::MAX),
            state: state as i32,
            status: Some(StatusProto {
                error_code: code as i32,
                error_message: message,
            }),
        }
    };
    Ok(StatusResponse {
        model_version_status: entries.into_iter().map(one).collect(),
    })
}
