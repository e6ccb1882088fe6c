//! Text of a record as text of HTML and XML. A record is foreign input.

use std::fmt;

/// How text of a record becomes text of the page or a quoted attribute.
#[derive(Clone, Copy)]
pub(crate) struct Escape;

impl askama::filters::Escaper for Escape {
    fn write_escaped_str<W: fmt::Write>(&self, mut to: W, text: &str) -> fmt::Result {
        for c in text.chars() {
            match c {
                '&' => to.write_str("&amp;"),
                '<' => to.write_str("&lt;"),
                '>' => to.write_str("&gt;"),
                '"' => to.write_str("&quot;"),
                '\'' => to.write_str("&#39;"),
                // Control characters are not allowed in HTML text; these would show as nothing.
                c if c.is_control() && c != '\n' && c != '\t' => to.write_char('\u{fffd}'),
                // Overrides of direction could make a text read as another.
                '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => to.write_char('\u{fffd}'),
                c => to.write_char(c),
            }?;
        }
        Ok(())
    }
}

/// Text of a record as text of XML or a quoted attribute: what holds in HTML holds there.
pub(crate) fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    // Writing into a text cannot fail.
    let _ = askama::filters::Escaper::write_escaped_str(&Escape, &mut escaped, text);
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_a_record_stays_text() {
        let evil = "<img src=x onerror=\"alert('1')\">&\u{0}\u{202e}";
        let safe = "&lt;img src=x onerror=&quot;alert(&#39;1&#39;)&quot;&gt;&amp;\u{fffd}\u{fffd}";
        assert_eq!(escaped(evil), safe);
    }
}
