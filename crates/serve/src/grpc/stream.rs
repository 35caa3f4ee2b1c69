//! [`Answers`]: a stream of messages that a task makes; `ModelStreamInfer`, requests one behind the other on one stream,
//! each answered in its turn.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use futures_core::Stream;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tonic::{Code, Status, Streaming};

use super::messages::{InferRequest, StreamInferResponse};
use super::{Call, code, inference};

/// Answers that wait to be sent. While there are so many, no more requests are read.
const WAITING: usize = 4;

/// The answers of a stream. Dropping it, as when the client is gone, ends what makes them.
pub(super) struct Answers<R> {
    answers: mpsc::Receiver<Result<R, Status>>,
    work: JoinHandle<()>,
}

impl<R: Send + 'static> Answers<R> {
    /// Starts a task that makes answers, of which so many wait to be sent at most.
    pub fn of<F: Future<Output = ()> + Send + 'static>(
        n_waiting: usize,
        work: impl FnOnce(mpsc::Sender<Result<R, Status>>) -> F,
    ) -> Answers<R> {
        let (sender, answers) = mpsc::channel(n_waiting);
        let work = tokio::spawn(work(sender));
        Answers { answers, work }
    }
}

/// Answers the requests of a stream. One that fails is answered by its error, and the stream goes on.
pub(super) fn infer(call: Call, requests: Streaming<InferRequest>) -> Answers<StreamInferResponse> {
    Answers::of(WAITING, |sender| answer(call, requests, sender))
}

async fn answer(
    call: Call,
    mut requests: Streaming<InferRequest>,
    sender: mpsc::Sender<Result<StreamInferResponse, Status>>,
) {
    loop {
        let answer = match requests.message().await {
            Ok(None) => return,
            Err(status) => Err(status),
            Ok(Some(request)) => {
                if let Some(taken) = &call.taken {
                    taken.note();
                }
                let mut call = call.clone();
                call.began = Instant::now();
                let trace = Arc::new(call.trace.next());
                call.trace = trace.clone();
                Ok(match inference::infer(call, request).await {
                    Ok(response) => {
                        trace.end_grpc(Code::Ok);
                        StreamInferResponse {
                            error_message: String::new(),
                            infer_response: Some(response),
                        }
                    }
                    Err(refusal) => {
                        trace.end_grpc(code(&refusal));
                        StreamInferResponse {
                            error_message: refusal.message(),
                            infer_response: None,
                        }
                    }
                })
            }
        };
        let is_last = answer.is_err();
        if sender.send(answer).await.is_err() || is_last {
            return;
        }
    }
}

impl<R> Stream for Answers<R> {
    type Item = Result<R, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.answers.poll_recv(context)
    }
}

impl<R> Drop for Answers<R> {
    fn drop(&mut self) {
        self.work.abort();
    }
}
