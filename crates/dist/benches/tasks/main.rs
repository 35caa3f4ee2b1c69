//! Calls, values and all-reduces between two processes, beside bare sockets, tonic, Open MPI and gloo.
//!
//! `cargo bench -p tfrt-dist --bench tasks [-- WORD]`. The process starts itself as the second task. Subjects take turns,
//! `TFRT_BENCH_RUNS` of them; each line has the medians of all turns, and the middle of the ratios within a turn. Peers are
//! measured where they are: `mpirun` and `mpicc`, a Python with torch (`TFRT_PEERS_TORCH`, else `python3`), and the
//! tonic of `benches/peers/setup.sh dist`. `/proc/loadavg` is printed before and after.

#![forbid(unsafe_code)]

mod peers;
mod task;

use std::time::Duration;

use peers::{Bare, Peers};
use task::{LARGE, Network, SMALL, Task};

/// Times of subjects by their names, a list of each: one entry a turn.
#[derive(Default)]
struct Table(Vec<(String, Vec<f64>)>);

impl Table {
    fn add(&mut self, name: &str, micros: f64) {
        match self.0.iter_mut().find(|(known, _)| known == name) {
            Some((_, times)) => times.push(micros),
            None => self.0.push((name.to_owned(), vec![micros])),
        }
    }

    /// Prints medians, and the ratio of the first subject to each other.
    fn print(&self, title: &str) {
        println!("{title}");
        let Some((_, first)) = self.0.first() else {
            return;
        };
        for (name, times) in &self.0 {
            let ratios = first.iter().zip(times).map(|(own, other)| own / other);
            let (time, ratio) = (median(times.clone()), median(ratios.collect()));
            let all: Vec<String> = times.iter().map(|time| format!("{time:.1}")).collect();
            println!(
                "  {name:<28} {time:>12.1} us  ratio {ratio:.2}  [{}]",
                all.join(" ")
            );
        }
    }
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// Returns the median of some times of a round.
fn middle(n: usize, mut round: impl FnMut() -> Duration) -> f64 {
    median((0..n).map(|_| micros(round())).collect())
}

fn load() -> String {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split(' ').take(3).collect::<Vec<_>>().join(" ")
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["--task", own, lead] => return task::serve(own, lead),
        ["--bare", address] => return peers::serve_bare(address),
        _ => (),
    }
    let word = arguments.iter().find(|word| !word.starts_with("--"));
    let is_wanted = |name: &str| word.is_none_or(|word| name.contains(word));
    let turns = std::env::var("TFRT_BENCH_RUNS").ok();
    let n_turns = turns.and_then(|turns| turns.parse().ok()).unwrap_or(5);
    println!("load {}", load());
    let peers = Peers::find();
    for network in [Network::Unix, Network::Tcp] {
        let name = network.name();
        let task = Task::start(network);
        let mut bare = Bare::start(network);
        if is_wanted("call") {
            let mut table = Table::default();
            for _ in 0..n_turns {
                table.add("remote execution", middle(2000, || task.call()));
                table.add("bare socket", middle(2000, || bare.round_trip()));
                if let Some(time) = peers.tonic(network) {
                    table.add("tonic", time);
                }
            }
            table.print(&format!("call of an empty function, {name}"));
        }
        if is_wanted("value") {
            let mut table = Table::default();
            for _ in 0..n_turns {
                table.add("value", middle(5, || task.send()));
                table.add("bare socket", middle(5, || bare.send()));
            }
            table.print(&format!("64 MiB one way, {name}"));
        }
        for (title, len, n) in [("4 KiB", SMALL, 1000), ("64 MiB", LARGE, 5)] {
            if !is_wanted("allreduce") {
                continue;
            }
            let mut table = Table::default();
            for _ in 0..n_turns {
                for (name, order) in [
                    ("tree", "tree"),
                    ("tree in place", "tree-in-place"),
                    ("ring", "ring"),
                ] {
                    table.add(name, task.all_reduce(order, len, n));
                }
                for (peer, time) in peers.all_reduce(network, len, n) {
                    table.add(peer, time);
                }
            }
            table.print(&format!("all-reduce of {title} by 2 tasks, {name}"));
        }
    }
    println!("load {}", load());
}
