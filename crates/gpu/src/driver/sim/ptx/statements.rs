//! [`Statements`]: the text of PTX, a statement a line.
//!
//! Compilers write a statement a line; people, and the original's programs, write a whole kernel on one.

/// The statements of a module without comments, and the line that each began on.
pub(super) struct Statements {
    /// Invariant: as many lines as numbers, none of them empty.
    pub(super) text: String,
    pub(super) numbers: Vec<u32>,
}

impl Statements {
    /// Splits a text into its statements.
    pub(super) fn of(text: &str) -> Statements {
        let mut reader = Reader {
            done: Statements {
                text: String::new(),
                numbers: Vec::new(),
            },
            statement: String::new(),
            number: 1,
            depth: 0,
            is_head: false,
        };
        for (number, line) in text.lines().enumerate() {
            let line = line.split("//").next().unwrap_or_default();
            reader.number = number as u32 + 1;
            for c in line.chars() {
                reader.take(c);
            }
            // What goes on in braces goes on.
            if reader.depth == 0 {
                reader.end();
            } else {
                reader.statement.push(' ');
            }
        }
        reader.end();
        reader.done
    }
}

struct Reader {
    done: Statements,
    statement: String,
    number: u32,
    // How many braces and brackets are open in the statement.
    depth: usize,
    // Whether the parameters of a kernel stand here.
    is_head: bool,
}

impl Reader {
    fn take(&mut self, c: char) {
        let statement = self.statement.trim();
        let is_in_operands = self.depth > 0;
        match c {
            // A body, and no list of registers or of a variable's bytes.
            '{' if !is_in_operands
                && (statement.is_empty()
                    || statement.starts_with('.') && !statement.contains('=')) =>
            {
                self.end();
                self.alone('{');
            }
            '}' if !is_in_operands => {
                self.end();
                self.alone('}');
            }
            '(' if !is_in_operands && statement.contains(".entry") => {
                self.statement.push('(');
                self.end();
                self.is_head = true;
            }
            ')' if self.is_head => {
                self.end();
                self.alone(')');
                self.is_head = false;
            }
            ',' if self.is_head => self.end(),
            ';' if !is_in_operands => {
                self.statement.push(';');
                self.end();
            }
            ':' if !is_in_operands && !statement.contains(char::is_whitespace) => {
                self.statement.push(':');
                self.end();
            }
            '{' | '[' => {
                self.depth += 1;
                self.statement.push(c);
            }
            '}' | ']' => {
                self.depth = self.depth.saturating_sub(1);
                self.statement.push(c);
            }
            c => self.statement.push(c),
        }
    }

    fn alone(&mut self, c: char) {
        self.statement.push(c);
        self.end();
    }

    fn end(&mut self) {
        let statement = self.statement.trim();
        if !statement.is_empty() {
            self.done.text.push_str(statement);
            self.done.text.push('\n');
            self.done.numbers.push(self.number);
        }
        self.statement.clear();
    }
}
