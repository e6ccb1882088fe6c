//! The plots of a page as SVG files, for papers: drawn from the same data as in a browser.
//!
//! Takes the plots, surfaces and matrices of [`super::model`] and the reduced samples; gives XML.
//! Black on white and with generic fonts, so that a file looks the same everywhere; 480 units wide,
//! of which letters take 13: 6 points where a column is 8 cm wide, 12 at 16 cm. The page saves
//! these same files.
//!
//! Must never: read a record, or know what a plot is about.

mod axis;
mod canvas;
mod density;
mod draw;
mod grid;
mod legend;
mod shapes;

pub use density::density;
pub use draw::plot;
pub use grid::{matrix, surface};

use super::curves::Curve;
use super::model::Section;
use std::collections::BTreeSet;

/// A file: its name without an ending, and its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// Letters, digits, `.`, `_` and `-` alone.
    pub name: String,
    /// XML.
    pub svg: String,
}

/// The pictures of sections and of their parts.
pub fn of_sections(sections: &[Section], curves: &[Curve]) -> Vec<Picture> {
    let mut all = Vec::new();
    for section in sections.iter().flat_map(|one| std::iter::once(one).chain(&one.parts)) {
        let plots = section.plots.iter().map(|one| (one.id.clone(), plot(one, curves)));
        let surfaces = section.surfaces.iter().map(|one| (one.id.clone(), surface(one)));
        let maps = section.maps.iter().enumerate();
        let maps = maps.map(|(at, one)| (format!("matrix-{}-{at}", section.id), matrix(one)));
        let found = plots.chain(surfaces).chain(maps);
        all.extend(found.map(|(name, svg)| Picture { name: safe(&name), svg }));
    }
    all
}

/// A name that is that of a file on any system, and in no other folder.
fn safe(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    let name: String = name.chars().map(|c| if is_plain(c) { c } else { '-' }).collect();
    let name = name.trim_start_matches(['.', '-']);
    if name.is_empty() { "plot".into() } else { name.to_owned() }
}

/// The same pictures under names that differ, also where letters of both cases are one.
pub fn named_apart(pictures: Vec<Picture>) -> Vec<Picture> {
    let mut taken = BTreeSet::new();
    let rename = |picture: Picture| {
        let mut name = picture.name.clone();
        let mut next = 2;
        while !taken.insert(name.to_lowercase()) {
            name = format!("{}-{next}", picture.name);
            next += 1;
        }
        Picture { name, ..picture }
    };
    pictures.into_iter().map(rename).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curves::curve;
    use crate::model::{Axis, Curve as Drawn, CurveKind, Plot, Point, Series, Style, Unit};
    use wiregauge_figures::record::schema::Metric;

    fn example() -> Plot {
        let point = |x: f64, y| Point { x, y, ..Point::default() };
        let mut points = vec![point(0.0, 1e3), point(1.0, 1e5)];
        points[0].low = Some(5e2);
        points[0].high = Some(2e3);
        let name = "</text><script>alert(\"1\")</script>&\u{0}".to_owned();
        Plot {
            x: Axis::names(vec!["tcp".into(), "<shm> & more".into()], 0.5),
            y: Axis::log("time", Unit::Time),
            series: vec![Series { name, style: Style::Dots, points, ..Series::default() }],
            ..Plot::new("p", "Title with <markup>", "A note", 300)
        }
    }

    #[test]
    fn text_of_a_record_is_text_of_a_drawing() {
        let svg = plot(&example(), &[]);
        assert!(!svg.contains("<script") && !svg.contains("<image") && !svg.contains('\u{0}'));
        assert!(svg.contains("&lt;/text&gt;&lt;script&gt;alert(&quot;1&quot;)"), "{svg}");
        assert!(svg.contains("<title>Title with &lt;markup&gt;</title>"));
        assert!(svg.contains(">&lt;shm&gt; &amp; more</text>"), "a name is whole: {svg}");
    }

    #[test]
    fn a_point_lies_where_its_axis_says_and_has_its_interval() {
        let svg = plot(&example(), &[]);
        for tick in ["1 us", "10 us", "100 us"] {
            assert!(svg.contains(&format!(">{tick}</text>")), "{tick}: {svg}");
        }
        let number = |tag: &str, name: &str| -> f64 {
            let at = tag.split_once(&format!("{name}=\"")).map_or("", |(_, after)| after);
            at.split('"').next().and_then(|text| text.parse().ok()).unwrap_or(f64::NAN)
        };
        let dots: Vec<f64> = svg
            .lines()
            .filter(|line| line.starts_with("<circle"))
            .map(|line| number(line, "cy"))
            .collect();
        let tick = |text: &str| {
            let line = svg.lines().find(|line| line.ends_with(&format!(">{text}</text>")));
            number(line.unwrap_or_default(), " y")
        };
        let decade = (tick("1 us") - tick("100 us")) / 2.0;
        assert!((dots[0] - dots[1] - 2.0 * decade).abs() < 0.2, "{dots:?}, {decade}");
        assert_eq!(svg.matches("stroke-width=\"1\"").count(), 1, "one whisker: {svg}");
    }

    #[test]
    fn a_curve_of_a_million_samples_is_a_path_of_a_few_kilobytes() {
        let values = (1..=1_000_000).map(|v| 100.0 + f64::from(v)).collect();
        let curves: Vec<_> = curve(3, Metric::Rtt, values, 1.01).into_iter().collect();
        let own = Drawn { run: 3, metric: "rtt".into(), kind: CurveKind::Ccdf };
        let mut tail = example();
        tail.series = vec![Series { curve: Some(own), ..Series::default() }];
        tail.x = Axis::log("latency", Unit::Time);
        tail.y = Axis::log("share", Unit::Share).between(1e-7, 1.15);
        let svg = plot(&tail, &curves);
        assert!(svg.contains("<g data-run=\"3\">") && svg.len() < 40_000, "{}", svg.len());
    }

    #[test]
    fn numbers_that_are_none_are_drawn_nowhere() {
        let mut hostile = example();
        hostile.y.range = Some([f64::NAN, f64::INFINITY]);
        hostile.x.range = Some([f64::NEG_INFINITY, 0.0]);
        hostile.series[0].points[0].x = f64::INFINITY;
        let svg = plot(&hostile, &[]);
        assert!(!svg.contains("NaN") && !svg.contains("inf\""), "{svg}");
    }

    #[test]
    fn names_of_files_are_safe_and_differ() {
        assert_eq!(safe("../../p<a>ss"), "p-a-ss");
        assert_eq!(safe("/"), "plot");
        let picture = |name: &str| Picture { name: name.into(), svg: String::new() };
        let all = named_apart(["a", "A", "a", "a-2"].map(picture).to_vec());
        let names: Vec<&str> = all.iter().map(|picture| picture.name.as_str()).collect();
        assert_eq!(names, ["a", "A-2", "a-3", "a-2-2"]);
    }
}
