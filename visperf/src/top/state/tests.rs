//! Sequences of keys and updates, and their results.

use super::*;
use serde_json::json;

pub(crate) fn place(host: &str) -> Place {
    Place { domain: "alpha".to_owned(), host: host.to_owned() }
}

pub(crate) fn host(name: &str) -> Host {
    Host {
        place: place(name),
        is_live: true,
        load: Some(0.5),
        cpu: Some(0.12),
        memory_used: Some(f64::from(1 << 30)),
        memory_total: Some(4.0 * f64::from(1 << 30)),
        trouble: None,
    }
}

pub(crate) fn process(host: &str, pid: u32, cpu: f64) -> Process {
    let value = json!({"pid": pid, "start_ns": 5, "cpu": cpu, "rss_bytes": u64::from(pid) << 20,
        "read_bytes": 0, "written_bytes": 0, "cpu_seconds": 61.0, "name": format!("burn{pid}"), "user": "ada",
        "threads": 2, "state": "running", "command": format!("burn --number {pid}")});
    Process::of(&place(host), &serde_json::from_value(value).expect("a process"))
}

/// Two hosts, each with a process of high and one of low CPU use.
pub(crate) fn round() -> Round {
    Round {
        hosts: vec![host("wn01"), host("wn02")],
        processes: vec![process("wn01", 1, 0.9), process("wn02", 2, 0.5), process("wn01", 3, 0.1)],
        total: 40,
        notes: Vec::new(),
        answered: 2,
    }
}

pub(crate) fn at(secs: u64) -> Moment {
    Moment(Duration::from_secs(secs))
}

pub(crate) fn state() -> State {
    let scope = Scope { only: None, order: Order::Cpu, is_filtered: false };
    let mut state = State::new(scope, String::new(), Duration::from_secs(2), at(0));
    state.handle_update(Update::Round(round()), at(1));
    state.fit(10);
    state
}

pub(crate) fn press(state: &mut State, code: KeyCode) -> Option<Action> {
    state.handle_key(KeyEvent::new(code, KeyModifiers::NONE))
}

pub(crate) fn typed(state: &mut State, text: &str) -> Vec<Action> {
    text.chars().filter_map(|c| press(state, KeyCode::Char(c))).collect()
}

fn pids(state: &State) -> Vec<u32> {
    state.shown.iter().map(|process| process.id.1.pid).collect()
}

#[test]
fn keys_sort_and_ask_again_where_the_sensor_would_choose_others() {
    let mut state = state();
    assert_eq!(pids(&state), [1, 2, 3]);
    let asked = typed(&mut state, "m");
    assert_eq!(asked, [Action::Show(Scope { only: None, order: Order::Memory, is_filtered: false })]);
    assert_eq!(pids(&state), [3, 2, 1]);
    assert_eq!(typed(&mut state, "m"), [], "it is so already");
    assert_eq!(typed(&mut state, "c").len(), 1);
    assert_eq!(typed(&mut state, "t"), [], "those with most CPU are asked for either way");
    assert_eq!(typed(&mut state, "q"), [Action::Quit]);
    let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(state.handle_key(interrupt), Some(Action::Quit));
}

#[test]
fn a_filter_is_typed_kept_and_taken_back() {
    let mut state = state();
    assert_eq!(typed(&mut state, "/").len(), 0);
    // The first letter makes all processes needed, not those that use most; letters are no commands now.
    assert_eq!(typed(&mut state, "wn01 q").len(), 1);
    assert_eq!(pids(&state), [0_u32; 0]);
    press(&mut state, KeyCode::Backspace);
    press(&mut state, KeyCode::Backspace);
    press(&mut state, KeyCode::Enter);
    assert_eq!((pids(&state), state.filter.as_str(), &state.mode), (vec![1, 3], "wn01", &Mode::Rows));
    typed(&mut state, "/x");
    assert_eq!(pids(&state), [0_u32; 0]);
    press(&mut state, KeyCode::Esc);
    assert_eq!((pids(&state), state.filter.as_str()), (vec![1, 3], "wn01"));
    typed(&mut state, "/");
    typed(&mut state, &"y".repeat(FILTER_MAX_CHARS * 2));
    assert_eq!(state.filter.chars().count(), FILTER_MAX_CHARS);
    let clear = KeyEvent::new(KeyCode::Char('u'), KeyModifiers::CONTROL);
    let wanted = Scope { only: None, order: Order::Cpu, is_filtered: false };
    assert_eq!(state.handle_key(clear), Some(Action::Show(wanted)));
    assert_eq!((state.filter.as_str(), pids(&state).len()), ("", 3));
    press(&mut state, KeyCode::Esc);
    assert_eq!((state.handle_key(clear), state.filter.as_str()), (None, "wn01"), "it is typed no more");
}

