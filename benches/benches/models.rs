//! Models through [`tfrt::Model`] beside ONNX Runtime, tract and candle, each in a process of its own, in turns.
//!
//! The ratio is the median, over all rounds, of a peer's time over ours: above 1 we are faster. Files are opened,
//! compiled and optimised ahead, by everybody; calls get inputs that are there, and their results are waited for
//! and dropped. What comes of a call must agree with ONNX Runtime's to 1e-4 of the largest. Means are those of the
//! models that have work to do; a call of `two` or `chain` is overhead alone, of ONNX Runtime with that of a call
//! from Python, which is said, too.
//!
//! `cargo bench -p tfrt-benches --bench models -- [--threads N] [--filter NAME] [--rounds N] [--peers NAME,NAME]`;
//! `benches/peers/setup.sh models` sets the peers up.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tfrt_benches::folders;
use tfrt_benches::measure::Times;
use tfrt_benches::peers::process::{PeerProcess, python};

#[path = "models/serve.rs"]
mod serve;

/// The models: those with work to do, then those without.
const MODELS: [&str; 8] = [
    "resnet50",
    "squeezenet",
    "shufflenet",
    "densenet121",
    "encoder1",
    "encoder8",
    "mlp",
    "lenet",
];
const TINY: [&str; 2] = ["two", "chain"];
const PEERS: [&str; 3] = ["ONNX Runtime", "tract", "candle"];

/// The least time that a contender works in a turn.
const TURN: Duration = Duration::from_millis(20);

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [word, model, inputs, n_threads] = &words[..]
        && word == "serve"
    {
        let n_threads = n_threads.parse().expect("a number");
        return serve::serve(Path::new(model), Path::new(inputs), n_threads);
    }
    let value = |name: &str| {
        let place = words.iter().position(|word| word == name)?;
        words.get(place + 1).map(String::as_str)
    };
    let number = |name: &str| value(name).map(|text| text.parse().expect("a number"));
    let folder = folders::target("models");
    if let Err(why) = make(&folder) {
        println!("SKIPPED: {why}");
        return;
    }
    let peers = value("--peers");
    let asked = Comparison {
        folder,
        n_rounds: number("--rounds").unwrap_or(15),
        peers: PEERS.map(|peer| peers.is_none_or(|list| list.split(',').any(|one| one == peer))),
    };
    for n_threads in [1, 2] {
        if number("--threads").is_some_and(|wanted| wanted != n_threads) {
            continue;
        }
        let wanted = |model: &&str| value("--filter").is_none_or(|part| model.contains(part));
        asked.table(n_threads, &wanted);
    }
}

/// Makes the models.
fn make(folder: &Path) -> Result<(), String> {
    let made = python("onnx_models.py")?.arg("make").arg(folder).status();
    match made {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("the models can't be made: {status}")),
        Err(error) => Err(error.to_string()),
    }
}

/// The comparison that was asked for.
struct Comparison {
    folder: PathBuf,
    n_rounds: usize,
    peers: [bool; 3],
}

impl Comparison {
    fn table(&self, n_threads: usize, wanted: &dyn Fn(&&str) -> bool) {
        println!(
            "\n{n_threads} threads; medians of {} interleaved rounds",
            self.n_rounds
        );
        print!("{:<14}{:>13}", "", "tfrt");
        PEERS.iter().for_each(|peer| print!("{peer:>15}  ratio"));
        println!();
        let mut notes = Vec::new();
        let mut all: [Vec<f64>; 3] = Default::default();
        for model in MODELS.iter().filter(|model| wanted(model)) {
            let ratios = self.line(model, n_threads, &mut notes);
            for (list, ratio) in all.iter_mut().zip(ratios) {
                list.extend(ratio);
            }
        }
        print!("{:<27}", "geometric mean");
        for list in &all {
            let sum: f64 = list.iter().map(|ratio| ratio.ln()).sum();
            match list.len() {
                0 => print!("{:>22}", "-"),
                n => print!("{:>22.2}", (sum / n as f64).exp()),
            }
        }
        println!();
        for model in TINY.iter().filter(|model| wanted(model)) {
            self.line(model, n_threads, &mut notes);
        }
        notes.sort();
        notes.dedup();
        notes.iter().for_each(|note| println!("{note}"));
    }

