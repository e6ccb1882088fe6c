//! Files that are part of the program, compressed: studies, published figures, the viewer of
//! reports, programs for the kernel. The build scripts compress them (`build/pack.rs`).

use flate2::read::ZlibDecoder;
use std::io::{self, Read};
use std::sync::LazyLock;

/// Unpacks what `compressed` of `build/pack.rs` wrote.
///
/// # Errors
/// The bytes are damaged.
pub fn unpacked(packed: &[u8]) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    ZlibDecoder::new(packed).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Names and texts.
pub type Texts = Vec<(&'static str, &'static str)>;

/// The studies: `potter/mtu` and its text.
pub static STUDIES: LazyLock<Texts> =
    LazyLock::new(|| toml(include_bytes!(concat!(env!("OUT_DIR"), "/studies.z"))));

/// The published figures, and the workloads.
pub static REFERENCES: LazyLock<Texts> =
    LazyLock::new(|| toml(include_bytes!(concat!(env!("OUT_DIR"), "/references.z"))));

/// The text of this name; empty if there is none.
pub fn text(all: &Texts, name: &str) -> &'static str {
    all.iter().find(|(found, _)| *found == name).map_or("", |(_, text)| text)
}

/// Unpacks what `texts` of `build/pack.rs` wrote; nothing if it is damaged. The texts stay in
/// memory until the program ends, so call this once for each folder.
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
    // Names have another order than files: `presta-collectives.toml` comes before `presta.toml`.
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
