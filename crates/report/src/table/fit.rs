//! A table within a terminal's width: a figure and its error are one field, and so many columns
//! are shown as fit.

use super::field::Field;
use super::layout::{Columns, Layout, broken, longest_word, width};
use super::text::{Text, Tone};
use crate::model::{Cell, Column as Described, Rank};
use crate::number::Room;
use wiregauge_plan::written::escaped;

/// Between two columns.
const GAP: usize = 2;
/// Sentences in a column are broken, but not into less than this.
const LEAST_OF_PROSE: usize = 20;

/// The head of a column, and which columns are shown where not all fit.
#[derive(Clone, Debug, Default)]
pub(super) struct Head {
    /// With its unit.
    pub text: String,
    /// How it can be asked for.
    pub names: Vec<String>,
    pub rank: Rank,
    pub is_prose: bool,
    pub with_error: bool,
}

impl From<&Described> for Head {
    fn from(column: &Described) -> Head {
        let text = escaped(format!("{} {}", column.head, column.unit).trim());
        Head {
            names: vec![text.clone(), column.head.clone(), column.key.clone()],
            text,
            rank: column.rank,
            is_prose: column.is_prose,
            with_error: column.with_error,
        }
    }
}

/// A column as it is printed.
struct Column<'a> {
    head: &'a Head,
    fields: Vec<Field>,
    is_number: bool,
    /// The most characters before the point of its numbers, and from it on.
    before: usize,
    fraction: usize,
    /// Characters of its longest field.
    content: usize,
    /// The least and the most that a line of it can have.
    least: usize,
    most: usize,
}

impl<'a> Column<'a> {
    /// Where there is little room a field that is longer than the others does not stand on their
    /// point.
    fn new(head: &'a Head, fields: Vec<Field>, room: Room) -> Column<'a> {
        let is_number = fields.iter().any(|field| field.is_number);
        let numbers = || fields.iter().filter(|field| field.is_number);
        let before = numbers().map(|field| field.at_point().0).max().unwrap_or(0);
        let fraction = numbers().map(Field::fraction).max().unwrap_or(0);
        let numbers = numbers().map(|field| {
            let before = if room == Room::Little { field.at_point().0 } else { before };
            before + field.fraction() + width(&field.error)
        });
        let words = fields.iter().filter(|field| !field.is_number).map(|field| width(&field.value));
        let content = numbers.chain(words).max().unwrap_or(0);
        let word = longest_word(&head.text);
        let in_words = || fields.iter().map(|field| longest_word(&field.value)).max().unwrap_or(0);
        let least = match head.is_prose {
            true => content.min(LEAST_OF_PROSE.max(in_words())),
            false => content,
        };
        let (least, most) = (least.max(word), content.max(word));
        Column { head, is_number, before, fraction, content, least, most, fields }
    }

    /// The lines of its head.
    fn head_lines(&self, room: usize) -> Vec<Text> {
        let lines = broken(&self.head.text, room);
        lines.iter().map(|line| self.placed(vec![(Tone::Head, line.clone())], room)).collect()
    }

    /// The lines of a row.
    fn lines(&self, row: usize, room: usize) -> Vec<Text> {
        let field = &self.fields[row];
        if self.head.is_prose && !field.is_number {
            let lines = broken(&field.value, room);
            let line = |line: &String| self.placed(vec![(field.tone, line.clone())], room);
            return lines.iter().map(line).collect();
        }
        vec![self.placed(self.on_point(field), room)]
    }

    /// A field with the room before its point and before its error; those of a column stand under
    /// each other, where none is too long for that.
    fn on_point(&self, field: &Field) -> Vec<(Tone, String)> {
        if !field.is_number {
            return vec![(field.tone, field.value.clone())];
        }
        let (whole, fraction) = field.at_point();
        let error = width(&field.error);
        let own = whole + fraction + error;
        let indent = (self.before - whole).min(self.content.saturating_sub(own));
        let end = indent + whole + fraction;
        // Errors begin below each other where that leaves room for theirs.
        let begin = (self.before + self.fraction).min(self.content.saturating_sub(error)).max(end);
        let value = " ".repeat(indent) + &field.value;
        let error = field.error.clone() + &" ".repeat(self.content.saturating_sub(begin + error));
        let gap = " ".repeat(begin - end);
        vec![(field.tone, value), (Tone::Plain, gap), (field.error_tone, error)]
    }

    fn placed(&self, pieces: Vec<(Tone, String)>, room: usize) -> Text {
        let own: usize = pieces.iter().map(|(_, piece)| width(piece)).sum();
        let space = " ".repeat(room.saturating_sub(own));
        let mut text = Text::default();
        text.push(Tone::Plain, if self.is_number { &space } else { "" });
        pieces.iter().for_each(|(tone, piece)| text.push(*tone, piece));
        text.push(Tone::Plain, if self.is_number { "" } else { &space });
        text
    }
}

/// The columns of a table that fit.
pub(super) struct Fit<'a> {
    columns: Vec<Column<'a>>,
    rows: usize,
    width: usize,
    room: Room,
    /// What is alike in all rows, and has no column.
    once: Vec<String>,
    /// Those that are shown, by the blocks that stand below each other; none where not even the
    /// first figure fits beside what says which row it is of.
    blocks: Vec<Vec<usize>>,
    shown: Vec<usize>,
    left_out: usize,
}

