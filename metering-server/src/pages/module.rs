//! One of our scripts: what it imports and exports, and its code without these statements.
//!
//! These are the forms that our scripts use. Everything else is an error, so that what is served is what was written:
//!
//! ```text
//! import { a, b as c } from "/assets/x.js";    export function a() {}    export async function a() {}
//! import * as x from "/assets/x.js";           export class A {}         export const a = ...;
//! import "/assets/x.js";                       export { a, b as c };     export { a } from "/assets/x.js";
//! import("/assets/x.js")                       in functions: loads a part of a page when it is needed
//! ```

use std::collections::{BTreeMap, BTreeSet};

use crate::pages::script::{Script, ScriptError};

/// The folder that scripts import from.
const FOLDER: &str = "/assets/";
const EXPORT: &str = "export";
/// Importing modules get a copy of each value, so it must not change.
const CHANGES: &str = "what is exported must be a constant, a function or a class";

/// A script that is a module.
#[derive(Debug)]
pub(super) struct Module {
    /// In the order in which they are written, which is the order in which they run.
    pub(super) imports: Vec<Import>,
    /// The local name of each exported name.
    pub(super) exports: BTreeMap<String, String>,
    /// The modules that it loads when they are needed, in whose place its code calls `loader`.
    pub(super) parts: BTreeSet<String>,
    /// Its code without imports, exports, comments and indentation.
    pub(super) code: String,
}

/// The imports from one module.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Import {
    pub(super) from: String,
    pub(super) names: Names,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Names {
    /// Everything, as an object of this name.
    All(String),
    /// These names, and what each is called in the importing module. None, if the module is only to run.
    Some(Vec<(String, String)>),
}

/// A form that is not supported, and its line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ModuleError {
    pub(super) line: usize,
    pub(super) problem: &'static str,
}

/// The name of the variable that holds what a module exports.
pub(super) fn variable(name: &str) -> String {
    format!("m${}", identifier(name))
}

/// The name of the function that loads a module when it is needed.
pub(super) fn loader(name: &str) -> String {
    format!("load${}", identifier(name))
}

fn identifier(name: &str) -> String {
    let stem = name.strip_suffix(".js").unwrap_or(name);
    stem.replace(|c: char| !c.is_ascii_alphanumeric(), "_")
}

impl Module {
    /// Reads a module.
    ///
    /// # Errors
    /// When it has a form that is not supported.
    pub(super) fn read(source: &str) -> Result<Self, ModuleError> {
        let line = |at: usize| source.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1;
        let unreadable = |error: ScriptError| ModuleError { line: line(error.at), problem: error.problem };
        let script = Script::read(source).map_err(unreadable)?;
        let mut module =
            Self { imports: Vec::new(), exports: BTreeMap::new(), parts: BTreeSet::new(), code: String::new() };
        let (mut code, mut done) = (String::with_capacity(source.len()), 0);
        for keyword in script.keywords() {
            let end = script.end_of_statement(keyword.at).unwrap_or(source.len());
            let statement = Statement::read(&source[keyword.at..end], keyword.is_outside);
            let statement = statement.map_err(|problem| ModuleError { line: line(keyword.at), problem })?;
            code.push_str(&source[done..keyword.at]);
            done = match statement {
                Statement::Other => keyword.at,
                Statement::Load { name, length } => {
                    code.push_str(&loader(&name));
                    code.push_str("()");
                    module.parts.insert(name);
                    keyword.at + length
                }
                Statement::Declaration(name) => {
                    module.exports.insert(name.clone(), name);
                    keyword.at + EXPORT.len()
                }
                Statement::Import(import) => {
                    module.imports.push(import);
                    end
                }
                Statement::Export(names) => {
                    module.exports.extend(names.into_iter().map(|(local, exported)| (exported, local)));
                    end
                }
                Statement::Pass(names, from) => {
                    // `$` keeps them apart from the module's own names.
                    let own = |exported: &str| format!("${exported}");
                    module.exports.extend(names.iter().map(|(_, exported)| (exported.clone(), own(exported))));
                    let imported = names.into_iter().map(|(name, exported)| (name, own(&exported))).collect();
                    module.imports.push(Import { from, names: Names::Some(imported) });
                    end
                }
            };
        }
        code.push_str(&source[done..]);
        let compact = Script::read(&code).map(|script| script.compact());
        module.code = compact.map_err(|error| ModuleError { line: 1, problem: error.problem })?;
        if module.exports.values().any(|local| module.changes(local)) {
            return Err(ModuleError { line: 1, problem: CHANGES });
        }
        Ok(module)
    }

    /// Whether a name of the module is declared with `let`: importing modules would not see its later values.
    fn changes(&self, name: &str) -> bool {
        let mut declared = self.code.lines().filter_map(|line| line.strip_prefix("let "));
        declared.any(|rest| rest.split(|c: char| !is_of_name(c)).next() == Some(name))
    }
}

/// The parsed form of an `import` or `export` statement.
enum Statement {
    Import(Import),
    /// `export` before a declaration of this name.
    Declaration(String),
    /// `export { local as exported }`
    Export(Vec<(String, String)>),
    /// `export { name as exported } from "..."`
    Pass(Vec<(String, String)>, String),
    /// `import("...")` of a module, which is so long.
    Load {
        name: String,
        length: usize,
    },
    /// `import(...)` of something else, such as a vendor's script.
    Other,
}

