//! Screens as rendered: of the usual size, large, too small, with and without colours.

use super::*;
use crate::top::state::tests::{at, host, place, press, process, round, state, typed};
use crate::top::state::{Round, Update};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::KeyCode;
use ratatui::style::Color;

fn drawn(state: &mut State, (width, height): (u16, u16), has_colors: bool, now: u64) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a screen");
    terminal.draw(|frame| draw(frame, state, Theme::new(has_colors), at(now))).expect("drawn");
    terminal.backend().buffer().clone()
}

fn lines(buffer: &Buffer) -> Vec<String> {
    let row = |y| {
        let text: String = (0..buffer.area.width).map(|x| buffer[(x, y)].symbol()).collect();
        text.trim_end().to_owned()
    };
    (0..buffer.area.height).map(row).collect()
}

fn screen(state: &mut State, size: (u16, u16)) -> Vec<String> {
    lines(&drawn(state, size, false, 2))
}

#[test]
fn the_usual_screen() {
    let found = screen(&mut state(), (80, 24));
    let expected = [
        "visperf top  alpha  by cpu  every 2 s",
        "2 of 2 hosts live, 3 of 40 processes shown",
        "wn01 load 0.50 cpu 12 % memory 1.0 GiB of 4.0 GiB   +1",
        "HOST             PID USER     STATE       CPU    MEMORY      IO/S NAME",
        "wn01               1 ada      running    90 %   1.0 MiB           burn1",
        "wn02               2 ada      running    50 %   2.0 MiB           burn2",
        "wn01               3 ada      running    10 %   3.0 MiB           burn3",
    ];
    assert_eq!(found[..expected.len()], expected, "{found:#?}");
    assert!(found[7..23].iter().all(String::is_empty), "{found:#?}");
    assert_eq!(found[23], "q quit  c m i t sort  / filter  h host  k kill  space pause  ? help");
}

#[test]
fn a_large_screen_has_every_column() {
    let found = screen(&mut state(), (200, 60));
    let heads = "HOST                   PID USER         STATE       CPU    MEMORY      IO/S   CPU TIME  THR NAME             \
                 COMMAND";
    assert_eq!(found[3], heads);
    assert!(found[4].ends_with("1:01    2 burn1            burn --number 1"), "{}", found[4]);
    assert!(found[2].contains("wn02 load"), "{}", found[2]);
}

#[test]
fn no_screen_is_too_small() {
    for width in [1, 5, 20, 79] {
        for height in 1..12 {
            for keys in ["", "?", "h", "/x", " "] {
                let mut state = state();
                press(&mut state, KeyCode::Down);
                typed(&mut state, keys);
                assert_eq!(screen(&mut state, (width, height)).len(), usize::from(height));
            }
            let mut state = state();
            press(&mut state, KeyCode::Down);
            typed(&mut state, "k");
            screen(&mut state, (width, height));
        }
    }
}

#[test]
fn a_connection_that_is_lost_or_slow_is_seen() {
    let mut state = state();
    let fresh = lines(&drawn(&mut state, (80, 24), false, 2));
    assert!(!fresh[1].contains("NO "), "{}", fresh[1]);
    let slow = lines(&drawn(&mut state, (80, 24), false, 9));
    assert_eq!(slow[1], "NO ANSWER for 8 s");
    state.handle_update(Update::Lost("connection\nrefused".to_owned()), at(9));
    let lost = drawn(&mut state, (80, 24), false, 12);
    assert_eq!(lines(&lost)[1], "NO CONNECTION for 11 s, trying again: connection refused");
    let row = lines(&lost).iter().position(|line| line.contains("burn1")).expect("the old rows");
    let cell = &lost[(0, u16::try_from(row).expect("small"))];
    assert!(cell.modifier.contains(ratatui::style::Modifier::DIM), "what is old is dimmed");
    let scope = state.scope();
    let mut waiting = State::new(scope, String::new(), Duration::from_secs(2), at(0));
    assert_eq!(screen(&mut waiting, (80, 24))[1], "waiting for the first answer");
}

#[test]
fn without_colours_there_are_none_and_the_mark_is_seen_all_the_same() {
    let marked = |has_colors| {
        let mut state = state();
        press(&mut state, KeyCode::Down);
        state.handle_update(Update::Given(Err("no".to_owned())), at(1));
        drawn(&mut state, (80, 24), has_colors, 2)
    };
    let has_color = |buffer: &Buffer| {
        buffer.content.iter().any(|cell| cell.fg != Color::Reset || cell.bg != Color::Reset)
    };
    let plain = marked(false);
    assert!(!has_color(&plain) && has_color(&marked(true)));
    assert!(plain[(0, 4)].modifier.contains(ratatui::style::Modifier::REVERSED));
    assert_eq!(lines(&plain)[23], "no");
}

