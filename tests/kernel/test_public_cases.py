"""Twenty kinds of fault that others have reported, and the tests of ours that hold each of them.

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
            "kernel/test_trie_scale.py::test_step_costs_the_same_for_ten_legal_leaves_and_for_all_but_ten",
            "kernel/test_search_model.py::test_ten_thousand_literals_have_the_winner_of_brute_force",
        ),
    ),
}


@functools.cache
def functions(path: Path) -> frozenset[str]:
    """The test functions of a file."""
    tree = ast.parse(path.read_text()) if path.is_file() else ast.Module([], [])
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


@pytest.mark.parametrize("case", list(CASES))
def test_the_tests_of_a_case_are_there(case: str) -> None:
    """Every name in the table is a function of that file, and there once."""
    _, names = CASES[case]
    assert len(set(names)) == len(names) > 0
    missing = [name for name in names if name.split("::")[1] not in functions(TESTS / name.split("::")[0])]
    assert missing == []


def test_all_twenty_cases_are_in_the_table() -> None:
    """In order."""
    assert [case for case in CASES if len(case) == 3] == [f"S{n:02}" for n in range(1, 21)]
