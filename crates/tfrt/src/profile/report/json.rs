//! [`Json`]: a writer of JSON that may stand inside of a page.
//!
//! Whatever a text holds, it can't end the element that the JSON stands in: what HTML looks for in a
//! script, and what old scripts take for the end of a line, is written as an escape.

use std::fmt::{Display, Write};

/// A JSON document under construction.
#[derive(Debug, Default)]
pub struct Json {
    text: String,
    /// Whether the next value needs a comma before it.
    is_behind: bool,
}

impl Json {
    /// Returns the document.
    pub fn into_text(self) -> String {
        self.text
    }

    /// Writes an object, whose fields `content` writes.
    pub fn object(&mut self, content: impl FnOnce(&mut Json)) {
        self.around('{', '}', content);
    }

    /// Writes a list, whose values `content` writes.
    pub fn list(&mut self, content: impl FnOnce(&mut Json)) {
        self.around('[', ']', content);
    }

    /// Writes the name of a field, whose value comes next.
    pub fn field(&mut self, name: &str) -> &mut Json {
        self.text(name);
        self.text.push(':');
        self.is_behind = false;
        self
    }

    /// Writes a list of numbers.
    pub fn numbers<N: Display>(&mut self, numbers: impl IntoIterator<Item = N>) {
        self.list(|list| {
            for number in numbers {
                list.number(number);
            }
        });
    }

    /// Writes a list of texts.
    pub fn texts<'t>(&mut self, texts: impl IntoIterator<Item = &'t str>) {
        self.list(|list| {
            for text in texts {
                list.text(text);
            }
        });
    }

    /// Writes a number: an integer, `true`, `false` or `null`, as it prints itself.
    pub fn number(&mut self, number: impl Display) {
        self.comma();
        write!(self.text, "{number}").expect("a String takes all text");
    }

    /// Writes a text.
    pub fn text(&mut self, text: &str) {
        self.comma();
        self.text.push('"');
        for c in text.chars() {
            match c {
                '"' | '\\' => {
                    self.text.push('\\');
                    self.text.push(c);
                }
                '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\u{7f}' | '\0'..='\x1f' => {
                    write!(self.text, "\\u{:04x}", u32::from(c)).expect("a String takes all text");
                }
                _ => self.text.push(c),
            }
        }
        self.text.push('"');
    }

    fn around(&mut self, begin: char, end: char, content: impl FnOnce(&mut Json)) {
        self.comma();
        self.text.push(begin);
        self.is_behind = false;
        content(self);
        self.text.push(end);
        self.is_behind = true;
    }

    fn comma(&mut self) {
        if self.is_behind {
            self.text.push(',');
        }
        self.is_behind = true;
    }
}

#[cfg(test)]
mod tests {
    use super::Json;

    #[test]
    fn texts_do_not_end_scripts() {
        let mut json = Json::default();
        json.object(|object| {
            object
                .field("a")
                .texts(["</script><!--", "\"\\\n\u{2028}", "é"]);
            object.field("b").numbers([1, 2]);
            object.field("c").number("null");
        });
        let expected =
            r#"{"a":["\u003c/script\u003e\u003c!--","\"\\\u000a\u2028","é"],"b":[1,2],"c":null}"#;
        assert_eq!(json.into_text(), expected);
    }
}
