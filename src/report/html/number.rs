//! Numbers in the page's tables: the exact value is the `value` of the `data` element.

use crate::report::number;
use crate::stats::Value;

/// A number as text, four significant digits or so many decimals.
pub fn shown(v: f64, decimals: Option<usize>) -> String {
    let text = decimals.map_or_else(|| number::short(v), |decimals| number::fixed(v, decimals));
    text.replace("inf", "∞")
}

/// The characters of the point and the decimals, by which a column is aligned.
pub fn fraction(text: &str) -> usize {
    text.find('.').map_or(0, |at| text.len() - at)
}

/// A figure that aligns with others on its decimal point: its fraction is as wide as that of the
/// column, `width` characters.
pub fn aligned(exact: f64, text: &str, width: usize) -> String {
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    format!("<data value=\"{}\">{whole}<span class=\"f{width}\">{rest}</span></data>", plain(exact))
}

/// The shortest text that reads back as the same number.
pub fn plain(v: f64) -> String {
    if v.is_finite() { format!("{v}") } else { Value(v).0.to_string().to_lowercase() }
}
