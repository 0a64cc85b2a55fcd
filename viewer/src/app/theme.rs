//! Every colour and measure of the window, dark and light.
//!
//! Rule: no other file names a colour; a tone has one colour on map, graph, table and timeline.

use super::settings::Look;
use crate::grid::place::HostState;
use crate::scene::Tone;
use egui::containers::menu::{MenuButton, MenuConfig};
use egui::{
    Color32, Context, CornerRadius, FontId, PopupCloseBehavior, Stroke, Theme, ThemePreference, Visuals,
};
use wire::event::Outcome;

/// Size of small text: labels of the map, rows of tables.
pub const SMALL: f32 = 11.5;
/// Size of text.
pub const BODY: f32 = 13.0;
/// Height of a row of a list.
pub const ROW_HEIGHT: f32 = 22.0;

/// The colours of a theme.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Colors {
    /// Behind the map.
    pub ground: Color32,
    /// Behind lists and bars.
    pub panel: Color32,
    /// Domains and cards, on the ground.
    pub card: Color32,
    /// Borders and lines between.
    pub line: Color32,
    pub text: Color32,
    /// Text of less importance.
    pub weak: Color32,
    /// The selection, and what a click acts on.
    pub accent: Color32,
    /// A row under the pointer.
    pub hover: Color32,
    /// Load, from little to much.
    pub load: [Color32; 2],
    asking: Color32,
    working: Color32,
    ok: Color32,
    failed: Color32,
    timeout: Color32,
    cancelled: Color32,
    node_fail: Color32,
    finished: Color32,
    /// Lightness and chroma of programs.
    programs: (f32, f32),
}

const DARK: Colors = Colors {
    ground: rgb(0x12161b),
    panel: rgb(0x191e25),
    card: rgb(0x1c222a),
    line: rgb(0x2d3540),
    text: rgb(0xdbe2ea),
    weak: rgb(0x8c98a8),
    accent: rgb(0x6cb6ff),
    hover: rgb(0x232b35),
    load: [rgb(0x33414f), rgb(0xf0c674)],
    asking: rgb(0x6aa6ff),
    working: rgb(0x39cfc6),
    ok: rgb(0x62d68c),
    failed: rgb(0xff6b62),
    timeout: rgb(0xffb454),
    cancelled: rgb(0x9aa5b3),
    node_fail: rgb(0xdd83ff),
    finished: rgb(0xb5cf84),
    programs: (0.76, 0.13),
};

const LIGHT: Colors = Colors {
    ground: rgb(0xf1f3f6),
    panel: rgb(0xfbfcfd),
    card: rgb(0xffffff),
    line: rgb(0xd6dce4),
    text: rgb(0x1d2530),
    weak: rgb(0x5f6b7a),
    accent: rgb(0x1a6fd0),
    hover: rgb(0xe9eef4),
    load: [rgb(0xd3dae2), rgb(0xc27c0e)],
    asking: rgb(0x2b6fe0),
    working: rgb(0x0b8f88),
    ok: rgb(0x1f8a4c),
    failed: rgb(0xcf3027),
    timeout: rgb(0xb56a00),
    cancelled: rgb(0x6a7686),
    node_fail: rgb(0x9433ba),
    finished: rgb(0x5b7a2c),
    programs: (0.56, 0.14),
};

const fn rgb(code: u32) -> Color32 {
    let [_, red, green, blue] = code.to_be_bytes();
    Color32::from_rgb(red, green, blue)
}

impl Colors {
    /// The colours of the theme in use.
    #[must_use]
    pub fn of(ctx: &Context) -> Colors {
        match ctx.theme() {
            Theme::Dark => DARK,
            Theme::Light => LIGHT,
        }
    }

    #[must_use]
    pub fn tone(&self, tone: Tone) -> Color32 {
        match tone {
            Tone::Asking => self.asking,
            Tone::Working => self.working,
            Tone::Over(Outcome::Ok) => self.ok,
            Tone::Over(Outcome::Failed) => self.failed,
            Tone::Over(Outcome::Timeout) => self.timeout,
            Tone::Over(Outcome::Cancelled) => self.cancelled,
            Tone::Over(Outcome::NodeFail) => self.node_fail,
            Tone::Over(Outcome::Finished) => self.finished,
        }
    }

    /// The colour of errors.
    #[must_use]
    pub fn failed(&self) -> Color32 {
        self.failed
    }

    /// The colour of warnings.
    #[must_use]
    pub fn warned(&self) -> Color32 {
        self.timeout
    }

    #[must_use]
    pub fn state(&self, state: HostState) -> Color32 {
        match state {
            HostState::Unknown | HostState::Left => self.cancelled,
            HostState::Live => self.ok,
            HostState::Silent | HostState::Draining => self.timeout,
            HostState::Down => self.failed,
        }
    }

