"""Kinds of fault that others have reported or that were seen here, and the tests that hold each of them.

The table names test functions; that they exist is tested, so that a renamed test does not take its case along.
"""

from __future__ import annotations

import ast
import functools
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]

CASES: dict[str, tuple[str, tuple[str, ...]]] = {
    "S01": (
        "logits are read from the wrong place",
        (
            "kernel/test_api.py::test_the_capital_is_found_in_any_order",
            "kernel/test_score.py::test_paris_wins_whatever_the_order",
            "kernel/test_choose.py::test_a_constant_row_is_refused",
            "kernel/test_choose.py::test_insertion_order_does_not_matter",
        ),
    ),
    "S02": (
        "the best K are cut out before the mask, then the first legal token is taken",
        (
            "kernel/test_choose.py::test_the_full_vocabulary_is_read",
            "kernel/test_api.py::test_markers_that_the_tokenizer_splits_are_chosen_all_the_same",
            "dispatch/test_log_ledger.py::test_the_taken_token_and_two_rivals_are_there_although_the_model_wants_others",
        ),
    ),
    "S03": (
        "one option is the beginning of another",
        (
            "kernel/test_compile.py::test_each_of_six_options_that_begin_each_other_is_reachable",
            "kernel/test_compile.py::test_say_and_ing_is_a_path_only_where_the_tokenizer_makes_it_one",
            "kernel/test_compile.py::test_a_pair_that_the_end_does_not_tell_apart_is_named",
            "kernel/test_api.py::test_an_option_that_begins_another_can_be_told",
        ),
    ),
    "S04": (
        "a greedy walk falls in love with the first token",
        (
            "kernel/test_api.py::test_whole_options_are_compared_where_greedy_falls_for_the_first_token",
            "kernel/test_choose.py::test_exact_adds_up_log_probabilities",
            "kernel/test_choose.py::test_greedy_takes_the_likeliest_token_and_stays_with_it",
            "kernel/test_choose.py::test_a_shared_beginning_is_evaluated_and_not_scored",
        ),
    ),
    "S05": (
        "nothing is allowed, so everything is allowed",
        (
            "kernel/test_choose.py::test_no_opcode_and_no_legal_opcode_are_errors_before_any_pass",
            "kernel/test_choose.py::test_legal_ids_that_are_all_impossible_are_an_error",
            "kernel/test_choose.py::test_a_legal_id_that_is_no_number_is_impossible",
            "kernel/test_choose.py::test_a_row_without_a_number_is_an_error",
            "kernel/test_choose.py::test_an_illegal_id_that_is_no_number_changes_no_choice",
            "kernel/test_choose.py::test_a_search_among_impossible_opcodes_is_an_error",
            "kernel/test_compile.py::test_an_empty_legal_set_is_refused",
            "kernel/test_compile.py::test_the_empty_string_is_refused",
            "kernel/test_api.py::test_options_that_are_none_are_refused",
        ),
    ),
    "S06": (
        "an invisible space or BOS stands before each compiled string",
        (
            "kernel/test_vocab.py::test_literals_join_to_their_bytes",
            "kernel/test_vocab.py::test_sentencepiece_puts_no_space_before_a_word",
            "kernel/test_vocab.py::test_bos_stands_first_once_or_not_at_all",
            "kernel/test_vocab.py::test_what_a_tokenizer_changes_is_refused_with_both_texts",
            "cartridges/test_vocabularies.py::test_every_opcode_is_exact_and_chosen_when_it_is_wanted",
        ),
    ),
    "S07": (
        "long pieces vanish when they are read",
        (
            "kernel/test_vocab.py::test_pieces_have_their_full_length",
            "kernel/test_vocab.py::test_smollm2_pieces_and_data",
        ),
    ),
    "S08": (
        "one character is several tokens",
        (
            "kernel/test_compile.py::test_one_character_over_several_tokens_is_reachable",
            "kernel/test_compile.py::test_emoji_part_at_their_last_byte_and_cannot_end_before_it",
            "kernel/test_stages.py::test_a_character_of_several_tokens_cannot_be_left_half_way",
            "dispatch/test_log.py::test_a_ledger_row_keeps_the_exact_bytes_of_a_token",
        ),
    ),
    "S09": (
        "empty and control tokens count as harmless content of a slot",
        (
            "kernel/test_slots.py::test_control_and_empty_ids_are_never_legal_in_a_slot",
            "kernel/test_slots.py::test_a_model_that_wants_to_stop_inside_a_slot_goes_on",
            "kernel/test_vocab.py::test_ids_that_end_or_control_are_not_text",
        ),
    ),
    "S10": (
        "the cursor of the constraint does not move",
        (
            "kernel/test_choose.py::test_each_decision_starts_at_the_root",
            "kernel/test_choose.py::test_a_decision_that_broke_off_leaves_no_residue",
            "kernel/test_greedy.py::test_a_walk_is_the_choice_of_one_id_after_the_other",
            "kernel/test_greedy.py::test_a_walk_into_nothing_gives_its_sequence_back",
            "kernel/test_slots.py::test_one_opcode_after_the_other_starts_anew",
            "kernel/test_memory.py::test_an_aborted_call_leaves_no_residue",
        ),
    ),
    "S11": (
        "the closing marker stands inside a string",
        (
            "dispatch/test_wire.py::test_a_marker_inside_a_string_ends_nothing_and_opens_nothing",
            "dispatch/test_wire.py::test_any_string_argument_survives",
            "kernel/test_slots.py::test_a_closing_mark_inside_a_string_does_not_end_the_call",
        ),
    ),
    "S12": (
        "markers and control tokens arrive from outside",
        (
            "kernel/test_vocab.py::test_data_never_yields_a_control_id",
            "kernel/test_vocab.py::test_only_trusted_text_makes_control_ids",
            "dispatch/test_wire.py::test_a_marker_inside_a_string_ends_nothing_and_opens_nothing",
            "dispatch/test_wire.py::test_what_is_not_exactly_one_instruction_is_refused",
            "dispatch/test_log.py::test_text_with_line_breaks_of_every_kind_stays_on_one_line",
        ),
    ),
    "S13": (
        "the context overflows",
        (
            "kernel/test_choose.py::test_what_does_not_fit_is_refused_before_any_pass",
            "kernel/test_api.py::test_what_does_not_fit_leaves_the_session_as_it_was",
            "kernel/test_memory.py::test_overflow_is_refused_before_anything_is_decoded",
            "kernel/test_score.py::test_overflow_is_refused_and_the_next_call_is_as_fresh",
        ),
    ),
    "S14": (
        "a hybrid memory does not roll back",
        (
            "kernel/test_choose.py::test_memory_that_refuses_removal_gives_the_same_scores",
            "kernel/test_api.py::test_all_rules_run_on_every_kind_of_memory",
            "kernel/test_memory.py::test_five_options_by_branching_equal_five_fresh_sessions",
            "kernel/test_backend_llama_cpp.py::test_partial_removal_is_refused_and_changes_nothing",
            "kernel/test_score.py::test_five_options_of_different_length",
        ),
    ),
    "S15": (
        "the length of the cache and a transcript tokenized again drift apart",
        (
            "kernel/test_memory.py::test_all_ids_of_a_session_are_decoded_once",
            "kernel/test_memory.py::test_history_is_kept_as_ids_and_never_tokenized_again",
            "kernel/test_vocab.py::test_newlines_meet_across_parts",
            "dispatch/test_log.py::test_prompt_ids_come_back_exactly",
        ),
    ),
    "S16": (
        "numeric ranges are held by halves",
        (
            "kernel/test_json_schema.py::test_ranges_of_integers_are_exact",
            "kernel/test_json_schema.py::test_a_minimum_alone_is_an_open_range",
            "kernel/test_opcode_shapes.py::test_an_integer_shape_accepts_exactly_the_range",
            "kernel/test_stages.py::test_after_a_digit_both_another_digit_and_the_end_may_follow",
        ),
    ),
    "S17": (
        "one awkward tool disables all tools",
        (
            "kernel/test_import.py::test_one_awkward_tool_does_not_disable_the_others",
            "kernel/test_json_schema.py::test_a_tool_without_arguments_takes_the_empty_object",
            "kernel/test_slots.py::test_a_cap_is_honoured_on_both_sides",
        ),
    ),
    "S18": (
        "a schema that is not supported means no constraint",
        (
            "kernel/test_json_schema.py::test_what_cannot_be_held_is_refused_by_tool_path_and_keyword",
            "kernel/test_json_schema.py::test_annotations_are_listed_and_not_enforced",
        ),
    ),
    "S19": (
        "names of tools clash",
        (
            "kernel/test_import.py::test_names_that_become_the_same_are_refused_whichever_comes_first",
            "kernel/test_import.py::test_every_method_is_a_name_that_the_wire_parses_back",
            "dispatch/test_wire.py::test_clashes_are_refused",
        ),
    ),
    "S20": (
        "minus infinity breaks the JSON",
        (
            "kernel/test_choose.py::test_a_legal_id_that_is_no_number_is_impossible",
            "dispatch/test_inspect.py::test_choose_prints_one_strict_json_document",
            "dispatch/test_log.py::test_numbers_that_are_not_finite_have_an_agreed_form_and_come_back",
            "dispatch/test_log_ledger.py::test_what_is_not_finite_is_impossible",
            "dispatch/test_replay.py::test_scores_that_are_not_finite_do_not_disturb_a_replay",
            "dispatch/test_log_damage.py::test_a_cut_last_line_is_located",
        ),
    ),
    "producer and parser agree on every opcode": (
        "compiler and parser disagree on the bare form of halt",
        (
            "dispatch/test_wire.py::test_every_opcode_of_every_cartridge_is_read_back_as_itself",
            "dispatch/test_wire.py::test_halt_is_shared_and_belongs_to_no_cartridge",
        ),
    ),
    "successors depend on the whole path": (
        "successors are keyed on the last token only",
        ("kernel/test_compile.py::test_raise_a_does_not_lead_to_c",),
    ),
    "ten thousand literals": (
        "build time and the cost of a step grow with the number of options",
        (
            "kernel/test_trie_scale.py::test_step_costs_the_same_for_any_number_of_leaves_and_of_legal_ones",
            "kernel/test_search_model.py::test_ten_thousand_literals_have_the_winner_of_brute_force",
        ),
    ),
}


