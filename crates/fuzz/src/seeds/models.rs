//! Models made by hand: those of the importer's tests, fine and broken.

#[path = "../../../import/tests/library/broken/cases.rs"]
mod broken;
#[path = "../../../import/tests/library/models/cases.rs"]
mod fine;
#[path = "../../../import/tests/library/wire.rs"]
mod wire;

/// Returns their names and bytes.
pub fn models() -> Vec<(&'static str, Vec<u8>)> {
    let fine = fine::all().into_iter().map(|case| (case.name, case.bytes));
    let broken = broken::all();
    let broken = broken.into_iter().map(|case| (case.name, case.bytes));
    fine.chain(broken).collect()
}