#[test]
fn the_mark_follows_its_process_and_stays_on_its_row_when_that_is_gone() {
    let mut state = state();
    press(&mut state, KeyCode::Down);
    assert_eq!(state.marked_row(), Some(0), "the first key marks the first row");
    press(&mut state, KeyCode::Down);
    assert_eq!(state.marked, Some(process("wn02", 2, 0.5).id));
    let mut next = round();
    next.processes[1].cpu = Some(2.0);
    state.handle_update(Update::Round(next.clone()), at(3));
    assert_eq!((state.marked_row(), pids(&state)), (Some(0), vec![2, 1, 3]));
    next.processes.remove(1);
    state.handle_update(Update::Round(next.clone()), at(5));
    assert_eq!(state.marked_row(), Some(0));
    next.processes.clear();
    state.handle_update(Update::Round(next), at(7));
    assert_eq!((state.marked_row(), state.first), (None, 0));
    press(&mut state, KeyCode::Down);
    assert_eq!(state.marked_row(), None);
}

#[test]
fn many_rows_scroll_with_the_mark() {
    let mut state = state();
    let mut many = round();
    many.processes = (1..=100).map(|pid| process("wn01", pid, 1.0 / f64::from(pid))).collect();
    state.handle_update(Update::Round(many), at(3));
    for (key, row, first) in [
        (KeyCode::Down, 0, 0),
        (KeyCode::PageDown, 9, 0),
        (KeyCode::PageDown, 18, 9),
        (KeyCode::End, 99, 90),
        (KeyCode::Up, 98, 90),
        (KeyCode::Home, 0, 0),
        (KeyCode::Up, 0, 0),
    ] {
        press(&mut state, key);
        assert_eq!((state.marked_row(), state.first), (Some(row), first), "{key:?}");
    }
    press(&mut state, KeyCode::End);
    state.fit(200);
    assert_eq!(state.first, 0, "a larger screen has room for all");
    state.fit(1);
    assert_eq!(state.first, 99);
    state.fit(0);
}

#[test]
fn a_host_is_chosen_from_the_list() {
    let mut state = state();
    typed(&mut state, "h");
    assert_eq!(state.mode, Mode::Hosts(0));
    for _ in 0..5 {
        press(&mut state, KeyCode::Down);
    }
    assert_eq!(state.mode, Mode::Hosts(2));
    let asked = press(&mut state, KeyCode::Enter);
    let wanted = Scope { only: Some(place("wn02")), order: Order::Cpu, is_filtered: false };
    assert_eq!((asked, pids(&state)), (Some(Action::Show(wanted)), vec![2]));
    typed(&mut state, "h");
    assert_eq!(state.mode, Mode::Hosts(2), "it begins at the one that is shown");
    press(&mut state, KeyCode::Esc);
    assert_eq!((state.mode.clone(), pids(&state)), (Mode::Rows, vec![2]));
}

#[test]
fn nothing_is_signalled_before_it_is_confirmed_and_the_process_is_the_one_that_was_shown() {
    let mut state = state();
    assert_eq!(typed(&mut state, "k"), []);
    assert_eq!(state.result, Some(Err("mark a process first: arrow keys".to_owned())));
    press(&mut state, KeyCode::Down);
    for refusal in ["kn", "kq", "k\u{1b}", "kk"] {
        assert_eq!(typed(&mut state, refusal), [], "{refusal:?}");
        assert_eq!(state.mode, Mode::Rows);
    }
    typed(&mut state, "K");
    // While the question is shown, the rows change; the signal still goes to the process shown.
    let mut next = round();
    next.processes[0].id.1.start_ns = 6;
    state.handle_update(Update::Round(next), at(3));
    assert_eq!(typed(&mut state, "y"), [Action::Give(process("wn01", 1, 0.9).id, Signal::Kill)]);
    state.handle_update(Update::Given(Err("not permitted".to_owned())), at(4));
    assert_eq!(state.result, Some(Err("not permitted".to_owned())));
    press(&mut state, KeyCode::Up);
    assert_eq!(state.result, None);
}

#[test]
fn paused_rows_stand_still_and_a_lost_connection_is_shown_since_the_last_answer() {
    let mut state = state();
    typed(&mut state, " ");
    let mut next = round();
    next.processes.truncate(1);
    state.handle_update(Update::Round(next.clone()), at(3));
    assert_eq!((pids(&state).len(), &state.link), (3, &Link::Answered(at(3))));
    state.handle_update(Update::Lost("refused".to_owned()), at(9));
    state.handle_update(Update::Lost("still".to_owned()), at(11));
    assert_eq!(state.link, Link::Lost(at(3), "still".to_owned()));
    typed(&mut state, " ");
    state.handle_update(Update::Round(next), at(12));
    assert_eq!((pids(&state), &state.link), (vec![1], &Link::Answered(at(12))));
    let scope = Scope { only: None, order: Order::Cpu, is_filtered: false };
    let mut fresh = State::new(scope, String::new(), Duration::from_secs(2), at(5));
    fresh.handle_update(Update::Lost("no peer".to_owned()), at(8));
    assert_eq!(fresh.link, Link::Lost(at(5), "no peer".to_owned()));
}
