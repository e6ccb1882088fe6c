//! The options of commands that print tables: which columns, how much, and in colour or not.

use crate::options::{Given, OptionDef, OptionTable, under};
use crate::report::table::{Columns, Layout};
use crate::view::byte_rate::ByteRateUnit;

/// The heading of what is printed and written.
pub(super) const OUTPUT: &str = "Output";

crate::options::named_enum! {
    /// When output has colours.
    #[derive(Default)]
    pub enum Color {
        /// On a terminal, but for NO_COLOR, TERM=dumb and such; CLICOLOR_FORCE: always.
        #[default]
        Auto = "auto",
        /// Whatever stdout is.
        Always = "always",
        /// Never.
        Never = "never",
    }
}

/// How the output of a command is to look, wherever it goes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Display {
    /// The columns of its tables.
    pub columns: Columns,
    /// The unit of rates in bytes; `None`: those of each table.
    pub unit: Option<ByteRateUnit>,
    /// Whether it tells everything.
    pub verbose: bool,
    /// When it has colours.
    pub color: Color,
}

pub(super) const COLUMNS: OptionDef = OptionDef::parsed::<Columns>(
    "columns",
    "Columns of the tables: 'all', or names from their heads, such as p50,p99.9,lost",
)
.metavar("NAMES")
.default_note("on a terminal those that fit, else all");

pub(super) const UNIT: OptionDef = OptionDef::choice::<ByteRateUnit>(
    "unit",
    "Unit of rates in bytes in tables, plots and page; records have B/s",
)
.default_note("MB/s and Gb/s");

pub(super) const VERBOSE: OptionDef = OptionDef::flag(
    "verbose",
    "Also print notes, all warnings, and what the instrument, clock and noise add",
);

/// Switch of commands whose tables have a row for each case, and more to tell.
pub(super) const ALL_FIGURES: OptionDef =
    OptionDef::flag("verbose", "Also print every figure, and all columns of it");

pub(super) const COLOR: OptionDef =
    OptionDef::choice::<Color>("color", "When to print colours").metavar("WHEN").default("auto");

/// Those of every table.
pub(super) const DISPLAY: OptionTable = &under(OUTPUT, [COLUMNS, VERBOSE, COLOR]);

/// Those of reports.
pub(super) const OF_REPORT: OptionTable = &under(OUTPUT, [COLUMNS, UNIT, VERBOSE, COLOR]);

impl Display {
    /// What was asked for.
    pub fn of(given: &Given) -> Display {
        Display {
            columns: given.get("columns").unwrap_or_default(),
            unit: given.definition("unit").and_then(|_| given.choice("unit")),
            verbose: given.flag("verbose"),
            color: given.choice("color").unwrap_or_default(),
        }
    }

    /// The layout of text that goes to something of this width.
    pub fn layout(&self, width: Option<usize>) -> Layout {
        let layout = width.map_or_else(Layout::default, Layout::of_width);
        Layout { columns: self.columns.clone(), verbose: self.verbose, ..layout }
    }
}
