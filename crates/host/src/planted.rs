//! Planted bugs, of which one is chosen when tests run; see `docs/checkers.md`.

/// Returns whether bugs are planted in this build, and this one is meant.
#[inline]
pub(crate) fn is_planted(bug: &str) -> bool {
    cfg!(tfrt_planted) && std::env::var("TFRT_PLANTED").as_deref() == Ok(bug)
}
