//! A function, decoded once at load into what the executor walks: its [`InlinePlan`] or its [`DataflowPlan`],
//! and what is to be known of each kernel.

use std::sync::{Arc, OnceLock};

use tfrt_async::Producer;
use tfrt_async::record::FunctionId;
use tfrt_bef::{Body, FunctionKind, FunctionView, KernelIndex};

use super::dataflow::DataflowPlan;
use super::dependencies::{Dependencies, KernelDependencies, Malformed, too_large};
use super::inline::InlinePlan;
use super::records::Record;
use crate::executor::cost::{Cost, Tries};
use crate::kernel::{Completion, EntryPoints, KernelEntry, NodePlace, Signature};

/// A kernel of a program.
pub(crate) struct Entry {
    pub(crate) name: Arc<str>,
    pub(crate) signature: Arc<Signature>,
    known: Known,
    /// Names the kernel to a value whose promise is dropped; kernels that complete later have one.
    pub(crate) origin: Option<Producer>,
    /// The number of operands that the kernel takes at most; one more may follow that only orders.
    pub(crate) max_operands: u32,
}

impl Entry {
    fn new(entry: &KernelEntry) -> Self {
        let signature = entry.shared_signature().clone();
        let later = signature.completion != Completion::Synchronous;
        Entry {
            name: entry.shared_name().clone(),
            origin: later.then(|| Producer::new(entry.name().to_owned())),
            max_operands: if signature.more_operands {
                u32::MAX
            } else {
                signature.operands.len() as u32
            },
            known: Known::of(&signature),
            signature,
        }
    }
}

/// The kernels of a program by code: what is known of each, and what the records of its uses name.
pub(crate) struct Entries {
    list: Box<[Entry]>,
    // Invariant: for those of `list` in their order.
    entrances: EntryPoints,
}

impl Entries {
    pub(crate) fn new<'a>(kernels: impl Iterator<Item = &'a KernelEntry> + Clone) -> Self {
        Entries {
            list: kernels.clone().map(Entry::new).collect(),
            entrances: EntryPoints::new(kernels.map(|kernel| kernel.code().clone())),
        }
    }
}

/// How a call of a function may run. In order means: one kernel after the other, in the order that
/// was found at load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Manner {
    /// By counting: some kernel may end after it has returned, or its results may. In the second case calls may
    /// begin in order nevertheless: see [`FunctionPlan::is_tried`].
    Counted,
    /// In order on one thread, unless a function makes the call: that would go on while streams of
    /// this one wait, and what both print would tell.
    Alone,
    /// In order on one thread. There are several streams, but nobody can see their order.
    OneThread,
    /// In order. There is one stream.
    Ordered,
}

/// A function as the executor walks it.
pub(crate) struct FunctionPlan {
    /// The number of the function in its program.
    pub(crate) number: u32,
    kind: FunctionKind,
    pub(crate) manner: Manner,
    /// A call of it may make another, through whatever functions.
    pub(crate) is_recursive: bool,
    pub(crate) cost: Cost,
    /// Its calls may run in order as long as all results are there: it is counted only because some may be to
    /// come, and one thread would run all of its kernels.
    tries: Option<Tries>,
    /// Nobody can see in which order its kernels, and those of the functions that it calls, run.
    is_silent: bool,
    /// Some kernel may start with a handle to a value that is to come.
    has_early_users: bool,
    known: Known,
    n_arguments: usize,
    n_kernels: usize,
    n_results: usize,
    // Invariant: there is this, or a shape, or both. Their records name entrances of `entries`, by the
    // numbers that these give for them.
    sequence: Option<InlinePlan>,
    shape: OnceLock<Arc<DataflowPlan>>,
    entries: Arc<Entries>,
    /// Places of what kernels keep from call to call, by kernel; made when the first one asks.
    nodes: OnceLock<Box<[NodePlace]>>,
    /// Its number in recordings, if the host makes any.
    pub(crate) recorded_as: Option<FunctionId>,
}

