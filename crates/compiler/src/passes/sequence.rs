//! `sequence-effects`: adds the chains that keep effects in order.
//!
//! A program is written as if it ran from top to bottom. The operation tables say
//! what each operation touches; the pass makes those wait for each other that touch
//! the same, unless both only read, and nothing else. `docs/sequencing.md` has the
//! rules.
//!
//! | Step | Where |
//! | --- | --- |
//! | what each operation touches, through values, regions and calls | [`analysis`] |
//! | which functions get chains | [`plan`] |
//! | who waits for whom, without what is implied | [`order`] |
//! | chains and merges, from the outside in | [`thread`] |

mod access;
mod analysis;
mod order;
mod plan;
mod thread;

use crate::pipeline::{Pass, PassFn, Property};

pub(crate) const PASS: Pass = Pass {
    name: "sequence-effects",
    summary: "Puts in the chains that keep conflicting effects in the order of the text",
    needs: &[],
    gives: &[Property::Sequenced],
    breaks: &[Property::Streams],
    run: PassFn::Plain(thread::thread),
};

#[cfg(test)]
mod tests;
