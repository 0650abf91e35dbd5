// The line protocol of the Tessera conformance suite, with the standard library alone: one JSON-RPC 2.0 message a line.
//
// docs/protocol.md of the project describes it. Standard output carries messages only: log to standard error.
package main

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
)

// Object is a JSON object.
type Object = map[string]any

// Method answers one request: it gets the parameters and gives an outcome.
type Method func(params json.RawMessage) Object

// Returned is the outcome of what worked.
func Returned(value any) Object { return Object{"returned": value} }

// Outputs is the outcome of what worked and gave tensors.
func Outputs(tensors ...Tensor) Object { return Returned(Object{"outputs": tensors}) }

// Unsupported is the outcome of what is not there.
func Unsupported(feature string, details ...any) Object {
	return Object{"unsupported": Object{"feature": fmt.Sprintf(feature, details...)}}
}

// Rejected is the outcome of what is refused; code is a category of diagnostics, or a status, TESS_ERR_INVALID_VALUE.
func Rejected(code, phase, message string) Object {
	diagnostics := []Object{}
	if !strings.HasPrefix(code, "TESS_") {
		diagnostics = append(diagnostics, Object{"category": code, "message": message})
	}
	return Object{"rejected": Object{"code": code, "phase": phase, "message": message, "diagnostics": diagnostics}}
}

// Read puts the parameters of a request into a structure; it panics where they do not fit, which the harness sees as a crash.
func Read[T any](params json.RawMessage) T {
	var value T
	must(json.Unmarshal(params, &value))
	return value
}

// Tensor has the words of all elements as little-endian bytes, row-major.
type Tensor struct {
	DType string
	Shape []int
	Data  []byte
}

type message struct {
	Tensor struct {
		DType string `json:"dtype"`
		Shape []int  `json:"shape"`
		Bits  string `json:"bits"`
		File  string `json:"file,omitempty"`
	} `json:"$tensor"`
}

// UnmarshalJSON reads a tensor of a request; a large one comes as a file of its bytes.
func (tensor *Tensor) UnmarshalJSON(text []byte) error {
	var read message
	if err := json.Unmarshal(text, &read); err != nil {
		return err
	}
	tensor.DType, tensor.Shape = read.Tensor.DType, read.Tensor.Shape
	var err error
	if read.Tensor.File != "" {
		tensor.Data, err = os.ReadFile(read.Tensor.File)
	} else if tensor.Data, err = hex.DecodeString(read.Tensor.Bits); err == nil {
		swapWords(tensor.Data, wordBytes(tensor.DType))
	}
	return err
}

// MarshalJSON writes a tensor of an answer. It may stand inline whatever its size.
func (tensor Tensor) MarshalJSON() ([]byte, error) {
	data := append([]byte{}, tensor.Data...)
	swapWords(data, wordBytes(tensor.DType))
	var written message
	written.Tensor.DType, written.Tensor.Bits = tensor.DType, hex.EncodeToString(data)
	written.Tensor.Shape = append([]int{}, tensor.Shape...) // a scalar has [], not null
	return json.Marshal(written)
}

// Floats are the elements of a tensor of fp32.
func (tensor Tensor) Floats() []float32 {
	values := make([]float32, len(tensor.Data)/4)
	for at := range values {
		values[at] = math.Float32frombits(binary.LittleEndian.Uint32(tensor.Data[4*at:]))
	}
	return values
}

// OfFloats is a tensor of fp32.
func OfFloats(shape []int, values []float32) Tensor {
	data := make([]byte, 4*len(values))
	for at, value := range values {
		binary.LittleEndian.PutUint32(data[4*at:], math.Float32bits(value))
	}
	return Tensor{"fp32", shape, data}
}

// wordBytes is the size of one word; an element of complex64 or complex128 is two words.
func wordBytes(dtype string) int {
	switch dtype {
	case "fp64", "int64", "complex128":
		return 8
	case "fp32", "tf32", "int32", "complex64":
		return 4
	case "fp16", "bf16", "int16":
		return 2
	}
	return 1
}

// swapWords reverses each word: hexadecimal digits begin with the most significant byte.
func swapWords(data []byte, width int) {
	for start := 0; start+width <= len(data); start += width {
		for low, high := start, start+width-1; low < high; low, high = low+1, high-1 {
			data[low], data[high] = data[high], data[low]
		}
	}
}

// Serve answers requests until the session is closed; a method that is not among methods reads as unsupported.
func Serve(hello Object, methods map[string]Method) {
	input, output := bufio.NewReader(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		line, err := input.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(line) == 0 {
			return
		}
		request := Read[struct {
			ID     int             `json:"id"`
			Method string          `json:"method"`
			Params json.RawMessage `json:"params"`
		}](line)
		method, known := methods[request.Method]
		var result Object
		switch {
		case request.Method == "session.open":
			result = hello
		case known:
			result = method(request.Params)
		case strings.HasPrefix(request.Method, "session."):
			result = Returned(Object{})
		default:
			result = Unsupported("%s", request.Method)
		}
		must(output.Encode(Object{"jsonrpc": "2.0", "id": request.ID, "result": result}))
		if request.Method == "session.close" {
			return
		}
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
