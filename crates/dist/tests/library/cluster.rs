//! Files of clusters, and names of tasks.

use tfrt_async::{ClusterTask, ErrorCode};
use tfrt_dist::cluster::{Address, Cluster};
use tfrt_dist::task;

const TWO: &str = r#"
lead = "/job:worker/task:0"

[jobs.worker]
0 = "10.0.0.1:7000"
1 = "[fe80::2]:7000"

[jobs.ps]
4 = "unix:/run/ps.sock"

[groups]
workers = ["/job:worker/task:1", "/job:worker/task:0"]

[tls]
ca = "ca.pem"
cert = "task.pem"
key = "task.key"
"#;

fn task_of(job: &str, task: u32) -> ClusterTask {
    ClusterTask {
        job: job.to_owned(),
        task,
    }
}

#[test]
fn clusters_are_read_and_written() {
    let cluster = Cluster::from_toml(TWO).unwrap();
    assert_eq!(cluster.n_tasks(), 3);
    assert_eq!(*cluster.lead(), task_of("worker", 0));
    let address = |job, task| cluster.address(&task_of(job, task)).map(Address::to_string);
    assert_eq!(address("worker", 1).unwrap(), "[fe80::2]:7000");
    assert_eq!(address("ps", 4).unwrap(), "unix:/run/ps.sock");
    let error = address("worker", 2).unwrap_err();
    assert_eq!(error.code(), ErrorCode::TaskNotFound);
    assert_eq!(
        error.message(),
        "Failed to get TaskHandle for job_name=worker, task_id=2: the task 2 does not exist."
    );
    let error = address("odd", 0).unwrap_err();
    assert!(
        error.message().ends_with("the job odd does not exist."),
        "{error}"
    );
    let workers = [task_of("worker", 1), task_of("worker", 0)];
    assert_eq!(cluster.group("workers").unwrap(), workers);
    assert_eq!(cluster.group("all").unwrap().len(), 3);
    assert_eq!(cluster.tls().unwrap().key, "task.key");
    assert_eq!(Cluster::from_toml(&cluster.to_toml()).unwrap(), cluster);
    let json = r#"{"jobs": {"worker": {"0": "a:1"}}}"#;
    let cluster = Cluster::from_json(json).unwrap();
    assert_eq!(*cluster.lead(), task_of("worker", 0));
    let addresses = vec![Address::parse("a:1").unwrap()];
    assert_eq!(Cluster::of_job("worker", addresses).unwrap(), cluster);
}

#[test]
fn wrong_files_are_told_with_the_entry() {
    let told = |text: &str| Cluster::from_toml(text).unwrap_err().message().to_owned();
    let rows = [
        ("", "missing field `jobs`"),
        ("jobs = {}", "jobs: expected a task or more, found none"),
        ("[jobs.worker]", "jobs: expected a task or more, found none"),
        ("a\nb = [", "line 1: "),
        ("jobs = {}\nodd = 1", "unknown field `odd`"),
        (
            "[jobs.1st]\n0 = 'a:1'",
            "jobs: expected names of letters, digits and '_' that begin with a letter, found '1st'",
        ),
        (
            "[jobs.w]\n01 = 'a:1'",
            "jobs.w: expected numbers of tasks below 2^31 without leading zeros, found '01'",
        ),
        (
            "[jobs.w]\n0 = 'a'",
            "jobs.w.0: expected an address such as host:7000 or unix:/path, found 'a'",
        ),
        (
            "[jobs.w]\n0 = 'a:+7'",
            "jobs.w.0: expected a port from 0 to 65535 behind the last ':', found 'a:+7'",
        ),
        (
            "[jobs.w]\n0 = 'a b:7'",
            "jobs.w.0: expected a host of letters, digits, '.', '-' and '_', or an IPv6 address in brackets, found 'a b:7'",
        ),
        (
            "[jobs.w]\n0 = 'unix:run'",
            "jobs.w.0: expected an absolute path of less than 108 bytes behind unix:, found 'unix:run'",
        ),
        (
            "[jobs.w]\n0 = 'a:1'\n1 = 'a:1'",
            "expected an address for each task, found a:1 for both /job:w/task:0 and /job:w/task:1",
        ),
        (
            "lead = '/job:v/task:0'\n[jobs.w]\n0 = 'a:1'",
            "lead: Failed to get TaskHandle for job_name=v, task_id=0: the job v does not exist.",
        ),
        (
            "lead = 'w0'\n[jobs.w]\n0 = 'a:1'",
            "lead: Error parsing task name \"w0\": expected /job: and a name, as in /job:worker/task:1",
        ),
        (
            "[jobs.w]\n0 = 'a:1'\n[groups]\ng = []",
            "groups.g: expected members, found none",
        ),
        (
            "[jobs.w]\n0 = 'a:1'\n[groups]\ng = ['/job:w/task:0', '/job:w/task:0']",
            "groups.g: /job:w/task:0 is a member twice",
        ),
        (
            "[jobs.w]\n0 = 'a:1'\n[groups]\ng = ['/job:w/task:7']",
            "groups.g: Failed to get TaskHandle",
        ),
    ];
    for (text, expected) in rows {
        let found = told(text);
        assert!(found.contains(expected), "{text:?}: {found}");
    }
}

#[test]
fn names_of_tasks_are_parsed_with_or_without_a_device() {
    for text in [
        "/job:worker_2/task:10",
        "/job:worker_2/task:10/device:CPU:0",
        "/job:worker_2/task:10device:GPU:0",
    ] {
        assert_eq!(
            task::parse(text).unwrap(),
            task_of("worker_2", 10),
            "{text}"
        );
    }
    for text in [
        "",
        "worker",
        "/job:",
        "/job:/task:0",
        "/job:2w/task:0",
        "/job:w-2/task:0",
        "/job:w/task:",
        "/job:w/task:00",
        "/job:w/task:-1",
        "/job:w/task:2147483648",
        "/job:w/task:99999999999999999999",
    ] {
        let error = task::parse(text).unwrap_err();
        assert_eq!(error.code(), ErrorCode::InvalidArgument);
        let begin = format!("Error parsing task name \"{text}\": expected ");
        assert!(error.message().starts_with(&begin), "{error}");
    }
}

#[test]
fn an_address_has_one_form_whatever_the_way_it_is_written() {
    for (written, form) in [
        ("Host.Example:7000", "host.example:7000"),
        ("[FE80:0:0::2]:7000", "[fe80::2]:7000"),
        ("unix:/run//./w1", "unix:/run/w1"),
        ("127.0.0.1:07000", "127.0.0.1:7000"),
    ] {
        assert_eq!(Address::parse(written).unwrap().to_string(), form);
    }
    assert!(Address::parse("unix:/").is_err());
    // Two tasks at one place are found, however it is written.
    let jobs = "[jobs.w]\n0 = \"a:1\"\n1 = \"A:1\"\n";
    let error = Cluster::from_toml(jobs).unwrap_err();
    let expected = "expected an address for each task, found a:1 for both";
    assert!(error.message().starts_with(expected), "{error}");
}
