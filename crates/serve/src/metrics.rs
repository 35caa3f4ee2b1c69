//! Counts and times for Prometheus, in its text format 0.0.4. Labels are models that are loaded, and their versions, so
//! that clients can't make more of them.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use crate::model::Loaded;
use crate::server::Shared;
use crate::statistics::{BOUNDS_US, Histogram};

/// A count of each model: its name, its description, and where it is.
type Counter = (&'static str, &'static str, fn(&Loaded) -> u64);

/// The counters of models: ours, and those that Triton has by its names.
const COUNTERS: &[Counter] = &[
    (
        "tfrt_cancelled_total",
        "Requests whose client had gone",
        |model| model.statistics.cancelled.load(Relaxed),
    ),
    (
        "tfrt_expired_total",
        "Requests that ended at their deadline",
        |model| model.statistics.expired.load(Relaxed),
    ),
    (
        "tfrt_batches_split_total",
        "Batches that failed, whose requests were called alone",
        |model| model.statistics.n_split.load(Relaxed),
    ),
    (
        "nv_inference_request_success",
        "Requests that succeeded",
        |model| model.statistics.success.count(),
    ),
    (
        "nv_inference_request_failure",
        "Requests that failed",
        |model| model.statistics.fail.count(),
    ),
    (
        "nv_inference_count",
        "Rows of requests that succeeded",
        |model| model.statistics.n_rows.load(Relaxed),
    ),
    (
        "nv_inference_exec_count",
        "Calls of models that succeeded",
        |model| model.statistics.n_executions.load(Relaxed),
    ),
    (
        "nv_inference_request_duration_us",
        "Time of requests that succeeded",
        |model| model.statistics.success.ns() / 1000,
    ),
    (
        "nv_inference_queue_duration_us",
        "Time before calls began",
        |model| model.statistics.queue.ns() / 1000,
    ),
    (
        "nv_inference_compute_input_duration_us",
        "Time of reading inputs",
        |model| model.statistics.compute_input.ns() / 1000,
    ),
    (
        "nv_inference_compute_infer_duration_us",
        "Time of calls",
        |model| model.statistics.compute_infer.ns() / 1000,
    ),
    (
        "nv_inference_compute_output_duration_us",
        "Time of writing outputs",
        |model| model.statistics.compute_output.ns() / 1000,
    ),
];

/// Writes all there is.
pub(crate) fn render(shared: &Shared) -> String {
    let mut text = String::new();
    let models = shared.repository.all();
    let _ = write(&mut text, shared, &models);
    text
}

fn write(text: &mut String, shared: &Shared, models: &[Arc<Loaded>]) -> std::fmt::Result {
    let admission = &shared.admission;
    head(
        text,
        "tfrt_in_flight",
        "Requests to models that are there now",
        "gauge",
    )?;
    writeln!(text, "tfrt_in_flight {}", admission.n_in_flight())?;
    head(
        text,
        "tfrt_in_flight_bytes",
        "Bytes that are counted for them",
        "gauge",
    )?;
    writeln!(text, "tfrt_in_flight_bytes {}", admission.n_bytes())?;
    head(
        text,
        "tfrt_rejected_total",
        "Requests over the capacity",
        "counter",
    )?;
    writeln!(text, "tfrt_rejected_total {}", admission.n_rejected())?;
    head(
        text,
        "tfrt_security_files_failed_total",
        "Changes of files of certificates and tokens that could not be read",
        "counter",
    )?;
    let n_failed = shared.security.n_failed();
    writeln!(text, "tfrt_security_files_failed_total {n_failed}")?;
    #[cfg(feature = "otel")]
    if let Some(exporter) = &shared.traces {
        let (n_exported, n_dropped) = exporter.counts();
        for (name, help, count) in [
            (
                "tfrt_spans_exported_total",
                "Spans that a collector has taken",
                n_exported,
            ),
            (
                "tfrt_spans_dropped_total",
                "Spans that no collector has taken",
                n_dropped,
            ),
        ] {
            head(text, name, help, "counter")?;
            writeln!(text, "{name} {count}")?;
        }
    }
    for (name, help, value) in COUNTERS {
        head(text, name, help, "counter")?;
        for model in models {
            writeln!(text, "{name}{{{}}} {}", labels(model), value(model))?;
        }
    }
    head(
        text,
        "tfrt_request_duration_seconds",
        "Time of requests",
        "histogram",
    )?;
    for model in models {
        let times = &model.statistics.duration;
        histogram(text, "tfrt_request_duration_seconds", model, times)?;
    }
    batches(text, models)
}

/// Writes of models that join requests how many wait, for how long they have, and how large batches were.
fn batches(text: &mut String, models: &[Arc<Loaded>]) -> std::fmt::Result {
    let batched = || {
        let own = models.iter();
        own.filter_map(|model| Some((model, model.batcher.as_ref()?)))
    };
    if batched().next().is_none() {
        return Ok(());
    }
    let name = "tfrt_queue_depth";
    head(text, name, "Requests that wait for a batch", "gauge")?;
    for (model, batcher) in batched() {
        writeln!(text, "{name}{{{}}} {}", labels(model), batcher.depth())?;
    }
    let name = "tfrt_queue_duration_seconds";
    head(text, name, "Time before calls began", "histogram")?;
    for (model, _) in batched() {
        histogram(text, name, model, &model.statistics.waits)?;
    }
    let name = "tfrt_batch_rows";
    head(text, name, "Rows of batches", "histogram")?;
    for (model, batcher) in batched() {
        let (labels, sizes) = (labels(model), model.statistics.batches());
        // Powers of two, up to the most rows.
        let bounds = (0..u32::BITS)
            .map(|power| 1_usize << power)
            .take_while(|bound| *bound < batcher.batching.max_rows)
            .chain([batcher.batching.max_rows]);
        for bound in bounds {
            let count: u64 = sizes.range(..=bound).map(|(_, times)| times.count).sum();
            writeln!(text, "{name}_bucket{{{labels},le=\"{bound}\"}} {count}")?;
        }
        let count: u64 = sizes.values().map(|times| times.count).sum();
        let rows = sizes.iter().map(|(rows, times)| *rows as u64 * times.count);
        let rows: u64 = rows.sum();
        writeln!(
            text,
            "{name}_bucket{{{labels},le=\"+Inf\"}} {count}\n{name}_sum{{{labels}}} {rows}\n{name}_count{{{labels}}} {count}"
        )?;
    }
    Ok(())
}

fn head(text: &mut String, name: &str, help: &str, kind: &str) -> std::fmt::Result {
    writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}")
}

fn labels(model: &Loaded) -> String {
    format!("model=\"{}\",version=\"{}\"", model.name, model.version)
}

fn histogram(text: &mut String, name: &str, model: &Loaded, times: &Histogram) -> std::fmt::Result {
    let (classes, ns) = times.read();
    let labels = labels(model);
    let mut count = 0;
    for (index, class) in classes.iter().enumerate() {
        count += class;
        match BOUNDS_US.get(index) {
            Some(us) => {
                #[allow(clippy::cast_precision_loss, reason = "bounds are small")]
                let bound = *us as f64 / 1e6;
                writeln!(text, "{name}_bucket{{{labels},le=\"{bound}\"}} {count}")?;
            }
            None => writeln!(text, "{name}_bucket{{{labels},le=\"+Inf\"}} {count}")?,
        }
    }
    let seconds = std::time::Duration::from_nanos(ns).as_secs_f64();
    writeln!(
        text,
        "{name}_sum{{{labels}}} {seconds}\n{name}_count{{{labels}}} {count}"
    )
}
