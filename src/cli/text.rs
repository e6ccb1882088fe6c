//! Texts that the definition itself gives.

use super::args::definition;
use crate::plan::Refusal;

/// Completions for a shell.
pub fn completions(shell: clap_complete::Shell) -> Vec<u8> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut definition(), "wiregauge", &mut text);
    text
}

/// One page for all commands: each command's options after the overview.
pub fn man_page() -> Result<Vec<u8>, Refusal> {
    let refused = |error: std::io::Error| Refusal(format!("the man page: {error}"));
    let mut text = Vec::new();
    let mut definition = definition();
    definition.build();
    clap_mangen::Man::new(definition.clone()).render(&mut text).map_err(refused)?;
    describe(&definition, "WIREGAUGE", &mut text).map_err(refused)?;
    Ok(text)
}

/// The commands below one, and those below them.
fn describe(above: &clap::Command, path: &str, text: &mut Vec<u8>) -> std::io::Result<()> {
    for command in above.get_subcommands().filter(|command| !command.is_hide_set()) {
        let path = format!("{path} {}", command.get_name().to_uppercase());
        text.extend(format!(".SH \"{path}\"\n").into_bytes());
        let man = clap_mangen::Man::new(command.clone());
        man.render_description_section(text)?;
        man.render_options_section(text)?;
        describe(command, &path, text)?;
    }
    Ok(())
}
