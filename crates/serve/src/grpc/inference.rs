//! KServe's service `inference.GRPCInferenceService`, with Triton's calls.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use hyper::{Request, Response};
use prost::Message;
use tonic::Status;

use super::arriving::Arriving;
use super::messages::{
    BatchStatistics, ChangeRequest, Duration, DynamicBatching, Empty, IndexEntry, IndexRequest,
    IndexResponse, InferRequest, InferResponse, InferStatistics, InputConfig, Live, ModelConfig,
    ModelConfigResponse, ModelMetadata, ModelName, ModelStatistics, OutputConfig, ServerMetadata,
    StatisticsResponse, TensorMetadata,
};
use super::{Call, convert, stream, streaming, unary, unknown};
use crate::datatype::{self, shown};
use crate::inference::{self, Counted, Surroundings};
use crate::model::Loaded;
use crate::refusal::Refusal;
use crate::servable::TensorInfo;
use crate::statistics::{BatchTimes, Timed, ns};
use crate::v2::{metadata, repository};

/// Answers a call of a method.
pub(super) async fn answer(
    call: Call,
    method: &str,
    request: Request<Arriving>,
) -> Result<Response<tonic::body::Body>, Status> {
    match method {
        "ModelInfer" => unary(&call, request, infer).await,
        "ModelStreamInfer" => streaming(&call, request, stream::infer).await,
        "ServerLive" => unary(&call, request, server_live).await,
        "ServerReady" => unary(&call, request, server_ready).await,
        "ModelReady" => unary(&call, request, model_ready).await,
        "ServerMetadata" => unary(&call, request, server_metadata).await,
        "ModelMetadata" => unary(&call, request, model_metadata).await,
        "ModelConfig" => unary(&call, request, model_config).await,
        "ModelStatistics" => unary(&call, request, model_statistics).await,
        "RepositoryIndex" => unary(&call, request, index).await,
        "RepositoryModelLoad" => unary(&call, request, load).await,
        "RepositoryModelUnload" => unary(&call, request, unload).await,
        other => Err(unknown(other)),
    }
}

/// Finds a version of a model, of which the number is text.
fn find(call: &Call, name: &str, version: &str) -> Result<Arc<Loaded>, Refusal> {
    let version = match version {
        "" => None,
        number => Some(number.parse().map_err(|_| {
            Refusal::invalid(format!(
                "failed to get model version from '{}': expected a number",
                number.escape_debug()
            ))
        })?),
    };
    call.shared.repository.find(name, version)
}

/// Answers one request for inference.
pub(super) async fn infer(call: Call, mut request: InferRequest) -> Result<InferResponse, Refusal> {
    let model = find(&call, &request.model_name, &request.model_version)?;
    let mut counted = Counted::new(&model, call.began, &call.trace);
    // One of a stream is admitted by itself.
    let ticket = call.admitted(|| request.encoded_len())?;
    let asked = convert::timeout(&request)?;
    let timeout = call.timeout.into_iter().chain(asked).min();
    let wanted = convert::wanted(&model, &request)?;
    let inputs = convert::inputs(&model, &mut request)?;
    counted.counts_itself();
    let surroundings = Surroundings {
        host: &call.shared.host,
        limits: &call.shared.limits,
        ticket: &ticket,
        began: call.began,
        timeout,
        trace: &call.trace,
    };
    let inferred = inference::infer(&surroundings, &model, inputs).await?;
    let writing = Instant::now();
    let response = convert::response(&model, request.id, &wanted, &inferred.outputs);
    let response = response.inspect_err(|refusal| {
        inference::count_failure(&model, call.began, &refusal.error);
    })?;
    let mut times = inferred.times;
    times.output = writing.elapsed();
    model.statistics.succeed(times, inferred.n_rows);
    Ok(response)
}

async fn server_live(_: Call, _: Empty) -> Result<Live, Refusal> {
    Ok(Live { live: true })
}

async fn server_ready(call: Call, _: Empty) -> Result<Live, Refusal> {
    let live = call.shared.is_ready();
    Ok(Live { live })
}

async fn model_ready(call: Call, request: ModelName) -> Result<Live, Refusal> {
    let live = find(&call, &request.name, &request.version).is_ok();
    Ok(Live { live })
}

async fn server_metadata(call: Call, _: Empty) -> Result<ServerMetadata, Refusal> {
    Ok(ServerMetadata {
        name: call.shared.name.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        extensions: metadata::EXTENSIONS
            .iter()
            .map(ToString::to_string)
            .collect(),
    })
}

