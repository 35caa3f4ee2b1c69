//! How a function is wired, as whoever has it in hand tells it: which kernel reads and fills which
//! register, and who waits for whom. Nothing here is believed before a [`DataflowPlan`] or an [`InlinePlan`] is
//! made of it.
//!
//! [`DataflowPlan`]: super::dataflow::DataflowPlan
//! [`InlinePlan`]: super::inline::InlinePlan

use std::fmt;

/// The source of [`DataflowPlan`]s and [`InlinePlan`]s. Kernels are numbered as in the file: from 1 on where they are named as
/// users, from 0 on where they are asked about.
pub(crate) trait Dependencies {
    fn n_arguments(&self) -> usize;
    fn n_registers(&self) -> usize;
    fn n_kernels(&self) -> usize;
    fn kernel(&self, kernel: u32) -> KernelDependencies<'_>;
    /// Unless it says otherwise, a wiring has one stream and no kernel that can do with a handle.
    fn stream(&self, _kernel: u32) -> u32 {
        0
    }
    fn root_stream(&self) -> u32 {
        0
    }
    /// Whether a kernel only begins something: a task of the work queue brings its result.
    fn only_begins(&self, _kernel: u32) -> bool {
        false
    }
    /// Whether kernels of different streams may run in any order that their operands allow.
    fn is_unseen(&self) -> bool {
        false
    }
    /// Whether a kernel can do with a handle where it reads `register`.
    fn takes_handle(&self, _kernel: u32, _register: u32) -> bool {
        false
    }
    /// Whether any kernel can.
    fn has_early_users(&self) -> bool {
        false
    }
    fn users(&self, kernel: u32, result: usize) -> &[u32];
    fn argument_users(&self, argument: usize) -> &[u32];
    fn entry_users(&self) -> &[u32];
    fn result_registers(&self) -> &[u32];
    /// Whether kernels are to run in the order of the file.
    fn is_textual(&self) -> bool;
}

/// One kernel of a wiring.
#[derive(Clone, Copy)]
pub(crate) struct KernelDependencies<'w> {
    /// Tells what to call, and how.
    pub(crate) entrance: u32,
    pub(crate) operands: &'w [u32],
    pub(crate) results: &'w [u32],
    pub(crate) attributes: &'w [u32],
    pub(crate) functions: &'w [u32],
    /// Any one settled operand starts it; its operands are read as handles.
    pub(crate) is_marked: bool,
}

/// Why wiring is not a graph that can be run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Malformed(pub(crate) String);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// More operands of one kernel, or uses of one register, are refused: the bits above mean more.
pub(crate) const MAX_COUNT: usize = (1 << 29) - 1;

pub(crate) fn too_large() -> Malformed {
    Malformed("the function, or one of its kernels, is too large".to_owned())
}

pub(crate) fn missing_register(register: u32) -> Malformed {
    Malformed(format!("register {register} does not exist"))
}

pub(crate) fn count(references: &mut u32, register: u32) -> Result<(), Malformed> {
    if *references as usize & MAX_COUNT == MAX_COUNT {
        return Err(Malformed(format!("register {register} has too many uses")));
    }
    *references += 1;
    Ok(())
}

#[cfg(all(test, not(loom)))]
mod tests;
