//! Joining a cluster, with tasks that are threads of this process.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tfrt_async::{Error, ErrorCode};
use tfrt_dist::cluster::{Address, Cluster};
use tfrt_dist::collective::{Function, Key, all_reduce};
use tfrt_dist::context::ContextConfig;
use tfrt_dist::ids::ContextId;
use tfrt_dist::join::{JoinOptions, Joining, Membership};
use tfrt_dist::server::Server;
use tfrt_dist::task;
use tfrt_dist::transport::local::LocalNetwork;
use tfrt_host::HostContext;
use tfrt_host::kernel::KernelRegistry;
use tfrt_tensor::DenseHostTensor;

/// Longer than anything takes that comes.
const LONG: Duration = Duration::from_secs(60);

struct Bed {
    host: HostContext,
    network: LocalNetwork,
}

fn local(port: u16) -> Address {
    Address::Tcp {
        host: "local".to_owned(),
        port,
    }
}

/// Returns tasks of which the lead's address alone is known.
fn cluster(n_tasks: usize) -> Cluster {
    let addresses = (0..n_tasks).map(|task| match task {
        0 => local(1),
        _ => Address::parse("0.0.0.0:0").unwrap(),
    });
    Cluster::of_job("worker", addresses.collect()).unwrap()
}

fn options(cluster: &Cluster, number: u16, timeout: Duration) -> JoinOptions {
    JoinOptions {
        config: Some(ContextConfig {
            cluster: cluster.clone(),
            task: task::parse(&format!("/job:worker/task:{number}")).unwrap(),
        }),
        timeout: Some(timeout),
        ..JoinOptions::default()
    }
}

impl Bed {
    fn new() -> Bed {
        Bed {
            host: HostContext::builder(KernelRegistry::new()).build(),
            network: LocalNetwork::new(),
        }
    }

    fn joining(&self, port: u16, options: &JoinOptions) -> Joining {
        let transport = self.network.listen(&self.host, local(port)).unwrap();
        Joining::on(&self.host, Arc::new(transport), options)
    }

    /// Joins as so many tasks, each on a thread, and does something as each.
    fn tasks<T: Send>(&self, n_tasks: u16, work: impl Fn(Membership) -> T + Sync) -> Vec<T> {
        let cluster = cluster(n_tasks.into());
        thread::scope(|scope| {
            let (work, cluster) = (&work, &cluster);
            let tasks = (0..n_tasks).map(|number| {
                scope.spawn(move || {
                    let joining = self.joining(number + 1, &options(cluster, number, LONG));
                    work(joining.join().unwrap())
                })
            });
            let tasks: Vec<_> = tasks.collect();
            tasks.into_iter().map(|task| task.join().unwrap()).collect()
        })
    }
}

#[test]
fn tasks_meet_of_which_only_the_lead_is_known() {
    let bed = Bed::new();
    let told = bed.tasks(3, |member| {
        let told = (member.is_lead(), member.context().config().clone());
        match member.is_lead() {
            true => drop(member),
            false => member.serve().unwrap(),
        }
        told
    });
    let leads: Vec<bool> = told.iter().map(|(leads, _)| *leads).collect();
    assert_eq!(leads, [true, false, false]);
    for (_, config) in &told {
        let addresses: Vec<String> = config
            .cluster
            .tasks()
            .map(|(_, at)| at.to_string())
            .collect();
        assert_eq!(addresses, ["local:1", "local:2", "local:3"]);
    }
}

#[test]
fn leaves_of_all_tasks_are_reduced_to_the_same_bits() {
    let reduce = |member: Membership| {
        let context = member.context().clone();
        let host = context.host().clone();
        let ContextConfig { cluster, task } = context.config();
        let me = cluster
            .tasks()
            .position(|(other, _)| other == *task)
            .unwrap();
        let run = tfrt_dist::reduction::ReductionTree::new(8).leaves_of(me, cluster.n_tasks());
        let leaf = |leaf: usize| {
            let values: Vec<f32> = (0..5000)
                .map(|at| 1.0 / (1 + leaf * 5000 + at) as f32)
                .collect();
            DenseHostTensor::from_slice(host.allocator(), &[5000], &values).unwrap()
        };
        let leaves: Vec<DenseHostTensor> = run.map(leaf).collect();
        let result = leaf(9);
        let key = |instance: &str| Key {
            group: "all".to_owned(),
            instance: instance.to_owned(),
        };
        let sum = |instance, leaves: &[DenseHostTensor]| {
            all_reduce(
                &context,
                key(instance),
                Function::Sum,
                8,
                leaves,
                &result,
                None,
            )
        };
        let reduced = sum("one", &leaves);
        host.queue().await_all(&[reduced.as_any().clone()]).unwrap();
        assert!(reduced.error().is_none(), "{:?}", reduced.error());
        let wrong = sum("two", &leaves[1..]);
        assert_eq!(wrong.error().unwrap().code(), ErrorCode::InvalidArgument);
        let bits = result.read().unwrap().elements::<f32>().unwrap().to_vec();
        member.finish(LONG);
        bits.into_iter().map(f32::to_bits).collect::<Vec<u32>>()
    };
    let one = Bed::new().tasks(1, reduce);
    for n_tasks in [2, 3, 8] {
        for bits in Bed::new().tasks(n_tasks, reduce) {
            assert!(bits == one[0], "{n_tasks} tasks");
        }
    }
}