impl FunctionPlan {
    /// Decodes `body`, whose kernels by code are `entries`.
    ///
    /// # Errors
    ///
    /// If the body is not a graph that can be run: a fault that the gate of the file should have
    /// found.
    pub(crate) fn new(
        function: &FunctionView<'_>,
        body: &Body<'_>,
        entries: &Arc<Entries>,
    ) -> Result<Self, Malformed> {
        if entries.list.len() > EntryPoints::MAX_KERNELS {
            return Err(too_large());
        }
        let wiring = BodyDependencies::new(function, body, entries);
        let known = wiring.known;
        let is_textual = function.kind() == FunctionKind::Sync;
        let sequence = match known.ends || known.only_return || is_textual {
            true => InlinePlan::new(&wiring)?,
            false => None,
        };
        let topology = FunctionPlan {
            kind: function.kind(),
            manner: Manner::Counted,
            is_recursive: false,
            cost: Cost::default(),
            tries: None,
            is_silent: false,
            known,
            has_early_users: wiring.has_early_users,
            n_arguments: wiring.n_arguments(),
            n_kernels: wiring.n_kernels(),
            n_results: wiring.result_registers().len(),
            sequence,
            shape: OnceLock::new(),
            entries: entries.clone(),
            nodes: OnceLock::new(),
            number: u32::MAX,
            recorded_as: None,
        };
        if topology.sequence.is_none() {
            topology.shape_of(function)?;
        }
        Ok(topology)
    }

    /// A native function: one kernel that takes all arguments and gives all results.
    pub(crate) fn native(entry: &KernelEntry, n_arguments: u32, n_results: u32) -> Self {
        let entries = Entries::new(std::iter::once(entry));
        let wiring = NativeDependencies::new(&entries, n_arguments as usize, n_results as usize);
        let known = entries.list[0].known;
        let shape = DataflowPlan::new(&wiring).expect("one kernel, wired in full");
        let sequence = InlinePlan::new(&wiring).expect("one kernel, wired in full");
        FunctionPlan {
            kind: FunctionKind::Native,
            manner: Manner::Counted,
            is_recursive: false,
            cost: Cost::default(),
            tries: None,
            is_silent: false,
            has_early_users: false,
            n_arguments: n_arguments as usize,
            n_kernels: 1,
            n_results: n_results as usize,
            sequence: sequence.filter(|_| known.ends),
            known,
            shape: OnceLock::from(Arc::new(shape)),
            entries: Arc::new(entries),
            nodes: OnceLock::new(),
            number: u32::MAX,
            recorded_as: None,
        }
    }

    /// Its kernels in order; they have one if its manner is not [`Manner::Counted`], or it is marked
    /// synchronous.
    #[inline]
    pub(crate) fn sequence(&self) -> &InlinePlan {
        self.sequence.as_ref().expect("its kernels have an order")
    }

    /// Returns the plan for dataflow execution, made at the first request. `function` is this function in its file.
    ///
    /// # Errors
    ///
    /// As for [`Self::new`].
    pub(crate) fn shape_of(
        &self,
        function: &FunctionView<'_>,
    ) -> Result<&Arc<DataflowPlan>, Malformed> {
        if let Some(shape) = self.shape.get() {
            return Ok(shape);
        }
        let shape = match function.body() {
            Some(body) => {
                DataflowPlan::new(&BodyDependencies::new(function, &body, &self.entries))?
            }
            None => DataflowPlan::new(&NativeDependencies::new(
                &self.entries,
                self.n_arguments,
                self.n_results,
            ))?,
        };
        Ok(self.shape.get_or_init(|| Arc::new(shape)))
    }

    /// Whether one thread may run its kernels in any order that their operands allow.
    #[inline]
    pub(crate) fn is_silent(&self) -> bool {
        self.is_silent
    }

    /// Returns the place of what a kernel keeps from call to call.
    #[inline]
    pub(crate) fn node(&self, kernel: u32) -> &NodePlace {
        let make = || (0..self.n_kernels).map(|_| NodePlace::default()).collect();
        &self.nodes.get_or_init(make)[kernel as usize]
    }

    pub(crate) fn kind(&self) -> FunctionKind {
        self.kind
    }

    /// Returns whether the function is marked synchronous.
    #[inline]
    pub(crate) fn is_synchronous(&self) -> bool {
        self.kind == FunctionKind::Sync
    }

    /// Tells whether some kernel starts with a handle to a register.
    #[inline]
    pub(crate) fn has_early_users(&self, register: u32) -> bool {
        let shape = self.shape.get().filter(|_| self.has_early_users);
        shape.is_some_and(|shape| shape.definition(register).1.has_early())
    }

    /// Whether a call that has all its arguments is to run in order as long as all results are there. Asked
    /// once for each call. Where size matters most, no call is: what there is to it is not even built.
    #[inline]
    pub(crate) fn is_tried(&self) -> bool {
        !cfg!(tfrt_for_size) && self.tries.as_ref().is_some_and(Tries::is_next)
    }

