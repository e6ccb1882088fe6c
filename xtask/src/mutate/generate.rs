//! Finds what can be broken in a file, from its syntax tree.
//!
//! Left out: tests and whatever else is compiled under a condition, constants and `const fn`,
//! patterns, types, what stands in a macro, `unsafe` code, and text (`Display`, `Debug`).

use std::ops::Range;

use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// One break.
#[derive(Clone, Debug, PartialEq)]
pub struct Mutant {
    /// From the root of the repository.
    pub file: String,
    pub line: usize,
    /// With its type, as `Rate::mean`.
    pub function: String,
    /// The source text, on one line. [`BODY`] where a function returns at once.
    pub expression: String,
    pub instead: String,
    pub place: Place,
}

/// Where in the file, in bytes.
#[derive(Clone, Debug, PartialEq)]
pub enum Place {
    /// An expression that another one takes the place of.
    Expression(Range<usize>),
    /// The begin of a function that returns at once.
    Body(usize),
}

/// What stands for the expression of a [`Place::Body`].
pub const BODY: &str = "body";

/// Operators and what stands in for them.
const OPERATORS: &[(&str, &str)] = &[
    ("+", "-"),
    ("-", "+"),
    ("*", "/"),
    ("/", "*"),
    ("%", "/"),
    ("<", "<="),
    ("<=", "<"),
    (">", ">="),
    (">=", ">"),
    ("==", "!="),
    ("!=", "=="),
    ("&&", "||"),
    ("||", "&&"),
    ("&", "|"),
    ("|", "&"),
    ("<<", ">>"),
    (">>", "<<"),
    ("+=", "-="),
    ("-=", "+="),
    ("*=", "/="),
    ("/=", "*="),
];

/// Methods and what stands in for them.
const METHODS: &[(&str, &str)] = &[
    ("min", "max"),
    ("max", "min"),
    ("saturating_sub", "saturating_add"),
    ("saturating_add", "saturating_sub"),
];

/// Types of results, and what is returned in place of one.
const RESULTS: &[(&str, &[&str])] = &[
    ("f64", &["0.0", "1.0"]),
    ("u32", &["0", "1"]),
    ("u64", &["0", "1"]),
    ("u128", &["0", "1"]),
    ("usize", &["0", "1"]),
    ("bool", &["true", "false"]),
    ("Option", &["None"]),
    ("Vec", &["Vec::new()"]),
    ("()", &["()"]),
];

/// All that can be broken in `text`, the source of `file`.
pub fn mutants(file: &str, text: &str) -> Result<Vec<Mutant>, String> {
    let tree = syn::parse_file(text).map_err(|error| format!("{file}: {error}"))?;
    let mut finder = Finder { file, text, within: Vec::new(), found: Vec::new() };
    finder.visit_file(&tree);
    Ok(finder.found)
}

/// The files of modules that only tests have, as names below the folder of `file`'s modules.
pub fn test_modules(text: &str) -> Result<Vec<String>, syn::Error> {
    let tree = syn::parse_file(text)?;
    let modules = tree.items.iter().filter_map(|item| match item {
        syn::Item::Mod(module) if module.content.is_none() && is_conditional(&module.attrs) => {
            Some(module.ident.to_string())
        }
        _ => None,
    });
    Ok(modules.collect())
}

fn is_conditional(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| attribute.path().is_ident("cfg"))
}

/// A condition that binds names is no expression.
fn binds(expression: &syn::Expr) -> bool {
    match expression {
        syn::Expr::Let(_) => true,
        syn::Expr::Binary(binary) => binds(&binary.left) || binds(&binary.right),
        _ => false,
    }
}

/// The last name of a type's path, `()` for none.
fn name(of: &syn::ReturnType) -> Option<String> {
    match of {
        syn::ReturnType::Default => Some("()".to_owned()),
        syn::ReturnType::Type(_, of) => type_name(of),
    }
}

