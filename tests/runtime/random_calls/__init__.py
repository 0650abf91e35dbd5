"""Random calls of the host API, judged by a simple model (runtime spec 4 to 13).

`choose` draws, `memory` and `order` say what memory holds and which accesses are ordered, `world` what is live,
`works` what queued work does, `garbage` what no argument may be; `session` makes a call and judges the answer;
`steps_...` hold one step for each function. `python tests/runtime/random_calls --minutes 10` runs for long.
"""
