//! Lists of hosts as Slurm writes them: `n[1-3,7],login`.

use tfrt_async::Error;

/// The most hosts of a list.
const MAX_HOSTS: usize = 1 << 16;

/// Expands a list of hosts: `n[08-10],m1` is `n08`, `n09`, `n10`, `m1`. A name may have several brackets.
///
/// # Errors
///
/// `InvalidArgument` with the part that is wrong, or if there are more than 65,536 hosts.
pub fn expand(list: &str) -> Result<Vec<String>, Error> {
    let mut hosts = Vec::new();
    for name in split(list)? {
        hosts.extend(expand_name(name)?);
        if hosts.len() > MAX_HOSTS {
            return Err(too_many(list));
        }
    }
    match hosts.is_empty() {
        true => Err(Error::invalid_argument(
            "expected a list of hosts, found none",
        )),
        false => Ok(hosts),
    }
}

fn too_many(list: &str) -> Error {
    let begin: String = list.chars().take(40).collect();
    Error::invalid_argument(format!(
        "expected at most {MAX_HOSTS} hosts, found more in '{begin}'"
    ))
}

/// Splits a list at the commas outside of brackets.
fn split(list: &str) -> Result<Vec<&str>, Error> {
    let (mut parts, mut begin, mut is_inside) = (Vec::new(), 0, false);
    for (at, c) in list.char_indices() {
        match c {
            '[' if !is_inside => is_inside = true,
            ']' if is_inside => is_inside = false,
            '[' | ']' => return Err(unbalanced(list)),
            ',' if !is_inside => {
                parts.push(&list[begin..at]);
                begin = at + 1;
            }
            _ => (),
        }
    }
    if is_inside {
        return Err(unbalanced(list));
    }
    parts.push(&list[begin..]);
    parts.retain(|part| !part.is_empty());
    Ok(parts)
}

fn unbalanced(list: &str) -> Error {
    Error::invalid_argument(format!("expected brackets in pairs, found '{list}'"))
}

fn expand_name(name: &str) -> Result<Vec<String>, Error> {
    let mut made = vec![String::new()];
    let mut rest = name;
    while let Some((before, behind)) = rest.split_once('[') {
        let (ranges, behind) = behind.split_once(']').ok_or_else(|| unbalanced(name))?;
        let mut numbers = Vec::new();
        for range in ranges.split(',') {
            add_numbers(name, range, &mut numbers)?;
        }
        if made.len().saturating_mul(numbers.len()) > MAX_HOSTS {
            return Err(too_many(name));
        }
        let with = |begin: &String| {
            let numbers = numbers.iter();
            let made = numbers.map(|number| format!("{begin}{before}{number}"));
            made.collect::<Vec<_>>()
        };
        made = made.iter().flat_map(with).collect();
        rest = behind;
    }
    made.iter_mut().for_each(|host| host.push_str(rest));
    Ok(made)
}

/// Adds the numbers of a range, `7` or `08-10`, with leading zeros as its first has them.
fn add_numbers(name: &str, range: &str, numbers: &mut Vec<String>) -> Result<(), Error> {
    let refused = || {
        Error::invalid_argument(format!(
            "expected numbers and ranges such as 1-3 in the brackets of '{name}', found '{range}'"
        ))
    };
    let number = |text: &str| {
        let is_number = !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
        text.parse::<u64>()
            .ok()
            .filter(|_| is_number)
            .ok_or_else(refused)
    };
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    let (begin, end) = (number(first)?, number(last)?);
    if end < begin {
        return Err(refused());
    }
    if end - begin >= MAX_HOSTS as u64 {
        return Err(too_many(name));
    }
    let width = if first.starts_with('0') {
        first.len()
    } else {
        0
    };
    numbers.extend((begin..=end).map(|number| format!("{number:0width$}")));
    match numbers.len() > MAX_HOSTS {
        true => Err(too_many(name)),
        false => Ok(()),
    }
}
