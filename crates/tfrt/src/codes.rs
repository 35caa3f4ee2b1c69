//! All codes of diagnostics, those of the layers and our own, in order.

mod explanations;
mod statuses;

use std::sync::LazyLock;

pub use statuses::status;

/// A file of one kind where the other is needed.
pub const TEXT_EXPECTED: &str = "TF0004";

/// A function that the program does not have.
pub const NO_SUCH_FUNCTION: &str = "TF0005";

/// The codes of this crate, with a line on what is wrong.
const OWN: [(&str, &str); 2] = [
    (TEXT_EXPECTED, "a file of bytes where text is needed"),
    (
        NO_SUCH_FUNCTION,
        "a function that the program does not have",
    ),
];

/// Returns what a code means: Markdown, with a program that gets it and one that does not, where
/// programs can show it.
///
/// # Examples
///
/// ```
/// let text = tfrt::codes::explanation("TF0103").unwrap();
/// assert!(text.starts_with("# TF0103: "));
/// ```
pub fn explanation(code: &str) -> Option<&'static str> {
    let all = explanations::ALL;
    let at = all.binary_search_by_key(&code, |&(code, _)| code).ok()?;
    Some(all[at].1)
}

/// Every code with a line on what is wrong, in order.
pub fn all() -> &'static [(&'static str, &'static str)] {
    static ALL: LazyLock<Vec<(&str, &str)>> = LazyLock::new(|| {
        let lists = [
            tfrt_ir::codes::ALL,
            tfrt_compiler::codes::ALL,
            tfrt_bef::codes::ALL,
            tfrt_host::codes::ALL,
            tfrt_import::codes::ALL,
            #[cfg(feature = "plugins")]
            tfrt_capi::codes::ALL,
            &OWN,
        ];
        let mut all = lists.concat();
        all.sort_unstable();
        all
    });
    &ALL
}
