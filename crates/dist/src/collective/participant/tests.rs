//! Tests of groups of some tasks, losses, deadlines and cancellations, which programs can't bring about.

use std::time::Duration;

use tfrt_async::Value;
use tfrt_async::queue::ManualClock;
use tfrt_host::kernel::KernelRegistry;
use tfrt_tensor::{DType, DenseHostTensor};

use super::*;
use crate::cluster::Cluster;
use crate::collective::{Function, Operation, Order};
use crate::context::{ContextConfig, DistributedContext};
use crate::ids::Incarnation;
use crate::server::Server;
use crate::transport::local::LocalNetwork;

/// Three tasks within this process, of which `two` has the first two.
struct Bed {
    host: HostContext,
    clock: Arc<ManualClock>,
    network: LocalNetwork,
    cluster: Cluster,
    servers: Vec<Server>,
    contexts: Vec<Arc<DistributedContext>>,
}

impl Bed {
    fn new() -> Bed {
        let clock = Arc::new(ManualClock::new());
        let builder = HostContext::builder(KernelRegistry::new());
        let host = builder.clock(clock.clone()).build();
        let network = LocalNetwork::new();
        let cluster = Cluster::from_toml(
            "[jobs.w]\n0 = 'local:1'\n1 = 'local:2'\n2 = 'local:3'\n[groups]\none = ['/job:w/task:0']\ntwo = ['/job:w/task:0', '/job:w/task:1']\n",
        )
        .unwrap();
        let tasks: Vec<(ClusterTask, Address)> = cluster
            .tasks()
            .map(|(task, address)| (task, address.clone()))
            .collect();
        let servers: Vec<Server> = tasks
            .iter()
            .map(|(_, address)| {
                let transport = network.listen(&host, address.clone()).unwrap();
                Server::new(&host, Arc::new(transport))
            })
            .collect();
        let contexts = servers.iter().zip(&tasks).map(|(server, (task, _))| {
            let config = ContextConfig {
                cluster: cluster.clone(),
                task: task.clone(),
            };
            server.create_context(ContextId(7), config).unwrap()
        });
        Bed {
            contexts: contexts.collect(),
            host,
            clock,
            network,
            cluster,
            servers,
        }
    }

    fn key(&self, group: &str) -> Key {
        Key {
            group: group.to_owned(),
            instance: "k".to_owned(),
        }
    }

    /// Adds one element, in place.
    fn sum(&self, task: usize, group: &str, seconds: u64) -> AsyncValue<Tensor> {
        self.sum_many(task, group, seconds, 1)
    }

    fn sum_many(&self, task: usize, group: &str, seconds: u64, n: usize) -> AsyncValue<Tensor> {
        let (allocator, ones) = (self.host.allocator(), vec![1_i32; n]);
        let tensor = DenseHostTensor::from_slice(allocator, &[n], &ones).unwrap();
        self.sum_in(&tensor, task, group, seconds)
    }

    fn sum_in(
        &self,
        tensor: &DenseHostTensor,
        task: usize,
        group: &str,
        seconds: u64,
    ) -> AsyncValue<Tensor> {
        let members = self.cluster.group(group).unwrap().to_vec();
        let part = self.contexts[task].collectives();
        let deadline = self.host.now() + Duration::from_secs(seconds);
        let call = Call {
            key: self.key(group),
            operation: Operation::AllReduce {
                function: Function::Sum,
                leaves: members.len(),
                order: Order::Tree,
            },
            members,
            dtype: DType::I32,
            extents: tensor.shape().to_dims().to_vec(),
            result_extents: None,
            deadline: part.deadline(Some(deadline)),
        };
        let tensors = Tensors::reduced(self.host.allocator(), tensor, tensor).unwrap();
        part.call(call, tensors)
    }

    fn settle(&self) {
        self.host.queue().quiesce().unwrap();
    }

