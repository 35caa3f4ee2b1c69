//! [`Equation`]: an equation of einsum, whose letters name dimensions.

/// The dimensions of the operands and of the result of an einsum, by labels.
///
/// Dimensions of one label have one extent, and are summed over unless the result has the label, too.
///
/// # Examples
///
/// ```
/// use tfrt_ops::einsum::{Equation, Label};
///
/// let equation = Equation::parse("...i, ij", &[2, 2])?;
/// let [i, j] = ['i', 'j'].map(Label::Letter);
/// assert_eq!(equation.operands, [vec![Label::Unnamed(0), i], vec![i, j]]);
/// assert_eq!(equation.result, [Label::Unnamed(0), j]);
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Equation {
    /// For each operand the label of each dimension.
    pub operands: Vec<Vec<Label>>,
    /// The label of each dimension of the result.
    pub result: Vec<Label>,
}

/// The name of a dimension in an equation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Label {
    /// A dimension that `...` stands for, counted from the last one of these.
    Unnamed(usize),
    /// A dimension with a letter.
    Letter(char),
}

impl Equation {
    /// Reads an equation for operands of these ranks: a term for each operand, with commas between, then mostly `->` and a term
    /// for the result. Without that the result has the letters that stand once, in the order of the alphabet, behind dimensions
    /// without a letter.
    ///
    /// # Errors
    ///
    /// If it has not a term for each operand, a term has other signs than ASCII letters, blanks and one `...`, or an operand has
    /// not so many dimensions.
    pub fn parse(text: &str, ranks: &[usize]) -> Result<Equation, String> {
        let (left, right) = match text.split_once("->") {
            Some((left, right)) => (left, Some(right)),
            None => (text, None),
        };
        let terms: Vec<&str> = left.split(',').collect();
        if terms.len() != ranks.len() {
            return Err(format!(
                "has {} operands, the operation {}",
                terms.len(),
                ranks.len()
            ));
        }
        let mut n_unnamed = Vec::with_capacity(terms.len());
        for (term, rank) in terms.iter().zip(ranks) {
            let n_letters = term.chars().filter(char::is_ascii_alphabetic).count();
            match rank.checked_sub(n_letters) {
                Some(n) if n == 0 || term.contains("...") => n_unnamed.push(n),
                _ => {
                    return Err(format!(
                        "has the term '{}' for an operand of {rank} dimensions",
                        term.trim().escape_debug()
                    ));
                }
            }
        }
        let operands = terms.iter().zip(&n_unnamed);
        let operands: Result<Vec<Vec<Label>>, String> = operands
            .map(|(term, n_unnamed)| labels(term, *n_unnamed))
            .collect();
        let (operands, n_unnamed) = (operands?, n_unnamed.into_iter().max().unwrap_or(0));
        let result = match right {
            Some(term) => labels(term, n_unnamed)?,
            None => implicit(&operands, n_unnamed),
        };
        Ok(Equation { operands, result })
    }
}

/// Returns the labels of a term, of whose dimensions so many have no letter.
fn labels(term: &str, n_unnamed: usize) -> Result<Vec<Label>, String> {
    let (before, after) = term.split_once("...").unwrap_or((term, ""));
    let mut list = Vec::new();
    for (part, is_behind) in [(before, false), (after, true)] {
        if is_behind && term.contains("...") {
            list.extend((0..n_unnamed).rev().map(Label::Unnamed));
        }
        for letter in part.chars().filter(|letter| !letter.is_whitespace()) {
            if !letter.is_ascii_alphabetic() {
                let term = term.trim().escape_debug();
                return Err(format!("has a term that can't be read: '{term}'"));
            }
            list.push(Label::Letter(letter));
        }
    }
    Ok(list)
}

fn implicit(operands: &[Vec<Label>], n_unnamed: usize) -> Vec<Label> {
    let is_letter = |label: &&Label| matches!(label, Label::Letter(_));
    let all = || operands.iter().flatten().filter(is_letter);
    let is_alone = |label: &&Label| all().filter(|other| other == label).count() == 1;
    let mut once: Vec<Label> = all().filter(is_alone).copied().collect();
    once.sort_unstable();
    (0..n_unnamed)
        .rev()
        .map(Label::Unnamed)
        .chain(once)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_are_read_with_the_ranks_of_operands() {
        let text = |equation: &str, ranks: &[usize]| match Equation::parse(equation, ranks) {
            Ok(equation) => equation.result.iter().map(name).collect(),
            Err(message) => message,
        };
        assert_eq!(text("b...i,ij->...bj", &[4, 2]), "10bj");
        assert_eq!(text("ba", &[2]), "ab");
        assert_eq!(text("i i", &[2]), "");
        assert_eq!(text("...->", &[3]), "");
        assert_eq!(text("a,b", &[1]), "has 2 operands, the operation 1");
        assert_eq!(
            text("ab", &[3]),
            "has the term 'ab' for an operand of 3 dimensions"
        );
        assert_eq!(text("a.b", &[2]), "has a term that can't be read: 'a.b'");
        assert_eq!(
            text("......", &[2]),
            "has a term that can't be read: '......'"
        );
    }

    fn name(label: &Label) -> String {
        match label {
            Label::Unnamed(index) => index.to_string(),
            Label::Letter(letter) => letter.to_string(),
        }
    }
}
