//! Tests that the reference in `docs/operations/` is what the tables say. `cargo xtask bless`
//! rewrites it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use expect_test::expect_file;
use tfrt_ir::dialect::{self, Page};

/// The folder of the reference, relative to this file, as `expect_file` has it.
const FOLDER: &str = "../../../../docs/operations";

#[test]
fn reference_is_what_the_tables_say() {
    for Page { file, text } in dialect::reference() {
        expect_file![format!("{FOLDER}/{file}")].assert_eq(&text);
    }
}

#[test]
fn reference_has_no_other_pages() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/library");
    let files = fs::read_dir(here.join(FOLDER)).expect("the folder is there");
    let found: BTreeSet<String> = files
        .map(|file| file.expect("it can be read").file_name())
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    let pages = dialect::reference().into_iter().map(|page| page.file);
    assert_eq!(found, pages.collect());
}

#[test]
fn every_link_leads_to_a_heading() {
    let pages = dialect::reference();
    let contents = &pages[0].text;
    for entry in dialect::definitions().into_iter().chain(dialect::natives()) {
        let name = entry.name();
        let link = format!("| [`{name}`](");
        assert_eq!(contents.matches(&link).count(), 1, "{name}");
        let heading = format!("\n## {name}\n");
        let n_sections: usize = pages
            .iter()
            .map(|page| page.text.matches(&heading).count())
            .sum();
        assert_eq!(n_sections, 1, "{name}");
    }
}
