// The listings of the collectives document, for `tessera-reference plan examples/collectives/listings.mlir --function NAME`.
// Operations that the document does not define are those of Graph IR (AMB-COLL-16).
"builtin.module"() ({
  "tessera.graph.mesh"() {sym_name = "g", axes = ["dp"], shape = [4]} : () -> ()

  // 2.1: a future is awaited where it is used. The operand has a tensor type (AMB-COLL-102).
  "tessera.graph.func"() ({
  ^bb0(%grad: tensor<8xfp32>):
    %f = tessera.collective.reduce_scatter %grad : tensor<8xfp32> {op="sum"}
    // ... do other compute here ...
    %shard = tessera.await %f  // only where actually needed
    "tessera.graph.return"(%shard) : (tensor<2xfp32>) -> ()
  }) {sym_name = "futures", function_type = (tensor<8xfp32>) -> (tensor<2xfp32>)} : () -> ()

  // 2.3: the gradient before is reduced while this one is computed. An op that is left out is sum (AMB-COLL-101).
  "tessera.graph.func"() ({
  ^bb0(%a_k: tensor<4x4xfp32>, %b_k: tensor<4x4xfp32>, %dw_k_prev: tensor<4x4xfp32>):
    %dw_k    = "tessera.graph.matmul"(%a_k, %b_k)
    %ar_fut  = tessera.collective.all_reduce %dw_k_prev {chunk=512KiB}
    %dw_km1  = tessera.await %ar_fut
    "tessera.graph.return"(%dw_k, %dw_km1) : (tensor<4x4xfp32>, tensor<4x4xfp32>) -> ()
  }) {sym_name = "backward", function_type = (tensor<4x4xfp32>, tensor<4x4xfp32>, tensor<4x4xfp32>) -> (tensor<4x4xfp32>, tensor<4x4xfp32>)} : () -> ()

  // 9.1: the epilogue scales by %eta, which is an operand here.
  "tessera.graph.func"() ({
  ^bb0(%x: tensor<4x4xbf16>, %y: tensor<4x4xbf16>, %eta: bf16):
    %dw      = "tessera.graph.matmul"(%x, %y)
    %f       = tessera.collective.all_reduce %dw
                {op="sum", chunk=1MiB, dtype="bf16", algo="auto", path="auto", scope="node"}
    ; ... compute next tile ...
    %dw_red  = tessera.await %f
    %out     = "tessera.graph.multiply"(%dw_red, %eta)
    "tessera.graph.return"(%out) : (tensor<4x4xbf16>) -> ()
  }) {sym_name = "overlap", function_type = (tensor<4x4xbf16>, tensor<4x4xbf16>, bf16) -> (tensor<4x4xbf16>)} : () -> ()

  // 9.2
  "tessera.graph.func"() ({
  ^bb0(%grads: tensor<8xfp32>):
    %f_rs  = tessera.collective.reduce_scatter %grads {op="sum", chunk=2MiB}
    %shard = tessera.await %f_rs
    ; use shard locally ...
    %weights_sharded = "tessera.graph.multiply"(%shard, %shard)
    %f_ag  = tessera.collective.all_gather %weights_sharded {chunk=2MiB}
    %W     = tessera.await %f_ag
    "tessera.graph.return"(%W) : (tensor<8xfp32>) -> ()
  }) {sym_name = "pair", function_type = (tensor<8xfp32>) -> (tensor<8xfp32>)} : () -> ()
}) {sym_name = "listings"} : () -> ()
