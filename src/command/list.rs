//! `list`: what there is, and why what is missing is missing.

use super::console::{layout, print_json, print_report};
use super::{CommandError, Exit};
use crate::cli::Display;
use crate::options::Given;
use crate::pattern::registry;
use crate::report::model::{OfRun, Rank, Table, prose, text};
use crate::report::table::{Layout, Text, Tone, table};
use crate::transport::{Settings, TransportKind};
use crate::units::Bytes;
use serde::Serialize;

/// One transport as it is listed.
#[derive(Serialize)]
struct Listed {
    transport: &'static str,
    available: bool,
    reason: Option<String>,
    found: Option<String>,
    patterns: Vec<&'static str>,
    largest_bytes: u64,
    loses: bool,
    ordered: bool,
    options: Vec<&'static str>,
    about: &'static str,
}

fn listed(kind: TransportKind) -> Listed {
    let descriptor = kind.descriptor();
    let available = kind.available_within_host(&Settings::default());
    Listed {
        transport: kind.name(),
        available: available.is_ok(),
        reason: available.err(),
        found: (descriptor.found)(),
        patterns: registry::carried_by(descriptor),
        largest_bytes: descriptor.largest,
        loses: descriptor.loses,
        ordered: descriptor.ordered,
        options: descriptor.settings.iter().map(|option| option.name).collect(),
        about: descriptor.about,
    }
}

impl OfRun for &Listed {}

/// Lists.
pub fn list(given: &Given) -> Result<Exit, CommandError> {
    let all: Vec<Listed> = TransportKind::ALL.iter().map(|kind| listed(*kind)).collect();
    let display = Display::of(given);
    if given.flag("json") {
        return print_json(&all);
    }
    print_report(&shown(&all, &layout(&display)), display.color)
}

fn shown(all: &[Listed], layout: &Layout) -> Text {
    let joined = |options: &[&str]| {
        let options: Vec<String> = options.iter().map(|name| format!("--{name}")).collect();
        options.join(" ")
    };
    let fields = [
        text("transport", |one: &&Listed| one.transport),
        text("available", |one: &&Listed| if one.available { "yes" } else { "no" }),
        prose("patterns", |one: &&Listed| one.patterns.join(" ")).rank(Rank::Main),
        text("largest", |one: &&Listed| Bytes(one.largest_bytes).to_string()).rank(Rank::Main),
        text("delivery", |one: &&Listed| if one.loses { "may lose" } else { "reliable" })
            .rank(Rank::More),
        text("order", |one: &&Listed| if one.ordered { "in order" } else { "may reorder" })
            .rank(Rank::More),
        prose("what it is", |one: &&Listed| one.about).rank(Rank::Main),
        prose("options", move |one: &&Listed| joined(&one.options)).rank(Rank::More),
    ];
    let mut lines = Table::of(all, fields).map_or_else(Text::default, |one| table(&one, layout));
    for one in all {
        if let Some(found) = &one.found {
            let line = format!("found: {}: {found}", one.transport);
            lines.append(layout.sentence(&line, Tone::Head));
        }
    }
    for one in all {
        if let Some(reason) = &one.reason {
            let line = format!("not available: {}: {reason}", one.transport);
            lines.append(layout.sentence(&line, Tone::Head));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_fits_any_terminal_and_says_whole_words() {
        let mut all: Vec<Listed> = TransportKind::ALL.iter().map(|kind| listed(*kind)).collect();
        all[0].reason = Some("a reason of several words that has no room on one line".into());
        let words = |text: &str| text.split_whitespace().map(String::from).collect::<Vec<_>>();
        let piped = shown(&all, &Layout::default()).to_string();
        assert!(piped.lines().next().is_some_and(|head| head.ends_with("options")), "{piped}");
        for width in [40, 80, 120, 200] {
            let layout = Layout::of_width(width);
            let text = shown(&all, &layout).to_string();
            assert!(text.lines().all(|line| line.chars().count() <= width), "{text}");
            for one in &all {
                assert!(words(one.about).iter().all(|word| words(&text).contains(word)), "{text}");
            }
        }
    }
}
