//! Screen and picture compared: marks of the flock drawn by a graphics card (Mesa's, in software), and the
//! same marks drawn without one.
//!
//! Needs Xvfb, xdotool and Mesa; `.ci/run` installs them and enables the feature `desktop`.

use super::viewer_window::{PATIENCE, screen_with, window_of};
use std::ffi::OsStr;
use std::path::Path;
use system_tests::program;
use system_tests::wait::{self, Seen};

/// A synthetic grid, its tab, its theme, and a moment in its hour.
const ARGUMENTS: [&str; 4] = ["1x12", "flock", "dark", "1900"];
/// Difference of a channel that counts as visible.
const SEEN: u8 = 64;
/// Share of pixels that may visibly differ: borders of marks, which are rounded by two different methods.
const DIFFERS_MAX: f64 = 0.002;

/// An image: rows of three bytes for each pixel.
#[derive(PartialEq)]
pub(super) struct Pixels {
    width: usize,
    bytes: Vec<u8>,
}

impl Pixels {
    /// The share of pixels that visibly differ; 1 for images of different sizes.
    #[allow(clippy::cast_precision_loss)]
    pub(super) fn differs(&self, other: &Pixels) -> f64 {
        if (self.width, self.bytes.len()) != (other.width, other.bytes.len()) {
            return 1.0;
        }
        let pairs = self.bytes.chunks_exact(3).zip(other.bytes.chunks_exact(3));
        let is_other = |(one, two): &(&[u8], &[u8])| one.iter().zip(*two).any(|(a, b)| a.abs_diff(*b) > SEEN);
        pairs.filter(is_other).count() as f64 / (self.bytes.len() / 3) as f64
    }

    pub(super) fn at(&self, x: usize, y: usize) -> [u8; 3] {
        let from = (y * self.width + x) * 3;
        [self.bytes[from], self.bytes[from + 1], self.bytes[from + 2]]
    }

    /// The part from `left` and `top` to `right` and `bottom`.
    pub(super) fn part(&self, [left, top, right, bottom]: [usize; 4]) -> Pixels {
        let row = |y: usize| &self.bytes[(y * self.width + left) * 3..(y * self.width + right) * 3];
        Pixels { width: right - left, bytes: (top..bottom).flat_map(row).copied().collect() }
    }

    /// Number of saturated pixels.
    pub(super) fn colored(&self) -> usize {
        let spread = |pixel: &[u8]| pixel.iter().max().unwrap() - pixel.iter().min().unwrap();
        self.bytes.chunks_exact(3).filter(|pixel| spread(pixel) > SEEN).count()
    }
}

pub(super) fn picture(file: &Path) -> Pixels {
    let decoder = png::Decoder::new(std::io::BufReader::new(std::fs::File::open(file).unwrap()));
    let mut reader = decoder.read_info().unwrap();
    let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
    let frame = reader.next_frame(&mut bytes).unwrap();
    let channels = frame.color_type.samples();
    let bytes = bytes.chunks_exact(channels).flat_map(|pixel| &pixel[..3]).copied().collect();
    Pixels { width: frame.width as usize, bytes }
}

/// Content of the screen, as Xvfb stores it (an XWD file: X11's XWDFile.h).
pub(super) fn screen_of(folder: &Path) -> Pixels {
    let file = std::fs::read(folder.join("Xvfb_screen0")).unwrap();
    let word = |at: usize| u32::from_be_bytes(file[at * 4..at * 4 + 4].try_into().unwrap()) as usize;
    let (head, width, height, row, colors) = (word(0), word(4), word(5), word(12), word(19));
    // Pixels are blue, green, red and an unused byte; the palette, twelve bytes for each colour, comes before
    // them.
    let rows = file[head + colors * 12..].chunks_exact(row).take(height);
    let bytes = rows
        .flat_map(|row| row[..width * 4].chunks_exact(4))
        .flat_map(|pixel| [pixel[2], pixel[1], pixel[0]])
        .collect();
    Pixels { width, bytes }
}

#[test]
fn a_graphics_card_draws_the_marks_of_the_flock_as_pictures_have_them() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("flock.png");
    let program = program::synthetic_grid().unwrap();
    let drawn = program::command(&program).args(ARGUMENTS).arg(&file).output().unwrap();
    assert!(drawn.status.success(), "{}", String::from_utf8_lossy(&drawn.stderr));
    let wanted = picture(&file);
    assert!(wanted.colored() > 10_000, "there are marks: {}", wanted.colored());
    let into: [&OsStr; 2] = ["-fbdir".as_ref(), folder.path().as_os_str()];
    let (_screen, display) = screen_with(&into);
    let (_viewer, _) = window_of(&program, &display, folder.path(), &ARGUMENTS);
    wait::until(PATIENCE, "the same on the screen", || {
        let differs = screen_of(folder.path()).differs(&wanted);
        Ok(match differs <= DIFFERS_MAX {
            true => Seen::Done(()),
            false => Seen::NotYet(format!("{:.2} % differ", differs * 100.0)),
        })
    })
    .unwrap();
}
