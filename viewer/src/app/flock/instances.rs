//! Marks on the screen by instancing: the graphics card makes a square of each sixteen bytes, and works out
//! its shape.
//!
//! The shell of OpenGL 3.3 or OpenGL ES 3, and up. Rules: it is optional: a failure is reported once, and
//! marks are meshes from then on; buffers are reused, as the system would allocate one of a megabyte again
//! for each frame. Not here: what the bytes are (`pen`).

use super::pen::{INSTANCE_LEN_BYTES, SCALE_PARTS, radius};
use eframe::egui_glow::{CallbackFn, Painter};
use eframe::glow::{self, HasContext};
use egui::{PaintCallback, PaintCallbackInfo, Rect, Shape};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Most buffers that wait to be reused.
const SPARE_MAX: usize = 3;
/// Attributes of an instance: coordinates, colour, measure and size.
const ATTRIBUTES: [&str; 3] = ["at", "color", "kind"];
const VERTEX: &str = include_str!("instances.vert");
const FRAGMENT: &str = include_str!("instances.frag");

/// Handle of the graphics card's program; clones share it.
#[derive(Clone)]
pub(crate) struct Engine(Arc<Inner>);

struct Inner {
    /// Compiled at the first frame.
    program: Mutex<Option<Program>>,
    spare: Mutex<Vec<Vec<u8>>>,
    has_failed: AtomicBool,
}

/// Objects on the graphics card.
struct Program {
    program: glow::Program,
    array: glow::VertexArray,
    buffer: glow::Buffer,
    view: Option<glow::UniformLocation>,
    sizes: Option<glow::UniformLocation>,
}

impl Engine {
    /// An engine for this context, if it can draw instances.
    pub(crate) fn of(gl: &glow::Context) -> Option<Engine> {
        let version = gl.version();
        let needed = if version.is_embedded { (3, 0) } else { (3, 3) };
        ((version.major, version.minor) >= needed).then(Engine::new)
    }

    /// An engine that prepares instances, also where nothing draws them.
    pub(crate) fn new() -> Engine {
        Engine(Arc::new(Inner {
            program: Mutex::default(),
            spare: Mutex::default(),
            has_failed: AtomicBool::new(false),
        }))
    }

    /// Whether it has not failed.
    pub(super) fn is_able(&self) -> bool {
        !self.0.has_failed.load(Ordering::Relaxed)
    }

    /// An empty buffer with room for this many bytes.
    pub(super) fn buffer(&self, len_bytes: usize) -> Vec<u8> {
        let mut buffer = locked(&self.0.spare).pop().unwrap_or_default();
        buffer.clear();
        buffer.reserve(len_bytes);
        buffer
    }

    /// A shape that draws these instances within `rect`.
    pub(super) fn shape(&self, rect: Rect, bytes: Vec<u8>) -> Shape {
        let frame = Frame { engine: self.clone(), bytes };
        let callback = CallbackFn::new(move |info, painter| frame.draw(&info, painter));
        Shape::Callback(PaintCallback { rect, callback: Arc::new(callback) })
    }

    /// Delete the objects on the graphics card.
    pub(crate) fn end(&self, gl: &glow::Context) {
        if let Some(program) = locked(&self.0.program).take() {
            program.end(gl);
        }
    }
}

/// The instances of a frame; their buffer is reused after the last drawing.
struct Frame {
    engine: Engine,
    bytes: Vec<u8>,
}

impl Frame {
    fn draw(&self, info: &PaintCallbackInfo, painter: &Painter) {
        let gl = painter.gl();
        let inner = &self.engine.0;
        let mut program = locked(&inner.program);
        if program.is_none() && self.engine.is_able() {
            match Program::new(gl) {
                Ok(made) => *program = Some(made),
                Err(error) => {
                    inner.has_failed.store(true, Ordering::Relaxed);
                    crate::report(&format!(
                        "marks are drawn as meshes, since the graphics card refuses: {error}"
                    ));
                }
            }
        }
        if let Some(program) = program.as_ref() {
            program.draw(gl, info, &self.bytes);
        }
    }
}

impl Drop for Frame {
    fn drop(&mut self) {
        let mut spare = locked(&self.engine.0.spare);
        if spare.len() < SPARE_MAX {
            spare.push(std::mem::take(&mut self.bytes));
        }
    }
}

