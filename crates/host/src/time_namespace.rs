//! The clocks of this process's time namespace against those of the kernel (time_namespaces(7)).

use super::Tree;

/// Nanoseconds of a second.
const SECOND_NS: i64 = 1_000_000_000;

/// Returns what CLOCK_MONOTONIC of this process is ahead of the kernel's own, in ns.
pub fn monotonic_offset_ns() -> i64 {
    offset_in(&Tree::default())
}

pub(super) fn offset_in(tree: &Tree) -> i64 {
    // The file tells of the namespace of the children, which is this process's own where it was
    // not changed since.
    let own = tree.link_name("/proc/self/ns/time");
    if own != tree.link_name("/proc/self/ns/time_for_children") {
        return 0;
    }
    let text = tree.text("/proc/self/timens_offsets").unwrap_or_default();
    text.lines().find_map(monotonic).unwrap_or(0)
}

/// Reads a line `monotonic 86400 0`.
fn monotonic(line: &str) -> Option<i64> {
    let mut words = line.split_whitespace();
    // Linux 5.6 wrote the number of the clock.
    let is_monotonic = matches!(words.next()?, "monotonic" | "1");
    let seconds: i64 = words.next()?.parse().ok()?;
    let nanoseconds: i64 = words.next()?.parse().ok()?;
    is_monotonic.then(|| seconds.saturating_mul(SECOND_NS).saturating_add(nanoseconds))
}

#[cfg(test)]
mod tests {
    use super::super::tree::fake::Fake;
    use super::*;

    #[test]
    fn the_offset_of_the_monotonic_clock_is_read() {
        let text = "monotonic      -86400         5\nboottime           7         0\n";
        let fake = Fake::new(&[("proc/self/timens_offsets", text)]);
        assert_eq!(offset_in(&fake.tree), -86_400 * SECOND_NS + 5);
        assert_eq!(offset_in(&Fake::new(&[]).tree), 0);
    }
}
