//! Runs the target that the variable `FUZZ_TARGET` names under libFuzzer, with libFuzzer's
//! arguments. Without the variable, lists the targets, each with its dictionary and its folders of
//! seeds.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::OnceLock;
use wiregauge_fuzz::{TARGETS, Target, find};

static TARGET: OnceLock<&Target> = OnceLock::new();

fuzz_target!(init: initialize(), |data: &[u8]| {
    if let Some(target) = TARGET.get() {
        (target.run)(data);
    }
});

fn initialize() {
    let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
    let Some(target) = find(&name) else {
        for target in TARGETS {
            println!("{} {} {}", target.name, target.dictionary, target.seeds.join(" "));
        }
        std::process::exit(if name.is_empty() { 0 } else { 2 });
    };
    let _ = TARGET.set(target);
    abort_on_panics_of_ours();
}

/// libFuzzer's hook aborts at every panic, but `SampleReader` turns those of the Parquet library
/// into error messages, so they pass. If nothing catches one, libFuzzer aborts all the same.
fn abort_on_panics_of_ours() {
    let abort = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !panic.location().is_some_and(|place| place.file().contains("parquet-")) {
            abort(panic);
        }
    }));
}
