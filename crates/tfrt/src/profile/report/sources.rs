//! The texts of the lines on which kernels stand, as much of them as a page can have.

use super::SourceText;
use super::json::Json;
use super::source_lines::SourceLines;

/// The most bytes of texts on a page.
const MAX_BYTES: usize = 8 << 20;
/// The number of files with texts.
const MAX_FILES: usize = 64;
/// The most lines of a file that is shown as a whole; of a longer one lines around kernels are
/// shown.
const MAX_LINES: usize = 20_000;
/// The number of lines shown before a kernel's, and behind it, where not all are.
const AROUND: usize = 3;
/// The most characters of a line.
const MAX_CHARS: usize = 400;

/// A file as a page shows it.
pub struct FileText {
    name: String,
    is_words: bool,
    is_read_later: bool,
    has_text: bool,
    /// Lines with their numbers from 1, in order.
    lines: Vec<(usize, String)>,
    /// The number of lines of the file.
    n_lines: usize,
}

/// Finds the texts of all files of `places`.
pub fn collect(places: &SourceLines, source: &dyn Fn(&str) -> Option<SourceText>) -> Vec<FileText> {
    let mut of_file: Vec<Vec<usize>> = vec![Vec::new(); places.files().len()];
    for line in places.lines() {
        if let (Some(file), Ok(number)) = (line.file, usize::try_from(line.line)) {
            of_file[file].push(number);
        }
    }
    let mut n_bytes_left = MAX_BYTES;
    let files = places.files().iter().zip(of_file).enumerate();
    files
        .map(|(index, (file, mut wanted))| {
            wanted.sort_unstable();
            let is_sought = !file.is_words && index < MAX_FILES && n_bytes_left > 0;
            let found = is_sought.then(|| source(&file.name)).flatten();
            let text = found.as_ref().map_or("", |found| &found.text);
            let (n_lines, lines) = excerpt(text, &wanted, &mut n_bytes_left);
            FileText {
                name: file.name.clone(),
                is_words: file.is_words,
                is_read_later: found.as_ref().is_some_and(|found| found.is_read_later),
                has_text: found.is_some(),
                lines,
                n_lines,
            }
        })
        .collect()
}

/// Returns the number of lines, and those to show: all, or those near to lines that are `wanted`.
fn excerpt(
    text: &str,
    wanted: &[usize],
    n_bytes_left: &mut usize,
) -> (usize, Vec<(usize, String)>) {
    let n_lines = text.lines().count();
    let is_near = |number: usize| {
        let first = wanted.partition_point(|line| line + AROUND < number);
        wanted
            .get(first)
            .is_some_and(|line| *line <= number + AROUND)
    };
    let mut lines = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        if n_lines > MAX_LINES && !is_near(number) {
            continue;
        }
        let line = match line.char_indices().nth(MAX_CHARS) {
            Some((end, _)) => format!("{}…", &line[..end]),
            None => line.to_owned(),
        };
        let Some(left) = n_bytes_left.checked_sub(line.len() + 1) else {
            *n_bytes_left = 0;
            break;
        };
        *n_bytes_left = left;
        lines.push((number, line));
    }
    (n_lines, lines)
}

impl FileText {
    /// Writes the file. Lines come in stretches without gaps.
    pub fn write(&self, json: &mut Json) {
        json.object(|json| {
            json.field("name").text(&self.name);
            json.field("is_words").number(self.is_words);
            json.field("is_read_later").number(self.is_read_later);
            json.field("has_text").number(self.has_text);
            json.field("n_lines").number(self.n_lines);
            json.field("text").list(|json| {
                let stretches = self.lines.chunk_by(|(a, _), (b, _)| a + 1 == *b);
                for stretch in stretches {
                    json.object(|json| {
                        json.field("first").number(stretch[0].0);
                        let lines = stretch.iter().map(|(_, line)| line.as_str());
                        json.field("lines").texts(lines);
                    });
                }
            });
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_files_are_shown_around_kernels() {
        let text: String = (1..=MAX_LINES + 1)
            .map(|line| format!("{line}\n"))
            .collect();
        let (n_lines, lines) = excerpt(&text, &[2, 5_000, 5_001], &mut (1 << 20));
        assert_eq!(n_lines, MAX_LINES + 1);
        let numbers: Vec<usize> = lines.iter().map(|(number, _)| *number).collect();
        let expected: Vec<usize> = (1..=5).chain(4_997..=5_004).collect();
        assert_eq!(numbers, expected);
        assert!(
            lines
                .iter()
                .all(|(number, line)| *line == number.to_string())
        );
    }

    #[test]
    fn long_lines_and_texts_are_cut() {
        let long = "é".repeat(MAX_CHARS + 1);
        let mut n_bytes_left = 4 * MAX_CHARS;
        let (_, lines) = excerpt(&format!("{long}\n{long}\n"), &[], &mut n_bytes_left);
        assert_eq!(lines.len(), 1);
        assert_eq!(lines[0].1.chars().count(), MAX_CHARS + 1);
        assert_eq!(n_bytes_left, 0);
    }
}
