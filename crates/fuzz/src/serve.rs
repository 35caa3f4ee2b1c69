//! A property of what clients of the model server send: bytes that are no request are refused, and tensors that are read of
//! them are written and read again to the same.

use tfrt_serve::outside;

/// Reads bytes as a request of a protocol, which the first one chooses: JSON, with elements behind it or without,
/// TensorFlow Serving's, and messages of gRPC.
///
/// # Panics
///
/// If tensors come out that are read otherwise once they are written.
pub fn requests(bytes: &[u8]) {
    if let Err(error) = outside::read_again(bytes) {
        panic!("{error}");
    }
}
