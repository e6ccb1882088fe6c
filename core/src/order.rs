//! Sorting short lists by one copy of the sort.
//!
//! The standard library's sort is compiled anew for each type of element and each comparison: 3 to
//! 10 KB a place, more than what most places sort. Here places are sorted, whatever lies at them.
//! Long lists, such as samples and stamps, are sorted by the standard library.

use std::cmp::Ordering;

/// A list that can be put into an order. Equal elements stay in the order that they had.
pub trait Ordered<T> {
    /// Puts the elements into the order of a comparison.
    fn order_by(&mut self, compare: impl FnMut(&T, &T) -> Ordering);

    /// Puts the elements into the order of their keys.
    fn order_by_key<K: Ord>(&mut self, mut key: impl FnMut(&T) -> K) {
        self.order_by(|a, b| key(a).cmp(&key(b)));
    }
}

impl<T> Ordered<T> for [T] {
    fn order_by(&mut self, mut compare: impl FnMut(&T, &T) -> Ordering) {
        for (a, b) in swaps(self.len(), &mut |a, b| compare(&self[a], &self[b])) {
            self.swap(a, b);
        }
    }
}

/// The swaps of places, one after the other, that put so many elements into order.
#[inline(never)]
fn swaps(length: usize, compare: &mut dyn FnMut(usize, usize) -> Ordering) -> Vec<(usize, usize)> {
    let mut from: Vec<usize> = (0..length).collect();
    from.sort_by(|a, b| compare(*a, *b));
    let mut swaps = Vec::new();
    for begin in 0..length {
        let mut at = begin;
        // Once around each cycle of the permutation.
        while from[at] != begin {
            swaps.push((at, from[at]));
            at = std::mem::replace(&mut from[at], at);
        }
        from[at] = at;
    }
    swaps
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_order_is_that_of_the_standard_library(
            mut list in prop::collection::vec((0_u8..20, any::<u32>()), 0..60),
        ) {
            let mut sorted = list.clone();
            sorted.sort_by_key(|one| std::cmp::Reverse(one.0));
            let mut by_key = list.clone();
            list.order_by(|a, b| b.0.cmp(&a.0));
            prop_assert_eq!(&list, &sorted);
            by_key.order_by_key(|one| std::cmp::Reverse(one.0));
            prop_assert_eq!(&by_key, &sorted);
        }
    }
}