    /// Compares a model; returns the ratio of each peer.
    fn line(&self, model: &str, n_threads: usize, notes: &mut Vec<String>) -> [Option<f64>; 3] {
        let file = fs::read_to_string(self.folder.join(format!("{model}.model")));
        let file = self.folder.join(file.expect("it was made"));
        let case = [file, self.folder.join(model)];
        let ours = std::env::current_exe().expect("this program has a file");
        let ours = PeerProcess::start(
            Command::new(ours)
                .arg("serve")
                .args(&case)
                .arg(n_threads.to_string()),
        );
        let mut ours = match ours {
            Ok(ours) => Turns::new(ours),
            Err(error) => {
                println!("{model:<14}  tfrt can't run it: {error}");
                return [None; 3];
            }
        };
        let mut peers = [0, 1, 2].map(|index| {
            let started = self.peers[index].then(|| peer(index, &case, n_threads))?;
            match started {
                Ok(peer) => Some(Turns::new(peer)),
                Err(error) => {
                    let last = error.lines().last().unwrap_or_default().to_owned();
                    notes.push(format!("{} on {model}: {last}", PEERS[index]));
                    None
                }
            }
        });
        for _ in 0..self.n_rounds {
            ours.turn();
            peers.iter_mut().flatten().for_each(Turns::turn);
        }
        print!("{model:<14}{:>13}", shown(ours.times.median()));
        let results = ours.peer.tell("results");
        let mut ratios = [None; 3];
        for (index, peer) in peers.iter_mut().enumerate() {
            let Some(peer) = peer else {
                print!("{:>22}", "-");
                continue;
            };
            let ratio = ours.ratio(peer);
            print!("{:>15}{ratio:>7.2}", shown(peer.times.median()));
            notes.push(peer.peer.greeting.clone());
            let distance = distance(&results, &peer.peer.tell("results"));
            if distance > 1e-4 || distance.is_nan() {
                notes.push(format!(
                    "{} on {model}: results are {distance:.1e} apart",
                    PEERS[index]
                ));
            }
            if index == 0 && TINY.contains(&model) {
                let nothing: f64 = peer.peer.tell("nothing").parse().expect("a number");
                notes.push(format!("of ONNX Runtime's call of {model}, a call in Python that does nothing takes {:.0} ns", nothing / 1e4));
            }
            ratios[index] = Some(ratio);
        }
        println!();
        ratios
    }
}

/// Starts a peer.
fn peer(index: usize, case: &[PathBuf; 2], n_threads: usize) -> Result<PeerProcess, String> {
    let threads = n_threads.to_string();
    if index == 0 {
        return PeerProcess::start(python("onnx_models.py")?.arg("run").args(case).arg(threads));
    }
    let program = folders::target("peers/models/release").join(PEERS[index]);
    if !program.exists() {
        return Err("benches/peers/setup.sh models was not run".to_owned());
    }
    let errors = folders::target("models").join("errors.txt");
    let file = fs::File::create(&errors).map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    let command = command
        .args(case)
        .arg(&threads)
        .env("RAYON_NUM_THREADS", &threads);
    PeerProcess::start(command.stderr(file)).map_err(|error| match fs::read_to_string(&errors) {
        Ok(said) if !said.trim().is_empty() => said.trim().to_owned(),
        _ => error,
    })
}

/// The turns of a contender.
struct Turns {
    peer: PeerProcess,
    n_times: usize,
    times: Times,
}

impl Turns {
    /// Warms a contender up, and finds out how many calls fill a turn.
    fn new(mut peer: PeerProcess) -> Turns {
        peer.ask(2);
        let one = peer.ask(3) / 3;
        let n_times = TURN.as_nanos() / one.as_nanos().max(1);
        let n_times = usize::try_from(n_times).unwrap_or(1).clamp(1, 100_000);
        Turns {
            peer,
            n_times,
            times: Times::default(),
        }
    }

    fn turn(&mut self) {
        let time = self.peer.ask(self.n_times);
        self.times
            .push(time / u32::try_from(self.n_times).unwrap_or(1));
    }

    /// Returns the median of another one's time over the own, round by round.
    fn ratio(&self, other: &Turns) -> f64 {
        let pairs = self.times.all().iter().zip(other.times.all());
        let mut ratios: Vec<f64> = pairs
            .map(|(own, other)| other.as_secs_f64() / own.as_secs_f64().max(1e-12))
            .collect();
        ratios.sort_by(f64::total_cmp);
        ratios.get(ratios.len() / 2).copied().unwrap_or(f64::NAN)
    }
}

fn shown(time: Duration) -> String {
    match time.as_secs_f64() * 1e6 {
        us if us < 1000.0 => format!("{us:.2} us"),
        us => format!("{:.2} ms", us / 1000.0),
    }
}

/// Returns how far results are apart at most, as a share of the largest.
fn distance(ours: &str, theirs: &str) -> f64 {
    let numbers = |line: &str| -> Vec<f64> {
        let words = line.split_whitespace();
        words.map(|word| word.parse().expect("a number")).collect()
    };
    let (ours, theirs) = (numbers(ours), numbers(theirs));
    if ours.len() != theirs.len() {
        return f64::INFINITY;
    }
    let largest = theirs
        .iter()
        .fold(0.0_f64, |largest, x| largest.max(x.abs()));
    let pairs = ours.iter().zip(&theirs);
    pairs.map(|(a, b)| (a - b).abs()).fold(0.0, |far, one| {
        if one.is_nan() {
            one
        } else {
            f64::max(far, one)
        }
    }) / largest
}
