//! [`run`]: the command `tfrt` as a function: argument parsing and exit statuses; [`graph_page`]: what `tfrt inspect` shows.
//!
//! The program `tfrt` calls it with its command line, and the package for Python with its own.

use std::ffi::OsString;
use std::io::Write;
use std::panic::{self, AssertUnwindSafe};

use clap::Parser;
use clap::error::{ContextKind, ContextValue};
use tfrt::ir::visible;
use tfrt_run::report::unless_unread;

use crate::commands;
use crate::console::Console;
use crate::data;
use crate::failure::{ExitStatus, Failure};
use crate::options::{Cli, Color, Command, MessageFormat};

pub use crate::commands::inspect::graph_page;

/// Runs the command with these words, of which the first is the program's name, and returns the exit status. It is for
/// processes that end then: it takes over what interrupts do and how panics are told, and may end the process itself.
///
/// # Examples
///
/// ```
/// let words = ["tfrt", "explain", "TF0201"].map(Into::into);
/// assert_eq!(tfrt::command::run(&words), 0);
/// ```
pub fn run(words: &[OsString]) -> u8 {
    status(words) as u8
}

fn status(words: &[OsString]) -> ExitStatus {
    hide_panics_of_kernels();
    let cli = match Cli::try_parse_from(words) {
        Ok(cli) => cli,
        Err(error) => {
            return match error.use_stderr() {
                true => {
                    tell_usage(&error, words);
                    ExitStatus::Usage
                }
                // Help and version are no errors.
                false => match unless_unread(error.print()) {
                    Ok(()) => ExitStatus::Fine,
                    Err(reason) => {
                        let failure = Failure::Output(reason);
                        console_by_words(words).failure(&failure);
                        failure.status()
                    }
                },
            };
        }
    };
    let console = Console::new(cli.color, cli.message_format);
    let outcome = panic::catch_unwind(AssertUnwindSafe(|| execute(&cli.command, &console)));
    outcome.unwrap_or_else(|_| {
        console.say(
            "tfrt: this is a fault of tfrt itself, not of your program; \
             please report it with the program and the lines above\n",
        );
        ExitStatus::Internal
    })
}

fn execute(command: &Command, console: &Console) -> ExitStatus {
    let done = match command {
        Command::Run(options) => commands::run::run(options, console),
        Command::Bench(options) => commands::bench::bench(options, console),
        Command::Compile(options) => commands::compile::compile(options, console),
        Command::Decompile(options) => commands::decompile::decompile(options, console),
        Command::Dump(options) => commands::dump::dump(options),
        Command::Diff(options) => commands::diff::diff(options, console),
        Command::Opt(options) => commands::opt::opt(options, console),
        Command::Check(options) => commands::check::check(options, console),
        Command::Inspect(options) => commands::inspect::inspect(options, console),
        Command::Kernels(options) => commands::kernels::kernels(options),
        #[cfg(feature = "plugins")]
        Command::Plugin(options) => commands::plugin::plugin(options, console),
        Command::Devices(_) => commands::devices::devices(),
        #[cfg(feature = "dist")]
        Command::Cluster(options) => commands::cluster::cluster(options, console),
        #[cfg(feature = "dist")]
        Command::Worker(options) => commands::worker::worker(options, console),
        #[cfg(feature = "serve")]
        Command::Serve(options) => commands::serve::serve(options, console),
        Command::Explain(options) => commands::explain::explain(options),
        Command::Lsp(options) => commands::lsp::lsp(options),
        Command::Completions(options) => commands::completions::completions(options),
    };
    done.unwrap_or_else(|failure| {
        console.failure(&failure);
        let status = failure.status();
        match commands::rejection::report(command, &failure, console) {
            Ok(()) => status,
            Err(unwritten) => {
                console.failure(&unwritten);
                status.max(unwritten.status())
            }
        }
    })
}

/// Makes the console that a command line asks for which is not read as a whole.
fn console_by_words(words: &[OsString]) -> Console {
    match wants_json(words) {
        true => Console::new(Color::Never, MessageFormat::Json),
        false => Console::new(Color::Auto, MessageFormat::Full),
    }
}

/// Returns whether messages are to be JSON, by a command line that can't be read as a whole.
fn wants_json(words: &[OsString]) -> bool {
    let ends = words.iter().position(|word| word == "--");
    let words = &words[..ends.unwrap_or(words.len())];
    let is_pair = |pair: &[OsString]| pair[0] == "--message-format" && pair[1] == "json";
    words.windows(2).any(is_pair) || words.iter().any(|word| word == "--message-format=json")
}

/// Tells what is wrong with the command line, in colours unless a word of it would be obeyed by a terminal.
fn tell_usage(error: &clap::Error, words: &[OsString]) {
    let hides = |word: &OsString| {
        let word = word.to_string_lossy().into_owned();
        visible::name(&word) != word
    };
    let hint = hint(error).unwrap_or_default();
    if wants_json(words) {
        return console_by_words(words).usage(&format!("{}{hint}", error.render()));
    }
    // Nothing can be done if it can't be printed.
    let _ = match words.iter().any(hides) {
        true => {
            let text = error.render().to_string();
            std::io::stderr().write_all(visible::text(&text).as_bytes())
        }
        false => error.print(),
    };
    let _ = std::io::stderr().write_all(hint.as_bytes());
}

/// Returns a line for a mistake that has a name of its own: a file where `tfrt inspect` is to be told a view.
fn hint(error: &clap::Error) -> Option<String> {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let is_view = text(ContextKind::InvalidArg)? == "<VIEW>";
    let file = text(ContextKind::InvalidValue).filter(|_| is_view)?;
    let file = visible::name(file);
    Some(format!(
        "\nThe view comes before the file: tfrt inspect graph {file}\n"
    ))
}

/// Keeps panics of kernels from standard error, whose messages go to the results that fail, and those that become
/// errors.
fn hide_panics_of_kernels() {
    let loud = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if !tfrt::host::is_in_kernel() && !data::text::is_guarded() {
            loud(info);
        }
    }));
}
