//! Pictures without a window, a graphics card or OpenGL: egui's output, rasterized by the CPU and written as
//! PNG.
//!
//! Rule: the same contents give the same picture, bit for bit, on every machine, so that tests can compare
//! pictures and scripts can make them. Not here: the contents (`app`).

pub mod canvas;
pub mod headless;

use crate::app::App;
use crate::atomic_file;
use canvas::Canvas;
use headless::Headless;
use std::path::Path;

/// Why there is no picture.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file cannot be created or written.
    #[error("cannot write the picture: {error}: {path}")]
    Write {
        /// Path of the file.
        path: String,
        /// The error of the system or the encoder.
        error: String,
    },
}

/// Write the window's contents to a file, as PNG.
///
/// # Errors
/// If the file cannot be written; an existing file is unchanged then.
pub fn draw(window: &mut Headless, app: &mut App, path: &Path) -> Result<(), Error> {
    let failed = |error: &dyn std::fmt::Display| Error::Write {
        path: path.display().to_string(),
        error: error.to_string(),
    };
    let bytes = png_of(&window.picture(app)).map_err(|error| failed(&error))?;
    atomic_file::replace(path, &bytes).map_err(|error| failed(&error))
}

/// Encode as PNG, without an alpha channel, since the picture is opaque.
fn png_of(canvas: &Canvas) -> Result<Vec<u8>, png::EncodingError> {
    let mut bytes = Vec::new();
    let (width, height) =
        (u32::try_from(canvas.width()).unwrap_or(0), u32::try_from(canvas.height()).unwrap_or(0));
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_compression(png::Compression::High);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&canvas.rgb())?;
    writer.finish()?;
    Ok(bytes)
}
