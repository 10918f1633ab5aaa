"""What a state remembers: what was used last, and no more than fits."""

from time import process_time

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


def test_what_is_used_lives_on() -> None:
    things = kept(limit=0)
    things.keep(1, "used")
    for number in range(2, 10):
        things.keep(number, "never used")
        things.renew()
        assert things.find(1) == "used"
    assert things.find(5) is None


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


def test_what_grows_counts() -> None:
    things = kept(limit=15)
    things.keep(1, "grows")
    things.keep(2, "does not")
    things.renew()
    things.find(1)
    things.grew(1_000)
    things.renew()
    things.renew()
    assert things.find(1) == "grows"
    assert things.find(2) is None


def test_making_room_among_many_costs_what_it_costs_among_few() -> None:
    def seconds(size: int) -> float:
        things = kept(limit=10 * size)
        before = process_time()
        for number in range(3 * size):
            things.keep(number, "")
            if number % 100 == 0:
                things.renew()
        return (process_time() - before) / size

    seconds(1_000)
    assert min(seconds(40_000) for _ in range(3)) < 8 * min(seconds(1_000) for _ in range(3))
