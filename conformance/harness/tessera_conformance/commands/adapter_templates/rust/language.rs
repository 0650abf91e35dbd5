//! A compiler behind the Tessera conformance suite: fill in the methods that yours has.
//!
//! What each method takes and returns: docs/protocol.md of the project, under `language`.
mod protocol;

use protocol::{quoted, rejected, returned, serve, unsupported, Json};

/// Claim only what works.
/// `parallel`: several processes may answer at once; take it away where they share a device.
const HELLO: &str = r#"{"protocol":{"minimum":1,"maximum":1},"implementation":{"name":"my-implementation","version":"0.1"},"documents":["language_ir"],"capabilities":{},"parallel":true,"arithmetic":{"level":"strict"}}"#;

const DECLARATIONS: [&str; 6] = ["func", "kernel", "type", "let", "const", "mesh"];

fn is_letter(letter: char) -> bool {
    letter.is_ascii_alphabetic() || letter == '_'
}

/// Words and single characters, without blanks and comments.
fn tokens_of(source: &str) -> Vec<&str> {
    let (mut rest, mut tokens) = (source.trim_start(), Vec::new());
    while let Some(first) = rest.chars().next() {
        let comment = match rest.get(..2) {
            Some("//") => Some(rest.find('\n').unwrap_or(rest.len())),
            Some("/*") => rest[2..].find("*/").map(|end| end + 4),
            _ => None,
        };
        let word = rest.find(|c: char| !is_letter(c) && !c.is_ascii_digit()).unwrap_or(rest.len());
        let length = comment.unwrap_or(if is_letter(first) { word } else { first.len_utf8() });
        if comment.is_none() {
            tokens.push(&rest[..length]);
        }
        rest = rest[length..].trim_start();
    }
    tokens
}

/// The modules and their declarations, in source order. This one knows modules that declare nothing.
fn parse(params: &Json) -> String {
    let tokens = tokens_of(params.get("source").text());
    let mut modules = Vec::new();
    for four in tokens.chunks(4) {
        let at = |place: usize| four.get(place).copied().unwrap_or("the end");
        if at(0) != "module" || four.len() < 2 || !at(1).starts_with(is_letter) || at(2) != "{" {
            return rejected("syntax", "parse", "expected module NAME {");
        }
        if DECLARATIONS.contains(&at(3)) {
            return unsupported(&format!("declarations of {}", at(3)));
        }
        if at(3) != "}" {
            return rejected("syntax", "parse", &format!("expected a declaration or }}, found {}", at(3)));
        }
        modules.push(format!(r#"{{"name":{},"declarations":[]}}"#, quoted(at(1))));
    }
    returned(&format!(r#"{{"modules":[{}]}}"#, modules.join(",")))
}

fn main() {
    serve(HELLO, |method, params| match method {
        "language.parse" => Some(parse(params)),
        _ => None,
    });
}
