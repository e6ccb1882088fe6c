//! Numbers of a sentence, as a person reads them.

/// A part as a share of all.
pub fn share(part: u32, of: u32) -> f64 {
    f64::from(part) / f64::from(of)
}

/// A share, in percent.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    let digits = match percent {
        p if p >= 10.0 => 0,
        p if p >= 0.1 => 1,
        _ => 4,
    };
    format!("{percent:.digits$} %")
}

/// A time in ns, with three digits or more.
pub fn time(ns: f64) -> String {
    let (x, unit) = crate::units::scaled_ns(ns);
    let digits = match x.abs() {
        x if x >= 100.0 => 0,
        x if x >= 10.0 => 1,
        _ => 2,
    };
    format!("{x:.digits$} {unit}")
}

/// Whether figures include messages that did not arrive.
pub fn of_missing(in_figures: bool) -> &'static str {
    if in_figures { "they count as infinitely late" } else { "no figure includes them" }
}

/// Returns how many times one is another, which beyond a thousand has no meaning.
pub fn times(ratio: f64) -> String {
    const MAX: f64 = 1000.0;
    if ratio > MAX { format!("over {MAX}x") } else { format!("{ratio:.1}x") }
}
