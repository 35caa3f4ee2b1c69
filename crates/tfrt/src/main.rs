//! The command `tfrt`: argument parsing and exit statuses.

#![deny(unsafe_code)]

use std::ffi::OsString;
use std::io::Write;
use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;

use clap::Parser;
use tfrt::ir::visible;
use tfrt_run::report::unless_unread;

mod commands;
mod data;
mod failure;
mod options;
mod talk;

use failure::{ExitStatus, Failure};
use options::{Cli, Color, Command, MessageFormat};
use talk::Talk;

fn main() -> ExitCode {
    hide_panics_of_kernels();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            return match error.use_stderr() {
                true => {
                    tell_usage(&error);
                    ExitStatus::Usage.into()
                }
                // Help and version are no errors.
                false => match unless_unread(error.print()) {
                    Ok(()) => ExitCode::SUCCESS,
                    Err(reason) => {
                        let failure = Failure::Output(reason);
                        talk_by_words().failure(&failure);
                        failure.status().into()
                    }
                },
            };
        }
    };
    let talk = Talk::new(cli.color, cli.message_format);
    let outcome = panic::catch_unwind(AssertUnwindSafe(|| execute(&cli.command, &talk)));
    outcome
        .unwrap_or_else(|_| {
            talk.say(
                "tfrt: this is a fault of tfrt itself, not of your program; \
                 please report it with the program and the lines above\n",
            );
            ExitStatus::Internal
        })
        .into()
}

fn execute(command: &Command, talk: &Talk) -> ExitStatus {
    let done = match command {
        Command::Run(options) => commands::run::run(options, talk),
        Command::Bench(options) => commands::bench::bench(options, talk),
        Command::Compile(options) => commands::compile::compile(options, talk),
        Command::Decompile(options) => commands::decompile::decompile(options, talk),
        Command::Dump(options) => commands::dump::dump(options),
        Command::Diff(options) => commands::diff::diff(options, talk),
        Command::Opt(options) => commands::opt::opt(options, talk),
        Command::Check(options) => commands::check::check(options, talk),
        Command::Inspect(options) => commands::inspect::inspect(options, talk),
        Command::Kernels(options) => commands::kernels::kernels(options),
        Command::Explain(options) => commands::explain::explain(options),
        Command::Lsp(options) => commands::lsp::lsp(options),
        Command::Completions(options) => commands::completions::completions(options),
    };
    done.unwrap_or_else(|failure| {
        talk.failure(&failure);
        let status = failure.status();
        match commands::rejection::report(command, &failure, talk) {
            Ok(()) => status,
            Err(unwritten) => {
                talk.failure(&unwritten);
                status.max(unwritten.status())
            }
        }
    })
}

/// Talks as is asked for by a command line that is not read as a whole.
fn talk_by_words() -> Talk {
    match wants_json() {
        true => Talk::new(Color::Never, MessageFormat::Json),
        false => Talk::new(Color::Auto, MessageFormat::Full),
    }
}

/// Tells whether messages are to be JSON, by a command line that can't be read as a whole.
fn wants_json() -> bool {
    let words: Vec<OsString> = std::env::args_os()
        .take_while(|word| word != "--")
        .collect();
    let is_pair = |pair: &[OsString]| pair[0] == "--message-format" && pair[1] == "json";
    words.windows(2).any(is_pair) || words.iter().any(|word| word == "--message-format=json")
}

/// Says what is wrong with the command line, in colours unless a word of it would be obeyed by a terminal.
fn tell_usage(error: &clap::Error) {
    let hides = |word: OsString| {
        let word = word.to_string_lossy().into_owned();
        visible::name(&word) != word
    };
    if wants_json() {
        return talk_by_words().usage(&error.render().to_string());
    }
    // Nothing can be done if it can't be printed.
    let _ = match std::env::args_os().any(hides) {
        true => {
            let text = error.render().to_string();
            std::io::stderr().write_all(visible::text(&text).as_bytes())
        }
        false => error.print(),
    };
}

/// A kernel that panics fails its results, which is where its message goes.
fn hide_panics_of_kernels() {
    let loud = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if !tfrt::host::is_in_kernel() {
            loud(info);
        }
    }));
}
