// A kernel library behind the Tessera conformance suite: add the operations that yours has.
//
// Names and attributes of operations: docs/protocol.md of the project, under numerics.
package main

import (
	"encoding/json"
	"reflect"
)

var hello = Object{
	"protocol":       Object{"minimum": 1, "maximum": 1},
	"implementation": Object{"name": "my-implementation", "version": "0.1"},
	"documents":      []string{"language_ir"},
	"capabilities":   Object{"operation-access": "enforced"}, // claim only what works
	"arithmetic":     Object{"level": "strict"},
	"parallel":       true, // several processes may answer at once; take it away where they share a device
}

var elementwise = map[string]func(a, b float32) float32{
	"add":      func(a, b float32) float32 { return a + b },
	"multiply": func(a, b float32) float32 { return a * b },
}

func evaluate(params json.RawMessage) Object {
	request := Read[struct {
		Operation string   `json:"operation"`
		Inputs    []Tensor `json:"inputs"`
	}](params)
	compute, known := elementwise[request.Operation]
	if !known || len(request.Inputs) != 2 {
		return Unsupported("numerics.evaluate %s of %d operands", request.Operation, len(request.Inputs))
	}
	a, b := request.Inputs[0], request.Inputs[1]
	if a.DType != "fp32" || b.DType != "fp32" || !reflect.DeepEqual(a.Shape, b.Shape) {
		return Unsupported("%s of %s %v and %s %v", request.Operation, a.DType, a.Shape, b.DType, b.Shape)
	}
	results, right := a.Floats(), b.Floats()
	for at := range results {
		results[at] = compute(results[at], right[at])
	}
	return Outputs(OfFloats(a.Shape, results))
}

func main() {
	Serve(hello, map[string]Method{"numerics.evaluate": evaluate})
}
