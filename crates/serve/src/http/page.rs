//! [`page`]: models, a form to call them, and figures, for people with a browser.

use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hyper::Response;
use hyper::header::{
    CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use sha2::{Digest, Sha256};

use super::Payload;

/// All of it: nothing is loaded from elsewhere.
const PAGE: &str = include_str!("page.html");

/// The rule by which a browser keeps to that, runs no other script than the page's own, and takes it into no other page.
static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    let (script, style) = (hash_of("script"), hash_of("style"));
    let policy = format!(
        "default-src 'none'; connect-src 'self'; img-src data:; script-src '{script}'; style-src '{style}'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    policy.try_into().expect("it is visible ASCII")
});

/// Returns the hash of the page's only element of a name.
fn hash_of(element: &str) -> String {
    let (begin, end) = (format!("<{element}>"), format!("</{element}>"));
    let (_, behind) = PAGE.split_once(&begin).expect("the page has one");
    let (text, _) = behind.split_once(&end).expect("it ends");
    format!(
        "sha256-{}",
        STANDARD.encode(Sha256::digest(text.as_bytes()))
    )
}

/// Returns the page, which asks for everything else by the endpoints that programs use.
pub(super) fn page() -> Response<Payload> {
    let mut response = Response::new(Payload::from(Bytes::from_static(PAGE.as_bytes())));
    let text = HeaderValue::from_static;
    for (name, value) in [
        (CONTENT_TYPE, text("text/html; charset=utf-8")),
        (CONTENT_SECURITY_POLICY, POLICY.clone()),
        (X_CONTENT_TYPE_OPTIONS, text("nosniff")),
        (REFERRER_POLICY, text("no-referrer")),
    ] {
        response.headers_mut().insert(name, value);
    }
    response
}
