//! Collectives: their results against a sequential oracle, and their ends under seeded delays and faults.

mod arithmetic;
mod head;
mod simulator;
mod table;
mod threads;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;

use tfrt_async::ErrorCode;
use tfrt_dist::collective::{Call, Function, Key, Operation, Order};
use tfrt_dist::reduction::ReductionTree;
use tfrt_tensor::DType;
use tfrt_tensor::math::number::Real;

use simulator::{End, Fault, Random, Simulation, task};

/// Elements that tests draw, and compare bit by bit.
trait Number: Real {
    fn draw(random: &mut Random) -> Self;
    fn bits(self) -> u64;
}

impl Number for f32 {
    fn draw(random: &mut Random) -> f32 {
        match random.below(200) {
            0 => [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0][random.below(4)],
            _ => {
                let fraction = random.below(20_001) as f32 - 10_000.0;
                fraction * 10_f32.powi(i32::try_from(random.below(9)).unwrap() - 6)
            }
        }
    }

    fn bits(self) -> u64 {
        self.to_bits().into()
    }
}

impl Number for i32 {
    fn draw(random: &mut Random) -> i32 {
        (random.next() & 0xffff_ffff) as u32 as i32
    }

    fn bits(self) -> u64 {
        (self as u32).into()
    }
}

/// Reduces one element of all leaves as the documentation says, without code of the crate.
fn tree<T: Number>(function: Function, leaves: &[T]) -> T {
    if let [only] = leaves {
        return *only;
    }
    let mut left = 1;
    while left * 2 < leaves.len() {
        left *= 2;
    }
    let (left, right) = leaves.split_at(left);
    combine(function, tree(function, left), tree(function, right))
}

fn combine<T: Number>(function: Function, left: T, right: T) -> T {
    match function {
        Function::Sum | Function::Mean => left.plus(right),
        Function::Min => left.least(right),
        Function::Max => left.greatest(right),
    }
}

fn finished<T: Number>(function: Function, value: T, n_leaves: usize) -> T {
    let value = match function {
        Function::Mean => T::mean(value.widened(), n_leaves),
        _ => value,
    };
    if value.same(value) {
        value
    } else {
        T::from_f64(f64::NAN)
    }
}

/// A collective with the data of all members.
struct Drawn<T> {
    operation: Operation,
    dtype: DType,
    /// The leaves of a reduction; what a broadcast sends; each member's tensor of a gathering.
    tensors: Vec<Vec<T>>,
    /// The extents of each member's tensor.
    extents: Vec<Vec<usize>>,
    expected: (Vec<T>, Vec<usize>),
}

fn draw_tensor<T: Number>(random: &mut Random, len: usize) -> Vec<T> {
    (0..len).map(|_| T::draw(random)).collect()
}

fn draw<T: Number>(random: &mut Random, n: usize) -> Drawn<T> {
    let few = random.below(40);
    let len = match n > 16 && random.one_in(2) {
        // Many members halve and double what does not travel with the announcements.
        true => 4097 + random.below(3000),
        false => [0, 1, n - 1, n, few, 300, 4097 + random.below(5000)][random.below(7)],
    };
    match random.below(5) {
        0..3 => {
            let functions = [Function::Sum, Function::Min, Function::Max, Function::Mean];
            let function = functions[random.below(4)];
            let is_ring = random.one_in(4);
            let leaves = match is_ring {
                true => n + random.below(4),
                false if n > 16 => n << random.below(2),
                false => [1, n, 8, 5 + random.below(12)][random.below(4)],
            };
            let tensors: Vec<Vec<T>> = (0..leaves).map(|_| draw_tensor(random, len)).collect();
            let order = if is_ring { Order::Ring } else { Order::Tree };
            let expected = (0..len).map(|at| {
                let column: Vec<T> = tensors.iter().map(|leaf| leaf[at]).collect();
                let value = match is_ring {
                    true => ring(function, &column, n, split_of(at, len, n)),
                    false => tree(function, &column),
                };
                finished(function, value, leaves)
            });
            Drawn {
                operation: Operation::AllReduce {
                    function,
                    leaves,
                    order,
                },
                dtype: T::DTYPE,
                expected: (expected.collect(), vec![len]),
                tensors,
                extents: vec![vec![len]; n],
            }
        }
        3 => {
            let tensor = draw_tensor(random, len);
            Drawn {
                operation: Operation::Broadcast {
                    sender: random.below(n),
                },
                dtype: T::DTYPE,
                tensors: vec![tensor.clone()],
                extents: vec![vec![len]; n],
                expected: (tensor, vec![len]),
            }
        }
        _ => draw_gather(random, n),
    }
}