impl Statement {
    /// Reads a statement, from its keyword to its semicolon.
    fn read(statement: &str, is_outside: bool) -> Result<Self, &'static str> {
        match statement.strip_prefix(EXPORT) {
            _ if !is_outside && !statement.starts_with("import(") => {
                Err("import and export are for the top of a module")
            }
            Some(rest) => Self::read_export(rest.trim_start()),
            None => Self::read_import(statement),
        }
    }

    fn read_import(statement: &str) -> Result<Self, &'static str> {
        const LOAD: &str = "import(\"/assets/";
        if statement.starts_with("import(") {
            let loaded = statement.strip_prefix(LOAD).and_then(|rest| rest.split_once("\")"));
            return Ok(match loaded {
                Some((name, _)) => Self::Load { name: name.to_owned(), length: LOAD.len() + name.len() + "\")".len() },
                None => Self::Other,
            });
        }
        let read = || {
            let rest = statement.strip_prefix("import")?.trim_end().strip_suffix(';')?.trim();
            if let Some(from) = file(rest) {
                return Some(Import { from, names: Names::Some(Vec::new()) });
            }
            let (names, from) = rest.rsplit_once(" from ")?;
            let names = match names.trim().strip_prefix("* as ") {
                Some(all) => Names::All(name(all)?),
                None => Names::Some(list(names)?),
            };
            Some(Import { from: file(from)?, names })
        };
        read().map(Self::Import).ok_or("this form of import is not supported")
    }

    fn read_export(rest: &str) -> Result<Self, &'static str> {
        if rest.starts_with("let ") || rest.starts_with("var ") {
            return Err(CHANGES);
        }
        let declaration =
            ["const ", "class ", "function ", "async function "].iter().find_map(|word| rest.strip_prefix(word));
        let read = || {
            if let Some(declared) = declaration {
                let end = declared.find(|c| !is_of_name(c))?;
                // `const { a, b } = ...` declares no single name.
                return name(&declared[..end]).map(Self::Declaration);
            }
            let rest = rest.trim_end().strip_suffix(';')?.trim();
            match rest.rsplit_once(" from ") {
                Some((names, from)) => Some(Self::Pass(list(names)?, file(from)?)),
                None => Some(Self::Export(list(rest)?)),
            }
        };
        read().ok_or("this form of export is not supported")
    }
}

/// The names in braces, each with what it becomes.
fn list(text: &str) -> Option<Vec<(String, String)>> {
    let names = text.trim().strip_prefix('{')?.strip_suffix('}')?;
    let names = names.split(',').map(str::trim).filter(|entry| !entry.is_empty());
    names
        .map(|entry| {
            let (before, after) = entry.split_once(" as ").unwrap_or((entry, entry));
            Some((name(before)?, name(after)?))
        })
        .collect()
}

fn name(text: &str) -> Option<String> {
    let text = text.trim();
    (!text.is_empty() && text.chars().all(is_of_name)).then(|| text.to_owned())
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '$')
}

/// The file that a quoted path names.
fn file(text: &str) -> Option<String> {
    let name = text.trim().strip_prefix('"')?.strip_suffix('"')?.strip_prefix(FOLDER)?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    (!name.is_empty() && name.chars().all(is_plain)).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(pairs: &[(&str, &str)]) -> Names {
        Names::Some(pairs.iter().map(|(name, local)| ((*name).to_owned(), (*local).to_owned())).collect())
    }

    #[test]
    fn forms_of_our_scripts_are_read() {
        let source = "// words\nimport { a, b as c } from \"/assets/x.js\";\nimport {\n  d,\n} from \"/assets/y-1.js\";\n\
                      import * as e from \"/assets/z.js\";\nimport \"/assets/w.js\";\nexport { f as g } from \"/assets/v.js\";\n\
                      export const h = `export ${a}`;\nexport async function i() {\n  const { p } = await import(\"/assets/u.js\");\n}\n\
                      export function j() {\n  return import(i);\n}\nexport class K {}\nlet l = 1;\nconst m = l;\nexport { m as n };\n";
        let module = Module::read(source).unwrap();
        let imports = [
            ("x.js", names(&[("a", "a"), ("b", "c")])),
            ("y-1.js", names(&[("d", "d")])),
            ("z.js", Names::All("e".to_owned())),
            ("w.js", names(&[])),
            ("v.js", names(&[("f", "$g")])),
        ];
        assert_eq!(module.imports, imports.map(|(from, names)| Import { from: from.to_owned(), names }));
        let exports: Vec<_> = module.exports.iter().map(|(name, local)| (name.as_str(), local.as_str())).collect();
        assert_eq!(exports, [("K", "K"), ("g", "$g"), ("h", "h"), ("i", "i"), ("j", "j"), ("n", "m")]);
        assert_eq!(module.parts, BTreeSet::from(["u.js".to_owned()]));
        let code = "const h = `export ${a}`;\nasync function i() {\nconst { p } = await load$u();\n}\n\
                    function j() {\nreturn import(i);\n}\nclass K {}\nlet l = 1;\nconst m = l;";
        assert_eq!(module.code, code);
    }

    #[test]
    fn other_forms_are_errors() {
        // source, line
        let table = [
            ("import a from \"/assets/x.js\";", 1),
            ("\nimport { a } from \"./x.js\";", 2),
            ("import { a } from '/assets/x.js';", 1),
            ("import { a } from \"/assets/x.js\" with { type: \"json\" };", 1),
            ("import { a } from \"/assets/x.js\"\nb();", 1),
            ("a(import.meta.url);", 1),
            ("\n\nexport default a;", 3),
            ("export let a = 1;", 1),
            ("export var a = 1;", 1),
            ("let a = 1;\nexport { a };", 1),
            ("export const { a } = b;", 1),
            ("export * from \"/assets/x.js\";", 1),
            ("if (a) {\n  export const b = 1;\n}", 2),
            ("a();\nawait b;", 2),
            ("const a = \"\n\";", 1),
        ];
        for (source, line) in table {
            let error = Module::read(source).map(|module| module.code).unwrap_err();
            assert_eq!(error.line, line, "{source}: {}", error.problem);
        }
    }
}
