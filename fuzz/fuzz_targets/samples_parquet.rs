//! `samples.parquet` from anywhere: rounds or a sentence, in bounded memory.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::Once;
use wiregauge::record::SampleReader;

/// Rows that one input may unfold to before it is left: a round of 2^20 constant rows takes few
/// bytes, and reading thousands of them teaches nothing new.
const ROWS: usize = 1 << 20;

/// `SampleReader` turns a panic of the Parquet library into a sentence, but the fuzzer's hook would
/// abort at the panic itself. So a panic there is left to the reader; one anywhere else aborts.
fn leave_panics_of_the_library_to_the_reader() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        std::panic::set_hook(Box::new(|panic| {
            let place = panic.location().map_or("", |l| l.file());
            if !place.contains("parquet-") {
                eprintln!("{panic}");
                std::process::abort();
            }
        }));
    });
}

fuzz_target!(|data: &[u8]| {
    leave_panics_of_the_library_to_the_reader();
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
});
