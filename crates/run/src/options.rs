//! The command line of `tfrt-run`, read by hand: a parser of command lines weighs more than all
//! kernels together.

use crate::queue::QueueOption;

pub const HELP: &str = "\
Runs compiled programs: the runtime of tfrt with its basic kernels, for small devices

Usage: tfrt-run [OPTIONS] FILE

  FILE               The program, compiled by `tfrt compile`; - for standard input

Options:
  --function NAME    Run this function (may be repeated) instead of all
  --arg VALUE        A parameter of the function (may be repeated), read according to its type
  --queue QUEUE      Who runs the kernels: `single`, or `multi[:THREADS[:BLOCKING]]` [default: multi]
  --print-error-code Name the code of each error in the results
  -h, --help         Print help
  -V, --version      Print version

Exit status:
  0   all is well
  1   the program was rejected, or a file could not be read or written
  2   the command line makes no sense
  3   a function returned an error
  5   a limit was exceeded: depth, steps or memory
  70  a fault of tfrt-run itself";

/// The request of a command line.
#[derive(Debug, PartialEq, Eq)]
pub enum Request {
    Help,
    Version,
    Run(Options),
}

/// The options of a run.
#[derive(Debug, PartialEq, Eq)]
pub struct Options {
    pub file: String,
    pub functions: Vec<String>,
    pub arguments: Vec<String>,
    pub queue: QueueOption,
    pub print_error_code: bool,
}

/// Reads the words behind the command's name.
///
/// # Errors
///
/// What makes no sense, in words.
pub fn read(words: Vec<String>) -> Result<Request, String> {
    let mut words = words.into_iter();
    let mut file = None;
    let mut options = Options {
        file: String::new(),
        functions: Vec::new(),
        arguments: Vec::new(),
        queue: QueueOption::DEFAULT,
        print_error_code: false,
    };
    let mut only_files = false;
    while let Some(word) = words.next() {
        if only_files || word == "-" || !word.starts_with('-') {
            if file.replace(word).is_some() {
                return Err("one file is expected, found two".to_owned());
            }
            continue;
        }
        let (name, joined) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (&*word, None),
        };
        if joined.is_some() && !["--function", "--arg", "--queue"].contains(&name) {
            return Err(format!("'{name}' takes no value"));
        }
        let mut value = || {
            let value = joined.clone().or_else(|| words.next());
            value.ok_or_else(|| format!("a value is expected behind '{name}'"))
        };
        match name {
            "-h" | "--help" => return Ok(Request::Help),
            "-V" | "--version" => return Ok(Request::Version),
            "--function" => options.functions.push(value()?),
            "--arg" => options.arguments.push(value()?),
            "--queue" => {
                let text = value()?;
                let queue = text.parse();
                options.queue = queue.map_err(|error| format!("'--queue {text}': {error}"))?;
            }
            "--print-error-code" => options.print_error_code = true,
            "--" => only_files = true,
            _ => return Err(format!("'{name}' is not an option")),
        }
    }
    options.file = file.ok_or("a file is expected")?;
    Ok(Request::Run(options))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Result<Request, String> {
        read(
            line.split(' ')
                .filter(|word| !word.is_empty())
                .map(str::to_owned)
                .collect(),
        )
    }

    #[test]
    fn options_are_read_with_values_behind_or_joined() {
        let line = "--function f --arg=-1 --arg -2 --queue single p.bef --print-error-code";
        let expected = Options {
            file: "p.bef".to_owned(),
            functions: vec!["f".to_owned()],
            arguments: vec!["-1".to_owned(), "-2".to_owned()],
            queue: QueueOption::Single,
            print_error_code: true,
        };
        assert_eq!(of(line), Ok(Request::Run(expected)));
        let Ok(Request::Run(options)) = of("-- --help") else {
            panic!("a file may have any name");
        };
        assert_eq!(options.file, "--help");
    }

    #[test]
    fn help_and_version_come_first() {
        assert_eq!(of("-h"), Ok(Request::Help));
        assert_eq!(of("p.bef --version"), Ok(Request::Version));
    }

    #[test]
    fn nonsense_is_refused_in_words() {
        let cases = [
            ("", "a file is expected"),
            ("a b", "one file is expected, found two"),
            ("a --fast", "'--fast' is not an option"),
            ("a --help=1", "'--help' takes no value"),
            ("a --arg", "a value is expected behind '--arg'"),
            (
                "a --queue=many",
                "'--queue many': expected `single` or `multi[:THREADS[:BLOCKING]]`",
            ),
        ];
        for (line, message) in cases {
            assert_eq!(of(line).unwrap_err(), message);
        }
    }
}