    fn sum_of(&self, value: AsyncValue<Tensor>) -> i32 {
        let tensor = self.outcome(value).unwrap();
        let reading = tensor.as_dense().unwrap().read().unwrap();
        let elements = reading.elements::<i32>().unwrap();
        assert!(elements.iter().all(|element| *element == elements[0]));
        elements[0]
    }

    fn error_of(&self, value: AsyncValue<Tensor>) -> (ErrorCode, String) {
        let error = self.outcome(value).unwrap_err();
        (error.code(), error.message().to_owned())
    }

    fn outcome<T: Value + Clone>(&self, value: AsyncValue<T>) -> Result<T, Error> {
        let until = Instant::now() + Duration::from_secs(20);
        let values = [value.as_any().clone()];
        assert!(self.host.queue().await_until(&values, Some(until)).unwrap());
        let value = value.settled();
        value.get().unwrap().cloned().map_err(Error::clone)
    }

    fn address(&self, task: usize) -> Address {
        let config = self.contexts[task].config();
        config.cluster.address(&config.task).unwrap().clone()
    }
}

#[test]
fn members_of_a_group_go_without_other_tasks() {
    let bed = Bed::new();
    let other = bed.sum(2, "two", 10);
    let message = "The current task /job:w/task:2 is not part of the collective group two";
    let expected = (ErrorCode::InvalidArgument, message.to_owned());
    assert_eq!(bed.error_of(other), expected);
    let both = [bed.sum(0, "two", 10), bed.sum(1, "two", 10)];
    assert_eq!(both.map(|sum| bed.sum_of(sum)), [2, 2]);
}

#[test]
fn messages_that_come_twice_count_once() {
    let bed = Bed::new();
    bed.network.set_duplicates(true);
    let all = [0, 1, 2].map(|task| bed.sum(task, "all", 10));
    assert_eq!(all.map(|sum| bed.sum_of(sum)), [3, 3, 3]);
}

#[test]
fn a_member_that_is_lost_fails_all() {
    let bed = Bed::new();
    let waiting = [bed.sum(0, "all", 10), bed.sum(1, "all", 10)];
    bed.settle();
    assert!(waiting.iter().all(|sum| !sum.is_settled()));
    bed.network.set_cut(&bed.address(1), &bed.address(2), true);
    let expected = (
        ErrorCode::Unavailable,
        "task /job:w/task:2 is lost".to_owned(),
    );
    for sum in waiting {
        assert_eq!(bed.error_of(sum), expected);
    }
    // Who calls later is told.
    let code = bed.error_of(bed.sum(2, "all", 10)).0;
    assert_eq!(code, ErrorCode::Unavailable);
}

#[test]
fn a_member_that_does_not_call_in_time_is_named() {
    let bed = Bed::new();
    let waiting = [bed.sum(0, "two", 10), bed.sum(1, "all", 1000)];
    bed.settle();
    bed.clock.advance(Duration::from_secs(11));
    let [late, other] = waiting;
    let (code, message) = bed.error_of(late);
    assert_eq!(code, ErrorCode::DeadlineExceeded);
    assert!(
        message.ends_with("it waited for /job:w/task:1"),
        "{message}"
    );
    assert!(!other.is_settled());
    bed.contexts[1]
        .collectives()
        .cancel(bed.key("all"), Error::cancelled("enough"));
    let expected = (ErrorCode::Cancelled, "enough".to_owned());
    assert_eq!(bed.error_of(other), expected);
}

#[test]
fn a_cancelled_call_fails_all_members() {
    let bed = Bed::new();
    let first = bed.sum(0, "two", 10);
    let reason = Error::cancelled("enough");
    bed.contexts[0].collectives().cancel(bed.key("two"), reason);
    let second = bed.sum(1, "two", 10);
    for sum in [first, second] {
        let expected = (ErrorCode::Cancelled, "enough".to_owned());
        assert_eq!(bed.error_of(sum), expected);
    }
}