fn draw_gather<T: Number>(random: &mut Random, n: usize) -> Drawn<T> {
    let (axis, any_shape) = (random.below(3), random.one_in(2));
    let scale = if random.one_in(3) { 20 } else { 3 };
    let base: Vec<usize> = (0..3)
        .map(|_| random.below(scale) + usize::from(scale > 3))
        .collect();
    let extents = (0..n).map(|_| {
        let mut extents = base.clone();
        if any_shape {
            extents[axis] = random.below(scale);
        }
        extents
    });
    let extents: Vec<Vec<usize>> = extents.collect();
    let len = |extents: &Vec<usize>| extents.iter().product::<usize>();
    let tensors: Vec<Vec<T>> = extents
        .iter()
        .map(|it| draw_tensor(random, len(it)))
        .collect();
    // Each element of the result is looked for where it comes from.
    let mut result = base.clone();
    result[axis] = extents.iter().map(|extents| extents[axis]).sum();
    let mut expected = Vec::new();
    for i in 0..result[0] {
        for j in 0..result[1] {
            for k in 0..result[2] {
                let mut at = [i, j, k];
                let mut member = 0;
                while at[axis] >= extents[member][axis] {
                    at[axis] -= extents[member][axis];
                    member += 1;
                }
                let [_, second, third] = extents[member][..] else {
                    unreachable!()
                };
                expected.push(tensors[member][(at[0] * second + at[1]) * third + at[2]]);
            }
        }
    }
    Drawn {
        operation: Operation::AllGather { axis, any_shape },
        dtype: T::DTYPE,
        tensors,
        extents,
        expected: (expected, result),
    }
}

/// Returns the split of an element, and so the member at which a ring begins with it.
fn split_of(at: usize, len: usize, n: usize) -> usize {
    let mut end = 0;
    let lens = (0..n).map(|split| len / n + usize::from(split < len % n));
    lens.take_while(|len| {
        end += len;
        end <= at
    })
    .count()
}

/// Reduces one element from member to member, beginning at one.
fn ring<T: Number>(function: Function, leaves: &[T], n: usize, begin: usize) -> T {
    let owned = ReductionTree::new(leaves.len());
    let of = |member: usize| tree(function, &leaves[owned.leaves_of(member % n, n)]);
    (1..n).fold(of(begin), |sum, next| {
        combine(function, sum, of(begin + next))
    })
}

impl<T: Number> Drawn<T> {
    fn call(&self, key: &Key, member: usize, n: usize) -> (Call, Vec<Vec<T>>, Vec<T>) {
        let extents = self.extents[member].clone();
        let len: usize = extents.iter().product();
        let empty = vec![T::ZERO; len];
        let (inputs, result) = match &self.operation {
            Operation::AllReduce { leaves, .. } => {
                let own = ReductionTree::new(*leaves).leaves_of(member, n);
                (self.tensors[own].to_vec(), empty)
            }
            Operation::Broadcast { sender } if *sender == member => {
                (Vec::new(), self.tensors[0].clone())
            }
            Operation::Broadcast { .. } => (Vec::new(), empty),
            Operation::AllGather { .. } => (
                vec![self.tensors[member].clone()],
                vec![T::ZERO; self.expected.0.len()],
            ),
        };
        let call = Call {
            key: key.clone(),
            members: (0..n).map(task).collect(),
            operation: self.operation.clone(),
            dtype: self.dtype,
            extents,
            result_extents: match self.operation {
                Operation::AllGather {
                    any_shape: false, ..
                } => Some(self.expected.1.clone()),
                _ => None,
            },
            deadline: Duration::from_secs(60),
        };
        (call, inputs, result)
    }

