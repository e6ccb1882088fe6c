//! `--live`: a full-screen view of a run in progress: a progress bar, a chart over all cases, one
//! row per case, and the message rate of the current round.
//!
//! It is drawn by the controller's thread, which waits during a round, at most twice a second and
//! without a timer of its own.

use super::CommandError;
use super::progress::{Extent, MOST_DRAWN_HZ, shown};
use crate::plan::written::one_line;
use crate::plan::{Rounds, UsageError};
use crate::report::number::{per_second, time};
use crate::run::{SoFar, Watcher};
use ratatui::backend::TermionBackend;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::symbols::Marker;
use ratatui::termion::screen::{AlternateScreen, IntoAlternateScreen};
use ratatui::text::Line;
use ratatui::widgets::{Axis, Block, Chart, Dataset, Gauge, GraphType, Paragraph, Sparkline};
use ratatui::{Frame, Terminal, TerminalOptions, Viewport};
use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Stderr, Write};
use std::time::{Duration, Instant};
use terminal_size::terminal_size_of;

/// Shortest time between two redraws.
const REDRAW_INTERVAL: Duration = Duration::from_millis(1000 / MOST_DRAWN_HZ as u64);
/// Heights of the progress bar and of the message rate.
const BAR_ROWS: u16 = 1;
const RATE_ROWS: u16 = 4;
/// Columns and rows of a terminal that does not say.
const USUAL_SIZE: (u16, u16) = (80, 24);
/// The chart's height, in percent of the screen.
const CHART_SHARE: u16 = 55;
/// Message rates that are kept: more than the columns of any terminal.
const MOST_RATES: usize = 512;
/// Colours of p50 or the rate, and of p99: readable on dark and on light terminals.
const LOWER: Color = Color::Cyan;
const UPPER: Color = Color::Magenta;

/// What the screen shows.
#[derive(Default)]
struct State {
    cases: BTreeMap<usize, Row>,
    /// The case that is running.
    current: usize,
    /// Messages per second of the current round, one value per redraw.
    rates: Vec<u64>,
    /// Rounds of all cases: how many have started, and how many there are.
    started: (u64, u64),
    left: String,
}

/// One case.
struct Row {
    label: String,
    so_far: Option<SoFar>,
    rounds: u32,
}

/// Messages that are printed when the screen is closed.
#[derive(Default)]
struct Deferred(Vec<String>);

impl Drop for Deferred {
    fn drop(&mut self) {
        for sentence in &self.0 {
            // If stderr cannot be written, the record still has them.
            let _ = writeln!(io::stderr(), "wiregauge: {sentence}");
        }
    }
}

/// The screen. Dropping it restores the terminal.
pub struct Live {
    terminal: Terminal<TermionBackend<AlternateScreen<Stderr>>>,
    state: State,
    extent: Extent,
    drawn: Instant,
    /// When the messages of the current round were last counted, and their number.
    counted: (Instant, u64),
    /// Declared, and so dropped, after the terminal.
    deferred: Deferred,
}

impl Live {
    /// Opens the screen on stderr. Fails if stderr is not a terminal.
    pub fn new() -> Result<Live, CommandError> {
        let area = area().ok_or_else(|| {
            UsageError(
                "--live needs a terminal on stderr: run it in a terminal, or without --live"
                    .to_owned(),
            )
        })?;
        let screen = io::stderr().into_alternate_screen()?;
        let options = TerminalOptions { viewport: Viewport::Fixed(area) };
        let mut terminal = Terminal::with_options(TermionBackend::new(screen), options)?;
        terminal.hide_cursor()?;
        let now = Instant::now();
        let (state, extent, deferred) = (State::default(), Extent::default(), Deferred::default());
        Ok(Live {
            terminal,
            state,
            extent,
            drawn: now - REDRAW_INTERVAL,
            counted: (now, 0),
            deferred,
        })
    }

    /// Redraws, at most once per interval. A terminal that fails does not stop the run.
    fn draw(&mut self) {
        if self.drawn.elapsed() < REDRAW_INTERVAL {
            return;
        }
        self.drawn = Instant::now();
        (self.state.started, self.state.left) = (self.extent.started(), self.extent.left());
        if let Some(area) = area() {
            let _ = self.terminal.resize(area);
        }
        let state = &self.state;
        let _ = self.terminal.draw(|frame| draw(frame, state));
    }
}

/// The size of the terminal on stderr; `None` if it is not a terminal.
fn area() -> Option<Rect> {
    if !io::stderr().is_terminal() {
        return None;
    }
    // A pseudo-terminal may have no size.
    let (width, height) = terminal_size_of(io::stderr()).map_or(USUAL_SIZE, |(w, h)| (w.0, h.0));
    Some(Rect::new(0, 0, width, height))
}

