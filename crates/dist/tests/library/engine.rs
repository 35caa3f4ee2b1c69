//! Engines, by the variables that they set.

use tfrt_async::{Error, ErrorCode};
use tfrt_dist::engine::{Engine, Placement, detect, expand_hosts};

/// Detects with variables: `NAME=value`, separated by spaces.
fn detected(variables: &str) -> Result<Option<Placement>, Error> {
    let look_up = |name: &str| {
        let mut pairs = variables.split(' ').filter_map(|pair| pair.split_once('='));
        pairs
            .find(|pair| pair.0 == name)
            .map(|pair| pair.1.to_owned())
    };
    detect(&look_up)
}

fn told(variables: &str) -> String {
    match detected(variables) {
        Ok(None) => "none".to_owned(),
        Ok(Some(placement)) => format!("{placement}, at {}", placement.rendezvous),
        Err(error) => error.message().to_owned(),
    }
}

const SLURM: &str = "SLURM_STEP_ID=3 SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_LOCALID=0 SLURM_JOB_ID=1234 SLURM_STEP_NODELIST=n[1-2]";
const OPEN_MPI: &str = "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=1";
const TORCHRUN: &str = "RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 MASTER_ADDR=10.0.0.1 MASTER_PORT=29500";
const POD: &str = "KUBERNETES_SERVICE_HOST=10.96.0.1 HOSTNAME=worker-1 TFRT_WORLD_SIZE=2";

#[test]
fn each_engine_is_known_by_its_variables() {
    assert_eq!(told(""), "none");
    assert_eq!(told(TORCHRUN), "torchrun: rank 1 of 2, at 10.0.0.1:29500");
    assert_eq!(told(SLURM), "slurm: rank 1 of 2, at n1:28257");
    let met = format!("{OPEN_MPI} TFRT_RENDEZVOUS=127.0.0.1:7000");
    assert_eq!(told(&met), "openmpi: rank 1 of 2, at 127.0.0.1:7000");
    let pod = format!("{POD} TFRT_SERVICE=workers");
    assert_eq!(
        told(&pod),
        "kubernetes: rank 1 of 2, at worker-0.workers:7000"
    );
    let job = format!("{POD} TFRT_SERVICE=workers JOB_COMPLETION_INDEX=0");
    assert_eq!(
        told(&job),
        "kubernetes: rank 0 of 2, at worker-0.workers:7000"
    );
    let ipv6 = TORCHRUN.replace("10.0.0.1", "fe80::1");
    assert_eq!(told(&ipv6), "torchrun: rank 1 of 2, at [fe80::1]:29500");
    let placement = detected(SLURM).unwrap().unwrap();
    assert_eq!(placement.engine, Engine::Slurm);
    assert_eq!(placement.local_rank, Some(0));
    let names = placement.variables.iter().map(|(name, _)| *name);
    assert_eq!(
        names.collect::<Vec<_>>(),
        [
            "SLURM_PROCID",
            "SLURM_NTASKS",
            "SLURM_LOCALID",
            "SLURM_STEP_NODELIST",
            "SLURM_JOB_ID",
            "SLURM_STEP_ID",
        ]
    );
    // What others set alone is no engine: a variable RANK, the script of a batch job, a pod.
    assert_eq!(told("RANK=3"), "none");
    assert_eq!(told("SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_JOB_ID=1"), "none");
    assert_eq!(
        told("KUBERNETES_SERVICE_HOST=10.96.0.1 HOSTNAME=odd"),
        "none"
    );
}

