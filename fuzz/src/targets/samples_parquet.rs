//! `samples.parquet` from anywhere: rounds or a sentence, in bounded memory.

use wiregauge::record::SampleReader;

/// Rows that one input may unfold to before it is left: a round of 2^20 constant rows takes few
/// bytes, and reading thousands of them teaches nothing new.
const ROWS: usize = 1 << 20;

/// Runs the target on one input.
pub fn run(data: &[u8]) {
    let path = std::env::temp_dir().join(format!("wiregauge-fuzz-{}", std::process::id()));
    std::fs::write(&path, data).expect("the temporary directory can be written");
    match SampleReader::open(&path) {
        Err(e) => assert!(!e.to_string().contains('\n')),
        Ok(mut reader) => {
            let mut rows = 0;
            while let Some(Ok(part)) = reader.next_part() {
                rows += part.samples.len();
                if rows > ROWS {
                    break;
                }
            }
        }
    }
    let _ = std::fs::remove_file(&path);
}
