//! [`page`]: models, a form to call them, and figures, for people with a browser.

use bytes::Bytes;
use hyper::Response;
use hyper::header::{
    CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};

use super::Payload;

/// All of it: nothing is loaded from elsewhere.
const PAGE: &str = include_str!("page.html");

/// Headers by which a browser keeps to that, and takes the page into no other.
const HEADERS: [(HeaderName, &str); 4] = [
    (CONTENT_TYPE, "text/html; charset=utf-8"),
    (
        CONTENT_SECURITY_POLICY,
        concat!(
            "default-src 'none'; connect-src 'self'; img-src data:; script-src 'unsafe-inline'; ",
            "style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        ),
    ),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (REFERRER_POLICY, "no-referrer"),
];

/// Returns the page, which asks for everything else by the endpoints that programs use.
pub(super) fn page() -> Response<Payload> {
    let mut response = Response::new(Payload::from(Bytes::from_static(PAGE.as_bytes())));
    for (name, value) in HEADERS {
        let value = HeaderValue::from_static(value);
        response.headers_mut().insert(name, value);
    }
    response
}
