//! Names of tasks: `/job:worker/task:1`.

use tfrt_async::{ClusterTask, Error};

/// Parses the name of a task. What follows it, mostly a device (`/device:CPU:0`), is left aside.
///
/// # Errors
///
/// `InvalidArgument`, with what was expected, where the text is no name.
///
/// # Examples
///
/// ```
/// let task = tfrt_dist::task::parse("/job:worker/task:1/device:CPU:0").unwrap();
/// assert_eq!(task.to_string(), "/job:worker/task:1");
/// ```
pub fn parse(text: &str) -> Result<ClusterTask, Error> {
    let refused = |why: &str| {
        Error::invalid_argument(format!(
            "Error parsing task name \"{text}\": {why}, as in /job:worker/task:1"
        ))
    };
    let rest = text
        .strip_prefix("/job:")
        .ok_or_else(|| refused("expected /job: and a name"))?;
    let job_len = rest
        .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .unwrap_or(rest.len());
    let (job, rest) = rest.split_at(job_len);
    if !is_job(job) {
        return Err(refused(
            "expected a job of letters, digits and '_' that begins with a letter",
        ));
    }
    let rest = rest
        .strip_prefix("/task:")
        .ok_or_else(|| refused("expected /task: and a number behind the job"))?;
    let n_digits = rest
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(rest.len());
    let task = parse_number(&rest[..n_digits])
        .ok_or_else(|| refused("expected a number below 2^31 without leading zeros"))?;
    Ok(ClusterTask {
        job: job.to_owned(),
        task,
    })
}

/// Returns whether a text can be the name of a job.
pub fn is_job(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_')
}

/// Parses the number of a task: below 2^31, without leading zeros.
pub(crate) fn parse_number(text: &str) -> Option<u32> {
    let is_plain = text == "0" || !text.starts_with(['0', '+']);
    let number = text.parse().ok().filter(|number| *number < 1 << 31);
    number.filter(|_| is_plain)
}
