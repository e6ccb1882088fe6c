//! Lists of hosts as Slurm writes them: `n[01-04,07],login`. Pure.

use wiregauge_base::options::split_outside_brackets;
use wiregauge_plan::pairs::MOST_HOSTS;

/// Most digits of a number: it fits a `u64`.
const MAX_DIGITS: usize = 18;
/// Longest name that a list stands for: a host's (253, RFC 1035) with a user before it.
pub const MAX_NAME_BYTES: usize = 320;

/// A part of a name with brackets.
enum NamePart<'a> {
    Text(&'a str),
    Numbers(Vec<Range>),
}

/// Numbers of the same width, with zeros before them.
struct Range {
    first: u64,
    last: u64,
    width: usize,
}

/// Returns the number that digits are.
fn number(digits: &str) -> Option<u64> {
    let is_number = (1..=MAX_DIGITS).contains(&digits.len())
        && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| is_number)
}

impl Range {
    fn parse(text: &str) -> Result<Range, String> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let (Some(from), Some(to)) = (number(first), number(last)) else {
            return Err(format!("'{text}' is no number and no range of numbers"));
        };
        ensure!(from <= to, "the range {text} goes down");
        Ok(Range { first: from, last: to, width: first.len() })
    }

    fn numbers(&self) -> impl Iterator<Item = String> + '_ {
        (self.first..=self.last).map(|number| format!("{number:0width$}", width = self.width))
    }

    fn count(&self) -> u64 {
        self.last - self.first + 1
    }
}

/// Returns the parts of a name. Brackets around an IPv6 address are text.
fn pieces(name: &str) -> Result<Vec<NamePart<'_>>, String> {
    let mut pieces = Vec::new();
    let mut rest = name;
    while let Some(open) = rest.find('[') {
        let inside = &rest[open + 1..];
        let close = inside.find(']').ok_or("a bracket is not closed")?;
        let end = open + close + 2;
        if inside[..close].contains(':') {
            pieces.push(NamePart::Text(&rest[..end]));
        } else {
            pieces.push(NamePart::Text(&rest[..open]));
            let ranges = inside[..close].split(',').map(Range::parse);
            pieces.push(NamePart::Numbers(ranges.collect::<Result<_, _>>()?));
        }
        rest = &rest[end..];
    }
    pieces.push(NamePart::Text(rest));
    Ok(pieces)
}

/// Returns the names that a name with brackets stands for, in their order, of several brackets the
/// last first: itself where it has none.
///
/// # Errors
/// The brackets hold something else than numbers, or the names are too many or too long: a
/// sentence.
pub fn expand(name: &str) -> Result<Vec<String>, String> {
    let pieces = pieces(name).map_err(|why| {
        format!("invalid hosts '{name}': {why}; use names such as node[01-32] or node[01-04,07]")
    })?;
    let mut names = 1u64;
    let mut bytes = 0;
    for piece in &pieces {
        match piece {
            NamePart::Text(text) => bytes += text.len(),
            NamePart::Numbers(ranges) => {
                let count = ranges.iter().map(Range::count).fold(0, u64::saturating_add);
                names = names.saturating_mul(count);
                bytes += ranges.iter().map(|range| range.width).max().unwrap_or_default();
            }
        }
    }
    ensure!(
        names <= MOST_HOSTS as u64,
        "'{name}' stands for {names} hosts; at most {MOST_HOSTS} are allowed"
    );
    ensure!(
        bytes <= MAX_NAME_BYTES,
        "a host's name has {bytes} characters; at most {MAX_NAME_BYTES} are allowed"
    );
    let mut found = vec![String::with_capacity(bytes)];
    for piece in pieces {
        match piece {
            NamePart::Text(text) => found.iter_mut().for_each(|name| name.push_str(text)),
            NamePart::Numbers(ranges) => {
                let numbers: Vec<String> = ranges.iter().flat_map(Range::numbers).collect();
                found = found
                    .iter()
                    .flat_map(|name| numbers.iter().map(move |number| format!("{name}{number}")))
                    .collect();
            }
        }
    }
    Ok(found)
}

