//! [`KernelTimes`]: which kernels took the time, by name and by place.

use std::fmt::Write;

use serde::Serialize;
use tfrt::ir::visible;
use tfrt::profile::{KernelTime, Statistics};

use crate::console::duration;

/// The number of rows of a table that people are shown; machines get all.
const MAX_ROWS: usize = 20;

/// The times of kernels in a recording: of all that have a name, and of those at one place in the source.
#[derive(Serialize)]
pub struct KernelTimes {
    kernels: Vec<Kernel>,
    places: Vec<Kernel>,
}

#[derive(Serialize)]
struct Kernel {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    location: Option<String>,
    runs: u64,
    total_ns: u64,
    mean_ns: f64,
    share: f64,
    critical_ns: u64,
}

impl KernelTimes {
    pub fn new(statistics: &Statistics) -> KernelTimes {
        KernelTimes {
            kernels: statistics.kernels.iter().map(Kernel::new).collect(),
            places: statistics.places.iter().map(Kernel::new).collect(),
        }
    }

    /// Writes a table of each.
    pub fn write(&self, text: &mut String) {
        kernel_rows(text, "kernel", &self.kernels);
        kernel_rows(text, "place", &self.places);
    }
}

impl Kernel {
    fn new(time: &KernelTime) -> Kernel {
        Kernel {
            name: time.name.clone(),
            location: time.location.as_ref().map(ToString::to_string),
            runs: time.count,
            total_ns: time.total_ns,
            mean_ns: time.mean_ns(),
            share: time.share,
            critical_ns: time.critical_ns,
        }
    }

    fn row(&self) -> Vec<String> {
        let name = match &self.location {
            Some(location) => format!("{} {}", visible::name(location), self.name),
            None => self.name.clone(),
        };
        vec![
            name,
            self.runs.to_string(),
            duration(self.total_ns as f64),
            duration(self.mean_ns),
            format!("{:.1}%", 100.0 * self.share),
            duration(self.critical_ns as f64),
        ]
    }
}

fn kernel_rows(text: &mut String, what: &str, kernels: &[Kernel]) {
    let head = [what, "runs", "total", "mean", "share", "critical"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(kernels.iter().take(MAX_ROWS).map(Kernel::row));
    write_rows(text, &rows);
    if kernels.len() > MAX_ROWS {
        writeln!(text, "and {} more", kernels.len() - MAX_ROWS).expect("a String takes all text");
    }
}

/// Writes an empty line and a table: the first column begins, the others end at the same place.
pub fn write_rows(text: &mut String, rows: &[Vec<String>]) {
    let n_columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..n_columns).map(width).collect();
    text.push('\n');
    for row in rows {
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            match column {
                0 => write!(text, "{cell:<width$}"),
                _ => write!(text, "  {cell:>width$}"),
            }
            .expect("a String takes all text");
        }
        text.push('\n');
    }
}