#[test]
fn what_was_said_of_an_order_is_shown_whole() {
    let mut state = state();
    let why = "no certificate of an operator is at hand; ".repeat(5) + "type this and that";
    state.handle_update(Update::Given(Err(why)), at(1));
    let found = screen(&mut state, (80, 24));
    assert!(found[20..].join(" ").trim_end().ends_with("type this and that"), "{found:#?}");
    press(&mut state, KeyCode::Down);
    assert!(screen(&mut state, (80, 24))[23].starts_with("q quit"));
}

#[test]
fn the_filter_has_a_line_and_the_question_names_the_process() {
    let mut state = state();
    typed(&mut state, "/burn2");
    let found = screen(&mut state, (80, 24));
    assert_eq!(found[3], "filter: burn2_   (Enter keeps it, Esc takes it back)");
    assert!(found[5].contains("burn2") && found[6].is_empty(), "{found:#?}");
    press(&mut state, KeyCode::Enter);
    press(&mut state, KeyCode::Down);
    typed(&mut state, "K");
    let found = screen(&mut state, (80, 24)).join("\n");
    for part in
        ["is it meant?", "send KILL to burn2 (2) of ada", "on wn02 of alpha", "burn --number 2", "y sends it"]
    {
        assert!(found.contains(part), "{part}: {found}");
    }
    typed(&mut state, "n?");
    let help = screen(&mut state, (80, 24)).join("\n");
    assert!(help.contains("send the marked process TERM") && help.contains("docs/control.md"), "{help}");
}

#[test]
fn a_host_in_trouble_costs_its_rows_and_says_why() {
    let mut state = state();
    let mut silent = host("wn03");
    silent.is_live = false;
    let mut refusing = host("wn02");
    refusing.trouble = Some("is not\nconnected".to_owned());
    let hosts = vec![refusing, silent];
    let processes = vec![process("wn01", 1, 0.5)];
    let notes = vec!["beta: no answer".to_owned()];
    state.handle_update(Update::Round(Round { hosts, processes, notes, ..round() }), at(1));
    let found = screen(&mut state, (80, 24));
    assert_eq!(found[1], "1 of 2 hosts live, 1 of 40 processes shown; beta: no answer");
    assert_eq!(found[2], "wn02: is not connected   wn03 is silent");
    typed(&mut state, "h");
    press(&mut state, KeyCode::Down);
    let list = screen(&mut state, (80, 24)).join("\n");
    assert!(list.contains("all hosts") && list.contains("alpha  wn02: is not connected"), "{list}");
    press(&mut state, KeyCode::Enter);
    assert_eq!(state.only, Some(place("wn02")));
    assert!(screen(&mut state, (80, 24))[0].contains("wn02 of alpha"));
}

#[test]
fn a_filter_that_is_wrong_says_so_whole_below_it() {
    let mut state = state();
    typed(&mut state, "/cpu > 0.5 and warmth > 3 and name ~ \"^slurm\"");
    let found = screen(&mut state, (80, 24));
    assert_eq!(found[3], "filter: cpu > 0.5 and warmth > 3 and name ~ \"^slurm\"_");
    let text = found[4..].iter().take_while(|line| !line.starts_with("HOST")).cloned().collect::<Vec<_>>();
    let text = text.join(" ");
    assert!(
        text.starts_with("all are shown, for this is no filter yet: expected a number of a process"),
        "{text}"
    );
    let whole = Filter::new(&state.filter).expect_err("there is no warmth");
    assert!(
        text.split_whitespace().collect::<String>().ends_with(&whole.split_whitespace().collect::<String>()),
        "{text}"
    );
}

#[test]
fn a_narrow_screen_cuts_no_number() {
    let mut state = state();
    let mut large = round();
    large.processes[0].rss_bytes = 1018.1 * f64::from(1 << 20);
    state.handle_update(Update::Round(large), at(1));
    let found = screen(&mut state, (80, 24));
    assert!(found[4].contains("   90 %  1018 MiB "), "{}", found[4]);
    let found = screen(&mut state, (40, 24));
    let expected =
        ["wn01 load 0.50 cpu 12 %   +1", "    PID    CPU    MEMORY NAME", "      1   90 %  1018 MiB burn1"];
    assert_eq!(found[2..5], expected, "{found:#?}");
    typed(&mut state, "t");
    let found = screen(&mut state, (80, 24));
    assert!(found[3].contains("CPU TIME") && found[4].contains(" 1:01 burn"), "{found:#?}");
}
