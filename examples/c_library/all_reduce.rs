// The sum over two devices that have different data, by libtessera: docs/c_library.md says how to build and run this.
use std::ffi::c_void;
use std::os::raw::{c_char, c_int};
use std::ptr::null_mut;

type Handle = *mut c_void;

#[repr(C)]
struct Axes { tp: c_int, pp: c_int, dp: c_int, ep: c_int }

#[link(name = "tessera")]
extern "C" {
    fn tessInit(context: *mut Handle) -> c_int;
    fn tessMeshCreate(context: Handle, ids: *const c_int, count: c_int, axes: Axes, mesh: *mut Handle) -> c_int;
    fn tessStreamCreate(mesh: Handle, priority: c_int, stream: *mut Handle) -> c_int;
    fn tessMalloc(mesh: Handle, bytes: usize, pointer: *mut Handle) -> c_int;
    fn tessxPoke(mesh: Handle, rank: i64, pointer: Handle, data: *const c_void, size: usize) -> c_int;
    fn tessAllReduce(mesh: Handle, buffer: Handle, count: usize, dtype: c_int, op: c_int, axis: *const c_char, stream: Handle) -> c_int;
    fn tessMemcpyAsync(to: Handle, from: Handle, bytes: usize, kind: c_int, stream: Handle) -> c_int;
    fn tessStreamSynchronize(stream: Handle) -> c_int;
}

fn ok(status: c_int) { assert_eq!(status, 0, "TESS_OK") }

fn main() {
    let (mut context, mut mesh, mut stream, mut buffer) = (null_mut(), null_mut(), null_mut(), null_mut());
    let (one, ten, mut sum) = ([1f32, 2.0, 3.0, 4.0], [10f32, 20.0, 30.0, 40.0], [0f32; 4]);
    unsafe {
        ok(tessInit(&mut context));
        ok(tessMeshCreate(context, [0, 1].as_ptr(), 2, Axes { tp: 0, pp: 0, dp: 2, ep: 0 }, &mut mesh));
        ok(tessStreamCreate(mesh, 0, &mut stream));
        ok(tessMalloc(mesh, 16, &mut buffer));
        ok(tessxPoke(mesh, 0, buffer, one.as_ptr().cast(), 16));
        ok(tessxPoke(mesh, 1, buffer, ten.as_ptr().cast(), 16));
        ok(tessAllReduce(mesh, buffer, 4, 5, 0, b"dp\0".as_ptr().cast(), stream)); // 5: fp32, 0: the sum
        ok(tessMemcpyAsync(sum.as_mut_ptr().cast(), buffer, 16, 1, stream)); // 1: to the host
        ok(tessStreamSynchronize(stream));
    }
    println!("{sum:?}");
}
