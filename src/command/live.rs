//! `--live`: a screen that shows a run as it comes: how far it is, the curve over its cases, and a
//! row a case.
//!
//! The thread that draws is the controller's, which waits while the CPUs measure: at most twice a
//! second, and never from a timer.

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

/// How long a drawing stands at least.
const STANDS: Duration = Duration::from_millis(1000 / MOST_DRAWN_HZ as u64);
/// Rows of the screen beside the chart and the cases: the bar, and the rate of the round.
const BAR_ROWS: u16 = 1;
const RATE_ROWS: u16 = 4;
/// Of the rest, the chart's share in percent.
const CHART_SHARE: u16 = 55;
/// The widest rate's history that a screen shows.
const MOST_RATES: usize = 512;
/// Colours that both dark and light terminals show.
const LOWER: Color = Color::Cyan;
const UPPER: Color = Color::Magenta;

/// What the run has shown, apart from how it is drawn.
#[derive(Default)]
struct State {
    cases: BTreeMap<usize, Row>,
    /// The case that is measured.
    present: usize,
    /// Messages per second in the present round, one for each drawing.
    rates: Vec<u64>,
    /// Rounds of cases that have begun, of how many, and the time left.
    begun: (u64, u64),
    left: Duration,
}

/// A case.
struct Row {
    label: String,
    so_far: Option<SoFar>,
    rounds: u32,
}

/// Sentences for after the screen is gone.
#[derive(Default)]
struct Later(Vec<String>);

impl Drop for Later {
    fn drop(&mut self) {
        for sentence in &self.0 {
            // Where even stderr cannot be written, the record has them.
            let _ = writeln!(io::stderr(), "wiregauge: {sentence}");
        }
    }
}

/// The screen. Dropping it gives the terminal back.
pub struct Live {
    terminal: Terminal<TermionBackend<AlternateScreen<Stderr>>>,
    state: State,
    extent: Extent,
    drawn: Instant,
    /// When the messages of the present round were counted last, and how many there were.
    counted: (Instant, u64),
    /// Dropped after the terminal.
    later: Later,
}

impl Live {
    /// Takes the terminal that stderr is. Fails where it is none.
    pub fn new() -> Result<Live, CommandError> {
        let area = area().ok_or_else(|| {
            UsageError("--live draws on a terminal, and stderr is none: leave it out".to_owned())
        })?;
        let screen = io::stderr().into_alternate_screen()?;
        let options = TerminalOptions { viewport: Viewport::Fixed(area) };
        let mut terminal = Terminal::with_options(TermionBackend::new(screen), options)?;
        terminal.hide_cursor()?;
        let now = Instant::now();
        let (state, extent, later) = (State::default(), Extent::default(), Later::default());
        Ok(Live { terminal, state, extent, drawn: now - STANDS, counted: (now, 0), later })
    }

    /// Draws, unless the last drawing is recent. A screen that cannot be written ends no run.
    fn draw(&mut self) {
        if self.drawn.elapsed() < STANDS {
            return;
        }
        self.drawn = Instant::now();
        (self.state.begun, self.state.left) = (self.extent.begun(), self.extent.left());
        if let Some(area) = area() {
            let _ = self.terminal.resize(area);
        }
        let state = &self.state;
        let _ = self.terminal.draw(|frame| draw(frame, state));
    }
}

/// The terminal's, where stderr is one.
fn area() -> Option<Rect> {
    if !io::stderr().is_terminal() {
        return None;
    }
    let (width, height) = terminal_size_of(io::stderr())?;
    Some(Rect::new(0, 0, width.0, height.0))
}

impl Watcher for Live {
    fn cpus(&mut self, choice: &str) {
        self.later.0.push(one_line(choice));
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
        self.state.present = case;
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
        if seconds < STANDS.as_secs_f64() {
            return;
        }
        self.counted = (Instant::now(), messages);
        self.state.rates.push((messages.saturating_sub(before) as f64 / seconds) as u64);
        let old = self.state.rates.len().saturating_sub(MOST_RATES);
        self.state.rates.drain(..old);
        self.draw();
    }
}

