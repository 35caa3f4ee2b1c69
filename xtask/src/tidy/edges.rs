//! The allowed dependencies between our crates.

use std::fs;

use crate::steps::root;

/// Each crate's folder, and the crates of ours that its library or program may use. What tests use
/// is free.
const EDGES: &[(&str, &[&str])] = &[
    ("async", &[]),
    ("bef", &[]),
    ("ir", &[]),
    ("ops", &["bef"]),
    ("compiler", &["ir", "bef", "ops"]),
    ("import", &["ir"]),
    ("host", &["async", "bef"]),
    ("tensor", &["host", "ops"]),
    ("kernels", &["host", "ops", "tensor"]),
    ("corert", &["host", "ops", "tensor"]),
    ("capi", &["async", "host", "tensor", "corert"]),
    ("gpu", &["corert", "host", "ops", "tensor"]),
    ("wire", &["async"]),
    ("dist", &["async", "host", "tensor", "corert", "wire"]),
    ("serve", &["async", "host", "tensor", "wire"]),
    ("run", &["async", "bef", "host", "kernels"]),
    ("oracle", &["ir"]),
    ("lsp", &["ir"]),
    (
        "differential",
        &[
            "async", "bef", "compiler", "host", "kernels", "oracle", "run",
        ],
    ),
    (
        "fuzz",
        &[
            "async",
            "bef",
            "ir",
            "compiler",
            "import",
            "host",
            "kernels",
            "corert",
            "capi",
            "oracle",
            "differential",
            "dist",
            "serve",
            "wire",
            "tfrt",
        ],
    ),
    ("suite", &["tfrt"]),
    ("python", &["tfrt"]),
    (
        "tfrt",
        &[
            "async", "bef", "ir", "ops", "compiler", "import", "host", "tensor", "kernels",
            "corert", "capi", "dist", "gpu", "lsp", "run", "serve",
        ],
    ),
];

/// Returns the edges that are not in the table.
pub fn check() -> Vec<String> {
    let crates = root().join("crates");
    let mut names: Vec<String> = fs::read_dir(&crates)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| crates.join(name).join("Cargo.toml").exists())
        .collect();
    names.sort();
    let on_crate = |name: &String| {
        let manifest = crates.join(name).join("Cargo.toml");
        complaints(name, &fs::read_to_string(manifest).unwrap_or_default())
    };
    names.iter().flat_map(on_crate).collect()
}

fn complaints(name: &str, manifest: &str) -> Vec<String> {
    let Some((_, allowed)) = EDGES.iter().find(|(known, _)| *known == name) else {
        return vec![format!(
            "crates/{name} is not in the table of xtask/src/tidy/edges.rs"
        )];
    };
    let used = manifest
        .lines()
        .filter(|line| line.starts_with('[') && line.ends_with("dependencies]"))
        .filter(|header| !header.contains("dev-dependencies"))
        .flat_map(|header| section(manifest, header));
    used.filter_map(|dependency| match dependency {
        "tfrt" => Some("tfrt"),
        _ => dependency.strip_prefix("tfrt-"),
    })
    .filter(|dependency| !allowed.contains(dependency))
    .map(|dependency| format!("crates/{name} must not depend on {dependency}"))
    .collect()
}

/// Returns the names of the entries of a section of a manifest.
pub fn section<'m>(manifest: &'m str, header: &str) -> impl Iterator<Item = &'m str> {
    let own = manifest
        .split_once(&format!("{header}\n"))
        .map_or("", |(_, own)| own);
    own.lines()
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| line.split(['.', ' ', '=']).next())
        .filter(|name| !name.is_empty() && !name.starts_with('#'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = "[package]\nname = \"x\"\n\n[dependencies]\ntfrt-host.workspace = true\n# no\nclap = \"4\"\n\n[dev-dependencies]\ntfrt-kernels.workspace = true\n";

    #[test]
    fn entries_of_a_section_are_named() {
        let names: Vec<&str> = section(MANIFEST, "[dependencies]").collect();
        assert_eq!(names, ["tfrt-host", "clap"]);
    }

    #[test]
    fn edge_outside_of_the_table_is_refused() {
        assert_eq!(
            complaints("bef", MANIFEST),
            ["crates/bef must not depend on host"]
        );
        assert!(complaints("kernels", MANIFEST).is_empty());
        assert_eq!(complaints("new", MANIFEST).len(), 1);
    }
}
