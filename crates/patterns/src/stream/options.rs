//! The options of stream.

use super::{Stream, StreamRequest, request};
use crate::prelude::*;
use crate::schedule_options::TIMER;
use std::path::PathBuf;
use wiregauge_signal::file::Keep;
use wiregauge_signal::format::Format;
use wiregauge_signal::source::{Shape, Signal};
use wiregauge_signal::{Kind, MOST_VALUES};

const SIGNAL: &str = "Signal";

const fn parameter(name: &'static str, help: &'static str) -> OptionDef {
    OptionDef::decimal(name, help).heading(SIGNAL)
}

const OPTIONS: OptionTable = &[
    OptionDef::text(
        "rate",
        |text| sweep::rates(text).map(drop),
        "Samples per second, 10 to 1M: 25k, a list, or a sweep 100..100k/8 (8 steps, \
             logarithmic)",
    )
    .metavar("RATES")
    .default_note("10k")
    .common(),
    OptionDef::count("values", "Values of a sample, or a list; a message has 24 B + 8 B each")
        .limits(1, MOST_VALUES as u64)
        .list()
        .default("8")
        .common(),
    OptionDef::path(
        "file",
        "Write received samples to this new file; of several rounds, one file each, with the \
             round before the extension",
    )
    .metavar("FILE")
    .common(),
    OptionDef::choice::<Format>("format", "Format of --file, as VILLASnode names it")
        .metavar("FORMAT")
        .default_note("csv")
        .needs(&["file"]),
    OptionDef::choice::<Signal>("signal", "Signal that the values follow")
        .default("mixed")
        .common()
        .heading(SIGNAL),
    OptionDef::choice::<Kind>("kind", "Type of the values").default("float").heading(SIGNAL),
    parameter("frequency", "Frequency").metavar("HZ").default("1"),
    parameter("amplitude", "Amplitude").default("1"),
    parameter("offset", "Offset").default("0"),
    parameter("phase", "Phase").metavar("RADIANS").default("0"),
    parameter("deviation", "Standard deviation of each step of the random walk").default("0.2"),
    TIMER,
];

impl PatternOptions for Stream {
    fn about(&self) -> &'static str {
        "Measure a stream of samples, one per time step, as a real-time simulator sends them"
    }

    fn examples(&self) -> &'static str {
        "
  wiregauge stream --transport shm,tcp --rate 100k --time 1s
  wiregauge stream --transport shm --values 8,16,32,64 --rate 25k --timer timerfd
  wiregauge stream --signal sine --frequency 50 --file out.csv --rounds 1"
    }

    fn options(&self) -> OptionTable {
        OPTIONS
    }

    fn request(&self, given: &Given) -> Result<Request, UsageError> {
        let shape: Shape = given.fields()?;
        let format = given.choice("format").unwrap_or_default();
        let path = given.text("file").map(PathBuf::from);
        let keep = path.map(|path| Keep { path, format, kind: shape.kind });
        if let Some(keep) = &keep {
            check_free(keep)?;
        }
        let mut values = given.counts32("values");
        values.sort_unstable();
        values.dedup();
        let rates = given.read("rate", sweep::rates).unwrap_or_default();
        let request = request(StreamRequest { shape, keep, rates }, &values);
        Ok(Request { timer: given.choice("timer"), ..request })
    }
}

/// A file is never overwritten.
fn check_free(keep: &Keep) -> Result<(), UsageError> {
    let paths: [PathBuf; 2] = [keep.path.clone(), keep.of_round(0).path];
    let taken = paths.into_iter().find(|path| path.symlink_metadata().is_ok());
    refuse_found(taken, |path| {
        let path = path.display();
        format!("--file: '{path}' exists already and is never overwritten: use a new file")
    })
}