    fn check(&self, result: &[T], extents: &[usize]) {
        assert_eq!(extents, self.expected.1, "{:?}", self.operation);
        let bits = |numbers: &[T]| numbers.iter().map(|x| x.bits()).collect::<Vec<_>>();
        assert_eq!(bits(result), bits(&self.expected.0), "{:?}", self.operation);
    }
}

/// Changes one thing in a member's call; returns whether anything was changed.
fn spoil(random: &mut Random, member: usize, call: &mut Call) -> bool {
    match (random.below(6), &mut call.operation) {
        (0, _) => {
            call.dtype = if call.dtype == DType::F32 {
                DType::I32
            } else {
                DType::F32
            }
        }
        (1, _) => call.extents.push(1),
        (2, Operation::AllReduce { function, .. }) => {
            let other = if *function == Function::Sum {
                Function::Max
            } else {
                Function::Sum
            };
            *function = other;
        }
        (2, Operation::Broadcast { sender }) if call.members.len() > 1 => {
            *sender = (*sender + 1) % call.members.len();
        }
        (2, Operation::AllGather { any_shape, .. }) => *any_shape = !*any_shape,
        (3, operation) => {
            *operation = match operation {
                Operation::Broadcast { .. } => Operation::AllGather {
                    axis: 0,
                    any_shape: true,
                },
                _ => Operation::Broadcast { sender: 0 },
            };
        }
        // A group that lacks another member.
        (5, _) if call.members.len() > 2 => {
            let lacking = (member + 1) % call.members.len();
            call.members.remove(lacking);
        }
        // One that makes no sense by itself.
        (4, Operation::AllReduce { leaves, .. }) => *leaves = 0,
        (4, Operation::AllGather { axis, .. }) => *axis = 7,
        _ => return false,
    }
    true
}

fn key(instance: usize) -> Key {
    Key {
        group: "all".to_owned(),
        instance: instance.to_string(),
    }
}

/// Runs a seed of delays and one kind of fault.
fn run<T: Number + Debug>(seed: u64) {
    let mut random = Random::new(seed ^ 0x5eed);
    let n = match seed % 10 {
        9 => 17 + random.below(24),
        _ => 1 + random.below(8),
    };
    let member = random.below(n);
    let fault = match random.below(15) {
        0..3 => Fault::Kill(member, random.below(1 + 6 * n)),
        10 => {
            let mut victim = |member| (member, random.below(1 + 6 * n));
            Fault::KillTwo([victim(member), victim((member + 1) % n)])
        }
        3..8 => Fault::Cancel(member),
        8 if n > 1 => Fault::Absent(member),
        11 => Fault::Refuse(member),
        9 => Fault::Hurry(member, random.below(20_000) as u64),
        _ => Fault::None,
    };
    let n_collectives = 1 + random.below(3);
    let spoiled = (fault == Fault::None && n > 1 && random.one_in(2)).then_some(member);
    let mut simulation = Simulation::<T>::new(seed, n, fault);
    let mut drawn: BTreeMap<Key, (Drawn<T>, bool)> = BTreeMap::new();
    for instance in 0..n_collectives {
        let one = draw::<T>(&mut random, n);
        let mut is_spoiled = false;
        for each in 0..n {
            let (mut call, mut inputs, result) = one.call(&key(instance), each, n);
            if spoiled == Some(each) && instance == 0 {
                is_spoiled = spoil(&mut random, each, &mut call);
                let len = call.extents.iter().product();
                inputs.resize(inputs.len().max(24), vec![T::ZERO; len]);
            }
            simulation.call(each, call, inputs, result);
        }
        drawn.insert(key(instance), (one, is_spoiled));
    }
    simulation.run();
    if let Fault::Refuse(_) = fault {
        // Nobody waits for the deadline.
        assert!(simulation.ended_at < Duration::from_secs(5));
    }
    for (key, (one, is_spoiled)) in &drawn {
        check(
            &simulation,
            key,
            one,
            fault,
            spoiled.filter(|_| *is_spoiled),
        );
    }
}

