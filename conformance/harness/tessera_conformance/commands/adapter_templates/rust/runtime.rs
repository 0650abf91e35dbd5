//! A runtime behind the Tessera conformance suite: fill in the functions that yours has, under their names in C.
//!
//! What each takes and returns: docs/protocol.md of the project, under `runtime`. A runtime that is a C library needs none
//! of this: --impl=cabi:/path/to/lib.so loads it.
mod protocol;

use std::collections::HashSet;

use protocol::{rejected, returned, serve, Json};

/// Claim only what works.
/// `parallel`: several processes may answer at once; take it away where they share a device.
const HELLO: &str = r#"{"protocol":{"minimum":1,"maximum":1},"implementation":{"name":"my-implementation","version":"0.1"},"documents":["runtime_abi"],"capabilities":{},"parallel":true,"arithmetic":{"level":"strict"}}"#;

#[derive(Default)]
struct Runtime {
    contexts: HashSet<u64>,
    created: u64,
}

impl Runtime {
    fn init(&mut self) -> String {
        self.created += 1;
        self.contexts.insert(self.created);
        returned(&format!(r#"{{"context":{}}}"#, self.created))
    }

    fn shutdown(&mut self, params: &Json) -> String {
        let context = params.get("context").number();
        match self.contexts.remove(&(context as u64)) {
            true => returned("{}"),
            false => invalid(&format!("tessShutdown: context is {context}, allowed is a live one")),
        }
    }
}

fn invalid(message: &str) -> String {
    rejected("TESS_ERR_INVALID_VALUE", "call", message)
}

fn main() {
    let mut runtime = Runtime::default();
    serve(HELLO, |method, params| {
        if let Some(missing) = params.get("null").items().first() {
            return Some(invalid(&format!("{method}: {} is NULL", missing.text()))); // an out parameter
        }
        match method {
            "session.reset" => {
                runtime.contexts.clear();
                Some(returned("{}"))
            }
            "runtime.tessGetVersion" => Some(returned(r#"{"major":1,"minor":0,"patch":0}"#)),
            "runtime.tessInit" => Some(runtime.init()),
            "runtime.tessShutdown" => Some(runtime.shutdown(params)),
            _ => None,
        }
    });
}
