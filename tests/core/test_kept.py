"""What a state remembers: what was used last, and no more than fits."""

from assetflow.core.kept import Kept


def kept(limit: int) -> Kept[int, str]:
    return Kept(limit, lambda _: 10)


def test_nothing_is_forgotten_until_enough_was_added_twice() -> None:
    things = kept(limit=20)
    for number in range(3):
        things.keep(number, "old")
    things.renew()
    assert [things.find(number) for number in (0, 1)] == ["old", "old"]
    things.keep(3, "young")
    things.renew()
    assert [things.find(number) for number in (0, 1, 2, 3)] == ["old", "old", None, "young"]


def test_what_was_replaced_does_not_come_back() -> None:
    things = kept(limit=0)
    things.keep(1, "before")
    things.renew()
    things.keep(1, "after")
    things.renew()
    assert things.find(1) == "after"
    things.forget([1])
    assert things.find(1) is None
    things.keep(1, "again")
    things.renew()
    things.forget([1])
    assert things.find(1) is None
    assert list(things.unknown([1, 2, 1])) == [1, 2]
