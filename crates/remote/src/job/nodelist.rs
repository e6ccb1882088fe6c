//! Slurm's lists of nodes: `n[01-04,07],login`. Pure.

/// The first name; `None`: the list does not begin with a valid one.
pub fn first(list: &str) -> Option<String> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let (mut name, mut rest) = (String::new(), list);
    while let Some(at) = rest.find(['[', ',']).filter(|at| rest[*at..].starts_with('[')) {
        let (ranges, after) = rest[at + 1..].split_once(']')?;
        let mut numbers = ranges.split([',', '-']);
        if !numbers.clone().all(is_number) {
            return None;
        }
        name = name + &rest[..at] + numbers.next()?;
        rest = after;
    }
    name += rest.split(',').next()?;
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
            let _ = first(&text);
        }
    }
}
