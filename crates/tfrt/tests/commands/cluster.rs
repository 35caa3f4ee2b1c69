//! `tfrt cluster show`, in the environments that engines make.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Runs the command with no variables but these: `NAME=value`, separated by spaces.
fn show(variables: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tfrt"));
    command
        .env_clear()
        .args(["cluster", "show"])
        .args(arguments);
    command.envs(variables.split(' ').filter_map(|pair| pair.split_once('=')));
    command.output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn shown(variables: &str, arguments: &[&str]) -> String {
    let output = show(variables, arguments);
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

/// Returns the message of a command that fails by its input.
fn told(variables: &str, arguments: &[&str]) -> String {
    let output = show(variables, arguments);
    assert_eq!(output.status.code(), Some(1), "{variables}");
    assert_eq!(text(&output.stdout), "");
    let message = text(&output.stderr);
    let message = message
        .strip_prefix("tfrt: error: ")
        .unwrap_or_else(|| panic!("{message}"));
    message.lines().next().unwrap().to_owned()
}

const TORCHRUN: &str = "RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 MASTER_ADDR=10.0.0.1 MASTER_PORT=29500";
const SLURM: &str = "SLURM_STEP_ID=3 SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_LOCALID=0 SLURM_JOB_ID=1234 SLURM_STEP_NODELIST=n[1-2]";
const OPEN_MPI: &str = "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=0 TFRT_RENDEZVOUS=127.0.0.1:7000";
const POD: &str =
    "KUBERNETES_SERVICE_HOST=10.96.0.1 HOSTNAME=worker-1 TFRT_WORLD_SIZE=2 TFRT_SERVICE=workers";

const TWO_TASKS: &str = r#"{"jobs":{"worker":{"0":"10.0.0.1:7000","1":"10.0.0.2:7000"}}}"#;

/// Writes a file of a test.
fn file(name: &str, text: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, text).unwrap();
    path
}

fn path_of(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn each_engine_is_shown_with_its_variables() {
    let groups = "\n[groups]\nall = [\"/job:worker/task:0\", \"/job:worker/task:1\"]\n";
    let expected = format!(
        "# from torchrun\n\
         # torchrun: rank 1 of 2, 1 on this machine: RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 MASTER_ADDR=10.0.0.1 MASTER_PORT=29500\n\
         # this task is /job:worker/task:1\n\
         # the tasks meet at 10.0.0.1:29500; 0.0.0.0:0 stands for an address that a task tells there\n\
         lead = \"/job:worker/task:0\"\n\n\
         [jobs.worker]\n0 = \"10.0.0.1:29500\"\n1 = \"0.0.0.0:0\"\n{groups}"
    );
    assert_eq!(shown(TORCHRUN, &[]), expected);
    let slurm = shown(SLURM, &["--cluster", "auto"]);
    assert!(
        slurm.contains("# slurm: rank 1 of 2, 0 on this machine: SLURM_PROCID=1"),
        "{slurm}"
    );
    assert!(slurm.contains("0 = \"n1:28257\""), "{slurm}");
    let mpi = shown(OPEN_MPI, &[]);
    assert!(mpi.contains("# this task is /job:worker/task:0\n"), "{mpi}");
    assert!(mpi.contains("TFRT_RENDEZVOUS=127.0.0.1:7000\n"), "{mpi}");
    let pod = shown(POD, &[]);
    assert!(pod.contains("1 = \"worker-1.workers:7000\""), "{pod}");
    assert!(!pod.contains("0.0.0.0"), "{pod}");
    // What is shown is a file.
    for shown in [expected, slurm, mpi, pod] {
        let path = file("cluster_shown.toml", &shown);
        let again = self::shown("", &["--cluster", path_of(&path)]);
        let entries = |text: &str| {
            let lines = text.lines().filter(|line| !line.starts_with('#'));
            lines.collect::<Vec<_>>().join("\n")
        };
        assert_eq!(entries(&again), entries(&shown));
    }
}

#[test]
fn a_document_has_the_same() {
    let json = shown(OPEN_MPI, &["--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["schema"], "tfrt.cluster/1");
    assert_eq!(json["source"], "openmpi");
    assert_eq!((&json["rank"], &json["n_ranks"]), (&0.into(), &2.into()));
    assert_eq!(json["variables"]["OMPI_COMM_WORLD_SIZE"], "2");
    assert_eq!(json["cluster"]["jobs"]["worker"]["0"], "127.0.0.1:7000");
    // The cluster is what the variable takes.
    let cluster = json["cluster"].to_string();
    assert!(!cluster.contains(' '), "{cluster}");
    let again = shown(&format!("TFRT_CLUSTER={cluster}"), &["--json"]);
    let again: serde_json::Value = serde_json::from_str(&again).unwrap();
    assert_eq!(again["cluster"], json["cluster"]);
    assert_eq!(again["rank"], serde_json::Value::Null);
}

#[test]
fn files_and_variables_are_sources_too() {
    let path = file("cluster_two.json", TWO_TASKS);
    let shown = self::shown(SLURM, &["--cluster", path_of(&path)]);
    assert!(
        shown.starts_with(&format!("# from {}\n# slurm: rank 1 of 2", path.display())),
        "{shown}"
    );
    assert!(
        shown.contains("# this task is /job:worker/task:1\n"),
        "{shown}"
    );
    let variable = format!("TFRT_CLUSTER={TWO_TASKS}");
    let shown = self::shown(&variable, &[]);
    assert!(shown.starts_with("# from TFRT_CLUSTER\nlead"), "{shown}");
    // An engine that is named is the only one that is asked.
    let both = format!("{SLURM} {}", TORCHRUN.replace("RANK=1 W", "RANK=0 W"));
    let shown = self::shown(&both, &["--cluster", "slurm"]);
    assert!(shown.contains("# from slurm\n"), "{shown}");
}

#[test]
fn sources_that_disagree_are_both_named() {
    let both = format!("{SLURM} {}", TORCHRUN.replace("RANK=1 W", "RANK=0 W"));
    assert_eq!(
        told(&both, &[]),
        "two engines say different things: torchrun: rank 0 of 2 (RANK=0, WORLD_SIZE=2), and slurm: rank 1 of 2 \
         (SLURM_PROCID=1, SLURM_NTASKS=2); name one: --cluster torchrun or --cluster slurm"
    );
    let path = file(
        "cluster_three.toml",
        "[jobs.worker]\n0 = \"a:1\"\n1 = \"b:1\"\n2 = \"c:1\"\n",
    );
    let name = path.display();
    assert_eq!(
        told(TORCHRUN, &["--cluster", path_of(&path)]),
        format!(
            "two sources say different things: {name} has 3 tasks, and torchrun: rank 1 of 2 (RANK=1, WORLD_SIZE=2) says 2"
        )
    );
    let variable = format!("TFRT_CLUSTER={TWO_TASKS}");
    assert_eq!(
        told(&variable, &["--cluster", path_of(&path)]),
        format!(
            "two sources say different things: {name} has 3 tasks, and TFRT_CLUSTER 2 tasks; leave one out"
        )
    );
    let other = file(
        "cluster_other.json",
        &TWO_TASKS.replace("0.2:7000", "0.3:7000"),
    );
    let message = told(&variable, &["--cluster", path_of(&other)]);
    let end = "has /job:worker/task:1 at 10.0.0.3:7000, and TFRT_CLUSTER /job:worker/task:1 at 10.0.0.2:7000; leave one out";
    assert!(message.ends_with(end), "{message}");
}

#[test]
fn variables_and_files_that_are_wrong_are_told() {
    let bad = file("cluster_bad.toml", "[jobs.worker]\n0 = \"nowhere\"\n");
    let name = bad.display().to_string();
    let rows: [(&str, &[&str], &str); 13] = [
        (
            "",
            &[],
            "no cluster was found: neither TFRT_CLUSTER nor variables of torchrun, Slurm, Open MPI or Kubernetes are set",
        ),
        (
            "RANK=x WORLD_SIZE=2",
            &[],
            "RANK: expected a number from 0 to 2147483647, found 'x'",
        ),
        (
            "RANK=0 WORLD_SIZE=-1",
            &[],
            "WORLD_SIZE: expected a number from 0 to 2147483647, found '-1'",
        ),
        (
            "RANK=0 WORLD_SIZE=2",
            &[],
            "RANK is set, but MASTER_ADDR is not",
        ),
        (
            "RANK=5 WORLD_SIZE=2 MASTER_ADDR=a MASTER_PORT=1",
            &[],
            "torchrun: expected a rank below the number of 2 tasks, found 5",
        ),
        (
            "RANK=0 WORLD_SIZE=70000 MASTER_ADDR=a MASTER_PORT=1",
            &[],
            "torchrun: expected at most 65536 tasks, found 70000",
        ),
        (
            "SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_NTASKS=1 SLURM_JOB_ID=1 SLURM_STEP_NODELIST=n[1",
            &[],
            "SLURM_STEP_NODELIST: expected brackets in pairs, found 'n[1'",
        ),
        (
            "OMPI_COMM_WORLD_RANK=0",
            &[],
            "OMPI_COMM_WORLD_RANK is set, but OMPI_COMM_WORLD_SIZE is not",
        ),
        (
            "TFRT_CLUSTER={}",
            &[],
            "TFRT_CLUSTER: missing field `jobs` at line 1 column 2",
        ),
        (
            "TFRT_CLUSTER=cluster.toml",
            &[],
            "TFRT_CLUSTER: expected a cluster as JSON, found 'cluster.toml'; a file is named by --cluster FILE",
        ),
        (
            "KUBERNETES_SERVICE_HOST=10.96.0.1 HOSTNAME=worker-1 TFRT_SERVICE=workers",
            &[],
            "TFRT_SERVICE is set, but TFRT_WORLD_SIZE is not",
        ),
        (
            "",
            &["--cluster", "slurm"],
            "slurm was asked for, but its variables are not set: expected SLURM_PROCID and SLURM_STEP_ID",
        ),
        (
            "",
            &["--cluster", path_of(&bad)],
            "jobs.worker.0: expected an address such as host:7000 or unix:/path, found 'nowhere'",
        ),
    ];
    for (variables, arguments, expected) in rows {
        let message = told(variables, arguments);
        let message = message
            .strip_prefix(&format!("'{name}': "))
            .unwrap_or(&message);
        assert_eq!(message, expected);
    }
    let message = told("", &["--cluster", "/nowhere.toml"]);
    assert!(
        message.starts_with("cannot read '/nowhere.toml': "),
        "{message}"
    );
    let message = told("", &["--cluster", "Slurm"]);
    let others = "; other than files there are auto, torchrun, slurm, openmpi and kubernetes";
    assert!(message.ends_with(others), "{message}");
    let message = told("", &["--cluster", "/dev/zero"]);
    assert!(message.contains("expected a file of at most"), "{message}");
    // Characters that a terminal obeys are shown, not written.
    let message = told("RANK=\u{1b}[2J WORLD_SIZE=2", &[]);
    assert!(!message.contains('\u{1b}'), "{message}");
}
