//! Messages as bytes for those who check the codec from outside: fuzzers, and their seeds.

use std::time::Duration;

use tfrt_async::Error;
use tfrt_host::memory::HostBuffer;

use super::codec::{self, Part, Said};
use crate::ids::Incarnation;
use crate::message::{Key, Reply, Request};

/// Returns the bytes of a request, as a client sends them.
pub fn write_request(request: Request) -> Vec<u8> {
    codec::write(&Said::Call {
        number: 3,
        to: Some(Incarnation(5)),
        time_left: Some(Duration::from_millis(7)),
        request,
    })
}

/// Returns the bytes of a message with a value of two buffers, the second of which comes by itself and is so long.
///
/// # Errors
///
/// If somebody writes to the first.
pub fn write_value(key: Key, first: &HostBuffer, second_len_bytes: u64) -> Result<Vec<u8>, Error> {
    Ok(codec::write(&Said::Value {
        number: 4,
        to: None,
        key,
        buffers: vec![
            Part::Here(first.read()?.to_vec()),
            Part::Streamed(second_len_bytes),
        ],
    }))
}

/// Returns the bytes of an answer.
pub fn write_answer(answer: &Result<Reply, Error>) -> Vec<u8> {
    codec::write_answer(answer)
}

/// Reads an answer.
///
/// # Errors
///
/// `InvalidArgument` with the place, if the bytes are none.
pub fn read_answer(bytes: &[u8]) -> Result<Result<Reply, Error>, Error> {
    codec::read_answer(bytes)
}

/// Reads bytes as a message of a client, or as an answer to one, and writes it again.
///
/// # Errors
///
/// `InvalidArgument` with the place, if they are none.
pub fn read_again(bytes: &[u8], is_answer: bool) -> Result<Vec<u8>, Error> {
    match is_answer {
        true => codec::read_answer(bytes).map(|answer| codec::write_answer(&answer)),
        false => codec::read(bytes).map(|said| codec::write(&said)),
    }
}
