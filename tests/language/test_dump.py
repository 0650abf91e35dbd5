"""The syntax tree as text, one node a line."""

from __future__ import annotations

from tessera_reference.language import parse
from tessera_reference.language.syntax import print_tree

SOURCE = """module m {
  func f(a: int32 = -1) -> tensor<4x?xfp32; layout=blocked(bm=2)> {
    barrier();
    return op.sum(a[:, 0], axis=1), "x";
  }
}"""

TREE = """\
Program 1:1-6:2 filename='t.tsr'
  modules: ModuleDecl 1:1-6:2 name='m'
    declarations: FunctionDecl 2:3-5:4 name='f' name_span=2:8-2:9
      parameters: Parameter 2:10-2:23 name='a'
        type: NamedType 2:13-2:18 name='int32'
        default: Unary 2:21-2:23 operator='-'
          operand: IntLiteral 2:22-2:23 text='1'
      result: TensorType 2:28-2:66 dtype='fp32'
        shape: Dimension 2:35-2:36 text='4'
        shape: Dimension 2:37-2:38 text='?'
        layout: LayoutSpec 2:52-2:65 name='blocked' parameters=(('bm', '2'),)
      body: Block 2:67-5:4
        statements: Barrier 3:5-3:14
        statements: Return 4:5-4:40
          values: Call 4:12-4:35 callee=('op', 'sum')
            arguments: Index 4:19-4:26
              operand: Name 4:19-4:20 text='a'
              slices: SliceRange 4:21-4:22
              slices: IntLiteral 4:24-4:25 text='0'
            keywords: Keyword 4:28-4:34 name='axis'
              value: IntLiteral 4:33-4:34 text='1'
          values: StringLiteral 4:37-4:40 value='x'
"""


def test_every_node_has_a_line_with_its_place() -> None:
    assert print_tree(parse(SOURCE, "t.tsr")) == TREE


def test_deep_trees_are_shown_too() -> None:
    tree = parse(f"module m {{ func f() {{ return a{' + a' * 3000}; }} }}")
    assert print_tree(tree).count("Binary") == 3000
