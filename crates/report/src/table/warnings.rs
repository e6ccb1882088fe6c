//! Warnings as lines of text: the worst first, each with what to do.

use super::layout::Layout;
use super::text::{Text, Tone};
use crate::warnings::{Entry, Group, named};
use wiregauge_base::units::counted;
use wiregauge_base::warning::{RecordedWarning, Severity};

/// Most kinds of warnings that are shown where not all are asked for.
const MOST: usize = 5;

/// Groups of warnings as lines: the worst few, or all of them and the notes where the layout is
/// verbose.
pub fn warnings(groups: &[Group<'_>], layout: &Layout) -> Text {
    let is_note = |group: &Group<'_>| group.first().severity == Severity::Note;
    let shown =
        |(at, group): &(usize, &Group<'_>)| layout.verbose || (*at < MOST && !is_note(group));
    let mut text = Text::default();
    for (_, group) in groups.iter().enumerate().filter(shown) {
        text.append(lines(group, layout));
    }
    if layout.verbose {
        return text;
    }
    let notes = groups.iter().filter(|group| is_note(group)).count();
    let others = (groups.len() - notes).saturating_sub(MOST);
    let count = |n: usize, what: &str| (n > 0).then(|| counted(n, what));
    let left: Vec<String> =
        [count(others, "more warning"), count(notes, "note")].into_iter().flatten().collect();
    if !left.is_empty() {
        let left = format!("{}: --verbose, or the page", left.join(" and "));
        text.append(layout.sentence(&left, Tone::Plain));
    }
    text
}

/// The worst with the runs or hosts that it is about, or all where the layout is verbose, and the
/// advice.
fn lines(group: &Group<'_>, layout: &Layout) -> Text {
    let mut text = Text::default();
    let mut line = |entry: &Entry<'_>, place: &str| {
        let RecordedWarning { severity, sentence, .. } = entry.warning;
        let tone = match severity {
            Severity::Note => Tone::Faint,
            Severity::Warning => Tone::Uncertain,
            Severity::Severe => Tone::Bad,
        };
        let labels: Vec<&str> = entry.labels.iter().map(String::as_str).collect();
        let colon = if labels.is_empty() { "" } else { ": " };
        let labels = named(&labels, layout.verbose);
        let sentence = format!("{}: {labels}{colon}{sentence}{place}", severity.name());
        text.append(layout.sentence(&sentence, tone));
    };
    match (layout.verbose, group.place_of_first().as_str()) {
        (true, _) => group.entries.iter().for_each(|entry| line(entry, "")),
        (false, "") => line(&group.entries[0], ""),
        (false, place) => line(&group.entries[0], &format!(" ({place})")),
    }
    let advice = group.first().advice.as_str();
    if !advice.is_empty() {
        text.append(layout.sentence(&format!("  advice: {advice}"), Tone::Faint));
    }
    text
}
