//! [`Tokens`]: the texts by which clients show that they may ask, and for what.

use std::collections::BTreeMap;

use hyper::HeaderMap;
use hyper::header::AUTHORIZATION;
use sha2::{Digest, Sha256};
use tfrt_host::{Error, ErrorCode};

use crate::refusal::Refusal;

/// The fewest characters of a token: shorter ones can be guessed.
const MIN_LENGTH: usize = 16;

/// A kind of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Calls of models.
    Infer,
    /// Descriptions of the server and of models, their states and statistics.
    Metadata,
    /// Loading and unloading.
    Repository,
    /// Counts and times for Prometheus.
    Metrics,
}

const SCOPES: [(&str, Scope); 4] = [
    ("infer", Scope::Infer),
    ("metadata", Scope::Metadata),
    ("repository", Scope::Repository),
    ("metrics", Scope::Metrics),
];

/// The tokens of a server, each with a bit for each scope that it has.
///
/// They are kept and looked up by their digests: how long a look-up takes says nothing of a token, since nobody can
/// choose a text by the first bits of its digest and learn more than these.
pub(super) struct Tokens(BTreeMap<[u8; 32], u8>);

impl Tokens {
    /// Reads lines `TOKEN SCOPE SCOPE..`; those that are empty or begin with `#` say nothing. `name` is that of the file,
    /// for errors.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` with the number of the line that is none, but not with its text.
    pub fn parse(name: &str, text: &[u8]) -> Result<Tokens, Error> {
        let mut tokens = BTreeMap::new();
        for (index, line) in text.split(|byte| *byte == b'\n').enumerate() {
            let wrong =
                |why: String| Error::invalid_argument(format!("{name}: line {}: {why}", index + 1));
            let line = std::str::from_utf8(line);
            let line = line.map_err(|_| wrong("expected text in UTF-8".to_owned()))?;
            let mut words = line.split_ascii_whitespace();
            let Some(token) = words.next().filter(|word| !word.starts_with('#')) else {
                continue;
            };
            if token.len() < MIN_LENGTH || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
                let found = token.len();
                return Err(wrong(format!(
                    "expected a token of {MIN_LENGTH} visible characters at least, found {found} bytes"
                )));
            }
            let mut scopes = 0;
            for word in words {
                let scope = SCOPES.iter().find(|(name, _)| *name == word);
                let (_, scope) = scope.ok_or_else(|| {
                    let names = SCOPES.map(|(name, _)| name).join(", ");
                    wrong(format!("expected a scope behind the token, of {names}"))
                })?;
                scopes |= bit(*scope);
            }
            if scopes == 0 {
                return Err(wrong("expected scopes behind the token".to_owned()));
            }
            if tokens.insert(digest(token), scopes).is_some() {
                return Err(wrong("the token stands in an earlier line, too".to_owned()));
            }
        }
        Ok(Tokens(tokens))
    }

    /// Checks the token that a head has.
    pub fn check(&self, headers: &HeaderMap, scope: Scope) -> Result<(), Refusal> {
        let refused =
            |message: &str| Refusal::from(Error::new(ErrorCode::Unauthenticated, message));
        let given = headers.get(AUTHORIZATION);
        let given = given.ok_or_else(|| {
            refused("expected a token, in the header `Authorization: Bearer TOKEN`, found none")
        })?;
        let token = given.to_str().ok().and_then(|text| text.split_once(' '));
        let token = token.filter(|(kind, _)| kind.eq_ignore_ascii_case("bearer"));
        let (_, token) = token.ok_or_else(|| {
            refused("expected `Bearer TOKEN` in the header `Authorization`, found something else")
        })?;
        let scopes = self.0.get(&digest(token.trim()));
        let scopes = scopes.ok_or_else(|| refused("the token is not one of this server's"))?;
        match scopes & bit(scope) {
            0 => {
                let mut names = SCOPES.iter().filter(|(_, own)| *own == scope);
                let name = names.next().map_or("", |(name, _)| name);
                let message = format!("the token does not have the scope `{name}`");
                Err(Error::new(ErrorCode::PermissionDenied, message).into())
            }
            _ => Ok(()),
        }
    }
}

fn bit(scope: Scope) -> u8 {
    1 << scope as u8
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_tokens_with_scopes() {
        let text =
            b"# of the tests\n\nabcdefghijklmnop infer  metadata\r\nABCDEFGHIJKLMNOP metrics\n";
        let tokens = Tokens::parse("tokens", text).unwrap();
        let check = |value: &str, scope| {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, value.parse().unwrap());
            let checked = tokens.check(&headers, scope);
            checked.map_err(|refusal| refusal.status().as_u16())
        };
        assert_eq!(check("Bearer abcdefghijklmnop", Scope::Infer), Ok(()));
        assert_eq!(check("bearer abcdefghijklmnop", Scope::Metadata), Ok(()));
        assert_eq!(check("Bearer abcdefghijklmnop", Scope::Metrics), Err(403));
        assert_eq!(check("Bearer abcdefghijklmno", Scope::Infer), Err(401));
        assert_eq!(check("Basic abcdefghijklmnop", Scope::Infer), Err(401));
        let none = tokens.check(&HeaderMap::new(), Scope::Infer);
        assert_eq!(none.unwrap_err().status(), 401);
    }

    #[test]
    fn lines_that_are_none_are_refused_by_their_number() {
        for (text, expected) in [
            (
                &b"short infer"[..],
                "line 1: expected a token of 16 visible characters at least, found 5 bytes",
            ),
            (
                b"\nabcdefghijklmnop",
                "line 2: expected scopes behind the token",
            ),
            (
                b"abcdefghijklmnop all",
                "line 1: expected a scope behind the token, of infer, metadata, repository, metrics",
            ),
            (
                b"abcdefghijklmnop infer\nabcdefghijklmnop metrics",
                "line 2: the token stands in an earlier line, too",
            ),
            (b"\xff", "line 1: expected text in UTF-8"),
        ] {
            let error = Tokens::parse("tokens", text).err().unwrap();
            assert_eq!(error.message(), format!("tokens: {expected}"));
        }
    }
}