async fn model_metadata(call: Call, request: ModelName) -> Result<ModelMetadata, Refusal> {
    let model = find(&call, &request.name, &request.version)?;
    let versions = call.shared.repository.versions(&model.name);
    let tensor = |info: &TensorInfo| TensorMetadata {
        name: info.name.clone(),
        datatype: shown(info.dtype).to_owned(),
        shape: info.shape(),
    };
    let description = model.description();
    Ok(ModelMetadata {
        name: model.name.to_string(),
        versions: versions.iter().map(u64::to_string).collect(),
        platform: description.platform.clone(),
        inputs: description.inputs.iter().map(tensor).collect(),
        outputs: description.outputs.iter().map(tensor).collect(),
    })
}

async fn model_config(call: Call, request: ModelName) -> Result<ModelConfigResponse, Refusal> {
    let model = find(&call, &request.name, &request.version)?;
    let description = model.description();
    let input = |info: &TensorInfo| InputConfig {
        name: info.name.clone(),
        data_type: datatype::number_of(info.dtype),
        dims: metadata::config_dims(&model, info),
    };
    let output = |info: &TensorInfo| OutputConfig {
        name: info.name.clone(),
        data_type: datatype::number_of(info.dtype),
        dims: metadata::config_dims(&model, info),
    };
    let batching = model.batching();
    let config = ModelConfig {
        name: model.name.to_string(),
        platform: description.platform.clone(),
        max_batch_size: batching.map_or(0, |batching| {
            i32::try_from(batching.max_rows).unwrap_or(i32::MAX)
        }),
        dynamic_batching: batching.map(|batching| DynamicBatching {
            max_queue_delay_microseconds: metadata::delay_us(batching),
        }),
        input: description.inputs.iter().map(input).collect(),
        output: description.outputs.iter().map(output).collect(),
        backend: "tfrt".to_owned(),
    };
    let config = Some(config);
    Ok(ModelConfigResponse { config })
}

async fn model_statistics(call: Call, request: ModelName) -> Result<StatisticsResponse, Refusal> {
    let models = match &*request.name {
        "" => call.shared.repository.all(),
        name => vec![find(&call, name, &request.version)?],
    };
    let times = |timed: &Timed| {
        let (count, ns) = (timed.count(), timed.ns());
        Some(Duration { count, ns })
    };
    let batch = |(n_rows, times): (usize, BatchTimes)| {
        let duration = |time| {
            let (count, ns) = (times.count, ns(time));
            Some(Duration { count, ns })
        };
        BatchStatistics {
            batch_size: n_rows as u64,
            compute_input: duration(times.input),
            compute_infer: duration(times.infer),
            compute_output: duration(times.output),
        }
    };
    let one = |model: &Arc<Loaded>| {
        let own = &model.statistics;
        ModelStatistics {
            name: model.name.to_string(),
            version: model.version.to_string(),
            last_inference: own.last_ms.load(Ordering::Relaxed),
            inference_count: own.n_rows.load(Ordering::Relaxed),
            execution_count: own.n_executions.load(Ordering::Relaxed),
            inference_stats: Some(InferStatistics {
                success: times(&own.success),
                fail: times(&own.fail),
                queue: times(&own.queue),
                compute_input: times(&own.compute_input),
                compute_infer: times(&own.compute_infer),
                compute_output: times(&own.compute_output),
            }),
            batch_stats: own.batches().into_iter().map(batch).collect(),
        }
    };
    let model_stats = models.iter().map(one).collect();
    Ok(StatisticsResponse { model_stats })
}

async fn index(call: Call, request: IndexRequest) -> Result<IndexResponse, Refusal> {
    let entries = call.shared.repository.index().into_iter();
    let entries = entries.filter(|entry| entry.is_ready || !request.ready);
    let models = entries.map(|entry| IndexEntry {
        name: entry.name,
        version: entry.version.to_string(),
        state: repository::state_of(entry.is_ready).to_owned(),
        reason: entry.reason,
    });
    let models = models.collect();
    Ok(IndexResponse { models })
}

async fn load(call: Call, request: ChangeRequest) -> Result<Empty, Refusal> {
    repository::change_model(&call.shared, &request.model_name, true).await?;
    Ok(Empty {})
}

async fn unload(call: Call, request: ChangeRequest) -> Result<Empty, Refusal> {
    repository::change_model(&call.shared, &request.model_name, false).await?;
    Ok(Empty {})
}
