//! Gradle and Maven, by their wrappers where they are there.

use crate::command::CommandLine;
use crate::file::{File, Found, Why};

pub fn gradle(file: &File<'_>) -> Result<Vec<Found>, Why> {
    // A module is built from the top, which has the settings.
    let is_top = file.has("settings.gradle") || file.has("settings.gradle.kts");
    let is_module = !is_top && file.nearest(&[("settings.gradle", ()), ("settings.gradle.kts", ())]).is_some();
    if is_module || (is_top && file.name.starts_with("build")) {
        return Ok(Vec::new());
    }
    let program = if file.has("gradlew") { "./gradlew" } else { "gradle" };
    Ok(vec![found("build", program, "build", "builds and tests"), found("test", program, "test", "runs the tests")])
}

pub fn maven(file: &File<'_>) -> Result<Vec<Found>, Why> {
    let above = file.folder.rsplit_once('/').map_or("", |(above, _)| above);
    if !file.folder.is_empty() && file.top.join(above).join("pom.xml").is_file() {
        return Ok(Vec::new());
    }
    let program = if file.has("mvnw") { "./mvnw" } else { "mvn" };
    Ok(vec![found("build", program, "package", "builds and tests"), found("test", program, "test", "runs the tests")])
}

fn found(name: &str, program: &'static str, goal: &'static str, about: &str) -> Found {
    Found {
        name: name.to_owned(),
        command: CommandLine::new(program).with(goal),
        about: about.to_owned(),
        line: 1,
        folder: None,
    }
}
