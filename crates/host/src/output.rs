//! [`Output`]: the writers that kernels print and log to.
//!
//! Printing is an effect of the program, not of this library: a host owns one `Output`, and every
//! kernel that prints goes through it. By default it leads to the process's standard output and
//! standard error; an embedding program, or a test, leads it elsewhere.
//!
//! # Invariants
//!
//! * One call is one write of whole lines, followed by a flush: lines of different threads never
//!   mix, and what was printed is seen even if the process dies next.
//! * Printing never fails a kernel and never panics. The first error is kept for whoever asks
//!   ([`Output::failure`]): a reader that went away is no reason to take the program down.

use std::fmt;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// A pair of writers for text: one for what a program prints and one for its log. A counted handle.
///
/// # Examples
///
/// ```
/// use tfrt_host::{HostContext, Output, kernel::KernelRegistry};
///
/// let (output, captured) = Output::captured();
/// let host = HostContext::builder(KernelRegistry::new()).output(output).build();
/// host.output().print(format_args!("int32 = {}", 42));
/// host.output().log(format_args!("done"));
/// assert_eq!(captured.printed(), "int32 = 42\n");
/// assert_eq!(captured.logged(), "done\n");
/// ```
#[derive(Clone)]
pub struct Output(Arc<Inner>);

struct Inner {
    print: Mutex<Box<dyn Write + Send>>,
    log: Mutex<Box<dyn Write + Send>>,
    failure: OnceLock<io::ErrorKind>,
}

impl Output {
    /// Prints to `print` and logs to `log`.
    pub fn new(print: impl Write + Send + 'static, log: impl Write + Send + 'static) -> Self {
        Output(Arc::new(Inner {
            print: Mutex::new(Box::new(print)),
            log: Mutex::new(Box::new(log)),
            failure: OnceLock::new(),
        }))
    }

    /// Prints to the process's standard output and logs to its standard error.
    pub fn standard() -> Self {
        #[cfg(all(tfrt_for_size, unix))]
        use rustix::stdio::{stderr, stdout};
        #[cfg(not(all(tfrt_for_size, unix)))]
        use std::io::{stderr, stdout};

        Output::new(Stream(stdout()), Stream(stderr()))
    }

    /// Keeps everything in memory, to be read from the second part.
    pub fn captured() -> (Self, CapturedOutput) {
        Output::captured_within(usize::MAX)
    }

    /// Keeps so many bytes of each in memory; to print more is a failure, of the kind `StorageFull`.
    pub fn captured_within(max_bytes: usize) -> (Self, CapturedOutput) {
        let lines = || Lines {
            max_bytes,
            ..Lines::default()
        };
        let captured = CapturedOutput {
            print: lines(),
            log: lines(),
        };
        let output = Output::new(captured.print.clone(), captured.log.clone());
        (output, captured)
    }

    /// Prints one line, or several with line ends between them, at once.
    pub fn print(&self, text: impl fmt::Display) {
        self.write(&self.0.print, &text);
    }

    /// Prints as [`Output::print`] does, and returns the error if that failed.
    ///
    /// # Errors
    ///
    /// Why it could not be printed.
    pub fn try_print(&self, text: impl fmt::Display) -> io::Result<()> {
        self.try_write(&self.0.print, &text)
    }

    /// Logs one line, or several with line ends between them, at once.
    pub fn log(&self, text: impl fmt::Display) {
        self.write(&self.0.log, &text);
    }

    /// Returns the kind of the first error of printing or logging.
    pub fn failure(&self) -> Option<io::ErrorKind> {
        self.0.failure.get().copied()
    }

    fn write(&self, writer: &Mutex<Box<dyn Write + Send>>, text: &dyn fmt::Display) {
        let written = self.try_write(writer, text);
        if let Err(error) = written {
            let _ = self.0.failure.set(error.kind());
        }
    }

    fn try_write(
        &self,
        writer: &Mutex<Box<dyn Write + Send>>,
        text: &dyn fmt::Display,
    ) -> io::Result<()> {
        // Formatted before the lock is taken: what is displayed may print, too.
        let lines = format!("{text}\n");
        let mut writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
        writer.write_all(lines.as_bytes())?;
        writer.flush()
    }
}

/// A standard stream; where size counts more (`build.rs`), its descriptor, since each write is one of
/// whole lines.
struct Stream<S>(S);

#[cfg(not(all(tfrt_for_size, unix)))]
impl<S: Write> Write for Stream<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(all(tfrt_for_size, unix))]
impl<S: std::os::fd::AsFd> Write for Stream<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(rustix::io::write(&self.0, bytes)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Default for Output {
    fn default() -> Self {
        Output::standard()
    }
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Output")
            .field("failure", &self.failure())
            .finish_non_exhaustive()
    }
}

/// The text that was printed and logged through [`Output::captured`] so far.
#[derive(Clone, Debug, Default)]
pub struct CapturedOutput {
    print: Lines,
    log: Lines,
}

impl CapturedOutput {
    /// Returns the printed text.
    pub fn printed(&self) -> String {
        self.print.text()
    }

    /// Returns the logged text.
    pub fn logged(&self) -> String {
        self.log.text()
    }
}

/// Text in memory, written by one and read by another.
#[derive(Clone, Debug, Default)]
struct Lines {
    bytes: Arc<Mutex<Vec<u8>>>,
    max_bytes: usize,
}

impl Lines {
    fn text(&self) -> String {
        let bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut all = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        if bytes.len() > self.max_bytes - all.len() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        all.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn no_more_is_kept_than_is_allowed() {
        let (output, captured) = Output::captured_within(8);
        output.print("four");
        output.log("beside");
        assert_eq!(output.failure(), None);
        output.print("more");
        assert_eq!(output.failure(), Some(io::ErrorKind::StorageFull));
        output.print("xy");
        assert_eq!(captured.printed(), "four\nxy\n");
        assert_eq!(captured.logged(), "beside\n");
    }

    #[test]
    fn lines_of_different_threads_do_not_mix() {
        let (output, captured) = Output::captured();
        let threads: Vec<_> = ["a", "b", "c"]
            .map(|letter| {
                let output = output.clone();
                thread::spawn(move || {
                    for _ in 0..100 {
                        output.print(format_args!("{}", letter.repeat(50)));
                    }
                })
            })
            .into();
        for thread in threads {
            thread.join().unwrap();
        }
        let printed = captured.printed();
        assert_eq!(printed.lines().count(), 300);
        for line in printed.lines() {
            assert_eq!(line, line[..1].repeat(50));
        }
    }

    #[test]
    fn broken_pipe_is_kept_and_does_not_panic() {
        struct Broken;
        impl Write for Broken {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let output = Output::new(Broken, io::sink());
        output.print("lost");
        assert_eq!(output.failure(), Some(io::ErrorKind::BrokenPipe));
    }
}
