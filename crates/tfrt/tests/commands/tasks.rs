//! `tfrt worker`, `tfrt run --cluster` and `tfrt cluster check`: tasks that are processes, and what is told of those that are
//! missing, killed or stopped.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::profiling::decoder::Trace;

/// A program that has another task make a number and print it.
const PRINTS: &str = r#"func.func @main() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %ctx = tfrt_dist.get_distributed_context
  %task = tfrt_dist.get_task_handle %ctx {task_name = "/job:worker/task:1"}
  %r = tfrt_dist.register_tfrt_function(%ch, %ctx, %task) "show" "func.func @show() -> !tfrt.chain { %x = tfrt.constant.i32 42 %c = tfrt.new.chain %d = tfrt.print.i32 %x, %c tfrt.return %d : !tfrt.chain }"
  %spec = tfrt_dist.create_remote_execute_spec %ctx {output_devices = ["/job:worker/task:1/device:CPU:0"]}
  %c, %id = tfrt_dist.remote_execute[%r, %ctx, %task, %spec] "show" () : () -> (!tfrt_dist.remote_object_id)
  tfrt.return %c : !tfrt.chain
}
"#;

/// One whose task 1 prints, and then waits for a value that nobody sends.
const WAITS: &str = r#"func.func @main() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %ctx = tfrt_dist.get_distributed_context
  %task = tfrt_dist.get_task_handle %ctx {task_name = "/job:worker/task:1"}
  %r = tfrt_dist.register_tfrt_function(%ch, %ctx, %task) "wait" "func.func @wait(%ctx: !tfrt_dist.dist_context) -> !tfrt.chain { %x = tfrt.constant.i32 7 %c = tfrt.new.chain %d = tfrt.print.i32 %x, %c %t = tfrt_dist.get_task_handle %ctx {task_name = \22/job:worker/task:0\22} %key = tfrt_test.get_string {value = \22never\22} %got = tfrt_dist.recv_bytes %ctx, %t, %key %u = tfrt_dist.deserialize %got %p = tfrt_dht.print_tensor %u, %d tfrt.return %p : !tfrt.chain }"
  %spec = tfrt_dist.create_remote_execute_spec %ctx {output_devices = ["/job:worker/task:1/device:CPU:0"]}
  %c, %id = tfrt_dist.remote_execute[%r, %ctx, %task, %spec] "wait" () : () -> (!tfrt_dist.remote_object_id)
  tfrt.return %c : !tfrt.chain
}
"#;

fn file(name: &str, text: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, text).unwrap();
    path
}

