//! [`Verdict`]: the result of a case.

use serde::{Deserialize, Serialize};

/// The result of a case.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Verdict {
    /// The folder's name.
    pub name: String,
    /// The operations of the case's model, `domain.Name` for those of other domains, each once.
    pub operations: Vec<String>,
    /// The types of elements of the model's inputs and outputs, each once.
    pub types: Vec<String>,
    /// A hash of the bits of all outputs; `None` if there are none, or if they are random.
    pub bits: Option<u64>,
    /// The number of nodes on the device that the case was run on, and of those without a kernel there.
    #[serde(default)]
    pub placed: Option<(usize, usize)>,
    /// The operations without a kernel on that device, each once.
    #[serde(default)]
    pub without: Vec<String>,
    /// The way in which the case ended.
    pub ending: CaseEnd,
}

/// The way in which a case ended.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub enum CaseEnd {
    /// All outputs are what is expected.
    Passed,
    /// A stage failed, for this reason: outputs differ, or there are none.
    Failed(Stage, String),
    /// The worker crashed.
    Crashed(String),
    /// The worker had to be stopped: it took too long.
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
    /// Returns the name of the stage, for messages.
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
    /// Returns the verdict of a case of which nothing is known but how it ended.
    pub fn of(name: &str, ending: CaseEnd) -> Verdict {
        Verdict {
            name: name.to_owned(),
            operations: Vec::new(),
            types: Vec::new(),
            bits: None,
            placed: None,
            without: Vec::new(),
            ending,
        }
    }

    /// Returns whether all outputs are what is expected.
    pub fn passes(&self) -> bool {
        matches!(self.ending, CaseEnd::Passed)
    }

    /// Returns the reason why the case failed, if it did.
    pub fn reason(&self) -> Option<String> {
        match &self.ending {
            CaseEnd::Passed => None,
            CaseEnd::Failed(stage, reason) => Some(format!("{}: {reason}", stage.name())),
            CaseEnd::Crashed(status) => Some(format!("crashed: {status}")),
            CaseEnd::Hung => Some("hung".to_owned()),
        }
    }
}
