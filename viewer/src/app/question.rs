//! A question in the middle of the window, and its answer: by a click, by Return the first, by Esc the last.
//!
//! Rule: a question is seen before it is answered: Return that was pressed before it appeared, or is held
//! since, answers nothing; where a button has the focus Return is that button's. Other keys do nothing
//! meanwhile (`keys`). Not here: what is asked (`flock::kill`, `sensors::confirm`).

use super::command::{Commands, Question};
use super::theme::{self, Colors};
use egui::{Button, Context, Event, Id, Key, Modal, RichText};

/// The question that is open.
#[derive(Clone, Default)]
pub(super) struct QuestionPanel {
    question: Option<Question>,
}

impl QuestionPanel {
    pub(super) fn is_open(&self) -> bool {
        self.question.is_some()
    }

    pub(super) fn open(&mut self, question: Question) {
        self.question = Some(question);
    }

    pub(super) fn close(&mut self) {
        self.question = None;
    }

    /// Draw the question, and close it once it is answered.
    pub(super) fn show(&mut self, ctx: &Context) -> Commands {
        let mut commands = Commands::default();
        if let Some(question) = &self.question
            && let Some(number) = ask(ctx, question)
        {
            question.answers[number].commands.iter().for_each(|command| commands.push(command.clone()));
            self.question = None;
        }
        commands
    }
}

/// Draw a question; the number of the answer that is given.
fn ask(ctx: &Context, question: &Question) -> Option<usize> {
    let id = Id::new(question.kind);
    let is_new = appears(ctx, id.with("asked"));
    if is_new && let Some(focused) = ctx.memory(egui::Memory::focused) {
        ctx.memory_mut(|memory| memory.surrender_focus(focused));
    }
    let colors = Colors::of(ctx);
    let mut given = None;
    let modal = Modal::new(id).show(ctx, |ui| {
        ui.set_width(380.0);
        ui.label(RichText::new(&question.title).strong().size(15.0));
        ui.add_space(4.0);
        for line in &question.lines {
            ui.label(line);
        }
        ui.label(RichText::new(question.note).size(theme::SMALL).color(colors.weak));
        ui.add_space(8.0);
        ui.horizontal(|ui| {
            for (number, answer) in question.answers.iter().enumerate() {
                let text = RichText::new(answer.text);
                let text = if answer.is_dangerous { text.color(colors.failed()) } else { text };
                if ui.add(Button::new(text)).on_hover_text(answer.hint).clicked() {
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
        given = given.or(question.answers.len().checked_sub(1));
    }
    given
}

/// Whether it was not there in the pass before.
fn appears(ctx: &Context, id: Id) -> bool {
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
