//! The health service: whether the server, or one of its models, is ready.

use hyper::{Request, Response};
use tokio::sync::mpsc;
use tonic::Status;

use super::arriving::Arriving;
use super::messages::{Health, HealthRequest, HealthResponse};
use super::stream::Answers;
use super::{Call, unary, unknown, watching};
use crate::refusal::Refusal;

/// Answers a call of a method.
pub(super) async fn answer(
    call: Call,
    method: &str,
    request: Request<Arriving>,
) -> Result<Response<tonic::body::Body>, Status> {
    match method {
        "Check" => unary(&call, request, check).await,
        "Watch" => watching(&call, request, watch).await,
        other => Err(unknown(other)),
    }
}

/// Returns the state of the server for no name and that of its services, of a model for the model's.
fn health(call: &Call, name: &str) -> Health {
    let shared = &call.shared;
    let is_serving = match name {
        "" | "inference.GRPCInferenceService" | "tensorflow.serving.PredictionService" => {
            shared.is_ready()
        }
        model => match shared.repository.find(model, None) {
            Ok(_) => shared.is_ready(),
            Err(_) => return Health::ServiceUnknown,
        },
    };
    match is_serving {
        true => Health::Serving,
        false => Health::NotServing,
    }
}

async fn check(call: Call, request: HealthRequest) -> Result<HealthResponse, Refusal> {
    match health(&call, &request.service) {
        Health::ServiceUnknown => {
            let name = request.service.escape_debug();
            Err(Refusal::not_found(format!("there is no service '{name}'")))
        }
        known => Ok(HealthResponse {
            status: known as i32,
        }),
    }
}

/// Tells the state now, and again when it has changed, until the server ends. A name that nothing has may get something.
fn watch(call: Call, request: HealthRequest) -> Answers<HealthResponse> {
    Answers::of(1, async move |answers: mpsc::Sender<_>| {
        let mut changes = call.shared.repository.changes();
        let mut told = None;
        loop {
            changes.mark_unchanged();
            let found = health(&call, &request.service);
            if told != Some(found) {
                told = Some(found);
                let status = found as i32;
                if answers.send(Ok(HealthResponse { status })).await.is_err() {
                    return;
                }
            }
            if call.shared.is_draining() || changes.changed().await.is_err() {
                return;
            }
        }
    })
}
