//! The summary of all benchmarks' tables: a line for each subject.
//!
//! A table begins with its subject, `chain: 10000 kernels; yardstick 1.29 ns, 1.29 ns`; its rows are
//! a name of 30 characters behind two spaces, then nanoseconds, spread, ratio, instructions and a
//! goal; `-` is for what is not known.

/// The contenders that schedule nothing, or bring no tasks and no threads of their own, and
/// ourselves.
const BARE: [&str; 7] = [
    "plain loop",
    "ready counts",
    "st3 and counters",
    "crossbeam-deque and counters",
    "call through a pointer",
    "Rust",
    "tfrt",
];

/// The column at which a row's name ends.
const NAME_ENDS: usize = 32;

/// The table of one subject.
struct Subject<'a> {
    name: &'a str,
    rows: Vec<Row<'a>>,
}

/// A row of a table.
struct Row<'a> {
    name: &'a str,
    ns: f64,
    rest: Vec<&'a str>,
}

/// Returns a line for each table that begins with ours: orders, instructions, goals, and the first
/// of the libraries that do the same.
pub fn of(told: &str) -> String {
    let mut text = format!(
        "{:<14}{:>9}{:>9}{:>7}{:>9}{:>9}{:>7}  {}\n",
        "",
        "ordered",
        "instr.",
        "goal",
        "dynamic",
        "instr.",
        "goal",
        "first of the others, its time over ours"
    );
    for subject in subjects(told) {
        let Some(ours) = subject
            .rows
            .first()
            .filter(|row| row.name.starts_with("tfrt"))
        else {
            continue;
        };
        let dynamic = subject.row("tfrt, dynamic");
        let is_library = |row: &&Row<'_>| !BARE.iter().any(|bare| row.name.starts_with(bare));
        let libraries = subject.rows.iter().filter(is_library);
        let first = libraries.min_by(|a, b| a.ns.total_cmp(&b.ns));
        let first = first.map_or(String::new(), |first| {
            format!("{} {:.1}, x{:.1}", first.name, first.ns, first.ns / ours.ns)
        });
        let cells = |row: Option<&Row<'_>>| match row {
            None => format!("{:>9}{:>9}{:>7}", "", "", ""),
            Some(row) => format!("{:>9.2}{:>9}{:>7}", row.ns, row.cell(2), row.cell(3)),
        };
        let line = format!(
            "{:<14}{}{}  {first}",
            subject.name,
            cells(Some(ours)),
            cells(dynamic)
        );
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

fn subjects(told: &str) -> Vec<Subject<'_>> {
    let mut subjects: Vec<Subject<'_>> = Vec::new();
    for line in told.lines() {
        if let Some((name, _)) = line
            .split_once(": ")
            .filter(|_| line.contains("; yardstick "))
        {
            let rows = Vec::new();
            subjects.push(Subject { name, rows });
        } else if let (Some(subject), Some(row)) = (subjects.last_mut(), Row::parse(line)) {
            subject.rows.push(row);
        }
    }
    subjects
}

impl<'a> Subject<'a> {
    fn row(&self, name: &str) -> Option<&Row<'a>> {
        self.rows.iter().find(|row| row.name == name)
    }
}

impl<'a> Row<'a> {
    fn parse(line: &'a str) -> Option<Row<'a>> {
        let (name, numbers) = line.split_at_checked(NAME_ENDS)?;
        let mut words = numbers.split_whitespace();
        let ns = words.next()?.parse().ok()?;
        let rest: Vec<&str> = words.collect();
        let is_row = rest.first().is_some_and(|spread| spread.ends_with('%'));
        is_row.then_some(Row {
            name: name.strip_prefix("  ")?.trim(),
            ns,
            rest,
        })
    }

    /// Returns a column behind the nanoseconds, from 1 on but for the spread.
    fn cell(&self, index: usize) -> &'a str {
        self.rest.get(index).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOLD: &str = "\
graphs on one thread; processor time

chain: 10000 kernels; yardstick 1.29 ns, 1.29 ns
                                  ns/kernel  spread    ratio  instructions    goal
  tfrt, ordered                       12.54      1%    1.000         110.2     3.7
  tfrt, dynamic                       25.86      3%    2.054         260.2     5.5
  plain loop                           1.28      1%    0.102             -       -
  rayon spawn                          5.00      1%    2.386             -       -
  taskflow                            22.27      2%    1.769             -       -
  hand-off: 172 ns, far before; 4 ns, near after
";

    #[test]
    fn table_becomes_a_line_with_the_first_of_the_others() {
        let text = of(TOLD);
        let line = text.lines().nth(1).unwrap_or_default();
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(
            words,
            [
                "chain", "12.54", "110.2", "3.7", "25.86", "260.2", "5.5", "rayon", "spawn",
                "5.0,", "x0.4"
            ]
        );
        assert_eq!(text.lines().count(), 2);
    }
}