fn check<T: Number + Debug>(
    simulation: &Simulation<T>,
    key: &Key,
    drawn: &Drawn<T>,
    fault: Fault,
    spoiled: Option<usize>,
) {
    let n = simulation.is_dead.len();
    let is_there = |member: &usize| !simulation.is_dead[*member] && fault != Fault::Absent(*member);
    let there: Vec<usize> = (0..n).filter(is_there).collect();
    let ends = there.iter().map(|member| {
        let end = simulation.ends.get(&(*member, key.clone()));
        (
            *member,
            end.unwrap_or_else(|| panic!("member {member} did not end {key}")),
        )
    });
    let ends: Vec<(usize, &End<T>)> = ends.collect();
    let n_done = ends
        .iter()
        .filter(|(_, end)| matches!(end, End::Done(..)))
        .count();
    assert!(
        n_done == 0 || n_done == there.len(),
        "{n_done} of {} are done with {key}: {:?}",
        there.len(),
        ends.iter()
            .map(|(member, end)| (member, matches!(end, End::Done(..))))
            .collect::<Vec<_>>()
    );
    let is_fine = fault == Fault::None && spoiled.is_none();
    let must_fail = spoiled.is_some() || matches!(fault, Fault::Absent(_) | Fault::Refuse(_));
    for (member, end) in ends {
        let error = match end {
            End::Done(result, extents) => {
                assert!(!must_fail, "member {member} is done");
                drawn.check(result, extents);
                continue;
            }
            End::Failed(error) => error,
        };
        assert!(!is_fine, "member {member} failed without a fault: {error}");
        let named = error.task().map(|task| task.task as usize);
        let (code, culprit) = match (fault, spoiled) {
            (_, Some(spoiled)) => (ErrorCode::InvalidArgument, spoiled),
            (Fault::Kill(victim, _), _) => (ErrorCode::Unavailable, victim),
            (Fault::KillTwo([(one, _), (other, _)]), _) => {
                let victim = if named == Some(one) { one } else { other };
                (ErrorCode::Unavailable, victim)
            }
            (Fault::Cancel(member), _) => (ErrorCode::Cancelled, member),
            (Fault::Absent(member), _) => (ErrorCode::DeadlineExceeded, member),
            (Fault::Refuse(member), _) => (ErrorCode::FailedPrecondition, member),
            // Those that it waits for are named, which may be any.
            (Fault::Hurry(..), _) => (ErrorCode::DeadlineExceeded, named.unwrap_or(0)),
            (Fault::None, None) => unreachable!("checked above"),
        };
        assert_eq!(error.code(), code, "{error}");
        // Of two that differ each is right; the text has both. So it is for one that lacks the third.
        let is_named = named == Some(culprit) || (n <= 3 && spoiled.is_some());
        assert!(
            is_named,
            "{error}: member {culprit} should be named, {named:?} is"
        );
    }
}

#[test]
fn collectives_end_alike_on_all_members_under_seeded_faults() {
    let (first, n) = match std::env::var("TFRT_COLLECTIVE_SEEDS") {
        Ok(text) => match text.split_once(':') {
            Some((first, n)) => (first.parse().unwrap(), n.parse().unwrap()),
            None => (0, text.parse().unwrap()),
        },
        Err(_) => (0, 200),
    };
    for seed in first..first + n {
        let outcome = std::panic::catch_unwind(|| match seed % 4 {
            0 => run::<i32>(seed),
            _ => run::<f32>(seed),
        });
        if outcome.is_err() {
            panic!("seed {seed} is bad: TFRT_COLLECTIVE_SEEDS={seed}:1 tries it alone");
        }
    }
}

