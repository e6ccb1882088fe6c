//! How long packets of Homa live, stage by stage, and what the module counted.

use crate::model::{Cell, Column, Note, Row, Section, Table};
use crate::number::{PERCENT, US, count, time, trimmed};
use std::collections::BTreeMap;
use wiregauge_base::units::counted;
use wiregauge_figures::explain::QUANTILES;
use wiregauge_figures::explain::packets::{Carries, Direction, Lives, Packets, STAGES};

/// Decimals of a time in us: the module traces cycles.
const DECIMALS: usize = 3;

/// All of it; the module's counters where they are known.
pub fn section(found: &Packets, counters: &BTreeMap<String, u64>) -> Section {
    let lives = found.lives.iter().map(lives);
    let tables = lives.chain(locks(found)).chain(counters_of(counters)).collect();
    let notes = notes(found).into_iter().map(Note::from).collect();
    Section { notes, tables, ..Section::new("packets", "How long packets live") }
}

/// A heading is `label`; without a unit a text.
fn column(label: &str, unit: &str) -> Column {
    let is_number = !unit.is_empty();
    let (head, unit, key) = (label.into(), unit.trim().into(), label.into());
    Column { head, unit, key, is_number, ..Column::default() }
}

fn row(cells: Vec<Cell>) -> Row {
    Row { cells, ..Row::default() }
}

/// A table of percentile by stage: what it is of stands above its stages.
fn lives(found: &Lives) -> Table {
    let carries = match found.carries {
        Carries::Data => "data packet",
        Carries::Grant => "grant",
    };
    let direction = match found.direction {
        Direction::ToServer => "client to server",
        Direction::ToClient => "server to client",
    };
    let first = format!("{carries}, {direction} ({})", count(found.packets as u64));
    let quantiles = QUANTILES.iter().map(|p| column(&format!("p{}", trimmed(p * PERCENT)), "us"));
    let columns = [column(&first, "")].into_iter().chain(quantiles);
    let columns = columns.chain([column("ends at", "")]).collect();
    let of = |name: &str, times: &[f64], ends_at: &str| {
        let times = times.iter().map(|ns| Cell::fixed(ns * US, DECIMALS));
        let cells = [Cell::Text(name.into())].into_iter().chain(times);
        row(cells.chain([Cell::Text(ends_at.into())]).collect())
    };
    let stages = STAGES.iter().zip(&found.stages_ns);
    // A grant's way into IP is not traced, and there may be no GRO.
    let stages = stages.filter(|(_, times)| times.iter().any(|ns| *ns > 0.0));
    let rows = stages.map(|((name, ends_at), times)| of(name, times, ends_at));
    let rows = rows.chain([of("total", &found.total_ns, "-")]).collect();
    Table { columns, rows, ..Table::default() }
}

fn locks(found: &Packets) -> Option<Table> {
    let heads =
        [("wait for the lock of", ""), ("waits", " "), ("together", "us"), ("longest", "us")];
    let columns = heads.iter().map(|(head, unit)| column(head, unit)).collect();
    let rows = found.locks.iter().map(|one| {
        let times = [one.total_ns, one.longest_ns].map(|ns| Cell::fixed(ns * US, DECIMALS));
        let first = [Cell::Text(one.lock.into()), Cell::Count(one.waits as u64)];
        row(first.into_iter().chain(times).collect())
    });
    (!found.locks.is_empty()).then(|| Table { columns, rows: rows.collect(), ..Table::default() })
}

/// What the module counted since it was loaded.
fn counters_of(counters: &BTreeMap<String, u64>) -> Option<Table> {
    let columns = vec![column("counted since the module was loaded", ""), column("count", " ")];
    let rows = counters.iter();
    let rows = rows.map(|(name, n)| row(vec![Cell::Text(name.clone()), Cell::Count(*n)]));
    let table = || Table { columns, rows: rows.collect(), ..Table::default() };
    (!counters.is_empty()).then(table)
}

/// What the times are worth.
fn notes(found: &Packets) -> Vec<String> {
    let followed: usize = found.lives.iter().map(|one| one.packets).sum();
    let mut all = vec![format!(
        "{} followed over the {} that the trace holds; of {} that arrived it does not hold all",
        counted(followed, "packet"),
        time(found.length_ns),
        count(found.cut as u64)
    )];
    all.extend(found.bound_ns.map(|bound| {
        format!(
            "the clocks of both hosts are placed so that the shortest 'network' and 'IP' there and \
             back are equal; each way is known to {} by that, and their sum exactly",
            time(bound)
        )
    }));
    if !found.events.is_empty() {
        let events = found.events.iter();
        let events = events.map(|(name, n)| format!("{name} {}", count(*n as u64)));
        all.push(format!("seen in the trace: {}", events.collect::<Vec<_>>().join(", ")));
    }
    all
}
