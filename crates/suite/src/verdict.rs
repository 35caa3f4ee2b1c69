//! [`Verdict`]: how a case went.

use serde::{Deserialize, Serialize};

/// How a case went.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Verdict {
    /// The folder's name.
    pub name: String,
    /// The operations of its model, `domain.Name` for those of other domains, each once.
    pub operations: Vec<String>,
    /// The types of elements of the model's inputs and outputs, each once.
    pub types: Vec<String>,
    /// A hash of the bits of all outputs; `None` if there are none, or if they are random.
    pub bits: Option<u64>,
    /// What came of it.
    pub ending: Ending,
}

/// What came of a case.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub enum Ending {
    /// All outputs are what is expected.
    Passed,
    /// They are not, or there are none: the stage that it did not pass, and why.
    Failed(Stage, String),
    /// The worker went down.
    Crashed(String),
    /// The worker had to be stopped.
    Hung,
}

/// A stage of a case.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub enum Stage {
    /// Reading inputs and expected outputs.
    Read,
    /// Opening the model: import, compile, load.
    Open,
    /// The call.
    Call,
    /// Comparing outputs.
    Compare,
}

impl Stage {
    /// What the case failed to do.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Read => "read",
            Stage::Open => "open",
            Stage::Call => "call",
            Stage::Compare => "compare",
        }
    }
}

impl Verdict {
    /// A case of which nothing is known yet but how it ended.
    pub fn of(name: &str, ending: Ending) -> Verdict {
        Verdict {
            name: name.to_owned(),
            operations: Vec::new(),
            types: Vec::new(),
            bits: None,
            ending,
        }
    }

    /// Whether all outputs are what is expected.
    pub fn passes(&self) -> bool {
        matches!(self.ending, Ending::Passed)
    }

    /// Why the case failed, if it did.
    pub fn reason(&self) -> Option<String> {
        match &self.ending {
            Ending::Passed => None,
            Ending::Failed(stage, reason) => Some(format!("{}: {reason}", stage.name())),
            Ending::Crashed(status) => Some(format!("crashed: {status}")),
            Ending::Hung => Some("hung".to_owned()),
        }
    }
}