impl Watcher for Live {
    fn cpus(&mut self, choice: &str) {
        self.deferred.0.push(one_line(choice));
    }

    fn round(&mut self, round: u32, rounds: Rounds, cases: usize) {
        self.extent.round(round, rounds, cases);
    }

    fn case(&mut self, case: usize, label: &str, so_far: Option<SoFar>) {
        self.extent.case();
        // It may quote a study or another host.
        let new = || Row { label: one_line(label), so_far, rounds: 0 };
        let row = self.state.cases.entry(case).or_insert_with(new);
        row.so_far = so_far;
        row.rounds += 1;
        self.state.current = case;
        self.state.rates.clear();
        self.counted = (Instant::now(), 0);
        self.draw();
    }

    fn measured(&mut self, case: usize, so_far: Option<SoFar>) {
        if let Some(row) = self.state.cases.get_mut(&case) {
            row.so_far = so_far;
        }
        self.draw();
    }

    fn messages(&mut self, messages: u64) {
        let (since, before) = self.counted;
        let seconds = since.elapsed().as_secs_f64();
        if seconds < REDRAW_INTERVAL.as_secs_f64() {
            return;
        }
        self.counted = (Instant::now(), messages);
        self.state.rates.push((messages.saturating_sub(before) as f64 / seconds) as u64);
        let old = self.state.rates.len().saturating_sub(MOST_RATES);
        self.state.rates.drain(..old);
        self.draw();
    }
}

/// Draws the whole screen at any size.
fn draw(frame: &mut Frame<'_>, state: &State) {
    let rows = [
        Constraint::Length(BAR_ROWS),
        Constraint::Percentage(CHART_SHARE),
        Constraint::Min(1),
        Constraint::Length(RATE_ROWS),
    ];
    let [bar, chart, cases, rate] = Layout::vertical(rows).areas(frame.area());
    let (started, of) = state.started;
    let share = if of == 0 { 0.0 } else { (started as f64 / of as f64).clamp(0.0, 1.0) };
    let left = format!("round {started} of {of}{}", state.left);
    frame.render_widget(Gauge::default().ratio(share).label(left), bar);
    draw_curve(frame, chart, state);
    draw_cases(frame, cases, state);
    let now = state.rates.last().map_or_else(String::new, |rate| per_second(*rate as f64));
    let block = Block::bordered().title(format!("message rate of this round: {now}"));
    let recent = state.rates.len().saturating_sub(usize::from(rate.width.saturating_sub(2)));
    let line = Sparkline::default().data(&state.rates[recent..]).block(block);
    frame.render_widget(line, rate);
}

/// p50 and p99, or the rate, over the cases in plan order. Only cases with the unit of the current
/// one: times and rates share no axis.
fn draw_curve(frame: &mut Frame<'_>, area: Rect, state: &State) {
    let known = |row: &Row| row.so_far;
    let of_current = state.cases.get(&state.current).and_then(known);
    let first = of_current.or_else(|| state.cases.values().find_map(known));
    let is_rate = matches!(first, Some(SoFar::Rate(_)));
    let mut lines: [Vec<(f64, f64)>; 2] = Default::default();
    for (place, row) in &state.cases {
        let x = *place as f64;
        match row.so_far {
            Some(SoFar::Rate(rate)) if is_rate => lines[0].push((x, rate)),
            Some(SoFar::Times { p50_ns, p99_ns, .. }) if !is_rate => {
                lines[0].push((x, p50_ns));
                lines[1].push((x, p99_ns));
            }
            _ => {}
        }
    }
    // A logarithmic axis, for sweeps. The quantile of lost messages is infinite and is left out.
    lines.iter_mut().for_each(|line| line.retain(|(_, y)| y.is_finite() && *y > 0.0));
    lines.iter_mut().flatten().for_each(|(_, y)| *y = y.log10());
    let written = |log: f64| match is_rate {
        true => per_second(10f64.powf(log)),
        false => time(10f64.powf(log)),
    };
    let (low, high) = bounds(lines.iter().flatten().map(|(_, y)| *y));
    let last = state.cases.keys().next_back().copied().unwrap_or(0) as f64;
    let names = if is_rate { ["rate", ""] } else { ["p50", "p99"] };
    let sets =
        lines.iter().zip(names).zip([LOWER, UPPER]).filter(|((line, _), _)| !line.is_empty());
    let sets = sets.map(|((line, name), color)| {
        let style = Style::default().fg(color);
        let set = Dataset::default().name(name).marker(Marker::Braille).style(style);
        set.graph_type(GraphType::Line).data(line)
    });
    let labels = [low, (low + high) / 2.0, high].map(written);
    let chart = Chart::new(sets.collect())
        .block(Block::bordered().title("all cases, in plan order"))
        .x_axis(
            Axis::default()
                .bounds([0.0, last.max(1.0)])
                .labels(["1".into(), (last + 1.0).to_string()]),
        )
        .y_axis(Axis::default().bounds([low, high]).labels(labels));
    frame.render_widget(chart, area);
}

