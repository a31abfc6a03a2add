//! Joins the modules of a page into one script, so that a browser makes one request for them, not one for each, and not
//! one after the other.
//!
//! Each module becomes a function that runs once, after those that it imports from, and returns what it exports:
//!
//! ```text
//! const m$dom = (() => { ...; return { byId, h }; })();
//! const m$tabs = (() => { const { byId } = m$dom; ...; return { startTabs }; })();
//! ```
//!
//! What a module loads when it is needed (`import("/assets/part.js")`) is a separate script: a function of the modules
//! that are already loaded, so no module runs twice.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::rc::Rc;

use crate::pages::asset_error::AssetError;
use crate::pages::module::{Import, Module, Names, loader, variable};
use crate::pages::sources::Sources;

/// A script of joined modules. It refers to its parts as `/assets/NAME`, as it does to other files.
#[derive(Debug)]
pub(super) struct Joined {
    pub(super) text: String,
    /// The scripts that it loads when they are needed, by imported module.
    pub(super) parts: BTreeMap<String, Self>,
    /// The modules that it takes from the script that loads it.
    needs: BTreeSet<String>,
}

impl Joined {
    /// The script that runs these modules, in this order.
    ///
    /// # Errors
    /// When a module is missing, has a form that is not supported, or imports what does not exist, and when modules
    /// import each other in a cycle.
    pub(super) fn page(sources: &mut Sources, entries: &[String]) -> Result<Self, AssetError> {
        Self::new(sources, entries, &BTreeSet::new(), "a page")
    }

    /// The script for a module that is loaded where the modules `loaded` are.
    fn part(sources: &mut Sources, entry: &str, loaded: &BTreeSet<String>, from: &str) -> Result<Self, AssetError> {
        let mut joined = Self::new(sources, &[entry.to_owned()], loaded, from)?;
        let parameters = joined.parameters();
        joined.text = format!("export default ({parameters}) => {{\n{}return {};\n}};\n", joined.text, variable(entry));
        Ok(joined)
    }

    fn new(
        sources: &mut Sources,
        entries: &[String],
        loaded: &BTreeSet<String>,
        from: &str,
    ) -> Result<Self, AssetError> {
        let mut order = Order {
            sources: &mut *sources,
            loaded,
            modules: Vec::new(),
            in_progress: Vec::new(),
            needs: BTreeSet::new(),
        };
        for entry in entries {
            order.add(entry, from)?;
        }
        let Order { modules, mut needs, .. } = order;
        let own: BTreeSet<String> = modules.iter().map(|(name, _)| name.clone()).collect();
        let known: BTreeSet<String> = own.union(loaded).cloned().collect();
        let (mut text, mut parts) = (String::new(), BTreeMap::new());
        let asked = modules.iter().flat_map(|(name, module)| module.parts.iter().map(move |part| (part, name)));
        // Each part once, and one of the modules that import it.
        for (part, asker) in asked.collect::<BTreeMap<_, _>>() {
            if known.contains(part) {
                needs.extend(Some(part.clone()).filter(|part| !own.contains(part)));
                text.push_str(&present(part));
                continue;
            }
            let script = Self::part(sources, part, &known, asker)?;
            needs.extend(script.needs.difference(&own).cloned());
            text.push_str(&loading(part, &script.parameters()));
            parts.insert(part.clone(), script);
        }
        for (name, module) in &modules {
            check_imports(sources, name, module)?;
            if let Some(licence) = sources.licence(name) {
                let _ = writeln!(text, "/*! {name}: /assets/{licence} */");
            }
            text.push_str(&wrapped(name, module));
        }
        Ok(Self { text, parts, needs })
    }

    /// The parameters of the function that is a part, and what it is called with.
    fn parameters(&self) -> String {
        self.needs.iter().map(|name| variable(name)).collect::<Vec<_>>().join(", ")
    }
}

/// Puts modules after those that they import from.
struct Order<'s> {
    sources: &'s mut Sources,
    loaded: &'s BTreeSet<String>,
    modules: Vec<(String, Rc<Module>)>,
    in_progress: Vec<String>,
    needs: BTreeSet<String>,
}

impl Order<'_> {
    fn add(&mut self, name: &str, from: &str) -> Result<(), AssetError> {
        if self.loaded.contains(name) {
            self.needs.insert(name.to_owned());
            return Ok(());
        }
        if self.modules.iter().any(|(other, _)| other == name) {
            return Ok(());
        }
        if self.in_progress.iter().any(|other| other == name) {
            return Err(AssetError::Circle(name.to_owned()));
        }
        self.in_progress.push(name.to_owned());
        let module = self.sources.module(name, from)?;
        for import in &module.imports {
            self.add(&import.from, name)?;
        }
        self.in_progress.pop();
        self.modules.push((name.to_owned(), module));
        Ok(())
    }
}

/// Checks that what a module imports exists.
fn check_imports(sources: &mut Sources, name: &str, module: &Module) -> Result<(), AssetError> {
    for Import { from, names } in &module.imports {
        let Names::Some(names) = names else { continue };
        let exporter = sources.module(from, name)?;
        if let Some((missing, _)) = names.iter().find(|(imported, _)| !exporter.exports.contains_key(imported)) {
            let (by, name, from) = (name.to_owned(), missing.clone(), from.clone());
            return Err(AssetError::NotExported { by, name, from });
        }
    }
    Ok(())
}

/// A module as a function that has run.
fn wrapped(name: &str, module: &Module) -> String {
    let mut text = format!("const {} = (() => {{\n", variable(name));
    for Import { from, names } in &module.imports {
        let imported = match names {
            Names::All(name) => name.clone(),
            Names::Some(names) if names.is_empty() => continue,
            Names::Some(names) => braces(names.iter().map(|(name, local)| (name, local))),
        };
        let _ = writeln!(text, "const {imported} = {};", variable(from));
    }
    let exports = braces(&module.exports);
    let _ = write!(text, "{}\nreturn {exports};\n}})();\n", module.code);
    text
}

