//! The report on the cases that were run.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::verdict::{CaseEnd, Verdict};

/// A count of passed cases, and of all.
#[derive(Clone, Copy, Default)]
struct Count {
    passed: usize,
    total: usize,
}

/// Returns the report: counts by operation and by type, failures with their reasons, and the sum.
///
/// A case counts for each operation that its model has.
pub fn text(verdicts: &[Verdict], lists_failures: bool) -> String {
    let mut out = String::new();
    write(&mut out, verdicts, lists_failures).expect("a string takes all");
    out
}

fn write(out: &mut String, verdicts: &[Verdict], lists_failures: bool) -> std::fmt::Result {
    let operations = count(verdicts, |verdict| &verdict.operations);
    let types = count(verdicts, |verdict| &verdict.types);
    table(out, "operation", &operations)?;
    table(out, "type", &types)?;
    if lists_failures {
        for verdict in verdicts {
            if let Some(reason) = verdict.reason() {
                writeln!(out, "{}: {}", verdict.name, reason.replace('\n', " | "))?;
            }
        }
        writeln!(out)?;
    }
    reasons(out, verdicts)?;
    let without: Vec<&str> = operations
        .iter()
        .filter(|(_, count)| count.passed == 0)
        .map(|(name, _)| *name)
        .collect();
    if !without.is_empty() {
        writeln!(
            out,
            "operations without a case that passes: {}",
            without.join(", ")
        )?;
    }
    let passed = verdicts.iter().filter(|verdict| verdict.passes()).count();
    let crashed = verdicts
        .iter()
        .filter(|verdict| matches!(verdict.ending, CaseEnd::Crashed(_)))
        .count();
    let hung = verdicts
        .iter()
        .filter(|verdict| matches!(verdict.ending, CaseEnd::Hung))
        .count();
    let placed: Vec<_> = verdicts.iter().filter(|it| it.placed.is_some()).collect();
    if !placed.is_empty() {
        let without = count(verdicts, |verdict| &verdict.without);
        table(out, "operation without a kernel on the device", &without)?;
        let of = |is_counted: fn(usize, usize) -> bool| {
            let own = placed.iter().filter(|verdict| {
                let counted = verdict.placed.map(|(there, here)| is_counted(there, here));
                counted == Some(true)
            });
            (own.clone().filter(|it| it.passes()).count(), own.count())
        };
        let whole = of(|there, here| there > 0 && here == 0);
        let partly = of(|there, here| there > 0 && here > 0);
        let not = of(|there, _| there == 0);
        writeln!(
            out,
            "of {} cases whose nodes are all on the device {} passed, of {} with some there {}, of {} with none {}",
            whole.1, whole.0, partly.1, partly.0, not.1, not.0,
        )?;
    }
    writeln!(
        out,
        "{passed} of {} cases passed; {crashed} crashed; {hung} hung; {} of {} operations have a case that passes",
        verdicts.len(),
        operations.len() - without.len(),
        operations.len(),
    )
}

fn count<'v>(
    verdicts: &'v [Verdict],
    keys: impl Fn(&'v Verdict) -> &'v [String],
) -> BTreeMap<&'v str, Count> {
    let mut counts: BTreeMap<&str, Count> = BTreeMap::new();
    for verdict in verdicts {
        for key in keys(verdict) {
            let count = counts.entry(key).or_default();
            count.total += 1;
            count.passed += usize::from(verdict.passes());
        }
    }
    counts
}

/// Writes lines `NAME PASSED/TOTAL`, in columns as far as they fit a line.
fn table(out: &mut String, title: &str, counts: &BTreeMap<&str, Count>) -> std::fmt::Result {
    let cells: Vec<String> = counts
        .iter()
        .map(|(name, count)| format!("{name} {}/{}", count.passed, count.total))
        .collect();
    let width = cells.iter().map(String::len).max().unwrap_or(0) + 2;
    let n_columns = (118 / width).max(1);
    writeln!(out, "By {title}, passed/total:")?;
    for row in cells.chunks(n_columns) {
        let line: String = row.iter().map(|cell| format!("  {cell:width$}")).collect();
        writeln!(out, "{}", line.trim_end())?;
    }
    writeln!(out)
}

/// Writes how often each reason was given, numbers and names left out, most often first.
fn reasons(out: &mut String, verdicts: &[Verdict]) -> std::fmt::Result {
    let mut counts: BTreeMap<String, (usize, &str)> = BTreeMap::new();
    for verdict in verdicts {
        if let Some(reason) = verdict.reason() {
            let line = reason.lines().next().unwrap_or_default();
            let kind: String = line
                .chars()
                .filter(|c| !c.is_ascii_digit())
                .take(160)
                .collect();
            counts.entry(kind).or_insert((0, &verdict.name)).0 += 1;
        }
    }
    if counts.is_empty() {
        return Ok(());
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
    writeln!(out, "Reasons:")?;
    for (kind, (count, example)) in counts {
        writeln!(out, "  {count:4}  {kind}  ({example})")?;
    }
    writeln!(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::Stage;

    fn verdict(name: &str, operation: &str, ending: CaseEnd) -> Verdict {
        let mut verdict = Verdict::of(name, ending);
        verdict.operations = vec![operation.to_owned()];
        verdict.types = vec!["f32".to_owned()];
        verdict
    }

    #[test]
    fn what_failed_is_named_with_its_reason() {
        let failure = CaseEnd::Failed(Stage::Compare, "output 0: 3 differ".to_owned());
        let verdicts = [
            verdict("a", "Add", CaseEnd::Passed),
            verdict("b", "Add", failure),
            verdict("c", "Mul", CaseEnd::Hung),
        ];
        let text = text(&verdicts, true);
        for line in [
            "By operation, passed/total:",
            "  Add 1/2    Mul 0/1",
            "  f32 1/3",
            "b: compare: output 0: 3 differ",
            "c: hung",
            "operations without a case that passes: Mul",
            "1 of 3 cases passed; 0 crashed; 1 hung; 1 of 2 operations have a case that passes",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}:\n{text}");
        }
    }
}