/// Returns the first name of a list; `None`: the list does not begin with a valid one.
pub fn first(list: &str) -> Option<String> {
    let mut name = String::new();
    for piece in pieces(split_outside_brackets(list).first()?).ok()? {
        match piece {
            NamePart::Text(text) => name.push_str(text),
            NamePart::Numbers(ranges) => name.push_str(&ranges.first()?.numbers().next()?),
        }
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    (!name.is_empty() && name.chars().all(is_plain)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_list_begins_as_slurm_expands_it() {
        for (list, name) in [
            ("n1", "n1"),
            ("n[1-4]", "n1"),
            ("n[01-04,07]", "n01"),
            ("n[09-11]", "n09"),
            ("a,b[1-2]-ib,c", "a"),
            ("b[1-2]-ib,c", "b1-ib"),
            ("r[0-1]n[1,3]", "r0n1"),
        ] {
            assert_eq!(first(list).as_deref(), Some(name), "{list}");
        }
        for wrong in
            ["", ",", "n[", "n]", "n[]", "n[1", "n[1-]", "n[a-b]", "n[1]]", "a b", "n[[1]]"]
        {
            assert_eq!(first(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_list_stands_for_the_names_that_slurm_prints() {
        for (name, names) in [
            ("node1", "node1"),
            ("node[01-03]", "node01 node02 node03"),
            ("node[9-11]", "node9 node10 node11"),
            ("n[01-02,07,10-11]", "n01 n02 n07 n10 n11"),
            ("n[1-2].rack[1-2]", "n1.rack1 n1.rack2 n2.rack1 n2.rack2"),
            ("user@n[8-9]-ib", "user@n8-ib user@n9-ib"),
            ("agent:n[1-2]:7500", "agent:n1:7500 agent:n2:7500"),
        ] {
            assert_eq!(expand(name).unwrap().join(" "), names);
        }
        assert_eq!(expand("n[1-10000]").unwrap().len(), MOST_HOSTS);
    }

    #[test]
    fn brackets_around_an_address_stay() {
        for address in ["[fe80::1]", "agent:[2001:db8::7]:7425", "[fe80::7%eth0]:80", "fe80::1"] {
            assert_eq!(expand(address), Ok(vec![address.to_string()]));
        }
    }

    #[test]
    fn lists_that_are_wrong_or_stand_for_too_many_are_refused_in_a_sentence() {
        for (name, why) in [
            ("n[1-", "a bracket is not closed"),
            ("n[]", "'' is no number"),
            ("n[a-b]", "'a-b' is no number"),
            ("n[1-2-3]", "'1-2-3' is no number"),
            ("n[1,,2]", "'' is no number"),
            ("n[04-01]", "the range 04-01 goes down"),
            ("n[[1]]", "'[1' is no number"),
            ("n[+1]", "'+1' is no number"),
            ("n[1-10001]", "stands for 10001 hosts; at most 10000 are allowed"),
            ("n[0-999][0-999]", "stands for 1000000 hosts"),
            ("n[0-999999999999999999][0-999999999999999999]", "hosts; at most 10000"),
            ("n[0-9999999999999999999]", "is no number"),
        ] {
            let refused = expand(name).unwrap_err();
            assert!(refused.contains(why) && !refused.contains('\n'), "{name}: {refused}");
        }
        assert!(expand(&"n".repeat(MAX_NAME_BYTES + 1)).unwrap_err().contains("321 characters"));
        assert!(expand(&"[1]".repeat(MAX_NAME_BYTES + 1)).unwrap_err().contains("321 characters"));
    }

    proptest! {
        #[test]
        fn names_that_are_written_out_come_back(
            names in prop::collection::vec("[a-z][a-z0-9.-]{0,8}", 1..20),
        ) {
            prop_assert_eq!(first(&names.join(",")), names.first().cloned());
        }

        #[test]
        fn a_range_has_its_numbers_with_their_zeros(
            from in 0u64..2000, more in 0u64..50, w in 1usize..6,
        ) {
            let list = format!("n[{from:0w$}-{:0w$}]", from + more);
            prop_assert_eq!(first(&list), Some(format!("n{from:0w$}")));
        }

        #[test]
        fn no_text_panics(text: String) {
            let _ = (first(&text), expand(&text));
        }

        #[test]
        fn the_first_name_is_the_first_that_the_list_stands_for(
            list in "[a-z]{1,3}(\\[[0-9]{1,3}(,[0-9]{1,2}){0,3}\\]){0,2}",
        ) {
            prop_assert_eq!(first(&list), expand(&list).ok().map(|all| all[0].clone()));
        }
    }
}
