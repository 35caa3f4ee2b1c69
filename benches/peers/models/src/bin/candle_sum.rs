//! A sum of four numbers and four others by candle, and nothing else: the cost of an operation by
//! itself.

use std::error::Error;

use candle_core::{Device, Tensor};
use tfrt_model_peers::{answer, timed};

fn main() -> Result<(), Box<dyn Error>> {
    let a = Tensor::from_slice(&[1.0_f32, 2.0, 3.0, 4.0], 4, &Device::Cpu)?;
    let b = Tensor::from_slice(&[10.0_f32, 20.0, 30.0, 40.0], 4, &Device::Cpu)?;
    let call = || &a + &b;
    answer(
        "candle 0.11.1",
        || Ok(call()?.to_vec1()?),
        |n_times| Ok(timed(n_times, call)?),
    )
}
