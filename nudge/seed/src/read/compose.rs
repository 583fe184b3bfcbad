//! Reads the services of docker compose.

use crate::command::CommandLine;
use crate::file::{FoundCommand, SeedFile, Why, iter_members};

/// The most services that get their own seed. The other services are only started together with all services.
const MOST: usize = 12;

pub fn read(file: &SeedFile<'_>) -> Result<Vec<FoundCommand>, Why> {
    let config = file.parse_yaml()?;
    let services: Vec<_> = iter_members(&config["services"]).take(MOST).collect();
    let read_service = |name: &str| {
        let service = &config["services"][name];
        let about = service["image"].as_str().map(|image| format!("image {image}")).or_else(|| {
            let build = &service["build"];
            build.as_str().or(build["context"].as_str()).map(|folder| format!("built from {folder}"))
        });
        Some(FoundCommand {
            name: format!("up.{name}"),
            command: CommandLine::new("docker compose up -d").word(name)?,
            about: about.unwrap_or_default(),
            line: file.line_of(&["services", name]),
            folder: None,
        })
    };
    let names: Vec<_> = services.iter().map(|(name, _)| *name).collect();
    let mut out = Vec::new();
    if !names.is_empty() {
        out.push(FoundCommand {
            name: "up".to_owned(),
            command: CommandLine::new("docker compose up -d"),
            about: format!("starts {}", names.join(", ")),
            line: file.line_of(&["services"]),
            folder: None,
        });
    }
    if names.len() > 1 {
        out.extend(names.into_iter().filter_map(read_service));
    }
    Ok(out)
}
