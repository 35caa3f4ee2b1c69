//! Mutations of texts that know words, strings and brackets.

use std::ops::Range;

use tfrt_oracle::random::Random;

/// The words that stand for others of their kind, or are hard to get right.
const WORDS: &[&str] = &[
    "%a",
    "%0",
    "%0#1",
    "@f",
    "@f::@g",
    "#a",
    "!a",
    "^bb0",
    "i1",
    "i32",
    "i64",
    "f32",
    "none",
    "unit",
    "0",
    "1",
    "-1",
    "0x7F",
    "1.5",
    "1e400",
    "9223372036854775808",
    "\"\"",
    "\"\\22\"",
    "true",
    "dense<",
    "loc(unknown)",
    "loc(\"a\")",
    "->",
    "::",
    "=",
    ":",
    ",",
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    "<",
    ">",
    "tfrt.return",
    "func.func",
    "module",
    "tfrt.if",
    "tfrt.repeat.i32",
    "tfrt.constant.i32",
    "tfrt.new.chain",
    "!tfrt.chain",
    "attributes",
    "{bef.nonstrict}",
    "() -> ()",
    "{a = 1 : i32}",
    "({}, {})",
    "tensor<2x?xi32>",
    "tuple<>",
    "vector<4xi8>",
];

/// Changes a text; gives nothing for bytes that are none, or have no word.
pub fn text(bytes: &[u8], random: &mut Random) -> Option<Vec<u8>> {
    let mut text = std::str::from_utf8(bytes).ok()?.to_owned();
    for _ in 0..1 + random.below(3) {
        let tokens = tokens(&text);
        if tokens.is_empty() {
            return None;
        }
        let token = tokens[random.below(tokens.len())].clone();
        let other = text[tokens[random.below(tokens.len())].clone()].to_owned();
        match random.below(10) {
            0 => text.replace_range(token, ""),
            1 | 2 => text.replace_range(token, &other),
            3 => text.replace_range(token, random.pick::<&str>(WORDS)),
            4 => text.insert_str(token.start, &format!("{} ", random.pick(WORDS))),
            5 => text.insert_str(token.start, &format!("{other} ")),
            6 => number(&mut text, &tokens, random),
            7 => {
                // A run of tokens, said again elsewhere.
                let run = run(&tokens, random);
                let again = text[run].to_owned();
                text.insert_str(token.start, &again);
            }
            8 => {
                let run = run(&tokens, random);
                text.replace_range(run, "");
            }
            _ => {
                // What stands in brackets is put into brackets once more.
                let inside = group(&text, &tokens, random);
                let again = text[inside.clone()].to_owned();
                text.insert_str(inside.end, &again);
            }
        }
    }
    Some(text.into_bytes())
}

/// Cuts a text into words, strings, and marks of one character.
fn tokens(text: &str) -> Vec<Range<usize>> {
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '$' | '%' | '@' | '#');
    let mut tokens = Vec::new();
    let mut rest = text.char_indices().peekable();
    while let Some((start, c)) = rest.next() {
        if c.is_whitespace() {
            continue;
        }
        let mut end = start + c.len_utf8();
        let mut take = |wanted: &dyn Fn(char) -> bool| {
            while let Some(&(at, c)) = rest.peek().filter(|(_, c)| wanted(*c)) {
                end = at + c.len_utf8();
                rest.next();
            }
        };
        if c == '"' {
            take(&|c| c != '"' && c != '\n');
            end = (end + 1).min(text.len());
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            rest.next_if(|&(at, _)| at < end);
        } else if is_word(c) {
            take(&is_word);
        }
        tokens.push(start..end);
    }
    tokens
}

/// Returns where some tokens in a row are.
fn run(tokens: &[Range<usize>], random: &mut Random) -> Range<usize> {
    let first = random.below(tokens.len());
    let last = first + random.below((tokens.len() - first).min(24));
    tokens[first].start..tokens[last].end
}

/// Changes a number a little, or a lot.
fn number(text: &mut String, tokens: &[Range<usize>], random: &mut Random) {
    let is_number = |token: &&Range<usize>| text.as_bytes()[token.start].is_ascii_digit();
    let numbers: Vec<&Range<usize>> = tokens.iter().filter(is_number).collect();
    if numbers.is_empty() {
        return;
    }
    let at = (*random.pick(&numbers)).clone();
    let old: u64 = text[at.clone()].parse().unwrap_or(0);
    let new = match random.below(4) {
        0 => old.wrapping_add(1),
        1 => old.wrapping_sub(1),
        2 => 1 << random.below(64),
        _ => old.wrapping_mul(10),
    };
    text.replace_range(at, &new.to_string());
}

/// Returns where a group in brackets is, or one token.
fn group(text: &str, tokens: &[Range<usize>], random: &mut Random) -> Range<usize> {
    let is_open = |token: &&Range<usize>| matches!(&text[(*token).clone()], "(" | "{" | "[" | "<");
    let opens: Vec<&Range<usize>> = tokens.iter().filter(is_open).collect();
    if opens.is_empty() {
        return tokens[0].clone();
    }
    let open = *random.pick(&opens);
    let mut depth = 0usize;
    for token in tokens.iter().filter(|token| token.start >= open.start) {
        match &text[token.clone()] {
            "(" | "{" | "[" | "<" => depth += 1,
            ")" | "}" | "]" | ">" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return open.start..token.end;
        }
    }
    open.clone()
}
