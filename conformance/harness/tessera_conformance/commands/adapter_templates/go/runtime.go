// A runtime behind the Tessera conformance suite: fill in the functions that yours has, under their names in C.
//
// What each takes and returns: docs/protocol.md of the project, under runtime. A runtime that is a C library needs none
// of this: --impl=cabi:/path/to/lib.so loads it.
package main

import (
	"encoding/json"
	"fmt"
)

var hello = Object{
	"protocol":       Object{"minimum": 1, "maximum": 1},
	"implementation": Object{"name": "my-implementation", "version": "0.1"},
	"documents":      []string{"runtime_abi"},
	"capabilities":   Object{}, // claim only what works
	"arithmetic":     Object{"level": "strict"},
	"parallel":       true, // several processes may answer at once; take it away where they share a device
}

var (
	contexts = map[int]bool{}
	created  int
)

func reset(json.RawMessage) Object {
	contexts = map[int]bool{}
	return Returned(Object{})
}

func getVersion(json.RawMessage) Object {
	return Returned(Object{"major": 1, "minor": 0, "patch": 0})
}

func initialize(json.RawMessage) Object {
	created++
	contexts[created] = true
	return Returned(Object{"context": created})
}

func shutdown(params json.RawMessage) Object {
	request := Read[struct {
		Context int `json:"context"`
	}](params)
	if !contexts[request.Context] {
		return invalid("tessShutdown: context is %d, allowed is a live one", request.Context)
	}
	delete(contexts, request.Context)
	return Returned(Object{})
}

// function refuses a call whose out parameters are NULL pointers; the protocol names them in null.
func function(name string, call Method) Method {
	return func(params json.RawMessage) Object {
		request := Read[struct {
			Null []string `json:"null"`
		}](params)
		if len(request.Null) > 0 {
			return invalid("%s: %s is NULL", name, request.Null[0])
		}
		return call(params)
	}
}

func invalid(format string, details ...any) Object {
	return Rejected("TESS_ERR_INVALID_VALUE", "call", fmt.Sprintf(format, details...))
}

func main() {
	Serve(hello, map[string]Method{
		"session.reset":          reset,
		"runtime.tessGetVersion": function("tessGetVersion", getVersion),
		"runtime.tessInit":       function("tessInit", initialize),
		"runtime.tessShutdown":   function("tessShutdown", shutdown),
	})
}
