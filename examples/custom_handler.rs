//! A handler of operations of one's own: it counts how often each operation is called, and leaves the work to another.
//!
//! The promises of a handler are in the documentation of `OpHandler`; that this one does is tried by the conformance
//! suite before operations are called on it, one at a time and by a program.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tfrt::corert::{
    CoreRuntime, Handles, Op, OpAttrs, OpCall, OpHandler, TensorHandle, conformance,
};
use tfrt::host::DeviceId;
use tfrt::{AsyncValue, Error, Runtime};

/// Tries the handler, registers it, and calls operations.
pub fn main() {
    conformance::suite(&|_, next| Arc::new(CountingHandler::new(next)));
    count().expect("nothing in it fails");
}

fn count() -> Result<(), Error> {
    let runtime = Runtime::new();
    let core = CoreRuntime::new(runtime.host());
    let counting = Arc::new(CountingHandler::new(core.cpu()));
    let handler: Arc<dyn OpHandler> = counting.clone();
    core.register("counting", handler.clone())?;

    // An operation is found once, and called as often as one likes.
    let add = core.op("tf.AddV2", &handler)?;
    let context = core.context();
    let mut sum = core.dense(&[2], &[1, 2])?;
    for _ in 0..3 {
        sum = add.call_one(&context, [&sum, &sum], &OpAttrs::new())?;
    }
    assert_eq!(
        sum.to_string(),
        "DenseHostTensor dtype = i32, shape = [2], values = [8, 16]"
    );

    // A program asks for the handler by its name.
    let program = runtime
        .compile(
            "negated.mlir",
            r#"func.func @negated(%x: !corert.tensorhandle) -> !corert.tensorhandle {
                 %chain = tfrt.new.chain
                 %counting = corert.get_op_handler %chain "counting"
                 %twice = corert.executeop(%counting) "tf.AddV2"(%x, %x) : 1
                 %y = corert.executeop(%counting) "tf.Neg"(%twice) : 1
                 tfrt.return %y : !corert.tensorhandle
               }"#,
        )
        .expect("the program is right");
    let negated = program.function("negated").expect("it is in the text");
    let arguments = (AsyncValue::available(sum),);
    let values = negated.call(&runtime.context(), arguments).wait()?;
    assert_eq!(
        values.get::<TensorHandle>(0)?.to_string(),
        "DenseHostTensor dtype = i32, shape = [2], values = [-16, -32]"
    );

    let counts = counting.counts();
    assert_eq!(counts["tf.AddV2"], 4);
    assert_eq!(counts["tf.Neg"], 1);
    println!("{counts:?}");
    Ok(())
}

/// Counts the calls of operations that another handler finds.
struct CountingHandler {
    next: Arc<dyn OpHandler>,
    counts: Arc<Counts>,
}

/// Number of calls of each operation, by name.
#[derive(Default)]
struct Counts(Mutex<BTreeMap<String, usize>>);

impl CountingHandler {
    fn new(next: Arc<dyn OpHandler>) -> CountingHandler {
        CountingHandler {
            next,
            counts: Arc::default(),
        }
    }

    fn counts(&self) -> BTreeMap<String, usize> {
        let counts = self.counts.0.lock();
        counts.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl OpHandler for CountingHandler {
    fn name(&self) -> &str {
        "counting"
    }

    fn device(&self) -> DeviceId {
        self.next.device()
    }

    fn find(&self, op: &str) -> Result<Arc<dyn Op>, Error> {
        Ok(Arc::new(CountedOp {
            op: self.next.find(op)?,
            counts: self.counts.clone(),
        }))
    }
}

/// An operation whose calls are counted.
struct CountedOp {
    op: Arc<dyn Op>,
    counts: Arc<Counts>,
}

/// Forwards the other operation's properties, but not `try_fast`, which would take calls past the count.
impl Op for CountedOp {
    fn name(&self) -> &str {
        self.op.name()
    }

    fn is_pure(&self) -> bool {
        self.op.is_pure()
    }

    fn n_results(&self) -> Option<usize> {
        self.op.n_results()
    }

    fn call(&self, call: OpCall<'_>) -> Result<Handles, Error> {
        let counts = self.counts.0.lock();
        let mut counts = counts.unwrap_or_else(PoisonError::into_inner);
        *counts.entry(self.name().to_owned()).or_default() += 1;
        drop(counts);
        self.op.call(call)
    }
}
