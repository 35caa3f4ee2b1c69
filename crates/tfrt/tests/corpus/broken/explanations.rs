//! The texts of `tfrt explain`: what they show is what happens.
//!
//! The first block of a program gets the code and no other, the second gets none; the block of
//! text between them is what the command says to the first. The command stands behind `mlir`.

use std::fs;
use std::path::{Path, PathBuf};

use libtest_mimic::{Failed, Trial};
use tfrt::codes;

use super::{compare, is_blessing, run};

pub fn trials() -> Vec<Trial> {
    let mut trials: Vec<Trial> = codes::all()
        .iter()
        .map(|&(code, summary)| {
            Trial::test(format!("explanation of {code}"), move || {
                check(code, summary)
            })
        })
        .collect();
    trials.push(Trial::test("explanations and codes are the same", || {
        let mut files = Vec::new();
        for entry in fs::read_dir(folder())? {
            files.push(entry?.file_name().to_string_lossy().into_owned());
        }
        files.sort();
        let codes = codes::all().iter();
        let wanted: Vec<String> = codes.map(|(code, _)| format!("{code}.md")).collect();
        match files == wanted {
            true => Ok(()),
            false => Err(format!("expected {wanted:?}, found {files:?}").into()),
        }
    }));
    trials
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("diagnostics")
}

/// A block of a text.
struct Block<'t> {
    kind: &'t str,
    body: &'t str,
}

fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("\n```") {
        let (kind, behind) = rest[at + 4..].split_once('\n').unwrap_or_default();
        let end = behind.find("```").unwrap_or(behind.len());
        blocks.push(Block {
            kind,
            body: &behind[..end],
        });
        rest = &behind[(end + 3).min(behind.len())..];
    }
    blocks
}

fn check(code: &'static str, summary: &str) -> Result<(), Failed> {
    let text = codes::explanation(code).ok_or("there is no explanation")?;
    let title = format!("# {code}: {summary}\n");
    if !text.starts_with(&title) {
        return Err(format!("expected the title\n{title}").into());
    }
    if !text.contains("\n## What to do\n") {
        return Err("it does not say what to do".into());
    }
    let blocks = blocks(text);
    let mut programs = blocks.iter().filter(|block| block.kind.starts_with("mlir"));
    let Some(wrong) = programs.next() else {
        return match text.contains("\nTo see it: ") || code == "TF0626" || code == "TF0708" {
            true => Ok(()),
            false => Err("it has no program, and does not say how to see it".into()),
        };
    };
    let (status, said) = run_block(code, wrong)?;
    let is_other = |(at, _): (usize, &str)| said.get(at + 2..at + 8) != Some(code);
    if status == 0 || !said.contains(&format!(" [{code}]")) {
        return Err(format!("expected {code}, found\n{said}").into());
    }
    if said.match_indices(" [TF").any(is_other) {
        return Err(format!("expected {code} alone, found\n{said}").into());
    }
    let right = programs.next().ok_or("it has no program that is right")?;
    let (status, words) = run_block(code, right)?;
    if status != 0 || words.contains("error: ") {
        return Err(format!("expected no error from the second program, found\n{words}").into());
    }
    let shown = blocks.iter().find(|block| block.kind == "text");
    let shown = shown.ok_or("it does not show what is said")?;
    let path = folder().join(format!("{code}.md"));
    match shown.body == said {
        true => Ok(()),
        false if is_blessing() => Ok(fs::write(&path, text.replacen(shown.body, &said, 1))?),
        false => compare(&path, &text.replacen(shown.body, &said, 1)),
    }
}

fn run_block(code: &str, block: &Block<'_>) -> Result<(i32, String), Failed> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("explanations")
        .join(code);
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("program.mlir"), block.body)?;
    let command = block.kind.strip_prefix("mlir ").unwrap_or("check");
    let mut line: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
    line.push("program.mlir".to_owned());
    run(&folder, &line)
}
