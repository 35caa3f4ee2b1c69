//! Files of tensors, and arithmetic on the workers of a queue, in one program of tests.

mod btf;
mod locks;
mod parallel;
