//! A question in the middle of the window, and its answer: by a click, by Return the first, by Esc the last.
//!
//! Rule: a question is seen before it is answered: Return that was pressed before it stood there, or is held since, answers
//! nothing; where a button has the focus Return is that button's. Other keys do nothing meanwhile (`keys`).
//! Not here: what is asked and what follows (`flock::kill`, `sensors::confirm`).

use egui::{Button, Context, Event, Id, Key, Modal, RichText, Ui};

/// An answer: its words, and what is said of it under the pointer.
pub(super) type Choice<'a> = (RichText, &'a str);

/// Ask it, with what `draw` says above the answers; the number of the one that is given, once one is.
pub(super) fn ask(
    ctx: &Context,
    name: &'static str,
    draw: impl FnOnce(&mut Ui),
    choices: &[Choice<'_>],
) -> Option<usize> {
    let is_new = comes_up(ctx, Id::new(name).with("asked"));
    if is_new && let Some(focused) = ctx.memory(egui::Memory::focused) {
        ctx.memory_mut(|memory| memory.surrender_focus(focused));
    }
    let mut given = None;
    let modal = Modal::new(Id::new(name)).show(ctx, |ui| {
        ui.set_width(380.0);
        draw(ui);
        ui.add_space(8.0);
        ui.horizontal(|ui| {
            for (number, (words, hint)) in choices.iter().enumerate() {
                if ui.add(Button::new(words.clone())).on_hover_text(*hint).clicked() {
                    given = Some(number);
                }
            }
        });
    });
    let is_free = ctx.memory(|memory| memory.focused().is_none());
    if given.is_none() && !is_new && is_free && is_return_pressed(ctx) {
        given = Some(0);
    }
    if modal.should_close() {
        given = given.or(choices.len().checked_sub(1));
    }
    given
}

/// Whether it stood not there in the pass before.
fn comes_up(ctx: &Context, id: Id) -> bool {
    let pass = ctx.cumulative_pass_nr();
    let last = ctx.data_mut(|data| {
        let last = data.get_temp::<u64>(id);
        data.insert_temp(id, pass);
        last
    });
    last.is_none_or(|last| last + 1 < pass)
}

fn is_return_pressed(ctx: &Context) -> bool {
    let is_return = |event: &Event| {
        let Event::Key { key: Key::Enter, pressed, repeat, modifiers, .. } = event else { return false };
        *pressed && !repeat && modifiers.is_none()
    };
    ctx.input(|input| input.events.iter().any(is_return))
}
