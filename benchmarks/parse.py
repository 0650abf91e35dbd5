"""Parsing an ordinary program of 200 KB to its syntax tree, against reading its tokens alone."""

from __future__ import annotations

from measurement import Measurement, in_turns

from tessera_reference.language import parse
from tessera_reference.language.parser import Lexer

FUNCTION = """
  // Scaled dot-product attention, one head of block {number}.
  func head_{number}(Q: tensor<Lx64xbf16>, K: tensor<Lx64xbf16>, V: tensor<Lx64xbf16>, causal: bool = true)
      -> tensor<Lx64xbf16> @{{numerics_profile="strict"}} {{
    let scores: tensor<LxLxbf16> = op.matmul(Q, op.transpose(K, perm=[1, 0])) @{{accum="fp32"}} * 0.125;
    if (causal) {{
      for (row in 0:{number}:2) {{
        scores[row, row + 1:] = scores[row, row + 1:] - 1e4;
      }}
    }} else {{
      barrier("scores");
    }}
    schedule.tile(scores, m=128, n=128);
    let weights: tensor<LxLxbf16> = op.softmax(scores, axis=-1);
    return op.matmul(weights, V) + -(Q * 0.5);
  }}
"""


def measure() -> Measurement:
    """Kilobytes a second."""
    source = "module model {" + "".join(FUNCTION.format(number=number) for number in range(250)) + "}\n"
    ours, peer = in_turns(lambda: parse(source), lambda: list(Lexer(source)), 7)
    return Measurement("parse", ours, "tokens alone", peer, len(source) / 1000 / ours, "KB/s", 120, at_least=True)
