// The sum over two devices that have different data, by libtessera: docs/c_library.md says how to build and run this.
package main

// #cgo pkg-config: tessera
// #include <tessera_ext.h>
// #include <stdlib.h>
import "C"

import (
	"fmt"
	"unsafe"
)

func ok(status C.tessStatus_t) {
	if status != C.TESS_OK {
		panic(status)
	}
}

func main() {
	var context C.tessContext_t
	var mesh C.tessMesh_t
	var stream C.tessStream_t
	var buffer unsafe.Pointer
	one, ten := [4]float32{1, 2, 3, 4}, [4]float32{10, 20, 30, 40}
	sum := (*[4]float32)(C.malloc(16)) // of C, since the copy writes it after its call
	axis, ids := C.CString("dp"), [2]C.int{0, 1}
	ok(C.tessInit(&context))
	ok(C.tessMeshCreate(context, &ids[0], 2, C.tessMeshAxes{dp: 2}, &mesh))
	ok(C.tessStreamCreate(mesh, 0, &stream))
	ok(C.tessMalloc(mesh, 16, &buffer))
	ok(C.tessxPoke(mesh, 0, buffer, unsafe.Pointer(&one), 16))
	ok(C.tessxPoke(mesh, 1, buffer, unsafe.Pointer(&ten), 16))
	ok(C.tessAllReduce(mesh, buffer, 4, 5, C.TESS_COLL_SUM, axis, stream)) // 5: fp32
	ok(C.tessMemcpyAsync(unsafe.Pointer(sum), buffer, 16, C.TESS_COPY_D2H, stream))
	ok(C.tessStreamSynchronize(stream))
	fmt.Println(*sum)
}
