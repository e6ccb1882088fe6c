//! The table of the hosts whose clients have one server.

use super::model::{Cell, Note, Rank, Show, Table, TableField, figure, number, text};
use crate::record::schema::{ClientHost, Run};

/// A sentence for each host that stands out of a run.
pub fn answers<'a>(runs: impl Iterator<Item = &'a Run>) -> Vec<String> {
    let of_run = |run: &'a Run| run.client_hosts.iter().map(move |host| (run, host));
    let found = runs.flat_map(of_run).filter(|(_, host)| !host.stands_out.is_empty());
    let sentence = |(run, host): (&Run, &ClientHost)| {
        let by = host.stands_out.join(", ");
        format!("{}: clients on {} stand out by their {by}.", run.label, host.name)
    };
    found.map(sentence).collect()
}

/// Each host of each of these runs by itself; `None`: all clients of each run are on one host.
pub fn table<'a>(runs: impl Iterator<Item = &'a Run>) -> Option<Table> {
    let of_run = |run: &'a Run| run.client_hosts.iter().map(move |host| (run, host));
    let rows: Vec<(&Run, &ClientHost)> = runs.flat_map(of_run).collect();
    let has_slowdown = rows.iter().any(|(_, host)| host.slowdown.is_some());
    let time = |p| move |row: &(&Run, &ClientHost)| Cell::quantile(Some(&row.1.summary), p);
    let mut fields: Vec<TableField<'_, (&Run, &ClientHost)>> = vec![
        text("run", |row: &(&Run, &ClientHost)| row.0.label.as_str()),
        text("host", |row: &(&Run, &ClientHost)| row.1.name.as_str()),
        text("metric", |row: &(&Run, &ClientHost)| row.1.metric.name()).rank(Rank::More),
        figure("p50", "us", time(0.5)),
        figure("p99", "us", time(0.99)),
    ];
    if has_slowdown {
        fields.push(figure("slowdown", "", |row: &(&Run, &ClientHost)| {
            let slowdown = row.1.slowdown.as_ref();
            slowdown.map_or(Cell::None, |rate| Cell::figure(rate.value, rate.interval, 1.0))
        }));
    }
    fields.extend([
        text("stands out by", |row: &(&Run, &ClientHost)| match row.1.stands_out.join(", ") {
            none if none.is_empty() => "-".to_string(),
            names => names,
        }),
        number("n", "", |row: &(&Run, &ClientHost)| Cell::Count(row.1.summary.count))
            .rank(Rank::More),
    ]);
    let table = Table::of(rows, fields)?;
    let caption = Note::new("Clients of each host by themselves", Show::Page);
    let rule = "stands out: its interval is beyond those of all other hosts, and its figure is not \
                within 0.8 to 1.2 times that of all";
    Some(table.caption(caption).notes([rule.to_string()]))
}
