//! Requests of HTTP: from the head to the answer. [`answer`] reads from top to bottom what happens to one.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use hyper::{Method, Request, Response, StatusCode};
use tfrt_host::Error;
use tokio::net::TcpStream;

use crate::refusal::Refusal;
use crate::security::Scope;
use crate::server::Shared;
use crate::traces::Trace;
use crate::{grpc, metrics, v1, v2};

mod body;
mod call;
mod encoding;
mod gone;
mod page;
mod payload;
mod router;

pub(crate) use body::{Upload, too_slow};
use body::{read, read_document};
pub(crate) use call::ModelCall;
use gone::unless_gone;
pub(crate) use payload::Payload;
use router::{ModelAsk, Route, V1Ask};

/// A request on its way: what all endpoints are given.
pub(crate) struct Exchange {
    pub shared: Arc<Shared>,
    /// The connection, of which it is asked whether the client is still there.
    pub socket: Arc<TcpStream>,
    pub began: Instant,
    pub trace: Trace,
}

/// Answers a request.
pub(crate) async fn answer(
    mut exchange: Exchange,
    request: Request<Incoming>,
) -> Result<Response<Payload>, Infallible> {
    if grpc::is_grpc(request.headers()) {
        return grpc::answer(exchange.shared, exchange.began, request).await;
    }
    let (head, body) = request.into_parts();
    let mut upload = Upload::new(&head.headers, body);
    let route = router::route(&head.method, head.uri.path());
    // Whoever has no token is not told which paths there are, either.
    let scope = route.as_ref().map_or(Some(Scope::Metadata), Route::scope);
    let allowed = exchange.shared.security.check(&head.headers, scope);
    let answered = match allowed.and(route) {
        Err(refusal) => Err(refusal),
        Ok(route) => {
            if let Some(template) = route.template() {
                exchange.trace = Trace::of_http(&exchange.shared, &head, template);
            }
            endpoint(&exchange, route, &head.headers, &mut upload).await
        }
    };
    let mut response = match answered {
        Ok(response) => response,
        Err(refusal) => {
            // A client that is still sending hears no answer before it is done.
            upload.discard().await;
            refused(&refusal)
        }
    };
    if head.method == Method::HEAD {
        response.body_mut().clear();
    }
    exchange.trace.end_http(response.status());
    Ok(response)
}

async fn endpoint(
    exchange: &Exchange,
    route: Route<'_>,
    headers: &hyper::HeaderMap,
    upload: &mut Upload,
) -> Result<Response<Payload>, Refusal> {
    let shared = &exchange.shared;
    let repository = &shared.repository;
    match route {
        Route::Page => Ok(page::page()),
        Route::Live => Ok(json(&v2::metadata::ServerLive { live: true })),
        Route::Ready => {
            let ready = shared.is_ready();
            let mut response = json(&v2::metadata::ServerReady { ready });
            if !ready {
                // Of a server that ends, so that whoever distributes requests gives it no more.
                *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
            }
            Ok(response)
        }
        Route::Server => Ok(json(&v2::metadata::server(shared))),
        Route::Metrics => Ok(text(metrics::render(shared))),
        Route::Index => {
            let body = read_document(upload, &shared.limits).await?;
            Ok(json(&v2::repository::index(shared, &body)?))
        }
        Route::Load(name) | Route::Unload(name) => {
            let body = read_document(upload, &shared.limits).await?;
            v2::repository::change(shared, name, matches!(route, Route::Load(_)), &body).await?;
            Ok(empty(StatusCode::OK))
        }
        Route::AllStatistics => Ok(json(&v2::statistics::of_models(&repository.all()))),
        Route::V1 { name, version, ask } => match ask {
            V1Ask::Status => Ok(json(&v1::status(shared, name, version)?)),
            V1Ask::Metadata => Ok(json(&v1::metadata(&*repository.find(name, version)?))),
            V1Ask::Predict => v1::predict(exchange, name, version, upload).await,
            V1Ask::Examples => Err(Refusal::unimplemented(
                "`classify` and `regress` take examples, which this server does not read: `predict` takes tensors",
            )),
        },
        Route::Model { name, version, ask } => match ask {
            ModelAsk::Ready => match repository.find(name, version) {
                Ok(_) => Ok(json(&v2::metadata::Ready { name, ready: true })),
                // Triton's status, which its clients take for "no".
                Err(_) => Err(Refusal::invalid("Model version not ready")),
            },
            ModelAsk::Metadata => {
                let model = repository.find(name, version)?;
                Ok(json(&v2::metadata::model(
                    &model,
                    &repository.versions(name),
                )))
            }
            ModelAsk::Config => {
                let model = repository.find(name, version)?;
                Ok(json(&v2::metadata::config(&model)))
            }
            ModelAsk::Statistics => {
                let model = repository.find(name, version)?;
                Ok(json(&v2::statistics::of_models(&[model])))
            }
            ModelAsk::Infer => v2::infer(exchange, name, version, headers, upload).await,
            ModelAsk::Generate => v2::generate::once(exchange, name, version, upload).await,
            ModelAsk::GenerateStream => v2::generate::stream(exchange, name, version, upload).await,
        },
    }
}

