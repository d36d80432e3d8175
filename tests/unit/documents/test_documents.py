from decimal import Decimal

from provision.documents import plain
from provision.documents.cost import Part, PartKind


def test_a_document_says_what_is_not_known_and_leaves_out_what_is_not_there() -> None:
    part = Part(kind=PartKind.NAT, name="Cloud NAT", now=Decimal("0.0014"), most=None)
    assert plain({"parts": (part,)}) == {
        "parts": [
            {"kind": "nat", "name": "Cloud NAT", "now": 0.0014, "most": None, "is_estimate": False}
        ]
    }