    /// The colour of a program, by its name: the same on every host, at every start.
    #[must_use]
    pub fn program(&self, name: &str) -> Color32 {
        // FNV-1a: names that differ in a letter differ in colour.
        let mixed = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |mixed, byte| {
            (mixed ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        // Mixed once more (splitmix64): short names alone leave the high bits alike.
        let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let share = |bits: u64| f32::from(u16::try_from(bits & 0xfff).unwrap_or(0)) / 4_096.0;
        let (hue, tint) = (share(mixed >> 40) * std::f32::consts::TAU, share(mixed >> 20) - 0.5);
        let (lightness, chroma) = self.programs;
        // Of a dozen names two have nearly the same hue: lightness and chroma distinguish them.
        oklch(lightness + 0.22 * tint, chroma * (0.7 + 0.4 * share(mixed)), hue)
    }

    /// Colours for a list, where neighbours differ.
    #[must_use]
    #[allow(clippy::cast_precision_loss)]
    pub fn distinct(&self, at: usize) -> Color32 {
        // The golden angle: no two of the first dozens come near each other.
        const GOLDEN: f32 = 2.399_963;
        let (lightness, chroma) = self.programs;
        let tint = [0.0, 0.05, -0.06][at % 3];
        oklch(lightness + tint, chroma, 0.6 + GOLDEN * (at % 1_024) as f32)
    }

    /// The colour of a load from 0 to 1.
    #[must_use]
    #[allow(clippy::cast_possible_truncation)]
    pub fn load(&self, share: f64) -> Color32 {
        self.load[0].lerp_to_gamma(self.load[1], share.clamp(0.0, 1.0) as f32)
    }
}

/// A colour by perceived lightness and chroma, and its hue in radians (Oklch, Ottosson 2020).
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn oklch(lightness: f32, chroma: f32, hue: f32) -> Color32 {
    let (a, b) = (chroma * hue.cos(), chroma * hue.sin());
    let long = (lightness + 0.396_337_78 * a + 0.215_803_76 * b).powi(3);
    let middle = (lightness - 0.105_561_346 * a - 0.063_854_17 * b).powi(3);
    let short = (lightness - 0.089_484_18 * a - 1.291_485_5 * b).powi(3);
    let linear = [
        4.076_741_7 * long - 3.307_711_6 * middle + 0.230_969_94 * short,
        -1.268_438 * long + 2.609_757_4 * middle - 0.341_319_38 * short,
        -0.004_196_086_3 * long - 0.703_418_6 * middle + 1.707_614_7 * short,
    ];
    let [red, green, blue] = linear.map(|light| {
        let light = light.clamp(0.0, 1.0);
        let gamma = if light <= 0.003_130_8 { 12.92 * light } else { 1.055 * light.powf(1.0 / 2.4) - 0.055 };
        (gamma * 255.0).round() as u8
    });
    Color32::from_rgb(red, green, blue)
}

/// Font of the map's labels and of lists.
#[must_use]
pub fn small() -> FontId {
    FontId::proportional(SMALL)
}

#[must_use]
pub fn body() -> FontId {
    FontId::proportional(BODY)
}

/// A menu of several choices: it stays open until a click elsewhere.
pub fn choosing_menu<'a>(name: impl egui::IntoAtoms<'a>) -> MenuButton<'a> {
    MenuButton::new(name).config(MenuConfig::new().close_behavior(PopupCloseBehavior::CloseOnClickOutside))
}

/// Font of figures that change: all digits have the same width.
#[must_use]
pub fn figures() -> FontId {
    FontId::monospace(SMALL)
}

/// Set the colours of both themes.
pub fn set_up(ctx: &Context) {
    for (theme, colors, visuals) in
        [(Theme::Dark, DARK, Visuals::dark()), (Theme::Light, LIGHT, Visuals::light())]
    {
        ctx.set_visuals_of(theme, visuals_of(colors, visuals));
        ctx.style_mut_of(theme, |style| {
            style.spacing.item_spacing = egui::vec2(8.0, 5.0);
            style.spacing.button_padding = egui::vec2(8.0, 3.0);
            style.interaction.tooltip_delay = 0.15;
            style.interaction.selectable_labels = false;
            for (text, font) in &mut style.text_styles {
                font.size = match text {
                    egui::TextStyle::Small => SMALL,
                    egui::TextStyle::Heading => 15.0,
                    egui::TextStyle::Body
                    | egui::TextStyle::Button
                    | egui::TextStyle::Monospace
                    | egui::TextStyle::Name(_) => BODY,
                };
            }
        });
    }
}

fn visuals_of(colors: Colors, mut visuals: Visuals) -> Visuals {
    visuals.panel_fill = colors.panel;
    visuals.window_fill = colors.panel;
    visuals.window_stroke = Stroke::new(1.0, colors.line);
    visuals.extreme_bg_color = colors.ground;
    visuals.faint_bg_color = colors.hover;
    visuals.hyperlink_color = colors.accent;
    visuals.warn_fg_color = colors.timeout;
    visuals.error_fg_color = colors.failed;
    visuals.selection.bg_fill = colors.accent.gamma_multiply(0.28);
    visuals.selection.stroke = Stroke::new(1.0, colors.text);
    visuals.weak_text_color = Some(colors.weak);
    let widgets = &mut visuals.widgets;
    widgets.noninteractive.bg_fill = colors.panel;
    widgets.noninteractive.bg_stroke = Stroke::new(1.0, colors.line);
    widgets.noninteractive.fg_stroke = Stroke::new(1.0, colors.text);
    widgets.inactive.weak_bg_fill = colors.hover;
    widgets.inactive.bg_fill = colors.hover;
    widgets.inactive.fg_stroke = Stroke::new(1.0, colors.text);
    widgets.hovered.weak_bg_fill = colors.line;
    widgets.hovered.bg_fill = colors.line;
    widgets.hovered.bg_stroke = Stroke::NONE;
    widgets.hovered.fg_stroke = Stroke::new(1.0, colors.text);
    widgets.active.weak_bg_fill = colors.line;
    widgets.active.bg_fill = colors.line;
    widgets.active.fg_stroke = Stroke::new(1.0, colors.text);
    for widget in [
        &mut widgets.noninteractive,
        &mut widgets.inactive,
        &mut widgets.hovered,
        &mut widgets.active,
        &mut widgets.open,
    ] {
        widget.corner_radius = CornerRadius::same(4);
        widget.expansion = 0.0;
    }
    visuals
}

/// The theme as egui names it.
#[must_use]
pub fn preference(look: Look) -> ThemePreference {
    match look {
        Look::System => ThemePreference::System,
        Look::Dark => ThemePreference::Dark,
        Look::Light => ThemePreference::Light,
    }
}
