//! `tfrt explain`: the meaning of a code, with examples.

use std::io::{self, Write};

use tfrt::codes;

use crate::failure::{ExitStatus, Failure};
use crate::options::ExplainOptions;

/// Explains a code, or lists all.
pub fn explain(options: &ExplainOptions) -> Result<ExitStatus, Failure> {
    let text = match &options.code {
        None => list(),
        Some(asked) => {
            let code = normalized(asked);
            let explanation = codes::explanation(&code).map(str::to_owned);
            explanation
                .or_else(|| status(asked))
                .ok_or_else(|| unknown(asked, &code))?
        }
    };
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(ExitStatus::Fine)
}

fn list() -> String {
    let line = |(code, summary): &(&str, &str)| format!("{code}  {summary}\n");
    codes::all().iter().map(line).collect()
}

/// Returns the code that somebody means: `103`, `0103`, `tf0103` and, as in messages, `[TF0103]`
/// are `TF0103`.
fn normalized(asked: &str) -> String {
    let upper = bare(asked).to_uppercase();
    let digits = upper.strip_prefix("TF").unwrap_or(&upper);
    format!("TF{digits:0>4}")
}

/// Returns what stands between spaces and brackets.
fn bare(asked: &str) -> &str {
    let asked = asked.trim();
    let inner = asked.strip_prefix('[').and_then(|a| a.strip_suffix(']'));
    inner.unwrap_or(asked).trim()
}

/// Returns the meaning of a status of errors at run time, which have no code.
fn status(asked: &str) -> Option<String> {
    let (status, meaning) = codes::status(bare(asked))?;
    Some(format!(
        "{status}: a status of errors at run time: {meaning}.\n\nThe message of the error says more; \
         `tfrt kernels NAME` tells when a kernel fails.\n"
    ))
}

fn unknown(asked: &str, code: &str) -> Failure {
    let differing = |known: &str| {
        let pairs = known.chars().zip(code.chars());
        pairs.filter(|(a, b)| a != b).count()
    };
    let close = codes::all()
        .iter()
        .map(|&(known, _)| known)
        .filter(|known| known.len() == code.len())
        .min_by_key(|known| differing(known))
        .filter(|known| differing(known) == 1);
    let advice = match close {
        Some(close) => format!("there is {close}; `tfrt explain --list` names them all"),
        None => "`tfrt explain --list` names them all".to_owned(),
    };
    Failure::Rejected {
        code: None,
        message: format!("no diagnostic has the code '{asked}'"),
        help: Some(advice),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_may_be_written_short_or_small() {
        for asked in [
            "TF0103", "tf0103", "0103", "103", " 103 ", "[TF0103]", "[103]",
        ] {
            assert_eq!(normalized(asked), "TF0103");
        }
    }
}