/// Draws the state in whatever room there is.
fn draw(frame: &mut Frame<'_>, state: &State) {
    let rows = [
        Constraint::Length(BAR_ROWS),
        Constraint::Percentage(CHART_SHARE),
        Constraint::Min(1),
        Constraint::Length(RATE_ROWS),
    ];
    let [bar, chart, cases, rate] = Layout::vertical(rows).areas(frame.area());
    let (begun, of) = state.begun;
    let share = if of == 0 { 0.0 } else { (begun as f64 / of as f64).clamp(0.0, 1.0) };
    let left = format!("round {begun} of {of}, about {} s left", state.left.as_secs());
    frame.render_widget(Gauge::default().ratio(share).label(left), bar);
    draw_curve(frame, chart, state);
    draw_cases(frame, cases, state);
    let now = state.rates.last().map_or_else(String::new, |rate| per_second(*rate as f64));
    let block = Block::bordered().title(format!("messages of this round {now}"));
    let recent = state.rates.len().saturating_sub(usize::from(rate.width.saturating_sub(2)));
    let line = Sparkline::default().data(&state.rates[recent..]).block(block);
    frame.render_widget(line, rate);
}

/// The figures of all cases that have the present one's unit, by their place in the plan.
fn draw_curve(frame: &mut Frame<'_>, area: Rect, state: &State) {
    let known = |row: &Row| row.so_far;
    let of_present = state.cases.get(&state.present).and_then(known);
    let first = of_present.or_else(|| state.cases.values().find_map(known));
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
    // Powers of ten, as figures of a sweep are apart. What is lost is infinite and has no place.
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
        .block(Block::bordered().title("cases in their order"))
        .x_axis(
            Axis::default()
                .bounds([0.0, last.max(1.0)])
                .labels(["1".into(), (last + 1.0).to_string()]),
        )
        .y_axis(Axis::default().bounds([low, high]).labels(labels));
    frame.render_widget(chart, area);
}

/// Where an axis of these begins and ends.
fn bounds(values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let low = values.clone().fold(f64::INFINITY, f64::min);
    let high = values.fold(f64::NEG_INFINITY, f64::max);
    match low <= high {
        true => (low - 0.05, high + 0.05),
        false => (0.0, 1.0),
    }
}

/// A row a case; where there is no room for all, those about the present one.
fn draw_cases(frame: &mut Frame<'_>, area: Rect, state: &State) {
    let block = Block::bordered().title("so far");
    let room = usize::from(block.inner(area).height);
    let at = state.cases.keys().position(|case| *case == state.present).unwrap_or(0);
    let first = at.saturating_sub(room / 2).min(state.cases.len().saturating_sub(room));
    let line = |(case, row): (&usize, &Row)| {
        let figures = row.so_far.map_or_else(|| ": first round".to_owned(), shown);
        let line = Line::raw(format!("{}{figures} (round {})", row.label, row.rounds));
        match *case == state.present {
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

    fn state(cases: &[(&str, Option<SoFar>)], present: usize) -> State {
        let row = |(label, so_far): &(&str, _)| Row {
            label: label.to_string(),
            so_far: *so_far,
            rounds: 2,
        };
        State {
            cases: cases.iter().map(row).enumerate().collect(),
            present,
            rates: vec![100_000, 200_000],
            begun: (3, 12),
            left: Duration::from_secs(25),
        }
    }

    #[test]
    fn a_screen_shows_how_far_a_run_is_its_curve_and_its_cases() {
        let cases = [
            ("tcp 64 B", times(1e4, 2e4)),
            ("tcp 1 KiB", times(1e5, f64::INFINITY)),
            ("bandwidth tcp", Some(SoFar::Rate(5e5))),
            ("shm", None),
        ];
        let shown = screen(&state(&cases, 1), 80, 30);
        let all = shown.join("\n");
        assert!(shown[0].contains("round 3 of 12, about 25 s left"), "{all}");
        assert!(all.contains("messages of this round 200.0 k msg/s"), "{all}");
        assert!(all.contains("tcp 64 B: half_rtt p50 10.00 us, p99 20.00 us (round 2)"), "{all}");
        assert!(all.contains("bandwidth tcp: 500.0 k msg/s (round 2)"), "{all}");
        assert!(all.contains("shm: first round (round 2)"), "{all}");
        // The axis goes from the lowest to the highest time, and no rate is among them.
        assert!(all.contains("8.913 us") && all.contains("112.2 us"), "{all}");
        let rates = screen(&state(&cases, 2), 80, 30).join("\n");
        assert!(rates.contains("445.6 k msg/s"), "{rates}");
    }

    #[test]
    fn a_screen_without_room_shows_the_cases_about_the_present_one() {
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
