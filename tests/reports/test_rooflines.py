"""The picture of the rooflines: where its points are, what it says where there are none, and that it is safe."""

from __future__ import annotations

import math
import re
from itertools import pairwise
from typing import Any

import pytest

from tessera_conformance.reports.rooflines import BOTTOM, CLAUSE, HEIGHT, LEFT, RIGHT, TOP, WIDTH, figures, rooflines

NASTY = "</svg><script>alert(1)</script> \u00e4"


def figure(plot: str, line: str, size: int, picoseconds: int) -> dict[str, Any]:
    return {"plot": plot, "line": line, "size": size, "picoseconds": picoseconds}


def kept(observation, case: str, *found: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A case of the clause that kept these figures."""
    return observation(case, clauses=[CLAUSE], run={"seconds": 0.1, "figures": list(found)}, **changes)


def both(observation) -> list[dict[str, Any]]:
    """Collectives at 1 kB and 1 MB, at 10**9 and 10**11 bytes a second below a roof of 10**12; a product."""
    roof = {"plot": "communication", "line": "roof", "bytes_per_second": 10**12}
    sent = [figure("communication", "ring", 1000, 10**6), figure("communication", "ring", 10**6, 10**7)]
    return [
        kept(observation, "collectives/rooflines/ring", roof, *sent),
        kept(observation, "collectives/rooflines/products", figure("compute", "product", 2000, 1000)),
    ]


def test_points_lie_at_their_logarithms(build, observation) -> None:
    """Sizes from 10**3 to 10**6, rates from 10**9 to 10**12: a point at each end, and the roof on top."""
    markup = rooflines(build(both(observation)))
    left, right, bottom = LEFT, WIDTH - RIGHT, HEIGHT - BOTTOM
    at_two_thirds = bottom + (TOP - bottom) * (math.log10(10**11) - 9) / 3
    assert f'points="{left:.1f},{bottom:.1f} {right:.1f},{at_two_thirds:.1f}"' in markup
    assert f'class="roof" x1="{left}" y1="{TOP:.1f}"' in markup
    for label in ("1 GB/s", "10 GB/s", "100 GB/s", "1 TB/s", "1 k", "1 M", ">link<", ">ring<", ">best measured<"):
        assert label in markup
    assert markup.count("<polyline") == 2
    assert "<p>" not in markup


def test_no_two_labels_of_a_panel_touch(build, observation) -> None:
    """Eight lines that end at one rate."""
    same = [figure("communication", f"line {n}", 1000, 10**6) for n in range(8)]
    markup = rooflines(build([kept(observation, "collectives/a", *same)]))
    heights = sorted(float(each) for each in re.findall(r'class="label" x="\d+" y="([\d.]+)"', markup))
    assert len(heights) == 9
    assert all(below - above >= 14.9 for above, below in pairwise(heights))
    assert heights[-1] <= HEIGHT - BOTTOM + 5


def test_a_run_without_such_cases_says_that_it_was_not_asked(build, observation) -> None:
    markup = rooflines(build([observation("abi/a")]))
    assert "<svg" not in markup
    assert markup.count("not asked; no case of this run measures it.") == 2


@pytest.mark.parametrize("verdict", ["unsupported", "inapplicable"])
def test_a_roofline_without_figures_says_why(verdict: str, build, observation) -> None:
    """Beside one that has some."""
    lines = both(observation)[:1]
    lines.append(observation("collectives/rooflines/products", verdict, clauses=[CLAUSE], reason="no <profiler>"))
    markup = rooflines(build(lines))
    assert markup.count("<polyline") == 1
    assert f"<p>Computation: kernels: {verdict}; no &lt;profiler&gt;.</p>" in markup


def test_names_and_numbers_of_an_implementation_cannot_break_the_page(build, observation) -> None:
    """Names are escaped; sizes and times that are not positive are left out."""
    odd = [figure("compute", NASTY, 5, 5), figure("compute", "a", 0, 5), figure("compute", "b", 5, 0)]
    markup = rooflines(build([kept(observation, "collectives/a", *odd)]))
    assert "<script" not in markup
    assert markup.isascii()
    assert markup.count("<polyline") == 1


def test_figures_are_read_from_the_report_file(build, observation) -> None:
    found = figures(build(both(observation)))
    assert sorted(each["line"] for each in found) == ["product", "ring", "ring", "roof"]
