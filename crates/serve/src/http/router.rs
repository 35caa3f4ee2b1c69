//! [`route`]: which endpoint a path stands for.

use hyper::{Method, StatusCode};
use tfrt_host::ErrorCode;

use crate::refusal::Refusal;
use crate::security::Scope;

/// An endpoint, with what its path says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route<'p> {
    /// The page for people.
    Page,
    Live,
    Ready,
    Server,
    Metrics,
    AllStatistics,
    Index,
    Load(&'p str),
    Unload(&'p str),
    Model {
        name: &'p str,
        version: Option<u64>,
        ask: ModelAsk,
    },
    /// Of TensorFlow Serving's protocol.
    V1 {
        name: &'p str,
        version: Option<u64>,
        ask: V1Ask,
    },
}

impl Route<'_> {
    /// Returns the scope that a token must have for the endpoint; `None` for one that is open to all.
    pub fn scope(&self) -> Option<Scope> {
        match self {
            Route::Page | Route::Live | Route::Ready => None,
            Route::Metrics => Some(Scope::Metrics),
            Route::Load(_) | Route::Unload(_) => Some(Scope::Repository),
            Route::Model {
                ask: ModelAsk::Infer | ModelAsk::Generate | ModelAsk::GenerateStream,
                ..
            }
            | Route::V1 {
                ask: V1Ask::Predict | V1Ask::Examples,
                ..
            } => Some(Scope::Infer),
            Route::Server
            | Route::AllStatistics
            | Route::Index
            | Route::Model { .. }
            | Route::V1 { .. } => Some(Scope::Metadata),
        }
    }
}

impl Route<'_> {
    /// Returns the path of an endpoint that calls a model, with names for what differs from model to model.
    pub fn template(&self) -> Option<&'static str> {
        let (version, ask) = match self {
            Route::Model { version, ask, .. } => (version.is_some(), *ask),
            Route::V1 {
                version,
                ask: V1Ask::Predict,
                ..
            } => {
                return Some(match version {
                    None => "/v1/models/{model}:predict",
                    Some(_) => "/v1/models/{model}/versions/{version}:predict",
                });
            }
            _ => return None,
        };
        match (ask, version) {
            (ModelAsk::Infer, false) => Some("/v2/models/{model}/infer"),
            (ModelAsk::Infer, true) => Some("/v2/models/{model}/versions/{version}/infer"),
            (ModelAsk::Generate, false) => Some("/v2/models/{model}/generate"),
            (ModelAsk::Generate, true) => Some("/v2/models/{model}/versions/{version}/generate"),
            (ModelAsk::GenerateStream, false) => Some("/v2/models/{model}/generate_stream"),
            (ModelAsk::GenerateStream, true) => {
                Some("/v2/models/{model}/versions/{version}/generate_stream")
            }
            _ => None,
        }
    }
}

/// The part of an endpoint's path behind the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ModelAsk {
    Metadata,
    Ready,
    Config,
    Statistics,
    Infer,
    Generate,
    GenerateStream,
}

/// The part of an endpoint's path behind the model, in TensorFlow Serving's protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum V1Ask {
    Status,
    Metadata,
    Predict,
    /// `classify` and `regress`, which take examples.
    Examples,
}

/// Finds the endpoint of a path. Names are looked up as they stand there: none that a model can have needs an escape.
///
/// # Errors
///
/// 404 for a path of none, 405 for another method than that of the endpoint.
pub(super) fn route<'p>(method: &Method, path: &'p str) -> Result<Route<'p>, Refusal> {
    let unknown =
        || Refusal::not_found(format!("Not Found: there is no '{}'", path.escape_debug()));
    let mut parts = path.strip_prefix('/').unwrap_or(path).split('/');
    let route = match parts.next() {
        _ if path == "/" => Route::Page,
        Some("v1") => v1(parts).ok_or_else(unknown)?,
        Some("v2") => v2(parts).ok_or_else(unknown)?,
        Some("metrics") if is_end(&mut parts) => Route::Metrics,
        // Where TensorFlow Serving has its own.
        Some("monitoring")
            if parts.by_ref().take(2).eq(["prometheus", "metrics"]) && is_end(&mut parts) =>
        {
            Route::Metrics
        }
        _ => return Err(unknown()),
    };
    let is_right = match route {
        Route::Index | Route::Load(_) | Route::Unload(_) => method == Method::POST,
        Route::Model {
            ask: ModelAsk::Infer | ModelAsk::Generate | ModelAsk::GenerateStream,
            ..
        } => method == Method::POST,
        Route::V1 {
            ask: V1Ask::Predict | V1Ask::Examples,
            ..
        } => method == Method::POST,
        _ => method == Method::GET || method == Method::HEAD,
    };
    match is_right {
        true => Ok(route),
        false => Err(Refusal::with_status(
            StatusCode::METHOD_NOT_ALLOWED,
            ErrorCode::Unimplemented,
            "Method Not Allowed",
        )),
    }
}

/// Returns whether a path ends here, perhaps with a slash.
fn is_end<'p>(parts: &mut impl Iterator<Item = &'p str>) -> bool {
    matches!(parts.next(), None | Some("")) && parts.next().is_none()
}

