//! The report on a run: all records of a folder as one JSON, `gpu-check.json`, and as a table.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::io;
use std::path::Path;

use super::records::COLUMNS;

/// Writes `gpu-check.json` into a folder, of the files in it that end in `.records`, and returns a table of them. Beside a
/// measurement stands that of a peer by the same name, of the files that begin with `peers`.
pub fn report(folder: &Path) -> io::Result<String> {
    let (mut records, mut peers) = (Vec::new(), BTreeMap::new());
    let mut paths: Vec<_> = fs::read_dir(folder)?
        .map(|entry| Ok(entry?.path()))
        .collect::<io::Result<_>>()?;
    paths.sort();
    for path in &paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if let Some(part) = name.strip_suffix(".records") {
            let text = fs::read_to_string(path)?;
            records.extend(text.lines().map(|line| (part.to_owned(), columns(line))));
        } else if name.starts_with("peers") && name.ends_with(".txt") {
            let text = fs::read_to_string(path)?;
            peers.extend(text.lines().filter_map(measurement));
        }
    }
    fs::write(folder.join("gpu-check.json"), json(&records, &peers))?;
    Ok(table(&records, &peers))
}

/// The part of a run that a record is of, and its columns.
type Record = (String, Vec<String>);

fn columns(line: &str) -> Vec<String> {
    line.split('\t').map(str::to_owned).collect()
}

/// Returns the name and the number of a line such as `softmax: 1.5 us (1 to 2)`.
fn measurement(line: &str) -> Option<(String, f64)> {
    let (name, rest) = line.rsplit_once(": ")?;
    let number = rest.split(' ').next()?.parse().ok()?;
    Some((name.to_owned(), number))
}

/// Returns one object for each record, and of peers, in a list. Numbers are numbers, what is empty is left out.
fn json(records: &[Record], peers: &BTreeMap<String, f64>) -> String {
    let mut objects = Vec::new();
    for (part, columns) in records {
        let mut fields = vec![format!("\"part\": {}", quoted(part))];
        for (name, value) in COLUMNS.iter().zip(columns) {
            // A verdict is a word, and so is the name of a unit.
            let is_number = matches!(*name, "result" | "low" | "high" | "seed");
            match value.parse::<f64>() {
                _ if value.is_empty() => {}
                Ok(number) if is_number && number.is_finite() => {
                    fields.push(format!("\"{name}\": {value}"));
                }
                _ => fields.push(format!("\"{name}\": {}", quoted(value))),
            }
        }
        objects.push(format!("{{{}}}", fields.join(", ")));
    }
    let peers = peers.iter().filter(|(_, number)| number.is_finite());
    objects.extend(peers.map(|(name, number)| {
        let name = quoted(name);
        format!("{{\"part\": \"peers\", \"kind\": \"measurement\", \"name\": {name}, \"result\": {number}}}")
    }));
    format!("[\n{}\n]\n", objects.join(",\n"))
}

/// Returns a text as JSON has it.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            _ if letter.is_control() => {
                let _written = write!(quoted, "\\u{:04x}", u32::from(letter));
            }
            _ => quoted.push(letter),
        }
    }
    quoted + "\""
}

/// Returns a table: how many checks of each part have passed, which have failed, and each measurement beside its peer.
fn table(records: &[Record], peers: &BTreeMap<String, f64>) -> String {
    let mut text = String::new();
    let column = |columns: &'_ [String], at: usize| columns.get(at).cloned().unwrap_or_default();
    let mut parts: BTreeMap<&str, (u32, u32)> = BTreeMap::new();
    let mut failed = Vec::new();
    for (part, columns) in records.iter().filter(|(_, columns)| columns[0] == "check") {
        let counts = parts.entry(part).or_default();
        match column(columns, 2) == "passed" {
            true => counts.0 += 1,
            false => {
                counts.1 += 1;
                failed.push(format!(
                    "{part}: {}: {}",
                    column(columns, 1),
                    column(columns, 9)
                ));
            }
        }
    }
    text += "| Checks | Passed | Failed |\n| --- | --- | --- |\n";
    for (part, (n_passed, n_failed)) in &parts {
        text += &format!("| {part} | {n_passed} | {n_failed} |\n");
    }
    for line in &failed {
        text += &format!("FAILED: {line}\n");
    }
    text += "\n| Measured | Ours | From, to | Unit | Peer | Ratio |\n| --- | --- | --- | --- | --- | --- |\n";
    for (_, columns) in records
        .iter()
        .filter(|(_, columns)| columns[0] == "measurement")
    {
        let (name, ours) = (column(columns, 1), column(columns, 2));
        let peer = peers.get(&name).map_or_else(Default::default, |peer| {
            let ratio = ours.parse::<f64>().map(|ours| ours / peer);
            (
                format!("{peer:.3}"),
                ratio.map_or_else(|_| String::new(), |ratio| format!("{ratio:.2}")),
            )
        });
        let (low, high, unit) = (column(columns, 4), column(columns, 5), column(columns, 3));
        text += &format!(
            "| {name} | {ours} | {low}, {high} | {unit} | {} | {} |\n",
            peer.0, peer.1
        );
    }
    text
}
