// A compiler behind the Tessera conformance suite: fill in the methods that yours has.
//
// What each method takes and returns: docs/protocol.md of the project, under language.
package main

import (
	"encoding/json"
	"fmt"
	"regexp"
)

var hello = Object{
	"protocol":       Object{"minimum": 1, "maximum": 1},
	"implementation": Object{"name": "my-implementation", "version": "0.1"},
	"documents":      []string{"language_ir"},
	"capabilities":   Object{}, // claim only what works
	"arithmetic":     Object{"level": "strict"},
	"parallel":       true, // several processes may answer at once; take it away where they share a device
}

var (
	tokens       = regexp.MustCompile(`(?s)\s+|//[^\n]*|/\*.*?\*/|([A-Za-z_][A-Za-z0-9_]*|.)`)
	name         = regexp.MustCompile(`^[A-Za-z_]`)
	declarations = regexp.MustCompile(`^(func|kernel|type|let|const|mesh)$`)
)

// parse gives the modules and their declarations, in source order. This one knows modules that declare nothing.
func parse(params json.RawMessage) Object {
	request := Read[struct {
		Source string `json:"source"`
	}](params)
	var words []string
	for _, found := range tokens.FindAllStringSubmatch(request.Source, -1) {
		if found[1] != "" { // neither blanks nor a comment
			words = append(words, found[1])
		}
	}
	modules := []Object{}
	for ; len(words) > 0; words = words[min(4, len(words)):] {
		four := append(append([]string{}, words[:min(4, len(words))]...), "the end", "the end", "the end")
		switch {
		case four[0] != "module" || !name.MatchString(four[1]) || four[2] != "{":
			return syntax("expected module NAME {, found %s %s %s", four[0], four[1], four[2])
		case declarations.MatchString(four[3]):
			return Unsupported("declarations of %s", four[3])
		case four[3] != "}":
			return syntax("expected a declaration or }, found %s", four[3])
		}
		modules = append(modules, Object{"name": four[1], "declarations": []Object{}})
	}
	return Returned(Object{"modules": modules})
}

func syntax(format string, words ...any) Object {
	return Rejected("syntax", "parse", fmt.Sprintf(format, words...))
}

func min(a, b int) int {
	if a < b {
		return a
	}
	return b
}

func main() {
	Serve(hello, map[string]Method{"language.parse": parse})
}
