//! The units in which rates in bytes are shown. Records have B/s.
//!
//! A reader chooses one with `--unit`; else each table has those that its readers know best. The
//! choice is the thread's that makes the report: it belongs to the reader and not to the record, so
//! that no view passes it on.

use std::cell::Cell;

wiregauge_base::options::named_enum! {
    /// A unit of a rate in bytes.
    pub enum ByteRateUnit {
        /// 10^6 bits per second.
        Megabits = "Mb/s",
        /// 10^9 bits per second.
        Gigabits = "Gb/s",
        /// 10^6 bytes per second.
        Megabytes = "MB/s",
        /// 10^9 bytes per second.
        Gigabytes = "GB/s",
        /// 2^20 bytes per second.
        Mebibytes = "MiB/s",
        /// 2^30 bytes per second.
        Gibibytes = "GiB/s",
    }
}

thread_local! {
    static CHOSEN: Cell<Option<ByteRateUnit>> = const { Cell::new(None) };
}

impl ByteRateUnit {
    /// What turns B/s into it.
    pub const fn factor(self) -> f64 {
        match self {
            ByteRateUnit::Megabits => 8e-6,
            ByteRateUnit::Gigabits => 8e-9,
            ByteRateUnit::Megabytes => 1e-6,
            ByteRateUnit::Gigabytes => 1e-9,
            ByteRateUnit::Mebibytes => 1.0 / (1 << 20) as f64,
            ByteRateUnit::Gibibytes => 1.0 / (1 << 30) as f64,
        }
    }

    /// What it is in bytes, for who does not know its letters.
    pub const fn meaning(self) -> &'static str {
        match self {
            ByteRateUnit::Megabits => "10⁶ bit/s",
            ByteRateUnit::Gigabits => "10⁹ bit/s",
            ByteRateUnit::Megabytes => "10⁶ B/s",
            ByteRateUnit::Gigabytes => "10⁹ B/s",
            ByteRateUnit::Mebibytes => "2²⁰ B/s",
            ByteRateUnit::Gibibytes => "2³⁰ B/s",
        }
    }
}

/// Shows the rates of all reports that this thread makes from now on in a unit; `None`: in those of
/// each table.
pub fn choose(unit: Option<ByteRateUnit>) {
    CHOSEN.set(unit);
}

/// The unit that was chosen, else this one.
pub fn or(default: ByteRateUnit) -> ByteRateUnit {
    CHOSEN.get().unwrap_or(default)
}

/// The units of a table that shows a rate in several: the chosen one alone.
pub fn or_all(defaults: &[ByteRateUnit]) -> Vec<ByteRateUnit> {
    CHOSEN.get().map_or_else(|| defaults.to_vec(), |unit| vec![unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_is_that_of_its_letters() {
        let shown = |unit: ByteRateUnit| format!("{:.3} {}", 125e6 * unit.factor(), unit.name());
        let all: Vec<String> = ByteRateUnit::ALL.iter().map(|unit| shown(*unit)).collect();
        let expected =
            "1000.000 Mb/s, 1.000 Gb/s, 125.000 MB/s, 0.125 GB/s, 119.209 MiB/s, 0.116 GiB/s";
        assert_eq!(all.join(", "), expected);
    }

    #[test]
    fn the_chosen_unit_takes_the_place_of_all() {
        use ByteRateUnit::{Gigabits, Mebibytes, Megabytes};
        assert_eq!((or(Megabytes), or_all(&[Megabytes, Gigabits]).len()), (Megabytes, 2));
        choose(Some(Mebibytes));
        assert_eq!((or(Megabytes), or_all(&[Megabytes, Gigabits])), (Mebibytes, vec![Mebibytes]));
        choose(None);
        assert_eq!(or(Gigabits), Gigabits);
    }
}
