"""Drawing scenarios, as hypothesis strategies."""

from typing import Any

from hypothesis import strategies as st

URIS = ["s3://b/a", "s3://b/b", "s3://b/c"]
KEYS = ["k", "l"]
NAMES = ["c0", "c1"]
ALIASES = ["x", "y"]

FAN_OUT = {
    "fanout": {"upstream": "identity", "window": {"kind": "segment", "segments": KEYS}, "downstream": "identity"}
}

leaves = st.one_of(
    st.sampled_from(URIS),
    st.sampled_from([{"alias": alias} for alias in ALIASES]),
    st.sampled_from([{"ref": {"name": "n"}}, {"ref": {"name": URIS[0]}}, {"ref": {"uri": URIS[1]}}]),
)
expressions = st.recursive(
    leaves,
    lambda inner: st.builds(
        lambda gate, members: {gate: members}, st.sampled_from(["all", "any"]), st.lists(inner, min_size=1, max_size=3)
    ),
    max_leaves=5,
)
partitioned = st.builds(
    lambda assets, mapper: {"partitioned": {"assets": assets, "default_mapper": mapper}},
    expressions,
    st.sampled_from(["identity", {"fixed": "k"}, FAN_OUT]),
)
consumers = st.builds(
    lambda schedule, keep, coalesce: {"schedule": schedule, "while_paused": keep, "coalesce": coalesce},
    st.one_of(expressions, expressions, partitioned),
    st.sampled_from(["drop", "keep"]),
    st.sampled_from([False, False, True]),
)


def _without_none(**given: Any) -> dict[str, Any]:
    return {key: value for key, value in given.items() if value not in (None, [])}


keys = st.sampled_from([None, None, *KEYS])
events = st.builds(
    _without_none,
    event=st.sampled_from([*URIS, {"name": "n", "uri": URIS[0]}, {"name": "n", "uri": URIS[2]}]),
    partition_key=keys,
    aliases=st.lists(st.sampled_from(ALIASES), max_size=2, unique=True),
    id=st.sampled_from([None, None, "e1"]),
)
tasks = st.builds(
    lambda outlets, key, state: {"task": _without_none(outlets=outlets, partition_key=key, state=state)},
    st.lists(st.sampled_from(URIS), min_size=1, max_size=2),
    keys,
    st.sampled_from([None, None, "failed"]),
)
naming = st.builds(
    lambda kind, name: {kind: name}, st.sampled_from(["pause", "resume", "remove", "finish"]), st.sampled_from(NAMES)
)
deletions = st.builds(
    lambda **chosen: {"delete_queued": _without_none(**chosen)},
    consumer=st.sampled_from(NAMES),
    asset=st.sampled_from([None, *URIS]),
    partition_key=keys,
)
steps = st.one_of(
    events,
    events,
    tasks,
    st.just({"tick": True}),
    naming,
    deletions,
    st.builds(lambda name, consumer: {"redeploy": {name: consumer}}, st.sampled_from(NAMES), consumers),
)


def scenarios(passes: str = "", steps: st.SearchStrategy[Any] = steps) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {
            "name": st.just("drawn"),
            "receipts": st.just(True),
            "passes": st.just(passes) if passes else st.sampled_from(["tick", "live"]),
            "consumers": st.dictionaries(st.sampled_from(NAMES), consumers, min_size=1, max_size=2),
            "steps": st.lists(steps, max_size=14),
        }
    )
