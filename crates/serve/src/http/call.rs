//! [`ModelCall`]: a request over HTTP for a call of a model. Protocols differ in how they read inputs and write outputs; what
//! is around that is here.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tfrt_tensor::Tensor;

use super::{Exchange, Upload, read, unless_gone};
use crate::admission::Ticket;
use crate::inference::{self, Counted, Inferred, Surroundings, count_failure};
use crate::model::Loaded;
use crate::refusal::Refusal;

/// A request for a call of a model, which was found and has room for it. It counts as failed if it is dropped before the call.
pub(crate) struct ModelCall<'e> {
    exchange: &'e Exchange,
    /// The model.
    pub model: Arc<Loaded>,
    ticket: Arc<Ticket>,
    counted: Counted,
}

impl<'e> ModelCall<'e> {
    /// Finds the model, waits for room, and reads the whole body, of which the first `json_length` bytes are JSON.
    ///
    /// # Errors
    ///
    /// `NotFound` if there is no such model, `ResourceExhausted` if there is no room, the error of `json_length`, and those of
    /// [`read`].
    pub async fn begin(
        exchange: &'e Exchange,
        name: &str,
        version: Option<u64>,
        upload: &mut Upload,
        json_length: Result<usize, Refusal>,
    ) -> Result<(ModelCall<'e>, Bytes), Refusal> {
        let shared = &exchange.shared;
        let model = shared.repository.find(name, version)?;
        let counted = Counted::new(&model, exchange.began, &exchange.trace);
        let ticket = Arc::new(shared.admit(upload.expected_bytes())?);
        let body = read(upload, &shared.limits, &ticket, json_length?).await?;
        let call = ModelCall {
            exchange,
            model,
            ticket,
            counted,
        };
        Ok((call, body))
    }

    /// Calls the model. Within the result, why the call has failed.
    ///
    /// # Errors
    ///
    /// The client has gone.
    pub async fn infer(
        &mut self,
        inputs: Vec<(String, Tensor)>,
        timeout: Option<Duration>,
    ) -> Result<Result<Inferred, Refusal>, Refusal> {
        self.counted.counts_itself();
        let exchange = self.exchange;
        let surroundings = Surroundings {
            host: &exchange.shared.host,
            limits: &exchange.shared.limits,
            ticket: &self.ticket,
            began: exchange.began,
            timeout,
            trace: &exchange.trace,
        };
        let call = inference::infer(&surroundings, &self.model, inputs);
        unless_gone(&exchange.socket, call).await
    }

    /// Has the outputs written, and counts the request.
    ///
    /// # Errors
    ///
    /// Those of `write`.
    pub fn answer<W>(
        &self,
        inferred: Inferred,
        write: impl FnOnce(&Loaded, &[Tensor]) -> Result<W, Refusal>,
    ) -> Result<W, Refusal> {
        let writing = Instant::now();
        let written = write(&self.model, &inferred.outputs);
        let written = written.inspect_err(|refusal| {
            count_failure(&self.model, self.exchange.began, &refusal.error);
        })?;
        let mut times = inferred.times;
        times.output = writing.elapsed();
        self.model.statistics.succeed(times, inferred.n_rows);
        Ok(written)
    }
}
