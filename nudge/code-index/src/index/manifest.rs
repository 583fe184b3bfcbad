//! Reads manifests, which map names to files and packages.

use std::collections::BTreeMap;

use serde::Deserialize;

/// The contents of a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ManifestFile {
    Cargo(CargoManifest),
    Package(NpmPackage),
    Tsconfig(TsConfig),
    Go(String),
    Other,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub(crate) struct CargoManifest {
    pub package: CargoPackage,
    pub lib: CargoTarget,
    pub bin: Vec<CargoTarget>,
    pub test: Vec<CargoTarget>,
    pub example: Vec<CargoTarget>,
    pub bench: Vec<CargoTarget>,
    dependencies: BTreeMap<String, CargoDependency>,
    dev_dependencies: BTreeMap<String, CargoDependency>,
    build_dependencies: BTreeMap<String, CargoDependency>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct CargoPackage {
    pub name: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct CargoTarget {
    pub name: Option<String>,
    pub path: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
enum CargoDependency {
    Full {
        #[serde(default)]
        package: Option<String>,
    },
    Version(String),
}

impl CargoManifest {
    /// Returns the name by which code uses the library of the package.
    pub fn lib_name(&self) -> String {
        self.lib.name.clone().unwrap_or_else(|| self.package.name.replace('-', "_"))
    }

    /// Returns the package that a dependency renames to this crate name; `None` if no dependency does that.
    pub fn package_of_alias(&self, name: &str) -> Option<&str> {
        [&self.dependencies, &self.dev_dependencies, &self.build_dependencies].into_iter().flatten().find_map(
            |(alias, dependency)| match dependency {
                CargoDependency::Full { package: Some(package) } if alias.replace('-', "_") == name => {
                    Some(package.as_str())
                }
                _ => None,
            },
        )
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct NpmPackage {
    pub name: String,
    main: Option<String>,
    module: Option<String>,
    types: Option<String>,
    source: Option<String>,
    exports: serde_json::Value,
}

impl NpmPackage {
    /// Returns the files that an import of the package may mean, best first. `subpath` is `.` or a path such as
    /// `./sub`.
    pub fn list_entries(&self, subpath: &str) -> Vec<String> {
        let mut out = Vec::new();
        let exports = &self.exports;
        match exports.as_object().filter(|map| map.keys().any(|key| key.starts_with('.'))) {
            Some(map) => {
                for (key, value) in map {
                    match key.split_once('*') {
                        None if key == subpath => collect_targets(value, "", &mut out),
                        Some((before, after)) => {
                            let star = subpath.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
                            if let Some(star) = star {
                                collect_targets(value, star, &mut out);
                            }
                        }
                        None => {}
                    }
                }
            }
            None if subpath == "." => collect_targets(exports, "", &mut out),
            None => {}
        }
        if subpath == "." {
            let fields = [&self.source, &self.types, &self.module, &self.main];
            out.extend(fields.into_iter().flatten().cloned());
            out.push("./index".into());
            out.push("./src/index".into());
        } else {
            out.push(subpath.to_owned());
            out.push(subpath.replacen("./", "./src/", 1));
        }
        out
    }
}

/// Collects all paths in a value of `exports`, in order. Such a value nests only a few levels.
fn collect_targets(value: &serde_json::Value, star: &str, out: &mut Vec<String>) {
    let mut todo = vec![value];
    while let Some(value) = todo.pop() {
        match value {
            serde_json::Value::String(path) => out.push(path.replace('*', star)),
            serde_json::Value::Array(all) => todo.extend(all.iter().rev()),
            serde_json::Value::Object(map) => todo.extend(map.values().rev()),
            _ => {}
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct TsConfig {
    #[serde(rename = "compilerOptions")]
    options: TsConfigOptions,
    pub extends: serde_json::Value,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
struct TsConfigOptions {
    #[serde(rename = "baseUrl")]
    base: Option<String>,
    paths: BTreeMap<String, Vec<String>>,
}

impl TsConfig {
    /// Returns `baseUrl`, relative to the folder of the configuration file.
    pub fn base_url(&self) -> Option<&str> {
        self.options.base.as_deref()
    }

    /// Returns true if the configuration maps module names to files.
    pub fn has_paths(&self) -> bool {
        !self.options.paths.is_empty()
    }

    /// Returns the files that `paths` gives for a module. A full name takes precedence over patterns, and the pattern
    /// with the longest start takes precedence over other patterns.
    pub fn match_paths(&self, module: &str) -> Vec<String> {
        let matched = |pattern: &str| match pattern.split_once('*') {
            None => (pattern == module).then_some((usize::MAX, "")),
            Some((before, after)) => {
                let star = module.strip_prefix(before).and_then(|rest| rest.strip_suffix(after))?;
                Some((before.len(), star))
            }
        };
        let all = self.options.paths.iter().filter_map(|(pattern, targets)| Some((matched(pattern)?, targets)));
        match all.max_by_key(|((known, _), _)| *known) {
            Some(((_, star), targets)) => targets.iter().map(|target| target.replace('*', star)).collect(),
            None => Vec::new(),
        }
    }
}

impl ManifestFile {
    /// Reads a manifest. An unreadable manifest counts as empty.
    pub fn read(path: &str, bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        match path.rsplit('/').next().unwrap_or(path) {
            "Cargo.toml" => toml::from_str(&text).map_or(Self::Other, Self::Cargo),
            "package.json" => serde_json::from_str(&text).map_or(Self::Other, Self::Package),
            name if super::is_tsconfig(name) => {
                let options = jsonc_parser::ParseOptions::default();
                match jsonc_parser::parse_to_serde_value::<TsConfig>(&text, &options) {
                    Ok(config) => Self::Tsconfig(config),
                    Err(_) => Self::Other,
                }
            }
            "go.mod" => text
                .lines()
                .find_map(|line| line.trim().strip_prefix("module "))
                .map_or(Self::Other, |module| Self::Go(module.trim().trim_matches('"').to_owned())),
            _ => Self::Other,
        }
    }
}