/// Reads a head as [`answer`] does, for those who check from outside. Returns whether there is such an endpoint.
///
/// # Errors
///
/// If it is open to all, and none of those on the server's health or the page.
pub(crate) fn read_head(
    method: &Method,
    path: &str,
    headers: &hyper::HeaderMap,
) -> Result<bool, Error> {
    let _ = encoding::Encoding::of(headers);
    let _ = v2::json_length(headers);
    let (is_known, scope) = match grpc::is_grpc(headers) {
        true => grpc::read_head(path, headers),
        false => {
            let route = router::route(method, path);
            let scope = route.as_ref().map_or(Some(Scope::Metadata), Route::scope);
            (route.is_ok(), scope)
        }
    };
    let names = [
        "",
        "live",
        "ready",
        "ServerLive",
        "ServerReady",
        "Check",
        "Watch",
    ];
    let last = path.strip_suffix('/').unwrap_or(path).rsplit('/').next();
    match scope.is_some() || last.is_some_and(|last| names.contains(&last)) {
        true => Ok(is_known),
        false => Err(Error::internal(format!("'{path}' is open to all"))),
    }
}

/// Returns the document that tells why a request is refused.
pub(crate) fn error_text(refusal: &Refusal) -> Vec<u8> {
    #[derive(serde::Serialize)]
    struct Document {
        error: String,
    }
    let error = refusal.message();
    serde_json::to_vec(&Document { error }).expect("documents have texts as keys")
}

/// Returns the answer for a request that is refused.
pub(crate) fn refused(refusal: &Refusal) -> Response<Payload> {
    let mut response = json_text(error_text(refusal).into());
    *response.status_mut() = refusal.status();
    if matches!(
        refusal.status(),
        StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS
    ) {
        response
            .headers_mut()
            .insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    if refusal.status() == StatusCode::UNAUTHORIZED {
        response
            .headers_mut()
            .insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

/// Returns an answer that is a document.
pub(crate) fn json(document: &impl serde::Serialize) -> Response<Payload> {
    let body = serde_json::to_vec(document).expect("documents have texts as keys");
    json_text(body.into())
}

/// Returns an answer that is the text of a document.
pub(crate) fn json_text(body: Bytes) -> Response<Payload> {
    let mut response = Response::new(Payload::from(body));
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

fn text(body: String) -> Response<Payload> {
    let mut response = Response::new(Payload::from(Bytes::from(body)));
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

fn empty(status: StatusCode) -> Response<Payload> {
    let mut response = Response::new(Payload::default());
    *response.status_mut() = status;
    response
}
