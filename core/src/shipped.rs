//! Files that are part of the program and lie in it compressed: studies, published figures, the
//! viewer of reports, programs for the kernel. The build scripts make them (`pack.rs`).

use flate2::read::ZlibDecoder;
use std::io::{self, Read};
use std::sync::LazyLock;

/// What `compressed` of the build has made of these bytes.
///
/// # Errors
/// The program is damaged.
pub fn unpacked(packed: &[u8]) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    ZlibDecoder::new(packed).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Texts by their names, in the order of these. Of a program that is damaged there are none.
pub type Texts = Vec<(&'static str, &'static str)>;

/// The studies: `potter/mtu` and its text.
pub static STUDIES: LazyLock<Texts> =
    LazyLock::new(|| toml(include_bytes!(concat!(env!("OUT_DIR"), "/studies.z"))));

/// The published figures, and the workloads.
pub static REFERENCES: LazyLock<Texts> =
    LazyLock::new(|| toml(include_bytes!(concat!(env!("OUT_DIR"), "/references.z"))));

/// A text, which every program that is not damaged has.
pub fn text(all: &Texts, name: &str) -> &'static str {
    all.iter().find(|(found, _)| *found == name).map_or("", |(_, text)| text)
}

/// What `texts` of the build has made of a folder. The texts are kept until the program ends: each
/// folder is unpacked once.
pub fn texts(packed: &[u8]) -> Texts {
    let text = unpacked(packed).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let text: &'static str = text.unwrap_or_default().leak();
    let mut parts = text.split_terminator('\0');
    std::iter::from_fn(|| parts.next().zip(parts.next())).collect()
}

fn toml(packed: &[u8]) -> Texts {
    let named =
        |(name, text): (&'static str, _)| (name.strip_suffix(".toml").unwrap_or(name), text);
    let mut all = Texts::from_iter(texts(packed).into_iter().map(named));
    // By names, where a dash comes before the ending's dot.
    all.sort_unstable();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_damaged_is_none() {
        assert_eq!(texts(b"no stream of zlib"), []);
        assert!(unpacked(&[]).is_err());
    }
}
