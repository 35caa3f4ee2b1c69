//! The operations behind the methods of tensors, each found once.

use std::sync::OnceLock;

use tfrt_corert::{CoreRuntime, CoreRuntimeOp};
use tfrt_host::Error;

/// `names!(Add = "tf.AddV2")` declares the operations that methods call.
macro_rules! names {
    ($($name:ident = $op:literal;)*) => {
        /// An operation that a method calls.
        #[derive(Clone, Copy, Debug)]
        pub(super) enum Name {
            $($name,)*
        }

        impl Name {
            const ALL: &'static [Name] = &[$(Name::$name),*];

            fn op(self) -> &'static str {
                match self {
                    $(Name::$name => $op,)*
                }
            }
        }
    };
}

names! {
    Add = "tf.AddV2";
    Subtract = "tf.Sub";
    Multiply = "tf.Mul";
    Divide = "tf.RealDiv";
    Maximum = "tf.Maximum";
    Minimum = "tf.Minimum";
    Less = "tf.Less";
    Greater = "tf.Greater";
    Equal = "tf.Equal";
    Relu = "tf.Relu";
    Sigmoid = "tf.Sigmoid";
    Tanh = "tf.Tanh";
    Exp = "tf.Exp";
    Log = "tf.Log";
    Negate = "tf.Neg";
    Sqrt = "tf.Sqrt";
    Rsqrt = "tf.Rsqrt";
    Square = "tf.Square";
    Cast = "tf.Cast";
    MatMul = "tf.MatMul";
    BiasAdd = "tf.BiasAdd";
    Softmax = "tf.Softmax";
    LogSoftmax = "tf.LogSoftmax";
    ArgMax = "tf.ArgMax";
    Sum = "tf.Sum";
    Mean = "tf.Mean";
    Max = "tf.Max";
    Reshape = "tf.Reshape";
    Transpose = "tf.Transpose";
    Concat = "tf.ConcatV2";
    ReluGradient = "tf.ReluGrad";
    BiasAddGradient = "tf.BiasAddGrad";
    CrossEntropy = "tf.SparseSoftmaxCrossEntropyWithLogits";
    ReadVariable = "tf.ReadVariableOp";
    Assign = "tf.AssignVariableOp";
    GradientDescent = "tf.ResourceApplyGradientDescent";
    Momentum = "tf.ResourceApplyMomentum";
}

/// A cache of the operations that methods have called.
pub(super) struct Ops {
    // Invariant: one for each name, in their order.
    found: Vec<OnceLock<CoreRuntimeOp>>,
}

impl Default for Ops {
    fn default() -> Ops {
        Ops {
            found: Name::ALL.iter().map(|_| OnceLock::new()).collect(),
        }
    }
}

impl Ops {
    /// Returns the operation of this name.
    #[inline]
    pub(super) fn get(&self, name: Name, core: &CoreRuntime) -> Result<&CoreRuntimeOp, Error> {
        let found = &self.found[name as usize];
        if let Some(op) = found.get() {
            return Ok(op);
        }
        let op = core.op(name.op(), &core.cpu())?;
        Ok(found.get_or_init(|| op))
    }
}
