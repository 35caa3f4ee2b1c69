//! The health service: whether the server, or one of its models, is ready.

use super::Call;
use super::messages::{Health, HealthRequest, HealthResponse};
use crate::refusal::Refusal;

/// Answers `Check`: of the server for no name and that of its service, of a model for the model's.
pub(super) async fn check(call: Call, request: HealthRequest) -> Result<HealthResponse, Refusal> {
    let name = &*request.service;
    let is_ready = call.shared.is_ready();
    let is_serving = match name {
        "" | "inference.GRPCInferenceService" => is_ready,
        model => match call.shared.repository.find(model, None) {
            Ok(_) => is_ready,
            Err(_) => {
                let name = name.escape_debug();
                return Err(Refusal::not_found(format!("there is no service '{name}'")));
            }
        },
    };
    let status = match is_serving {
        true => Health::Serving,
        false => Health::NotServing,
    };
    Ok(HealthResponse {
        status: status as i32,
    })
}
