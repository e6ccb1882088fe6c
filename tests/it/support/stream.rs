//! A stream with a value in every field.

use wiregauge::pattern::stream::Spec;
use wiregauge::signal::Kind;
use wiregauge::signal::file::Keep;
use wiregauge::signal::format::Format;
use wiregauge::signal::source::Shape;

pub fn full() -> Spec {
    let keep = Keep { path: "out.csv".into(), format: Format::Csv, kind: Kind::Float };
    Spec { shape: Shape::default(), values: 8, keep: Some(keep) }
}
