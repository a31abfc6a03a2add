//! The modules of a crate, and which file depends on which.
//!
//! A file depends on the file that defines an item which it imports or uses; re-exports on the way are followed. Neither
//! `mod child;` nor a re-export of a descendant's item is a dependency: both only say where something is.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use syn::{File, Item};

use super::module::{Import, ItemPath, Module, child_modules};

pub(crate) type Dependencies = BTreeMap<PathBuf, BTreeSet<PathBuf>>;

/// More steps than any chain of re-exports has.
const STEPS_MAX: usize = 20;

/// All modules of a crate, by their path from its root.
#[derive(Debug, Default)]
pub(crate) struct Modules(BTreeMap<ItemPath, Module>);

impl Modules {
    /// Reads the crate whose root is `file`.
    pub(crate) fn read(file: &Path) -> Self {
        let mut modules = Self::default();
        modules.read_file(Vec::new(), file, file.parent().unwrap());
        modules
    }

    fn read_file(&mut self, path: ItemPath, file: &Path, folder: &Path) {
        let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let File { items, .. } = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        self.read_items(path, &items, file, folder);
    }

    fn read_items(&mut self, path: ItemPath, items: &[Item], file: &Path, folder: &Path) {
        let _ = self.0.insert(path.clone(), Module::read(file, items));
        for child in child_modules(items) {
            let name = child.ident.to_string();
            let (path, folder) = ([path.clone(), vec![name.clone()]].concat(), folder.join(&name));
            match &child.content {
                Some((_, items)) => self.read_items(path, items, file, &folder),
                None => self.read_file(path, &folder.with_extension("rs"), &folder),
            }
        }
    }

    /// Every file, with the files that it depends on.
    pub(crate) fn dependencies(&self) -> Dependencies {
        let mut all = Dependencies::new();
        for (path, module) in &self.0 {
            let imports = module.imports.values().filter_map(|import| self.imported_from(path, import));
            let globs = module.globs.iter().filter_map(|import| self.all_imported_from(path, import));
            let used = module.paths.iter().filter_map(|used| self.home(&self.absolute(path, used, 0)?, 0));
            let others = imports.chain(globs).chain(used).map(|home| &self.0[&home].file);
            all.entry(module.file.clone()).or_default().extend(others.filter(|file| **file != module.file).cloned());
        }
        all
    }

    /// The module that defines an imported item. An imported module counts where its items are used.
    fn imported_from(&self, module: &[String], import: &Import) -> Option<ItemPath> {
        let item = self.absolute(module, &import.path, 0)?;
        if self.0.contains_key(&item) {
            return None;
        }
        self.home(&item, 0).filter(|home| !(import.is_reexport && home.starts_with(module)))
    }

    fn all_imported_from(&self, module: &[String], import: &Import) -> Option<ItemPath> {
        let item = self.absolute(module, &import.path, 0)?;
        let home = if self.0.contains_key(&item) { item } else { self.home(&item, 0)? };
        (!(import.is_reexport && home.starts_with(module))).then_some(home)
    }

    /// A path of a module's code as seen from the root of the crate. `None` if it points outside the crate, or to a
    /// name that is neither defined nor imported there.
    fn absolute(&self, module: &[String], path: &[String], steps: usize) -> Option<ItemPath> {
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "crate" => return Some(rest.to_vec()),
            // A method's `self` is not a path.
            "self" => return (!rest.is_empty()).then(|| [module, rest].concat()),
            "super" => {
                let mut path = module[..module.len().checked_sub(1)?].to_vec();
                let mut rest = rest;
                while let Some(("super", after)) = rest.split_first().map(|(name, after)| (name.as_str(), after)) {
                    let _ = path.pop()?;
                    rest = after;
                }
                return Some([path.as_slice(), rest].concat());
            }
            _ => (),
        }
        let names = &self.0[module];
        if names.children.contains(first) || names.items.contains(first) {
            return Some([module, path].concat());
        }
        if let Some(import) = names.imports.get(first) {
            let is_itself = import.path.first() == Some(first);
            return (!is_itself && steps < STEPS_MAX)
                .then(|| self.absolute(module, &[import.path.as_slice(), rest].concat(), steps + 1))?;
        }
        Some([self.offering(module, first, steps)?.as_slice(), path].concat())
    }

    /// The module among the ones with a glob import here that has this name.
    fn offering(&self, module: &[String], name: &String, steps: usize) -> Option<ItemPath> {
        let globs = self.0[module].globs.iter().filter(|_| steps < STEPS_MAX);
        globs.filter(|import| import.path.first() != Some(name)).find_map(|import| {
            let other = self.absolute(module, &import.path, steps + 1)?;
            let names = self.0.get(&other)?;
            let is_there = names.children.contains(name)
                || names.items.contains(name)
                || names.imports.contains_key(name)
                || self.offering(&other, name, steps + 1).is_some();
            is_there.then_some(other)
        })
    }

    /// The module that defines an item. `None` for a module, and for an item of another crate.
    fn home(&self, item: &[String], steps: usize) -> Option<ItemPath> {
        let known = (0..=item.len()).rev().find(|end| self.0.contains_key(&item[..*end]))?;
        let Some(name) = item.get(known) else {
            // A function may have the name of a module.
            let (name, parent) = item.split_last()?;
            let names = &self.0[parent];
            if names.items.contains(name) {
                return Some(parent.to_vec());
            }
            let imported = self.absolute(parent, &names.imports.get(name)?.path, 0)?;
            return if imported == item || steps == STEPS_MAX { None } else { self.home(&imported, steps + 1) };
        };
        let (module, rest) = item.split_at(known);
        let names = &self.0[module];
        if names.items.contains(name) || steps == STEPS_MAX {
            return Some(module.to_vec());
        }
        if names.imports.contains_key(name) {
            return self.home(&self.absolute(module, rest, 0)?, steps + 1);
        }
        match self.offering(module, name, 0) {
            Some(other) => self.home(&[other.as_slice(), rest].concat(), steps + 1),
            // A macro defines it.
            None => Some(module.to_vec()),
        }
    }
}