#[test]
fn a_context_that_is_closed_fails_what_runs_on_all_members() {
    let bed = Bed::new();
    let waiting = [bed.sum(0, "all", 10), bed.sum(1, "all", 10)];
    bed.settle();
    bed.servers[1].close_context(ContextId(7)).unwrap();
    for sum in waiting {
        let expected = (ErrorCode::Cancelled, "context 7 was closed".to_owned());
        assert_eq!(bed.error_of(sum), expected);
    }
    let after = bed.error_of(bed.sum(1, "two", 10));
    assert_eq!(after.0, ErrorCode::Cancelled);
}

#[test]
fn a_tensor_that_somebody_is_writing_fails_all_members() {
    let bed = Bed::new();
    let tensor = DenseHostTensor::from_slice(bed.host.allocator(), &[1], &[1_i32]).unwrap();
    let writing = tensor.write().unwrap();
    let sums = [
        bed.sum_in(&tensor, 0, "one", 10),
        bed.sum_in(&tensor, 0, "two", 10),
        bed.sum(1, "two", 10),
    ];
    for sum in sums {
        assert_eq!(bed.error_of(sum).0, ErrorCode::FailedPrecondition);
    }
    drop(writing);
}

#[test]
fn what_is_no_message_is_refused() {
    let bed = Bed::new();
    let part = bed.contexts[0].collectives();
    let caller = |address| Caller {
        address,
        incarnation: Incarnation::draw(),
        task: None,
    };
    let refused = |address, payload: Vec<&'static [u8]>| {
        let buffers = payload.into_iter().map(HostBuffer::from_owner);
        let error = part.arrived(&caller(address), &Payload(buffers.collect()));
        error.unwrap_err().message().to_owned()
    };
    let peer = || bed.address(1);
    assert!(refused(peer(), vec![]).contains("1 or 2 buffers, found 0"));
    assert!(refused(peer(), vec![b"\x09"]).contains("version 1, found 9"));
    let confirm = [1, 2, 0, 0, 0, 0, 0, 0, 0, 0].as_slice();
    assert!(refused(peer(), vec![confirm, b"x"]).contains("and behind no other"));
    let stranger = Address::parse("local:9").unwrap();
    assert!(refused(stranger, vec![confirm]).contains("where no task of the context listens"));
}

/// Draws numbers, the same ones from a seed.
struct Draw(u64);

impl Draw {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % n as u64).unwrap()
    }
}

/// Delivers held messages in any order, some of them twice, until there are none; returns how many there were.
fn deliver(bed: &Bed, draw: &mut Draw, most: usize) -> usize {
    for n in 0..most {
        bed.settle();
        let next = bed.network.deliverable();
        if next.is_empty() {
            return n;
        }
        let index = next[draw.below(next.len())];
        bed.network.release(index, 1 + draw.below(2));
    }
    most
}

#[test]
fn schedules_of_messages_end_alike_on_all_that_are_there() {
    let mut n_failed = 0;
    for seed in 1_u64..=100 {
        let mut draw = Draw(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let bed = Bed::new();
        bed.network.set_held(true);
        // Some travel with the announcements.
        let n_elements = [1, 5000][draw.below(2)];
        let sums = [0, 1, 2].map(|task| bed.sum_many(task, "all", 10, n_elements));
        let is_cut = draw.below(2) == 0;
        if is_cut {
            let before = draw.below(40);
            deliver(&bed, &mut draw, before);
            for other in [0, 1] {
                let (one, other) = (bed.address(2), bed.address(other));
                bed.network.set_cut(&one, &other, true);
            }
        }
        deliver(&bed, &mut draw, usize::MAX);
        bed.settle();
        // Nobody is left waiting; who was cut off ends, in whichever way.
        let ends = sums.map(|sum| bed.outcome(sum.clone()).is_ok().then(|| bed.sum_of(sum)));
        assert_eq!(ends[0], ends[1], "seed {seed}");
        assert!(is_cut || ends == [Some(3); 3], "seed {seed}");
        n_failed += usize::from(ends[0].is_none());
    }
    assert!((1..100).contains(&n_failed), "{n_failed} have failed");
}
