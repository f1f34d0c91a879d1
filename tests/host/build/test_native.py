"""Records of native libraries as NumPy's types."""

from __future__ import annotations

import numpy as np

from rltools_host.build.native import record_type


def test_a_record_has_its_fields_where_it_states_them() -> None:
    inner = {"bytes": 8, "fields": [{"name": "x", "type": "f4", "elements": 0, "offset": 4}]}
    fields = [
        {"name": "place", "type": "pointer", "elements": 0, "offset": 0},
        {"name": "name", "type": "text", "elements": 0, "offset": 8},
        {"name": "values", "type": "f8", "elements": 3, "offset": 16},
        {"name": "parts", "type": inner, "elements": 2, "offset": 40},
        {"name": "count", "type": "u4", "elements": 0, "offset": 56},
    ]
    found = record_type({"bytes": 64, "fields": fields})
    assert found.itemsize == 64
    assert found.names == ("place", "name", "values", "parts", "count")
    assert found.fields is not None
    assert {name: entry[1] for name, entry in found.fields.items()} == {
        "place": 0,
        "name": 8,
        "values": 16,
        "parts": 40,
        "count": 56,
    }
    assert (found["place"], found["name"], found["count"]) == (np.uintp, np.uintp, np.uint32)
    assert found["values"].shape == (3,)
    assert found["count"].shape == ()
    parts = found["parts"].subdtype
    assert parts is not None
    assert (parts[0].itemsize, parts[1], parts[0].names) == (8, (2,), ("x",))
