"""Every promise of SECURITY.md has tests that exist."""

import re

import pytest

from leakage.settings import ROOT

SHOWN_BY = {
    "password": [
        "tests/web/test_password.py::test_a_real_server_shows_strangers_nothing_but_the_login",
        "tests/web/test_password.py::test_the_websocket_opens_with_the_password_only",
        "tests/web/test_class_key.py::test_a_key_that_was_cut_is_made_anew_and_said",
    ],
    "wrong passwords": [
        "tests/web/test_password.py::test_the_right_password_passes_beside_seventy_wrong_ones_from_elsewhere",
        "tests/web/test_password.py::test_a_named_proxy_says_who_asks_and_what_stands_before_its_word_is_made_up",
    ],
    "host names": [
        "tests/web/test_request_filter.py::test_every_route_refuses_a_name_that_is_not_the_servers",
        "tests/web/test_request_filter.py::test_a_page_from_another_port_of_the_same_host_cannot_open_the_websocket",
        "tests/web/test_request_filter.py::test_requests_that_change_something_need_an_origin_that_equals_the_host",
    ],
    "routes": [
        "tests/web/test_request_filter.py::test_every_built_in_route_is_in_the_table_so_that_an_update_opens_none_unseen",
        "tests/web/test_request_filter.py::test_built_in_routes_that_no_page_needs_answer_nothing_by_any_method",
    ],
    "cookies": [
        "tests/web/test_page_sessions.py::test_behind_tls_every_cookie_is_for_tls_alone",
        "tests/web/test_owner_cookie.py::test_no_script_and_no_other_site_gets_the_cookie",
        "tests/web/test_password.py::test_the_cookie_is_for_no_script_no_other_site_and_behind_tls_for_https_alone",
    ],
    "other people's runs": [
        "tests/runs/test_store.py::test_the_runs_of_an_owner_come_newest_first_and_are_nobody_elses",
        "tests/runs/test_service.py::test_only_who_holds_a_run_alone_stops_it_and_nobody_deletes_anothers",
        "tests/ui/test_pages.py::test_delete_all_takes_everything_of_mine_and_nothing_else",
    ],
    "uploads": [
        "tests/web/test_upload_quota.py::test_files_that_no_page_asked_for_are_refused_and_take_no_memory",
        "tests/data/test_hostile_uploads.py::test_500_uploads_are_each_a_sentence_or_a_small_picture",
        "tests/data/test_hostile_uploads.py::test_the_process_has_limits_leaves_no_copy_on_the_disk_and_brings_neither_torch_nor_numpy",
        "tests/web/test_page_sessions.py::test_an_upload_is_never_written_to_the_disk_while_it_comes",
        "tests/workers/test_upload_life.py::test_the_dispatcher_deletes_uploads_of_that_age_before_a_day_too_many_begins",
        "tests/runs/test_store.py::test_the_bytes_of_a_deleted_upload_are_gone_from_the_disk",
        "tests/ui/test_uploads.py::test_a_code_stands_beside_each_upload_and_deletes_it_from_another_browser",
    ],
    "recorded updates": [
        "tests/web/test_update_routes.py::test_what_no_page_of_this_browser_asked_for_is_refused",
        "tests/web/test_update_routes.py::test_files_have_a_largest_size_and_owners_a_quota",
        "tests/web/test_update_routes.py::test_a_file_arrives_as_it_was_sent_readable_by_its_owner_alone",
        "tests/adapters/test_hostile_files.py::test_a_malicious_file_is_refused_by_a_process_soon_and_in_little_memory",
        "tests/runs/test_update_sets.py::test_a_set_goes_with_its_last_run",
        "tests/runs/test_update_sets.py::test_delete_all_deletes_files_that_no_run_has_used",
        "tests/runs/test_update_sets.py::test_by_age_files_go_as_uploads_do",
    ],
    "own pictures in a page": [
        "tests/browser/test_own_picture.py::test_at_the_door_of_a_folder_without_a_network_the_picture_comes_back_and_nothing_is_asked_for",
        "tests/browser/test_own_picture.py::test_the_running_server_lets_the_page_compute_under_its_own_policy",
    ],
    "rooms": [
        "tests/web/test_guests.py::test_a_guest_reaches_the_room_and_a_member_the_program",
        "tests/web/test_class_routes.py::test_after_three_classes_nothing_is_left_of_them",
        "tests/web/test_class_routes.py::test_codes_cannot_be_guessed_and_a_class_does_not_lock_itself_out",
        "tests/rooms/test_guest_lesson.py::test_no_phone_gets_an_answer_a_later_beat_or_a_result_before_its_time",
        "tests/rooms/test_room.py::test_a_room_keeps_no_token_and_no_key",
    ],
    "files": [
        "tests/runs/test_private_home.py::test_after_a_run_nobody_else_can_read_store_logs_or_catalog",
        "tests/runs/test_owners.py::test_an_owner_is_the_sha256_of_the_cookie",
    ],
    "a damaged store": [
        "tests/runs/test_broken_home.py::test_what_can_be_read_of_a_damaged_store_is_saved_and_the_damaged_file_is_kept",
        "tests/runs/test_broken_home.py::test_programs_end_with_a_sentence_where_the_store_cannot_be_opened",
        "tests/runs/test_broken_home.py::test_a_kept_store_goes_when_its_uploads_would_have",
        "tests/runs/test_broken_home.py::test_a_clock_a_month_ahead_removes_no_run_of_who_is_here",
    ],
    "telemetry": [
        "tests/browser/test_policy.py::test_no_page_asks_for_what_its_policy_refuses_or_for_what_is_not_there",
        "tests/web/test_request_filter.py::test_answers_are_neither_guessed_at_nor_framed_nor_free_to_load_from_elsewhere",
    ],
    "input files": [
        "tests/data/test_datasets.py::test_a_malicious_pickle_is_refused_before_it_acts",
        "tests/spec/test_hostile_experiments.py::test_1000_experiments_are_each_a_sentence_or_can_be_run",
        "tests/data/test_checkpoints.py::test_a_file_that_is_no_safetensors_file_is_a_sentence_though_its_hash_is_right",
    ],
    "fair limits": [
        "tests/runs/test_store.py::test_beyond_a_cap_nothing_is_queued_and_the_cap_is_named",
        "tests/web/test_page_sessions.py::test_one_browser_holds_so_many_live_connections_and_another_opens_its_own",
        "tests/web/test_page_sessions.py::test_of_fifty_streams_that_one_browser_opens_at_once_no_more_than_the_limit_pass",
        "tests/web/test_upload_quota.py::test_a_session_may_hold_so_much_and_what_it_drops_makes_room",
        "tests/web/test_connection_limits.py::test_one_address_has_no_more_connections_than_were_set",
        "tests/workers/test_yielding.py::test_a_second_browser_begins_soon_behind_eight_runs_of_an_hour",
        "tests/web/test_downloads.py::test_another_picture_comes_while_one_browser_asks_for_sixty_slides",
    ],
    "the image": ["tests/test_image.py::test_what_the_image_may_take_of_the_machine_is_limited_for_both_services"],
}


def test_every_promise_has_tests_that_show_it_and_nothing_else_is_shown() -> None:
    promised = (ROOT / "SECURITY.md").read_text().split("## What is promised")[1].split("\n## ")[0]
    assert re.findall(r"^\| ([^|]+?) \| ", promised, re.MULTILINE) == list(SHOWN_BY)


@pytest.mark.parametrize("test", [test for tests in SHOWN_BY.values() for test in tests])
def test_what_shows_a_promise_is_there(test: str) -> None:
    file, name = test.split("::")
    assert re.search(rf"^def {name}\(", (ROOT / file).read_text(), re.MULTILINE)