impl<'a> Fit<'a> {
    /// With what is needed to show the columns that decide: first with what is alike in all rows
    /// said once, then with less room for each figure.
    pub fn new(grid: &[(&'a Head, Vec<&Cell>)], width: usize, layout: &Layout) -> Fit<'a> {
        let fits = |fit: &Fit<'a>| {
            let decide = |at: &usize| fit.columns[*at].head.rank <= Rank::Main;
            let all: Vec<usize> = (0..fit.columns.len()).filter(decide).collect();
            fit.length(&all) <= width
        };
        let is_fitting = layout.columns == Columns::Fitting;
        let mut fit = Fit::with_room(grid, width, Room::Enough);
        if is_fitting && !fits(&fit) {
            fit.say_once();
        }
        if is_fitting && !fits(&fit) {
            fit = Fit::with_room(grid, width, Room::Little);
            fit.say_once();
        }
        fit.choose(layout);
        fit
    }

    fn with_room(grid: &[(&'a Head, Vec<&Cell>)], width: usize, room: Room) -> Fit<'a> {
        let column = |(head, cells): &(&'a Head, Vec<&Cell>)| {
            // What says which row it is keeps its digits.
            let digits = if head.rank == Rank::Label { Room::Enough } else { room };
            let fields = cells.iter().map(|cell| Field::compact(cell, digits));
            Column::new(head, fields.collect(), room)
        };
        let columns: Vec<Column<'a>> = grid.iter().map(column).collect();
        let rows = columns.first().map_or(0, |column| column.fields.len());
        let (once, blocks, shown) = (Vec::new(), Vec::new(), Vec::new());
        Fit { columns, rows, width, room, once, blocks, shown, left_out: 0 }
    }

    /// Takes away the columns but for the first that say of all rows the same.
    fn say_once(&mut self) {
        let is_alike = |column: &Column<'_>| {
            let mut values = column.fields.iter().map(|field| field.value.as_str());
            let first = values.next().unwrap_or_default();
            column.head.rank == Rank::Label && values.all(|value| value == first)
        };
        let several = self.rows > 1;
        let mut number = 0;
        let once = self.columns.extract_if(.., |column| {
            number += 1;
            several && number > 1 && is_alike(column)
        });
        self.once = once.map(|one| format!("{} {}", one.head.text, one.fields[0].value)).collect();
    }

    /// The room before a column, which comes after another. Words are left-aligned and need less.
    fn gap(&self, previous: usize, column: usize) -> usize {
        let is_word = |at: usize| {
            let Column { head, is_number, .. } = &self.columns[at];
            head.rank == Rank::Label && !is_number
        };
        match self.room == Room::Little && is_word(previous) && is_word(column) {
            true => 1,
            false => GAP,
        }
    }

    /// What says which row it is.
    fn labels(&self) -> Vec<usize> {
        let all = 0..self.columns.len();
        all.filter(|at| self.columns[*at].head.rank == Rank::Label).collect()
    }

    /// Characters of columns beside each other.
    fn length(&self, columns: &[usize]) -> usize {
        let fields: usize = columns.iter().map(|at| self.columns[*at].least).sum();
        fields + columns.windows(2).map(|two| self.gap(two[0], two[1])).sum::<usize>()
    }

    /// Columns with what says which row it is, as they stand.
    fn with_labels(&self, others: &[usize]) -> Vec<usize> {
        let mut all = self.labels();
        all.extend(others);
        all.sort_unstable();
        all
    }

    fn is_room(&self, others: &[usize]) -> bool {
        self.length(&self.with_labels(others)) <= self.width
    }

    fn choose(&mut self, layout: &Layout) {
        let labels = self.labels();
        let is_wanted = |at: &usize| layout.has_named(&self.columns[*at].head.names);
        let others = (0..self.columns.len()).filter(|at| !labels.contains(at));
        let mut others: Vec<usize> = others.filter(is_wanted).collect();
        self.shown = self.with_labels(&others);
        if layout.columns == Columns::Fitting {
            others.sort_by_key(|at| self.columns[*at].head.rank);
            let count = (0..=others.len()).rev().find(|count| self.is_room(&others[..*count]));
            // Where not one fits, all are shown below each other.
            let Some(count) = count.filter(|count| *count > 0 || others.is_empty()) else { return };
            self.left_out = others.len() - count;
            self.shown = self.with_labels(&others[..count]);
            self.blocks = vec![self.shown.clone()];
            return;
        }
        let mut blocks: Vec<Vec<usize>> = vec![Vec::new()];
        for at in others {
            let last = blocks.len() - 1;
            let longer = [&blocks[last][..], &[at]].concat();
            match (self.is_room(&longer), self.is_room(&[at])) {
                (true, _) => blocks[last] = longer,
                (false, true) => blocks.push(vec![at]),
                (false, false) => return,
            }
        }
        self.blocks = blocks.iter().map(|block| self.with_labels(block)).collect();
    }

    /// Whether all of it stands beside each other.
    pub fn is_whole(&self) -> bool {
        self.blocks.len() == 1 && self.left_out == 0
    }

    /// The lines, and how many columns are left out.
    pub fn text(&self) -> (Text, usize) {
        let mut text = Text::default();
        if !self.once.is_empty() {
            let line = format!("all: {}", self.once.join(", "));
            text.append(Layout::of_width(self.width).sentence(&line, Tone::Head));
        }
        for block in &self.blocks {
            self.block(block, &mut text);
        }
        if self.blocks.is_empty() {
            (0..self.rows).for_each(|row| self.unfolded(row, &mut text));
        }
        (text, self.left_out)
    }

    fn block(&self, block: &[usize], text: &mut Text) {
        // Sentences get what the others leave.
        let mut free = self.width - self.length(block);
        let room = |at: &usize| {
            let Column { least, most, .. } = self.columns[*at];
            let more = (most - least).min(free);
            free -= more;
            (*at, least + more)
        };
        let columns: Vec<(usize, usize)> = block.iter().map(room).collect();
        let heads: Vec<_> =
            columns.iter().map(|(at, room)| self.columns[*at].head_lines(*room)).collect();
        let most = heads.iter().map(Vec::len).max().unwrap_or(0);
        let lowered = heads.into_iter().zip(&columns).map(|(lines, (_, room))| {
            let above = std::iter::repeat_n(blank(*room), most - lines.len());
            above.chain(lines).collect()
        });
        self.beside(lowered.collect(), &columns, text);
        for row in 0..self.rows {
            let lines = columns.iter().map(|(at, room)| self.columns[*at].lines(row, *room));
            self.beside(lines.collect(), &columns, text);
        }
    }

    /// The lines of columns beside each other; a column that has fewer ends in empty ones.
    fn beside(&self, lines: Vec<Vec<Text>>, rooms: &[(usize, usize)], text: &mut Text) {
        let most = lines.iter().map(Vec::len).max().unwrap_or(0);
        for line in 0..most {
            for (number, (column, (at, room))) in lines.iter().zip(rooms).enumerate() {
                let gap = if number == 0 { 0 } else { self.gap(rooms[number - 1].0, *at) };
                text.push(Tone::Plain, &" ".repeat(gap));
                text.append(column.get(line).cloned().unwrap_or_else(|| blank(*room)));
            }
            text.end_line();
        }
    }

    /// A row as lines of their own, where the terminal is too narrow for a table.
    fn unfolded(&self, row: usize, text: &mut Text) {
        let layout = Layout::of_width(self.width);
        let shown = |at: &&usize| self.columns[**at].head.rank != Rank::Label;
        let value = |at: usize| {
            let field = &self.columns[at].fields[row];
            format!("{}{}", field.value, field.error)
        };
        let label: Vec<String> = self.labels().into_iter().map(value).collect();
        text.append(layout.sentence(&label.join(" "), Tone::Plain));
        for at in self.shown.iter().filter(shown) {
            let line = format!("  {}: {}", self.columns[*at].head.text, value(*at));
            text.append(layout.sentence(&line, Tone::Plain));
        }
    }
}

fn blank(room: usize) -> Text {
    let mut text = Text::default();
    text.push(Tone::Plain, &" ".repeat(room));
    text
}
