//! A stream with a value in every field.

use wiregauge::plan::Stream;
use wiregauge::stream::Kind;
use wiregauge::stream::file::Keep;
use wiregauge::stream::format::Format;
use wiregauge::stream::signal::Shape;

pub fn full() -> Stream {
    let keep = Keep { path: "out.csv".into(), format: Format::Csv, kind: Kind::Float };
    Stream { shape: Shape::default(), values: 8, keep: Some(keep) }
}