fn v2<'p>(mut parts: impl Iterator<Item = &'p str>) -> Option<Route<'p>> {
    // An empty part at the end is a slash behind the path.
    let all: Vec<&str> = parts.by_ref().take(8).collect();
    let all = match all.as_slice() {
        [rest @ .., ""] => rest,
        whole => whole,
    };
    match *all {
        [] => Some(Route::Server),
        ["health", "live"] => Some(Route::Live),
        ["health", "ready"] => Some(Route::Ready),
        ["models", "stats"] => Some(Route::AllStatistics),
        ["models", name] => model(name, None, None),
        ["models", name, "versions", version] => model(name, Some(version), None),
        ["models", name, "versions", version, ask] => model(name, Some(version), Some(ask)),
        ["models", name, ask] => model(name, None, Some(ask)),
        ["repository", "index"] | ["repository", _, "index"] => Some(Route::Index),
        ["repository", "models", name, "load"] | ["repository", _, "models", name, "load"] => {
            Some(Route::Load(name))
        }
        ["repository", "models", name, "unload"] | ["repository", _, "models", name, "unload"] => {
            Some(Route::Unload(name))
        }
        _ => None,
    }
}

fn v1<'p>(parts: impl Iterator<Item = &'p str>) -> Option<Route<'p>> {
    let all: Vec<&str> = parts.take(6).collect();
    let (name, version, rest) = match *all.as_slice() {
        ["models", name, "versions", version, ref rest @ ..] => (name, Some(version), rest),
        ["models", name, ref rest @ ..] => (name, None, rest),
        _ => return None,
    };
    // What is asked for stands behind the last part.
    let last = version.unwrap_or(name);
    let (last, verb) = match last.split_once(':') {
        Some((last, verb)) => (last, Some(verb)),
        None => (last, None),
    };
    let (name, version) = match version {
        None => (last, None),
        Some(_) => (name, Some(last.parse().ok()?)),
    };
    let ask = match (verb, rest) {
        (None, []) => V1Ask::Status,
        (None, ["metadata"]) => V1Ask::Metadata,
        (Some("predict"), []) => V1Ask::Predict,
        (Some("classify" | "regress"), []) => V1Ask::Examples,
        _ => return None,
    };
    Some(Route::V1 { name, version, ask })
}

fn model<'p>(name: &'p str, version: Option<&str>, ask: Option<&str>) -> Option<Route<'p>> {
    let ask = match ask {
        None => ModelAsk::Metadata,
        Some("ready") => ModelAsk::Ready,
        Some("config") => ModelAsk::Config,
        Some("stats") => ModelAsk::Statistics,
        Some("infer") => ModelAsk::Infer,
        Some("generate") => ModelAsk::Generate,
        Some("generate_stream") => ModelAsk::GenerateStream,
        Some(_) => return None,
    };
    let version = match version {
        None => None,
        Some(version) => Some(version.parse().ok()?),
    };
    Some(Route::Model { name, version, ask })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_endpoints_are_found() {
        let model = |name, version, ask| Route::Model { name, version, ask };
        for (path, expected) in [
            ("/", Route::Page),
            ("/v2", Route::Server),
            ("/v2/", Route::Server),
            ("/v2/health/live", Route::Live),
            ("/v2/models/m", model("m", None, ModelAsk::Metadata)),
            (
                "/v2/models/m/versions/3",
                model("m", Some(3), ModelAsk::Metadata),
            ),
            (
                "/v2/models/m/versions/3/ready",
                model("m", Some(3), ModelAsk::Ready),
            ),
            ("/v2/models/m/stats", model("m", None, ModelAsk::Statistics)),
            ("/v2/models/stats", Route::AllStatistics),
            ("/metrics", Route::Metrics),
            ("/metrics/", Route::Metrics),
            ("/monitoring/prometheus/metrics", Route::Metrics),
            (
                "/v1/models/m",
                Route::V1 {
                    name: "m",
                    version: None,
                    ask: V1Ask::Status,
                },
            ),
            (
                "/v1/models/m/versions/2/metadata",
                Route::V1 {
                    name: "m",
                    version: Some(2),
                    ask: V1Ask::Metadata,
                },
            ),
        ] {
            assert_eq!(route(&Method::GET, path).unwrap(), expected, "{path}");
        }
        for path in [
            "/v2/models/m/infer",
            "/v2/models/m/versions/1/infer",
            "/v2/models/m/generate",
            "/v2/models/m/versions/1/generate_stream",
            "/v2/repository/index",
            "/v1/models/m:predict",
            "/v1/models/m/versions/2:predict",
            "/v1/models/m:classify",
        ] {
            assert!(route(&Method::POST, path).is_ok(), "{path}");
            assert_eq!(
                route(&Method::GET, path).unwrap_err().status(),
                405,
                "{path}"
            );
        }
    }

    #[test]
    fn other_paths_are_not_found() {
        for path in [
            "",
            "//",
            "/v3",
            "/v1/models",
            "/v1/models/m/versions/x:predict",
            "/v1/models/m:predict/metadata",
            "/v1/models/m:nothing",
            "/v2/models",
            "/v2/models/m/versions/x",
            "/v2/models/m/versions/-1",
            "/v2/models/m/nothing",
            "/v2/models/m/versions",
            "/v2/models/../m",
            "*",
            "/v2/models/m/versions/99999999999999999999/ready",
            "/v2//models/m",
            "/metrics/x",
            "/metrics//x",
            "/monitoring",
            "/monitoring/prometheus",
            "/monitoring/prometheus/metrics/x",
            "/monitoring/other/metrics",
            "/v2/a/b/c/d/e/f/g/h/i/j",
        ] {
            let refusal = route(&Method::GET, path);
            assert_eq!(refusal.unwrap_err().status(), 404, "{path}");
        }
    }
}
