//! A run told in a screen: what was typed, and which stage does it.

use std::process::ExitCode;
use wiregauge::cli::{self, Command, Exit};

fn main() -> ExitCode {
    ExitCode::from(match cli::parse(std::env::args_os()) {
        Ok(Command::Agent) => wiregauge::launch::agent::main(),
        Ok(command) => dispatch(command).unwrap_or_else(|exit| exit.say()),
        Err(exit) => exit.say(),
    })
}

fn dispatch(command: Command) -> Result<u8, Exit> {
    match command {
        Command::List { .. } => todo_in_this_build("list"),
        _ => todo_in_this_build("measuring"),
    }
}

fn todo_in_this_build(what: &str) -> Result<u8, Exit> {
    Err(Exit::Refusal(format!("{what} is not wired up in this build")))
}
