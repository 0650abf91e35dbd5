//! A kernel library behind the Tessera conformance suite: add the operations that yours has.
//!
//! Names and attributes of operations: docs/protocol.md of the project, under `numerics`.
mod protocol;

use protocol::{outputs, serve, unsupported, Json, Tensor};

/// Claim only what works.
/// `parallel`: several processes may answer at once; take it away where they share a device.
const HELLO: &str = r#"{"protocol":{"minimum":1,"maximum":1},"implementation":{"name":"my-implementation","version":"0.1"},"documents":["language_ir"],"capabilities":{"operation-access":"enforced"},"parallel":true,"arithmetic":{"level":"strict"}}"#;

fn evaluate(params: &Json) -> String {
    let operation = params.get("operation").text();
    let compute: fn(f32, f32) -> f32 = match operation {
        "add" => |a, b| a + b,
        "multiply" => |a, b| a * b,
        _ => return unsupported(&format!("numerics.evaluate {operation}")),
    };
    let inputs: Vec<Tensor> = params.get("inputs").items().iter().map(Tensor::read).collect();
    let (a, b) = match &inputs[..] {
        [a, b] => (a, b),
        _ => return unsupported(&format!("{operation} of {} operands", inputs.len())),
    };
    if a.dtype != "fp32" || b.dtype != "fp32" || a.shape != b.shape {
        return unsupported(&format!("{operation} of {} {:?} and {} {:?}", a.dtype, a.shape, b.dtype, b.shape));
    }
    let results: Vec<f32> = a.floats().iter().zip(b.floats()).map(|(x, y)| compute(*x, y)).collect();
    outputs(&[Tensor::of_floats(a.shape.clone(), &results)])
}

fn main() {
    serve(HELLO, |method, params| match method {
        "numerics.evaluate" => Some(evaluate(params)),
        _ => None,
    });
}
