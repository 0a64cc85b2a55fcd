//! Writer of files: settings, pictures, tables, grids.
//!
//! A thread writes them one after the other, because a frame waits for no disk and no encoder. Rule: at most
//! [`WAITING_MAX`] wait, and another one is refused; when the window is closed, files that wait are written
//! first. Not here: contents of files (`export`, `picture`).

use crate::app::App;
use crate::app::settings::Settings;
use crate::picture::headless::{Headless, Size};
use crate::{export, picture};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use wire::time::Time;

/// Most files that wait: each of contents is a copy of the flock.
const WAITING_MAX: usize = 2;
/// Most notices that wait for a frame.
const NOTICES_MAX: usize = 16;

/// A file to write.
pub(super) enum File {
    Settings(Box<Settings>, PathBuf),
    /// The window's contents; a picture has this size and time.
    Contents {
        app: Box<App>,
        size: Size,
        now: Time,
        path: PathBuf,
    },
}

/// Handle of the thread.
pub(super) struct Files {
    files: Option<SyncSender<File>>,
    notices: Receiver<String>,
    thread: Option<JoinHandle<()>>,
}

impl Files {
    /// Start the thread; it calls `wake` when there is a notice.
    pub(super) fn start(wake: impl Fn() + Send + 'static) -> std::io::Result<Files> {
        let (files, requested) = sync_channel::<File>(WAITING_MAX);
        let (notify, notices) = sync_channel(NOTICES_MAX);
        let run = move || {
            while let Ok(file) = requested.recv() {
                if let Some(notice) = write(file) {
                    // Where there are too many, the window does not read them any more.
                    let _ = notify.try_send(notice);
                    wake();
                }
            }
        };
        let thread = std::thread::Builder::new().name("viewer-files".into()).spawn(run)?;
        Ok(Files { files: Some(files), notices, thread: Some(thread) })
    }

    /// Write a file; returns whether there was room for it.
    pub(super) fn write(&self, file: File) -> bool {
        self.files.as_ref().is_some_and(|files| files.try_send(file).is_ok())
    }

    /// Write a file, waiting for room: only where no frame follows.
    pub(super) fn write_at_last(&self, file: File) {
        // The thread ends only after this sender.
        let _ = self.files.as_ref().map(|files| files.send(file));
    }

    /// Results of the last files.
    pub(super) fn drain_notices(&self) -> impl Iterator<Item = String> + '_ {
        self.notices.try_iter()
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        self.files = None;
        // A panic of the thread was printed where it happened.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Write a file; returns a notice.
fn write(file: File) -> Option<String> {
    match file {
        File::Settings(settings, path) => {
            if let Err(error) = settings.store(&path) {
                crate::report(&error.to_string());
            }
            None
        }
        File::Contents { mut app, size, now, path } => {
            let written = contents(&mut app, size, now, &path);
            let whole = std::env::current_dir().map_or_else(|_| path.clone(), |folder| folder.join(&path));
            Some(written.map_or_else(|error| error, |()| format!("Written: {}", whole.display())))
        }
    }
}

fn contents(app: &mut App, size: Size, now: Time, path: &Path) -> Result<(), String> {
    match path.extension().is_some_and(|ending| ending == "png") {
        true => picture::draw(&mut Headless::new(size, now), app, path).map_err(|error| error.to_string()),
        false => export::write(&app.table(), app.model().grid(), path).map_err(|error| error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::settings::Look;
    use crate::feed::Update;
    use crate::model::TimeChange;
    use crate::synthetic;
    use std::sync::mpsc::sync_channel;

    const SIZE: Size = Size { width: 900, height: 600, scale: 1.0 };

    fn app() -> App {
        let now = synthetic::latest();
        let mut app =
            App::new(synthetic::window::log(), None, Settings::default(), jiff::tz::TimeZone::UTC, now);
        app.take(now, Update::grid(synthetic::grid(2, 20, 400, 7)));
        synthetic::window::show_processes(&mut app);
        app.apply(TimeChange::StopAt(synthetic::time_f(1_800.0)));
        app.update(now, 0.0);
        app
    }

    #[test]
    fn what_is_written_is_what_was_shown_and_reported_by_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let (woken, wakes) = sync_channel(8);
        let files = Files::start(move || woken.send(()).unwrap()).unwrap();
        let mut app = app();
        for tab in ["map", "flock"] {
            app.open_tab(tab);
            for ending in ["png", "csv", "visperf"] {
                let path = folder.path().join(format!("{tab}.{ending}"));
                let contents = Box::new(app.still());
                let file = File::Contents {
                    app: contents,
                    size: SIZE,
                    now: synthetic::latest(),
                    path: path.clone(),
                };
                assert!(files.write(file));
                wakes.recv().unwrap();
                assert_eq!(
                    files.drain_notices().collect::<Vec<_>>(),
                    [format!("Written: {}", path.display())]
                );
                let beside = folder.path().join(format!("beside.{ending}"));
                contents_of(&mut app, &beside);
                assert!(std::fs::read(&path).unwrap() == std::fs::read(&beside).unwrap(), "{tab}.{ending}");
            }
        }
    }

    fn contents_of(app: &mut App, path: &Path) {
        contents(app, SIZE, synthetic::latest(), path).unwrap();
    }

    #[test]
    fn what_waits_is_written_before_the_window_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let files = Files::start(|| {}).unwrap();
        let png = folder.path().join("map.png");
        let file =
            File::Contents { app: Box::new(app()), size: SIZE, now: synthetic::latest(), path: png.clone() };
        assert!(files.write(file));
        let kept = folder.path().join("visperf/viewer.json");
        let settings = Settings { look: Look::Light, ..Settings::default() };
        assert!(files.write(File::Settings(Box::new(settings.clone()), kept.clone())));
        assert!(!kept.exists(), "the picture is not done yet");
        drop(files);
        assert!(png.is_file());
        assert_eq!(Settings::load(&kept), (settings, None));
    }

    #[test]
    fn what_cannot_be_written_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("none/map.csv");
        let file = File::Contents { app: Box::new(app()), size: SIZE, now: synthetic::latest(), path };
        assert!(write(file).unwrap().contains("cannot write"));
    }
}