#[test]
fn any_number_of_members_gives_the_bits_of_one() {
    let mut random = Random::new(7);
    for len in [3, 700, 9001] {
        let leaves: Vec<Vec<f32>> = (0..8).map(|_| draw_tensor(&mut random, len)).collect();
        for function in [Function::Sum, Function::Mean, Function::Min, Function::Max] {
            let mut bits = Vec::new();
            for n in 1..=8 {
                let drawn = Drawn {
                    operation: Operation::AllReduce {
                        function,
                        leaves: 8,
                        order: Order::Tree,
                    },
                    dtype: DType::F32,
                    tensors: leaves.clone(),
                    extents: vec![vec![len]; n],
                    expected: (Vec::new(), Vec::new()),
                };
                let mut simulation = Simulation::<f32>::new(n as u64, n, Fault::None);
                for member in 0..n {
                    let (call, inputs, result) = drawn.call(&key(0), member, n);
                    simulation.call(member, call, inputs, result);
                }
                simulation.run();
                for end in simulation.ends.into_values() {
                    let End::Done(result, _) = end else {
                        panic!("{end:?}")
                    };
                    bits.push(result.iter().map(|x| x.to_bits()).collect::<Vec<_>>());
                }
            }
            assert_eq!(bits.len(), 36);
            assert!(
                bits.iter().all(|one| *one == bits[0]),
                "{function:?} of {len}"
            );
        }
    }
}

#[test]
fn the_order_of_the_tree_takes_a_third_more_bytes_than_a_ring_at_most() {
    let len = 100_000;
    let leaf: Vec<f32> = vec![1.0; len];
    let sent = |n: usize, order| {
        let drawn = Drawn {
            operation: Operation::AllReduce {
                function: Function::Sum,
                leaves: 8,
                order,
            },
            dtype: DType::F32,
            tensors: vec![leaf.clone(); 8],
            extents: vec![vec![len]; n],
            expected: (Vec::new(), Vec::new()),
        };
        let mut simulation = Simulation::<f32>::new(n as u64, n, Fault::None);
        for member in 0..n {
            let (call, inputs, result) = drawn.call(&key(0), member, n);
            simulation.call(member, call, inputs, result);
        }
        simulation.run();
        simulation.n_bytes as f64
    };
    let ratios = (2..=8).map(|n| {
        let (tree, ring) = (sent(n, Order::Tree), sent(n, Order::Ring));
        // Each member of a ring sends each split but one, twice.
        let least = (2 * (n - 1) * size_of_val(&leaf[..])) as f64;
        assert!((ring / least - 1.0).abs() < 1e-3, "{n}: {ring} bytes");
        format!("{n}: {:.2}", tree / ring)
    });
    let ratios: Vec<String> = ratios.collect();
    let expected = [
        "2: 1.00", "3: 1.33", "4: 1.00", "5: 1.10", "6: 1.00", "7: 1.00", "8: 1.00",
    ];
    assert_eq!(ratios, expected);
}

#[test]
fn many_members_halve_to_the_bits_of_the_tree() {
    let mut random = Random::new(11);
    for (n, leaves) in [(17, 17), (24, 48), (32, 32)] {
        for function in [Function::Sum, Function::Mean, Function::Max] {
            let tensors: Vec<Vec<f32>> = (0..leaves)
                .map(|_| draw_tensor(&mut random, 4200))
                .collect();
            let expected = (0..4200).map(|at| {
                let column: Vec<f32> = tensors.iter().map(|leaf| leaf[at]).collect();
                finished(function, tree(function, &column), leaves)
            });
            let drawn = Drawn {
                operation: Operation::AllReduce {
                    function,
                    leaves,
                    order: Order::Tree,
                },
                dtype: DType::F32,
                expected: (expected.collect(), vec![4200]),
                tensors,
                extents: vec![vec![4200]; n],
            };
            let mut simulation = Simulation::<f32>::new(n as u64, n, Fault::None);
            for member in 0..n {
                let (call, inputs, result) = drawn.call(&key(0), member, n);
                simulation.call(member, call, inputs, result);
            }
            simulation.run();
            assert_eq!(simulation.ends.len(), n);
            for end in simulation.ends.into_values() {
                match end {
                    End::Done(result, extents) => drawn.check(&result, &extents),
                    End::Failed(error) => panic!("{error}"),
                }
            }
        }
    }
}