#[test]
fn a_lead_names_who_is_missing_and_a_task_hears_that_it_has_given_up() {
    let bed = Bed::new();
    let cluster = cluster(3);
    let lead = bed.joining(1, &options(&cluster, 0, Duration::from_secs(2)));
    let other = bed.joining(3, &options(&cluster, 2, LONG));
    let (lead, other) = thread::scope(|scope| {
        let lead = scope.spawn(|| lead.join().map(drop));
        let other = scope.spawn(|| other.join().map(drop));
        (lead.join().unwrap(), other.join().unwrap())
    });
    let error = lead.unwrap_err();
    assert_eq!(
        error.message(),
        "1 of 3 tasks is missing after 2s: /job:worker/task:1 (it has not told its address)"
    );
    assert_eq!(error.task().unwrap().to_string(), "/job:worker/task:1");
    let error = other.unwrap_err();
    assert_eq!(error.message(), "task /job:worker/task:0 is lost");
}

#[test]
fn a_lead_that_gives_up_before_it_has_met_the_others_tells_them_why() {
    let bed = Bed::new();
    let cluster = cluster(3);
    let begin = std::time::Instant::now();
    let told = thread::scope(|scope| {
        let others = [1, 2].map(|number: u16| {
            let (bed, cluster) = (&bed, &cluster);
            scope.spawn(move || {
                let joining = bed.joining(number + 1, &options(cluster, number, LONG));
                joining.join().map(drop)
            })
        });
        let lead = bed.joining(1, &options(&cluster, 0, LONG));
        let reason = Error::failed_precondition("the program does not parse");
        lead.give_up(&reason, LONG);
        others.map(|other| other.join().unwrap().unwrap_err())
    });
    for error in told {
        assert_eq!(error.message(), "the program does not parse");
    }
    assert!(begin.elapsed() < LONG / 2);
}

#[test]
fn waiting_for_others_is_stopped_with_a_reason() {
    let bed = Bed::new();
    let joining = bed.joining(2, &JoinOptions::default());
    let stopper = joining.stopper();
    let joined = thread::scope(|scope| {
        let joined = scope.spawn(|| joining.join().map(drop));
        stopper.stop(Error::cancelled("enough"));
        joined.join().unwrap()
    });
    assert_eq!(joined.unwrap_err().message(), "enough");
}

#[test]
fn a_task_works_for_one_lead_of_the_cluster_that_it_knows() {
    let bed = Bed::new();
    let addresses =
        |n_tasks| Cluster::of_job("worker", (1..=n_tasks).map(local).collect()).unwrap();
    let (two, three) = (addresses(2), addresses(3));
    let config = |cluster: &Cluster, number| options(cluster, number, LONG).config.unwrap();
    let outcome = |server: &Server, config: ContextConfig| {
        let made = server.create_single_client(ContextId::draw(), config);
        bed.host
            .queue()
            .await_all(&[made.as_any().clone()])
            .unwrap();
        made.settled().error().cloned()
    };
    let joining = bed.joining(2, &options(&two, 1, LONG));
    let lead = bed.network.listen(&bed.host, local(1)).unwrap();
    let lead = Server::new(&bed.host, Arc::new(lead));
    let third = bed.network.listen(&bed.host, local(3)).unwrap();
    let _third = Server::new(&bed.host, Arc::new(third));
    let error = outcome(&lead, config(&three, 0)).unwrap();
    assert!(
        error
            .message()
            .starts_with("Incompatible distributed configuration"),
        "{error}"
    );
    assert!(outcome(&lead, config(&two, 0)).is_none());
    let error = outcome(&lead, config(&two, 0)).unwrap();
    assert_eq!(error.code(), ErrorCode::FailedPrecondition);
    assert!(error.message().ends_with(", and in no other"), "{error}");
    drop(joining);
}
