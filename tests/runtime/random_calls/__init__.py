"""Random calls of the host API, judged by a simple model (runtime spec 4 to 13).

`choices` draws; `memory` and `access_order` say what memory holds and which accesses are ordered, `live_objects` what
is live, `queued_work` what work does, `bad_arguments` what is illegal; `session` makes a call and judges the answer;
`steps_...` hold one step for each function. `python tests/runtime/random_calls --minutes 10` runs for long.
"""