SEEN: dict[str, tuple[str, tuple[str, ...]]] = {
    "code": (
        "foreign text becomes code, or a module that Python cannot read",
        (
            "dispatch/test_toolwriter.py::test_no_description_ends_its_docstring",
            "dispatch/test_toolwriter.py::test_no_field_becomes_code",
            "dispatch/test_toolwriter.py::test_lists_that_once_broke_out_load_and_print_nothing",
            "dispatch/test_toolwriter.py::test_tools_with_one_function_are_refused_whatever_their_order",
            "dispatch/test_toolwriter.py::test_a_long_name_works_or_is_refused_by_name",
            "dispatch/test_toolwriter.py::test_nothing_to_write_exits_with_1",
            "fuzz/test_fuzz_tools.py::test_sixty_hostile_lists_only_define",
        ),
    ),
    "effects of reading": (
        "commands that only read have effects",
        (
            "cartridges/test_toolbox.py::test_a_check_calls_no_handler",
            "cartridges/test_toolbox.py::test_a_session_calls_a_handler_once_a_decision",
            "dispatch/test_handler_calls.py::test_a_replay_takes_the_answers_of_the_log",
            "dispatch/test_handler_calls.py::test_a_session_that_goes_on_calls_for_its_new_decisions_only",
            "dispatch/test_replay_acting.py::test_nothing_but_a_session_acts",
        ),
    ),
    "threads": (
        "native state is shared without a lock",
        (
            "kernel/test_threads.py::test_eight_threads_on_one_model_get_the_answers_of_one",
            "kernel/test_threads.py::test_a_decision_is_not_broken_into",
        ),
    ),
    "crashing schemas": (
        "depth, time or memory is set by the input; the path stops above the fault",
        (
            "kernel/test_schema_limits.py::test_hostile_schemas_end_in_a_sentence",
            "kernel/test_schema_limits.py::test_a_thousand_properties_are_held",
            "kernel/test_schema_limits.py::test_path_and_keyword_lead_to_the_fault",
            "fuzz/test_fuzz_schemas.py::test_hostile_schemas_are_held_or_refused",
        ),
    ),
    "mask and parser": (
        "mask and parser read one shape in two ways; rules for arguments differ from those below",
        (
            "kernel/test_number_bounds.py::test_mask_recogniser_parser_and_jsonschema_agree_on_bounds",
            "kernel/test_schema_differential.py::test_mask_parser_and_jsonschema_agree",
            "kernel/test_schema_limits.py::test_an_object_that_requires_what_it_cannot_hold_is_refused_at_both_levels",
            "kernel/test_schema_forms.py::test_recursion_at_the_root_of_arguments_is_that_of_an_object_below",
        ),
    ),
    "ordinary schemas": (
        "words that only describe are taken for constraints",
        (
            "kernel/test_schema_forms.py::test_random_calls_of_an_ordinary_tool_validate",
            "kernel/test_mcp_tools.py::test_every_tool_of_a_public_server_is_held",
        ),
    ),
    "the terminal": (
        "foreign text is read as markup, or goes out raw",
        (
            "kernel/test_shown.py::test_what_steers_or_hides_becomes_an_escape",
            "dispatch/test_foreign_text.py::test_every_command_shows_foreign_text_literally",
            "dispatch/test_foreign_text.py::test_a_board_is_text_and_steers_nothing",
            "dispatch/test_foreign_text.py::test_cells_of_csv_are_no_formulas",
        ),
    ),
    "what a log proves": (
        "docs promise more than is checked",
        (
            "dispatch/test_log_proof.py::test_a_line_without_a_promised_field_is_invalid",
            "dispatch/test_log_proof.py::test_fields_of_one_line_that_contradict_each_other_are_found",
            "dispatch/test_log_proof.py::test_another_legal_instruction_is_found_though_the_rest_is_played_on",
            "dispatch/test_log_proof.py::test_deciding_again_trusts_no_logged_margin",
            "dispatch/test_log_proof.py::test_a_keyed_log_that_was_rewritten_is_found",
            "dispatch/test_log_proof.py::test_an_argument_that_is_no_number_is_invalid",
            "fuzz/test_fuzz_logs.py::test_a_spoiled_log_ends_in_a_verdict",
        ),
    ),
    "model files": (
        "llama.cpp asserts on data that can be read first; a begin token comes from a default",
        (
            "kernel/test_gguf.py::test_two_tokens_of_one_text_are_refused_before_the_load",
            "kernel/test_gguf.py::test_only_a_token_that_the_file_names_stands_before_a_prompt",
        ),
    ),
    "text files": (
        "text files are read in several ways",
        (
            "kernel/test_textfile.py::test_lines_end_at_lf_and_crlf_only",
            "dispatch/test_text_files.py::test_a_file_of_another_system_means_the_same",
        ),
    ),
    "scores": (
        "a number in the docs was not measured at its worst",
        ("kernel/test_api.py::test_the_same_question_scores_the_same_whatever_is_in_memory",),
    ),
    "failed handlers": (
        "an exception is told as a result",
        (
            "dispatch/test_failed_actions.py::test_call_exits_with_1_and_shows_no_result",
            "dispatch/test_failed_actions.py::test_run_goes_on_logs_it_counts_it_and_exits_with_1",
        ),
    ),
    "streams, signals and numbers": (
        "closed input, full output, a number without a bound, a signal while modules load",
        (
            "dispatch/test_every_command.py::test_odd_surroundings_change_nothing",
            "dispatch/test_every_command.py::test_numbers_out_of_their_bounds_are_misuse",
            "dispatch/test_every_command.py::test_misuse_is_one_line_and_code_2",
            "dispatch/test_signals.py::test_a_signal_while_modules_load_says_nothing",
        ),
    ),
    "small ones": (
        "an index out of range, a row of another width, arithmetic on infinities, messages that mislead",
        (
            "kernel/test_choose.py::test_an_opcode_that_is_not_there_is_no_legal_one",
            "kernel/test_choose.py::test_a_row_of_another_width_is_refused",
            "kernel/test_choose.py::test_no_number_is_lost_without_a_word",
            "kernel/test_api.py::test_options_that_are_none_are_refused",
            "dispatch/test_replay_command.py::test_the_command_that_run_prints_plays_the_log_again",
            "dispatch/test_evaluate.py::test_each_wrong_answer_is_told",
            "test_package.py::test_the_installed_packages_are_typed_for_a_users_program",
        ),
    ),
}
"""Kinds of fault that were seen in this project, and the tests that hold each of them."""


@functools.cache
def functions(path: Path) -> frozenset[str]:
    """The test functions of a file."""
    tree = ast.parse(path.read_text()) if path.is_file() else ast.Module([], [])
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


@pytest.mark.parametrize("case", [*CASES, *SEEN])
def test_the_tests_of_a_case_are_there(case: str) -> None:
    """Every name in the table is a function of that file, and there once."""
    _, names = (CASES | SEEN)[case]
    assert len(set(names)) == len(names) > 0
    missing = [name for name in names if name.split("::")[1] not in functions(TESTS / name.split("::")[0])]
    assert missing == []


def test_all_twenty_cases_are_in_the_table() -> None:
    """In order."""
    assert [case for case in CASES if len(case) == 3] == [f"S{n:02}" for n in range(1, 21)]