    /// A call that was tried had to be counted.
    pub(crate) fn has_tried(&self) {
        if let Some(tries) = &self.tries {
            tries.pause();
        }
    }

    /// Its manner is known: makes what calls are going to need, and gives back what none does.
    ///
    /// # Errors
    ///
    /// As for [`Self::new`].
    pub(crate) fn settle(&mut self, function: &FunctionView<'_>) -> Result<(), Malformed> {
        if self.manner != Manner::Counted || self.kind == FunctionKind::Sync {
            return Ok(());
        }
        let has_one_stream = |sequence: &InlinePlan| sequence.has_one_stream();
        let is_ordered = self.sequence.as_ref().is_some_and(has_one_stream);
        if is_ordered && self.known.only_return && self.kind == FunctionKind::Async {
            self.tries = Some(Tries::default());
            return Ok(());
        }
        self.shape_of(function)?;
        self.sequence = None;
        Ok(())
    }

    pub(crate) fn n_arguments(&self) -> usize {
        self.n_arguments
    }

    pub(crate) fn n_kernels(&self) -> usize {
        self.n_kernels
    }

    pub(crate) fn n_results(&self) -> usize {
        self.n_results
    }

    fn record(&self, kernel: u32) -> Record<'_> {
        match (&self.sequence, self.shape.get()) {
            (Some(sequence), _) => sequence.record(kernel),
            (None, Some(shape)) => shape.record(kernel),
            (None, None) => unreachable!("there is one of them"),
        }
    }

    /// The number of a kernel in the file. Both ways of running number kernels alike.
    pub(crate) fn number_in_file(&self, kernel: u32) -> u32 {
        match (&self.sequence, self.shape.get()) {
            (Some(sequence), _) => sequence.number_in_file(kernel),
            (None, Some(shape)) => shape.number_in_file(kernel),
            (None, None) => unreachable!("there is one of them"),
        }
    }

    #[inline(always)]
    pub(crate) fn entrances(&self) -> &EntryPoints {
        &self.entries.entrances
    }

    /// Returns the entry of a kernel's code.
    #[inline]
    pub(crate) fn entry(&self, kernel: u32) -> &Entry {
        &self.entries.list[self.record(kernel).code() as usize]
    }

    /// How the function may run as far as its own kernels matter.
    fn own_manner(&self, is_silent: bool) -> Manner {
        let Some(sequence) = self.sequence.as_ref().filter(|_| self.known.ends) else {
            return Manner::Counted;
        };
        if sequence.has_one_stream() {
            Manner::Ordered
        } else if is_silent {
            Manner::OneThread
        } else if (sequence.n_prompt()..self.n_kernels as u32).all(|kernel| self.is_unseen(kernel))
        {
            Manner::Alone
        } else {
            // Whoever has made the call shows its results before these kernels run.
            Manner::Counted
        }
    }

    /// Whether nobody can see when a kernel runs.
    fn is_unseen(&self, kernel: u32) -> bool {
        let signature = &self.entry(kernel).signature;
        signature.is_silent() && signature.completion != Completion::Calls
    }

    /// The functions that the executor may call for kernels of this one.
    fn callees(&self) -> impl Iterator<Item = u32> {
        let kernels = 0..self.n_kernels as u32;
        let kernels = if self.known.calls { kernels } else { 0..0 };
        let calls = |kernel: &u32| self.entry(*kernel).signature.completion == Completion::Calls;
        let functions = |kernel| self.record(kernel).functions().iter().copied();
        kernels.filter(calls).flat_map(functions)
    }
}

/// Properties of all kernels of a function, known by their signatures.
#[derive(Clone, Copy, Debug)]
struct Known {
    /// All end when they return.
    ends: bool,
    /// All that is to be done for them is to wait for their results.
    only_return: bool,
    /// Nobody can see in which order they run.
    is_silent: bool,
    /// Not even errors tell that.
    leaves_no_trace: bool,
    /// Some make calls.
    calls: bool,
}

impl Known {
    /// Of no kernels.
    const NOTHING: Known = Known {
        ends: true,
        only_return: true,
        is_silent: true,
        leaves_no_trace: true,
        calls: false,
    };

