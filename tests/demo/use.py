# Checks the generated stubs of a source with type checkers. `bindings/python/check` reads this file, and no program
# runs it.
from typing import Any, assert_type

import nudge

store = nudge.connect()
assert_type(store.demo.add(name="a", text="b", tags=["c"], urgent=None), dict[str, Any])
assert_type(store.demo.list(), dict[str, Any])
store.demo.add(name="a")  # type: ignore[call-arg]
store.demo.add(name="a", text=1)  # type: ignore[arg-type]
store.demo.get("a")  # type: ignore[call-arg]
store.demo.nothing()  # type: ignore[attr-defined]
store.nothing  # type: ignore[attr-defined] # noqa: B018
store.qurey()  # type: ignore[attr-defined]
# This source has params of every kind.
store.kinds.import_(from_="a", pace="fast", count=1, share=0.5, paces=["slow"], by_name={"a": True, "b": "c"}, data=[1])
store.kinds.import_(context=nudge.Context(cwd="/work"))
store.kinds.import_(pace="late")  # type: ignore[arg-type]
assert_type(store.list_components()["components"][0]["hint_count"], int)
