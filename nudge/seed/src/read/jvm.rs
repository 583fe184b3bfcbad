//! Reads Gradle and Maven projects. The commands use the project's wrapper if there is one.

use crate::command::CommandLine;
use crate::file::{FoundCommand, SeedFile, Why};

pub fn read_gradle(file: &SeedFile<'_>) -> Result<Vec<FoundCommand>, Why> {
    // A module is built from the top folder, because the settings are there.
    let is_top = file.has_sibling("settings.gradle") || file.has_sibling("settings.gradle.kts");
    let is_module = !is_top && file.find_nearest(&[("settings.gradle", ()), ("settings.gradle.kts", ())]).is_some();
    if is_module || (is_top && file.name.starts_with("build")) {
        return Ok(Vec::new());
    }
    let program = if file.has_sibling("gradlew") { "./gradlew" } else { "gradle" };
    Ok(vec![
        goal_command("build", program, "build", "builds and tests"),
        goal_command("test", program, "test", "runs the tests"),
    ])
}

pub fn read_maven(file: &SeedFile<'_>) -> Result<Vec<FoundCommand>, Why> {
    let above = file.folder.rsplit_once('/').map_or("", |(above, _)| above);
    if !file.folder.is_empty() && file.top.join(above).join("pom.xml").is_file() {
        return Ok(Vec::new());
    }
    let program = if file.has_sibling("mvnw") { "./mvnw" } else { "mvn" };
    Ok(vec![
        goal_command("build", program, "package", "builds and tests"),
        goal_command("test", program, "test", "runs the tests"),
    ])
}

fn goal_command(name: &str, program: &'static str, goal: &'static str, about: &str) -> FoundCommand {
    FoundCommand {
        name: name.to_owned(),
        command: CommandLine::new(program).with_words(goal),
        about: about.to_owned(),
        line: 1,
        folder: None,
    }
}