impl Program {
    fn new(gl: &glow::Context) -> Result<Program, String> {
        let program = linked(gl)?;
        // SAFETY: the arguments were made by this context, which is current while something is drawn.
        #[allow(unsafe_code)]
        unsafe {
            let array = gl.create_vertex_array()?;
            let buffer = gl.create_buffer()?;
            gl.bind_vertex_array(Some(array));
            gl.bind_buffer(glow::ARRAY_BUFFER, Some(buffer));
            let stride = i32::try_from(INSTANCE_LEN_BYTES).unwrap_or(i32::MAX);
            gl.vertex_attrib_pointer_f32(0, 2, glow::FLOAT, false, stride, 0);
            gl.vertex_attrib_pointer_f32(1, 4, glow::UNSIGNED_BYTE, true, stride, 8);
            gl.vertex_attrib_pointer_f32(2, 2, glow::UNSIGNED_BYTE, false, stride, 12);
            for attribute in 0..3 {
                gl.enable_vertex_attrib_array(attribute);
                gl.vertex_attrib_divisor(attribute, 1);
            }
            gl.bind_vertex_array(None);
            gl.bind_buffer(glow::ARRAY_BUFFER, None);
            let view = gl.get_uniform_location(program, "view");
            let sizes = gl.get_uniform_location(program, "sizes");
            Ok(Program { program, array, buffer, view, sizes })
        }
    }

    #[allow(clippy::cast_precision_loss)] // Pixels of a screen.
    fn draw(&self, gl: &glow::Context, info: &PaintCallbackInfo, bytes: &[u8]) {
        let count = i32::try_from(bytes.len() / INSTANCE_LEN_BYTES).unwrap_or(i32::MAX);
        let view = info.viewport_in_pixels();
        // SAFETY: as above; the buffer has as many instances as are drawn.
        #[allow(unsafe_code)]
        unsafe {
            gl.use_program(Some(self.program));
            gl.uniform_4_f32(
                self.view.as_ref(),
                view.left_px as f32,
                view.top_px as f32,
                view.width_px as f32,
                view.height_px as f32,
            );
            let radius = radius() * info.pixels_per_point / SCALE_PARTS;
            gl.uniform_2_f32(self.sizes.as_ref(), info.pixels_per_point, radius);
            gl.bind_vertex_array(Some(self.array));
            gl.bind_buffer(glow::ARRAY_BUFFER, Some(self.buffer));
            gl.buffer_data_u8_slice(glow::ARRAY_BUFFER, bytes, glow::STREAM_DRAW);
            gl.draw_arrays_instanced(glow::TRIANGLE_STRIP, 0, 4, count);
            gl.bind_buffer(glow::ARRAY_BUFFER, None);
            gl.bind_vertex_array(None);
        }
    }

    fn end(&self, gl: &glow::Context) {
        // SAFETY: as above; nothing is drawn with them any more.
        #[allow(unsafe_code)]
        unsafe {
            gl.delete_buffer(self.buffer);
            gl.delete_vertex_array(self.array);
            gl.delete_program(self.program);
        }
    }
}

/// The two shaders, compiled for this context.
fn linked(gl: &glow::Context) -> Result<glow::Program, String> {
    let head = match gl.version().is_embedded {
        true => "#version 300 es\nprecision highp float;\n",
        false => "#version 150\n",
    };
    // SAFETY: the arguments were made by this context, which is current while something is drawn.
    #[allow(unsafe_code)]
    unsafe {
        let program = gl.create_program()?;
        for (kind, source) in [(glow::VERTEX_SHADER, VERTEX), (glow::FRAGMENT_SHADER, FRAGMENT)] {
            let shader = gl.create_shader(kind)?;
            gl.shader_source(shader, &format!("{head}{source}"));
            gl.compile_shader(shader);
            if !gl.get_shader_compile_status(shader) {
                return Err(gl.get_shader_info_log(shader));
            }
            gl.attach_shader(program, shader);
            // It goes with the program.
            gl.delete_shader(shader);
        }
        for (at, name) in (0..).zip(ATTRIBUTES) {
            gl.bind_attrib_location(program, at, name);
        }
        gl.link_program(program);
        match gl.get_program_link_status(program) {
            true => Ok(program),
            false => Err(gl.get_program_info_log(program)),
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