    fn of(signature: &Signature) -> Known {
        Known {
            ends: signature.ends_when_it_returns(),
            only_return: signature.only_returns(),
            is_silent: signature.is_silent(),
            leaves_no_trace: signature.leaves_no_trace(),
            calls: signature.completion == Completion::Calls,
        }
    }

    fn add(&mut self, kernel: Known) {
        self.ends &= kernel.ends;
        self.only_return &= kernel.only_return;
        self.is_silent &= kernel.is_silent;
        self.leaves_no_trace &= kernel.leaves_no_trace;
        self.calls |= kernel.calls;
    }
}

/// Finds how the functions of a program may run.
pub(crate) fn find_manners(functions: &mut [FunctionPlan]) {
    let mut callers: Vec<Vec<u32>> = vec![Vec::new(); functions.len()];
    for (caller, function) in (0..).zip(&*functions) {
        for callee in function.callees() {
            callers[callee as usize].push(caller);
        }
    }
    let silent: Vec<bool> = functions
        .iter()
        .map(|function| function.known.is_silent)
        .collect();
    let silent = fixpoint(&callers, silent, |callee, caller| callee && caller);
    for (function, is_silent) in functions.iter_mut().zip(&silent) {
        function.is_silent = *is_silent;
    }
    let own = functions.iter().zip(silent);
    let own = own.map(|(function, is_silent)| function.own_manner(is_silent));
    let manners = fixpoint(&callers, own.collect(), |callee, caller| match callee {
        Manner::Counted | Manner::Alone => Manner::Counted,
        Manner::OneThread | Manner::Ordered => callee.min(caller),
    });
    for (function, manner) in functions.iter_mut().zip(manners) {
        function.manner = manner;
    }
    find_recursion(functions, &callers);
}

/// Finds the functions of which a call may make another: what is left when those are taken away, again
/// and again, that call nothing, and then those that nothing calls.
fn find_recursion(functions: &mut [FunctionPlan], callers: &[Vec<u32>]) {
    let mut callees: Vec<Vec<u32>> = vec![Vec::new(); functions.len()];
    for (callee, callers) in (0..).zip(callers) {
        for caller in callers {
            callees[*caller as usize].push(callee);
        }
    }
    let ends_up = is_left(callers, &callees);
    let is_reached = is_left(&callees, callers);
    for (function, (a, b)) in functions
        .iter_mut()
        .zip(ends_up.into_iter().zip(is_reached))
    {
        function.is_recursive = a && b;
    }
}

/// Takes functions away that have no edge `to` others any more; `from` has the same edges backwards.
fn is_left(from: &[Vec<u32>], to: &[Vec<u32>]) -> Vec<bool> {
    let mut n_edges: Vec<usize> = to.iter().map(Vec::len).collect();
    let mut is_left = vec![true; to.len()];
    let without = |n_edges: &[usize]| -> Vec<u32> {
        (0..)
            .zip(n_edges)
            .filter(|(_, n)| **n == 0)
            .map(|(function, _)| function)
            .collect()
    };
    let mut away = without(&n_edges);
    while let Some(function) = away.pop() {
        is_left[function as usize] = false;
        for other in &from[function as usize] {
            n_edges[*other as usize] -= 1;
            if n_edges[*other as usize] == 0 {
                away.push(*other);
            }
        }
    }
    is_left
}

/// Lowers what is known of callers by what is known of their callees, until nothing changes.
fn fixpoint<T: Copy + PartialEq>(
    callers: &[Vec<u32>],
    mut known: Vec<T>,
    lower: impl Fn(T, T) -> T,
) -> Vec<T> {
    let mut changed: Vec<u32> = (0..callers.len() as u32).collect();
    while let Some(callee) = changed.pop() {
        for caller in &callers[callee as usize] {
            let lowered = lower(known[callee as usize], known[*caller as usize]);
            if known[*caller as usize] != lowered {
                known[*caller as usize] = lowered;
                changed.push(*caller);
            }
        }
    }
    known
}

/// The wiring of a body in a file.
struct BodyDependencies<'a> {
    body: &'a Body<'a>,
    entries: &'a Entries,
    /// Read once: who makes a shape asks for each again and again.
    kernels: Vec<KernelDependencies<'a>>,
    is_textual: bool,
    known: Known,
    has_early_users: bool,
}

