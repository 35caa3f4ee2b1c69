//! Training on several ranks, which are threads or processes, beside training on one.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tfrt_networks::digits::adam::{AdamPerceptron, Format};
use tfrt_networks::digits::parallel::{Training, processes, train};

#[test]
fn any_number_of_ranks_learns_the_same_bits() {
    let one = train(1, 30, 1).unwrap();
    assert!(one[0].losses[29] < one[0].losses[0]);
    for n_ranks in [2, 3, 4, 8] {
        let ranks = train(n_ranks, 30, 1).unwrap();
        assert_eq!(ranks.len(), n_ranks);
        for learnt in ranks {
            assert_eq!(learnt, one[0], "{n_ranks} ranks");
        }
    }
}

/// Starts ranks as processes, which are this program again, on the test `a_rank`.
fn ranks(n_ranks: usize, name: &str, steps: &str, state: Option<&Path>) -> Vec<Child> {
    let meeting = format!("tfrt-digits-{}-{name}", std::process::id());
    let meeting = std::env::temp_dir().join(meeting);
    let start = |rank: usize| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", "parallel::a_rank", "--nocapture"])
            .env("RANK", rank.to_string())
            .env("WORLD_SIZE", n_ranks.to_string())
            .env("TFRT_RENDEZVOUS", format!("unix:{}", meeting.display()))
            .env("TFRT_TEST_STEPS", steps)
            .envs(state.map(|state| ("TFRT_TEST_STATE", state)))
            // Whoever is killed does not say what it has left.
            .env_remove("TFRT_ACCOUNTING")
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        command.spawn().unwrap()
    };
    (0..n_ranks).map(start).collect()
}

/// Returns what a rank has printed: a hash of weights, or an error.
fn printed(rank: Child) -> String {
    let output = rank.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let line = text.lines().find_map(|line| line.split_once("learnt: "));
    line.map_or(text.clone(), |(_, learnt)| learnt.to_owned())
}

/// A rank, if one of the tests below has started this process as one; nothing else.
#[test]
fn a_rank() {
    let Ok(n_steps) = std::env::var("TFRT_TEST_STEPS") else {
        return;
    };
    let training = Training {
        n_steps: n_steps.parse().unwrap(),
        seed: 1,
        state: std::env::var_os("TFRT_TEST_STATE").map(PathBuf::from),
        save_every: 5,
    };
    match processes::train("auto", &training) {
        Ok((.., learnt)) => println!("learnt: {:016x}", learnt.hash),
        Err(error) => println!("learnt: {error}"),
    }
}

#[cfg(target_os = "linux")]
#[test]
fn ranks_that_are_processes_learn_the_bits_of_one() {
    let expected = format!("{:016x}", train(1, 12, 1).unwrap()[0].hash);
    for n_ranks in [1, 2, 4, 8] {
        for rank in ranks(n_ranks, &n_ranks.to_string(), "12", None) {
            assert_eq!(printed(rank), expected, "{n_ranks} ranks");
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn where_a_rank_is_killed_the_others_fail_and_all_go_on_from_what_was_saved() {
    let state = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("parallel.safetensors");
    drop(std::fs::remove_file(&state));
    let mut all = ranks(3, "killed", "1000000", Some(&state));
    let end = Instant::now() + Duration::from_secs(60);
    while !state.exists() {
        assert!(Instant::now() < end);
        std::thread::yield_now();
    }
    let mut killed = all.remove(1);
    killed.kill().unwrap();
    killed.wait().unwrap();
    for rank in all {
        let told = printed(rank);
        assert!(told.contains("task /job:worker/task:1 is lost"), "{told}");
    }
    // What was saved last is of a step that divides by five.
    let runtime = tfrt::Runtime::new();
    let mut saved = AdamPerceptron::new(1, &runtime).unwrap();
    let bytes = std::fs::read(&state).unwrap();
    saved.load(&bytes, Format::Safetensors).unwrap();
    let n_steps = saved.n_steps_done() + 7;
    let expected = format!("{:016x}", train(1, n_steps, 1).unwrap()[0].hash);
    for rank in ranks(2, "again", &n_steps.to_string(), Some(&state)) {
        assert_eq!(printed(rank), expected);
    }
}