fn tfrt(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tfrt"));
    command.env_clear().args(words);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// A process that is ended with the test.
struct Task(Child);

impl Task {
    fn start(mut command: Command) -> Task {
        Task(command.spawn().unwrap())
    }

    /// Returns status, standard output and standard error.
    fn end(&mut self) -> (Option<i32>, String, String) {
        let (mut out, mut err) = (String::new(), String::new());
        let mut stdout = self.0.stdout.take();
        let reading = stdout
            .as_mut()
            .map(|stdout| stdout.read_to_string(&mut out));
        reading.transpose().unwrap();
        let mut stderr = self.0.stderr.take();
        let reading = stderr
            .as_mut()
            .map(|stderr| stderr.read_to_string(&mut err));
        reading.transpose().unwrap();
        (self.0.wait().unwrap().code(), out, err)
    }

    /// Waits for a line on standard output.
    fn wait_for(&mut self, line: &str) {
        let stdout = self.0.stdout.as_mut().unwrap();
        let mut lines = BufReader::with_capacity(1, stdout).lines();
        assert!(lines.any(|read| read.unwrap() == line), "{line}");
    }

    fn signal(&self, signal: &str) {
        let pid = self.0.id().to_string();
        let status = Command::new("kill").args([signal, &pid]).status();
        assert!(status.unwrap().success());
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// A place where tasks meet, as a path that nobody else uses.
fn meeting(name: &str) -> String {
    let name = format!("tfrt-tasks-{}-{name}", std::process::id());
    let path = std::env::temp_dir().join(name);
    format!("unix:{}", path.display())
}

/// Starts a task as an engine does.
fn ranked(words: &[&str], rank: usize, n_ranks: usize, meeting: &str) -> Task {
    let mut command = tfrt(words);
    command
        .env("RANK", rank.to_string())
        .env("WORLD_SIZE", n_ranks.to_string())
        .env("TFRT_RENDEZVOUS", meeting);
    Task::start(command)
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Writes a file of two tasks.
fn two_tasks(name: &str) -> PathBuf {
    let (one, other) = (meeting(&format!("{name}-0")), meeting(&format!("{name}-1")));
    let tasks = format!("[jobs.worker]\n0 = \"{one}\"\n1 = \"{other}\"\n");
    file(&format!("tasks_{name}.toml"), &tasks)
}

#[test]
fn every_task_of_an_engine_runs_one_command() {
    let program = file("tasks_prints.mlir", PRINTS);
    let meeting = meeting("engine");
    let words = ["run", "--cluster", "auto", text(&program)];
    let mut tasks: Vec<Task> = (0..3)
        .map(|rank| ranked(&words, rank, 3, &meeting))
        .collect();
    let (status, out, err) = tasks[0].end();
    assert_eq!(status, Some(0), "{err}");
    let expected = "--- Running 'main':\n'main' returned !tfrt.chain value\n";
    assert_eq!(out, expected, "{err}");
    assert_eq!(
        err,
        format!("note: /job:worker/task:0 listens at {meeting}\n")
    );
    for (rank, printed) in [(1, "int32 = 42\n"), (2, "")] {
        let (status, out, err) = tasks[rank].end();
        assert_eq!((status, &*out), (Some(0), printed), "{err}");
        let expected = format!(
            "note: /job:worker/task:{rank} listens at {meeting}.worker.{rank}\n\
             note: /job:worker/task:{rank} of 3 tasks has joined; /job:worker/task:0 leads\n\
             note: the lead has said bye\n"
        );
        assert_eq!(err, expected);
    }
}

#[test]
fn tasks_meet_by_the_variables_of_each_engine() {
    let program = file("tasks_engines.mlir", PRINTS);
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let engines = [
        (
            "torchrun",
            format!("RANK=% WORLD_SIZE=2 LOCAL_RANK=% MASTER_ADDR=127.0.0.1 MASTER_PORT={port}"),
        ),
        (
            "slurm",
            format!(
                "SLURM_PROCID=% SLURM_NTASKS=2 SLURM_STEP_ID=0 SLURM_JOB_ID={} SLURM_STEP_NODELIST=127.0.0.[1-2]",
                std::process::id()
            ),
        ),
        (
            "openmpi",
            format!(
                "OMPI_COMM_WORLD_RANK=% OMPI_COMM_WORLD_SIZE=2 TFRT_RENDEZVOUS={}",
                meeting("openmpi")
            ),
        ),
        (
            "kubernetes",
            format!(
                "KUBERNETES_SERVICE_HOST=10.96.0.1 HOSTNAME=worker-% TFRT_WORLD_SIZE=2 TFRT_RENDEZVOUS={}",
                meeting("kubernetes")
            ),
        ),
    ];
    for (engine, variables) in engines {
        let start = |rank: &str| {
            let mut command = tfrt(&["run", "--cluster", "auto", text(&program)]);
            let variables = variables.replace('%', rank);
            command.envs(variables.split(' ').filter_map(|pair| pair.split_once('=')));
            Task::start(command)
        };
        let (mut lead, mut worker) = (start("0"), start("1"));
        let (status, _, err) = lead.end();
        assert_eq!(status, Some(0), "{engine}: {err}");
        let (status, out, err) = worker.end();
        assert_eq!(
            (status, &*out),
            (Some(0), "int32 = 42\n"),
            "{engine}: {err}"
        );
    }
}

#[test]
fn tasks_of_a_file_are_started_by_hand() {
    let program = file("tasks_by_hand.mlir", PRINTS);
    let cluster = two_tasks("by_hand");
    let cluster = ["--cluster", text(&cluster)];
    let mut lead = Task::start(tfrt(&[&["run"], &cluster[..], &[text(&program)]].concat()));
    let words = [&["worker"], &cluster[..], &["--task", "/job:worker/task:1"]];
    let mut worker = Task::start(tfrt(&words.concat()));
    let (status, _, err) = lead.end();
    assert_eq!(status, Some(0), "{err}");
    let (status, out, err) = worker.end();
    assert_eq!((status, &*out), (Some(0), "int32 = 42\n"), "{err}");
}

#[test]
fn a_task_that_knows_no_cluster_writes_its_address_and_is_told_which_it_is() {
    let program = file("tasks_address.mlir", PRINTS);
    let address = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("tasks_address");
    drop(fs::remove_file(&address));
    let words = [
        "worker",
        "--listen",
        "127.0.0.1:0",
        "--address-file",
        text(&address),
    ];
    let mut worker = Task::start(tfrt(&words));
    let end = Instant::now() + Duration::from_secs(60);
    let found = loop {
        match fs::read_to_string(&address) {
            Ok(found) => break found,
            Err(_) => assert!(Instant::now() < end),
        }
        std::thread::yield_now();
    };
    let lead = meeting("address");
    let tasks = format!("[jobs.worker]\n0 = \"{lead}\"\n1 = \"{}\"\n", found.trim());
    let cluster = file("tasks_address.toml", &tasks);
    let mut lead = Task::start(tfrt(&["run", "--cluster", text(&cluster), text(&program)]));
    let (status, _, err) = lead.end();
    assert_eq!(status, Some(0), "{err}");
    let (status, out, err) = worker.end();
    assert_eq!((status, &*out), (Some(0), "int32 = 42\n"), "{err}");
    assert!(
        err.contains("note: /job:worker/task:1 of 2 tasks has joined"),
        "{err}"
    );
}

#[test]
fn tasks_that_are_missing_are_named() {
    let program = file("tasks_missing.mlir", PRINTS);
    let meeting = meeting("missing");
    let words = [
        "run",
        "--cluster",
        "auto",
        "--join-timeout",
        "3s",
        text(&program),
    ];
    let mut lead = ranked(&words, 0, 4, &meeting);
    let mut worker = ranked(&words, 2, 4, &meeting);
    let (status, out, err) = lead.end();
    assert_eq!((status, &*out), (Some(1), ""), "{err}");
    let expected = "tfrt: error: 2 of 4 tasks are missing after 3s: /job:worker/task:1 (it has not told its address), \
                    /job:worker/task:3 (it has not told its address)";
    assert_eq!(err.lines().nth(1), Some(expected), "{err}");
    let (status, _, err) = worker.end();
    assert_eq!(status, Some(1), "{err}");
    assert_eq!(
        err.lines().nth(1),
        Some("tfrt: error: task /job:worker/task:0 is lost"),
        "{err}"
    );
    let cluster = two_tasks("missing");
    let cluster = ["--cluster", text(&cluster), "--join-timeout", "300ms"];
    let (status, _, err) =
        Task::start(tfrt(&[&["run"], &cluster[..], &[text(&program)]].concat())).end();
    assert_eq!(status, Some(1), "{err}");
    let begin =
        "tfrt: error: 1 of 2 tasks is missing after 300ms: /job:worker/task:1 (can't dial unix:";
    assert!(err.lines().nth(1).unwrap().starts_with(begin), "{err}");
    let words = [&["worker"], &cluster[..], &["--task", "/job:worker/task:1"]];
    let (status, _, err) = Task::start(tfrt(&words.concat())).end();
    assert_eq!(status, Some(1), "{err}");
    let begin = "tfrt: error: the lead /job:worker/task:0 was not met after 300ms at unix:";
    assert!(err.lines().nth(1).unwrap().starts_with(begin), "{err}");
}

#[test]
fn tasks_that_disagree_are_told_about_what() {
    let program = file("tasks_disagree.mlir", PRINTS);
    let place = meeting("disagree");
    let words = [
        "run",
        "--cluster",
        "auto",
        "--join-timeout",
        "20s",
        text(&program),
    ];
    let _lead = ranked(&words, 0, 2, &place);
    let rows = [
        (
            ranked(&words, 1, 3, &place),
            "tasks disagree: the lead has heard of 2 tasks, and /job:worker/task:1 of 3",
        ),
        (
            ranked(&words, 2, 3, &place),
            "Failed to get TaskHandle for job_name=worker, task_id=2: the task 2 does not exist.",
        ),
    ];
    for (mut worker, expected) in rows {
        let (status, _, err) = worker.end();
        let expected = format!("tfrt: error: {expected}");
        assert_eq!(
            (status, err.lines().nth(1)),
            (Some(1), Some(&*expected)),
            "{err}"
        );
    }
    // Those that have different secrets do not meet.
    let cluster = two_tasks("secrets");
    let secret = |name, text: &str| file(&format!("tasks_secret_{name}"), text);
    let secrets = [
        secret(0, "sixteen bytes, or more\n"),
        secret(1, "sixteen bytes, of others"),
    ];
    let words = [
        "--cluster",
        text(&cluster),
        "--join-timeout",
        "3s",
        "--secret-file",
    ];
    let words = |index: usize| [&words[..], &[text(&secrets[index])]].concat();
    let mut lead = Task::start(tfrt(&[&["run"], &words(0)[..], &[text(&program)]].concat()));
    let task = ["--task", "/job:worker/task:1"];
    let _worker = Task::start(tfrt(&[&["worker"], &words(1)[..], &task].concat()));
    let (_, _, err) = lead.end();
    let expected = "tfrt: error: 1 of 2 tasks is missing after 3s: /job:worker/task:1 (expected a proof of the shared secret, \
                    found that of another";
    assert!(err.lines().last().unwrap().starts_with(expected), "{err}");
    // Who refuses a connection tells it, each reason once.
    let refusals = err
        .lines()
        .filter(|line| line.starts_with("note: a connection was refused: "));
    assert_eq!(refusals.count(), 1, "{err}");
}

/// Runs a program whose task 1 gets a signal in the middle, and returns what the lead tells, and how long it took.
fn struck(name: &str, signal: &str) -> (Option<i32>, String, Duration) {
    let program = file(&format!("tasks_{name}.mlir"), WAITS);
    let meeting = meeting(name);
    let words = ["run", "--cluster", "auto", text(&program)];
    let mut lead = ranked(&words, 0, 3, &meeting);
    let mut victim = ranked(&words, 1, 3, &meeting);
    let mut other = ranked(&words, 2, 3, &meeting);
    victim.wait_for("int32 = 7");
    let begin = Instant::now();
    victim.signal(signal);
    let (status, out, err) = lead.end();
    let time = begin.elapsed();
    let expected = "/job:worker/task:1 is lost: the RemoteExecute that it was sent may have run";
    assert!(out.contains(expected), "{out}{err}");
    // The others are told that it is over.
    let (other, _, told) = other.end();
    assert_eq!(other, Some(0), "{told}");
    assert!(told.ends_with("note: the lead has said bye\n"), "{told}");
    (status, err, time)
}

#[test]
fn a_task_that_is_killed_fails_what_waits_for_it_at_once() {
    let (status, err, time) = struck("killed", "-KILL");
    assert_eq!(status, Some(3), "{err}");
    // Nobody listens any more: that is sooner than the lease of 10 s.
    assert!(time < Duration::from_secs(8), "{time:?}");
}

#[test]
fn a_task_that_stands_still_is_lost_after_its_lease() {
    let (status, err, time) = struck("stopped", "-STOP");
    assert_eq!(status, Some(3), "{err}");
    assert!(time > Duration::from_secs(8), "{time:?}");
}

#[test]
fn a_lead_that_is_killed_ends_the_others() {
    let program = file("tasks_lead.mlir", WAITS);
    let meeting = meeting("lead");
    let words = ["run", "--cluster", "auto", text(&program)];
    let lead = ranked(&words, 0, 2, &meeting);
    let mut worker = ranked(&words, 1, 2, &meeting);
    worker.wait_for("int32 = 7");
    lead.signal("-KILL");
    let (status, _, err) = worker.end();
    assert_eq!(status, Some(3), "{err}");
    assert!(
        err.ends_with("tfrt: error: task /job:worker/task:0 is lost\n"),
        "{err}"
    );
}

#[test]
fn an_interrupt_ends_a_worker_in_order() {
    let program = file("tasks_interrupt.mlir", WAITS);
    let meeting = meeting("interrupt");
    let words = ["run", "--cluster", "auto", text(&program)];
    let mut lead = ranked(&words, 0, 2, &meeting);
    let mut worker = ranked(&words, 1, 2, &meeting);
    worker.wait_for("int32 = 7");
    worker.signal("-INT");
    let (status, _, err) = worker.end();
    assert_eq!(status, Some(4), "{err}");
    assert!(err.ends_with("tfrt: error: interrupted\n"), "{err}");
    // Its function has failed before it left, which stays in its result, or was lost with it.
    let (status, _, err) = lead.end();
    assert!(matches!(status, Some(0 | 3)), "{err}");
}

#[test]
fn traces_of_all_tasks_are_one_trace() {
    let program = file("tasks_traced.mlir", PRINTS);
    let trace = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("tasks-{job}-{task}.pftrace");
    let words = [
        "run",
        "--cluster",
        "auto",
        "--trace",
        text(&trace),
        text(&program),
    ];
    let place = meeting("traced");
    let mut tasks = [0, 1].map(|rank| ranked(&words, rank, 2, &place));
    let mut bytes = Vec::new();
    for (number, task) in tasks.iter_mut().enumerate() {
        let (status, _, err) = task.end();
        assert_eq!(status, Some(0), "{err}");
        let path = text(&trace).replace("{job}", "worker");
        bytes.extend(fs::read(path.replace("{task}", &number.to_string())).unwrap());
    }
    let trace = Trace::read(&bytes);
    let processes: Vec<&str> = trace.processes.values().map(String::as_str).collect();
    assert_eq!(processes, ["/job:worker/task:0", "/job:worker/task:1"]);
    let of = |kernel: &str| {
        let event = trace.slices("kernel").find(|event| event.name == kernel);
        let event = event.unwrap_or_else(|| panic!("{kernel} is not there"));
        let process = &trace.processes[&trace.parents[&event.track]];
        (process.as_str(), event.at_ns)
    };
    let (asks, asked_at) = of("tfrt_dist.remote_execute");
    let (prints, printed_at) = of("tfrt.print.i32");
    assert_eq!((asks, prints), (processes[0], processes[1]));
    // The clock of the machine is that of both, and is compared to within half a round trip.
    let (least, most) = (asked_at - 50_000_000, asked_at + 20_000_000_000);
    assert!(
        (least..most).contains(&printed_at),
        "{asked_at} {printed_at}"
    );
}

#[test]
fn a_check_measures_each_connection() {
    let meeting = meeting("check");
    let words = ["cluster", "check", "--bytes", "1MiB"];
    let mut lead = ranked(&[&words[..], &["--json"]].concat(), 0, 3, &meeting);
    let _others = [1, 2].map(|rank| ranked(&words, rank, 3, &meeting));
    let (status, out, err) = lead.end();
    assert_eq!(status, Some(0), "{err}");
    let document: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(document["schema"], "tfrt.cluster-check/1");
    let connections = document["connections"].as_array().unwrap();
    assert_eq!(connections.len(), 6);
    for connection in connections {
        assert!(
            connection["round_trip_ns"].as_u64().unwrap() > 0,
            "{connection}"
        );
        assert!(
            connection["bytes_per_second"].as_f64().unwrap() > 0.0,
            "{connection}"
        );
        // They are on one machine, and have one clock.
        let offset = connection["clock_offset_ns"].as_i64().unwrap();
        let round_trip = connection["round_trip_ns"].as_i64().unwrap();
        assert!(offset.abs() <= round_trip, "{connection}");
    }
    assert_eq!(connections[5]["from"], "/job:worker/task:2");
    assert_eq!(connections[5]["to"], "/job:worker/task:1");
}

#[test]
fn a_check_names_the_connections_that_do_not_work() {
    // Task 2 takes fewer bytes at a time than a probe has.
    let places = [0, 1, 2].map(|task| meeting(&format!("check-fails-{task}")));
    let tasks = places.iter().enumerate();
    let tasks: String = tasks
        .map(|(task, place)| format!("{task} = \"{place}\"\n"))
        .collect();
    let jobs = format!("[jobs.worker]\n{tasks}");
    let cluster = file("tasks_check_fails.toml", &jobs);
    let strict = format!("{jobs}[security.quotas]\nrequest_bytes = 100000\n");
    let strict = file("tasks_check_fails_strict.toml", &strict);
    let start = |words: &[&str], cluster: &Path, task: &str| {
        let cluster = ["--cluster", text(cluster), "--task", task];
        Task::start(tfrt(&[words, &cluster].concat()))
    };
    let words = ["cluster", "check", "--bytes", "1MiB"];
    let mut lead = start(&words, &cluster, "/job:worker/task:0");
    let _other = start(&["worker"], &cluster, "/job:worker/task:1");
    let _strict = start(&["worker"], &strict, "/job:worker/task:2");
    let (status, out, err) = lead.end();
    assert_eq!(status, Some(1), "{err}");
    let is_failed = |line: &&str| !line.contains(": round trip ");
    let failed: Vec<&str> = out.lines().filter(is_failed).collect();
    let [one, other] = failed[..] else {
        panic!("{out}")
    };
    let why = "requests of a task that are not answered yet may have 100000 bytes: with another they have ";
    for (line, from) in [(one, 0), (other, 1)] {
        let begin = format!("/job:worker/task:{from} to /job:worker/task:2: ");
        assert!(line.starts_with(&begin) && line.contains(why), "{out}");
    }
    assert_eq!(out.lines().count(), 6, "{out}");
    let expected = "tfrt: error: 2 of 6 connections do not work";
    assert_eq!(err.lines().last(), Some(expected), "{err}");
}

#[test]
fn a_lead_whose_program_does_not_run_ends_the_others_at_once() {
    let program = file("tasks_broken.mlir", "func.func @main() { what }\n");
    let place = meeting("broken");
    let words = ["run", "--cluster", "auto", text(&program)];
    let begin = Instant::now();
    let mut tasks = [1, 2, 0].map(|rank| ranked(&words, rank, 3, &place));
    let (status, _, err) = tasks[2].end();
    assert_eq!(status, Some(1), "{err}");
    for task in &mut tasks[..2] {
        let (status, _, err) = task.end();
        assert_eq!(status, Some(1), "{err}");
        let expected = "tfrt: error: the lead has failed: its program does not run";
        assert_eq!(err.lines().nth(1), Some(expected), "{err}");
    }
    // They wait for a minute else.
    assert!(begin.elapsed() < Duration::from_secs(30));
}

#[test]
fn options_that_go_together_with_others_only_are_refused() {
    let program = file("tasks_usage.mlir", PRINTS);
    let cluster = two_tasks("usage");
    let (program, cluster) = (text(&program), text(&cluster));
    let tls = "[jobs.worker]\n0 = \"127.0.0.1:1\"\n[tls]\nca = \"a\"\ncert = \"b\"\nkey = \"c\"\n";
    let tls = file("tasks_tls.toml", tls);
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/layer.onnx");
    let rows: [(&[&str], i32, &str); 9] = [
        (
            &["run", "--listen", "a:1", program],
            2,
            "--listen is for tasks of a cluster, which --cluster names",
        ),
        (
            &["worker"],
            1,
            "expected a cluster, or an address to listen at, found none",
        ),
        (
            &["worker", "--listen", "0.0.0.0:0"],
            1,
            "expected an address by which other tasks reach this one, found 0.0.0.0:0",
        ),
        (
            &["worker", "--listen", "x"],
            2,
            "--listen: expected an address such as host:7000 or unix:/path, found 'x'",
        ),
        (
            &[
                "worker",
                "--cluster",
                cluster,
                "--task",
                "/job:worker/task:0",
            ],
            2,
            "/job:worker/task:0 leads, and runs the program: `tfrt run --cluster ..`",
        ),
        (
            &[
                "worker",
                "--cluster",
                cluster,
                "--task",
                "/job:worker/task:7",
            ],
            1,
            "Failed to get TaskHandle for job_name=worker, task_id=7: the task 7 does not exist.",
        ),
        (
            &["run", "--cluster", "auto", program],
            1,
            "no cluster was found: neither TFRT_CLUSTER nor variables of torchrun, Slurm, Open MPI or Kubernetes are set",
        ),
        (
            &["run", "--cluster", cluster, "--random", model],
            2,
            "--cluster is for programs: a model is run by one task",
        ),
        (
            &["run", "--cluster", text(&tls), program],
            1,
            match cfg!(feature = "tls") {
                true => "tls.ca, 'a': can't be read: No such file or directory (os error 2)",
                false => "tls: this build has no TLS (cargo feature `tls`)",
            },
        ),
    ];
    for (words, expected_status, expected) in rows {
        let (status, _, err) = Task::start(tfrt(words)).end();
        let found = err
            .lines()
            .find_map(|line| line.strip_prefix("tfrt: error: "));
        assert_eq!(
            (status, found),
            (Some(expected_status), Some(expected)),
            "{err}"
        );
    }
    let (status, _, err) = Task::start(tfrt(&["worker", "--cluster", cluster])).end();
    assert_eq!(status, Some(1));
    let expected = "this one is: name it, as in --task /job:worker/task:1";
    assert!(err.contains(expected), "{err}");
}