fn type_name(of: &syn::Type) -> Option<String> {
    match of {
        syn::Type::Path(path) => Some(path.path.segments.last()?.ident.to_string()),
        _ => None,
    }
}

pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

struct Finder<'t> {
    file: &'t str,
    text: &'t str,
    within: Vec<String>,
    found: Vec<Mutant>,
}

impl Finder<'_> {
    fn of(&self, part: &impl Spanned) -> &str {
        &self.text[part.span().byte_range()]
    }

    fn add(&mut self, whole: &impl Spanned, instead: String) {
        let expression = one_line(self.of(whole));
        let place = Place::Expression(whole.span().byte_range());
        self.note(whole.span().start().line, expression, instead, place);
    }

    fn note(&mut self, line: usize, expression: String, instead: String, place: Place) {
        let (file, function) = (self.file.to_owned(), self.within.join("::"));
        // Outside of functions there are constants only.
        if !function.is_empty() {
            self.found.push(Mutant { file, line, function, expression, instead, place });
        }
    }

    fn function(
        &mut self,
        attributes: &[syn::Attribute],
        signature: &syn::Signature,
        block: &syn::Block,
    ) {
        let is_left_out = signature.constness.is_some() || signature.unsafety.is_some();
        if is_left_out || is_conditional(attributes) {
            return;
        }
        self.within.push(signature.ident.to_string());
        let instead = name(&signature.output)
            .and_then(|name| RESULTS.iter().find(|(result, _)| *result == name))
            .map_or(&[][..], |(_, instead)| instead);
        // A body without a statement, or of the same value alone, returns that at once already.
        let whole = one_line(self.of(block));
        let differs =
            |instead: &&&str| !block.stmts.is_empty() && whole != format!("{{ {instead} }}");
        for instead in instead.iter().filter(differs) {
            let at = block.brace_token.span.open().byte_range().end;
            let line = signature.span().start().line;
            self.note(line, BODY.to_owned(), (*instead).to_owned(), Place::Body(at));
        }
        self.visit_block(block);
        self.within.pop();
    }
}

