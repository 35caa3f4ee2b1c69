//! [`Secret`]: the proof that both ends of a connection know the same secret.
//!
//! The proof is an HMAC-SHA256 over everything that both have said: names, incarnations, session, both nonces. Each side
//! has a label of its own, so that a proof can't be sent back, and the nonces are new for each connection, so that it
//! can't be used again.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::message::{Hello, Welcome};

/// A secret that all tasks of a cluster share.
#[derive(Clone)]
pub struct Secret(Vec<u8>);

/// The side of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The one that dials.
    Dials,
    /// The one that answers.
    Answers,
}

impl Secret {
    /// The fewest bytes of a secret.
    pub const MIN_BYTES: usize = 16;

    /// Returns the secret of these bytes, which should come from a source of random numbers.
    ///
    /// # Errors
    ///
    /// A text, if there are fewer than [`MIN_BYTES`](Self::MIN_BYTES).
    pub fn new(bytes: impl Into<Vec<u8>>) -> Result<Secret, String> {
        let bytes = bytes.into();
        match bytes.len() {
            found if found < Secret::MIN_BYTES => Err(format!(
                "expected a secret of at least {} bytes, found {found}",
                Secret::MIN_BYTES
            )),
            _ => Ok(Secret(bytes)),
        }
    }

    /// Returns the proof of one side.
    pub fn prove(&self, side: Side, hello: &Hello, welcome: &Welcome) -> [u8; 32] {
        self.mac(side, hello, welcome)
            .finalize()
            .into_bytes()
            .into()
    }

    /// Returns whether a proof is that of one side, in a time that does not depend on the proof.
    pub fn is_proved(
        &self,
        side: Side,
        hello: &Hello,
        welcome: &Welcome,
        proof: &[u8; 32],
    ) -> bool {
        let mac = self.mac(side, hello, welcome);
        mac.verify_slice(proof).is_ok()
    }

    fn mac(&self, side: Side, hello: &Hello, welcome: &Welcome) -> Hmac<Sha256> {
        let mut mac =
            Hmac::<Sha256>::new_from_slice(&self.0).expect("a key of any length is taken");
        mac.update(match side {
            Side::Dials => &b"tfrt-wire 1 dials"[..],
            Side::Answers => b"tfrt-wire 1 answers",
        });
        let mut plain = welcome.clone();
        plain.proof = None;
        for message in [hello.encode(), plain.encode()] {
            mac.update(&(message.len() as u64).to_le_bytes());
            mac.update(&message);
        }
        mac
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}