impl<'a> BodyDependencies<'a> {
    fn new(function: &FunctionView<'_>, body: &'a Body<'a>, entries: &'a Entries) -> Self {
        let takes_handle = |entry: &Entry| {
            let mut operands = entry.signature.operands.iter();
            operands.any(|operand| !operand.strict)
        };
        let mut known = Known::NOTHING;
        let mut kernels = Vec::with_capacity(body.n_kernels());
        for view in body.kernels() {
            let code = view.code().index();
            known.add(entries.list[code].known);
            let (operands, results) = (view.operands(), view.results());
            kernels.push(KernelDependencies {
                entrance: entries
                    .entrances
                    .number(code, operands.len(), results.len()),
                operands,
                results,
                attributes: view.attributes(),
                functions: view.functions(),
                is_marked: view.nonstrict() || entries.list[code].signature.starts_early,
            });
        }
        BodyDependencies {
            body,
            entries,
            kernels,
            known,
            has_early_users: entries.list.iter().any(takes_handle),
            is_textual: function.kind() == FunctionKind::Sync,
        }
    }

    fn view(&self, kernel: u32) -> tfrt_bef::KernelView<'_> {
        self.body.kernel(KernelIndex(kernel + 1))
    }
}

impl Dependencies for BodyDependencies<'_> {
    fn n_arguments(&self) -> usize {
        self.body.n_arguments()
    }

    fn n_registers(&self) -> usize {
        self.body.n_registers()
    }

    fn n_kernels(&self) -> usize {
        self.kernels.len()
    }

    fn kernel(&self, kernel: u32) -> KernelDependencies<'_> {
        self.kernels[kernel as usize]
    }

    fn stream(&self, kernel: u32) -> u32 {
        self.view(kernel).stream()
    }

    fn only_begins(&self, kernel: u32) -> bool {
        self.entries.list[self.view(kernel).code().index()]
            .signature
            .queues
    }

    fn root_stream(&self) -> u32 {
        self.body.root_stream()
    }

    fn is_unseen(&self) -> bool {
        self.known.leaves_no_trace
    }

    fn takes_handle(&self, kernel: u32, register: u32) -> bool {
        let view = self.view(kernel);
        let signature = &self.entries.list[view.code().index()].signature;
        // Few kernels take handles; the others may have very many operands.
        let some = signature.operands.iter().any(|operand| !operand.strict);
        if !some || view.nonstrict() || signature.starts_early {
            return false;
        }
        let mut uses = view.operands().iter().enumerate();
        uses.all(|(index, used)| *used != register || !signature.is_strict(index))
            && view.operands().contains(&register)
    }

    fn has_early_users(&self) -> bool {
        self.has_early_users
    }

    fn users(&self, kernel: u32, result: usize) -> &[u32] {
        self.view(kernel).users(result)
    }

    fn argument_users(&self, argument: usize) -> &[u32] {
        self.body.argument_users(argument)
    }

    fn entry_users(&self) -> &[u32] {
        self.body.entry_users()
    }

    fn result_registers(&self) -> &[u32] {
        self.body.result_registers()
    }

    fn is_textual(&self) -> bool {
        self.is_textual
    }
}

/// The wiring of a native function.
struct NativeDependencies {
    entrance: u32,
    registers: Vec<u32>,
    n_arguments: usize,
}

impl NativeDependencies {
    fn new(entries: &Entries, n_arguments: usize, n_results: usize) -> Self {
        NativeDependencies {
            entrance: entries.entrances.number(0, n_arguments, n_results),
            registers: (0..(n_arguments + n_results) as u32).collect(),
            n_arguments,
        }
    }
}

impl Dependencies for NativeDependencies {
    fn n_arguments(&self) -> usize {
        self.n_arguments
    }

    fn n_registers(&self) -> usize {
        self.registers.len()
    }

    fn n_kernels(&self) -> usize {
        1
    }

    fn kernel(&self, _: u32) -> KernelDependencies<'_> {
        let (arguments, results) = self.registers.split_at(self.n_arguments);
        KernelDependencies {
            entrance: self.entrance,
            operands: arguments,
            results,
            attributes: &[],
            functions: &[],
            is_marked: false,
        }
    }

    fn users(&self, _: u32, _: usize) -> &[u32] {
        &[]
    }

    fn argument_users(&self, _: usize) -> &[u32] {
        &[1]
    }

    fn entry_users(&self) -> &[u32] {
        if self.n_arguments == 0 { &[1] } else { &[] }
    }

    fn result_registers(&self) -> &[u32] {
        &self.registers[self.n_arguments..]
    }

    fn is_textual(&self) -> bool {
        false
    }
}