/// The range of an axis for these values.
fn bounds(values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let low = values.clone().fold(f64::INFINITY, f64::min);
    let high = values.fold(f64::NEG_INFINITY, f64::max);
    match low <= high {
        true => (low - 0.05, high + 0.05),
        false => (0.0, 1.0),
    }
}

/// One row per case; where they do not fit, those around the current one.
fn draw_cases(frame: &mut Frame<'_>, area: Rect, state: &State) {
    let block = Block::bordered().title("estimates so far; intervals are in the report");
    let room = usize::from(block.inner(area).height);
    let at = state.cases.keys().position(|case| *case == state.current).unwrap_or(0);
    let first = at.saturating_sub(room / 2).min(state.cases.len().saturating_sub(room));
    let line = |(case, row): (&usize, &Row)| {
        let figures = row.so_far.map_or_else(|| ": in its first round".to_owned(), shown);
        let line = Line::raw(format!("{}{figures} (round {})", row.label, row.rounds));
        match *case == state.current {
            true => line.style(Modifier::BOLD),
            false => line,
        }
    };
    let lines: Vec<Line<'_>> = state.cases.iter().skip(first).take(room).map(line).collect();
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Metric;
    use ratatui::backend::TestBackend;

    fn screen(state: &State, width: u16, height: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, state)).unwrap();
        let buffer = terminal.backend().buffer().clone();
        let cells = buffer.content.chunks(usize::from(width));
        cells.map(|row| row.iter().map(|cell| cell.symbol()).collect()).collect()
    }

    fn times(p50_ns: f64, p99_ns: f64) -> Option<SoFar> {
        Some(SoFar::Times { metric: Metric::HalfRtt, p50_ns, p99_ns })
    }

    fn state(cases: &[(&str, Option<SoFar>)], current: usize) -> State {
        let row = |(label, so_far): &(&str, _)| Row {
            label: label.to_string(),
            so_far: *so_far,
            rounds: 2,
        };
        State {
            cases: cases.iter().map(row).enumerate().collect(),
            current,
            rates: vec![100_000, 200_000],
            started: (3, 12),
            left: ", about 25 s left".into(),
        }
    }

    #[test]
    fn a_screen_shows_progress_chart_and_cases() {
        let cases = [
            ("tcp 64 B", times(1e4, 2e4)),
            ("tcp 1 KiB", times(1e5, f64::INFINITY)),
            ("bandwidth tcp", Some(SoFar::Rate(5e5))),
            ("shm", None),
        ];
        let shown = screen(&state(&cases, 1), 80, 30);
        let all = shown.join("\n");
        assert!(shown[0].contains("round 3 of 12, about 25 s left"), "{all}");
        assert!(all.contains("message rate of this round: 200.0 k msg/s"), "{all}");
        assert!(all.contains("tcp 64 B: half_rtt p50 10.00 us, p99 20.00 us (round 2)"), "{all}");
        assert!(all.contains("bandwidth tcp: 500.0 k msg/s (round 2)"), "{all}");
        assert!(all.contains("shm: in its first round (round 2)"), "{all}");
        // The axis goes from the lowest to the highest time, and no rate is among them.
        assert!(all.contains("8.913 us") && all.contains("112.2 us"), "{all}");
        let rates = screen(&state(&cases, 2), 80, 30).join("\n");
        assert!(rates.contains("445.6 k msg/s"), "{rates}");
    }

    #[test]
    fn a_small_screen_shows_the_cases_around_the_current_one() {
        let labels: Vec<String> = (0..100).map(|case| format!("case {case} is")).collect();
        let cases: Vec<_> = labels.iter().map(|label| (label.as_str(), times(1e3, 2e3))).collect();
        let all = screen(&state(&cases, 70), 60, 24).join("\n");
        assert!(all.contains("case 70 is") && !all.contains("case 0 is"), "{all}");
        for (width, height) in [(1, 1), (3, 40), (200, 2)] {
            screen(&state(&cases, 99), width, height);
        }
        screen(&State::default(), 80, 24);
    }
}
