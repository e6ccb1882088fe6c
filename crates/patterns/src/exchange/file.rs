//! A schedule that was written down, in the form of DABC's `IbTest`:
//!
//! ```text
//! Num slots: 2
//! Num senders: 2
//! Slot: 0
//! 0 -> 1
//! 1 -> 0
//! ```
//!
//! What follows the receiver on a line (DABC's LID) is read and not used. Empty lines and what
//! follows a `#` are skipped.

use super::slots::Transfer;
use std::collections::BTreeSet;
use wiregauge_plan::written::{Misplaced, Written};

/// Most transfers of a file: they go to every node in one control frame.
pub const MOST_TRANSFERS: usize = 50_000;
/// Most slots of a file.
pub const MOST_SLOTS: u32 = 1_000_000;
/// Longest file that is read.
pub const LONGEST_FILE: u64 = 4 << 20;

/// A schedule while its file is read.
struct Reader<'t> {
    written: &'t Written,
    nodes: u32,
    slots: Option<u32>,
    slot: Option<u32>,
    transfers: Vec<Transfer>,
    /// Who sends and who receives in the present slot.
    busy: [BTreeSet<u32>; 2],
}

/// The transfers of a text among so many nodes.
///
/// # Errors
/// A sentence with line and column.
pub fn parse(file: &str, text: &str, nodes: u32) -> Result<Vec<Transfer>, Misplaced> {
    let written = Written { file: file.into(), text: text.into() };
    let busy = [BTreeSet::new(), BTreeSet::new()];
    let (slots, slot, transfers) = (None, None, Vec::new());
    let mut reader = Reader { written: &written, nodes, slots, slot, transfers, busy };
    for line in text.lines() {
        let content = line.split('#').next().unwrap_or_default();
        if !content.trim().is_empty() {
            reader.line(text, content)?;
        }
    }
    match reader.transfers.is_empty() {
        true => Err(written.wrong(&(0..0), "no transfer: write lines such as '0 -> 1'")),
        false => Ok(reader.transfers),
    }
}

