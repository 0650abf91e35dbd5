// A collectives library behind the Tessera conformance suite: fill in the methods that yours has.
//
// What each method takes and returns: docs/protocol.md of the project, under collectives.
package main

import "encoding/json"

var hello = Object{
	"protocol":       Object{"minimum": 1, "maximum": 1},
	"implementation": Object{"name": "my-implementation", "version": "0.1"},
	"documents":      []string{"collectives", "language_ir", "runtime_abi"}, // the clauses of an all-reduce stand in three
	"capabilities":   Object{"operation-access": "enforced"},                // claim only what works
	"arithmetic":     Object{"level": "strict", "trees": Object{"all_reduce": "pairwise"}},
	"parallel":       true, // several processes may answer at once; take it away where they share a device
}

// allReduce sums over ranks by the balanced tree of neighbours; an odd one is carried on unchanged.
func allReduce(params json.RawMessage) Object {
	request := Read[struct {
		Op     string   `json:"op"`
		Inputs []Tensor `json:"inputs"`
	}](params)
	rows := make([][]float32, len(request.Inputs))
	for rank, input := range request.Inputs {
		if request.Op != "sum" || input.DType != "fp32" {
			return Unsupported("collectives.all_reduce %s of %s", request.Op, input.DType)
		}
		rows[rank] = input.Floats()
	}
	for len(rows) > 1 {
		var next [][]float32
		for ; len(rows) > 1; rows = rows[2:] {
			next = append(next, sum(rows[0], rows[1]))
		}
		rows = append(next, rows...)
	}
	outputs := make([]Tensor, len(request.Inputs))
	for rank, input := range request.Inputs {
		outputs[rank] = OfFloats(input.Shape, rows[0])
	}
	return Outputs(outputs...)
}

func sum(a, b []float32) []float32 {
	total := make([]float32, len(a))
	for at := range a {
		total[at] = a[at] + b[at]
	}
	return total
}

func main() {
	Serve(hello, map[string]Method{"collectives.all_reduce": allReduce})
}
