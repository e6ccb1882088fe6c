//! Puts mutants behind switches, and finds the one that the compiler refuses.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::generate::{Mutant, Place};

/// A file of the copy.
#[derive(Default)]
pub struct Switched {
    pub text: String,
    /// What stands there for a mutant, in bytes of `text`, and which mutants it concerns.
    regions: Vec<(Range<usize>, Vec<usize>)>,
}

/// Puts the mutants of one file, by their numbers, behind switches.
///
/// Only one is on at a time, so what stands in for an expression has none in it: the text grows
/// with the depth of an expression and does not double at each level.
pub fn switch(text: &str, mutants: &[(usize, &Mutant)]) -> Switched {
    let mut bodies: BTreeMap<usize, Vec<(usize, &Mutant)>> = BTreeMap::new();
    let mut expressions: BTreeMap<(usize, usize), Vec<(usize, &Mutant)>> = BTreeMap::new();
    for (number, mutant) in mutants {
        let alike = match &mutant.place {
            Place::Body(at) => bodies.entry(*at).or_default(),
            Place::Expression(at) => expressions.entry((at.start, at.end)).or_default(),
        };
        alike.push((*number, mutant));
    }
    // At one place: what ends, the innermost first; bodies; what begins, the outermost first.
    let mut edges = Vec::new();
    edges.extend(bodies.iter().map(|(at, alike)| (*at, 1, 0, &alike[..])));
    for ((start, end), alike) in &expressions {
        edges.push((*start, 2, usize::MAX - end, &alike[..]));
        edges.push((*end, 0, usize::MAX - start, &alike[..]));
    }
    edges.sort_by_key(|(at, kind, order, _)| (*at, *kind, *order));

    let mut made = Switched::default();
    let mut open = Vec::new();
    let mut copied = 0;
    for (at, kind, _, alike) in edges {
        made.text += &text[copied..at];
        copied = at;
        match kind {
            0 => {
                made.text += "})";
                let begin = open.pop().unwrap_or(0);
                let numbers = alike.iter().map(|(number, _)| *number).collect();
                made.regions.push((begin..made.text.len(), numbers));
            }
            1 => made.returns(alike),
            _ => {
                open.push(made.text.len());
                made.begin(alike);
            }
        }
    }
    made.text += &text[copied..];
    made
}

impl Switched {
    fn returns(&mut self, alike: &[(usize, &Mutant)]) {
        for (number, mutant) in alike {
            let begin = self.text.len();
            let instead = &mutant.instead;
            self.text += &format!(" if crate::is_mutant({number}) {{ return {instead}; }}");
            self.regions.push((begin..self.text.len(), vec![*number]));
        }
    }

    fn begin(&mut self, alike: &[(usize, &Mutant)]) {
        self.text.push('(');
        for (number, mutant) in alike {
            let begin = self.text.len();
            self.text += &format!("if crate::is_mutant({number}) {{{}}}", mutant.instead);
            self.regions.push((begin..self.text.len(), vec![*number]));
            self.text += " else ";
        }
        self.text.push('{');
    }

    /// The mutants that the compiler means by this place: of the smallest region around it, or of
    /// all within it.
    pub fn meant(&self, place: &Range<usize>) -> BTreeSet<usize> {
        let around = |(region, _): &&(Range<usize>, Vec<usize>)| {
            region.start <= place.start && place.end <= region.end
        };
        let smallest = self.regions.iter().filter(around).min_by_key(|(region, _)| region.len());
        if let Some((_, numbers)) = smallest {
            return numbers.iter().copied().collect();
        }
        let within = |(region, _): &&(Range<usize>, Vec<usize>)| {
            place.start <= region.start && region.end <= place.end
        };
        self.regions.iter().filter(within).flat_map(|(_, numbers)| numbers).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutate::generate;

    const SOURCE: &str = "fn twice(a: u64) -> u64 { (a + 1) * 2 }";

    fn made() -> Switched {
        let found = generate::mutants("a.rs", SOURCE).unwrap();
        switch(SOURCE, &found.iter().enumerate().collect::<Vec<_>>())
    }

    #[test]
    fn each_mutant_has_its_switch_and_the_source_remains() {
        let expected = "fn twice(a: u64) -> u64 { \
            if crate::is_mutant(0) { return 0; } if crate::is_mutant(1) { return 1; } \
            (if crate::is_mutant(2) {((a + 1)) / (2)} else {\
            ((if crate::is_mutant(3) {(a) - (1)} else {a + 1})) * 2}) }";
        assert_eq!(made().text, expected);
    }

    #[test]
    fn a_place_in_the_copy_leads_to_its_mutant() {
        let made = made();
        let meant = |text: &str| {
            let start = made.text.find(text).unwrap();
            made.meant(&(start..start + text.len())).into_iter().collect::<Vec<_>>()
        };
        assert_eq!(meant("return 1"), [1]);
        assert_eq!(meant("((a + 1)) / (2)"), [2]);
        assert_eq!(meant("(a) - (1)"), [3]);
        assert_eq!(meant("* 2"), [2]);
        assert_eq!(meant(&made.text), [0, 1, 2, 3]);
        assert_eq!(meant("fn twice"), [0; 0]);
    }
}