impl Reader<'_> {
    /// A refusal that points at a part of the text.
    fn wrong(&self, text: &str, part: &str, sentence: impl AsRef<str>) -> Misplaced {
        let at = part.as_ptr() as usize - text.as_ptr() as usize;
        self.written.wrong(&(at..at + part.len()), sentence)
    }

    fn line(&mut self, text: &str, content: &str) -> Result<(), Misplaced> {
        if let Some((key, value)) = content.split_once(':') {
            return self.head(text, key.trim(), value.trim());
        }
        let Some((from, to)) = content.split_once("->") else {
            let part = content.trim();
            return Err(self.wrong(
                text,
                part,
                "expected 'Slot: i' or a transfer such as '0 -> 1'",
            ));
        };
        let to = to.trim_start();
        let mut words = to.split_whitespace();
        let (from, to) = (from.trim(), words.next().unwrap_or(&to[..0]));
        let lid = words.next();
        if let Some(more) = words.next() {
            return Err(self.wrong(text, more, "a transfer has a sender, a receiver and a LID"));
        }
        lid.map_or(Ok(0), |lid| self.number(text, lid, u32::MAX)).map(drop)?;
        let Some(slot) = self.slot else {
            return Err(self.wrong(text, from, "a transfer before the first 'Slot:'"));
        };
        let ends = [self.number(text, from, self.nodes)?, self.number(text, to, self.nodes)?];
        if ends[0] == ends[1] {
            return Err(self.wrong(text, to, "a node does not send to itself"));
        }
        for (end, (word, does)) in [(from, "sends"), (to, "receives")].into_iter().enumerate() {
            if !self.busy[end].insert(ends[end]) {
                let sentence = format!("node {word} {does} twice in slot {slot}");
                return Err(self.wrong(text, word, sentence));
            }
        }
        self.transfers.push((slot, ends[0], ends[1]));
        let sentence = format!("a schedule has at most {MOST_TRANSFERS} transfers");
        match self.transfers.len() <= MOST_TRANSFERS {
            true => Ok(()),
            false => Err(self.wrong(text, from, sentence)),
        }
    }

    /// A line with a colon.
    fn head(&mut self, text: &str, key: &str, value: &str) -> Result<(), Misplaced> {
        match key {
            "Num slots" => {
                let slots = self.number(text, value, MOST_SLOTS + 1)?;
                self.slots = Some(slots);
                let sentence = "a schedule has at least one slot";
                if slots > 0 { Ok(()) } else { Err(self.wrong(text, value, sentence)) }
            }
            "Num senders" => {
                let senders = self.number(text, value, u32::MAX)?;
                let (nodes, word) = (self.nodes, value);
                let sentence = format!("the file is for {senders} nodes, and there are {nodes}");
                if senders == nodes { Ok(()) } else { Err(self.wrong(text, word, sentence)) }
            }
            "Slot" => {
                let slot = self.number(text, value, self.slots.unwrap_or(MOST_SLOTS))?;
                if self.slot.is_some_and(|before| slot <= before) {
                    return Err(self.wrong(text, value, "slots must rise"));
                }
                self.slot = Some(slot);
                self.busy = [BTreeSet::new(), BTreeSet::new()];
                Ok(())
            }
            _ => {
                let known = "unknown line: use 'Num slots:', 'Num senders:' or 'Slot:'";
                Err(self.wrong(text, key, known))
            }
        }
    }

    /// A number below this one.
    fn number(&self, text: &str, word: &str, below: u32) -> Result<u32, Misplaced> {
        let number = word.parse().ok().filter(|number| *number < below);
        let most = below - 1;
        number.ok_or_else(|| self.wrong(text, word, format!("expected a number from 0 to {most}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "# two nodes\nNum slots: 3\nNum senders: 2\n\nSlot: 0\n0 -> 1 17\n1 -> 0\n\
                        Slot: 2\n 1->0  # back\n";

    #[test]
    fn a_file_of_the_source_s_form_is_read() {
        assert_eq!(parse("f", GOOD, 2), Ok(vec![(0, 0, 1), (0, 1, 0), (2, 1, 0)]));
    }

    #[test]
    fn what_is_wrong_has_its_line_and_column() {
        let refused = |text: &str, nodes| parse("f", text, nodes).unwrap_err().to_string();
        let at = |text: &str| refused(text, 2).split(' ').next().unwrap().to_string();
        assert_eq!(at("Slot: 0\n0 -> 2\n"), "f:2:6:");
        assert_eq!(at("Slot: 0\n0 -> 0\n"), "f:2:6:");
        assert_eq!(at("Slot: 0\n0 -> 1\nx -> 1\n"), "f:3:1:");
        assert_eq!(at("0 -> 1\n"), "f:1:1:");
        assert_eq!(at("Slot: 0\n0 -> 1 2 3\n"), "f:2:10:");
        assert_eq!(at("Slot: 1\n0 -> 1\nSlot: 1\n"), "f:3:7:");
        assert_eq!(at("Slots: 1\n"), "f:1:1:");
        assert_eq!(at("Num slots: 1\nSlot: 1\n"), "f:2:7:");
        assert_eq!(at("Num slots: 0\nSlot: 0\n"), "f:1:12:");
        assert_eq!(at("Slot: 0\n0 1\n"), "f:2:1:");
        assert_eq!(at("Slot: 0\n0 ->\n"), "f:2:5:");
        assert!(refused("Slot: 0\n", 2).contains("no transfer"));
        assert!(refused(GOOD, 3).contains("for 2 nodes, and there are 3"));
        let twice = refused("Slot: 4\n0 -> 1\n2 -> 1\n", 3);
        assert!(twice.starts_with("f:3:6: node 1 receives twice in slot 4"), "{twice}");
    }
}
