//! The archive that the kernel unpacks as its first file system: cpio in the format `newc`
//! (`Documentation/driver-api/early-userspace/buffer-format.rst` of the kernel), not compressed.

/// Modes of the entries.
const FOLDER: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;
const LINK: u32 = 0o120_777;

/// The name that ends an archive.
const END: &str = "TRAILER!!!";

/// An archive in the making. Parents must be added before what is in them.
#[derive(Debug, Default)]
pub struct Archive {
    bytes: Vec<u8>,
    entries: u32,
}

impl Archive {
    /// Adds a folder.
    pub fn folder(&mut self, name: &str) {
        self.entry(name, FOLDER, b"");
    }

    /// Adds a file that may be executed.
    pub fn file(&mut self, name: &str, content: &[u8]) {
        self.entry(name, PROGRAM, content);
    }

    /// Adds a symbolic link.
    pub fn link(&mut self, name: &str, target: &str) {
        self.entry(name, LINK, target.as_bytes());
    }

    /// The whole.
    pub fn finish(mut self) -> Vec<u8> {
        self.entry(END, 0, b"");
        self.bytes
    }

    fn entry(&mut self, name: &str, mode: u32, content: &[u8]) {
        self.entries += 1;
        // inode, mode, uid, gid, links, mtime, size, device (2), special device (2), name's
        // length with its closing zero, checksum (unused).
        let size = content.len() as u32;
        let name_size = name.len() as u32 + 1;
        let fields = [self.entries, mode, 0, 0, 1, 0, size, 0, 0, 0, 0, name_size, 0];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes.extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(content);
        self.pad();
    }

    /// Names and contents end at a multiple of four.
    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_has_a_header_of_110_bytes_and_is_padded_to_four() {
        let mut archive = Archive::default();
        archive.folder("bin");
        archive.file("bin/a", b"12345");
        let bytes = archive.finish();
        assert!(bytes.starts_with(b"07070100000001000041ed"));
        // 110 + "bin\0" = 114, padded to 116.
        assert_eq!(&bytes[116..122], b"070701");
        // 110 + "bin/a\0" = 116: no padding before the content.
        assert_eq!(&bytes[232..237], b"12345");
        assert_eq!(bytes.len() % 4, 0);
        assert!(bytes.windows(END.len()).any(|window| window == END.as_bytes()));
    }
}
