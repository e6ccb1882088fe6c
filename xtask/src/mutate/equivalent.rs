//! Mutants that change no figure, each with its reason.

use super::generate::{self, Mutant};

/// Lines `FILE | FUNCTION | EXPRESSION | INSTEAD | REASON`.
const LIST: &str = include_str!("../../equivalent.txt");

#[derive(Debug, PartialEq)]
pub struct Equivalent {
    file: String,
    function: String,
    expression: String,
    instead: String,
    pub reason: String,
}

impl Equivalent {
    /// It means every place of this expression in the function.
    pub fn is(&self, mutant: &Mutant) -> bool {
        self.file == mutant.file
            && self.function == mutant.function
            && self.expression == mutant.expression
            && self.instead == generate::one_line(&mutant.instead)
    }

    pub fn is_in(&self, file: &str) -> bool {
        self.file == file
    }

    pub fn line(&self) -> String {
        let Equivalent { file, function, expression, instead, .. } = self;
        format!("{file} | {function} | {expression} | {instead}")
    }
}

pub fn list() -> Result<Vec<Equivalent>, String> {
    read(LIST)
}

fn read(text: &str) -> Result<Vec<Equivalent>, String> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let read = |line: &str| {
        let parts: Vec<&str> = line.split(" | ").map(str::trim).collect();
        let [file, function, expression, instead, reason] = parts[..] else {
            return Err(format!("equivalent.txt: '{line}' has {} fields, not 5", parts.len()));
        };
        let [file, function, expression, instead, reason] =
            [file, function, expression, instead, reason].map(str::to_owned);
        Ok(Equivalent { file, function, expression, instead, reason })
    };
    lines.map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_of_one_expression_in_one_function() {
        let read = read("# comment\n\na.rs | most | a < b | (a) <= (b) | equal ones are alike\n");
        let listed = read.unwrap();
        let text = "fn most(a: u64, b: u64) { if a < b { a } else { b + 1 } } \
                    fn least(a: u64, b: u64) { if a < b { a } else { b } }";
        let found = generate::mutants("a.rs", text).unwrap();
        let meant = found.iter().filter(|mutant| listed[0].is(mutant));
        assert_eq!(meant.map(|mutant| mutant.function.as_str()).collect::<Vec<_>>(), ["most"]);
        assert_eq!(listed[0].reason, "equal ones are alike");
    }

    #[test]
    fn a_line_without_a_reason_is_refused() {
        assert!(read("a.rs | most | a < b | (a) <= (b)").unwrap_err().contains("4 fields"));
    }
}