/// Names and what they become, as in a pattern or an object.
fn braces<'n>(names: impl IntoIterator<Item = (&'n String, &'n String)>) -> String {
    let entry =
        |(name, local): (&String, &String)| if name == local { name.clone() } else { format!("{name}: {local}") };
    format!("{{ {} }}", names.into_iter().map(entry).collect::<Vec<_>>().join(", "))
}

/// The function that loads a part once. Browsers remember a failed script by its URL, so the next try has another
/// fragment.
fn loading(part: &str, parameters: &str) -> String {
    let load = loader(part);
    format!(
        "let {load}$;\nlet {load}$tries = \"\";\nconst {load} = () => ({load}$ ??= import(\"/assets/{part}\" + {load}$tries).then((part) => part.default({parameters}), (error) => {{\n\
         {load}$ = undefined;\n{load}$tries += \"#\";\nthrow error;\n}}));\n"
    )
}

/// The same for a module that is there already.
fn present(part: &str) -> String {
    format!("const {} = async () => {};\n", loader(part), variable(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(files: &[(&str, &str)]) -> Sources {
        Sources::new(files.iter().map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec())).collect())
    }

    fn page(files: &[(&str, &str)], entries: &[&str]) -> Result<Joined, AssetError> {
        let entries: Vec<_> = entries.iter().map(|name| (*name).to_owned()).collect();
        Joined::page(&mut sources(files), &entries)
    }

    #[test]
    fn modules_run_once_and_after_those_that_they_import_from() {
        let files = [
            (
                "a.js",
                "import { b as c } from \"/assets/b.js\";\nimport * as all from \"/assets/d-1.js\";\n// words\nc(all);\n",
            ),
            (
                "b.js",
                "import { d } from \"/assets/d-1.js\";\nimport \"/assets/e.js\";\n\nexport function b() {\n  d();\n}\n",
            ),
            ("d-1.js", "const x = `\n  x`;\nexport { x as d };\n"),
            ("e.js", "e();\n"),
            ("d-1.license.txt", "A licence."),
        ];
        let joined = page(&files, &["e.js", "a.js"]).unwrap();
        let expected = "const m$e = (() => {\ne();\nreturn {  };\n})();\n\
                        /*! d-1.js: /assets/d-1.license.txt */\n\
                        const m$d_1 = (() => {\nconst x = `\n  x`;\nreturn { d: x };\n})();\n\
                        const m$b = (() => {\nconst { d } = m$d_1;\nfunction b() {\nd();\n}\nreturn { b };\n})();\n\
                        const m$a = (() => {\nconst { b: c } = m$b;\nconst all = m$d_1;\nc(all);\nreturn {  };\n})();\n";
        assert_eq!(joined.text, expected);
        assert!(joined.parts.is_empty());
    }

    #[test]
    fn parts_are_loaded_with_the_modules_that_are_there() {
        let files = [
            (
                "a.js",
                "import { b } from \"/assets/b.js\";\nconst open = () => import(\"/assets/part.js\");\nb(open);\n",
            ),
            ("b.js", "export const b = 1;\n"),
            ("c.js", "export const c = 2;\n"),
            (
                "part.js",
                "import { b } from \"/assets/b.js\";\nimport { c } from \"/assets/c.js\";\nexport const p = () => import(\"/assets/more.js\");\n",
            ),
            (
                "more.js",
                "import { c } from \"/assets/c.js\";\nimport { b } from \"/assets/b.js\";\nexport const q = () => import(\"/assets/a.js\");\n",
            ),
        ];
        let joined = page(&files, &["a.js"]).unwrap();
        assert!(joined.text.contains("import(\"/assets/part.js\" + load$part$tries)"), "{}", joined.text);
        assert!(joined.text.contains("part.default(m$a, m$b)"), "{}", joined.text);
        assert!(joined.text.contains("const open = () => load$part();"), "{}", joined.text);
        let part = &joined.parts["part.js"];
        assert!(part.text.starts_with("export default (m$a, m$b) => {\n"), "{}", part.text);
        assert!(part.text.ends_with("return m$part;\n};\n"), "{}", part.text);
        assert!(part.text.contains("const m$c = ") && !part.text.contains("const m$b = "), "{}", part.text);
        let more = &part.parts["more.js"];
        assert!(more.text.starts_with("export default (m$a, m$b, m$c) => {\n"), "{}", more.text);
        assert!(more.text.contains("const load$a = async () => m$a;"), "it is there already: {}", more.text);
    }

    #[test]
    fn inconsistent_modules_are_errors() {
        // files, error
        let circle = [("a.js", "import \"/assets/b.js\";"), ("b.js", "import \"/assets/a.js\";")];
        let missing = [("a.js", "import { b } from \"/assets/b.js\";"), ("b.js", "export const c = 1;")];
        let table: [(&[(&str, &str)], &str); 5] = [
            (&circle, "the assets refer to each other in a cycle through a.js"),
            (&missing, "a.js imports b from b.js, which does not export it"),
            (&[("a.js", "import \"/assets/b.js\";")], "a.js refers to b.js, which is not an asset"),
            (&[("a.js", "\nawait b;")], "a.js, line 2: await is outside of a function"),
            (&[("a.js", "const b = () => import(\"/assets/b.js\");")], "a.js refers to b.js, which is not an asset"),
        ];
        for (files, expected) in table {
            assert_eq!(page(files, &["a.js"]).unwrap_err().to_string(), expected);
        }
    }
}
