//! From option tables to the parser's own definition, and back to the values that were given.

use crate::options::{Kind, OptionDef};
use clap::builder::PossibleValuesParser;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches};

/// An option as the parser's own argument.
pub fn argument(option: &'static OptionDef) -> Arg {
    let argument = Arg::new(option.name)
        .long(option.name)
        .help(option.help_text())
        .help_heading(option.heading)
        .hide(option.is_hidden);
    let Some(names) = option.choices() else {
        let parse = |text: &str| option.check_one(text).map(|()| text.to_owned());
        return match option.kind {
            Kind::Flag => argument.action(ArgAction::SetTrue),
            _ => with_value(argument, option).value_parser(parse),
        };
    };
    let is_switch = matches!(option.kind, Kind::Switch);
    let argument = with_value(argument, option).hide_possible_values(is_switch);
    argument.value_parser(PossibleValuesParser::new(names))
}

fn with_value(argument: Arg, option: &OptionDef) -> Arg {
    let argument = argument.value_name(option.metavar);
    match option.is_list {
        true => argument.action(ArgAction::Append).value_delimiter(','),
        false => argument,
    }
}

/// What was typed of an option.
pub fn typed(matches: &ArgMatches, option: &OptionDef) -> Option<String> {
    if matches.value_source(option.name) != Some(ValueSource::CommandLine) {
        return None;
    }
    if !option.takes_value() {
        return Some("on".into());
    }
    let typed = matches.get_many::<String>(option.name).into_iter().flatten();
    Some(typed.map(String::as_str).collect::<Vec<_>>().join(","))
}
