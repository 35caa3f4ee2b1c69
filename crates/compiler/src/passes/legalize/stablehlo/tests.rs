//! A test that `docs/stablehlo-operations.md` is what the tables of operations say. `cargo xtask bless` rewrites the page.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use expect_test::expect_file;

use super::{CALLS, LowerFn, OPERATIONS};

const HEAD: &str = "<!-- Generated from the tables in crates/compiler/src/passes/legalize/stablehlo by `cargo xtask bless`. -->
# Operations of StableHLO that run

What [stablehlo.md](stablehlo.md) says becomes rows of graphs. `tfrt check` names the operations of a module that are not here.

";

#[test]
fn the_page_is_what_the_tables_say() {
    let operations: Vec<&str> = names(OPERATIONS);
    let of = |dialect: &str| -> Vec<&str> {
        let names = operations.iter();
        names
            .filter_map(|name| name.strip_prefix(dialect))
            .collect()
    };
    let others = operations
        .iter()
        .copied()
        .filter(|name| !super::is_ours(name));
    let mut text = HEAD.to_owned();
    for (title, names) in [
        ("StableHLO", of("stablehlo.")),
        ("CHLO", of("chlo.")),
        ("Other dialects", others.collect()),
        ("Calls: `stablehlo.custom_call @NAME`", names(CALLS)),
    ] {
        writeln!(text, "## {title}\n").unwrap();
        for name in names {
            writeln!(text, "- `{name}`").unwrap();
        }
        text.push('\n');
    }
    expect_file!["../../../../../../docs/stablehlo-operations.md"]
        .assert_eq(&format!("{}\n", text.trim_end()));
}

/// Returns the names of tables in their order, each once.
fn names(tables: &[&'static [(&'static str, LowerFn)]]) -> Vec<&'static str> {
    let all = tables.iter().flat_map(|table| table.iter());
    let names: BTreeSet<&str> = all.map(|(name, _)| *name).collect();
    names.into_iter().collect()
}

#[test]
fn no_name_stands_in_two_tables() {
    for tables in [OPERATIONS, CALLS] {
        let n: usize = tables.iter().map(|table| table.len()).sum();
        assert_eq!(names(tables).len(), n);
    }
}
