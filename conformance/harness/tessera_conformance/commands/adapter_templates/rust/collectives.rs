//! A collectives library behind the Tessera conformance suite: fill in the methods that yours has.
//!
//! What each method takes and returns: docs/protocol.md of the project, under `collectives`.
mod protocol;

use protocol::{outputs, serve, unsupported, Json, Tensor};

/// Claim only what works. The clauses of an all-reduce stand in three documents.
/// `parallel`: several processes may answer at once; take it away where they share a device.
const HELLO: &str = r#"{"protocol":{"minimum":1,"maximum":1},"implementation":{"name":"my-implementation","version":"0.1"},"documents":["collectives","language_ir","runtime_abi"],"capabilities":{"operation-access":"enforced"},"parallel":true,"arithmetic":{"level":"strict","trees":{"all_reduce":"pairwise"}}}"#;

/// The sum over ranks by the balanced tree of neighbours; an odd one is carried on unchanged.
fn all_reduce(params: &Json) -> String {
    let inputs: Vec<Tensor> = params.get("inputs").items().iter().map(Tensor::read).collect();
    let op = params.get("op").text();
    if op != "sum" || inputs.iter().any(|each| each.dtype != "fp32") {
        return unsupported(&format!("collectives.all_reduce {op} of {}", inputs[0].dtype));
    }
    let mut rows: Vec<Vec<f32>> = inputs.iter().map(Tensor::floats).collect();
    while rows.len() > 1 {
        rows = rows
            .chunks(2)
            .map(|pair| match pair {
                [a, b] => a.iter().zip(b).map(|(x, y)| x + y).collect(),
                odd => odd[0].clone(),
            })
            .collect();
    }
    let total = Tensor::of_floats(inputs[0].shape.clone(), &rows[0]);
    outputs(&vec![total; inputs.len()])
}

fn main() {
    serve(HELLO, |method, params| match method {
        "collectives.all_reduce" => Some(all_reduce(params)),
        _ => None,
    });
}
