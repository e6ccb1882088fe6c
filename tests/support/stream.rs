//! A stream with a value in every field.

use wiregauge::plan::Stream;
use wiregauge::signal::Kind;
use wiregauge::signal::file::Keep;
use wiregauge::signal::format::Format;
use wiregauge::signal::signal::Shape;

pub fn full() -> Stream {
    let keep = Keep { path: "out.csv".into(), format: Format::Csv, kind: Kind::Float };
    Stream { shape: Shape::default(), values: 8, keep: Some(keep) }
}
