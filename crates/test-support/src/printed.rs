//! Commands of this program in texts: what somebody who reads them pastes.

/// Commands of the program that a text prints.
#[derive(Debug, Default, PartialEq)]
pub struct Printed {
    /// Commands in backquotes, and commands that have a line of their own.
    pub commands: Vec<String>,
    /// Commands in the middle of a sentence without backquotes: nobody can tell where they end.
    pub unmarked: Vec<String>,
}

const PROGRAM: &str = "wiregauge ";

/// Finds the commands of a text. `is_command` says whether a word is the name of one.
pub fn commands(text: &str, is_command: impl Fn(&str) -> bool) -> Printed {
    let mut found = Printed::default();
    // Within backquotes a line may be broken.
    for (number, part) in text.split('`').enumerate() {
        let is_marked = number % 2 == 1 && text.matches('`').count() > number;
        if is_marked && part.starts_with(PROGRAM) {
            found.commands.push(part.replace('\n', " "));
        }
        if is_marked {
            continue;
        }
        for (line_number, line) in whole_lines(part).iter().enumerate() {
            let begins_a_line = number == 0 || line_number > 0;
            if let Some(own) = on_own_line(line, &is_command).filter(|_| begins_a_line) {
                found.commands.push(own.to_owned());
            } else {
                found.unmarked.extend(unmarked(line, &is_command));
            }
        }
    }
    found
}

/// Returns the lines of a text; one that ends with a backslash goes on in the next.
fn whole_lines(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut goes_on = false;
    for line in text.lines() {
        let (part, more) = match line.strip_suffix('\\') {
            Some(part) => (part.trim_end(), true),
            None => (line, false),
        };
        match lines.last_mut().filter(|_| goes_on) {
            Some(last) => *last += &format!(" {}", part.trim_start()),
            None => lines.push(part.to_owned()),
        }
        goes_on = more;
    }
    lines
}

/// Returns the command that a line consists of, up to an explanation that two blanks part from it.
/// Lines that are indented or have a prompt are commands, others where the program's name does not
/// begin a sentence.
fn on_own_line<'a>(line: &'a str, is_command: &impl Fn(&str) -> bool) -> Option<&'a str> {
    let own = line.trim_start();
    let (is_shown, own) = match own.strip_prefix("$ ") {
        Some(own) => (true, own),
        None => (own.len() < line.len(), own),
    };
    // A launcher starts it.
    let is_launched = ["mpirun ", "srun "].iter().any(|launcher| own.starts_with(launcher));
    let own = if is_launched { &own[own.find(PROGRAM)?..] } else { own };
    let next = own.strip_prefix(PROGRAM)?.split_whitespace().next().unwrap_or_default();
    let is_one = is_shown || is_launched || next.starts_with("--") || is_command(next);
    is_one.then(|| own.split("  ").next().unwrap_or(own))
}

/// Finds commands within a line.
fn unmarked<'a>(
    line: &'a str,
    is_command: &'a impl Fn(&str) -> bool,
) -> impl Iterator<Item = String> + 'a {
    line.match_indices(PROGRAM).filter_map(move |(at, _)| {
        let before = line[..at].chars().next_back();
        let is_word = before.is_none_or(|c| c.is_whitespace() || "(:\"'".contains(c));
        let next = line[at + PROGRAM.len()..].split(|c: char| c.is_whitespace() || c == ')').next();
        let is_one = next.is_some_and(|next| next.starts_with("--") || is_command(next));
        (is_word && is_one).then(|| line[at..].to_owned())
    })
}

/// Returns the string literals of Rust source, but for those of tests below.
pub fn literals(source: &str) -> Vec<String> {
    let code = source.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let mut found = Vec::new();
    let mut rest = code;
    while let Some(next) = rest.chars().next() {
        let skipped = match next {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            '\'' => character(rest),
            'r' if rest.starts_with("r\"") || rest.starts_with("r#") => {
                let marks = rest[1..].chars().take_while(|c| *c == '#').count();
                let end = format!("\"{}", "#".repeat(marks));
                match rest.get(2 + marks..).filter(|_| rest[1 + marks..].starts_with('"')) {
                    Some(text) => {
                        let length = text.find(&end).unwrap_or(text.len());
                        found.push(text[..length].to_owned());
                        2 + marks + length + end.len()
                    }
                    None => 1,
                }
            }
            '"' => {
                let (text, length) = quoted(&rest[1..]);
                found.push(text);
                1 + length
            }
            // `r` at the end of a name begins no literal.
            c if c.is_alphanumeric() || c == '_' => {
                let name = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
                match name.unwrap_or(rest.len()) {
                    1 if c == 'b' => 1,
                    length => length,
                }
            }
            other => other.len_utf8(),
        };
        rest = rest.get(skipped.max(1)..).unwrap_or_default();
    }
    found
}

/// Returns the bytes of a character literal, or 1 of a lifetime.
fn character(rest: &str) -> usize {
    let mut inside = rest[1..].chars();
    match inside.next() {
        Some('\\') => rest[2..].find('\'').map_or(1, |end| end + 3).max(4),
        Some(c) if inside.next() == Some('\'') => 2 + c.len_utf8(),
        _ => 1,
    }
}

/// Returns what a literal says that begins after its first quote, and its bytes.
fn quoted(rest: &str) -> (String, usize) {
    let mut text = String::new();
    let mut letters = rest.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return (text, at + 1),
            '\\' => match letters.next().map(|(_, escaped)| escaped) {
                Some('\n') => while letters.next_if(|(_, c)| c.is_whitespace()).is_some() {},
                Some('n') => text.push('\n'),
                Some('t') => text.push('\t'),
                Some(other) => text.push(other),
                None => {}
            },
            other => text.push(other),
        }
    }
    (text, rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Printed {
        commands(text, |word| ["run", "latency"].contains(&word))
    }

    #[test]
    fn commands_stand_in_backquotes_or_on_lines_of_their_own() {
        let text =
            "use `wiregauge run\nX`, or:\n  wiregauge latency \\\n  --to h\n$ wiregauge run\n";
        let all = ["wiregauge run X", "wiregauge latency --to h", "wiregauge run"];
        assert_eq!(
            found(text),
            Printed { commands: all.map(str::to_owned).into(), unmarked: vec![] }
        );
        let text = "  wiregauge run   a study\n  mpirun -n 2 wiregauge run\nwiregauge was here\n";
        assert_eq!(found(text).commands, ["wiregauge run", "wiregauge run"]);
        assert_eq!(found("another wiregauge measured; `x` wiregauge itself"), Printed::default());
    }

    #[test]
    fn a_command_without_marks_is_found() {
        assert_eq!(found("(wiregauge --help lists)").unmarked, ["wiregauge --help lists)"]);
        assert_eq!(found("x: wiregauge run a; b").unmarked, ["wiregauge run a; b"]);
        assert_eq!(found("`x` or wiregauge latency").unmarked, ["wiregauge latency"]);
    }

    #[test]
    fn literals_are_told_from_comments_lifetimes_and_tests() {
        let code = "// \"no\"\nfn a<'a>(b: &'a str) { f(\"one \\\n  two\\\"\", '\"', '\\'', ";
        let more = "r#\"th\"ree\"#, br\"x\", var) }\n#[cfg(test)]\nmod tests { \"no\" }";
        let source = format!("{code}{more}");
        assert_eq!(literals(&source), ["one two\"", "th\"ree", "x"]);
    }
}
