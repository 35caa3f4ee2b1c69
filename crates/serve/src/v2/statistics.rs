//! The statistics of models, as documents of HTTP.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde::Serialize;

use crate::model::Loaded;
use crate::statistics::{BatchTimes, Timed, ns};

#[derive(Serialize)]
struct Document {
    model_stats: Vec<ModelDocument>,
}

#[derive(Serialize)]
struct ModelDocument {
    name: String,
    version: String,
    last_inference: u64,
    inference_count: u64,
    execution_count: u64,
    inference_stats: Inference,
    batch_stats: Vec<Batch>,
    memory_usage: [(); 0],
}

#[derive(Serialize)]
struct Inference {
    success: Count,
    fail: Count,
    queue: Count,
    compute_input: Count,
    compute_infer: Count,
    compute_output: Count,
    cache_hit: Count,
    cache_miss: Count,
}

/// The batches of one number of rows.
#[derive(Serialize)]
struct Batch {
    batch_size: usize,
    compute_input: Count,
    compute_infer: Count,
    compute_output: Count,
}

#[derive(Default, Serialize)]
struct Count {
    count: u64,
    ns: u64,
}

impl From<&Timed> for Count {
    fn from(timed: &Timed) -> Count {
        Count {
            count: timed.count(),
            ns: timed.ns(),
        }
    }
}

impl Batch {
    fn of((batch_size, times): (usize, BatchTimes)) -> Batch {
        let count = |time| Count {
            count: times.count,
            ns: ns(time),
        };
        Batch {
            batch_size,
            compute_input: count(times.input),
            compute_infer: count(times.infer),
            compute_output: count(times.output),
        }
    }
}

/// Describes what happened to the requests of models.
pub(crate) fn of_models(models: &[Arc<Loaded>]) -> impl Serialize + use<> {
    let one = |model: &Arc<Loaded>| {
        let statistics = &model.statistics;
        ModelDocument {
            name: model.name.to_string(),
            version: model.version.to_string(),
            last_inference: statistics.last_ms.load(Ordering::Relaxed),
            inference_count: statistics.n_rows.load(Ordering::Relaxed),
            execution_count: statistics.n_executions.load(Ordering::Relaxed),
            inference_stats: Inference {
                success: (&statistics.success).into(),
                fail: (&statistics.fail).into(),
                queue: (&statistics.queue).into(),
                compute_input: (&statistics.compute_input).into(),
                compute_infer: (&statistics.compute_infer).into(),
                compute_output: (&statistics.compute_output).into(),
                cache_hit: Count::default(),
                cache_miss: Count::default(),
            },
            batch_stats: statistics.batches().into_iter().map(Batch::of).collect(),
            memory_usage: [],
        }
    };
    Document {
        model_stats: models.iter().map(one).collect(),
    }
}
