//! The program.

use std::process::ExitCode;

fn main() -> ExitCode {
    wiregauge::command::program::main()
}