#[test]
fn engines_that_disagree_are_both_named() {
    let both = format!("{SLURM} {OPEN_MPI} TFRT_RENDEZVOUS=n1:7000");
    assert_eq!(told(&both), "slurm: rank 1 of 2, at n1:7000");
    // The agents of mpirun are tasks of a step, which say nothing that is needed.
    let both = format!("{SLURM} {OPEN_MPI}");
    assert_eq!(told(&both), "slurm: rank 1 of 2, at n1:28257");
    // By mpirun several processes may be started by an agent, and have its rank in the step.
    let both = format!("{SLURM} {}", OPEN_MPI.replace("SIZE=2", "SIZE=3"));
    assert_eq!(
        told(&both),
        "two engines say different things: slurm: rank 1 of 2 (SLURM_PROCID=1, SLURM_NTASKS=2), and openmpi: rank 1 of 3 \
         (OMPI_COMM_WORLD_RANK=1, OMPI_COMM_WORLD_SIZE=3); name one: --cluster slurm or --cluster openmpi"
    );
    let both = format!("{SLURM} {}", TORCHRUN.replace("RANK=1 W", "RANK=0 W"));
    let error = detected(&both).unwrap_err();
    assert_eq!(error.code(), ErrorCode::FailedPrecondition);
    assert_eq!(
        error.message(),
        "two engines say different things: torchrun: rank 0 of 2 (RANK=0, WORLD_SIZE=2), and slurm: rank 1 of 2 \
         (SLURM_PROCID=1, SLURM_NTASKS=2); name one: --cluster torchrun or --cluster slurm"
    );
}

#[test]
fn variables_that_are_wrong_or_missing_are_named() {
    let rows = [
        (
            TORCHRUN.replace("RANK=1 W", "RANK=one W"),
            "RANK: expected a number from 0 to 2147483647, found 'one'",
        ),
        (
            TORCHRUN.replace("WORLD_SIZE=2 ", ""),
            "RANK is set, but WORLD_SIZE is not",
        ),
        (
            TORCHRUN.replace("MASTER_PORT=29500", ""),
            "MASTER_ADDR is set, but MASTER_PORT is not",
        ),
        (
            TORCHRUN.replace("29500", "99999"),
            "MASTER_ADDR, MASTER_PORT: expected a port from 0 to 65535 behind the last ':', found '10.0.0.1:99999'",
        ),
        (
            TORCHRUN.replace("RANK=1 W", "RANK=2 W"),
            "torchrun: expected a rank below the number of 2 tasks, found 2",
        ),
        (
            SLURM.replace("n[1-2]", "n[2-1]"),
            "SLURM_STEP_NODELIST: expected numbers and ranges such as 1-3 in the brackets of 'n[2-1]', found '2-1'",
        ),
        (
            OPEN_MPI.to_owned(),
            "Open MPI states no address at which the tasks could meet: expected TFRT_RENDEZVOUS, as in mpirun -x \
             TFRT_RENDEZVOUS=host:7000",
        ),
        (
            format!("{OPEN_MPI} TFRT_RENDEZVOUS=here"),
            "TFRT_RENDEZVOUS: expected an address such as host:7000 or unix:/path, found 'here'",
        ),
        (
            POD.to_owned(),
            "TFRT_WORLD_SIZE is set, but neither TFRT_SERVICE, the headless service of the pods, nor TFRT_RENDEZVOUS is",
        ),
        (
            POD.replace("worker-1", "worker"),
            "HOSTNAME: expected the name of a pod and its number, as in worker-1, found 'worker'",
        ),
    ];
    for (variables, expected) in rows {
        assert_eq!(told(&variables), expected, "{variables}");
    }
}

#[test]
fn lists_of_hosts_are_expanded() {
    let expanded = |list: &str| expand_hosts(list).map(|hosts| hosts.join(" "));
    let rows = [
        ("n1", "n1"),
        ("n[1-2]", "n1 n2"),
        ("n[08-10,3],m1", "n08 n09 n10 n3 m1"),
        ("r[1-2]n[0-1]-ib", "r1n0-ib r1n1-ib r2n0-ib r2n1-ib"),
        ("a,b,", "a b"),
    ];
    for (list, expected) in rows {
        assert_eq!(expanded(list).unwrap(), expected, "{list}");
    }
    for list in ["", "n[1", "n1]", "n[[1]]", "n[a]", "n[1-]", "n[]", "n[+1]"] {
        assert!(expanded(list).is_err(), "{list}");
    }
    for list in [
        "n[0-65536]",
        "n[0-18446744073709551615]",
        "n[0-999]m[0-999]",
        "a[0-40000],b[0-40000]",
    ] {
        let error = expanded(list).unwrap_err();
        assert!(error.message().contains("at most 65536 hosts"), "{error}");
    }
}
