//! Plans: what load finds of a function, once, for all of its calls.
//!
//! A [`FunctionPlan`](function::FunctionPlan) has what is known of the function and of its kernels, and one or both of
//! the plans by which calls run: [`InlinePlan`](inline::InlinePlan), kernels in an order in which one thread can run
//! them, and [`DataflowPlan`](dataflow::DataflowPlan), kernels with their counts and users. Both are made of the
//! [`Dependencies`](dependencies::Dependencies) that the file states, of which nothing is believed, and write their kernels
//! down as [`records`].

pub(crate) mod dataflow;
pub(crate) mod dependencies;
#[cfg(not(loom))]
pub(crate) mod function;
#[cfg(not(loom))]
pub(crate) mod inline;
pub(crate) mod order;
pub(crate) mod records;
