//! Slurm's lists of nodes: `n[01-04,07],login`. Pure.

/// Most names of a list: more than the largest cluster has.
const MOST: usize = 1 << 20;
/// Longest list, in bytes.
const LONGEST: usize = 1 << 20;

/// The names in order; `None`: not a valid list.
pub fn expand(list: &str) -> Option<Vec<String>> {
    if list.len() > LONGEST {
        return None;
    }
    let mut names = Vec::new();
    for part in parts(list, true)? {
        one(part, String::new(), &mut names)?;
    }
    Some(names)
}

/// The first name.
pub fn first(list: &str) -> Option<String> {
    // Only the first part is expanded: a list may have many thousands.
    let part = parts(list, true)?.into_iter().next()?;
    let mut names = Vec::new();
    one(part, String::new(), &mut names)?;
    names.into_iter().next()
}

/// The parts between commas outside of brackets.
fn parts(list: &str, outside: bool) -> Option<Vec<&str>> {
    let mut depth = 0u32;
    let mut begin = 0;
    let mut found = Vec::new();
    for (at, sign) in list.char_indices() {
        match sign {
            '[' if outside => depth = depth.checked_add(1).filter(|depth| *depth == 1)?,
            ']' if outside => depth = depth.checked_sub(1)?,
            ',' if depth == 0 => {
                found.push(&list[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    found.push(&list[begin..]);
    (depth == 0 && found.iter().all(|part| !part.is_empty())).then_some(found)
}

/// Adds all names of `n[1-3]x[0,2]`, with what stands before them.
fn one(part: &str, before: String, names: &mut Vec<String>) -> Option<()> {
    let Some((plain, rest)) = part.split_once('[') else {
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let name = before + part;
        let fits = !name.is_empty() && part.chars().all(is_name) && names.len() < MOST;
        return fits.then(|| names.push(name));
    };
    let (ranges, rest) = rest.split_once(']')?;
    for range in parts(ranges, false)? {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let number = |text: &str| -> Option<u64> {
            let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            digits.then(|| text.parse().ok())?
        };
        let width = first.len();
        for number in number(first)?..=number(last)? {
            one(rest, format!("{before}{plain}{number:0width$}"), names)?;
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn expanded(list: &str) -> Option<String> {
        expand(list).map(|names| names.join(" "))
    }

    #[test]
    fn a_list_is_expanded_as_slurm_does() {
        for (list, names) in [
            ("n1", "n1"),
            ("n[1-4]", "n1 n2 n3 n4"),
            ("n[01-04,07]", "n01 n02 n03 n04 n07"),
            ("n[09-11]", "n09 n10 n11"),
            ("a,b[1-2]-ib,c", "a b1-ib b2-ib c"),
            ("r[0-1]n[1,3]", "r0n1 r0n3 r1n1 r1n3"),
        ] {
            assert_eq!(expanded(list).as_deref(), Some(names), "{list}");
            assert_eq!(first(list).as_deref(), names.split(' ').next(), "{list}");
        }
        for wrong in
            ["", ",", "n[", "n]", "n[]", "n[1", "n[1-]", "n[a-b]", "n[1]]", "a b", "n[[1]]"]
        {
            assert_eq!(expanded(wrong), None, "{wrong}");
        }
        assert_eq!(expand("n[0-99999999999]"), None, "more than anybody has");
    }

    proptest! {
        #[test]
        fn names_that_are_written_out_come_back(
            names in prop::collection::vec("[a-z][a-z0-9.-]{0,8}", 1..20),
        ) {
            prop_assert_eq!(expand(&names.join(",")), Some(names));
        }

        #[test]
        fn a_range_has_its_numbers_with_their_zeros(
            first in 0u64..2000, more in 0u64..50, w in 1usize..6,
        ) {
            let list = format!("n[{first:0w$}-{:0w$}]", first + more);
            let names: Vec<String> = (first..=first + more).map(|n| format!("n{n:0w$}")).collect();
            prop_assert_eq!(expand(&list), Some(names));
        }

        #[test]
        fn no_text_panics(text: String) {
            let _ = expand(&text);
            let _ = super::first(&text);
        }
    }
}
