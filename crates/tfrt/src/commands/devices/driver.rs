//! [`DriverOption`]: the driver of GPUs that programs get, NVIDIA's or a simulated one, and what the latter has found.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use tfrt::Runtime;
use tfrt::gpu::driver::sim::{Policy, Sim, SimOptions};

use crate::console::Console;
use crate::failure::ExitStatus;

/// A driver that a command line names: `cuda`, `sim`, `sim:lazy`, `sim:random:7`.
#[derive(Clone, Debug)]
pub enum DriverOption {
    /// NVIDIA's.
    Cuda,
    /// A simulated one.
    Sim(SimOptions),
}

/// The orders in which simulated commands run, by their names.
const ORDERS: [(&str, Policy); 5] = [
    ("eager", Policy::Eager),
    ("lazy", Policy::Lazy),
    ("random", Policy::Random),
    ("longest-first", Policy::LongestFirst),
    ("starving", Policy::Starving(1)),
];

impl DriverOption {
    /// Parses a name.
    pub fn parse(text: &str) -> Result<DriverOption, String> {
        let wrong = || {
            let names: Vec<&str> = ORDERS.iter().map(|(name, _)| *name).collect();
            let names = names.join(", ");
            format!(
                "expected 'cuda', or 'sim:ORDER:SEED' with one of {names} and a number, or a part of that"
            )
        };
        let mut words = text.split(':');
        match (words.next(), text.matches(':').count()) {
            (Some("cuda"), 0) => Ok(DriverOption::Cuda),
            (Some("sim"), 0..=2) => {
                // Two devices, so that they can exchange data.
                let mut options = SimOptions {
                    n_devices: 2,
                    ..SimOptions::default()
                };
                if let Some(word) = words.next() {
                    let order = ORDERS.iter().find(|(name, _)| *name == word);
                    options.policy = order.ok_or_else(wrong)?.1;
                }
                if let Some(word) = words.next() {
                    options.seed = word.parse().map_err(|_| wrong())?;
                }
                Ok(DriverOption::Sim(options))
            }
            _ => Err(wrong()),
        }
    }

    /// Gives a runtime's programs the driver; returns it if it is simulated.
    pub fn give_to(&self, runtime: &Runtime) -> Option<Sim> {
        let DriverOption::Sim(options) = self else {
            return None;
        };
        let sim = Sim::new(*options);
        tfrt::gpu::use_driver(runtime.host(), Arc::new(sim.clone()));
        Some(sim)
    }
}

/// Tells what a simulated driver has found, and what was not given back to it. Returns the exit status that says so. The
/// runtime has ended.
pub fn tell(sim: &Sim, console: &Console) -> ExitStatus {
    let (findings, leaks) = found(sim);
    findings
        .iter()
        .chain(&leaks)
        .for_each(|line| console.say(line));
    let found = match findings.is_empty() {
        true => ExitStatus::Fine,
        false => ExitStatus::FunctionFailed,
    };
    match leaks.is_empty() {
        true => found,
        false => found.max(ExitStatus::Leaked),
    }
}

/// Returns what a simulated driver has found, and what was not given back to it, a line each. The runtime has ended.
fn found(sim: &Sim) -> (Vec<String>, Vec<String>) {
    // The thread of a device may still give back what it has.
    let begin = Instant::now();
    while !sim.leaks().is_empty() && begin.elapsed() < Duration::from_secs(1) {
        thread::yield_now();
    }
    let findings = sim.findings();
    let findings = findings
        .iter()
        .map(|found| format!("found on the simulated GPU: {found}\n"));
    let leaks = sim.leaks();
    let leaks = leaks
        .iter()
        .map(|leak| format!("not given back to the simulated GPU: {leak}\n"));
    (findings.collect(), leaks.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drivers_are_parsed() {
        let parsed = |text: &str| match DriverOption::parse(text) {
            Ok(DriverOption::Sim(options)) => Some((options.policy, options.seed)),
            _ => None,
        };
        assert!(matches!(
            DriverOption::parse("cuda"),
            Ok(DriverOption::Cuda)
        ));
        assert_eq!(parsed("sim"), Some((Policy::Random, 0)));
        assert_eq!(parsed("sim:lazy"), Some((Policy::Lazy, 0)));
        assert_eq!(parsed("sim:starving:7"), Some((Policy::Starving(1), 7)));
        for wrong in [
            "",
            "cuda:0",
            "sim:",
            "sim:fast",
            "sim:lazy:x",
            "sim:lazy:1:2",
        ] {
            assert!(DriverOption::parse(wrong).is_err(), "{wrong}");
        }
    }
}
