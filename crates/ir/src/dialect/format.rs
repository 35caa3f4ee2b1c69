//! [`Format`]: the description of an operation's own textual form, which drives both parser and
//! printer.
//!
//! A description is the form written down with the following words; a blank
//! before a word is a blank in the printed text, provided that the word prints
//! something.
//!
//! | Word               | Stands for                                                        |
//! |--------------------|-------------------------------------------------------------------|
//! | `operand`          | the next operand                                                  |
//! | `operands`         | all operands that remain, with commas between                     |
//! | `typed-operands`   | the same, each as `%x : type`                                     |
//! | `$name`            | the attribute `name`, a number without its type if it is `Typed`  |
//! | `type($name)`      | the attribute `name`, a type, which a result of any type has      |
//! | `type(any)`        | the types of the declared operands that may have any              |
//! | `attr-dict`        | the other attributes in braces, nothing if there are none         |
//! | `attributes`       | the same after the word `attributes`                              |
//! | `settings`         | the other attributes as `key = number, ...`                       |
//! | `{name}`           | the attribute `name`, an array of pairs, as a dictionary          |
//! | `count`            | a colon and how many results are behind the declared ones, if any |
//! | `type(operands)`   | the types of the operands behind the declared ones                |
//! | `functional-type`  | the same and the result types as a function type                  |
//! | `types`            | the same without declared results, always in parentheses          |
//! | `: type(operands)?` | a colon and `type(operands)`, which older texts leave out        |
//! | `types?`           | `types`, of which older texts have only the results               |
//! | `region`           | a region whose arguments have the names of the operands           |
//! | `else`             | `else` and a region, nothing if all it does is return nothing     |
//! | `function`         | all of a function, see [`super::function`]                        |
//! | `module`           | all of a module                                                   |
//! | `[...]`            | only if there are operands behind the declared ones               |
//! | `\[`, `\]`         | a square bracket                                                  |
//! | anything else      | itself                                                            |
//!
//! Types that older texts leave out are those of the values, which must be defined above.

mod pairs;
mod parse;
mod print;

pub(crate) use parse::parse;
pub(crate) use print::{can_print, print};

/// The name of the benchmarks' setting that is 1 unless the text says otherwise.
const WARMUP: &str = "num_warmup_runs";

/// A parsed description of an operation's textual form.
#[derive(Clone, Debug)]
pub struct Format {
    pub(crate) items: Vec<Item>,
    /// The attributes that have a place of their own.
    pub(crate) placed: Vec<&'static str>,
    /// The attributes that are written as dictionaries of their own, in this order.
    pub(crate) paired: Vec<&'static str>,
}

/// A word of a description and the blanks before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    pub blanks: &'static str,
    pub word: Word,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    Operand,
    Operands,
    TypedOperands,
    Attribute(&'static str),
    AttributeDictionary,
    AttributesKeyword,
    Settings,
    /// An array of pairs as a dictionary.
    Pairs(&'static str),
    /// The number of results behind the declared ones.
    ResultCount,
    OperandTypes,
    /// The types of the declared operands that may have any.
    OpenTypes,
    /// An attribute that is a type, which is that of the result.
    TypeAttribute(&'static str),
    /// The types of the operands and the colon before them, neither of which older texts have.
    ColonOperandTypes,
    FunctionalType,
    Types,
    /// The types of operands and results; older texts have the results alone.
    TypesOrResults,
    Region,
    Else,
    Function,
    Module,
    /// Items that are there only with operands behind the declared ones.
    Group(Vec<Item>),
    /// A keyword or a punctuation mark.
    Literal(&'static str),
}

const WORDS: &[(&str, Word)] = &[
    ("typed-operands", Word::TypedOperands),
    ("operands", Word::Operands),
    ("operand", Word::Operand),
    ("attr-dict", Word::AttributeDictionary),
    ("attributes", Word::AttributesKeyword),
    ("settings", Word::Settings),
    ("count", Word::ResultCount),
    ("type(operands)", Word::OperandTypes),
    ("type(any)", Word::OpenTypes),
    (": type(operands)?", Word::ColonOperandTypes),
    ("types?", Word::TypesOrResults),
    ("types", Word::Types),
    ("functional-type", Word::FunctionalType),
    ("region", Word::Region),
    ("else", Word::Else),
    ("function", Word::Function),
    ("module", Word::Module),
];

impl Format {
    /// Parses a description.
    pub(crate) fn parse(description: &'static str) -> Format {
        let mut rest = description;
        let items = items(&mut rest);
        let placed = items.iter().filter_map(|item| match item.word {
            Word::Attribute(name) | Word::TypeAttribute(name) => Some(name),
            _ => None,
        });
        let paired = items.iter().filter_map(|item| match item.word {
            Word::Pairs(name) => Some(name),
            _ => None,
        });
        Format {
            placed: placed.collect(),
            paired: paired.collect(),
            items,
        }
    }
}

fn items(rest: &mut &'static str) -> Vec<Item> {
    let mut items = Vec::new();
    loop {
        let text = rest.trim_start_matches(' ');
        let blanks = &rest[..rest.len() - text.len()];
        *rest = text;
        if text.is_empty() {
            return items;
        }
        if let Some(after) = text.strip_prefix(']') {
            *rest = after;
            return items;
        }
        items.push(Item {
            blanks,
            word: word(rest),
        });
    }
}

fn word(rest: &mut &'static str) -> Word {
    let text = *rest;
    if let Some(after) = text.strip_prefix('\\') {
        let (literal, after) = after.split_at(1);
        *rest = after;
        return Word::Literal(literal);
    }
    if let Some(after) = text.strip_prefix('[') {
        *rest = after;
        return Word::Group(items(rest));
    }
    if let Some(after) = text.strip_prefix("type($") {
        let (name, after) = after.split_at(identifier_len(after));
        *rest = after.strip_prefix(')').unwrap_or(after);
        return Word::TypeAttribute(name);
    }
    if let Some(after) = text.strip_prefix('$') {
        let (name, after) = after.split_at(identifier_len(after));
        *rest = after;
        return Word::Attribute(name);
    }
    if let Some(after) = text.strip_prefix('{') {
        let (name, after) = after.split_at(identifier_len(after));
        *rest = after.strip_prefix('}').unwrap_or(after);
        return Word::Pairs(name);
    }
    if let Some((pattern, word)) = WORDS.iter().find(|(pattern, _)| text.starts_with(pattern)) {
        *rest = &text[pattern.len()..];
        return word.clone();
    }
    let (literal, after) = text.split_at(identifier_len(text).max(1));
    *rest = after;
    Word::Literal(literal)
}

fn identifier_len(text: &str) -> usize {
    text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .unwrap_or(text.len())
}
