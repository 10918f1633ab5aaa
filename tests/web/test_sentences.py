"""Sentences on pages: times for the browser to show in local time, ids as links, everything else as text."""

from __future__ import annotations

from uuid import UUID

from assetflow.web.pages import told

ID = UUID("8accd21f-37da-4369-9225-57ff3ccd8b34")


def test_times_and_ids_become_elements() -> None:
    text = f"waiting since 2026-01-01 12:00:00 UTC; satisfied by event {ID}, decision {ID}"
    assert told(text) == (
        'waiting since <time datetime="2026-01-01T12:00:00Z" title="2026-01-01 12:00:00 UTC" data-at>'
        "2026-01-01 12:00:00 UTC</time>; "
        f'satisfied by event <a class="said" href="/events/{ID}">8accd21f</a>, '
        f'decision <a class="said" href="/decisions/{ID}">8accd21f</a>'
    )


def test_what_users_wrote_stays_text() -> None:
    assert told('<script>"x"</script> & \u202e') == "&lt;script&gt;&#34;x&#34;&lt;/script&gt; &amp; \\u202e"
    assert told(f"the asset s3://lake/{ID}") == f"the asset s3://lake/{ID}"


def test_a_page_stands_for_the_command_that_lists_the_same() -> None:
    assert told("`assetflow assets ls` lists the assets") == '<a href="/assets">Assets</a> lists the assets'
    again = f'Replay it with <a href="/decisions/{ID}">Try again</a>.'
    assert told(f"Replay it with `assetflow queue replay {ID}`.") == again
    start = "start one with `assetflow evaluator start`"
    assert told(start) == "start one with <code>assetflow evaluator start</code>"