impl<'t> Visit<'t> for Finder<'_> {
    fn visit_expr_binary(&mut self, binary: &'t syn::ExprBinary) {
        let operator = self.of(&binary.op);
        let other = OPERATORS.iter().find(|(from, _)| *from == operator);
        if let Some((_, other)) = other.filter(|_| !binds(&binary.left) && !binds(&binary.right)) {
            let (left, right) = (self.of(&binary.left), self.of(&binary.right));
            let instead = format!("({left}) {other} ({right})");
            self.add(binary, instead);
        }
        visit::visit_expr_binary(self, binary);
    }

    fn visit_expr_unary(&mut self, unary: &'t syn::ExprUnary) {
        if !matches!(unary.op, syn::UnOp::Deref(_)) {
            let instead = self.of(&unary.expr).to_owned();
            self.add(unary, instead);
        }
        visit::visit_expr_unary(self, unary);
    }

    fn visit_expr_method_call(&mut self, call: &'t syn::ExprMethodCall) {
        if let Some((_, other)) = METHODS.iter().find(|(from, _)| call.method == from) {
            let (whole, name) = (call.span().byte_range(), call.method.span().byte_range());
            let (before, after) =
                (&self.text[whole.start..name.start], &self.text[name.end..whole.end]);
            let instead = format!("{before}{other}{after}");
            self.add(call, instead);
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_item_fn(&mut self, item: &'t syn::ItemFn) {
        self.function(&item.attrs, &item.sig, &item.block);
    }

    fn visit_impl_item_fn(&mut self, item: &'t syn::ImplItemFn) {
        self.function(&item.attrs, &item.sig, &item.block);
    }

    fn visit_trait_item_fn(&mut self, item: &'t syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.function(&item.attrs, &item.sig, block);
        }
    }

    fn visit_item_impl(&mut self, item: &'t syn::ItemImpl) {
        let of = item.trait_.as_ref().and_then(|(_, path, _)| path.segments.last());
        let is_text = of.is_some_and(|of| of.ident == "Display" || of.ident == "Debug");
        if !is_text && !is_conditional(&item.attrs) {
            self.within.push(type_name(&item.self_ty).unwrap_or_default());
            visit::visit_item_impl(self, item);
            self.within.pop();
        }
    }

    fn visit_item_trait(&mut self, item: &'t syn::ItemTrait) {
        self.within.push(item.ident.to_string());
        visit::visit_item_trait(self, item);
        self.within.pop();
    }

    fn visit_item_mod(&mut self, item: &'t syn::ItemMod) {
        if !is_conditional(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_expr_block(&mut self, block: &'t syn::ExprBlock) {
        if !is_conditional(&block.attrs) {
            visit::visit_expr_block(self, block);
        }
    }

    /// The length is a constant.
    fn visit_expr_repeat(&mut self, array: &'t syn::ExprRepeat) {
        self.visit_expr(&array.expr);
    }

    fn visit_expr_unsafe(&mut self, _: &'t syn::ExprUnsafe) {}
    fn visit_expr_const(&mut self, _: &'t syn::ExprConst) {}
    fn visit_item_const(&mut self, _: &'t syn::ItemConst) {}
    fn visit_item_static(&mut self, _: &'t syn::ItemStatic) {}
    fn visit_impl_item_const(&mut self, _: &'t syn::ImplItemConst) {}
    fn visit_trait_item_const(&mut self, _: &'t syn::TraitItemConst) {}
    fn visit_item_enum(&mut self, _: &'t syn::ItemEnum) {}
    fn visit_pat(&mut self, _: &'t syn::Pat) {}
    fn visit_type(&mut self, _: &'t syn::Type) {}
    fn visit_path(&mut self, _: &'t syn::Path) {}
    fn visit_attribute(&mut self, _: &'t syn::Attribute) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "
const LIMIT: u32 = 3 + 4;
impl Rate {
    fn mean(&self, n: u64) -> f64 {
        if self.sum > 0.0 && n != 1 { self.sum / n as f64 } else { -1.0 }
    }
    fn is_known(&self) -> bool {
        false
    }
}
const fn doubled(n: u64) -> u64 { 2 * n }
fn kept(all: [u8; 2 + 2], least: u64) -> u64 {
    assert!(least < 3);
    if let Some(x) = all.get(0) && !all.is_empty() { least.min(u64::from(*x)) } else { least }
}
impl fmt::Display for Rate { fn fmt(&self) -> bool { 1 + 1 == 2 } }
#[cfg(test)]
mod tests { fn sum() -> u64 { 1 + 1 } }
";

    #[test]
    fn what_makes_figures_is_broken_and_constants_tests_and_text_are_not() {
        let found = mutants("a.rs", SOURCE).unwrap();
        let found: Vec<String> = found
            .iter()
            .map(|m| format!("{} {}: {} -> {}", m.line, m.function, m.expression, m.instead))
            .collect();
        let expected = [
            "4 Rate::mean: body -> 0.0",
            "4 Rate::mean: body -> 1.0",
            "5 Rate::mean: self.sum > 0.0 && n != 1 -> (self.sum > 0.0) || (n != 1)",
            "5 Rate::mean: self.sum > 0.0 -> (self.sum) >= (0.0)",
            "5 Rate::mean: n != 1 -> (n) == (1)",
            "5 Rate::mean: self.sum / n as f64 -> (self.sum) * (n as f64)",
            "5 Rate::mean: -1.0 -> 1.0",
            "7 Rate::is_known: body -> true",
            "12 kept: body -> 0",
            "12 kept: body -> 1",
            "14 kept: !all.is_empty() -> all.is_empty()",
            "14 kept: least.min(u64::from(*x)) -> least.max(u64::from(*x))",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn files_of_tests_are_known_by_their_attribute() {
        let text = "mod rate;\n#[cfg(test)]\nmod known;\n#[cfg(test)]\nmod tests { }";
        assert_eq!(test_modules(text).unwrap(), ["known"]);
    }
}
