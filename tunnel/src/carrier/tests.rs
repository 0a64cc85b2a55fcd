//! Two ends on an intact path, a path that is cut, and a path that is silent.

use super::*;

fn at(millis: u64) -> Moment {
    Moment(Duration::from_millis(millis))
}

/// Two ends with a path attached.
fn pair() -> (Carrier, Carrier) {
    let (mut one, mut other) = (Carrier::new(at(0)), Carrier::new(at(0)));
    one.handle_attached(0, at(0)).expect("nothing was sent");
    other.handle_attached(0, at(0)).expect("nothing was sent");
    (one, other)
}

fn carry(from: &mut Carrier, to: &mut Carrier, now: Moment) {
    while let Some(piece) = from.poll_output(1 << 16, now) {
        to.handle_bytes(&piece, now).expect("frames");
    }
}

fn taken(carrier: &mut Carrier, now: Moment) -> Vec<u8> {
    let mut bytes = vec![0; carrier.waiting()];
    carrier.read(&mut bytes, now);
    bytes
}

#[test]
fn what_is_written_comes_over_once() {
    let (mut one, mut other) = pair();
    assert_eq!(one.write(b"hello", at(1)), 5);
    carry(&mut one, &mut other, at(1));
    assert_eq!(taken(&mut other, at(1)), b"hello");
    assert!(!one.is_flushed());
    carry(&mut other, &mut one, at(1_001));
    assert!(one.is_flushed(), "it is acknowledged within a second");
}

#[test]
fn another_path_goes_on_where_the_first_was_cut() {
    let (mut one, mut other) = pair();
    one.write(b"first", at(1));
    carry(&mut one, &mut other, at(1));
    one.write(b" lost", at(2));
    let _ = one.poll_output(1 << 16, at(2)).expect("something for a path that is cut");
    one.handle_detached(at(3));
    other.handle_detached(at(3));
    assert_eq!(one.poll_output(1 << 16, at(4)), None, "there is no path");
    one.write(b" and last", at(4));
    let cursors = (other.received(), one.received());
    one.handle_attached(cursors.0, at(5)).expect("its own other end");
    other.handle_attached(cursors.1, at(5)).expect("its own other end");
    carry(&mut one, &mut other, at(5));
    assert_eq!(taken(&mut other, at(5)), b"first lost and last");
}

#[test]
fn a_reader_that_takes_nothing_holds_the_writer_up() {
    let (mut one, mut other) = pair();
    let page = vec![7; WINDOW_BYTES];
    assert_eq!(one.write(&page, at(1)), WINDOW_BYTES);
    assert_eq!(one.write(&page, at(1)), 0, "no more is kept");
    carry(&mut one, &mut other, at(1));
    carry(&mut other, &mut one, at(1));
    assert_eq!(one.write(&page, at(2)), WINDOW_BYTES, "it is all there, so that it is not kept here");
    carry(&mut one, &mut other, at(2));
    assert_eq!(other.waiting(), WINDOW_BYTES, "but no more than a window waits");
    assert_eq!(taken(&mut other, at(3)).len(), WINDOW_BYTES);
    carry(&mut other, &mut one, at(3));
    carry(&mut one, &mut other, at(3));
    assert_eq!(other.waiting(), WINDOW_BYTES);
}

#[test]
fn an_end_comes_over_behind_every_byte() {
    let (mut one, mut other) = pair();
    one.write(b"last words", at(1));
    one.close(at(1));
    assert_eq!(one.write(b"more", at(1)), 0);
    carry(&mut one, &mut other, at(1));
    assert_eq!((one.end(), other.end()), (None, Some(End::Closed)));
    assert!(!other.is_read_out());
    assert_eq!(taken(&mut other, at(1)), b"last words");
    assert!(other.is_read_out());
    carry(&mut other, &mut one, at(1));
    assert_eq!(one.end(), Some(End::Closed));
}

#[test]
fn an_end_does_not_wait_long_for_consent() {
    let (mut one, _) = pair();
    one.close(at(1));
    assert!(one.poll_output(1 << 16, at(1)).is_some());
    let mut ack = Vec::new();
    Frame::Ack { received: 0, taken: 0 }.write(&mut ack);
    let until = at(1).plus(CLOSE_MAX);
    let mut now = at(1);
    while now < until {
        one.handle_bytes(&ack, now).expect("a frame of a peer that does not let go");
        one.handle_timeout(now);
        assert_eq!(one.end(), None);
        while one.poll_output(1 << 16, now).is_some() {}
        now = one.poll_timeout().expect("something is due");
    }
    assert_eq!(now, until, "it is due then");
    one.handle_timeout(now);
    assert_eq!(one.end(), Some(End::GivenUp));

    let (mut one, _) = pair();
    one.handle_detached(at(1));
    one.close(at(2));
    assert_eq!(one.poll_timeout(), Some(at(2).plus(CLOSE_MAX)), "without a path, too");
}

#[test]
fn a_silent_path_is_given_up_and_a_carrier_without_one_ends() {
    let (mut one, _) = pair();
    let mut now = at(0);
    for _ in 0..1_000 {
        one.handle_timeout(now);
        while one.poll_output(1 << 16, now).is_some() {}
        match one.poll_timeout() {
            Some(next) if one.is_carried() => now = next,
            _ => break,
        }
    }
    assert_eq!((one.is_carried(), now), (false, Moment(SILENCE_MAX)));
    one.handle_timeout(now.plus(RESUME_MAX));
    assert_eq!(one.end(), Some(End::Lost));
}

#[test]
fn what_the_other_end_may_not_say_is_reported() {
    let (mut one, _) = pair();
    one.write(b"abc", at(1));
    let mut piece = Vec::new();
    Frame::Ack { received: 4, taken: 0 }.write(&mut piece);
    assert_eq!(one.handle_bytes(&piece, at(1)), Err(Error::Cursor { from: 0, to: 3, found: 4 }));
    assert!(one.handle_attached(9, at(1)).is_err(), "another carrier's");
    let mut flood = Vec::new();
    let bytes = vec![0; DATA_LEN_MAX_BYTES];
    for number in 0..=(WINDOW_BYTES / DATA_LEN_MAX_BYTES) as u64 {
        Frame::Data { offset: number * DATA_LEN_MAX_BYTES as u64, bytes: &bytes }.write(&mut flood);
    }
    assert_eq!(one.handle_bytes(&flood, at(1)), Err(Error::Flood));
    assert!(one.handle_bytes(&[77], at(1)).is_err());
}

#[test]
fn what_a_standing_path_loses_is_sent_again() {
    let (mut one, mut other) = pair();
    one.write(b"lost", at(1));
    let _ = one.poll_output(1 << 16, at(1)).expect("something that does not come over");
    carry(&mut other, &mut one, at(5_500));
    one.handle_timeout(Moment(RESEND_AFTER).plus(Duration::from_millis(1)));
    carry(&mut one, &mut other, at(6_100));
    assert_eq!(taken(&mut other, at(6_100)), b"lost");
}
